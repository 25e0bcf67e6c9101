/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which functions of a kernel ftrace does not trace
 *
 * Only files of this module include it. The rule is in kernel_code.c.
 */
#ifndef INSN_KERNEL_FTRACE_H
#define INSN_KERNEL_FTRACE_H

#include "base/cursor.h"
#include "base/map.h"
#include "base/vec.h"
#include "elf/functions_around.h"

/* The calls of ftrace in functions, and the functions that have one. */
struct ftrace_calls {
	VEC(uint64_t) at;  /* sorted */
	struct map traced; /* hashes of names */
};

void ftrace_calls_init(struct ftrace_calls *c);
void ftrace_calls_fini(struct ftrace_calls *c);

/* Reads the table of addresses. Returns 0, -ENOMEM. */
int ftrace_calls_read(struct ftrace_calls *c, struct cursor *table);

/* The next range that is not traced. Returns 0, -ENOMEM. */
typedef int silent_visitor(void *ctx, const struct function_range *r);

/*
 * ftrace_visit_silent - the functions that ftrace does not trace, in order
 *
 * A kernel without ftrace has no table, and none. Returns 0, -ENOMEM, or the first negative result
 * of @visit.
 */
int ftrace_visit_silent(struct ftrace_calls *c, const struct functions *functions,
			silent_visitor *visit, void *ctx);

/* The same of those at the addresses that @around is about. */
int ftrace_visit_silent_around(struct ftrace_calls *c, const struct cairn_binary *bin,
			       const struct functions_around *around, silent_visitor *visit,
			       void *ctx);

#endif
