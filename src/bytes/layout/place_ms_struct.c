/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Placing members: __attribute__((ms_struct)) where the ABI is System V's
 *
 * It requests Microsoft's units of bit-fields (place_ms.c) and leaves all else unchanged, so it is
 * neither of the two:
 *
 *	#pragma pack(1)
 *	struct { short c : 14 __attribute__((aligned(4))); char d; } __attribute__((ms_struct));
 *
 *	byte  0   1   2  3
 *	      c : 14  d  end  Microsoft: c aligned to 4, as attributes win over #pragma pack
 *
 * A unit, and a number of any type, is aligned to its size, also if the ABI aligns it to less: long
 * long on i386. #pragma pack and attributes cap that; packed does nothing to a bit-field.
 * Bit-fields in a union have no alignment at all. Width 0 ends a unit, and does nothing if none is
 * open. GCC and Clang differ in the alignment of unions and packed bit-fields, enums of 8 bytes and
 * _Complex on i386, and typedefs that lower an alignment; this is Clang's version.
 */
#include "layout/place.h"

#include <errno.h>

/* In bits. */
struct units {
	bool is_union;
	uint64_t pack; /* 0: none */
	uint64_t data; /* where the next member may begin; width 0 can take it back */
	uint64_t size; /* the furthest that it was */
	uint64_t align;
	uint64_t unit; /* of the open unit; 0: none is open */
	uint64_t left; /* bits that are free in it */
};

static void place_ordinary(struct units *u, const struct cairn_place_record *rec,
			   struct cairn_place_member *m)
{
	uint64_t align = 8 * max_u64(m->align, m->number);

	if (rec->packed || m->packed)
		align = 8;
	align = max_u64(align, 8 * (uint64_t)m->aligned);
	if (u->pack)
		align = min_u64(align, u->pack);
	m->bit_off = u->is_union ? 0 : round_up(u->data, align);
	u->data = max_u64(u->is_union ? u->data : 0, m->bit_off + 8 * m->size);
	u->unit = u->left = 0;
	u->align = max_u64(u->align, align);
}

static uint64_t align_of_bit_field(const struct units *u, const struct cairn_place_member *m,
				   bool is_nothing)
{
	uint64_t align = max_u64(is_nothing ? 1 : 8 * m->size, 8 * (uint64_t)m->aligned);

	if (u->is_union)
		return 1;
	return u->pack && m->width ? min_u64(align, u->pack) : align;
}

/* After it was placed: takes its bits. */
static void take_bits(struct units *u, const struct cairn_place_member *m)
{
	if (u->is_union) {
		u->data = max_u64(u->data, m->width ? 8 * m->size : 8);
	} else if (m->width) {
		if (!u->left) {
			u->unit = u->left = 8 * m->size;
			u->data = m->bit_off + u->unit;
		}
		u->left -= m->width;
	} else {
		u->data = round_up(m->bit_off, 8);
		u->left = u->data - m->bit_off;
		u->unit = 0;
	}
}

static void place_bit_field(struct units *u, struct cairn_place_member *m)
{
	bool is_nothing = !m->width && !u->unit;

	if (u->unit != 8 * m->size || m->width > u->left)
		u->unit = u->left = 0;
	uint64_t align = align_of_bit_field(u, m, is_nothing);
	m->bit_off = u->is_union ? 0 : u->data - u->left;
	if (!m->width || !u->left) {
		m->bit_off = round_up(m->bit_off, align);
		u->left = 0;
	}
	take_bits(u, m);
	u->align = max_u64(u->align, align);
}

int layout_place_ms_struct(struct cairn_place_record *rec, uint64_t start, uint64_t *ret_end)
{
	struct units u = {.is_union = rec->is_union,
			  .pack = 8 * (uint64_t)rec->pack,
			  .data = start,
			  .size = start,
			  .align = 8};

	for (size_t i = 0; i < rec->n_members; i++) {
		struct cairn_place_member *m = &rec->members[i];

		if (m->bit_field)
			place_bit_field(&u, m);
		else
			place_ordinary(&u, rec, m);
		u.size = max_u64(u.size, u.data);
		if (u.size > 8 * CAIRN_LAYOUT_SIZE_MAX)
			return -ERANGE;
	}
	if (ret_end)
		*ret_end = u.size;
	u.align = max_u64(u.align, 8 * (uint64_t)rec->aligned);
	rec->align = (uint32_t)(u.align / 8);
	rec->size = round_up(u.size, u.align) / 8;
	return 0;
}
