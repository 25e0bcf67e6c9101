/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds hazards and instruction boundaries at many sites of one function
 *
 * Only decoding from a known start shows whether an address is the start of an instruction. The
 * known start is that of the code range that DWARF gives to the function. The walk over a range is
 * kept, since sites come in clusters: a function with a hundred inlined copies is decoded once.
 */
#ifndef SITES_BOUNDARY_H
#define SITES_BOUNDARY_H

#include <cairn/hazards.h>

#include "dwarf/dwarf.h"
#include "insn/insn.h"

struct boundary {
	const uint8_t *code; /* of [lo, lo + n); NULL when nothing is kept */
	uint64_t lo;
	size_t n;
	struct insn_starts starts;
	/*
	 * code of a section from near_lo on, near_n bytes of it: around the last sites that were
	 * checked
	 */
	const uint8_t *near;
	uint64_t near_lo;
	size_t near_n;
};

void boundary_fini(struct boundary *b);

/*
 * boundary_hazard - the hazard of a probe at @at
 *
 * @function  the containing out-of-line function
 * @kernel    code that user probes do not reach: only the boundary counts
 * Returns CAIRN_HAZARD_NOT_A_BOUNDARY also when no range of @function holds @at.
 */
enum cairn_hazard boundary_hazard(struct boundary *b, const struct elf *code,
				  const struct dw_die *function, struct cairn_vaddr at,
				  bool kernel);

/*
 * boundary_padding - where the run of nops that ends just before @at begins; @at itself when there
 * is none
 *
 * Call it after boundary_hazard() for the same site, which decoded the code around it.
 */
struct cairn_vaddr boundary_padding(const struct boundary *b, struct cairn_vaddr at);

/*
 * boundary_least_padding - a lower bound of boundary_padding() for @at, found from the bytes before
 * @at alone, wherever instructions begin: @at itself for nearly all
 */
struct cairn_vaddr boundary_least_padding(struct boundary *b, const struct elf *code,
					  struct cairn_vaddr at);

/* Have the byte before @at fetched meanwhile, as that will ask for it. */
static inline void boundary_prefetch(const struct boundary *b, struct cairn_vaddr at)
{
	if (at.v - 1 - b->near_lo < b->near_n)
		__builtin_prefetch(b->near + (at.v - 1 - b->near_lo));
}

#endif
