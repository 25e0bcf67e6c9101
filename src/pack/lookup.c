/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By address and by name
 *
 * An address leads to a page, of which half is decoded on average, and for each function around it half a block of
 * frames. By name it is a hash, and the three names or so that share its bucket.
 */
#include "pack/pack_impl.h"

#include <string.h>

#include "pack/name_hash.h"

/* ---- symbols ---- */

static const struct pack_symbol *holds(const struct pack_symbol *s, uint32_t at)
{
	return at - s->at < (s->size & ~PACK_SYMBOL_REST) ? s : NULL;
}

/* The record that holds @at, or NULL. */
static const struct pack_symbol *symbol_at(const struct cairn_pack *p, uint32_t at)
{
	const struct pack_symbol *s = p->symbols;
	uint32_t lo = 0, n = p->n_symbols;
	if (!n || at < s[0].at)
		return NULL;
	while (n > 1) {
		uint32_t half = n / 2;
		lo += s[lo + half].at <= at ? half : 0;
		n -= half;
	}
	return holds(&s[lo], at);
}

/* The same, from the first symbol of the page on. */
static const struct pack_symbol *symbol_from(const struct cairn_pack *p, uint32_t first, uint32_t at)
{
	const struct pack_symbol *s = first < p->n_symbols ? &p->symbols[first] : NULL;
	if (!s || s->at > at)
		return NULL;
	for (; s + 1 < p->symbols + p->n_symbols && s[1].at <= at;)
		s++;
	return holds(s, at);
}

/* The record with a symbol's start and name. */
static const struct pack_symbol *symbol_start(const struct cairn_pack *p, const struct pack_symbol *s)
{
	if (s && s->size & PACK_SYMBOL_REST)
		return s->name < p->n_symbols && !(p->symbols[s->name].size & PACK_SYMBOL_REST) ? &p->symbols[s->name]
												 : NULL;
	return s;
}

/* False when @at is outside the code that is described. */
static bool offset_of(const struct cairn_pack *p, struct cairn_vaddr at, uint32_t *ret)
{
	*ret = (uint32_t)(at.v - p->header->base);
	return at.v - p->header->base < p->header->span;
}

bool cairn_pack_symbol_of(const struct cairn_pack *p, struct cairn_vaddr at, const char **ret_name,
			  struct cairn_vaddr *ret_start)
{
	uint32_t off;
	const struct pack_symbol *s =
		offset_of(p, at, &off) ? symbol_start(p, symbol_at(p, off)) : NULL;
	const char *name = s ? pack_string(p, s->name) : NULL;
	if (!name)
		return false;
	*ret_name = name;
	ret_start->v = p->header->base + s->at;
	return true;
}

/* ---- frames ---- */

bool frame_at(const struct cairn_pack *p, uint32_t number, struct pack_frame *ret)
{
	uint32_t block = number / PACK_FRAMES_PER_BLOCK;
	if (number >= p->header->n_frames || block >= p->n_frame_blocks)
		return false;
	struct cursor c = frame_block(p, block, NULL);
	*ret = (struct pack_frame){0};
	for (uint32_t i = block * PACK_FRAMES_PER_BLOCK; i <= number; i++)
		frame_next(&c, ret);
	return !c.failed && ret->distance <= number;
}

static void set_function(const struct cairn_pack *p, uint32_t number, struct cairn_frame *ret)
{
	const struct pack_function *f = pack_function(p, number);
	if (!f)
		return;
	ret->name = pack_string(p, f->name);
	ret->function = f->linkage ? pack_string(p, f->linkage) : ret->name;
}

static void set_position(const struct cairn_pack *p, const struct position *at, struct cairn_frame *ret)
{
	ret->file = pack_file(p, at->file);
	ret->line = at->line;
	ret->column = at->column;
}

/* The frames from @number outwards; @at is where the innermost is executed. */
static size_t walk_out(const struct cairn_pack *p, uint32_t number, const struct position *at,
		       struct cairn_frame *ret, size_t max)
{
	struct position position = *at;
	size_t n = 0;
	for (struct pack_frame f;; number -= f.distance) {
		struct cairn_frame *to = &ret[n < max ? n : max - 1];
		if (!frame_at(p, number, &f))
			return n < max ? n : max;
		*to = (struct cairn_frame){0};
		set_function(p, f.function, to);
		set_position(p, &position, to);
		n++;
		if (!f.distance)
			return n < max ? n : max;
		position = (struct position){f.call_file, f.call_line, f.call_column};
	}
}

/* Let memory fetch the frame and the symbol while the line is decoded. */
static void will_need(const struct cairn_pack *p, const struct page *page, uint32_t frame)
{
	if (frame && (frame - 1) / PACK_FRAMES_PER_BLOCK < p->n_frame_blocks)
		__builtin_prefetch(p->frames + p->frame_blocks[(frame - 1) / PACK_FRAMES_PER_BLOCK]);
	if (page->symbol < p->n_symbols)
		__builtin_prefetch(&p->symbols[page->symbol]);
}

size_t cairn_pack_frames(const struct cairn_pack *p, struct cairn_vaddr at, struct cairn_frame *ret, size_t max)
{
	struct position position = {0};
	struct page page;
	uint32_t off;
	if (!max || !offset_of(p, at, &off))
		return 0;
	bool described = page_of(p, off, &page);
	uint32_t frame = described ? page_frame(&page, off) : 0;
	if (described)
		will_need(p, &page, frame);
	bool has_line = described && page_line(&page, off, &position);
	const struct pack_symbol *s =
		symbol_start(p, described ? symbol_from(p, page.symbol, off) : symbol_at(p, off));
	size_t n = frame ? walk_out(p, frame - 1, &position, ret, max) : 0;
	if (!n && !s && !has_line)
		return 0;
	if (!n) {
		ret[0] = (struct cairn_frame){0};
		set_position(p, &position, &ret[0]);
		n = 1;
	}
	if (s && pack_string(p, s->name))
		ret[n - 1].function = pack_string(p, s->name);
	return n;
}

/* ---- names ---- */

static bool is_named(const struct cairn_pack *p, const struct pack_function *f, const char *name)
{
	const char *own = pack_string(p, f->name), *linkage = pack_string(p, f->linkage);
	return (own && !strcmp(own, name)) || (linkage && !strcmp(linkage, name));
}

size_t cairn_pack_find(const struct cairn_pack *p, const char *name, uint32_t *ret, size_t max)
{
	size_t n = 0;
	if (!p->n_buckets)
		return 0;
	uint32_t bucket = pack_name_hash(name) & (p->n_buckets - 1);
	uint32_t from = p->buckets[bucket], to = p->buckets[bucket + 1];
	for (uint32_t i = from; i < to && i < p->n_entries; i++) {
		const struct pack_function *f = pack_function(p, p->entries[i]);
		if (!f || !is_named(p, f, name))
			continue;
		if (n < max)
			ret[n] = p->entries[i];
		n++;
	}
	return n;
}

bool cairn_pack_function(const struct cairn_pack *p, uint32_t number, struct cairn_pack_function *ret)
{
	const struct pack_function *f = pack_function(p, number);
	if (!f)
		return false;
	*ret = (struct cairn_pack_function){.name = pack_string(p, f->name),
					    .linkage = pack_string(p, f->linkage),
					    .file = pack_file(p, f->file),
					    .line = f->line};
	return true;
}
