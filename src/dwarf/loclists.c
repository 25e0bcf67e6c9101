/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Location lists
 *
 *	.debug_loc, DWARF 2 to 4      two addresses relative to a base (as in .debug_ranges), u16 length and
 *	                              expression; 0, 0 ends, (largest address, base) sets the base
 *	.debug_loclists, DWARF 5      u8 DW_LLE_*, bounds (lists.h), ULEB length and expression
 *
 * Views. Several rows of the line table can have one address, numbered 0, 1, ... A value may change
 * between two of them without any instruction. GCC writes the view of each bound:
 *
 *	DW_AT_GNU_locviews ──►  ULEB begin, ULEB end     for the 1st entry that states bounds
 *	                        ULEB begin, ULEB end     for the 2nd ...
 *	DW_AT_location     ──►  the list                 usually right behind the pairs
 *
 * in the same section, or DW_LLE_GNU_view_pair in front of an entry. An entry [0x10 view 1, 0x10 view 2)
 * has no instruction in it, but holds for a probe that means the second row of 0x10.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/impl.h"
#include "dwarf/lists.h"

struct walk {
	const struct dw_unit *u;
	int (*visit)(void *ctx, const struct dw_loc_entry *entry);
	void *ctx;
	struct cairn_err *err;
	struct cursor views; /* at the pair of the next entry */
	bool has_views;
	int n;
};

static int deliver(struct walk *w, struct dw_loc_entry *e)
{
	if (!e->everywhere && e->lo.v > e->hi.v)
		return err_set(w->err, -EBADMSG,
			       "%s: %s+0x%" PRIx64 ": a location list entry from 0x%" PRIx64
			       " to 0x%" PRIx64 " in this unit",
			       w->u->file->path, w->u->sec->src.section, w->u->off, e->lo.v,
			       e->hi.v);
	w->n++;
	return w->visit(w->ctx, e);
}

/* An entry with bounds: fetch its views, and leave out what the linker dropped. */
static int found(struct walk *w, uint64_t from, struct dw_loc_entry *e)
{
	if (w->has_views) {
		e->has_views = true;
		e->view_lo = cur_uleb(&w->views);
		e->view_hi = cur_uleb(&w->views);
		if (w->views.failed)
			return -EBADMSG;
	}
	/* The sum with such a base is no address; nobody asks about dropped code. */
	if (!w->u->file->relocatable && from >= dw_largest_address(w->u) - 1)
		return 0;
	return deliver(w, e);
}

static bool read_expr(struct cursor *c, uint64_t n, struct dw_loc_entry *e)
{
	e->expr = cur_bytes(c, n);
	e->expr_len = n;
	return !c->failed;
}

static int walk_loc(struct walk *w, uint64_t off)
{
	const struct dw_unit *u = w->u;
	struct cursor c = dw_section_cursor(&u->file->sec[DW_SEC_LOC], off, w->err);
	uint64_t base = u->low_pc, largest = dw_largest_address(u);
	while (!c.failed) {
		uint64_t lo = cur_uint(&c, u->addr_size), hi = cur_uint(&c, u->addr_size);
		if (c.failed)
			break;
		if (!lo && !hi)
			return 0;
		if (lo == largest) {
			base = hi;
			continue;
		}
		struct dw_loc_entry e = {.lo = {(base + lo) & largest},
					 .hi = {(base + hi) & largest}};
		if (!read_expr(&c, cur_u16(&c), &e))
			break;
		int rc = found(w, base ? base : lo, &e);
		if (rc)
			return rc;
	}
	return -EBADMSG;
}

struct pending_views {
	bool there;
	uint64_t lo, hi;
};

/* The entry behind its bounds: expression and views. */
static int finish_entry(struct walk *w, struct cursor *c, const struct dw_bounds *b,
			struct pending_views *pair)
{
	struct dw_loc_entry e = {.lo = {b->lo}, .hi = {b->hi}};
	if (!read_expr(c, cur_uleb(c), &e))
		return -EBADMSG;
	if (pair->there) {
		e.has_views = true;
		e.view_lo = pair->lo;
		e.view_hi = pair->hi;
		pair->there = false;
	}
	return found(w, b->from, &e);
}

static int default_entry(struct walk *w, struct cursor *c)
{
	struct dw_loc_entry e = {.everywhere = true};
	return read_expr(c, cur_uleb(c), &e) ? deliver(w, &e) : -EBADMSG;
}

static int walk_loclist(struct walk *w, uint64_t off)
{
	struct cursor c = dw_section_cursor(&w->u->file->sec[DW_SEC_LOCLISTS], off, w->err);
	struct dw_list list = {.u = w->u, .c = &c, .base = w->u->low_pc};
	struct pending_views pair = {0};
	for (;;) {
		uint8_t kind = cur_u8(&c);
		if (c.failed)
			return -EBADMSG;
		struct dw_bounds b;
		int rc = 0;
		switch (kind) {
		case DW_LLE_end_of_list:
			return 0;
		case DW_LLE_base_addressx:
			rc = dw_list_base_addressx(&list);
			break;
		case DW_LLE_base_address:
			rc = dw_list_base_address(&list);
			break;
		case DW_LLE_startx_endx:
			rc = dw_list_startx_endx(&list, &b);
			break;
		case DW_LLE_startx_length:
			rc = dw_list_startx_length(&list, &b);
			break;
		case DW_LLE_offset_pair:
			rc = dw_list_offset_pair(&list, &b);
			break;
		case DW_LLE_start_end:
			rc = dw_list_start_end(&list, &b);
			break;
		case DW_LLE_start_length:
			rc = dw_list_start_length(&list, &b);
			break;
		case DW_LLE_default_location:
			rc = default_entry(w, &c);
			break;
		case DW_LLE_GNU_view_pair:
			pair.there = true;
			pair.lo = cur_uleb(&c);
			pair.hi = cur_uleb(&c);
			break;
		default:
			rc = dw_list_unknown(&list, kind);
		}
		if (rc > 0 && kind != DW_LLE_default_location)
			rc = finish_entry(w, &c, &b, &pair);
		if (rc)
			return rc;
	}
}

/* Where the view pairs of this attribute's list are. */
static int find_views(struct walk *w, const struct dw_die *die, uint16_t at, enum dw_sec sec)
{
	struct dw_value v;
	int rc = at == DW_AT_location ? dw_attr(die, DW_AT_GNU_locviews, &v, w->err) : 0;
	if (rc <= 0)
		return rc;
	bool is_offset = v.cls == DW_CLASS_SECOFF || v.cls == DW_CLASS_UDATA;
	if (!is_offset || v.form == DW_FORM_loclistx)
		return err_set(w->err, -EBADMSG,
			       "%s: DIE at 0x%" PRIx64 ": DW_AT_GNU_locviews has form 0x%x",
			       w->u->file->path, die->off, v.form);
	w->has_views = true;
	w->views = dw_section_cursor(&w->u->file->sec[sec], v.u, w->err);
	return w->views.failed ? -EBADMSG : 0;
}

static int walk_list(struct walk *w, const struct dw_die *die, uint16_t at,
		     const struct dw_value *v)
{
	const struct dw_unit *u = w->u;
	enum dw_sec sec = u->version < 5 ? DW_SEC_LOC : DW_SEC_LOCLISTS;
	uint64_t off = v->u;
	int rc = find_views(w, die, at, sec);
	if (rc >= 0 && v->form == DW_FORM_loclistx)
		rc = dw_list_index(u, DW_SEC_LOCLISTS, v->u, &off, w->err);
	if (rc < 0)
		return rc;
	return sec == DW_SEC_LOC ? walk_loc(w, off) : walk_loclist(w, off);
}

int dw_locations(const struct dw_die *die, uint16_t at,
		 int (*visit)(void *ctx, const struct dw_loc_entry *entry), void *ctx,
		 struct cairn_err *err)
{
	struct walk w = {.u = die->unit, .visit = visit, .ctx = ctx, .err = err};
	struct dw_value v;
	int rc = dw_attr(die, at, &v, err);
	if (rc <= 0)
		return rc;
	if (v.cls == DW_CLASS_EXPRLOC || v.cls == DW_CLASS_BLOCK) {
		struct dw_loc_entry e = {
			.everywhere = true, .expr = v.block.p, .expr_len = v.block.n};
		rc = deliver(&w, &e);
	} else if (v.cls == DW_CLASS_SECOFF || (w.u->version < 4 && v.cls == DW_CLASS_UDATA)) {
		rc = walk_list(&w, die, at, &v);
	} else {
		rc = err_set(err, -EBADMSG,
			     "%s: DIE at 0x%" PRIx64
			     ": attribute 0x%x has form 0x%x, which is no location",
			     w.u->file->path, die->off, at, v.form);
	}
	return rc ? rc : w.n;
}
