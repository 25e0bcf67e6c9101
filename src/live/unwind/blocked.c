/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads in state D
 *
 * A thread that waits for a disk, or for the child of its vfork(2), takes no signal and cannot be
 * stopped. It does not run either, and proc_pid_syscall(5) has its system call, six arguments in
 * their registers, stack pointer and program counter:
 *
 *	58 0x0 0x7ffd... 0x... 0x... 0x... 0x... 0x7ffd4c5b2a28 0x7f10a2d0b5c6
 *
 * The thread may go on at any time, so the caller checks again after it read the stack.
 */
#include "unwind/blocked.h"

#include <inttypes.h>
#include <stdio.h>

enum { RSP = 7, N_ARGS = 6 };

/*
 * rdi, rsi, rdx, r10, r8, r9: the kernel gives them back as they were. vfork() has its return
 * address in the first.
 */
static const uint8_t args[N_ARGS] = {5, 4, 1, 10, 8, 9};

bool blocked_regs(int pid, int tid, struct cairn_regs *ret)
{
	char name[64];
	uint64_t a[N_ARGS], sp, pc;
	long number;
	snprintf(name, sizeof(name), "/proc/%d/task/%d/syscall", pid, tid);
	FILE *file = fopen(name, "re");
	if (!file)
		return false;
	bool ok = fscanf(file,
			 "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
			 " %" SCNx64 " %" SCNx64,
			 &number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &sp, &pc) == 9;
	fclose(file);
	if (!ok || number < 0)
		return false;
	*ret = (struct cairn_regs){.pc = {pc}, .known = 1 << RSP};
	ret->r[RSP] = sp;
	for (size_t i = 0; i < N_ARGS; i++) {
		ret->r[args[i]] = a[i];
		ret->known |= UINT32_C(1) << args[i];
	}
	return true;
}
