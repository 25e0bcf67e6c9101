/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/by_unit.h"

#include <errno.h>
#include <stdlib.h>

/* Entries that are fetched meanwhile: those of a function are all over the index. */
enum { AHEAD = 8 };

/*
 * The part of a group behind another one, which may be empty. Entries are in order of DIE and rows unit by unit, so those of a unit
 * are together.
 */
static struct group_part part_behind(const struct dw_func_index *index, const struct group *g, const struct group_part *last)
{
	struct group_part part = {
		.group = last->group, .from = last->from + last->n, .first_row = last->first_row + last->n_rows};
	uint32_t unit = index->p[g->entries.p[part.from]].unit;
	while (part.from + part.n < g->entries.n && index->p[g->entries.p[part.from + part.n]].unit == unit) {
		part.n++;
		if (part.from + part.n + AHEAD < g->entries.n)
			__builtin_prefetch(&index->p[g->entries.p[part.from + part.n + AHEAD]]);
	}
	while (part.first_row < g->rows.n && g->rows.p[part.first_row].unit < unit)
		part.first_row++;
	while (part.first_row + part.n_rows < g->rows.n && g->rows.p[part.first_row + part.n_rows].unit == unit)
		part.n_rows++;
	return part;
}

/* The parts of all groups: counted first, which says where those of each unit stand. */
static int list_parts(struct by_unit *b, const struct dw_func_index *index, const struct groups *groups, size_t n_units)
{
	VEC(struct group_part) all = {0};
	int rc = 0;
	for (size_t g = 0; g < groups->v.n && !rc; g++) {
		const struct group *group = &groups->v.p[g];
		struct group_part part = {.group = (uint32_t)g};
		while (part.from + part.n < group->entries.n && !rc) {
			part = part_behind(index, group, &part);
			rc = VEC_ADD(&all, part) ? 0 : -ENOMEM;
		}
	}
	b->parts = rc ? NULL : malloc((all.n + 1) * sizeof(*b->parts));
	for (size_t i = 0; b->parts && i < all.n; i++)
		b->first[index->p[groups->v.p[all.p[i].group].entries.p[all.p[i].from]].unit + 2]++;
	for (size_t u = 2; u < n_units + 2; u++)
		b->first[u] += b->first[u - 1];
	for (size_t i = 0; b->parts && i < all.n; i++) {
		uint32_t unit = index->p[groups->v.p[all.p[i].group].entries.p[all.p[i].from]].unit;
		b->parts[b->first[unit + 1]++] = all.p[i];
	}
	VEC_FREE(&all);
	return b->parts ? 0 : -ENOMEM;
}

struct weight {
	uint32_t unit, n;
};

static int by_weight(const void *a, const void *b)
{
	const struct weight *x = a, *y = b;
	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return x->unit < y->unit ? -1 : 1;
}

static int list_units(struct by_unit *b, size_t n_units)
{
	struct weight *w = calloc(n_units + 1, sizeof(*w));
	b->units = calloc(n_units + 1, sizeof(*b->units));
	if (!w || !b->units) {
		free(w);
		return -ENOMEM;
	}
	for (uint32_t u = 0; u < n_units; u++) {
		if (b->first[u] == b->first[u + 1])
			continue;
		w[b->n_units].unit = u;
		for (uint32_t i = b->first[u]; i < b->first[u + 1]; i++)
			w[b->n_units].n += b->parts[i].n;
		b->n_units++;
	}
	qsort(w, b->n_units, sizeof(*w), by_weight);
	for (size_t i = 0; i < b->n_units; i++)
		b->units[i] = w[i].unit;
	free(w);
	return 0;
}

int by_unit_make(const struct site_env *env, const struct groups *groups, struct by_unit *ret)
{
	size_t n_units = dwarf_n_units(env->dw);
	*ret = (struct by_unit){.first = calloc(n_units + 2, sizeof(*ret->first))};
	if (!ret->first)
		return -ENOMEM;
	int rc = list_parts(ret, env->index, groups, n_units);
	return rc < 0 ? rc : list_units(ret, n_units);
}

void by_unit_fini(struct by_unit *b)
{
	free(b->parts);
	free(b->first);
	free(b->units);
	*b = (struct by_unit){0};
}
