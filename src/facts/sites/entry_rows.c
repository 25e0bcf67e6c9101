/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/entry_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/keyed.h"
#include "base/large_vec.h"
#include "base/map.h"
#include "base/pool.h"
#include "dwarf/constants.h"
#include "sites/abstract.h"

enum {
	/*
	 * Statements that are searched for the one around a call's own: small functions inlined in
	 * between add theirs.
	 */
	STATEMENTS = 16,
	/* A condition is at most this many lines away from the code that depends on it. */
	NEAR = 16,
	LINES = 1024,
	/* Entries at one address whose statements are followed. */
	FOLLOWED = 8,
	/* Compilers move only a few instructions before a condition. */
	FAR = 256,
};

/* A function's declaration, as one unit records it. */
struct decl {
	uint32_t file, line, column;
	uint32_t group;
	uint32_t rank; /* of the group, among those that have declarations in this unit */
	/* the number + 1 of another declaration whose line is equal modulo LINES; 0: none */
	uint32_t next;
};

/* The rows that one worker found, unit after unit. */
struct entry_row_list {
	VEC(struct entry_row) v;
};

/* The position of a unit's rows while rows are collected: the array that has them moves. */
struct unit_hits {
	uint32_t worker;
	size_t from, n;
};

struct hit {
	struct entry_row row;
	uint32_t rank;
};

/*
 * The state of one worker: the declarations of the current unit, and the rows of its line table
 * that match them.
 */
struct unit_rows {
	uint32_t unit;
	VEC(struct decl) decls;
	VEC(struct keyed) order; /* of the declarations, by group */
	VEC(uint32_t) by_rank;   /* the number of hits; then where the next one goes */
	VEC(struct hit) hits;    /* in the order of the program */
	/* of the current unit, once one is needed: from the hash of a path to its number + 1 */
	struct map files;
	bool has_files;
	/* by line, modulo LINES: the number + 1 of the first, or 0, as most are */
	uint32_t at_line[LINES];
	/*
	 * The last statements: those of the current rows, and before them the last ones of the
	 * previous rows.
	 */
	const struct dw_row *statements[STATEMENTS + DW_ROWS_AT_ONCE];
	struct dw_row before[STATEMENTS];
	size_t n_statements;
	/* The last hits, all at one address, and the lines of the statements around them. */
	struct followed {
		size_t hit;
		uint32_t file, line;
		bool is_open; /* the previous row was the statement's */
	} followed[FOLLOWED];
	unsigned int n_followed;
};

struct collect {
	const struct site_env *env;
	struct groups *groups;
	size_t *first;               /* per unit, and one more: its first of groups->decls */
	struct entry_row_list *hits; /* per worker, as is */
	struct unit_rows *rows;
	struct unit_hits *of_unit;
};

/* A number at the declaration of @die or of its origin. @owner: the DIE that has it. */
static uint32_t decl_number(const struct dw_die *die, uint16_t at, struct dw_die *owner)
{
	struct dw_value v;
	if (dw_attr_deep(die, at, &v, owner, NULL) != 1)
		return 0;
	/* GCC gives constants that many DIEs share as DW_FORM_implicit_const, which is signed. */
	bool is_number = v.cls == DW_CLASS_UDATA || v.cls == DW_CLASS_SDATA;
	return is_number && v.u <= UINT32_MAX ? (uint32_t)v.u : 0;
}

/*
 * The first number of a path counts; DWARF 5 has the unit's own file as 0 and as 1, and its rows
 * have 1.
 */
static int list_files(struct unit_rows *u, const struct dw_unit *unit)
{
	const char *path;
	uint64_t known;
	int rc = 0;
	u->has_files = true;
	for (uint64_t file = 1; !rc && (path = dw_unit_file(unit, file)); file++)
		if (!map_get(&u->files, map_hash_str(path), &known))
			rc = map_put(&u->files, map_hash_str(path), file + 1);
	return rc;
}

/*
 * The number that a file of @owner's unit has in @unit's table; 0: none. At link time (-flto), and
 * by dwz, a function is declared in another unit than that with its copies.
 */
static int translate_file(struct unit_rows *u, const struct dw_unit *unit,
			  const struct dw_die *owner, uint32_t *file)
{
	const char *path = owner->unit == unit ? NULL : dw_unit_file(owner->unit, *file), *same;
	uint64_t number = 0;
	if (owner->unit == unit)
		return 0;
	if (!u->has_files && list_files(u, unit) < 0)
		return -ENOMEM;
	bool found =
		path && map_get(&u->files, map_hash_str(path), &number) && number <= UINT32_MAX;
	same = found ? dw_unit_file(unit, number - 1) : NULL;
	*file = same && !strcmp(same, path) ? (uint32_t)number - 1 : 0;
	return 0;
}

/* Reads the declaration of a copy from its origins. */
static int follow_origins(const struct collect *c, struct unit_rows *u, uint32_t entry,
			  struct decl *ret, struct cairn_err *err)
{
	struct dw_die copy, abstract, owner = {0};
	int rc = dw_func_die(c->env->dw, &c->env->index->p[entry], &copy, err);
	if (rc >= 0)
		rc = abstract_die(c->env->dw, copy.unit, copy.off, &abstract, err);
	if (rc < 0)
		return rc;
	ret->line = decl_number(&abstract, DW_AT_decl_line, &owner);
	ret->column = decl_number(&abstract, DW_AT_decl_column, &owner);
	ret->file = decl_number(&abstract, DW_AT_decl_file, &owner);
	if (ret->file && translate_file(u, copy.unit, &owner, &ret->file) < 0)
		return err_nomem(err, "files of a unit");
	return 0;
}

/* Skips a declaration that is incomplete, or was added before. */
static int add_decl(const struct collect *c, struct unit_rows *u, const struct group_decl *from,
		    struct cairn_err *err)
{
	struct decl d = {.file = from->file,
			 .line = from->line,
			 .column = from->column,
			 .group = from->group};
	int rc = d.file ? 0 : follow_origins(c, u, from->line, &d, err);
	if (rc < 0 || !d.file || !d.line || !d.column)
		return rc < 0 ? rc : 0;
	uint32_t *first = &u->at_line[d.line % LINES];
	for (uint32_t i = *first; i; i = u->decls.p[i - 1].next) {
		const struct decl *o = &u->decls.p[i - 1];
		if (o->line == d.line && o->file == d.file && o->column == d.column &&
		    o->group == d.group)
			return 0;
	}
	d.next = *first;
	*first = (uint32_t)u->decls.n + 1;
	return VEC_ADD(&u->decls, d) ? 0 : err_nomem(err, "declarations");
}

/* Give each declaration the rank of its group. Returns 0 or -ENOMEM. */
static int rank_decls(struct unit_rows *u)
{
	size_t n = u->decls.n;
	uint32_t rank = 0;
	u->order.n = u->by_rank.n = 0;
	if (!VEC_RESERVE(&u->order, n) || !VEC_RESERVE(&u->by_rank, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		u->order.p[i] = (struct keyed){.key = u->decls.p[i].group, .value = (uint32_t)i};
	if (keyed_sort(u->order.p, n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		rank += i && u->order.p[i - 1].key != u->order.p[i].key;
		u->decls.p[u->order.p[i].value].rank = rank;
		u->by_rank.p[i] = 0;
	}
	u->by_rank.n = n;
	return 0;
}

/*
 * Finds the statement that contains the call's own statement:
 *
 *	496		if (renaming)		0x4755  is_stmt
 *	497			map(token);     0x475e  is_stmt         the call's own, before the
 *	                        entry's
 *	405	void map(...)			0x475e  is_stmt, view 1
 *
 * The source text is not available. But the last statement before the call's own that is indented
 * less contains it.
 */
static const struct dw_row *statement_around(const struct unit_rows *u, const struct dw_row *entry)
{
	size_t n = u->n_statements, first = n > STATEMENTS ? n - STATEMENTS : 0;
	if (!n || u->statements[n - 1]->at.v != entry->at.v)
		return NULL;
	const struct dw_row *own = u->statements[n - 1];
	for (size_t i = n - 1; i-- > first;) {
		const struct dw_row *s = u->statements[i];
		if (s->file != own->file || own->line - s->line > NEAR ||
		    (s->line == own->line && s->column == own->column))
			continue;
		/* No statement begins in column 1: that is the name of the enclosing function. */
		return s->column > 1 && s->column < own->column ? s : NULL;
	}
	return NULL;
}

/*
 * The enclosing statement is followed only if it begins on a line of its own. A call that is part
 * of a condition is enclosed by the condition's statement, too; a decision after its entry is about
 * the call's result.
 */
static int add_hit(struct unit_rows *u, const struct dw_row *row, const struct decl *d)
{
	const struct dw_row *around = statement_around(u, row);
	struct hit h = {
		.row = {.unit = u->unit, .at = row->at, .view = row->view, .group = d->group},
		.rank = d->rank};
	if (around)
		h.row.around.at = around->at;
	if (u->n_statements) {
		h.row.call_line = u->statements[u->n_statements - 1]->line;
		h.row.call_column = u->statements[u->n_statements - 1]->column;
	}
	if (u->n_followed && u->hits.p[u->followed[0].hit].row.at.v != row->at.v)
		u->n_followed = 0;
	if (around && around->line < u->statements[u->n_statements - 1]->line &&
	    u->n_followed < FOLLOWED)
		u->followed[u->n_followed++] = (struct followed){
			.hit = u->hits.n, .file = around->file, .line = around->line};
	u->by_rank.p[d->rank]++;
	if (!VEC_RESERVE(&u->hits, 1))
		return -ENOMEM;
	u->hits.p[u->hits.n++] = h;
	return 0;
}

/* Records where the statements around the last entries continue, until another statement begins. */
static void follow(struct unit_rows *u, const struct dw_row *row)
{
	uint64_t entry = u->hits.p[u->followed[0].hit].row.at.v, off = row->at.v - entry;
	for (unsigned int i = 0; i < u->n_followed && off <= FAR; i++) {
		struct followed *f = &u->followed[i];
		struct enclosing *e = &u->hits.p[f->hit].row.around;
		if (f->is_open)
			e->to = (uint16_t)off;
		f->is_open = !row->end_sequence && !row->is_stmt && row->file == f->file &&
			     row->line == f->line;
		if (f->is_open)
			e->from = e->to = (uint16_t)off;
	}
	if (row->end_sequence || off > FAR || (row->is_stmt && off))
		u->n_followed = 0;
}

/*
 * Compares a statement with the declarations from @first on, whose lines may be equal to its own.
 */
static int look_at_decls(struct unit_rows *u, const struct dw_row *row, uint32_t first)
{
	const struct decl *d;
	int rc = 0;
	for (uint32_t i = first; i && !rc; i = d->next) {
		d = &u->decls.p[i - 1];
		if (d->line == row->line && d->column == row->column && d->file == row->file)
			rc = add_hit(u, row, d);
	}
	return rc;
}

/* The current rows are about to be freed; keep the last statements. */
static void keep_statements(struct unit_rows *u)
{
	struct dw_row last[STATEMENTS];
	size_t n = u->n_statements < STATEMENTS ? u->n_statements : STATEMENTS;
	for (size_t i = 0; i < n; i++)
		last[i] = *u->statements[u->n_statements - n + i];
	for (size_t i = 0; i < n; i++) {
		u->before[i] = last[i];
		u->statements[i] = &u->before[i];
	}
	u->n_statements = n;
}

static int look_at_rows(void *arg, const struct dw_row *rows, size_t n)
{
	struct unit_rows *u = arg;
	for (const struct dw_row *row = rows; row < rows + n; row++) {
		if (u->n_followed)
			follow(u, row);
		if (!row->is_stmt)
			continue;
		uint32_t first = u->at_line[row->line % LINES];
		if (first && look_at_decls(u, row, first) < 0)
			return -ENOMEM;
		u->statements[u->n_statements++] = row;
	}
	keep_statements(u);
	return 0;
}

/*
 * Whether the function comes out of a macro. In such a function the declaration, each statement and
 * all else that the macro makes have one position, that of the macro's use. The rows then do not
 * identify an entry. The sign is two such rows that follow each other at one address: the entry and
 * the first statement.
 */
static bool is_macros(const struct entry_row *a, const struct entry_row *b)
{
	return a->group == b->group && a->at.v == b->at.v && a->view + 1 == b->view;
}

/*
 * Add the hits of a unit in the order of groups, and mark the groups that turn out to come from a
 * macro.
 */
static int add_rows(struct unit_rows *u, struct entry_row_list *to, struct groups *groups)
{
	size_t n = u->hits.n;
	uint32_t before = 0;
	if (!LARGE_RESERVE(&to->v, n))
		return -ENOMEM;
	for (size_t i = 0; i < u->by_rank.n; i++) {
		uint32_t hits = u->by_rank.p[i];
		u->by_rank.p[i] = before;
		before += hits;
	}
	struct entry_row *rows = to->v.p + to->v.n;
	for (size_t i = 0; i < n; i++)
		rows[u->by_rank.p[u->hits.p[i].rank]++] = u->hits.p[i].row;
	to->v.n += n;
	for (size_t i = 1; i < n; i++)
		/* Several units may set it at a time. */
		if (is_macros(&rows[i - 1], &rows[i]))
			__atomic_store_n(&groups->v.p[rows[i].group].from_macro, true,
					 __ATOMIC_RELAXED);
	return 0;
}

static void enter_unit(struct unit_rows *u, uint32_t unit)
{
	u->unit = unit;
	u->decls.n = u->hits.n = u->n_statements = 0;
	u->n_followed = 0;
	u->has_files = false;
	map_fini(&u->files);
	map_init(&u->files);
	memset(u->at_line, 0, sizeof(u->at_line));
}

static int scan_unit(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct collect *c = arg;
	struct unit_rows *u = &c->rows[worker];
	struct entry_row_list *to = &c->hits[worker];
	int rc = 0;
	if (c->first[item] == c->first[item + 1])
		return 0;
	enter_unit(u, (uint32_t)item);
	for (size_t i = c->first[item]; i < c->first[item + 1] && rc >= 0; i++)
		rc = add_decl(c, u, &c->groups->decls.p[i], err);
	if (rc >= 0 && u->decls.n && rank_decls(u) < 0)
		rc = err_nomem(err, "declarations");
	if (rc >= 0 && u->decls.n)
		rc = dw_unit_visit_rows(dwarf_unit(c->env->dw, u->unit), look_at_rows, u, err);
	c->of_unit[item] = (struct unit_hits){.worker = worker, .from = to->v.n, .n = u->hits.n};
	if (rc >= 0 && u->hits.n)
		rc = add_rows(u, to, c->groups);
	return rc == -ENOMEM ? err_nomem(err, "line rows") : rc < 0 ? rc : 0;
}

/* All rows, unit by unit, to @visit. */
static void each_row(const struct collect *c,
		     void (*visit)(struct groups *groups, const struct entry_row *row))
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

static void site_row(struct groups *groups, const struct entry_row *row)
{
	struct row_list *rows = &groups->v.p[row->group].rows;
	rows->p[rows->n++] = *row;
}

/* Rows are counted first; the counts give the position of each group's rows. */
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
	each_row(c, site_row);
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
	unsigned int width = pool_width(threads);
	c->hits = calloc(width, sizeof(*c->hits));
	c->rows = calloc(width, sizeof(*c->rows));
	c->of_unit = calloc(n_units + 1, sizeof(*c->of_unit));
	c->first = first_decls(c->groups, n_units);
	bool ok = c->hits && c->rows && c->of_unit && c->first;
	int rc =
		ok ? pool_run(n_units, threads, scan_unit, c, err) : err_nomem(err, "declarations");
	for (unsigned int w = 0; c->rows && w < width; w++) {
		VEC_FREE(&c->rows[w].decls);
		VEC_FREE(&c->rows[w].order);
		VEC_FREE(&c->rows[w].by_rank);
		VEC_FREE(&c->rows[w].hits);
		map_fini(&c->rows[w].files);
	}
	free(c->rows);
	return rc;
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

int entry_rows_by_unit(const struct site_env *env, unsigned int threads, struct groups *groups,
		       struct entry_rows *ret, struct cairn_err *err)
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
			ret->of_unit[u] = (struct row_list){.p = c.hits[c.of_unit[u].worker].v.p +
								 c.of_unit[u].from,
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
