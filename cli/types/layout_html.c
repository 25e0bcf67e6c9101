/* SPDX-License-Identifier: BSD-2-Clause */
/* --html: the page. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layout_html.h"

enum { SIDES_MAX = 2, DEFAULT_LINE = 64 };

struct page {
	const struct layout_values *values;
	struct html_side sides[SIDES_MAX];
	int n_sides;
	uint64_t cacheline;
	bool no_memory, too_long; /* something is missing on it */
};

/* ---- one type ---- */

/* The type on both sides; 0 where there is none. */
struct entry {
	uint32_t ids[SIDES_MAX];
	struct html_leaves leaves[SIDES_MAX];
	int first; /* side that has it */
	bool both;
};

static void put_sum(const char *what, uint64_t n, const char *class)
{
	printf("<span class=\"sum %s\"><b>%" PRIu64 "</b> %s</span> ", n ? class : "", n, what);
}

static void put_unplaced(const struct html_leaves *leaves)
{
	uint64_t n = 0;

	for (size_t i = 0; i < leaves->n; i++)
		n += leaves->p[i].unplaced;
	if (n)
		put_sum(n == 1 ? "member: offset not known" : "members: offset not known", n,
			"bad");
}

static void put_side(struct page *page, const struct entry *e, int k)
{
	const struct html_side *side = &page->sides[k];
	struct cairn_layout_facts f = {0};

	printf("<div class=side>");
	if (page->n_sides > 1) {
		fputs("<h3>", stdout);
		html_text(side->label);
		fputs("</h3>", stdout);
	}
	page->no_memory |= cairn_layout_facts(side->layout, e->ids[k], &f, NULL) < 0;
	if (!f.size) {
		fputs("<p>no bytes</p></div>\n", stdout);
		return;
	}
	fputs("<p class=sums>", stdout);
	put_sum(f.size == 1 ? "byte" : "bytes", f.size, "");
	put_sum(f.sum_holes == 1 ? "byte in holes" : "bytes in holes", f.sum_holes, "bad");
	if (f.sum_bit_holes + f.bit_padding)
		put_sum("unused bits", f.sum_bit_holes + f.bit_padding, "bad");
	put_sum(f.padding == 1 ? "byte of padding" : "bytes of padding", f.padding, "bad");
	put_unplaced(&e->leaves[k]);
	put_sum((f.size - 1) / page->cacheline ? "cache lines" : "cache line",
		(f.size - 1) / page->cacheline + 1, "");
	fputs("</p>\n", stdout);
	html_map(side, e->ids[k], &e->leaves[k], page->cacheline, page->values->hex);
	fputs("</div>\n", stdout);
}

static const struct html_leaf *leaf_named(const struct html_leaves *leaves, const char *name)
{
	for (size_t i = 0; i < leaves->n; i++)
		if (!strcmp(leaves->p[i].name, name))
			return &leaves->p[i];
	return NULL;
}

static bool same_place(const struct html_leaf *a, const struct html_leaf *b)
{
	return a && b && a->bit_size == b->bit_size && a->size == b->size &&
	       a->unplaced == b->unplaced && (a->unplaced || a->bit_off == b->bit_off);
}

static void put_place(const struct page *page, const struct html_leaf *leaf)
{
	if (!leaf) {
		fputs("<td class=num colspan=2>missing</td>", stdout);
		return;
	}
	if (leaf->unplaced) {
		printf("<td class=num title=\"offset not known\">?</td><td class=num>%" PRIu64
		       "</td>",
		       leaf->size);
		return;
	}
	printf(page->values->hex ? "<td class=num>%#" PRIx64 : "<td class=num>%" PRIu64,
	       leaf->bit_off / 8);
	if (leaf->bit_size)
		printf(":%" PRIu64 "</td><td class=num>%u bit%s</td>", leaf->bit_off % 8,
		       leaf->bit_size, leaf->bit_size == 1 ? "" : "s");
	else
		printf("</td><td class=num>%" PRIu64 "</td>", leaf->size);
}

static void put_key(const struct page *page, int side, const struct html_leaf *leaf, size_t number,
		    const char *mark)
{
	char type[512];

	cairn_types_name(page->sides[side].types, leaf->type, type, sizeof(type));
	printf("<tr%s><td><b class=\"key %s\">%zu</b></td><td class=name>",
	       mark ? " class=differs" : "", html_class(page->sides[side].types, leaf), number);
	html_text(leaf->name);
	if (mark)
		printf(" <em>%s</em>", mark);
	fputs("<small>", stdout);
	html_text(type);
	fputs("</small></td>", stdout);
}

static void put_row(const struct page *page, const struct entry *e, size_t i)
{
	const struct html_leaf *leaf = &e->leaves[e->first].p[i];
	const struct html_leaf *other = e->both ? leaf_named(&e->leaves[1], leaf->name) : NULL;

	put_key(page, e->first, leaf, i + 1,
		e->both && !same_place(leaf, other) ? "\u2260 differs" : NULL);
	put_place(page, leaf);
	if (e->both)
		put_place(page, other);
	fputs("</tr>\n", stdout);
}

/* A member that only the second side has, under its number there. */
static void put_new_row(const struct page *page, const struct entry *e, size_t i)
{
	const struct html_leaf *leaf = &e->leaves[1].p[i];

	if (leaf_named(&e->leaves[0], leaf->name))
		return;
	put_key(page, 1, leaf, i + 1, "only here");
	put_place(page, NULL);
	put_place(page, leaf);
	fputs("</tr>\n", stdout);
}

static void put_table(const struct page *page, const struct entry *e)
{
	fputs("<table><thead>", stdout);
	if (e->both) {
		fputs("<tr><td colspan=2></td>", stdout);
		for (int k = 0; k < SIDES_MAX; k++) {
			fputs("<th colspan=2 class=num>", stdout);
			html_text(page->sides[k].label);
			fputs("</th>", stdout);
		}
		fputs("</tr>", stdout);
	}
	fputs("<tr><th>#</th><th>member</th>", stdout);
	for (int k = 0; k < (e->both ? 2 : 1); k++)
		fputs("<th class=num>offset</th><th class=num>size</th>", stdout);
	fputs("</tr></thead><tbody>\n", stdout);
	for (size_t i = 0; i < e->leaves[e->first].n; i++)
		put_row(page, e, i);
	for (size_t i = 0; e->both && i < e->leaves[1].n; i++)
		put_new_row(page, e, i);
	fputs("</tbody></table>\n", stdout);
}

static uint32_t counterpart(const struct html_side *of, uint32_t id, const struct html_side *in)
{
	const struct cairn_type *t = cairn_types_get(of->types, id);

	for (size_t i = 0; i < in->list.n; i++) {
		const struct cairn_type *other = cairn_types_get(in->types, in->list.ids[i]);

		if (other->kind == t->kind && other->name && t->name &&
		    !strcmp(other->name, t->name))
			return in->list.ids[i];
	}
	return 0;
}

static bool has_members(const struct html_side *side, uint32_t id)
{
	return cairn_types_get(side->types, cairn_types_resolve(side->types, id))->n_members != 0;
}

/* The type that is @id on one side, with its counterpart on the other. */
static void put_type(struct page *page, int side, uint32_t id)
{
	struct entry e = {.first = side};

	if (!has_members(&page->sides[side], id))
		return;
	e.ids[side] = id;
	if (page->n_sides > 1)
		e.ids[!side] = counterpart(&page->sides[side], id, &page->sides[!side]);
	e.both = e.ids[0] && e.ids[1];
	/* Those of both were shown with the first side. */
	if (e.both && side)
		return;
	printf("<section><h2><span>%s</span> ", layout_kind(page->sides[side].types, id));
	html_text(cairn_types_get(page->sides[side].types, id)->name);
	fputs("</h2>\n", stdout);
	printf("<div class=\"sides n%d\">", e.both ? 2 : 1);
	for (int k = 0; k < page->n_sides; k++) {
		if (!e.ids[k])
			continue;
		html_leaves_collect(&page->sides[k], e.ids[k], page->values->expand, &e.leaves[k]);
		page->no_memory |= e.leaves[k].no_memory;
		page->too_long |= e.leaves[k].too_long;
		put_side(page, &e, k);
	}
	if (e.both)
		fputs("</div>\n", stdout);
	if (page->n_sides > 1 && !e.both) {
		fputs("<p>There is no such type in ", stdout);
		html_text(page->sides[!side].label);
		fputs(".</p>", stdout);
	}
	put_table(page, &e);
	if (!e.both)
		fputs("</div>\n", stdout);
	fputs("</section>\n", stdout);
	for (int k = 0; k < page->n_sides; k++)
		html_leaves_free(&e.leaves[k]);
}

/* ---- the page ---- */

static void put_legend(void)
{
	static const char *const kinds[][2] = {{"int", "integer"},
					       {"float", "floating point"},
					       {"pointer", "pointer"},
					       {"array", "array"},
					       {"struct", "struct, union"},
					       {"bits", "bit-field"},
					       {"hole", "hole"},
					       {"padding", "padding"},
					       {"cut", "in two cache lines, would fit into one"}};

	fputs("<ul class=legend>", stdout);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		printf("<li><span class=\"p %s\"></span>%s</li>", kinds[i][0], kinds[i][1]);
	fputs("</ul>\n", stdout);
}

static void put_page(struct page *page, const char *path)
{
	const struct html_side *first = &page->sides[0];
	bool is_one = first->list.n == 1 && page->sides[1].list.n <= 1;
	const char *name = is_one ? cairn_types_get(first->types, first->list.ids[0])->name : path;

	fputs("<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
	      "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n<title>",
	      stdout);
	html_text(name);
	printf(" - layout</title>\n<style>\n%s</style></head><body>\n<header><h1>",
	       layout_html_style);
	html_text(path);
	fputs("</h1><p>", stdout);
	for (int k = 0; k < page->n_sides; k++) {
		fputs(k ? " beside " : "", stdout);
		html_text(page->sides[k].label);
	}
	printf("%scache lines of %" PRIu64
	       " bytes; a row is 8 bytes, lowest offset at the left.</p>\n",
	       *first->label ? ", " : "", page->cacheline);
	put_legend();
	fputs("</header><main>\n", stdout);
	for (int k = 0; k < page->n_sides; k++)
		for (size_t i = 0; i < page->sides[k].list.n && !ferror(stdout) && !page->no_memory;
		     i++)
			put_type(page, k, page->sides[k].list.ids[i]);
	fputs("</main></body></html>\n", stdout);
}

/* One of two files may lack a type that the other has. */
static int select_any(struct html_side *s, char *const *patterns, size_t n_patterns)
{
	struct cairn_err err = {0};

	for (size_t i = 0; i < (n_patterns ? n_patterns : 1); i++) {
		int64_t n = cairn_source_select(s->source.source, n_patterns ? patterns[i] : NULL,
						&s->list, &err);

		if (n < 0)
			return fail_err((int)n, &err, STATUS_NO);
	}
	return STATUS_YES;
}

static int open_side(const char *path, const struct cairn_abi *abi,
		     const struct layout_values *values, char *const *patterns, size_t n_patterns,
		     struct html_side *s)
{
	int status = layout_open(path, abi, values, &s->source);
	struct cairn_err err = {0};

	if (status)
		return status;
	status = values->beside ? select_any(s, patterns, n_patterns)
				: layout_select(s->source.source, patterns, n_patterns, &s->list);
	if (!status && abi)
		status = layout_retarget(&s->source, abi, &s->list);
	s->types = layout_types(&s->source);
	struct cairn_layout_opts o = {.size = sizeof(o),
				      .cacheline = (uint32_t)values->cacheline,
				      .big_endian = cairn_source_is_big_endian(s->source.source),
				      .infer_aligned = cairn_source_kind(s->source.source) ==
						       CAIRN_SOURCE_BTF,
				      .abi = layout_abi(&s->source)};
	if (!status && cairn_layout_new(s->types, &o, &s->layout, &err) < 0)
		status = fail_told(STATUS_NOT_HERE, &err);
	return status;
}

int layout_html(const char *path, const struct cairn_abi *const *abis, size_t n_abis,
		const struct layout_values *values, char *const *patterns, size_t n_patterns)
{
	struct page page = {.values = values,
			    .n_sides = values->beside || n_abis == 2 ? 2 : 1,
			    .cacheline = values->cacheline ? values->cacheline : DEFAULT_LINE};
	int status = STATUS_YES;

	if (values->beside && n_abis == 2)
		return fail(STATUS_USAGE,
			    "--beside is for two files; with --abi A,B it would be four sides");
	for (int k = 0; k < page.n_sides && !status; k++) {
		const char *file = k && values->beside ? values->beside : path;
		const struct cairn_abi *abi = n_abis == 2 ? abis[k] : abis[0];

		status = open_side(file, abi, values, patterns, n_patterns, &page.sides[k]);
		if (values->beside)
			page.sides[k].label = file;
		else if (!status && layout_abi(&page.sides[k].source))
			page.sides[k].label = layout_abi(&page.sides[k].source)->name;
		else
			page.sides[k].label = "";
	}
	if (!status && !page.sides[0].list.n && !page.sides[1].list.n)
		status = fail(STATUS_NO,
			      n_patterns ? "neither file has a type named %s"
					 : "neither file has a struct or union",
			      n_patterns ? patterns[0] : "");
	if (!status)
		put_page(&page, path);
	if (page.no_memory)
		status = fail(STATUS_NOT_HERE, "no memory: the page is not whole");
	else if (page.too_long)
		status =
			fail(STATUS_NOT_HERE,
			     "the names of a struct's members are too long: the page is not whole");
	for (int k = 0; k < page.n_sides; k++) {
		cairn_layout_free(page.sides[k].layout);
		free(page.sides[k].list.ids);
		layout_close(&page.sides[k].source);
	}
	return status;
}
