/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The registers from which a walk of a program's stack begins. */
#ifndef WALK_WALK_TASK_BPF_H
#define WALK_WALK_TASK_BPF_H

#include "walk_maps.bpf.h"

/* PF_KTHREAD, and PF_IO_WORKER, whose user's registers are of no use. */
#define PF_NO_USER (0x00200000 | 0x00000010)

/* From w->raw, a struct pt_regs. */
static __always_inline void take_regs(struct walk *w)
{
	const struct pt_regs *r = (void *)w->raw;

	w->pc = r->rip;
	w->regs[0] = r->rax;
	w->regs[1] = r->rdx;
	w->regs[2] = r->rcx;
	w->regs[3] = r->rbx;
	w->regs[4] = r->rsi;
	w->regs[5] = r->rdi;
	w->regs[6] = r->rbp;
	w->regs[7] = r->rsp;
	w->regs[8] = r->r8;
	w->regs[9] = r->r9;
	w->regs[10] = r->r10;
	w->regs[11] = r->r11;
	w->regs[12] = r->r12;
	w->regs[13] = r->r13;
	w->regs[14] = r->r14;
	w->regs[15] = r->r15;
}

/* The registers with which the task will return to its program. */
static __always_inline int take_task_regs(struct walk *w)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	if (task->flags & PF_NO_USER)
		return 0;
	if (bpf_probe_read_kernel(w->raw, sizeof(w->raw), (void *)bpf_task_pt_regs((void *)task)))
		return 0;
	take_regs(w);
	return 1;
}

#endif
