/* SPDX-License-Identifier: BSD-2-Clause */
#include "loc/entry_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/pool.h"
#include "dwarf/constants.h"

/* Where one unit says that a function is declared. */
struct decl {
	uint32_t unit;
	uint32_t file, line, column;
	uint32_t group;
};

struct hit {
	uint32_t group;
	struct entry_row row;
};

/* The decls of one unit, [p, p + n), and what its line table has for them. */
struct unit_decls {
	const struct decl *p;
	size_t n;
	VEC(struct hit) hits;
};

struct collect {
	const struct site_env *env;
	VEC(struct decl) decls;
	VEC(struct unit_decls) units;
};

static int by_position(const void *a, const void *b)
{
	const struct decl *x = a, *y = b;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->column != y->column)
		return x->column < y->column ? -1 : 1;
	return x->group < y->group ? -1 : x->group > y->group;
}

/* A number at the declaration of @die or of what it comes from, provided that it counts in @unit's tables. */
static uint32_t decl_number(const struct dw_die *die, uint16_t at, const struct dw_unit *unit)
{
	struct dw_value v;
	struct dw_die owner;
	if (dw_attr_deep(die, at, &v, &owner, NULL) != 1 || owner.unit != unit)
		return 0;
	/* GCC gives constants that many DIEs share as DW_FORM_implicit_const, which is signed. */
	bool is_number = v.cls == DW_CLASS_UDATA || v.cls == DW_CLASS_SDATA;
	return is_number && v.u <= UINT32_MAX ? (uint32_t)v.u : 0;
}

/* The declaration of the function that @entry is a copy of; nothing when it is told incompletely. */
static int add_decl(struct collect *c, uint32_t entry, uint32_t group, struct cairn_err *err)
{
	struct dw_die die, abstract;
	int rc = dw_die_at(c->env->dw, c->env->index->p[entry].die, &die, err);
	struct dw_value view;
	if (rc < 0 || dw_attr(&die, DW_AT_GNU_entry_view, &view, NULL) != 1)
		return rc < 0 ? rc : 0;
	rc = site_abstract(c->env->dw, die.off, &abstract, err);
	if (rc < 0)
		return rc;
	struct decl d = {
		.unit = c->env->index->p[entry].unit,
		.file = decl_number(&abstract, DW_AT_decl_file, die.unit),
		.line = decl_number(&abstract, DW_AT_decl_line, die.unit),
		.column = decl_number(&abstract, DW_AT_decl_column, die.unit),
		.group = group,
	};
	const struct decl *last = c->decls.n ? &c->decls.p[c->decls.n - 1] : NULL;
	if (!d.file || !d.line || !d.column || (last && !by_position(last, &d)))
		return 0;
	return VEC_ADD(&c->decls, d) ? 0 : err_nomem(err, "declarations");
}

/* Sort, drop what is there twice, and cut into units. */
static int cut_into_units(struct collect *c, struct cairn_err *err)
{
	size_t n = 0;
	if (c->decls.n)
		qsort(c->decls.p, c->decls.n, sizeof(*c->decls.p), by_position);
	for (size_t i = 0; i < c->decls.n; i++)
		if (!n || by_position(&c->decls.p[n - 1], &c->decls.p[i]))
			c->decls.p[n++] = c->decls.p[i];
	for (size_t i = 0; i < n; i++) {
		struct unit_decls *last = c->units.n ? &c->units.p[c->units.n - 1] : NULL;
		if (!last || last->p->unit != c->decls.p[i].unit) {
			last = VEC_PUSH(&c->units);
			if (!last)
				return err_nomem(err, "declarations");
			last->p = &c->decls.p[i];
		}
		last->n++;
	}
	return 0;
}

/* First decl of the unit at or behind a line. */
static size_t first_at_line(const struct unit_decls *u, uint32_t line)
{
	size_t lo = 0, hi = u->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (u->p[mid].line < line)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int look_at_row(void *arg, const struct dw_row *row)
{
	struct unit_decls *u = arg;
	if (!row->is_stmt)
		return 0;
	for (size_t i = first_at_line(u, row->line); i < u->n && u->p[i].line == row->line; i++) {
		const struct decl *d = &u->p[i];
		if (d->file != row->file || d->column != row->column)
			continue;
		struct hit h = {.group = d->group, .row = {.unit = d->unit, .at = row->at, .view = row->view}};
		if (!VEC_ADD(&u->hits, h))
			return -ENOMEM;
	}
	return 0;
}

static int scan_unit(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct collect *c = arg;
	struct unit_decls *u = &c->units.p[item];
	int rc = dw_unit_visit_rows(dwarf_unit(c->env->dw, u->p->unit), look_at_row, u, err);
	return rc == -ENOMEM ? err_nomem(err, "line rows") : rc;
}

/*
 * Whether the function comes out of a macro. Then its declaration, each of its statements, and whatever else the
 * macro makes have one position, that of the macro's use, and the rows do not tell an entry. It shows by two such rows
 * that follow each other at one address: the entry and the first statement.
 */
static bool is_from_macro(const struct group *g)
{
	for (size_t i = 1; i < g->rows.n; i++) {
		const struct entry_row *a = &g->rows.p[i - 1], *b = &g->rows.p[i];
		if (a->unit == b->unit && a->at.v == b->at.v && a->view + 1 == b->view)
			return true;
	}
	return false;
}

static int hand_over(struct collect *c, struct groups *groups, struct cairn_err *err)
{
	for (size_t i = 0; i < c->units.n; i++) {
		const struct unit_decls *u = &c->units.p[i];
		for (size_t k = 0; k < u->hits.n; k++)
			if (!VEC_ADD(&groups->v.p[u->hits.p[k].group].rows, u->hits.p[k].row))
				return err_nomem(err, "line rows");
	}
	for (size_t g = 0; g < groups->v.n; g++)
		groups->v.p[g].from_macro = is_from_macro(&groups->v.p[g]);
	return 0;
}

int entry_rows_collect(const struct site_env *env, unsigned int threads, struct groups *groups,
		       struct cairn_err *err)
{
	struct collect c = {.env = env};
	int rc = 0;
	for (size_t g = 0; g < groups->v.n && rc >= 0; g++)
		for (size_t i = 0; i < groups->v.p[g].entries.n && rc >= 0; i++)
			if (env->index->p[groups->v.p[g].entries.p[i]].flags & DW_FUNC_INLINED)
				rc = add_decl(&c, groups->v.p[g].entries.p[i], (uint32_t)g, err);
	if (rc >= 0)
		rc = cut_into_units(&c, err);
	if (rc >= 0)
		rc = pool_run(c.units.n, threads, scan_unit, &c, err);
	if (rc >= 0)
		rc = hand_over(&c, groups, err);
	for (size_t i = 0; i < c.units.n; i++)
		VEC_FREE(&c.units.p[i].hits);
	VEC_FREE(&c.units);
	VEC_FREE(&c.decls);
	return rc < 0 ? rc : 0;
}
