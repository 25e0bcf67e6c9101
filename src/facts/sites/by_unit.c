/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/by_unit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/search.h"

/*
 * Entries are in order of DIE, so those of a unit are adjacent. Finds where the next unit's begin:
 * by growing steps, then by halving.
 */
static uint32_t end_of_unit(const struct dw_func_index *index, uint32_t from)
{
	uint32_t unit = index->p[from].unit, lo = from, step = 1;
	while (index->n - lo > step && index->p[lo + step].unit == unit) {
		lo += step;
		step *= 2;
	}
	uint32_t hi = index->n - lo > step ? lo + step : (uint32_t)index->n;
	return SEARCH(lo + 1, hi, i, index->p[i].unit == unit);
}

static int by_size(const void *a, const void *b)
{
	const struct unit_entries *x = a, *y = b;
	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return x->unit < y->unit ? -1 : 1;
}

static void list_units(struct by_unit *b, const struct dw_func_index *index)
{
	for (uint32_t i = 0; i < index->n;) {
		struct unit_entries u = {
			.unit = index->p[i].unit, .from = i, .to = end_of_unit(index, i)};
		for (; i < u.to; i++)
			u.n += b->groups->of_entry[i] != DW_FUNC_NONE;
		if (u.n)
			b->units[b->n_units++] = u;
	}
	qsort(b->units, b->n_units, sizeof(*b->units), by_size);
}

int by_unit_make(const struct site_env *env, const struct groups *groups,
		 const struct entry_rows *rows, struct by_unit *ret)
{
	*ret = (struct by_unit){.groups = groups, .rows = rows};
	ret->units = calloc(dwarf_n_units(env->dw) + 1, sizeof(*ret->units));
	if (!ret->units)
		return -ENOMEM;
	list_units(ret, env->index);
	return 0;
}

void by_unit_fini(struct by_unit *b)
{
	free(b->units);
	*b = (struct by_unit){0};
}

/* The group's rows follow those of the groups before it, which end at @from. */
static struct row_list rows_of(const struct row_list *rows, size_t from, uint32_t group)
{
	while (from < rows->n && rows->p[from].group < group)
		from++;
	struct row_list r = {.p = rows->p + from};
	while (from + r.n < rows->n && r.p[r.n].group == group)
		r.n++;
	return r;
}

/* Prefetches the field that is read of the group eight steps ahead. */
static inline void prefetch_group(const struct by_unit *b, const struct unit_parts *p, size_t k)
{
	enum { AHEAD = 8 };
	if (k + AHEAD < p->order.n)
		__builtin_prefetch(&b->groups->v.p[p->order.p[k + AHEAD].key].from_macro);
}

int by_unit_parts(const struct by_unit *b, size_t i, struct unit_parts *ret)
{
	const struct unit_entries *u = &b->units[i];
	const struct row_list *rows = &b->rows->of_unit[u->unit];
	const uint32_t *group_of = b->groups->of_entry;
	ret->v.n = ret->entries.n = ret->order.n = 0;
	if (!VEC_RESERVE(&ret->entries, u->n) || !VEC_RESERVE(&ret->order, u->n))
		return -ENOMEM;
	for (uint32_t k = u->from; k < u->to; k++)
		if (group_of[k] != DW_FUNC_NONE)
			ret->order.p[ret->order.n++] =
				(struct keyed){.key = group_of[k], .value = k};
	if (keyed_sort(ret->order.p, ret->order.n) < 0)
		return -ENOMEM;
	size_t row = 0;
	for (size_t k = 0; k < ret->order.n; k++) {
		const struct keyed *at = &ret->order.p[k];
		uint32_t *entry = &ret->entries.p[ret->entries.n++];
		*entry = at->value;
		prefetch_group(b, ret, k);
		if (!k || at[-1].key != at->key) {
			struct group part = {.number = at->key, .entries = {.p = entry}};
			part.from_macro = b->groups->v.p[at->key].from_macro;
			if (rows->n) {
				part.rows = rows_of(rows, row, at->key);
				row = (size_t)(part.rows.p - rows->p) + part.rows.n;
			}
			if (!VEC_ADD(&ret->v, part))
				return -ENOMEM;
		}
		ret->v.p[ret->v.n - 1].entries.n++;
	}
	return 0;
}

void unit_parts_fini(struct unit_parts *p)
{
	VEC_FREE(&p->v);
	VEC_FREE(&p->entries);
	VEC_FREE(&p->order);
}
