/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Hits that are summed up in maps (abi.h); part of trace.bpf.c
 *
 * A hit takes a slot, lets the fetch program write numbers and key into it, finds the cells of the
 * key, and adds to them. Hits whose values need registers only have a shorter way (short.bpf.h).
 *
 * Why slots: a program of user probes may be preempted, and may sleep, so that one buffer per
 * processor would be overwritten by the next hit there. A slot belongs to one hit. When the slots
 * of a processor are all taken, the hit is lost, and counted. Each slot has a run of its own.
 *
 * Why every addition is atomic, also to cells of this processor alone: for the same reason. Where
 * values per processor would take too much memory, the maps are shared by the processors instead;
 * the code is the same.
 *
 * There are two sets of maps. The reader switches to the other set when an interval begins anew. It
 * reads and empties a set only when each slot that was taken at the switch has been given back.
 * So no hit is in both intervals or in neither.
 */
#ifndef TRACE_AGGREGATE_BPF_H
#define TRACE_AGGREGATE_BPF_H

#include "../quantile.h"

/* Sizes are set when the program is loaded. */
#define GROUPS(name)                                                                               \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_PERCPU_HASH);                                            \
		__uint(max_entries, 1);                                                            \
		__uint(key_size, 8);                                                               \
		__uint(value_size, 8);                                                             \
	} name SEC(".maps")
GROUPS(groups);
GROUPS(groups_other);

/* Per probe: its row when there are no keys, else the hits of keys that found no room. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, 8);
} slots SEC(".maps");

/* The cells of a new key. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 8);
} zeroes SEC(".maps");

const volatile struct trace_aggregate_plan plan = {};

/* Which set of maps is written. */
__u32 epoch = 0;

/* Another hit may change the cell in between, but only upwards. */
#define RAISE_TRIES 64

static __noinline struct trace_slot *take_slot(struct work *w)
{
	__u32 first = bpf_get_smp_processor_id() * TRACE_SLOTS;

#pragma unroll
	for (int i = 0; i < TRACE_SLOTS; i++) {
		__u32 at = first + i;
		struct trace_slot *slot = bpf_map_lookup_elem(&slots, &at);
		__u64 turn;

		w->run = bpf_map_lookup_elem(&runs, &at);
		if (!slot || !w->run)
			return NULL;
		turn = *(volatile __u64 *)&slot->turn;
		if (!(turn & 1) && __sync_bool_compare_and_swap(&slot->turn, turn, turn + 1))
			return slot;
	}
	return NULL;
}

static __always_inline void give_back(struct trace_slot *slot)
{
	__sync_fetch_and_add(&slot->turn, 1);
}

/* Everything of the key but its values, zeroes where they go. */
static __always_inline void begin_key(char *rec, __u32 rec_size, const struct run *r, __u32 probe,
				      __u32 site)
{
	__u32 from = plan.n_numbers * 8, n = plan.n_key;

	for (__u32 i = 0; i < n && from + i + 8 <= rec_size; i += 8)
		*(__u64 *)(rec + from + i) = 0;
	if (from + 8 <= rec_size)
		*(__u32 *)(rec + from) = probe;
#define PUT(what, type, value)                                                                     \
	if (plan.what && plan.what + sizeof(type) <= rec_size)                                     \
	*(type *)(rec + plan.what) = value
	PUT(pid, __u32, r->ids >> 32);
	PUT(tid, __u32, r->ids);
	PUT(cpu, __u32, bpf_get_smp_processor_id());
	PUT(site, __u32, site);
	PUT(cgroup, __u64, bpf_get_current_cgroup_id());
	PUT(stack, __u64, r->stack.id[0]);
#undef PUT
	if (plan.stack && plan.stack + 16 <= rec_size)
		*(__u64 *)(rec + plan.stack + 8) = r->stack.id[1];
	if (plan.comm && plan.comm + 16 <= rec_size) {
		const struct task_struct *task = bpf_get_current_task_btf();
		const __u64 *comm = (const void *)task->comm;

		*(__u64 *)(rec + plan.comm) = comm[0];
		*(__u64 *)(rec + plan.comm + 8) = comm[1];
	}
}

/*
 * The cells of a key, which is added when it is new. NULL when there is no room for it, or when the
 * map refuses it for another reason, which is counted.
 */
static __always_inline __u64 *add_group(void *map, const void *key, __u32 probe)
{
	__u32 zero = 0;
	void *none = bpf_map_lookup_elem(&zeroes, &zero);
	long e;

	if (!none)
		return NULL;
	e = bpf_map_update_elem(map, key, none, BPF_NOEXIST);
	/* E2BIG: full. EEXIST: another processor was faster. */
	if (e && e != -7 && e != -17)
		count(probe, FAILED);
	return e == -7 ? NULL : bpf_map_lookup_elem(map, key);
}

static __always_inline __u64 *group_cells(const void *key, __u32 is_other, __u32 probe)
{
	__u64 *cells;

	if (is_other) {
		cells = bpf_map_lookup_elem(&groups_other, key);
		return cells ? cells : add_group(&groups_other, key, probe);
	}
	cells = bpf_map_lookup_elem(&groups, key);
	return cells ? cells : add_group(&groups, key, probe);
}

static __always_inline void add(__u64 *cell, __u64 v)
{
	__sync_fetch_and_add(cell, v);
}

static __always_inline void raise(__u64 *cell, __u64 v, __u32 probe)
{
	for (int i = 0; i < RAISE_TRIES; i++) {
		__u64 before = *(volatile __u64 *)cell;

		if (before >= v || __sync_bool_compare_and_swap(cell, before, v))
			return;
	}
	count(probe, FAILED);
}

static __always_inline __u32 log2_of(__u64 v)
{
	__u32 ret = 0;

#define HALF(bits)                                                                                 \
	if (v >> bits) {                                                                           \
		v >>= bits;                                                                        \
		ret += bits;                                                                       \
	}
	HALF(32)
	HALF(16)
	HALF(8)
	HALF(4)
	HALF(2)
	HALF(1)
#undef HALF
	return ret;
}

static __always_inline __u64 hist_bucket(__u64 v, __u32 n_below, int is_signed)
{
	if (!v)
		return n_below;
	if (is_signed && (__s64)v < 0)
		return n_below - 1 - log2_of(-v);
	return n_below + 1 + log2_of(v);
}

static __always_inline __u64 lhist_bucket(__u64 v, __s64 from, __u64 step, __u32 n_buckets,
					  int is_signed)
{
	__u64 steps;

	/* An unsigned number beyond INT64_MAX is above every bucket. */
	if (!is_signed && (__s64)v < 0)
		return n_buckets - 1;
	if ((__s64)v < from)
		return 0;
	steps = (v - (__u64)from) / step;
	return steps < n_buckets - 2 ? steps + 1 : n_buckets - 1;
}

static __always_inline __u64 quantile_at(__u64 v, __u32 n_below, int is_signed)
{
	if (is_signed && (__s64)v < 0)
		return n_below - quantile_bucket(-v, log2_of(-v));
	return n_below + quantile_bucket(v, log2_of(v));
}

static __always_inline void add_to_bucket(__u64 *cells, __u32 first, __u64 bucket)
{
	__u64 at = first + bucket;

	opaque(at);
	if (at < plan.n_cells)
		add(cells + at, 1);
}

/* Apart, as it would need more room in the function that has all updates. */
static __noinline int add_quantile(__u64 *cells, __u32 k, __u64 v, int is_signed, __u32 probe)
{
	const volatile struct trace_update *u = &plan.updates[k & (TRACE_UPDATES_MAX - 1)];
	__u32 first = u->cell + 1;

	if (first >= plan.n_cells)
		return 0;
	raise(cells + first, v ^ (is_signed ? 1ULL << 63 : 0), probe);
	add_to_bucket(cells, first + 1, quantile_at(v, u->n_below, is_signed));
	return 0;
}

static __always_inline void update(__u64 *cells, const int k, __u64 v, int is_signed, __u32 probe)
{
	__u32 first = plan.updates[k].cell + 1;
	__u32 n_buckets = plan.updates[k].n_buckets;
	__u64 sign = is_signed ? 1ULL << 63 : 0;

	switch (plan.updates[k].kind) {
	case TRACE_UPDATE_SUM:
		add(cells + first, v & 0xffffffff);
		add(cells + first + 1, is_signed ? (__u64)((__s64)v >> 32) : v >> 32);
		return;
	case TRACE_UPDATE_MIN:
		raise(cells + first, ~(v ^ sign), probe);
		return;
	case TRACE_UPDATE_MAX:
		raise(cells + first, v ^ sign, probe);
		return;
	case TRACE_UPDATE_HIST:
		add_to_bucket(cells, first, hist_bucket(v, plan.updates[k].n_below, is_signed));
		return;
	case TRACE_UPDATE_LHIST:
		if (plan.updates[k].step)
			add_to_bucket(cells, first,
				      lhist_bucket(v, plan.updates[k].from, plan.updates[k].step,
						   n_buckets, is_signed));
		return;
	case TRACE_UPDATE_QUANTILES:
		add_quantile(cells, k, v, is_signed, probe);
		return;
	}
}

static __always_inline void update_all(__u64 *cells, const char *rec,
				       const struct trace_site_entry *entry, __u32 faults)
{
	add(cells, 1);
#pragma unroll
	for (int k = 0; k < TRACE_UPDATES_MAX; k++) {
		__u32 number = plan.updates[k].number & (TRACE_UPDATES_MAX - 1);
		int is_signed = entry->is_signed >> k & 1;

		if (plan.updates[k].kind == TRACE_UPDATE_NONE)
			continue;
		if (faults >> number & 1)
			add(cells + plan.updates[k].cell, 1);
		else
			update(cells, k, *(const __u64 *)(rec + number * 8), is_signed,
			       entry->probe);
	}
}

#include "short.bpf.h"

static __noinline int aggregate(char *rec, const struct trace_site_entry *entry, __u32 faults)
{
	__u32 is_other = *(volatile __u32 *)&epoch & 1;
	__u32 own = entry->probe + (is_other ? plan.n_probes : 0);
	char *key = rec + plan.n_numbers * 8;
	__u64 *cells = NULL;

	if (plan.n_key) {
		*(__u32 *)(key + 4) = faults >> plan.n_numbers;
		cells = group_cells(key, is_other, entry->probe);
	}
	if (!cells)
		cells = bpf_map_lookup_elem(&totals, &own);
	if (cells)
		update_all(cells, rec, entry, faults);
	return 0;
}

/*
 * A program with stacks, one without, and the latter once more for kprobe_multi links. The caller of an
 * inlined copy is around its site.
 */
#define AGGREGATE(name, size, with_stack)                                                          \
	SEC("uprobe")                                                                              \
	int name(struct pt_regs *ctx)                                                              \
	{                                                                                          \
		__u64 ids = current_ids();                                                         \
		__u32 site;                                                                        \
		const struct trace_site_entry *entry = entry_of(ctx, ids, &site);                  \
		struct trace_slot *slot;                                                           \
		struct work w;                                                                     \
                                                                                                   \
		if (!entry)                                                                        \
			return 0;                                                                  \
		if (!with_stack && plan.n_key <= TRACE_SHORT_KEY && entry->is_short)               \
			return short_hit(ctx, entry);                                              \
		slot = take_slot(&w);                                                              \
		if (!slot) {                                                                       \
			count(entry->probe, LOST);                                                 \
			return 0;                                                                  \
		}                                                                                  \
		w.rec = slot->record;                                                              \
		w.run->ids = ids;                                                                  \
		begin_run(ctx, w.run, entry);                                                      \
		if (is_wanted(&w, entry)) {                                                        \
			if (with_stack && stacks_of == TRACE_STACKS_CALLER && entry->is_inlined)   \
				use_caller(w.run, site);                                           \
			else if (with_stack)                                                       \
				take_stack(ctx, w.run, entry, site);                               \
			work_##size(&w, entry, site);                                              \
		}                                                                                  \
		give_back(slot);                                                                   \
		return 0;                                                                          \
	}

#define AGGREGATE_PROGRAM(size)                                                                    \
	static __noinline int work_##size(struct work *w, const struct trace_site_entry *entry,    \
					  __u32 site)                                              \
	{                                                                                          \
		if (plan.n_key)                                                                    \
			begin_key(w->rec, size, w->run, entry->probe, site);                       \
		if (!store_registers(w->run, w->rec, size))                                        \
			REPEAT(fetch_step_##size, w);                                              \
		return aggregate(w->rec, entry, w->run->faults);                                   \
	}                                                                                          \
	AGGREGATE(aggregate_##size, size, 0)                                                       \
	AGGREGATE(multi_aggregate_##size, size, 0)                                                 \
	AGGREGATE(stacked_aggregate_##size, size, 1)
TRACE_AGGREGATE_CLASSES(AGGREGATE_PROGRAM)

#endif
