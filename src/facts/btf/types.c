/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BTF as a type graph
 *
 * Ids stay as they are: type 17 of the blob is node 17 of the graph, through the whole chain of
 * bases. A record that is no type (functions, variables, sections, locations) becomes an empty
 * node. Names are borrowed from the blob.
 *
 * A kernel's BTF has 150,000 records, and a caller that wants one struct needs a few hundred of
 * them. So ids are reserved, which touches no node, and records are read as they are reached, from
 * a list of those still to be visited:
 *
 *	whole    a struct with its members, and so on through the types that lie inside it: arrays,
 *	         typedefs, members
 *	in name  the types that a pointer or a function leads to: everything that their C text
 *	         needs, but of structs no members (unread)
 *
 * A type that was visited in name may be visited as a whole later; no type is visited as a whole
 * twice, so that rings end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/vec.h"
#include "btf/btf.h"
#include "btf/types.h"
#include "types/build.h"

struct visit {
	uint32_t id;
	bool whole;
};

struct btf_types {
	const struct cairn_btf *btf;
	struct cairn_types *types;
	struct arena *arena;
	uint32_t end; /* one past the last id */
	uint8_t pointer_size;
	enum { SIGNS_UNKNOWN, SIGNS_TOLD, SIGNS_NOT_TOLD } enum_signs;
	uint64_t *whole; /* a bit per id: was visited as a whole */
	VEC(struct visit) todo;
	VEC(uint32_t) arrays; /* read since sizes were computed */
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
	if (t->ref == 1 && (encoding & CAIRN_BTF_INT_CHAR || !strcmp(t->name, "char") ||
			    !strcmp(t->name, "signed char")))
		return CAIRN_ENC_SIGNED_CHAR;
	if (t->ref == 1 && !strcmp(t->name, "unsigned char"))
		return CAIRN_ENC_UNSIGNED_CHAR;
	return encoding & CAIRN_BTF_INT_SIGNED ? CAIRN_ENC_SIGNED : CAIRN_ENC_UNSIGNED;
}

/*
 * Before members had widths, a bit-field's type was an INT of fewer bits, placed inside its bytes.
 */
static void old_bit_field(const struct btf_types *f, const struct cairn_btf_member *from,
			  struct cairn_member *to)
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

static int fill_members(const struct btf_types *f, const struct cairn_btf_type *t,
			struct cairn_type *ret, struct cairn_err *err)
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

static int fill_params(const struct btf_types *f, const struct cairn_btf_type *t,
		       struct cairn_type *ret, struct cairn_err *err)
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

/*
 * Up to Clang 14 and pahole 1.23 the flag for negative values was not known, and enums of 64 bits
 * neither. One of them anywhere shows that the writer knew.
 */
static bool tells_signs(struct btf_types *f)
{
	struct cairn_btf_type t;

	for (uint32_t id = 1; f->enum_signs == SIGNS_UNKNOWN && cairn_btf_type(f->btf, id, &t);
	     id++)
		if ((t.kind == CAIRN_BTF_ENUM && t.kflag) || t.kind == CAIRN_BTF_ENUM64)
			f->enum_signs = SIGNS_TOLD;
	if (f->enum_signs == SIGNS_UNKNOWN)
		f->enum_signs = SIGNS_NOT_TOLD;
	return f->enum_signs == SIGNS_TOLD;
}

/*
 * Whether an enum has values of 32 bits that may be negative; in *@ret_negative: all of these are
 * small then.
 */
static bool is_unsure_of_sign(struct btf_types *f, const struct cairn_btf_type *t,
			      bool *ret_negative)
{
	enum { SMALL = 1 << 16 };
	int32_t least = 0;

	for (uint32_t i = 0; i < t->vlen && t->kind == CAIRN_BTF_ENUM && t->ref == 4 && !t->kflag;
	     i++) {
		int32_t value = (int32_t)cairn_btf_enumerator(t, i).value;

		least = value < least ? value : least;
	}
	bool unsure = least < 0 && !tells_signs(f);

	*ret_negative = unsure && least >= -SMALL;
	return unsure;
}

static int fill_enumerators(struct btf_types *f, const struct cairn_btf_type *t,
			    struct cairn_type *ret, struct cairn_err *err)
{
	struct cairn_enumerator *e = arena_array(f->arena, t->vlen, sizeof(*e));

	if (!e && t->vlen)
		return err_nomem(err, "enumerators");
	bool is_signed;

	ret->unsure_sign = is_unsure_of_sign(f, t, &is_signed);
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_enumerator from = cairn_btf_enumerator(t, i);
		const char *name = cairn_btf_string(f->btf, from.name_off);

		e[i].name = name ? name : "";
		e[i].value = is_signed ? (int64_t)(int32_t)from.value : from.value;
	}
	ret->kind = CAIRN_T_ENUM;
	ret->size = t->ref;
	ret->encoding = t->kflag || is_signed ? CAIRN_ENC_SIGNED : CAIRN_ENC_UNSIGNED;
	ret->enumerators = e;
	ret->n_enumerators = t->vlen;
	/* "enum e;" has no form of its own. */
	ret->declaration = !t->vlen;
	return 0;
}

static void fill_array(const struct btf_types *f, const struct cairn_btf_type *t,
		       struct cairn_type *ret)
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

/* @whole  false: without the members of structs and unions */
static int fill(struct btf_types *f, const struct cairn_btf_type *t, bool whole,
		struct cairn_type *ret, struct cairn_err *err)
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
		ret->unread = !whole && t->vlen;
		return ret->unread ? 0 : fill_members(f, t, ret, err);
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

/*
 * Elements may come after their array, so sizes are computed when all nodes are there; arrays of
 * arrays from the inside out.
 */
enum { DIMENSIONS_MAX = 64 };

static void size_array(struct cairn_types *types, uint32_t id)
{
	uint64_t count = 1;
	uint32_t element = id;
	struct cairn_type t = *cairn_types_get(types, id);

	for (int i = 0; i < DIMENSIONS_MAX; i++) {
		const struct cairn_type *at =
			cairn_types_get(types, cairn_types_resolve(types, element));

		if (at->kind != CAIRN_T_ARRAY) {
			if (__builtin_mul_overflow(count, at->size, &t.size) ||
			    t.size > UINT64_MAX / 16)
				t.size = 0;
			types_set(types, id, &t);
			return;
		}
		if (__builtin_mul_overflow(count, at->count, &count))
			return;
		element = at->ref;
	}
}

/* ---- visiting ---- */

static bool later(struct btf_types *f, uint32_t id, bool whole)
{
	return !id || VEC_ADD(&f->todo, ((struct visit){id, whole}));
}

/* The types that the node refers to, to be visited. */
static bool add_references(struct btf_types *f, const struct cairn_type *node, bool whole)
{
	bool inside = whole && node->kind != CAIRN_T_PTR && node->kind != CAIRN_T_FUNC;
	bool ok = later(f, node->ref, inside);

	for (uint32_t i = 0; i < node->n_members && ok; i++)
		ok = later(f, node->members[i].type, inside);
	return ok;
}

static bool to_visit(struct btf_types *f, const struct cairn_type *node, struct visit v)
{
	uint64_t *word = &f->whole[v.id / 64], bit = UINT64_C(1) << v.id % 64;

	if (!v.whole)
		return node->kind == CAIRN_T_VOID;
	if (*word & bit)
		return false;
	*word |= bit;
	return true;
}

static int visit(struct btf_types *f, struct visit v, struct cairn_err *err)
{
	struct cairn_type *node = v.id < f->end ? types_node(f->types, v.id) : NULL;
	struct cairn_btf_type t;
	int rc = 0;

	if (!node || !to_visit(f, node, v))
		return 0;
	if ((node->kind == CAIRN_T_VOID || node->unread) && cairn_btf_type(f->btf, v.id, &t)) {
		bool is_new_array = t.kind == CAIRN_BTF_ARRAY && node->kind == CAIRN_T_VOID;

		rc = fill(f, &t, v.whole, node, err);
		if (!rc && is_new_array && !VEC_ADD(&f->arrays, v.id))
			rc = err_nomem(err, "the list of arrays");
	}
	if (!rc && !add_references(f, node, v.whole))
		rc = err_nomem(err, "the list of types to be read");
	return rc;
}

static int visit_all(struct btf_types *f, struct cairn_err *err)
{
	int rc = 0;

	while (f->todo.n && !rc)
		rc = visit(f, f->todo.p[--f->todo.n], err);
	for (size_t i = 0; i < f->arrays.n && !rc; i++)
		size_array(f->types, f->arrays.p[i]);
	f->todo.n = f->arrays.n = 0;
	return rc;
}

/* ---- for callers ---- */

int btf_types_new(const struct cairn_btf *btf, uint8_t pointer_size, struct cairn_types *types,
		  struct btf_types **ret, struct cairn_err *err)
{
	struct btf_types *f = calloc(1, sizeof(*f));
	uint32_t end = cairn_btf_end_id(btf);

	if (!f)
		return err_nomem(err, "a reader of types");
	*f = (struct btf_types){btf, types, types_arena(types), .end = end,
				.pointer_size = pointer_size};
	f->whole = calloc(end / 64 + 1, sizeof(*f->whole));
	if (!f->whole || !types_reserve_to(types, end)) {
		btf_types_free(f);
		return err_nomem(err, "types");
	}
	*ret = f;
	return 0;
}

void btf_types_free(struct btf_types *f)
{
	if (!f)
		return;
	free(f->whole);
	VEC_FREE(&f->todo);
	VEC_FREE(&f->arrays);
	free(f);
}

int btf_types_read(struct btf_types *f, uint32_t id, struct cairn_err *err)
{
	return later(f, id, true) ? visit_all(f, err)
				  : err_nomem(err, "the list of types to be read");
}

int btf_types_read_all(struct btf_types *f, struct cairn_err *err)
{
	int rc = 0;

	for (uint32_t id = 1; id < f->end && !rc; id++)
		rc = btf_types_read(f, id, err);
	return rc;
}

int btf_types(const struct cairn_btf *btf, uint8_t pointer_size, struct cairn_types **ret,
	      struct cairn_err *err)
{
	struct cairn_types *types = types_new();
	struct btf_types *f = NULL;
	int rc = types ? btf_types_new(btf, pointer_size, types, &f, err) : err_nomem(err, "types");

	if (!rc)
		rc = btf_types_read_all(f, err);
	btf_types_free(f);
	if (rc) {
		types_free(types);
		return rc;
	}
	*ret = types;
	return 0;
}
