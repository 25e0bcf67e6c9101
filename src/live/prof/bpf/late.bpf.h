/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Stacks on pages that are not in memory: walked when the task may wait for them
 *
 * A sample interrupts its task, which cannot wait there. Since 6.18 the program can ask to be called
 * once more when the task is about to return to user space. The task then reads some pages and is
 * walked from the same registers, eight times at most. A task that got other registers meanwhile
 * (execve(2), sigreturn(2)) has no such stack any more.
 */
#ifndef PROF_LATE_BPF_H
#define PROF_LATE_BPF_H

/* libbpf compares the call with the kernel's, and takes no struct that is only declared. */
struct bpf_map {
	__u32 id;
} CORE;

enum {
	LATE_SLOTS = 512,
	/* Pages that are read before a walk, and walks of a sample. */
	LATE_PAGES = 4,
	LATE_ROUNDS = 8,
};

/* From <linux/bpf.h>; the kernel knows it by its name. */
struct bpf_task_work {
	__u64 opaque;
} __attribute__((aligned(8)));

/* A sample that waits for its task. */
struct late_sample {
	struct prof_sample sample;
	__u64 pc, sp, absent; /* absent: the address that could not be read */
	__u32 n_kernel, n_reads;
	__u64 kernel[WALK_MAX_KERNEL];
};

struct late {
	struct bpf_task_work work;
	struct late_sample kept;
};

/* By the thread's number. While one waits, others of its slot are cut. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LATE_SLOTS);
	__type(key, __u32);
	__type(value, struct late);
} late_samples SEC(".maps");

/* The form of the call that the kernel has: of 6.18, or since 7.0. */
const volatile __u8 is_late_form_7_0 = 0;

typedef int late_call(struct bpf_map *map, void *key, void *value);
int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work,
				       void *map, late_call *call, void *prog) __ksym __weak;
int bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *work, void *map,
				  late_call *call) __ksym __weak;

/* The sample as it was when it began to wait. */
static __always_inline void take_late(struct walk *w, struct late_sample *l)
{
	struct walk_process *p;
	__u32 tgid;

	w->head = l->sample;
	tgid = w->head.pid;
	p = bpf_map_lookup_elem(&processes, &tgid);
	use_process(w, p);
	w->head.generation = w->process.generation;
	w->hash = w->other_hash = seed + window;
	w->max_frames = WALK_MAX_FRAMES;
	w->n = 0;
	w->n_reads = l->n_reads;
	w->n_kernel = l->n_kernel;
	if (w->n_kernel > WALK_MAX_KERNEL)
		w->n_kernel = WALK_MAX_KERNEL;
	bpf_probe_read_kernel(w->frames, sizeof(l->kernel), l->kernel);
	hash_kernel(w);
}

/* Whether the task would still return to where the sample found it. */
static __always_inline int has_same_regs(struct walk *w, const struct late_sample *l)
{
	return take_task_regs(w) && w->pc == l->pc && w->regs[RSP] == l->sp;
}

/* Reads some pages. Returns whether the first one is there: it may be none. */
static __always_inline int read_pages(__u64 at)
{
	int is_there = 0;
	__u8 byte;

	/* A stack's older frames are at higher addresses. */
	for (int i = 0; i < LATE_PAGES; i++) {
		if (bpf_copy_from_user(&byte, 1, (void *)(at + i * 4096)))
			break;
		is_there = 1;
	}
	return is_there;
}

/* Walks and sends the sample. Returns 0 when it @may_wait for another page, and has to. */
__noinline int walk_late(struct late_sample *l, int may_wait)
{
	__u64 began = bpf_ktime_get_ns();
	struct walk *w;

	if (!l)
		return 1;
	w = take_walk(bpf_get_smp_processor_id());
	if (!w) {
		count_lost();
		return 1;
	}
	take_late(w, l);
	w->end = WALK_END_UNREADABLE;
	if (has_same_regs(w, l))
		walk_user(w);
	may_wait = may_wait && w->end == WALK_END_UNREADABLE;
	l->absent = w->last_read;
	l->n_reads = w->n_reads;
	if (!may_wait) {
		finish(w);
		send(w);
	}
	count_time(began);
	leave_walk(w);
	return !may_wait;
}

/* The task is about to return to its program. */
static int on_return(struct bpf_map *map, void *key, void *value)
{
	struct late *l = value;
	struct counts *c;

	for (int i = 1; i <= LATE_ROUNDS; i++) {
		int is_there = read_pages(l->kept.absent);

		if (walk_late(&l->kept, is_there && i < LATE_ROUNDS))
			break;
	}
	c = own_counts();
	if (c)
		__sync_fetch_and_add(&c->n_late, 1);
	return 0;
}

static __always_inline int schedule(struct late *l)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	if (is_late_form_7_0)
		return bpf_task_work_schedule_resume(task, &l->work, &late_samples, on_return);
	return bpf_task_work_schedule_resume_impl(task, &l->work, &late_samples, on_return, NULL);
}

/* Whether the walk ended for want of a page, and the sample follows when the task has read it. */
static __always_inline int waits_for_page(struct walk *w)
{
	__u32 slot = w->head.tid % LATE_SLOTS;
	struct late *l;
	struct counts *c = own_counts();

	if (!c || w->end != WALK_END_UNREADABLE)
		return 0;
	l = bpf_map_lookup_elem(&late_samples, &slot);
	/* The task cannot come to its return before this program ends: the slot is filled in time. */
	if (!l || schedule(l))
		return 0;
	l->kept.sample = w->head;
	l->kept.pc = w->began_pc;
	l->kept.sp = w->began_sp;
	l->kept.absent = w->last_read;
	l->kept.n_kernel = w->n_kernel;
	l->kept.n_reads = w->n_reads;
	bpf_probe_read_kernel(l->kept.kernel, sizeof(l->kept.kernel), w->frames);
	__sync_fetch_and_add(&c->n_waiting, 1);
	return 1;
}

#endif
