/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The writer of .cairn.dwarf: which functions, copies and calls it has, and what it writes about
 * each
 *
 *	1. Each unit, in parallel: functions that have code, their copies, the abstract instances of
 *	   both, and the registers whose value at the entry is needed.
 *	2. The types of parameters, one by one, as the graph of types has one writer.
 *	3. Each unit, in parallel: its DIEs and lists.
 *	4. All units in sequence, with the DIEs that they refer to.
 *
 * reduced_formals.c and reduced_entry.c write what a unit has in step 3.
 */
#include "sidecar/reduced_write.h"

#include <errno.h>
#include <stdlib.h>

#include <cairn/text.h>

#include "base/err.h"
#include "base/pool.h"
#include "dwarf/constants.h"
#include "dwarf/loclists.h"
#include "sites/call_site_value.h"

/* ---- 1. the needed parts ---- */

static int note_asks(void *arg, const struct dw_loc_entry *e)
{
	out_expr_asks(e->expr, e->expr_len, arg);
	return 0;
}

static int note_call_asks(void *arg, const struct dw_die *site)
{
	struct dw_die param;
	int rc = dw_die_child(site, &param, NULL);
	for (; rc == 1; rc = dw_die_sibling(&param, &param, NULL)) {
		struct call_param p;
		call_param_of(&param, &p);
		if (p.is_told)
			out_expr_asks(p.value.p, p.value.n, arg);
	}
	return 0;
}

/* Notes the registers that entry @i needs from the callers of the function around it. */
static int note_entry(struct reducing *r, uint32_t i, const struct dw_die *die,
		      struct cairn_err *err)
{
	uint32_t asked = 0, function = i;
	struct dw_die child;
	int rc = dw_param_child(die, &child, err);
	for (; rc == 1; rc = dw_param_next(&child, &child, err))
		dw_locations(&child, DW_AT_location, note_asks, &asked, NULL);
	if (rc >= 0 && !is_copy(r, i))
		rc = call_sites_visit(die, note_call_asks, &asked, err);
	while (is_copy(r, function))
		function = entry_at(r, function)->parent;
	r->asked[function] |= asked;
	return rc;
}

/* A copy in a function without code is none, whatever it describes. */
static bool may_have_code(const struct reducing *r, uint32_t i)
{
	const struct dw_func *f = entry_at(r, i);
	if (!is_copy(r, i))
		return f->flags & DW_FUNC_HAS_CODE;
	return f->parent != DW_FUNC_NONE && r->is_kept[f->parent];
}

static int look_at(struct reducing *r, struct reducer *x, uint32_t i, struct cairn_err *err)
{
	const struct abstract *instance;
	struct dw_die die;
	if (!may_have_code(r, i))
		return 0;
	int rc = dw_func_die(r->env.dw, entry_at(r, i), &die, err);
	if (rc >= 0)
		rc = reduced_ranges_of(x, &die, err);
	if (rc <= 0)
		return rc;
	r->is_kept[i] = 1;
	if (dw_unit_addr_size(die.unit) != ADDRESS_BYTES)
		return err_set(err, -EOPNOTSUPP, "%s: addresses of %s",
			       cairn_binary_debug_path(r->env.bin),
			       cairn_counted(dw_unit_addr_size(die.unit), "byte").text);
	rc = reduced_instance_of(r, x, i, &die, &instance, err);
	if (rc < 0)
		return rc;
	if (instance->die.off != die.off) {
		uint32_t of = dw_func_index_find_near(r->env.index, i, instance->die.off);
		if (of == DW_FUNC_NONE)
			return err_set(err, -EBADMSG, "%s: an abstract origin that is no function",
				       cairn_binary_debug_path(r->env.bin));
		__atomic_store_n(&r->is_needed[of], 1, __ATOMIC_RELAXED);
	}
	return note_entry(r, i, &die, err);
}

static int list_asks(struct reducing *r, size_t unit, struct cairn_err *err)
{
	for (uint32_t i = r->first[unit]; i < r->first[unit + 1]; i++) {
		struct entry_asks asks = {.asked = r->asked[i]};
		struct cairn_vaddr at;
		struct dw_die die;
		if (!asks.asked || is_copy(r, i))
			continue;
		int rc = dw_func_die(r->env.dw, entry_at(r, i), &die, err);
		if (rc >= 0)
			rc = site_entry_of(&die, &at);
		if (rc < 0)
			return rc;
		asks.at = at.v;
		if (rc && !VEC_ADD(&r->unit_asks[unit].v, asks))
			return err_nomem(err, "functions");
	}
	return 0;
}

static int look_at_unit(void *ctx, size_t unit, unsigned int worker, struct cairn_err *err)
{
	struct reducing *r = ctx;
	int rc = 0;
	for (uint32_t i = r->first[unit]; rc >= 0 && i < r->first[unit + 1]; i++)
		rc = look_at(r, &r->reducers[worker], i, err);
	return rc < 0 ? rc : list_asks(r, unit, err);
}

/* Unites the needs of all functions at one address. */
static int gather_asks(struct reducing *r)
{
	for (size_t u = 0; u < r->n_units; u++)
		for (size_t i = 0; i < r->unit_asks[u].v.n; i++) {
			const struct entry_asks *a = &r->unit_asks[u].v.p[i];
			uint64_t asked = 0;
			map_get(&r->asked_at, a->at, &asked);
			if (map_put(&r->asked_at, a->at, asked | a->asked) < 0)
				return -ENOMEM;
		}
	return 0;
}

/* ---- 2. types ---- */

/* Whether an entry is its own abstract instance. */
static int is_own(const struct reducing *r, struct reducer *x, uint32_t i, const struct dw_die *die,
		  const struct abstract **ret, struct cairn_err *err)
{
	int rc = reduced_instance_of(r, x, i, die, ret, err);
	return rc < 0 ? rc : (*ret)->die.off == die->off;
}

static int number_types(struct reducing *r, const struct formals *f, struct cairn_err *err)
{
	for (uint32_t i = 0; i < f->n; i++) {
		struct dw_die die;
		uint32_t id, number;
		int rc = dw_die_at(r->env.dw, f->die[i], &die, err);
		if (rc >= 0)
			rc = dwarf_type_of(r->p->types.reader, &die, &id, err);
		if (rc < 0)
			return rc;
		rc = type_table_add(&r->p->types, id, &number);
		if (rc >= 0 && !VEC_ADD(&r->types, number))
			rc = -ENOMEM;
		if (rc < 0)
			return rc == -ENOMEM ? err_nomem(err, "types")
					     : err_set(err, rc, "more types than 32 bits number");
	}
	return 0;
}

static int number_all_types(struct reducing *r, struct cairn_err *err)
{
	for (uint32_t i = 0; i < r->env.index->n; i++) {
		const struct abstract *instance;
		struct dw_die die;
		if (!r->is_kept[i] && !r->is_needed[i])
			continue;
		int rc = dw_func_die(r->env.dw, entry_at(r, i), &die, err);
		if (rc >= 0)
			rc = is_own(r, r->reducers, i, &die, &instance, err);
		r->types_at[i] = (uint32_t)r->types.n;
		if (rc > 0)
			rc = number_types(r, &instance->formals, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- units ---- */

static int lowest_address(struct reducing *r, struct reducer *x, size_t unit, uint64_t *ret,
			  struct cairn_err *err)
{
	*ret = UINT64_MAX;
	for (uint32_t i = r->first[unit]; i < r->first[unit + 1]; i++) {
		struct dw_die die;
		if (!r->is_kept[i] || is_copy(r, i))
			continue;
		int rc = dw_func_die(r->env.dw, entry_at(r, i), &die, err);
		if (rc >= 0)
			rc = reduced_ranges_of(x, &die, err);
		if (rc < 0)
			return rc;
		for (size_t k = 0; k < x->ranges.n; k++)
			*ret = x->ranges.p[k].lo.v < *ret ? x->ranges.p[k].lo.v : *ret;
	}
	*ret = *ret == UINT64_MAX ? 0 : *ret;
	return 0;
}

static const char *producer_of(const struct dw_unit *unit)
{
	struct dw_die root;
	const char *producer =
		dw_unit_root(unit, &root, NULL) == 1 ? dw_str(&root, DW_AT_producer) : NULL;
	return producer ? producer : "";
}

/* Entries as deep as they were, in the nearest one around them that is written. */
static int write_entries(struct reducing *r, struct reducer *x, size_t unit, struct out_unit *u,
			 struct cairn_err *err)
{
	uint32_t open[DEPTH_MAX];
	unsigned int depth = 0;
	for (uint32_t i = r->first[unit]; i < r->first[unit + 1]; i++) {
		uint32_t parent = entry_at(r, i)->parent;
		if (!r->is_kept[i] && !r->is_needed[i])
			continue;
		while (parent != DW_FUNC_NONE && !r->is_kept[parent] && !r->is_needed[parent])
			parent = entry_at(r, parent)->parent;
		for (; depth && open[depth - 1] != parent; depth--)
			put_u8(&u->info, 0);
		struct writing w = {.r = r, .x = x, .u = u, .entry = i};
		int rc = depth == DEPTH_MAX
				 ? err_set(err, -EBADMSG, "%s: functions nested more than %d deep",
					   cairn_binary_debug_path(r->env.bin), DEPTH_MAX)
				 : reduced_put_entry(&w, err);
		if (rc < 0)
			return rc;
		if (u->info.v.n > UINT32_MAX / 2)
			return err_set(err, -ERANGE, "a unit of more than 2 GiB");
		open[depth++] = i;
	}
	for (; depth; depth--)
		put_u8(&u->info, 0);
	return 0;
}

static bool is_empty(const struct reducing *r, size_t unit)
{
	for (uint32_t i = r->first[unit]; i < r->first[unit + 1]; i++)
		if (r->is_kept[i] || r->is_needed[i])
			return false;
	return true;
}

static int write_unit(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct reducing *r = ctx;
	struct reducer *x = &r->reducers[worker];
	struct out_unit *u = &r->units[item];
	const struct dw_unit *unit = dwarf_unit(r->env.dw, item);
	uint64_t low;
	if (is_empty(r, item))
		return 0;
	int rc = lowest_address(r, x, item, &low, err);
	if (rc < 0)
		return rc;
	out_unit_begin(u, producer_of(unit), dw_unit_language(unit), low);
	rc = write_entries(r, x, item, u, err);
	if (rc < 0)
		return rc;
	out_unit_end(u);
	return u->info.failed || u->locations.failed || u->ranges.failed
		       ? err_nomem(err, "the descriptions of parameters")
		       : 0;
}

/* ---- all ---- */

static int start(struct reducing *r, unsigned int threads)
{
	size_t n = r->env.index->n + 1;
	unsigned int width = pool_width(threads);
	r->n_units = dwarf_n_units(r->env.dw);
	r->first = calloc(r->n_units + 2, sizeof(*r->first));
	r->unit_of = calloc(n, sizeof(*r->unit_of));
	r->die_at = calloc(n, sizeof(*r->die_at));
	r->formals_at = calloc(n, sizeof(*r->formals_at));
	r->types_at = calloc(n, sizeof(*r->types_at));
	r->asked = calloc(n, sizeof(*r->asked));
	r->is_kept = calloc(n, 1);
	r->is_needed = calloc(n, 1);
	r->unit_asks = calloc(r->n_units + 1, sizeof(*r->unit_asks));
	r->units = calloc(r->n_units + 1, sizeof(*r->units));
	r->reducers = calloc(width, sizeof(*r->reducers));
	if (!r->first || !r->unit_of || !r->die_at || !r->formals_at || !r->types_at || !r->asked ||
	    !r->is_kept || !r->is_needed || !r->unit_asks || !r->units || !r->reducers)
		return -ENOMEM;
	for (unsigned int i = 0; i < width; i++) {
		arena_init(&r->reducers[i].arena);
		abstracts_init(&r->reducers[i].abstracts, &r->reducers[i].arena);
	}
	for (uint32_t i = 0; i + 1 < n; i++) {
		r->unit_of[i] = entry_at(r, i)->unit;
		r->first[r->unit_of[i] + 1] = i + 1;
	}
	/* A unit without entries begins where the one before it ends. */
	for (size_t u = 1; u <= r->n_units; u++)
		r->first[u] = r->first[u] > r->first[u - 1] ? r->first[u] : r->first[u - 1];
	return 0;
}

static void end(struct reducing *r, unsigned int threads)
{
	for (size_t i = 0; r->unit_asks && i < r->n_units; i++)
		VEC_FREE(&r->unit_asks[i].v);
	for (size_t i = 0; r->units && i < r->n_units; i++)
		out_unit_fini(&r->units[i]);
	for (unsigned int i = 0; r->reducers && i < pool_width(threads); i++) {
		if (r->reducers[i].abstracts.arena)
			abstracts_fini(&r->reducers[i].abstracts);
		arena_fini(&r->reducers[i].arena);
		VEC_FREE(&r->reducers[i].ranges);
		reduced_leave_copies(&r->reducers[i]);
	}
	free(r->first);
	free(r->unit_of);
	free(r->die_at);
	free(r->formals_at);
	free(r->types_at);
	free(r->asked);
	free(r->is_kept);
	free(r->is_needed);
	free(r->unit_asks);
	free(r->units);
	free(r->reducers);
	VEC_FREE(&r->types);
	map_fini(&r->asked_at);
}

static int reduce(struct reducing *r, unsigned int threads, struct bytes *ret,
		  struct cairn_err *err)
{
	int rc = start(r, threads) < 0 ? err_nomem(err, "functions") : 0;
	if (rc >= 0)
		rc = pool_run(r->n_units, threads, look_at_unit, r, err);
	if (rc >= 0)
		rc = gather_asks(r) < 0 ? err_nomem(err, "functions") : 0;
	if (rc >= 0)
		rc = number_all_types(r, err);
	if (rc >= 0)
		rc = pool_run(r->n_units, threads, write_unit, r, err);
	struct out_sites sites = {r->units, r->n_units, r->unit_of, r->die_at, r->formals_at};
	return rc < 0 ? rc : out_write(r->units, &sites, ret, err);
}

int reduced_make(struct site_table *p, unsigned int threads, struct bytes *ret, uint64_t *ret_n,
		 struct cairn_err *err)
{
	struct reducing r = {.p = p};
	int rc = sites_all_functions(p->sites, &r.env, err);
	if (rc >= 0)
		rc = reduce(&r, threads, ret, err);
	*ret_n = 0;
	for (size_t i = 0; rc >= 0 && i < r.env.index->n; i++)
		*ret_n += r.is_kept[i];
	end(&r, threads);
	return rc < 0 ? rc : 0;
}
