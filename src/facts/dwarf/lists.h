/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the parts that all range lists and location lists share: a base address, and entries with
 * bounds
 *
 *	format             section              an entry
 *	DW_LIST_PAIRS      .debug_ranges        two addresses relative to the base;
 *	                   .debug_loc           (largest address, base) sets the base, 0, 0 ends
 *	DW_LIST_GNU        .debug_loc.dwo of    u8 kind, operands (below; lengths and offsets of
 *	                   DWARF 4              pairs are u32)
 *	DW_LIST_RANGES     .debug_rnglists      u8 kind, operands
 *	DW_LIST_LOCATIONS  .debug_loclists      u8 kind, operands
 *
 *	kind               operands             GNU    ranges   locations
 *	end of list                             0x00   0x00     0x00
 *	base_addressx      ULEB index           0x01   0x01     0x01
 *	startx_endx        ULEB, ULEB           0x02   0x02     0x02
 *	startx_length      ULEB, ULEB           0x03   0x03     0x03
 *	offset_pair        ULEB, ULEB           0x04   0x04     0x04
 *	default_location                                        0x05
 *	base_address       address                     0x05     0x06
 *	start_end          address, address            0x06     0x07
 *	start_length       address, ULEB               0x07     0x08
 *	GNU_view_pair      ULEB, ULEB                           0x09
 *
 * In location lists the expression follows, which the caller reads from the cursor.
 */
#ifndef DWARF_LISTS_H
#define DWARF_LISTS_H

#include "dwarf/impl.h"

enum dw_list_format { DW_LIST_PAIRS, DW_LIST_GNU, DW_LIST_RANGES, DW_LIST_LOCATIONS };

struct dw_list {
	const struct dw_unit *u;
	enum dw_list_format format;
	struct cursor c;
	uint64_t base;
};

struct dw_bounds {
	uint64_t from; /* the address the linker filled in: base, or the start itself */
	uint64_t lo, hi;
};

/*
 * dw_list_of - the list that DW_AT_ranges or a location attribute refers to
 *
 * @v  the attribute's value, of a class that dw_is_list() takes
 * Returns 1 or -EBADMSG.
 */
enum dw_list_of { DW_RANGES, DW_LOCATIONS };
int dw_list_of(const struct dw_unit *u, enum dw_list_of what, const struct dw_value *v,
	       struct dw_list *ret, struct cairn_err *err);

/* Up to DWARF 3 an offset of a section was a number. */
static inline bool dw_is_list(const struct dw_unit *u, const struct dw_value *v)
{
	return v->cls == DW_CLASS_SECOFF || (u->version < 4 && v->cls == DW_CLASS_UDATA);
}

/*
 * dw_list_next - read up to the next entry with content
 *
 * @ret  for DW_ENTRY_BOUNDS the bounds, for DW_ENTRY_VIEWS lo and hi
 * Returns its kind, or -EBADMSG.
 */
enum { DW_ENTRY_END, DW_ENTRY_BOUNDS, DW_ENTRY_DEFAULT, DW_ENTRY_VIEWS };
int dw_list_next(struct dw_list *l, struct dw_bounds *ret);

/* Whether the next entry is the end of a list that has kinds. */
static inline bool dw_list_ends(const struct dw_list *l)
{
	return l->format != DW_LIST_PAIRS && cur_more(&l->c) && !*l->c.pos;
}

/*
 * The next range, if it is an offset_pair or a start_length of short numbers, after a base_address
 * or not: nearly all ranges of DWARF 5 are. False for any other entry, which dw_list_next() then
 * reads.
 */
static inline bool dw_list_usual_range(struct dw_list *l, struct dw_bounds *ret)
{
	enum { OFFSET_PAIR = 4, BASE_ADDRESS = 5, START_LENGTH = 7, LONGEST = 1 + 8 + 3 };
	const uint8_t *at = l->c.pos, *end = l->c.end;
	uint64_t lo, hi;
	if (l->format != DW_LIST_RANGES || l->c.big_endian || l->u->addr_size != 8 ||
	    end - at < LONGEST)
		return false;
	if (*at == BASE_ADDRESS) {
		l->base = dw_load_u64(at + 1);
		l->c.pos = at += 1 + 8;
		if (end - at < LONGEST)
			return false;
	}
	uint8_t kind = *at++;
	if (kind == OFFSET_PAIR) {
		if (!cur_uleb_short(&at, end, &lo) || !cur_uleb_short(&at, end, &hi))
			return false;
		*ret = (struct dw_bounds){
			.from = l->base ? l->base : lo, .lo = l->base + lo, .hi = l->base + hi};
	} else {
		if (kind != START_LENGTH)
			return false;
		lo = dw_load_u64(at);
		at += 8;
		if (!cur_uleb_short(&at, end, &hi))
			return false;
		*ret = (struct dw_bounds){.from = lo, .lo = lo, .hi = lo + hi};
	}
	l->c.pos = at;
	return true;
}

static inline uint64_t dw_largest_address(const struct dw_unit *u)
{
	return u->addr_size == 8 ? UINT64_MAX : UINT32_MAX;
}

/* True for the start of something that a linker dropped. In a relocatable file 0 is an address. */
static inline bool dw_is_discarded(const struct dw_unit *u, uint64_t start)
{
	return !u->file->relocatable && (start == 0 || start >= dw_largest_address(u) - 1);
}

#endif
