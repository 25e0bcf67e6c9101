/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides whether each call hits a site of an inlined copy exactly once. */
#ifndef SITES_EVENT_COUNT_H
#define SITES_EVENT_COUNT_H

#include "loc/cfg.h"
#include "sites/site.h"

/*
 * With more CFG entries than this the copy's code is scattered, and they are no entries. The copy
 * then has the first one as its only site. If other entries do not lead to it, the copy is
 * BYPASSED: it has fewer events, and that is reported. Two of the 43,800 sites in Lua, SQLite and
 * Redis belong to such copies.
 *
 * Neither this limit nor the order of the entries can make a value wrong. A location is evaluated
 * at whichever site is chosen. At a site without an entry only parameters are believed that the
 * function cannot assign to; they hold throughout the copy.
 */
enum { CFG_ENTRIES_MAX = 8 };

/*
 * event_count_cfg_entries - the instructions of a copy that paths from the function's entry reach
 * first
 *
 * @ret  in the order of the CFG; at most CFG_ENTRIES_MAX
 * Returns their number if each call passes exactly one of them; entries that only do work ahead of
 * time are left out. Otherwise returns 1 and the first of all, or 0: nothing is known.
 * Cost: some passes over the container's instructions.
 */
unsigned int event_count_cfg_entries(struct cfg *g, const struct built_site *copy,
				     struct cairn_vaddr *ret);

/* Memory that is reused from copy to copy; zeroed at first. */
struct event_count_scratch {
	uint8_t *marks; /* one for each instruction of the container */
	size_t cap;
	/* the copy's instructions; during a search for a loop the ones to continue from */
	VEC(uint32_t) own;
	VEC(struct dw_range) ranges; /* the scope's */
};
void event_count_scratch_fini(struct event_count_scratch *s);

/*
 * event_count_comes_back - whether a scope's own code leads from an instruction to it again
 *
 * Returns 1; 0; -ENOMEM.
 * Cost: the scope's instructions, if no path leads back.
 */
int event_count_comes_back(struct cfg *g, const struct dw_die *scope, struct cairn_vaddr at,
			   struct event_count_scratch *scratch);

/*
 * event_count_is_in_loop - whether the code of a function, from which @g was made, leads from an
 * instruction to it again
 *
 * In a function with an indirect jump only the function's own ranges count.
 * Returns 1; 0; -ENOMEM. Cost: as cfg_may_come_back() or event_count_comes_back().
 */
int event_count_is_in_loop(struct cfg *g, const struct dw_die *function, uint32_t at,
			   struct event_count_scratch *scratch);

/* One copy with all its sites in one function, and the function's other copies there. */
struct event_count {
	struct cfg *cfg;
	const struct built_site *copy; /* its die and ranges */
	struct built_site **sites;     /* of the copy: its first entry and the extra entries */
	const uint32_t *at;            /* their instructions; GRAPH_NONE where none begins */
	size_t n_sites;
	/* copies of the same function in the same container; may include this one */
	const struct built_site *const *others;
	size_t n_others;
	const struct elf *code; /* the file that the graph was made of */
	/*
	 * check only the facts that decide whether an argument belongs to a call here: LOOPED,
	 * SHARED_PC, BEFORE_TEST
	 */
	bool for_values;
};

/*
 * event_count_analyse - set count_caveats and n_bypasses of a copy's sites
 *
 * Returns 0 or -ENOMEM.
 * Cost: for a copy with one site, and for values only: one load and tested_after_call_is(), if no
 * jump goes back past the site. Otherwise the copy's instructions, and a byte for each instruction
 * of the container. If other code leads into the copy past its sites: some passes over the
 * container's instructions.
 */
int event_count_analyse(const struct event_count *p, struct event_count_scratch *scratch);

#endif
