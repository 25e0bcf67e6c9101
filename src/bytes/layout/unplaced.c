/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members whose offset is not known (cairn_member.dynamic), also in base classes
 *
 * An object places its virtual base classes, so a base class that has such has its own part only,
 * which is smaller than an object of that class:
 *
 *	struct B : virtual A { int b; };	b 0 to 12, A anywhere: 40 bytes
 *	struct D : B { int d; };		the B of it 0 to 12, d 12 to 16
 */
#include "layout/view.h"

static bool look(struct cairn_layout *l, uint32_t id, unsigned int depth);

static uint64_t own_of(const struct cairn_layout *l, uint32_t id)
{
	return l->own[cairn_types_resolve(l->types, id)];
}

/* The bytes that a member takes, and where they end in the struct. */
static uint64_t end_of(struct cairn_layout *l, const struct cairn_member *m, unsigned int depth)
{
	if (m->bit_size)
		return (m->bit_off + m->bit_size + 7) / 8;
	return m->bit_off / 8 + (m->is_base_class && look(l, m->type, depth + 1)
					 ? own_of(l, m->type)
					 : cairn_types_size(l->types, m->type));
}

/* A class that contains itself, which only damaged input has, is met while it says FACT_NO. */
static void look_inside(struct cairn_layout *l, uint32_t id, struct type_memo *memo,
			unsigned int depth)
{
	const struct cairn_type *t = cairn_types_get(l->types, id);
	uint64_t own = 0;

	memo->unplaced = FACT_NO;
	for (uint32_t i = 0; i < t->n_members && depth < NEST_MAX; i++) {
		const struct cairn_member *m = &t->members[i];
		uint64_t end = m->dynamic ? 0 : end_of(l, m, depth);

		own = end > own ? end : own;
		if (layout_is_unplaced(l, m))
			memo->unplaced = FACT_YES;
	}
	if (memo->unplaced == FACT_YES)
		l->own[id] = own;
}

/* Whether the type @id has a member without an offset. */
static bool look(struct cairn_layout *l, uint32_t id, unsigned int depth)
{
	id = cairn_types_resolve(l->types, id);
	struct type_memo *memo = id < l->n ? &l->memo[id] : NULL;

	if (memo && memo->unplaced == FACT_UNKNOWN)
		look_inside(l, id, memo, depth);
	return memo && memo->unplaced == FACT_YES;
}

bool layout_is_partial(struct cairn_layout *l, const struct cairn_member *m)
{
	return m->is_base_class && look(l, m->type, 0);
}

bool layout_is_unplaced(struct cairn_layout *l, const struct cairn_member *m)
{
	return m->dynamic || layout_is_partial(l, m);
}

uint64_t layout_own_size(struct cairn_layout *l, const struct cairn_member *m, uint64_t size)
{
	return layout_is_partial(l, m) ? own_of(l, m->type) : size;
}
