/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The byte map
 *
 * Members are sorted by their places into segments: a member, a run of bit-fields, a hole, the
 * padding. Each is cut into pieces where a row ends. Rows that one segment fills alone are left out
 * but for the first and the last: a text of 256 bytes takes 3 rows, not 32.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "layout_html.h"

/* Long names of structs in structs that repeat one another: 350 KB of C became 4 GB. */
enum { ROW = 8, LEAVES_MAX = 1 << 16, DEPTH_MAX = 32, TEXT_MAX = 64 << 20 };

/* ---- members ---- */

/* Both ways to a virtual base class lead to one object. */
static bool is_known(const struct html_leaves *leaves, const struct html_leaf *leaf)
{
	for (size_t i = 0; leaf->unplaced && i < leaves->n; i++)
		if (leaves->p[i].unplaced && leaves->p[i].type == leaf->type &&
		    !strcmp(leaves->p[i].name, leaf->name))
			return true;
	return false;
}

static void add_leaf(const struct html_side *side, struct html_leaves *to, const char *prefix,
		     const struct cairn_member *m, uint64_t base)
{
	char base_class[256];

	if (to->n == to->cap) {
		size_t cap = to->cap ? 2 * to->cap : 32;
		struct html_leaf *grown = realloc(to->p, cap * sizeof(*grown));

		if (!grown) {
			to->no_memory = true;
			return;
		}
		to->p = grown;
		to->cap = cap;
	}
	struct html_leaf *leaf = &to->p[to->n];
	*leaf = (struct html_leaf){.type = m->type,
				   .bit_off = base + m->bit_off,
				   .size = cairn_types_size(side->types, m->type),
				   .bit_size = m->bit_size,
				   .unplaced = m->dynamic,
				   .is_base = m->is_base_class && !*prefix};
	cairn_types_name(side->types, m->type, base_class, sizeof(base_class));
	int n = asprintf(&leaf->name, "%s%s", prefix,
			 m->name            ? m->name
			 : m->is_base_class ? base_class
					    : "(anonymous)");
	if (n < 0) {
		to->no_memory = true;
		return;
	}
	if (m->is_base_class && is_known(to, leaf)) {
		free(leaf->name);
		return;
	}
	to->n++;
	to->n_text += (unsigned int)n;
	to->too_long |= to->n_text > TEXT_MAX;
}

static void collect(const struct html_side *side, uint32_t id, const char *prefix, uint64_t base,
		    bool expand, unsigned int depth, struct html_leaves *ret)
{
	const struct cairn_type *t =
		cairn_types_get(side->types, cairn_types_resolve(side->types, id));

	for (uint32_t i = 0;
	     i < t->n_members && ret->n < LEAVES_MAX && !ret->no_memory && !ret->too_long; i++) {
		const struct cairn_member *m = &t->members[i];
		const struct cairn_type *in =
			cairn_types_get(side->types, cairn_types_resolve(side->types, m->type));
		bool is_struct = in->kind == CAIRN_T_STRUCT || in->kind == CAIRN_T_CLASS;
		char *inner = NULL;

		/* The members of a union lie over one another: it is one block. */
		if (!is_struct || !in->n_members || depth >= DEPTH_MAX || (m->name && !expand) ||
		    m->dynamic) {
			add_leaf(side, ret, prefix, m, base);
			continue;
		}
		if (asprintf(&inner, "%s%s%s", prefix, m->name ? m->name : "", m->name ? "." : "") <
		    0) {
			ret->no_memory = true;
			return;
		}
		collect(side, m->type, inner, base + m->bit_off, expand, depth + 1, ret);
		free(inner);
	}
}

/* Rust declares members in another order than it places them. Those without a place come last. */
static int by_place(const void *x, const void *y)
{
	const struct html_leaf *a = x, *b = y;

	if (a->unplaced != b->unplaced)
		return a->unplaced ? 1 : -1;
	if (a->bit_off != b->bit_off)
		return a->bit_off < b->bit_off ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

void html_leaves_collect(const struct html_side *side, uint32_t id, bool expand,
			 struct html_leaves *ret)
{
	*ret = (struct html_leaves){0};
	collect(side, id, "", 0, expand, 0, ret);
	for (size_t i = 0; i < ret->n; i++)
		ret->p[i].order = i;
	if (ret->n)
		qsort(ret->p, ret->n, sizeof(*ret->p), by_place);
}

void html_leaves_free(struct html_leaves *leaves)
{
	for (size_t i = 0; i < leaves->n; i++)
		free(leaves->p[i].name);
	free(leaves->p);
}

const char *html_class(const struct cairn_types *types, const struct html_leaf *leaf)
{
	if (leaf->bit_size)
		return "bits";
	switch (cairn_types_get(types, cairn_types_resolve(types, leaf->type))->kind) {
	case CAIRN_T_PTR:
	case CAIRN_T_REF:
	case CAIRN_T_RREF:
	case CAIRN_T_MEMBER_PTR:
		return "pointer";
	case CAIRN_T_FLOAT:
		return "float";
	case CAIRN_T_ARRAY:
		return "array";
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
	case CAIRN_T_UNION:
		return "struct";
	default:
		return "int";
	}
}

void html_text(const char *text)
{
	cairn_quote_put(text, CAIRN_QUOTE_HTML, stdout);
}

/* ---- rows ---- */

struct map {
	const struct html_side *side;
	const struct html_leaves *leaves;
	uint64_t size, cacheline; /* bytes */
	bool hex;
	uint64_t left_out; /* rows up to here are not drawn */
	/* a hole may hold a member whose offset is not known; so may the end */
	bool hole_is_doubtful, end_is_doubtful;
};

/*
 * Bytes [from, to): a member or a run of bit-fields, [first, last) of the leaves; none: a hole or
 * the padding.
 */
struct segment {
	uint64_t from, to;
	size_t first, last;
};

static void put_offset(const struct map *m, uint64_t off)
{
	printf(m->hex ? "%#" PRIx64 : "%" PRIu64, off);
}

/*
 * A label that says nothing twice: the number always, the name where it fits, on phones where it
 * fits there.
 */
static void put_name(const char *name, size_t number, uint64_t bytes)
{
	/*
	 * Characters that a byte has room for: 36 pixels on a phone, 60 side by side on a desk; the
	 * number takes 2 or 3.
	 */
	uint64_t need = strlen(name) + (number > 99 ? 4 : number > 9 ? 3 : 2) + 1;

	printf("<b>%zu</b>", number);
	if (need <= 5 * bytes - 1)
		fputs("<i>", stdout);
	else if (need <= 8 * bytes - 1)
		fputs("<i class=desk>", stdout);
	else
		return;
	html_text(name);
	fputs("</i>", stdout);
}

static void put_title(const struct map *m, const struct html_leaf *leaf)
{
	char type[256];

	cairn_types_name(m->side->types, leaf->type, type, sizeof(type));
	fputs(" title=\"", stdout);
	html_text(leaf->name);
	fputs(": ", stdout);
	html_text(type);
	if (leaf->bit_size)
		printf(", bit %" PRIu64 " of byte %" PRIu64 ", %u bit%s\"", leaf->bit_off % 8,
		       leaf->bit_off / 8, leaf->bit_size, leaf->bit_size == 1 ? "" : "s");
	else
		printf(", offset %" PRIu64 ", %" PRIu64 " bytes\"", leaf->bit_off / 8, leaf->size);
}

/* Bits [from, to) of no member, or of a bit-field, in a piece that begins at bit @base. */
static void put_bits(const struct map *m, size_t i, uint64_t base, uint64_t from, uint64_t to)
{
	printf("<span style=\"grid-column:%" PRIu64 "/%" PRIu64 "\"", from - base + 1,
	       to - base + 1);
	if (i == SIZE_MAX) {
		printf(" class=free title=\"%" PRIu64 " unused bit%s\"></span>", to - from,
		       to - from == 1 ? "" : "s");
		return;
	}
	put_title(m, &m->leaves->p[i]);
	fputs(">", stdout);
	/* A digit takes about 7 pixels, and a bit has 5. */
	if (to - from >= (i + 1 > 99 ? 5u : i + 1 > 9 ? 3u : 2u))
		printf("<b>%zu</b>", i + 1);
	fputs("</span>", stdout);
}

static void put_bit_piece(const struct map *m, const struct segment *s, uint64_t from, uint64_t to)
{
	uint64_t at = 8 * from, end = 8 * to;

	printf("<div class=\"p bits\" style=\"grid-column:%" PRIu64 "/%" PRIu64
	       ";grid-template-columns:repeat(%" PRIu64 ",minmax(0,1fr))\">",
	       from % ROW + 2, (to - 1) % ROW + 3, end - at);
	for (size_t i = s->first; i < s->last; i++) {
		uint64_t lo = m->leaves->p[i].bit_off, hi = lo + m->leaves->p[i].bit_size;

		lo = lo < 8 * from ? 8 * from : lo;
		hi = hi > end ? end : hi;
		if (lo >= hi)
			continue;
		if (lo > at)
			put_bits(m, SIZE_MAX, 8 * from, at, lo);
		put_bits(m, i, 8 * from, lo, hi);
		at = hi;
	}
	if (at < end)
		put_bits(m, SIZE_MAX, 8 * from, at, end);
	fputs("</div>", stdout);
}

/* Crosses into another cache line, though it would fit into one. */
static bool straddles(const struct map *m, const struct segment *s)
{
	return s->to - s->from <= m->cacheline &&
	       s->from / m->cacheline != (s->to - 1) / m->cacheline;
}

static void put_gap_piece(const struct map *m, const struct segment *s, uint64_t from, uint64_t to)
{
	bool padding = s->to == m->size;
	bool is_doubtful = padding ? m->end_is_doubtful : m->hole_is_doubtful;
	uint64_t n = s->to - s->from;
	const char *class = padding ? "padding" : "hole", *what = is_doubtful ? "?" : class;

	printf("<div class=\"p %s\" style=\"grid-column:%" PRIu64 "/%" PRIu64 "\" title=\"%" PRIu64
	       " byte%s %s%s\">",
	       class, from % ROW + 2, (to - 1) % ROW + 3, n, n == 1 ? "" : "s",
	       padding ? "of padding" : "hole",
	       is_doubtful ? ", or of a member: offset not known" : "");
	/* The word where there is room for it. */
	if (from == s->from && to - from > 2)
		printf("<i><span%s>%" PRIu64 " bytes </span>%s</i>",
		       to - from == 3 ? " class=desk" : "", n, what);
	else if (from == s->from && to - from == 2)
		printf("<i>%s</i>", padding && !is_doubtful ? "pad" : what);
	fputs("</div>", stdout);
}

static void put_piece(const struct map *m, const struct segment *s, uint64_t from, uint64_t to)
{
	const struct html_leaf *leaf;

	if (s->first == s->last) {
		put_gap_piece(m, s, from, to);
		return;
	}
	leaf = &m->leaves->p[s->first];
	if (leaf->bit_size) {
		put_bit_piece(m, s, from, to);
		return;
	}
	printf("<div class=\"p %s%s%s%s\" style=\"grid-column:%" PRIu64 "/%" PRIu64 "\"",
	       html_class(m->side->types, leaf), from > s->from ? " from" : "",
	       to < s->to ? " on" : "", straddles(m, s) ? " cut" : "", from % ROW + 2,
	       (to - 1) % ROW + 3);
	put_title(m, leaf);
	fputs(">", stdout);
	if (from == s->from)
		put_name(leaf->name, s->first + 1, to - from);
	else
		printf("<b class=again>%zu</b>", s->first + 1);
	fputs("</div>", stdout);
}

static void put_row_head(const struct map *m, uint64_t off)
{
	if (off % m->cacheline == 0 && m->size > m->cacheline)
		printf("<div class=line><span>cache line %" PRIu64 "</span></div>",
		       off / m->cacheline);
	fputs("<div class=off>", stdout);
	put_offset(m, off);
	fputs("</div>", stdout);
}

/*
 * The cache lines that begin in rows which are left out, and so have no line of their own in the
 * picture.
 */
static void put_lines_between(const struct map *m, uint64_t from, uint64_t to)
{
	uint64_t first = (from + m->cacheline - 1) / m->cacheline, last = (to - 1) / m->cacheline;

	if (m->size <= m->cacheline || first > last)
		return;
	printf(first == last ? "; cache line %" PRIu64 : "; cache lines %" PRIu64, first);
	if (first < last)
		printf(" to %" PRIu64, last);
	fputs(last == first ? " begins here" : " begin here", stdout);
}

static void put_left_out(const struct map *m, uint64_t from, uint64_t to)
{
	fputs("<div class=off></div><div class=more>", stdout);
	printf("%s, bytes ", cairn_counted((to - from) / ROW, "more row").text);
	put_offset(m, from);
	fputs(" to ", stdout);
	put_offset(m, to - 1);
	put_lines_between(m, from, to);
	fputs("</div>", stdout);
}

static void put_segment(struct map *m, const struct segment *s)
{
	uint64_t first_full = (s->from + ROW - 1) / ROW * ROW, last_full = s->to / ROW * ROW;
	bool shorten = last_full >= first_full + 5 * ROW;

	for (uint64_t at = s->from; at < s->to;) {
		uint64_t end = at / ROW * ROW + ROW;

		end = end < s->to ? end : s->to;
		if (shorten && at == first_full + ROW) {
			put_left_out(m, at, last_full - ROW);
			at = last_full - ROW;
			continue;
		}
		if (at % ROW == 0)
			put_row_head(m, at);
		put_piece(m, s, at, end);
		at = end;
	}
}

static void put_gap(struct map *m, uint64_t from, uint64_t to)
{
	if (from < to)
		put_segment(m, &(struct segment){.from = from, .to = to});
}

/* The end of the run of bit-fields that begins with the @i-th. */
static size_t run_end(const struct map *m, size_t i, uint64_t *ret_to)
{
	uint64_t end = m->leaves->p[i].bit_off + m->leaves->p[i].bit_size;

	for (i++; i < m->leaves->n && m->leaves->p[i].bit_size && !m->leaves->p[i].unplaced; i++) {
		const struct html_leaf *leaf = &m->leaves->p[i];

		if (leaf->bit_off / 8 > (end + 7) / 8)
			break;
		end = leaf->bit_off + leaf->bit_size > end ? leaf->bit_off + leaf->bit_size : end;
	}
	*ret_to = (end + 7) / 8;
	return i;
}

void html_map(const struct html_side *side, uint32_t id, const struct html_leaves *leaves,
	      uint64_t cacheline, bool hex)
{
	struct map m = {.side = side,
			.leaves = leaves,
			.size = cairn_types_size(side->types, id),
			.cacheline = cacheline,
			.hex = hex};
	uint64_t at = 0;

	for (size_t i = 0; i < leaves->n; i++) {
		m.end_is_doubtful |= leaves->p[i].unplaced;
		m.hole_is_doubtful |= leaves->p[i].unplaced && !leaves->p[i].is_base;
	}
	fputs("<div class=map>", stdout);
	for (size_t i = 0; i < leaves->n && !leaves->p[i].unplaced;) {
		const struct html_leaf *leaf = &leaves->p[i];
		struct segment s = {.from = leaf->bit_off / 8, .first = i, .last = i + 1};

		s.to = s.from + leaf->size;
		if (leaf->bit_size)
			s.last = run_end(&m, i, &s.to);
		i = s.last;
		/*
		 * A member that overlaps earlier ones is not drawn twice: only packed or damaged
		 * types have such members.
		 */
		s.from = s.from < at ? at : s.from;
		s.to = s.to > m.size ? m.size : s.to;
		if (s.from >= s.to)
			continue;
		put_gap(&m, at, s.from);
		put_segment(&m, &s);
		at = s.to;
	}
	put_gap(&m, at, m.size);
	fputs("</div>\n", stdout);
}
