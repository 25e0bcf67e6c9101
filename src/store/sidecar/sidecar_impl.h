/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module sidecar writes the debug information that Cairn needs into one small mapped file, and
 * answers queries from it.
 *
 * This header: an open sidecar; its sections are checked as far as their sizes go.
 *
 * Data that a lookup reads (an offset into the strings, the fields of a block) is checked at that
 * time. This costs one comparison each; a check of everything at the opening would cost more than
 * most callers' queries.
 */
#ifndef SIDECAR_SIDECAR_IMPL_H
#define SIDECAR_SIDECAR_IMPL_H

#include <cairn/sidecar.h>
#include <cairn/types.h>

#include "elf/elf.h"
#include "sidecar/binding.h"
#include "sidecar/bits.h"
#include "sidecar/format.h"
#include "sidecar/name_index.h"
#include "sidecar/record_set.h"

/* Blocks of bits, which begin at bytes. */
struct blocks {
	struct table starts; /* one more than there are */
	uint32_t n;
	const uint8_t *data;
	uint32_t size; /* without the slack */
};

/*
 * All bytes of sections are reached through functions with a guard (elf/guard.h): tables, blocks
 * and records check the pages that they read, sidecar_string() and sidecar_symbol() theirs, and
 * cairn_sidecar_section() checks a section as a whole.
 */
struct cairn_sidecar {
	struct elf *elf;
	struct guard *guard; /* of elf */
	struct binding *binding;
	struct elf *wrapper; /* the file that has elf as a section; NULL */
	void *owned;         /* the bytes, when they are ours to free */
	const struct sidecar_header *header;
	const char *strings;
	uint32_t strings_size;
	struct table symbols, files, functions;
	struct names names; /* of functions */

	struct table spans;
	struct blocks pages, frames;
	/* Widths that the sizes of tables give. */
	unsigned int frame_width, symbol_width;  /* of a page's first frame and first symbol */
	unsigned int function_width, file_width; /* of a frame */

	struct records sites, marks, site_attrs, arguments, locations, prototypes, types;
	struct table parameters, addresses, type_names;
	struct names site_names; /* of records of sites */
	const struct sidecar_symbol_name *symbol_names;
	uint32_t n_symbol_names;
};

/*
 * A number, most of which are of one or two bytes; bits beyond 32 are dropped, and found by
 * cairn_sidecar_check().
 */
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

static inline int64_t cur_folded(struct cursor *c)
{
	uint64_t folded = cur_uleb(c);
	return (int64_t)(folded >> 1 ^ -(folded & 1));
}

/*
 * The same as sidecar_string(), for a string that may be longer than guard_near() covers.
 */
const char *sidecar_long_string(const struct cairn_sidecar *p, uint32_t off);

/* NULL for offset 0, for one outside, and where the checksum differs. */
static inline const char *sidecar_string(const struct cairn_sidecar *p, uint32_t off)
{
	if (!off || off >= p->strings_size)
		return NULL;
	if (__builtin_expect(p->header->string_max > GUARD_MAX_READ, 0))
		return sidecar_long_string(p, off);
	return guard_near(p->guard, (const uint8_t *)p->strings + off) ? p->strings + off : NULL;
}

/* Record @i of .cairn.symbol_names, which there is; one of zeros where the checksum differs. */
static inline const struct sidecar_symbol_name *sidecar_symbol(const struct cairn_sidecar *p,
							       uint32_t i)
{
	static const struct sidecar_symbol_name none;
	return guard_near(p->guard, (const uint8_t *)&p->symbol_names[i]) ? &p->symbol_names[i]
									  : &none;
}

static inline const char *sidecar_file(const struct cairn_sidecar *p, uint32_t file)
{
	return sidecar_string(p, table_get(&p->files, file, 0));
}

/* A string of function @i. */
static inline const char *function_string(const struct cairn_sidecar *p, uint32_t i,
					  unsigned int field)
{
	return sidecar_string(p, table_get(&p->functions, i, field));
}

/* The size of types of a kind of which a record does not say it. */
/* Of a number that this version does not know, whatever wrote it: no probe there. */
static inline enum cairn_hazard sidecar_hazard(uint64_t number)
{
	return number < CAIRN_HAZARD_N ? (enum cairn_hazard)number : CAIRN_HAZARD_NOT_PROBEABLE;
}

static inline uint64_t sidecar_usual_size(enum cairn_type_kind kind)
{
	return kind == CAIRN_T_PTR || kind == CAIRN_T_REF || kind == CAIRN_T_RREF ? 8 : 0;
}

/*
 * As cairn_sidecar_symbol_of(), for a sequence of addresses: the closer the address follows the
 * last one, the faster. *@near is 0 at first.
 */
bool sidecar_symbol_near(const struct cairn_sidecar *p, uint32_t *near, struct cairn_vaddr at,
			 const char **ret_name, struct cairn_vaddr *ret_start);

struct position {
	uint32_t file, line, column;
};

/* ---- frames ---- */

struct frame {
	uint32_t distance; /* to the parent's number; 0: out of line */
	uint32_t function;
	uint32_t line, column; /* of the call */
	/* 1 + its file; 0: that of the parent's function, and line counts from its declaration */
	uint32_t own_file;
};

/* Frame @number; false when there is none, or its block is damaged. */
bool frame_at(const struct cairn_sidecar *p, uint32_t number, struct frame *ret);

/* The position at which @f, a copy in @parent, is called. */
static inline struct position call_of(const struct cairn_sidecar *p, const struct frame *f,
				      const struct frame *parent)
{
	if (f->own_file)
		return (struct position){f->own_file - 1, f->line, f->column};
	return (struct position){table_get(&p->functions, parent->function, FUNCTION_FILE),
				 table_get(&p->functions, parent->function, FUNCTION_LINE) +
					 unfold(f->line),
				 f->column};
}

/* ---- pages ---- */

/* The contents of a page: see encode_code.c. */
struct page {
	struct bits bits;
	uint32_t lo;
	uint32_t n_rows, n_contexts;
	unsigned int context_width, frame_width, base_width, line_width, column_width;
	uint32_t frames_from, symbol;
	const uint8_t *offsets;  /* of the rows */
	uint64_t contexts, rows; /* where they begin, in bits */
};

/* The page of @at; false when there is none, or nothing in it. */
bool page_of(const struct cairn_sidecar *p, uint32_t at, struct page *ret);

/* Page @i of span @span, for readers of all pages: 1, 0 when it is empty, -1 when it is damaged. */
int page_read(const struct cairn_sidecar *p, uint32_t span, uint32_t i, struct page *ret);

/* The state that holds from a row on. */
struct here {
	uint32_t number;    /* of the frame, from 1; 0 none */
	struct frame frame; /* when there is one */
	bool has_position;
	struct position position;
};

/* The row that holds at @at. */
uint32_t page_row(const struct page *page, uint32_t at);
/* False when the row is damaged. */
bool page_here(const struct cairn_sidecar *p, const struct page *page, uint32_t row,
	       struct here *ret);

#endif
