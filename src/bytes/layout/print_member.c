/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "layout/print.h"

/*
 * Offset, for a bit-field its position in the unit, and size, after @spaces blanks. "?": the offset
 * is not known before run time (virtual base class), or the debug information contradicts itself.
 */
static void print_comment(const struct print *p, const struct cairn_member *in,
			  const struct cairn_layout_member *m, const struct place *at, int spaces)
{
	uint64_t off = at->base + m->offset;
	bool hex = p->l->opts.hex;
	int width = in->bit_size ? 2 : 5;

	/*
	 * One blank at least. printf takes a negative width as left-justified, which gives as many
	 * blanks as the positive one. pahole does the same, so we do.
	 */
	fprintf(p->out, "%*s/* ", spaces, " ");
	if (in->dynamic || at->is_unknown)
		fputs("    ?", p->out);
	else
		fprintf(p->out, hex ? "%#5" PRIx64 : "%5" PRIu64, off);
	if (in->bit_size && !in->dynamic)
		fprintf(p->out, hex ? ":%#2x" : ":%2u", m->bit_pos);
	if (hex)
		fprintf(p->out, " %#*" PRIx64 " */", width, m->size);
	else
		fprintf(p->out, " %*" PRIu64 " */", width, m->size);
}

static int print_attributes(const struct print *p, const struct cairn_member *in,
			    const struct cairn_layout_member *m)
{
	int n = 0;

	if (in->bit_size)
		n += fprintf(p->out, ":%u", in->bit_size);
	if (m->aligned)
		n += fprintf(p->out, " __attribute__((__aligned__(%u)))", m->aligned);
	putc(';', p->out);
	return n + 1;
}

/* These two stand for fprintf() with "%s" and "%-*s", which takes several times as long. */
static int print_text(const struct print *p, const char *text)
{
	size_t n = strlen(text);

	if (n)
		fwrite_unlocked(text, 1, n, p->out);
	return (int)n;
}

static int print_padded(const struct print *p, const char *text, int width)
{
	int n = print_text(p, text);

	for (width = abs(width); n < width; n++)
		putc_unlocked(' ', p->out);
	return n;
}

static bool is_written_out(const struct print *p, const struct cairn_type *t)
{
	return (is_aggregate(t) || t->kind == CAIRN_T_ENUM) && (!t->name || p->l->opts.expand);
}

/* The type of an array's elements, or the type itself. */
static uint32_t element_of(const struct print *p, uint32_t id)
{
	const struct cairn_type *t = cairn_types_get(p->l->types, id);

	for (int i = 0; i < NEST_MAX && t->kind == CAIRN_T_ARRAY && !t->vector; i++) {
		id = t->ref;
		t = cairn_types_get(p->l->types, id);
	}
	return id;
}

/*
 * Blanks before the comment of a type that is written out. pahole subtracts the widths of the name
 * and the attribute (of the attribute alone if it is inferred), and of the type's "packed".
 */
static int spaces_behind(struct print *p, const struct cairn_member *in, int attributes,
			 const struct place *at)
{
	int width = in->name ? (int)strlen(in->name) : -1;
	struct cairn_layout_facts facts;

	if (attributes)
		width = p->l->opts.infer_aligned ? attributes - 1 : width + attributes;
	if (layout_facts(p->l, in->type, &facts, NULL) > 0 && facts.packed)
		width += (int)sizeof("__attribute__((__packed__))");
	return at->type_column + at->name_column - width - 3;
}

static void print_written_out(struct print *p, const struct cairn_member *in,
			      const struct cairn_layout_member *m, uint32_t type,
			      const char *counts, const struct place *at, unsigned int depth)
{
	struct place inside = *at;

	inside.base += m->offset;
	inside.is_unknown |= in->dynamic;
	print_body(p, cairn_types_get(p->l->types, type), &inside, depth + 1);
	if (in->name) {
		putc(' ', p->out);
		print_name(p, in->name);
		fputs(counts, p->out);
	}
	int n = print_attributes(p, in, m) - 1;

	print_comment(p, in, m, at,
		      type == in->type ? spaces_behind(p, in, m->aligned ? n : 0, at) : 1);
}

/*
 * If @id is qualifiers and then an unnamed struct or union: its id, and the qualifiers in @words.
 * Else 0.
 */
static uint32_t qualified_anonymous(const struct print *p, uint32_t id, char *words, size_t size)
{
	const struct cairn_type *t = cairn_types_get(p->l->types, id);
	size_t n = 0;

	words[0] = 0;
	while (*qualifier_text(t->kind) && n + strlen(qualifier_text(t->kind)) < size) {
		n += (size_t)snprintf(words + n, size - n, "%s", qualifier_text(t->kind));
		id = t->ref;
		t = cairn_types_get(p->l->types, id);
	}
	return n && is_aggregate(t) && !t->name && !t->declaration ? id : 0;
}

static void print_qualified(struct print *p, const struct cairn_member *in,
			    const struct cairn_layout_member *m, uint32_t type, const char *words,
			    const struct place *at, unsigned int depth)
{
	struct place inside = *at;

	inside.base += m->offset;
	inside.is_unknown |= in->dynamic;
	inside.type_column -= (int)strlen(words);
	inside.has_sums = true;
	fputs(words, p->out);
	print_body(p, cairn_types_get(p->l->types, type), &inside, depth + 1);
	putc(in->name ? ' ' : ';', p->out);
	if (in->name) {
		print_name(p, in->name);
		print_attributes(p, in, m);
	}
	print_comment(p, in, m, at, 1);
}

/* The remaining columns after @n characters. */
static int left_of(const struct place *at, int n)
{
	int left = at->type_column + at->name_column - n;

	return left > 0 ? left : 0;
}

static void print_base_class(struct print *p, const struct cairn_member *in,
			     const struct cairn_layout_member *m, const struct type_text *text,
			     const struct place *at)
{
	int n = fprintf(p->out, "/* %-*s %s; */", at->type_column, text->before, "<ancestor>");

	print_comment(p, in, m, at, left_of(at, n));
}

/*
 * BTF does not tell [] from [0]. As C demands, we print [] for the last member of a struct only,
 * and never for a lone one.
 */
static bool is_at_end(const struct cairn_type *of, uint32_t i, const struct place *at)
{
	return at->may_end_flexible && is_structure(of) && i && i + 1 == of->n_members;
}

/*
 * The width of the type's column. If too many levels are nested for any to remain, pahole pads the
 * tag alone, as printf does with a width below 0.
 */
static int column_of(const char *before, int column)
{
	static const char *const words[] = {"struct ", "union ", "enum "};
	size_t n = strlen(before);

	if (column >= 0 || !n || before[n - 1] == '*')
		return column;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strncmp(before, words[i], strlen(words[i])))
			return 2 * (int)strlen(words[i]) - column;
	return column;
}

/* const char text[]: both the array and its elements are const; the word is written once. */
static bool is_const_flexible(const struct print *p, const struct cairn_type *t)
{
	const struct cairn_type *in = cairn_types_get(p->l->types, t->ref);

	return t->kind == CAIRN_T_CONST && in->kind == CAIRN_T_ARRAY && !in->count &&
	       cairn_types_get(p->l->types, in->ref)->kind == CAIRN_T_CONST;
}

void print_member(struct print *p, const struct cairn_type *of, uint32_t i,
		  const struct cairn_layout_member *m, const struct place *at, unsigned int depth)
{
	const struct cairn_member *in = &of->members[i];
	/* The graph's own type; typedefs are not followed, as they have names. */
	const struct cairn_type *t = cairn_types_get(p->l->types, in->type);
	struct type_text text;

	uint32_t element = element_of(p, in->type);
	bool flexible = is_at_end(of, i, at);

	if (!in->dynamic && !at->is_unknown)
		print_cacheline(p, at->base + m->offset, at);
	if (is_written_out(p, cairn_types_get(p->l->types, element))) {
		type_text(p->l, in->type, flexible, &text);
		print_written_out(p, in, m, element, text.behind, at, depth);
		return;
	}
	char words[64];
	uint32_t anonymous = qualified_anonymous(p, in->type, words, sizeof(words));
	if (anonymous) {
		print_qualified(p, in, m, anonymous, words, at, depth);
		return;
	}
	/* A member's qualifier is printed first, before the padded type. */
	const char *qualifier = is_const_flexible(p, t) ? "" : qualifier_text(t->kind);
	int column = at->type_column - (int)strlen(qualifier);
	type_text(p->l, *qualifier || is_const_flexible(p, t) ? t->ref : in->type, flexible, &text);
	if (in->is_base_class) {
		print_base_class(p, in, m, &text, at);
		return;
	}
	int n = print_text(p, qualifier);
	n += print_padded(p, text.before, column_of(text.before, column));
	putc_unlocked(' ', p->out);
	n += 1 + print_text(p, text.mark);
	n += print_name(p, in->name ? in->name : "");
	n += print_text(p, text.behind);
	n += print_attributes(p, in, m);
	print_comment(p, in, m, at, left_of(at, n));
}
