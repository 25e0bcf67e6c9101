/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of an inlined copy in its container: marks on instructions, for event_count.c. */
#ifndef SITES_COPY_CODE_H
#define SITES_COPY_CODE_H

#include "sites/event_count.h"

enum {
	OWN = 1 << 0, /* in the copy's ranges */
	SITE = 1 << 1,
	AROUND = 1 << 2, /* reached from the function's entry without passing a site */
	AHEAD = 1 << 3,  /* leads to a site, loops aside */
	SOURCE = 1 << 4, /* leads, in the copy's own code, to an instruction from the source */
	/* CFG entries */
	EARLY = 1 << 5,  /* a site from which another site is ahead */
	BEFORE = 1 << 6, /* reached from an early site without passing another one */
	/* event counts; each check has its own bits */
	INSIDE = 1 << 5, /* reached from a site in the copy's own code */
	OTHER = 1 << 6,  /* in the ranges of another copy of the same function */
	NOBODY = 1 << 7, /* has no line and is not in the copy */
};

struct copy_code {
	struct cfg *cfg;
	uint8_t *marks;
	struct event_count_scratch *scratch; /* has the marks */
	int rc;
};

/* All marks are cleared: no instruction is the copy's. 0 or -ENOMEM. */
int copy_code_init(struct copy_code *c, struct cfg *g, struct event_count_scratch *scratch);
/* The same, and marks the instructions of the copy's ranges. */
int copy_code_of(struct copy_code *c, struct cfg *g, const struct built_site *copy,
		 struct event_count_scratch *scratch);
/* Marks those of one range as the copy's, or as another copy's. */
int copy_code_own(struct copy_code *c, struct dw_range r);
void copy_code_other(const struct copy_code *c, struct dw_range r);
/* Marks AHEAD the instructions from which a SITE is ahead. */
void copy_code_mark_ahead(struct copy_code *c);
/* Marks SOURCE the copy's instructions that lead to one from the source. */
void copy_code_mark_source(struct copy_code *c);
/* Whether the copy has an indirect jump of its own. */
bool copy_code_has_table(const struct copy_code *c);
/* Whether the straight line from a site has a call or a store of the copy. */
bool copy_code_has_effect(const struct copy_code *c, uint32_t at);

/* copy_loop.c: sets *@ret if the copy's own code leads from a site to a site. 0 or -ENOMEM. */
int copy_comes_back(struct copy_code *c, const struct event_count *p, bool *ret);

#endif
