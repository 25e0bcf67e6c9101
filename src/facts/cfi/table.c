/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Searching an unwind table
 *
 * Code is dense: the pages that have rows mostly follow one another, so the entry of a page is
 * nearly always at its distance from the first one. Only where there are gaps a binary search
 * follows. Within the page a second one goes over the offsets of its rows, a few thousand at most.
 * Neither has a branch that depends on the comparison, since that would be mispredicted every other
 * time.
 *
 * The cost of a search in a large table is memory: each step of the second one reads another line,
 * and waits for it. So for a table that is searched often, an index gives for each block of 512
 * bytes the number of rows of its page that begin before it. A dozen rows are left then, in one
 * line or two. Evenly spread rows could be found without an index, by their distance in the page;
 * those of real programs are not evenly spread. We tried: 72 ns instead of 73 among the 950,937
 * rows of libLLVM, where an index makes it about 40.
 */
#include "cfi/table.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/search.h"

enum {
	WORD = sizeof(uint32_t),
	RULE_WORDS = sizeof(struct cairn_unwind_rule) / WORD,
	/* The index. */
	BLOCK_SHIFT = 9,
	BLOCKS = 1 << (CAIRN_UNWIND_PAGE_SHIFT - BLOCK_SHIFT), /* in a page */
	/*
	 * With fewer rows to a page a search is short, and the index would be larger than the rows.
	 */
	ROWS_TO_INDEX = 64,
};

static const struct cairn_unwind_rule *rule_at(const struct unwind_table *t, uint32_t number)
{
	return (const struct cairn_unwind_rule *)(t->rules + number);
}

/* The first objection to a rule, from whose beginning @n_words are left; NULL: none. */
static const char *objection(const struct cairn_unwind_rule *r, uint32_t n_words)
{
	if (n_words < RULE_WORDS || n_words - RULE_WORDS < r->n_regs)
		return "it leads out of the rules";
	if (r->cfa > CAIRN_UNWIND_CFA_DEREF || r->reg >= CFI_N_REGS || r->n_regs > CFI_N_REGS)
		return "it has a kind or register that this version does not have";
	for (uint32_t i = 0; i < r->n_regs; i++) {
		uint32_t word = cairn_unwind_words(r)[i];
		enum cairn_unwind_saved saved = cairn_unwind_word_saved(word);
		if (saved == CAIRN_UNWIND_IN_REG && word >> 8 >= CFI_N_REGS)
			return "a register is saved in one that this version does not have";
	}
	return NULL;
}

/* The rule of a row that may not have been checked. */
static const struct cairn_unwind_rule *rule_of_row(const struct unwind_table *t, uint32_t number)
{
	const struct cairn_unwind_rule *r = rule_at(t, number);
	if (t->n_unread && (number >= t->n_unread || objection(r, t->n_unread - number)))
		return rule_at(t, 0);
	return r;
}

/* Number of the last entry whose page is at most @page; the first one's is. */
static uint32_t find_page(const struct unwind_table *t, uint32_t page)
{
	uint64_t guess = page - t->pages[0].page;
	if (guess < t->n_pages && t->pages[guess].page == page)
		return (uint32_t)guess;
	return SEARCH_LAST(0, t->n_pages, i, t->pages[i].page <= page);
}

/* How many of the @n offsets from @first on, @stride apart, are @off or less. */
static inline __attribute__((always_inline)) uint32_t
count_offsets(const uint16_t *first, size_t stride, uint32_t n, uint16_t off)
{
	if (n == 0 || *first > off)
		return 0;
	return SEARCH_LAST(0, n, i, first[i * stride] <= off) + 1;
}

/* How many of the @n rows from number @row on begin at @off or before. */
static inline uint32_t count_rows(const struct unwind_table *t, uint32_t row, uint32_t n,
				  uint16_t off)
{
	if (t->wide)
		return count_offsets(&t->wide[row].off, sizeof(*t->wide) / sizeof(off), n, off);
	return count_offsets(&t->rows[row].off, sizeof(*t->rows) / sizeof(off), n, off);
}

static uint16_t row_off(const struct unwind_table *t, uint32_t row)
{
	return t->wide ? t->wide[row].off : t->rows[row].off;
}

int unwind_table_index(struct unwind_table *t)
{
	if (t->n_rows / ROWS_TO_INDEX < t->n_pages || !t->n_pages)
		return 0;
	uint16_t *blocks = malloc((size_t)t->n_pages * BLOCKS * sizeof(*blocks));
	if (!blocks)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_pages; i++) {
		uint32_t row = t->pages[i].first_row;
		uint32_t n = t->pages[i + 1].first_row - row, before = 0;
		for (uint32_t block = 0; block < BLOCKS; block++) {
			while (before < n && row_off(t, row + before) >> BLOCK_SHIFT < (int)block)
				before++;
			/* At most 127 * 512, as each row has an offset of its own. */
			blocks[(size_t)i * BLOCKS + block] = (uint16_t)before;
		}
	}
	t->blocks = blocks;
	return 0;
}

void unwind_table_fini(struct unwind_table *t)
{
	free((void *)(uintptr_t)t->blocks);
	t->blocks = NULL;
}

/* How many of the @n rows of page @page, the first of which is @row, begin at @off or before. */
static uint32_t count_in_page(const struct unwind_table *t, uint32_t page, uint32_t row, uint32_t n,
			      uint16_t off)
{
	if (!t->blocks)
		return count_rows(t, row, n, off);
	uint32_t block = off >> BLOCK_SHIFT;
	const uint16_t *before = t->blocks + (size_t)page * BLOCKS + block;
	uint32_t first = before[0], end = block + 1 < BLOCKS ? before[1] : n;
	return first + count_rows(t, row + first, end - first, off);
}

const struct cairn_unwind_rule *unwind_table_find(const struct unwind_table *t,
						  struct cairn_vaddr at)
{
	uint64_t distance = at.v - t->base, page = distance >> CAIRN_UNWIND_PAGE_SHIFT;
	if (at.v < t->base || page >= UINT32_MAX || t->n_pages == 0 || page < t->pages[0].page)
		return rule_at(t, 0);
	uint32_t i = find_page(t, (uint32_t)page);
	uint32_t first = t->pages[i].first_row, n = t->pages[i + 1].first_row - first;
	uint32_t row =
		first +
		(t->pages[i].page == page ? count_in_page(t, i, first, n, (uint16_t)distance) : n);
	return rule_of_row(t, row ? unwind_table_rule(t, row - 1) : 0);
}

const struct cairn_unwind_rule *unwind_table_row(const struct unwind_table *t, uint32_t row,
						 struct cairn_vaddr *ret_lo,
						 struct cairn_vaddr *ret_hi)
{
	uint32_t lo = SEARCH_LAST(0, t->n_pages, i, t->pages[i].first_row <= row);
	uint64_t page = t->pages[lo].page, next = page;
	bool is_last = row + 1 == t->n_rows;
	if (!is_last && row + 1 == t->pages[lo + 1].first_row)
		next = t->pages[lo + 1].page;
	ret_lo->v = t->base + (page << CAIRN_UNWIND_PAGE_SHIFT) + row_off(t, row);
	ret_hi->v = is_last ? ret_lo->v
			    : t->base + (next << CAIRN_UNWIND_PAGE_SHIFT) + row_off(t, row + 1);
	return rule_at(t, unwind_table_rule(t, row));
}

/* ---- the check ---- */

struct check {
	const char *file, *section;
	struct unwind_table t;
	uint32_t n_rule_words;
	struct cairn_err *err;
};

static int bad(const struct check *c, const char *what, uint64_t number, const char *why)
{
	return err_set(c->err, -EBADMSG, "%s: %s: %s %" PRIu64 ": %s", c->file, c->section, what,
		       number, why);
}

static int check_rule(const struct check *c, uint32_t at)
{
	const char *why = objection(rule_at(&c->t, at), c->n_rule_words - at);
	return why ? bad(c, "rule", at, why) : 0;
}

/* The one that stands for all that is damaged. */
static int check_first_rule(const struct check *c)
{
	int rc = check_rule(c, 0);
	if (rc < 0)
		return rc;
	return rule_at(&c->t, 0)->cfa == CAIRN_UNWIND_UNDESCRIBED
		       ? 0
		       : bad(c, "rule", 0, "it describes something");
}

/* @starts gets a bit for each word that begins a rule. */
static int check_rules(const struct check *c, uint8_t *starts)
{
	for (uint32_t at = 0; at < c->n_rule_words;) {
		int rc = check_rule(c, at);
		if (rc < 0)
			return rc;
		starts[at / 8] |= (uint8_t)(1u << at % 8);
		at += (uint32_t)RULE_WORDS + rule_at(&c->t, at)->n_regs;
	}
	return check_first_rule(c);
}

static int check_pages(const struct check *c)
{
	const struct cairn_unwind_page *p = c->t.pages;
	if (p[0].first_row != 0 || p[c->t.n_pages].first_row != c->t.n_rows ||
	    p[c->t.n_pages].page != UINT32_MAX)
		return bad(c, "directory of pages, entries", c->t.n_pages,
			   "it does not span the rows");
	for (uint32_t i = 0; i < c->t.n_pages; i++)
		if (p[i].page >= p[i + 1].page || p[i].first_row >= p[i + 1].first_row)
			return bad(c, "page", i, "it is not before the next one, or has no rows");
	uint64_t last = c->t.n_pages ? p[c->t.n_pages - 1].page : 0, end;
	if (__builtin_add_overflow(c->t.base, (last + 1) << CAIRN_UNWIND_PAGE_SHIFT, &end))
		return bad(c, "page", last, "it is beyond the address space");
	return 0;
}

static int check_rows(const struct check *c, const uint8_t *starts)
{
	const struct unwind_table *t = &c->t;
	for (uint32_t i = 0; i < t->n_pages; i++)
		for (uint32_t r = t->pages[i].first_row; r < t->pages[i + 1].first_row; r++) {
			uint32_t rule = unwind_table_rule(t, r);
			if (r > t->pages[i].first_row && row_off(t, r - 1) >= row_off(t, r))
				return bad(c, "row", r, "it does not follow the one before");
			if (rule >= c->n_rule_words || !(starts[rule / 8] & 1u << rule % 8))
				return bad(c, "row", r, "its rule does not exist");
		}
	if (t->n_rows && unwind_table_rule(t, t->n_rows - 1) != 0)
		return bad(c, "row", t->n_rows - 1, "the last one has no end");
	return 0;
}

/* Bytes of a row; 0: the size is not known. */
static uint32_t row_size(const struct cairn_unwind_header *h)
{
	if (h->version == CAIRN_UNWIND_VERSION)
		return sizeof(struct cairn_unwind_row);
	bool is_known = h->row_size == sizeof(struct cairn_unwind_row) ||
			h->row_size == sizeof(struct cairn_unwind_wide_row);
	return is_known ? h->row_size : 0;
}

static int check_header(const struct check *c, const struct cairn_unwind_header *h, size_t size)
{
	uint64_t need = h->header_size +
			((uint64_t)h->n_pages + 1) * sizeof(struct cairn_unwind_page) +
			(uint64_t)h->n_rows * row_size(h) + h->rules_size;
	if (memcmp(h->magic, CAIRN_UNWIND_MAGIC, sizeof(h->magic)) != 0)
		return bad(c, "header", 0, "no unwind table");
	if (h->version < CAIRN_UNWIND_VERSION || h->version > CAIRN_UNWIND_VERSION_MAX)
		return err_set(c->err, -EOPNOTSUPP,
			       "%s: %s: version %" PRIu32
			       " of the unwind table; %d to %d are known",
			       c->file, c->section, h->version, CAIRN_UNWIND_VERSION,
			       CAIRN_UNWIND_VERSION_MAX);
	if (!row_size(h))
		return bad(c, "header", 0, "the size of its rows");
	if (h->machine != EM_X86_64 && h->machine != EM_AARCH64)
		return err_set(c->err, -EOPNOTSUPP, "%s: %s: an unwind table of machine %u",
			       c->file, c->section, h->machine);
	if (h->header_size < sizeof(*h) || h->header_size % 8 || need > size)
		return bad(c, "header", 0, "its sizes are more than the bytes at hand");
	if (h->rules_size < sizeof(struct cairn_unwind_rule) || h->rules_size % WORD ||
	    (row_size(h) == sizeof(struct cairn_unwind_row) &&
	     h->rules_size / WORD > UINT16_MAX + 1u))
		return bad(c, "header", 0, "the size of its rules");
	if (h->base & ((UINT64_C(1) << CAIRN_UNWIND_PAGE_SHIFT) - 1))
		return bad(c, "header", 0, "its base is not where a page begins");
	return 0;
}

/* The header, and where everything is. */
static int open_header(struct check *c, const uint8_t *bytes, size_t size)
{
	const struct cairn_unwind_header *h = (const struct cairn_unwind_header *)bytes;
	if (size < sizeof(*h))
		return bad(c, "bytes", size, "fewer than the header has");
	int rc = check_header(c, h, size);
	if (rc < 0)
		return rc;
	c->n_rule_words = h->rules_size / WORD;
	c->t.base = h->base;
	c->t.machine = h->machine;
	c->t.n_pages = h->n_pages;
	c->t.n_rows = h->n_rows;
	c->t.pages = (const struct cairn_unwind_page *)(bytes + h->header_size);
	const uint8_t *rows = (const uint8_t *)(c->t.pages + h->n_pages + 1);
	if (row_size(h) == sizeof(*c->t.wide))
		c->t.wide = (const struct cairn_unwind_wide_row *)rows;
	else
		c->t.rows = (const struct cairn_unwind_row *)rows;
	c->t.rules = (const uint32_t *)(rows + (uint64_t)h->n_rows * row_size(h));
	return 0;
}

int unwind_table_open(const uint8_t *bytes, size_t size, const char *file, const char *section,
		      struct unwind_table *ret, struct cairn_err *err)
{
	struct check c = {.file = file, .section = section, .err = err};
	int rc = open_header(&c, bytes, size);
	if (rc < 0)
		return rc;
	SCOPE_FREE uint8_t *starts = calloc(c.n_rule_words / 8 + 1, 1);
	if (!starts)
		return err_nomem(err, "the check of an unwind table");
	rc = check_rules(&c, starts);
	if (rc == 0)
		rc = check_pages(&c);
	if (rc == 0)
		rc = check_rows(&c, starts);
	if (rc == 0)
		*ret = c.t;
	return rc;
}

int unwind_table_open_unread(const uint8_t *bytes, size_t size, const char *file,
			     const char *section, struct unwind_table *ret, struct cairn_err *err)
{
	struct check c = {.file = file, .section = section, .err = err};
	int rc = open_header(&c, bytes, size);
	if (rc == 0)
		rc = check_first_rule(&c);
	if (rc == 0)
		rc = check_pages(&c);
	if (rc < 0)
		return rc;
	*ret = c.t;
	ret->n_unread = c.n_rule_words;
	return 0;
}
