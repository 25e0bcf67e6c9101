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
	[CAIRN_BTF_FUNC_PROTO] =
		{.known = true, .ref_is_id = true, .n_elem = 2, .elem_names = W0, .elem_ids = W1},
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
	/* clang-format off */
	static const char *const names[CAIRN_BTF_N_KINDS] = {
		"VOID",	    "INT",	 "PTR",	      "ARRAY",	    "STRUCT",	 "UNION",
		"ENUM",	    "FWD",	 "TYPEDEF",   "VOLATILE",   "CONST",	 "RESTRICT",
		"FUNC",	    "FUNC_PROTO", "VAR",      "DATASEC",    "FLOAT",	 "DECL_TAG",
		"TYPE_TAG", "ENUM64",	 "LOC_PARAM", "LOC_PROTO", "LOCSEC",
	};
	/* clang-format on */
	return kind < CAIRN_BTF_N_KINDS ? names[kind] : "UNKNOWN";
}
