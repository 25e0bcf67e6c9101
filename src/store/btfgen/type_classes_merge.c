/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of all workers, joined
 *
 * Each worker has numbered classes as it met them. Sorted by their first DIE and put into one table
 * in that order, they get the numbers that a single worker would have given. The worker that read
 * the first unit with a class had not seen the class before, nor any type that leads to it, and so
 * reached it in the same way.
 */
#include "btfgen/type_classes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

struct met {
	uint64_t first;
	uint32_t part, i;
};

struct merge {
	struct classes *parts;
	unsigned int n;
	struct classes *ret;
	uint32_t **classes, **groups;                           /* per part: old number to new */
	struct hash_table type_classes_by_hash, groups_by_hash; /* new */
	struct met *met;
	size_t n_met;
};

static int by_first(const void *a, const void *b)
{
	const struct met *x = a, *y = b;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	/* The same DIE twice: only among one worker's results. */
	return x->i < y->i ? -1 : x->i > y->i;
}

static int merge_groups(struct merge *m)
{
	for (unsigned int p = 0; p < m->n; p++) {
		const struct classes *part = &m->parts[p];
		m->groups[p] = malloc((part->groups.n + 1) * sizeof(**m->groups));
		if (!m->groups[p])
			return -ENOMEM;
		for (size_t i = 0; i < part->groups.n; i++) {
			const struct name_group *g = &part->groups.p[i];
			uint32_t *to = &m->groups[p][i];
			*to = hash_table_find(&m->groups_by_hash, g->hash);
			if (*to != UINT32_MAX)
				continue;
			*to = (uint32_t)m->ret->groups.n;
			if (!VEC_ADD(&m->ret->groups, *g) ||
			    hash_table_add(&m->groups_by_hash, g->hash, *to) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static size_t unit_of(const struct type_class *k)
{
	return (size_t)(k->first >> 32);
}

/* Numbers of units are less. */
static size_t n_units(const struct merge *m)
{
	size_t n = 0;
	for (unsigned int p = 0; p < m->n; p++) {
		const struct classes *part = &m->parts[p];
		if (part->spans.n && part->spans.p[part->spans.n - 1].unit >= n)
			n = (size_t)part->spans.p[part->spans.n - 1].unit + 1;
	}
	return n;
}

/* By unit, of which each is one worker's, and then among the few of a unit. */
static int sort_classes(struct merge *m, size_t n_units)
{
	uint32_t *from = calloc(n_units + 2, sizeof(*from));
	for (unsigned int p = 0; p < m->n; p++)
		m->n_met += m->parts[p].v.n;
	m->met = malloc((m->n_met + 1) * sizeof(*m->met));
	if (!m->met || !from) {
		free(from);
		return -ENOMEM;
	}
	for (unsigned int p = 0; p < m->n; p++)
		for (size_t i = 0; i < m->parts[p].v.n; i++)
			from[unit_of(&m->parts[p].v.p[i]) + 2]++;
	for (size_t i = 2; i < n_units + 2; i++)
		from[i] += from[i - 1];
	for (unsigned int p = 0; p < m->n; p++) {
		for (size_t i = 0; i < m->parts[p].v.n; i++) {
			const struct type_class *k = &m->parts[p].v.p[i];
			m->met[from[unit_of(k) + 1]++] =
				(struct met){.first = k->first, .part = p, .i = (uint32_t)i};
		}
	}
	for (size_t i = 0; i < n_units; i++)
		if (from[i + 1] - from[i] > 1)
			qsort(m->met + from[i], from[i + 1] - from[i], sizeof(*m->met), by_first);
	free(from);
	return 0;
}

static const struct type_class *class_met(const struct merge *m, size_t i)
{
	return &m->parts[m->met[i].part].v.p[m->met[i].i];
}

/* Prefetches for the loop: first the class, then the slot of its hash. */
static void prefetch_met(const struct merge *m, size_t i)
{
	enum { AHEAD = 8 };
	if (i + 2 * AHEAD < m->n_met)
		__builtin_prefetch(&class_met(m, i + 2 * AHEAD)->hash);
	if (i + AHEAD < m->n_met)
		hash_table_prefetch(&m->type_classes_by_hash, class_met(m, i + AHEAD)->hash);
}

static int merge_classes(struct merge *m)
{
	for (unsigned int p = 0; p < m->n; p++) {
		m->classes[p] = malloc((m->parts[p].v.n + 1) * sizeof(**m->classes));
		if (!m->classes[p])
			return -ENOMEM;
	}
	int rc = sort_classes(m, n_units(m));
	if (rc < 0 || !LARGE_RESERVE(&m->ret->v, m->n_met) ||
	    hash_table_reserve(&m->type_classes_by_hash, m->n_met) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_met && rc >= 0; i++) {
		const struct type_class *k = class_met(m, i);
		prefetch_met(m, i);
		uint32_t *to = &m->classes[m->met[i].part][m->met[i].i];
		*to = hash_table_find(&m->type_classes_by_hash, k->hash);
		if (*to != UINT32_MAX)
			continue;
		*to = (uint32_t)m->ret->v.n;
		/* To be translated below, when all classes have their numbers. */
		struct type_class copy = *k;
		copy.first = (uint64_t)m->met[i].part;
		if (!LARGE_ADD(&m->ret->v, copy))
			return -ENOMEM;
		rc = hash_table_add(&m->type_classes_by_hash, k->hash, *to);
	}
	return rc;
}

static edge_t translate(const struct merge *m, uint64_t part, edge_t e)
{
	if (!e)
		return 0;
	return e & EDGE_GROUP ? m->groups[part][e & ~EDGE_GROUP] | EDGE_GROUP
			      : m->classes[part][e - 1] + 1;
}

static void translate_classes(struct merge *m)
{
	for (size_t i = 0; i < m->ret->v.n; i++) {
		struct type_class *k = &m->ret->v.p[i];
		uint64_t part = k->first;
		k->edge = translate(m, part, k->edge);
		if (k->group)
			k->group = m->groups[part][k->group - 1] + 1;
		if (k->kind == TYPE_ENUM || k->kind == TYPE_ARRAY)
			continue;
		/* Ours: they are in the part's arena, and one class of the result has them. */
		struct class_elem *elems = (struct class_elem *)k->elems;
		for (uint32_t e = 0; e < k->n_elems; e++)
			if (elems[e].what == ELEM_PLAIN)
				elems[e].edge = translate(m, part, elems[e].edge);
	}
}

static int by_unit(const void *a, const void *b)
{
	const struct unit_span *x = a, *y = b;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Small lists are copied into the order of units. */
static int copy_unit(struct merge *m, struct unit_span *s)
{
	struct classes *ret = m->ret;
	const struct classes *part = &m->parts[s->part];
	struct span vars = s->vars, bodies = s->bodies, contents = s->contents;
	s->vars.from = (uint32_t)ret->vars.n;
	s->bodies.from = (uint32_t)ret->bodies.n;
	s->contents.from = (uint32_t)ret->contents.n;
	for (uint32_t i = vars.from; i < vars.to; i++) {
		struct variable v = part->vars.p[i];
		v.type = translate(m, s->part, v.type);
		if (!VEC_ADD(&ret->vars, v))
			return -ENOMEM;
	}
	for (uint32_t i = bodies.from; i < bodies.to; i++)
		if (!LARGE_ADD(&ret->bodies, part->bodies.p[i]))
			return -ENOMEM;
	for (uint32_t i = contents.from; i < contents.to; i++) {
		struct content x = part->contents.p[i];
		x.edge = translate(m, s->part, x.edge);
		if (!VEC_ADD(&ret->contents, x))
			return -ENOMEM;
	}
	s->contents.to = (uint32_t)ret->contents.n;
	s->vars.to = (uint32_t)ret->vars.n;
	s->bodies.to = (uint32_t)ret->bodies.n;
	return 0;
}

/* The rest says the new numbers from now on, and is the result's. */
static void take_lists(struct merge *m, unsigned int p, struct class_lists *ret)
{
	struct classes *part = &m->parts[p];
	const uint32_t *classes = m->classes[p];
	for (size_t i = 0; i < part->roots.n; i++)
		part->roots.p[i] = classes[part->roots.p[i]];
	for (size_t i = 0; i < part->funcs.n; i++)
		part->funcs.p[i].proto = classes[part->funcs.p[i].proto];
	*ret = (struct class_lists){part->roots, part->funcs};
	part->roots = (struct root_list){0};
	part->funcs = (struct func_list){0};
}

static int merge_units(struct merge *m)
{
	struct classes *ret = m->ret;
	if (!VEC_RESERVE(&ret->lists, m->n))
		return -ENOMEM;
	for (unsigned int p = 0; p < m->n; p++) {
		take_lists(m, p, &ret->lists.p[ret->lists.n++]);
		for (size_t i = 0; i < m->parts[p].spans.n; i++) {
			m->parts[p].spans.p[i].part = p;
			if (!VEC_ADD(&ret->spans, m->parts[p].spans.p[i]))
				return -ENOMEM;
		}
	}
	if (ret->spans.n)
		qsort(ret->spans.p, ret->spans.n, sizeof(*ret->spans.p), by_unit);
	for (size_t i = 0; i < ret->spans.n; i++) {
		int rc = copy_unit(m, &ret->spans.p[i]);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int by_die(const void *a, const void *b)
{
	const struct decl_tag *x = a, *y = b;
	if (x->die != y->die)
		return x->die < y->die ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int merge_tags(struct merge *m)
{
	struct classes *ret = m->ret;
	for (unsigned int p = 0; p < m->n; p++)
		for (size_t i = 0; i < m->parts[p].tags.n; i++)
			if (!VEC_ADD(&ret->tags, m->parts[p].tags.p[i]))
				return -ENOMEM;
	if (ret->tags.n)
		qsort(ret->tags.p, ret->tags.n, sizeof(*ret->tags.p), by_die);
	return 0;
}

static int merge_named(struct merge *m)
{
	struct classes *ret = m->ret;
	for (unsigned int p = 0; p < m->n; p++) {
		const struct classes *part = &m->parts[p];
		ret->has_others |= part->has_others;
		for (size_t i = 0; i < part->named.n; i++)
			if (!VEC_ADD(&ret->named, part->named.p[i]))
				return -ENOMEM;
	}
	return 0;
}

static void take_rest(struct merge *m)
{
	for (unsigned int p = 0; p < m->n; p++) {
		arena_adopt(&m->ret->arena, &m->parts[p].arena);
		for (int i = 0; i < CAIRN_N_LOSSES; i++)
			m->ret->losses[i] += m->parts[p].losses[i];
	}
}

int type_classes_merge(struct classes *parts, unsigned int n, struct classes *ret,
		       struct cairn_err *err)
{
	struct merge m = {.parts = parts, .n = n, .ret = ret};
	m.classes = calloc(n, sizeof(*m.classes));
	m.groups = calloc(n, sizeof(*m.groups));
	int rc = m.classes && m.groups ? merge_groups(&m) : -ENOMEM;
	if (rc >= 0)
		rc = merge_classes(&m);
	if (rc >= 0) {
		translate_classes(&m);
		rc = merge_units(&m);
	}
	if (rc >= 0)
		rc = merge_tags(&m);
	if (rc >= 0)
		rc = merge_named(&m);
	take_rest(&m);
	for (unsigned int p = 0; p < n; p++) {
		if (m.classes)
			free(m.classes[p]);
		if (m.groups)
			free(m.groups[p]);
	}
	hash_table_fini(&m.type_classes_by_hash);
	hash_table_fini(&m.groups_by_hash);
	free(m.classes);
	free(m.groups);
	free(m.met);
	return rc < 0 ? err_nomem(err, "the types of a program") : 0;
}
