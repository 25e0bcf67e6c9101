/* SPDX-License-Identifier: BSD-2-Clause */
/* `cairn trace -k`: the sources of answers about the kernel that runs. */
#ifndef CLI_TRACE_KERNEL_H
#define CLI_TRACE_KERNEL_H

#include "trace.h"

/*
 * As find_kernel of struct cairn_trace_opts; @ctx is the session. Failures are reported here, and
 * session->kernel_status is their exit status.
 */
int trace_kernel_find(void *ctx, const char *module, struct cairn_trace_kernel *ret,
		      struct cairn_err *err);

/* After the trace was closed. */
void trace_kernel_close(struct session *session);

/* Sites of a probe that were left out, as the kernel has freed their code. */
void trace_kernel_report(const struct cairn_trace_probe *probe, uint32_t n_left_out);

/* Losses that are not among the other counts. */
void trace_kernel_summary(const struct cairn_trace_stats *stats);

#endif
