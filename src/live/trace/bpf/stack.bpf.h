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
 */
#ifndef TRACE_STACK_BPF_H
#define TRACE_STACK_BPF_H

#define WALK_HEAD              struct trace_stack
#define WALK_OWN               __u64
/* The caller of a function that has a return probe. */
#define WALK_RETURN(pc, place) true_return(pc, place)
#include "walk/bpf/walk_run.bpf.h"

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
	n = w->n < WALK_MAX_FRAMES ? w->n : WALK_MAX_FRAMES;
	w->head.mark = 0;
	w->head.time_ns = bpf_ktime_get_ns();
	w->head.generation = w->process.generation;
	w->head.n = (__u16)n;
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

/* The stack of a hit becomes r->stack. */
static __always_inline void take_stack(struct run *r)
{
	__u32 tgid = (__u32)(r->ids >> 32);
	struct walk *w = take_walk(bpf_get_smp_processor_id());

	r->stack.id[0] = r->stack.id[1] = 0;
	r->stack.generation = r->stack.pad = 0;
	if (!w) {
		__sync_fetch_and_add(&n_stacks_lost, 1);
		return;
	}
	use_process(w, bpf_map_lookup_elem(&processes, &tgid));
	w->head.pid = tgid;
	w->hash = seed;
	w->other_hash = ~seed;
	w->n = w->n_kernel = 0;
	w->max_frames = stack_frames;
	w->n_reads = 0;
	w->pc = r->m.file[FETCH_FILE_IP];
#pragma unroll
	for (int i = 0; i < N_REGS; i++)
		w->regs[i] = r->m.file[i];
	walk_user(w);
	if (stacks_of == TRACE_STACKS_CALLER)
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
