/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the entries of a location attribute one by one
 *
 *	struct dw_loc_list l;
 *	struct dw_loc_entry e;
 *	int rc = dw_loc_begin(&l, &die, DW_AT_location, err);
 *	while (rc > 0 && (rc = dw_loc_next(&l, &e)) > 0)
 *		...
 *
 * The entries are those of dw_locations(), for callers that read so many lists that a call for each
 * entry counts.
 */
#ifndef DWARF_LOCLISTS_H
#define DWARF_LOCLISTS_H

#include <errno.h>

#include "dwarf/lists.h"

struct dw_loc_list {
	struct dw_list list;
	struct cursor views; /* at the pair of the next entry */
	bool has_views;
	bool is_single; /* list.c holds the bytes of the only expression */
	bool is_told;   /* which was read */
	bool is_usual;  /* entries are tried as nearly all of DWARF 5 are, see dw_loc_usual() */
	/* The views that the entry before this one gave. */
	bool has_pair;
	struct dw_bounds pair;
};

/*
 * dw_loc_begin - go to the entries of a location attribute
 *
 * Returns 1; 0 when the attribute is absent; as dw_locations().
 */
int dw_loc_begin(struct dw_loc_list *l, const struct dw_die *die, uint16_t at,
		 struct cairn_err *err);

/* dw_loc_next() of an entry that is not usual, and of one with which something is wrong. */
int dw_loc_next_unusual(struct dw_loc_list *l, struct dw_loc_entry *ret);

/* An unsigned LEB128 of up to three bytes, which are there; false for a longer one. */
static inline bool dw_loc_short(const uint8_t **p, uint64_t *ret)
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

/*
 * An entry as nearly all of DWARF 5 are: an offset_pair after a base_address, or a start_length, of
 * short numbers, in code that was kept. Returns 1, 0 at the end of the list; -EAGAIN for any other
 * entry, which is not read.
 */
static inline int dw_loc_usual(struct dw_loc_list *l, struct dw_loc_entry *e)
{
	enum { END = 0, OFFSET_PAIR = 4, BASE_ADDRESS = 6, START_LENGTH = 8 };
	/*
	 * The largest size of one entry: its kind, two addresses or numbers, and the length of its
	 * expression.
	 */
	enum { ENTRY_MAX = 1 + 8 + 3 + 3, VIEWS_MAX = 3 + 3 };
	const uint8_t *p = l->list.c.pos, *end = l->list.c.end, *views = l->views.pos;
	uint64_t base = l->list.base, from, lo, n;
	while (end - p >= ENTRY_MAX && *p == BASE_ADDRESS) {
		l->list.base = base = dw_load_u64(p + 1);
		l->list.c.pos = p += 1 + 8;
	}
	if (end - p < ENTRY_MAX)
		return -EAGAIN;
	uint8_t kind = *p++;
	if (kind == OFFSET_PAIR && dw_loc_short(&p, &lo)) {
		from = base ? base : lo;
		lo += base;
	} else if (kind == START_LENGTH) {
		from = base = lo = dw_load_u64(p);
		p += 8;
	} else {
		return kind == END ? 0 : -EAGAIN;
	}
	if (!dw_loc_short(&p, &n) || !dw_loc_short(&p, &e->expr_len) ||
	    e->expr_len > (size_t)(end - p))
		return -EAGAIN;
	e->lo.v = lo;
	e->hi.v = base + n;
	if (from >= UINT64_MAX - 1 || lo > e->hi.v)
		return -EAGAIN;
	e->view_lo = e->view_hi = 0;
	e->has_views = l->has_views;
	if (e->has_views &&
	    (l->views.end - views < VIEWS_MAX || !dw_loc_short(&views, &e->view_lo) ||
	     !dw_loc_short(&views, &e->view_hi)))
		return -EAGAIN;
	e->everywhere = false;
	e->expr = p;
	l->list.c.pos = p + e->expr_len;
	l->views.pos = views;
	return 1;
}

/* The next entry. Returns 1 and *@ret, 0 after the last, -EBADMSG. */
static inline int dw_loc_next(struct dw_loc_list *l, struct dw_loc_entry *ret)
{
	int rc = l->is_usual ? dw_loc_usual(l, ret) : -EAGAIN;
	return rc == -EAGAIN ? dw_loc_next_unusual(l, ret) : rc;
}

#endif
