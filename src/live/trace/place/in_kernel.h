/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes of the running kernel
 *
 * A trace has probes of the kernel or of programs. A place in the kernel is a kprobe, and the
 * source of answers is the caller's (find_kernel of the options).
 */
#ifndef TRACE_IN_KERNEL_H
#define TRACE_IN_KERNEL_H

#include "trace/trace.h"

/* True if the probes of the trace are of the kernel, as far as there are any. */
bool in_kernel(const struct cairn_trace *t);

/* Whether a probe's head is about the kernel. */
bool in_kernel_is_head(const struct cairn_trace *t, const char *head);

/*
 * in_kernel_resolve - the source of such a head, with its sites, and the SPEC of a function
 *
 * Returns 0, or negative: -EOPNOTSUPP with what is not there of kernel probes; as opts.find_kernel.
 */
int in_kernel_resolve(struct cairn_trace *t, const struct probe_text *text, struct trace_file **ret,
		      const char **ret_spec, struct cairn_err *err);

/*
 * in_kernel_lines - from now on the debug information answers, if there is any: a sidecar has no
 * lines of functions
 *
 * Returns 0, or the errors of cairn_sites_open().
 */
int in_kernel_lines(const struct cairn_trace *t, struct trace_file *f, struct cairn_err *err);

/*
 * in_kernel_plan - whether a site's code is there; then where, and why it is refused, if it is
 */
bool in_kernel_plan(const struct trace_probe *p, const struct cairn_site *site, bool best_effort,
		    struct trace_site *planned);

/* How code of a file is moved, as far as a fetch program needs to know. */
struct fetch_slide in_kernel_slide(const struct trace_file *f, const struct trace_site *site);

/* After planning a function: -ERANGE for too many places, -ENXIO when all are left out. */
int in_kernel_check_sites(const struct cairn_trace *t, const struct trace_probe *p,
			  struct cairn_err *err);

/*
 * in_kernel_check - before anything is attached: whether the kernel has kprobes and allows them,
 * and the modules are loaded
 *
 * Returns 0; -EOPNOTSUPP without best effort; -EPERM; -ESTALE.
 */
int in_kernel_check(const struct cairn_trace *t, struct cairn_err *err);

/* True if there are kernel probes, and the kernel has no kprobes. */
bool in_kernel_has_no_kprobes(const struct cairn_trace *t);

/* Attached sites in modules that are not loaded any more. */
uint32_t in_kernel_unloaded(const struct cairn_trace *t);

#endif
