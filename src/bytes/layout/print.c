/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layout/print.h"

/* ---- comments between members ---- */

static void print_count(const struct print *p, uint64_t n, const char *what)
{
	fprintf(p->out, "%" PRIu64 " %s%s", n, what, n == 1 ? "" : "s");
}

/* A comment on a line of its own; the first of a group has an empty line before it. */
static void open_comment(struct print *p, const struct place *at, bool *spaced)
{
	fputs(*spaced || at->first_line ? "\n" : "\n\n", p->out);
	*spaced = true;
	print_tabs(p, at);
	fputs("/* XXX ", p->out);
}

static void print_hole(struct print *p, const struct place *at, uint64_t n, const char *what,
		       bool *spaced)
{
	if (!n)
		return;
	open_comment(p, at, spaced);
	print_count(p, n, what);
	fputs(" hole, try to pack */", p->out);
}

static void print_item(struct print *p, bool *first, uint64_t n, const char *one, const char *many)
{
	if (!n)
		return;
	fprintf(p->out, *first ? " %" PRIu64 " %s" : ", %" PRIu64 " %s", n, n == 1 ? one : many);
	*first = false;
}

/* The holes and padding inside a member that is a struct. */
static void print_inner(struct print *p, const struct cairn_member *in, const struct place *at,
			bool *spaced)
{
	/* Typedefs are not followed: pahole does not follow them either. */
	const struct cairn_type *t = cairn_types_get(p->l->types, in->type);
	struct cairn_layout_facts f;
	bool first = true, flexible, embedded;

	if (!is_structure(t) || layout_facts(p->l, in->type, &f, NULL) <= 0)
		return;
	flexible = ends_flexible(p->l, t);
	embedded = embeds_flexible(p->l, in->type, 0);
	if (!flexible && !embedded && !f.padding && !f.bit_padding && !f.n_holes &&
	    !f.n_bit_holes && !f.n_unplaced && !f.n_unplaced_bases)
		return;
	open_comment(p, at, spaced);
	fputs("last struct has", p->out);
	if (flexible) {
		fputs(" a flexible array", p->out);
		first = false;
	}
	if (embedded) {
		fputs(first ? " embedded flexible array(s)" : ", embedded flexible array(s)",
		      p->out);
		first = false;
	}
	print_item(p, &first, f.padding, "byte of padding", "bytes of padding");
	print_item(p, &first, f.bit_padding, "bit of padding", "bits of padding");
	print_item(p, &first, f.n_holes, "hole", "holes");
	print_item(p, &first, f.n_bit_holes, "bit hole", "bit holes");
	print_item(p, &first, f.n_unplaced, "member, offset not known",
		   "members, offset not known");
	print_item(p, &first, f.n_unplaced_bases, "base class with such a member",
		   "base classes with such members");
	fputs(" */", p->out);
}

/* ---- bit-fields that need help to be placed again ---- */

static bool follows_bit_hole(const struct cairn_type *t, const struct cairn_layout_member *m,
			     uint32_t i)
{
	return i && t->members[i].bit_size && m[i - 1].bit_hole;
}

/* A field without a name fills the hole; width 0 when the next unit follows. */
static bool print_filler(struct print *p, const struct cairn_type *t,
			 const struct cairn_layout_member *m, uint32_t i, const struct place *at)
{
	struct type_text text;
	bool next_unit;

	if (!follows_bit_hole(t, m, i) || m[i - 1].hole)
		return false;
	next_unit = m[i].offset != m[i - 1].offset;
	type_text(p->l, t->members[i].type, false, &text);
	if (next_unit) {
		putc('\n', p->out);
		print_tabs(p, at);
		fputs("/* Force alignment to the next boundary: */\n", p->out);
	}
	print_tabs(p, at);
	fprintf(p->out, "%-*s :%u;\n", at->type_column, text.before,
		next_unit ? 0 : m[i - 1].bit_hole);
	return true;
}

/* Two runs of bit-fields that were brought together and stay two memory locations. */
static bool print_separator(struct print *p, const struct cairn_type *t, uint32_t i,
			    const struct place *at, bool spaced)
{
	if (t != p->l->other || !p->l->separate[i])
		return false;
	if (!spaced)
		putc('\n', p->out);
	print_tabs(p, at);
	fprintf(p->out, "%-*s :0;\n", at->type_column, "char");
	return true;
}

/* The widest unit among the bit-fields that share the place of the one before @i. */
static uint64_t size_before(const struct cairn_type *t, const struct cairn_layout_member *m,
			    uint32_t i)
{
	uint64_t size = m[i - 1].size;

	for (uint32_t k = i - 1; t->members[k].bit_size && m[k].offset == m[i - 1].offset; k--) {
		size = m[k].size > size ? m[k].size : size;
		if (!k)
			break;
	}
	return size;
}

/* The comment where units of bit-fields and other members overlap. */
static void print_combined(struct print *p, const struct cairn_type *t,
			   const struct cairn_layout_member *m, uint32_t i, const struct place *at,
			   bool *spaced)
{
	const struct cairn_layout_member *last = &m[i - 1];
	const char *what = NULL;

	if (!last->size || t->members[i].is_base_class || t->members[i].dynamic ||
	    layout_is_unplaced(p->l, &t->members[i - 1]))
		return;
	if (m[i].offset < last->offset ||
	    (m[i].offset == last->offset && !t->members[i - 1].bit_size && t->members[i].bit_size))
		what = "previous";
	else if (m[i].offset > last->offset && m[i].offset - last->offset < size_before(t, m, i))
		what = "next";
	if (!what)
		return;
	if (!*spaced)
		putc('\n', p->out);
	*spaced = true;
	print_tabs(p, at);
	fprintf(p->out, "/* Bitfield combined with %s fields */\n", what);
}

/* ---- bodies ---- */

static void print_members(struct print *p, const struct cairn_type *t,
			  const struct cairn_layout_facts *facts,
			  const struct cairn_layout_member *m, const struct place *at,
			  unsigned int depth)
{
	uint64_t seen = p->cacheline_seen;
	bool spaced = false;

	if (is_structure(t)) {
		struct place first = *at;

		first.first_line = true;
		print_hole(p, &first, facts->first_bit_hole, "bit", &spaced);
		print_hole(p, &first, facts->first_hole, "byte", &spaced);
		if (spaced)
			putc('\n', p->out);
	}
	for (uint32_t i = 0; i < t->n_members; i++) {
		if (i && is_structure(t)) {
			if (print_separator(p, t, i, at, spaced) ||
			    (spaced && print_filler(p, t, m, i, at)))
				spaced = true;
			print_combined(p, t, m, i, at, &spaced);
		}
		if (spaced)
			putc('\n', p->out);
		spaced = false;
		print_tabs(p, at);
		p->n_members++;
		print_member(p, t, i, &m[i], at, depth);
		print_variant(p, t, i);
		/* Each member of a union begins at the same place again. */
		if (t->kind == CAIRN_T_UNION)
			p->cacheline_seen = seen;
		if (is_structure(t)) {
			print_inner(p, &t->members[i], at, &spaced);
			print_hole(p, at, m[i].bit_hole, "bit", &spaced);
			print_hole(p, at, m[i].hole, "byte", &spaced);
		}
		putc('\n', p->out);
	}
}

static const char *word_of(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_UNION ? "union" : t->kind == CAIRN_T_CLASS ? "class" : "struct";
}

static void print_head(const struct print *p, const char *word, const struct cairn_type *t)
{
	fputs(word, p->out);
	if (t->name) {
		putc(' ', p->out);
		print_name(p, t->name);
	}
	fputs(" {\n", p->out);
}

static void print_enum(const struct print *p, const struct cairn_type *t, const struct place *at)
{
	int widest = 0;

	for (uint32_t i = 0; i < t->n_enumerators; i++) {
		int n = (int)strlen(t->enumerators[i].name);

		widest = n > widest ? n : widest;
	}
	print_head(p, "enum", t);
	for (uint32_t i = 0; i < t->n_enumerators; i++) {
		const struct cairn_enumerator *e = &t->enumerators[i];

		print_tabs(p, at);
		putc('\t', p->out);
		int width = print_name(p, e->name);
		fprintf(p->out, "%*s = ", width < widest ? widest - width : 0, "");
		fprintf(p->out,
			t->encoding == CAIRN_ENC_UNSIGNED ? "%" PRIu64 ",\n" : "%" PRId64 ",\n",
			e->value);
	}
	print_tabs(p, at);
	putc('}', p->out);
}

static void print_footer(const struct print *p, const struct cairn_type *t,
			 const struct cairn_layout_facts *facts)
{
	putc('}', p->out);
	if (facts->packed)
		fputs(" __attribute__((__packed__))", p->out);
	else if (facts->aligned && is_structure(t))
		fprintf(p->out, " __attribute__((__aligned__(%u)))", facts->aligned);
}

/* @t: in order. */
static void print_ordered(struct print *p, const struct cairn_type *t, const struct place *at,
			  unsigned int depth)
{
	struct cairn_layout_member *m = layout_members_new(p->l, t);
	struct place inside = *at;
	struct cairn_layout_facts facts = {0};

	if (!m)
		return;
	print_head(p, word_of(t), t);
	inside.indent++;
	inside.has_sums = false;
	inside.may_end_flexible = at->may_end_flexible && is_structure(t);
	if (depth)
		/* Below 0 printf takes it for a width again: so does pahole. */
		inside.type_column -= 8;
	if (has_layout(t)) {
		layout_facts_of(p->l, t, &facts, m);
		print_members(p, t, &facts, m, &inside, depth);
		if ((!depth || at->has_sums) && is_structure(t))
			print_sums(p, t, &facts, m, &inside);
	}
	print_tabs(p, at);
	print_footer(p, t, &facts);
	free(m);
}

static void print_aggregate(struct print *p, const struct cairn_type *t, const struct place *at,
			    unsigned int depth)
{
	struct layout_sorted sorted;
	int rc = layout_sort(p->l, t, &sorted);

	if (rc >= 0)
		print_ordered(p, rc ? &sorted.type : t, at, depth);
	layout_sorted_free(&sorted);
}

void print_body(struct print *p, const struct cairn_type *t, const struct place *at,
		unsigned int depth)
{
	if (t->kind == CAIRN_T_ENUM)
		print_enum(p, t, at);
	else if (depth > NEST_MAX || p->n_members > PRINTED_MAX)
		fprintf(p->out, "%s {...}", word_of(t));
	else
		print_aggregate(p, t, at, depth);
}

/* "typedef struct { ... } name;" */
static bool names_anonymous(const struct cairn_type *node, const struct cairn_type *t)
{
	return node->kind == CAIRN_T_TYPEDEF && node->name && !t->name;
}

int cairn_layout_print(struct cairn_layout *l, uint32_t id, FILE *out)
{
	const struct cairn_type *t = layout_resolve(l, id), *node = cairn_types_get(l->types, id);
	struct print p = {.l = l, .out = out};
	struct place at = {
		.type_column = TYPE_COLUMN, .name_column = NAME_COLUMN, .may_end_flexible = true};

	layout_begin(l);
	if (!has_layout(t) && t->kind != CAIRN_T_ENUM)
		return 0;
	if (t->kind == CAIRN_T_UNION)
		at.name_column -= 2;
	fputs(names_anonymous(node, t) ? "typedef " : "", out);
	print_body(&p, t, &at, 0);
	if (names_anonymous(node, t)) {
		putc(' ', out);
		print_name(&p, node->name);
	}
	fputs(";\n", out);
	return layout_end(l);
}
