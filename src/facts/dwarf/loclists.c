/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Location lists
 *
 *	.debug_loc, DWARF 2 to 4      bounds (lists.h), u16 length and expression
 *	.debug_loclists, DWARF 5      bounds, ULEB length and expression
 *
 * Views. Several rows of the line table can have one address, numbered 0, 1, ... A value may change
 * between two of them without any instruction. GCC writes the view of each bound:
 *
 *	DW_AT_GNU_locviews ──►  ULEB begin, ULEB end     for the 1st entry that states bounds
 *	                        ULEB begin, ULEB end     for the 2nd ...
 *	DW_AT_location     ──►  the list                 usually right after the pairs
 *
 * in the same section, or DW_LLE_GNU_view_pair before an entry. An entry [0x10 view 1, 0x10 view 2)
 * has no instruction in it, but holds for a probe that means the second row of 0x10.
 */
#include "dwarf/loclists.h"

#include <inttypes.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/near.h"

/* ---- entries ---- */

/* Length and expression after the bounds. */
static bool read_expr(struct dw_list *l, struct dw_loc_entry *e)
{
	e->expr_len = l->format == DW_LIST_LOCATIONS ? cur_uleb(&l->c) : cur_u16(&l->c);
	e->expr = cur_bytes(&l->c, e->expr_len);
	return !l->c.failed;
}

/*
 * The views of an entry: those that stood before it, or the next pair of a row of pairs.
 */
static bool read_views(struct dw_loc_list *l, struct dw_loc_entry *e)
{
	e->has_views = l->has_pair || l->has_views;
	e->view_lo = l->has_pair ? l->pair.lo : 0;
	e->view_hi = l->has_pair ? l->pair.hi : 0;
	l->has_pair = false;
	if (!l->has_views)
		return true;
	e->view_lo = cur_uleb(&l->views);
	e->view_hi = cur_uleb(&l->views);
	return !l->views.failed;
}

/* The sum with such a base is no address; dropped code is never queried. */
static bool is_dropped(const struct dw_unit *u, uint64_t from)
{
	return !u->file->relocatable && from >= dw_largest_address(u) - 1;
}

/* Returns 1, -EBADMSG. */
static int check_bounds(const struct dw_loc_list *l, const struct dw_loc_entry *e)
{
	const struct dw_unit *u = l->list.u;
	if (e->lo.v <= e->hi.v)
		return 1;
	return err_set(l->list.c.err, -EBADMSG,
		       "%s: %s+0x%" PRIx64 ": a location list entry from 0x%" PRIx64
		       " to 0x%" PRIx64 " in this unit",
		       u->file->path, u->sec->src.section, u->off, e->lo.v, e->hi.v);
}

/*
 * Reads an entry after its bounds, up to the expression. Returns 1, 0 for an entry of dropped code,
 * -EBADMSG.
 */
static int read_entry(struct dw_loc_list *l, int kind, const struct dw_bounds *b,
		      struct dw_loc_entry *ret)
{
	*ret = (struct dw_loc_entry){.everywhere = kind == DW_ENTRY_DEFAULT};
	if (!read_expr(&l->list, ret))
		return -EBADMSG;
	if (ret->everywhere)
		return 1;
	ret->lo.v = b->lo;
	ret->hi.v = b->hi;
	if (!read_views(l, ret))
		return -EBADMSG;
	return is_dropped(l->list.u, b->from) ? 0 : check_bounds(l, ret);
}

int dw_loc_next_unusual(struct dw_loc_list *l, struct dw_loc_entry *ret)
{
	struct dw_bounds b;
	int rc = 0;
	if (l->is_single) {
		*ret = (struct dw_loc_entry){.everywhere = true,
					     .expr = l->list.c.pos,
					     .expr_len = cur_left(&l->list.c)};
		rc = !l->is_told;
		l->is_told = true;
		return rc;
	}
	while (!rc && !dw_list_ends(&l->list)) {
		int kind = dw_list_next(&l->list, &b);
		if (kind <= 0)
			return kind;
		if (kind != DW_ENTRY_VIEWS) {
			rc = read_entry(l, kind, &b, ret);
			continue;
		}
		l->has_pair = true;
		l->pair = b;
		l->is_usual = false;
	}
	return rc;
}

/* ---- where they are ---- */

/* Finds the view pairs of this attribute's list, in the section of the list. */
static int find_views(struct dw_loc_list *l, const struct dw_die *die, uint16_t at,
		      struct cairn_err *err)
{
	const struct dw_unit *u = die->unit;
	struct dw_value v;
	struct dw_list views;
	int rc = at == DW_AT_location ? dw_attr(die, DW_AT_GNU_locviews, &v, err) : 0;
	if (rc <= 0)
		return rc;
	bool is_offset = v.cls == DW_CLASS_SECOFF || v.cls == DW_CLASS_UDATA;
	if (!is_offset || v.form == DW_FORM_loclistx)
		return err_set(err, -EBADMSG,
			       "%s: DIE at 0x%" PRIx64 ": DW_AT_GNU_locviews has form 0x%x",
			       u->file->path, die->off, v.form);
	/*
	 * In a .dwo file of DWARF 5 GCC counts from the end of the header (GCC 12;
	 * docs/findings/gcc-split-view-offsets.md).
	 */
	if (u->file->is_split && u->version >= 5)
		v.u += u->loclists_base - u->locations_at;
	rc = dw_list_of(u, DW_LOCATIONS, &v, &views, err);
	l->has_views = rc > 0;
	l->views = views.c;
	return rc;
}

/* The offset that an attribute in the first run has, if it has one of 4 bytes. */
static inline bool near_offset(const struct dw_die *die, enum dw_slot slot, uint64_t *ret)
{
	struct dw_near n = die->abbrev->near[slot];
	if (n.form != DW_FORM_sec_offset || die->abbrev->first.fixed > die->unit->end - die->attrs)
		return false;
	*ret = dw_load_u32(die->attrs + n.off);
	return true;
}

/*
 * The list and the views of a DIE as DWARF 5 mostly has them; false for others, which may be lists
 * all the same.
 */
static inline bool find_usual(struct dw_loc_list *l, const struct dw_die *die,
			      struct cairn_err *err)
{
	const struct dw_unit *u = die->unit;
	const struct dw_section *s = &u->file->sec[DW_SEC_LOCLISTS];
	uint64_t off, views = 0;
	if (u->version < 5 || u->addr_size != 8 || u->file->is_split || u->locations_at ||
	    !near_offset(die, DW_SLOT_LOCATION, &off) || off >= s->n)
		return false;
	l->has_views = die->abbrev->near[DW_SLOT_LOCVIEWS].form;
	if (l->has_views && (!near_offset(die, DW_SLOT_LOCVIEWS, &views) || views >= s->n))
		return false;
	l->list.u = u;
	l->list.format = DW_LIST_LOCATIONS;
	l->list.base = u->low_pc;
	l->list.c.end = l->views.end = s->p + s->n;
	l->list.c.src = l->views.src = &s->src;
	l->list.c.err = l->views.err = err;
	l->list.c.big_endian = l->views.big_endian = false;
	l->list.c.failed = l->views.failed = false;
	l->list.c.pos = s->p + off;
	l->views.pos = s->p + views;
	l->is_single = l->has_pair = false;
	l->is_usual = true;
	return true;
}

static int find_list(struct dw_loc_list *l, const struct dw_die *die, uint16_t at,
		     const struct dw_value *v, struct cairn_err *err)
{
	int rc = find_views(l, die, at, err);
	if (rc >= 0)
		rc = dw_list_of(die->unit, DW_LOCATIONS, v, &l->list, err);
	l->is_usual = rc >= 0 && l->list.format == DW_LIST_LOCATIONS && !l->list.c.big_endian &&
		      die->unit->addr_size == 8;
	return rc < 0 ? rc : 1;
}

int dw_loc_begin(struct dw_loc_list *l, const struct dw_die *die, uint16_t at,
		 struct cairn_err *err)
{
	struct dw_value v;
	if (at == DW_AT_location && find_usual(l, die, err))
		return 1;
	*l = (struct dw_loc_list){0};
	int rc = at == DW_AT_location ? dw_attr_at(die, DW_SLOT_LOCATION, at, &v, err)
				      : dw_attr(die, at, &v, err);
	if (rc <= 0)
		return rc;
	if (v.cls == DW_CLASS_EXPRLOC || v.cls == DW_CLASS_BLOCK) {
		l->is_single = true;
		l->list.c.pos = v.block.p;
		l->list.c.end = v.block.p + v.block.n;
		return 1;
	}
	if (dw_is_list(die->unit, &v))
		return find_list(l, die, at, &v, err);
	return err_set(err, -EBADMSG,
		       "%s: DIE at 0x%" PRIx64
		       ": attribute 0x%x has form 0x%x, which is no location",
		       die->unit->file->path, die->off, at, v.form);
}

int dw_locations(const struct dw_die *die, uint16_t at,
		 int (*visit)(void *ctx, const struct dw_loc_entry *entry), void *ctx,
		 struct cairn_err *err)
{
	struct dw_loc_list l;
	struct dw_loc_entry e;
	int n = 0, rc = dw_loc_begin(&l, die, at, err);
	while (rc > 0 && (rc = dw_loc_next(&l, &e)) > 0) {
		n++;
		rc = visit(ctx, &e);
		if (rc)
			return rc;
		rc = 1;
	}
	return rc < 0 ? rc : n;
}
