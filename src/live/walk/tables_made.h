/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of code made at run time in the kernel, page by page
 *
 * Such code comes and goes. So each page of 64 KiB has its record and its rows for itself, which
 * never change while a walk may read them: new rows take another page, and the old one is dropped
 * when no walk can be in it.
 */
#ifndef WALK_TABLES_MADE_H
#define WALK_TABLES_MADE_H

#include "walk/tables.h"

/* From @at on, up to the next one, the rule with this number holds; 0: none. */
struct made_row {
	uint64_t at;
	uint16_t rule;
};

/* For all processes together, so that what JITs write leaves room for files. */
enum { TABLES_MADE_RULES = 1 << 14, TABLES_MADE_ROWS = 1 << 24 };

/*
 * tables_made_rule - the number of a rule
 *
 * *@ret is 0 when the kernel's program has no room for it, or too many rules were made at run time.
 * Returns 0 or -ENOMEM.
 */
int tables_made_rule(struct walk_tables *t, const struct cairn_unwind_rule *rule, uint16_t *ret);

/*
 * tables_put_page - a page of code
 *
 * @rows    of the page at @at, a multiple of 64 KiB; more than 65,535 are cut off
 * @before  the rule at its beginning
 * Returns 0 and the number of its record; -ENOSPC: there are too many, or the kernel has no room;
 * -ENOMEM.
 */
int tables_put_page(struct walk_tables *t, uint64_t at, const struct made_row *rows, size_t n,
		    uint16_t before, uint32_t *ret);
/* No walk can be in it. */
void tables_drop_page(struct walk_tables *t, uint32_t record);

#endif
