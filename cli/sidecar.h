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
	bool none;        /* of places: ask the debug information */
	unsigned int jobs;
};

/* The sidecar of @bin; an exit status. Talks on stderr of what was refused. */
int sidecar_for(const struct cairn_binary *bin, const struct sidecar_wish *wish, struct cairn_pack **ret);

/* Who answers about functions: a sidecar with their places where there is one, else the debug information. */
struct sidecar_sites {
	struct cairn_pack *pack; /* NULL: the debug information */
	struct cairn_sites *sites;
};

/* An exit status. Of a binary that is a sidecar itself, that one answers. None is made. */
int sidecar_sites_open(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		       const struct cairn_sites_opts *opts, struct sidecar_sites *ret);
void sidecar_sites_close(struct sidecar_sites *source);

#endif
