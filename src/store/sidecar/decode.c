/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames and pages, read in place; encode_frames.c and encode_code.c show their form.
 */
#include "base/search.h"
#include "sidecar/sidecar_impl.h"

/*
 * Block @i, after its checksum and that of the slack are checked; false when it is empty or
 * damaged.
 */
static bool block_at(const struct blocks *b, uint32_t i, struct bits *ret)
{
	uint32_t from = table_get(&b->starts, i, 0), end = table_get(&b->starts, i + 1, 0);
	if (i >= b->n || from >= end || end > b->size)
		return false;
	if (b->starts.guard &&
	    !guard_check(b->starts.guard, b->data + from, end - from + BITS_SLACK))
		return false;
	*ret = (struct bits){b->data + from, (uint64_t)(end - from) * 8};
	return true;
}

static bool too_wide(unsigned int width)
{
	return width > BITS_WIDTH_MAX;
}

/* ---- frames ---- */

bool frame_at(const struct cairn_sidecar *p, uint32_t number, struct frame *ret)
{
	struct bits b;
	if (number >= p->header->n_frames ||
	    !block_at(&p->frames, number / SIDECAR_FRAMES_PER_BLOCK, &b))
		return false;
	uint32_t head = bits_get(&b, 0, FRAMES_HEAD_WIDTH), mask = (1 << FRAMES_WIDTH_WIDTH) - 1;
	unsigned int distance = head & mask, line = head >> FRAMES_WIDTH_WIDTH & mask;
	unsigned int column = head >> 2 * FRAMES_WIDTH_WIDTH & mask;
	unsigned int file = head >> 3 * FRAMES_WIDTH_WIDTH ? p->file_width : 0;
	unsigned int width = p->function_width + distance + line + column + file;
	uint64_t at = FRAMES_HEAD_WIDTH + (uint64_t)(number % SIDECAR_FRAMES_PER_BLOCK) * width;
	if (too_wide(distance) || too_wide(line) || too_wide(column) || at + width > b.n)
		return false;
	ret->function = bits_get(&b, at, p->function_width);
	ret->distance = bits_get(&b, at += p->function_width, distance);
	ret->line = bits_get(&b, at += distance, line);
	ret->column = bits_get(&b, at += line, column);
	ret->own_file = bits_get(&b, at + column, file);
	return ret->distance <= number;
}

/* ---- pages ---- */

int page_read(const struct cairn_sidecar *p, uint32_t span, uint32_t i, struct page *ret)
{
	uint32_t number = table_get(&p->spans, span, SPAN_FIRST_PAGE) + i;
	struct bits *b = &ret->bits;
	if (!block_at(&p->pages, number, b))
		return number < p->pages.n && table_get(&p->pages.starts, number, 0) ==
						      table_get(&p->pages.starts, number + 1, 0)
			       ? 0
			       : -1;
	uint32_t counts = bits_get(b, 0, PAGE_ROWS_WIDTH + PAGE_CONTEXTS_WIDTH),
		 mask = (1 << PAGE_WIDTH_WIDTH) - 1;
	uint64_t at = PAGE_ROWS_WIDTH + PAGE_CONTEXTS_WIDTH;
	uint32_t widths = bits_get(b, at, 4 * PAGE_WIDTH_WIDTH);
	ret->lo = table_get(&p->spans, span, SPAN_AT) + i * SIDECAR_PAGE_SIZE;
	ret->n_rows = 1 + (counts & 0xff);
	ret->n_contexts = 1 + (counts >> PAGE_ROWS_WIDTH);
	ret->frame_width = widths & mask;
	ret->base_width = widths >> PAGE_WIDTH_WIDTH & mask;
	ret->line_width = widths >> 2 * PAGE_WIDTH_WIDTH & mask;
	ret->column_width = widths >> 3 * PAGE_WIDTH_WIDTH;
	ret->context_width = bits_width(ret->n_contexts - 1);
	ret->frames_from = bits_get(b, at += 4 * PAGE_WIDTH_WIDTH, p->frame_width);
	ret->symbol = bits_get(b, at += p->frame_width, p->symbol_width);
	at = (at + p->symbol_width + 7) / 8;
	ret->offsets = b->p + at;
	ret->contexts = (at + ret->n_rows) * 8;
	ret->rows = ret->contexts +
		    (uint64_t)ret->n_contexts * (1 + ret->frame_width + ret->base_width);
	unsigned int row = ret->context_width + ret->line_width + ret->column_width;
	if (too_wide(ret->frame_width) || too_wide(ret->base_width) || too_wide(ret->line_width) ||
	    too_wide(ret->column_width))
		return -1;
	return ret->rows + (uint64_t)ret->n_rows * row <= b->n ? 1 : -1;
}

bool page_of(const struct cairn_sidecar *p, uint32_t at, struct page *ret)
{
	uint32_t span = SEARCH_LAST(0, p->spans.n, i, table_get(&p->spans, i, SPAN_AT) <= at);
	uint32_t off = at - table_get(&p->spans, span, SPAN_AT);
	return off < table_get(&p->spans, span, SPAN_SIZE) &&
	       page_read(p, span, off / SIDECAR_PAGE_SIZE, ret) > 0;
}

uint32_t page_row(const struct page *page, uint32_t at)
{
	uint32_t off = at - page->lo;
	return SEARCH_LAST(0, page->n_rows, i, page->offsets[i] <= off);
}

bool page_here(const struct cairn_sidecar *p, const struct page *page, uint32_t row,
	       struct here *ret)
{
	uint64_t at = page->rows +
		      (uint64_t)row * (page->context_width + page->line_width + page->column_width);
	uint32_t context = bits_get(&page->bits, at, page->context_width);
	uint32_t line = bits_get(&page->bits, at += page->context_width, page->line_width);
	uint32_t column = bits_get(&page->bits, at + page->line_width, page->column_width);
	if (context >= page->n_contexts)
		return false;
	at = page->contexts + (uint64_t)context * (1 + page->frame_width + page->base_width);
	bool is_own = bits_get(&page->bits, at, 1);
	uint32_t frame = bits_get(&page->bits, at + 1, page->frame_width);
	uint32_t base = bits_get(&page->bits, at + 1 + page->frame_width, page->base_width);
	ret->number = frame ? page->frames_from + frame : 0;
	if (frame && !frame_at(p, ret->number - 1, &ret->frame))
		return false;
	ret->has_position = is_own ? base : frame;
	if (is_own)
		ret->position = (struct position){base - 1, line, column};
	else if (!frame)
		return false;
	else
		ret->position = (struct position){
			table_get(&p->functions, ret->frame.function, FUNCTION_FILE),
			table_get(&p->functions, ret->frame.function, FUNCTION_LINE) +
				unfold(base) + line,
			column};
	return true;
}
