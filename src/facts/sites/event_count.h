/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether each call passes a copy's sites exactly once. */
#ifndef SITES_EVENT_COUNT_H
#define SITES_EVENT_COUNT_H

#include "loc/cfg.h"
#include "sites/site.h"

/*
 * More ways in than this are no entries but a scattered copy. It then has the first way as its only
 * site, and those of the others from which that is not ahead make it BEHIND: fewer events,
 * announced. Of 43,800 sites in Lua, SQLite and Redis two are of such copies.
 *
 * Neither this limit nor the order of ways can make a value wrong. A location is evaluated at the
 * site that is chosen, whichever that is; and at a site without an entry only parameters are
 * believed that the function cannot assign to, which hold throughout the copy.
 */
enum { PASSAGE_WAYS_MAX = 8 };

/*
 * event_count_cfg_entries - the instructions of a copy that ways from the function's entry come to
 * first
 *
 * @ret  in the order of the ways; PASSAGE_WAYS_MAX of them
 * Returns their number when each call comes by exactly one of them; ways on which nothing but work
 * ahead of time was done are left out. Else 1 and the first of all, or 0: nothing is known.
 * Cost: some passes over the container's instructions.
 */
unsigned int event_count_cfg_entries(struct graph *g, const struct built_site *copy,
				     struct cairn_vaddr *ret);

/* What is kept from copy to copy; zeroed at first. */
struct event_count_scratch {
	uint8_t *marks; /* one for each instruction of the container */
	size_t cap;
	/* the copy's instructions; of a way back those that it has to go on from */
	VEC(uint32_t) own;
	VEC(struct dw_range) ranges; /* the scope's */
};
void event_count_scratch_fini(struct event_count_scratch *s);

/*
 * event_count_comes_back - whether a scope's own code leads from an instruction to it again
 *
 * Returns 1; 0; -ENOMEM.
 * Cost: the scope's instructions, where no way leads back.
 */
int event_count_comes_back(struct graph *g, const struct dw_die *scope, struct cairn_vaddr at,
			   struct event_count_scratch *scratch);

/*
 * event_count_is_in_loop - whether the code of a function, of which @g was made, leads from an
 * instruction to it again
 *
 * Of a function with an indirect jump, by its own ranges alone.
 * Returns 1; 0; -ENOMEM. Cost: as graph_may_come_back() or event_count_comes_back().
 */
int event_count_is_in_loop(struct graph *g, const struct dw_die *function, uint32_t at,
			   struct event_count_scratch *scratch);

/* One copy with all its sites in one function, and the function's other copies there. */
struct event_count {
	struct graph *graph;
	const struct built_site *copy; /* its die and ranges */
	struct built_site **sites;    /* of the copy: its first entry and the further ones */
	const uint32_t *at;            /* their instructions; GRAPH_NONE where none begins */
	size_t n_sites;
	/* copies of the same function in the same container; this one may be among them */
	const struct built_site *const *others;
	size_t n_others;
	const struct elf *code; /* what the graph was made of */
	/*
	 * only what decides whether an argument is that of a call here is asked: AGAIN, SHARED,
	 * CONDITION
	 */
	bool for_values;
};

/*
 * event_count_analyse - set count_caveats and n_bypasses of a copy's sites
 *
 * Returns 0 or -ENOMEM.
 * Cost: of a copy with one site, and for its values, a load where no jump goes back past that. Else
 * the copy's instructions, and a byte for each of the container's; where other code leads into it
 * past its sites, some passes over the container's.
 */
int event_count_analyse(const struct event_count *p, struct event_count_scratch *scratch);

#endif
