/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Placing members: Microsoft
 *
 * A bit-field opens a unit of its declared type, which is reserved in full. The next one goes into
 * it only when its type is as large and enough bits are left:
 *
 *	struct { char a; int b : 4; char z; };
 *
 *	byte  0   1 2 3   4          8   9 10 11
 *	      a   -       b : 4 of   z   -             12 bytes; System V has 4, and z at 2
 *	                  an int
 *
 * Width 0 closes the unit after a bit-field and is nothing elsewhere. In a union, a bit-field
 * counts with its whole unit and does not raise the alignment. aligned(N) wins over #pragma pack,
 * which is ignored above the size of a pointer.
 */
#include "layout/place.h"

#include <errno.h>

/* In bits. */
struct units {
	bool is_union;
	uint64_t pack; /* 0: none */
	uint64_t size; /* end of the reserved part */
	uint64_t align;
	uint64_t unit; /* size of the open unit's type */
	uint64_t left; /* bits still free in it */
	bool open;     /* the last member was a bit-field with a width */
};

static uint64_t align_of(const struct units *u, const struct cairn_place_record *rec,
			 const struct cairn_place_member *m)
{
	uint64_t align = 8 * (uint64_t)m->align;

	if (rec->packed || m->packed)
		align = 8;
	if (u->pack)
		align = min_u64(align, u->pack);
	return max_u64(align, 8 * max_u64(m->aligned, m->required));
}

static void place_ordinary(struct units *u, struct cairn_place_member *m, uint64_t align)
{
	u->open = false;
	m->bit_off = u->is_union ? 0 : round_up(u->size, align);
	u->align = max_u64(u->align, align);
	u->size = max_u64(u->size, m->bit_off + 8 * m->size);
}

static void close_unit(struct units *u, struct cairn_place_member *m, uint64_t align)
{
	m->bit_off = u->is_union ? 0 : u->size;
	if (!u->open)
		return;
	u->open = false;
	if (u->is_union) {
		u->size = max_u64(u->size, 8 * m->size);
		return;
	}
	m->bit_off = u->size = round_up(u->size, align);
	u->align = max_u64(u->align, align);
}

static void open_unit(struct units *u, struct cairn_place_member *m, uint64_t align)
{
	u->open = true;
	m->bit_off = u->is_union ? 0 : round_up(u->size, align);
	u->size = max_u64(u->size, m->bit_off + 8 * m->size);
	if (u->is_union)
		return;
	u->align = max_u64(u->align, align);
	u->unit = 8 * m->size;
	u->left = u->unit - m->width;
}

static void place_bit_field(struct units *u, struct cairn_place_member *m, uint64_t align)
{
	if (!m->width) {
		close_unit(u, m, align);
	} else if (!u->is_union && u->open && u->unit == 8 * m->size && m->width <= u->left) {
		m->bit_off = u->size - u->left;
		u->left -= m->width;
	} else {
		open_unit(u, m, align);
	}
}

int layout_place_ms(const struct cairn_abi *abi, struct cairn_place_record *rec, uint64_t start,
		    uint64_t *ret_end)
{
	struct units u = {.is_union = rec->is_union, .align = 8, .size = start};

	if (rec->pack <= abi->scalars[CAIRN_C_PTR].size)
		u.pack = 8 * (uint64_t)rec->pack;
	for (size_t i = 0; i < rec->n_members; i++) {
		struct cairn_place_member *m = &rec->members[i];
		uint64_t align = align_of(&u, rec, m);

		if (m->bit_field)
			place_bit_field(&u, m, align);
		else
			place_ordinary(&u, m, align);
		if (u.size > 8 * CAIRN_LAYOUT_SIZE_MAX)
			return -ERANGE;
	}
	if (ret_end)
		*ret_end = u.size;
	u.align = max_u64(u.align, 8 * (uint64_t)rec->aligned);
	rec->align = (uint32_t)(u.align / 8);
	rec->size = round_up(u.size, u.align) / 8;
	if (!rec->size)
		rec->size = max_u64(abi->empty_size, rec->align);
	return 0;
}
