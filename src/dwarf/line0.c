/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Line 0: code that belongs to no line
 *
 * A compiler that merges instructions of two statements, copies a value from one register to another at the end of a path, or
 * loads what it had stored away has no line for that, and the line table says 0 (DWARF 5, section 6.2.2). Such code says
 * nothing about which statement is reached. Only these ranges are kept: some 5 % of the rows of Clang's programs.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/vec.h"
#include "dwarf/impl.h"

struct dw_line0 {
	VEC(struct dw_range) v; /* sorted; of damaged programs they may overlap */
};

struct collect {
	struct dw_line0 *into;
	uint64_t from;
	bool open; /* the last row had line 0, at from */
};

void dw_line0_free(struct dw_line0 *l)
{
	if (l)
		VEC_FREE(&l->v);
	free(l);
}

static int look_at_row(void *arg, const struct dw_row *row)
{
	struct collect *c = arg;
	struct dw_range r = {.lo = {c->from}, .hi = row->at};
	if (c->open && r.lo.v < r.hi.v && !VEC_ADD(&c->into->v, r))
		return -ENOMEM;
	c->open = !row->end_sequence && !row->line;
	c->from = row->at.v;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct dw_range *x = a, *y = b;
	return x->lo.v < y->lo.v ? -1 : x->lo.v > y->lo.v;
}

/* What a damaged program told before the damage counts. */
static struct dw_line0 *make(const struct dw_unit *u)
{
	struct collect c = {.into = calloc(1, sizeof(*c.into))};
	if (!c.into || dw_unit_visit_sequences(u, look_at_row, &c, NULL) == -ENOMEM) {
		dw_line0_free(c.into);
		return NULL;
	}
	if (c.into->v.n)
		qsort(c.into->v.p, c.into->v.n, sizeof(*c.into->v.p), by_start);
	return c.into;
}

int64_t dw_unit_line0(const struct dw_unit *u, const struct dw_range **ret, struct cairn_err *err)
{
	/* The unit is ours; only its users see it as constant. */
	struct dw_unit *own = (struct dw_unit *)u;
	struct dw_line0 *l = atomic_load(&own->line0), *none = NULL;
	if (!l) {
		l = make(u);
		if (!l)
			return err_nomem(err, "line rows");
		if (!atomic_compare_exchange_strong(&own->line0, &none, l)) {
			dw_line0_free(l);
			l = none;
		}
	}
	*ret = l->v.p;
	return (int64_t)l->v.n;
}
