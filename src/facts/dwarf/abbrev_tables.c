/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which unit has which abbreviation table; each distinct one is made once, in parallel
 *
 * A table belongs to an offset in .debug_abbrev and to the sizes that its forms have in a unit. Two
 * units of 32- and 64-bit DWARF that share the bytes have a table each.
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/pool.h"
#include "dwarf/abbrev_pool.h"
#include "dwarf/impl.h"

static uint8_t ref_addr_size(const struct dw_unit *u)
{
	return u->version == 2 ? u->addr_size : u->offset_size;
}

static int compare_tables(const void *a, const void *b)
{
	const struct dw_unit *x = *(const struct dw_unit *const *)a;
	const struct dw_unit *y = *(const struct dw_unit *const *)b;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->abbrev_off != y->abbrev_off)
		return x->abbrev_off < y->abbrev_off ? -1 : 1;
	if (x->addr_size != y->addr_size)
		return x->addr_size - y->addr_size;
	if (x->offset_size != y->offset_size)
		return x->offset_size - y->offset_size;
	return ref_addr_size(x) - ref_addr_size(y);
}

/* Give units without a table one; those of the same the same. */
static int assign_tables(struct dw_tables *ret, struct dw_unit *units, size_t n,
			 struct cairn_err *err)
{
	struct dw_unit **order = calloc(n + 1, sizeof(struct dw_unit *));
	ret->p = calloc(n + 1, sizeof(*ret->p));
	if (!order || !ret->p) {
		free(order);
		return err_nomem(err, "abbreviation tables");
	}
	size_t n_order = 0;
	for (size_t i = 0; i < n; i++)
		if (!units[i].abbrevs)
			order[n_order++] = &units[i];
	qsort(order, n_order, sizeof(struct dw_unit *), compare_tables);
	for (size_t i = 0; i < n_order; i++) {
		if (!i || compare_tables(&order[i - 1], &order[i])) {
			const struct dw_unit *u = order[i];
			ret->p[ret->n++] = (struct dw_abbrevs){.file = u->file,
							       .off = u->abbrev_off,
							       .addr_size = u->addr_size,
							       .offset_size = u->offset_size,
							       .ref_addr_size = ref_addr_size(u)};
		}
		order[i]->abbrevs = &ret->p[ret->n - 1];
	}
	free(order);
	return 0;
}

/*
 * The number of bytes of tables that may still be compiled, for one file. Its tables follow one
 * another.
 */
struct budget {
	const struct dw_file *file;
	_Atomic uint64_t bytes;
};

struct compile {
	struct dw_tables *tables;
	struct budget *budgets; /* by table: the index of its file's budget */
	uint32_t *budget_of;
};

static int compile_table(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct compile *job = ctx;
	return dw_abbrevs_compile(&job->tables->p[item], &job->tables->pools[worker],
				  &job->budgets[job->budget_of[item]].bytes, err);
}

static void set_budgets(struct compile *job)
{
	struct budget *b = job->budgets - 1;
	for (size_t i = 0; i < job->tables->n; i++) {
		const struct dw_file *file = job->tables->p[i].file;
		if (!i || file != b->file)
			*++b = (struct budget){.file = file,
					       .bytes = file->sec[DW_SEC_ABBREV].n *
							DW_ABBREV_OVERLAP_MAX};
		job->budget_of[i] = (uint32_t)(b - job->budgets);
	}
}

int dw_tables_compile(struct dw_tables *ret, struct dw_unit *units, size_t n, unsigned int threads,
		      struct cairn_err *err)
{
	struct compile job = {.tables = ret};
	int rc = assign_tables(ret, units, n, err);
	if (rc < 0)
		return rc;
	job.budgets = calloc(ret->n + 1, sizeof(*job.budgets));
	job.budget_of = calloc(ret->n + 1, sizeof(*job.budget_of));
	ret->n_pools = pool_width(threads);
	ret->pools = calloc(ret->n_pools, sizeof(*ret->pools));
	if (job.budgets && job.budget_of && ret->pools) {
		set_budgets(&job);
		rc = pool_run(ret->n, threads, compile_table, &job, err);
	} else {
		rc = err_nomem(err, "abbreviation tables");
	}
	for (unsigned int i = 0; ret->pools && i < ret->n_pools; i++)
		dw_abbrev_pool_close(&ret->pools[i]);
	free(job.budgets);
	free(job.budget_of);
	return rc;
}

void dw_tables_fini(struct dw_tables *tables)
{
	for (size_t i = 0; i < tables->n; i++)
		dw_abbrevs_fini(&tables->p[i]);
	for (unsigned int i = 0; tables->pools && i < tables->n_pools; i++)
		dw_abbrev_pool_fini(&tables->pools[i]);
	free(tables->pools);
	free(tables->p);
}
