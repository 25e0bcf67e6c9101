/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The instructions by which a body is left
 *
 * Where a return probe would do harm, a probe on each return instruction does not: it changes
 * nothing on the stack. That takes all of them to be known, and that the function is left by
 * nothing else: after a jump into another function (a tail call) it is this one that returns.
 */
#ifndef TRACE_EXITS_H
#define TRACE_EXITS_H

#include "trace/trace.h"

struct trace_exits {
	uint32_t n;
	const uint64_t *offsets; /* in the file */
};

/*
 * exits_find - the exits of a body
 *
 * @ret_why  why they are not known, for people; NULL: they are
 * Returns 0 or -ENOMEM.
 * Cost: decodes the function.
 */
int exits_find(struct cairn_trace *t, const struct trace_file *f, const struct cairn_site *site,
	       struct trace_exits *ret, const char **ret_why, struct cairn_err *err);

#endif
