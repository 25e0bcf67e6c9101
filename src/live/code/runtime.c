/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/runtime_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

int code_runtime_new(struct code_memory memory, int pid, uint16_t machine,
		     struct code_runtime **ret, struct cairn_err *err)
{
	struct code_runtime *rt = calloc(1, sizeof(*rt));
	if (!rt)
		return err_nomem(err, "the code made at run time");
	rt->memory = memory;
	rt->pid = pid;
	rt->machine = machine;
	arena_init(&rt->arena);
	*ret = rt;
	return 0;
}

void code_runtime_free(struct code_runtime *rt)
{
	if (!rt)
		return;
	for (size_t i = 0; i < rt->regions.n; i++) {
		region_fini(rt->regions.p[i]);
		free(rt->regions.p[i]);
	}
	for (size_t i = 0; i < rt->symfiles.n; i++)
		symfile_free(rt->symfiles.p[i]);
	runtime_snapshot_fini(rt);
	VEC_FREE(&rt->regions);
	VEC_FREE(&rt->ranked);
	VEC_FREE(&rt->mappings);
	VEC_FREE(&rt->symfiles);
	name_map_fini(&rt->jit_map);
	name_map_fini(&rt->gdb_map);
	for (size_t i = 0; i < RUNTIME_MAX_REGISTRIES; i++)
		registry_fini(&rt->registries[i]);
	for (size_t i = 0; i < rt->lists.n; i++)
		VEC_FREE(&rt->lists.p[i].list.entries);
	VEC_FREE(&rt->lists);
	VEC_FREE(&rt->searched);
	perf_map_fini(&rt->perf);
	for (size_t i = 0; i < RUNTIME_MAX_DUMPS; i++)
		jitdump_fini(&rt->dumps[i]);
	arena_fini(&rt->arena);
	free(rt);
}

void code_runtime_list_removed(struct code_runtime *rt)
{
	rt->lists_removed = true;
}

/* ---- mark ---- */

int code_runtime_freeze(struct code_runtime *rt, struct cairn_err *err)
{
	for (size_t i = 0; i < rt->n_registries; i++) {
		rt->stories[i].code = 0;
		if (registry_copy(&rt->registries[i], RUNTIME_MAX_ENTRIES, &rt->stories[i]) ==
		    -ENOMEM)
			return err_nomem(err, "a copy of a registry");
	}
	for (size_t i = 0; i < rt->n_lists; i++)
		if (gdb_list_read(&rt->memory, rt->lists.p[i].descriptor, RUNTIME_MAX_GDB,
				  &rt->lists.p[i].list) < 0)
			return err_nomem(err, "GDB's list of a process");
	return runtime_snapshot_begin(rt, err);
}

/* ---- listing ---- */

/* A region that is not trusted, or no longer there, is used for nothing. */
static enum cairn_code_unwind unwind_of(const struct region *r)
{
	if (!r->range.is_trusted || r->range.is_removed)
		return CAIRN_CODE_UNWIND_NONE;
	return r->range.source == CAIRN_CODE_ELF && !r->registry ? CAIRN_CODE_UNWIND_FILE
								 : region_unwind(r);
}

static size_t count_names(const struct name_map *names, const struct cairn_code_range *range)
{
	size_t n = 0;
	for (size_t i = 0; i < names->ranges.n; i++)
		n += names->ranges.p[i].lo < range->hi.v && names->ranges.p[i].hi > range->lo.v;
	return n;
}

/* The source of an unregistered mapping is the one that has names for it. */
static void attribute(const struct code_runtime *rt, struct cairn_code_range *range)
{
	for (size_t i = 0; i < rt->n_dumps; i++)
		if (name_map_touches(&rt->dumps[i].names, range->lo.v, range->hi.v)) {
			range->source = CAIRN_CODE_JITDUMP;
			range->owner = rt->dumps[i].path;
			range->n_names = count_names(&rt->dumps[i].names, range);
			return;
		}
	if (name_map_touches(&rt->perf.names, range->lo.v, range->hi.v)) {
		range->source = CAIRN_CODE_PERF_MAP;
		range->owner = rt->perf.path;
		range->n_names = count_names(&rt->perf.names, range);
	}
}

int code_runtime_load_all(struct code_runtime *rt, struct cairn_err *err)
{
	int rc = runtime_read_files(rt, err);
	for (size_t i = 0; rc == 0 && i < rt->regions.n; i++) {
		struct region *r = rt->regions.p[i];
		if (r->range.is_trusted)
			rc = region_load(r, &rt->memory, rt->machine, &rt->budget, err);
		r->range.unwind = unwind_of(r);
		if (r->range.source == CAIRN_CODE_ANONYMOUS)
			attribute(rt, &r->range);
	}
	return rc;
}

bool code_runtime_is_steady(const struct code_runtime *rt)
{
	for (size_t i = 0; i < rt->n_registries; i++)
		for (size_t k = 0; k < rt->registries[i].entries.n; k++)
			if (rt->registries[i].entries.p[k].is_changing)
				return false;
	for (size_t i = 0; i < rt->regions.n; i++)
		if (rt->regions.p[i]->is_gone)
			return false;
	return true;
}

size_t code_runtime_n_ranges(const struct code_runtime *rt)
{
	return rt->regions.n;
}

const struct cairn_code_range *code_runtime_range(const struct code_runtime *rt, size_t i)
{
	return &rt->regions.p[i]->range;
}

const char *code_runtime_note(const struct code_runtime *rt, size_t i)
{
	return i < rt->n_notes ? rt->notes[i] : NULL;
}

uint64_t code_runtime_changes(const struct code_runtime *rt)
{
	uint64_t n = 0;
	for (size_t i = 0; i < rt->n_registries; i++)
		n += rt->registries[i].head.changes;
	return n;
}
