/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of its memory that a thread may read without a fault; backtrace_memory.c explains them.
 * Within this module only.
 */
#ifndef UNWIND_BACKTRACE_MEMORY_H
#define UNWIND_BACKTRACE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Two ranges [lo, hi) that can be read: the thread's stack, and where else the walk came. {0} to
 * begin with.
 */
struct backtrace_memory {
	uint64_t lo, hi;
	uint64_t other_lo, other_hi;
};

/* Takes over the known part of the thread's stack from earlier walks. Signals: safe. */
void backtrace_memory_begin(struct backtrace_memory *m);

/*
 * backtrace_memory_has - whether [@at, @at + @n) can be read; @n is at most a page
 *
 * Cost: two comparisons inside the known part; beyond it a system call per page. Signals: safe,
 * errno is kept.
 */
bool backtrace_memory_has(struct backtrace_memory *m, uint64_t at, uint64_t n);

#endif
