/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values of removed parameters
 *
 * GCC removes a parameter that the code does not need (-fipa-sra, -fipa-cp). For the debugger each
 * call then binds a temporary to the argument, and the body reads it:
 *
 *	# DEBUG D#2 => 6		in the caller, before the copy
 *	# DEBUG INLINE_ENTRY f		the entry: a line row, view k
 *	# DEBUG D#1 => D#2		after it, in the copy
 *	# DEBUG unused => D#1		the location begins at view k + 1
 *
 * But there is one D#2 for all copies of f in a function. If a call's argument cannot be described
 * any more, the binding of D#2 is missing, and that of another call is in force
 * (docs/findings/gcc-removed-parameter-value.md).
 *
 * An argument that is passed is bound before the entry. So a location that begins one view after
 * the entry is of a removed parameter. If the containing function has another copy of the same
 * function, the value may be that copy's. A constant that holds for the whole copy is written as
 * DW_AT_const_value and has lost its view. Its parameter was removed if it was removed in another
 * copy of the same function.
 *
 * Two cases stay unseen: a copy whose DIE GCC dropped, and a call of the function that was not
 * inlined. Both bind the temporary, too.
 */
#include "sites/quirks/removed_param.h"

#include <stdlib.h>

#include "dwarf/constants.h"
#include "sites/quirks/quirks.h"

static int by_container(const void *a, const void *b)
{
	const struct built_site *x = *(struct built_site *const *)a,
				*y = *(struct built_site *const *)b;
	if (x->container != y->container)
		return x->container < y->container ? -1 : 1;
	return x->die.off < y->die.off ? -1 : x->die.off > y->die.off;
}

/* Arguments that a bare walk leaves out, and damaged sites, have no bounds. */
static bool has_bound(const struct built_site *b, uint32_t arg)
{
	return b->site.n_shared && b->bound && arg < b->formals.n;
}

static bool is_removed(const struct built_site *b, uint32_t arg)
{
	return has_bound(b, arg) && b->bound[arg] == BOUND_AFTER;
}

bool removed_param_any(const struct built_site *b)
{
	for (uint32_t i = 0; i < b->formals.n; i++)
		if (is_removed(b, i))
			return true;
	return false;
}

static void reject(struct built_site *b, uint32_t arg)
{
	if (!has_bound(b, arg) || b->bound[arg] == BOUND_BEFORE)
		return;
	quirk_reject(&b->args[arg].loc, CAIRN_QUIRK_REMOVED_PARAM);
}

/* The copies in one container. */
static void reject_run(struct built_site **run, size_t n, uint32_t n_args)
{
	for (uint32_t arg = 0; arg < n_args; arg++) {
		bool removed = false;
		for (size_t i = 0; i < n && !removed; i++)
			removed = is_removed(run[i], arg);
		for (size_t i = 0; i < n && removed; i++)
			reject(run[i], arg);
	}
}

void removed_param_check(struct built_site **sites, size_t n)
{
	uint32_t n_args = 0;
	qsort(sites, n, sizeof(*sites), by_container);
	for (size_t i = 0; i < n; i++)
		n_args = sites[i]->formals.n > n_args ? sites[i]->formals.n : n_args;
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && sites[j]->container == sites[i]->container;)
			j++;
		/*
		 * A container that is itself a body of the function (recursion was inlined) is no
		 * copy.
		 */
		i += sites[i]->die.tag != DW_TAG_inlined_subroutine;
		/* A copy can have several sites. */
		if (i < j && sites[i]->die.off != sites[j - 1]->die.off)
			reject_run(sites + i, j - i, n_args);
	}
}
