/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Hits that are summed up, whose values need registers only (abi.h); part of aggregate.bpf.h
 *
 * Most sums are of arguments in registers, by a key of one or two of them. Such a hit takes no
 * slot, copies no registers, and runs no interpreter. Its key is on the stack: 24 bytes, so that
 * the function stays below the 64 bytes from which on hits would share a stack. For that what is
 * rarely needed is found out again, and not kept. One set of maps is written, as only slots tell the
 * reader that a hit of the other set is over.
 */
#ifndef TRACE_SHORT_BPF_H
#define TRACE_SHORT_BPF_H

#include "short_value.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(value, struct trace_short);
} shorts SEC(".maps");

/* Whether hits are to be told apart by process: not where the kernel's link has those of one. */
const volatile __u8 wants_ids = 1;
const volatile __u32 n_sites = 0;
/* What all sites have, if they have the same. */
const volatile struct trace_site_entry common_entry = {};
const volatile struct trace_short common_program = {};

/* The same where a call is no matter. */
static __noinline __u64 called_value(const struct pt_regs *ctx, const struct trace_short_value *s)
{
	return short_value(ctx, s);
}

/* Puts the keys that the kernel knows of the hit, if the plan has them. */
static __noinline int put_known(__u64 *key, struct pt_regs *ctx)
{
	__u32 key_at = plan.n_numbers * 8;
	__u64 at;

#define PUT_SHORT(what, type, value)                                                               \
	at = plan.what - key_at;                                                                   \
	opaque(at);                                                                                \
	if (plan.what && at <= TRACE_SHORT_KEY - sizeof(type))                                     \
	*(type *)((char *)key + at) = value
	PUT_SHORT(pid, __u32, current_ids() >> 32);
	PUT_SHORT(tid, __u32, current_ids());
	PUT_SHORT(cpu, __u32, bpf_get_smp_processor_id());
	PUT_SHORT(site, __u32, bpf_get_attach_cookie(ctx));
	PUT_SHORT(cgroup, __u64, bpf_get_current_cgroup_id());
	if (plan.comm) {
		const __u64 *comm = (const void *)bpf_get_current_task_btf()->comm;

		PUT_SHORT(comm, __u64, comm[0]);
		at += 8;
		if (at <= TRACE_SHORT_KEY - 8)
			*(__u64 *)((char *)key + at) = comm[1];
	}
#undef PUT_SHORT
	return 0;
}

/*
 * Each update computes the number anew: the verifier would follow what the others found out about
 * it.
 */
static __always_inline void update_each(__u64 *cells, struct pt_regs *ctx,
					const struct trace_short *s,
					const struct trace_site_entry *entry, const int is_common)
{
#pragma unroll
	for (int k = 0; k < TRACE_UPDATES_MAX; k++)
		if (plan.updates[k].kind != TRACE_UPDATE_NONE)
			update(cells, k,
			       is_common ? short_value(ctx, &s->number)
					 : called_value(ctx, &s->number),
			       entry->is_signed >> k & 1, entry->probe);
}

static __noinline int update_short(__u64 *cells, struct pt_regs *ctx, const struct trace_short *s,
				   const struct trace_site_entry *entry)
{
	update_each(cells, ctx, s, entry, 0);
	return 0;
}

static __noinline int update_common(__u64 *cells, struct pt_regs *ctx, const struct trace_short *s,
				    const struct trace_site_entry *entry)
{
	update_each(cells, ctx, s, entry, 1);
	return 0;
}

static __always_inline __u64 *cells_of_short(struct pt_regs *ctx, const struct trace_short *s,
					     const struct trace_site_entry *entry,
					     const int is_common)
{
	__u64 key[TRACE_SHORT_KEY / 8] = {entry->probe};
	void *stored = (char *)key + (is_common ? TRACE_SHORT_HEADER : 0);
	__u64 *cells;

	if (plan.has_known)
		put_known(key, ctx);
	if (plan.n_values > 0)
		put_value(key, s->values[0].word, short_value(ctx, &s->values[0]));
	if (plan.n_values > 1)
		put_value(key, s->values[1].word,
			  is_common ? short_value(ctx, &s->values[1])
				    : called_value(ctx, &s->values[1]));
	cells = bpf_map_lookup_elem(&groups, stored);
	return cells ? cells : add_group(&groups, stored, entry->probe);
}

/* The cells of hits without a key, and of those whose key found no room. */
static __always_inline __u64 *cells_of_all(const struct trace_site_entry *entry)
{
	__u32 at = entry->probe;

	return bpf_map_lookup_elem(&totals, &at);
}

static __noinline int filter_out(const struct trace_site_entry *entry)
{
	count(entry->probe, FILTERED);
	return 0;
}

static __noinline int is_drawn_short(const struct trace_site_entry *entry)
{
	return is_drawn(entry);
}

/* Whether the hit is wanted; counts it if not. */
static __always_inline int is_wanted_short(struct pt_regs *ctx, const struct trace_short *s,
					   const struct trace_site_entry *entry,
					   const int is_common)
{
	if (*(volatile __u32 *)&draw_below && !is_drawn_short(entry))
		return 0;
	if (!entry->has_condition)
		return 1;
	if (is_common ? short_value(ctx, &s->condition) : called_value(ctx, &s->condition))
		return 1;
	return filter_out(entry);
}

static __always_inline int add_short(struct pt_regs *ctx, const struct trace_site_entry *entry,
				     const struct trace_short *s, const int is_common)
{
	__u64 *cells = NULL;

	if (!is_wanted_short(ctx, s, entry, is_common))
		return 0;
	if (plan.n_key)
		cells = cells_of_short(ctx, s, entry, is_common);
	if (!cells)
		cells = cells_of_all(entry);
	if (!cells)
		return 0;
	add(cells, 1);
	if (plan.n_cells > 1)
		is_common ? update_common(cells, ctx, s, entry)
			  : update_short(cells, ctx, s, entry);
	return 0;
}

static __always_inline int add_short_of(struct pt_regs *ctx, const struct trace_site_entry *entry)
{
	__u32 at = entry->short_at;
	const struct trace_short *s = bpf_map_lookup_elem(&shorts, &at);

	return s ? add_short(ctx, entry, s, 0) : 0;
}

/* Called if only some of the sites have short programs. */
static __noinline int short_hit(struct pt_regs *ctx, const struct trace_site_entry *entry)
{
	return add_short_of(ctx, entry);
}

static __always_inline const struct trace_site_entry *site_of_short(struct pt_regs *ctx)
{
	__u32 site = n_sites > 1 ? bpf_get_attach_cookie(ctx) : 0;

	return bpf_map_lookup_elem(&sites, &site);
}

/* The program if all have. Calls of functions take time of each hit, so that it makes few. */
static __always_inline int hit_of_short(struct pt_regs *ctx)
{
	const struct trace_site_entry *entry;

	if (wants_ids && !wanted(current_ids() >> 32))
		return 0;
	entry = site_of_short(ctx);
	return entry ? add_short_of(ctx, entry) : 0;
}

/*
 * The program if all sites have the same entry and the same short program. It looks up nothing but
 * the cells. What the tables say elsewhere is constant here, so that the verifier removes the code
 * of all other programs.
 */
SEC("uprobe")
int common_short(struct pt_regs *ctx)
{
	const struct trace_site_entry *entry = (const void *)&common_entry;
	const struct trace_short *s = (const void *)&common_program;

	if (wants_ids && !wanted(current_ids() >> 32))
		return 0;
	/* They are set when the program is loaded. */
	opaque(entry);
	opaque(s);
	return add_short(ctx, entry, s, 1);
}

SEC("uprobe")
int all_short(struct pt_regs *ctx)
{
	return hit_of_short(ctx);
}

SEC("uprobe")
int multi_short(struct pt_regs *ctx)
{
	return hit_of_short(ctx);
}

#endif
