/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/entry_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/keyed.h"
#include "base/large_vec.h"
#include "base/pool.h"
#include "dwarf/constants.h"
#include "sites/abstract.h"

enum {
	/* Statements that are looked at for the one around a call's: those of small functions inlined in between count. */
	STATEMENTS = 16,
	/* A condition is not farther from what depends on it, in lines. */
	NEAR = 16,
	LINES = 1024,
	/* Entries at one address whose statements are followed. */
	FOLLOWED = 8,
	/* What is put in front of a condition is a few instructions. */
	FAR = 256,
	SEVERAL = UINT16_MAX,
	/* Statements that are kept before all but the last are forgotten. */
	ROOM = 64,
};

/* Where one unit says that a function is declared. */
struct decl {
	uint32_t file, line, column;
	uint32_t group;
};

/* Of one worker: those of its units, one unit behind the other. */
struct entry_row_list {
	VEC(struct entry_row) v;
};

/* Where a unit's rows are while they are found: what they are in moves. */
struct unit_hits {
	uint32_t worker;
	size_t from, n;
};

struct collect {
	const struct site_env *env;
	struct groups *groups;
	size_t *first;             /* per unit, and one more: its first of groups->decls */
	struct entry_row_list *hits; /* per worker */
	struct unit_hits *of_unit;
};

/* Of one worker: the declarations of the unit at hand, and what its line table has for them. */
struct unit_rows {
	uint32_t unit;
	VEC(struct decl) decls;
	/*
	 * By line, modulo LINES: the number + 1 of the first that is there, or 0, as most are; SEVERAL when it takes a search. A row
	 * at a line of none is at no declaration.
	 */
	uint16_t at_line[LINES];
	struct entry_row_list *hits;
	struct statement {
		struct cairn_vaddr at;
		uint32_t file, line;
		uint16_t column;
	} statements[2 * ROOM]; /* the last ones */
	size_t n_statements;
	/* The last hits, all at one address, and the lines of the statements around them. */
	struct followed {
		size_t hit;
		uint32_t file, line;
		bool is_open; /* the row before was the statement's */
	} followed[FOLLOWED];
	unsigned int n_followed;
};

static int by_position(const void *a, const void *b)
{
	const struct decl *x = a, *y = b;
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

/* What the origins of a copy say about their declaration. */
static int follow_origins(const struct collect *c, uint32_t entry, struct decl *ret, struct cairn_err *err)
{
	struct dw_die copy, abstract;
	int rc = dw_func_die(c->env->dw, &c->env->index->p[entry], &copy, err);
	if (rc >= 0)
		rc = abstract_die(c->env->dw, copy.unit, copy.off, &abstract, err);
	if (rc < 0)
		return rc;
	ret->file = decl_number(&abstract, DW_AT_decl_file, copy.unit);
	ret->line = decl_number(&abstract, DW_AT_decl_line, copy.unit);
	ret->column = decl_number(&abstract, DW_AT_decl_column, copy.unit);
	return 0;
}

/* Not when it is told incompletely. */
static int add_decl(const struct collect *c, struct unit_rows *u, const struct group_decl *from, struct cairn_err *err)
{
	struct decl d = {.file = from->file, .line = from->line, .column = from->column, .group = from->group};
	int rc = d.file ? 0 : follow_origins(c, from->line, &d, err);
	if (rc < 0 || !d.file || !d.line || !d.column)
		return rc < 0 ? rc : 0;
	return VEC_ADD(&u->decls, d) ? 0 : err_nomem(err, "declarations");
}

/* Sort, and drop what is there twice. */
static void sort_decls(struct unit_rows *u)
{
	size_t n = 0;
	if (u->decls.n)
		qsort(u->decls.p, u->decls.n, sizeof(*u->decls.p), by_position);
	for (size_t i = 0; i < u->decls.n; i++)
		if (!n || by_position(&u->decls.p[n - 1], &u->decls.p[i]))
			u->decls.p[n++] = u->decls.p[i];
	u->decls.n = n;
	for (size_t i = 0; i < n; i++) {
		uint16_t *first = &u->at_line[u->decls.p[i].line % LINES];
		if (*first && (*first == SEVERAL || u->decls.p[*first - 1].line != u->decls.p[i].line))
			*first = SEVERAL;
		else if (!*first)
			*first = i < SEVERAL - 1 ? (uint16_t)(i + 1) : SEVERAL;
	}
}

/* First decl of the unit at a line; when there is none, one of another line or the end. */
static size_t first_at_line(const struct unit_rows *u, uint32_t line)
{
	size_t lo = 0, hi = u->decls.n, first = u->at_line[line % LINES];
	if (!first)
		return hi;
	if (first != SEVERAL)
		return first - 1;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (u->decls.p[mid].line < line)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Where the statement begins that the call's own is part of:
 *
 *	496		if (renaming)		0x4755  is_stmt
 *	497			map(token);	0x475e  is_stmt		the call's own, in front of the entry's row
 *	405	void map(...)			0x475e  is_stmt, view 1
 *
 * The text is not at hand; but what comes last in front of the call's own statement, and is indented less, is around it.
 */
static const struct statement *statement_around(const struct unit_rows *u, const struct dw_row *entry)
{
	size_t n = u->n_statements;
	if (!n || u->statements[n - 1].at.v != entry->at.v)
		return NULL;
	const struct statement *own = &u->statements[n - 1], *first = &u->statements[n > STATEMENTS ? n - STATEMENTS : 0];
	for (const struct statement *s = own; s-- > first;) {
		if (s->file != own->file || own->line - s->line > NEAR || (s->line == own->line && s->column == own->column))
			continue;
		/* In column 1 no statement begins: that is the name of the function around. */
		return s->column > 1 && s->column < own->column ? s : NULL;
	}
	return NULL;
}

static void keep_statement(struct unit_rows *u, const struct dw_row *row)
{
	if (u->n_statements == sizeof(u->statements) / sizeof(*u->statements)) {
		memcpy(u->statements, u->statements + u->n_statements - STATEMENTS, STATEMENTS * sizeof(*u->statements));
		u->n_statements = STATEMENTS;
	}
	u->statements[u->n_statements++] =
		(struct statement){.at = row->at, .file = row->file, .line = row->line, .column = row->column};
}

/*
 * The statement around is followed where it begins on a line of its own: a call that is part of a condition has the condition's statement
 * around it, too, and what is decided behind the entry is what the call returned.
 */
static int add_hit(struct unit_rows *u, const struct dw_row *row, uint32_t group)
{
	const struct statement *around = statement_around(u, row);
	struct entry_row h = {.unit = u->unit, .at = row->at, .view = row->view, .group = group};
	size_t n = u->hits->v.n;
	if (around)
		h.around.at = around->at;
	if (u->n_followed && u->hits->v.p[u->followed[0].hit].at.v != row->at.v)
		u->n_followed = 0;
	if (around && around->line < u->statements[u->n_statements - 1].line && u->n_followed < FOLLOWED)
		u->followed[u->n_followed++] = (struct followed){.hit = n, .file = around->file, .line = around->line};
	return LARGE_ADD(&u->hits->v, h) ? 0 : -ENOMEM;
}

/* Where the statements around the last entries go on, up to where another one begins. */
static void follow(struct unit_rows *u, const struct dw_row *row)
{
	uint64_t entry = u->hits->v.p[u->followed[0].hit].at.v, off = row->at.v - entry;
	for (unsigned int i = 0; i < u->n_followed && off <= FAR; i++) {
		struct followed *f = &u->followed[i];
		struct enclosing *e = &u->hits->v.p[f->hit].around;
		if (f->is_open)
			e->to = (uint16_t)off;
		f->is_open = !row->end_sequence && !row->is_stmt && row->file == f->file && row->line == f->line;
		if (f->is_open)
			e->from = e->to = (uint16_t)off;
	}
	if (row->end_sequence || off > FAR || (row->is_stmt && off))
		u->n_followed = 0;
}

/* Of a statement at a line of declarations, from @first on: whether it is at one of them. */
static int look_at_decls(struct unit_rows *u, const struct dw_row *row, size_t first)
{
	for (size_t i = first; i < u->decls.n && u->decls.p[i].line == row->line; i++) {
		const struct decl *d = &u->decls.p[i];
		if (d->file != row->file || d->column != row->column)
			continue;
		if (add_hit(u, row, d->group) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int look_at_rows(void *arg, const struct dw_row *rows, size_t n)
{
	struct unit_rows *u = arg;
	for (size_t i = 0; i < n; i++) {
		const struct dw_row *row = &rows[i];
		if (u->n_followed)
			follow(u, row);
		if (!row->is_stmt)
			continue;
		if (u->at_line[row->line % LINES] && look_at_decls(u, row, first_at_line(u, row->line)) < 0)
			return -ENOMEM;
		keep_statement(u, row);
	}
	return 0;
}

/*
 * Whether the function comes out of a macro. Then its declaration, each of its statements, and whatever else the
 * macro makes have one position, that of the macro's use, and the rows do not tell an entry. It shows by two such rows
 * that follow each other at one address: the entry and the first statement.
 */
static bool is_macros(const struct entry_row *a, const struct entry_row *b)
{
	return a->group == b->group && a->at.v == b->at.v && a->view + 1 == b->view;
}

/* Put the rows of one unit in the order of groups, and mark the groups that show to come out of a macro. */
static int sort_rows(struct entry_row *rows, size_t n, struct groups *groups)
{
	struct keyed *order = malloc((n + 1) * sizeof(*order));
	struct entry_row *unsorted = malloc((n + 1) * sizeof(*unsorted));
	int rc = order && unsorted ? 0 : -ENOMEM;
	for (size_t i = 0; i < n && !rc; i++)
		order[i] = (struct keyed){.key = rows[i].group, .value = (uint32_t)i};
	if (!rc)
		rc = keyed_sort(order, n);
	if (!rc && n)
		memcpy(unsorted, rows, n * sizeof(*rows));
	for (size_t i = 0; i < n && !rc; i++) {
		rows[i] = unsorted[order[i].value];
		/* Several units may say so at a time. */
		if (i && is_macros(&rows[i - 1], &rows[i]))
			__atomic_store_n(&groups->v.p[rows[i].group].from_macro, true, __ATOMIC_RELAXED);
	}
	free(order);
	free(unsorted);
	return rc;
}

static int scan_unit(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct collect *c = arg;
	struct unit_rows u = {.unit = (uint32_t)item};
	int rc = 0;
	if (c->first[item] == c->first[item + 1])
		return 0;
	u.hits = &c->hits[worker];
	struct unit_hits *found = &c->of_unit[u.unit];
	*found = (struct unit_hits){.worker = worker, .from = u.hits->v.n};
	for (size_t i = c->first[item]; i < c->first[item + 1] && rc >= 0; i++)
		rc = add_decl(c, &u, &c->groups->decls.p[i], err);
	sort_decls(&u);
	if (rc >= 0 && u.decls.n)
		rc = dw_unit_visit_rows(dwarf_unit(c->env->dw, u.unit), look_at_rows, &u, err);
	found->n = u.hits->v.n - found->from;
	if (rc >= 0 && found->n)
		rc = sort_rows(u.hits->v.p + found->from, found->n, c->groups);
	VEC_FREE(&u.decls);
	return rc == -ENOMEM ? err_nomem(err, "line rows") : rc < 0 ? rc : 0;
}

/* All rows, unit by unit, to @visit. */
static void each_row(const struct collect *c, void (*visit)(struct groups *groups, const struct entry_row *row))
{
	for (size_t u = 0; u < dwarf_n_units(c->env->dw); u++) {
		const struct unit_hits *of = &c->of_unit[u];
		for (size_t k = 0; k < of->n; k++)
			visit(c->groups, &c->hits[of->worker].v.p[of->from + k]);
	}
}

static void count_row(struct groups *groups, const struct entry_row *row)
{
	groups->v.p[row->group].rows.n++;
}

static void place_row(struct groups *groups, const struct entry_row *row)
{
	struct row_list *rows = &groups->v.p[row->group].rows;
	rows->p[rows->n++] = *row;
}

/* Counted first, which says where those of each group stand. */
static int hand_over(const struct collect *c, struct cairn_err *err)
{
	struct groups *groups = c->groups;
	size_t total = 0;
	each_row(c, count_row);
	for (size_t g = 0; g < groups->v.n; g++)
		total += groups->v.p[g].rows.n;
	groups->rows = pages_zeroed(total + 1, sizeof(*groups->rows));
	groups->n_rows = total + 1;
	if (!groups->rows)
		return err_nomem(err, "line rows");
	struct entry_row *at = groups->rows;
	for (size_t g = 0; g < groups->v.n; g++) {
		groups->v.p[g].rows.p = at;
		at += groups->v.p[g].rows.n;
		groups->v.p[g].rows.n = 0;
	}
	each_row(c, place_row);
	return 0;
}

/* Declarations come unit by unit. */
static size_t *first_decls(const struct groups *groups, size_t n_units)
{
	size_t *first = calloc(n_units + 2, sizeof(*first));
	for (size_t u = 0, i = 0; first && u <= n_units; u++) {
		while (i < groups->decls.n && groups->decls.p[i].unit < u)
			i++;
		first[u] = i;
	}
	return first;
}

static int scan_units(struct collect *c, unsigned int threads, struct cairn_err *err)
{
	size_t n_units = dwarf_n_units(c->env->dw);
	c->hits = calloc(pool_width(threads), sizeof(*c->hits));
	c->of_unit = calloc(n_units + 1, sizeof(*c->of_unit));
	c->first = first_decls(c->groups, n_units);
	return c->hits && c->of_unit && c->first ? pool_run(n_units, threads, scan_unit, c, err) : err_nomem(err, "declarations");
}

static void free_found(struct entry_row_list *found, unsigned int n)
{
	for (unsigned int w = 0; found && w < n; w++)
		LARGE_FREE(&found[w].v);
	free(found);
}

int entry_rows_collect(const struct site_env *env, unsigned int threads, struct groups *groups,
		       struct cairn_err *err)
{
	struct collect c = {.env = env, .groups = groups};
	int rc = scan_units(&c, threads, err);
	if (rc >= 0)
		rc = hand_over(&c, err);
	free_found(c.hits, pool_width(threads));
	free(c.of_unit);
	free(c.first);
	return rc < 0 ? rc : 0;
}

int entry_rows_by_unit(const struct site_env *env, unsigned int threads, struct groups *groups, struct entry_rows *ret,
		       struct cairn_err *err)
{
	size_t n_units = dwarf_n_units(env->dw);
	struct collect c = {.env = env, .groups = groups};
	int rc = scan_units(&c, threads, err);
	*ret = (struct entry_rows){.found = c.hits, .n_found = pool_width(threads)};
	if (rc >= 0) {
		ret->of_unit = calloc(n_units + 1, sizeof(*ret->of_unit));
		rc = ret->of_unit ? 0 : err_nomem(err, "line rows");
	}
	for (size_t u = 0; u < n_units && rc >= 0; u++)
		if (c.of_unit[u].n)
			ret->of_unit[u] = (struct row_list){.p = c.hits[c.of_unit[u].worker].v.p + c.of_unit[u].from,
							    .n = c.of_unit[u].n};
	free(c.of_unit);
	free(c.first);
	return rc < 0 ? rc : 0;
}

void entry_rows_fini(struct entry_rows *r)
{
	free_found(r->found, r->n_found);
	free(r->of_unit);
	*r = (struct entry_rows){0};
}
