/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/base.h"

#include <errno.h>
#include <stdlib.h>

#include "dwarf/constants.h"

/* Longest chain of TYPE_TAGs or ARRAYs. A longer chain is not followed further. */
enum { CHAIN_MAX = 64 };

static bool is_kind(const struct cairn_btf *base, uint32_t id, uint32_t kind,
		    struct cairn_btf_type *ret)
{
	return cairn_btf_type(base, id, ret) && ret->kind == kind;
}

static struct elem *add(struct unit_types *u, struct type_die *t)
{
	struct elem *e = VEC_PUSH(&u->elems);
	if (!e)
		return NULL;
	e->owner = (uint32_t)(t - u->types.p);
	t->n_elems++;
	return e;
}

static const char *name_at(const struct cairn_btf *base, uint32_t off)
{
	const char *name = cairn_btf_string(base, off);
	return name && *name ? name : NULL;
}

static int add_members(struct unit_types *u, const struct cairn_btf *base,
		       const struct cairn_btf_type *from, struct type_die *t)
{
	for (uint32_t i = 0; i < from->vlen; i++) {
		struct cairn_btf_member m = cairn_btf_member(from, i);
		struct elem *e = add(u, t);
		if (!e)
			return -ENOMEM;
		e->name = name_at(base, m.name_off);
		e->type = m.type;
		e->bit_off = m.bit_off;
		e->bit_size = (uint8_t)m.bit_size;
	}
	return 0;
}

static int add_values(struct unit_types *u, const struct cairn_btf *base,
		      const struct cairn_btf_type *from, struct type_die *t)
{
	for (uint32_t i = 0; i < from->vlen; i++) {
		struct cairn_btf_enumerator v = cairn_btf_enumerator(from, i);
		struct elem *e = add(u, t);
		if (!e)
			return -ENOMEM;
		e->name = name_at(base, v.name_off);
		e->value = (uint64_t)v.value;
		e->is_negative = from->kflag && v.value < 0;
	}
	return 0;
}

static int add_params(struct unit_types *u, const struct cairn_btf *base,
		      const struct cairn_btf_type *from, struct type_die *t)
{
	for (uint32_t i = 0; i < from->vlen; i++) {
		struct cairn_btf_param p = cairn_btf_param(from, i);
		if (i + 1 == from->vlen && !p.type && !p.name_off) {
			t->variadic = true;
			break;
		}
		struct elem *e = add(u, t);
		if (!e)
			return -ENOMEM;
		e->name = name_at(base, p.name_off);
		e->type = p.type;
	}
	return 0;
}

/* PTR, TYPE_TAG b, TYPE_TAG a, T is a pointer to T with the tags a, b. */
static int add_tags(struct unit_types *u, const struct cairn_btf *base, struct type_die *t)
{
	struct cairn_btf_type tag;
	const char *names[CHAIN_MAX];
	unsigned int n = 0;
	while (n < CHAIN_MAX && is_kind(base, t->ref, CAIRN_BTF_TYPE_TAG, &tag)) {
		names[n++] = tag.name;
		t->ref = tag.ref;
	}
	while (n-- > 0) {
		struct elem *e = add(u, t);
		if (!e)
			return -ENOMEM;
		e->name = names[n];
		e->what = ELEM_TAG;
	}
	return 0;
}

static int add_dimensions(struct unit_types *u, const struct cairn_btf *base,
			  struct cairn_btf_type array, struct type_die *t)
{
	for (int i = 0; i < CHAIN_MAX; i++) {
		struct elem *e = add(u, t);
		if (!e)
			return -ENOMEM;
		e->value = array.words[2];
		t->ref = array.words[0];
		if (!is_kind(base, t->ref, CAIRN_BTF_ARRAY, &array))
			break;
	}
	return 0;
}

static uint8_t encoding_of(uint32_t word)
{
	if (CAIRN_BTF_INT_ENCODING(word) & CAIRN_BTF_INT_BOOL)
		return DW_ATE_boolean;
	return CAIRN_BTF_INT_ENCODING(word) & CAIRN_BTF_INT_SIGNED ? DW_ATE_signed
								   : DW_ATE_unsigned;
}

/* The kind of type that a record is; TYPE_VOID for one that is none. */
static enum type_kind kind_of(uint32_t kind)
{
	switch (kind) {
	case CAIRN_BTF_INT:
	case CAIRN_BTF_FLOAT:
		return TYPE_BASE;
	case CAIRN_BTF_PTR:
		return TYPE_PTR;
	case CAIRN_BTF_ARRAY:
		return TYPE_ARRAY;
	case CAIRN_BTF_STRUCT:
	case CAIRN_BTF_FWD:
		return TYPE_STRUCT;
	case CAIRN_BTF_UNION:
		return TYPE_UNION;
	case CAIRN_BTF_ENUM:
	case CAIRN_BTF_ENUM64:
		return TYPE_ENUM;
	case CAIRN_BTF_TYPEDEF:
		return TYPE_TYPEDEF;
	case CAIRN_BTF_CONST:
		return TYPE_CONST;
	case CAIRN_BTF_VOLATILE:
		return TYPE_VOLATILE;
	case CAIRN_BTF_RESTRICT:
		return TYPE_RESTRICT;
	case CAIRN_BTF_FUNC_PROTO:
		return TYPE_PROTO;
	case CAIRN_BTF_TYPE_TAG:
		return TYPE_ALIAS;
	}
	return TYPE_VOID;
}

static int fill(struct unit_types *u, const struct cairn_btf *base,
		const struct cairn_btf_type *from, struct type_die *t)
{
	switch ((enum type_kind)t->kind) {
	case TYPE_BASE:
		t->size = from->ref;
		t->encoding =
			from->kind == CAIRN_BTF_FLOAT ? DW_ATE_float : encoding_of(from->words[0]);
		return 0;
	case TYPE_STRUCT:
	case TYPE_UNION:
		t->stop = t->name;
		t->declaration = from->kind == CAIRN_BTF_FWD;
		if (t->declaration && from->kflag)
			t->kind = TYPE_UNION;
		t->size = t->declaration ? 0 : from->ref;
		return t->declaration ? 0 : add_members(u, base, from, t);
	case TYPE_ENUM:
		t->stop = t->name;
		t->declaration = t->name && !from->vlen;
		t->size = from->ref;
		return add_values(u, base, from, t);
	case TYPE_ARRAY:
		return add_dimensions(u, base, *from, t);
	case TYPE_PTR:
		t->ref = from->ref;
		return add_tags(u, base, t);
	case TYPE_PROTO:
		t->ref = from->ref;
		return add_params(u, base, from, t);
	default:
		t->ref = from->ref;
		return 0;
	}
}

static int add_record(struct unit_types *u, const struct cairn_btf *base,
		      const struct cairn_btf_type *from)
{
	enum type_kind kind = kind_of(from->kind);
	if (kind == TYPE_VOID)
		return 0;
	struct type_die *t = VEC_PUSH(&u->types);
	if (!t)
		return -ENOMEM;
	t->kind = (uint8_t)kind;
	t->name = *from->name && kind != TYPE_ALIAS ? from->name : NULL;
	t->elem = (uint32_t)u->elems.n;
	if (!VEC_ADD(&u->offs, from->id))
		return -ENOMEM;
	return fill(u, base, from, t);
}

int unit_types_read_base(struct unit_types *u, const struct cairn_btf *base)
{
	uint32_t end = cairn_btf_end_id(base);
	if (end >= OWNER_FUNC)
		return -ERANGE;
	int rc = 0;
	u->end = u->unit_end = end;
	for (uint32_t id = 1; id < end && rc >= 0; id++) {
		struct cairn_btf_type t;
		if (cairn_btf_type(base, id, &t))
			rc = add_record(u, base, &t);
	}
	return rc < 0 ? rc : unit_types_finish(u);
}
