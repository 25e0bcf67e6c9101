/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/pool.h"
#include "btfgen/base.h"
#include "dwarf/scan.h"

/* One worker: the arrays of the unit that it reads, and its results so far. */
struct reader {
	struct unit_types unit;
	struct classes classes;
	struct map names_by_hash;
};

struct readers {
	const struct dwarf *dw;
	struct read_opts opts;
	struct dw_index_build *index; /* NULL: not wanted, or not made on the way */
	struct reader *p;             /* n, and one more that has the base */
	unsigned int n;
	atomic_bool is_cluster; /* a unit refers to another */
	atomic_size_t n_left_out;
};

static bool is_left_out(const struct readers *r, const struct dw_unit *unit)
{
	const struct cairn_btfgen_opts *asked = r->opts.asked;
	bool named = false;
	for (size_t i = 0; asked && i < asked->n_langs; i++)
		named |= asked->langs[i] == unit->language;
	return asked && asked->n_langs && named == asked->exclude_langs;
}

size_t distil_n_left_out(const struct readers *r)
{
	return r->n_left_out;
}

/* Counts a unit that is left out, and gives the index an empty one in its place. */
static int leave_out(struct readers *r, size_t i, unsigned int worker, struct cairn_err *err)
{
	r->n_left_out++;
	if (!r->index)
		return 0;
	dw_scanner_begin(dw_index_build_scanner(r->index, worker));
	return dw_index_build_add(r->index, i, worker, err);
}

/*
 * Asks for the symbol at address 0 only to have the symbols sorted. This takes as long as reading
 * many units, and needs none of them.
 */
static int sort_symbols(const struct readers *r)
{
	const struct cairn_binary *bin = dwarf_binary(r->dw);
	struct cairn_vaddr start;
	const char *name;
	cairn_binary_symbol_of(bin, (struct cairn_vaddr){0}, &name, &start);
	return 0;
}

static int add_unit(struct readers *r, struct reader *w, const struct dw_unit *unit, size_t i,
		    unsigned int worker, struct cairn_err *err)
{
	if (unit_types_finish(&w->unit) < 0)
		return err_nomem(err, "the types of a unit");
	int rc = type_classes_add(&w->classes, &w->unit, (uint32_t)i + 1, err);
	return rc >= 0 && r->index ? dw_index_build_add(r->index, i, worker, err) : rc;
}

static int read_unit(struct readers *r, size_t i, unsigned int worker, struct cairn_err *err)
{
	struct reader *w = &r->p[worker];
	if (atomic_load_explicit(&r->is_cluster, memory_order_relaxed))
		return 0;
	const struct dw_unit *unit = dwarf_unit(r->dw, i);
	if (is_left_out(r, unit))
		return leave_out(r, i, worker, err);
	unit_types_clear(&w->unit);
	int rc = unit_types_read(&w->unit, unit, err);
	if (rc == -EXDEV) {
		atomic_store_explicit(&r->is_cluster, true, memory_order_relaxed);
		return 0;
	}
	if (rc >= 0)
		rc = add_unit(r, w, unit, i, worker, err);
	return rc < 0 ? err_while(err, rc,
				  "while reading the types of the unit at 0x%" PRIx64 " (%s)",
				  unit->off, unit->name)
		      : 0;
}

/* The longest task comes first. */
enum { SORT_SYMBOLS, BESIDE, N_BEFORE_UNITS };

static int do_item(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct readers *r = arg;
	if (item == SORT_SYMBOLS)
		return sort_symbols(r);
	if (item == BESIDE)
		return r->opts.beside ? r->opts.beside(r->opts.ctx, err) : 0;
	return read_unit(r, item - N_BEFORE_UNITS, worker, err);
}

static int read_cluster(struct readers *r, struct cairn_err *err)
{
	struct reader *w = &r->p[0];
	for (size_t i = 0; i < dwarf_n_units(r->dw); i++) {
		int rc = unit_types_read(&w->unit, dwarf_unit(r->dw, i), err);
		if (rc < 0)
			return rc;
	}
	if (unit_types_finish(&w->unit) < 0)
		return err_nomem(err, "the types of all units");
	return type_classes_add(&w->classes, &w->unit, 1, err);
}

static int read_base(struct readers *r, struct cairn_err *err)
{
	struct reader *w = &r->p[r->n];
	if (!r->opts.base)
		return 0;
	if (unit_types_read_base(&w->unit, r->opts.base) < 0)
		return err_nomem(err, "the types of the base");
	return type_classes_add(&w->classes, &w->unit, BASE_UNIT, err);
}

static int readers_init(struct readers *r, unsigned int n, bool cluster, struct cairn_err *err)
{
	r->n = n;
	r->p = calloc(n + 1, sizeof(*r->p));
	if (!r->p)
		return err_nomem(err, "worker memory");
	for (unsigned int i = 0; i <= n; i++) {
		struct reader *w = &r->p[i];
		struct dw_scanner *functions =
			r->index && i < n ? dw_index_build_scanner(r->index, i) : NULL;
		if (type_classes_init(&w->classes) < 0 ||
		    unit_types_init(&w->unit, r->dw, cluster, r->opts.want_vars, functions,
				    &w->classes.arena, &w->names_by_hash) < 0)
			return err_nomem(err, "worker memory");
		w->unit.flat_arrays = r->opts.base;
		w->classes.want_contents = r->opts.want_contents;
	}
	return read_base(r, err);
}

static void readers_fini(struct readers *r)
{
	for (unsigned int i = 0; r->p && i <= r->n; i++) {
		unit_types_fini(&r->p[i].unit);
		type_classes_fini(&r->p[i].classes);
		map_fini(&r->p[i].names_by_hash);
	}
	free(r->p);
	r->p = NULL;
}

int distil_join(struct readers *r, struct classes *ret, struct cairn_err *err)
{
	struct classes *parts = calloc(r->n + 1, sizeof(*parts));
	if (!parts)
		return err_nomem(err, "worker memory");
	for (unsigned int i = 0; i <= r->n; i++) {
		parts[i] = r->p[i].classes;
		for (int k = 0; k < CAIRN_N_LOSSES; k++)
			parts[i].losses[k] += r->p[i].unit.losses[k];
	}
	int rc = type_classes_merge(parts, r->n + 1, ret, err);
	for (unsigned int i = 0; i <= r->n; i++)
		r->p[i].classes = parts[i];
	free(parts);
	return rc;
}

/*
 * If units refer to one another, all are read again as one unit, by one thread. The index of
 * functions is then built separately.
 */
static int read_again(struct readers *r, struct cairn_err *err)
{
	if (r->n_left_out)
		return err_set(err, -EOPNOTSUPP,
			       "%s: its units refer to one another (dwz, -flto), so that none can "
			       "be left out "
			       "by its language",
			       dwarf_unit(r->dw, 0)->file->path);
	readers_fini(r);
	dw_index_build_free(r->index);
	r->index = NULL;
	int rc = readers_init(r, 1, true, err);
	if (rc >= 0)
		rc = read_cluster(r, err);
	return rc >= 0 && r->opts.index
		       ? dwarf_index_functions(r->dw, r->opts.threads, r->opts.index, err)
		       : rc;
}

static int read_all(struct readers *r, struct cairn_err *err)
{
	unsigned int threads = r->opts.threads;
	int rc = r->opts.index ? dw_index_build_new(r->dw, threads, &r->index, err) : 0;
	if (rc >= 0)
		rc = readers_init(r, pool_width(threads), false, err);
	if (rc >= 0)
		rc = pool_run(N_BEFORE_UNITS + dwarf_n_units(r->dw), threads, do_item, r, err);
	if (rc >= 0 && r->is_cluster)
		return read_again(r, err);
	if (rc >= 0 && r->index)
		dw_index_build_take(r->index, r->opts.index);
	return rc;
}

int distil_read(const struct dwarf *dw, const struct read_opts *opts, struct readers **ret,
		struct cairn_err *err)
{
	struct readers *r = calloc(1, sizeof(*r));
	*ret = r;
	if (!r)
		return err_nomem(err, "worker memory");
	*r = (struct readers){.dw = dw, .opts = *opts};
	int rc = read_all(r, err);
	dw_index_build_free(r->index);
	r->index = NULL;
	if (rc >= 0)
		return 0;
	distil_readers_free(r);
	*ret = NULL;
	return rc;
}

void distil_readers_free(struct readers *r)
{
	if (r)
		readers_fini(r);
	free(r);
}
