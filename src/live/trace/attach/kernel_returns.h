/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of the kernel that a return probe does not see return. */
#ifndef TRACE_KERNEL_RETURNS_H
#define TRACE_KERNEL_RETURNS_H

#include "trace/trace.h"

/* Why such calls cannot be followed; NULL: they can. */
const char *kernel_returns_refused(const struct cairn_function *f);

#endif
