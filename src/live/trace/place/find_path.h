/* SPDX-License-Identifier: BSD-2-Clause */
/* From the PATH of a probe to the file to open. */
#ifndef TRACE_FIND_PATH_H
#define TRACE_FIND_PATH_H

#include "trace/trace.h"

struct found_path {
	const char *path;  /* to open */
	const char *shown; /* for people */
	bool is_awaited;   /* a library that no traced process has mapped yet */
};

/*
 * find_path - the file that a probe names
 *
 * @name  a path, or a library; NULL: the executable of the processes or the command
 * Returns 0; -ENXIO: no process maps it, or they map different ones; -ENOENT; -ESRCH; -EPERM;
 * -ENOMEM.
 */
int find_path(struct cairn_trace *t, const char *name, struct found_path *ret,
	      struct cairn_err *err);

/*
 * path_is_program - whether it is the name of what runs: "nginx", of /usr/sbin/nginx
 *
 * True if all traced processes, or the command, run a program of that name.
 */
bool path_is_program(const struct cairn_trace *t, const char *name);
/* By its name: NAME.so, NAME.so.N. */
bool path_looks_like_library(const char *name);
/*
 * library_without_so - "libc:malloc", where the system has libc.so.6
 *
 * Returns 0: it is none; -EINVAL: err says what to write.
 */
int library_without_so(const char *spec, struct cairn_err *err);
/* By its first bytes. */
bool path_is_elf(const char *path);

#endif
