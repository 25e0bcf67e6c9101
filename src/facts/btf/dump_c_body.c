/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structs, unions and enums with the types nested in them: on a stack of our own, as input decides
 * the depth.
 */
#include "btf/dump_c.h"

#include <inttypes.h>
#include <limits.h>

/* A struct or union of which members are still to be printed. */
struct body {
	struct c_walk walk;
	uint32_t next, indent;
	struct map *scope, own_scope; /* members of a nameless member are its owner's */
	char *tail;                   /* the text after the closing brace */
};

struct printer {
	struct dump_c *d;
	FILE *out;
	VEC(struct body *) stack;
};

static void indent(struct printer *p, uint32_t n)
{
	while (n--)
		fputc('\t', p->out);
}

static void body_free(struct body *b)
{
	if (!b)
		return;
	map_fini(&b->own_scope);
	free(b->tail);
	free(b);
}

/* @tail is taken. */
static void push(struct printer *p, const struct cairn_btf_type *t, uint32_t indent_by,
		 struct map *scope, char *tail)
{
	struct body *b = calloc(1, sizeof(*b));

	if (!b || !tail || !VEC_ADD(&p->stack, b)) {
		p->d->nomem = true;
		free(tail);
		free(b);
		return;
	}
	*b = (struct body){.walk = c_walk_of(p->d, t), .indent = indent_by + 1, .tail = tail};
	b->scope = scope ? scope : &b->own_scope;
	if (!p->d->types[t->id].overlay || t->kind == CAIRN_BTF_UNION)
		return;
	indent(p, b->indent++);
	fputs("union {\n", p->out);
}

/* ---- enums ---- */

/* A value too large for its size can only be damaged; a program would see its low bytes. */
static int64_t value_of(const struct cairn_btf_type *t, uint32_t i)
{
	int64_t value = cairn_btf_enumerator(t, i).value;
	unsigned int unused = t->ref == 1 || t->ref == 2 || t->ref == 4 ? 64 - 8 * t->ref : 0;

	return t->kflag ? (int64_t)((uint64_t)value << unused) >> unused
			: (int64_t)((uint64_t)value << unused >> unused);
}

static void put_value(FILE *out, const struct cairn_btf_type *t, int64_t value)
{
	if (value == INT64_MIN && t->kflag)
		fputs("-9223372036854775807LL - 1", out);
	else if (t->kflag)
		fprintf(out, "%" PRId64 "%s", value,
			value < INT_MIN || value > INT_MAX ? "LL" : "");
	else
		fprintf(out, "%" PRIu64 "%s", (uint64_t)value,
			(uint64_t)value > UINT_MAX ? "ULL" : "");
}

static void put_enumerator(struct printer *p, const struct cairn_btf_type *t, uint32_t i,
			   uint32_t indent_by)
{
	const char *original = cairn_btf_string(p->d->btf, cairn_btf_enumerator(t, i).name_off);
	const char *name = c_ordinary(p->d, original ? original : "");
	bool c23 = original && c_is_c23_word(original);

	if (c23)
		fputs(C_BEFORE_C23, p->out);
	for (int pass = 0; pass <= c23; pass++) {
		indent(p, indent_by);
		/* So that an enum of nothing else is not empty. */
		fprintf(p->out, pass ? "%s___ = " : "%s = ", name);
		put_value(p->out, t, value_of(t, i));
		fputc(',', p->out);
		c_put_original(p->d, name, original ? original : "");
		fputc('\n', p->out);
		if (c23)
			fputs(pass ? "#endif\n" : "#else\n", p->out);
	}
}

/* Bytes that a compiler gives an enum of these values. */
static uint32_t natural_enum_bytes(const struct cairn_btf_type *t)
{
	int64_t lo = 0;
	uint64_t hi = 0;

	for (uint32_t i = 0; i < t->vlen; i++) {
		int64_t value = value_of(t, i);

		if (t->kflag && value < 0)
			lo = value < lo ? value : lo;
		else
			hi = (uint64_t)value > hi ? (uint64_t)value : hi;
	}
	return lo < INT_MIN || hi > UINT_MAX || (lo && hi > INT_MAX) ? 8 : 4;
}

/* "enum NAME { ... } __attribute__((mode(QI)))" */
static void put_enum(struct printer *p, const struct cairn_btf_type *t, const char *name,
		     uint32_t indent_by)
{
	uint32_t bytes = natural_enum_bytes(t);

	fprintf(p->out, "enum %s%s{", name, *name ? " " : "");
	c_put_original(p->d, name, *name && *t->name ? t->name : name);
	fputc('\n', p->out);
	for (uint32_t i = 0; i < t->vlen; i++)
		put_enumerator(p, t, i, indent_by + 1);
	if (!t->vlen) {
		char *none = arena_printf(&p->d->arena, "__none_%" PRIu32, t->id);

		indent(p, indent_by + 1);
		fprintf(p->out, "%s, /* no enumerators are known */\n",
			none ? c_ordinary(p->d, none) : "");
	}
	indent(p, indent_by);
	fputc('}', p->out);
	if (t->ref == 1 || t->ref == 2)
		fprintf(p->out, " __attribute__((mode(%s)))", t->ref == 1 ? "QI" : "HI");
	else if (t->ref == 8 && bytes != 8)
		fputs(" __attribute__((mode(DI)))", p->out);
}

/* ---- one declaration ---- */

/* @tail: the text after the declarator, "" or ":3" or an attribute, and the end of the line. */
static void put_decl(struct printer *p, uint32_t indent_by, const char *prefix, uint32_t id,
		     const char *name, const char *tail, struct map *scope)
{
	struct c_decl decl;

	c_declare(p->d, id, name, &decl);
	struct cairn_btf_type base = c_get(p->d, decl.base);

	indent(p, indent_by);
	fprintf(p->out, "%s%s", prefix, c_str(&decl.first));
	if (!c_in_place(p->d, &base)) {
		fprintf(p->out, "%s%s", c_str(&decl.second), tail);
	} else if (c_is_enum(base.kind)) {
		put_enum(p, &base, "", indent_by);
		fprintf(p->out, " %s%s", c_str(&decl.second), tail);
	} else {
		struct c_text rest = {0};

		fprintf(p->out, "%s {\n", c_keyword(&base));
		c_appendf(p->d, &rest, "%s%s%s", decl.second.n ? " " : "", c_str(&decl.second),
			  tail);
		push(p, &base, indent_by, scope, rest.p);
	}
	c_decl_fini(&decl);
}

/* ---- members ---- */

static void put_array_gap(struct printer *p, struct body *b, uint32_t indent_by, uint64_t at,
			  uint64_t bytes)
{
	char name[48];

	snprintf(name, sizeof(name), "__gap_%" PRIu64, at);
	indent(p, indent_by);
	fprintf(p->out, "unsigned char %s[%" PRIu64 "];\n", c_scoped(p->d, b->scope, name), bytes);
}

/*
 * One bit-field without a name, of the widest type that neither crosses its boundary nor aligns the
 * struct more.
 */
static uint64_t put_bit_gap(struct printer *p, uint64_t from, uint64_t to, uint32_t natural,
			    bool packed, uint32_t indent_by)
{
	uint32_t unit = packed || natural > 8 ? 8 : natural;
	uint64_t room = packed ? 64 : 8 * (uint64_t)unit - from % (8 * unit);
	uint64_t bits = to - from < room ? to - from : room;
	const char *word = unit == 1   ? "char"
			   : unit == 2 ? "short"
			   : unit == 4 ? "int"
				       : "long long";

	if (unit == 8 && p->d->ptr_bytes == 8)
		word = "long";
	indent(p, indent_by);
	fprintf(p->out, "%s: %" PRIu64 ";\n", word, bits);
	return from + bits;
}

static void put_gap(struct printer *p, struct body *b, uint64_t from, uint64_t to)
{
	while (from < to) {
		bool is_long = to - from > 8 * C_GAP_ARRAY_BYTES;
		uint64_t bytes = (to - from) / 8;

		if (is_long && from % 8 == 0) {
			put_array_gap(p, b, b->indent, from / 8, bytes);
			from += 8 * bytes;
		} else {
			/* An array begins at a byte. */
			uint64_t end = is_long ? (from + 7) / 8 * 8 : to;

			from = put_bit_gap(p, from, end, b->walk.natural, b->walk.packed,
					   b->indent);
		}
	}
}

/* A nameless struct or union whose members are its owner's. */
static bool is_anonymous_member(const struct dump_c *d, uint32_t id)
{
	struct cairn_btf_type t = c_get(d, id);

	for (uint32_t i = 0; c_is_qualifier(t.kind) && i < C_CHAIN_MAX; i++)
		t = c_get(d, t.ref);
	return c_is_struct(t.kind) && c_in_place(d, &t);
}

static const char *member_name(struct printer *p, struct body *b, const char *original, uint32_t i,
			       uint32_t type)
{
	char made[32];

	if (*original)
		return c_scoped(p->d, b->scope, original);
	if (is_anonymous_member(p->d, type))
		return "";
	snprintf(made, sizeof(made), "__unnamed_%" PRIu32, i);
	char *kept = arena_strdup(&p->d->arena, made);
	return kept ? c_scoped(p->d, b->scope, kept) : "";
}

static void put_why_not(struct printer *p, const struct body *b, const struct c_member *m,
			const char *name)
{
	indent(p, b->indent);
	fputs("/* ", p->out);
	c_put_quoted(p->out, name);
	fprintf(p->out, ": %s (type %" PRIu32 " at bit %" PRIu64 ") */\n", m->why_not, m->m.type,
		m->bit_off);
}

/* The text after a member's declarator. */
static void member_tail(struct printer *p, const struct body *b, const struct c_member *m,
			const char *name, const char *original, struct c_text *tail)
{
	struct dump_c *d = p->d;

	if (m->m.bit_size)
		c_appendf(d, tail, ": %" PRIu32, m->m.bit_size);
	if (m->attr_align)
		c_appendf(d, tail, " __attribute__((aligned(%" PRIu32 ")))", m->attr_align);
	c_append(d, tail, ";");
	if (*original && strcmp(name, original)) {
		c_count_renamed(d, name, original);
		c_append_comment(d, tail, original);
	}
	c_append(d, tail, "\n");
	if (!d->types[b->walk.t.id].overlay)
		return;
	for (uint32_t i = 0; i < b->indent; i++)
		c_append(d, tail, "\t");
	c_append(d, tail, "} __attribute__((packed));\n");
}

/* An overlay's member begins with a gap of its own. */
static void open_overlay(struct printer *p, struct body *b, uint64_t bit_off)
{
	indent(p, b->indent);
	fputs("struct {\n", p->out);
	if (bit_off / 8)
		put_array_gap(p, b, b->indent + 1, bit_off / 8, bit_off / 8);
	if (bit_off % 8)
		put_bit_gap(p, bit_off / 8 * 8, bit_off, 1, true, b->indent + 1);
}

static void put_member(struct printer *p, struct body *b, uint32_t i)
{
	struct c_member m = c_step(p->d, &b->walk, i);
	const char *original = cairn_btf_string(p->d->btf, m.m.name_off);
	bool overlay = p->d->types[b->walk.t.id].overlay;
	struct c_text tail = {0};

	if (!original)
		original = "";
	if (m.why_not) {
		put_why_not(p, b, &m, original);
		return;
	}
	const char *name = member_name(p, b, original, i, m.m.type);

	if (overlay) {
		m.attr_align = 0;
		open_overlay(p, b, m.bit_off);
	} else {
		put_gap(p, b, m.gap_from, m.bit_off);
	}
	member_tail(p, b, &m, name, original, &tail);
	put_decl(p, b->indent + overlay, "", m.m.type, name, c_str(&tail), *name ? NULL : b->scope);
	c_text_fini(&tail);
}

/* ---- bodies ---- */

static void put_bytes(struct printer *p, const struct body *b)
{
	indent(p, b->indent);
	fprintf(p->out, "unsigned char %s[%" PRIu32 "];\n", c_scoped(p->d, b->scope, "__bytes"),
		b->walk.t.ref);
}

/* Pads the rest, and closes the brace. */
static void close_body(struct printer *p, struct body *b)
{
	const struct c_type *c = &p->d->types[b->walk.t.id];
	bool is_union = b->walk.t.kind == CAIRN_BTF_UNION;
	uint64_t gap_from;
	uint32_t align = c_rest(&b->walk, &gap_from);

	if (c->overlay) {
		align = 0;
		put_bytes(p, b);
		if (!is_union) {
			indent(p, --b->indent);
			fputs("};\n", p->out);
		}
	} else if (gap_from < 8 * (uint64_t)b->walk.t.ref && (is_union || !b->walk.at)) {
		put_bytes(p, b);
	} else {
		put_gap(p, b, gap_from, 8 * (uint64_t)b->walk.t.ref);
	}
	indent(p, b->indent - 1);
	fputc('}', p->out);
	if (c->packed)
		fputs(" __attribute__((packed))", p->out);
	if (align)
		fprintf(p->out, " __attribute__((aligned(%" PRIu32 ")))", align);
	fputs(b->tail, p->out);
}

static void print_all(struct printer *p)
{
	while (p->stack.n) {
		struct body *b = p->stack.p[p->stack.n - 1];

		if (b->next < b->walk.t.vlen) {
			put_member(p, b, b->next++);
			continue;
		}
		close_body(p, b);
		p->stack.n--;
		body_free(b);
	}
	VEC_FREE(&p->stack);
}

void c_print_decl(struct dump_c *d, const char *prefix, uint32_t id, const char *name,
		  const char *attributes)
{
	struct printer p = {.d = d, .out = d->out};
	struct c_text tail = {0};

	c_append(d, &tail, attributes);
	c_append(d, &tail, ";");
	put_decl(&p, 0, prefix, id, name, c_str(&tail), NULL);
	c_text_fini(&tail);
	print_all(&p);
}

void c_print_definition(struct dump_c *d, const struct cairn_btf_type *t)
{
	struct printer p = {.d = d, .out = d->out};
	const char *name = c_in_place(d, t) ? "" : c_name(d, t);

	if (c_is_enum(t->kind)) {
		put_enum(&p, t, name, 0);
		fputs(";\n", d->out);
		return;
	}
	fprintf(d->out, "%s %s {", c_keyword(t), name);
	c_put_original(d, name, *t->name ? t->name : name);
	fputc('\n', d->out);
	push(&p, t, 0, NULL, strdup(";\n"));
	print_all(&p);
}
