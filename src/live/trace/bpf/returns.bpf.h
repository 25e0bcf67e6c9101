/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Calls from their entry to their return (abi.h); part of trace.bpf.c
 *
 * A hit at the entry runs the first part of the fetch program. What it writes stays in the calls of
 * the thread until the function returns. Then the second part is run, and the record is complete.
 * There are three mechanisms, with one matching:
 *
 *	session_N           a session (Linux 6.13): the kernel runs it at entry and return
 *	enter_N, leave_N    a uprobe at the entry, and a return probe there
 *	enter_N, exit_N     the same, and uprobes on the return instructions
 *
 * A call is found again by its frame, which is the address of its return address. At the return the
 * stack pointer is 8 bytes above it. A call that is not left by a return (longjmp, an exception) is
 * recognised when the stack pointer has passed its frame: it is forgotten, and counted. A function
 * that was called by a jump (a tail call) has the frame of the function that jumped. Both return
 * at once, and the kernel reports the one that was called last first.
 *
 * A frame where another call begins is dead, unless the call is a tail call. The kernel tells the
 * two apart by the word there: it is the address of its trampoline, if the return address has been
 * replaced already. So does is_tail_call().
 *
 * Only the thread itself touches its calls, and a thread has one hit at a time. So nothing here is
 * atomic. The memory goes with the thread.
 *
 * Calls of kernel functions are matched by kernel_calls.bpf.h.
 */
#ifndef TRACE_RETURNS_BPF_H
#define TRACE_RETURNS_BPF_H

#define NO_SITE 0xffffffff

/* Whether a return needs numbers of the entry. */
const volatile __u8 keeps = 0;

/* A call in progress; its record follows. */
struct trace_call {
	__u64 frame;
	__u64 time_ns;
	__u32 site; /* NO_SITE: it has returned */
	__u32 faults;
	__u64 kept[FETCH_KEPT_MAX];
};

/* Whether the kernel's memory for a thread is small (TRACE_SMALL_DEPTH). */
const volatile __u8 small_calls = 0;

#define CALLS_OF_THREAD(name, size, depth)                                                         \
	struct trace_##name##_##size {                                                             \
		__u32 n;                                                                           \
		__u32 pad;                                                                         \
		struct {                                                                           \
			struct trace_call call;                                                    \
			char record[size];                                                         \
		} at[depth];                                                                       \
	};                                                                                         \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_TASK_STORAGE);                                           \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                              \
		__type(key, int);                                                                  \
		__type(value, struct trace_##name##_##size);                                       \
	} name##_##size SEC(".maps");
#define CALLS(size)                                                                                \
	CALLS_OF_THREAD(calls, size, TRACE_DEPTH(size))                                            \
	CALLS_OF_THREAD(small_calls, size, TRACE_SMALL_DEPTH(size))                                \
	_Static_assert(sizeof(struct trace_small_calls_##size) <= TRACE_SMALL_BYTES, "too large");
TRACE_RETURN_CLASSES(CALLS)

/* Both memories begin alike, and differ in how many calls they hold. */
#define DEPTH(size) (small_calls ? TRACE_SMALL_DEPTH(size) : TRACE_DEPTH(size))

static __always_inline void count_of_site(__u32 site, int field)
{
	const struct trace_site_entry *entry = bpf_map_lookup_elem(&sites, &site);

	if (entry)
		count(entry->probe, field);
}

static __always_inline __u64 word_at(__u64 address)
{
	__u64 word = 0;

	fetch_read(&word, sizeof(word), address);
	return word;
}

static __noinline int is_tail_call(const struct run *r)
{
	__u64 to = trampoline();

	return to && word_at(r->m.file[FETCH_FILE_SP]) == to;
}

/*
 * A frame on another stack of the thread (a signal's, a coroutine's) may be alive. If a return
 * probe is set here, the kernel forgets that frame, and kills the program when it returns. So a
 * call on another stack is left alone while a call of the first one is in progress. Two stacks are
 * not told by their mappings, which may be joined, but by a distance that is no distance between
 * calls: most programs leave less by a longjmp, and no stack is larger.
 */
#define STEP_UP   (16 << 10)
#define STEP_DOWN (8 << 20)

static __always_inline int is_on_same_stack(__u64 last, __u64 frame)
{
	return last <= frame ? frame - last < STEP_UP : last - frame < STEP_DOWN;
}

/* Calls in turn whose return addresses are their own: of copies, and those that end at an exit. */
#define OWN_RETURNS_MAX 16

/* What a hit at a return knows; docs/fetch.md. */
static __always_inline void begin_return(struct run *r, const struct trace_call *call)
{
	r->m.file[FETCH_RETURN_ENTERED] = call->time_ns;
	r->m.file[FETCH_RETURN_DURATION] -= call->time_ns;
	if (keeps)
		__builtin_memcpy(&r->m.file[FETCH_KEPT], call->kept, sizeof(call->kept));
	r->faults = call->faults;
	r->m.acc = 0;
}

/* Whether the return is wanted; counts it if not. */
static __always_inline int is_return_wanted(struct work *w, const struct trace_site_entry *entry)
{
	w->run->pc = entry->return_op;
	if (!(entry->returns & TRACE_RETURNS_IF))
		return 1;
	w->run->result = -1;
	if (!(w->run->faults >> FETCH_CONDITION_FAULT & 1))
		REPEAT(condition_step_of_work, w);
	if (w->run->result > 0)
		return 1;
	count(entry->probe, w->run->result ? UNDECIDED : FILTERED);
	return 0;
}

#include "kernel_calls.bpf.h"
TRACE_RETURN_CLASSES(KERNEL_CALLS)

/*
 * enter_call_N() makes a call of the hit; returns 0 if the return is to be seen, as sessions do.
 * take_call_N() finds the newest call of the site that has the frame; NULL: it was not seen.
 */
#define RETURN_CALLS(size)                                                                         \
	static __noinline int forget_##size(struct trace_calls_##size *c, __u64 frame)             \
	{                                                                                          \
		for (int i = 0; i < TRACE_DEPTH(size); i++) {                                      \
			__u64 last = c->n - 1;                                                     \
                                                                                                   \
			opaque(last);                                                              \
			if (last >= DEPTH(size) || c->at[last].call.frame >= frame)                \
				return 0;                                                          \
			if (c->at[last].call.site != NO_SITE)                                      \
				count_of_site(c->at[last].call.site, UNWOUND);                     \
			c->n = last;                                                               \
		}                                                                                  \
		return 0;                                                                          \
	}                                                                                          \
	/* The compiler must not choose between the maps' addresses: only one is made. */          \
	static __always_inline struct trace_calls_##size *own_calls_##size(int may_begin)          \
	{                                                                                          \
		__u64 flags = may_begin ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0;                      \
		struct trace_calls_##size *c;                                                      \
                                                                                                   \
		if (!small_calls)                                                                  \
			return bpf_task_storage_get(&calls_##size, bpf_get_current_task_btf(),     \
						    NULL, flags);                                  \
		c = bpf_task_storage_get(&small_calls_##size, bpf_get_current_task_btf(), NULL,    \
					 flags);                                                   \
		opaque(c);                                                                         \
		return c;                                                                          \
	}                                                                                          \
	/* All calls that are followed are of one stack. Too many of them: apart. */               \
	static __noinline int is_apart_##size(const struct trace_calls_##size *c, __u64 frame)     \
	{                                                                                          \
		__u64 to = trampoline();                                                           \
                                                                                                   \
		for (int i = 1; i <= OWN_RETURNS_MAX; i++) {                                       \
			__u64 at = c->n - i;                                                       \
                                                                                                   \
			opaque(at);                                                                \
			if (at >= DEPTH(size) || is_on_same_stack(c->at[at].call.frame, frame))    \
				return 0;                                                          \
			if (to && word_at(c->at[at].call.frame) == to)                             \
				return 1;                                                          \
		}                                                                                  \
		return to != 0;                                                                    \
	}                                                                                          \
	static __noinline int fill_call_##size(struct work *w,                                     \
					       const struct trace_site_entry *entry, __u32 site)   \
	{                                                                                          \
		if (plan.n_key)                                                                    \
			begin_key(w->rec, size, w->run, entry->probe, site);                       \
		if (!store_registers(w->run, w->rec, size))                                        \
			REPEAT(fetch_step_##size, w);                                              \
		return 0;                                                                          \
	}                                                                                          \
	/* The record of an entry is what the call has so far. */                                  \
	static __noinline int send_entry_##size(                                                   \
		struct work *w, const struct trace_site_entry *entry, __u32 site, __u64 time_ns)   \
	{                                                                                          \
		struct trace_record *rec = bpf_ringbuf_reserve(&ring, size, 0);                    \
                                                                                                   \
		if (!rec) {                                                                        \
			count(entry->probe, ENTRIES_LOST);                                         \
			return 0;                                                                  \
		}                                                                                  \
		bpf_probe_read_kernel(rec, size, w->rec);                                          \
		begin_record(rec, w->run, site);                                                   \
		rec->time_ns = time_ns;                                                            \
		rec->faults = w->run->faults;                                                      \
		put_call((char *)rec, size, w->run, time_ns, TRACE_AT_ENTRY);                      \
		bpf_ringbuf_submit(rec, wakeup(size));                                             \
		return 0;                                                                          \
	}                                                                                          \
	static __always_inline int begin_call_##size(                                              \
		struct work *w, const struct trace_site_entry *entry, __u32 site,                  \
		struct trace_calls_##size *c, __u64 frame)                                         \
	{                                                                                          \
		__u64 at = c->n;                                                                   \
                                                                                                   \
		opaque(at);                                                                        \
		if (at >= DEPTH(size)) {                                                           \
			count(entry->probe, TOO_DEEP);                                             \
			return 1;                                                                  \
		}                                                                                  \
		c->at[at].call.frame = frame;                                                      \
		c->at[at].call.site = site;                                                        \
		c->n = at + 1;                                                                     \
		w->rec = c->at[at].record;                                                         \
		fill_call_##size(w, entry, site);                                                  \
		c->at[at].call.faults = w->run->faults;                                            \
		if (keeps)                                                                         \
			__builtin_memcpy(c->at[at].call.kept, &w->run->m.file[FETCH_KEPT],         \
					 sizeof(c->at[at].call.kept));                             \
		c->at[at].call.time_ns = bpf_ktime_get_ns();                                       \
		count(entry->probe, ENTERED);                                                      \
		if (shows_calls) {                                                                 \
			w->run->depth = at;                                                        \
			send_entry_##size(w, entry, site, c->at[at].call.time_ns);                 \
		}                                                                                  \
		return 0;                                                                          \
	}                                                                                          \
	static __always_inline int is_followed_##size(struct work *w,                              \
						      const struct trace_site_entry *entry,        \
						      struct trace_calls_##size *c)                \
	{                                                                                          \
		if (is_apart_##size(c, w->run->m.file[FETCH_FILE_SP])) {                           \
			if (is_wanted(w, entry))                                                   \
				count(entry->probe, APART);                                        \
			return 0;                                                                  \
		}                                                                                  \
		/* Before the condition: also a call that is not wanted takes the frame. */        \
		forget_##size(c, w->run->m.file[FETCH_FILE_SP] + !is_tail_call(w->run));           \
		return is_wanted(w, entry);                                                        \
	}                                                                                          \
	static __noinline int enter_call_##size(struct work *w,                                    \
						const struct trace_site_entry *entry, __u32 site)  \
	{                                                                                          \
		struct trace_calls_##size *c;                                                      \
                                                                                                   \
		if (of_kernel) {                                                                   \
			if (!is_kernel_call_followed_##size(w, entry, site,                        \
							    w->run->m.file[FETCH_FILE_SP]))        \
				return 1;                                                          \
			return begin_kernel_call_##size(w, entry, site,                            \
							w->run->m.file[FETCH_FILE_SP]);            \
		}                                                                                  \
		c = own_calls_##size(1);                                                           \
		if (!c) {                                                                          \
			count(entry->probe, LOST);                                                 \
			return 1;                                                                  \
		}                                                                                  \
		if (!is_followed_##size(w, entry, c))                                              \
			return 1;                                                                  \
		return begin_call_##size(w, entry, site, c, w->run->m.file[FETCH_FILE_SP]);        \
	}                                                                                          \
	/* A hit that is no call: how deep it is. */                                               \
	static __noinline int note_depth_##size(struct run *r)                                     \
	{                                                                                          \
		struct trace_calls_##size *c = own_calls_##size(0);                                \
                                                                                                   \
		r->depth = 0;                                                                      \
		if (!c)                                                                            \
			return 0;                                                                  \
		if (!is_apart_##size(c, r->m.file[FETCH_FILE_SP]))                                 \
			forget_##size(c, r->m.file[FETCH_FILE_SP]);                                \
		r->depth = c->n;                                                                   \
		return 0;                                                                          \
	}                                                                                          \
	static __noinline int find_call_##size(const struct trace_calls_##size *c, __u64 frame,    \
					       __u32 site)                                         \
	{                                                                                          \
		__u64 at = c->n;                                                                   \
                                                                                                   \
		for (int i = 0; i < TRACE_DEPTH(size); i++) {                                      \
			at--;                                                                      \
			opaque(at);                                                                \
			if (at >= DEPTH(size) || c->at[at].call.frame != frame)                    \
				return -1;                                                         \
			if (c->at[at].call.site == site)                                           \
				return at;                                                         \
		}                                                                                  \
		return -1;                                                                         \
	}                                                                                          \
	/* The call stays where it is until another one takes its room. */                         \
	static __noinline int take_call_##size(struct work *w, __u32 site)                         \
	{                                                                                          \
		struct trace_calls_##size *c;                                                      \
		__u64 at;                                                                          \
                                                                                                   \
		if (of_kernel)                                                                     \
			return take_kernel_call_##size(w, site);                                   \
		c = own_calls_##size(0);                                                           \
		if (!c)                                                                            \
			return 0;                                                                  \
		forget_##size(c, w->run->m.file[FETCH_FILE_SP]);                                   \
		at = find_call_##size(c, w->run->m.file[FETCH_FILE_SP], site);                     \
		opaque(at);                                                                        \
		if (at >= DEPTH(size))                                                             \
			return 0;                                                                  \
		c->at[at].call.site = NO_SITE;                                                     \
		if (at + 1 == c->n)                                                                \
			c->n = at;                                                                 \
		w->run->depth = at;                                                                \
		w->rec = c->at[at].record;                                                         \
		begin_return(w->run, &c->at[at].call);                                             \
		return 1;                                                                          \
	}
TRACE_RETURN_CLASSES(RETURN_CALLS)

enum { AT_ENTRY, AT_RETURN, AT_EXIT };

/* The stack pointer as it was at the entry, and the time, before anything else takes some. */
static __always_inline void note_return(struct run *r, int moment)
{
	r->m.file[FETCH_RETURN_DURATION] = bpf_ktime_get_ns();
	if (moment == AT_RETURN)
		r->m.file[FETCH_FILE_SP] -= 8;
}

/* At the entry: 1 if the kernel need not report the return. */
#define RETURN_PROGRAM(size)                                                                       \
	static __noinline int record_return_##size(                                                \
		struct work *w, const struct trace_site_entry *entry, __u32 site)                  \
	{                                                                                          \
		struct trace_record *rec;                                                          \
                                                                                                   \
		if (!take_call_##size(w, site))                                                    \
			return 0;                                                                  \
		count(entry->probe, RETURNED);                                                     \
		if (!is_return_wanted(w, entry))                                                   \
			return 0;                                                                  \
		rec = bpf_ringbuf_reserve(&ring, size, 0);                                         \
		if (!rec) {                                                                        \
			count(entry->probe, LOST);                                                 \
			return 0;                                                                  \
		}                                                                                  \
		bpf_probe_read_kernel(rec, size, w->rec);                                          \
		begin_record(rec, w->run, site);                                                   \
		rec->time_ns = w->run->m.file[FETCH_RETURN_ENTERED] +                              \
			       w->run->m.file[FETCH_RETURN_DURATION];                              \
		w->rec = (char *)rec;                                                              \
		put_call(w->rec, size, w->run, w->run->m.file[FETCH_RETURN_ENTERED],               \
			 TRACE_AT_RETURN);                                                         \
		if (!store_registers(w->run, w->rec, size))                                        \
			REPEAT(fetch_step_##size, w);                                              \
		rec->faults = w->run->faults;                                                      \
		bpf_ringbuf_submit(rec, wakeup(size));                                             \
		return 0;                                                                          \
	}                                                                                          \
	static __always_inline int hit_return_##size(struct pt_regs *ctx, int moment)              \
	{                                                                                          \
		__u64 ids = current_ids();                                                         \
		__u32 site;                                                                        \
		const struct trace_site_entry *entry = entry_of(ctx, ids, &site);                  \
		struct work w;                                                                     \
		int ret = 1;                                                                       \
                                                                                                   \
		if (!entry)                                                                        \
			return 1;                                                                  \
		w.run = take_run();                                                                \
		if (!w.run) {                                                                      \
			count(entry->probe, LOST);                                                 \
			return 1;                                                                  \
		}                                                                                  \
		w.run->ids = ids;                                                                  \
		begin_run(ctx, w.run, entry);                                                      \
		if (moment) {                                                                      \
			note_return(w.run, moment);                                                \
			record_return_##size(&w, entry, site);                                     \
			if (of_kernel)                                                             \
				drop_kernel_call_##size(w.run->m.file[FETCH_FILE_SP], site);       \
		} else if (entry->returns) {                                                       \
			ret = enter_call_##size(&w, entry, site);                                  \
		} else {                                                                           \
			if (shows_calls)                                                           \
				note_depth_##size(w.run);                                          \
			if (is_wanted(&w, entry))                                                  \
				record_##size(&w, entry, site);                                    \
		}                                                                                  \
		give_run_back(w.run);                                                              \
		return ret;                                                                        \
	}                                                                                          \
	static __noinline int at_entry_##size(struct pt_regs *ctx)                                 \
	{                                                                                          \
		return hit_return_##size(ctx, 0);                                                  \
	}                                                                                          \
	static __noinline int at_return_##size(struct pt_regs *ctx)                                \
	{                                                                                          \
		return hit_return_##size(ctx, 1);                                                  \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int session_##size(struct pt_regs *ctx)                                                    \
	{                                                                                          \
		return ctx->rip == bpf_get_func_ip(ctx) ? at_entry_##size(ctx)                     \
							: at_return_##size(ctx);                   \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int enter_##size(struct pt_regs *ctx)                                                      \
	{                                                                                          \
		hit_return_##size(ctx, 0);                                                         \
		return 0;                                                                          \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int exit_##size(struct pt_regs *ctx)                                                       \
	{                                                                                          \
		hit_return_##size(ctx, AT_EXIT);                                                   \
		return 0;                                                                          \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int leave_##size(struct pt_regs *ctx)                                                      \
	{                                                                                          \
		hit_return_##size(ctx, 1);                                                         \
		return 0;                                                                          \
	}
TRACE_RETURN_CLASSES(RETURN_PROGRAM)

/* The same of hits that are summed up. */
#define AGGREGATE_RETURN_PROGRAM(size)                                                             \
	static __noinline int add_return_##size(                                                   \
		struct work *w, const struct trace_site_entry *entry, __u32 site, char *slot)      \
	{                                                                                          \
		if (!take_call_##size(w, site))                                                    \
			return 0;                                                                  \
		count(entry->probe, RETURNED);                                                     \
		if (!is_return_wanted(w, entry))                                                   \
			return 0;                                                                  \
		bpf_probe_read_kernel(slot, size, w->rec);                                         \
		w->rec = slot;                                                                     \
		if (!store_registers(w->run, w->rec, size))                                        \
			REPEAT(fetch_step_##size, w);                                              \
		return aggregate(w->rec, entry, w->run->faults);                                   \
	}                                                                                          \
	static __always_inline int sum_return_##size(struct pt_regs *ctx, int moment)              \
	{                                                                                          \
		__u64 ids = current_ids();                                                         \
		__u32 site;                                                                        \
		const struct trace_site_entry *entry = entry_of(ctx, ids, &site);                  \
		struct trace_slot *slot;                                                           \
		struct work w;                                                                     \
		int ret = 1;                                                                       \
                                                                                                   \
		if (!entry)                                                                        \
			return 1;                                                                  \
		slot = take_slot(&w);                                                              \
		if (!slot) {                                                                       \
			count(entry->probe, LOST);                                                 \
			return 1;                                                                  \
		}                                                                                  \
		w.run->ids = ids;                                                                  \
		begin_run(ctx, w.run, entry);                                                      \
		w.rec = slot->record;                                                              \
		if (moment) {                                                                      \
			note_return(w.run, moment);                                                \
			add_return_##size(&w, entry, site, slot->record);                          \
			if (of_kernel)                                                             \
				drop_kernel_call_##size(w.run->m.file[FETCH_FILE_SP], site);       \
		} else if (entry->returns) {                                                       \
			ret = enter_call_##size(&w, entry, site);                                  \
		} else {                                                                           \
			if (is_wanted(&w, entry))                                                  \
				work_##size(&w, entry, site);                                      \
		}                                                                                  \
		give_back(slot);                                                                   \
		return ret;                                                                        \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int sum_session_##size(struct pt_regs *ctx)                                                \
	{                                                                                          \
		return sum_return_##size(ctx, ctx->rip != bpf_get_func_ip(ctx));                   \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int sum_enter_##size(struct pt_regs *ctx)                                                  \
	{                                                                                          \
		sum_return_##size(ctx, 0);                                                         \
		return 0;                                                                          \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int sum_exit_##size(struct pt_regs *ctx)                                                   \
	{                                                                                          \
		sum_return_##size(ctx, AT_EXIT);                                                   \
		return 0;                                                                          \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int sum_leave_##size(struct pt_regs *ctx)                                                  \
	{                                                                                          \
		sum_return_##size(ctx, 1);                                                         \
		return 0;                                                                          \
	}
TRACE_AGGREGATE_RETURN_CLASSES(AGGREGATE_RETURN_PROGRAM)

#endif
