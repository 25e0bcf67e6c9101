/* SPDX-License-Identifier: BSD-2-Clause */
/* The places of lines: cairn/lines.h, for the debug information. */
#ifndef SITES_LINES_H
#define SITES_LINES_H

#include <cairn/lines.h>

#include "sites/group.h"
#include "sites/scopes_at.h"

/* The question of a user; names are in the query's text. */
struct lines_query {
	char *function; /* as spec_parse() takes it; NULL: FILE:LINE */
	const char *file;
	uint32_t line; /* 0: all lines of the function */
};

/*
 * lines_parse - take FUNC, FUNC:LINE or FILE:LINE apart, in place
 *
 * @is_file  whether @spec's part before the line is a file of the program
 */
void lines_parse(char *spec, bool (*is_file)(void *ctx, const char *name), void *ctx,
		 struct lines_query *ret);

/* Whether a unit has a file whose path ends in @name. Cost: the headers of the line tables. */
bool lines_has_file(const struct dwarf *dw, const char *name);

/*
 * lines_find - the places that the query means
 *
 * @env     with the index of all functions
 * @active  the code of all functions
 * @arena   owns the result
 * Returns their number; -ENOTUNIQ, -EBADMSG, -ENOMEM.
 */
int lines_find(const struct site_env *env, const struct active *active, unsigned int threads,
	       const struct lines_query *query, struct arena *arena, struct cairn_lines *ret,
	       struct cairn_err *err);

#endif
