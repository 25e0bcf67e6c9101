/* SPDX-License-Identifier: BSD-2-Clause */
/* Colours, and progress: only where a person looks. */
#ifndef CLI_STYLE_H
#define CLI_STYLE_H

#include <stdint.h>
#include <stdio.h>

/* Escape sequences, or empty strings. */
struct style {
	const char *name;  /* the subject of the line */
	const char *faint; /* the part that can be skipped */
	const char *bad;   /* unavailable, hazard, lost */
	const char *off;
};

/* Colour only on a terminal, and not with NO_COLOR (https://no-color.org) or TERM=dumb. */
struct style style_for(FILE *out);

/* A line on stderr that says how far the work is; nothing when stderr is no terminal. */
struct progress {
	const char *what; /* "functions" */
	uint64_t count;
	uint64_t shown_ns; /* when the line was last written; 0: not yet */
};

void progress_step(struct progress *progress);
/* The same, where the whole is known: "12 of 345 units". */
void progress_at(struct progress *progress, uint64_t done, uint64_t total);
/* Takes the line away; before anything else is written. */
void progress_end(struct progress *progress);

#endif
