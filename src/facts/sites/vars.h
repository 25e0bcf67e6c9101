/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables in scope at a line: cairn/lines.h, for the debug information. */
#ifndef SITES_VARS_H
#define SITES_VARS_H

#include <cairn/lines.h>

#include "sites/globals.h"
#include "sites/scopes_at.h"

/*
 * vars_at - as cairn_sites_vars()
 *
 * @types    gives the types of variables
 * @globals  of the unit that has the line
 * @arena  owns the result
 */
int vars_at(const struct site_env *env, const struct active *active,
	    const struct active_types *types, struct globals *globals,
	    const struct cairn_line *line, struct arena *arena, struct cairn_variables *ret,
	    struct cairn_err *err);

#endif
