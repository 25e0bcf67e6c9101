/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of functions that each Go program has, also a stripped one; the essay is in
 * gopclntab.c.
 */
#ifndef ELF_GOPCLNTAB_H
#define ELF_GOPCLNTAB_H

#include "elf/elf.h"

struct gopclntab {
	struct cursor_src src;
	const uint8_t *bytes;
	size_t size;
	uint64_t text, names, pcs, functions;
	uint32_t n;
	uint8_t quantum, flag_at;
};

struct go_function {
	uint64_t lo, hi;
	const char *name;    /* in place */
	uint32_t pcsp;       /* for gopclntab_frames(); 0: nothing is known of its frame */
	bool is_outermost;   /* no function called it: a goroutine or a thread begins there */
	bool switches_stack; /* it writes the stack pointer in a way that is not recorded */
};

/* False when the file has none, or one of a version that is not known. */
bool gopclntab_open(const struct elf *e, struct gopclntab *ret);

/* By number, below n; false where it is damaged. */
bool gopclntab_function(const struct gopclntab *t, uint32_t i, struct go_function *ret);

/*
 * gopclntab_frames - how far the stack pointer is below the return address, along a function
 *
 * @visit  [lo, hi) of it, in order; ends the walk by a number that is not 0, which is returned
 * Returns 0 at the end or where it is damaged.
 */
int gopclntab_frames(const struct gopclntab *t, const struct go_function *f,
		     int (*visit)(void *ctx, uint64_t lo, uint64_t hi, int64_t below), void *ctx);

#endif
