/* SPDX-License-Identifier: BSD-2-Clause */
/* Sidecars as the verbs use them: the environment says where the cache is. */
#ifndef CLI_SIDECAR_H
#define CLI_SIDECAR_H

#include <stdbool.h>
#include <stddef.h>

#include <cairn/pack.h>

/* $XDG_CACHE_HOME/cairn, or ~/.cache/cairn; false when neither is known. */
bool sidecar_cache_dir(char *buf, size_t size);

/* The file's own name says that it is a sidecar. */
bool sidecar_is_named(const char *path);

struct sidecar_wish {
	const char *file; /* use this one; NULL: search, and make one */
	bool keep;        /* in the cache */
	unsigned int jobs;
};

/* The sidecar of @bin; an exit status. Talks on stderr of what was refused. */
int sidecar_for(const struct cairn_binary *bin, const struct sidecar_wish *wish, struct cairn_pack **ret);

#endif
