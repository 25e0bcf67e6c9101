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
#include "dwarf/near.h"

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

/* An unsigned LEB128 of up to three bytes, which are there; false for a longer one. */
static inline bool take_short(const uint8_t **p, uint64_t *ret)
{
	const uint8_t *at = *p;
	*ret = at[0];
	*p = at + 1;
	if (at[0] < 0x80)
		return true;
	*ret = (at[0] & 0x7fu) | (uint32_t)at[1] << 7;
	*p = at + 2;
	if (at[1] < 0x80)
		return true;
	*ret = (at[0] & 0x7fu) | (at[1] & 0x7fu) << 7 | (uint32_t)at[2] << 14;
	*p = at + 3;
	return at[2] < 0x80;
}

/* What one entry can have: its kind, two addresses or numbers, and the length of its expression. */
enum { ENTRY_MAX = 1 + 8 + 3 + 3, VIEWS_MAX = 3 + 3 };

/*
 * Entries as nearly all of DWARF 5 are: an offset_pair behind a base_address, or a start_length, of short numbers, in code that was
 * kept. Returns what ended the walk; 0 at an entry that is for dw_list_next(), which says as well what is wrong with it.
 */
static int walk_usual(struct walk *w, struct dw_list *l)
{
	enum { OFFSET_PAIR = 4, BASE_ADDRESS = 6, START_LENGTH = 8 };
	const uint8_t *p = l->c.pos, *end = l->c.end, *views = w->views.pos;
	uint64_t dropped = dw_largest_address(w->u) - 1;
	if (l->format != DW_LIST_LOCATIONS || l->c.big_endian || w->u->addr_size != 8 || w->views.failed)
		return 0;
	while (end - p >= ENTRY_MAX) {
		struct dw_loc_entry e;
		uint64_t from = l->base, lo, n;
		uint8_t kind = *p++;
		if (kind == BASE_ADDRESS) {
			l->c.pos = p + 8;
			l->base = dw_load_u64(p);
			p += 8;
			continue;
		}
		if (kind == START_LENGTH) {
			from = lo = dw_load_u64(p);
			p += 8;
		} else if (kind == OFFSET_PAIR && take_short(&p, &lo)) {
			from = from ? from : lo;
			lo += l->base;
		} else {
			return 0;
		}
		if (!take_short(&p, &n))
			return 0;
		e.lo.v = lo;
		e.hi.v = (kind == START_LENGTH ? lo : l->base) + n;
		if (!take_short(&p, &e.expr_len) || e.expr_len > (size_t)(end - p) || from >= dropped || e.lo.v > e.hi.v)
			return 0;
		e.view_lo = e.view_hi = 0;
		e.has_views = w->has_views;
		if (e.has_views && (w->views.end - views < VIEWS_MAX || !take_short(&views, &e.view_lo) ||
				    !take_short(&views, &e.view_hi)))
			return 0;
		e.everywhere = false;
		e.expr = p;
		l->c.pos = p += e.expr_len;
		w->views.pos = views;
		w->n++;
		int rc = w->visit(w->ctx, &e);
		if (rc)
			return rc;
	}
	return 0;
}

static int walk_entries(struct walk *w, struct dw_list *l)
{
	struct pending_views views = {0};
	struct dw_bounds b;
	int kind, rc = 0;
	while (!rc) {
		rc = views.there ? 0 : walk_usual(w, l);
		if (!rc && dw_list_ends(l))
			return 0;
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

/* The offset that an attribute in the first run has, if it has one of 4 bytes. */
static inline bool near_offset(const struct dw_die *die, enum dw_slot slot, uint64_t *ret)
{
	struct dw_near n = die->abbrev->near[slot];
	if (n.form != DW_FORM_sec_offset || die->abbrev->first.fixed > die->unit->end - die->attrs)
		return false;
	*ret = dw_load_u32(die->attrs + n.off);
	return true;
}

/* The list and the views of a DIE as DWARF 5 mostly has them; false for others, which may be lists all the same. */
static inline bool find_usual(struct walk *w, const struct dw_die *die, struct dw_list *l)
{
	const struct dw_unit *u = w->u;
	const struct dw_section *s = &u->file->sec[DW_SEC_LOCLISTS];
	uint64_t off, views = 0;
	if (u->version < 5 || u->file->is_split || u->locations_at || !near_offset(die, DW_SLOT_LOCATION, &off) || off >= s->n)
		return false;
	w->has_views = die->abbrev->near[DW_SLOT_LOCVIEWS].form;
	if (w->has_views && (!near_offset(die, DW_SLOT_LOCVIEWS, &views) || views >= s->n))
		return false;
	l->u = u;
	l->format = DW_LIST_LOCATIONS;
	l->base = u->low_pc;
	l->c.end = s->p + s->n;
	l->c.src = &s->src;
	l->c.err = w->err;
	l->c.big_endian = l->c.failed = false;
	w->views = l->c;
	w->views.pos = s->p + views;
	l->c.pos = s->p + off;
	return true;
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
	struct walk w;
	struct dw_list usual;
	struct dw_value v;
	int rc;
	w.u = die->unit;
	w.visit = visit;
	w.ctx = ctx;
	w.err = err;
	w.n = 0;
	if (at == DW_AT_location && find_usual(&w, die, &usual)) {
		rc = walk_entries(&w, &usual);
		return rc ? rc : w.n;
	}
	w.has_views = false;
	w.views = (struct cursor){0};
	rc = at == DW_AT_location ? dw_attr_at(die, DW_SLOT_LOCATION, at, &v, err) : dw_attr(die, at, &v, err);
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
