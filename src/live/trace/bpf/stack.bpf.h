/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The stacks of hits (abi.h); part of trace.bpf.c
 *
 * A stack is sent once, before the first event that has it: the event has its two hashes. What was
 * sent is remembered in slots by the hash, so that a stack may be sent again, and none is left out.
 *
 * The walk begins in the program itself, as functions can be nested eight deep and the walk needs
 * seven. It reads memory that is there and does not sleep, so that few walks of a processor are in
 * progress at a time. When all are taken, the hit has no stack, and says so.
 *
 * A hit in the kernel has the kernel's frames first, which the kernel walks itself, and then those
 * of the program that it works for, from the registers with which that was left.
 */
#ifndef TRACE_STACK_BPF_H
#define TRACE_STACK_BPF_H

#define WALK_HEAD              struct trace_stack
#define WALK_OWN               __u64
/* The caller of a function that has a return probe. */
#define WALK_RETURN(pc, place) true_return(pc, place)
#include "walk/bpf/walk_run.bpf.h"
#include "walk/bpf/walk_task.bpf.h"

/* TRACE_SEEN_SLOTS of them. */
struct trace_seen {
	__u64 id[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TRACE_SEEN_SLOTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct trace_seen);
} seen SEC(".maps");

/* enum trace_stack_kind; most frames of a stack. */
const volatile __u32 stacks_of = TRACE_STACKS_NONE;
const volatile __u32 stack_frames = WALK_MAX_FRAMES;

/* Stacks that hits have not, as a reader is too slow, or more hits came at a time than have room. */
__u64 n_stacks_lost = 0;

/* Of the stack without its first frame only the next one. */
__noinline int keep_caller(struct walk *w)
{
	if (!w)
		return 0;
	w->hash = seed;
	w->other_hash = ~seed;
	w->n_exact = w->n_exact && (w->exact[0] & ~WALK_EXACT_SIGNAL) == 1;
	w->exact[0] &= WALK_EXACT_SIGNAL;
	if (w->n < 2) {
		w->n = w->has_unfiled = 0;
		return 0;
	}
	w->n = 1;
	w->frames[0] = w->frames[1];
	w->has_unfiled = (w->frames[0] & WALK_RAW) != 0;
	add_hash(w, w->frames[0]);
	/* The walk was to end here. */
	if (w->end == WALK_END_LIMIT)
		w->end = WALK_END_COMPLETE;
	return 0;
}

/* Both hashes; sends the stack if it is new. Returns whether the reader has it. */
__noinline int send_stack(struct walk *w)
{
	struct trace_seen *sent;
	__u32 slot, n;

	if (!w)
		return 0;
	/* A frame of no file is one of this process only. */
	if (w->has_unfiled)
		add_hash(w, w->head.pid);
	add_hash(w, w->end);
	w->head.id[0] = w->hash | 1;
	w->head.id[1] = w->other_hash;
	slot = (__u32)(w->hash >> 1) & (TRACE_SEEN_SLOTS - 1);
	sent = bpf_map_lookup_elem(&seen, &slot);
	if (!sent)
		return 0;
	if (sent->id[0] == w->head.id[0] && sent->id[1] == w->head.id[1])
		return 1;
	n = w->n_kernel + w->n;
	if (n > WALK_MAX_KERNEL + WALK_MAX_FRAMES)
		n = WALK_MAX_KERNEL + WALK_MAX_FRAMES;
	w->head.mark = 0;
	w->head.time_ns = bpf_ktime_get_ns();
	w->head.generation = w->process.generation;
	w->head.n = (__u16)n;
	w->head.n_kernel = (__u8)w->n_kernel;
	w->head.end = w->end;
	w->head.n_exact = w->n_exact;
	for (__u32 i = 0; i < WALK_EXACT_MAX; i++)
		w->head.exact[i] = w->exact[i];
	if (bpf_ringbuf_output(&ring, &w->head, sizeof(w->head) + n * 8, BPF_RB_NO_WAKEUP))
		return 0;
	/* Between these two another processor may write its own: then neither is found, and sent again. */
	sent->id[0] = w->head.id[0];
	sent->id[1] = w->head.id[1];
	return 1;
}

/* The caller of an inlined copy: the number of the site. The id of a stack is odd. */
static __always_inline void use_caller(struct run *r, __u32 site)
{
	r->stack.id[0] = ((__u64)site + 1) << 1;
	r->stack.id[1] = 0;
}

/* Whether the task will return to a program, with registers that are then the walk's. */
static __noinline int take_user_regs(struct walk *w)
{
	return take_task_regs(w);
}

/* While a program is replaced, the registers are those of the old one, and the memory is not. */
static __always_inline int is_in_execve(void)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	return bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD(task, in_execve);
}

/* The kernel's frames, the site for the first. Returns whether they are all of them. */
static __noinline int take_kernel(void *ctx, struct walk *w, const struct trace_site_entry *entry,
				  __u32 site)
{
	long n = entry->moves_stack ? 0 : bpf_get_stack(ctx, w->frames, WALK_MAX_KERNEL * 8, 0);

	w->n_kernel = n > 8 ? (__u32)n / 8 : 1;
	if (w->n_kernel > WALK_MAX_KERNEL)
		w->n_kernel = WALK_MAX_KERNEL;
	w->frames[0] = TRACE_SITE_FRAME(site);
	w->end = WALK_END_COMPLETE;
	if (n <= 0)
		w->end = entry->moves_stack ? WALK_END_LOST : WALK_END_NO_USER;
	else if (w->n_kernel >= WALK_MAX_KERNEL)
		w->end = WALK_END_LIMIT;
	return w->end == WALK_END_COMPLETE;
}

/* No more than are wanted; of a caller alone the next frame. Returns whether more are. */
static __always_inline int keep_wanted(struct walk *w, int is_whole)
{
	if (stacks_of == TRACE_STACKS_CALLER) {
		w->frames[0] = w->frames[1];
		w->n_kernel = w->n_kernel > 1;
		return 0;
	}
	if (w->n_kernel > stack_frames) {
		w->n_kernel = stack_frames;
		w->end = WALK_END_LIMIT;
		return 0;
	}
	return is_whole;
}

__noinline int hash_kernel(struct walk *w)
{
	if (!w)
		return 0;
	for (__u32 i = 0; i < WALK_MAX_KERNEL && i < w->n_kernel; i++)
		add_hash(w, w->frames[i]);
	return 0;
}

/* Returns whether the stack goes on in a program. */
static __noinline int walk_kernel(void *ctx, struct walk *w, const struct trace_site_entry *entry,
				  __u32 site)
{
	int is_whole = take_kernel(ctx, w, entry, site), goes_on = keep_wanted(w, is_whole);

	w->n_exact = 0;
	w->has_unfiled = 0;
	hash_kernel(w);
	if (!goes_on || !take_user_regs(w))
		return 0;
	w->max_frames = stack_frames - w->n_kernel;
	if (!is_in_execve())
		return 1;
	w->end = WALK_END_NO_PROCESS;
	return 0;
}

static __always_inline void begin_at_hit(struct walk *w, const struct run *r)
{
	w->pc = r->m.file[FETCH_FILE_IP];
#pragma unroll
	for (int i = 0; i < N_REGS; i++)
		w->regs[i] = r->m.file[i];
}

/* The stack of a hit becomes r->stack. */
static __always_inline void take_stack(void *ctx, struct run *r,
				       const struct trace_site_entry *entry, __u32 site)
{
	struct walk *w = take_walk(bpf_get_smp_processor_id());
	int is_of_user = 1;

	r->stack.id[0] = r->stack.id[1] = 0;
	r->stack.generation = r->stack.pad = 0;
	if (!w) {
		__sync_fetch_and_add(&n_stacks_lost, 1);
		return;
	}
	/* The key is there, as the program's stack has no room for it. */
	w->head.pid = (__u32)(r->ids >> 32);
	use_process(w, bpf_map_lookup_elem(&processes, &w->head.pid));
	w->hash = seed;
	w->other_hash = ~seed;
	w->n = w->n_kernel = 0;
	w->max_frames = stack_frames;
	w->n_reads = 0;
	if (of_kernel)
		is_of_user = walk_kernel(ctx, w, entry, site);
	else
		begin_at_hit(w, r);
	if (is_of_user)
		walk_user(w);
	if (stacks_of == TRACE_STACKS_CALLER && !of_kernel)
		keep_caller(w);
	if (send_stack(w)) {
		r->stack.id[0] = w->head.id[0];
		r->stack.id[1] = w->head.id[1];
		r->stack.generation = w->process.generation;
	} else {
		__sync_fetch_and_add(&n_stacks_lost, 1);
	}
	leave_walk(w);
}

#endif
