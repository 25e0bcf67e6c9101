/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unions with a discriminant that tells which variant is present: enums of Rust, variant records of
 * Ada
 *
 * Each variant becomes: if the discriminant is in its ranges, the variant, and on after the union.
 * One without ranges comes last. When there is none, and no other one holds, the union's bytes are
 * shown.
 *
 *	Some(5)    None    Shape::Circle {.r = 3}    {.k = circle, .id = 1, .radius = 5}
 *	JSON, as serde has it:  {"Some":5}  "None"  {"Circle":{"r":3}}
 *	JSON for Ada:           {"k":"circle","id":1,"radius":5}
 *
 * The last struct has members of its own, so that the variant's members are added to them.
 */
#include "decode/compile.h"

#include <ctype.h>

static bool is_record(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS;
}

const struct cairn_type *variants_of(const struct compiler *c, const struct cairn_member *m)
{
	const struct cairn_type *t = type_of(c, m->type);
	bool is_plain = !m->name && !m->dynamic && !m->bit_size && m->bit_off % 8 == 0;

	return is_plain && !c->raw && t->kind == CAIRN_T_UNION && t->variants && !t->unread ? t
											    : NULL;
}

/* ---- which one is there ---- */

static struct variant_test test_of(const struct compiler *c, const struct cairn_variants *of,
				   struct view v)
{
	const struct cairn_type *t = type_of(c, of->type);
	/* Before the record or after all of them: an offset at which nothing is read. */
	uint64_t at = v.off * 8 + (uint64_t)of->bit_off;
	struct variant_test test = {
		.off = at > INT64_MAX ? UINT64_MAX / 2 : at / 8,
		.shift = (uint8_t)(at % 8),
		.width = (uint8_t)(of->bit_size ? of->bit_size : t->size * 8),
		.big_endian = is_big_endian(c, t, v),
		.is_signed =
			t->encoding == CAIRN_ENC_SIGNED || t->encoding == CAIRN_ENC_SIGNED_CHAR,
	};
	return test;
}

/*
 * Only numbers of up to 64 bits have ranges: the reader that filled the graph checked that, except
 * for damaged types.
 */
static bool can_test(const struct compiler *c, const struct cairn_variants *of)
{
	uint64_t bits = of->bit_size ? of->bit_size : type_of(c, of->type)->size * 8;

	return bits && bits <= 64;
}

static uint64_t as_tested(const struct variant_test *t, uint64_t v)
{
	if (t->width == 64)
		return v;
	v &= (UINT64_C(1) << t->width) - 1;
	return t->is_signed && v >> (t->width - 1) ? v | UINT64_MAX << t->width : v;
}

/* Without a @variant: whether the discriminant can be read. */
static uint32_t emit_test(struct compiler *c, struct variant_test test,
			  const struct cairn_variant *variant)
{
	test.first = (uint32_t)c->ranges.n;
	test.n = variant ? variant->n_ranges : 0;
	for (uint32_t i = 0; i < test.n; i++) {
		const struct cairn_variant_range *r = &variant->ranges[i];
		struct cairn_variant_range range = {as_tested(&test, r->lo),
						    as_tested(&test, r->hi)};
		if (!VEC_ADD(&c->ranges, range))
			out_of_memory(c);
	}
	if (!VEC_ADD(&c->variants, test))
		out_of_memory(c);
	return emit(c, (struct op){.code = OP_VARIANT, .aux = (uint32_t)c->variants.n - 1});
}

/* ---- the present variants ---- */

/* The variants of a union, as its text shows them. */
struct shown {
	const char *enum_name; /* an enum of Rust; NULL: members of the struct around them */
	const struct cairn_type *u;
	struct view v;
	unsigned int depth;
	bool first;
};

/* __0, __1: the members of a tuple. */
static bool is_tuple(const struct cairn_type *t)
{
	bool any = false;

	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *m = &t->members[i];
		if (m->is_discriminant)
			continue;
		if (!m->name || strncmp(m->name, "__", 2) || !isdigit((unsigned char)m->name[2]))
			return false;
		any = true;
	}
	return any;
}

static uint32_t count_shown(const struct cairn_type *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_members; i++)
		n += !t->members[i].is_discriminant;
	return n;
}

static void compile_tuple(struct compiler *c, const struct cairn_type *t, struct view v,
			  unsigned int depth)
{
	bool json = c->look.json, one = count_shown(t) == 1, first = true;

	add_text(c, !json ? "(" : one ? "" : "[");
	for (uint32_t i = 0; i < t->n_members && !c->rc; i++) {
		if (t->members[i].is_discriminant)
			continue;
		add_separator(c, &first);
		compile_member(c, t, i, v, depth + 1);
	}
	add_text(c, !json ? ")" : one ? "" : "]");
}

/*
 * The last part of a name, without the types that it is made for: Option of
 * core::option::Option<e::P>.
 */
static void add_enum_name(struct compiler *c, const char *name)
{
	static const char *const preludes[] = {"core::option::Option<", "core::result::Result<"};
	const char *last = name, *end = name;
	char text[256];

	for (size_t i = 0; i < sizeof(preludes) / sizeof(preludes[0]); i++)
		if (!strncmp(name, preludes[i], strlen(preludes[i])))
			return;
	for (int nested = 0; *end && !(nested == 0 && *end == '<' && end > last); end++) {
		nested += (*end == '<') - (*end == '>');
		if (!nested && !strncmp(end, "::", 2))
			last = end + 2;
	}
	snprintf(text, sizeof(text), "%.*s", end > last ? (int)(end - last) : 0, last);
	add_name(c, text);
	add_text(c, "::");
}

static void compile_content(struct compiler *c, uint32_t id, struct view v, unsigned int depth)
{
	const struct cairn_type *t = type_of(c, id);
	bool first = true;

	if (is_tuple(t)) {
		compile_tuple(c, t, v, depth);
		return;
	}
	add_text(c, c->look.json ? "{" : " {");
	compile_members(c, id, v, depth, &first);
	add_text(c, "}");
}

/* Whether member @i is a struct with something to show. */
static bool has_content(const struct compiler *c, const struct cairn_member *m)
{
	const struct cairn_type *t = type_of(c, m->type);

	return !is_record(t) || t->unread || t->declaration || count_shown(t);
}

static void compile_named(struct compiler *c, struct shown *s, uint32_t i)
{
	const struct cairn_member *m = &s->u->members[i];
	bool json = c->look.json, has = has_content(c, m);
	struct view v = {s->v.off + m->bit_off / 8, s->v.end, false};

	add_text(c, !json ? "" : has ? "{\"" : "\"");
	if (!json)
		add_enum_name(c, s->enum_name);
	add_name(c, m->name);
	add_text(c, !json ? "" : has ? "\":" : "\"");
	if (has && s->depth + 1 >= c->max_depth)
		add_text(c, json ? "\"...\"" : "(...)");
	else if (has && is_record(type_of(c, m->type)))
		compile_content(c, m->type, v, s->depth + 1);
	else if (has)
		compile_member(c, s->u, i, s->v, s->depth + 1);
	add_text(c, json && has ? "}" : "");
}

/* One member, or those of a struct without a name. */
static void compile_unnamed(struct compiler *c, struct shown *s, uint32_t i)
{
	const struct cairn_member *m = &s->u->members[i];
	const struct cairn_type *t = type_of(c, m->type);
	struct view v = {s->v.off + m->bit_off / 8, s->v.end, false};
	bool first = s->first;

	if (!m->name && is_record(t)) {
		compile_members(c, m->type, v, s->depth + 1, &first);
		return;
	}
	add_separator(c, &first);
	add_key(c, m, i);
	compile_member(c, s->u, i, s->v, s->depth + 1);
}

static void compile_one(struct compiler *c, struct shown *s, uint32_t i)
{
	if (s->enum_name)
		compile_named(c, s, i);
	else
		compile_unnamed(c, s, i);
}

/* The discriminant has a value of no variant: its bytes and all others are shown. */
static void compile_other(struct compiler *c, struct shown *s)
{
	bool first = s->first;

	if (!s->enum_name) {
		add_separator(c, &first);
		add_text(c, c->look.json ? "\"<variants>\":" : "<variants> = ");
	}
	if (is_outside(s->v, 0, s->u->size))
		add_note(c, "cut off");
	else
		emit(c, (struct op){.code = OP_DUMP, .off = s->v.off, .size = s->u->size});
}

/* Without its discriminant nothing is known of it: the way that @is_there leads to. */
static void compile_absent(struct compiler *c, struct shown *s, uint32_t is_there)
{
	uint32_t over = emit(c, (struct op){.code = OP_JUMP});
	bool first = s->first;

	set_next(c, is_there, (uint32_t)c->ops.n);
	if (!s->enum_name) {
		add_separator(c, &first);
		add_text(c, c->look.json ? "\"<variants>\":" : "");
	}
	add_note(c, "cut off");
	set_next(c, over, label(c));
}

static void compile_choice(struct compiler *c, struct shown *s)
{
	const struct cairn_variants *of = s->u->variants;
	struct variant_test test = test_of(c, of, s->v);
	VEC(uint32_t) jumps = {0};
	uint32_t other = UINT32_MAX, is_there = of->type ? emit_test(c, test, NULL) : 0;

	for (uint32_t i = 0; i < s->u->n_members && !c->rc; i++) {
		if (s->u->members[i].is_discriminant)
			continue;
		if (!of->of[i].n_ranges) {
			other = i;
			continue;
		}
		uint32_t at = emit_test(c, test, &of->of[i]);
		compile_one(c, s, i);
		uint32_t jump = emit(c, (struct op){.code = OP_JUMP});
		if (!VEC_ADD(&jumps, jump))
			out_of_memory(c);
		set_next(c, at, (uint32_t)c->ops.n);
	}
	if (other != UINT32_MAX)
		compile_one(c, s, other);
	else
		compile_other(c, s);
	if (of->type)
		compile_absent(c, s, is_there);
	uint32_t end = label(c);
	for (size_t i = 0; i < jumps.n; i++)
		set_next(c, jumps.p[i], end);
	VEC_FREE(&jumps);
}

void compile_variants(struct compiler *c, uint32_t union_id, struct view v, unsigned int depth,
		      bool *first)
{
	struct shown s = {.u = type_of(c, union_id), .v = v, .depth = depth, .first = *first};

	*first = false;
	if (s.u->variants->type && !can_test(c, s.u->variants))
		compile_other(c, &s);
	else
		compile_choice(c, &s);
}

bool compile_enum_value(struct compiler *c, const struct cairn_type *t, struct view v,
			unsigned int depth)
{
	const struct cairn_type *u =
		t->n_members == 1 && t->name ? variants_of(c, &t->members[0]) : NULL;
	struct shown s = {.enum_name = t->name, .u = u, .v = v, .depth = depth};

	if (!u || (u->variants->type && !can_test(c, u->variants)))
		return false;
	for (uint32_t i = 0; i < u->n_members; i++)
		if (!u->members[i].name)
			return false;
	compile_choice(c, &s);
	return true;
}
