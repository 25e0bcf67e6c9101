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

/* Length and expression behind the bounds. */
static bool read_expr(struct dw_list *l, struct dw_loc_entry *e)
{
	e->expr_len = l->format == DW_LIST_LOCATIONS ? cur_uleb(&l->c) : cur_u16(&l->c);
	e->expr = cur_bytes(&l->c, e->expr_len);
	return !l->c.failed;
}

/* The views that the entry in front of this one gave; .lo and .hi, when there. */
struct pending_views {
	bool there;
	struct dw_bounds pair;
};

static int read_entry(struct walk *w, struct dw_list *l, int kind, const struct dw_bounds *b,
		      struct pending_views *views)
{
	struct dw_loc_entry e = {.everywhere = true};
	if (kind == DW_ENTRY_VIEWS) {
		*views = (struct pending_views){.there = true, .pair = *b};
		return 0;
	}
	if (kind == DW_ENTRY_DEFAULT)
		return read_expr(l, &e) ? deliver(w, &e) : -EBADMSG;
	e = (struct dw_loc_entry){.lo = {b->lo}, .hi = {b->hi}};
	if (!read_expr(l, &e))
		return -EBADMSG;
	if (views->there) {
		e.has_views = true;
		e.view_lo = views->pair.lo;
		e.view_hi = views->pair.hi;
		views->there = false;
	}
	return found(w, b->from, &e);
}

/* The views of the next entry, when both are short. */
static inline bool take_usual_views(struct walk *w, struct dw_loc_entry *e)
{
	const uint8_t *p = w->views.pos;
	if (!w->has_views)
		return true;
	e->has_views = true;
	if (w->views.failed || !cur_uleb_short(&p, w->views.end, &e->view_lo) ||
	    !cur_uleb_short(&p, w->views.end, &e->view_hi))
		return false;
	w->views.pos = p;
	return true;
}

/*
 * Entries as nearly all are: bounds and expression of short lengths, in code that was kept. Returns what ended the walk; 0 at
 * one that is for read_entry().
 */
static int walk_usual(struct walk *w, struct dw_list *l)
{
	const uint8_t *p = l->c.pos;
	struct dw_bounds b;
	int rc = 0;
	while (!rc && dw_list_usual(l, &p, &b) && b.lo <= b.hi && b.from < dw_largest_address(w->u) - 1) {
		struct dw_loc_entry e = {.lo = {b.lo}, .hi = {b.hi}};
		if (!cur_uleb_short(&p, l->c.end, &e.expr_len) || e.expr_len > (size_t)(l->c.end - p) ||
		    !take_usual_views(w, &e))
			break;
		e.expr = p;
		l->c.pos = p += e.expr_len;
		w->n++;
		rc = w->visit(w->ctx, &e);
	}
	return rc;
}

static int walk_entries(struct walk *w, struct dw_list *l)
{
	struct pending_views views = {0};
	struct dw_bounds b;
	int kind, rc = 0;
	while (!rc) {
		rc = views.there ? 0 : walk_usual(w, l);
		kind = rc ? 0 : dw_list_next(l, &b);
		if (kind <= 0)
			return rc ? rc : kind;
		rc = read_entry(w, l, kind, &b, &views);
	}
	return rc;
}

/* Where the view pairs of this attribute's list are: in the section of the list. */
static int find_views(struct walk *w, const struct dw_die *die, uint16_t at)
{
	struct dw_value v;
	struct dw_list views;
	int rc = at == DW_AT_location ? dw_attr(die, DW_AT_GNU_locviews, &v, w->err) : 0;
	if (rc <= 0)
		return rc;
	bool is_offset = v.cls == DW_CLASS_SECOFF || v.cls == DW_CLASS_UDATA;
	if (!is_offset || v.form == DW_FORM_loclistx)
		return err_set(w->err, -EBADMSG,
			       "%s: DIE at 0x%" PRIx64 ": DW_AT_GNU_locviews has form 0x%x",
			       w->u->file->path, die->off, v.form);
	/* In a .dwo file of DWARF 5 GCC counts from behind the header (GCC 12; docs/findings/gcc-split-view-offsets.md). */
	if (w->u->file->is_split && w->u->version >= 5)
		v.u += w->u->loclists_base - w->u->locations_at;
	rc = dw_list_of(w->u, DW_LOCATIONS, &v, &views, w->err);
	w->has_views = rc > 0;
	w->views = views.c;
	return rc;
}

static int walk_list(struct walk *w, const struct dw_die *die, uint16_t at,
		     const struct dw_value *v)
{
	struct dw_list list;
	int rc = find_views(w, die, at);
	if (rc >= 0)
		rc = dw_list_of(w->u, DW_LOCATIONS, v, &list, w->err);
	return rc < 0 ? rc : walk_entries(w, &list);
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
	} else if (dw_is_list(w.u, &v)) {
		rc = walk_list(&w, die, at, &v);
	} else {
		rc = err_set(err, -EBADMSG,
			     "%s: DIE at 0x%" PRIx64
			     ": attribute 0x%x has form 0x%x, which is no location",
			     w.u->file->path, die->off, at, v.form);
	}
	return rc ? rc : w.n;
}
