/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Positions: the line and column of each piece of code, for questions about many addresses
 *
 * The whole table (line.c) is twice as large, and is sorted once for all. This one is for queries
 * about the code of one function after the other. At a row with line 0 the code belongs to no line
 * (DWARF 5, section 6.2.2). A compiler writes line 0 for merged instructions of two statements, for
 * a value copied between registers at the end of a path, and for reloading a value that it had
 * stored away. Such code does not show which statement is reached.
 *
 * If several rows have one address, the last one counts, as for the addresses up to the next row.
 * But a row within the same line does not hide that a statement begins there.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/search.h"
#include "base/vec.h"
#include "dwarf/impl.h"

struct dw_positions {
	/* sorted by address; damaged programs may have several at one */
	VEC(struct dw_position) v;
};

void dw_positions_free(struct dw_positions *p)
{
	if (p)
		VEC_FREE(&p->v);
	free(p);
}

static int look_at_row(struct dw_positions *into, const struct dw_row *row)
{
	struct dw_position p = {.at = row->at.v, .is_end = row->end_sequence};
	struct dw_position *last = into->v.n ? &into->v.p[into->v.n - 1] : NULL;
	if (!row->end_sequence) {
		p.line = row->line;
		p.column = row->column;
		p.is_stmt = row->is_stmt;
	}
	if (last && last->at == p.at && !last->is_end) {
		bool begins = last->is_stmt && !p.is_stmt && last->line == p.line;
		*last = begins ? *last : p;
		return 0;
	}
	return VEC_ADD(&into->v, p) ? 0 : -ENOMEM;
}

static int look_at_rows(void *into, const struct dw_row *rows, size_t n)
{
	int rc = 0;
	for (size_t i = 0; i < n && !rc; i++)
		rc = look_at_row(into, &rows[i]);
	return rc;
}

/* The end of one sequence comes before the beginning of the next. */
static int by_address(const void *a, const void *b)
{
	const struct dw_position *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->is_end != y->is_end)
		return x->is_end ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->column < y->column ? -1 : x->column > y->column;
}

/* The positions before the damage of a damaged program count. */
static struct dw_positions *make(const struct dw_unit *u)
{
	struct dw_positions *p = calloc(1, sizeof(*p));
	if (!p || dw_unit_visit_sequences(u, look_at_rows, p, NULL) == -ENOMEM) {
		dw_positions_free(p);
		return NULL;
	}
	if (p->v.n)
		qsort(p->v.p, p->v.n, sizeof(*p->v.p), by_address);
	return p;
}

int64_t dw_unit_positions(const struct dw_unit *u, const struct dw_position **ret,
			  struct cairn_err *err)
{
	/* The unit is ours; only its users see it as constant. */
	struct dw_unit *own = (struct dw_unit *)u;
	struct dw_positions *p = atomic_load(&own->positions), *none = NULL;
	if (!p) {
		p = make(u);
		if (!p)
			return err_nomem(err, "line rows");
		if (!atomic_compare_exchange_strong(&own->positions, &none, p)) {
			dw_positions_free(p);
			p = none;
		}
	}
	*ret = p->v.p;
	return (int64_t)p->v.n;
}

size_t dw_positions_from(const struct dw_position *p, size_t n, uint64_t at)
{
	size_t lo = SEARCH(0, n, mid, p[mid].at <= at);
	return lo ? lo - 1 : n;
}
