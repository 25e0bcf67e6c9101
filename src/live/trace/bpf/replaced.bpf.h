/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Return addresses that return probes have replaced; part of trace.bpf.c
 *
 * The word on the stack is then the address of the kernel's trampoline. The kernel keeps the true
 * one in a list of the thread, newest call first: that of another tracer's probe, too. Of several
 * functions with one frame (tail calls) only the first has it.
 */
#ifndef TRACE_REPLACED_BPF_H
#define TRACE_REPLACED_BPF_H

struct xol_area {
	unsigned long vaddr;
} CORE;

struct return_instance {
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
} CORE;

struct uprobe_task {
	struct return_instance *return_instances;
} CORE;

/* The kernel follows 64 calls of a thread. */
#define RETURNS_MAX 64

/* The address that return probes replace return addresses with; 0: there is none yet. */
static __always_inline __u64 trampoline(void)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	const struct mm_struct *mm = task->mm;
	const struct xol_area *area = mm ? mm->uprobes_state.xol_area : NULL;

	return area ? area->vaddr : 0;
}

/* The return address at a place of the stack that has the trampoline's address; 0: unknown. */
static __noinline __u64 replaced_at(__u64 place, __u64 to)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	const struct uprobe_task *utask = task->utask;
	const struct return_instance *call = utask ? utask->return_instances : NULL;

	for (int i = 0; i < RETURNS_MAX && call; i++) {
		if (call->stack == place && call->orig_ret_vaddr != to)
			return call->orig_ret_vaddr;
		call = call->next;
	}
	return 0;
}

/* For the walk: the true return address, if @pc is not, which was at @place. */
static __always_inline __u64 true_return(__u64 pc, __u64 place)
{
	__u64 to = trampoline(), at;

	if (!to || pc != to)
		return pc;
	at = replaced_at(place, to);
	return at ? at : pc;
}

#endif
