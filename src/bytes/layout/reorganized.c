/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A struct in its new order, as text: the view takes a node with the members in their new places
 * for the struct.
 */
#include <errno.h>
#include <stdlib.h>

#include "layout/reorganize.h"

static bool make_other(struct cairn_layout *l, uint32_t id, const struct cairn_reorganized *r,
		       struct cairn_type *other, struct cairn_member *members, bool *separate)
{
	struct cairn_layout_member *m = layout_members_new(l, layout_resolve(l, id));
	struct cairn_layout_facts f;

	if (!m || layout_facts(l, id, &f, m) <= 0) {
		free(m);
		return false;
	}
	*other = *layout_resolve(l, id);
	for (uint32_t i = 0; i < r->n_members; i++) {
		uint32_t from = r->members[i].index;

		members[i] = other->members[from];
		members[i].bit_off = r->members[i].bit_off;
		members[i].align = m[from].aligned;
		separate[i] = r->members[i].separate;
	}
	free(m);
	other->members = members;
	other->size = r->new_size;
	other->align = f.aligned;
	return true;
}

int cairn_reorganized_print(struct cairn_layout *l, uint32_t id, const struct cairn_reorganized *r,
			    FILE *out)
{
	struct cairn_member *members = calloc(r->n_members + 1, sizeof(*members));
	bool *separate = calloc(r->n_members + 1, sizeof(*separate));
	struct cairn_type other;
	int rc = -ENOMEM;

	if (members && separate && make_other(l, id, r, &other, members, separate)) {
		l->other_id = cairn_types_resolve(l->types, id);
		l->other = &other;
		l->separate = separate;
		rc = cairn_layout_print(l, id, out);
		l->other = NULL;
	}
	free(members);
	free(separate);
	return rc;
}
