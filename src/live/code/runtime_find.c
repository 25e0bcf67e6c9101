/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice between several sources that describe one address
 *
 *	a rule  the registry's rows, its .eh_frame; GDB's symbol file; a jitdump's unwinding record;
 *	        that it keeps a frame pointer, when its owner says so; at last the same as an
 *	        assumption
 *	a name  the registry, GDB's symbol file, jitdump, perf map
 *
 * Files come last, and are read only if the other sources leave something unknown.
 */
#include "code/runtime_impl.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/search.h"

/* The facts that jitdump files have about an address. */
struct dumped {
	bool is_asked;
	const struct jitdump *dump;
	const struct jitdump_function *fn; /* NULL: nothing */
};

static int ask_files(struct code_runtime *rt, uint64_t at, struct dumped *to, struct cairn_err *err)
{
	if (to->is_asked)
		return 0;
	to->is_asked = true;
	int rc = runtime_read_files(rt, err);
	for (size_t i = 0; rc == 0 && i < rt->n_dumps && !to->fn; i++) {
		to->dump = &rt->dumps[i];
		to->fn = jitdump_find(to->dump, at);
	}
	return rc;
}

static struct region *region_in(const struct code_runtime *rt, const struct name_map *map,
				uint64_t at)
{
	const struct name_range *r = name_map_find(map, at);
	return r ? rt->ranked.p[r->item] : NULL;
}

static struct region *mapping_at(const struct code_runtime *rt, uint64_t at)
{
	size_t lo = SEARCH(0, rt->mappings.n, mid, rt->mappings.p[mid]->range.hi.v <= at);
	return lo < rt->mappings.n && rt->mappings.p[lo]->range.lo.v <= at ? rt->mappings.p[lo]
									   : NULL;
}

static bool is_weak(enum cairn_code_unwind unwind)
{
	return unwind == CAIRN_CODE_UNWIND_FP || unwind == CAIRN_CODE_UNWIND_ASSUMED;
}

/* A rule that is better than the earlier ones. */
static void take_rule(struct code_found *f, enum cairn_code_unwind unwind,
		      const struct rule_words *rule, const struct cairn_code_range *range)
{
	bool is_better =
		f->unwind == CAIRN_CODE_UNWIND_ASSUMED || (is_weak(f->unwind) && !is_weak(unwind));
	if (!f->range)
		f->range = range;
	if (!is_better || unwind == CAIRN_CODE_UNWIND_NONE)
		return;
	f->unwind = unwind;
	f->rule = *rule;
}

static int rule_of_dump(const struct dumped *d, uint64_t at, struct code_found *f)
{
	struct rule_words rule;
	int rc = d->fn ? jitdump_rule(d->dump, d->fn, at, &rule) : 0;
	if (rc < 0 || !d->fn)
		return rc;
	if (rule.words[0])
		take_rule(f, CAIRN_CODE_UNWIND_EH_FRAME, &rule, f->range);
	else if (d->fn->keeps_frame_pointer)
		take_rule(f, CAIRN_CODE_UNWIND_FP, &f->rule, f->range);
	return 0;
}

static int names_of_files(struct code_runtime *rt, const struct dumped *d, uint64_t at,
			  struct cairn_frame *ret, uint64_t *ret_lo)
{
	const char *name = d->fn ? d->fn->name : perf_map_find(&rt->perf, at, ret_lo);
	if (!name)
		return 0;
	*ret = (struct cairn_frame){.function = name, .name = name};
	if (d->fn) {
		*ret_lo = d->fn->lo;
		ret->line = jitdump_line(d->dump, d->fn, at, &ret->file);
	}
	return 1;
}

static int set_names(struct code_runtime *rt, struct code_found *f, const struct cairn_frame *names,
		     int n, uint64_t off)
{
	struct cairn_frame *copy = n > 0 ? arena_array(&rt->arena, (size_t)n, sizeof(*copy)) : NULL;
	if (n <= 0 || !copy)
		return n <= 0 ? n : -ENOMEM;
	memcpy(copy, names, (size_t)n * sizeof(*copy));
	f->functions = copy;
	f->n_functions = (size_t)n;
	f->has_off = true;
	f->off = off;
	return 0;
}

static int find_names(struct code_runtime *rt, const struct region *jit, const struct region *gdb,
		      struct dumped *d, uint64_t at, struct code_found *f)
{
	struct cairn_frame names[CAIRN_FRAMES_MAX];
	uint64_t lo = at;
	int n = jit ? region_names(jit, &rt->memory, at, &rt->arena, names, CAIRN_FRAMES_MAX, &lo)
		    : 0;
	f->named_by = CAIRN_CODE_JIT;
	if (n == 0 && gdb) {
		n = region_names(gdb, &rt->memory, at, &rt->arena, names, CAIRN_FRAMES_MAX, &lo);
		f->named_by = CAIRN_CODE_GDB;
	}
	if (n == 0)
		n = ask_files(rt, at, d, NULL);
	if (n == 0) {
		n = names_of_files(rt, d, at, names, &lo);
		f->named_by = d->fn ? CAIRN_CODE_JITDUMP : CAIRN_CODE_PERF_MAP;
	}
	return set_names(rt, f, names, n, at - lo);
}

/* The known data of this epoch is enough if it describes @at; else the tables may have grown. */
static int load(struct code_runtime *rt, struct region *r, uint64_t at, struct cairn_err *err)
{
	if (r->is_gone || (r->is_loaded && region_describes(r, at, rt->machine)))
		return 0;
	return region_load(r, &rt->memory, rt->machine, &rt->budget, err);
}

/* No description, and the reason. */
static void refuse(struct code_found *f, const char *why)
{
	f->why = why;
	f->unwind = CAIRN_CODE_UNWIND_NONE;
	rule_undescribed(&f->rule);
}

static void ask_region(struct code_runtime *rt, const struct region *r, uint64_t at,
		       struct code_found *f)
{
	struct rule_words rule;
	const char *why;
	enum cairn_code_unwind by = region_rule(r, at, rt->machine, &rule, &why);
	take_rule(f, by, &rule, &r->range);
	if (why && !f->why)
		f->why = why;
}

int code_runtime_find(struct code_runtime *rt, uint64_t at, struct code_found *f,
		      struct cairn_err *err)
{
	struct region *jit = region_in(rt, &rt->jit_map, at),
		      *gdb = region_in(rt, &rt->gdb_map, at);
	struct region *mapping = mapping_at(rt, at);
	struct dumped dumped = {0};
	*f = (struct code_found){.unwind = CAIRN_CODE_UNWIND_ASSUMED};
	jit_frame_pointer_rule(rt->machine, &f->rule);
	int rc = jit ? load(rt, jit, at, err) : 0;
	if (rc < 0)
		return rc;
	if (jit && jit->is_gone && !region_describes(jit, at, rt->machine)) {
		f->range = &jit->range;
		refuse(f, "its code was freed, or made anew, since");
		return 0;
	}
	if (jit)
		ask_region(rt, jit, at, f);
	if (gdb)
		ask_region(rt, gdb, at, f);
	if (!f->range && mapping)
		f->range = &mapping->range;
	if (is_weak(f->unwind))
		rc = ask_files(rt, at, &dumped, err);
	if (rc == 0)
		rc = rule_of_dump(&dumped, at, f);
	/* A better source than an assumption reports that there is none. */
	if (f->why && is_weak(f->unwind))
		refuse(f, f->why);
	else
		f->why = NULL;
	if (rc == 0)
		rc = find_names(rt, jit, gdb, &dumped, at, f);
	return rc < 0 ? err_nomem(err, "the code made at run time") : 0;
}
