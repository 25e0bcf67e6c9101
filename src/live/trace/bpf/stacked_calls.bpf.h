/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Calls that are followed to their end, with their stacks; part of trace.bpf.c
 *
 * The stack is that of the entry, where the function is called: at the end the function's own frame
 * is gone. It is walked in the program itself (stack.bpf.h), when the call is wanted, and kept with
 * the call's record or key. So only the programs of entries differ from those without stacks.
 *
 * Whether the kernel has to report the return is kept in the run, as these programs have few bytes of
 * stack: depth is 0 then, which traces with stacks do not need otherwise.
 */
#ifndef TRACE_STACKED_CALLS_BPF_H
#define TRACE_STACKED_CALLS_BPF_H

/* enter_call_N() and enter_copy_N() in two parts; the stack is taken between them. */
#define STACKED_CALLS(size)                                                                        \
	static __noinline int may_enter_##size(struct work *w,                                     \
					       const struct trace_site_entry *entry, __u32 site)   \
	{                                                                                          \
		struct trace_calls_##size *c;                                                      \
                                                                                                   \
		if (of_kernel)                                                                     \
			return is_kernel_call_followed_##size(w, entry, site,                      \
							      w->run->m.file[FETCH_FILE_SP]);      \
		c = own_calls_##size(1);                                                           \
		if (c)                                                                             \
			return is_followed_##size(w, entry, c);                                    \
		count(entry->probe, LOST);                                                         \
		return 0;                                                                          \
	}                                                                                          \
	static __noinline int may_enter_copy_##size(                                               \
		struct work *w, const struct trace_site_entry *entry, __u32 site, __u64 frame)     \
	{                                                                                          \
		struct trace_calls_##size *c;                                                      \
                                                                                                   \
		if (of_kernel)                                                                     \
			return is_kernel_call_followed_##size(w, entry, site, frame);              \
		c = own_calls_##size(1);                                                           \
		if (c)                                                                             \
			return is_copy_followed_##size(w, entry, site, c, frame);                  \
		count(entry->probe, LOST);                                                         \
		return 0;                                                                          \
	}                                                                                          \
	static __noinline int begin_stacked_##size(                                                \
		struct work *w, const struct trace_site_entry *entry, __u32 site, __u64 frame)     \
	{                                                                                          \
		struct trace_calls_##size *c;                                                      \
                                                                                                   \
		if (of_kernel) {                                                                   \
			if (begin_kernel_call_##size(w, entry, site, frame))                       \
				return 1;                                                          \
		} else {                                                                           \
			c = own_calls_##size(0);                                                   \
			if (!c || begin_call_##size(w, entry, site, c, frame))                     \
				return 1;                                                          \
		}                                                                                  \
		if (!plan.n_cells)                                                                 \
			put_stack(w->rec, size, w->run);                                           \
		return 0;                                                                          \
	}
TRACE_RETURN_CLASSES(STACKED_CALLS)

/* The stack of the hit; with the key $caller an inlined copy's is around its site. */
#define TAKE_STACK(ctx, w, entry, site)                                                            \
	do {                                                                                       \
		if (stacks_of == TRACE_STACKS_CALLER && (entry)->is_inlined)                       \
			use_caller((w).run, site);                                                 \
		else                                                                               \
			take_stack(ctx, (w).run, entry, site);                                     \
	} while (0)

#define STACKED_PROGRAMS(size)                                                                     \
	static __noinline int stacked_end_##size(struct pt_regs *ctx)                              \
	{                                                                                          \
		return hit_return_##size(ctx, AT_RETURN);                                          \
	}                                                                                          \
	static __always_inline int stacked_begin_##size(struct pt_regs *ctx)                       \
	{                                                                                          \
		__u64 ids = current_ids();                                                         \
		__u32 site;                                                                        \
		const struct trace_site_entry *entry = entry_of(ctx, ids, &site);                  \
		struct work w;                                                                     \
		int is_seen;                                                                       \
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
		w.run->depth = 1;                                                                  \
		if (entry->returns ? may_enter_##size(&w, entry, site) : is_wanted(&w, entry)) {   \
			TAKE_STACK(ctx, w, entry, site);                                           \
			if (entry->returns)                                                        \
				w.run->depth = begin_stacked_##size(&w, entry, site,               \
								    w.run->m.file[FETCH_FILE_SP]); \
			else                                                                       \
				record_##size(&w, entry, site);                                    \
		}                                                                                  \
		is_seen = !w.run->depth;                                                           \
		give_run_back(w.run);                                                              \
		return !is_seen;                                                                   \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int stacked_session_##size(struct pt_regs *ctx)                                            \
	{                                                                                          \
		if (ctx->rip != bpf_get_func_ip(ctx))                                              \
			return stacked_end_##size(ctx);                                            \
		return stacked_begin_##size(ctx);                                                  \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int stacked_enter_##size(struct pt_regs *ctx)                                              \
	{                                                                                          \
		stacked_begin_##size(ctx);                                                         \
		return 0;                                                                          \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int stacked_copy_enter_##size(struct pt_regs *ctx)                                         \
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
		if (may_enter_copy_##size(&w, entry, site,                                         \
					  frame_of(w.run, bpf_get_attach_cookie(ctx)))) {          \
			TAKE_STACK(ctx, w, entry, site);                                           \
			begin_stacked_##size(&w, entry, site,                                      \
					     frame_of(w.run, bpf_get_attach_cookie(ctx)));         \
		}                                                                                  \
		give_run_back(w.run);                                                              \
		return 0;                                                                          \
	}
TRACE_RETURN_CLASSES(STACKED_PROGRAMS)

/* The same of hits that are summed up. */
#define STACKED_SUMS(size)                                                                         \
	static __noinline int stacked_sum_end_##size(struct pt_regs *ctx)                          \
	{                                                                                          \
		return sum_return_##size(ctx, AT_RETURN);                                          \
	}                                                                                          \
	static __always_inline int stacked_sum_begin_##size(struct pt_regs *ctx)                   \
	{                                                                                          \
		__u64 ids = current_ids();                                                         \
		__u32 site;                                                                        \
		const struct trace_site_entry *entry = entry_of(ctx, ids, &site);                  \
		struct trace_slot *slot;                                                           \
		struct work w;                                                                     \
		int is_seen;                                                                       \
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
		w.run->depth = 1;                                                                  \
		w.rec = slot->record;                                                              \
		if (entry->returns ? may_enter_##size(&w, entry, site) : is_wanted(&w, entry)) {   \
			TAKE_STACK(ctx, w, entry, site);                                           \
			if (entry->returns)                                                        \
				w.run->depth = begin_stacked_##size(&w, entry, site,               \
								    w.run->m.file[FETCH_FILE_SP]); \
			else                                                                       \
				work_##size(&w, entry, site);                                      \
		}                                                                                  \
		is_seen = !w.run->depth;                                                           \
		give_back(slot);                                                                   \
		return !is_seen;                                                                   \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int stacked_sum_session_##size(struct pt_regs *ctx)                                        \
	{                                                                                          \
		if (ctx->rip != bpf_get_func_ip(ctx))                                              \
			return stacked_sum_end_##size(ctx);                                        \
		return stacked_sum_begin_##size(ctx);                                              \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int stacked_sum_enter_##size(struct pt_regs *ctx)                                          \
	{                                                                                          \
		stacked_sum_begin_##size(ctx);                                                     \
		return 0;                                                                          \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int stacked_sum_copy_enter_##size(struct pt_regs *ctx)                                     \
	{                                                                                          \
		__u64 ids = current_ids();                                                         \
		__u32 site;                                                                        \
		const struct trace_site_entry *entry = entry_of(ctx, ids, &site);                  \
		struct trace_slot *slot;                                                           \
		struct work w;                                                                     \
                                                                                                   \
		if (!entry)                                                                        \
			return 0;                                                                  \
		slot = take_slot(&w);                                                              \
		if (!slot) {                                                                       \
			count(entry->probe, LOST);                                                 \
			return 0;                                                                  \
		}                                                                                  \
		w.run->ids = ids;                                                                  \
		begin_run(ctx, w.run, entry);                                                      \
		if (may_enter_copy_##size(&w, entry, site,                                         \
					  frame_of(w.run, bpf_get_attach_cookie(ctx)))) {          \
			TAKE_STACK(ctx, w, entry, site);                                           \
			begin_stacked_##size(&w, entry, site,                                      \
					     frame_of(w.run, bpf_get_attach_cookie(ctx)));         \
		}                                                                                  \
		give_back(slot);                                                                   \
		return 0;                                                                          \
	}
TRACE_AGGREGATE_RETURN_CLASSES(STACKED_SUMS)

#endif
