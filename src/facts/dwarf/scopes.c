/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scopes: finds the scopes that enclose a DIE
 *
 * A DIE does not point at its parent, so its scope is found by its offset. A unit's scopes are
 * listed at the first query, in order, as intervals of offsets:
 *
 *	0x2d  namespace std         [0x2d, 0x9c)   outer none
 *	0x34    class vector<int>   [0x34, 0x80)   outer 0
 *	0x90    struct pair         [0x90, 0x9b)   outer 0
 *
 * and the innermost scope of offset 0x50 is the last one that starts before it, or one around that:
 * here "std::vector<int>". A class that is defined outside of its scope has DW_AT_specification. It
 * is in the scope of its declaration, which may be in another unit.
 *
 * The list is published with one compare-and-swap: of threads that make it at the same time, one
 * wins.
 */
#include "dwarf/scopes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/search.h"
#include "dwarf/constants.h"
#include "dwarf/walk.h"

#define NO_SCOPE UINT32_MAX

struct dw_scope_list {
	VEC(struct dw_scope) v;
};

bool dw_has_scopes(const struct dw_unit *u)
{
	if (dw_unit_is_c(u))
		return false;
	/* Partial units of dwz name no language: they have the DIEs of units that have scopes, too. */
	switch (u->language) {
	case DW_LANG_ObjC:
	case DW_LANG_OpenCL:
	case DW_LANG_RenderScript:
	case DW_LANG_Mips_Assembler:
		return false;
	}
	return true;
}

bool dw_is_scope(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
	case DW_TAG_union_type:
		return true;
	}
	return false;
}

/* ---- the list ---- */

enum { INSIDE = 1, SCOPE };

static uint8_t role_of(uint16_t tag)
{
	bool other = tag == DW_TAG_subprogram || tag == DW_TAG_enumeration_type;
	return other || dw_is_scope(tag) ? SCOPE : INSIDE;
}

/* A scope that the walk is inside. */
struct open_scope {
	uint64_t depth;
	uint32_t i;
};

struct lister {
	struct dw_walker w;
	struct dw_scope_list *list;
	VEC(struct open_scope) open;
};

static bool open_scope(struct lister *l)
{
	struct dw_die die = dw_walker_die(&l->w);
	bool is_function = die.tag == DW_TAG_subprogram;
	struct dw_scope s = {.lo = die.off,
			     .hi = UINT64_MAX,
			     .specification = is_function ? 0 : dw_ref(&die, DW_AT_specification),
			     .name = is_function ? NULL : dw_str_deep(&die, DW_AT_name),
			     .outer = l->open.n ? l->open.p[l->open.n - 1].i : NO_SCOPE,
			     .tag = die.tag};
	struct open_scope inside = {.depth = l->w.depth, .i = (uint32_t)l->list->v.n};
	return l->list->v.n < NO_SCOPE && VEC_ADD(&l->list->v, s) && VEC_ADD(&l->open, inside);
}

static int list_scopes(const struct dw_unit *u, struct dw_scope_list *list, struct cairn_err *err)
{
	static const struct dw_query query = {.role = role_of};
	struct lister l = {.list = list};
	bool ok = true;
	dw_walker_init(&l.w, &query);
	int rc = dw_walker_enter(&l.w, u, err);
	while (ok && rc >= 0 && (rc = dw_walker_next(&l.w)) > 0) {
		for (; l.open.n && l.open.p[l.open.n - 1].depth >= l.w.depth; l.open.n--)
			list->v.p[l.open.p[l.open.n - 1].i].hi = dw_walker_off(&l.w);
		if (rc == SCOPE && dw_walker_has_children(&l.w))
			ok = open_scope(&l);
	}
	dw_walker_fini(&l.w);
	VEC_FREE(&l.open);
	return ok ? rc : err_nomem(err, "scopes");
}

void dw_scope_list_free(struct dw_scope_list *list)
{
	if (list)
		VEC_FREE(&list->v);
	free(list);
}

static int list_of(const struct dw_unit *u, const struct dw_scope_list **ret, struct cairn_err *err)
{
	/* The unit is ours; only its users see it as constant. */
	struct dw_unit *own = (struct dw_unit *)u;
	struct dw_scope_list *none = NULL, *list = atomic_load(&own->scopes);
	if (!list) {
		list = calloc(1, sizeof(*list));
		int rc = list ? list_scopes(u, list, err) : err_nomem(err, "scopes");
		if (rc < 0) {
			dw_scope_list_free(list);
			return rc;
		}
		if (!atomic_compare_exchange_strong(&own->scopes, &none, list)) {
			dw_scope_list_free(list);
			list = none;
		}
	}
	*ret = list;
	return 0;
}

/* ---- looking up ---- */

static uint32_t innermost(const struct dw_scope_list *list, dw_off off)
{
	size_t lo = SEARCH(0, list->v.n, mid, list->v.p[mid].lo < off);
	uint32_t i = lo ? (uint32_t)(lo - 1) : NO_SCOPE;
	while (i != NO_SCOPE && list->v.p[i].hi <= off)
		i = list->v.p[i].outer;
	return i;
}

/* The list that @off is in, and the innermost scope there; NO_SCOPE for none. */
static int enter(const struct dwarf *dw, dw_off off, const struct dw_scope_list **ret_list,
		 uint32_t *ret, struct cairn_err *err)
{
	const struct dw_unit *u = off ? dwarf_unit_of(dw, off) : NULL;
	*ret = NO_SCOPE;
	if (!u || !dw_has_scopes(u))
		return 0;
	int rc = list_of(u, ret_list, err);
	if (rc >= 0)
		*ret = innermost(*ret_list, off);
	return rc;
}

int dw_scopes_around(const struct dwarf *dw, dw_off off, const struct dw_scope *ret[DW_SCOPES_MAX],
		     struct cairn_err *err)
{
	const struct dw_scope_list *list = NULL;
	uint32_t i;
	int n = 0, rc = enter(dw, off, &list, &i, err);
	while (rc >= 0 && i != NO_SCOPE) {
		const struct dw_scope *s = &list->v.p[i];
		if (n == DW_SCOPES_MAX)
			return err_set(err, -ERANGE, "%s: a DIE in more than %d scopes",
				       dw->file[0].path, DW_SCOPES_MAX);
		ret[n++] = s;
		i = s->outer;
		if (s->specification)
			rc = enter(dw, s->specification, &list, &i, err);
	}
	return rc < 0 ? rc : n;
}
