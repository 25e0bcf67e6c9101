/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of a thread's vector registers that holds values: the lower 8 bytes, a double or two
 * floats
 *
 * The kernel has them in ptrace's NT_PRFPREG and in the note of that name, as fxsave writes them:
 * 160 bytes before xmm0, 16 of each.
 */
#ifndef CODE_VECTORS_H
#define CODE_VECTORS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	VECTORS_N = 16,
	VECTORS_FXSAVE = 512, /* bytes */
	VECTORS_FIRST = 17,   /* of DWARF's numbers */
};

struct vectors {
	bool is_known;
	uint64_t low[VECTORS_N];
};

static inline void vectors_take(struct vectors *v, const uint8_t fxsave[VECTORS_FXSAVE])
{
	for (unsigned int i = 0; i < VECTORS_N; i++)
		memcpy(&v->low[i], fxsave + 160 + 16 * i, sizeof(v->low[i]));
	v->is_known = true;
}

#endif
