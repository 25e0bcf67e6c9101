/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that an address is in
 *
 * A stopped program is in a function, in a copy inlined there, in a copy inlined into that one.
 *
 *	main		[0x1100, 0x1180)	the function whose code holds 0x1134
 *	  work		[0x1120, 0x1150)	its inlined copies that do, each in the one before
 *	    add		[0x1130, 0x1138)
 *
 * The innermost is the one that runs; the others are inside a call that was inlined. Each has its
 * parameters in locations of its own, and all of them are evaluated at the one address
 * (site_build_now()). The result is the value that a parameter has now. It may differ from the
 * passed argument: the program is in the middle of the function and not at its entry.
 *
 * In copies that GCC made, a removed parameter may have another call's description
 * (quirks/removed_param.c). If a container has several copies of a function, all of them are read
 * to check that.
 */
#include "sites/scopes_at.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/search.h"
#include "dwarf/constants.h"
#include "sites/quirks/quirks.h"
#include "sites/quirks/removed_param.h"

enum {
	/* Deeper inlining is cut; compilers stay below 100. */
	DEPTH_MAX = 256,
	/*
	 * Copies of one function in another that are compared with each other; with more, none is
	 * believed.
	 */
	COPIES_MAX = 64,
};

/* ---- the code of all functions ---- */

static int by_lo(const void *a, const void *b)
{
	const struct active_code *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

struct listing {
	struct active *active;
	uint32_t entry;
};

static int list_range(void *arg, struct dw_range r)
{
	struct listing *l = arg;
	struct active_code code = {.lo = r.lo.v, .hi = r.hi.v, .entry = l->entry};
	return VEC_ADD(&l->active->code, code) ? 0 : -ENOMEM;
}

int active_init(struct active *a, const struct site_env *env, struct cairn_err *err)
{
	const struct dw_func_index *index = env->index;
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < index->n; i++) {
		struct listing l = {.active = a, .entry = (uint32_t)i};
		struct dw_die die;
		if (!(index->p[i].flags & DW_FUNC_HAS_CODE) || index->p[i].flags & DW_FUNC_INLINED)
			continue;
		rc = dw_die_at(env->dw, index->p[i].die, &die, err);
		if (rc >= 0)
			rc = dw_ranges(&die, list_range, &l, err);
		if (rc == -ENOMEM)
			err_nomem(err, "the code of functions");
	}
	if (rc < 0)
		return rc;
	if (a->code.n > 1)
		qsort(a->code.p, a->code.n, sizeof(*a->code.p), by_lo);
	uint64_t reach = 0;
	for (size_t i = 0; i < a->code.n; i++) {
		reach = a->code.p[i].hi > reach ? a->code.p[i].hi : reach;
		a->code.p[i].reach = reach;
	}
	return 0;
}

void active_fini(struct active *a)
{
	VEC_FREE(&a->code);
}

uint32_t active_function(const struct active *a, struct cairn_vaddr at)
{
	size_t lo = SEARCH(0, a->code.n, mid, a->code.p[mid].lo <= at.v);
	while (lo-- > 0 && a->code.p[lo].reach > at.v)
		if (a->code.p[lo].hi > at.v)
			return a->code.p[lo].entry;
	return DW_FUNC_NONE;
}

/* ---- the copies at an address ---- */

/*
 * The entries whose code holds @at, from the function inwards. In the index all inlined copies of a
 * container follow it.
 */
static int chain_at(const struct site_env *env, uint32_t function, struct cairn_vaddr at,
		    uint32_t chain[DEPTH_MAX], struct cairn_err *err)
{
	const struct dw_func_index *index = env->index;
	int n = 0;
	chain[n++] = function;
	for (uint32_t i = function + 1;
	     i < index->n && index->p[i].parent != DW_FUNC_NONE && n < DEPTH_MAX; i++) {
		struct dw_die die;
		if (index->p[i].parent != chain[n - 1] || !(index->p[i].flags & DW_FUNC_INLINED))
			continue;
		int rc = dw_die_at(env->dw, index->p[i].die, &die, err);
		if (rc >= 0)
			rc = dw_ranges_hold(&die, at, err);
		if (rc < 0)
			return rc;
		if (rc)
			chain[n++] = i;
	}
	return n;
}

/* ---- parameters that were removed ---- */

static dw_off origin_of(const struct dw_func_index *index, uint32_t entry)
{
	return index->p[entry].flags & DW_FUNC_INLINED ? index->p[entry].origin : 0;
}

/*
 * The copies of the same function in the same container; more than COPIES_MAX are not all listed.
 */
static unsigned int copies_beside(const struct dw_func_index *index, uint32_t function,
				  uint32_t entry, uint32_t ret[COPIES_MAX])
{
	unsigned int n = 0;
	for (uint32_t i = function + 1;
	     i < index->n && index->p[i].parent != DW_FUNC_NONE && n < COPIES_MAX; i++)
		if (origin_of(index, i) == origin_of(index, entry) &&
		    index->p[i].flags & DW_FUNC_HAS_CODE)
			ret[n++] = i;
	return n;
}

/*
 * Sites of copies, as removed_param_check() wants them. Returns their number, which is less where
 * copies have no code; -EBADMSG, -ENOMEM.
 */
static int build_copies(const struct site_env *env, struct site_worker *w, const uint32_t *copies,
			unsigned int n, struct built_site *ret, uint32_t *ret_entries,
			struct cairn_err *err)
{
	int built = 0;
	for (unsigned int i = 0; i < n; i++) {
		struct site_request request = {.entry = copies[i]};
		int rc = site_build(env, w, &request, &ret[built], err);
		if (rc < 0)
			return rc;
		if (rc)
			ret_entries[built++] = copies[i];
	}
	return built;
}

int active_removed(const struct site_env *env, struct site_worker *w, uint32_t function,
		   uint32_t entry, int (*visit)(void *ctx, uint32_t copy, uint32_t arg), void *ctx,
		   struct cairn_err *err)
{
	uint32_t copies[COPIES_MAX], entries[COPIES_MAX];
	struct built_site *pointers[COPIES_MAX];
	unsigned int n = copies_beside(env->index, function, entry, copies);
	if (n < 2)
		return 0;
	if (n == COPIES_MAX)
		return visit(ctx, entry, ACTIVE_ALL);
	struct built_site *sites = arena_array(w->arena, n, sizeof(*sites));
	if (!sites)
		return err_nomem(err, "copies");
	int built = build_copies(env, w, copies, n, sites, entries, err), rc = 0;
	if (built < 2)
		return built < 0 ? built : 0;
	for (int i = 0; i < built; i++)
		pointers[i] = &sites[i];
	removed_param_check(pointers, (size_t)built);
	for (int i = 0; i < built && !rc; i++)
		for (uint32_t k = 0; k < sites[i].formals.n && !rc; k++)
			if (sites[i].args[k].loc.why == CAIRN_UNAVAIL_OTHER_CALL)
				rc = visit(ctx, entries[i], k);
	return rc;
}

struct rejecting {
	uint32_t entry;
	struct built_site *now;
};

static int reject_arg(void *arg, uint32_t copy, uint32_t number)
{
	const struct rejecting *d = arg;
	for (uint32_t i = 0; i < d->now->formals.n; i++)
		if (copy == d->entry && (number == ACTIVE_ALL || number == i))
			quirk_reject(&d->now->args[i].loc, CAIRN_QUIRK_REMOVED_PARAM);
	return 0;
}

/* The result of that check when .cairn.dwarf was made: a bit for each parameter. */
static void reject_recorded(struct built_site *now)
{
	struct dw_value v;
	if (dw_attr(&now->die, DW_AT_cairn_another_call, &v, NULL) != 1 || v.cls != DW_CLASS_BLOCK)
		return;
	for (uint32_t i = 0; i < now->formals.n && i / 8 < v.block.n; i++)
		if (v.block.p[i / 8] & 1u << i % 8)
			quirk_reject(&now->args[i].loc, CAIRN_QUIRK_REMOVED_PARAM);
}

static int reject_removed(const struct site_env *env, struct site_worker *w, uint32_t function,
			  uint32_t entry, struct built_site *now, struct cairn_err *err)
{
	struct rejecting d = {entry, now};
	if (!dw_unit_is_gcc(now->die.unit))
		return 0;
	if (env->is_reduced) {
		reject_recorded(now);
		return 0;
	}
	return active_removed(env, w, function, entry, reject_arg, &d, err);
}

/* ---- the result ---- */

static int name_args(const struct site_env *env, const struct active_types *types,
		     struct built_site *b, struct cairn_err *err)
{
	for (uint32_t i = 0; i < b->formals.n; i++) {
		struct dw_die die;
		int rc = dw_die_at(env->dw, b->formals.die[i], &die, err);
		if (rc >= 0)
			rc = types->type_of(types->ctx, &die, &b->args[i].type, err);
		if (rc < 0)
			return rc;
		b->args[i].name = dw_str_deep(&die, DW_AT_name);
	}
	return 0;
}

int active_scope(const struct site_env *env, struct site_worker *w,
		 const struct active_types *types, uint32_t function, uint32_t entry,
		 struct cairn_vaddr at, struct cairn_vaddr next, struct cairn_scope *ret,
		 struct cairn_err *err)
{
	struct built_site b;
	int rc = site_build_now(env, w, entry, at, next, &b, err);
	if (rc >= 0)
		rc = reject_removed(env, w, function, entry, &b, err);
	if (rc >= 0)
		rc = name_args(env, types, &b, err);
	if (rc < 0)
		return rc;
	*ret = (struct cairn_scope){.name = dw_str_deep(&b.die, DW_AT_name),
				    .is_inlined = entry != function,
				    .n_args = b.formals.n,
				    .args = b.args};
	return 0;
}

int active_at(const struct active *a, const struct site_env *env, const struct active_types *types,
	      struct arena *arena, struct cairn_vaddr pc, bool is_exact,
	      const struct cairn_scope **ret, struct cairn_err *err)
{
	struct cairn_vaddr at = {pc.v - !is_exact};
	uint32_t chain[DEPTH_MAX], function = active_function(a, at);
	if (function == DW_FUNC_NONE)
		return 0;
	int n = chain_at(env, function, at, chain, err), rc = n < 0 ? n : 0;
	struct cairn_scope *functions =
		n < 0 ? NULL : arena_array(arena, (size_t)n, sizeof(*functions));
	if (n >= 0 && !functions)
		return err_nomem(err, "functions");
	struct site_worker w;
	site_worker_init(&w, arena);
	for (int i = 0; rc >= 0 && i < n; i++)
		rc = active_scope(env, &w, types, function, chain[n - 1 - i], at, pc, &functions[i],
				  err);
	site_worker_fini(&w);
	*ret = functions;
	return rc < 0 ? rc : n;
}
