/* SPDX-License-Identifier: BSD-2-Clause */
/* Making sidecars for the next time, without keeping the user waiting. */
#ifndef CLI_KEEP_H
#define CLI_KEEP_H

#include <stddef.h>

/*
 * keep_in_background - let a process of its own make the sidecar of a file and keep it in the cache
 *
 * @path        as given to cairn_binary_open(); of a process /proc/PID/exe
 * @debug_dirs  as in cairn_binary_opts
 * Call it when the answer has been given. Takes at most 50 ms, after which the process goes on
 * alone. Says nothing, also when it cannot be done: the answer was given without it.
 */
void keep_in_background(const char *path, const char *const *debug_dirs, size_t n_debug_dirs);

/*
 * keep_fetched_in_background - the same for a file without debug information: download its sidecar
 * or debug file
 *
 * @debuginfod  URLs; "": those in DEBUGINFOD_URLS
 */
void keep_fetched_in_background(const char *path, const char *debuginfod);

#endif
