/* SPDX-License-Identifier: BSD-2-Clause */
/* One-liners of bpftrace as the options of `cairn trace`. */
#ifndef CLI_TRACE_SCRIPT_H
#define CLI_TRACE_SCRIPT_H

#include <cairn/script.h>

#include "cmd.h"
#include "trace_aggregate.h"

/* True if an operand is one. */
bool trace_script_is_given(const struct operands *operands);

/*
 * trace_script_take - the options and probes that a one-liner stands for
 *
 * @format  of the option, which is set by printf
 * @ret     freed by the caller; @probes borrow from it
 * Returns an exit status.
 */
int trace_script_take(const struct operands *operands, struct aggregate_values *aggregates,
		      const char **format, struct cairn_script **ret, struct operands *probes);

#endif
