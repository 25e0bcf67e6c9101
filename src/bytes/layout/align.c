/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alignments that were not recorded
 *
 * BTF has offsets and no attributes. A member was declared aligned if it could have been placed
 * nearer:
 *
 *	bool throttled;      byte 752
 *	struct stats stats;  byte 768, aligned naturally to 8: 15 bytes after the end of the last
 *
 * The power of 2 above these 15 is 16, so it was at least 16; and as 768 is a multiple of the cache
 * line, it is taken for that. A struct's size is looked at in the same way. All of it is pahole's
 * guess: it may be more than was written, and an alignment that happened to cost nothing cannot be
 * seen.
 *
 * packed is seen when a member is not at a multiple of its natural alignment, or the size of the
 * struct is none.
 */
#include "layout/place.h"
#include "layout/view.h"

static uint32_t compute(struct cairn_layout *l, uint32_t id, unsigned int depth);

static uint32_t of_members(struct cairn_layout *l, const struct cairn_type *t, unsigned int depth)
{
	uint32_t most = 1;

	for (uint32_t i = 0; i < t->n_members && depth < NEST_MAX; i++) {
		uint32_t one = compute(l, t->members[i].type, depth + 1);

		most = one > most ? one : most;
	}
	return most;
}

/*
 * Scalars by their size; where that is no power of 2 (i386's long double), by a part of it. No more
 * than the ABI's.
 */
static uint32_t of_size(const struct cairn_abi *abi, uint64_t size)
{
	const struct cairn_scalar_layout *of = abi->scalars;
	uint64_t lowest = size & -size, most = of[CAIRN_C_LLONG].align;

	if (!lowest || lowest > 16)
		return 1;
	if (lowest == 16)
		most = max_u64(of[CAIRN_C_LDOUBLE].align, of[CAIRN_C_INT128].align);
	return (uint32_t)min_u64(lowest, max_u64(most, 4));
}

static uint32_t compute_one(struct cairn_layout *l, const struct cairn_type *t, unsigned int depth)
{
	switch (t->kind) {
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
	case CAIRN_T_UNION:
		return of_members(l, t, depth);
	case CAIRN_T_ARRAY:
		return depth < NEST_MAX ? compute(l, t->ref, depth + 1) : 1;
	case CAIRN_T_INT:
	case CAIRN_T_FLOAT:
	case CAIRN_T_ENUM:
	case CAIRN_T_PTR:
	case CAIRN_T_REF:
	case CAIRN_T_RREF:
		return of_size(l->opts.abi, t->size);
	default:
		return 1;
	}
}

static uint32_t compute(struct cairn_layout *l, uint32_t id, unsigned int depth)
{
	id = cairn_types_resolve(l->types, id);
	struct type_memo *memo = id < l->n ? &l->memo[id] : NULL;

	if (!memo || memo->busy)
		return 1;
	if (!memo->natural) {
		memo->busy = true;
		memo->natural = compute_one(l, cairn_types_get(l->types, id), depth);
		memo->busy = false;
	}
	return memo->natural;
}

uint32_t layout_natural_align(struct cairn_layout *l, uint32_t id)
{
	return compute(l, id, 0);
}

/*
 * The alignment that must have been demanded if a member begins at @off although the previous one
 * ends at @behind; 0: none.
 */
static uint32_t infer(const struct cairn_layout *l, uint64_t off, uint64_t behind, uint32_t natural)
{
	uint64_t delta = off - behind;
	uint32_t align = 1;

	if (off <= behind || off % 2 || delta >= UINT64_C(1) << 31)
		return 0;
	while (align <= delta)
		align *= 2;
	if (align <= natural)
		return 0;
	if (align < l->opts.cacheline && l->opts.cacheline % align == 0 &&
	    off % l->opts.cacheline == 0)
		align = l->opts.cacheline;
	return align;
}

static void infer_all(struct cairn_layout *l, const struct cairn_type *t,
		      struct cairn_layout_member *m, struct cairn_layout_facts *ret)
{
	uint64_t behind = 0;

	for (uint32_t i = 0; i < t->n_members; i++) {
		uint32_t natural = layout_natural_align(l, t->members[i].type);

		if (!t->members[i].bit_size)
			m[i].aligned = infer(l, m[i].offset, behind, natural);
		/* A marker without a size ends nothing. */
		if (t->members[i].bit_size)
			behind = (t->members[i].bit_off + t->members[i].bit_size + 7) / 8;
		else if (m[i].size)
			behind = m[i].offset + m[i].size;
	}
	ret->aligned = infer(l, t->size, behind, ret->natural_align);
}

/* True for a struct whose members have no holes and padding, but would have without packed. */
static bool is_packed(struct cairn_layout *l, const struct cairn_type *t,
		      const struct cairn_layout_member *m, const struct cairn_layout_facts *facts)
{
	uint32_t most = 1;

	if (facts->padding || facts->n_holes)
		return false;
	for (uint32_t i = 0; i < t->n_members; i++) {
		uint32_t natural = layout_natural_align(l, t->members[i].type);

		if (m[i].offset % natural)
			return true;
		most = natural > most ? natural : most;
	}
	return (most != 1 && facts->aligned == 1) || t->size % most;
}

void layout_find_alignments(struct cairn_layout *l, const struct cairn_type *t,
			    struct cairn_layout_member *m, struct cairn_layout_facts *ret)
{
	ret->natural_align = of_members(l, t, 0);
	ret->aligned = t->align;
	for (uint32_t i = 0; i < t->n_members; i++)
		m[i].aligned = t->members[i].align;
	if (l->opts.infer_aligned && t->kind != CAIRN_T_UNION && t != l->other)
		infer_all(l, t, m, ret);
	ret->packed = is_structure(t) && is_packed(l, t, m, ret);
}
