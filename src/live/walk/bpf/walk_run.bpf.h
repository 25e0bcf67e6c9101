/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a program needs to begin a walk: room for it, the process that runs, and the two programs
 * that keep track of processes
 *
 * A program at a probe may be preempted by another one on its processor. So each takes a walk of
 * its own, and only the first uses the cache of the processor.
 */
#ifndef WALK_WALK_RUN_BPF_H
#define WALK_WALK_RUN_BPF_H

#include "walk_maps.bpf.h"
#include "learn.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WALK_MAX_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct walk_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

/* Walks of a processor; 1: none is interrupted by another. */
const volatile __u32 n_walks = 1;
/* Nobody can make two stacks of one hash who does not know it. */
const volatile __u64 seed = 0;

/* Number of a walk that is free, and is taken; WALK_MAX_WALKS: all are in use. */
__noinline int reserve_walk(void)
{
#pragma unroll
	for (int i = 0; i < WALK_MAX_WALKS; i++) {
		__u32 key = i;
		struct walk *w = bpf_map_lookup_elem(&walks, &key);

		if (w && (n_walks == 1 || !__sync_lock_test_and_set(&w->is_taken, 1)))
			return i;
	}
	return WALK_MAX_WALKS;
}

/* Room for a walk; NULL: all are in use. */
static __always_inline struct walk *take_walk(__u32 cpu)
{
	__u32 key = (__u32)reserve_walk();
	struct walk *w = bpf_map_lookup_elem(&walks, &key);

	if (w)
		w->cache = key ? WALK_NO_CACHE : cpu;
	return w;
}

static __always_inline void leave_walk(struct walk *w)
{
	if (n_walks > 1)
		__sync_lock_test_and_set(&w->is_taken, 0);
}

/* The walk is of this process; NULL: of one that is not known. */
static __always_inline void use_process(struct walk *w, const struct walk_process *p)
{
	if (p)
		w->process = *p;
	else
		w->process.flags = w->process.n = w->process.generation = 0;
}

/* A child has the mappings of its parent, and its stacks are wanted as those are. */
static __always_inline void walk_forked(__u32 from, __u32 to)
{
	struct walk_process *p, copy;

	if (from == to)
		return;
	p = bpf_map_lookup_elem(&processes, &from);
	if (!p) {
		bpf_map_delete_elem(&processes, &to);
		return;
	}
	copy = *p;
	bpf_map_update_elem(&processes, &to, &copy, BPF_ANY);
}

/* The mappings are others; nothing is known of them until they are reported. */
static __always_inline void walk_execed(__u32 tgid)
{
	struct walk_process *p = bpf_map_lookup_elem(&processes, &tgid);

	if (!p)
		return;
	p->flags = p->flags & (WALK_IS_TARGET | WALK_IS_COMMAND) ? WALK_IS_TARGET : 0;
	p->n = 0;
	p->generation = 0;
}

#endif
