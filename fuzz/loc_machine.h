/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DWARF expressions as the standard says them (DWARF 5, 2.5): a second opinion on what loc folds
 *
 * A stack of values with types. What the standard leaves open, or what is not followed here, is
 * MACHINE_UNDEFINED.
 */
#ifndef FUZZ_LOC_MACHINE_H
#define FUZZ_LOC_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "dwarf/constants.h"

/* Base types: number i has 1 << i / 2 bytes, and a sign when i is odd. */
enum { MACHINE_N_TYPES = 8, MACHINE_STACK = 24 };

enum machine_result { MACHINE_UNDEFINED, MACHINE_VALUE, MACHINE_ADDRESS };

struct machine {
	uint64_t r[17];
	const uint8_t *memory;
	uint64_t memory_at, n_memory, bias, cfa;
	bool cfa_is_known, is_entry;
	uint64_t types[MACHINE_N_TYPES]; /* offsets of their DIEs in the unit */
};

struct machine_value {
	uint64_t v;   /* extended from its type to 64 bits */
	uint8_t size; /* 0: the generic type */
	bool is_signed;
};

struct machine_run {
	const struct machine *m;
	const uint8_t *p, *end;
	struct machine_value stack[MACHINE_STACK];
	unsigned int depth;
	bool is_undefined, is_value;
};

static inline bool machine_load(const struct machine *m, uint64_t at, unsigned int size,
				uint64_t *ret)
{
	*ret = 0;
	if (at < m->memory_at || at - m->memory_at > m->n_memory - size)
		return false;
	memcpy(ret, m->memory + (at - m->memory_at), size);
	return true;
}

static inline uint64_t machine_extend(uint64_t v, unsigned int size, bool is_signed)
{
	if (!size || size >= 8)
		return v;
	uint64_t low = v & ((UINT64_C(1) << 8 * size) - 1), sign = UINT64_C(1) << (8 * size - 1);
	return is_signed ? (low ^ sign) - sign : low;
}

static inline uint64_t machine_number(struct machine_run *x, unsigned int size)
{
	uint64_t v = 0;
	if ((size_t)(x->end - x->p) < size) {
		x->is_undefined = true;
		return 0;
	}
	memcpy(&v, x->p, size);
	x->p += size;
	return v;
}

static inline uint64_t machine_leb(struct machine_run *x, bool is_signed)
{
	uint64_t v = 0;
	for (unsigned int shift = 0; shift < 63; shift += 7) {
		uint64_t byte = machine_number(x, 1);
		v |= (byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		return is_signed && byte & 0x40 ? v | -(UINT64_C(1) << (shift + 7)) : v;
	}
	x->is_undefined = true;
	return 0;
}

static inline struct machine_value *machine_top(struct machine_run *x, unsigned int i)
{
	x->is_undefined |= i >= x->depth;
	return &x->stack[i < x->depth ? x->depth - 1 - i : 0];
}

static inline void machine_push(struct machine_run *x, uint64_t v)
{
	if (x->depth == MACHINE_STACK)
		x->is_undefined = true;
	else
		x->stack[x->depth++] = (struct machine_value){.v = v};
}

/* The value at the top gets the type at @off. */
static inline void machine_retype(struct machine_run *x, uint64_t off, unsigned int of_size)
{
	struct machine_value *t = machine_top(x, 0);
	t->size = 0;
	for (unsigned int i = 0; off && i < MACHINE_N_TYPES; i++)
		if (x->m->types[i] == off) {
			t->size = (uint8_t)(1 << i / 2);
			t->is_signed = i % 2;
		}
	x->is_undefined |= (off && !t->size) || (of_size && of_size != t->size);
	t->v = machine_extend(t->v, t->size, t->is_signed);
}

static inline uint64_t machine_compute(uint8_t op, struct machine_value l, struct machine_value r)
{
	bool is_less = l.size && !l.is_signed ? l.v < r.v : (int64_t)l.v < (int64_t)r.v;
	switch (op) {
	case DW_OP_plus:
		return l.v + r.v;
	case DW_OP_minus:
		return l.v - r.v;
	case DW_OP_mul:
		return l.v * r.v;
	case DW_OP_and:
		return l.v & r.v;
	case DW_OP_or:
		return l.v | r.v;
	case DW_OP_xor:
		return l.v ^ r.v;
	case DW_OP_shl:
		return r.v > 63 ? 0 : l.v << r.v;
	case DW_OP_shr:
		return r.v > 63 ? 0 : machine_extend(l.v, l.size, false) >> r.v;
	case DW_OP_shra:
		return (uint64_t)((int64_t)machine_extend(l.v, l.size, true) >>
				  (r.v > 63 ? 63 : r.v));
	case DW_OP_eq:
		return l.v == r.v;
	case DW_OP_ne:
		return l.v != r.v;
	case DW_OP_lt:
		return is_less;
	case DW_OP_ge:
		return !is_less;
	case DW_OP_le:
		return is_less || l.v == r.v;
	default:
		return !is_less && l.v != r.v;
	}
}

static inline void machine_binary(struct machine_run *x, uint8_t op)
{
	struct machine_value r = *machine_top(x, 0), *l = machine_top(x, 1);
	bool is_shift = op == DW_OP_shl || op == DW_OP_shr || op == DW_OP_shra;
	bool is_comparison = op >= DW_OP_eq && op <= DW_OP_ne;
	x->is_undefined |=
		!is_shift && (l->size != r.size || (l->size && l->is_signed != r.is_signed));
	l->v = machine_compute(op, *l, r);
	l->size = is_comparison ? 0 : l->size;
	l->v = machine_extend(l->v, l->size, l->is_signed);
	x->depth -= !x->is_undefined;
}

static inline void machine_deref(struct machine_run *x, unsigned int size)
{
	struct machine_value *t = machine_top(x, 0);
	x->is_undefined |= !size || size > 8;
	if (!x->is_undefined && !machine_load(x->m, t->v, size, &t->v))
		x->is_undefined = true;
	t->size = 0;
}

static inline void machine_reg(struct machine_run *x, uint64_t reg, uint64_t off)
{
	x->is_undefined |= reg > 15;
	machine_push(x, reg > 15 ? 0 : x->m->r[reg] + off);
}

static inline void machine_swap(struct machine_run *x)
{
	struct machine_value keep = *machine_top(x, 0);
	*machine_top(x, 0) = *machine_top(x, 1);
	*machine_top(x, 1) = keep;
}

static inline bool machine_constant(struct machine_run *x, uint8_t op)
{
	bool is_sized = op >= DW_OP_const1u && op <= DW_OP_const8s;
	unsigned int size = is_sized ? 1u << (op - DW_OP_const1u) / 2 : 0;
	if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		machine_push(x, op - DW_OP_lit0);
	} else if (is_sized) {
		machine_push(
			x, machine_extend(machine_number(x, size), size, (op - DW_OP_const1u) % 2));
	} else if (op == DW_OP_constu || op == DW_OP_consts) {
		machine_push(x, machine_leb(x, op == DW_OP_consts));
	} else if (op == DW_OP_addr) {
		machine_push(x, machine_number(x, 8) + x->m->bias);
	} else if (op == DW_OP_const_type) {
		uint64_t type = machine_leb(x, false), n = machine_number(x, 1);
		x->is_undefined |= n < 1 || n > 8;
		machine_push(x, x->is_undefined ? 0 : machine_number(x, (unsigned int)n));
		machine_retype(x, type, (unsigned int)n);
	} else {
		return false;
	}
	return true;
}

static inline bool machine_register(struct machine_run *x, uint8_t op)
{
	uint64_t n;
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
		machine_reg(x, op - DW_OP_breg0, machine_leb(x, true));
	} else if (op >= DW_OP_reg0 && op <= DW_OP_reg31) {
		machine_reg(x, op - DW_OP_reg0, 0);
		/* A register is the whole description of a place. */
		x->is_undefined |= x->p != x->end || x->depth != 1;
		x->is_value = true;
	} else if (op == DW_OP_bregx) {
		n = machine_leb(x, false);
		machine_reg(x, n, machine_leb(x, true));
	} else if (op == DW_OP_regval_type) {
		machine_reg(x, machine_leb(x, false), 0);
		machine_retype(x, machine_leb(x, false), 0);
	} else if (op == DW_OP_call_frame_cfa) {
		x->is_undefined |= !x->m->cfa_is_known;
		machine_push(x, x->m->cfa);
	} else {
		return false;
	}
	return true;
}

static inline bool machine_shuffle(struct machine_run *x, uint8_t op)
{
	unsigned int i = op == DW_OP_over;
	switch (op) {
	case DW_OP_nop:
		return true;
	case DW_OP_dup:
	case DW_OP_over:
	case DW_OP_pick: {
		struct machine_value copy =
			*machine_top(x, op == DW_OP_pick ? (unsigned int)machine_number(x, 1) : i);
		machine_push(x, 0);
		*machine_top(x, 0) = copy;
		return true;
	}
	case DW_OP_drop:
		x->is_undefined |= !x->depth;
		x->depth -= !x->is_undefined;
		return true;
	case DW_OP_swap:
		machine_swap(x);
		return true;
	case DW_OP_rot: {
		struct machine_value top = *machine_top(x, 0);
		*machine_top(x, 0) = *machine_top(x, 1);
		*machine_top(x, 1) = *machine_top(x, 2);
		*machine_top(x, 2) = top;
		return true;
	}
	}
	return false;
}

static inline bool machine_unary(struct machine_run *x, uint8_t op)
{
	struct machine_value *t = machine_top(x, 0);
	uint64_t n;
	switch (op) {
	case DW_OP_plus_uconst:
		t->v += machine_leb(x, false);
		break;
	case DW_OP_neg:
		t->v = -t->v;
		break;
	case DW_OP_not:
		t->v = ~t->v;
		break;
	case DW_OP_deref:
		machine_deref(x, 8);
		break;
	case DW_OP_deref_size:
		machine_deref(x, (unsigned int)machine_number(x, 1));
		break;
	case DW_OP_deref_type:
		n = machine_number(x, 1);
		machine_deref(x, (unsigned int)n);
		machine_retype(x, machine_leb(x, false), (unsigned int)n);
		break;
	case DW_OP_convert:
		machine_retype(x, machine_leb(x, false), 0);
		break;
	case DW_OP_reinterpret:
		n = t->size;
		machine_retype(x, machine_leb(x, false), 0);
		x->is_undefined |= (n ? n : 8) != (t->size ? t->size : 8);
		break;
	default:
		return false;
	}
	t->v = machine_extend(t->v, t->size, t->is_signed);
	return true;
}

static inline enum machine_result machine_run(const struct machine *m, const uint8_t *expr,
					      size_t n, uint64_t *ret)
{
	struct machine_run x = {.m = m, .p = expr, .end = expr + n};
	while (!x.is_undefined && x.p < x.end) {
		uint8_t op = *x.p++;
		bool is_binary = (op >= DW_OP_and && op <= DW_OP_xor && op != DW_OP_div &&
				  op != DW_OP_mod && op != DW_OP_neg && op != DW_OP_not &&
				  op != DW_OP_plus_uconst && op != DW_OP_abs) ||
				 (op >= DW_OP_eq && op <= DW_OP_ne);
		if (op == DW_OP_stack_value) {
			x.is_value = true;
			x.is_undefined |= x.p != x.end;
		} else if (is_binary) {
			machine_binary(&x, op);
		} else if (!machine_constant(&x, op) && !machine_register(&x, op) &&
			   !machine_shuffle(&x, op) && !machine_unary(&x, op)) {
			x.is_undefined = true;
		}
	}
	if (x.is_undefined || !x.depth)
		return MACHINE_UNDEFINED;
	*ret = machine_top(&x, 0)->v;
	return x.is_value ? MACHINE_VALUE : MACHINE_ADDRESS;
}

#endif
