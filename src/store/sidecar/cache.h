/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache: DIR/BUILD-ID.cairn. */
#ifndef SIDECAR_CACHE_H
#define SIDECAR_CACHE_H

#include <cairn/sidecar.h>

/* "DIR/0123abcd.cairn", malloc()ed; NULL when out of memory. */
char *cache_path(const char *dir, const uint8_t *build_id, size_t len);

/* Note that a file was used now, for pruning. */
void cache_touch(const char *path);

/*
 * cache_lock - wait until no other process makes a sidecar for this cache; the directory is made
 * when it is missing
 *
 * Returns a descriptor; closing it lets the next maker proceed. Otherwise as cache_keep().
 */
int cache_lock(const char *dir, struct cairn_err *err);

/*
 * cache_attempt - note beside @path that it is about to be made
 *
 * The note stays when the maker fails or is killed, so that the next one does not spend the same
 * seconds at once again.
 *
 * @again  all the same
 * Returns 0; -EAGAIN: another maker tried minutes ago; or the reason why the note cannot be
 * written, as then the sidecar cannot be written either.
 */
int cache_attempt(const char *path, bool again);
void cache_attempt_done(const char *path);

/*
 * cache_keep - write a file into the cache, making the directory, and prune
 *
 * Returns 0, or the reason: -EPERM when others could write there and the caller is root; or the
 * system's error.
 */
int cache_keep(const char *dir, const char *path, const void *bytes, size_t size,
	       uint64_t max_bytes, struct cairn_err *err);

#endif
