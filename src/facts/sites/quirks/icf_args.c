/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sites of one function at one address, in code that was merged
 *
 * A function can have several: a copy in each unit of a header's inline function, clones with
 * constant arguments. If two of them have the same code, the linker may keep one (--icf). Both
 * descriptions then are at one address:
 *
 *	0x3480  f68               a in %rsi
 *	0x3480  f68.constprop.0   a is not described: its callers do not pass it, and %rsi holds
 *	                          anything
 *
 * An event does not show which one was called. So an argument is known there only if all
 * descriptions of it are equal.
 *
 * The same goes for copies in different functions that became one. Each function has its copy of f,
 * and both begin at one address. Control that passes there makes one call of f:
 *
 *	0x6a3  f, inlined in one+0x3
 *	0x6a3  f, inlined in two+0x3
 *
 * Copies in one function that begin at one address are something else: two calls. Names do not
 * separate functions: one and two may be clones of a function, or its bodies in two units.
 */
#include "sites/quirks/icf_args.h"

#include <errno.h>
#include <string.h>

#include "sites/quirks/quirks.h"

bool icf_args_are_one_call(const struct cairn_site *a, const struct cairn_site *b)
{
	if (a->at.v != b->at.v || !a->n_chain != !b->n_chain)
		return false;
	if (!a->n_chain || (a->body && b->body))
		return !a->n_chain || a->body != b->body;
	return a->container && b->container && strcmp(a->container, b->container) != 0;
}

static bool agree(const struct cairn_site *run, uint32_t n, uint32_t arg)
{
	for (uint32_t i = 1; i < n; i++)
		if (arg >= run[i].n_args ||
		    !loc_equal(&run[0].args[arg].loc, &run[i].args[arg].loc))
			return false;
	return true;
}

/* Give each site of a run args of which only those are available that all agree on. */
static int settle_run(struct cairn_site *run, uint32_t n, struct arena *arena)
{
	struct cairn_location unknown = {0};
	quirk_reject(&unknown, CAIRN_QUIRK_ICF_ARGS);
	for (uint32_t arg = 0; arg < run[0].n_args; arg++) {
		if (agree(run, n, arg))
			continue;
		for (uint32_t i = 0; i < n; i++) {
			struct cairn_arg *args = arena_array(arena, run[i].n_args, sizeof(*args));
			if (!args)
				return -ENOMEM;
			memcpy(args, run[i].args, run[i].n_args * sizeof(*args));
			if (arg < run[i].n_args)
				args[arg].loc = unknown;
			run[i].args = args;
		}
	}
	return 0;
}

int icf_args_settle(struct cairn_site *sites, uint32_t n, struct arena *arena)
{
	for (uint32_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && icf_args_are_one_call(&sites[i], &sites[j]);)
			j++;
		if (j - i > 1 && settle_run(&sites[i], j - i, arena) < 0)
			return -ENOMEM;
	}
	return 0;
}
