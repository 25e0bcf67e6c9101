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

static void put_member(struct json *j, const struct cairn_types *types, const struct cairn_member *in,
		       const struct cairn_layout_member *m)
{
	char type[NAME_MAX_SHOWN];

	cairn_types_name(types, in->type, type, sizeof(type));
	json_open(j, NULL, '{');
	json_text(j, "name", in->name);
	json_text(j, "type", type);
	json_uint(j, "offset", m->offset);
	json_uint(j, "size", m->size);
	if (in->bit_size) {
		json_uint(j, "bit_offset", in->bit_off);
		json_uint(j, "bits", in->bit_size);
	}
	if (m->aligned)
		json_uint(j, "aligned", m->aligned);
	if (m->hole)
		json_uint(j, "hole", m->hole);
	if (m->bit_hole)
		json_uint(j, "bit_hole", m->bit_hole);
	json_close(j);
}

static int put_struct(struct json *j, struct cairn_layout *layout, const struct cairn_types *types, uint32_t id,
		       const struct cairn_type *t)
{
	struct cairn_layout_member *m = calloc(t->n_members + 1, sizeof(*m));
	struct cairn_layout_facts f;

	if (!m || cairn_layout_facts(layout, id, &f, m) <= 0) {
		free(m);
		return -ENOMEM;
	}
	json_bool(j, "packed", f.packed);
	if (f.aligned)
		json_uint(j, "aligned", f.aligned);
	json_uint(j, "holes", f.n_holes);
	json_uint(j, "sum_holes", f.sum_holes);
	json_uint(j, "bit_holes", f.n_bit_holes);
	json_uint(j, "sum_bit_holes", f.sum_bit_holes);
	json_uint(j, "padding", f.padding);
	json_uint(j, "bit_padding", f.bit_padding);
	json_open(j, "members", '[');
	for (uint32_t i = 0; i < t->n_members; i++)
		put_member(j, types, &t->members[i], &m[i]);
	json_close(j);
	free(m);
	return 0;
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

int layout_json(const struct layout_source *file, struct cairn_layout *layout, uint32_t id)
{
	const struct cairn_types *types = layout_types(file);
	const struct cairn_type *t = cairn_types_get(types, cairn_types_resolve(types, id));
	const struct cairn_type *node = cairn_types_get(types, id);
	const struct cairn_abi *abi = layout_abi(file);
	struct json j = {.out = stdout};
	int rc = 0;

	json_open(&j, NULL, '{');
	json_text(&j, "kind", layout_kind(types, id));
	json_text(&j, "name", node->name);
	json_text(&j, "abi", abi ? abi->name : NULL);
	json_uint(&j, "size", t->size);
	if (t->abi_align)
		json_uint(&j, "align", node->kind == CAIRN_T_TYPEDEF && node->align ? node->align : t->abi_align);
	if (t->kind == CAIRN_T_ENUM)
		put_enum(&j, t);
	else
		rc = put_struct(&j, layout, types, id, t);
	layout_json_deduced(&j, file, id);
	json_close(&j);
	return rc;
}
