/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open sidecar: its sections, checked as far as their sizes go
 *
 * What is read at a lookup (an offset into the strings, the bytes of a block) is checked there: a comparison each,
 * while checking all of it when opening would cost more than most callers ask.
 */
#ifndef PACK_PACK_IMPL_H
#define PACK_PACK_IMPL_H

#include <cairn/pack.h>

#include "base/cursor.h"
#include "elf/elf.h"
#include "pack/format.h"

struct cairn_pack {
	struct elf *elf;
	struct elf *wrapper; /* what elf is a section of; NULL */
	void *owned; /* the bytes, when they are ours to free */
	const struct pack_header *header;
	const char *strings;
	uint32_t strings_size;
	const struct pack_symbol *symbols;
	uint32_t n_symbols;
	const uint32_t *files;
	uint32_t n_files;
	const struct pack_function *functions;
	uint32_t n_functions;
	const uint32_t *buckets, *entries; /* of the index of names */
	uint32_t n_buckets, n_entries;
	const uint32_t *frame_blocks;
	uint32_t n_frame_blocks;
	const uint8_t *frames;
	uint32_t frames_size;
	struct cursor_src frames_src;
	struct records {
		const uint32_t *starts; /* n + 1 */
		uint32_t n;
		const uint8_t *data;
		uint32_t size;
		struct cursor_src src;
	} places, types;
	struct cursor_src locations_src;
	uint32_t locations_size;
	const uint32_t *place_buckets, *place_entries;
	uint32_t n_place_buckets, n_place_entries;
	const struct pack_symbol_name *symbol_names;
	uint32_t n_symbol_names;
	const struct pack_address *addresses;
	uint32_t n_addresses;
	const struct pack_span *spans;
	const uint32_t *pages; /* n_pages + 1 */
	uint32_t n_spans, n_pages;
	const uint8_t *code;
	uint32_t code_size;
	struct cursor_src code_src;
};

/* A number, most of which are of one or two bytes; bits beyond 32 are dropped, and found by cairn_pack_check(). */
static inline uint32_t cur_number(struct cursor *c)
{
	if (cur_left(c) >= 2 && !(c->pos[0] & c->pos[1] & 0x80)) {
		const uint8_t *p = c->pos;
		bool two = p[0] & 0x80;
		c->pos += 1 + two;
		return (p[0] & 0x7fu) | (two ? (uint32_t)p[1] << 7 : 0);
	}
	return (uint32_t)cur_uleb(c);
}

static inline uint32_t cur_unfolded(struct cursor *c)
{
	uint32_t folded = cur_number(c);
	return folded >> 1 ^ -(folded & 1);
}

/* The reverse of put_small(). */
static inline uint32_t cur_small(struct cursor *c)
{
	uint8_t b = cur_u8(c);
	return b < PACK_BYTE_MORE ? b : PACK_BYTE_MORE + (uint32_t)cur_uleb(c);
}

/* NULL for offset 0, and for one outside. */
static inline const char *pack_string(const struct cairn_pack *p, uint32_t off)
{
	return off && off < p->strings_size ? p->strings + off : NULL;
}

static inline const char *pack_file(const struct cairn_pack *p, uint32_t file)
{
	return file < p->n_files ? pack_string(p, p->files[file]) : NULL;
}

static inline const struct pack_function *pack_function(const struct cairn_pack *p, uint32_t function)
{
	return function && function < p->n_functions ? &p->functions[function] : NULL;
}

/* What a page says: see format.h. */
struct page {
	uint32_t lo, hi; /* the code that it describes */
	uint32_t symbol;
	struct cursor frames, lines;
};

/* The page of @at; false when there is none, or nothing in it. */
bool page_of(const struct cairn_pack *p, uint32_t at, struct page *ret);
/* Page @i of span @span, for who reads all; false when it is empty. */
bool page_read(const struct cairn_pack *p, const struct pack_span *span, uint32_t i, struct page *ret,
	       struct cairn_err *err);

/* The frame at @at, from 1, 0 none, by decoding up to it. */
uint32_t page_frame(struct page *page, uint32_t at);

/* Decode the next frame of a page, @known holding the one before that was one. From 1, 0 none. */
static inline uint32_t frame_code_next(struct cursor *c, uint32_t *known)
{
	uint32_t v = cur_number(c), folded = v - 1;
	if (!v)
		return 0;
	return *known += folded >> 1 ^ -(folded & 1);
}

struct pack_frame {
	uint32_t distance; /* to the parent's number; 0: out of line */
	uint32_t function;
	uint32_t call_file, call_line, call_column;
};

/* Record @i; an empty cursor when it is damaged. */
struct cursor record_at(const struct records *r, uint32_t i, struct cairn_err *err);

/* Frame @number; false when there is none, or its block is damaged. */
bool frame_at(const struct cairn_pack *p, uint32_t number, struct pack_frame *ret);

/* Decode the next frame of a block, @ret holding the one before. */
void frame_next(struct cursor *c, struct pack_frame *ret);
/* A cursor over block @i of frames. */
struct cursor frame_block(const struct cairn_pack *p, uint32_t i, struct cairn_err *err);

struct position {
	uint32_t file, line, column;
};

/* Positions used last, the latest first. */
struct line_state {
	struct position slots[PACK_SLOT_NEW];
	bool known;
};

/* Decode the next position. */
void line_next(struct cursor *c, struct line_state *s);

/* The position at @at; false when none is known. */
bool page_line(struct page *page, uint32_t at, struct position *ret);

#endif
