/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters at a function's entry, by the calling convention
 *
 * Without optimisation the compiler describes each parameter by its stack slot, for the whole function. At
 * the entry that slot has not been written yet: reading it there gives whatever an earlier call left. What
 * does hold there is the convention (System V ABI, AMD64 supplement, section 3.2.3):
 *
 *	class      examples                         where
 *	INTEGER    integers, pointers, bool, enums   rdi rsi rdx rcx r8 r9, then the stack
 *	SSE        float, double, vectors            xmm0-xmm7, then the stack
 *	MEMORY     structs over 16 bytes             the stack
 *	struct     of at most 16 bytes               each half by the classes of its members, both
 *	                                             halves in registers or the whole on the stack
 *
 * Stack arguments start at rsp + 8 (the return address is at rsp), each rounded up to 8 bytes and aligned
 * to 16 where the type asks for it. A result of class MEMORY takes rdi for its address.
 *
 * What is not certain here (long double inside a struct, members at odd offsets, C++ classes, which may be
 * passed by hidden reference) makes this and all later parameters unknown, since everything behind
 * depends on it.
 */
#include <errno.h>

#include "loc/loc.h"

enum class { NO_CLASS, INTEGER, SSE, MEMORY, UNKNOWN };

enum {
	RSP = 7,
	XMM0 = 17,
	N_INT = 6,
	N_SSE = 8,
	/* Members looked at in one struct: 16 bytes hold at most 16. More nesting than this is no C program. */
	DEPTH_MAX = 8,
};

static const uint8_t int_regs[N_INT] = {5, 4, 1, 2, 8, 9}; /* rdi rsi rdx rcx r8 r9 */

struct assign {
	const struct cairn_types *types;
	unsigned int ints, sses; /* registers used */
	uint64_t stack;          /* next stack argument, from rsp at entry */
};

static enum class merge(enum class a, enum class b)
{
	if (a == b || b == NO_CLASS)
		return a;
	if (a == NO_CLASS)
		return b;
	if (a == UNKNOWN || b == UNKNOWN)
		return UNKNOWN;
	if (a == MEMORY || b == MEMORY)
		return MEMORY;
	return INTEGER;
}

/* Classes of the two halves of a type that starts @off bytes into the argument. */
static void classify(const struct cairn_types *types, uint32_t id, uint64_t off, unsigned int depth,
		     enum class halves[2])
{
	const struct cairn_type *t = cairn_types_get(types, cairn_types_resolve(types, id));
	enum class cls = UNKNOWN;
	if (off >= 16 || depth == DEPTH_MAX) {
		halves[0] = halves[1] = UNKNOWN;
		return;
	}
	switch (t->kind) {
	case CAIRN_T_INT:
	case CAIRN_T_ENUM:
	case CAIRN_T_PTR:
	case CAIRN_T_REF:
	case CAIRN_T_RREF:
		if (t->size <= 8 && t->size && off % t->size == 0 && t->encoding != CAIRN_ENC_OPAQUE)
			cls = INTEGER;
		break;
	case CAIRN_T_FLOAT:
		if ((t->size == 4 || t->size == 8) && off % t->size == 0 && t->encoding != CAIRN_ENC_COMPLEX)
			cls = SSE;
		break;
	case CAIRN_T_STRUCT:
	case CAIRN_T_UNION:
		if (t->unread || t->declaration) {
			halves[0] = halves[1] = UNKNOWN;
			return;
		}
		for (uint32_t i = 0; i < t->n_members; i++) {
			const struct cairn_member *m = &t->members[i];
			if (m->dynamic || (m->bit_size == 0 && m->bit_off % 8)) {
				halves[0] = halves[1] = UNKNOWN;
				return;
			}
			if (m->bit_size) {
				uint64_t half = (off + m->bit_off / 8) / 8;
				if (half < 2)
					halves[half] = merge(halves[half], INTEGER);
				continue;
			}
			classify(types, m->type, off + m->bit_off / 8, depth + 1, halves);
		}
		return;
	case CAIRN_T_ARRAY: {
		uint64_t elem = cairn_types_size(types, t->ref);
		for (uint64_t i = 0; elem && i < t->count && i < 16; i++)
			classify(types, t->ref, off + i * elem, depth + 1, halves);
		return;
	}
	default:
		break;
	}
	halves[off / 8] = merge(halves[off / 8], cls);
}

static int make(struct arena *arena, unsigned int n, const uint8_t *regs, int64_t memory_off, bool memory,
		struct cairn_location *ret)
{
	struct cairn_piece *pieces = arena_array(arena, n, sizeof(*pieces));
	struct cairn_loc_step *steps = arena_array(arena, n + 1, sizeof(*steps));
	if (!pieces || !steps)
		return -ENOMEM;
	*ret = (struct cairn_location){.n_pieces = n, .pieces = pieces};
	for (unsigned int i = 0; i < n; i++) {
		steps[i] = (struct cairn_loc_step){.op = CAIRN_LOC_REG, .reg = memory ? RSP : regs[i]};
		pieces[i] = (struct cairn_piece){.kind = memory ? CAIRN_PIECE_MEMORY : CAIRN_PIECE_VALUE,
						 .off = i * 8,
						 .size = n > 1 ? 8 : 0,
						 .n_steps = 1,
						 .steps = &steps[i]};
		if (!memory && regs[i] >= XMM0)
			ret->why = CAIRN_UNAVAIL_VECTOR_REGISTER;
	}
	if (memory) {
		steps[1] = (struct cairn_loc_step){.op = CAIRN_LOC_ADD, .imm = memory_off};
		pieces[0].n_steps = 2;
	}
	return 0;
}

static int on_stack(struct assign *a, uint64_t size, struct arena *arena, struct cairn_location *ret)
{
	int64_t off = (int64_t)a->stack;
	a->stack += (size + 7) / 8 * 8;
	return make(arena, 1, NULL, off, true, ret);
}

/* Place one parameter. Returns 1 placed, 0 class unknown, -ENOMEM. */
static int place(struct assign *a, uint32_t type, struct arena *arena, struct cairn_location *ret)
{
	const struct cairn_type *t = cairn_types_get(a->types, cairn_types_resolve(a->types, type));
	uint64_t size = cairn_types_size(a->types, type);
	if (!size || t->kind == CAIRN_T_CLASS || (t->kind == CAIRN_T_INT && size > 8))
		return 0;
	/* Alignment over 8 is not recorded in the graph, so a large type's place is known only when it is
	 * made of ordinary members; a struct with a vector in it classifies as unknown below. */
	enum class halves[2] = {NO_CLASS, NO_CLASS};
	if (size <= 16)
		classify(a->types, type, 0, 0, halves);
	else if (t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_UNION)
		return 0;
	unsigned int n = size > 8 ? 2 : 1, ints = 0, sses = 0;
	uint8_t regs[2];
	for (unsigned int i = 0; i < n; i++) {
		if (halves[i] != INTEGER && halves[i] != SSE)
			return 0;
		ints += halves[i] == INTEGER;
		sses += halves[i] == SSE;
	}
	if (a->ints + ints > N_INT || a->sses + sses > N_SSE)
		return on_stack(a, size, arena, ret) < 0 ? -ENOMEM : 1;
	for (unsigned int i = 0; i < n; i++)
		regs[i] = halves[i] == INTEGER ? int_regs[a->ints++] : (uint8_t)(XMM0 + a->sses++);
	return make(arena, n, regs, 0, false, ret) < 0 ? -ENOMEM : 1;
}

int abi_locations(const struct cairn_types *types, uint32_t return_type, const uint32_t *params,
		  uint32_t n, struct arena *arena, struct cairn_location *ret)
{
	struct assign a = {.types = types, .stack = 8};
	const struct cairn_type *result = cairn_types_get(types, cairn_types_resolve(types, return_type));
	int known = 1;
	if (result->kind == CAIRN_T_CLASS || result->size > 16) {
		/* A C struct over 16 bytes comes back in memory; of a class that is not known from its size. */
		if (result->kind == CAIRN_T_STRUCT || result->kind == CAIRN_T_UNION)
			a.ints = 1;
		else
			known = 0;
	} else if (result->kind == CAIRN_T_STRUCT || result->kind == CAIRN_T_UNION) {
		enum class halves[2] = {NO_CLASS, NO_CLASS};
		classify(types, return_type, 0, 0, halves);
		for (unsigned int i = 0; i < 2; i++)
			known = known && halves[i] != UNKNOWN && halves[i] != MEMORY;
	}
	for (uint32_t i = 0; i < n; i++) {
		ret[i] = (struct cairn_location){.why = CAIRN_UNAVAIL_NOT_STORED};
		if (known == 1)
			known = place(&a, params[i], arena, &ret[i]);
		if (known < 0)
			return known;
	}
	return 0;
}
