/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sidecars as the verbs use them: the environment gives the directory of the cache, and whether the
 * network may be used.
 */
#ifndef CLI_SIDECAR_H
#define CLI_SIDECAR_H

#include <stdbool.h>
#include <stddef.h>

#include <cairn/sidecar.h>

#include "cmd.h"

/* $XDG_CACHE_HOME/cairn, or ~/.cache/cairn; false when neither is known. */
bool sidecar_cache_dir(char *buf, size_t size);

/* The file's own name says that it is a sidecar. */
bool sidecar_is_named(const char *path);

/* The command line's options about sidecars, as far as the verb has them. */
struct sidecar_wish {
	const char *file;       /* --sidecar */
	const char *debuginfod; /* --debuginfod; NULL: not given */
	bool no_cache;
	bool none;    /* ask the debug information */
	bool lines;   /* one that answers about addresses only will do */
	bool offline; /* download nothing, whatever the environment says */
	bool many;    /* several binaries are queried: --sidecar is for the one with its build-id */
	unsigned int jobs;
	struct opt_list debug_dirs;
	const char *btf; /* --btf, "" without FILE; NULL: where there is nothing better */
	struct opt_list btf_bases;
};

#define SIDECAR_OPT_SIDECAR(at)                                                                    \
	{                                                                                          \
		0, "sidecar", OPT_TEXT, "SIDECAR", (at), "answer from this sidecar"                \
	}
#define SIDECAR_OPT_NO_CACHE(at)                                                                   \
	{                                                                                          \
		0, "no-cache", OPT_FLAG, NULL, (at),                                               \
			"neither look in the cache of sidecars nor keep one there"                 \
	}
#define SIDECAR_OPT_NONE(at)                                                                       \
	{                                                                                          \
		0, "no-sidecar", OPT_FLAG, NULL, (at),                                             \
			"read the debug information, also when there is a sidecar"                 \
	}
#define SIDECAR_OPT_DEBUGINFOD(at)                                                                 \
	{                                                                                          \
		0, "debuginfod", OPT_MAYBE, "URL", (at),                                           \
			"take the sidecar or the debug file of a file that has neither from the "  \
			"debuginfod client's cache, or download it; "                              \
			"without URL from those in DEBUGINFOD_URLS"                                \
	}

#define SIDECAR_OPT_BTF(at)                                                                        \
	{                                                                                          \
		0, "btf", OPT_MAYBE, "FILE", (at),                                                 \
			"answer from BTF with sites: that of the file, or FILE and FILE.inline"    \
	}
#define SIDECAR_OPT_BTF_BASE(at)                                                                   \
	{                                                                                          \
		0, "btf-base", OPT_LIST, "FILE", (at),                                             \
			"what the BTF is split from, parent first: for a module, its kernel's"     \
	}

/* All of them, at the members of the struct sidecar_wish at @at. */
/* clang-format off */
#define SIDECAR_OPTS(at) \
	SIDECAR_OPT_SIDECAR((at) + offsetof(struct sidecar_wish, file)), \
	SIDECAR_OPT_NONE((at) + offsetof(struct sidecar_wish, none)), \
	SIDECAR_OPT_NO_CACHE((at) + offsetof(struct sidecar_wish, no_cache)), \
	SIDECAR_OPT_DEBUGINFOD((at) + offsetof(struct sidecar_wish, debuginfod))
#define SIDECAR_OPTS_BTF(at) \
	SIDECAR_OPT_BTF((at) + offsetof(struct sidecar_wish, btf)), \
	SIDECAR_OPT_BTF_BASE((at) + offsetof(struct sidecar_wish, btf_bases))
/* clang-format on */

/* The cache's directory in @dir; NULL where none is wanted. */
const char *sidecar_cache_for(const struct sidecar_wish *wish, char *dir, size_t size);

/*
 * The same sidecar that is made when there is none: an exit status. For callers that used
 * sidecar_find() already.
 */
int sidecar_make(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		 struct cairn_sidecar **ret);

/*
 * sidecar_another - instead of one that cairn_sidecar_trouble() is about: one that is made from the
 * debug information
 *
 * Reports the faults of @sidecar, which stays open. Returns NULL when there is no debug
 * information, or the user named @sidecar.
 */
struct cairn_sidecar *sidecar_another(const struct cairn_binary *bin,
				      const struct sidecar_wish *wish,
				      const struct cairn_sidecar *sidecar);

/*
 * Reports the faults of a sidecar: an exit status, STATUS_YES when no data was held back. @sidecar
 * may be NULL.
 */
int sidecar_trouble(const struct cairn_sidecar *sidecar);

/*
 * Reports that a sidecar could not be compared with code, if so. Also used for output made from it
 * without a binary.
 */
void sidecar_say_unbound(const struct cairn_sidecar *sidecar);
/* The same of a file that a person named, if it is a sidecar. */
void sidecar_say_unbound_file(const char *path);

/*
 * sidecar_debug_file - the debug file of @bin from the debuginfod client's cache or a server
 *
 * Returns its path, to be freed; NULL if @wish does not request it, or it is nowhere. Reports on
 * stderr the requests.
 */
char *sidecar_debug_file(const struct cairn_binary *bin, const struct sidecar_wish *wish);

/*
 * The sidecar of @bin for addr, made when there is none; an exit status. Reports refused sidecars
 * on stderr.
 */
int sidecar_for(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		struct cairn_sidecar **ret);

/* The same, and *@ret is NULL where nothing is known of the file: STATUS_YES. */
int sidecar_if_any(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		   struct cairn_sidecar **ret);

/*
 * sidecar_find - the sidecar of @bin, with sites unless the wish is for lines; none is made
 *
 * @wish  struct sidecar_wish: cairn_trace_opts has it, too
 * @ret   NULL when there is none; of a binary that is a sidecar itself, that one
 * Returns 0, or as cairn_sidecar_open(). Reports refused sidecars on stderr.
 */
int sidecar_find(void *wish, const struct cairn_binary *bin, struct cairn_sidecar **ret,
		 struct cairn_err *err);

/*
 * The source of answers about functions: a sidecar with their sites if there is one, else the debug
 * information, else BTF.
 */
struct sidecar_sites {
	struct cairn_sidecar *sidecar; /* NULL: the debug information, or BTF */
	struct cairn_sites *sites;
};

/* As cairn_btf_sites_open(), from what the wish names, else from what belongs to the binary. */
int sidecar_btf_sites(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		      struct cairn_sites **ret, struct cairn_err *err);

/* An exit status. None is made. */
int sidecar_sites_open(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		       const struct cairn_sites_opts *opts, struct sidecar_sites *ret);
void sidecar_sites_close(struct sidecar_sites *source);

/*
 * sidecar_sites_settle - before anything is printed: whether the sidecar can answer
 *
 * A sidecar of another file, or a damaged one, is replaced by the debug information, with a note. A
 * sidecar that the user named is not replaced.
 * @names  functions of the later queries; @n 0: all of the file
 * Returns an exit status.
 */
int sidecar_sites_settle(const struct cairn_binary *bin, const struct sidecar_wish *wish,
			 const struct cairn_sites_opts *opts, char *const *names, size_t n,
			 struct sidecar_sites *source);

/*
 * sidecar_keep - have the sidecar of @bin made for the next time
 *
 * Call it when the answer, which came from the debug information, is out. Does nothing where a
 * cache is not wanted: --no-cache, CAIRN_CACHE=off or CAIRN_CACHE=read, a binary without a
 * build-id.
 */
void sidecar_keep(const struct cairn_binary *bin, const struct sidecar_wish *wish);

#endif
