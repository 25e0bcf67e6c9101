/* SPDX-License-Identifier: BSD-2-Clause */
/* The begin of a stack that was made by hand. Within this module only. */
#ifndef UNWIND_BEGIN_H
#define UNWIND_BEGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "code/memory.h"

/*
 * begin_of_context - whether @pc, a return address, is the one that makecontext(3) or boost.context
 * put on a new stack
 *
 * @ret_why  the owner of the stack, in static words
 * Cost: a read of the code around it. Threads: any.
 */
bool begin_of_context(uint16_t machine, const struct code_memory *code, uint64_t pc,
		      const char **ret_why);

/* The bytes that it looks at: before the address, and from it on. */
enum { BEGIN_BEFORE = 7, BEGIN_AFTER = 32 };

/*
 * begin_is_context - the same for code at hand
 *
 * @at  BEGIN_BEFORE bytes before it and BEGIN_AFTER from it on can be read. x86-64 only. Signals:
 *	safe.
 */
bool begin_is_context(const uint8_t *at, const char **ret_why);

#endif
