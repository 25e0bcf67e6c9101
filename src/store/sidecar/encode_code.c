/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of code: which frame and which line each address belongs to
 *
 * An address leads to its page by division, and everything about 256 bytes of code lies together. A
 * page has rows, from each of which on another frame or another position holds, and contexts: a
 * frame with the lowest line that the page has of it, counted from its function's declaration. A
 * row is a context, the line above that lowest one, and the column:
 *
 *	rows    context  line  column		contexts    frame           lowest line
 *	+0x00   0        + 0   7		0           17, inode.c:98  120, that is + 22
 *	+0x04   1        + 0   2		1           18, list.h:84   88, that is + 4
 *	+0x0c   0        + 1   9
 *
 * Fields are as wide as the page needs, so that any row is read without those before it. The file
 * is that of the frame's function nearly always; where it is not, or no frame is known, the context
 * has the file, and lines count from 0.
 */
#include "sidecar/bits_out.h"
#include "sidecar/encode.h"
#include "sidecar/format.h"

/* ---- the facts at each address, in order ---- */

/* A walk over the pieces of all units: the value at hand holds on [at, next). */
struct walk {
	const struct joined *j;
	const struct placed *pieces;
	size_t n, i;
	uint32_t item; /* of piece i */
	uint32_t end;  /* of all pieces that were begun */
	uint32_t lo;   /* where piece i begins to count */
	bool inside;   /* piece i is begun */
};

/*
 * The next item of any piece: *@piece and *@item, valid on [*@at, *@until). Between pieces *@piece
 * is NULL. False after the last.
 */
static bool walk_next(struct walk *w,
		      uint32_t (*at_of)(const struct joined *j, const struct placed *p,
					uint32_t item),
		      const struct placed **piece, uint32_t *item, uint32_t *at)
{
	for (;;) {
		if (!w->inside) {
			uint32_t gap = w->end;
			while (w->i < w->n && !next_piece(&w->pieces[w->i].piece, &w->end, &w->lo))
				w->i++;
			*piece = NULL;
			*at = gap;
			if (w->i == w->n && !gap)
				return false;
			if (w->i == w->n) {
				w->end = 0; /* reports once that nothing follows */
				return true;
			}
			w->inside = true;
			w->item = 0;
			if (gap && w->lo > gap)
				return true;
		}
		const struct placed *p = &w->pieces[w->i];
		for (; w->item < p->piece.n; w->item++) {
			uint32_t end = w->item + 1 < p->piece.n ? at_of(w->j, p, w->item + 1)
								: p->piece.hi;
			if (end <= w->lo)
				continue;
			uint32_t start = at_of(w->j, p, w->item);
			*piece = p;
			*at = start > w->lo ? start : w->lo;
			*item = w->item++;
			return true;
		}
		w->inside = false;
		w->i++;
	}
}

/* ---- frames ---- */

static uint32_t stretch_at(const struct joined *j, const struct placed *p, uint32_t item)
{
	return j->units[p->unit].stretches.p[p->piece.from + item].at;
}

struct frame_here {
	uint32_t number;   /* from 1, 0 none */
	uint32_t function; /* by appearance */
};

struct frame_stream {
	struct walk walk;
	struct frame_here here, next;
	uint32_t next_at;
	bool more;
};

static void frame_stream_read(struct frame_stream *s)
{
	const struct joined *j = s->walk.j;
	const struct placed *p;
	uint32_t item = 0;
	s->more = walk_next(&s->walk, stretch_at, &p, &item, &s->next_at);
	s->next = (struct frame_here){0};
	if (!s->more || !p)
		return;
	uint32_t frame = j->units[p->unit].stretches.p[p->piece.from + item].frame;
	s->next = (struct frame_here){j->numbers[p->unit].first_frame + frame + 1,
				      function_of_frame(j, p->unit, frame)};
}

/* ---- lines ---- */

static uint32_t row_at(const struct joined *j, const struct placed *p, uint32_t item)
{
	return j->units[p->unit].rows.p[p->piece.from + item].at;
}

struct line_here {
	uint32_t file, line, column; /* file by appearance */
	bool known;
};

struct line_stream {
	struct walk walk;
	struct line_here here, next;
	uint32_t next_at;
	bool more;
};

static void line_stream_read(struct line_stream *s)
{
	const struct joined *j = s->walk.j;
	const struct placed *p;
	uint32_t item = 0;
	s->more = walk_next(&s->walk, row_at, &p, &item, &s->next_at);
	s->next = (struct line_here){0};
	if (!s->more || !p)
		return;
	const struct unit_row *r = &j->units[p->unit].rows.p[p->piece.from + item];
	s->next = (struct line_here){j->numbers[p->unit].file[r->file], r->line, r->column, true};
}

/* ---- rows of a page ---- */

struct row {
	uint32_t at;
	struct frame_here frame;
	struct line_here line;
};

struct context {
	uint32_t frame; /* from 1, 0 none */
	/* 1 + the file by appearance, and base is 0; 0: the function's, or nothing known */
	uint32_t own_file;
	bool is_own;
	uint32_t base, function;
};

/* A row of a page is at each byte of it at most. */
struct page_rows {
	struct row row[SIDECAR_PAGE_SIZE];
	uint8_t context_of[SIDECAR_PAGE_SIZE];
	struct context context[SIDECAR_PAGE_SIZE];
	size_t n, n_contexts;
};

static bool same_row(const struct row *a, const struct row *b)
{
	return a->frame.number == b->frame.number && a->line.known == b->line.known &&
	       a->line.file == b->line.file && a->line.line == b->line.line &&
	       a->line.column == b->line.column;
}

static struct context context_of(const struct joined *j, const struct row *r)
{
	bool in_function = r->frame.number && r->line.known && r->line.line &&
			   r->line.file == j->functions.v.p[r->frame.function].file;
	struct context c = {
		.frame = r->frame.number, .is_own = !in_function, .function = r->frame.function};
	if (in_function)
		c.base = r->line.line;
	else
		c.own_file = r->line.known ? 1 + r->line.file : 0;
	return c;
}

static void add_to_context(const struct joined *j, struct page_rows *p, size_t row)
{
	struct context c = context_of(j, &p->row[row]);
	size_t i = 0;
	while (i < p->n_contexts &&
	       (p->context[i].frame != c.frame || p->context[i].is_own != c.is_own ||
		p->context[i].own_file != c.own_file))
		i++;
	if (i == p->n_contexts)
		p->context[p->n_contexts++] = c;
	else if (c.base < p->context[i].base)
		p->context[i].base = c.base;
	p->context_of[row] = (uint8_t)i;
}

/* ---- pages ---- */

struct page_writer {
	const struct joined *j;
	struct frame_stream frames;
	struct line_stream lines;
	const struct symbol_entry *symbols;
	size_t n_symbols, symbol;
	struct page_rows rows;
	uint64_t *n; /* changes of the frame, rows */
};

/* The rows of [lo, hi). */
static void read_rows(struct page_writer *w, uint32_t lo, uint32_t hi)
{
	struct frame_stream *f = &w->frames;
	struct line_stream *l = &w->lines;
	struct page_rows *p = &w->rows;
	p->n = p->n_contexts = 0;
	for (uint32_t at = lo;;) {
		for (; f->more && f->next_at <= at; frame_stream_read(f))
			f->here = f->next;
		for (; l->more && l->next_at <= at; line_stream_read(l))
			l->here = l->next;
		struct row row = {at, f->here, l->here}, *before = p->n ? &p->row[p->n - 1] : NULL;
		if (!before || !same_row(before, &row))
			p->row[p->n++] = row;
		at = f->more && f->next_at < hi ? f->next_at : hi;
		at = l->more && l->next_at < at ? l->next_at : at;
		if (at >= hi)
			return;
	}
}

/* The base of a context in its written form: from the declaration of its function, or the file. */
static uint32_t base_of(const struct joined *j, const struct context *c)
{
	if (!c->is_own)
		return fold(c->base - j->functions.v.p[c->function].line);
	return c->own_file ? 1 + j->files.ranking.rank.p[c->own_file - 1] : 0;
}

static void put_rows(const struct page_writer *w, uint32_t lo, struct bytes *code)
{
	const struct page_rows *p = &w->rows;
	struct bits_out out = {.to = code};
	uint32_t first = UINT32_MAX, last = 0, base = 0, line = 0, column = 0;
	for (size_t i = 0; i < p->n_contexts; i++) {
		uint32_t frame = p->context[i].frame;
		first = frame && frame < first ? frame : first;
		last = frame > last ? frame : last;
		base |= base_of(w->j, &p->context[i]);
	}
	for (size_t i = 0; i < p->n; i++) {
		line |= p->row[i].line.line - p->context[p->context_of[i]].base;
		column |= p->row[i].line.column;
	}
	first = last ? first : 1;
	unsigned int frame_width = last ? bits_width(last - first + 1) : 0;
	put_bits(&out, (uint32_t)p->n - 1, PAGE_ROWS_WIDTH);
	put_bits(&out, (uint32_t)p->n_contexts - 1, PAGE_CONTEXTS_WIDTH);
	put_bits(&out, frame_width, PAGE_WIDTH_WIDTH);
	put_bits(&out, bits_width(base), PAGE_WIDTH_WIDTH);
	put_bits(&out, bits_width(line), PAGE_WIDTH_WIDTH);
	put_bits(&out, bits_width(column), PAGE_WIDTH_WIDTH);
	put_bits(&out, first - 1, bits_width(w->j->n_frames));
	put_bits(&out, (uint32_t)w->symbol, bits_width((uint32_t)w->n_symbols));
	end_bits(&out);
	for (size_t i = 0; i < p->n; i++)
		put_u8(code, (uint8_t)(p->row[i].at - lo));
	for (size_t i = 0; i < p->n_contexts; i++) {
		const struct context *c = &p->context[i];
		put_bits(&out, c->is_own, 1);
		put_bits(&out, c->frame ? c->frame - first + 1 : 0, frame_width);
		put_bits(&out, base_of(w->j, c), bits_width(base));
	}
	for (size_t i = 0; i < p->n; i++) {
		put_bits(&out, p->context_of[i], bits_width((uint32_t)p->n_contexts - 1));
		put_bits(&out, p->row[i].line.line - p->context[p->context_of[i]].base,
			 bits_width(line));
		put_bits(&out, p->row[i].line.column, bits_width(column));
	}
	end_bits(&out);
}

static void put_page(struct page_writer *w, uint32_t lo, uint32_t hi, struct bytes *code)
{
	const struct page_rows *p = &w->rows;
	read_rows(w, lo, hi);
	while (w->symbol < w->n_symbols &&
	       w->symbols[w->symbol].at + w->symbols[w->symbol].size <= lo)
		w->symbol++;
	if (p->n == 1 && !p->row[0].frame.number && !p->row[0].line.known)
		return;
	for (size_t i = 0; i < p->n; i++) {
		add_to_context(w->j, &w->rows, i);
		w->n[0] += i && p->row[i].frame.number != p->row[i - 1].frame.number;
	}
	w->n[1] += p->n;
	put_rows(w, lo, code);
}

static void put_pages(struct page_writer *w, const struct code_map *map, struct bytes *ret_pages,
		      struct bytes *ret_code)
{
	VEC(uint32_t) starts = {0};
	bool ok = true;
	for (size_t i = 0; i < map->spans.n; i++) {
		const struct span *s = &map->spans.p[i];
		for (uint32_t lo = 0; lo < s->size; lo += SIDECAR_PAGE_SIZE) {
			uint32_t left = s->size - lo,
				 size = left < SIDECAR_PAGE_SIZE ? left : SIDECAR_PAGE_SIZE;
			ok &= VEC_ADD(&starts, (uint32_t)ret_code->v.n);
			put_page(w, s->at + lo, s->at + lo + size, ret_code);
		}
	}
	ok &= VEC_ADD(&starts, (uint32_t)ret_code->v.n);
	ret_code->failed |= !ok || ret_code->v.n > UINT32_MAX - BITS_SLACK;
	if (ok)
		put_table(starts.p, starts.n, 1, ret_pages);
	put_zeroes(ret_code, BITS_SLACK);
	VEC_FREE(&starts);
}

void encode_code(const struct joined *j, const struct code_map *map,
		 const struct symbol_table *symbols, struct bytes *ret_pages,
		 struct bytes *ret_code, uint64_t ret_n[2])
{
	struct page_writer w = {
		.j = j, .symbols = symbols->v.p, .n_symbols = symbols->v.n, .n = ret_n};
	w.frames.walk = (struct walk){.j = j, .pieces = j->code.p, .n = j->code.n};
	w.lines.walk = (struct walk){.j = j, .pieces = j->lines.p, .n = j->lines.n};
	ret_n[0] = ret_n[1] = 0;
	frame_stream_read(&w.frames);
	line_stream_read(&w.lines);
	put_table((const uint32_t *)map->spans.p, map->spans.n,
		  sizeof(struct span) / sizeof(uint32_t), ret_pages);
	put_pages(&w, map, ret_pages, ret_code);
}
