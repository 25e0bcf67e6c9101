/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The BPF program of all user probes
 *
 * A hit does this: the cookie of the site gives its entry, the entry its fetch program, which is
 * run by a small interpreter: first the condition, without a record; then the values, straight into
 * the ring buffer.
 *
 * Why no scratch buffer per processor: a user probe's program may be preempted, and the one that
 * runs next on the same processor would write into the same buffer. A record reserved in the ring
 * belongs to one hit. The ring wants sizes known to the verifier, so there is one program per size
 * of record.
 *
 * Why the interpreter's state is not on the stack: from Linux 6.13 on a function that needs 64
 * bytes of stack or more has one stack per processor, and 49 bytes are rounded up to 64. The next
 * hit there overwrites it while this one is preempted or sleeps. So the state is in a run, which
 * belongs to one hit, and no function here may need more than 48 bytes. When the runs of a processor are all taken, the hit is lost, and counted.
 *
 * Why a table and not generated instructions: docs/fetch.md has the figures.
 *
 * Memory is read with bpf_probe_read_user() first, which never sleeps and fails on a page that is
 * not resident (a string literal never touched, memory swapped out). Then, if the kernel lets the
 * program sleep, bpf_copy_from_user() brings the page in. Only a read that fails there too is
 * reported as unreadable.
 *
 * Waking the reader costs an interrupt, so a hit does it only when an eighth of the ring is filled;
 * the reader looks by itself every few milliseconds.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "fetch.bpf.h"

/* x86-64, as the kernel lays it out for programs of this type. */
struct pt_regs {
	__u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax;
	__u64 rip, cs, flags, rsp, ss;
};

#define CORE __attribute__((preserve_access_index))

struct signal_struct {
	struct {
		int counter;
	} live;
} CORE;

struct uprobe_task;
struct xol_area;

struct mm_struct {
	struct {
		struct xol_area *xol_area;
	} uprobes_state;
} CORE;

struct task_struct {
	int pid;
	int tgid;
	unsigned int flags;
	unsigned int in_execve : 1;
	struct mm_struct *mm;
	struct uprobe_task *utask;
	struct signal_struct *signal;
	struct task_struct *group_leader;
	char comm[16];
} CORE;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace_counts_entry);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} ring SEC(".maps");

/* Traced processes when children are followed, or there are several; an entry is removed when its process ends. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u8);
} family SEC(".maps");

const volatile __u32 filter = TRACE_FILTER_NONE;
const volatile __u32 target_tgid = 0;
const volatile __u8 follow = 0;
/*
 * A cgroup, and the levels at which it may be around the task's own; any cgroup if the first level
 * is beyond the last.
 */
volatile __u64 cgroup_id = 0; /* of a directory that may be made again */
const volatile __u8 cgroup_first = 1, cgroup_last = 0;
/* The name of a process, and which of its bytes count: up to its NUL. */
const volatile __u64 comm_name[2] = {}, comm_mask[2] = {};
/*
 * The tracer's pid namespace when it is not the first one, to show the numbers that it knows; else
 * 0.
 */
const volatile __u64 pidns_dev = 0, pidns_ino = 0;
const volatile __u64 wakeup_bytes = 1 << 20;

/*
 * A hit is drawn if a random number of 32 bits is below this; 0: all are. The tracer may change it
 * at any time.
 */
__u32 draw_below = 0;

__u64 n_children = 0;
__u64 n_children_alive = 0;
__u64 n_family_full = 0;

static __always_inline void read_regs(const struct pt_regs *r, struct machine *m)
{
	m->file[0] = r->rax;
	m->file[1] = r->rdx;
	m->file[2] = r->rcx;
	m->file[3] = r->rbx;
	m->file[4] = r->rsi;
	m->file[5] = r->rdi;
	m->file[6] = r->rbp;
	m->file[7] = r->rsp;
	m->file[8] = r->r8;
	m->file[9] = r->r9;
	m->file[10] = r->r10;
	m->file[11] = r->r11;
	m->file[12] = r->r12;
	m->file[13] = r->r13;
	m->file[14] = r->r14;
	m->file[15] = r->r15;
	m->file[FETCH_FILE_IP] = r->rip;
}

/* Three arguments, and the end. */
#define STORES_INLINE 4

/* Keeps the compiler from proving a bound in a way that the verifier cannot follow. */
#define opaque(x) asm volatile("" : "+r"(x))

static __always_inline int store(char *rec, const __u32 rec_size, const struct fetch_op *op,
				 __u64 v)
{
	__u64 out = op->out;

	opaque(out);
#define STORE_CASE(type)                                                                           \
	case sizeof(type):                                                                         \
		if (out > rec_size - sizeof(type))                                                 \
			return 1;                                                                  \
		*(type *)(rec + out) = v;                                                          \
		return 0;
	switch (op->size) {
		STORE_CASE(__u8)
		STORE_CASE(__u16)
		STORE_CASE(__u32)
		STORE_CASE(__u64)
	}
	return 1;
}

static __always_inline int copy(char *rec, const __u32 rec_size, const struct fetch_op *op,
				__u64 from)
{
	__u64 out = op->out;

	opaque(out);
	from += op->imm;
#define COPY_CASE(log)                                                                             \
	case log:                                                                                  \
		if (rec_size < (1 << log) || out > rec_size - (1 << log))                          \
			return 1;                                                                  \
		return fetch_read(rec + out, 1 << log, from);
	switch (op->size) {
		COPY_CASE(0)
		COPY_CASE(1)
		COPY_CASE(2)
		COPY_CASE(3)
		COPY_CASE(4)
		COPY_CASE(5)
		COPY_CASE(6)
		COPY_CASE(7)
		COPY_CASE(8)
		COPY_CASE(9)
		COPY_CASE(10)
		COPY_CASE(11)
	}
	return 1;
}

static __always_inline int string(char *rec, const __u32 rec_size, const struct fetch_op *op,
				  __u64 from)
{
	__u64 out = op->out;
	__u32 max = 0;
	long len = -1;
	char last = 0;

	opaque(out);
#define STRING_CASE(log)                                                                           \
	case log:                                                                                  \
		if (rec_size < (1 << log) + 2 || out > rec_size - (1 << log) - 2)                  \
			return 1;                                                                  \
		max = 1 << log;                                                                    \
		len = fetch_read_str(rec + out + 2, 1 << log, from);                               \
		break;
	switch (op->size) {
		STRING_CASE(4)
		STRING_CASE(5)
		STRING_CASE(6)
		STRING_CASE(7)
		STRING_CASE(8)
		STRING_CASE(9)
		STRING_CASE(10)
		STRING_CASE(11)
	}
	if (len < 0 || out > rec_size - 2)
		return 1;
	/* A string that fills its slot exactly, or one that goes on after it? */
	if (len == max && !fetch_read(&last, 1, from + max - 1) && last)
		len |= TRACE_STRING_CUT;
	*(__u16 *)(rec + out) = len;
	return 0;
}

static __always_inline int bytes(char *rec, const __u32 rec_size, const struct fetch_op *op,
				 __u64 from, __u64 n)
{
	__u64 out = op->out;

	opaque(out);
#define BYTES_CASE(log)                                                                            \
	case log:                                                                                  \
		if (rec_size < (1 << log) || out > rec_size - (1 << log))                          \
			return 1;                                                                  \
		if (n > (1 << log))                                                                \
			n = 1 << log;                                                              \
		return fetch_read(rec + out, n, from);
	switch (op->size) {
		BYTES_CASE(4)
		BYTES_CASE(5)
		BYTES_CASE(6)
		BYTES_CASE(7)
		BYTES_CASE(8)
		BYTES_CASE(9)
		BYTES_CASE(10)
		BYTES_CASE(11)
	}
	return 1;
}

static __always_inline long fetch_step(struct run *r, char *rec, const __u32 rec_size)
{
	__u32 pc = r->pc;
	const struct fetch_op *op = bpf_map_lookup_elem(&ops, &pc);
	int bad;

	if (!op || op->code == FETCH_END)
		return 1;
	r->pc = ++pc;
	switch (op->code) {
	case FETCH_STORE_REG:
		bad = store(rec, rec_size, op, r->m.file[op->reg & (FETCH_FILE - 1)]);
		break;
	case FETCH_STORE:
		bad = store(rec, rec_size, op, r->m.acc);
		break;
	case FETCH_COPY:
		bad = copy(rec, rec_size, op, r->m.acc);
		break;
	case FETCH_STRING:
		bad = string(rec, rec_size, op, r->m.acc);
		break;
	case FETCH_BYTES:
		bad = bytes(rec, rec_size, op, r->m.acc, r->m.file[op->reg & (FETCH_FILE - 1)]);
		break;
	default:
		bad = run_step(op, r);
	}
	if (bad) {
		r->faults |= 1u << (op->value & 31);
		r->pc = pc + op->jump;
	}
	return 0;
}

/*
 * Most values are integers and pointers in registers: the first ones are stored without the loop.
 * Returns whether that was all; else pc is where the loop goes on.
 */
static __always_inline int store_registers(struct run *r, char *rec, const __u32 rec_size)
{
#pragma unroll
	for (int i = 0; i < STORES_INLINE; i++) {
		__u32 pc = r->pc;
		const struct fetch_op *op = bpf_map_lookup_elem(&ops, &pc);

		if (!op || op->code == FETCH_END)
			return 1;
		__u64 reg = op->reg;
		/* The bound has to be seen by the verifier. */
		opaque(reg);
		if (op->code != FETCH_STORE_REG || reg > FETCH_FILE_IP ||
		    store(rec, rec_size, op, r->m.file[reg]))
			return 0;
		r->pc = pc + 1;
	}
	return 0;
}

static __always_inline void count(__u32 probe, int field)
{
	__u64 *c = bpf_map_lookup_elem(&counts, &probe);

	/*
	 * Atomic although per processor: the program may be preempted by another one in the middle.
	 */
	if (c)
		__sync_fetch_and_add(c + field, 1);
}

/* The numbers of struct trace_counts_entry, in its order. */
enum {
	LOST,
	FILTERED,
	UNDECIDED,
	FAILED,
	ENTERED,
	RETURNED,
	UNWOUND,
	TOO_DEEP,
	APART,
	UNDRAWN,
	ENTRIES_LOST
};

/* The first thread's name is the process's. */
static __always_inline int has_name(void)
{
	const struct task_struct *leader = bpf_get_current_task_btf()->group_leader;
	const __u64 *comm = (const void *)leader->comm;

	return (comm[0] & comm_mask[0]) == comm_name[0] && (comm[1] & comm_mask[1]) == comm_name[1];
}

static __noinline int is_in_cgroup(void)
{
	for (int level = cgroup_first; level <= cgroup_last; level++)
		if (bpf_get_current_ancestor_cgroup_id(level) == cgroup_id)
			return 1;
	return 0;
}

static __always_inline int wanted(__u32 tgid)
{
	if (filter == TRACE_FILTER_TGID)
		return tgid == target_tgid;
	if (filter == TRACE_FILTER_FAMILY)
		return bpf_map_lookup_elem(&family, &tgid) != NULL;
	if (filter == TRACE_FILTER_CHOSEN)
		return has_name() && (cgroup_first > cgroup_last || is_in_cgroup());
	return 1;
}

/*
 * Process and thread as the tracer's pid namespace numbers them, in the form that
 * bpf_get_current_pid_tgid() gives.
 */
static __always_inline __u64 current_ids(void)
{
	struct bpf_pidns_info ns;

	if (pidns_ino && !bpf_get_ns_current_pid_tgid(pidns_dev, pidns_ino, &ns, sizeof(ns)))
		return (__u64)ns.tgid << 32 | ns.pid;
	return bpf_get_current_pid_tgid();
}

static __always_inline __u64 wakeup(__u32 rec_size)
{
	__u64 filled = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);

	return filled >= wakeup_bytes && filled - rec_size - 8 < wakeup_bytes ? BPF_RB_FORCE_WAKEUP
									      : BPF_RB_NO_WAKEUP;
}

/*
 * The thread's name. bpf_get_current_comm() copies it byte by byte, which takes 60 ns; that is most
 * of the cost besides the trap. The last byte is always NUL; bytes after the first NUL are not
 * shown.
 */
static __always_inline void read_comm(struct trace_record *rec)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	const __u64 *from = (const void *)task->comm;
	__u64 *to = (__u64 *)rec->comm;

	to[0] = from[0];
	to[1] = from[1];
}

/* The site that was hit, if this process is traced. */
static __always_inline const struct trace_site_entry *entry_of(struct pt_regs *ctx, __u64 ids,
							       __u32 *site)
{
	if (!wanted(ids >> 32))
		return NULL;
	*site = bpf_get_attach_cookie(ctx);
	return bpf_map_lookup_elem(&sites, site);
}

static __always_inline void begin_run(struct pt_regs *ctx, struct run *r,
				      const struct trace_site_entry *entry)
{
	read_regs(ctx, &r->m);
	r->m.acc = 0;
	r->faults = 0;
	r->pc = entry->op;
}

/* TRACE_RUNS of each processor; of aggregates one per slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct run);
} runs SEC(".maps");

/* A hit in progress. */
struct work {
	struct run *run;
	char *rec; /* that the fetch program writes */
};

static long condition_step_of_work(__u32 i, struct work *w)
{
	return condition_step(i, w->run);
}

static __noinline int meets_condition(struct work *w, const struct trace_site_entry *entry)
{
	w->run->result = -1;
	REPEAT(condition_step_of_work, w);
	if (w->run->result > 0)
		return 1;
	count(entry->probe, w->run->result ? UNDECIDED : FILTERED);
	return 0;
}

/*
 * Each hit of each site is drawn by itself, so that no rhythm of the program matters. Counts it if
 * it is not.
 */
static __always_inline int is_drawn(const struct trace_site_entry *entry)
{
	__u32 limit = *(volatile __u32 *)&draw_below;

	if (!limit || bpf_get_prandom_u32() < limit)
		return 1;
	count(entry->probe, UNDRAWN);
	return 0;
}

/* Whether the hit is wanted; counts it if not. */
static __always_inline int is_wanted(struct work *w, const struct trace_site_entry *entry)
{
	return is_drawn(entry) && (!entry->has_condition || meets_condition(w, entry));
}

static __always_inline struct run *try_to_take(__u32 at)
{
	struct run *r = bpf_map_lookup_elem(&runs, &at);

	if (r && !*(volatile __u64 *)&r->is_taken &&
	    __sync_bool_compare_and_swap(&r->is_taken, 0, 1))
		return r;
	return NULL;
}

static __noinline struct run *take_another_run(__u32 first)
{
	for (__u32 i = 1; i < TRACE_RUNS; i++) {
		struct run *r = try_to_take(first + i);

		if (r)
			return r;
	}
	return NULL;
}

/* A run of this processor that no other hit has. NULL: there is none. */
static __always_inline struct run *take_run(void)
{
	__u32 first = bpf_get_smp_processor_id() * TRACE_RUNS;
	struct run *r = try_to_take(first);

	return r ? r : take_another_run(first);
}

/* No atomic operation: nobody else writes there, and x86 keeps the order of stores. */
static __always_inline void give_run_back(struct run *r)
{
	asm volatile("" : : : "memory");
	*(volatile __u64 *)&r->is_taken = 0;
}

#include "replaced.bpf.h"
#include "stack.bpf.h"

/* The end of a record, where the hit's stack is. */
static __always_inline void put_stack(char *rec, const __u32 rec_size, const struct run *r)
{
	if (stacks_of != TRACE_STACKS_NONE)
		*(struct trace_stack_ref *)(rec + rec_size - sizeof(r->stack)) = r->stack;
}

/* Whether calls have a record of their entry, too, and all records their depth. */
const volatile __u8 shows_calls = 0;

/* Where it is, if the trace shows calls: the end of the record. */
static __always_inline void put_call(char *rec, const __u32 rec_size, const struct run *r,
				     __u64 entered_ns, __u32 moment)
{
	struct trace_call_ref *ref = (void *)(rec + rec_size - sizeof(*ref));

	if (!shows_calls)
		return;
	ref->entered_ns = entered_ns;
	ref->depth = r->depth;
	ref->moment = moment;
}

/* A program with stacks, one without, and the latter once more for kprobe_multi links. */
#define HIT(name, size, with_stack)                                                                \
	SEC("uprobe")                                                                              \
	int name(struct pt_regs *ctx)                                                              \
	{                                                                                          \
		__u64 ids = current_ids();                                                         \
		__u32 site;                                                                        \
		const struct trace_site_entry *entry = entry_of(ctx, ids, &site);                  \
		struct work w;                                                                     \
                                                                                                   \
		if (!entry)                                                                        \
			return 0;                                                                  \
		w.run = take_run();                                                                \
		if (!w.run) {                                                                      \
			count(entry->probe, LOST);                                                 \
			return 0;                                                                  \
		}                                                                                  \
		w.run->ids = ids;                                                                  \
		begin_run(ctx, w.run, entry);                                                      \
		if (is_wanted(&w, entry)) {                                                        \
			if (with_stack)                                                            \
				take_stack(ctx, w.run, entry, site);                               \
			record_##size(&w, entry, site);                                            \
		}                                                                                  \
		give_run_back(w.run);                                                              \
		return 0;                                                                          \
	}

/* What each record begins with. */
static __always_inline void begin_record(struct trace_record *rec, const struct run *r, __u32 site)
{
	rec->time_ns = bpf_ktime_get_ns();
	rec->site = site;
	rec->pid = r->ids >> 32;
	rec->tid = r->ids;
	read_comm(rec);
}

#define HIT_PROGRAM(size)                                                                          \
	static long fetch_step_##size(__u32 i, struct work *w)                                     \
	{                                                                                          \
		return fetch_step(w->run, w->rec, size);                                           \
	}                                                                                          \
	static __noinline int record_##size(struct work *w, const struct trace_site_entry *entry,  \
					    __u32 site)                                            \
	{                                                                                          \
		struct trace_record *rec = bpf_ringbuf_reserve(&ring, size, 0);                    \
                                                                                                   \
		if (!rec) {                                                                        \
			count(entry->probe, LOST);                                                 \
			return 0;                                                                  \
		}                                                                                  \
		begin_record(rec, w->run, site);                                                   \
		w->rec = (char *)rec;                                                              \
		put_stack(w->rec, size, w->run);                                                   \
		put_call(w->rec, size, w->run, 0, TRACE_AT_HIT);                                   \
		if (!store_registers(w->run, w->rec, size))                                        \
			REPEAT(fetch_step_##size, w);                                              \
		rec->faults = w->run->faults;                                                      \
		bpf_ringbuf_submit(rec, wakeup(size));                                             \
		return 0;                                                                          \
	}                                                                                          \
	HIT(hit_##size, size, 0)                                                                   \
	HIT(multi_##size, size, 0)                                                                 \
	HIT(stacked_##size, size, 1)
TRACE_CLASSES(HIT_PROGRAM)

#include "aggregate.bpf.h"
#include "returns.bpf.h"
#include "copies.bpf.h"
#include "stacked_calls.bpf.h"

SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u32 from = parent->tgid, to = child->tgid;
	__u8 one = FAMILY_CHILD;

	if (from == to)
		return 0; /* a thread */
	if (filter == TRACE_FILTER_FAMILY ? !bpf_map_lookup_elem(&family, &from)
					  : from != target_tgid)
		return 0;
	__sync_fetch_and_add(&n_children, 1);
	if (!follow)
		return 0;
	if (bpf_map_update_elem(&family, &to, &one, BPF_ANY))
		__sync_fetch_and_add(&n_family_full, 1);
	else
		__sync_fetch_and_add(&n_children_alive, 1);
	return 0;
}

/* Its number may be given to a stranger: forget a process when its last thread ends. */
SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	__u32 tgid = task->tgid;
	const __u8 *kind;
	int is_child;

	if (task->signal->live.counter)
		return 0;
	kind = bpf_map_lookup_elem(&family, &tgid);
	is_child = kind && *kind == FAMILY_CHILD;
	if (!bpf_map_delete_elem(&family, &tgid) && is_child)
		__sync_fetch_and_add(&n_children_alive, -1);
	return 0;
}

/*
 * What is known of processes, for their stacks. Elsewhere than in the first pid namespace the child's
 * number is not the tracer's.
 */
SEC("tp_btf/sched_process_fork")
int on_walk_fork(__u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];

	if (!pidns_ino)
		walk_forked((__u32)parent->tgid, (__u32)child->tgid);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int on_walk_exec(__u64 *ctx)
{
	walk_execed(current_ids() >> 32);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
