/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables that are read while threads stand still
 *
 * A JIT may free the code of a stack, and write other code at its addresses, as soon as its threads
 * go on. Tables read afterwards are of another generation, and refused. So the regions that a stack
 * may lead to are read at once. The words on the stacks are known by then, but not yet which of
 * them are return addresses: all words that point into a region count. They are sorted, so that a
 * recursive function is looked up once. Data that was read earlier in the same epoch, and describes
 * the address, is not read again. So the regions of a JIT that keeps its code cost a search per
 * address.
 *
 * GDB's symbol files say only when they are read which code they are of: all are read when
 * something points to code that is in no file, the newest first.
 *
 * Bytes and addresses are limited, since threads wait. The rest is read later, as if there were no
 * such pass.
 */
#include "code/runtime_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/search.h"

enum {
	MAX_CATCH_BYTES = 8 << 20, /* a millisecond or two */
	MAX_HITS = 1 << 16,
};

/* ---- which regions there are ---- */

static int by_lo(const void *a, const void *b)
{
	const struct runtime_frozen *x = a, *y = b;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static bool has_tables(const struct registry_entry *e)
{
	const struct code_jit_info *j = &e->jit;
	return e->option == CODE_REGISTER_JIT && !e->why && !e->is_removed &&
	       (j->unwind_head || j->unwind_kind || j->symbols_head);
}

static void drop_caught(struct code_runtime *rt)
{
	for (size_t i = 0; i < rt->caught.n; i++) {
		region_fini(rt->caught.p[i]);
		free(rt->caught.p[i]);
	}
	rt->caught.n = 0;
	rt->has_caught_lists = false;
	for (size_t i = 0; i < rt->lists.n; i++) {
		for (size_t k = 0; k < rt->lists.p[i].caught.n; k++)
			symfile_free(rt->lists.p[i].caught.p[k]);
		rt->lists.p[i].caught.n = 0;
	}
}

int runtime_snapshot_begin(struct code_runtime *rt, struct cairn_err *err)
{
	drop_caught(rt);
	rt->marked.n = 0;
	rt->snapshot_budget = MAX_CATCH_BYTES;
	rt->is_ahead = false;
	for (size_t i = 0; i < rt->n_registries; i++) {
		struct registry *r = &rt->registries[i];
		/*
		 * A forked process has all that its parent had then, also entries that the parent
		 * removed since.
		 */
		int rc = registry_parse(r, rt->lists_removed || r->as_of_ns, err);
		for (size_t k = 0; rc == 0 && k < r->entries.n; k++) {
			const struct registry_entry *e = &r->entries.p[k];
			if (has_tables(e) &&
			    !VEC_ADD(&rt->marked, ((struct runtime_frozen){e->jit.text_start,
									   e->jit.text_end, r, e})))
				rc = err_nomem(err, "the regions of a process");
		}
		if (rc < 0)
			return rc;
	}
	if (rt->marked.n)
		qsort(rt->marked.p, rt->marked.n, sizeof(*rt->marked.p), by_lo);
	return 0;
}

void runtime_snapshot_fini(struct code_runtime *rt)
{
	drop_caught(rt);
	for (size_t i = 0; i < rt->lists.n; i++)
		VEC_FREE(&rt->lists.p[i].caught);
	VEC_FREE(&rt->caught);
	VEC_FREE(&rt->marked);
}

/* Regions of one registry do not overlap; of several the one that begins last counts. */
static struct runtime_frozen *marked_at(const struct code_runtime *rt, uint64_t at)
{
	size_t lo = SEARCH(0, rt->marked.n, mid, rt->marked.p[mid].lo <= at);
	return lo && at <= rt->marked.p[lo - 1].hi ? &rt->marked.p[lo - 1] : NULL;
}

/* ---- the data to read ---- */

/* The first region that begins at or after @at; they are in order of address. */
static size_t first_region(const struct code_runtime *rt, uint64_t at)
{
	size_t lo = SEARCH(0, rt->regions.n, mid, rt->regions.p[mid]->range.lo.v < at);
	return lo;
}

/*
 * The data of an earlier resolve, of the same epoch. A process may have 60,000 regions, and wait.
 */
static struct region *earlier_of(const struct code_runtime *rt, const struct runtime_frozen *m)
{
	for (size_t i = first_region(rt, m->lo);
	     i < rt->regions.n && rt->regions.p[i]->range.lo.v == m->lo; i++) {
		struct region *r = rt->regions.p[i];
		if (r->is_loaded && r->registry_lo == m->registry->lo &&
		    r->number == m->entry->number && r->range.generation == m->entry->epoch &&
		    !memcmp(&r->info, &m->entry->jit, sizeof(r->info)))
			return r;
	}
	return NULL;
}

static int read_region(struct code_runtime *rt, struct runtime_frozen *m, struct cairn_err *err)
{
	struct region *r = calloc(1, sizeof(*r));
	if (!r || !VEC_ADD(&rt->caught, r)) {
		free(r);
		return err_nomem(err, "the regions of a process");
	}
	r->registry = m->registry;
	r->registry_lo = m->registry->lo;
	r->number = m->entry->number;
	r->range.generation = m->entry->epoch;
	r->range.lo.v = m->lo;
	r->range.hi.v = m->hi;
	r->info = m->entry->jit;
	m->has_read = true;
	int rc = region_load(r, &rt->memory, rt->machine, &rt->snapshot_budget, err);
	if (rc == 0 && r->is_loaded) {
		if (m->region) {
			region_take_strings(r, m->region);
			m->region->is_loaded = false;
		}
		m->region = r;
	}
	return rc;
}

/* A return address, after a call, or an instruction that was about to run. */
static int snapshot_at(struct code_runtime *rt, uint64_t at, struct cairn_err *err)
{
	struct runtime_frozen *m = marked_at(rt, at);
	const struct code_mapping *mapping = code_maps_find(code_space_maps(rt->space), at - 1);
	int rc = 0;
	rt->is_ahead |= !mapping || !mapping->is_executable;
	if (!m->region && !m->has_read)
		m->region = earlier_of(rt, m);
	bool is_described = m->region && (region_describes(m->region, at - 1, rt->machine) ||
					  region_describes(m->region, at, rt->machine));
	if (!is_described && !m->has_read)
		rc = read_region(rt, m, err);
	if (rc == 0 && m->region)
		rc = region_catch_names(m->region, &rt->memory, at - 1);
	if (rc == 0 && m->region)
		rc = region_catch_names(m->region, &rt->memory, at);
	return rc < 0 ? err_nomem(err, "the regions of a process") : 0;
}

/* ---- GDB's symbol files ---- */

static bool leads_to_memory(const struct code_runtime *rt, const void *words, size_t n)
{
	const struct code_maps *maps = code_space_maps(rt->space);
	uint64_t lo = UINT64_MAX, hi = 0;
	for (size_t i = 0; i < maps->p.n; i++)
		if (code_is_anonymous(&maps->p.p[i])) {
			lo = lo == UINT64_MAX ? maps->p.p[i].lo : lo;
			hi = maps->p.p[i].hi;
		}
	for (size_t i = 0; i < n; i++) {
		uint64_t at;
		memcpy(&at, (const uint8_t *)words + i * sizeof(at), sizeof(at));
		if (at < lo || at > hi)
			continue;
		const struct code_mapping *m = code_maps_find(maps, at - 1);
		if (m && code_is_anonymous(m))
			return true;
	}
	return false;
}

/* A list that cannot be read is reported when resolve reads it again. */
static int snapshot_list(struct code_runtime *rt, struct runtime_list *list, struct cairn_err *err)
{
	for (size_t i = 0; i < list->list.entries.n; i++) {
		const struct gdb_entry *e = &list->list.entries.p[i];
		struct symfile *s = NULL;
		if (e->size > rt->snapshot_budget)
			break;
		rt->snapshot_budget -= e->size;
		int rc = symfile_new(&rt->memory, e->symfile, e->size, &s, NULL);
		if (rc == 0 && !gdb_entry_is_same(&rt->memory, e)) {
			symfile_free(s);
			s = NULL;
		}
		if (rc == -ENOMEM || !VEC_ADD(&list->caught, s)) {
			symfile_free(s);
			return err_nomem(err, "GDB's symbol files");
		}
	}
	return 0;
}

static int snapshot_lists(struct code_runtime *rt, const void *words, size_t n,
			  struct cairn_err *err)
{
	int rc = 0;
	if (rt->has_caught_lists || !rt->n_lists || !leads_to_memory(rt, words, n))
		return 0;
	rt->has_caught_lists = true;
	for (size_t i = 0; rc == 0 && i < rt->n_lists; i++)
		rc = snapshot_list(rt, &rt->lists.p[i], err);
	return rc;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

int code_runtime_snapshot(struct code_runtime *rt, const void *words, size_t n,
			  struct cairn_err *err)
{
	VEC(uint64_t) hits = {0};
	int rc = 0;
	uint64_t lo = rt->marked.n ? rt->marked.p[0].lo : UINT64_MAX;
	for (size_t i = 0; rc == 0 && rt->marked.n && i < n && hits.n < MAX_HITS; i++) {
		uint64_t at;
		memcpy(&at, (const uint8_t *)words + i * sizeof(at), sizeof(at));
		if (at >= lo && marked_at(rt, at) && !VEC_ADD(&hits, at))
			rc = err_nomem(err, "the regions of a process");
	}
	if (hits.n)
		qsort(hits.p, hits.n, sizeof(*hits.p), ascending);
	for (size_t i = 0; rc == 0 && i < hits.n; i++)
		if (!i || hits.p[i] != hits.p[i - 1])
			rc = snapshot_at(rt, hits.p[i], err);
	VEC_FREE(&hits);
	return rc < 0 ? rc : snapshot_lists(rt, words, n, err);
}

bool code_runtime_is_ahead(const struct code_runtime *rt)
{
	return rt->is_ahead;
}
