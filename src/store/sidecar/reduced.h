/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * .cairn.dwarf: the data that queries inside functions need, as DWARF that has nothing else
 *
 * The location of a parameter changes with nearly every instruction, and the code around it decides
 * whether it is reliable. Answers for all addresses would be larger than the descriptions that they
 * are made of. So the descriptions are kept: functions, inlined copies, parameters with their
 * locations, and call site values. The code that reads the debug information also reads these
 * (sites/scopes_at.c), so both give the same answers. Differences from ordinary DWARF:
 *
 *     types         a parameter has the number of a record of .cairn.types (DW_AT_cairn_type). Its
 *                   DW_AT_type leads to a stand-in with the few facts that locations depend on: the
 *                   size, whether it is a _Bool, whether it is passed by reference.
 *     other copies  GCC may describe a removed parameter by another copy's value
 *                   (sites/quirks/removed_param.c).
 *                   Finding this out takes line tables, so it is done when the section is made
 *                   (DW_AT_cairn_another_call).
 *     call sites    only direct calls of functions that ask for the value of a register at their
 *                   entry.
 *
 *	reduced.c	finds the needed parts, and writes them
 *	reduced_out.c	units, abbreviations and references into sections
 *	reduced_expr.c	location expressions
 *	reduced_read.c	the section as provider of answers
 */
#ifndef SIDECAR_REDUCED_H
#define SIDECAR_REDUCED_H

#include "sidecar/bytes.h"
#include "sidecar/site_table.h"

#define REDUCED_SECTION ".cairn.dwarf"

/*
 * reduced_make - the section's bytes: an ELF file
 *
 * @p      the table whose sites were visited, and whose types are not finished: those of parameters
 *	    are added
 * @ret_n  functions and inlined copies in it
 * Returns 0, -EBADMSG, -EOPNOTSUPP (addresses that have not 8 bytes), -ERANGE, -ENOMEM. Same bytes
 * for any number of threads.
 */
int reduced_make(struct site_table *p, unsigned int threads, struct bytes *ret, uint64_t *ret_n,
		 struct cairn_err *err);

/* ---- reading ---- */

struct cairn_sidecar;
struct sidecar_types;
struct reduced;

/*
 * reduced_open - read the section of a sidecar
 *
 * @bin     with the code of which it is
 * @types   gets the types of parameters
 * Returns 0, -EOPNOTSUPP (the sidecar has no such section), -ESTALE (it is of other code),
 * -EBADMSG, -ENOMEM. Cost: reads all of the section, and hashes all code.
 */
int reduced_open(const struct cairn_sidecar *sidecar, const struct cairn_binary *bin,
		 struct sidecar_types *types, struct reduced **ret, struct cairn_err *err);
void reduced_close(struct reduced *r);

/* As cairn_sites_at() and cairn_sites_call_value(). */
int reduced_at(struct reduced *r, struct cairn_vaddr pc, bool is_exact,
	       const struct cairn_scope **ret, struct cairn_err *err);
int reduced_passed(struct reduced *r, struct cairn_vaddr callee, struct cairn_vaddr caller_pc,
		   const struct cairn_loc_step *asked, struct cairn_location *ret,
		   struct cairn_err *err);

/*
 * Every DIE, attribute and list, for cairn_sidecar_check(); 0 without the section. Returns 0,
 * -EBADMSG, -ENOMEM.
 */
int reduced_check(const struct cairn_sidecar *sidecar, struct cairn_err *err);

#endif
