/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Qualified names of types
 *
 * A DIE does not point at its parent, so where a type stands is found by place: a unit's scopes
 * (namespaces, classes, and functions, which hide what is in them) are listed once, in order, as
 * intervals of offsets
 *
 *	0x2d  namespace std         [0x2d, 0x9c)   parent none
 *	0x34    class vector<int>   [0x34, 0x80)   parent 0
 *	0x90    struct pair         [0x90, 0x9b)   parent 0
 *
 * and the innermost scope of offset 0x50 is the last one that starts before it, or one of that
 * one's parents: here "std::vector<int>". A class that is defined outside of its scope says so by
 * DW_AT_specification, and stands where its declaration does.
 *
 * The walk that makes the list goes over the bytes once and keeps its own stack; a nesting of a
 * million costs a million entries on the heap.
 */
#include "base/err.h"
#include "dwarf/types_impl.h"

#include <errno.h>

/* ---- walking ---- */

struct dw_walk dw_walk_of(const struct dw_unit *u, struct cairn_err *err)
{
	return (struct dw_walk){.unit = u, .p = u->dies, .err = err};
}

int dw_walk_next(struct dw_walk *w, struct dw_die *ret)
{
	if (w->p >= w->unit->end)
		return DW_WALK_END;
	int rc = dw_die_parse(w->unit, w->p, ret, w->err);
	if (rc < 0)
		return rc;
	struct cursor c = dw_unit_cursor(w->unit, rc ? ret->attrs : w->p, w->err);
	if (rc)
		dw_abbrev_skip(w->unit, ret->abbrev, &c);
	else
		cur_uleb(&c); /* a null may be written long */
	if (c.failed)
		return -EBADMSG;
	w->p = c.pos;
	return rc ? DW_WALK_DIE : DW_WALK_NULL;
}

int dw_walk_skip_children(struct dw_walk *w, const struct dw_die *die)
{
	if (!die->has_children || dw_die_jump(die, w->p, &w->p))
		return 0;
	for (uint64_t depth = 1; depth;) {
		struct dw_die in;
		int rc = dw_walk_next(w, &in);
		if (rc < 0 || rc == DW_WALK_END)
			return rc;
		if (rc == DW_WALK_NULL)
			depth--;
		else if (in.has_children && !dw_die_jump(&in, w->p, &w->p))
			depth++;
	}
	return 0;
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

bool dw_has_scopes(const struct dw_unit *u)
{
	switch (dw_unit_language(u)) {
	case 0:
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C17:
	case DW_LANG_C23:
	case DW_LANG_ObjC:
	case DW_LANG_OpenCL:
	case DW_LANG_RenderScript:
	case DW_LANG_Mips_Assembler:
		return false;
	}
	return true;
}

/* ---- the list ---- */

#define NO_SCOPE UINT32_MAX

struct scope {
	dw_off lo, hi;
	dw_off specification; /* where its declaration is; 0 none */
	const char *name;     /* NULL: without a name */
	uint32_t parent;
	uint16_t tag;
};

struct dw_scopes {
	VEC(struct scope) v;
};

struct lister {
	struct dw_scopes *s;
	VEC(uint32_t) open; /* scope that each open level belongs to; NO_SCOPE at the root */
};

static int add_scope(struct lister *l, const struct dw_die *die)
{
	bool is_function = die->tag == DW_TAG_subprogram;
	struct scope scope = {
		.lo = die->off,
		.hi = UINT64_MAX,
		.specification = is_function ? 0 : dw_ref(die, DW_AT_specification),
		.name = is_function ? NULL : dw_str_deep(die, DW_AT_name),
		.parent = l->open.n ? l->open.p[l->open.n - 1] : NO_SCOPE,
		.tag = die->tag,
	};
	return l->s->v.n < NO_SCOPE && VEC_ADD(&l->s->v, scope) ? 0 : -ENOMEM;
}

/* A DIE with children: open its level, or step over them. */
static int enter(struct lister *l, struct dw_walk *w, const struct dw_die *die)
{
	bool is_function = die->tag == DW_TAG_subprogram;
	bool is_scope = dw_is_scope(die->tag);
	bool is_root = !l->open.n;
	if ((is_scope || is_function) && !is_root && add_scope(l, die) < 0)
		return err_nomem(w->err, "scopes of types");
	if (is_scope || is_root) {
		uint32_t level = is_root ? NO_SCOPE : (uint32_t)l->s->v.n - 1;
		return VEC_ADD(&l->open, level) ? 0 : err_nomem(w->err, "scopes of types");
	}
	int rc = dw_walk_skip_children(w, die);
	if (is_function)
		l->s->v.p[l->s->v.n - 1].hi = dw_walk_off(w);
	return rc;
}

static void leave(struct lister *l, const struct dw_walk *w)
{
	uint32_t scope = l->open.p[--l->open.n];
	if (scope != NO_SCOPE)
		l->s->v.p[scope].hi = dw_walk_off(w);
}

static int list_scopes(struct lister *l, const struct dw_unit *u, struct cairn_err *err)
{
	struct dw_walk w = dw_walk_of(u, err);
	for (;;) {
		struct dw_die die;
		int rc = dw_walk_next(&w, &die);
		if (rc < 0 || rc == DW_WALK_END)
			return rc < 0 ? rc : 0;
		if (rc == DW_WALK_NULL) {
			/* One null too many ends the tree: what follows is padding. */
			if (!l->open.n)
				return 0;
			leave(l, &w);
			if (!l->open.n)
				return 0;
		} else if (die.has_children) {
			rc = enter(l, &w, &die);
			if (rc < 0)
				return rc;
		} else if (!l->open.n) {
			return 0;
		}
	}
}

int dw_scopes_new(const struct dw_unit *u, struct dw_scopes **ret, struct cairn_err *err)
{
	struct lister l = {.s = calloc(1, sizeof(*l.s))};
	if (!l.s)
		return err_nomem(err, "scopes of types");
	int rc = dw_has_scopes(u) ? list_scopes(&l, u, err) : 0;
	VEC_FREE(&l.open);
	if (rc < 0) {
		dw_scopes_free(l.s);
		return rc;
	}
	*ret = l.s;
	return 0;
}

void dw_scopes_free(struct dw_scopes *s)
{
	if (!s)
		return;
	VEC_FREE(&s->v);
	free(s);
}

/* ---- names ---- */

static uint32_t innermost(const struct dw_scopes *s, dw_off off)
{
	size_t lo = 0, hi = s->v.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (s->v.p[mid].lo < off)
			lo = mid + 1;
		else
			hi = mid;
	}
	uint32_t i = lo ? (uint32_t)lo - 1 : NO_SCOPE;
	while (i != NO_SCOPE && s->v.p[i].hi <= off)
		i = s->v.p[i].parent;
	return i;
}

/* Scopes from the inside out. False when they are too many, or form a ring. */
static bool enclosing(const struct dw_scopes *s, dw_off off, const struct scope **ret,
		      size_t *ret_n)
{
	*ret_n = 0;
	for (uint32_t i = innermost(s, off); i != NO_SCOPE;) {
		const struct scope *scope = &s->v.p[i];
		if (*ret_n == DW_SCOPE_DEPTH_MAX)
			return false;
		ret[(*ret_n)++] = scope;
		if (scope->tag == DW_TAG_subprogram)
			return true;
		i = scope->specification ? innermost(s, scope->specification) : scope->parent;
	}
	return true;
}

static bool append(char *buf, size_t size, size_t *at, const char *s)
{
	size_t n = strlen(s);
	if (n >= size - *at)
		return false;
	memcpy(buf + *at, s, n + 1);
	*at += n;
	return true;
}

size_t dw_scopes_name(const struct dw_scopes *s, dw_off off, const char *name, char *buf,
		      size_t size, bool *ret_private)
{
	const struct scope *around[DW_SCOPE_DEPTH_MAX];
	size_t n, at = 0;
	bool private = false;
	bool fits = enclosing(s, off, around, &n);
	while (fits && n--) {
		const char *scope = around[n]->name;
		if (around[n]->tag == DW_TAG_subprogram) {
			private = true;
			continue;
		}
		if (!scope && around[n]->tag == DW_TAG_namespace) {
			private = true;
			scope = "(anonymous namespace)";
		}
		if (scope)
			fits = append(buf, size, &at, scope) && append(buf, size, &at, "::");
	}
	fits = fits && append(buf, size, &at, name);
	if (ret_private)
		*ret_private = private;
	return fits ? at : 0;
}
