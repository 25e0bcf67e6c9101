/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BTF as a type graph
 *
 * Ids stay as they are: type 17 of the blob is node 17 of the graph, through the whole chain of bases. What is no
 * type (functions, variables, sections, locations) becomes a node that says nothing. Names are borrowed from the blob.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "btf/btf.h"
#include "btf/types.h"
#include "types/build.h"

struct filler {
	const struct cairn_btf *btf;
	struct cairn_types *types;
	struct arena *arena;
	uint8_t pointer_size;
};

static const char *name_of(const struct cairn_btf_type *t)
{
	return t->name[0] ? t->name : NULL;
}

static enum cairn_type_encoding encoding_of(const struct cairn_btf_type *t)
{
	uint32_t encoding = CAIRN_BTF_INT_ENCODING(t->words[0]);

	if (encoding & CAIRN_BTF_INT_BOOL)
		return CAIRN_ENC_BOOL;
	/* Encoders seldom set the flag for characters. */
	if (t->ref == 1 && (encoding & CAIRN_BTF_INT_CHAR || !strcmp(t->name, "char") || !strcmp(t->name, "signed char")))
		return CAIRN_ENC_SIGNED_CHAR;
	if (t->ref == 1 && !strcmp(t->name, "unsigned char"))
		return CAIRN_ENC_UNSIGNED_CHAR;
	return encoding & CAIRN_BTF_INT_SIGNED ? CAIRN_ENC_SIGNED : CAIRN_ENC_UNSIGNED;
}

/* Before members had widths, a bit-field's type was an INT of fewer bits, placed inside its bytes. */
static void old_bit_field(const struct filler *f, const struct cairn_btf_member *from, struct cairn_member *to)
{
	struct cairn_btf_type t;

	if (from->bit_size || !cairn_btf_type(f->btf, from->type, &t) || t.kind != CAIRN_BTF_INT)
		return;
	uint32_t bits = CAIRN_BTF_INT_BITS(t.words[0]);
	if (bits == 8 * t.ref || !bits)
		return;
	to->bit_size = bits;
	to->bit_off += CAIRN_BTF_INT_OFFSET(t.words[0]);
}

static int fill_members(const struct filler *f, const struct cairn_btf_type *t, struct cairn_type *ret,
			struct cairn_err *err)
{
	struct cairn_member *m = arena_array(f->arena, t->vlen, sizeof(*m));

	if (!m && t->vlen)
		return err_nomem(err, "members of types");
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_member from = cairn_btf_member(t, i);
		const char *name = cairn_btf_string(f->btf, from.name_off);

		m[i].name = name && name[0] ? name : NULL;
		m[i].type = from.type;
		m[i].bit_off = from.bit_off;
		m[i].bit_size = from.bit_size;
		old_bit_field(f, &from, &m[i]);
	}
	ret->members = m;
	ret->n_members = t->vlen;
	return 0;
}

static int fill_params(const struct filler *f, const struct cairn_btf_type *t, struct cairn_type *ret,
		       struct cairn_err *err)
{
	struct cairn_member *m = arena_array(f->arena, t->vlen, sizeof(*m));

	if (!m && t->vlen)
		return err_nomem(err, "parameters of types");
	ret->prototyped = true;
	ret->members = m;
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_param from = cairn_btf_param(t, i);
		const char *name = cairn_btf_string(f->btf, from.name_off);

		if (i + 1 == t->vlen && !from.type && !from.name_off) {
			ret->variadic = true;
			break;
		}
		m[i].name = name && name[0] ? name : NULL;
		m[i].type = from.type;
		ret->n_members++;
	}
	return 0;
}

static int fill_enumerators(const struct filler *f, const struct cairn_btf_type *t, struct cairn_type *ret,
			    struct cairn_err *err)
{
	struct cairn_enumerator *e = arena_array(f->arena, t->vlen, sizeof(*e));

	if (!e && t->vlen)
		return err_nomem(err, "enumerators");
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_enumerator from = cairn_btf_enumerator(t, i);
		const char *name = cairn_btf_string(f->btf, from.name_off);

		e[i].name = name ? name : "";
		e[i].value = from.value;
	}
	ret->kind = CAIRN_T_ENUM;
	ret->size = t->ref;
	ret->encoding = t->kflag ? CAIRN_ENC_SIGNED : CAIRN_ENC_UNSIGNED;
	ret->enumerators = e;
	ret->n_enumerators = t->vlen;
	/* "enum e;" has no form of its own. */
	ret->declaration = !t->vlen;
	return 0;
}

static void fill_array(const struct filler *f, const struct cairn_btf_type *t, struct cairn_type *ret)
{
	ret->kind = CAIRN_T_ARRAY;
	ret->ref = t->words[0];
	ret->count = t->words[2];
	/* Whether it was [0] or [], BTF does not say. */
	ret->has_count = ret->count != 0;
}

static enum cairn_type_kind derived_kind(uint32_t kind)
{
	switch (kind) {
	case CAIRN_BTF_CONST:
		return CAIRN_T_CONST;
	case CAIRN_BTF_VOLATILE:
		return CAIRN_T_VOLATILE;
	case CAIRN_BTF_RESTRICT:
		return CAIRN_T_RESTRICT;
	default:
		/* Without a name: stands for something that C has no word for. */
		return CAIRN_T_TYPEDEF;
	}
}

static int fill(const struct filler *f, const struct cairn_btf_type *t, struct cairn_type *ret, struct cairn_err *err)
{
	ret->name = name_of(t);
	switch (t->kind) {
	case CAIRN_BTF_INT:
		ret->kind = CAIRN_T_INT;
		ret->size = t->ref;
		ret->encoding = encoding_of(t);
		return 0;
	case CAIRN_BTF_FLOAT:
		ret->kind = CAIRN_T_FLOAT;
		ret->size = t->ref;
		return 0;
	case CAIRN_BTF_PTR:
		ret->kind = CAIRN_T_PTR;
		ret->name = NULL;
		ret->ref = t->ref;
		ret->size = f->pointer_size;
		return 0;
	case CAIRN_BTF_ARRAY:
		fill_array(f, t, ret);
		return 0;
	case CAIRN_BTF_STRUCT:
	case CAIRN_BTF_UNION:
		ret->kind = t->kind == CAIRN_BTF_UNION ? CAIRN_T_UNION : CAIRN_T_STRUCT;
		ret->size = t->ref;
		return fill_members(f, t, ret, err);
	case CAIRN_BTF_ENUM:
	case CAIRN_BTF_ENUM64:
		return fill_enumerators(f, t, ret, err);
	case CAIRN_BTF_FWD:
		ret->kind = t->kflag ? CAIRN_T_UNION : CAIRN_T_STRUCT;
		ret->declaration = true;
		return 0;
	case CAIRN_BTF_TYPEDEF:
	case CAIRN_BTF_CONST:
	case CAIRN_BTF_VOLATILE:
	case CAIRN_BTF_RESTRICT:
	case CAIRN_BTF_TYPE_TAG:
		ret->kind = derived_kind(t->kind);
		ret->ref = t->ref;
		if (t->kind == CAIRN_BTF_TYPE_TAG)
			ret->name = NULL;
		return 0;
	case CAIRN_BTF_FUNC_PROTO:
		ret->kind = CAIRN_T_FUNC;
		ret->ref = t->ref;
		return fill_params(f, t, ret, err);
	default:
		ret->kind = CAIRN_T_UNSPECIFIED;
		ret->name = NULL;
		return 0;
	}
}

/* Elements may come behind their array, so sizes are computed when all nodes are there; arrays of arrays inside out. */
enum { DIMENSIONS_MAX = 64 };

static void size_array(struct cairn_types *types, uint32_t id)
{
	uint64_t count = 1;
	uint32_t element = id;
	struct cairn_type t = *cairn_types_get(types, id);

	for (int i = 0; i < DIMENSIONS_MAX; i++) {
		const struct cairn_type *at = cairn_types_get(types, cairn_types_resolve(types, element));

		if (at->kind != CAIRN_T_ARRAY) {
			if (__builtin_mul_overflow(count, at->size, &t.size) || t.size > UINT64_MAX / 16)
				t.size = 0;
			types_set(types, id, &t);
			return;
		}
		if (__builtin_mul_overflow(count, at->count, &count))
			return;
		element = at->ref;
	}
}

int btf_types(const struct cairn_btf *btf, uint8_t pointer_size, struct cairn_types **ret, struct cairn_err *err)
{
	struct cairn_types *types = types_new();
	struct filler f = {.btf = btf, .types = types, .pointer_size = pointer_size};
	uint32_t end = cairn_btf_end_id(btf);
	int rc = types ? 0 : err_nomem(err, "types");

	if (types)
		f.arena = types_arena(types);
	for (uint32_t id = 1; id < end && !rc; id++) {
		struct cairn_btf_type t;

		if (types_reserve(types) != id)
			rc = err_nomem(err, "types");
		else if (cairn_btf_type(btf, id, &t))
			rc = fill(&f, &t, types_node(types, id), err);
	}
	for (uint32_t id = 1; id < end && !rc; id++)
		if (cairn_types_get(types, id)->kind == CAIRN_T_ARRAY)
			size_array(types, id);
	if (rc) {
		types_free(types);
		return rc;
	}
	*ret = types;
	return 0;
}
