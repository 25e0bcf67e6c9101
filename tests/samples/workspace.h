/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A directory of its own for a test, in which files are written and commands run
 *
 *	struct workspace w;
 *	workspace_open(&w);
 *	workspace_write(&w, "sample.c", source);
 *	if (!workspace_try(&w, "%s -g -O2 -o sample sample.c", cc))
 *		... no such compiler
 *	cairn_binary_open(workspace_path(&w, "sample"), ...);
 *	workspace_close(&w);
 */
#ifndef SAMPLES_WORKSPACE_H
#define SAMPLES_WORKSPACE_H

#include <stdbool.h>

struct workspace {
	char dir[64];
};

/* Both abort when the file system does not do as told. */
void workspace_open(struct workspace *w);
void workspace_close(struct workspace *w);

/* Absolute path of @name in it; one of 8 static buffers in turn. */
const char *workspace_path(const struct workspace *w, const char *name);

void workspace_write(const struct workspace *w, const char *name, const char *text);

/* Runs a shell command in it, with its errors hidden; true when it exits with 0. */
__attribute__((format(printf, 2, 3))) bool workspace_try(const struct workspace *w, const char *fmt,
							 ...);

/* The same, for commands that must work: prints the command and aborts when it fails. */
__attribute__((format(printf, 2, 3))) void workspace_run(const struct workspace *w, const char *fmt,
							 ...);

#endif
