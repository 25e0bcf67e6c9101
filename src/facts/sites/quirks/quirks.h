/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules about what compilers get wrong (cairn/location.h)
 *
 * quirks.c is the table. A rule that looks at one copy, its site and the code around it is a
 * function of the table, one in each file:
 *
 *	stale_outer_variable.c  arguments that an outer variable shows to be stale
 *	loop_arithmetic.c       integers that are computed from registers in a loop
 *	hidden_difference.c     constants of a copy to which the code passes a difference
 *
 * The other rules of this folder look at something else, and their callers have it:
 *
 *	removed_param.c         all copies in one function: parameters that GCC removed
 *	icf_args.c              all sites at one address, in code that the linker merged
 *	split_part.c            DIEs: copies that are no calls
 *	clang_entry_lines.c     lines: where copies without markers begin
 *	tested_after_call.c     loops whose condition is tested after the call
 *	vectorised.c            calls that one vector instruction makes together
 *
 * A rule about one expression or one unwind row is applied where that is read; the table names the
 * file.
 */
#ifndef SITES_QUIRKS_QUIRKS_H
#define SITES_QUIRKS_QUIRKS_H

#include <cairn/location.h>

#include "loc/cfg.h"
#include "sites/event_count.h"
#include "sites/site.h"

struct outer_scopes;

/* A copy made by GCC, at one of its sites. */
struct quirk_query {
	const struct elf *code;              /* the file that the graph was made of */
	const struct dw_die *container;      /* the function around the copy */
	struct cfg *cfg;                     /* the container's code; NULL: not known */
	struct event_count_scratch *scratch; /* has room for a mark per instruction */
	struct outer_scopes *outer;          /* of the container (stale_outer_variable.h) */
	/*
	 * Built. No other check has rejected an argument of it, or event_count_analyse() has run
	 * on it.
	 */
	struct built_site *site;
	uint32_t at; /* the site's instruction; GRAPH_NONE: none begins there */
};

/*
 * quirks_check_args - reject the arguments that a rule of the table rejects
 *
 * Returns 0 or -ENOMEM.
 * Cost: that of each rule; nothing for a copy whose arguments are plain registers.
 */
int quirks_check_args(const struct quirk_query *q);

/* Give a location that was available the reason of a rule. */
static inline void quirk_reject(struct cairn_location *loc, enum cairn_quirk quirk)
{
	if (loc->why != CAIRN_AVAILABLE)
		return;
	loc->why = cairn_quirk_rule(quirk)->why;
	loc->quirk = (uint16_t)quirk;
}

#endif
