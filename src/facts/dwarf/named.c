/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of one name, without an index
 *
 * The links from a name to its DIEs point the wrong way: an inlined copy refers to the abstract
 * function, which has the name. Within a unit that is simple: scan it, mark the DIEs with the name,
 * then mark the DIEs that refer to a marked one, until nothing changes. Most units have no marked
 * DIE and are dropped.
 *
 * Links to another unit (LTO, partial units of dwz, type units) are remembered: pairs of DIE and
 * origin. After the first round all marks are known. Then units with a link to a marked DIE of
 * another unit are scanned once more, now with those links counting. The rounds are repeated while
 * they add marks; a chain of links has at most DW_ORIGIN_MAX.
 *
 *	round 0    unit 7: "list_add" at 0x1000 marked
 *	           unit 9: copy at 0x5000 ──► 0x1000 remembered
 *	round 1    unit 9 again: 0x5000 marked, and the DIEs that refer to 0x5000 in unit 9
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/pages.h"
#include "base/pool.h"
#include "base/search.h"
#include "dwarf/constants.h"
#include "dwarf/scan.h"

struct link {
	dw_off die, origin;
};

/* The state of a unit. */
struct unit_state {
	VEC(struct link) links; /* to other units */
	struct dw_func
		*kept; /* marked entries and those around them; parents are indices in here */
	size_t n_kept, n_marked;
	bool again;
};

/* Scratch memory of a worker. */
struct worker {
	struct dw_scanner scanner;
	VEC(dw_off) marked;
	VEC(uint32_t) place; /* of an entry among the kept ones */
};

struct search {
	const struct dwarf *dw;
	struct dw_name_filter filter;
	struct unit_state *units;
	struct worker *workers;
	struct map marked; /* DIEs of the rounds before */
};

/* ---- within a unit ---- */

static bool in_unit(const struct dw_unit *u, dw_off off)
{
	dw_off first = (uint64_t)(u->dies - u->sec->p) | u->tag;
	dw_off end = (uint64_t)(u->end - u->sec->p) | u->tag;
	return off >= first && off < end;
}

static bool is_in(const dw_off *p, size_t n, dw_off off)
{
	size_t lo = SEARCH(0, n, mid, p[mid] < off);
	return lo < n && p[lo] == off;
}

/* The marked DIEs, in order of offset as the entries are. */
static bool list_marked(struct worker *w)
{
	w->marked.n = 0;
	for (size_t i = 0; i < w->scanner.funcs.n; i++) {
		const struct dw_func *f = &w->scanner.funcs.p[i];
		if ((f->flags & DW_FUNC_MATCHED) && !VEC_ADD(&w->marked, f->die))
			return false;
	}
	return true;
}

/* Marks the DIEs that refer to a marked one. */
static bool follow_back(struct worker *w)
{
	for (int link = 0; link < DW_ORIGIN_MAX; link++) {
		bool changed = false;
		if (!list_marked(w))
			return false;
		for (size_t i = 0; i < w->scanner.funcs.n; i++) {
			struct dw_func *f = &w->scanner.funcs.p[i];
			if ((f->flags & DW_FUNC_MATCHED) || !f->origin ||
			    !is_in(w->marked.p, w->marked.n, f->origin))
				continue;
			f->flags |= DW_FUNC_MATCHED;
			changed = true;
		}
		if (!changed)
			return true;
	}
	return list_marked(w);
}

/* Links to other units: remember them in the first round, follow them in the later ones. */
static bool look_at_links(struct search *s, struct worker *w, const struct dw_unit *u,
			  struct unit_state *state)
{
	for (size_t i = 0; i < w->scanner.funcs.n; i++) {
		struct dw_func *f = &w->scanner.funcs.p[i];
		uint64_t found;
		if (!f->origin || in_unit(u, f->origin))
			continue;
		if (state->again) {
			if (map_get(&s->marked, f->origin, &found)) {
				f->flags |= DW_FUNC_MATCHED;
				w->scanner.any_matched = true;
			}
			continue;
		}
		struct link link = {f->die, f->origin};
		if (!VEC_ADD(&state->links, link))
			return false;
	}
	return true;
}

static void read_kept_name(const struct dwarf *dw, struct dw_func *f)
{
	struct dw_die die;
	f->name = dw_die_at(dw, f->die, &die, NULL) > 0 ? dw_str(&die, DW_AT_name) : NULL;
}

/* Copies the marked entries and the chains of entries around them to the unit's state. */
static bool keep(struct search *s, struct worker *w, struct unit_state *state)
{
	struct dw_func *p = w->scanner.funcs.p;
	size_t n = w->scanner.funcs.n, n_kept = 0;
	state->n_marked = w->marked.n;
	/*
	 * Parents stand before their children, so one pass from the back reaches the whole chain.
	 */
	for (size_t i = n; i-- > 0;) {
		if (p[i].flags & DW_FUNC_MATCHED)
			p[i].flags |= DW_FUNC_KEPT;
		if (!(p[i].flags & DW_FUNC_KEPT))
			continue;
		n_kept++;
		if (p[i].parent != DW_FUNC_NONE)
			p[p[i].parent].flags |= DW_FUNC_KEPT;
	}
	free(state->kept);
	state->kept = calloc(n_kept ? n_kept : 1, sizeof(*state->kept));
	state->n_kept = 0;
	w->place.n = 0;
	if (!state->kept)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!VEC_ADD(&w->place, (uint32_t)state->n_kept))
			return false;
		if (!(p[i].flags & DW_FUNC_KEPT))
			continue;
		struct dw_func *f = &state->kept[state->n_kept++];
		*f = p[i];
		f->flags &= (uint8_t)~DW_FUNC_KEPT;
		if (f->parent != DW_FUNC_NONE)
			f->parent = w->place.p[f->parent];
		read_kept_name(s->dw, f);
	}
	return true;
}

static int search_unit(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct search *s = ctx;
	struct worker *w = &s->workers[worker];
	struct unit_state *state = &s->units[item];
	const struct dw_unit *u = &s->dw->units[item];
	uint64_t n_dies = w->scanner.n_dies;
	int rc = dw_scan_unit(&w->scanner, u, err);
	if (rc < 0)
		return rc;
	if (state->again)
		w->scanner.n_dies = n_dies; /* counted in round 0 */
	if (!look_at_links(s, w, u, state))
		return err_nomem(err, "references between units");
	if (!w->scanner.any_matched)
		return 0;
	return follow_back(w) && keep(s, w, state) ? 0 : err_nomem(err, "functions of a name");
}

/* ---- between units ---- */

struct round {
	struct search *s;
	VEC(size_t) items;
};

static int search_item(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct round *r = ctx;
	return search_unit(r->s, r->items.p[item], worker, err);
}

static int note_marked(struct search *s, struct cairn_err *err)
{
	for (size_t i = 0; i < s->dw->n_units; i++) {
		const struct unit_state *state = &s->units[i];
		for (size_t k = 0; k < state->n_kept; k++)
			if ((state->kept[k].flags & DW_FUNC_MATCHED) &&
			    map_put(&s->marked, state->kept[k].die, 1) < 0)
				return err_nomem(err, "functions of a name");
	}
	return 0;
}

/* Units with a link to something marked from something that is not. */
static int units_to_repeat(struct search *s, struct round *r, struct cairn_err *err)
{
	uint64_t found;
	r->items.n = 0;
	for (size_t i = 0; i < s->dw->n_units; i++) {
		struct unit_state *state = &s->units[i];
		bool again = false;
		for (size_t k = 0; k < state->links.n && !again; k++)
			again = map_get(&s->marked, state->links.p[k].origin, &found) &&
				!map_get(&s->marked, state->links.p[k].die, &found);
		state->again = again;
		if (again && !VEC_ADD(&r->items, i))
			return err_nomem(err, "functions of a name");
	}
	return 0;
}

static int search_rounds(struct search *s, unsigned int threads, struct cairn_err *err)
{
	struct round r = {.s = s};
	int rc = pool_run(s->dw->n_units, threads, search_unit, s, err);
	for (int round = 0; rc >= 0 && round < DW_ORIGIN_MAX; round++) {
		rc = note_marked(s, err);
		if (rc >= 0)
			rc = units_to_repeat(s, &r, err);
		if (rc < 0 || !r.items.n)
			break;
		rc = pool_run(r.items.n, threads, search_item, &r, err);
	}
	VEC_FREE(&r.items);
	return rc;
}

static int join(struct search *s, struct dw_func_index *ret, struct cairn_err *err)
{
	size_t n = 0, at = 0;
	for (size_t i = 0; i < s->dw->n_units; i++)
		n += s->units[i].n_kept;
	if (n >= DW_FUNC_NONE)
		return err_set(err, -ERANGE, "%s: more than %u functions of one name",
			       s->dw->file[0].path, DW_FUNC_NONE - 1);
	struct dw_func *p = pages_zeroed(n + 1, sizeof(*p));
	if (!p)
		return err_nomem(err, "functions of a name");
	for (size_t i = 0; i < s->dw->n_units; i++) {
		const struct unit_state *state = &s->units[i];
		size_t base = at;
		for (size_t k = 0; k < state->n_kept; k++) {
			struct dw_func *f = &p[at++];
			*f = state->kept[k];
			f->flags &= (uint8_t)~DW_FUNC_MATCHED;
			if (f->parent != DW_FUNC_NONE)
				f->parent += (uint32_t)base;
		}
	}
	*ret = (struct dw_func_index){.p = p, .n = n, .cap = n + 1};
	return 0;
}

static void search_fini(struct search *s, unsigned int width)
{
	for (size_t i = 0; s->units && i < s->dw->n_units; i++) {
		VEC_FREE(&s->units[i].links);
		free(s->units[i].kept);
	}
	for (unsigned int i = 0; s->workers && i < width; i++) {
		dw_scanner_fini(&s->workers[i].scanner);
		VEC_FREE(&s->workers[i].marked);
		VEC_FREE(&s->workers[i].place);
	}
	free(s->units);
	free(s->workers);
	map_fini(&s->marked);
	dw_name_filter_fini(&s->filter);
}

int dwarf_functions_named(const struct dwarf *dw, unsigned int threads, const char *name,
			  struct dw_func_index *ret, struct cairn_err *err)
{
	unsigned int width = pool_width(threads);
	struct search s = {.dw = dw};
	map_init(&s.marked);
	s.units = calloc(dw->n_units + 1, sizeof(*s.units));
	s.workers = calloc(width, sizeof(*s.workers));
	int rc = dw_name_filter_init(&s.filter, dw, name) && s.units && s.workers
			 ? 0
			 : err_nomem(err, "functions of a name");
	for (unsigned int i = 0; rc >= 0 && i < width; i++)
		dw_scanner_init(&s.workers[i].scanner, &s.filter);
	if (rc >= 0)
		rc = search_rounds(&s, threads, err);
	if (rc >= 0)
		rc = join(&s, ret, err);
	for (unsigned int i = 0; rc >= 0 && i < width; i++)
		ret->n_dies += s.workers[i].scanner.n_dies;
	search_fini(&s, width);
	return rc;
}
