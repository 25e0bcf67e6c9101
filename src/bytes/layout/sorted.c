/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structs whose members are not in the order of their offsets
 *
 *	struct A { a: u8, b: u64, c: u16 }	Rust: b at 0, c at 8, a at 10
 *
 * Debug information keeps the order of the source. Holes are between neighbours, so such a struct
 * is described with its members sorted. C and C++ have other reasons for an offset below the
 * previous one (base classes, empty members that share their offset): members that overlap when
 * they are sorted keep their order.
 */
#include <errno.h>
#include <stdlib.h>

#include "layout/view.h"

static bool is_in_order(const struct cairn_type *t)
{
	bool in_order = true;

	for (uint32_t i = 0; i < t->n_members; i++) {
		if (t->members[i].is_base_class || t->members[i].dynamic || t->members[i].bit_size)
			return true;
		in_order &= !i || t->members[i].bit_off >= t->members[i - 1].bit_off;
	}
	return in_order;
}

struct placed {
	uint64_t from, size; /* bits, bytes */
	uint32_t member;
};

/* Members without bytes come before the member at the same offset. */
static int compare_places(const void *x, const void *y)
{
	const struct placed *a = x, *b = y;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (!a->size != !b->size)
		return a->size ? 1 : -1;
	return a->member < b->member ? -1 : 1;
}

static bool overlap(const struct placed *p, uint32_t n)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (p[i].from < end || p[i].size > UINT64_MAX / 16)
			return true;
		end = p[i].from + 8 * p[i].size;
	}
	return false;
}

static bool take(struct layout_sorted *ret, const struct cairn_type *t, const struct placed *p)
{
	ret->members = calloc(t->n_members, sizeof(*ret->members));
	ret->order = calloc(t->n_members, sizeof(*ret->order));
	if (!ret->members || !ret->order) {
		layout_sorted_free(ret);
		return false;
	}
	for (uint32_t i = 0; i < t->n_members; i++) {
		ret->members[i] = t->members[p[i].member];
		ret->order[i] = p[i].member;
	}
	ret->type = *t;
	ret->type.members = ret->members;
	return true;
}

int layout_sort(struct cairn_layout *l, const struct cairn_type *t, struct layout_sorted *ret)
{
	*ret = (struct layout_sorted){.members = NULL};
	if (!is_structure(t) || is_in_order(t))
		return 0;
	struct placed *p = calloc(t->n_members, sizeof(*p));
	if (!p) {
		l->no_memory = true;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < t->n_members; i++)
		p[i] = (struct placed){t->members[i].bit_off,
				       cairn_types_size(l->types, t->members[i].type), i};
	qsort(p, t->n_members, sizeof(*p), compare_places);
	int rc = overlap(p, t->n_members) ? 0 : take(ret, t, p) ? 1 : -ENOMEM;
	free(p);
	l->no_memory |= rc < 0;
	return rc;
}

void layout_sorted_free(struct layout_sorted *s)
{
	free(s->members);
	free(s->order);
	*s = (struct layout_sorted){.members = NULL};
}

int cairn_layout_order(struct cairn_layout *l, uint32_t id, uint32_t *order)
{
	const struct cairn_type *t = layout_resolve(l, id);
	struct layout_sorted s;

	layout_begin(l);
	int rc = layout_sort(l, t, &s);
	for (uint32_t i = 0; rc >= 0 && i < t->n_members; i++)
		order[i] = rc ? s.order[i] : i;
	layout_sorted_free(&s);
	return rc;
}
