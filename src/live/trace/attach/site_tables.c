/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of sites that the kernel's program reads: where their fetch programs are, and the programs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/scope.h"
#include "trace/aggregate/aggregate.h"
#include "trace/weigh.h"

int trace_size_tables(const struct cairn_trace *t, struct bpf_map *sites, struct bpf_map *ops)
{
	int e = bpf_map__set_max_entries(sites, (uint32_t)t->sites.n);

	/* There are no programs where all sites are left out; a map has one entry at least. */
	return e ? e : bpf_map__set_max_entries(ops, t->ops.n ? (uint32_t)t->ops.n : 1);
}

/*
 * Writes a table that the BPF program only reads; the map's memory is shared with us for that
 * moment.
 */
int trace_fill_table(struct bpf_map *map, const void *from, size_t n_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t mapped = (n_bytes + page - 1) / page * page;
	void *to;

	if (!n_bytes)
		return 0;
	to = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (to == MAP_FAILED)
		return -errno;
	memcpy(to, from, n_bytes);
	munmap(to, mapped);
	return 0;
}

static void tell_return(const struct cairn_trace *t, const struct trace_site *site,
			struct trace_site_entry *entry)
{
	const struct trace_program *program = &t->programs.p[site->return_program];

	entry->return_op = program->op;
	entry->returns = TRACE_RETURNS | (program->has_condition ? TRACE_RETURNS_IF : 0);
}

static void tell_short(const struct cairn_trace *t, const struct trace_site *site,
		       struct trace_site_entry *entry)
{
	struct trace_short ignored;

	entry->is_short = aggregate_shorten(t, site->pub.program, &ignored);
	entry->short_at = site->pub.program;
}

static int fill_sites(const struct cairn_trace *t, struct bpf_map *map)
{
	SCOPE_FREE struct trace_site_entry *entries = calloc(t->sites.n, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < t->sites.n; i++) {
		const struct trace_site *site = t->sites.p[i];
		if (site->pub.refused)
			continue;
		const struct trace_program *program = &t->programs.p[site->pub.program];
		entries[i] = (struct trace_site_entry){
			.op = program->op,
			.probe = site->pub.probe,
			.has_condition = program->has_condition,
			.weight = site->weight,
			.is_inlined = site->pub.site->n_chain > 0,
			.moves_stack = site->moves_stack,
			.is_signed = t->probes.p[site->pub.probe]->is_signed};
		if (site->follows)
			tell_return(t, site, &entries[i]);
		else if (t->aggregates)
			tell_short(t, site, &entries[i]);
	}
	return trace_fill_table(map, entries, t->sites.n * sizeof(*entries));
}

int trace_fill_tables(const struct cairn_trace *t, struct bpf_map *sites, struct bpf_map *ops)
{
	int e = trace_fill_table(ops, t->ops.p, t->ops.n * sizeof(*t->ops.p));

	return e ? e : fill_sites(t, sites);
}
