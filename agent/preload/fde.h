/* SPDX-License-Identifier: BSD-2-Clause */
/* Which addresses the FDEs of an .eh_frame section in this process describe. */
#ifndef AGENT_FDE_H
#define AGENT_FDE_H

#include <stdbool.h>
#include <stdint.h>

enum fde_run {
	FDE_RUN_SECTION, /* entries up to one of length 0: libgcc's convention */
	FDE_RUN_SINGLE,  /* one FDE: that of LLVM's libunwind, and of macOS */
};

struct fde_walk {
	const uint8_t *begin, *at;
	/*
	 * nothing is read outside of [begin, end); NULL: the maker of the entries is trusted to
	 * have ended them
	 */
	const uint8_t *end;
	enum fde_run run;
	uint32_t n;
};

/* The data of one FDE. */
struct fde {
	uint64_t lo, hi; /* [lo, hi) */
	uint64_t cie;    /* address of its CIE */
};

/* Is the entry at @begin an FDE, and not a CIE, which a section begins with? */
bool fde_is_one(const void *begin);

void fde_walk_begin(struct fde_walk *walk, const void *begin, enum fde_run run);

/* A section of @n_bytes, whose contents need not be valid: only bytes inside are read. */
void fde_walk_begin_within(struct fde_walk *walk, const void *begin, uint64_t n_bytes);

/*
 * The next one that describes something; false at the end, and at entries that cannot be
 * understood.
 */
bool fde_walk_next(struct fde_walk *walk, struct fde *ret);

/*
 * After the last entry and the section's end mark, once fde_walk_next() has reported the end.
 */
static inline uint64_t fde_walk_end(const struct fde_walk *walk)
{
	return (uintptr_t)walk->at;
}

#endif
