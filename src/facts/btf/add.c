/* SPDX-License-Identifier: BSD-2-Clause */
/* Records by kind: each function turns its arguments into words. */
#include <errno.h>
#include <string.h>

#include "btf/build.h"
#include "btf/location.h"

/* A record with one word after the first three, or none. */
static int add_word(struct cairn_btf_builder *b, uint32_t name, uint32_t info, uint32_t ref,
		    uint32_t word, uint32_t *ret)
{
	int rc;
	uint32_t *w = btf_add_space(b, name, info, ref, 1, ret, &rc);
	if (w)
		w[0] = word;
	return rc;
}

static int add_bare(struct cairn_btf_builder *b, uint32_t name, uint32_t info, uint32_t ref,
		    uint32_t *ret)
{
	int rc;
	btf_add_space(b, name, info, ref, 0, ret, &rc);
	return rc;
}

/* A record of @n elements of @elem_words words each. */
static uint32_t *add_elements(struct cairn_btf_builder *b, uint32_t name, uint32_t info,
			      uint32_t ref, uint32_t elem_words, uint32_t n, uint32_t *ret, int *rc)
{
	if (n <= BTF_VLEN_MAX)
		return btf_add_space(b, name, info | n, ref, elem_words * n, ret, rc);
	*rc = -ERANGE;
	return NULL;
}

int btf_add_int(struct cairn_btf_builder *b, uint32_t name, uint32_t bytes, uint32_t encoding,
		uint32_t bits, uint32_t *ret)
{
	if (bits > 128 || bytes > 16)
		return -EINVAL;
	return add_word(b, name, BTF_INFO(CAIRN_BTF_INT, 0, 0), bytes, encoding << 24 | bits, ret);
}

int btf_add_float(struct cairn_btf_builder *b, uint32_t name, uint32_t bytes, uint32_t *ret)
{
	return add_bare(b, name, BTF_INFO(CAIRN_BTF_FLOAT, 0, 0), bytes, ret);
}

int btf_add_ref(struct cairn_btf_builder *b, enum cairn_btf_kind kind, uint32_t name, uint32_t type,
		uint32_t *ret)
{
	return add_bare(b, name, BTF_INFO(kind, 0, 0), type, ret);
}

int btf_add_array(struct cairn_btf_builder *b, uint32_t type, uint32_t index_type, uint32_t n,
		  uint32_t *ret)
{
	int rc;
	uint32_t *w = btf_add_space(b, 0, BTF_INFO(CAIRN_BTF_ARRAY, 0, 0), 0, 3, ret, &rc);
	if (!w)
		return rc;
	w[0] = type;
	w[1] = index_type;
	w[2] = n;
	return 0;
}

int btf_add_struct(struct cairn_btf_builder *b, enum cairn_btf_kind kind, uint32_t name,
		   uint32_t bytes, const struct cairn_btf_member *members, uint32_t n,
		   uint32_t *ret)
{
	bool has_bits = false;
	int rc;
	for (uint32_t i = 0; i < n; i++)
		has_bits |= members[i].bit_size != 0;
	for (uint32_t i = 0; has_bits && i < n; i++)
		if (members[i].bit_off > 0xffffff || members[i].bit_size > 0xff)
			return -EINVAL;
	uint32_t *w = add_elements(b, name, BTF_INFO(kind, has_bits, 0), bytes, 3, n, ret, &rc);
	for (uint32_t i = 0; w && i < n; i++, w += 3) {
		w[0] = members[i].name_off;
		w[1] = members[i].type;
		w[2] = members[i].bit_size << 24 | members[i].bit_off;
	}
	return rc;
}

static bool fits_32(const struct cairn_btf_enumerator *values, uint32_t n, bool is_signed)
{
	for (uint32_t i = 0; i < n; i++)
		if (is_signed ? values[i].value != (int32_t)values[i].value
			      : (uint64_t)values[i].value > UINT32_MAX)
			return false;
	return true;
}

int btf_add_enum(struct cairn_btf_builder *b, uint32_t name, uint32_t bytes, bool is_signed,
		 const struct cairn_btf_enumerator *values, uint32_t n, uint32_t *ret)
{
	int rc;
	bool wide = bytes > 4 || !fits_32(values, n, is_signed);
	uint32_t info = BTF_INFO(wide ? CAIRN_BTF_ENUM64 : CAIRN_BTF_ENUM, is_signed, 0);
	uint32_t *w = add_elements(b, name, info, bytes, wide ? 3 : 2, n, ret, &rc);
	for (uint32_t i = 0; w && i < n; i++) {
		*w++ = values[i].name_off;
		*w++ = (uint32_t)values[i].value;
		if (wide)
			*w++ = (uint32_t)((uint64_t)values[i].value >> 32);
	}
	return rc;
}

int btf_add_fwd(struct cairn_btf_builder *b, uint32_t name, bool is_union, uint32_t *ret)
{
	return add_bare(b, name, BTF_INFO(CAIRN_BTF_FWD, is_union, 0), 0, ret);
}

int btf_add_func_proto(struct cairn_btf_builder *b, uint32_t return_type,
		       const struct cairn_btf_param *params, uint32_t n, uint32_t *ret)
{
	int rc;
	uint32_t *w = add_elements(b, 0, BTF_INFO(CAIRN_BTF_FUNC_PROTO, 0, 0), return_type, 2, n,
				   ret, &rc);
	for (uint32_t i = 0; w && i < n; i++) {
		*w++ = params[i].name_off;
		*w++ = params[i].type;
	}
	return rc;
}

int btf_add_func(struct cairn_btf_builder *b, uint32_t name, enum cairn_btf_linkage linkage,
		 uint32_t func_proto, uint32_t *ret)
{
	return add_bare(b, name, BTF_INFO(CAIRN_BTF_FUNC, 0, linkage), func_proto, ret);
}

int btf_add_var(struct cairn_btf_builder *b, uint32_t name, enum cairn_btf_linkage linkage,
		uint32_t type, uint32_t *ret)
{
	return add_word(b, name, BTF_INFO(CAIRN_BTF_VAR, 0, 0), type, linkage, ret);
}

int btf_add_datasec(struct cairn_btf_builder *b, uint32_t name, uint32_t bytes,
		    const struct cairn_btf_secinfo *vars, uint32_t n, uint32_t *ret)
{
	int rc;
	uint32_t *w =
		add_elements(b, name, BTF_INFO(CAIRN_BTF_DATASEC, 0, 0), bytes, 3, n, ret, &rc);
	for (uint32_t i = 0; w && i < n; i++) {
		*w++ = vars[i].type;
		*w++ = vars[i].offset;
		*w++ = vars[i].size;
	}
	return rc;
}

int btf_add_decl_tag(struct cairn_btf_builder *b, uint32_t name, uint32_t type, int32_t component,
		     bool is_attribute, uint32_t *ret)
{
	uint32_t info = BTF_INFO(CAIRN_BTF_DECL_TAG, is_attribute, 0);
	return add_word(b, name, info, type, (uint32_t)component, ret);
}

int btf_add_loc_param(struct cairn_btf_builder *b, const struct cairn_btf_loc_param *param,
		      uint32_t *ret)
{
	struct btf_loc_words l;
	enum cairn_btf_dialect dialect = btf_builder_dialect(b);
	int rc = dialect == CAIRN_BTF_NO_LOC ? -EINVAL : btf_loc_encode(dialect, param, &l);
	if (rc < 0)
		return rc;
	uint32_t info = BTF_INFO(CAIRN_BTF_LOC_PARAM, l.kflag, l.vlen);
	uint32_t *w = btf_add_space(b, 0, info, l.size, l.n_words, ret, &rc);
	if (w)
		memcpy(w, l.words, l.n_words * sizeof(*w));
	return rc;
}

int btf_add_loc_proto(struct cairn_btf_builder *b, const uint32_t *params, uint32_t n,
		      uint32_t *ret)
{
	int rc;
	if (btf_builder_dialect(b) == CAIRN_BTF_NO_LOC)
		return -EINVAL;
	uint32_t *w = add_elements(b, 0, BTF_INFO(CAIRN_BTF_LOC_PROTO, 0, 0), 0, 1, n, ret, &rc);
	if (w && n)
		memcpy(w, params, n * sizeof(*w));
	return rc;
}

int btf_add_locsec(struct cairn_btf_builder *b, uint32_t name, const struct cairn_btf_loc *locs,
		   uint32_t n, uint32_t *ret)
{
	int rc;
	enum cairn_btf_dialect dialect = btf_builder_dialect(b);
	if (dialect == CAIRN_BTF_NO_LOC)
		return -EINVAL;
	bool v1 = dialect == CAIRN_BTF_LOC_V1;
	uint32_t *w =
		add_elements(b, name, BTF_INFO(CAIRN_BTF_LOCSEC, 0, 0), 0, v1 ? 4 : 3, n, ret, &rc);
	for (uint32_t i = 0; w && i < n; i++) {
		if (v1)
			*w++ = locs[i].name_off;
		*w++ = v1 ? locs[i].func_proto : locs[i].func;
		*w++ = locs[i].loc_proto;
		*w++ = locs[i].offset;
	}
	return rc;
}
