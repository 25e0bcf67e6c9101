/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of code: which frame and which line each address belongs to
 *
 * An address leads to its page by division, and everything about 512 bytes of code lies together, so that a
 * lookup touches two or three cache lines here and searches nothing. A page says what holds at its start and then what
 * changes; a change is two bytes for a frame, three for a line:
 *
 *	frame 17 at the start, 18 from +0x24 on, 17 again from +0x2c     24 | 24 03 | 08 02
 *
 *	inode.c:120:7 at the start      (new file, 120 & 63 = 56)        f8 12 01 07
 *	+0x04  list.h:88:2              (new file)                       04 d8 21 01 02
 *	+0x0c  inode.c:121:9            (slot 1, line + 1)               08 42 09
 *	+0x20  nothing known                                             14 3e
 *
 * Optimised code jumps between a function and what was inlined into it; coming back to one of the three files used last
 * costs nothing, and its line has moved little.
 */
#include "pack/encode.h"

/* ---- what holds at each address, in order ---- */

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
 * The next item of any piece: *@piece and *@item, holding on [*@at, *@until). Between pieces *@piece is NULL.
 * False behind the last.
 */
static bool walk_next(struct walk *w, uint32_t (*at_of)(const struct joined *j, const struct placed *p, uint32_t item),
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
				w->end = 0; /* told once that nothing follows */
				return true;
			}
			w->inside = true;
			w->item = 0;
			if (gap && w->lo > gap)
				return true;
		}
		const struct placed *p = &w->pieces[w->i];
		for (; w->item < p->piece.n; w->item++) {
			uint32_t end = w->item + 1 < p->piece.n ? at_of(w->j, p, w->item + 1) : p->piece.hi;
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

struct frame_stream {
	struct walk walk;
	uint32_t frame; /* at hand; from 1, 0 none */
	uint32_t next_at, next;
	bool more;
};

static void frame_stream_read(struct frame_stream *s)
{
	const struct placed *p;
	uint32_t item = 0;
	s->more = walk_next(&s->walk, stretch_at, &p, &item, &s->next_at);
	if (s->more)
		s->next = p ? s->walk.j->numbers[p->unit].first_frame +
				      s->walk.j->units[p->unit].stretches.p[p->piece.from + item].frame + 1
			    : 0;
}

static void put_frame_code(struct bytes *b, uint32_t frame, uint32_t *known)
{
	put_uleb(b, frame ? 1 + fold(frame - *known) : 0);
	if (frame)
		*known = frame;
}

/* The frames of [lo, hi). False when there is none. */
static bool put_frames(struct frame_stream *s, uint32_t lo, uint32_t hi, struct bytes *b, uint64_t *n)
{
	uint32_t known = 0, before = lo;
	for (; s->more && s->next_at <= lo; frame_stream_read(s))
		s->frame = s->next;
	bool any = s->frame;
	put_frame_code(b, s->frame, &known);
	for (; s->more && s->next_at < hi; frame_stream_read(s)) {
		if (s->next == s->frame)
			continue;
		put_small(b, s->next_at - before);
		before = s->next_at;
		s->frame = s->next;
		put_frame_code(b, s->frame, &known);
		any = true;
		++*n;
	}
	return any;
}

/* ---- lines ---- */

static uint32_t row_at(const struct joined *j, const struct placed *p, uint32_t item)
{
	return j->units[p->unit].rows.p[p->piece.from + item].at;
}

struct position {
	uint32_t file, line, column; /* file by rank */
	bool known;
};

struct line_stream {
	struct walk walk;
	struct position position, next;
	uint32_t next_at;
	bool more;
};

static bool same_position(const struct position *a, const struct position *b)
{
	return a->known == b->known && a->file == b->file && a->line == b->line && a->column == b->column;
}

static void line_stream_read(struct line_stream *s)
{
	const struct joined *j = s->walk.j;
	const struct placed *p;
	uint32_t item = 0;
	s->more = walk_next(&s->walk, row_at, &p, &item, &s->next_at);
	s->next = (struct position){0};
	if (!s->more || !p)
		return;
	const struct unit_row *r = &j->units[p->unit].rows.p[p->piece.from + item];
	s->next = (struct position){j->files.ranking.rank.p[j->numbers[p->unit].file[r->file]], r->line, r->column, true};
}

struct slot {
	uint32_t file, line;
};

static void put_position(struct slot *slots, const struct position *p, struct bytes *b)
{
	unsigned int slot = 0;
	if (!p->known) {
		put_u8(b, PACK_DELTA_NOWHERE);
		return;
	}
	while (slot < PACK_SLOT_NEW && slots[slot].file != p->file)
		slot++;
	if (slot == PACK_SLOT_NEW) {
		put_u8(b, (uint8_t)(PACK_SLOT_NEW << PACK_DELTA_BITS | (p->line & ((1 << PACK_DELTA_BITS) - 1))));
		put_uleb(b, p->file);
		put_uleb(b, p->line >> PACK_DELTA_BITS);
		slot--;
	} else {
		uint32_t delta = fold(p->line - slots[slot].line);
		bool fits = delta < PACK_DELTA_NOWHERE;
		put_u8(b, (uint8_t)(slot << PACK_DELTA_BITS | (fits ? delta : PACK_DELTA_MORE)));
		if (!fits)
			put_uleb(b, delta);
	}
	put_small(b, p->column);
	for (; slot; slot--)
		slots[slot] = slots[slot - 1];
	slots[0] = (struct slot){p->file, p->line};
}

static bool put_lines(struct line_stream *s, uint32_t lo, uint32_t hi, struct bytes *b, uint64_t *n)
{
	struct slot slots[PACK_SLOT_NEW];
	uint32_t before = lo;
	for (int i = 0; i < PACK_SLOT_NEW; i++)
		slots[i] = (struct slot){UINT32_MAX, 0};
	for (; s->more && s->next_at <= lo; line_stream_read(s))
		s->position = s->next;
	bool any = s->position.known;
	put_position(slots, &s->position, b);
	for (; s->more && s->next_at < hi; line_stream_read(s)) {
		if (same_position(&s->next, &s->position))
			continue;
		put_small(b, s->next_at - before);
		before = s->next_at;
		s->position = s->next;
		put_position(slots, &s->position, b);
		any = true;
		++*n;
	}
	return any;
}

/* ---- pages ---- */

struct page_writer {
	struct frame_stream frames;
	struct line_stream lines;
	const struct pack_symbol *symbols;
	size_t n_symbols, symbol;
	struct bytes frame_bytes, line_bytes;
};

static void put_page(struct page_writer *w, uint32_t lo, uint32_t hi, struct bytes *code, uint64_t n[2])
{
	w->frame_bytes.v.n = w->line_bytes.v.n = 0;
	bool any = put_frames(&w->frames, lo, hi, &w->frame_bytes, &n[0]);
	any |= put_lines(&w->lines, lo, hi, &w->line_bytes, &n[1]);
	while (w->symbol < w->n_symbols && w->symbols[w->symbol].at +
						   (w->symbols[w->symbol].size & ~PACK_SYMBOL_REST) <= lo)
		w->symbol++;
	if (!any)
		return;
	put_uleb(code, w->symbol);
	put_uleb(code, w->frame_bytes.v.n);
	put_bytes(code, w->frame_bytes.v.p, w->frame_bytes.v.n);
	put_bytes(code, w->line_bytes.v.p, w->line_bytes.v.n);
}

void encode_code(const struct joined *j, const struct pack_span *spans, size_t n_spans,
		 const struct pack_symbol *symbols, size_t n_symbols, struct bytes *ret_pages, struct bytes *ret_code,
		 uint64_t ret_n[2])
{
	struct page_writer w = {.symbols = symbols, .n_symbols = n_symbols};
	w.frames.walk = (struct walk){.j = j, .pieces = j->code.p, .n = j->code.n};
	w.lines.walk = (struct walk){.j = j, .pieces = j->lines.p, .n = j->lines.n};
	ret_n[0] = ret_n[1] = 0;
	frame_stream_read(&w.frames);
	line_stream_read(&w.lines);
	put_bytes(ret_pages, spans, n_spans * sizeof(*spans));
	for (size_t i = 0; i < n_spans; i++)
		for (uint32_t lo = 0; lo < spans[i].size; lo += PACK_PAGE_SIZE) {
			uint32_t left = spans[i].size - lo, size = left < PACK_PAGE_SIZE ? left : PACK_PAGE_SIZE;
			put_u32(ret_pages, (uint32_t)ret_code->v.n);
			put_page(&w, spans[i].at + lo, spans[i].at + lo + size, ret_code, ret_n);
		}
	put_u32(ret_pages, (uint32_t)ret_code->v.n);
	ret_pages->failed |= w.frame_bytes.failed | w.line_bytes.failed | (ret_code->v.n > UINT32_MAX);
	VEC_FREE(&w.frame_bytes.v);
	VEC_FREE(&w.line_bytes.v);
}
