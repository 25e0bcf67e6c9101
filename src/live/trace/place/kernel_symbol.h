/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols of the running kernel, where the debug information has no such function. */
#ifndef TRACE_KERNEL_SYMBOL_H
#define TRACE_KERNEL_SYMBOL_H

#include "trace/trace.h"

/* As resolve_symbol(), of a source of kernel probes. */
int kernel_symbol_resolve(struct cairn_trace *t, const struct trace_file *f, const char *spec,
			  struct trace_targets *ret, struct cairn_err *err);

/*
 * kernel_symbol_offset - an instruction of the code that a symbol names, as a site
 *
 * Returns 0; -ENXIO, -ENOTUNIQ, and the errors of kernel_code_find().
 */
int kernel_symbol_offset(const struct trace_file *f, const char *name, uint64_t off,
			 struct cairn_site *ret, struct cairn_err *err);

#endif
