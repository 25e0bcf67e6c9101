/* SPDX-License-Identifier: BSD-2-Clause */
#include "btf/shape.h"

/* Bits of the masks: words 0, 1, 2 of the fixed part or of an element. */
enum { W0 = 1, W1 = 2, W2 = 4 };

static const struct btf_shape shapes[CAIRN_BTF_N_KINDS] = {
	[CAIRN_BTF_INT] = {.known = true, .n_fixed = 1},
	[CAIRN_BTF_PTR] = {.known = true, .ref_is_id = true},
	[CAIRN_BTF_ARRAY] = {.known = true, .n_fixed = 3, .fixed_ids = W0 | W1},
	[CAIRN_BTF_STRUCT] = {.known = true, .n_elem = 3, .elem_names = W0, .elem_ids = W1},
	[CAIRN_BTF_UNION] = {.known = true, .n_elem = 3, .elem_names = W0, .elem_ids = W1},
	[CAIRN_BTF_ENUM] = {.known = true, .n_elem = 2, .elem_names = W0},
	[CAIRN_BTF_FWD] = {.known = true},
	[CAIRN_BTF_TYPEDEF] = {.known = true, .ref_is_id = true},
	[CAIRN_BTF_VOLATILE] = {.known = true, .ref_is_id = true},
	[CAIRN_BTF_CONST] = {.known = true, .ref_is_id = true},
	[CAIRN_BTF_RESTRICT] = {.known = true, .ref_is_id = true},
	[CAIRN_BTF_FUNC] = {.known = true, .ref_is_id = true},
	[CAIRN_BTF_FUNC_PROTO] = {.known = true,
				  .ref_is_id = true,
				  .n_elem = 2,
				  .elem_names = W0,
				  .elem_ids = W1},
	[CAIRN_BTF_VAR] = {.known = true, .ref_is_id = true, .n_fixed = 1},
	[CAIRN_BTF_DATASEC] = {.known = true, .n_elem = 3, .elem_ids = W0},
	[CAIRN_BTF_FLOAT] = {.known = true},
	[CAIRN_BTF_DECL_TAG] = {.known = true, .ref_is_id = true, .n_fixed = 1},
	[CAIRN_BTF_TYPE_TAG] = {.known = true, .ref_is_id = true},
	[CAIRN_BTF_ENUM64] = {.known = true, .n_elem = 3, .elem_names = W0},
	[CAIRN_BTF_LOC_PARAM] = {.known = true, .n_fixed = 1, .n_elem = 1},
	[CAIRN_BTF_LOC_PROTO] = {.known = true, .n_elem = 1, .elem_ids = W0},
	[CAIRN_BTF_LOCSEC] = {.known = true, .n_elem = 3, .elem_ids = W0 | W1},
};

/* v1: {reg and flags, offset} or {low, high}; {name, func_proto, loc_proto, offset}. */
static const struct btf_shape v1_loc_param = {.known = true, .n_fixed = 2};
static const struct btf_shape v1_locsec = {
	.known = true, .n_elem = 4, .elem_names = W0, .elem_ids = W1 | W2};

const struct btf_shape *btf_shape(uint32_t kind, enum cairn_btf_dialect dialect)
{
	if (kind == CAIRN_BTF_VOID || kind >= CAIRN_BTF_N_KINDS)
		return NULL;
	if (kind >= CAIRN_BTF_LOC_PARAM && dialect == CAIRN_BTF_NO_LOC)
		return NULL;
	if (kind == CAIRN_BTF_LOC_PARAM && dialect == CAIRN_BTF_LOC_V1)
		return &v1_loc_param;
	if (kind == CAIRN_BTF_LOCSEC && dialect == CAIRN_BTF_LOC_V1)
		return &v1_locsec;
	return &shapes[kind];
}

const char *btf_kind_name(uint32_t kind)
{
	static const char *const names[CAIRN_BTF_N_KINDS] = {
		"VOID",	    "INT",	 "PTR",	      "ARRAY",	    "STRUCT",	 "UNION",
		"ENUM",	    "FWD",	 "TYPEDEF",   "VOLATILE",   "CONST",	 "RESTRICT",
		"FUNC",	    "FUNC_PROTO", "VAR",      "DATASEC",    "FLOAT",	 "DECL_TAG",
		"TYPE_TAG", "ENUM64",	 "LOC_PARAM", "LOC_PROTO", "LOCSEC",
	};
	return kind < CAIRN_BTF_N_KINDS ? names[kind] : "UNKNOWN";
}

static struct btf_fields fields_of(const struct btf_shape *shape, uint32_t *record, uint8_t fixed_mask,
				   uint8_t elem_mask)
{
	uint32_t info = record[BTF_RECORD_INFO];
	uint32_t *words = record + BTF_RECORD_WORDS;
	uint64_t n = btf_n_words(shape, BTF_INFO_KIND(info), BTF_INFO_VLEN(info));
	return (struct btf_fields){
		.p = words,
		.end = words + (elem_mask ? n : shape->n_fixed),
		.elem_mask = elem_mask,
		.n_elem = shape->n_elem,
		.mask = fixed_mask,
		.left = shape->n_fixed,
	};
}

struct btf_fields btf_ids_of(const struct btf_shape *shape, uint32_t *record)
{
	struct btf_fields f = fields_of(shape, record, shape->fixed_ids, shape->elem_ids);
	if (shape->ref_is_id)
		f.first = &record[BTF_RECORD_REF];
	return f;
}

struct btf_fields btf_names_of(const struct btf_shape *shape, uint32_t *record)
{
	struct btf_fields f = fields_of(shape, record, 0, shape->elem_names);
	f.first = &record[BTF_RECORD_NAME];
	return f;
}
