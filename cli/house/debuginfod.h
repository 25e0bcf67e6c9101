/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking a debuginfod for sidecars and debug files. */
#ifndef CLI_DEBUGINFOD_H
#define CLI_DEBUGINFOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * debuginfod_wanted - whether the network may be used, and which servers
 *
 * @option  of --debuginfod: NULL not given, "" the servers in DEBUGINFOD_URLS, else their URLs
 * Without the option it needs DEBUGINFOD_URLS and CAIRN_DEBUGINFOD=1: many distributions set the
 * first one without Cairn in mind.
 * Returns the URLs, separated by blanks; NULL: it may not, or there are none.
 */
const char *debuginfod_wanted(const char *option);

/* True when --debuginfod or CAIRN_DEBUGINFOD=1 says so, with or without servers. */
bool debuginfod_asked(const char *option);

enum debuginfod_file {
	DEBUGINFOD_SIDECAR,    /* under an id of its own, for cairn_sidecar_open() */
	DEBUGINFOD_DEBUG_FILE, /* the kind that any server has: cairn_binary_opts.debug_file */
};

/*
 * debuginfod_cached - the file that gdb, perf or an earlier request of ours left in the client's
 * cache
 *
 * Needs neither a server nor the client. Reports on stderr the file that it found.
 * @ret  its path, to be freed; NULL: it is not there
 */
void debuginfod_cached(enum debuginfod_file file, const uint8_t *build_id, size_t len, char **ret);

/* The directories that debuginfod_cached() looks into, as text; to be freed, may be NULL. */
char *debuginfod_cache_text(void);

/*
 * debuginfod_fetch - download a file of a build-id, or find it in the client's own cache
 *
 * @ret  its path, to be freed; NULL: no server has it
 * Returns 0, or a negative errno. Reports on stderr the request and the result. Shows progress on a
 * terminal; gives up when nothing has come for half a minute. Ctrl-C ends the program.
 */
int debuginfod_fetch(const char *urls, enum debuginfod_file file, const uint8_t *build_id,
		     size_t len, char **ret);

#endif
