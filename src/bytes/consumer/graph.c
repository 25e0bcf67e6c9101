/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From declarations to a laid-out type graph
 *
 * A struct is laid out when it is first needed, as a member or in its turn, and once: it is NEW,
 * BUSY while its members are measured, then DONE or BAD. One that is met BUSY contains itself. The
 * cause of a BAD struct (an unknown type, no #[repr(C)]) is reported as a problem of it and of all
 * structs that contain it. The rest of the file is laid out all the same: most files have types
 * that no BPF program ever wrote.
 */
#include <errno.h>
#include <string.h>

#include "consumer/impl.h"

static uint32_t power_of_2(uint64_t size)
{
	uint64_t lowest = size & -size;

	return lowest && lowest <= 16 ? (uint32_t)lowest : 1;
}

static int add_scalar(struct reader *r, const struct scalar_name *s, struct cairn_type *t,
		      struct measure *ret)
{
	struct cairn_scalar_layout l = r->abi->scalars[s->scalar];

	*t = (struct cairn_type){
		.kind = s->kind, .encoding = s->encoding, .name = s->name, .size = l.size};
	if (s->encoding == CAIRN_ENC_COMPLEX)
		t->size *= 2;
	t->abi_align = r->lang->align ? r->lang->align(r, s) : l.align;
	if (s->kind == CAIRN_T_PTR)
		t->name = NULL;
	*ret = (struct measure){.size = t->size, .stride = t->size, .align = t->abi_align};
	return add_node(r, t, &ret->id);
}

static enum cairn_type_encoding unsigned_of(enum cairn_type_encoding encoding)
{
	if (encoding == CAIRN_ENC_SIGNED_CHAR)
		return CAIRN_ENC_UNSIGNED_CHAR;
	return encoding == CAIRN_ENC_SIGNED ? CAIRN_ENC_UNSIGNED : encoding;
}

static bool is_named(const struct form_type *type, const char *name)
{
	return type->scalar ? !strcmp(type->scalar, name) : token_is(&type->at, name);
}

/* The language's scalar; 0 and no error when it has none of that name. */
static int measure_scalar(struct reader *r, const struct form_type *type, struct measure *ret)
{
	bool varied = type->is_unsigned || type->is_swapped || type->is_atomic;
	struct cairn_type t;
	size_t i = 0;

	ret->id = 0;
	while (r->lang->scalars[i].name && !is_named(type, r->lang->scalars[i].name))
		i++;
	if (!r->lang->scalars[i].name)
		return 0;
	const struct scalar_name *s = &r->lang->scalars[i];
	if (!r->abi->scalars[s->scalar].size)
		return complain_at(r, &type->at, -EBADMSG, "%s has no %s", r->abi->name, s->name);
	if (!varied && i < sizeof(r->basics) / sizeof(r->basics[0]) && r->basics[i]) {
		const struct cairn_type *known = cairn_types_get(r->types, r->basics[i]);

		*ret = (struct measure){r->basics[i], known->size, known->size, known->abi_align};
		return 0;
	}
	int rc = add_scalar(r, s, &t, ret);
	if (rc)
		return rc;
	if (type->is_unsigned && !(t.name = arena_printf(r->arena, "unsigned %s", s->name)))
		return err_nomem(r->err, "types");
	if (varied) {
		t.encoding = type->is_unsigned ? unsigned_of(t.encoding) : t.encoding;
		t.byte_swapped = type->is_swapped && t.size > 1;
		t.abi_align = type->is_atomic ? power_of_2(t.size) : t.abi_align;
		ret->align = t.abi_align;
		types_set(r->types, ret->id, &t);
	} else if (i < sizeof(r->basics) / sizeof(r->basics[0])) {
		r->basics[i] = ret->id;
	}
	return 0;
}

/* ---- measuring ---- */

static int lay_out(struct reader *r, struct declared *d);

static int measure_declared(struct reader *r, struct declared *d, const struct token *at,
			    struct measure *ret)
{
	int rc = d->state == STATE_NEW ? lay_out(r, d) : 0;

	if (rc)
		return rc;
	if (d->state == STATE_BUSY)
		return complain_at(r, at, -EBADMSG, "%s contains itself",
				   d->name ? d->name : "a struct");
	if (d->state == STATE_BAD || !d->id)
		return complain_at(r, at, -EBADMSG, "%s is not laid out",
				   d->name ? d->name : "a struct");
	*ret = (struct measure){d->id, d->size, d->stride, d->align};
	return 0;
}

/* A scalar under a name of the program's own, in the other byte order. */
static int swap(struct reader *r, struct measure *m)
{
	struct cairn_type t = *cairn_types_get(r->types, cairn_types_resolve(r->types, m->id));

	if ((t.kind != CAIRN_T_INT && t.kind != CAIRN_T_FLOAT) || t.size < 2)
		return 0;
	t.byte_swapped = true;
	return add_node(r, &t, &m->id);
}

static int measure_name(struct reader *r, const struct form_type *type, struct measure *ret)
{
	struct declared *d = type->scalar ? NULL : find_declared(r, type->at.p, type->at.n);
	int rc;

	if (d && d->kind != DECLARED_CONST) {
		rc = measure_declared(r, d, &type->at, ret);
		return !rc && type->is_swapped ? swap(r, ret) : rc;
	}
	rc = measure_scalar(r, type, ret);
	if (!rc && !ret->id)
		rc = complain_at(r, &type->at, -EBADMSG, "%.*s is not known here", (int)type->at.n,
				 type->at.p);
	return rc;
}

static int measure_array(struct reader *r, const struct form_type *type, struct measure *ret)
{
	int64_t count = 0;
	struct measure of;
	int rc = measure(r, type->of, &of);

	if (!rc)
		rc = type->one_factor ? factor_at(r, type->count, &count)
				      : constant_at(r, type->count, &count);
	if (rc)
		return rc;
	struct cairn_type t = {
		.kind = CAIRN_T_ARRAY, .ref = of.id, .has_count = true, .count = (uint64_t)count};
	if (count < 0 || __builtin_mul_overflow(t.count, of.stride, &t.size) ||
	    t.size > CAIRN_LAYOUT_SIZE_MAX)
		return complain_at(r, &type->at, -EBADMSG, "an array of %lld elements",
				   (long long)count);
	t.abi_align = of.align;
	*ret = (struct measure){0, t.size, t.size, of.align};
	return add_node(r, &t, &ret->id);
}

static int measure_words(struct reader *r, const struct form_type *type, struct measure *ret)
{
	struct cairn_scalar_layout ptr = r->abi->scalars[CAIRN_C_PTR];
	struct cairn_type t = {.kind = CAIRN_T_UNSPECIFIED,
			       .size = type->known * ptr.size,
			       .abi_align = type->known ? ptr.align : 1};

	t.name = arena_strndup(r->arena, type->at.p, type->at.n);
	if (!t.name)
		return err_nomem(r->err, "types");
	*ret = (struct measure){0, t.size, t.size, t.abi_align};
	return add_node(r, &t, &ret->id);
}

static int measure_pointer(struct reader *r, struct measure *ret)
{
	struct cairn_scalar_layout ptr = r->abi->scalars[CAIRN_C_PTR];
	struct cairn_type t = {.kind = CAIRN_T_PTR, .size = ptr.size, .abi_align = ptr.align};

	/* The same size everywhere: the program's pointer is BPF's. */
	if (r->lang->id == CAIRN_LANG_JAVA)
		t.size = t.abi_align = 8;
	*ret = (struct measure){0, t.size, t.size, t.abi_align};
	return add_node(r, &t, &ret->id);
}

/* Python: the value of the expression there, which may be anything. */
static int measure_later(struct reader *r, const struct form_type *type, struct measure *ret)
{
	struct lexer lx = r->lx;
	struct token tok = r->tok;
	struct form_type *found = NULL;
	int rc = go_to(r, type->count);

	rc = rc ? rc : r->lang->parse_type(r, &found);
	rc = rc ? rc : measure(r, found, ret);
	r->lx = lx;
	r->tok = tok;
	return rc;
}

static int measure_form(struct reader *r, const struct form_type *type, struct measure *ret)
{
	switch (type->form) {
	case FORM_NAME:
		return measure_name(r, type, ret);
	case FORM_ARRAY:
		return measure_array(r, type, ret);
	case FORM_POINTER:
		return measure_pointer(r, ret);
	case FORM_WORDS:
	case FORM_EMPTY:
		return measure_words(r, type, ret);
	case FORM_INLINE:
		return measure_declared(r, type->decl, &type->at, ret);
	case FORM_LATER:
		return measure_later(r, type, ret);
	default:
		return complain_at(r, &type->at, -EBADMSG, "%s",
				   type->why
					   ? type->why
					   : "the layout of this is not fixed, or not known here");
	}
}

int measure(struct reader *r, const struct form_type *type, struct measure *ret)
{
	int rc = enter_nesting(r);

	if (rc)
		return rc;
	*ret = (struct measure){0};
	rc = measure_form(r, type, ret);
	leave_nesting(r);
	return rc;
}

/* ---- structs ---- */

static int measure_bits(struct reader *r, const struct declared_member *m,
			struct cairn_place_member *place)
{
	int64_t width;
	int rc = constant_at(r, m->bits, &width);

	if (!rc && (width < 1 || (uint64_t)width > 8 * place->size))
		rc = complain_at(r, &m->at, -EBADMSG, "a bit-field of %lld bits in a type of %llu",
				 (long long)width, (unsigned long long)(8 * place->size));
	place->bit_field = true;
	place->width = rc ? 0 : (uint32_t)width;
	return rc;
}

static int measure_members(struct reader *r, struct declared *d, struct cairn_member *members,
			   struct cairn_place_member *places)
{
	for (size_t i = 0; i < d->members.n; i++) {
		const struct declared_member *m = &d->members.p[i];
		struct measure of;
		int rc = measure(r, m->type, &of);

		if (rc)
			return rc;
		members[i].name = m->anonymous ? NULL : m->name;
		members[i].type = of.id;
		places[i] = (struct cairn_place_member){
			.size = of.size, .align = of.align, .named = true};
		rc = m->bits.p ? measure_bits(r, m, &places[i]) : 0;
		if (rc)
			return rc;
		members[i].bit_size = places[i].width;
	}
	return 0;
}

int place_as_c(struct reader *r, struct declared *d, struct cairn_place_record *rec)
{
	struct cairn_err err = {0};
	int rc = cairn_layout_place(r->abi, rec, &err);

	return rc ? complain_at(r, &d->at, -EBADMSG, "this cannot be laid out: %s", err.msg) : 0;
}

/* #[repr(align(N))], _pack_ = N */
static int evaluate(struct reader *r, const struct declared *d, struct spot at, uint32_t *ret)
{
	int64_t n;

	if (!at.p)
		return 0;
	int rc = constant_at(r, at, &n);
	if (!rc && (n < 0 || n > 1 << 28 || (n & (n - 1))))
		rc = complain_at(r, &d->at, -EBADMSG, "%lld is no alignment", (long long)n);
	*ret = rc ? 0 : (uint32_t)n;
	return rc;
}

static int lay_out_record(struct reader *r, struct declared *d, struct cairn_type *t)
{
	size_t n = d->members.n;
	struct cairn_member *members = arena_array(r->arena, n + 1, sizeof(*members));
	struct cairn_place_member *places = arena_array(r->arena, n + 1, sizeof(*places));
	struct cairn_place_record rec = {
		.members = places, .n_members = n, .is_union = d->kind == DECLARED_UNION};
	int rc = members && places ? 0 : err_nomem(r->err, "members");

	rc = rc ? rc : evaluate(r, d, d->pack, &d->pack_bytes);
	rc = rc ? rc : evaluate(r, d, d->aligned, &d->aligned_bytes);
	rc = rc ? rc : measure_members(r, d, members, places);
	if (rc)
		return rc;
	rec.packed = d->packed;
	rec.pack = d->pack_bytes;
	rec.aligned = d->aligned_bytes;
	rec.ms_struct = d->ms;
	rc = r->lang->place(r, d, &rec);
	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++)
		members[i].bit_off = places[i].bit_off;
	t->kind = rec.is_union ? CAIRN_T_UNION : CAIRN_T_STRUCT;
	t->size = rec.size;
	t->abi_align = rec.align;
	t->members = members;
	t->n_members = (uint32_t)n;
	return 0;
}

static int lay_out_enum(struct reader *r, struct declared *d, struct cairn_type *t)
{
	struct cairn_enumerator *e = arena_array(r->arena, d->values.n + 1, sizeof(*e));
	struct measure of = {.size = 4, .align = 4};
	int64_t next = 0;
	int rc = e ? 0 : err_nomem(r->err, "enumerators");

	for (size_t i = 0; i < d->values.n && !rc; i++) {
		if (d->values.p[i].value.p)
			rc = constant_at(r, d->values.p[i].value, &next);
		e[i] = (struct cairn_enumerator){d->values.p[i].name, next};
		next = (int64_t)((uint64_t)next + 1);
	}
	if (!rc && d->type)
		rc = measure(r, d->type, &of);
	if (rc)
		return rc;
	const struct cairn_type *in = cairn_types_get(r->types, of.id);
	*t = (struct cairn_type){.kind = CAIRN_T_ENUM,
				 .name = d->name,
				 .size = of.size,
				 .abi_align = of.align,
				 .encoding = in->encoding == CAIRN_ENC_SIGNED ||
							     in->encoding == CAIRN_ENC_SIGNED_CHAR
						     ? CAIRN_ENC_SIGNED
						     : CAIRN_ENC_UNSIGNED,
				 .enumerators = e,
				 .n_enumerators = (uint32_t)d->values.n};
	return 0;
}

static int lay_out_alias(struct reader *r, struct declared *d, struct cairn_type *t)
{
	struct form_type later = {.form = FORM_LATER, .at = d->at, .count = d->value};
	struct measure of;
	int rc = measure(r, d->type ? d->type : &later, &of);

	if (rc)
		return rc;
	*t = (struct cairn_type){
		.kind = CAIRN_T_TYPEDEF, .name = d->name, .ref = of.id, .abi_align = of.align};
	d->size = of.size;
	d->stride = of.stride;
	return 0;
}

static int lay_out_kind(struct reader *r, struct declared *d, struct cairn_type *t)
{
	if (d->why_not)
		return complain_at(r, &d->at, -EBADMSG, "%s", d->why_not);
	switch (d->kind) {
	case DECLARED_STRUCT:
	case DECLARED_UNION:
		return d->format ? lay_out_format(r, d, t) : lay_out_record(r, d, t);
	case DECLARED_ENUM:
		return lay_out_enum(r, d, t);
	default:
		return lay_out_alias(r, d, t);
	}
}

static int finish(struct reader *r, struct declared *d, struct cairn_type *t)
{
	if (t->kind != CAIRN_T_TYPEDEF) {
		d->size = t->size;
		/* Also for Java's unpadded structs; for the others it is their size. */
		uint64_t align = t->abi_align ? t->abi_align : 1;
		d->stride =
			t->kind == CAIRN_T_ENUM ? t->size : (t->size + align - 1) & ~(align - 1);
	}
	d->align = t->abi_align ? t->abi_align : 1;
	d->state = STATE_DONE;
	t->name = d->name;
	return add_node(r, t, &d->id);
}

static int lay_out(struct reader *r, struct declared *d)
{
	struct cairn_type t = {.kind = CAIRN_T_STRUCT, .name = d->name};
	struct cairn_err *outer = r->err, why = {0};
	int rc;

	d->state = STATE_BUSY;
	r->err = &why;
	rc = lay_out_kind(r, d, &t);
	r->err = outer;
	if (rc == -ENOMEM)
		return err_nomem(r->err, "types");
	if (!rc)
		return finish(r, d, &t);
	d->state = STATE_BAD;
	/*
	 * A Python name that is not a type is none of ours, and neither is an alias of something
	 * that is no type here.
	 */
	return d->kind == DECLARED_ALIAS || d->kind == DECLARED_CONST
		       ? 0
		       : note_problem(r, d, why.msg, false);
}

int lay_out_all(struct reader *r)
{
	int rc = 0;

	for (size_t i = 0; i < r->decls.n && !rc; i++) {
		struct declared *d = r->decls.p[i];

		if (d->state == STATE_NEW && d->kind != DECLARED_CONST)
			rc = lay_out(r, d);
	}
	return rc;
}
