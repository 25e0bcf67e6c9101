/* SPDX-License-Identifier: BSD-2-Clause */
/* Structs that end with a flexible array. */
#include "layout/print.h"

bool ends_flexible(const struct cairn_layout *l, const struct cairn_type *t)
{
	if (!has_layout(t) || !t->n_members)
		return false;
	const struct cairn_type *last = layout_resolve(l, t->members[t->n_members - 1].type);
	return last->kind == CAIRN_T_ARRAY && !last->vector && !last->count;
}

static bool look_for_embedded(const struct cairn_layout *l, const struct cairn_type *t,
			      unsigned int depth)
{
	for (uint32_t i = 0; has_layout(t) && i < t->n_members && depth < NEST_MAX; i++) {
		/* Typedefs are not followed, and unions are not searched. */
		const struct cairn_type *in = cairn_types_get(l->types, t->members[i].type);

		if (is_structure(in) &&
		    (ends_flexible(l, in) || embeds_flexible(l, t->members[i].type, depth + 1)))
			return true;
	}
	return false;
}

bool embeds_flexible(const struct cairn_layout *l, uint32_t id, unsigned int depth)
{
	id = cairn_types_resolve(l->types, id);
	struct type_memo *memo = id < l->n ? &l->memo[id] : NULL;

	if (!memo)
		return false;
	if (memo->embeds == FACT_UNKNOWN) {
		/* Until it is known, no: a struct that contains itself comes here again. */
		memo->embeds = FACT_NO;
		if (look_for_embedded(l, cairn_types_get(l->types, id), depth))
			memo->embeds = FACT_YES;
	}
	return memo->embeds == FACT_YES;
}
