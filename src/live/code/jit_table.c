/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chains of tables
 *
 *	head, 32 bytes		reserved_len 4096, used_len 72, next 0x7f..., stride 24, size 24
 *	elements		3 of 24 bytes
 *
 * The RFC's form has 24 bytes of head and rows of 24 bytes. Elements are stepped over by the
 * stride, and members that the writer does not know (beyond size) are 0.
 *
 * Within an epoch a chain only grows: any table may get more elements after its last one, and next
 * may come to name a table that was inserted. used_len and next are read before the data that they
 * lead to. So the reader finds everything that was published before it began, in order of address,
 * and some of the elements published meanwhile. When the region passes into a new generation,
 * tables of the old one may hold anything: the reader checks the epoch afterwards.
 *
 * A chain of a hostile process may lead back to itself, or on for ever. The reader leaves it when a
 * table comes again (Brent), when its elements do not ascend, or when its cost is more than is
 * real. A table costs its bytes plus TABLE_COST.
 */
#include "code/jit_table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "base/err.h"
#include "base/search.h"
#include "cfi/convention.h"

enum {
	MAX_CHAIN = 64 << 20, /* bytes: 2.8 million rows, of which large processes have a tenth */
	/* two system calls copy about as much: no more than 65,536 tables are in a chain */
	TABLE_COST = 1024,
	MAX_STRIDE = 4096,
	MAX_DEPTH = 64, /* of inlined copies */
};

static const struct cursor_src src = {.file = "", .section = "JIT table"};

struct head {
	uint64_t reserved_len, used_len, next;
	uint32_t stride, size;
};

struct chain {
	const struct code_memory *memory;
	bool is_rfc;        /* of the RFC's own form */
	size_t least;       /* bytes without which an element says nothing */
	uint64_t text_size; /* offsets are below */
	uint64_t *budget;   /* bytes that may be read, of all regions of the process */
	/* Takes one table's elements. 0, 1 and why, -ENOMEM. */
	int (*take)(struct chain *c, const uint8_t *bytes, const struct head *h, const char **why);
	struct jit_tables *to;
	uint64_t end; /* the element before ends here: the next one must not begin before */
	/* a symbol of this depth was withdrawn, and its inlined copies go with it */
	uint32_t withdrawn;
	/*
	 * the last symbol of each depth, by number, up to n_open: the possible parents of a copy
	 */
	uint32_t open[MAX_DEPTH + 1];
	uint32_t n_open;
};

static const char *read_head(const struct chain *c, uint64_t at, struct head *ret)
{
	uint8_t bytes[sizeof(struct code_jit_table)];
	size_t n = c->is_rfc ? sizeof(struct code_jit_unwind_table) : sizeof(bytes);
	if (!code_memory_all(c->memory, at, bytes, n))
		return "a table is not in memory";
	struct cursor cur = cursor_of(&src, bytes, n, false, NULL);
	*ret = (struct head){.reserved_len = cur_u64(&cur)};
	ret->used_len = cur_u64(&cur);
	ret->next = cur_u64(&cur);
	ret->stride = c->is_rfc ? sizeof(struct code_jit_unwind_fre) : cur_u32(&cur);
	ret->size = c->is_rfc ? CODE_JIT_UNWIND_FRE_RFC_SIZE : cur_u32(&cur);
	if (ret->used_len > ret->reserved_len)
		return "a table uses more bytes than it has";
	if (ret->size < c->least || ret->size > ret->stride || ret->stride > MAX_STRIDE)
		return "a table's elements have no size that can be";
	return ret->used_len % ret->stride ? "a table ends within an element" : NULL;
}

/* The budget left for a chain, and for the whole process. */
static const char *spend(uint64_t n_bytes, uint64_t *left, uint64_t *budget)
{
	uint64_t n;
	if (__builtin_add_overflow(n_bytes, TABLE_COST, &n) || n > *left)
		return "its tables are more, or larger, than real ones are";
	if (n > *budget)
		return "the tables of the process exceed the limit for one process";
	*left -= n;
	*budget -= n;
	return NULL;
}

static int read_table(struct chain *c, uint64_t at, uint64_t *left, struct head *h,
		      const char **why)
{
	*why = read_head(c, at, h);
	if (!*why)
		*why = spend(h->used_len, left, c->budget);
	if (*why)
		return 1;
	uint8_t *bytes = malloc(h->used_len ? h->used_len : 1);
	if (!bytes)
		return -ENOMEM;
	size_t head =
		c->is_rfc ? sizeof(struct code_jit_unwind_table) : sizeof(struct code_jit_table);
	int rc = 1;
	if (h->used_len && !code_memory_all(c->memory, at + head, bytes, h->used_len))
		*why = "a table's elements are not in memory";
	else
		rc = c->take(c, bytes, h, why);
	free(bytes);
	return rc;
}

/* 0, also when the chain is refused with *@why; -ENOMEM. */
static int read_chain(struct chain *c, uint64_t at, const char **why)
{
	uint64_t left = MAX_CHAIN, seen = 0;
	struct head h;
	*why = NULL;
	for (uint32_t i = 0; at; i++, at = h.next) {
		if (at == seen) {
			*why = "its tables lead back to themselves";
			return 0;
		}
		if ((i & (i - 1)) == 0)
			seen = at;
		int rc = read_table(c, at, &left, &h, why);
		if (rc)
			return rc < 0 ? rc : 0;
	}
	return 0;
}

/* ---- elements ---- */

/* An element that was withdrawn covers nothing, and is none. */
static const char *place(struct chain *c, uint32_t off, uint32_t size)
{
	if ((uint64_t)off + size > c->text_size)
		return "an element is not within the region";
	if (off < c->end)
		return "elements are not in order of address, or overlap";
	c->end = (uint64_t)off + size;
	return NULL;
}

/* The members that are known here; @padded is for an element of a writer that knows fewer. */
static inline struct cursor element_at(const uint8_t *at, const struct head *h, uint8_t *padded,
				       size_t known)
{
	if (h->size < known)
		at = memcpy(padded, at, h->size);
	return cursor_of(&src, at, known, false, NULL);
}

static int take_rows(struct chain *c, const uint8_t *bytes, const struct head *h, const char **why)
{
	uint8_t padded[sizeof(struct code_jit_unwind_fre)] = {0};
	if (!VEC_RESERVE(&c->to->rows, h->used_len / h->stride))
		return -ENOMEM;
	for (uint64_t off = 0; off < h->used_len && !*why; off += h->stride) {
		struct cursor e = element_at(bytes + off, h, padded, sizeof(padded));
		struct jit_row row = {.size = cur_u32(&e)};
		row.off = cur_u32(&e);
		row.cfa_off = (int32_t)cur_u32(&e);
		row.ra_off = (int32_t)cur_u32(&e);
		row.fp_off = (int32_t)cur_u32(&e);
		row.info = cur_u8(&e);
		if (!row.size)
			continue;
		*why = place(c, row.off, row.size);
		c->to->rows.p[c->to->rows.n++] = row;
	}
	return *why != NULL;
}

/* Copies lie within the function that they were inlined into; only functions ascend. */
static const char *place_copy(const struct chain *c, const struct jit_tables *to,
			      const struct jit_symbol *s)
{
	if (s->depth > MAX_DEPTH || s->depth > c->n_open)
		return "an inlined copy is inlined into nothing";
	const struct jit_symbol *in = &to->symbols.p[c->open[s->depth - 1]];
	return s->off < in->off || (uint64_t)s->off + s->size > (uint64_t)in->off + in->size
		       ? "an inlined copy is not within the function"
		       : NULL;
}

static const char *place_symbol(struct chain *c, struct jit_symbol *s)
{
	const char *why = s->depth ? place_copy(c, c->to, s) : place(c, s->off, s->size);
	if (why)
		return why;
	c->open[s->depth] = (uint32_t)c->to->symbols.n;
	c->n_open = s->depth + 1u;
	s->function = c->open[0];
	return NULL;
}

static int take_symbols(struct chain *c, const uint8_t *bytes, const struct head *h,
			const char **why)
{
	uint8_t padded[sizeof(struct code_jit_symbol)] = {0};
	if (!VEC_RESERVE(&c->to->symbols, h->used_len / h->stride))
		return -ENOMEM;
	for (uint64_t off = 0; off < h->used_len && !*why; off += h->stride) {
		struct cursor e = element_at(bytes + off, h, padded, sizeof(padded));
		struct jit_symbol s = {.size = cur_u32(&e)};
		s.off = cur_u32(&e);
		s.name = cur_u64(&e);
		uint32_t depth = cur_u32(&e);
		s.call_line = cur_u32(&e);
		s.call_file = cur_u64(&e);
		if (depth > c->withdrawn)
			continue;
		c->withdrawn = s.size ? UINT32_MAX : depth;
		if (!s.size)
			continue;
		s.depth = depth <= MAX_DEPTH ? depth : MAX_DEPTH + 1;
		*why = place_symbol(c, &s);
		c->to->symbols.p[c->to->symbols.n++] = s;
	}
	return *why != NULL;
}

static int take_lines(struct chain *c, const uint8_t *bytes, const struct head *h, const char **why)
{
	uint8_t padded[sizeof(struct code_jit_line)] = {0};
	if (!VEC_RESERVE(&c->to->lines, h->used_len / h->stride))
		return -ENOMEM;
	for (uint64_t off = 0; off < h->used_len && !*why; off += h->stride) {
		struct cursor e = element_at(bytes + off, h, padded, sizeof(padded));
		struct jit_line line = {.off = cur_u32(&e)};
		line.line = cur_u32(&e);
		line.file = cur_u64(&e);
		*why = place(c, line.off, 0);
		c->to->lines.p[c->to->lines.n++] = line;
	}
	return *why != NULL;
}

int jit_tables_read(const struct code_memory *memory, const struct code_jit_info *info,
		    uint64_t *budget, struct jit_tables *to, struct cairn_err *err)
{
	struct chain c = {.memory = memory,
			  .is_rfc = info->extended != CODE_JIT_EXTENDED,
			  .budget = budget,
			  .text_size = info->text_end - info->text_start,
			  .to = to,
			  .withdrawn = UINT32_MAX};
	struct chain rows = c, symbols = c, lines = c;
	to->rows.n = to->symbols.n = to->lines.n = 0;
	rows.least = CODE_JIT_UNWIND_FRE_RFC_SIZE;
	rows.take = take_rows;
	symbols.least = offsetof(struct code_jit_symbol, depth);
	symbols.take = take_symbols;
	lines.least = offsetof(struct code_jit_line, file);
	lines.take = take_lines;
	int rc = read_chain(&rows, info->unwind_head, &to->rows_why);
	if (rc == 0)
		rc = read_chain(&symbols, info->symbols_head, &to->symbols_why);
	if (rc == 0)
		rc = read_chain(&lines, info->lines_head, &to->lines_why);
	if (rc < 0)
		return err_nomem(err, "the tables of a JIT");
	to->rows.n = to->rows_why ? 0 : to->rows.n;
	to->symbols.n = to->symbols_why ? 0 : to->symbols.n;
	to->lines.n = to->lines_why ? 0 : to->lines.n;
	return 0;
}

void jit_tables_fini(struct jit_tables *t)
{
	VEC_FREE(&t->rows);
	VEC_FREE(&t->symbols);
	VEC_FREE(&t->lines);
}

/* ---- looking up ---- */

/* The number of elements of @size bytes, which begin with their offset, at @off or before. */
static size_t count_up_to(const void *p, size_t n, size_t size, uint64_t off)
{
	return SEARCH(0, n, i, *(const uint32_t *)((const char *)p + i * size) <= off);
}

const struct jit_row *jit_row_at(const struct jit_tables *t, uint64_t off)
{
	size_t n = count_up_to(t->rows.p, t->rows.n, sizeof(*t->rows.p), off);
	const struct jit_row *row = n ? &t->rows.p[n - 1] : NULL;
	return row && off - row->off < row->size ? row : NULL;
}

const struct jit_line *jit_line_at(const struct jit_tables *t, uint64_t off)
{
	size_t n = count_up_to(t->lines.p, t->lines.n, sizeof(*t->lines.p), off);
	return n ? &t->lines.p[n - 1] : NULL;
}

static bool holds(const struct jit_symbol *s, uint64_t off)
{
	return off >= s->off && off - s->off < s->size;
}

size_t jit_symbols_at(const struct jit_tables *t, uint64_t off, const struct jit_symbol **ret,
		      size_t max)
{
	/*
	 * Only functions ascend, so each symbol is compared by its function. lo: after the last
	 * that begins before.
	 */
	size_t lo =
		SEARCH(0, t->symbols.n, mid, t->symbols.p[t->symbols.p[mid].function].off <= off);
	size_t n = 0;
	if (lo)
		lo = t->symbols.p[lo - 1].function + 1;
	if (!lo || !max || !holds(&t->symbols.p[lo - 1], off))
		return 0;
	ret[n++] = &t->symbols.p[lo - 1];
	for (; lo < t->symbols.n && t->symbols.p[lo].depth && n < max; lo++)
		if (t->symbols.p[lo].depth == n && holds(&t->symbols.p[lo], off))
			ret[n++] = &t->symbols.p[lo];
	return n;
}

/* ---- rules ---- */

/* A register that the row does not describe may have been overwritten. */
static void lose_others(const struct convention *abi, struct rule_words *w)
{
	for (unsigned int reg = 0; reg < 32; reg++)
		if (abi->kept & UINT32_C(1) << reg && reg != abi->fp)
			rule_add(w, reg, CAIRN_UNWIND_LOST, 0);
}

void jit_row_rule(const struct jit_row *row, uint16_t machine, struct rule_words *ret)
{
	const struct convention *abi = convention_of(machine);
	uint8_t flags = (row->info & CODE_ROW_RA_SIGNED ? CAIRN_UNWIND_RA_SIGNED : 0) |
			(row->info & CODE_ROW_SIGNAL ? CAIRN_UNWIND_SIGNAL : 0) |
			(row->info & CODE_ROW_OUTERMOST ? CAIRN_UNWIND_OUTERMOST : 0);
	if (row->info & CODE_ROW_UNDESCRIBED) {
		rule_undescribed(ret);
		return;
	}
	rule_cfa(ret, CAIRN_UNWIND_CFA_REG, flags, row->info & CODE_ROW_CFA_FP ? abi->fp : abi->sp,
		 row->cfa_off, 0);
	if (row->info & CODE_ROW_RA)
		rule_add(ret, abi->ra, CAIRN_UNWIND_AT_CFA, row->ra_off);
	if (row->info & CODE_ROW_FP)
		rule_add(ret, abi->fp, CAIRN_UNWIND_AT_CFA, row->fp_off);
	lose_others(abi, ret);
}

void jit_frame_pointer_rule(uint16_t machine, struct rule_words *ret)
{
	const struct convention *abi = convention_of(machine);
	rule_cfa(ret, CAIRN_UNWIND_CFA_REG, 0, abi->fp, 16, 0);
	if (!abi->ra_at_cfa)
		rule_add(ret, abi->ra, CAIRN_UNWIND_AT_CFA, -8);
	rule_add(ret, abi->fp, CAIRN_UNWIND_AT_CFA, -16);
	lose_others(abi, ret);
}
