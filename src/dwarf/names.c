/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Qualified names
 *
 * "std::vector<int>::size" is the name of a DIE behind the names of the scopes around it. A definition
 * outside its class, a concrete body and an inlined copy refer to the DIE that stands in the right place,
 * at the end of the chain of origins. DIEs do not know their parents, so a unit's scopes are listed when the
 * first name in it is asked for, as intervals of offsets:
 *
 *	0x2d  namespace std         [0x2d, 0x9c)   outer none
 *	0x34    class vector<int>   [0x34, 0x80)   outer 0
 *
 * The innermost scope of offset 0x50 is the last one that starts before it, or one around that. In C nothing
 * has a scope, and no list is made.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/walk.h"

#define NO_SCOPE UINT32_MAX

struct scope {
	uint64_t lo, hi; /* offsets in the unit's section: of the DIE, of the first one behind what is in it */
	uint32_t outer;
	uint16_t tag;
};

struct dw_scope_list {
	VEC(struct scope) v;
};

static bool language_has_scopes(uint16_t language)
{
	switch (language) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C17:
	case DW_LANG_C23:
	case DW_LANG_Mips_Assembler:
		return false;
	}
	return true;
}

enum { INSIDE = 1, SCOPE };

static uint8_t role_of(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
	case DW_TAG_subprogram:
		return SCOPE;
	}
	return INSIDE;
}

void dw_scope_list_free(struct dw_scope_list *list)
{
	if (list)
		VEC_FREE(&list->v);
	free(list);
}

/* A scope that the walk is inside. */
struct open_scope {
	uint64_t depth;
	uint32_t i;
};

static int list_scopes(const struct dw_unit *u, struct dw_scope_list *list, struct cairn_err *err)
{
	static const struct dw_wish wish = {.role = role_of};
	struct dw_walker w;
	VEC(struct open_scope) open = {0};
	bool ok = true;
	dw_walker_init(&w, &wish);
	int rc = dw_walker_enter(&w, u, err);
	while (ok && rc >= 0 && (rc = dw_walker_next(&w)) > 0) {
		uint64_t off = dw_off_in_section(dw_walker_off(&w));
		for (; open.n && open.p[open.n - 1].depth >= w.depth; open.n--)
			list->v.p[open.p[open.n - 1].i].hi = off;
		if (rc != SCOPE || !dw_walker_has_children(&w))
			continue;
		struct scope s = {.lo = off,
				  .hi = UINT64_MAX,
				  .outer = open.n ? open.p[open.n - 1].i : NO_SCOPE,
				  .tag = dw_walker_tag(&w)};
		struct open_scope inside = {.depth = w.depth, .i = (uint32_t)list->v.n};
		ok = list->v.n < NO_SCOPE && VEC_ADD(&list->v, s) && VEC_ADD(&open, inside);
	}
	dw_walker_fini(&w);
	VEC_FREE(&open);
	return ok ? rc : err_nomem(err, "scopes");
}

/* The unit's list, made when it is asked for first. */
static int scopes_of(const struct dw_unit *u, const struct dw_scope_list **ret, struct cairn_err *err)
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

/* The innermost scope around the DIE at @off. */
static uint32_t scope_at(const struct dw_scope_list *list, uint64_t off)
{
	size_t lo = 0, hi = list->v.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (list->v.p[mid].lo < off)
			lo = mid + 1;
		else
			hi = mid;
	}
	uint32_t i = lo ? (uint32_t)(lo - 1) : NO_SCOPE;
	while (i != NO_SCOPE && list->v.p[i].hi <= off)
		i = list->v.p[i].outer;
	return i;
}

/* snprintf at the end of what is there. */
struct text {
	char *buf;
	size_t size, len;
};

static void add(struct text *t, const char *s)
{
	size_t room = t->len < t->size ? t->size - t->len : 0;
	int n = snprintf(room ? t->buf + t->len : NULL, room, "%s", s);
	t->len += n > 0 ? (size_t)n : 0;
}

/* What a scope adds in front, "" when nothing. */
static void add_scope(struct text *t, const struct dw_die *die)
{
	const char *name = dw_str_deep(die, DW_AT_name);
	switch (die->tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
		add(t, name ? name : "(anonymous namespace)");
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
		add(t, name ? name : "(anonymous)");
		break;
	case DW_TAG_subprogram:
		if (!name)
			return;
		add(t, name);
		add(t, "()");
		break;
	default:
		return;
	}
	add(t, "::");
}

/* The DIE at the end of the chain of origins: the one that stands in the scope it belongs to. */
static int last_origin(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err)
{
	*ret = *die;
	for (int link = 0; link <= DW_ORIGIN_MAX; link++) {
		struct dw_die origin;
		int rc = dw_die_origin(ret, &origin, err);
		if (rc <= 0)
			return rc;
		*ret = origin;
	}
	return err_set(err, -EBADMSG, "%s: the origins of the DIE at 0x%" PRIx64 " form a ring",
		       die->unit->file->path, die->off);
}

/* Nested deeper than this is no program's; the outermost are then left out. */
enum { SCOPES_MAX = 64 };

static int add_scopes(struct text *t, const struct dw_unit *u, uint64_t off)
{
	const struct dw_scope_list *list;
	uint64_t around[SCOPES_MAX];
	size_t n = 0;
	int rc = scopes_of(u, &list, NULL);
	if (rc < 0)
		return rc;
	for (uint32_t i = scope_at(list, off); i != NO_SCOPE && n < SCOPES_MAX; i = list->v.p[i].outer)
		around[n++] = list->v.p[i].lo;
	while (rc >= 0 && n) {
		struct dw_die scope;
		rc = dw_die_parse(u, u->sec->p + around[--n], &scope, NULL);
		if (rc > 0)
			add_scope(t, &scope);
	}
	return rc;
}

int dw_qualified_name(const struct dwarf *dw, const struct dw_die *die, char *buf, size_t size)
{
	struct text t = {.buf = buf, .size = size};
	struct dw_die last;
	int rc = last_origin(die, &last, NULL);
	if (size)
		buf[0] = 0;
	if (rc >= 0 && language_has_scopes(last.unit->language))
		rc = add_scopes(&t, last.unit, dw_off_in_section(last.off));
	const char *name = dw_str_deep(die, DW_AT_name);
	add(&t, name ? name : "");
	return rc < 0 ? rc : t.len > INT32_MAX ? -EBADMSG : (int)t.len;
}
