/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether an instruction begins at a site, in the file that is mapped
 *
 * Debug information and sidecars say where sites are, and both are found by a build-id that a file
 * claims. A probe in the middle of an instruction ends the program. So before any probe is set, the
 * code is decoded from the nearest start before the site that the file itself knows: that of the
 * FDE, or of the symbol that holds it.
 */
#ifndef TRACE_BOUNDARY_H
#define TRACE_BOUNDARY_H

#include "elf/elf.h"
#include "insn/insn.h"

struct mover;

/* The last decoded code: the sites of one function are consecutive. */
struct code_walk {
	uint64_t lo;
	size_t n;
	struct insn_starts starts;
};
void code_walk_fini(struct code_walk *w);

enum boundary_verdict {
	BOUNDARY_YES,
	BOUNDARY_NO,
	BOUNDARY_UNKNOWN, /* the file knows no start before the site */
};

/*
 * boundary_at - decode up to a site
 *
 * @mover  knows the FDEs; NULL: symbols only
 * Returns BOUNDARY_NO also for an address that is in no code, BOUNDARY_UNKNOWN when out of memory.
 * Cost: one decode of the function, once for all sites in it.
 */
enum boundary_verdict boundary_at(struct code_walk *w, const struct cairn_binary *bin,
				  const struct mover *mover, struct cairn_vaddr at);

#endif
