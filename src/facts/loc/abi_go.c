/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters at the entry of a Go function, by Go's own conventions
 *
 * The compiler's ABIInternal (cmd/compile/abi-internal.md) takes values apart into words and
 * floats:
 *
 *	int, bool, pointer, map, chan, func	one of rax rbx rcx rdi rsi r8 r9 r10 r11
 *	float32, float64			one of xmm0 to xmm14
 *	complex64, complex128			two of those
 *	string, slice, interface, struct	its members, one after the other
 *	array of one element			the element
 *	longer arrays				the stack
 *
 * If the parts of a value do not all fit into the remaining registers, the whole value is on the
 * stack and takes no register. A value without bytes has no location. ABI0, of Go before 1.17 and
 * of its assembler, has no registers: all is on the stack. There the first one is at rsp + 8, each
 * aligned as its type is.
 */
#include <errno.h>
#include <string.h>

#include "loc/loc.h"

enum {
	RSP = 7,
	XMM0 = 17,
	RET_ADDR_BYTES = 8,
	WORD_BYTES = 8,
	N_INT = 9,
	N_FLOAT = 15,
	PARTS_MAX = N_INT + N_FLOAT,
	/* Structs within structs; a value of more parts than registers ends the walk before. */
	DEPTH_MAX = 32,
};

static const uint8_t int_regs[N_INT] = {0, 3, 2, 5, 4, 8, 9, 10, 11};

struct part {
	uint32_t off;
	uint8_t reg;
};

struct go_assign {
	const struct cairn_types *types;
	bool in_registers;
	unsigned int ints, floats; /* registers used */
	uint64_t stack;            /* next stack argument, from the first one */
};

/* The parts of one value. */
struct go_parts {
	struct part p[PARTS_MAX];
	unsigned int n, ints, floats;
};

static const struct cairn_type *resolved(const struct cairn_types *types, uint32_t id)
{
	return cairn_types_get(types, cairn_types_resolve(types, id));
}

static bool add_part(struct go_parts *v, uint64_t off, uint64_t size, bool is_float)
{
	unsigned int *used = is_float ? &v->floats : &v->ints;
	if (*used == (is_float ? N_FLOAT : N_INT) || size > WORD_BYTES ||
	    off > UINT32_MAX - WORD_BYTES)
		return false;
	uint8_t reg = is_float ? (uint8_t)(XMM0 + *used) : int_regs[*used];
	++*used;
	v->p[v->n++] = (struct part){(uint32_t)off, reg};
	return true;
}

static bool split(const struct cairn_types *types, uint32_t id, uint64_t off, unsigned int depth,
		  struct go_parts *v);

static bool split_members(const struct cairn_types *types, const struct cairn_type *t, uint64_t off,
			  unsigned int depth, struct go_parts *v)
{
	if (t->unread || t->declaration)
		return false;
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *m = &t->members[i];
		if (m->dynamic || m->bit_size || m->bit_off % 8 ||
		    !split(types, m->type, off + m->bit_off / 8, depth + 1, v))
			return false;
	}
	return true;
}

static bool split_float(const struct cairn_type *t, uint64_t off, struct go_parts *v)
{
	if (t->encoding != CAIRN_ENC_COMPLEX)
		return add_part(v, off, t->size, true);
	return add_part(v, off, t->size / 2, true) &&
	       add_part(v, off + t->size / 2, t->size / 2, true);
}

/* Returns false for a value that does not go into registers. */
static bool split(const struct cairn_types *types, uint32_t id, uint64_t off, unsigned int depth,
		  struct go_parts *v)
{
	const struct cairn_type *t = resolved(types, id);
	if (depth == DEPTH_MAX)
		return false;
	switch (t->kind) {
	case CAIRN_T_INT:
	case CAIRN_T_ENUM:
		return t->encoding != CAIRN_ENC_OPAQUE && add_part(v, off, t->size, false);
	case CAIRN_T_PTR:
	case CAIRN_T_FUNC:
		return add_part(v, off, WORD_BYTES, false);
	case CAIRN_T_FLOAT:
		return split_float(t, off, v);
	case CAIRN_T_STRUCT:
		return split_members(types, t, off, depth, v);
	case CAIRN_T_ARRAY:
		return t->has_count &&
		       (!t->count || (t->count == 1 && split(types, t->ref, off, depth + 1, v)));
	default:
		return false;
	}
}

/* 0: not known. Go aligns a type as the widest of its parts, at most to a word. */
static uint64_t alignment(const struct cairn_types *types, uint32_t id, unsigned int depth)
{
	const struct cairn_type *t = resolved(types, id);
	uint64_t ret = 1;
	if (depth == DEPTH_MAX || t->unread || t->declaration)
		return 0;
	switch (t->kind) {
	case CAIRN_T_INT:
	case CAIRN_T_ENUM:
		return t->encoding == CAIRN_ENC_OPAQUE || t->size > WORD_BYTES ? 0 : t->size;
	case CAIRN_T_FLOAT:
		return t->encoding == CAIRN_ENC_COMPLEX ? t->size / 2 : t->size;
	case CAIRN_T_PTR:
	case CAIRN_T_FUNC:
		return WORD_BYTES;
	case CAIRN_T_ARRAY:
		return alignment(types, t->ref, depth + 1);
	case CAIRN_T_STRUCT:
		for (uint32_t i = 0; i < t->n_members && ret; i++) {
			uint64_t of_member = alignment(types, t->members[i].type, depth + 1);
			ret = of_member > ret || !of_member ? of_member : ret;
		}
		return ret;
	default:
		return 0;
	}
}

/*
 * The end of a part: it includes the padding after it, so that nothing of the value is missing. The
 * padding has the content of the register's other bytes.
 */
static uint32_t reach(const struct go_parts *v, unsigned int i, uint64_t size)
{
	uint64_t end = i + 1 < v->n ? v->p[i + 1].off : size, off = v->p[i].off;
	return end - off < WORD_BYTES ? (uint32_t)(end - off) : WORD_BYTES;
}

static int in_registers(const struct go_parts *v, uint64_t size, struct arena *arena,
			struct cairn_location *ret)
{
	struct cairn_piece *pieces = arena_array(arena, v->n, sizeof(*pieces));
	struct cairn_loc_step *steps = arena_array(arena, v->n, sizeof(*steps));
	if (!pieces || !steps)
		return -ENOMEM;
	*ret = (struct cairn_location){.n_pieces = v->n, .pieces = pieces};
	for (unsigned int i = 0; i < v->n; i++) {
		steps[i] = (struct cairn_loc_step){.op = CAIRN_LOC_REG, .reg = v->p[i].reg};
		pieces[i] = (struct cairn_piece){.kind = CAIRN_PIECE_VALUE,
						 .off = v->p[i].off,
						 .size = v->n > 1 ? reach(v, i, size) : 0,
						 .n_steps = 1,
						 .steps = &steps[i]};
		if (v->p[i].reg >= XMM0)
			ret->why = CAIRN_UNAVAIL_VECTOR_REGISTER;
	}
	return 1;
}

static int on_stack(struct go_assign *a, uint32_t type, struct arena *arena,
		    struct cairn_location *ret)
{
	uint64_t size = cairn_types_size(a->types, type), align = alignment(a->types, type, 0);
	struct cairn_piece *piece = arena_alloc(arena, sizeof(*piece));
	struct cairn_loc_step *steps = arena_array(arena, 2, sizeof(*steps));
	if (!piece || !steps)
		return -ENOMEM;
	if (!align || size > INT32_MAX || a->stack > INT32_MAX)
		return 0;
	a->stack = (a->stack + align - 1) / align * align;
	steps[0] = (struct cairn_loc_step){.op = CAIRN_LOC_REG, .reg = RSP};
	steps[1] = (struct cairn_loc_step){.op = CAIRN_LOC_ADD,
					   .imm = (int64_t)(RET_ADDR_BYTES + a->stack)};
	*piece = (struct cairn_piece){.kind = CAIRN_PIECE_MEMORY, .n_steps = 2, .steps = steps};
	*ret = (struct cairn_location){.n_pieces = 1, .pieces = piece};
	a->stack += size;
	return 1;
}

/* Returns 1; 0 if its location, and so that of all after it, is not known; -ENOMEM. */
static int place(struct go_assign *a, uint32_t type, struct arena *arena,
		 struct cairn_location *ret)
{
	struct go_parts v = {.ints = a->ints, .floats = a->floats};
	uint64_t size = cairn_types_size(a->types, type);
	const struct cairn_type *t = resolved(a->types, type);
	if (t->unread || t->declaration || t->kind == CAIRN_T_VOID)
		return 0;
	if (a->in_registers && (size || t->kind == CAIRN_T_FUNC) &&
	    split(a->types, type, 0, 0, &v)) {
		a->ints = v.ints;
		a->floats = v.floats;
		return in_registers(&v, size, arena, ret);
	}
	return on_stack(a, type, arena, ret);
}

int abi_go_locations(const struct cairn_types *types, bool in_registers,
		     const struct cairn_param *params, uint32_t n, struct arena *arena,
		     struct cairn_location *ret)
{
	struct go_assign a = {.types = types, .in_registers = in_registers};
	int known = 1;
	for (uint32_t i = 0; i < n; i++) {
		ret[i] = (struct cairn_location){.why = CAIRN_UNAVAIL_NOT_STORED_YET};
		if (known == 1)
			known = place(&a, params[i].type, arena, &ret[i]);
		if (known < 0)
			return known;
	}
	return 0;
}

/* ---- compared with the description ---- */

static bool is_same_place(const struct cairn_piece *said, const struct cairn_piece *abi)
{
	return said->kind == abi->kind && said->n_steps == abi->n_steps &&
	       !memcmp(said->steps, abi->steps, abi->n_steps * sizeof(*abi->steps));
}

/*
 * The compiler leaves out the padding between two parts
 * (docs/findings/go-pieces-without-padding.md), or says that it is missing, so the order of the
 * parts counts, not their offsets.
 */
bool abi_go_agrees(const struct cairn_location *said, const struct cairn_location *abi)
{
	bool is_said = said->why == CAIRN_AVAILABLE || said->why == CAIRN_UNAVAIL_VECTOR_REGISTER ||
		       said->why == CAIRN_UNAVAIL_PARTLY;
	bool is_known = abi->why == CAIRN_AVAILABLE || abi->why == CAIRN_UNAVAIL_VECTOR_REGISTER;
	uint32_t at = 0;
	if (!is_said || !is_known)
		return false;
	for (uint32_t i = 0; i < said->n_pieces; i++) {
		if (said->pieces[i].kind == CAIRN_PIECE_MISSING)
			continue;
		if (at == abi->n_pieces || !is_same_place(&said->pieces[i], &abi->pieces[at++]))
			return false;
	}
	return at == abi->n_pieces;
}
