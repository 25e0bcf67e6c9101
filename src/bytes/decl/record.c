/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structs and unions
 *
 * Members are collected as written, bit-fields without a name included, and placed when the struct
 * ends and its attributes are known. The resulting node is like one from debug information: without
 * those bit-fields, with offsets. A struct is "declaration" until its closing brace, so one that
 * contains itself is refused like any struct of unknown size.
 */
#include <errno.h>

#include "base/map.h"
#include "decl/parse.h"

struct member_list {
	VEC(struct cairn_member) members;
	VEC(struct cairn_place_member) places;
	VEC(struct token) at;
};

/* Members of one struct: the kernel's largest have a few hundred, generated ones a few thousand. */
enum { MEMBERS_MAX = 1 << 20 };

static int add(struct parser *p, struct member_list *to, const struct cairn_member *m,
	       const struct cairn_place_member *place, const struct token *at)
{
	if (to->members.n == MEMBERS_MAX)
		return fail_at(p, at, -ERANGE, "more than %d members", MEMBERS_MAX);
	if (!VEC_ADD(&to->members, *m) || !VEC_ADD(&to->places, *place) || !VEC_ADD(&to->at, *at))
		return err_nomem(p->err, "members");
	return 0;
}

static bool is_record(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_UNION;
}

/* ---- one member ---- */

/* Parses after the colon. */
static int parse_width(struct parser *p, const struct token *at, struct cairn_place_member *place,
		       struct cairn_member *m)
{
	int64_t width;
	uint64_t bits = value_bits(p, m->type);
	int rc = parse_constant(p, &width, NULL);

	if (rc)
		return rc;
	if (!bits)
		return fail_at(p, at, -EBADMSG, "a bit-field must have an integer type");
	if (width < 0 || (uint64_t)width > bits)
		return fail_at(p, at, -EBADMSG, "a bit-field of %lld bits in a type of %llu",
			       (long long)width, (unsigned long long)bits);
	if (!width && m->name)
		return fail_at(p, at, -EBADMSG, "a bit-field of width 0 cannot have a name");
	place->bit_field = true;
	place->width = m->bit_size = (uint32_t)width;
	return 0;
}

/*
 * As an element of arrays, too, but flexible ones. Enums, _Complex, _BitInt do not count; nor sizes
 * that are no power of 2.
 */
static uint32_t bytes_of_number(const struct parser *p, uint32_t id)
{
	const struct cairn_type *t = resolve(p, id);

	while (t->kind == CAIRN_T_ARRAY && t->has_count && !t->vector)
		t = resolve(p, id = t->ref);
	bool is_number =
		(t->kind == CAIRN_T_INT && t->encoding != CAIRN_ENC_OPAQUE && !is_bit_int(p, id)) ||
		(t->kind == CAIRN_T_FLOAT && t->encoding != CAIRN_ENC_COMPLEX);
	return is_number && !(t->size & (t->size - 1)) ? (uint32_t)t->size : 0;
}

static int describe(struct parser *p, uint32_t type, const struct token *at,
		    struct cairn_place_member *place)
{
	const struct cairn_type *t = resolve(p, type);

	bool complete = size_of(p, type, &place->size);

	if (!complete && is_record(t) && t->name)
		return fail_at(p, at, -EBADMSG, "%s %s is not complete here: its size is not known",
			       t->kind == CAIRN_T_UNION ? "union" : "struct", t->name);
	if (!complete)
		return fail_at(p, at, -EBADMSG,
			       t->kind == CAIRN_T_FUNC
				       ? "a member cannot be a function"
				       : "the size of the member's type is not known here");
	place->align = member_align_of(p, type);
	if (p->abi->ms)
		place->required = required_align_of(p, type);
	else
		place->number = bytes_of_number(p, type);
	return 0;
}

static int parse_member(struct parser *p, const struct specifiers *specs, struct member_list *to)
{
	struct cairn_place_member place = {0};
	struct cairn_member m = {0};
	struct declarator d = {.type = specs->type};
	struct token at = p->tok;
	int rc = is_punct(p, ':') ? 0 : parse_declarator(p, specs->type, false, &d);

	if (rc)
		return rc;
	if (d.name.n) {
		at = d.name;
		m.name = dup_name(p, &d.name);
		if (!m.name)
			return err_nomem(p->err, "members");
	} else if (!is_punct(p, ':')) {
		return fail_here(p, "expected the name of a member");
	}
	m.type = d.type;
	place.named = m.name != NULL;
	rc = describe(p, d.type, &at, &place);
	if (!rc && is_punct(p, ':')) {
		rc = next(p);
		rc = rc ? rc : parse_width(p, &at, &place, &m);
		rc = rc ? rc : parse_attributes(p, &d.attrs);
	}
	place.packed = specs->attrs.packed || d.attrs.packed;
	place.aligned =
		specs->attrs.aligned > d.attrs.aligned ? specs->attrs.aligned : d.attrs.aligned;
	m.align = place.aligned;
	return rc ? rc : add(p, to, &m, &place, &at);
}

/*
 * "struct { ... };" without a name between: its members belong to the struct around it. Microsoft's
 * compiler takes one with a tag, and a typedef, in the same way; for others they declare nothing.
 */
static bool is_anonymous_member(const struct parser *p, const struct specifiers *specs)
{
	const struct cairn_type *t = resolve(p, specs->type);

	if (!is_record(t) || t->declaration)
		return false;
	return p->abi->ms || (specs->has_tag && !t->name);
}

static int add_anonymous(struct parser *p, const struct specifiers *specs, struct member_list *to,
			 const struct token *at)
{
	struct cairn_member m = {.type = specs->type, .align = specs->attrs.aligned};
	struct cairn_place_member place = {
		.named = true, .packed = specs->attrs.packed, .aligned = specs->attrs.aligned};

	if (!is_anonymous_member(p, specs))
		return 0;
	int rc = describe(p, specs->type, at, &place);
	return rc ? rc : add(p, to, &m, &place, at);
}

static int parse_member_declaration(struct parser *p, struct member_list *to)
{
	struct specifiers specs;
	struct token at = p->tok;
	int rc;

	if (is_punct(p, ';'))
		return next(p);
	if (begins_static_assert(p))
		return parse_static_assert(p);
	rc = parse_specifiers(p, &specs);
	if (!rc && is_punct(p, ';')) {
		rc = add_anonymous(p, &specs, to, &at);
		return rc ? rc : next(p);
	}
	while (!rc) {
		rc = parse_member(p, &specs, to);
		if (rc || !is_punct(p, ','))
			break;
		rc = next(p);
	}
	return rc ? rc : expect(p, ';');
}

/* ---- the whole ---- */

/* Attributes of the struct, wherever they stood. */
static void attribute(const struct parser *p, const struct attributes *attrs, uint32_t pack,
		      bool ms_struct, struct cairn_place_record *rec)
{
	rec->packed = attrs->packed;
	rec->aligned = attrs->aligned;
	rec->pack = pack;
	rec->ms_struct = attrs->ms_struct || ms_struct;
	rec->gcc_struct = attrs->gcc_struct;
}

/*
 * The alignment that attributes demand; Microsoft's compiler then insists on the whole alignment,
 * and looks into members.
 */
static uint32_t demanded(const struct parser *p, const struct member_list *list,
			 const struct attributes *attrs, uint32_t align)
{
	uint32_t most = 0;

	if (!p->abi->ms)
		return attrs->aligned;
	if (attrs->aligned)
		return align;
	for (size_t i = 0; i < list->places.n; i++) {
		const struct cairn_place_member *m = &list->places.p[i];

		most = m->required > most ? m->required : most;
		most = m->aligned > most ? m->aligned : most;
	}
	return most;
}

/*
 * Rejects structs that compilers refuse, but that would have a layout here: two members of one
 * name, members after a flexible array.
 */
static int check_members(struct parser *p, const struct member_list *list, bool is_union)
{
	struct map names = {0};
	int rc = 0;

	for (size_t i = 0; i < list->members.n && !rc; i++) {
		const struct cairn_member *m = &list->members.p[i];
		const struct cairn_type *t = resolve(p, m->type);
		uint64_t hash = m->name ? map_hash_str(m->name) : 0, same;

		if (!is_union && t->kind == CAIRN_T_ARRAY && !t->has_count &&
		    i + 1 < list->members.n)
			rc = fail_at(p, &list->at.p[i], -EBADMSG,
				     "a flexible array that is not the last member");
		else if (m->name && map_get(&names, hash, &same) &&
			 !strcmp(list->members.p[same].name, m->name))
			rc = fail_at(p, &list->at.p[i], -EBADMSG, "a second member of this name");
		else if (m->name && map_put(&names, hash, i) < 0)
			rc = err_nomem(p->err, "members");
	}
	map_fini(&names);
	return rc;
}

static int keep_members(struct parser *p, const struct member_list *list, struct cairn_type *t)
{
	struct cairn_member *copy = arena_array(p->arena, list->members.n, sizeof(*copy));
	uint32_t n = 0;

	if (!copy)
		return err_nomem(p->err, "members");
	for (size_t i = 0; i < list->members.n; i++) {
		if (list->places.p[i].bit_field && !list->places.p[i].named)
			continue;
		copy[n] = list->members.p[i];
		copy[n++].bit_off = list->places.p[i].bit_off;
	}
	t->members = copy;
	t->n_members = n;
	return 0;
}

static int finish(struct parser *p, const struct member_list *list, const struct attributes *attrs,
		  struct cairn_place_record *rec, const struct token *at, uint32_t id)
{
	struct cairn_type t = *cairn_types_get(p->types, id);
	struct cairn_err err = {0};
	int rc;

	rec->members = list->places.p;
	rec->n_members = list->places.n;
	rec->is_union = t.kind == CAIRN_T_UNION;
	rc = cairn_layout_place(p->abi, rec, &err);
	if (rc)
		return fail_at(p, at, rc == -EINVAL ? -EBADMSG : rc, "this cannot be laid out: %s",
			       err.msg);
	t.declaration = false;
	t.size = rec->size;
	t.align = demanded(p, list, attrs, rec->align);
	t.abi_align = rec->align;
	rc = keep_members(p, list, &t);
	if (!rc)
		types_set(p->types, id, &t);
	return rc;
}

static int parse_body(struct parser *p, struct attributes *attrs, const struct token *at,
		      uint32_t id)
{
	struct member_list list = {0};
	struct cairn_place_record rec = {0};
	uint32_t pack = p->lx.pack;
	bool ms_struct = p->lx.ms_struct;
	int rc = expect(p, '{');

	while (!rc && !is_punct(p, '}')) {
		if (p->tok.kind == TOKEN_END)
			rc = fail_at(p, at, -EBADMSG, "a struct without an end");
		else
			rc = parse_member_declaration(p, &list);
	}
	rc = rc ? rc : next(p);
	rc = rc ? rc : parse_attributes(p, attrs);
	rc = rc ? rc
		: check_members(p, &list, cairn_types_get(p->types, id)->kind == CAIRN_T_UNION);
	if (!rc) {
		attribute(p, attrs, pack, ms_struct, &rec);
		rc = finish(p, &list, attrs, &rec, at, id);
	}
	VEC_FREE(&list.members);
	VEC_FREE(&list.places);
	VEC_FREE(&list.at);
	return rc;
}

int parse_record(struct parser *p, bool is_union, struct attributes *before, uint32_t *ret)
{
	struct attributes attrs = {0};
	struct token name = {0}, at = p->tok;
	int rc = enter(p);

	if (rc)
		return rc;
	rc = parse_attributes(p, &attrs);
	if (!rc && p->tok.kind == TOKEN_NAME) {
		name = at = p->tok;
		rc = next(p);
	}
	if (!rc && !name.n && !is_punct(p, '{'))
		rc = fail_here(p, "expected the name of a %s or '{'",
			       is_union ? "union" : "struct");
	rc = rc ? rc : node_tagged(p, is_union ? CAIRN_T_UNION : CAIRN_T_STRUCT, &name, ret);
	if (!rc && is_punct(p, '{') && before->declspec_aligned) {
		attrs.aligned = before->declspec_aligned > attrs.aligned ? before->declspec_aligned
									 : attrs.aligned;
		before->aligned = before->aligned > before->declspec_aligned ? before->aligned : 0;
	}
	if (!rc && is_punct(p, '{')) {
		if (!cairn_types_get(p->types, *ret)->declaration)
			rc = fail_at(p, &at, -EBADMSG, "defined a second time");
		else
			rc = parse_body(p, &attrs, &at, *ret);
	}
	leave(p);
	return rc;
}
