/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters at a function's entry, by the calling convention
 *
 * Without optimisation the compiler describes each parameter by its stack slot, for the whole
 * function. At the entry that slot has not been written yet: reading it there gives whatever an
 * earlier call left. The convention holds there (System V ABI, AMD64 supplement, section 3.2.3):
 *
 *	class      examples                         where
 *	INTEGER    integers, pointers, bool, enums   rdi rsi rdx rcx r8 r9, then the stack
 *	SSE        float, double, vectors            xmm0-xmm7, then the stack
 *	MEMORY     structs over 16 bytes             the stack
 *	struct     of at most 16 bytes               each half by the classes of its members, both
 *	                                             halves in registers or the whole on the stack
 *
 * Stack arguments start at rsp + 8 (the return address is at rsp), each rounded up to 8 bytes, and
 * aligned to 16 if the type requires it. A result of class MEMORY takes rdi for its address.
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
 * A result has the same classes: INTEGER in rax and then rdx, SSE in xmm0 and then xmm1, X87 in st0.
 * After one of class MEMORY, rax has its address.
 *
 * C++ passes some classes by address: a pointer to the object is in a register or on the stack. A
 * result of such a class takes rdi for its address, as one of class MEMORY does. A class without
 * members takes neither register nor stack.
 *
 * An uncertain parameter makes itself and all later ones unknown, since their locations depend on
 * it:
 *  - a C++ class without a description of how it is passed;
 *  - vectors of 32 bytes, which depend on the machine that was compiled for;
 *  - a flexible array, on which GCC and Clang differ;
 *  - a large struct after an odd number of eightbytes that may be aligned to 16, because the type
 *    graph has no alignment;
 *  - arguments on the stack after an empty class, which GCC before version 8 put there.
 */
#include <errno.h>
#include <string.h>

#include "loc/loc.h"

enum arg_class { NO_CLASS, INTEGER, SSE, SSEUP, X87, X87UP, MEMORY, UNKNOWN };

enum {
	RSP = 7,
	RET_ADDR_BYTES = 8,
	POINTER_BYTES = 8,
	XMM0 = 17,
	N_INT = 6,
	N_SSE = 8,
	/*
	 * Members examined in one struct: 16 bytes hold at most 16. More nesting than this is no C
	 * program.
	 */
	DEPTH_MAX = 8,
	/*
	 * A vector of this size is passed in one register where the machine has such, and in memory
	 * elsewhere.
	 */
	WIDE_VECTOR_BYTES = 32,
};

static const uint8_t int_regs[N_INT] = {5, 4, 1, 2, 8, 9}; /* rdi rsi rdx rcx r8 r9 */

struct assign {
	const struct cairn_types *types;
	unsigned int ints, sses; /* registers used */
	uint64_t stack;          /* next stack argument, from the first one */
	bool after_empty;        /* an empty class came before, which may have taken a stack slot */
};

/* Rules (a) to (f) of the ABI's classification, in its order. */
static enum arg_class merge(enum arg_class a, enum arg_class b)
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

static bool is_class(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION;
}

static void both(enum arg_class halves[2], enum arg_class cls)
{
	halves[0] = merge(halves[0], cls);
	halves[1] = merge(halves[1], cls);
}

/*
 * A leaf of @size bytes at @off, aligned to @align: @low in its first eightbyte, @high in its
 * second.
 */
static void classify_leaf(uint64_t off, uint64_t size, uint64_t align, enum arg_class low,
			  enum arg_class high, enum arg_class halves[2])
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

/* Three types have 16 bytes, and only the name tells them apart. */
static void classify_wide_float(const struct cairn_type *t, uint64_t off, enum arg_class halves[2])
{
	const char *name = t->name ? t->name : "";
	if (!strcmp(name, "long double") || !strcmp(name, "_Float64x"))
		classify_leaf(off, 16, 16, X87, X87UP, halves);
	else if (!strcmp(name, "__float128") || !strcmp(name, "_Float128"))
		classify_leaf(off, 16, 16, SSE, SSEUP, halves);
	else
		both(halves, UNKNOWN);
}

static void classify_float(const struct cairn_type *t, uint64_t off, enum arg_class halves[2])
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
		     enum arg_class halves[2]);

static void classify_bits(uint64_t first, uint64_t n, enum arg_class halves[2])
{
	if (first + n > 128) {
		both(halves, UNKNOWN);
		return;
	}
	for (uint64_t half = first / 64; half <= (first + n - 1) / 64; half++)
		halves[half] = merge(halves[half], INTEGER);
}

static void classify_members(const struct cairn_types *types, const struct cairn_type *t,
			     uint64_t off, unsigned int depth, enum arg_class halves[2])
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

static void classify_array(const struct cairn_types *types, const struct cairn_type *t,
			   uint64_t off, unsigned int depth, enum arg_class halves[2])
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
		     enum arg_class halves[2])
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
	case CAIRN_T_MEMBER_PTR: /* to data one word, to a function two */
		classify_leaf(off, t->size, 8, INTEGER, INTEGER, halves);
		return;
	case CAIRN_T_FLOAT:
		classify_float(t, off, halves);
		return;
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
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
	if (!is_class(t))
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
static void classify_whole(const struct cairn_types *types, uint32_t id, enum arg_class halves[2])
{
	const struct cairn_type *t = resolved(types, id);
	halves[0] = halves[1] = NO_CLASS;
	if (cairn_types_size(types, id) <= 16)
		classify(types, id, 0, 0, halves);
	else if (is_complex_long_double(t))
		halves[0] = halves[1] = X87;
	else if (is_class(t) && !may_be_vector(types, id, 0))
		halves[0] = MEMORY;
	else
		halves[0] = UNKNOWN;
	if (halves[0] == UNKNOWN || halves[1] == UNKNOWN)
		halves[0] = UNKNOWN;
	else if (halves[0] == MEMORY || halves[1] == MEMORY ||
		 (halves[1] == X87UP && halves[0] != X87))
		halves[0] = MEMORY;
	else if (halves[1] == SSEUP && halves[0] != SSE)
		halves[1] = SSE;
}

/* The registers and stack slots of one argument's pieces. */
struct spot {
	unsigned int n; /* registers */
	uint8_t regs[2];
	uint32_t offs[2]; /* the byte of the argument that each begins with */
	bool in_parts;    /* they are less than the whole argument */
};

static int in_registers(struct arena *arena, const struct spot *s, struct cairn_location *ret)
{
	struct cairn_piece *pieces = arena_array(arena, s->n, sizeof(*pieces));
	struct cairn_loc_step *steps = arena_array(arena, s->n, sizeof(*steps));
	if (!pieces || !steps)
		return -ENOMEM;
	*ret = (struct cairn_location){.n_pieces = s->n, .pieces = pieces};
	for (unsigned int i = 0; i < s->n; i++) {
		steps[i] = (struct cairn_loc_step){.op = CAIRN_LOC_REG, .reg = s->regs[i]};
		pieces[i] = (struct cairn_piece){.kind = CAIRN_PIECE_VALUE,
						 .off = s->offs[i],
						 .size = s->in_parts ? 8 : 0,
						 .n_steps = 1,
						 .steps = &steps[i]};
		if (s->regs[i] >= XMM0)
			ret->why = CAIRN_UNAVAIL_VECTOR_REGISTER;
	}
	return 1;
}

/* In memory, @n of these steps lead there. */
static int in_memory(struct arena *arena, uint32_t n, const struct cairn_loc_step *steps,
		     struct cairn_location *ret)
{
	struct cairn_piece *piece = arena_alloc(arena, sizeof(*piece));
	struct cairn_loc_step *copy = arena_array(arena, n, sizeof(*copy));
	if (!piece || !copy)
		return -ENOMEM;
	memcpy(copy, steps, n * sizeof(*copy));
	*piece = (struct cairn_piece){.kind = CAIRN_PIECE_MEMORY, .n_steps = n, .steps = copy};
	*ret = (struct cairn_location){.n_pieces = 1, .pieces = piece};
	return 1;
}

/* Takes @size bytes of the stack; the distance from rsp at the entry. */
static int64_t take_stack(struct assign *a, uint64_t size)
{
	int64_t off = (int64_t)(RET_ADDR_BYTES + a->stack);
	a->stack += (size + 7) / 8 * 8;
	return off;
}

/* Returns 1; 0 if its alignment, which decides its location, is not known. */
static int on_stack(struct assign *a, const struct cairn_type *t, uint64_t size,
		    struct arena *arena, struct cairn_location *ret)
{
	if (a->after_empty)
		return 0;
	/*
	 * An alignment of 16 makes the size a multiple of 16; an array of pairs has such a size
	 * without it. And Clang before 18 does not align an __int128.
	 */
	if (size % 16 == 0 && a->stack % 16) {
		if (t->kind != CAIRN_T_FLOAT)
			return 0;
		if (t->encoding != CAIRN_ENC_COMPLEX || is_complex_long_double(t))
			a->stack += 8;
	}
	const struct cairn_loc_step steps[] = {
		{.op = CAIRN_LOC_REG, .reg = RSP},
		{.op = CAIRN_LOC_ADD, .imm = take_stack(a, size)},
	};
	return in_memory(arena, 2, steps, ret);
}

static int by_address(struct assign *a, struct arena *arena, struct cairn_location *ret)
{
	struct cairn_loc_step steps[] = {
		{.op = CAIRN_LOC_REG, .reg = RSP},
		{.op = CAIRN_LOC_ADD},
		{.op = CAIRN_LOC_LOAD, .size = POINTER_BYTES},
	};
	if (a->ints < N_INT) {
		steps[0].reg = int_regs[a->ints++];
		return in_memory(arena, 1, steps, ret);
	}
	if (a->after_empty)
		return 0;
	steps[1].imm = take_stack(a, POINTER_BYTES);
	return in_memory(arena, 3, steps, ret);
}

static bool is_nullptr(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_UNSPECIFIED && t->name && strstr(t->name, "nullptr");
}

/* A std::nullptr_t is passed as a pointer, and has no value to show. */
static int take_pointer(struct assign *a)
{
	if (a->ints == N_INT)
		return !a->after_empty && take_stack(a, POINTER_BYTES);
	a->ints++;
	return 1;
}

/* A class without members: all its bytes are padding. */
static int nowhere(struct assign *a, uint64_t size, struct arena *arena, struct cairn_location *ret)
{
	struct cairn_piece *piece = arena_alloc(arena, sizeof(*piece));
	uint8_t *bytes = arena_array(arena, size, 1);
	if (!piece || !bytes)
		return -ENOMEM;
	memset(bytes, 0, size);
	a->after_empty = true;
	*piece = (struct cairn_piece){
		.kind = CAIRN_PIECE_BYTES, .size = (uint32_t)size, .bytes = bytes};
	*ret = (struct cairn_location){.n_pieces = 1, .pieces = piece};
	return 1;
}

/*
 * Registers for the halves that have a class; false when one has none that is passed in a register.
 */
static bool choose_registers(const struct assign *a, const enum arg_class halves[2], uint64_t size,
			     struct spot *ret, unsigned int *ints, unsigned int *sses)
{
	unsigned int n = size > 8 && halves[1] != SSEUP ? 2 : 1;
	*ret = (struct spot){.in_parts = n > 1};
	*ints = a->ints;
	*sses = a->sses;
	for (unsigned int i = 0; i < n; i++) {
		if (halves[i] == NO_CLASS)
			continue;
		if (halves[i] != INTEGER && halves[i] != SSE)
			return false;
		ret->offs[ret->n] = i * 8;
		/* Beyond the last one it is not used. */
		ret->regs[ret->n++] =
			halves[i] == SSE ? (uint8_t)(XMM0 + *sses) : int_regs[*ints % N_INT];
		*(halves[i] == SSE ? sses : ints) += 1;
	}
	return true;
}

/* Assign a location to one parameter. Returns 1 placed, 0 class unknown, -ENOMEM. */
static int place(struct assign *a, const struct abi_param *param, struct arena *arena,
		 struct cairn_location *ret)
{
	const struct cairn_type *t = resolved(a->types, param->type);
	uint64_t size = cairn_types_size(a->types, param->type);
	enum arg_class halves[2];
	struct spot spot;
	unsigned int ints, sses;
	if (param->how == ABI_NOT_PASSED)
		return 1;
	if (param->how == ABI_BY_ADDRESS)
		return by_address(a, arena, ret);
	if (is_nullptr(t))
		return take_pointer(a);
	if (!size || param->how == ABI_UNKNOWN)
		return 0;
	classify_whole(a->types, param->type, halves);
	if (halves[0] == MEMORY || halves[0] == X87)
		return on_stack(a, t, size, arena, ret);
	if (!choose_registers(a, halves, size, &spot, &ints, &sses))
		return 0;
	if (!spot.n)
		return nowhere(a, size, arena, ret);
	if (ints > N_INT || sses > N_SSE) {
		/* Clang before 18 splits it between the last register and the stack. */
		if (t->kind == CAIRN_T_INT && size == 16 && a->ints < N_INT)
			return 0;
		return on_stack(a, t, size, arena, ret);
	}
	a->ints = ints;
	a->sses = sses;
	return in_registers(arena, &spot, ret);
}

/* Returns 1; 0 when it is not known whether the result takes a register. */
static int place_result(struct assign *a, const struct abi_param *result)
{
	const struct cairn_type *t = resolved(a->types, result->type);
	enum arg_class halves[2];
	if (t->kind == CAIRN_T_VOID)
		return 1;
	if (result->how == ABI_UNKNOWN)
		return 0;
	classify_whole(a->types, result->type, halves);
	a->ints = result->how == ABI_BY_ADDRESS || halves[0] == MEMORY;
	return result->how == ABI_BY_ADDRESS || halves[0] != UNKNOWN;
}

int abi_locations(const struct cairn_types *types, const struct abi_param *result,
		  const struct abi_param *params, uint32_t n, struct arena *arena,
		  struct cairn_location *ret)
{
	struct assign a = {.types = types};
	int known = place_result(&a, result);
	for (uint32_t i = 0; i < n; i++) {
		ret[i] = (struct cairn_location){.why = CAIRN_UNAVAIL_NOT_STORED_YET};
		if (known == 1)
			known = place(&a, &params[i], arena, &ret[i]);
		if (known < 0)
			return known;
	}
	return 0;
}

/* The registers of a result by class: rax rdx, xmm0 xmm1. */
static void result_registers(const enum arg_class halves[2], uint64_t size, struct spot *ret)
{
	static const uint8_t result_ints[2] = {0, 1};
	unsigned int n = size > 8 && halves[1] != SSEUP ? 2 : 1, ints = 0, sses = 0;

	*ret = (struct spot){.in_parts = n > 1};
	for (unsigned int i = 0; i < n; i++) {
		if (halves[i] == NO_CLASS)
			continue;
		ret->offs[ret->n] = i * 8;
		ret->regs[ret->n++] =
			halves[i] == INTEGER ? result_ints[ints++] : (uint8_t)(XMM0 + sses++);
	}
}

int abi_result(const struct cairn_types *types, const struct abi_param *result, struct arena *arena,
	       struct cairn_location *ret)
{
	const struct cairn_loc_step at_rax = {.op = CAIRN_LOC_REG, .reg = 0};
	uint64_t size = cairn_types_size(types, result->type);
	enum arg_class halves[2];
	struct spot spot;
	int r;

	*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_UNSUPPORTED};
	if (!size || result->how == ABI_UNKNOWN)
		return 0;
	classify_whole(types, result->type, halves);
	if (result->how == ABI_BY_ADDRESS || halves[0] == MEMORY) {
		r = in_memory(arena, 1, &at_rax, ret);
		return r < 0 ? r : 0;
	}
	ret->why = CAIRN_UNAVAIL_VECTOR_REGISTER;
	if (halves[0] == X87 || halves[0] == X87UP)
		return 0;
	ret->why = CAIRN_UNAVAIL_UNSUPPORTED;
	if (halves[0] == UNKNOWN)
		return 0;
	result_registers(halves, size, &spot);
	if (!spot.n)
		return 0;
	r = in_registers(arena, &spot, ret);
	return r < 0 ? r : 0;
}
