/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries become regions
 *
 * Among overlapping registrations the newest counts, and the older one is listed as superseded: a
 * region that passes into a new generation is there twice for a moment. Within a registry the
 * higher epoch is newer. Two registries of one process have their own epochs, and there the time of
 * registration decides. A registration that an observer only assumed (CODE_JIT_ASSUMED) is older
 * than any declared one, and stays only at addresses without another description:
 *
 *	assumed		[0,1000)
 *	epoch 5		   [100,200)	superseded by 7
 *	epoch 7		   [100,200)
 *	counts		0..100 assumed, 100..200 epoch 7, 200..1000 assumed
 *
 * Tables that an earlier resolve read are still right if the region has the same epoch: they are
 * taken over, and read again when an address is not in them. This also serves a region whose epoch
 * at the mark has ended since: data that is not taken over cannot be read any more.
 */
#include "code/runtime_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* ---- earlier results ---- */

/* Regions of an earlier resolve whose tables were read, by registry and epoch. */
struct earlier {
	VEC(struct region *) all, loaded;
};

static int by_epoch(const void *a, const void *b)
{
	const struct region *x = *(struct region *const *)a, *y = *(struct region *const *)b;
	if (x->registry_lo != y->registry_lo)
		return x->registry_lo < y->registry_lo ? -1 : 1;
	if (x->range.generation != y->range.generation)
		return x->range.generation < y->range.generation ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int keep_earlier(struct code_runtime *rt, struct earlier *ret)
{
	ret->all.p = rt->regions.p;
	ret->all.n = rt->regions.n;
	ret->all.cap = rt->regions.cap;
	rt->regions.p = NULL;
	rt->regions.n = rt->regions.cap = 0;
	for (; rt->caught.n; rt->caught.n--)
		if (!VEC_ADD(&ret->all, rt->caught.p[rt->caught.n - 1]))
			return -ENOMEM;
	rt->marked.n = 0;
	for (size_t i = 0; i < ret->all.n; i++)
		if (ret->all.p[i]->is_loaded && !VEC_ADD(&ret->loaded, ret->all.p[i]))
			return -ENOMEM;
	if (ret->loaded.n)
		qsort(ret->loaded.p, ret->loaded.n, sizeof(*ret->loaded.p), by_epoch);
	return 0;
}

static void free_earlier(struct earlier *e)
{
	for (size_t i = 0; i < e->all.n; i++) {
		region_fini(e->all.p[i]);
		free(e->all.p[i]);
	}
	VEC_FREE(&e->all);
	VEC_FREE(&e->loaded);
}

/* Whether there was something: then it is @r's. */
static bool take_over(const struct earlier *e, struct region *r)
{
	struct region **found =
		e->loaded.n ? bsearch(&r, e->loaded.p, e->loaded.n, sizeof(*e->loaded.p), by_epoch)
			    : NULL;
	if (!found || !(*found)->is_loaded ||
	    memcmp(&(*found)->info, &r->info, sizeof(r->info)) != 0)
		return false;
	region_take_over(r, *found);
	(*found)->is_loaded = false;
	return true;
}

static void forget(struct code_runtime *rt)
{
	for (size_t i = 0; i < rt->symfiles.n; i++)
		symfile_free(rt->symfiles.p[i]);
	rt->ranked.n = rt->mappings.n = rt->symfiles.n = 0;
	name_map_fini(&rt->jit_map);
	name_map_fini(&rt->gdb_map);
	arena_fini(&rt->arena);
	arena_init(&rt->arena);
	rt->n_notes = 0;
	memset(rt->notes, 0, sizeof(rt->notes));
	rt->has_read_files = false;
	rt->budget = RUNTIME_MAX_BYTES;
}

/* ---- registries ---- */

static struct region *add_region(struct code_runtime *rt, uint64_t lo, uint64_t hi,
				 enum cairn_code_source source)
{
	struct region *r = calloc(1, sizeof(*r));
	if (!r || !VEC_ADD(&rt->regions, r)) {
		free(r);
		return NULL;
	}
	r->range = (struct cairn_code_range){
		.lo = {lo}, .hi = {hi}, .source = source, .is_trusted = true};
	return r;
}

/* If there is no file, its own unwind information is all there is. */
static void take_as_memory(struct region *r, const struct registry *registry,
			   const struct code_elf_info *elf)
{
	r->registry = registry;
	r->info = (struct code_jit_info){
		.text_start = elf->text_start,
		.text_end = elf->text_end,
		.extended = CODE_JIT_EXTENDED,
		.unwind_start = elf->unwind_start,
		.unwind_end = elf->unwind_end,
		.unwind_kind = elf->unwind_kind,
	};
}

static int verify(struct code_runtime *rt, struct region *r, const struct registry *registry,
		  const struct registry_entry *e, struct cairn_err *err)
{
	bool has_file;
	if (e->option == CODE_REGISTER_JIT) {
		r->registry = registry;
		r->info = e->jit;
		runtime_verify_jit(rt, r);
		return 0;
	}
	int rc = runtime_verify_elf(rt, r, e, &has_file, err);
	if (rc == 0 && r->range.is_trusted && !has_file)
		take_as_memory(r, registry, &e->elf);
	return rc;
}

static void describe(struct code_runtime *rt, struct region *r, const struct registry *registry,
		     const struct registry_entry *e)
{
	r->registry_lo = registry->lo;
	r->number = e->number;
	r->range.owner = e->name ? arena_strdup(&rt->arena, e->name) : NULL;
	r->range.generation = e->epoch;
	r->range.since_ns = e->since_ns;
	r->range.until_ns = e->until_ns;
	r->range.is_removed = e->is_removed;
	if (e->why)
		runtime_distrust(r, e->why);
}

/* Its copy may be of two registrations, unless it equals the data read earlier in this epoch. */
static void take_changing(const struct earlier *earlier, struct region *r)
{
	r->is_gone = r->range.is_trusted;
	if (!r->registry || !take_over(earlier, r))
		runtime_distrust(r, "it was freed or replaced while it was read");
}

static int add_entry(struct code_runtime *rt, const struct registry *registry,
		     const struct registry_entry *e, const struct earlier *earlier,
		     struct cairn_err *err)
{
	bool is_jit = e->option == CODE_REGISTER_JIT, is_elf = e->option == CODE_REGISTER_ELF;
	uint64_t lo = is_jit ? e->jit.text_start : is_elf ? e->elf.text_start : 0;
	uint64_t hi = is_jit ? e->jit.text_end : is_elf ? e->elf.text_end : 0;
	struct region *r = add_region(rt, lo, hi, is_jit ? CAIRN_CODE_JIT : CAIRN_CODE_ELF);
	int rc = 0;
	if (!r)
		return err_nomem(err, "the regions of a process");
	describe(rt, r, registry, e);
	if (r->range.is_trusted && !r->range.is_removed)
		rc = verify(rt, r, registry, e, err);
	if (rc < 0)
		return rc;
	if (e->is_changing)
		take_changing(earlier, r);
	else if (r->registry)
		take_over(earlier, r);
	return 0;
}

/*
 * Puts an entry back to the time of the fork: the parent's later registrations are not this
 * process's, and entries that it removed since are still valid.
 */
static bool goes_back(const struct registry *r, struct registry_entry *e)
{
	if (!r->as_of_ns)
		return true;
	if (e->since_ns > r->as_of_ns || (e->is_removed && e->until_ns <= r->as_of_ns))
		return false;
	e->is_removed = false;
	e->until_ns = 0;
	return true;
}

static int resolve_registry(struct code_runtime *rt, struct registry *r,
			    const struct earlier *earlier, struct cairn_err *err)
{
	int rc = registry_strings(r, err);
	if (rc == 0)
		rc = registry_check(r, err);
	for (size_t i = 0; rc >= 0 && i < r->entries.n; i++)
		if (goes_back(r, &r->entries.p[i]))
			rc = add_entry(rt, r, &r->entries.p[i], earlier, err);
	return rc < 0 ? rc : 0;
}

static void note_left_out(struct code_runtime *rt, const struct registry *r)
{
	uint32_t n = r->n ? r->head.n_entries - r->n : 0;
	const char *text = n ? arena_printf(&rt->arena,
					    "registry at 0x%llx: %u entries; the first %u are "
					    "read, %u are left out",
					    (unsigned long long)r->lo, r->head.n_entries, r->n, n)
			     : NULL;
	if (n)
		runtime_note(rt, text ? text : "a registry has more entries than are read");
}

static void note_shared(struct code_runtime *rt)
{
	const struct code_maps *maps = code_space_maps(rt->space);
	for (size_t i = 0; i < maps->p.n; i++) {
		const struct code_mapping *m = &maps->p.p[i];
		if (!m->is_shared || m->off || strcmp(m->path, "/memfd:" CODECTL_REGISTRY_NAME))
			continue;
		const char *text = arena_printf(&rt->arena,
						"registry at 0x%llx: not read, since it is a "
						"shared mapping, which others may "
						"write; expected a private one",
						(unsigned long long)m->lo);
		runtime_note(rt, text ? text : "a registry is a shared mapping, and not read");
	}
}

static int resolve_registries(struct code_runtime *rt, const struct earlier *earlier,
			      struct cairn_err *err)
{
	int rc = 0;
	note_shared(rt);
	if (rt->notice_story[0])
		runtime_note(rt, rt->notice_story);
	if (rt->has_more)
		runtime_note(rt,
			     "the process has more registries, or lists for GDB, than are read");
	for (size_t i = 0; rc == 0 && i < rt->n_registries; i++) {
		/* Its copy is empty then. */
		if (rt->stories[i].code)
			runtime_note(rt, rt->stories[i].msg);
		note_left_out(rt, &rt->registries[i]);
		rc = resolve_registry(rt, &rt->registries[i], earlier, err);
	}
	return rc;
}

/* ---- GDB's lists ---- */

/*
 * The copy made at the snapshot, or the present one; it is the caller's. NULL: it cannot be read,
 * as was noted; -ENOMEM.
 */
static int take_symfile(struct code_runtime *rt, struct runtime_list *list, size_t number,
			struct symfile **ret, bool *ret_is_same)
{
	const struct gdb_entry *e = &list->list.entries.p[number];
	struct cairn_err story = {0};
	*ret_is_same = true;
	if (number < list->caught.n && list->caught.p[number]) {
		*ret = list->caught.p[number];
		list->caught.p[number] = NULL;
		return 0;
	}
	int rc = symfile_new(&rt->memory, e->symfile, e->size, ret, &story);
	*ret_is_same = rc == 0 && gdb_entry_is_same(&rt->memory, e);
	if (rc < 0 && rc != -ENOMEM)
		runtime_note(rt, story.msg);
	return rc == -ENOMEM ? rc : 0;
}

static int add_symfile(struct code_runtime *rt, struct runtime_list *list, size_t number,
		       struct cairn_err *err)
{
	struct symfile *s = NULL;
	bool is_same;
	int rc = take_symfile(rt, list, number, &s, &is_same);
	if (rc == 0 && !s)
		return 0;
	if (rc < 0 || !VEC_ADD(&rt->symfiles, s)) {
		symfile_free(s);
		return err_nomem(err, "GDB's symbol files");
	}
	for (size_t i = 0; i < s->ranges.n; i++) {
		struct region *r =
			add_region(rt, s->ranges.p[i].lo, s->ranges.p[i].hi, CAIRN_CODE_GDB);
		if (!r)
			return err_nomem(err, "the regions of a process");
		r->symfile = s;
		r->range.owner = "__jit_debug_descriptor";
		r->range.n_names = s->symbols.n;
		r->range.n_rows = symfile_n_fdes(s);
		if (!is_same)
			runtime_distrust(r, "it was freed or replaced while it was read");
		runtime_verify_jit(rt, r);
	}
	return 0;
}

/* False, and noted once, when there are too many bytes. */
static bool spend(struct code_runtime *rt, uint64_t n)
{
	if (n > rt->budget) {
		runtime_note(rt, "__jit_debug_descriptor: the symbol files exceed the limit for "
				 "one process");
		return false;
	}
	rt->budget -= n;
	return true;
}

/*
 * A list begins with the last registration. So it is read from its end, and the newest ranks
 * highest.
 */
static int resolve_lists(struct code_runtime *rt, struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < rt->n_lists; i++) {
		const struct gdb_list *list = &rt->lists.p[i].list;
		const char *text = list->why ? arena_printf(&rt->arena,
							    "__jit_debug_descriptor: %s", list->why)
					     : NULL;
		if (list->why)
			runtime_note(rt, text ? text : list->why);
		for (size_t k = list->entries.n;
		     rc == 0 && k-- > 0 && spend(rt, list->entries.p[k].size);)
			rc = add_symfile(rt, &rt->lists.p[i], k, err);
	}
	return rc;
}

/* ---- which one counts ---- */

/* Each mapping that is executable has a range of its own, for names that files have of it. */
static int add_anonymous(struct code_runtime *rt, struct cairn_err *err)
{
	const struct code_maps *maps = code_space_maps(rt->space);
	for (size_t i = 0; i < maps->p.n; i++) {
		const struct code_mapping *m = &maps->p.p[i];
		if (!code_is_anonymous(m))
			continue;
		struct region *r = add_region(rt, m->lo, m->hi, CAIRN_CODE_ANONYMOUS);
		if (!r || !VEC_ADD(&rt->mappings, r))
			return err_nomem(err, "the regions of a process");
		r->range.owner = m->path[0] ? arena_strdup(&rt->arena, m->path) : NULL;
		r->range.unwind = CAIRN_CODE_UNWIND_ASSUMED;
	}
	return 0;
}

static bool is_assumed(const struct region *r)
{
	return r->info.flags & CODE_JIT_ASSUMED;
}

/*
 * Also one that changed since the mark: nothing is known of its code, and nothing should be
 * assumed.
 */
static bool is_in_jit_map(const struct region *r)
{
	return r->registry && (r->range.is_trusted || r->is_gone) && !r->range.is_removed;
}

static int by_age(const void *a, const void *b)
{
	const struct region *x = *(struct region *const *)a, *y = *(struct region *const *)b;
	if (is_assumed(x) != is_assumed(y))
		return is_assumed(x) ? -1 : 1;
	if (x->age != y->age)
		return x->age < y->age ? -1 : 1;
	return by_epoch(a, b);
}

/*
 * Older ones first. Within a registry the age never contradicts the epochs, whatever the times say.
 */
static void sort_by_age(struct code_runtime *rt)
{
	struct region **p = rt->ranked.p;
	qsort(p, rt->ranked.n, sizeof(*p), by_epoch);
	for (size_t i = 0; i < rt->ranked.n; i++) {
		bool is_first = !i || p[i - 1]->registry_lo != p[i]->registry_lo;
		p[i]->age = is_first || p[i]->range.since_ns > p[i - 1]->age ? p[i]->range.since_ns
									     : p[i - 1]->age;
	}
	qsort(p, rt->ranked.n, sizeof(*p), by_age);
}

static int map_ranked(struct code_runtime *rt)
{
	for (size_t i = 0; i < rt->ranked.n; i++) {
		const struct region *r = rt->ranked.p[i];
		if (is_in_jit_map(r) &&
		    !name_map_add(&rt->jit_map, r->range.lo.v, r->range.hi.v, (uint32_t)i))
			return -ENOMEM;
	}
	return name_map_flatten(&rt->jit_map);
}

/*
 * A region that does not have all of its addresses in the map is superseded, unless it was only
 * assumed. True when there is any.
 */
static bool supersede(struct code_runtime *rt)
{
	bool any = false;
	VEC(uint64_t) kept = {0};
	bool ok = true;
	for (size_t i = 0; ok && i < rt->ranked.n; i++)
		ok = VEC_ADD(&kept, 0);
	for (size_t i = 0; ok && i < rt->jit_map.ranges.n; i++) {
		const struct name_range *n = &rt->jit_map.ranges.p[i];
		kept.p[n->item] += n->hi - n->lo;
	}
	for (size_t i = 0; ok && i < rt->ranked.n; i++) {
		struct region *r = rt->ranked.p[i];
		if (!is_in_jit_map(r) || is_assumed(r) ||
		    kept.p[i] == r->range.hi.v - r->range.lo.v)
			continue;
		runtime_distrust(r, "it is superseded: a newer registration is there");
		any = true;
	}
	VEC_FREE(&kept);
	return any;
}

/* The registry's regions by age, and the map of those that count. */
static int rank_registered(struct code_runtime *rt)
{
	for (size_t i = 0; i < rt->regions.n; i++)
		if (is_in_jit_map(rt->regions.p[i]) && !VEC_ADD(&rt->ranked, rt->regions.p[i]))
			return -ENOMEM;
	if (rt->ranked.n)
		sort_by_age(rt);
	int rc = map_ranked(rt);
	if (rc < 0 || !supersede(rt))
		return rc;
	name_map_fini(&rt->jit_map);
	return map_ranked(rt);
}

static int rank_gdb(struct code_runtime *rt)
{
	for (size_t i = 0; i < rt->regions.n; i++) {
		struct region *r = rt->regions.p[i];
		if (!r->symfile || !r->range.is_trusted)
			continue;
		if (!name_map_add(&rt->gdb_map, r->range.lo.v, r->range.hi.v,
				  (uint32_t)rt->ranked.n) ||
		    !VEC_ADD(&rt->ranked, r))
			return -ENOMEM;
	}
	return name_map_flatten(&rt->gdb_map);
}

static int by_address(const void *a, const void *b)
{
	const struct cairn_code_range *x = &(*(struct region *const *)a)->range,
				      *y = &(*(struct region *const *)b)->range;
	if (x->lo.v != y->lo.v)
		return x->lo.v < y->lo.v ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->generation < y->generation ? -1 : x->generation > y->generation;
}

static int settle(struct code_runtime *rt, const struct earlier *earlier, struct cairn_err *err)
{
	int rc = resolve_registries(rt, earlier, err);
	if (rc == 0)
		rc = resolve_lists(rt, err);
	if (rc == 0)
		rc = add_anonymous(rt, err);
	if (rc < 0)
		return rc;
	/* In the order in which they were added, GDB's are by age. */
	if (rank_registered(rt) < 0 || rank_gdb(rt) < 0)
		return err_nomem(err, "the regions of a process");
	if (rt->regions.n)
		qsort(rt->regions.p, rt->regions.n, sizeof(*rt->regions.p), by_address);
	return 0;
}

int code_runtime_resolve(struct code_runtime *rt, struct cairn_err *err)
{
	struct earlier earlier = {0};
	forget(rt);
	int rc = keep_earlier(rt, &earlier);
	rc = rc < 0 ? err_nomem(err, "the regions of a process") : settle(rt, &earlier, err);
	free_earlier(&earlier);
	return rc;
}
