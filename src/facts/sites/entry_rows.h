/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Further entries of inlined copies, from the line table
 *
 * A copy has one DIE and at most one DW_AT_entry_pc. But the compiler may duplicate its code
 * afterwards: unroll the loop around it, peel off an iteration, thread a jump. Each duplicate is
 * entered by calls of its own, and nothing in .debug_info says so: a tracer that knows only
 * entry_pc silently misses those calls.
 *
 * GCC emits a marker at each entry, and duplicates it with the code. In the line table a marker is
 * a row with is_stmt at the very position of the function's declaration, and a view:
 *
 *	f54 is declared at prog.h:302:56
 *	0x3fc0  prog.h:302:56  is_stmt  view 2	   the copy's DW_AT_entry_pc and entry view
 *	0x4015  prog.h:302:56  is_stmt  view 10	   the same copy in the unrolled half of the loop
 *
 * No instruction gets such a row: with markers GCC sets is_stmt for markers only. A function that
 * comes out of a macro is the exception: all of it has the position of the macro's use. Its rows
 * are not used.
 */
#ifndef SITES_ENTRY_ROWS_H
#define SITES_ENTRY_ROWS_H

#include "sites/group.h"

/*
 * entry_rows_collect - fill group.rows of all groups: every row at the position of a function's
 * declaration, in units that have copies of it with an entry view, in order of unit and program
 *
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ENOMEM.
 * Cost: decodes the line tables of those units once, in parallel, keeping matches only.
 */
int entry_rows_collect(const struct site_env *env, unsigned int threads, struct groups *groups,
		       struct cairn_err *err);

/*
 * The same rows unit by unit, for callers that process all functions of a unit and not all units of
 * a function.
 */
struct entry_rows {
	struct row_list *of_unit; /* in order of group, and of the program */
	struct entry_row_list *found;
	unsigned int n_found;
};

/*
 * Instead of group.rows, fills @ret; entry_rows_fini() in any case. Returns and costs as
 * entry_rows_collect().
 */
int entry_rows_by_unit(const struct site_env *env, unsigned int threads, struct groups *groups,
		       struct entry_rows *ret, struct cairn_err *err);
void entry_rows_fini(struct entry_rows *r);

#endif
