/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions of the kernel from which it cannot walk a stack. */
#ifndef TRACE_KERNEL_TEXT_H
#define TRACE_KERNEL_TEXT_H

#include "trace/trace.h"

/* Sets moves_stack of the trace's sites, true also where code cannot be read. */
void kernel_text_look(struct cairn_trace *t);

/* Whether the instruction that is probed moves the stack pointer, and is one byte. @code: of 5. */
bool kernel_text_moves_stack(const uint8_t *code);

#endif
