/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the head of a probe at a line or an offset to its sites
 *
 *	/usr/bin/redis-server:db.c:88		a line of a file, whatever function has it
 *	/usr/bin/redis-server:lookupKey:88	a line of a function, in its body and all copies
 *	/usr/bin/redis-server:lookupKey+0x1c	an instruction of the body; needs no debug
 *	information
 *
 * The instructions become the sites of a made-up function, as those of a USDT probe do.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/lines.h>

#include "elf/elf.h"
#include "sites/symbol_names.h"
#include "trace/place/in_kernel.h"
#include "trace/place/kernel_symbol.h"

/* The probe's only target: a function of these sites. */
static int make_target(struct cairn_trace *t, const char *name, const struct cairn_site *sites,
		       uint32_t n, const struct cairn_types *types,
		       struct cairn_function **ret_function, struct trace_targets *ret,
		       struct cairn_err *err)
{
	struct cairn_function *function = arena_alloc(&t->arena, sizeof(*function));
	struct trace_target *target = arena_alloc(&t->arena, sizeof(*target));

	if (!function || !target)
		return err_nomem(err, "a probe");
	*function = (struct cairn_function){.name = name, .n_sites = n, .sites = sites};
	*target = (struct trace_target){.function = function, .types = types};
	*ret_function = function;
	*ret = (struct trace_targets){.p = target, .n = 1, .found = CAIRN_FOUND_NAME};
	return 0;
}

/* ---- lines ---- */

static int no_line(const struct trace_file *f, const char *spec, struct cairn_err *err)
{
	const char *colon = strrchr(spec, ':');
	struct cairn_function_list list = {0};
	char name[512];

	snprintf(name, sizeof(name), "%.*s", (int)(colon - spec), spec);
	if (cairn_sites_find(f->sites, name, &list, NULL) > 0)
		return err_set(err, -ENXIO,
			       "no statement of %s begins at line %s; cairn sites FILE --lines %s "
			       "lists those that do",
			       name, colon + 1, name);
	return err_set(err, -ENXIO,
		       "%s has no function %s, and no file of that name with a statement at line "
		       "%s",
		       f->shown, name, colon + 1);
}

static int by_address(const void *a, const void *b)
{
	const struct cairn_line *x = a, *y = b;
	return x->site.at.v < y->site.at.v ? -1 : x->site.at.v > y->site.at.v;
}

/* One instruction is one site, also if it is in two files of that name. */
static uint32_t take_places(const struct cairn_lines *lines, struct cairn_line *ret,
			    struct cairn_site *ret_sites)
{
	uint32_t n = 0;

	memcpy(ret, lines->p, lines->n * sizeof(*ret));
	qsort(ret, lines->n, sizeof(*ret), by_address);
	for (size_t i = 0; i < lines->n; i++)
		if (!n || ret[n - 1].site.at.v != ret[i].site.at.v)
			ret[n++] = ret[i];
	for (uint32_t i = 0; i < n; i++)
		ret_sites[i] = ret[i].site;
	return n;
}

/* ---- variables ---- */

/*
 * The variables of all sites by name: what a function has as parameters. Globals, which are the
 * last, are found by their names.
 */
struct names {
	VEC(struct cairn_param) v;
};

static int find_name(const struct names *names, const char *name)
{
	for (size_t i = 0; i < names->v.n; i++)
		if (!strcmp(names->v.p[i].name, name))
			return (int)i;
	return -1;
}

static int add_names(struct names *names, const struct cairn_variables *vars)
{
	for (size_t i = 0; i < vars->n && vars->p[i].kind != CAIRN_VARIABLE_GLOBAL; i++) {
		const struct cairn_param p = {vars->p[i].name, vars->p[i].type};
		if (find_name(names, p.name) < 0 && !VEC_ADD(&names->v, p))
			return -ENOMEM;
	}
	return 0;
}

/* A variable that is not in scope at a site has no description there. */
static int set_args(struct cairn_trace *t, const struct names *names,
		    const struct cairn_variables *vars, struct cairn_site *site)
{
	struct cairn_arg *args = arena_array(&t->arena, names->v.n + 1, sizeof(*args));

	if (!args)
		return -ENOMEM;
	for (size_t i = 0; i < names->v.n; i++)
		args[i] = (struct cairn_arg){.name = names->v.p[i].name,
					     .type = names->v.p[i].type,
					     .loc.why = CAIRN_UNAVAIL_NO_DESCRIPTION};
	for (size_t i = 0; i < vars->n && vars->p[i].kind != CAIRN_VARIABLE_GLOBAL; i++) {
		struct cairn_arg *arg = &args[find_name(names, vars->p[i].name)];
		arg->type = vars->p[i].type;
		arg->loc = vars->p[i].loc;
	}
	site->args = args;
	site->n_args = (uint32_t)names->v.n;
	return 0;
}

static int take_params(struct cairn_trace *t, const struct names *names,
		       struct cairn_function *function)
{
	struct cairn_param *params = arena_array(&t->arena, names->v.n + 1, sizeof(*params));

	if (!params)
		return -ENOMEM;
	if (names->v.n)
		memcpy(params, names->v.p, names->v.n * sizeof(*params));
	function->params = params;
	function->n_params = (uint32_t)names->v.n;
	return 0;
}

/*
 * The variables in scope, as parameters of the function: only if the probe has expressions, as it
 * costs a decoding of each function.
 */
static int add_variables(struct cairn_trace *t, struct trace_file *f,
			 const struct cairn_line *lines, struct cairn_site *sites, uint32_t n,
			 struct cairn_function *function, struct cairn_err *err)
{
	struct cairn_variables *vars = arena_array(&t->arena, n, sizeof(*vars));
	struct names names = {0};
	int e = vars ? 0 : err_nomem(err, "variables");

	for (uint32_t i = 0; i < n && e >= 0; i++) {
		e = cairn_sites_vars(f->sites, &lines[i], &vars[i], err);
		if (e >= 0 && add_names(&names, &vars[i]) < 0)
			e = err_nomem(err, "variables");
	}
	for (uint32_t i = 0; i < n && e >= 0; i++)
		if (set_args(t, &names, &vars[i], &sites[i]) < 0)
			e = err_nomem(err, "variables");
	if (e >= 0 && take_params(t, &names, function) < 0)
		e = err_nomem(err, "variables");
	VEC_FREE(&names.v);
	return e < 0 ? e : 0;
}

static int resolve_line(struct cairn_trace *t, const struct probe_text *text, struct trace_file *f,
			const char *spec, struct trace_targets *ret, struct cairn_err *err)
{
	struct cairn_function *function = NULL;
	struct cairn_lines lines;
	int e = f->kernel ? in_kernel_lines(t, f, err) : resolve_sites(t, f, err);

	if (e == 0)
		e = cairn_sites_lines(f->sites, spec, &lines, err);
	if (e < 0)
		return e;
	if (!lines.n)
		return no_line(f, spec, err);
	if (lines.n > TRACE_SITES_MAX)
		return err_set(err, -ERANGE, "%s has %zu places; a trace has at most %u sites",
			       spec, lines.n, TRACE_SITES_MAX);
	struct cairn_site *sites = arena_array(&t->arena, lines.n, sizeof(*sites));
	struct cairn_line *places = arena_array(&t->arena, lines.n, sizeof(*places));
	if (!sites || !places)
		return err_nomem(err, "sites");
	uint32_t n = take_places(&lines, places, sites);
	e = make_target(t, spec, sites, n, cairn_sites_types(f->sites), &function, ret, err);
	if (e == 0)
		function->decl_file = places[0].file;
	if (e == 0 && (text->n_values || text->condition || t->aggregates))
		e = add_variables(t, f, places, sites, n, function, err);
	return e;
}

/* ---- offsets ---- */

/* The body that a name begins; a symbol's, so that no debug information is needed. */
static int find_body(const struct trace_file *f, const char *name, struct cairn_vaddr *ret,
		     struct cairn_err *err)
{
	struct symbol_name found;
	int n = symbol_name_find(f->bin, name, &found, err);

	if (n < 0)
		return n;
	if (n)
		*ret = found.at.p[0];
	symbol_name_fini(&found);
	if (n == 1)
		return 0;
	if (!n)
		return err_set(err, -ENXIO,
			       "%s has no symbol %s; an offset is counted from a symbol of the "
			       "symbol tables",
			       f->shown, name);
	return err_set(err, -ENOTUNIQ,
		       "%s has %d functions with the symbol %s: the offset may be in each",
		       f->shown, n, name);
}

/* The end of the symbol is that of the code that it names. */
static int check_offset(const struct trace_file *f, const char *name, struct cairn_vaddr start,
			uint64_t off, struct cairn_err *err)
{
	const char *covering;
	struct cairn_vaddr of;

	if (cairn_binary_symbol_of(f->bin, (struct cairn_vaddr){start.v + off}, &covering, &of) &&
	    of.v == start.v)
		return 0;
	return err_set(err, -ENXIO, "%s+0x%" PRIx64 " is not in the code of %s", name, off, name);
}

static int offset_in_file(const struct trace_file *f, const char *name, uint64_t off,
			  struct cairn_site *ret, struct cairn_err *err)
{
	struct cairn_vaddr start = {0};
	int e = find_body(f, name, &start, err);

	if (e == 0)
		e = check_offset(f, name, start, off, err);
	if (e < 0)
		return e;
	*ret = (struct cairn_site){.kind = CAIRN_SITE_PLACE,
				   .rule = CAIRN_AT_GIVEN,
				   .at = {start.v + off},
				   .symbol = name,
				   .symbol_off = off,
				   .n_shared = 1};
	ret->has_off = cairn_binary_foff(f->bin, ret->at, &ret->off);
	ret->hazard = cairn_hazard_at(f->bin, ret->at, !off);
	return 0;
}

static int resolve_offset(struct cairn_trace *t, struct trace_file *f, const char *spec,
			  struct trace_targets *ret, struct cairn_err *err)
{
	const char *plus = strrchr(spec, '+');
	char *name = arena_strndup(&t->arena, spec, (size_t)(plus - spec));
	struct cairn_site *site = arena_alloc(&t->arena, sizeof(*site));
	struct cairn_function *function = NULL;
	uint64_t off = strtoull(plus + 1, NULL, 0);

	if (!name || !site)
		return err_nomem(err, "a probe");
	int e = trace_words(t, err);
	if (e == 0)
		e = f->kernel ? kernel_symbol_offset(f, name, off, site, err)
			      : offset_in_file(f, name, off, site, err);
	if (e < 0)
		return e;
	return make_target(t, spec, site, 1, t->words, &function, ret, err);
}

/* The parser saw that it ends in one of both. */
static bool is_offset(const char *spec)
{
	const char *plus = strrchr(spec, '+'), *colon = strrchr(spec, ':');

	return plus && (!colon || plus > colon);
}

int resolve_place(struct cairn_trace *t, const struct probe_text *text,
		  struct trace_file **ret_file, struct trace_targets *ret, struct cairn_err *err)
{
	const char *spec;
	int e = resolve_head(t, text, ret_file, &spec, err);

	if (e < 0)
		return e;
	if (is_offset(spec))
		return resolve_offset(t, *ret_file, spec, ret, err);
	if (!strchr(spec, ':'))
		return err_set(err, -EINVAL, "line %s of which function or file? FUNC:%s", spec,
			       spec);
	return resolve_line(t, text, *ret_file, spec, ret, err);
}
