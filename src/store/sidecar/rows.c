/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The line program of a unit, as the sidecar wants it
 *
 * Among several rows at one address the last describes the instruction there; the others are
 * positions between two instructions, which no sampled address can mean. A row that repeats the
 * previous position adds nothing. A kernel's 4.2 million rows become 1.2 million.
 *
 *	0x10  a.c:5:3   is_stmt     ──►  0x10  a.c:6:9
 *	0x10  a.c:6:9                    0x18  a.c:7:1
 *	0x14  a.c:6:9   view 1
 *	0x18  a.c:7:1
 */
#include <errno.h>

#include "sidecar/gather.h"

struct sequence {
	struct gatherer *g;
	uint32_t from;      /* its first row */
	struct dw_row last; /* not put yet: a row at the same address may follow */
	bool has_last;
};

static bool same_position(const struct unit_row *a, const struct unit_row *b)
{
	return a->line == b->line && a->file == b->file && a->column == b->column;
}

/* The row before becomes final: the next one has another address. */
static int put_last(struct sequence *s)
{
	struct unit_facts *f = s->g->to;
	int rc = 0;
	if (!s->has_last)
		return 0;
	s->has_last = false;
	struct unit_row r = {.at = (uint32_t)(s->last.at.v - s->g->span.base),
			     .line = s->last.line,
			     .column = s->last.column,
			     .file = gather_file(s->g, s->g->unit, s->last.file, &rc)};
	if (f->rows.n > s->from && same_position(&f->rows.p[f->rows.n - 1], &r))
		return rc;
	return VEC_ADD(&f->rows, r) ? rc : -ENOMEM;
}

static int end(struct sequence *s, struct cairn_vaddr at)
{
	struct unit_facts *f = s->g->to;
	int rc = put_last(s);
	struct piece p = {.from = s->from, .n = (uint32_t)(f->rows.n - s->from)};
	if (rc < 0 || !p.n)
		return rc;
	uint64_t hi = at.v - s->g->span.base;
	p.lo = f->rows.p[p.from].at;
	p.hi = hi < s->g->span.size ? (uint32_t)hi : s->g->span.size;
	s->from = (uint32_t)f->rows.n;
	if (p.hi <= p.lo)
		return 0;
	return VEC_ADD(&f->lines, p) ? 0 : -ENOMEM;
}

static int see_row(struct sequence *s, const struct dw_row *row)
{
	if (row->end_sequence)
		return end(s, row->at);
	if (row->at.v - s->g->span.base >= s->g->span.size)
		return 0;
	int rc = 0;
	if (s->has_last && row->at.v < s->last.at.v)
		rc = end(s, s->last.at); /* damaged: addresses rise in a sequence */
	else if (s->has_last && row->at.v > s->last.at.v)
		rc = put_last(s);
	s->last = *row;
	s->has_last = true;
	return rc;
}

static int see_rows(void *ctx, const struct dw_row *rows, size_t n)
{
	int rc = 0;
	for (size_t i = 0; i < n && !rc; i++)
		rc = see_row(ctx, &rows[i]);
	return rc;
}

int gather_rows(struct gatherer *g)
{
	struct sequence s = {.g = g};
	return dw_unit_visit_sequences(g->unit, see_rows, &s, g->err);
}
