/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Calls of kernel functions from their entry to their return; part of returns.bpf.h
 *
 *	enter_N       a kprobe at the entry
 *	leave_N       a return probe of the same function
 *	copy_enter_N  a kprobe at the site of an inlined copy
 *	copy_exit_N   kprobes where control leaves the copy
 *	copy_reset_N  a kprobe at the beginning of the function around the copy
 *
 * Calls of a thread are no stack here: an interrupt has a stack of its own, and calls functions in
 * the middle of the thread's. But every address in the kernel is one place. So a call is found
 * again by its frame and its site alone, in one table of all processors. The memory of that table
 * is there from the beginning: a probe may be hit where the kernel hands out memory.
 *
 * The kernel has some instances for the returns of each function. When they are all in use, a
 * return is not reported, and the call stays in the table. It is forgotten, and counted, when
 * another call of the function has the same frame. So the entry looks for such a call even if it is
 * not wanted itself. Those of threads that have ended are never found again: where there is no room,
 * the table forgets what was used least recently.
 *
 * A function that is called by a jump (a tail call) has the frame of the function that jumped, and
 * another site. The call of a copy has the frame of the function around it, which no other call has
 * as long as that one runs: neither an interrupt, which has a stack of its own or goes on below, nor
 * the thread on another processor.
 */
#ifndef TRACE_KERNEL_CALLS_BPF_H
#define TRACE_KERNEL_CALLS_BPF_H

struct kernel_call_key {
	__u64 frame;
	__u64 site;
};

/* The value of a call before its entry is noted. */
const volatile char no_call[TRACE_KERNEL_CALL_BYTES] = {};

#define ERROR_NO_ROOM (-12) /* -ENOMEM: none can be forgotten */

/*
 * make_kernel_call_N() makes a call that is not there; NULL: there is no room, which is counted.
 * take_kernel_call_N() finds the call that returns. Its record stays until drop_kernel_call_N().
 */
#define KERNEL_CALLS(size)                                                                         \
	struct kernel_call_##size {                                                                \
		struct trace_call call;                                                            \
		__u64 task;                                                                        \
		char record[size];                                                                 \
	};                                                                                         \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_LRU_HASH);                                               \
		__uint(max_entries, TRACE_KERNEL_CALLS(size));                                     \
		__type(key, struct kernel_call_key);                                               \
		__type(value, struct kernel_call_##size);                                          \
	} kernel_calls_##size SEC(".maps");                                                        \
	static __noinline int fill_call_##size(struct work *w,                                     \
					       const struct trace_site_entry *entry, __u32 site);  \
	static __noinline struct kernel_call_##size *find_kernel_call_##size(__u64 frame,          \
									     __u32 site)           \
	{                                                                                          \
		struct kernel_call_key key = {frame, site};                                        \
                                                                                                   \
		return bpf_map_lookup_elem(&kernel_calls_##size, &key);                            \
	}                                                                                          \
	static __noinline int drop_kernel_call_##size(__u64 frame, __u32 site)                     \
	{                                                                                          \
		struct kernel_call_key key = {frame, site};                                        \
                                                                                                   \
		return bpf_map_delete_elem(&kernel_calls_##size, &key);                            \
	}                                                                                          \
	/* It is over, also where the table cannot be changed now. */                              \
	static __noinline int forget_kernel_call_##size(__u64 frame, __u32 site)                   \
	{                                                                                          \
		struct kernel_call_##size *c = find_kernel_call_##size(frame, site);               \
                                                                                                   \
		if (!c)                                                                            \
			return 0;                                                                  \
		if (c->call.site != NO_SITE)                                                       \
			count_of_site(site, UNWOUND);                                              \
		c->call.site = NO_SITE;                                                            \
		return drop_kernel_call_##size(frame, site);                                       \
	}                                                                                          \
	static __noinline int add_kernel_call_##size(__u64 frame, __u32 site)                      \
	{                                                                                          \
		struct kernel_call_key key = {frame, site};                                        \
                                                                                                   \
		return bpf_map_update_elem(&kernel_calls_##size, &key, (const void *)no_call,      \
					   BPF_NOEXIST);                                           \
	}                                                                                          \
	static __always_inline struct kernel_call_##size *make_kernel_call_##size(                 \
		__u64 frame, const struct trace_site_entry *entry, __u32 site)                     \
	{                                                                                          \
		int e = add_kernel_call_##size(frame, site);                                       \
                                                                                                   \
		if (!e)                                                                            \
			return find_kernel_call_##size(frame, site);                               \
		count(entry->probe, e == ERROR_NO_ROOM ? TOO_DEEP : LOST);                         \
		return NULL;                                                                       \
	}                                                                                          \
	static __always_inline int begin_kernel_call_##size(                                       \
		struct work *w, const struct trace_site_entry *entry, __u32 site, __u64 frame)     \
	{                                                                                          \
		struct kernel_call_##size *c = make_kernel_call_##size(frame, entry, site);        \
                                                                                                   \
		if (!c)                                                                            \
			return 1;                                                                  \
		c->call.site = site;                                                               \
		c->task = bpf_get_current_task();                                                  \
		w->rec = c->record;                                                                \
		fill_call_##size(w, entry, site);                                                  \
		c->call.faults = w->run->faults;                                                   \
		if (keeps)                                                                         \
			__builtin_memcpy(c->call.kept, &w->run->m.file[FETCH_KEPT],                \
					 sizeof(c->call.kept));                                    \
		c->call.time_ns = bpf_ktime_get_ns();                                              \
		count(entry->probe, ENTERED);                                                      \
		return 0;                                                                          \
	}                                                                                          \
	static __always_inline int is_kernel_call_followed_##size(                                 \
		struct work *w, const struct trace_site_entry *entry, __u32 site, __u64 frame)     \
	{                                                                                          \
		forget_kernel_call_##size(frame, site);                                            \
		return is_wanted(w, entry);                                                        \
	}                                                                                          \
	static __always_inline int take_kernel_call_##size(struct work *w, __u32 site)             \
	{                                                                                          \
		struct kernel_call_##size *c =                                                     \
			find_kernel_call_##size(w->run->m.file[FETCH_FILE_SP], site);              \
                                                                                                   \
		if (!c || c->call.site == NO_SITE)                                                 \
			return 0;                                                                  \
		c->call.site = NO_SITE;                                                            \
		if (c->task != bpf_get_current_task()) {                                           \
			count_of_site(site, UNWOUND);                                              \
			return 0;                                                                  \
		}                                                                                  \
		w->rec = c->record;                                                                \
		begin_return(w->run, &c->call);                                                    \
		return 1;                                                                          \
	}

#endif
