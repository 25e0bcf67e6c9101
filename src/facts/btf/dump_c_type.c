/* SPDX-License-Identifier: BSD-2-Clause */
/* Records as C sees them: through typedefs and qualifiers, and which of them have no name. */
#include "btf/dump_c.h"

struct cairn_btf_type c_get(const struct dump_c *d, uint32_t id)
{
	struct cairn_btf_type t;

	if (!cairn_btf_type(d->btf, id, &t))
		return (struct cairn_btf_type){.kind = CAIRN_BTF_VOID, .name = ""};
	return t;
}

struct cairn_btf_type c_resolve(const struct dump_c *d, uint32_t id)
{
	struct cairn_btf_type t = c_get(d, id);

	for (uint32_t i = 0; c_is_qualifier(t.kind) || t.kind == CAIRN_BTF_TYPEDEF; i++) {
		if (i >= C_CHAIN_MAX)
			return c_get(d, 0);
		t = c_get(d, t.ref);
	}
	return t;
}

/* The next link of a declarator; false at its base. */
bool c_next_link(const struct dump_c *d, struct cairn_btf_type *t, bool returns)
{
	uint32_t kind = t->kind, next = t->ref;

	if (kind == CAIRN_BTF_ARRAY)
		next = t->words[0];
	else if (kind == CAIRN_BTF_PTR && d->types[t->id].cut)
		next = 0;
	else if (kind == CAIRN_BTF_FUNC_PROTO ? !returns || d->types[t->id].hoisted
					      : kind != CAIRN_BTF_PTR && !c_is_qualifier(kind))
		return false;
	*t = c_get(d, next);
	return true;
}

uint32_t c_base(const struct dump_c *d, uint32_t id, bool returns)
{
	struct cairn_btf_type t = c_get(d, id);

	for (uint32_t i = 0; c_next_link(d, &t, returns); i++)
		if (i >= C_CHAIN_MAX)
			return 0;
	return t.id;
}

bool c_in_place(const struct dump_c *d, const struct cairn_btf_type *t)
{
	return (c_is_struct(t->kind) || c_is_enum(t->kind)) && !*t->name &&
	       !d->types[t->id].hoisted;
}
