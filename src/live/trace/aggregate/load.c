/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The maps of aggregates: their sizes
 *
 * Values per processor cost no time for other processors' sake, but memory for each. Beyond a
 * budget the processors share one value instead.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/scope.h"
#include "trace/aggregate/aggregate.h"
#include "trace/weigh.h"
#include "trace.skel.h"

/* All values per processor: on 128 processors, 65,000 sums or 500 histograms. */
#define PER_CPU_BYTES_MAX (UINT64_C(64) << 20)

static bool fits_per_cpu(const struct cairn_trace *t, uint64_t n_cpus)
{
	const struct aggregates *a = t->aggregates;
	uint64_t n = (a->by ? a->max_keys : 0) + t->probes.n;

	return n * (a->clears ? 2 : 1) * n_cpus * a->plan.n_cells * 8 <= PER_CPU_BYTES_MAX;
}

static int size_groups(const struct aggregates *a, struct bpf_map *map, bool is_used, bool per_cpu)
{
	int e = bpf_map__set_max_entries(map, is_used ? a->max_keys : 1);

	e = e ? e : bpf_map__set_type(map, per_cpu ? BPF_MAP_TYPE_PERCPU_HASH : BPF_MAP_TYPE_HASH);
	e = e ? e : bpf_map__set_key_size(map, a->plan.n_key ? a->plan.n_key - a->key_from : 8);
	return e ? e : bpf_map__set_value_size(map, a->plan.n_cells * 8);
}

static int size_slots(const struct cairn_trace *t, struct trace_bpf *bpf, uint32_t n_cpus)
{
	struct bpf_map *map = bpf->maps.slots;
	uint32_t n_record = t->probes.n ? t->probes.p[0]->n_record : 0;
	int e = bpf_map__set_max_entries(map, n_cpus * TRACE_SLOTS);

	e = e ? e : bpf_map__set_max_entries(bpf->maps.runs, n_cpus * TRACE_SLOTS);
	return e ? e : bpf_map__set_value_size(map, (uint32_t)sizeof(struct trace_slot) + n_record);
}

static int size_totals(const struct cairn_trace *t, struct trace_bpf *bpf, bool per_cpu)
{
	const struct aggregates *a = t->aggregates;
	struct bpf_map *map = bpf->maps.totals;
	uint32_t n_cells = a->plan.n_cells;
	int e = bpf_map__set_max_entries(map, (uint32_t)t->probes.n * (a->clears ? 2 : 1));

	e = e ? e
	      : bpf_map__set_type(map, per_cpu ? BPF_MAP_TYPE_PERCPU_ARRAY : BPF_MAP_TYPE_ARRAY);
	e = e ? e : bpf_map__set_value_size(map, n_cells * 8);
	return e ? e : bpf_map__set_value_size(bpf->maps.zeroes, n_cells * 8);
}

/* The only probe's. */
static void set_common(const struct cairn_trace *t, struct trace_bpf *bpf)
{
	const struct aggregates *a = t->aggregates;

	bpf->rodata->common_program = a->common;
	bpf->rodata->common_entry = (struct trace_site_entry){
		.has_condition = a->has_condition, .is_signed = t->probes.p[0]->is_signed};
}

int aggregates_size_maps(const struct cairn_trace *t, struct trace_bpf *bpf)
{
	const struct aggregates *a = t->aggregates;
	int n_cpus = libbpf_num_possible_cpus();

	if (n_cpus < 0)
		return n_cpus;
	bool per_cpu = fits_per_cpu(t, (uint64_t)n_cpus);
	bool has_keys = a->plan.n_key;
	int e = size_groups(a, bpf->maps.groups, has_keys, per_cpu);

	e = e ? e : size_groups(a, bpf->maps.groups_other, has_keys && a->clears, per_cpu);
	e = e ? e : size_slots(t, bpf, (uint32_t)n_cpus);
	e = e ? e : size_totals(t, bpf, per_cpu);
	/* A map has one entry at least. */
	e = e ? e : bpf_map__set_max_entries(bpf->maps.shorts, (uint32_t)t->programs.n + 1);
	bpf->rodata->plan = a->plan;
	if (a->is_common)
		set_common(t, bpf);
	return e;
}

int aggregates_fill_maps(const struct cairn_trace *t, struct trace_bpf *bpf)
{
	SCOPE_FREE struct trace_short *shorts = calloc(t->programs.n + 1, sizeof(*shorts));

	if (!shorts)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->programs.n; i++)
		aggregate_shorten(t, i, &shorts[i]);
	return trace_fill_table(bpf->maps.shorts, shorts, t->programs.n * sizeof(*shorts));
}
