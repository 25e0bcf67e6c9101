/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables of files in expressions
 *
 *	counter			of the function, of a scope around it, of its file, or the program's
 *	parse::calls		a static variable of a function
 *	ns::limit		of a namespace or a class
 *	server.c::clients	of a file
 *
 * The address is counted from the probed instruction, so that it holds in every process, wherever
 * the file is loaded.
 */
#include "trace/expr/global.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf/elf.h"

/* Variables shown when a name stands for several. */
enum { SHOWN_MAX = 6 };

/* A scope of C++ around the function: n characters of its name, "ns::T" of "ns::T::get". */
struct around {
	const char *name;
	size_t n;
};

typedef bool is_meant_fn(const struct expr_scope *scope, const struct around *around,
			 const struct expr *e, const struct site_global *g);

static bool is_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static bool is_of_own_file(const struct expr_scope *scope, const struct site_global *g)
{
	return is_text(g->file, scope->function->decl_file);
}

static bool is_in(const struct around *around, const struct expr *e, const struct site_global *g)
{
	size_t n = around->n;

	if (!n)
		return !strcmp(g->name, e->name);
	return !strncmp(g->name, around->name, n) && !strncmp(g->name + n, "::", 2) &&
	       !strcmp(g->name + n + 2, e->name);
}

/* "ns::f::count" is of the function "ns::f". */
static bool is_of_function(const struct expr_scope *scope, const struct around *around,
			   const struct expr *e, const struct site_global *g)
{
	const char *name = scope->function->name;
	const struct around own = {name, name ? strlen(name) : 0};

	return g->is_in_function && !g->is_nested && own.n && is_in(&own, e, g) &&
	       is_of_own_file(scope, g);
}

static bool is_static_of_function(const struct expr_scope *scope, const struct around *around,
				  const struct expr *e, const struct site_global *g)
{
	return g->has_place && is_of_function(scope, around, e, g);
}

/* The function's file defines it. */
static bool is_of_file(const struct expr_scope *scope, const struct around *around,
		       const struct expr *e, const struct site_global *g)
{
	return !g->is_in_function && !g->is_declaration && is_in(around, e, g) &&
	       is_of_own_file(scope, g);
}

static bool is_of_program(const struct expr_scope *scope, const struct around *around,
			  const struct expr *e, const struct site_global *g)
{
	return !g->is_in_function && !g->is_declaration && g->is_external && is_in(around, e, g);
}

/* A scope declares it, and what defines it has no debug information. */
static bool is_declared(const struct expr_scope *scope, const struct around *around,
			const struct expr *e, const struct site_global *g)
{
	return !g->is_in_function && g->is_declaration && is_in(around, e, g);
}

/* The unit may be compiled in another folder, so that its path is only the end of the file's. */
static bool is_static_of_unit(const struct expr_scope *scope, const struct around *around,
			      const struct expr *e, const struct site_global *g)
{
	const char *file = scope->function->decl_file, *unit = g->unit;

	if (g->is_in_function || g->is_external || !file || !unit || !is_in(around, e, g))
		return false;
	const char *slash = strrchr(file, '/'), *unit_slash = strrchr(unit, '/');
	return !strcmp(slash ? slash + 1 : file, unit_slash ? unit_slash + 1 : unit);
}

/* A header may define a static variable for the function's unit, which hides the program's. */
static bool is_of_unit_or_program(const struct expr_scope *scope, const struct around *around,
				  const struct expr *e, const struct site_global *g)
{
	return is_static_of_unit(scope, around, e, g) || is_of_program(scope, around, e, g);
}

static bool is_of_any_file(const struct expr_scope *scope, const struct around *around,
			   const struct expr *e, const struct site_global *g)
{
	return !g->is_in_function && !g->is_declaration;
}

/* The file's own name stands for it, too: libc.so.6::environ. */
static bool is_in_scopes(const struct expr_scope *scope, const struct around *around,
			 const struct expr *e, const struct site_global *g)
{
	const char *path = cairn_binary_path(cairn_sites_binary(scope->sites));
	const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
	size_t n = strlen(own);

	if (g->is_declaration || (g->is_in_function && !g->has_place))
		return false;
	if (!strncmp(e->scopes, own, n) && !e->scopes[n])
		return !g->is_in_function;
	if (!strncmp(e->scopes, own, n) && !strncmp(e->scopes + n, "::", 2))
		return global_is_in(g, e->scopes + n + 2);
	return global_is_in(g, e->scopes);
}

/* "a.c::x" is the file's own, if there is also one in a function. */
static bool is_of_file_in_scopes(const struct expr_scope *scope, const struct around *around,
				 const struct expr *e, const struct site_global *g)
{
	return !g->is_in_function && is_in_scopes(scope, around, e, g);
}

/* The name that is looked for. */
struct search {
	const struct expr_scope *scope;
	const struct expr *e;
	const struct site_globals *all;
	struct around around;
};

static bool is_meant_by(const struct search *s, is_meant_fn *is_meant, size_t i)
{
	return is_meant(s->scope, &s->around, s->e, &s->all->p[i]);
}

static size_t choose(const struct search *s, is_meant_fn *is_meant, const struct site_global **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < s->all->n; i++)
		if (is_meant_by(s, is_meant, i) && !n++)
			*ret = &s->all->p[i];
	return n;
}

/* ---- several ---- */

static bool is_plain(const char *file)
{
	for (; *file; file++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.",
			    *file))
			return false;
	return true;
}

/* As it can be typed. */
static int print_choice(char *buf, size_t size, const struct site_global *g)
{
	const char *unit = g->unit && *g->unit ? g->unit : g->file;
	const char *slash = unit ? strrchr(unit, '/') : NULL;
	const char *file = slash ? slash + 1 : unit;

	if (!file)
		return snprintf(buf, size, "%s", g->name);
	return snprintf(buf, size, is_plain(file) ? "%s::%s" : "'%s'::%s", file, g->name);
}

static void list_choices(const struct search *s, is_meant_fn *is_meant, size_t n, char *list,
			 size_t size)
{
	char one[200];
	size_t shown = 0, at = 0;

	list[0] = 0;
	for (size_t i = 0; i < s->all->n && shown < SHOWN_MAX; i++) {
		if (!is_meant_by(s, is_meant, i))
			continue;
		int len = print_choice(one, sizeof(one), &s->all->p[i]);
		if (len < 0 || (size_t)len >= sizeof(one) ||
		    at + (size_t)len + sizeof(", ...") >= size)
			break;
		at += (size_t)snprintf(list + at, size - at, "%s%s", shown++ ? ", " : "", one);
	}
	if (shown < n)
		snprintf(list + at, size - at, ", ...");
}

enum { LIST_MAX = 300 };

static int ambiguous(const struct search *s, is_meant_fn *is_meant, size_t n, struct cairn_err *err)
{
	char list[LIST_MAX];

	list_choices(s, is_meant, n, list, sizeof(list));
	return probe_error(err, -EINVAL, s->scope->text, s->e->at,
			   "%s is %zu variables; choose one: %s", s->e->name, n, list);
}

/* It is not visible in the function: it must be named with its file. */
static int of_other_files(const struct search *s, struct cairn_err *err)
{
	const struct site_global *found = NULL;
	size_t n = choose(s, is_of_any_file, &found);
	char list[LIST_MAX];

	if (n > 1)
		return ambiguous(s, is_of_any_file, n, err);
	if (!n)
		return 0;
	list_choices(s, is_of_any_file, n, list, sizeof(list));
	return probe_error(err, -EINVAL, s->scope->text, s->e->at,
			   "%s is not a variable that %s can name; say %s", s->e->name,
			   s->scope->function->name ? s->scope->function->name : "the function",
			   list);
}

/* ---- finding ---- */

static int find_by(const struct search *s, is_meant_fn *const *ways, size_t n_ways,
		   const struct site_global **ret, struct cairn_err *err)
{
	for (size_t i = 0; i < n_ways; i++) {
		size_t n = choose(s, ways[i], ret);
		if (n)
			return n > 1 ? ambiguous(s, ways[i], n, err) : 1;
	}
	return 0;
}

/* Templates' arguments and operators may have "::" and "<", and are stepped over. */
static bool is_scope_end(const char *name, size_t n)
{
	int depth = 0;

	for (size_t i = 0; i < n; i++) {
		if ((!i || name[i - 1] == ':') && !strncmp(name + i, "operator", 8))
			return false;
		depth += name[i] == '<' || name[i] == '(';
		depth -= name[i] == '>' || name[i] == ')';
	}
	return !depth && !strncmp(name + n, "::", 2);
}

/* From the innermost scope of C++ outwards to the file. */
static int find_outwards(struct search *s, const struct site_global **ret, struct cairn_err *err)
{
	static is_meant_fn *const of_scope[] = {is_of_file, is_of_program, is_declared};
	static is_meant_fn *const of_file[] = {is_of_file, is_of_unit_or_program};
	const char *name = s->scope->function->name;
	int r = 0;

	for (size_t n = name ? strlen(name) : 0; n && r == 0; n--) {
		if (!is_scope_end(name, n))
			continue;
		s->around = (struct around){name, n};
		r = find_by(s, of_scope, sizeof(of_scope) / sizeof(of_scope[0]), ret, err);
	}
	s->around = (struct around){0};
	return r ? r : find_by(s, of_file, sizeof(of_file) / sizeof(of_file[0]), ret, err);
}

/* A variable on the stack, or one that was left out, hides those of the file. */
static int find_in_function(const struct search *s, const struct site_global **ret,
			    struct cairn_err *err)
{
	static is_meant_fn *const is_static[] = {is_static_of_function};
	const struct site_global *local;
	int r = find_by(s, is_static, 1, ret, err);

	if (r || !choose(s, is_of_function, &local))
		return r;
	return probe_error(err, -EINVAL, s->scope->text, s->e->at,
			   "%s is a variable of %s, and has no place that holds everywhere in it; "
			   "one of a file is FILE::%s",
			   s->e->name, s->scope->function->name, s->e->name);
}

static int find_among(const struct expr_scope *scope, const struct expr *e,
		      const struct site_globals *all, const struct site_global **ret,
		      struct cairn_err *err)
{
	static is_meant_fn *const by_scopes[] = {is_of_file_in_scopes, is_in_scopes};
	struct search s = {scope, e, all, {0}};

	if (e->scopes)
		return find_by(&s, by_scopes, 2, ret, err);
	int r = find_in_function(&s, ret, err);
	if (r == 0)
		r = find_outwards(&s, ret, err);
	return r ? r : of_other_files(&s, err);
}

int global_find(const struct expr_scope *scope, const struct expr *e,
		const struct site_global **ret, struct cairn_err *err)
{
	struct site_globals all = {0};
	struct cairn_err story = {0};

	if (!scope->sites)
		return 0;
	int r = sites_globals(scope->sites, e->name, &all, &story);
	/* A sidecar has no variables: then the debug information is asked, if there is some. */
	if (r == -EOPNOTSUPP)
		return 0;
	if (r < 0 && err)
		*err = story;
	return r <= 0 ? r : find_among(scope, e, &all, ret, err);
}

bool global_has_symbol(const struct expr_scope *scope, const char *name, uint64_t *ret_size)
{
	const struct elf_symbol *symbols;
	size_t n;

	if (!scope->bin || elf_symbols(binary_main(scope->bin), &symbols, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (symbols[i].type != STT_OBJECT || strcmp(symbols[i].name, name) != 0)
			continue;
		*ret_size = symbols[i].size;
		return true;
	}
	return false;
}
