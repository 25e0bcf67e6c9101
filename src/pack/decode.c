/* SPDX-License-Identifier: BSD-2-Clause */
/* One record after the other; encode_code.c and encode_frames.c show what they look like. */
#include "pack/pack_impl.h"

/* ---- pages ---- */

bool page_read(const struct cairn_pack *p, const struct pack_span *span, uint32_t i, struct page *ret,
	       struct cairn_err *err)
{
	uint32_t number = span->first_page + i, lo = i * PACK_PAGE_SIZE, left = span->size - lo;
	uint32_t end = p->pages[number + 1] <= p->code_size ? p->pages[number + 1] : p->code_size;
	uint32_t from = p->pages[number] <= end ? p->pages[number] : end;
	if (from == end)
		return false;
	struct cursor c = cursor_of(&p->code_src, p->code + from, end - from, false, err);
	ret->lo = span->at + lo;
	ret->hi = ret->lo + (left < PACK_PAGE_SIZE ? left : PACK_PAGE_SIZE);
	ret->symbol = (uint32_t)cur_uleb(&c);
	ret->frames = cur_sub(&c, cur_uleb(&c));
	ret->lines = c;
	return true;
}

bool page_of(const struct cairn_pack *p, uint32_t at, struct page *ret)
{
	const struct pack_span *s = p->spans;
	uint32_t n = p->n_spans;
	if (!n || at < s->at)
		return false;
	while (n > 1) {
		uint32_t half = n / 2;
		s += s[half].at <= at ? half : 0;
		n -= half;
	}
	return at - s->at < s->size && page_read(p, s, (at - s->at) / PACK_PAGE_SIZE, ret, NULL);
}

uint32_t page_frame(struct page *page, uint32_t at)
{
	struct cursor *c = &page->frames;
	uint32_t known = 0, from = page->lo, frame = frame_code_next(c, &known);
	while (cur_more(c)) {
		from += cur_small(c);
		if (from > at)
			break;
		frame = frame_code_next(c, &known);
	}
	return c->failed ? 0 : frame;
}

struct cursor record_at(const struct records *r, uint32_t i, struct cairn_err *err)
{
	uint32_t end = r->starts[i + 1] <= r->size ? r->starts[i + 1] : r->size;
	uint32_t from = r->starts[i] <= end ? r->starts[i] : end;
	return cursor_of(&r->src, r->data + from, end - from, false, err);
}

/* ---- frames ---- */

struct cursor frame_block(const struct cairn_pack *p, uint32_t i, struct cairn_err *err)
{
	uint32_t end = p->frame_blocks[i + 1] <= p->frames_size ? p->frame_blocks[i + 1] : p->frames_size;
	uint32_t from = p->frame_blocks[i] <= end ? p->frame_blocks[i] : end;
	return cursor_of(&p->frames_src, p->frames + from, end - from, false, err);
}

void frame_next(struct cursor *c, struct pack_frame *f)
{
	uint8_t head = cur_u8(c);
	f->distance = head & PACK_PARENT_MORE;
	if (f->distance == PACK_PARENT_MORE)
		f->distance += cur_number(c);
	f->function = cur_number(c);
	if (!f->distance)
		return;
	if (!(head & PACK_SAME_FILE))
		f->call_file = cur_number(c);
	f->call_line += cur_unfolded(c);
	f->call_column = cur_small(c);
}

/* ---- lines ---- */

void line_next(struct cursor *c, struct line_state *s)
{
	uint8_t head = cur_u8(c);
	unsigned int slot = head >> PACK_DELTA_BITS;
	uint32_t delta = head & ((1 << PACK_DELTA_BITS) - 1);
	struct position to;
	s->known = head != PACK_DELTA_NOWHERE;
	if (!s->known)
		return;
	if (slot == PACK_SLOT_NEW) {
		to.file = cur_number(c);
		to.line = delta | cur_number(c) << PACK_DELTA_BITS;
		slot--;
	} else {
		if (delta == PACK_DELTA_MORE)
			delta = cur_number(c);
		to = s->slots[slot];
		to.line += delta >> 1 ^ -(delta & 1);
	}
	to.column = cur_small(c);
	for (; slot; slot--)
		s->slots[slot] = s->slots[slot - 1];
	s->slots[0] = to;
}

/*
 * As long as rows are of three bytes with a known slot, which most are, go on without asking for each byte whether it is
 * there. Stops in front of any other row, and in front of one behind @at.
 */
static uint32_t skip_short_rows(struct cursor *c, struct line_state *s, uint32_t from, uint32_t at)
{
	const uint8_t *p = c->pos;
	for (; c->end - p >= 3; p += 3) {
		unsigned int slot = p[1] >> PACK_DELTA_BITS;
		uint32_t delta = p[1] & ((1 << PACK_DELTA_BITS) - 1);
		if (p[0] > at - from || p[0] == PACK_BYTE_MORE || p[2] == PACK_BYTE_MORE || slot == PACK_SLOT_NEW ||
		    delta >= PACK_DELTA_NOWHERE)
			break;
		from += p[0];
		struct position to = s->slots[slot];
		to.line += delta >> 1 ^ -(delta & 1);
		to.column = p[2];
		if (slot == 2)
			s->slots[2] = s->slots[1];
		if (slot)
			s->slots[1] = s->slots[0];
		s->slots[0] = to;
		s->known = true;
	}
	c->pos = p;
	return from;
}

bool page_line(struct page *page, uint32_t at, struct position *ret)
{
	struct cursor c = page->lines;
	struct line_state s = {0};
	uint32_t from = page->lo;
	line_next(&c, &s);
	while (cur_more(&c)) {
		from = skip_short_rows(&c, &s, from, at);
		if (!cur_more(&c))
			break;
		from += cur_small(&c);
		if (from > at)
			break;
		line_next(&c, &s);
	}
	if (!s.known || c.failed)
		return false;
	*ret = s.slots[0];
	return true;
}
