/* SPDX-License-Identifier: BSD-2-Clause */
/* A layout as one JSON object; the keys are described in docs/json.md. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "layout.h"

enum { NAME_MAX_SHOWN = 4096 };

const char *layout_kind(const struct cairn_types *types, uint32_t id)
{
	switch (cairn_types_get(types, cairn_types_resolve(types, id))->kind) {
	case CAIRN_T_UNION:
		return "union";
	case CAIRN_T_ENUM:
		return "enum";
	case CAIRN_T_CLASS:
		return "class";
	default:
		return "struct";
	}
}

struct members {
	struct json *j;
	struct cairn_layout *layout;
	const struct cairn_types *types;
	bool expand;
	uint32_t n; /* that were written */
};

/*
 * Nested structs, two levels of JSON each: no source has that many. Members: all of them, as types
 * may repeat one another.
 */
enum { NEST_MAX = JSON_DEPTH_MAX / 2 - 4, MEMBERS_MAX = 1 << 20 };

static int put_members(struct members *to, uint32_t id, uint64_t base, unsigned int depth);

/*
 * The contents of a member: always for a struct without a name, as nothing else shows it; for
 * others with --expand.
 */
static int put_inside(struct members *to, uint32_t id, uint64_t base, unsigned int depth)
{
	const struct cairn_type *t = cairn_types_get(to->types, id),
				*in = cairn_types_get(to->types,
						      cairn_types_resolve(to->types, id));

	if ((t->name && !to->expand) || !in->n_members || in->kind == CAIRN_T_FUNC ||
	    depth == NEST_MAX || to->n > MEMBERS_MAX)
		return 0;
	return put_members(to, id, base, depth);
}

static int put_member(struct members *to, const struct cairn_member *in,
		      const struct cairn_layout_member *m, uint64_t base, unsigned int depth)
{
	char type[NAME_MAX_SHOWN];
	struct json *j = to->j;

	cairn_types_name(to->types, in->type, type, sizeof(type));
	json_open(j, NULL, '{');
	json_text(j, "name", in->name);
	json_text(j, "type", type);
	json_uint(j, "offset", base + m->offset);
	json_uint(j, "size", m->size);
	if (in->bit_size) {
		json_uint(j, "bit_offset", 8 * base + in->bit_off);
		json_uint(j, "bits", in->bit_size);
	}
	if (in->dynamic)
		json_bool(j, "dynamic", true);
	if (m->aligned)
		json_uint(j, "aligned", m->aligned);
	if (m->hole)
		json_uint(j, "hole", m->hole);
	if (m->bit_hole)
		json_uint(j, "bit_hole", m->bit_hole);
	int rc = in->bit_size || in->dynamic
			 ? 0
			 : put_inside(to, in->type, base + m->offset, depth + 1);
	json_close(j);
	return rc;
}

/* @base: where the struct begins in the one around it all. */
static int put_members(struct members *to, uint32_t id, uint64_t base, unsigned int depth)
{
	const struct cairn_type *t = cairn_types_get(to->types, cairn_types_resolve(to->types, id));
	struct cairn_layout_member *m = calloc(t->n_members + 1, sizeof(*m));
	uint32_t *order = calloc(t->n_members + 1, sizeof(*order));
	struct cairn_layout_facts f;
	int rc = m && order && cairn_layout_facts(to->layout, id, &f, m) > 0 &&
				 cairn_layout_order(to->layout, id, order) >= 0
			 ? 0
			 : -ENOMEM;

	if (!rc)
		json_open(to->j, "members", '[');
	for (uint32_t i = 0; i < t->n_members && !rc; i++, to->n++)
		rc = put_member(to, &t->members[order[i]], &m[order[i]], base, depth);
	if (!rc)
		json_close(to->j);
	free(m);
	free(order);
	return rc;
}

static int put_struct(struct members *to, uint32_t id)
{
	struct cairn_layout_facts f;
	struct json *j = to->j;

	if (cairn_layout_facts(to->layout, id, &f, NULL) <= 0)
		return -ENOMEM;
	json_bool(j, "packed", f.packed);
	if (f.aligned)
		json_uint(j, "aligned", f.aligned);
	json_uint(j, "holes", f.n_holes);
	json_uint(j, "sum_holes", f.sum_holes);
	json_uint(j, "bit_holes", f.n_bit_holes);
	json_uint(j, "sum_bit_holes", f.sum_bit_holes);
	if (f.n_unplaced)
		json_uint(j, "unplaced", f.n_unplaced);
	if (f.n_unplaced_bases)
		json_uint(j, "unplaced_bases", f.n_unplaced_bases);
	json_uint(j, "padding", f.padding);
	json_uint(j, "bit_padding", f.bit_padding);
	return put_members(to, id, 0, 0);
}

static void put_enum(struct json *j, const struct cairn_type *t)
{
	json_open(j, "enumerators", '[');
	for (uint32_t i = 0; i < t->n_enumerators; i++) {
		json_open(j, NULL, '{');
		json_text(j, "name", t->enumerators[i].name);
		if (t->encoding == CAIRN_ENC_UNSIGNED)
			json_uint(j, "value", (uint64_t)t->enumerators[i].value);
		else
			json_int(j, "value", t->enumerators[i].value);
		json_close(j);
	}
	json_close(j);
}

int layout_json(const struct layout_source *file, struct cairn_layout *layout, uint32_t id,
		bool expand)
{
	const struct cairn_types *types = layout_types(file);
	const struct cairn_type *t = cairn_types_get(types, cairn_types_resolve(types, id));
	const struct cairn_type *node = cairn_types_get(types, id);
	const struct cairn_abi *abi = layout_abi(file);
	struct json j = {.out = stdout};
	struct members members = {.j = &j, .layout = layout, .types = types, .expand = expand};
	int rc = 0;

	json_open(&j, NULL, '{');
	json_text(&j, "kind", layout_kind(types, id));
	json_text(&j, "name", node->name);
	json_text(&j, "abi", abi ? abi->name : NULL);
	json_uint(&j, "size", t->size);
	if (t->abi_align)
		json_uint(&j, "align",
			  node->kind == CAIRN_T_TYPEDEF && node->align ? node->align
								       : t->abi_align);
	if (t->kind == CAIRN_T_ENUM)
		put_enum(&j, t);
	else
		rc = put_struct(&members, id);
	layout_json_deduced(&j, file, id);
	json_close(&j);
	return rc;
}
