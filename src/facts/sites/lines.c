/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places of lines
 *
 * The rows of a line table are in order of addresses, whatever function their code is inlined from:
 *
 *	0x1130  server.c:150  statement        serve()
 *	0x1134  server.c:88   statement        parse(), inlined here
 *	0x1138  server.c:88
 *	0x1140  server.c:90   statement        parse()
 *	0x1144  server.c:151  statement        serve()
 *	0x1148  server.c:90   statement        parse() again: a second place of line 90
 *
 * A place is the first statement of a run of rows with one line. The owner of a row is one of the
 * functions whose code holds its address: the outermost one and the copies inlined there. At the
 * bounds of a copy both have rows at one address, so the row's file and line decide: the owner is
 * the function that is declared last before that line in that file. If none is, as for a macro of
 * another file, it is the innermost one.
 */
#include "sites/lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/search.h"
#include "dwarf/constants.h"
#include "sites/spec.h"

/* Code of one entry of the index, and what the search knows about the entry. */
struct piece {
	uint64_t lo, hi;
	uint32_t scope;
};

/* An out-of-line function, or a copy inlined into it. */
struct scope {
	uint32_t entry;
	const char *file; /* of the declaration; NULL when unknown */
	uint32_t line;
	bool is_built, has_site;
	struct cairn_site site;
	const char *name;
};

struct line_search {
	const struct site_env *env;
	const struct active *active;
	const struct lines_query *query;
	const struct groups *groups; /* of the function; NULL: FILE:LINE */
	struct site_worker worker;
	struct arena *arena;
	/* The current container. */
	uint32_t container;
	const struct dw_unit *unit;
	VEC(struct piece) pieces; /* the container's own first; inner ones after outer ones */
	VEC(struct scope) scopes;
	VEC(struct cairn_line) found;
	struct cairn_err *err;
};

/* ---- the query ---- */

static bool is_path_tail(const char *path, const char *tail)
{
	size_t n = strlen(path), m = strlen(tail);
	return m && m <= n && !strcmp(path + n - m, tail) && (n == m || path[n - m - 1] == '/');
}

void lines_parse(char *spec, bool (*is_file)(void *ctx, const char *name), void *ctx,
		 struct lines_query *ret)
{
	char *colon = strrchr(spec, ':'), *end;
	*ret = (struct lines_query){.function = spec};
	if (!colon || colon == spec || colon[-1] == ':' || !isdigit((unsigned char)colon[1]))
		return;
	unsigned long line = strtoul(colon + 1, &end, 10);
	if (*end || !line || line > UINT32_MAX)
		return;
	*colon = 0;
	ret->line = (uint32_t)line;
	if (!is_file(ctx, spec))
		return;
	ret->file = spec;
	ret->function = NULL;
}

static bool unit_has_file(const struct dw_unit *u, const char *name)
{
	const char *path;
	for (uint64_t file = 0; (path = dw_unit_file(u, file)) || !file; file++)
		if (path && is_path_tail(path, name))
			return true;
	return false;
}

bool lines_has_file(const struct dwarf *dw, const char *name)
{
	for (size_t i = 0; i < dwarf_n_units(dw); i++)
		if (unit_has_file(dwarf_unit(dw, i), name))
			return true;
	return false;
}

/* ---- the functions at an address ---- */

struct adding {
	struct line_search *s;
	uint32_t scope;
};

static int add_piece(void *ctx, struct dw_range range)
{
	struct adding *a = ctx;
	struct piece p = {range.lo.v, range.hi.v, a->scope};
	return VEC_ADD(&a->s->pieces, p) ? 0 : -ENOMEM;
}

/* The declaration, which an abstract instance or a specification may have. */
static void read_declaration(struct scope *scope, const struct dw_die *die)
{
	struct dw_value v;
	struct dw_die owner;
	if (dw_attr_deep(die, DW_AT_decl_line, &v, &owner, NULL) == 1 && v.u <= UINT32_MAX)
		scope->line = (uint32_t)v.u;
	if (dw_attr_deep(die, DW_AT_decl_file, &v, &owner, NULL) == 1)
		scope->file = dw_unit_file(owner.unit, v.u);
	scope->name = dw_str_deep(die, DW_AT_name);
}

static int add_scope(struct line_search *s, uint32_t entry)
{
	struct scope *scope = VEC_PUSH(&s->scopes);
	struct adding a = {.s = s, .scope = (uint32_t)s->scopes.n - 1};
	struct dw_die die;
	if (!scope)
		return err_nomem(s->err, "lines");
	scope->entry = entry;
	int rc = dw_func_die(s->env->dw, &s->env->index->p[entry], &die, s->err);
	if (rc < 0)
		return rc;
	read_declaration(scope, &die);
	if (!s->unit)
		s->unit = die.unit;
	rc = dw_ranges(&die, add_piece, &a, s->err);
	return rc == -ENOMEM ? err_nomem(s->err, "lines") : rc;
}

/* In the index all inlined copies of a container follow it, each after the one that it is in. */
static int enter(struct line_search *s, uint32_t container)
{
	const struct dw_func_index *index = s->env->index;
	if (s->container == container)
		return 0;
	s->container = container;
	s->unit = NULL;
	s->pieces.n = s->scopes.n = 0;
	int rc = add_scope(s, container);
	for (uint32_t i = container + 1;
	     rc >= 0 && i < index->n && index->p[i].parent != DW_FUNC_NONE; i++)
		if (index->p[i].flags & DW_FUNC_INLINED)
			rc = add_scope(s, i);
	return rc < 0 ? rc : 0;
}

static bool is_declared_before(const struct scope *scope, const char *file, uint32_t line)
{
	return scope->file && file && scope->line && scope->line <= line &&
	       !strcmp(scope->file, file);
}

/* The function that a row belongs to; NULL: the container has no code there. */
static struct scope *owner_of(const struct line_search *s, const struct dw_row *row,
			      const char *file)
{
	struct scope *innermost = NULL, *best = NULL;
	for (size_t i = 0; i < s->pieces.n; i++) {
		const struct piece *p = &s->pieces.p[i];
		if (row->at.v < p->lo || row->at.v >= p->hi)
			continue;
		innermost = &s->scopes.p[p->scope];
		if (is_declared_before(innermost, file, row->line) &&
		    (!best || innermost->line >= best->line))
			best = innermost;
	}
	return best ? best : innermost;
}

/* ---- places ---- */

/* The common part of all places of a function or copy. */
static int build_scope(struct line_search *s, struct scope *scope)
{
	struct built_site b;
	struct site_request request = {.entry = scope->entry};
	if (scope->is_built)
		return 0;
	scope->is_built = true;
	int rc = site_build(s->env, &s->worker, &request, &b, s->err);
	if (rc <= 0)
		return rc;
	scope->site = b.site;
	scope->has_site = true;
	return 0;
}

static int add_place(struct line_search *s, const struct dw_row *row, struct scope *owner,
		     const char *file)
{
	int rc = build_scope(s, owner);
	struct cairn_vaddr start;
	if (rc < 0 || !owner->has_site)
		return rc;
	struct cairn_line *l = VEC_PUSH(&s->found);
	if (!l)
		return err_nomem(s->err, "lines");
	*l = (struct cairn_line){.function = owner->name,
				 .file = file,
				 .line = row->line,
				 .column = row->column,
				 .view = row->view,
				 .site = owner->site};
	struct cairn_site *site = &l->site;
	site->container_off += (int64_t)(row->at.v - site->at.v);
	site->kind = CAIRN_SITE_PLACE;
	site->rule = CAIRN_AT_GIVEN;
	site->at = row->at;
	site->has_off = cairn_binary_foff(s->env->bin, row->at, &site->off);
	site->hazard = site_hazard(s->env, &s->worker, row->at);
	site->symbol = NULL;
	site->symbol_off = 0;
	if (cairn_binary_symbol_of(s->env->bin, row->at, &site->symbol, &start))
		site->symbol_off = row->at.v - start.v;
	site->n_args = site->count_caveats = site->n_bypasses = 0;
	site->args = NULL;
	return 0;
}

static bool is_wanted(const struct line_search *s, const struct dw_row *row,
		      const struct scope *owner, const char *file)
{
	const struct lines_query *q = s->query;
	if (q->line && row->line != q->line)
		return false;
	if (q->file)
		return file && is_path_tail(file, q->file);
	if (owner->entry >= s->groups->n_of_entry ||
	    s->groups->of_entry[owner->entry] == DW_FUNC_NONE)
		return false;
	bool is_own_file = owner->file && file && !strcmp(owner->file, file);
	/* A function begins at its declaration: the row is of one whose copy has no code there. */
	if (is_own_file && row->line < owner->line)
		return false;
	/* A line of the function is one of its own file; other files' are listed, and named. */
	return !q->line || !owner->file || is_own_file;
}

/* The row that decides about the next: the place of a run, and what the run is of. */
struct run {
	uint32_t file, line;
	const struct scope *owner;
	bool has_place;
};

static int visit_row(struct line_search *s, const struct dw_row *row, struct run *run)
{
	/* Code of no line, between code of a line, does not end it. */
	if (!row->line && !row->end_sequence)
		return 0;
	const char *file = row->end_sequence ? NULL : dw_unit_file(s->unit, row->file);
	struct scope *owner = row->end_sequence ? NULL : owner_of(s, row, file);
	if (!owner) {
		*run = (struct run){0};
		return 0;
	}
	if (run->owner != owner || run->line != row->line || run->file != row->file)
		*run = (struct run){row->file, row->line, owner, false};
	if (run->has_place || !row->is_stmt || !is_wanted(s, row, owner, file))
		return 0;
	run->has_place = true;
	return add_place(s, row, owner, file);
}

/* The rows in the code of the current container. */
static int visit_container(struct line_search *s)
{
	const struct dw_row *rows;
	int64_t n = dw_unit_rows(s->unit, &rows, s->err), rc = n < 0 ? n : 0;
	for (size_t i = 0; i < s->pieces.n && rc >= 0 && !s->pieces.p[i].scope; i++) {
		struct run run = {0};
		uint64_t lo = s->pieces.p[i].lo, hi = s->pieces.p[i].hi;
		int64_t from = SEARCH(0, n, mid, rows[mid].at.v < lo);
		for (; from < n && rows[from].at.v < hi && rc >= 0; from++)
			rc = visit_row(s, &rows[from], &run);
	}
	return rc < 0 ? (int)rc : 0;
}

static int by_place(const void *a, const void *b)
{
	const struct cairn_line *x = a, *y = b;
	int order = strcmp(x->file ? x->file : "", y->file ? y->file : "");
	if (order)
		return order;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->site.at.v < y->site.at.v ? -1 : x->site.at.v > y->site.at.v;
}

static int hand_out(struct line_search *s, struct cairn_lines *ret)
{
	struct cairn_line *p = arena_array(s->arena, s->found.n + 1, sizeof(*p));
	size_t n = 0;
	if (!p)
		return err_nomem(s->err, "lines");
	if (s->found.n)
		qsort(s->found.p, s->found.n, sizeof(*s->found.p), by_place);
	for (size_t i = 0; i < s->found.n; i++)
		if (!n || by_place(&p[n - 1], &s->found.p[i]))
			p[n++] = s->found.p[i];
	*ret = (struct cairn_lines){.n = n, .p = p};
	return 0;
}

/* ---- a function's ---- */

static uint32_t container_of(const struct dw_func_index *index, uint32_t entry)
{
	while (entry != DW_FUNC_NONE && index->p[entry].flags & DW_FUNC_INLINED)
		entry = index->p[entry].parent;
	return entry;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* The functions that hold the entries, each once, in order. */
static int containers_of(const struct line_search *s, const struct group *g, uint32_t **ret,
			 size_t *ret_n)
{
	uint32_t *p = arena_array(s->arena, g->entries.n + 1, sizeof(*p));
	size_t n = 0;
	if (!p)
		return err_nomem(s->err, "lines");
	for (size_t i = 0; i < g->entries.n; i++) {
		p[n] = container_of(s->env->index, g->entries.p[i]);
		n += p[n] != DW_FUNC_NONE;
	}
	*ret_n = 0;
	*ret = p;
	if (n)
		qsort(p, n, sizeof(*p), by_number);
	for (size_t i = 0; i < n; i++)
		if (!*ret_n || p[*ret_n - 1] != p[i])
			p[(*ret_n)++] = p[i];
	return 0;
}

static int find_in_function(struct line_search *s, const struct group *g)
{
	uint32_t *containers = NULL;
	size_t n = 0;
	int rc = containers_of(s, g, &containers, &n);
	for (size_t i = 0; i < n && rc >= 0; i++) {
		rc = enter(s, containers[i]);
		if (rc >= 0)
			rc = visit_container(s);
	}
	return rc;
}

static int find_function(struct line_search *s, unsigned int threads)
{
	struct group_filter filter;
	struct groups groups = {0};
	spec_parse(s->query->function, &filter);
	int rc = group_entries(s->env, threads, &filter, &groups, s->err);
	s->groups = &groups;
	if (rc >= 0 && groups.v.n > 1)
		rc = err_set(s->err, -ENOTUNIQ, "%s names %zu functions; choose one by FILE:FUNC",
			     filter.name, groups.v.n);
	else if (rc >= 0 && groups.v.n)
		rc = find_in_function(s, &groups.v.p[0]);
	groups_fini(&groups);
	return rc;
}

/* ---- a file's ---- */

static bool has_line(const struct line_search *s, const struct dw_unit *u, const struct dw_row *row)
{
	const char *file = row->end_sequence || row->line != s->query->line || !row->is_stmt
				   ? NULL
				   : dw_unit_file(u, row->file);
	return file && is_path_tail(file, s->query->file);
}

static int find_in_unit(struct line_search *s, const struct dw_unit *u)
{
	const struct dw_row *rows;
	int64_t n = dw_unit_rows(u, &rows, s->err), rc = n < 0 ? n : 0;
	for (int64_t i = 0; i < n && rc >= 0; i++) {
		if (!has_line(s, u, &rows[i]))
			continue;
		uint32_t container = active_function(s->active, rows[i].at);
		if (container == DW_FUNC_NONE || container == s->container)
			continue;
		rc = enter(s, container);
		if (rc >= 0 && s->unit == u)
			rc = visit_container(s);
	}
	s->container = DW_FUNC_NONE;
	return (int)rc;
}

static int find_file(struct line_search *s)
{
	int rc = 0;
	for (size_t i = 0; i < dwarf_n_units(s->env->dw) && rc >= 0; i++) {
		const struct dw_unit *u = dwarf_unit(s->env->dw, i);
		if (unit_has_file(u, s->query->file))
			rc = find_in_unit(s, u);
	}
	return rc;
}

int lines_find(const struct site_env *env, const struct active *active, unsigned int threads,
	       const struct lines_query *query, struct arena *arena, struct cairn_lines *ret,
	       struct cairn_err *err)
{
	struct line_search s = {.env = env,
				.active = active,
				.query = query,
				.arena = arena,
				.container = DW_FUNC_NONE,
				.err = err};
	site_worker_init(&s.worker, arena);
	int rc = query->file ? find_file(&s) : find_function(&s, threads);
	if (rc >= 0)
		rc = hand_out(&s, ret);
	site_worker_fini(&s.worker);
	VEC_FREE(&s.pieces);
	VEC_FREE(&s.scopes);
	VEC_FREE(&s.found);
	return rc < 0 ? rc : (int)ret->n;
}
