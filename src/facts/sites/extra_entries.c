/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/extra_entries.h"

#include <errno.h>

#include "base/err.h"
#include "base/search.h"
#include "base/vec.h"
#include "dwarf/constants.h"
#include "dwarf/near.h"

/*
 * The distance from an address forward to the nearest code of a copy; 0 when the address is in it.
 */
static uint64_t distance_to(const struct built_site *b, uint64_t at)
{
	uint64_t nearest = UINT64_MAX;
	for (uint32_t i = 0; i < b->n_ranges; i++) {
		struct dw_range r = b->ranges[i];
		uint64_t d = r.lo.v > at ? r.lo.v - at : r.hi.v > at ? 0 : UINT64_MAX;
		if (d < nearest)
			nearest = d;
	}
	return nearest;
}

/*
 * A row that is not the first entry of any copy is an extra entry of the innermost copy around it.
 * An instruction of the caller may have been moved to where the copy begins, as with
 * DW_AT_entry_pc. The row then belongs to the copy whose code begins next after it.
 */
struct owner_search {
	const struct site_env *env;
	const struct group *group;
	struct built_site *sites; /* one for each of the group's entries */
	/*
	 * of the current unit, those with code; in a separate array because every row is compared
	 * with all of them
	 */
	struct first_entries *firsts;
	/*
	 * Entries, and rows, of the current unit: a function may have 50,000 of each in all units.
	 */
	uint32_t unit;
	size_t first, end, first_row, end_row;
};

static uint32_t unit_of(const struct owner_search *s, size_t i)
{
	return i < s->group->entries.n ? s->env->index->p[s->group->entries.p[i]].unit
				       : DW_FUNC_NONE;
}

/* Returns 0 or -ENOMEM. */
static int list_firsts(struct owner_search *s)
{
	s->firsts->v.n = 0;
	for (size_t i = s->first; i < s->end; i++) {
		struct built_site *b = &s->sites[i];
		struct first_entry f = {.at = b->site.at, .view = b->view, .site = b};
		if (b->site.n_shared && !VEC_ADD(&s->firsts->v, f))
			return -ENOMEM;
	}
	return 0;
}

/*
 * Rows come unit by unit, and entries in order of DIE, so those of a unit are together. Returns 0
 * or -ENOMEM.
 */
static int go_to_unit(struct owner_search *s, size_t row)
{
	const struct group *g = s->group;
	s->unit = g->rows.p[row].unit;
	s->first = s->end = SEARCH(0, g->entries.n, i, unit_of(s, i) < s->unit);
	while (s->end < g->entries.n && unit_of(s, s->end) == s->unit)
		s->end++;
	s->first_row = s->end_row = row;
	while (s->end_row < g->rows.n && g->rows.p[s->end_row].unit == s->unit)
		s->end_row++;
	return list_firsts(s);
}

/* True if the row is the first entry of a copy; the copy then records the row's facts. */
static bool is_first_entry(const struct owner_search *s, const struct entry_row *row)
{
	for (size_t i = 0; i < s->firsts->v.n; i++) {
		const struct first_entry *f = &s->firsts->v.p[i];
		if (f->at.v != row->at.v || f->view != row->view)
			continue;
		f->site->around = row->around;
		return true;
	}
	return false;
}

struct holding {
	struct cairn_vaddr at;
	bool holds;
};

static int look_for_address(void *arg, struct dw_range r)
{
	struct holding *h = arg;
	h->holds |= h->at.v >= r.lo.v && h->at.v < r.hi.v;
	return 0;
}

/* Whether the function around a copy has code at an address. */
static bool container_holds(const struct owner_search *s, uint32_t container, struct cairn_vaddr at)
{
	struct holding h = {.at = at};
	struct dw_die die;
	if (container == DW_FUNC_NONE ||
	    dw_func_die(s->env->dw, &s->env->index->p[container], &die, NULL) != 1 ||
	    dw_ranges(&die, look_for_address, &h, NULL) < 0)
		return false;
	return h.holds;
}

/* How far from an address the nearest code of a copy is, or its site where it has no code. */
static uint64_t distance_around(const struct built_site *b, uint64_t at)
{
	uint64_t nearest = distance_to(b, at), site = b->site.at.v;
	for (uint32_t i = 0; i < b->n_ranges; i++)
		if (b->ranges[i].hi.v <= at && at - b->ranges[i].hi.v < nearest)
			nearest = at - b->ranges[i].hi.v;
	return b->n_ranges ? nearest : site > at ? site - at : at - site;
}

/* Entries of one container are adjacent, so it is queried once. */
struct container {
	uint32_t entry;
	bool is_known, holds;
};

/* Whether a copy is in the function whose code a row is in. */
static bool is_in_same_function(const struct owner_search *s, struct container *c,
				const struct built_site *b, struct cairn_vaddr at)
{
	if (!c->is_known || c->entry != b->container)
		*c = (struct container){.entry = b->container,
					.is_known = true,
					.holds = container_holds(s, b->container, at)};
	return c->holds;
}

static bool is_copy(const struct owner_search *s, size_t i)
{
	return s->env->index->p[s->group->entries.p[i]].flags & DW_FUNC_INLINED &&
	       s->sites[i].site.n_shared;
}

/* Code farther away than a few instructions is another copy's. */
enum { FAR = 64 };

static uint32_t owner_ahead(const struct owner_search *s, const struct entry_row *row)
{
	uint32_t owner = DW_FUNC_NONE;
	uint64_t best = FAR;
	struct container container = {0};
	for (size_t i = s->first; i < s->end; i++) {
		if (!is_copy(s, i))
			continue;
		uint64_t distance = distance_to(&s->sites[i], row->at.v);
		/*
		 * Entries are in order of DIE: of copies inside one another the last one is the
		 * innermost.
		 */
		if (distance <= best &&
		    (!distance || is_in_same_function(s, &container, &s->sites[i], row->at))) {
			best = distance;
			owner = s->group->entries.p[i];
		}
	}
	return owner;
}

static bool is_called_at(const struct built_site *b, const struct entry_row *row)
{
	return dw_udata_at(&b->die, DW_SLOT_CALL_LINE, DW_AT_call_line, 0) == row->call_line &&
	       dw_udata_at(&b->die, DW_SLOT_CALL_COLUMN, DW_AT_call_column, 0) == row->call_column;
}

/* The nearest copy in the same function; with @is_called, of those called at the row's position. */
static uint32_t nearest_copy(const struct owner_search *s, const struct entry_row *row,
			     bool is_called)
{
	uint32_t owner = DW_FUNC_NONE;
	uint64_t best = UINT64_MAX;
	struct container container = {0};
	for (size_t i = s->first; i < s->end; i++) {
		if (!is_copy(s, i) || (is_called && !is_called_at(&s->sites[i], row)) ||
		    !is_in_same_function(s, &container, &s->sites[i], row->at))
			continue;
		uint64_t distance = distance_around(&s->sites[i], row->at.v);
		if (distance <= best) {
			best = distance;
			owner = s->group->entries.p[i];
		}
	}
	return owner;
}

/*
 * An entry that no code of a copy follows: on this path all of the copy's work was known, or is
 * done elsewhere, and only the marker is left. It belongs to the nearest copy in the same function,
 * wherever the compiler put that copy's code.
 */
static uint32_t owner_around(const struct owner_search *s, const struct entry_row *row)
{
	return nearest_copy(s, row, false);
}

/*
 * GCC puts the call's own statement before the entry's row. With that statement, a row without code
 * can be separated from the entry of another call whose code follows: the row belongs to the
 * nearest copy that is called there.
 */
static uint32_t owner_called_at(const struct owner_search *s, const struct entry_row *row)
{
	return row->call_line ? nearest_copy(s, row, true) : DW_FUNC_NONE;
}

static size_t site_of(const struct owner_search *s, uint32_t entry)
{
	size_t i = s->first;
	while (i < s->end && s->group->entries.p[i] != entry)
		i++;
	return i;
}

/* The copy around a part that is its head; @part where there is none. */
static uint32_t head_of(const struct owner_search *s, uint32_t part)
{
	uint32_t at = s->env->index->p[part].parent;
	while (at != DW_FUNC_NONE && s->env->index->p[at].flags & DW_FUNC_INLINED) {
		size_t i = site_of(s, at);
		if (i < s->end && s->sites[i].site.n_shared &&
		    s->sites[i].site.kind == CAIRN_SITE_INLINED)
			return at;
		at = s->env->index->p[at].parent;
	}
	return part;
}

static bool has_row_after(const struct owner_search *s, const struct entry_row *row)
{
	for (size_t i = s->first_row; i < s->end_row; i++)
		if (s->group->rows.p[i].at.v == row->at.v && s->group->rows.p[i].view > row->view)
			return true;
	return false;
}

/*
 * A copy and its split part both carry a marker at the declaration's position
 * (quirks/split_part.h). If the copy's early test is constant, both markers share an address; the
 * first belongs to the copy.
 */
static uint32_t owner_of(const struct owner_search *s, const struct entry_row *row)
{
	uint32_t owner = owner_ahead(s, row), called = DW_FUNC_NONE;
	size_t i = owner == DW_FUNC_NONE ? s->end : site_of(s, owner);
	if (i == s->end ||
	    (distance_to(&s->sites[i], row->at.v) && !is_called_at(&s->sites[i], row)))
		called = owner_called_at(s, row);
	if (called != DW_FUNC_NONE)
		owner = called;
	else if (owner == DW_FUNC_NONE)
		owner = owner_around(s, row);
	if (owner == DW_FUNC_NONE)
		return owner;
	i = site_of(s, owner);
	bool is_part = i < s->end && s->sites[i].site.kind == CAIRN_SITE_PART;
	return is_part && has_row_after(s, row) ? head_of(s, owner) : owner;
}

/*
 * The first view at the row's address that belongs to the row and not to an earlier entry: that
 * entry's arguments begin at its own view or at the next one.
 */
static uint64_t view_from(const struct owner_search *s, const struct entry_row *row)
{
	uint64_t from = 0;
	for (size_t i = s->first_row; i < s->end_row; i++) {
		const struct entry_row *r = &s->group->rows.p[i];
		if (r->at.v == row->at.v && r->view < row->view && r->view + 2 > from)
			from = r->view + 2;
	}
	return from;
}

/* Append requests for the extra entries of @group's copies. */
static int add_extra(struct owner_search *s, struct site_requests *ret, struct cairn_err *err)
{
	if (s->group->from_macro)
		return 0;
	for (size_t i = 0; i < s->group->rows.n; i++) {
		const struct entry_row *row = &s->group->rows.p[i];
		if ((!i || row->unit != s->unit) && go_to_unit(s, i) < 0)
			return err_nomem(err, "sites");
		uint32_t owner = is_first_entry(s, row) ? DW_FUNC_NONE : owner_of(s, row);
		if (owner == DW_FUNC_NONE)
			continue;
		struct site_request r = {.entry = owner,
					 .has_row = true,
					 .at = row->at,
					 .view = row->view,
					 .around = row->around,
					 .view_from = view_from(s, row)};
		if (!VEC_ADD(&ret->v, r))
			return err_nomem(err, "sites");
	}
	return 0;
}

/* Append requests for the other CFG entries of copies without an entry. */
static int add_ways(const struct owner_search *s, struct site_requests *ret, struct cairn_err *err)
{
	for (size_t i = 0; i < s->group->entries.n; i++)
		for (unsigned int k = 0; k < s->sites[i].n_cfg_entries; k++) {
			struct site_request r = {.entry = s->group->entries.p[i],
						 .is_cfg_entry = true,
						 .at = s->sites[i].cfg_entries[k]};
			if (!VEC_ADD(&ret->v, r))
				return err_nomem(err, "sites");
		}
	return 0;
}

int extra_request(const struct site_env *env, const struct group *group, struct built_site *sites,
		  struct first_entries *scratch, struct site_requests *ret, struct cairn_err *err)
{
	struct owner_search s = {.env = env, .group = group, .sites = sites, .firsts = scratch};
	int rc = add_ways(&s, ret, err);
	return rc < 0 ? rc : add_extra(&s, ret, err);
}
