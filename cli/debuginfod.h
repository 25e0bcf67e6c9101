/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking a debuginfod for sidecars. */
#ifndef CLI_DEBUGINFOD_H
#define CLI_DEBUGINFOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * debuginfod_wanted - whether the network may be asked, and which servers
 *
 * @option  of --debuginfod: NULL not given, "" the servers in DEBUGINFOD_URLS, else their URLs
 * Without the option it takes DEBUGINFOD_URLS and CAIRN_DEBUGINFOD=1: the first is set on many machines by people who
 * did not think of us.
 * Returns the URLs, separated by blanks; NULL: it may not, or there are none.
 */
const char *debuginfod_wanted(const char *option);

/*
 * debuginfod_fetch - download the sidecar of a build-id, or find it in the client's own cache
 *
 * @ret  path of a file for cairn_pack_open(), to be freed; NULL: no server has it
 * Returns 0, or a negative errno that was talked about on stderr. Shows progress on a terminal; gives up when nothing has
 * come for half a minute.
 */
int debuginfod_fetch(const char *urls, const uint8_t *build_id, size_t len, char **ret);

#endif
