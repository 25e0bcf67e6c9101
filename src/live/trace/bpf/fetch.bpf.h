/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The interpreter of fetch programs (abi.h), for every program of the kernel that runs at a probe
 *
 * Here is all but what writes a record: values in the accumulator, and conditions. A number that a
 * probe computes is a condition of which the accumulator is looked at.
 */
#ifndef TRACE_FETCH_BPF_H
#define TRACE_FETCH_BPF_H

#include "../abi.h"
#include "binary.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(value, struct trace_site_entry);
} sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(value, struct fetch_op);
} ops SEC(".maps");

/*
 * Whether the program may sleep. With FETCH_NEVER_SLEEPS it has no code that could: the kernel
 * refuses such code in a global function of a program that may not, also where it is never reached.
 */
#ifdef FETCH_NEVER_SLEEPS
#define sleepable 0
#else
const volatile __u8 sleepable = 0;
#endif
/*
 * Whether the probes are of the kernel. Addresses of its half are then its own; the others are of
 * the process that it works for, which x86-64 tells by the highest bit.
 */
const volatile __u8 of_kernel = 0;
#define is_of_kernel(address) (of_kernel && (__s64)(address) < 0)
/* Whether the kernel has bpf_loop(). */
const volatile __u8 has_loop = 0;

struct machine {
	__u64 acc;
	__u64 file[FETCH_FILE];
	__u64 text[FETCH_STREQ_BYTES / 8]; /* that is compared */
};

static __always_inline int fetch_read(void *to, __u32 n, __u64 from)
{
	int e;

	if (is_of_kernel(from))
		return bpf_probe_read_kernel(to, n, (void *)from);
	e = bpf_probe_read_user(to, n, (void *)from);
	if (e && sleepable)
		e = bpf_copy_from_user(to, n, (void *)from);
	return e;
}

/* Length with NUL or negative. A string of at most 2048 bytes lies in at most two pages. */
static __always_inline long fetch_read_str(void *to, __u32 n, __u64 from)
{
	long len;
	char c;

	if (is_of_kernel(from))
		return bpf_probe_read_kernel_str(to, n, (void *)from);
	len = bpf_probe_read_user_str(to, n, (void *)from);
	if (len >= 0 || !sleepable)
		return len;
	if (bpf_copy_from_user(&c, 1, (void *)from))
		return len;
	bpf_copy_from_user(&c, 1, (void *)((from | 4095) + 1));
	return bpf_probe_read_user_str(to, n, (void *)from);
}

static __always_inline __u64 extend(__u64 v, __u8 size, int with_sign)
{
	__u32 shift = (64 - 8 * size) & 63;

	v <<= shift;
	return with_sign ? (__u64)((__s64)v >> shift) : v >> shift;
}

/*
 * Everything that only changes the accumulator and the file. Returns 0, or not when memory cannot
 * be read.
 */
static __always_inline int machine_step(const struct fetch_op *op, struct machine *m)
{
	__u32 reg = op->reg & (FETCH_FILE - 1);
	__u8 code = op->code;
	int bad = 0;

	if (code >= FETCH_ADD) {
		__u64 other = op->flags & FETCH_F_FILE ? m->file[reg] : op->imm;
		__u64 a = op->flags & FETCH_F_SWAP ? other : m->acc;
		__u64 b = op->flags & FETCH_F_SWAP ? m->acc : other;

		m->acc = binary(code, a, b, &bad);
		return bad;
	}
	switch (code) {
	case FETCH_REG:
		m->acc = m->file[reg];
		return 0;
	case FETCH_CONST:
		m->acc = op->imm;
		return 0;
	case FETCH_LOAD: {
		__u32 size = op->size;
		__u64 to = 0;

		if (size < 1 || size > 8)
			return 1;
		bad = fetch_read(&to, size, m->acc);
		m->acc = to;
		return bad;
	}
	case FETCH_SAVE:
		m->file[reg] = m->acc;
		return 0;
	case FETCH_SEXT:
		m->acc = extend(m->acc, op->size, 1);
		return 0;
	case FETCH_ZEXT:
		m->acc = extend(m->acc, op->size, 0);
		return 0;
	case FETCH_NEG:
		m->acc = -m->acc;
		return 0;
	case FETCH_NOT:
		m->acc = ~m->acc;
		return 0;
	}
	return 0;
}

/*
 * Whether the string at acc, or the thread's name, is the one in the two operations from @pc on,
 * padded with NULs; negative: unreadable.
 */
static __always_inline int string_equals(__u32 pc, int is_comm, struct machine *m)
{
	__u32 second_pc = pc + 1;
	__u64 *first = bpf_map_lookup_elem(&ops, &pc);
	__u64 *second = bpf_map_lookup_elem(&ops, &second_pc);
	__u64 *text = m->text;
	long bad;

	text[0] = text[1] = text[2] = text[3] = 0;
	if (!first || !second)
		return -1;
	bad = is_comm ? bpf_get_current_comm(text, 16)
		      : fetch_read_str(text, sizeof(m->text), m->acc);
	if (bad < 0)
		return -1;
	return text[0] == first[0] && text[1] == first[1] && text[2] == second[0] &&
	       text[3] == second[1];
}

/* A run of one part of a fetch program. */
struct run {
	struct machine m;
	__u64 is_taken; /* by a hit, where runs are shared */
	__u64 ids;
	__u32 pc;
	__u32 faults;
	int result;
	__u32 depth;                  /* of the hit in calls, where they are shown */
	struct trace_stack_ref stack; /* of the hit, where it is wanted */
};

/*
 * Runs @body(i, run) until it returns 1. bpf_loop() (Linux 5.17) lets the verifier look at the body
 * once, 10 ms; before that it walks every iteration, which takes most of a second.
 */
#define REPEAT(body, run)                                                                          \
	do {                                                                                       \
		if (has_loop) {                                                                    \
			bpf_loop(FETCH_OPS_MAX, body, run, 0);                                     \
			break;                                                                     \
		}                                                                                  \
		for (__u32 i_ = 0; i_ < FETCH_OPS_MAX; i_++)                                       \
			if (body(i_, run))                                                         \
				break;                                                             \
	} while (0)

struct task_struct___thread {
	struct {
		unsigned long fsbase;
	} thread;
} __attribute__((preserve_access_index));

/*
 * The base of %fs of the running thread. The kernel keeps it when the thread sets it by a system
 * call, as C libraries do, and when the thread leaves the processor.
 */
static __always_inline __u64 thread_pointer(void)
{
	const struct task_struct___thread *task = (void *)bpf_get_current_task_btf();

	return task->thread.fsbase;
}

static __always_inline __u64 known(__u64 which, __u64 ids)
{
	switch (which) {
	case FETCH_PID:
		return ids >> 32;
	case FETCH_TID:
		return (__u32)ids;
	case FETCH_CPU:
		return bpf_get_smp_processor_id();
	case FETCH_UID:
		return (__u32)bpf_get_current_uid_gid();
	case FETCH_GID:
		return bpf_get_current_uid_gid() >> 32;
	case FETCH_CGROUP:
		return bpf_get_current_cgroup_id();
	case FETCH_THREAD_POINTER:
		return thread_pointer();
	}
	return 0;
}

/*
 * Operations of values and conditions alike; pc is that of the next one. Returns 0, or not when
 * memory cannot be read or there is no result.
 */
static __always_inline int run_step(const struct fetch_op *op, struct run *r)
{
	int e;

	switch (op->code) {
	case FETCH_JZ:
		if (!r->m.acc)
			r->pc += op->jump;
		return 0;
	case FETCH_JNZ:
		if (r->m.acc)
			r->pc += op->jump;
		return 0;
	case FETCH_STREQ:
		e = string_equals(r->pc, op->flags & FETCH_F_COMM, &r->m);
		r->m.acc = e;
		r->pc += 2;
		return e < 0;
	case FETCH_KNOWN:
		r->m.acc = known(op->imm, r->ids);
		return 0;
	}
	return machine_step(op, &r->m);
}

static long condition_step(__u32 i, struct run *r)
{
	__u32 pc = r->pc;
	const struct fetch_op *op = bpf_map_lookup_elem(&ops, &pc);

	if (!op)
		return 1;
	r->pc = ++pc;
	if (op->code == FETCH_FILTER) {
		r->result = r->m.acc != 0;
		return 1;
	}
	return run_step(op, r) != 0;
}

/* What is handed to a callback of bpf_loop() is on the stack. */
struct run_ref {
	struct run *run;
};

static long condition_step_of(__u32 i, struct run_ref *ref)
{
	return condition_step(i, ref->run);
}

/* Runs the condition; leaves pc after its FILTER. Returns 1 when it holds, -1 when undecided. */
static __always_inline int condition_holds(struct run *r)
{
	struct run_ref ref = {r};

	r->result = -1;
	REPEAT(condition_step_of, &ref);
	return r->result;
}

#endif
