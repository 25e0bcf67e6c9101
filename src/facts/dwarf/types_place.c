/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a member is in its struct
 *
 * A bit-field's position has been written in three ways. In all of them our bit_off is the offset
 * of its least significant bit from the start of the struct (little-endian machines):
 *
 *	DWARF 5                DW_AT_data_bit_offset 35           35
 *	DWARF 2 to 4           DW_AT_data_member_location 4       storage unit of 4 bytes at byte 4,
 *	                       DW_AT_byte_size 4                  counted from its most significant
 *	                       DW_AT_bit_offset 26, bit_size 3    bit: 32 + 32 - 26 - 3 = 35
 *	the same without       the storage unit is as large as
 *	DW_AT_byte_size        the member's type
 *
 * The offset may be negative (packed structs, where the field goes over the end of its unit).
 *
 * A member's position may be an expression. If it adds constants to the address of the struct, it
 * is a constant. Any other (virtual base classes look it up in the object) is known at run time
 * only.
 */
#include "dwarf/types_place.h"

#include "dwarf/constants.h"

/* Typedefs and qualifiers around the type of a bit-field, or of an enum's underlying type. */
enum { CHAIN_MAX = 64 };

bool dw_find_after(const struct dw_die *die, uint16_t at, struct dw_die *ret)
{
	struct dw_die d = *die;
	struct dw_value v;
	for (int i = 0; i < CHAIN_MAX; i++) {
		dw_off off = dw_ref(&d, DW_AT_type);
		if (!off || dw_die_at(d.unit->dw, off, &d, NULL) <= 0)
			return false;
		off = dw_ref(&d, DW_AT_signature);
		if (off && dw_die_at(d.unit->dw, off, &d, NULL) <= 0)
			return false;
		*ret = d;
		if (dw_attr(&d, at, &v, NULL) > 0)
			return true;
	}
	return false;
}

/* One operation on the top of the stack, which starts as 0, the struct's address. */
static bool run_op(struct cursor *c, uint8_t op, uint64_t *stack, size_t *n)
{
	uint64_t v;
	switch (op) {
	case DW_OP_nop:
		return true;
	case DW_OP_plus_uconst:
		stack[*n - 1] += cur_uleb(c);
		return true;
	case DW_OP_plus:
		if (*n < 2)
			return false;
		stack[*n - 2] += stack[*n - 1];
		--*n;
		return true;
	case DW_OP_const1u:
		v = cur_u8(c);
		break;
	case DW_OP_const2u:
		v = cur_u16(c);
		break;
	case DW_OP_const4u:
		v = cur_u32(c);
		break;
	case DW_OP_const8u:
		v = cur_u64(c);
		break;
	case DW_OP_constu:
		v = cur_uleb(c);
		break;
	case DW_OP_consts:
		v = (uint64_t)cur_sleb(c);
		break;
	default:
		if (op < DW_OP_lit0 || op > DW_OP_lit31)
			return false;
		v = op - DW_OP_lit0;
	}
	if (*n == 2)
		return false;
	stack[(*n)++] = v;
	return true;
}

static bool constant_place(const struct dw_die *die, const struct dw_value *v, uint64_t *ret)
{
	struct cursor c = cursor_of(&die->unit->sec->src, v->block.p, v->block.n, false, NULL);
	uint64_t stack[2] = {0};
	size_t n = 1;
	while (cur_more(&c))
		if (!run_op(&c, cur_u8(&c), stack, &n))
			return false;
	*ret = stack[0];
	return !c.failed && n == 1;
}

static void place_in_bytes(const struct dw_die *die, struct cairn_member *m)
{
	struct dw_value v;
	uint64_t bytes = 0;
	if (dw_attr(die, DW_AT_data_member_location, &v, NULL) <= 0)
		return;
	if (v.cls == DW_CLASS_UDATA || v.cls == DW_CLASS_SDATA)
		bytes = v.u;
	else if ((v.cls != DW_CLASS_EXPRLOC && v.cls != DW_CLASS_BLOCK) ||
		 !constant_place(die, &v, &bytes))
		m->dynamic = true;
	/* Larger than any address space: nothing is there, wherever it wraps to. */
	if (bytes > UINT64_MAX / 8)
		m->dynamic = true;
	m->bit_off = m->dynamic ? 0 : bytes * 8;
}

uint64_t dw_type_bits(const struct dw_die *die)
{
	struct dw_die type;
	return dw_find_after(die, DW_AT_byte_size, &type) ? dw_udata(&type, DW_AT_byte_size, 0) * 8
							  : 0;
}

static uint64_t storage_bits(const struct dw_die *die)
{
	uint64_t bytes = dw_udata(die, DW_AT_byte_size, 0);
	return bytes ? bytes * 8 : dw_type_bits(die);
}

static void place_in_bits(const struct dw_die *die, struct cairn_member *m)
{
	struct dw_value v;
	uint64_t bits = dw_udata(die, DW_AT_bit_size, 0);
	m->bit_size = bits < UINT32_MAX ? (uint32_t)bits : UINT32_MAX;
	if (dw_attr(die, DW_AT_data_bit_offset, &v, NULL) > 0) {
		m->dynamic |= v.cls != DW_CLASS_UDATA && v.cls != DW_CLASS_SDATA;
		m->bit_off += v.u;
	} else if (bits && dw_attr(die, DW_AT_bit_offset, &v, NULL) > 0) {
		m->dynamic |= v.cls != DW_CLASS_UDATA && v.cls != DW_CLASS_SDATA;
		m->bit_off += storage_bits(die) - v.u - bits;
	}
}

void dw_types_place(const struct dw_die *die, struct cairn_member *m)
{
	place_in_bytes(die, m);
	place_in_bits(die, m);
}
