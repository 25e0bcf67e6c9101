/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables: made from call frame information, and searched
 *
 * The format is cairn/shared/unwind.h.
 */
#ifndef CFI_TABLE_H
#define CFI_TABLE_H

#include <stddef.h>

#include <cairn/shared/unwind.h>

#include "cfi/cfi.h"

/*
 * Rows that the instructions disprove are weakened, or kept as written; the last value also covers
 * files without bytes for the code, such as debug files.
 */
enum unwind_belief { UNWIND_PROVED, UNWIND_AS_WRITTEN, UNWIND_WITHOUT_CODE };

/*
 * unwind_table_build - the rows of everything that @cfi has, in one block of bytes
 *
 * Code that no FDE covers, whose FDE is damaged, or whose rule the format does not have, is
 * undescribed; header.n_dropped counts the damaged and unknown ones. If FDEs overlap, the rows are
 * those of cfi_row_at().
 *
 * @threads    workers, as pool_run(); the bytes are the same for any number
 * @ret        the caller's, free()
 * @ret_size   bytes
 * Returns 0; -ENOMEM; -ERANGE if there are more rows, or 2^32 words of rules, than the format can
 * number.
 * Cost: one run of each FDE's program.
 */
int unwind_table_build(const struct cfi *cfi, enum unwind_belief belief, unsigned int threads,
		       uint8_t **ret, size_t *ret_size, struct cairn_err *err);

/*
 * A table that is known to be sound; borrows the bytes. Small, to be copied; a copy borrows the
 * index, too.
 */
struct unwind_table {
	const struct cairn_unwind_page *pages;
	const struct cairn_unwind_row *rows;      /* NULL: no table, or its rows are wide */
	const struct cairn_unwind_wide_row *wide; /* NULL: they are not */
	const uint32_t *rules;
	uint64_t base;
	uint32_t n_pages, n_rows;
	uint16_t machine;
	const uint16_t *blocks; /* unwind_table_index(); NULL: none */
	uint32_t n_unread;      /* words of rules, none of which was checked; 0: all were */
};

/* Whether there is a table. */
static inline bool unwind_table_is_open(const struct unwind_table *t)
{
	return t->rules;
}

/* The number of a row's rule: its offset among the rules, in words. */
static inline uint32_t unwind_table_rule(const struct unwind_table *t, uint32_t row)
{
	return t->wide ? t->wide[row].rule : t->rows[row].rule;
}

/*
 * unwind_table_open - check every number of a table once
 *
 * @bytes  aligned to 8, must outlive the view
 * @file, @section  for the error's text
 * Returns 0; -EBADMSG with the record that is wrong; -EOPNOTSUPP for another version or
 * architecture; -ENOMEM.
 * Cost: one pass over the table; nothing is kept.
 */
int unwind_table_open(const uint8_t *bytes, size_t size, const char *file, const char *section,
		      struct unwind_table *ret, struct cairn_err *err);

/*
 * unwind_table_open_unread - the same without reading rows and rules
 *
 * For a mapped table with few lookups: unwind_table_find() checks the rows and rules that it reads,
 * and a damaged rule is rule 0. Do not use unwind_table_row() and unwind_table_index() with it.
 * Errors: as unwind_table_open(), for the header and the directory of pages. Cost: one pass over
 * that.
 */
int unwind_table_open_unread(const uint8_t *bytes, size_t size, const char *file,
			     const char *section, struct unwind_table *ret, struct cairn_err *err);

/*
 * unwind_table_index - make searches in an open table faster, by 256 bytes for each page of 64 KiB
 * of code
 *
 * A table with few rows in a page gets no index. Call unwind_table_fini() afterwards, on the
 * indexed table.
 * Returns 0; -ENOMEM: the table is searched without an index. Cost: one pass over the rows.
 */
int unwind_table_index(struct unwind_table *t);
void unwind_table_fini(struct unwind_table *t);

/*
 * unwind_table_find - the rule for one address, never NULL: rule 0, CAIRN_UNWIND_UNDESCRIBED, if
 * there is none
 *
 * Cost: O(log rows); with an index O(log rows in 512 bytes of code). Threads: any. Signals: safe.
 */
const struct cairn_unwind_rule *unwind_table_find(const struct unwind_table *t,
						  struct cairn_vaddr at);

/*
 * unwind_table_row - one row by number, below n_rows: [*@ret_lo, *@ret_hi) and its rule; the last
 * row's end is its beginning, since its rule is always rule 0. For listings.
 */
const struct cairn_unwind_rule *unwind_table_row(const struct unwind_table *t, uint32_t row,
						 struct cairn_vaddr *ret_lo,
						 struct cairn_vaddr *ret_hi);

#endif
