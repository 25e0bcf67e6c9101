/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache: DIR/BUILD-ID.cairn. */
#ifndef PACK_CACHE_H
#define PACK_CACHE_H

#include <cairn/pack.h>

/* "DIR/0123abcd.cairn", malloc()ed; NULL when out of memory. */
char *cache_path(const char *dir, const uint8_t *build_id, size_t len);

/* Note that a file was used now, for pruning. */
void cache_touch(const char *path);

/*
 * cache_keep - write a file into the cache, making the directory, and prune
 *
 * Returns 0, or why not: -EPERM when others could write there and the caller is root; what the system says.
 */
int cache_keep(const char *dir, const char *path, const void *bytes, size_t size, uint64_t max_bytes,
	       struct cairn_err *err);

#endif
