/* SPDX-License-Identifier: BSD-2-Clause */
/* The limit of the places of a trace in the kernel, and what is said of more. */
#ifndef TRACE_KERNEL_LIMIT_H
#define TRACE_KERNEL_LIMIT_H

#include "trace/trace.h"

/*
 * All places of a trace. Each inlined copy is a probe of its own, with a descriptor, and the kernel
 * waits for all processors when it removes one: 10,000 take minutes.
 */
#define KERNEL_SITES_MAX 10000

/*
 * kernel_limit_check - whether the places of functions fit in a trace, before any is planned
 *
 * @spec  what the functions were found by, without the module
 * Returns 0; -ERANGE with their number, the limit, its reason, and what would fit.
 */
int kernel_limit_check(const struct cairn_trace *t, const struct trace_file *f,
		       const struct cairn_function_list *list, const char *probe, const char *spec,
		       struct cairn_err *err);

/* The same for a pattern of more functions than can be found at once. -ERANGE, or -ENOMEM. */
int kernel_limit_exceeded(const struct cairn_trace *t, const struct trace_file *f,
			  const char *probe, const char *spec, struct cairn_err *err);

#endif
