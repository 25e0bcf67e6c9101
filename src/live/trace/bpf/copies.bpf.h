/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Calls of inlined copies from their site to their end; part of trace.bpf.c
 *
 *	copy_enter_N  a uprobe at the site
 *	copy_exit_N   uprobes where control leaves the copy
 *	copy_reset_N  a uprobe at the beginning of the function around the copy
 *
 * They are calls of the thread like those that returns.bpf.h matches, with the frame of the
 * function around the copy: any number of them may have the same one. Where that frame is at an
 * instruction comes with the cookie, as the stack pointer differs between the two ends:
 *
 *	BITS    MEANING
 *	0..31   site
 *	32..59  signed: distance of the frame from the register
 *	60..63  register, by its DWARF number
 *
 * A call is left otherwise by longjmp(), or by an exception. Its entry is forgotten when the site is
 * passed again with the same frame, and when the function around it is entered there: its exits may
 * be reached without passing the site.
 */
#ifndef TRACE_COPIES_BPF_H
#define TRACE_COPIES_BPF_H

static __always_inline __u64 frame_of(const struct run *r, __u64 cookie)
{
	__u64 reg = cookie >> 60;

	opaque(reg);
	return r->m.file[reg & 15] + (__u64)((__s64)(cookie << 4) >> 36);
}

/* drop_call_N() forgets the call of the site with the frame, and what is dead. */
#define COPY_CALLS(size)                                                                           \
	static __noinline int drop_call_##size(struct trace_calls_##size *c, __u64 frame,          \
					       __u32 site)                                         \
	{                                                                                          \
		__u64 at;                                                                          \
                                                                                                   \
		forget_##size(c, frame);                                                           \
		at = find_call_##size(c, frame, site);                                             \
		opaque(at);                                                                        \
		if (at < DEPTH(size)) {                                                            \
			c->at[at].call.site = NO_SITE;                                             \
			count_of_site(site, UNWOUND);                                              \
		}                                                                                  \
		for (int i = 0; i < TRACE_DEPTH(size); i++) {                                      \
			__u64 last = c->n - 1;                                                     \
                                                                                                   \
			opaque(last);                                                              \
			if (last >= DEPTH(size) || c->at[last].call.site != NO_SITE)               \
				return 0;                                                          \
			c->n = last;                                                               \
		}                                                                                  \
		return 0;                                                                          \
	}                                                                                          \
	static __always_inline int is_copy_followed_##size(                                        \
		struct work *w, const struct trace_site_entry *entry, __u32 site,                  \
		struct trace_calls_##size *c, __u64 frame)                                         \
	{                                                                                          \
		if (is_apart_##size(c, frame)) {                                                   \
			if (is_wanted(w, entry))                                                   \
				count(entry->probe, APART);                                        \
			return 0;                                                                  \
		}                                                                                  \
		/* Also a call that is not wanted ends the one before. */                          \
		drop_call_##size(c, frame, site);                                                  \
		return is_wanted(w, entry);                                                        \
	}                                                                                          \
	static __noinline int enter_copy_##size(                                                   \
		struct work *w, const struct trace_site_entry *entry, __u32 site, __u64 frame)     \
	{                                                                                          \
		struct trace_calls_##size *c;                                                      \
                                                                                                   \
		if (of_kernel) {                                                                   \
			if (is_kernel_call_followed_##size(w, entry, site, frame))                 \
				begin_kernel_call_##size(w, entry, site, frame);                   \
			return 0;                                                                  \
		}                                                                                  \
		c = own_calls_##size(1);                                                           \
		if (!c)                                                                            \
			count(entry->probe, LOST);                                                 \
		else if (is_copy_followed_##size(w, entry, site, c, frame))                        \
			begin_call_##size(w, entry, site, c, frame);                               \
		return 0;                                                                          \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int copy_reset_##size(struct pt_regs *ctx)                                                 \
	{                                                                                          \
		struct trace_calls_##size *c;                                                      \
                                                                                                   \
		if (of_kernel) {                                                                   \
			forget_kernel_call_##size(ctx->rsp, bpf_get_attach_cookie(ctx));           \
			return 0;                                                                  \
		}                                                                                  \
		c = own_calls_##size(0);                                                           \
		if (c && !is_apart_##size(c, ctx->rsp))                                            \
			drop_call_##size(c, ctx->rsp, bpf_get_attach_cookie(ctx));                 \
		return 0;                                                                          \
	}                                                                                          \
	/* Its entry was left alone: what is in progress on the other stack stays. */              \
	static __always_inline int is_exit_followed_##size(__u64 frame)                            \
	{                                                                                          \
		struct trace_calls_##size *c;                                                      \
                                                                                                   \
		if (of_kernel)                                                                     \
			return 1;                                                                  \
		c = own_calls_##size(0);                                                           \
		return c && !is_apart_##size(c, frame);                                            \
	}
TRACE_RETURN_CLASSES(COPY_CALLS)

#define COPY_PROGRAM(size)                                                                         \
	static __always_inline int hit_copy_##size(struct pt_regs *ctx, int is_exit)               \
	{                                                                                          \
		__u64 ids = current_ids();                                                         \
		__u32 site;                                                                        \
		const struct trace_site_entry *entry = entry_of(ctx, ids, &site);                  \
		struct work w;                                                                     \
		__u64 frame;                                                                       \
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
		frame = frame_of(w.run, bpf_get_attach_cookie(ctx));                               \
		if (is_exit && is_exit_followed_##size(frame)) {                                   \
			note_return(w.run, AT_EXIT);                                               \
			w.run->m.file[FETCH_FILE_SP] = frame;                                      \
			record_return_##size(&w, entry, site);                                     \
			if (of_kernel)                                                             \
				drop_kernel_call_##size(frame, site);                              \
		} else if (!is_exit) {                                                             \
			enter_copy_##size(&w, entry, site, frame);                                 \
		}                                                                                  \
		give_run_back(w.run);                                                              \
		return 0;                                                                          \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int copy_enter_##size(struct pt_regs *ctx)                                                 \
	{                                                                                          \
		return hit_copy_##size(ctx, 0);                                                    \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int copy_exit_##size(struct pt_regs *ctx)                                                  \
	{                                                                                          \
		return hit_copy_##size(ctx, 1);                                                    \
	}
TRACE_RETURN_CLASSES(COPY_PROGRAM)

/* The same of hits that are summed up. */
#define AGGREGATE_COPY_PROGRAM(size)                                                               \
	static __always_inline int sum_copy_##size(struct pt_regs *ctx, int is_exit)               \
	{                                                                                          \
		__u64 ids = current_ids();                                                         \
		__u32 site;                                                                        \
		const struct trace_site_entry *entry = entry_of(ctx, ids, &site);                  \
		struct trace_slot *slot;                                                           \
		struct work w;                                                                     \
		__u64 frame;                                                                       \
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
		w.rec = slot->record;                                                              \
		frame = frame_of(w.run, bpf_get_attach_cookie(ctx));                               \
		if (is_exit && is_exit_followed_##size(frame)) {                                   \
			note_return(w.run, AT_EXIT);                                               \
			w.run->m.file[FETCH_FILE_SP] = frame;                                      \
			add_return_##size(&w, entry, site, slot->record);                          \
			if (of_kernel)                                                             \
				drop_kernel_call_##size(frame, site);                              \
		} else if (!is_exit) {                                                             \
			enter_copy_##size(&w, entry, site, frame);                                 \
		}                                                                                  \
		give_back(slot);                                                                   \
		return 0;                                                                          \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int sum_copy_enter_##size(struct pt_regs *ctx)                                             \
	{                                                                                          \
		return sum_copy_##size(ctx, 0);                                                    \
	}                                                                                          \
	SEC("uprobe")                                                                              \
	int sum_copy_exit_##size(struct pt_regs *ctx)                                              \
	{                                                                                          \
		return sum_copy_##size(ctx, 1);                                                    \
	}
TRACE_AGGREGATE_RETURN_CLASSES(AGGREGATE_COPY_PROGRAM)

#endif
