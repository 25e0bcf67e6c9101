/* SPDX-License-Identifier: BSD-2-Clause */
/* abi.h for user space: the kernel's names of the fixed-width types, and proof of the layout. */
#ifndef TRACE_ABI_HOST_H
#define TRACE_ABI_HOST_H

#include <assert.h>
#include <stddef.h>

#include <linux/types.h>

#include "trace/abi.h"

static_assert(sizeof(struct fetch_op) == 16, "an operation is two words");
static_assert(offsetof(struct fetch_op, imm) == 8, "as the BPF program sees it");
static_assert(sizeof(struct trace_site_entry) == 16, "as the BPF program sees it");
static_assert(sizeof(struct trace_record) == 40, "values start at 40");

#endif
