/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/name_variants.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "btfgen/users.h"

#define NONE UINT32_MAX

struct finder {
	const struct classes *c;
	struct variants *ret;
	uint32_t *n_defs; /* per group: classes that define it */
	struct users users;
	/* per class: the current unit defines it; a stamp is the unit + 1 */
	uint32_t *class_stamp; /* per class: it is there */
	/* per group: its definition there; NONE: several definitions */
	uint32_t *group_stamp, *group_def;
	uint32_t *set_stamp, *set; /* per class */
	uint32_t *seen;            /* per class: the walk that was there */
	uint32_t walk;
	bool *is_ambiguous;      /* per class: it defines a name that others define, too */
	bool *is_plain_root;     /* per class: a root of a unit that has no sets */
	VEC(uint32_t) with_sets; /* units that may have: spans */
	VEC(uint32_t) affected;  /* classes with a set */
	VEC(uint32_t) todo;
	struct map sets;      /* set << 32 | class: to the set with that class in it */
	struct map instances; /* class << 32 | set: to the instance */
	uint32_t n_sets;
};

/* ---- one unit ---- */

static void note_unit(struct finder *f, const struct unit_span *s)
{
	const uint32_t *roots = type_classes_roots(f->c, s);
	uint32_t stamp = s->unit + 1;
	for (uint32_t i = s->roots.from; i < s->roots.to; i++) {
		uint32_t class_ = roots[i], group = f->c->v.p[class_].group;
		f->class_stamp[class_] = stamp;
		if (!group--)
			continue;
		if (f->group_stamp[group] != stamp)
			f->group_def[group] = class_;
		else if (f->group_def[group] != class_)
			f->group_def[group] = NONE;
		f->group_stamp[group] = stamp;
	}
}

static bool defines_ambiguous(const struct finder *f, const struct unit_span *s)
{
	const uint32_t *roots = type_classes_roots(f->c, s);
	for (uint32_t i = s->roots.from; i < s->roots.to; i++)
		if (f->is_ambiguous[roots[i]])
			return true;
	return false;
}

/*
 * A type that the base has in another form is written only when a unit of the program has it, too.
 */
static bool is_wanted(const struct finder *f, uint32_t unit, uint32_t instance)
{
	return unit != BASE_UNIT || f->ret->v.p[instance].base_id;
}

/* The roots of a unit that has no sets. */
static void note_plain(const struct finder *f, const struct unit_span *s)
{
	const uint32_t *roots = type_classes_roots(f->c, s);
	for (uint32_t i = s->roots.from; i < s->roots.to; i++)
		if (is_wanted(f, s->unit, roots[i]))
			f->is_plain_root[roots[i]] = true;
}

static int set_with(struct finder *f, uint32_t set, uint32_t class_, uint32_t *ret)
{
	uint64_t key = (uint64_t)set << 32 | class_, found;
	if (!map_get(&f->sets, key, &found)) {
		found = ++f->n_sets;
		if (map_put(&f->sets, key, found) < 0)
			return -ENOMEM;
	}
	*ret = (uint32_t)found;
	return 0;
}

/* @from refers to something that leads to @def. */
static int arrive(struct finder *f, uint32_t unit, uint32_t from, uint32_t def)
{
	bool named = f->c->v.p[from].group;
	/* Others are in the unit when something leads to them that is. */
	if (f->seen[from] == f->walk || (named && f->class_stamp[from] != unit + 1))
		return 0;
	f->seen[from] = f->walk;
	if (f->set_stamp[from] != unit + 1) {
		f->set_stamp[from] = unit + 1;
		f->set[from] = 0;
		if (!VEC_ADD(&f->affected, from))
			return -ENOMEM;
	}
	int rc = set_with(f, f->set[from], def, &f->set[from]);
	return rc < 0 || !VEC_ADD(&f->todo, from) ? -ENOMEM : 0;
}

static int arrive_all(struct finder *f, const struct user_list *r, uint32_t i, uint32_t unit,
		      uint32_t def)
{
	for (uint32_t k = r->first[i]; k < r->first[i + 1]; k++) {
		int rc = arrive(f, unit, r->from[k], def);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static bool is_meant(const struct finder *f, uint32_t unit, uint32_t class_, uint32_t *ret_group)
{
	uint32_t group = f->c->v.p[class_].group;
	*ret_group = group - 1;
	return group && f->group_stamp[group - 1] == unit + 1 && f->group_def[group - 1] == class_;
}

/* All classes of the unit that lead to @def, which it means by the name. */
static int walk_back(struct finder *f, uint32_t unit, uint32_t def)
{
	uint32_t group;
	f->walk++;
	f->todo.n = 0;
	int rc = is_meant(f, unit, def, &group)
			 ? arrive_all(f, &f->users.of_group, group, unit, def)
			 : 0;
	while (f->todo.n && rc >= 0) {
		uint32_t class_ = f->todo.p[--f->todo.n];
		rc = arrive_all(f, &f->users.of_class, class_, unit, def);
		if (rc >= 0 && is_meant(f, unit, class_, &group))
			rc = arrive_all(f, &f->users.of_group, group, unit, def);
	}
	return rc;
}

static int instance_of(struct finder *f, uint32_t unit, uint32_t class_, uint32_t *ret)
{
	uint32_t set = f->set_stamp[class_] == unit + 1 ? f->set[class_] : 0;
	uint64_t key = (uint64_t)class_ << 32 | set, found;
	*ret = class_;
	if (!set)
		return 0;
	if (!map_get(&f->instances, key, &found)) {
		found = f->ret->v.n;
		struct instance *base = &f->ret->v.p[class_];
		struct instance x = {.class_ = class_, .set = set, .next = base->next};
		if (unit == BASE_UNIT)
			x.base_id = base->base_id;
		base->next = (uint32_t)found;
		if (!VEC_ADD(&f->ret->v, x) || map_put(&f->instances, key, found) < 0)
			return -ENOMEM;
	}
	*ret = (uint32_t)found;
	return 0;
}

/*
 * The edge's meaning in the unit. If the unit does not define the target, the edge stays a group.
 */
static int edge_in_unit(struct finder *f, uint32_t unit, edge_t e, edge_t *ret)
{
	uint32_t class_ = e - 1, instance;
	*ret = e;
	if (!e)
		return 0;
	if (e & EDGE_GROUP) {
		uint32_t group = e & ~EDGE_GROUP;
		if (f->group_stamp[group] != unit + 1 || f->group_def[group] == NONE)
			return 0;
		class_ = f->group_def[group];
	}
	int rc = instance_of(f, unit, class_, &instance);
	*ret = instance + 1;
	return rc;
}

static int fill_edges(struct finder *f, uint32_t unit, uint32_t instance)
{
	const struct type_class *k = &f->c->v.p[f->ret->v.p[instance].class_];
	if (f->ret->v.p[instance].edges)
		return 0;
	edge_t *to = arena_array(&f->ret->arena, k->n_elems + 1, sizeof(*to));
	if (!to)
		return -ENOMEM;
	edge_t e;
	FOR_CLASS_EDGES(k, e)
	{
		int rc = edge_in_unit(f, unit, e, &to[i_]);
		if (rc < 0)
			return rc;
	}
	f->ret->v.p[instance].edges = to;
	return 0;
}

static int find_in_unit(struct finder *f, const struct unit_span *s)
{
	const uint32_t *roots = type_classes_roots(f->c, s);
	note_unit(f, s);
	f->affected.n = 0;
	int rc = 0;
	for (uint32_t i = s->roots.from; i < s->roots.to && rc >= 0; i++)
		if (f->is_ambiguous[roots[i]])
			rc = walk_back(f, s->unit, roots[i]);
	for (size_t i = 0; i < f->affected.n && rc >= 0; i++) {
		struct unit_variant in = {.unit = s->unit, .class_ = f->affected.p[i]};
		rc = instance_of(f, s->unit, in.class_, &in.instance);
		if (rc >= 0)
			rc = fill_edges(f, s->unit, in.instance);
		if (rc >= 0 && !VEC_ADD(&f->ret->in_units, in))
			rc = -ENOMEM;
	}
	return rc;
}

/* ---- the used types, and their representatives ---- */

static int by_unit_and_class(const void *a, const void *b)
{
	const struct unit_variant *x = a, *y = b;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->class_ < y->class_ ? -1 : x->class_ > y->class_;
}

uint32_t name_variants_instance(const struct variants *v, uint32_t unit, uint32_t class_)
{
	struct unit_variant key = {.unit = unit, .class_ = class_};
	if (v->v.p[class_].next == NONE)
		return class_;
	const struct unit_variant *found = v->in_units.n
						   ? bsearch(&key, v->in_units.p, v->in_units.n,
							     sizeof(key), by_unit_and_class)
						   : NULL;
	return found ? found->instance : class_;
}

static void use(struct finder *f, uint32_t instance)
{
	f->ret->v.p[instance].used = true;
}

/*
 * The targets of an instance's edges. Instances after @at are visited later; those before it are
 * queued.
 */
static int use_edges_of(struct finder *f, uint32_t instance, uint32_t at)
{
	const struct instance *x = &f->ret->v.p[instance];
	const struct type_class *k = &f->c->v.p[x->class_];
	const edge_t *edges = x->edges;
	edge_t e;
	FOR_CLASS_EDGES(k, e)
	{
		edge_t to = edges ? edges[i_] : e;
		if (!to || to & EDGE_GROUP || f->ret->v.p[to - 1].used)
			continue;
		use(f, to - 1);
		if (to - 1 < at && !VEC_ADD(&f->todo, to - 1))
			return -ENOMEM;
	}
	return 0;
}

/* In their order, in which they stand in memory. */
static int use_all(struct finder *f)
{
	int rc = 0;
	f->todo.n = 0;
	for (uint32_t i = 0; i < f->ret->v.n && rc >= 0; i++) {
		if (!f->ret->v.p[i].used)
			continue;
		rc = use_edges_of(f, i, i);
		while (f->todo.n && rc >= 0)
			rc = use_edges_of(f, f->todo.p[--f->todo.n], i);
	}
	return rc;
}

static int find_used(struct finder *f)
{
	for (uint32_t i = 0; i < f->c->v.n; i++)
		f->ret->v.p[i].used = f->is_plain_root[i];
	for (size_t s = 0; s < f->with_sets.n; s++) {
		const struct unit_span *span = &f->c->spans.p[f->with_sets.p[s]];
		const uint32_t *roots = type_classes_roots(f->c, span);
		for (uint32_t i = span->roots.from; i < span->roots.to; i++) {
			uint32_t instance = name_variants_instance(f->ret, span->unit, roots[i]);
			if (is_wanted(f, span->unit, instance))
				use(f, instance);
		}
	}
	return use_all(f);
}

/* The only used variant of a class; NONE when there is none, or more than one. */
static uint32_t only_variant(const struct variants *v, uint32_t class_)
{
	uint32_t only = NONE;
	for (uint32_t i = v->v.p[class_].next; i != NONE; i = v->v.p[i].next) {
		if (!v->v.p[i].used)
			continue;
		if (only != NONE)
			return NONE;
		only = i;
	}
	return only;
}

static int choose(struct finder *f)
{
	struct variants *v = f->ret;
	v->same_as = malloc((f->c->v.n + 1) * sizeof(*v->same_as));
	v->of_group = malloc((f->c->groups.n + 1) * sizeof(*v->of_group));
	if (!v->same_as || !v->of_group)
		return -ENOMEM;
	for (size_t g = 0; g < f->c->groups.n; g++)
		v->of_group[g] = (edge_t)g | EDGE_GROUP;
	for (uint32_t i = 0; i < f->c->v.n; i++) {
		uint32_t only = v->v.p[i].base_id ? NONE : only_variant(v, i),
			 group = f->c->v.p[i].group;
		v->same_as[i] = only == NONE ? i : only;
		if (only != NONE)
			v->v.p[i].used = false;
		/*
		 * With several variants and none of the empty set, the name alone does not tell
		 * which.
		 */
		if (group && f->n_defs[group - 1] == 1 && v->v.p[v->same_as[i]].used)
			v->of_group[group - 1] = v->same_as[i] + 1;
	}
	return 0;
}

edge_t name_variants_resolve(const struct variants *v, edge_t edge)
{
	if (!edge)
		return 0;
	if (edge & EDGE_GROUP)
		return v->of_group[edge & ~EDGE_GROUP];
	return edge - 1 < v->c->v.n ? v->same_as[edge - 1] + 1 : edge;
}

edge_t name_variants_edge(const struct variants *v, uint32_t unit, edge_t edge)
{
	if (edge && !(edge & EDGE_GROUP))
		edge = name_variants_instance(v, unit, edge - 1) + 1;
	return name_variants_resolve(v, edge);
}

/* ---- */

static uint32_t *per(size_t n)
{
	return calloc(n + 1, sizeof(uint32_t));
}

static int finder_init(struct finder *f)
{
	const struct classes *c = f->c;
	f->n_defs = per(c->groups.n);
	f->class_stamp = per(c->v.n);
	f->group_stamp = per(c->groups.n);
	f->group_def = per(c->groups.n);
	f->set_stamp = per(c->v.n);
	f->set = per(c->v.n);
	f->seen = per(c->v.n);
	f->is_ambiguous = calloc(c->v.n + 1, sizeof(*f->is_ambiguous));
	f->is_plain_root = calloc(c->v.n + 1, sizeof(*f->is_plain_root));
	if (!f->n_defs || !f->class_stamp || !f->group_stamp || !f->group_def || !f->set_stamp ||
	    !f->set || !f->seen || !f->is_ambiguous || !f->is_plain_root ||
	    !VEC_RESERVE(&f->ret->v, c->v.n))
		return -ENOMEM;
	for (size_t i = 0; i < c->v.n; i++) {
		if (c->v.p[i].group)
			f->n_defs[c->v.p[i].group - 1]++;
		f->ret->v.p[f->ret->v.n++] = (struct instance){
			.class_ = (uint32_t)i, .next = NONE, .base_id = c->v.p[i].base_id};
	}
	for (size_t i = 0; i < c->v.n; i++)
		f->is_ambiguous[i] = c->v.p[i].group && f->n_defs[c->v.p[i].group - 1] > 1;
	return 0;
}

static void finder_fini(struct finder *f)
{
	free(f->n_defs);
	free(f->class_stamp);
	free(f->group_stamp);
	free(f->group_def);
	free(f->set_stamp);
	free(f->set);
	free(f->seen);
	free(f->is_ambiguous);
	free(f->is_plain_root);
	VEC_FREE(&f->with_sets);
	users_fini(&f->users);
	VEC_FREE(&f->affected);
	VEC_FREE(&f->todo);
	map_fini(&f->sets);
	map_fini(&f->instances);
}

int name_variants_find(const struct classes *c, struct variants *ret, struct cairn_err *err)
{
	struct finder f = {.c = c, .ret = ret};
	bool reversed = false;
	*ret = (struct variants){.c = c};
	arena_init(&ret->arena);
	int rc = finder_init(&f);
	for (size_t i = 0; i < c->spans.n && rc >= 0; i++) {
		if (!defines_ambiguous(&f, &c->spans.p[i])) {
			note_plain(&f, &c->spans.p[i]);
			continue;
		}
		/* Programs without an ambiguous name need no graph. */
		rc = reversed ? 0 : users_find(c, &f.users);
		reversed = true;
		if (rc >= 0 && !VEC_ADD(&f.with_sets, (uint32_t)i))
			rc = -ENOMEM;
		if (rc >= 0)
			rc = find_in_unit(&f, &c->spans.p[i]);
	}
	if (rc >= 0 && ret->in_units.n)
		qsort(ret->in_units.p, ret->in_units.n, sizeof(*ret->in_units.p),
		      by_unit_and_class);
	if (rc >= 0)
		rc = find_used(&f);
	if (rc >= 0)
		rc = choose(&f);
	finder_fini(&f);
	return rc < 0 ? err_nomem(err, "the types of a program") : 0;
}

void name_variants_fini(struct variants *v)
{
	VEC_FREE(&v->v);
	VEC_FREE(&v->in_units);
	free(v->same_as);
	free(v->of_group);
	arena_fini(&v->arena);
}
