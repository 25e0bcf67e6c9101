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
 * A struct is cut into eightbytes, and each has the class that its members agree on:
 *
 *	members                   eightbytes        where
 *	long a; double b          INTEGER, SSE      rdi, xmm0
 *	float a, b; int c         SSE, INTEGER      xmm0, rdi
 *	__int128                  INTEGER, INTEGER  rdi, rsi
 *	_Complex double           SSE, SSE          xmm0, xmm1
 *	__float128                SSE, SSEUP        xmm0
 *	long double               X87, X87UP        the stack
 *	packed: char a; int b     MEMORY            the stack
 *
 * What is not certain makes this and all later parameters unknown, since everything behind depends on it: C++ classes,
 * which may be passed by hidden reference; vectors of 32 bytes, which depend on the machine that was compiled for; a
 * flexible array, on which GCC and Clang differ; a large struct behind an odd number of eightbytes that may be aligned to 16,
 * because the type graph has no alignment.
 */
#include <errno.h>
#include <string.h>

#include "loc/loc.h"

enum class { NO_CLASS, INTEGER, SSE, SSEUP, X87, X87UP, MEMORY, UNKNOWN };

enum {
	RSP = 7,
	RET_ADDR_BYTES = 8,
	XMM0 = 17,
	N_INT = 6,
	N_SSE = 8,
	/* Members looked at in one struct: 16 bytes hold at most 16. More nesting than this is no C program. */
	DEPTH_MAX = 8,
	/* A vector of this size is passed in one register where the machine has such, and in memory elsewhere. */
	WIDE_VECTOR_BYTES = 32,
};

static const uint8_t int_regs[N_INT] = {5, 4, 1, 2, 8, 9}; /* rdi rsi rdx rcx r8 r9 */

struct assign {
	const struct cairn_types *types;
	unsigned int ints, sses; /* registers used */
	uint64_t stack;          /* next stack argument, from the first one */
};

/* Rules (a) to (f) of the ABI's classification, in its order. */
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
	if (a == INTEGER || b == INTEGER)
		return INTEGER;
	if (a == X87 || a == X87UP || b == X87 || b == X87UP)
		return MEMORY;
	return SSE;
}

static const struct cairn_type *resolved(const struct cairn_types *types, uint32_t id)
{
	return cairn_types_get(types, cairn_types_resolve(types, id));
}

static void both(enum class halves[2], enum class cls)
{
	halves[0] = merge(halves[0], cls);
	halves[1] = merge(halves[1], cls);
}

/* A leaf of @size bytes at @off, aligned to @align: @low in its first eightbyte, @high in its second. */
static void classify_leaf(uint64_t off, uint64_t size, uint64_t align, enum class low, enum class high,
			  enum class halves[2])
{
	if (!size || !align || off + size > 16) {
		both(halves, UNKNOWN);
		return;
	}
	if (off % align) {
		both(halves, MEMORY);
		return;
	}
	halves[off / 8] = merge(halves[off / 8], low);
	if (size > 8)
		halves[1] = merge(halves[1], high);
}

/* Three types have 16 bytes and are told by name only. */
static void classify_wide_float(const struct cairn_type *t, uint64_t off, enum class halves[2])
{
	const char *name = t->name ? t->name : "";
	if (!strcmp(name, "long double") || !strcmp(name, "_Float64x"))
		classify_leaf(off, 16, 16, X87, X87UP, halves);
	else if (!strcmp(name, "__float128") || !strcmp(name, "_Float128"))
		classify_leaf(off, 16, 16, SSE, SSEUP, halves);
	else
		both(halves, UNKNOWN);
}

static void classify_float(const struct cairn_type *t, uint64_t off, enum class halves[2])
{
	uint64_t part = t->encoding == CAIRN_ENC_COMPLEX ? t->size / 2 : t->size;
	if (part == 16 && part == t->size)
		classify_wide_float(t, off, halves);
	else if (part > 8)
		both(halves, UNKNOWN);
	else
		for (uint64_t i = 0; i < t->size; i += part)
			classify_leaf(off + i, part, part, SSE, NO_CLASS, halves);
}

static void classify(const struct cairn_types *types, uint32_t id, uint64_t off, unsigned int depth,
		     enum class halves[2]);

static void classify_bits(uint64_t first, uint64_t n, enum class halves[2])
{
	if (first + n > 128) {
		both(halves, UNKNOWN);
		return;
	}
	for (uint64_t half = first / 64; half <= (first + n - 1) / 64; half++)
		halves[half] = merge(halves[half], INTEGER);
}

static void classify_members(const struct cairn_types *types, const struct cairn_type *t, uint64_t off,
			     unsigned int depth, enum class halves[2])
{
	if (t->unread || t->declaration) {
		both(halves, UNKNOWN);
		return;
	}
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *m = &t->members[i];
		if (m->dynamic || (!m->bit_size && m->bit_off % 8))
			both(halves, UNKNOWN);
		else if (m->bit_size)
			classify_bits(off * 8 + m->bit_off, m->bit_size, halves);
		else
			classify(types, m->type, off + m->bit_off / 8, depth + 1, halves);
	}
}

static void classify_array(const struct cairn_types *types, const struct cairn_type *t, uint64_t off,
			   unsigned int depth, enum class halves[2])
{
	uint64_t elem = cairn_types_size(types, t->ref);
	if (t->vector && t->size == 8 && t->count > 1)
		classify_leaf(off, 8, 8, SSE, NO_CLASS, halves);
	else if (t->vector && t->size == 16)
		classify_leaf(off, 16, 16, SSE, SSEUP, halves);
	else if (t->vector || !t->has_count || !elem)
		both(halves, UNKNOWN);
	else
		for (uint64_t i = 0; i < t->count && i < 16; i++)
			classify(types, t->ref, off + i * elem, depth + 1, halves);
}

/* Classes of the two halves of a type that starts @off bytes into the argument. */
static void classify(const struct cairn_types *types, uint32_t id, uint64_t off, unsigned int depth,
		     enum class halves[2])
{
	const struct cairn_type *t = resolved(types, id);
	if (off >= 16 || depth == DEPTH_MAX) {
		both(halves, UNKNOWN);
		return;
	}
	switch (t->kind) {
	case CAIRN_T_INT:
		if (t->encoding == CAIRN_ENC_OPAQUE)
			both(halves, UNKNOWN);
		else
			classify_leaf(off, t->size, t->size, INTEGER, INTEGER, halves);
		return;
	case CAIRN_T_ENUM:
	case CAIRN_T_PTR:
	case CAIRN_T_REF:
	case CAIRN_T_RREF:
		classify_leaf(off, t->size, t->size, INTEGER, INTEGER, halves);
		return;
	case CAIRN_T_MEMBER_PTR: /* of data one word, of a function two */
		classify_leaf(off, t->size, 8, INTEGER, INTEGER, halves);
		return;
	case CAIRN_T_FLOAT:
		classify_float(t, off, halves);
		return;
	case CAIRN_T_STRUCT:
	case CAIRN_T_UNION:
		classify_members(types, t, off, depth, halves);
		return;
	case CAIRN_T_ARRAY:
		classify_array(types, t, off, depth, halves);
		return;
	default:
		both(halves, UNKNOWN);
	}
}

/* Whether a type of more than 16 bytes may be nothing but one wide vector. */
static bool may_be_vector(const struct cairn_types *types, uint32_t id, unsigned int depth)
{
	const struct cairn_type *t = resolved(types, id);
	uint64_t size = cairn_types_size(types, id);
	if (size < WIDE_VECTOR_BYTES)
		return false;
	if (t->kind == CAIRN_T_ARRAY)
		return t->vector || depth == DEPTH_MAX || may_be_vector(types, t->ref, depth + 1);
	if (t->kind != CAIRN_T_STRUCT && t->kind != CAIRN_T_UNION)
		return false;
	if (t->unread || depth == DEPTH_MAX)
		return true;
	for (uint32_t i = 0; i < t->n_members; i++)
		if (may_be_vector(types, t->members[i].type, depth + 1))
			return true;
	return false;
}

static bool is_complex_long_double(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_FLOAT && t->encoding == CAIRN_ENC_COMPLEX && t->size == 32;
}

/* The classes of a whole type; MEMORY in the first half stands for all of it. */
static void classify_whole(const struct cairn_types *types, uint32_t id, enum class halves[2])
{
	const struct cairn_type *t = resolved(types, id);
	bool is_struct = t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_UNION;
	halves[0] = halves[1] = NO_CLASS;
	if (cairn_types_size(types, id) <= 16)
		classify(types, id, 0, 0, halves);
	else if (is_complex_long_double(t))
		halves[0] = halves[1] = X87;
	else if (is_struct && !may_be_vector(types, id, 0))
		halves[0] = MEMORY;
	else
		halves[0] = UNKNOWN;
	if (halves[0] == UNKNOWN || halves[1] == UNKNOWN)
		halves[0] = UNKNOWN;
	else if (halves[0] == MEMORY || halves[1] == MEMORY || (halves[1] == X87UP && halves[0] != X87))
		halves[0] = MEMORY;
	else if (halves[1] == SSEUP && halves[0] != SSE)
		halves[1] = SSE;
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

/* Returns 1; 0 when its alignment, which decides about its place, is not known. */
static int on_stack(struct assign *a, const struct cairn_type *t, uint64_t size, struct arena *arena,
		    struct cairn_location *ret)
{
	/*
	 * An alignment of 16 makes the size a multiple of 16; an array of pairs has such a size without it. And
	 * Clang before 18 does not align an __int128.
	 */
	if (size % 16 == 0 && a->stack % 16) {
		if (t->kind != CAIRN_T_FLOAT)
			return 0;
		if (t->encoding != CAIRN_ENC_COMPLEX || is_complex_long_double(t))
			a->stack += 8;
	}
	int64_t off = (int64_t)(RET_ADDR_BYTES + a->stack);
	a->stack += (size + 7) / 8 * 8;
	return make(arena, 1, NULL, off, true, ret) < 0 ? -ENOMEM : 1;
}

/* Place one parameter. Returns 1 placed, 0 class unknown, -ENOMEM. */
static int place(struct assign *a, uint32_t type, struct arena *arena, struct cairn_location *ret)
{
	const struct cairn_type *t = resolved(a->types, type);
	uint64_t size = cairn_types_size(a->types, type);
	enum class halves[2];
	if (!size || t->kind == CAIRN_T_CLASS)
		return 0;
	classify_whole(a->types, type, halves);
	if (halves[0] == MEMORY || halves[0] == X87)
		return on_stack(a, t, size, arena, ret);
	unsigned int n = size > 8 && halves[1] != SSEUP ? 2 : 1, ints = 0, sses = 0;
	uint8_t regs[2];
	for (unsigned int i = 0; i < n; i++) {
		if (halves[i] != INTEGER && halves[i] != SSE)
			return 0;
		ints += halves[i] == INTEGER;
		sses += halves[i] == SSE;
	}
	if (a->ints + ints > N_INT || a->sses + sses > N_SSE) {
		/* Clang before 18 splits it between the last register and the stack. */
		if (t->kind == CAIRN_T_INT && size == 16 && a->ints < N_INT)
			return 0;
		return on_stack(a, t, size, arena, ret);
	}
	for (unsigned int i = 0; i < n; i++)
		regs[i] = halves[i] == INTEGER ? int_regs[a->ints++] : (uint8_t)(XMM0 + a->sses++);
	return make(arena, n, regs, 0, false, ret) < 0 ? -ENOMEM : 1;
}

/* Returns 1; 0 when it cannot be told whether the result takes a register. */
static int place_result(struct assign *a, uint32_t type)
{
	const struct cairn_type *t = resolved(a->types, type);
	enum class halves[2];
	if (t->kind == CAIRN_T_VOID)
		return 1;
	/* Of a class that is not known from its size. */
	if (t->kind == CAIRN_T_CLASS)
		return 0;
	classify_whole(a->types, type, halves);
	a->ints = halves[0] == MEMORY;
	return halves[0] != UNKNOWN;
}

int abi_locations(const struct cairn_types *types, uint32_t return_type, const uint32_t *params,
		  uint32_t n, struct arena *arena, struct cairn_location *ret)
{
	struct assign a = {.types = types};
	int known = place_result(&a, return_type);
	for (uint32_t i = 0; i < n; i++) {
		ret[i] = (struct cairn_location){.why = CAIRN_UNAVAIL_NOT_STORED};
		if (known == 1)
			known = place(&a, params[i], arena, &ret[i]);
		if (known < 0)
			return known;
	}
	return 0;
}
