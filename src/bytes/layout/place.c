/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Placing members: System V
 *
 * One cursor of bits goes through the struct. An ordinary member starts at the next multiple of its
 * alignment. A bit-field starts where the last member ended, if it then lies within one unit of its
 * declared type:
 *
 *	struct { char a; int b : 20; int c : 10; char d; };
 *
 *	bit   0        8                   28  32         42    48       64
 *	      a        b (20 of an int)    -   c          -     d        end
 *
 * b shares its int with a. c does not fit into the rest of the int, and begins the next one. d,
 * which is no bit-field, begins at the next byte, still inside c's int.
 *
 * The effects of the attributes, each of them measured:
 *  - packed, on the struct or the member: alignment 1, for a bit-field 1 bit, so it may lie over a
 *    boundary; the member's own contents keep their layout
 *  - aligned(N) on a member raises, also in a packed struct
 *  - #pragma pack(N) caps both, and bit-fields may then lie over a boundary whatever N is
 *  - width 0 goes to the next unit, whatever is packed
 *  - a bit-field without a name does not raise the alignment of the struct but on ARM
 *
 * Microsoft's rules are in place_ms.c, ms_struct's in place_ms_struct.c.
 */
#include "layout/place.h"

#include <errno.h>
#include <inttypes.h>

#include <cairn/text.h>

#include "base/err.h"

/* In bits. */
struct cursor_bits {
	uint64_t pos; /* end of the last member; of a union 0 */
	uint64_t end; /* end of the one that reaches furthest */
	uint64_t align;
};

static void place_ordinary(struct cursor_bits *c, const struct cairn_place_record *rec,
			   struct cairn_place_member *m)
{
	uint64_t align = 8 * (uint64_t)m->align;

	if (rec->packed || m->packed)
		align = 8;
	align = max_u64(align, 8 * (uint64_t)m->aligned);
	if (rec->pack)
		align = min_u64(align, 8 * (uint64_t)rec->pack);
	m->bit_off = rec->is_union ? 0 : round_up(c->pos, align);
	c->align = max_u64(c->align, align);
	c->pos = m->bit_off + 8 * m->size;
}

/* The alignment that a bit-field contributes to the struct, in bits. */
static uint64_t contribution(const struct cairn_place_record *rec,
			     const struct cairn_place_member *m, uint64_t align)
{
	uint64_t natural = max_u64(8 * (uint64_t)m->align, 8 * (uint64_t)m->aligned);

	if (!m->width)
		return natural;
	/* Also when it is packed. */
	return rec->pack ? min_u64(natural, 8 * (uint64_t)rec->pack) : align;
}

static void place_bit_field(struct cursor_bits *c, const struct cairn_abi *abi,
			    const struct cairn_place_record *rec, struct cairn_place_member *m)
{
	uint64_t align = 8 * (uint64_t)m->align, aligned = 8 * (uint64_t)m->aligned,
		 pack = 8 * (uint64_t)rec->pack;
	uint64_t at = rec->is_union ? 0 : c->pos;

	if ((rec->packed || m->packed) && m->width)
		align = 1;
	align = max_u64(align, aligned);
	if (pack && m->width)
		align = min_u64(align, pack);
	if (!m->width || (!pack && at % align + m->width > 8 * m->size))
		at = round_up(at, align);
	else if (aligned && (!pack || aligned <= pack))
		at = round_up(at, aligned);
	m->bit_off = at;
	c->pos = at + m->width;
	if (m->named || abi->unnamed_counts)
		c->align = max_u64(c->align, contribution(rec, m, align));
}

static int place_sysv(const struct cairn_abi *abi, struct cairn_place_record *rec, uint64_t start,
		      uint64_t *ret_end)
{
	struct cursor_bits c = {.pos = start, .align = 8};

	for (size_t i = 0; i < rec->n_members; i++) {
		struct cairn_place_member *m = &rec->members[i];

		if (m->bit_field)
			place_bit_field(&c, abi, rec, m);
		else
			place_ordinary(&c, rec, m);
		if (c.pos > 8 * CAIRN_LAYOUT_SIZE_MAX)
			return -ERANGE;
		c.end = max_u64(c.end, c.pos);
	}
	if (ret_end)
		*ret_end = c.end;
	c.align = max_u64(c.align, 8 * (uint64_t)rec->aligned);
	rec->align = (uint32_t)(c.align / 8);
	rec->size = round_up(round_up(c.end, 8), c.align) / 8;
	return 0;
}

int layout_place_from(const struct cairn_abi *abi, struct cairn_place_record *rec, uint64_t start,
		      uint64_t *ret_end)
{
	if (rec->gcc_struct || (!abi->ms && !rec->ms_struct))
		return place_sysv(abi, rec, start, ret_end);
	return abi->ms ? layout_place_ms(abi, rec, start, ret_end)
		       : layout_place_ms_struct(rec, start, ret_end);
}

/* Alignments above are refused by the compilers, too. */
static const uint32_t ALIGN_MAX = UINT32_C(1) << 28;

static bool is_align(uint32_t align)
{
	return !(align & (align - 1)) && align <= ALIGN_MAX;
}

static int check(struct cairn_place_record *rec, struct cairn_err *err)
{
	if (!is_align(rec->aligned) || !is_align(rec->pack))
		return err_set(err, -EINVAL, "an alignment is not a power of 2 below 2^28");
	for (size_t i = 0; i < rec->n_members; i++) {
		struct cairn_place_member *m = &rec->members[i];

		m->align = m->align ? m->align : 1;
		if (!is_align(m->align) || !is_align(m->aligned) || !is_align(m->required) ||
		    !is_align(m->number))
			return err_set(err, -EINVAL,
				       "member %zu: an alignment is not a power of 2 below 2^28",
				       i);
		if (m->size > CAIRN_LAYOUT_SIZE_MAX)
			return err_set(err, -ERANGE, "member %zu has %" PRIu64 " bytes", i,
				       m->size);
		if (m->bit_field && m->width > 8 * m->size)
			return err_set(err, -EINVAL,
				       "member %zu: a bit-field of %s in a type of %" PRIu64, i,
				       cairn_counted(m->width, "bit").text, 8 * m->size);
		if (rec->ms_struct && m->bit_field && m->size & (m->size - 1))
			return err_set(err, -EINVAL,
				       "member %zu: a unit of %" PRIu64
				       " bytes, in ms_struct, is aligned to none of "
				       "the powers of 2",
				       i, m->size);
	}
	return 0;
}

int cairn_layout_place(const struct cairn_abi *abi, struct cairn_place_record *rec,
		       struct cairn_err *err)
{
	int rc = check(rec, err);

	if (rc)
		return rc;
	rc = layout_place_from(abi, rec, 0, NULL);
	if (!rc && rec->size > CAIRN_LAYOUT_SIZE_MAX)
		rc = -ERANGE;
	return rc ? err_set(err, rc, "larger than 2^40 bytes") : 0;
}
