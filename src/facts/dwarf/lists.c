/* SPDX-License-Identifier: BSD-2-Clause */
#include "dwarf/lists.h"

#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "dwarf/constants.h"

/* The meaning of an entry's kind byte in a format. */
enum kind {
	END,
	BASE_ADDRESSX,
	STARTX_ENDX,
	STARTX_LENGTH,
	OFFSET_PAIR,
	DEFAULT_LOCATION,
	BASE_ADDRESS,
	START_END,
	START_LENGTH,
	VIEW_PAIR,
};

static const struct {
	const enum kind *kinds;
	size_t n;
} formats[] = {
	[DW_LIST_GNU] = {(const enum kind[]){END, BASE_ADDRESSX, STARTX_ENDX, STARTX_LENGTH,
					     OFFSET_PAIR},
			 5},
	[DW_LIST_RANGES] = {(const enum kind[]){END, BASE_ADDRESSX, STARTX_ENDX, STARTX_LENGTH,
						OFFSET_PAIR, BASE_ADDRESS, START_END, START_LENGTH},
			    8},
	[DW_LIST_LOCATIONS] = {(const enum kind[]){END, BASE_ADDRESSX, STARTX_ENDX, STARTX_LENGTH,
						   OFFSET_PAIR, DEFAULT_LOCATION, BASE_ADDRESS,
						   START_END, START_LENGTH, VIEW_PAIR},
			       10},
};

/* ---- where a list is ---- */

/* Offset of list @index of the unit's table of offsets (rnglistx, loclistx). 1 or -EBADMSG. */
static int at_index(const struct dw_unit *u, enum dw_list_of what, const struct dw_section *s,
		    uint64_t index, uint64_t *ret, struct cairn_err *err)
{
	bool ranges = what == DW_RANGES;
	uint64_t base = ranges ? u->rnglists_base : u->loclists_base, at, entry;
	if (!(ranges ? u->has_rnglists_base : u->has_loclists_base))
		return err_set(err, -EBADMSG,
			       "%s: %s+0x%" PRIx64 ": the unit uses list indices but has no %s",
			       u->file->path, u->sec->src.section, u->off,
			       ranges ? "DW_AT_rnglists_base" : "DW_AT_loclists_base");
	if (__builtin_mul_overflow(index, u->offset_size, &at) ||
	    __builtin_add_overflow(at, base, &at))
		at = UINT64_MAX;
	struct cursor c = dw_section_cursor(s, at, err);
	entry = cur_uint(&c, u->offset_size);
	if (!c.failed && __builtin_add_overflow(entry, base, ret))
		dw_expected(&c, "the offset of a list");
	return c.failed ? -EBADMSG : 1;
}

int dw_list_of(const struct dw_unit *u, enum dw_list_of what, const struct dw_value *v,
	       struct dw_list *ret, struct cairn_err *err)
{
	static const struct {
		enum dw_sec old, v5;
		enum dw_list_format v5_format;
	} of[] = {
		[DW_RANGES] = {DW_SEC_RANGES, DW_SEC_RNGLISTS, DW_LIST_RANGES},
		[DW_LOCATIONS] = {DW_SEC_LOC, DW_SEC_LOCLISTS, DW_LIST_LOCATIONS},
	};
	const struct dw_file *file = what == DW_RANGES && u->ranges_file ? u->ranges_file : u->file;
	const struct dw_section *s = &file->sec[u->version < 5 ? of[what].old : of[what].v5];
	uint64_t off = 0;
	if (v->form == DW_FORM_rnglistx || v->form == DW_FORM_loclistx) {
		int rc = at_index(u, what, s, v->u, &off, err);
		if (rc < 0)
			return rc;
	} else if (__builtin_add_overflow(v->u, what == DW_RANGES ? u->ranges_at : u->locations_at,
					  &off)) {
		off = UINT64_MAX;
	}
	enum dw_list_format old =
		what == DW_LOCATIONS && u->file->is_split ? DW_LIST_GNU : DW_LIST_PAIRS;
	*ret = (struct dw_list){.u = u,
				.format = u->version < 5 ? old : of[what].v5_format,
				.c = dw_section_cursor(s, off, err),
				.base = u->low_pc};
	return ret->c.failed ? -EBADMSG : 1;
}

/* ---- entries ---- */

static uint64_t addrx(struct dw_list *l)
{
	uint64_t index = cur_uleb(&l->c), at = 0;
	/* The address table has reported its error; the list ends here. */
	if (!l->c.failed && dw_unit_addrx(l->u, index, &at, l->c.err) < 0)
		l->c.failed = true;
	return at;
}

static uint64_t address(struct dw_list *l)
{
	return cur_uint(&l->c, l->u->addr_size);
}

/* A length, or an offset of a pair. */
static uint64_t number(struct dw_list *l)
{
	return l->format == DW_LIST_GNU ? cur_u32(&l->c) : cur_uleb(&l->c);
}

static int next_pair(struct dw_list *l, struct dw_bounds *ret)
{
	uint64_t largest = dw_largest_address(l->u);
	while (!l->c.failed) {
		uint64_t lo = address(l), hi = address(l);
		if (lo == largest) {
			l->base = hi;
			continue;
		}
		if (!lo && !hi)
			break;
		/*
		 * Units with more than one section have base 0; then the offset is the address.
		 */
		*ret = (struct dw_bounds){.from = l->base ? l->base : lo,
					  .lo = (l->base + lo) & largest,
					  .hi = (l->base + hi) & largest};
		return l->c.failed ? -EBADMSG : DW_ENTRY_BOUNDS;
	}
	return l->c.failed ? -EBADMSG : DW_ENTRY_END;
}

static int unknown(struct dw_list *l, uint8_t kind)
{
	return err_set(l->c.err, -EBADMSG,
		       "%s: %s+0x%" PRIx64 ": a list entry of kind 0x%x, which does not exist",
		       l->c.src->file, l->c.src->section, cur_off(&l->c) - 1, kind);
}

static void set_bounds(struct dw_bounds *b, uint64_t from, uint64_t lo, uint64_t hi)
{
	*b = (struct dw_bounds){.from = from, .lo = lo, .hi = hi};
}

/* Reads the operands. Returns DW_ENTRY_*, or 0x100 for an entry that only sets the base. */
enum { ONLY_BASE = 0x100 };
static int read_operands(struct dw_list *l, enum kind kind, struct dw_bounds *ret)
{
	uint64_t lo, hi;
	switch (kind) {
	case END:
		return DW_ENTRY_END;
	case DEFAULT_LOCATION:
		return DW_ENTRY_DEFAULT;
	case VIEW_PAIR:
		lo = cur_uleb(&l->c);
		set_bounds(ret, 0, lo, cur_uleb(&l->c));
		return DW_ENTRY_VIEWS;
	case BASE_ADDRESSX:
		l->base = addrx(l);
		return ONLY_BASE;
	case BASE_ADDRESS:
		l->base = address(l);
		return ONLY_BASE;
	case STARTX_ENDX:
		lo = addrx(l);
		set_bounds(ret, lo, lo, addrx(l));
		break;
	case STARTX_LENGTH:
		lo = addrx(l);
		set_bounds(ret, lo, lo, lo + number(l));
		break;
	case OFFSET_PAIR:
		lo = l->base + number(l);
		hi = l->base + number(l);
		set_bounds(ret, l->base ? l->base : lo, lo, hi);
		break;
	case START_END:
		lo = address(l);
		set_bounds(ret, lo, lo, address(l));
		break;
	case START_LENGTH:
		lo = address(l);
		set_bounds(ret, lo, lo, lo + cur_uleb(&l->c));
		break;
	}
	return DW_ENTRY_BOUNDS;
}

int dw_list_next(struct dw_list *l, struct dw_bounds *ret)
{
	int entry = ONLY_BASE;
	if (l->format == DW_LIST_PAIRS)
		return next_pair(l, ret);
	while (entry == ONLY_BASE && !l->c.failed) {
		uint8_t kind = cur_u8(&l->c);
		if (l->c.failed)
			break;
		if (kind >= formats[l->format].n)
			return unknown(l, kind);
		entry = read_operands(l, formats[l->format].kinds[kind], ret);
	}
	return l->c.failed ? -EBADMSG : entry;
}
