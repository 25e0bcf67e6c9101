/* SPDX-License-Identifier: BSD-2-Clause */
/* Types from calls; members are placed as those of declarations are. */
#include <cairn/layout/builder.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/opts.h"
#include "layout/place.h"
#include "layout/view.h"
#include "types/build.h"

struct cairn_layout_builder {
	const struct cairn_abi *abi;
	struct cairn_types *types;
	int failed; /* negative errno of the first failure */
	struct cairn_err err;
};

struct cairn_layout_builder *cairn_layout_builder_new(const struct cairn_abi *abi)
{
	struct cairn_layout_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->abi = abi ? abi : cairn_abi_find("x86-64");
	b->types = types_new();
	if (b->types)
		return b;
	free(b);
	return NULL;
}

void cairn_layout_builder_free(struct cairn_layout_builder *b)
{
	if (!b)
		return;
	types_free(b->types);
	free(b);
}

int cairn_layout_builder_types(struct cairn_layout_builder *b, const struct cairn_types **ret,
			       struct cairn_err *err)
{
	if (b->failed) {
		if (err)
			*err = b->err;
		return b->failed;
	}
	*ret = b->types;
	return 0;
}

/* ---- nodes ---- */

static uint32_t no_memory(struct cairn_layout_builder *b)
{
	b->failed = err_nomem(&b->err, "types");
	return 0;
}

static const char *copy(struct cairn_layout_builder *b, const char *name)
{
	return name ? arena_strdup(types_arena(b->types), name) : NULL;
}

static uint32_t add(struct cairn_layout_builder *b, const char *name, const struct cairn_type *type)
{
	struct cairn_type t = *type;
	uint32_t id;

	if (b->failed)
		return 0;
	t.name = copy(b, name);
	id = types_reserve(b->types);
	if (!id || (name && !t.name))
		return no_memory(b);
	types_set(b->types, id, &t);
	return id;
}

static uint32_t fail_type(struct cairn_layout_builder *b, const char *name, const char *why)
{
	if (!b->failed)
		b->failed = err_set(&b->err, -EINVAL, "%s: %s",
				    name ? name : "a type without a name", why);
	return 0;
}

static uint32_t scalar(struct cairn_layout_builder *b, const char *name, enum cairn_scalar kind,
		       struct cairn_type t)
{
	struct cairn_scalar_layout l =
		kind < CAIRN_C_N_SCALARS ? b->abi->scalars[kind] : (struct cairn_scalar_layout){0};

	if (!l.size || !name)
		return fail_type(b, name, "the ABI has no such type, or it has no name");
	t.size = l.size;
	t.abi_align = l.align;
	return add(b, name, &t);
}

uint32_t cairn_build_int(struct cairn_layout_builder *b, const char *name, enum cairn_scalar kind,
			 bool is_unsigned)
{
	struct cairn_type t = {.kind = CAIRN_T_INT,
			       .encoding = is_unsigned ? CAIRN_ENC_UNSIGNED : CAIRN_ENC_SIGNED};

	if (kind > CAIRN_C_INT128)
		return fail_type(b, name, "this is no integer");
	if (kind == CAIRN_C_BOOL)
		t.encoding = CAIRN_ENC_BOOL;
	if (kind == CAIRN_C_CHAR)
		t.encoding = is_unsigned ? CAIRN_ENC_UNSIGNED_CHAR : CAIRN_ENC_SIGNED_CHAR;
	return scalar(b, name, kind, t);
}

uint32_t cairn_build_float(struct cairn_layout_builder *b, const char *name, enum cairn_scalar kind)
{
	if (kind < CAIRN_C_FLOAT16 || kind > CAIRN_C_FLOAT128)
		return fail_type(b, name, "this is no floating point type");
	return scalar(b, name, kind, (struct cairn_type){.kind = CAIRN_T_FLOAT});
}

/* True if the type is this builder's. */
static bool is_known(const struct cairn_layout_builder *b, uint32_t id)
{
	return id && id < cairn_types_n_types(b->types);
}

uint32_t cairn_build_pointer(struct cairn_layout_builder *b, uint32_t to)
{
	struct cairn_scalar_layout l = b->abi->scalars[CAIRN_C_PTR];

	if (to && !is_known(b, to))
		return fail_type(b, "a pointer", "to a type that is not there");
	return add(b, NULL,
		   &(struct cairn_type){
			   .kind = CAIRN_T_PTR, .ref = to, .size = l.size, .abi_align = l.align});
}

static uint32_t align_of(const struct cairn_layout_builder *b, uint32_t id)
{
	return cairn_types_get(b->types, id)->abi_align;
}

uint32_t cairn_build_array(struct cairn_layout_builder *b, uint32_t element, uint64_t count)
{
	uint64_t size = cairn_types_size(b->types, element);

	if (!is_known(b, element) || !size)
		return fail_type(b, "an array", "of elements that have no size");
	if (count > CAIRN_LAYOUT_SIZE_MAX / size)
		return fail_type(b, "an array", "larger than 2^40 bytes");
	return add(b, NULL,
		   &(struct cairn_type){.kind = CAIRN_T_ARRAY,
					.ref = element,
					.count = count,
					.has_count = count != 0,
					.size = size * count,
					.abi_align = align_of(b, element)});
}

uint32_t cairn_build_typedef(struct cairn_layout_builder *b, const char *name, uint32_t to)
{
	if (!is_known(b, to) || !name)
		return fail_type(b, name, "a typedef needs a name and a type");
	return add(b, name,
		   &(struct cairn_type){.kind = CAIRN_T_TYPEDEF,
					.ref = to,
					.size = cairn_types_size(b->types, to),
					.abi_align = align_of(b, to)});
}

static uint32_t enum_align(const struct cairn_layout_builder *b, uint32_t bytes)
{
	static const enum cairn_scalar kinds[] = {CAIRN_C_CHAR, CAIRN_C_SHORT, CAIRN_C_INT,
						  CAIRN_C_LLONG};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (b->abi->scalars[kinds[i]].size == bytes)
			return b->abi->scalars[kinds[i]].align;
	return 0;
}

uint32_t cairn_build_enum(struct cairn_layout_builder *b, const char *name, uint32_t bytes,
			  bool is_signed, const struct cairn_enumerator *values, uint32_t n)
{
	struct cairn_enumerator *e =
		b->failed ? NULL : arena_array(types_arena(b->types), n + 1, sizeof(*e));
	struct cairn_type t = {.kind = CAIRN_T_ENUM,
			       .size = bytes,
			       .abi_align = enum_align(b, bytes),
			       .enumerators = e,
			       .n_enumerators = n,
			       .encoding = is_signed ? CAIRN_ENC_SIGNED : CAIRN_ENC_UNSIGNED};

	if (!t.abi_align)
		return fail_type(b, name, "an enum has 1, 2, 4 or 8 bytes");
	for (uint32_t i = 0; e && i < n; i++) {
		e[i] = (struct cairn_enumerator){.name = copy(b, values[i].name),
						 .value = values[i].value};
		if (!e[i].name)
			return no_memory(b);
	}
	return b->failed ? 0 : e ? add(b, name, &t) : no_memory(b);
}

/* ---- structs ---- */

/* The fault of a member; NULL: none. */
static const char *check_member(const struct cairn_layout_builder *b,
				const struct cairn_build_member *m)
{
	const struct cairn_type *t =
		cairn_types_get(b->types, cairn_types_resolve(b->types, m->type));

	if (!is_known(b, m->type))
		return "its type is not there";
	if (!m->bit_field)
		return m->name || is_aggregate(t)
			       ? NULL
			       : "only structs, unions and bit-fields may have no name";
	if (t->kind != CAIRN_T_INT && t->kind != CAIRN_T_ENUM)
		return "a bit-field must have an integer type";
	if (m->bits > (t->encoding == CAIRN_ENC_BOOL ? 1 : 8 * t->size))
		return "a bit-field wider than its type";
	return m->name && !m->bits ? "a bit-field of width 0 cannot have a name" : NULL;
}

static bool describe(struct cairn_layout_builder *b, const char *name,
		     const struct cairn_build_member *from, uint32_t n,
		     struct cairn_place_member *to)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct cairn_build_member *m = &from[i];
		const char *why = check_member(b, m);

		if (why) {
			b->failed = err_set(&b->err, -EINVAL, "%s: member %u (%s): %s",
					    name ? name : "a struct without a name", i,
					    m->name ? m->name : "no name", why);
			return false;
		}
		to[i] = (struct cairn_place_member){.size = cairn_types_size(b->types, m->type),
						    .align = align_of(b, m->type),
						    .aligned = m->aligned,
						    .packed = m->packed,
						    .named = m->name || !m->bit_field,
						    .bit_field = m->bit_field,
						    .width = m->bits};
	}
	return true;
}

/* Those that debug information would have: without the bit-fields that have no name. */
static bool keep(struct cairn_layout_builder *b, const struct cairn_build_member *from, uint32_t n,
		 const struct cairn_place_member *placed, struct cairn_type *t)
{
	struct cairn_member *m = arena_array(types_arena(b->types), n + 1, sizeof(*m));

	for (uint32_t i = 0; m && i < n; i++) {
		if (from[i].bit_field && !from[i].name)
			continue;
		m[t->n_members] = (struct cairn_member){.name = copy(b, from[i].name),
							.type = from[i].type,
							.bit_size = from[i].bits,
							.bit_off = placed[i].bit_off,
							.align = from[i].aligned};
		if (from[i].name && !m[t->n_members++].name)
			return false;
		t->n_members += !from[i].name;
	}
	t->members = m;
	return m != NULL;
}

static uint32_t record(struct cairn_layout_builder *b, enum cairn_type_kind kind, const char *name,
		       const struct cairn_build_member *members, uint32_t n,
		       const struct cairn_build_opts *opts)
{
	struct cairn_place_record rec = {.n_members = n, .is_union = kind == CAIRN_T_UNION};
	struct cairn_type t = {.kind = kind};
	struct cairn_build_opts o;

	if (b->failed)
		return 0;
	b->failed = opts_take(&o, sizeof(o), opts, &b->err);
	if (b->failed)
		return 0;
	rec.packed = o.packed;
	rec.aligned = o.aligned;
	rec.pack = o.pack;
	rec.members = arena_array(types_arena(b->types), n + 1, sizeof(*rec.members));
	if (!rec.members)
		return no_memory(b);
	if (!describe(b, name, members, n, rec.members))
		return 0;
	b->failed = cairn_layout_place(b->abi, &rec, &b->err);
	if (b->failed)
		return 0;
	t.size = rec.size;
	t.align = rec.aligned;
	t.abi_align = rec.align;
	return keep(b, members, n, rec.members, &t) ? add(b, name, &t) : no_memory(b);
}

uint32_t cairn_build_struct(struct cairn_layout_builder *b, const char *name,
			    const struct cairn_build_member *members, uint32_t n,
			    const struct cairn_build_opts *opts)
{
	return record(b, CAIRN_T_STRUCT, name, members, n, opts);
}

uint32_t cairn_build_union(struct cairn_layout_builder *b, const char *name,
			   const struct cairn_build_member *members, uint32_t n,
			   const struct cairn_build_opts *opts)
{
	return record(b, CAIRN_T_UNION, name, members, n, opts);
}
