/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The BPF programs of a profile: one takes samples, the others keep track of processes
 *
 * A sample is 64 bytes in the ring. Its stack is a hash; the frames follow only when the processor
 * has not sent this stack lately. Nothing is counted in the kernel, so nothing can be full there.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "../abi.h"

#define CORE __attribute__((preserve_access_index))

struct mm_struct;

struct task_struct {
	int pid;
	int tgid;
	unsigned int flags;
	unsigned int __state;
	char comm[16];
	struct mm_struct *mm;
} CORE;

struct task_struct___old {
	long state; /* before 5.14 */
} CORE;

#define FETCH_NEVER_SLEEPS
#define FETCH_FILE 32
#include "trace/bpf/fetch.bpf.h"

/* A run of a fetch program is here, as a function's stack has little room. */
#define WALK_HEAD struct prof_sample
#define WALK_OWN  struct run
#include "walk/bpf/walk_run.bpf.h"
#include "walk/bpf/walk_task.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} ring SEC(".maps");

/* Events of which every so many are a sample; on each processor. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} events SEC(".maps");

/* Stacks that were sent. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROF_SEEN_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} cgroup SEC(".maps");

/* Threads that are blocked, with the sample that their waking ends. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct prof_sample);
} blocked SEC(".maps");

struct counts {
	__u64 n_lost, walk_ns, n_filtered, n_undecided;
	__u64 n_waiting,
		n_late; /* samples that began to wait for their task, and those that came */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

const volatile __u8 all = 0, with_kernel = 1, in_cgroup = 0;
const volatile __u32 own_tgid = 0;
/* For events that the program counts itself; 1: each is a sample. */
const volatile __u64 period = 1;
const volatile __u64 wakeup_bytes = 1 << 19;
/* Another one makes other hashes: all stacks are sent again. */
volatile __u64 window = 0;
/* The profiler's pid namespace when it is not the first one; else 0. */
const volatile __u64 pidns_dev = 0, pidns_ino = 0;

/* Numbers as the profiler knows them. False: the task is not in its namespace. */
static __always_inline int current_ids(__u32 *tgid, __u32 *tid)
{
	struct bpf_pidns_info ns;
	__u64 both;

	if (!pidns_ino) {
		both = bpf_get_current_pid_tgid();
		*tgid = both >> 32;
		*tid = (__u32)both;
		return 1;
	}
	if (bpf_get_ns_current_pid_tgid(pidns_dev, pidns_ino, &ns, sizeof(ns)))
		return 0;
	*tgid = ns.tgid;
	*tid = ns.pid;
	return 1;
}

__noinline int hash_kernel(struct walk *w)
{
	if (!w)
		return 0;
	for (__u32 i = 0; i < WALK_MAX_KERNEL && i < w->n_kernel; i++)
		add_hash(w, w->frames[i]);
	return 0;
}

static __always_inline void take_kernel(void *ctx, struct walk *w, __u64 skip)
{
	long n = bpf_get_stack(ctx, w->frames, WALK_MAX_KERNEL * 8, skip);

	w->n_kernel = n > 0 ? (__u32)n / 8 : 0;
	if (w->n_kernel > WALK_MAX_KERNEL)
		w->n_kernel = WALK_MAX_KERNEL;
	hash_kernel(w);
}

static __always_inline struct counts *own_counts(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counts, &zero);
}

/*
 * Atomic although it is the processor's own: a probe's program may be preempted by another one's.
 */
static __always_inline void count_lost(void)
{
	struct counts *c = own_counts();

	if (c)
		__sync_fetch_and_add(&c->n_lost, 1);
}

static __always_inline void output(const void *record, __u32 n)
{
	__u64 wake = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= wakeup_bytes
			     ? BPF_RB_FORCE_WAKEUP
			     : BPF_RB_NO_WAKEUP;

	if (!bpf_ringbuf_output(&ring, (void *)record, n, wake))
		return;
	count_lost();
}

/* The record of @w. Its frames follow when they were not sent before. */
static __always_inline void send(struct walk *w)
{
	__u32 slot = w->hash & (PROF_SEEN_SLOTS - 1), n = w->n_kernel + w->n;
	__u64 *sent = bpf_map_lookup_elem(&seen, &slot);

	w->head.stack = w->hash;
	w->head.end = w->end;
	w->head.n_kernel = (__u16)w->n_kernel;
	w->head.n_frames = 0;
	w->head.is_new = 0;
	if (!sent)
		return;
	if (*sent == w->hash) {
		output(&w->head, sizeof(w->head));
		return;
	}
	if (n > WALK_MAX_KERNEL + WALK_MAX_FRAMES)
		n = WALK_MAX_KERNEL + WALK_MAX_FRAMES;
	w->head.n_frames = (__u16)n;
	w->head.is_new = 1;
	__u64 wake = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= wakeup_bytes
			     ? BPF_RB_FORCE_WAKEUP
			     : BPF_RB_NO_WAKEUP;
	if (!bpf_ringbuf_output(&ring, &w->head, sizeof(w->head) + n * 8, wake)) {
		*sent = w->hash;
		return;
	}
	count_lost();
}

/* Whether this event is one of which there is a sample. */
static __always_inline int is_due(void)
{
	__u32 zero = 0;
	__u64 *n;

	if (period == 1)
		return 1;
	n = bpf_map_lookup_elem(&events, &zero);
	return n && (__sync_fetch_and_add(n, 1) + 1) % period == 0;
}

/*
 * The walk for the running task when it is to be sampled; leave_walk() when it is done.
 */
static __always_inline struct walk *begin(__u32 *ret_tid)
{
	struct walk_process *p;
	struct walk *w;
	__u32 cpu = bpf_get_smp_processor_id(), tgid, tid;

	if (!current_ids(&tgid, &tid) || !tid || tgid == own_tgid)
		return NULL;
	p = bpf_map_lookup_elem(&processes, &tgid);
	if (!all && !(p && p->flags & WALK_IS_TARGET))
		return NULL;
	if (in_cgroup && bpf_current_task_under_cgroup(&cgroup, 0) != 1)
		return NULL;
	w = take_walk(cpu);
	if (!w) {
		count_lost();
		return NULL;
	}
	use_process(w, p);
	w->hash = w->other_hash = seed + window;
	w->max_frames = WALK_MAX_FRAMES;
	w->n = w->n_kernel = 0;
	w->n_reads = 0;
	w->head.time_ns = bpf_ktime_get_ns();
	w->head.weight = period;
	w->head.site = 0;
	w->head.state = PROF_WEIGHED;
	w->head.pid = tgid;
	w->head.tid = tid;
	w->head.cpu = (__u16)cpu;
	w->head.generation = w->process.generation;
	bpf_get_current_comm(w->head.comm, sizeof(w->head.comm));
	*ret_tid = tid;
	return w;
}

static __always_inline void finish(struct walk *w)
{
	/* The end counts, too, and 0 is no hash. */
	add_hash(w, w->end);
	w->hash |= 1;
}

static __always_inline void count_time(__u64 since)
{
	struct counts *c = own_counts();

	if (c)
		__sync_fetch_and_add(&c->walk_ns, bpf_ktime_get_ns() - since);
}

#include "late.bpf.h"

/* The stack of the running task, in the kernel or in its program. */
static __always_inline void take_sample(struct bpf_perf_event_data *ctx, struct walk *w,
					int may_wait)
{
	volatile const __u64 *regs = (void *)&ctx->regs;
	int has_user = 1;

	if ((__s64)ctx->regs.rip < 0) {
		if (with_kernel)
			take_kernel(ctx, w, 0);
		has_user = take_task_regs(w);
	} else {
#pragma unroll
		for (int i = 0; i < N_RAW_REGS; i++)
			w->raw[i] = regs[i];
		take_regs(w);
	}
	if (has_user)
		walk_user(w);
	else
		w->end = WALK_END_NO_USER;
	if (!may_wait || !waits_for_page(w)) {
		finish(w);
		send(w);
	}
	count_time(w->head.time_ns);
}

static __always_inline int sample(struct bpf_perf_event_data *ctx, int may_wait)
{
	__u32 tid;
	struct walk *w = begin(&tid);

	if (!w)
		return 0;
	if (is_due())
		take_sample(ctx, w, may_wait);
	leave_walk(w);
	return 0;
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, 0);
}

/* The kernel calls a program here when its task may wait. */
SEC("perf_event")
int on_sample_late(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, 1);
}

/* ---- tracepoints ---- */

static __always_inline int on_event(void *ctx)
{
	__u32 tid;
	struct walk *w = begin(&tid);

	if (!w)
		return 0;
	if (is_due()) {
		if (with_kernel)
			take_kernel(ctx, w, 0);
		if (take_task_regs(w))
			walk_user(w);
		else
			w->end = WALK_END_NO_USER;
		finish(w);
		send(w);
		count_time(w->head.time_ns);
	}
	leave_walk(w);
	return 0;
}

SEC("tp")
int on_tracepoint(void *ctx)
{
	return on_event(ctx);
}

/* The same where its number in tracefs cannot be read. */
SEC("raw_tp")
int on_raw_tracepoint(void *ctx)
{
	return on_event(ctx);
}

/* ---- probes ---- */

static __always_inline void count_refused(int holds)
{
	struct counts *c = own_counts();

	if (c)
		__sync_fetch_and_add(holds ? &c->n_undecided : &c->n_filtered, 1);
}

/*
 * Runs the part of a fetch program that begins at @pc. As condition_holds(); w->tree is where the
 * next part begins, and w->head.weight what the accumulator ends with. A function of its own, which
 * the verifier looks at once.
 */
__noinline int run_part(struct walk *w, __u32 pc)
{
	struct run *r;
	int result;

	if (!w)
		return -1;
	r = &w->own;
#pragma unroll
	for (int i = 0; i < N_REGS; i++)
		r->m.file[i] = w->regs[i];
	r->m.file[FETCH_FILE_IP] = w->pc;
	r->m.acc = 0;
	r->ids = bpf_get_current_pid_tgid();
	r->pc = pc;
	result = condition_holds(r);
	w->tree = r->pc;
	w->head.weight = r->m.acc;
	return result;
}

/* The weight of the hit, by the program at @pc. */
static __always_inline void take_weight(struct walk *w, __u32 pc, __u8 kind)
{
	w->head.weight = period;
	if (kind == TRACE_WEIGHT_NONE)
		return;
	w->head.state = PROF_UNAVAILABLE;
	if (kind == TRACE_WEIGHT_FETCHED)
		w->head.state = run_part(w, pc) < 0         ? PROF_NOT_READ
				: (__s64)w->head.weight < 0 ? PROF_TOO_LARGE
							    : PROF_WEIGHED;
	if (w->head.state != PROF_WEIGHED)
		w->head.weight = 0;
}

/* Whether the hit of w->head.site is one that was asked for. */
static __always_inline int is_hit(struct walk *w)
{
	const struct trace_site_entry *entry;
	__u32 site = w->head.site, pc;
	int holds;

	entry = bpf_map_lookup_elem(&sites, &site);
	if (!entry)
		return 0;
	pc = entry->op;
	if (entry->has_condition) {
		holds = run_part(w, pc);
		if (holds <= 0) {
			count_refused(holds);
			return 0;
		}
		pc = (__u32)w->tree;
	}
	take_weight(w, pc, entry->weight);
	return 1;
}

SEC("uprobe")
int on_probe(struct pt_regs *ctx)
{
	volatile const __u64 *regs = (void *)ctx;
	__u32 tid;
	struct walk *w = begin(&tid);

	if (!w)
		return 0;
	w->head.site = (__u32)bpf_get_attach_cookie(ctx);
#pragma unroll
	for (int i = 0; i < N_RAW_REGS; i++)
		w->raw[i] = regs[i];
	take_regs(w);
	if (is_hit(w) && is_due()) {
		walk_user(w);
		add_hash(w, w->head.site);
		finish(w);
		send(w);
		count_time(w->head.time_ns);
	}
	leave_walk(w);
	return 0;
}

/* ---- time blocked ---- */

/* Bits of task_struct, from <linux/sched.h>. */
enum { STATE_DEAD = 0x80 };

static __always_inline unsigned int state_of(struct task_struct *task)
{
	struct task_struct___old *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return (unsigned int)old->state;
}

/*
 * The sample of a thread that waits. One that is there already was not seen to end: kernels leave
 * out events of some tasks, and a thread that such a task makes way for runs again unseen.
 */
static __always_inline void keep_blocked(__u32 thread, const struct prof_sample *sample)
{
	if (!bpf_map_update_elem(&blocked, &thread, sample, BPF_NOEXIST))
		return;
	count_lost();
	bpf_map_update_elem(&blocked, &thread, sample, BPF_ANY);
}

/*
 * A thread that is about to wait: its stack now, the time when it runs again. @thread: its number
 * in the first pid namespace, by which on_switch() finds it.
 */
static __always_inline void on_block(void *ctx, __u32 thread)
{
	__u32 tid;
	struct walk *w = begin(&tid);
	struct prof_sample kept;

	if (!w)
		return;
	/* Without this program and what called it. */
	if (with_kernel)
		take_kernel(ctx, w, 2);
	if (take_task_regs(w))
		walk_user(w);
	else
		w->end = WALK_END_NO_USER;
	finish(w);
	w->head.state = PROF_STACK_ONLY;
	send(w);
	kept = w->head;
	keep_blocked(thread, &kept);
	count_time(kept.time_ns);
	leave_walk(w);
}

/* It does not run again, and its number will be another one's. */
static __always_inline void on_dead(__u32 thread)
{
	if (!bpf_map_delete_elem(&blocked, &thread))
		count_lost();
}

SEC("tp_btf/sched_switch")
int on_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	__u32 tid = (__u32)next->pid;
	struct prof_sample *s, sample;
	unsigned int state = ctx[0] ? 0 : state_of(prev);

	if (state & STATE_DEAD)
		on_dead((__u32)prev->pid);
	else if (state)
		on_block(ctx, (__u32)prev->pid);
	s = bpf_map_lookup_elem(&blocked, &tid);
	if (!s)
		return 0;
	sample = *s;
	bpf_map_delete_elem(&blocked, &tid);
	sample.weight = bpf_ktime_get_ns() - sample.time_ns;
	sample.state = PROF_WEIGHED;
	sample.is_new = 0;
	sample.n_frames = 0;
	output(&sample, sizeof(sample));
	return 0;
}

/* Elsewhere than in the first pid namespace the child's number is not the profiler's. */
SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];

	if (!pidns_ino)
		walk_forked((__u32)parent->tgid, (__u32)child->tgid);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *ctx)
{
	__u32 tgid, tid;

	if (current_ids(&tgid, &tid))
		walk_execed(tgid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
