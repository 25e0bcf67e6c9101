/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables in the kernel: rules that all files share, and the pages and rows of each file
 */
#ifndef WALK_TABLES_H
#define WALK_TABLES_H

#include "base/map.h"
#include "cfi/table.h"
#include "walk/abi.h"
#include "walk/chunks.h"
#include "walk/gaps.h"

/* Rows that were used. */
struct walk_piece {
	uint32_t block, first;
};

enum { WALK_ROW_CLASSES = 17 };

struct walk_tables {
	struct chunks rows, pages;
	struct walk_rule *rules; /* shared with the kernel; [0] is none */
	uint32_t n_rules;
	struct map rule_ids; /* by hash of the rule */
	uint32_t n_pages;    /* in use */
	uint32_t row_block, row_next;
	/* Blocks of files that are gone; pages are counted over all blocks. */
	struct gaps row_gaps, page_gaps;
	uint64_t n_rows;
	uint64_t n_unsaid; /* rows whose rule has no room in 16 bytes, or comes too late */
	/* For code made at run time (tables_made.h). */
	uint64_t n_made_rows;
	uint32_t n_made_rules;
	VEC(struct walk_piece) unused_rows[WALK_ROW_CLASSES]; /* of 2^n rows */
	VEC(uint32_t) unused_pages;
};

/* The place of a file's pages. */
struct walk_pages {
	uint32_t first, n;
};

/*
 * tables_init - empty tables in the maps of the program; -1 each: in this process only, for tests
 *
 * Returns 0; the errors of mmap(2). tables_fini() in both cases.
 */
int tables_init(struct walk_tables *t, int rows_fd, int pages_fd, int rules_fd,
		struct cairn_err *err);
void tables_fini(struct walk_tables *t);

/*
 * tables_add - a file's rows
 *
 * @table  every number in it was checked (unwind_table_open())
 * @base   page 0 is that of this link-time address, a multiple of 64 KiB; rows before it are left
 *	   out
 * Returns 0; -E2BIG: its code spans more than 4 GiB; -ENOSPC, -ENOMEM, the errors of bpf(2).
 * Cost: one pass over the rows.
 */
int tables_add(struct walk_tables *t, const struct unwind_table *table, uint64_t base,
	       struct walk_pages *ret, struct cairn_err *err);

/*
 * tables_drop - the rows of a file that nobody runs any more
 *
 * No segment has them, and no stack that is taken from now on: their room is used again. Rules
 * stay. Without memory the room is lost.
 */
void tables_drop(struct walk_tables *t, struct walk_pages pages);

/* ---- within this module ---- */

/* The rule's number; 0, which is none, when there is no room. 0 or -ENOMEM. */
int tables_number(struct walk_tables *t, const struct walk_rule *rule, uint16_t *ret);
bool tables_has_rule(const struct walk_tables *t, const struct walk_rule *rule);
/* Room for rows that stay together, at row_next of row_block; for records, at n_pages. */
int tables_reserve_rows(struct walk_tables *t, uint32_t n, struct cairn_err *err);
int tables_reserve_pages(struct walk_tables *t, uint32_t n, struct cairn_err *err);

/* The rule as the kernel's program has it. False: it has no room for it. */
bool tables_rule(const struct cairn_unwind_rule *rule, struct walk_rule *ret);

#endif
