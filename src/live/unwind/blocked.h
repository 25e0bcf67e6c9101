/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The position of a thread that waits in the kernel and cannot be stopped. Within this module only.
 */
#ifndef UNWIND_BLOCKED_H
#define UNWIND_BLOCKED_H

#include <cairn/unwind.h>

/*
 * blocked_regs - pc, stack pointer and arguments of a thread in a system call, by
 * /proc/PID/task/TID/syscall
 *
 * False when it runs, is gone, or may not be read. The other registers are not known.
 */
bool blocked_regs(int pid, int tid, struct cairn_regs *ret);

#endif
