/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/type_classes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "btfgen/named_groups.h"

int type_classes_init(struct classes *c)
{
	*c = (struct classes){0};
	arena_init(&c->arena);
	return interned_init(&c->interned);
}

static void free_lists(struct classes *c)
{
	LARGE_FREE(&c->roots);
	LARGE_FREE(&c->funcs);
	for (size_t i = 0; i < c->lists.n; i++) {
		LARGE_FREE(&c->lists.p[i].roots);
		LARGE_FREE(&c->lists.p[i].funcs);
	}
	VEC_FREE(&c->lists);
}

void type_classes_fini(struct classes *c)
{
	LARGE_FREE(&c->v);
	VEC_FREE(&c->groups);
	free_lists(c);
	VEC_FREE(&c->vars);
	LARGE_FREE(&c->bodies);
	VEC_FREE(&c->tags);
	VEC_FREE(&c->contents);
	VEC_FREE(&c->named);
	VEC_FREE(&c->spans);
	VEC_FREE(&c->build);
	interned_fini(&c->interned);
	arena_fini(&c->arena);
}

void type_classes_trim(struct classes *c)
{
	free_lists(c);
	LARGE_FREE(&c->bodies);
	VEC_FREE(&c->spans);
	interned_fini(&c->interned);
}

/* ---- groups ---- */

static int group_of(struct classes *c, const struct unit_types *u, const struct type_die *t,
		    uint32_t *ret)
{
	/* A conflicting definition's edge is not that of its group. */
	uint32_t term = u->edges.p[t - u->types.p];
	int rc = t->conflicts ? interned_of_name(&c->interned, t, &term) : 0;
	if (rc < 0)
		return rc;
	struct term *name = &c->interned.v.p[term];
	if (!name->number) {
		struct name_group g = {.hash = name->hash, .name = t->name, .kind = t->kind};
		if (!VEC_ADD(&c->groups, g))
			return -ENOMEM;
		name->number = (uint32_t)c->groups.n;
	}
	*ret = name->number - 1;
	return 0;
}

/* ---- classes ---- */

enum { FROM_FUNC = 1u << 31 };

/* The class of a term, made when it is new and then to be built from @from. */
static int intern(struct classes *c, uint32_t term, uint32_t from, uint64_t first, uint32_t *ret)
{
	struct term *said = &c->interned.v.p[term];
	if (said->number) {
		*ret = said->number - 1;
		return 0;
	}
	*ret = (uint32_t)c->v.n;
	if (*ret >= EDGE_GROUP - 1)
		return -ERANGE;
	if (!LARGE_ADD(&c->v, ((struct type_class){.hash = said->hash, .first = first})) ||
	    !VEC_ADD(&c->build, ((struct to_build){.class_ = *ret, .type = from})))
		return -ENOMEM;
	said->number = *ret + 1;
	return 0;
}

static inline uint32_t term_of(const struct unit_types *u, const struct type_die *t)
{
	return t->stop ? t->own : u->edges.p[t - u->types.p];
}

static int class_of(struct classes *c, const struct unit_types *u, uint32_t index,
		    const struct type_die *t, uint32_t *ret)
{
	uint32_t i = (uint32_t)(t - u->types.p);
	return intern(c, term_of(u, t), i, (uint64_t)index << 32 | i, ret);
}

/* Longest chain of DW_TAG_atomic_type and such. */
enum { ALIAS_MAX = 64 };

static int edge_to(struct classes *c, const struct unit_types *u, uint32_t index, local_off off,
		   edge_t *ret)
{
	const struct type_die *t = unit_type_at(u, off);
	for (int i = 0; t && t->kind == TYPE_ALIAS && i < ALIAS_MAX; i++)
		t = unit_type_at(u, t->ref);
	*ret = 0;
	if (!t || t->kind == TYPE_VOID || t->kind == TYPE_ALIAS)
		return 0;
	uint32_t n;
	if (t->stop && (!t->conflicts || t->declaration)) {
		int rc = group_of(c, u, t, &n);
		*ret = n | EDGE_GROUP;
		return rc;
	}
	int rc = class_of(c, u, index, t, &n);
	*ret = n + 1;
	return rc;
}

static int build_elems(struct classes *c, const struct unit_types *u, uint32_t index, uint32_t from,
		       uint32_t n, bool typed, uint32_t class_)
{
	struct class_elem *to = arena_array(&c->arena, n, sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct elem *e = &u->elems.p[from + i];
		to[i] = (struct class_elem){.name = e->name,
					    .value = e->value,
					    .bit_size = e->bit_size,
					    .is_negative = e->is_negative,
					    .what = e->what};
		int rc = typed && e->what == ELEM_PLAIN ? edge_to(c, u, index, e->type, &to[i].edge)
							: 0;
		if (rc < 0)
			return rc;
	}
	c->v.p[class_].elems = to;
	c->v.p[class_].n_elems = n;
	return 0;
}

static int build_proto(struct classes *c, const struct unit_types *u, uint32_t index,
		       const struct func_die *f, uint32_t class_)
{
	edge_t edge;
	int rc = edge_to(c, u, index, f->ref, &edge);
	struct type_class *k = &c->v.p[class_];
	k->kind = TYPE_PROTO;
	k->edge = edge;
	k->variadic = f->variadic;
	return rc < 0 ? rc : build_elems(c, u, index, f->elem, f->n_elems, true, class_);
}

static int build_type(struct classes *c, const struct unit_types *u, uint32_t index,
		      const struct type_die *t, uint32_t class_)
{
	edge_t edge;
	uint32_t group;
	int rc = edge_to(c, u, index, t->ref, &edge);
	if (rc >= 0 && t->stop)
		rc = group_of(c, u, t, &group);
	if (rc < 0)
		return rc;
	struct type_class *k = &c->v.p[class_];
	k->kind = t->kind;
	k->name = t->name && *t->name ? t->name : NULL;
	k->size = t->size;
	k->encoding = t->encoding;
	k->variadic = t->variadic;
	k->edge = edge;
	k->group = t->stop ? group + 1 : 0;
	return build_elems(c, u, index, t->elem, t->n_elems, has_typed_elems(t), class_);
}

/* Make the records of all new classes, and of those that they need. */
static int build_new(struct classes *c, const struct unit_types *u, uint32_t index)
{
	int rc = 0;
	while (c->build.n && rc >= 0) {
		struct to_build b = c->build.p[--c->build.n];
		if (b.type & FROM_FUNC)
			rc = build_proto(c, u, index, &u->funcs.p[b.type & ~(uint32_t)FROM_FUNC],
					 b.class_);
		else
			rc = build_type(c, u, index, &u->types.p[b.type], b.class_);
	}
	return rc;
}

static bool is_root(const struct type_die *t, uint32_t index)
{
	if (index == BASE_UNIT)
		return !t->declaration && t->kind != TYPE_ALIAS;
	/* No type refers to "enum { A, B };", and still its constants are wanted. */
	if (t->kind == TYPE_ENUM || t->stop)
		return !t->declaration;
	return t->kind == TYPE_TYPEDEF || t->kind == TYPE_BASE;
}

/* Terms are more than fit the cache, and which comes next is known early. */
static inline void prefetch_term(const struct classes *c, const struct unit_types *u, size_t i)
{
	if (i < u->types.n && u->types.p[i].stop)
		__builtin_prefetch(&c->interned.v.p[u->types.p[i].own]);
}

/*
 * Units come in the order of the input, so that the first DIE of a class is the lowest that this
 * worker meets.
 */
static int note_name(struct classes *c, const struct unit_types *u, size_t i, uint32_t class_)
{
	const struct type_die *t = &u->types.p[i];
	/*
	 * The units of a cluster may be of several languages, of which only the last one's is
	 * known.
	 */
	c->has_others |= u->whole || !u->is_c;
	if (!u->is_c || !t->name || t->is_inner || c->v.p[class_].is_named)
		return 0;
	struct named n = {.key = named_key(t->kind, t->name),
			  .die = unit_die_off(u, u->offs.p[i]),
			  .is_typedef = t->kind == TYPE_TYPEDEF || t->kind == TYPE_BASE};
	c->v.p[class_].is_named = true;
	return VEC_ADD(&c->named, n) ? 0 : -ENOMEM;
}

static int add_roots(struct classes *c, struct unit_types *u, uint32_t index)
{
	if (!LARGE_RESERVE(&c->roots, u->types.n))
		return -ENOMEM;
	for (size_t i = 0; i < u->types.n; i++) {
		const struct type_die *t = &u->types.p[i];
		uint32_t class_;
		prefetch_term(c, u, i + 8);
		if (!is_root(t, index))
			continue;
		int rc = class_of(c, u, index, t, &class_);
		if (rc >= 0 && c->want_contents)
			rc = note_name(c, u, i, class_);
		if (rc < 0)
			return rc;
		c->roots.p[c->roots.n++] = class_;
		if (index == BASE_UNIT && !c->v.p[class_].base_id)
			c->v.p[class_].base_id = u->offs.p[i];
	}
	return 0;
}

/* ---- functions and variables ---- */

static int add_funcs(struct classes *c, const struct unit_types *u, uint32_t index)
{
	for (uint32_t i = 0; i < u->funcs.n; i++) {
		const struct func_die *f = &u->funcs.p[i];
		struct func to = {.die = unit_die_off(u, f->off),
				  .name = f->name,
				  .unit = index,
				  .external = f->external,
				  .declaration = f->declaration};
		if (!f->name)
			continue;
		to.name_hash = name_hash(c->interned.names, f->name);
		if (!to.name_hash)
			to.name_hash = hash_bytes("", 0);
		uint64_t first = (uint64_t)index << 32 | (u->types.n + i);
		uint32_t term;
		int rc = interned_of_proto(&c->interned, u, f, &term);
		if (rc >= 0)
			rc = intern(c, term, i | FROM_FUNC, first, &to.proto);
		if (rc < 0)
			return rc;
		if (!LARGE_ADD(&c->funcs, to) || !LARGE_ADD(&c->roots, to.proto))
			return -ENOMEM;
	}
	return 0;
}

static int add_bodies(struct classes *c, const struct unit_types *u)
{
	for (size_t i = 0; i < u->bodies.n; i++) {
		const struct body_die *b = &u->bodies.p[i];
		struct body to = {.die = unit_die_off(u, b->off),
				  .origin = b->origin ? unit_die_off(u, b->origin) : 0,
				  .addr = b->addr};
		if (!LARGE_ADD(&c->bodies, to))
			return -ENOMEM;
	}
	return 0;
}

static int add_vars(struct classes *c, const struct unit_types *u, uint32_t index)
{
	for (size_t i = 0; i < u->vars.n; i++) {
		const struct var_die *v = &u->vars.p[i];
		struct variable to = {.die = unit_die_off(u, v->off),
				      .name = v->name,
				      .addr = v->addr,
				      .unit = index,
				      .external = v->external};
		int rc = edge_to(c, u, index, v->ref, &to.type);
		if (rc < 0)
			return rc;
		if (!VEC_ADD(&c->vars, to))
			return -ENOMEM;
		/* A type that only a variable refers to is a root, too. */
		if (to.type && !(to.type & EDGE_GROUP) && !LARGE_ADD(&c->roots, to.type - 1))
			return -ENOMEM;
	}
	return 0;
}

static int add_decl_tags(struct classes *c, const struct unit_types *u)
{
	for (uint32_t i = 0; i < u->tags.n; i++) {
		const struct tag_die *t = &u->tags.p[i];
		local_off off = t->owner & OWNER_FUNC
					? u->funcs.p[t->owner & ~(uint32_t)OWNER_FUNC].off
					: u->vars.p[t->owner & ~(uint32_t)OWNER_VAR].off;
		struct decl_tag to = {.die = unit_die_off(u, off),
				      .text = t->text,
				      .component = t->component,
				      .order = i};
		if (!VEC_ADD(&c->tags, to))
			return -ENOMEM;
	}
	return 0;
}

/* ---- contents ---- */

/* As edge_to(), but no class is made for a type that nothing leads to. */
static edge_t known_edge(const struct classes *c, const struct unit_types *u,
			 const struct type_die *t)
{
	bool by_name = t->stop && t->declaration;
	uint32_t term = by_name ? u->edges.p[t - u->types.p] : term_of(u, t),
		 number = c->interned.v.p[term].number;
	return !number ? 0 : by_name ? (number - 1) | EDGE_GROUP : number;
}

static int add_contents(struct classes *c, const struct unit_types *u)
{
	for (size_t i = 0; c->want_contents && i < u->types.n; i++) {
		const struct type_die *t = &u->types.p[i];
		if (t->kind != TYPE_STRUCT && t->kind != TYPE_UNION && t->kind != TYPE_ENUM)
			continue;
		if (!VEC_ADD(&c->contents, ((struct content){unit_die_off(u, u->offs.p[i]),
							     known_edge(c, u, t)})))
			return -ENOMEM;
	}
	return 0;
}

/* ---- a unit ---- */

static struct unit_span span_start(const struct classes *c, uint32_t index)
{
	return (struct unit_span){.unit = index,
				  .roots.from = (uint32_t)c->roots.n,
				  .funcs.from = (uint32_t)c->funcs.n,
				  .vars.from = (uint32_t)c->vars.n,
				  .bodies.from = (uint32_t)c->bodies.n,
				  .contents.from = (uint32_t)c->contents.n};
}

static bool span_end(struct classes *c, const struct unit_types *u, struct unit_span *s)
{
	/* A type that is too large is read as a declaration. */
	c->has_others |= u->losses[CAIRN_LOSS_LARGE] > 0;
	s->has_inner = u->has_inner;
	s->roots.to = (uint32_t)c->roots.n;
	s->funcs.to = (uint32_t)c->funcs.n;
	s->vars.to = (uint32_t)c->vars.n;
	s->bodies.to = (uint32_t)c->bodies.n;
	s->contents.to = (uint32_t)c->contents.n;
	/* Each other list has at most as many entries as roots. */
	return c->roots.n < UINT32_MAX && c->bodies.n < UINT32_MAX && VEC_ADD(&c->spans, *s);
}

int type_classes_add(struct classes *c, struct unit_types *u, uint32_t index, struct cairn_err *err)
{
	struct unit_span span = span_start(c, index);
	int rc = interned_of_unit(&c->interned, u);
	if (rc >= 0)
		rc = add_roots(c, u, index);
	if (rc >= 0)
		rc = add_funcs(c, u, index);
	if (rc >= 0)
		rc = add_bodies(c, u);
	if (rc >= 0)
		rc = add_vars(c, u, index);
	if (rc >= 0)
		rc = add_decl_tags(c, u);
	if (rc >= 0)
		rc = build_new(c, u, index);
	if (rc >= 0)
		rc = add_contents(c, u);
	if (rc >= 0 && !span_end(c, u, &span))
		rc = -ENOMEM;
	if (rc == -ERANGE)
		return err_set(err, rc, "%s: more than 2^31 different types", u->dw->file[0].path);
	return rc < 0 ? err_nomem(err, "the types of a program") : 0;
}
