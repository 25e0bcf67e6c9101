/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The alignment that a type has as a member
 *
 * C declarations have it for every type. Debug information has it for types with an attribute; for
 * the others the ABI's table gives it, for structs their members. Alignments that BTF does not
 * record are inferred as for printing (align.c).
 */
#include <stdlib.h>

#include "layout/place.h"
#include "layout/view.h"

static uint32_t of_scalar(const struct cairn_abi *abi, const enum cairn_scalar *kinds, size_t n,
			  uint64_t size)
{
	for (size_t i = 0; i < n; i++)
		if (abi->scalars[kinds[i]].size == size)
			return abi->scalars[kinds[i]].align;
	return 1;
}

static uint32_t of_float(const struct cairn_abi *abi, const struct cairn_type *t)
{
	static const enum cairn_scalar kinds[] = {CAIRN_C_FLOAT, CAIRN_C_DOUBLE, CAIRN_C_LDOUBLE,
						  CAIRN_C_FLOAT128, CAIRN_C_FLOAT16};

	return of_scalar(abi, kinds, sizeof(kinds) / sizeof(kinds[0]),
			 t->encoding == CAIRN_ENC_COMPLEX ? t->size / 2 : t->size);
}

static uint32_t of_integer(const struct cairn_abi *abi, uint64_t size)
{
	static const enum cairn_scalar kinds[] = {CAIRN_C_CHAR, CAIRN_C_SHORT, CAIRN_C_INT,
						  CAIRN_C_LLONG, CAIRN_C_INT128};

	return of_scalar(abi, kinds, sizeof(kinds) / sizeof(kinds[0]), size);
}

static uint32_t more(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t compute(struct cairn_layout *l, uint32_t id, unsigned int depth);

/* For a struct: the alignment of its members; none that its size is no multiple of. */
static uint32_t of_aggregate(struct cairn_layout *l, const struct cairn_type *t, uint32_t id,
			     unsigned int depth)
{
	struct cairn_layout_member *m = layout_members_new(l, t);
	struct cairn_layout_facts f;
	uint32_t most = 1;

	if (!m || layout_facts(l, id, &f, m) <= 0) {
		free(m);
		return 1;
	}
	for (uint32_t i = 0; i < t->n_members && !f.packed; i++)
		most = more(more(most, m[i].aligned), compute(l, t->members[i].type, depth + 1));
	free(m);
	most = more(most, f.aligned);
	while (most > 1 && t->size % most)
		most /= 2;
	return most;
}

static uint32_t of_vector(const struct cairn_abi *abi, const struct cairn_type *t)
{
	uint64_t align = min_u64(t->size & -t->size, abi->vector_align_max);

	return align ? (uint32_t)align : 1;
}

static uint32_t compute_one(struct cairn_layout *l, const struct cairn_type *t, uint32_t id,
			    unsigned int depth)
{
	const struct cairn_abi *abi = l->opts.abi;

	switch (t->kind) {
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
	case CAIRN_T_UNION:
		return of_aggregate(l, t, id, depth);
	case CAIRN_T_ARRAY:
		return t->vector ? of_vector(abi, t) : compute(l, t->ref, depth + 1);
	case CAIRN_T_FLOAT:
		return of_float(abi, t);
	case CAIRN_T_INT:
	case CAIRN_T_ENUM:
		return of_integer(abi, t->size);
	case CAIRN_T_PTR:
	case CAIRN_T_REF:
	case CAIRN_T_RREF:
	case CAIRN_T_MEMBER_PTR:
		return abi->scalars[CAIRN_C_PTR].align;
	default:
		return 1;
	}
}

static uint32_t compute(struct cairn_layout *l, uint32_t id, unsigned int depth)
{
	const struct cairn_type *t = cairn_types_get(l->types, id);
	bool atomic = false;

	/* An attribute of a typedef also lowers. */
	for (unsigned int i = 0;
	     i < NEST_MAX && (t->kind == CAIRN_T_TYPEDEF || t->kind >= CAIRN_T_CONST); i++) {
		if (t->abi_align || t->align || t->kind >= CAIRN_T_FUNC)
			break;
		atomic |= t->kind == CAIRN_T_ATOMIC;
		id = t->ref;
		t = cairn_types_get(l->types, id);
	}
	if (t->abi_align || (t->align && !is_aggregate(t)))
		return t->abi_align ? t->abi_align : t->align;
	struct type_memo *memo = id < l->n ? &l->memo[id] : NULL;
	if (!memo || memo->aligning || depth > NEST_MAX)
		return 1;
	if (!memo->align) {
		memo->aligning = true;
		uint32_t align = compute_one(l, t, id, depth);
		memo->aligning = false;
		if (l->no_memory)
			return 1;
		memo->align = align;
	}
	if (atomic && t->size <= l->opts.abi->atomic_max && !(t->size & (t->size - 1)))
		return more(memo->align, (uint32_t)t->size);
	return memo->align;
}

uint32_t layout_align(struct cairn_layout *l, uint32_t id)
{
	return compute(l, id, 0);
}
