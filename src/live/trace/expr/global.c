/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables of files in expressions
 *
 *	counter			of the function, of its file, or the only one of the program
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

typedef bool is_meant_fn(const struct expr_scope *scope, const struct expr *e,
			 const struct site_global *g);

/* "ns::f::count" is of the function "ns::f". */
static bool is_of_function(const struct expr_scope *scope, const struct expr *e,
			   const struct site_global *g)
{
	const struct cairn_function *f = scope->function;
	size_t n = f->name ? strlen(f->name) : 0;

	return g->is_in_function && n && !strncmp(g->name, f->name, n) &&
	       !strncmp(g->name + n, "::", 2) && !strcmp(g->name + n + 2, e->name) && g->file &&
	       f->decl_file && !strcmp(g->file, f->decl_file);
}

static bool is_of_file(const struct expr_scope *scope, const struct expr *e,
		       const struct site_global *g)
{
	const struct cairn_function *f = scope->function;

	return !g->is_in_function && g->file && f->decl_file && !strcmp(g->file, f->decl_file);
}

static bool is_of_program(const struct expr_scope *scope, const struct expr *e,
			  const struct site_global *g)
{
	return !g->is_in_function && g->is_external;
}

static bool is_of_any_file(const struct expr_scope *scope, const struct expr *e,
			   const struct site_global *g)
{
	return !g->is_in_function;
}

/* The file's own name stands for it, too: libc.so.6::environ. */
static bool is_in_scopes(const struct expr_scope *scope, const struct expr *e,
			 const struct site_global *g)
{
	const char *path = cairn_binary_path(cairn_sites_binary(scope->sites));
	const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
	size_t n = strlen(own);

	if (!strncmp(e->scopes, own, n) && !e->scopes[n])
		return !g->is_in_function;
	if (!strncmp(e->scopes, own, n) && !strncmp(e->scopes + n, "::", 2))
		return global_is_in(g, e->scopes + n + 2);
	return global_is_in(g, e->scopes);
}

struct choice {
	const struct site_global *first;
	size_t n;
};

static struct choice choose(const struct expr_scope *scope, const struct expr *e,
			    const struct site_globals *all, is_meant_fn *is_meant)
{
	struct choice ret = {0};

	for (size_t i = 0; i < all->n; i++) {
		if (!is_meant(scope, e, &all->p[i]))
			continue;
		ret.first = ret.n ? ret.first : &all->p[i];
		ret.n++;
	}
	return ret;
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

static int ambiguous(const struct expr_scope *scope, const struct expr *e,
		     const struct site_globals *all, is_meant_fn *is_meant, size_t n,
		     struct cairn_err *err)
{
	char list[300] = "", one[200];
	size_t shown = 0, at = 0;

	for (size_t i = 0; i < all->n && shown < SHOWN_MAX; i++) {
		if (!is_meant(scope, e, &all->p[i]))
			continue;
		int len = print_choice(one, sizeof(one), &all->p[i]);
		if (len < 0 || (size_t)len >= sizeof(one) ||
		    at + (size_t)len + sizeof(", ...") >= sizeof(list))
			break;
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", shown++ ? ", " : "",
				       one);
	}
	if (shown < n)
		snprintf(list + at, sizeof(list) - at, ", ...");
	return probe_error(err, -EINVAL, scope->text, e->at, "%s is %zu variables; choose one: %s",
			   e->name, n, list);
}

/* ---- finding ---- */

static int find_among(const struct expr_scope *scope, const struct expr *e,
		      const struct site_globals *all, const struct site_global **ret,
		      struct cairn_err *err)
{
	static is_meant_fn *const by_name[] = {is_of_function, is_of_file, is_of_program,
					       is_of_any_file};
	static is_meant_fn *const by_scopes[] = {is_in_scopes};
	is_meant_fn *const *ways = e->scopes ? by_scopes : by_name;
	size_t n_ways = e->scopes ? 1 : sizeof(by_name) / sizeof(by_name[0]);

	for (size_t i = 0; i < n_ways; i++) {
		struct choice found = choose(scope, e, all, ways[i]);
		*ret = found.first;
		if (found.n > 1)
			return ambiguous(scope, e, all, ways[i], found.n, err);
		if (found.n == 1)
			return 1;
	}
	return 0;
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
