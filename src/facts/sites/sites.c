/* SPDX-License-Identifier: BSD-2-Clause */
#include <cairn/sites.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "dwarf/constants.h"
#include "sites/scopes_at.h"
#include "sites/entry_rows.h"
#include "sites/convention.h"
#include "sites/icf.h"
#include "sites/function.h"
#include "sites/globals.h"
#include "sites/call_site_value.h"
#include "sites/lines.h"
#include "sites/provider.h"
#include "sites/spec.h"
#include "sites/suggest.h"
#include "sites/symbol_names.h"
#include "sites/vars.h"

/*
 * Sites that cairn_sites_visit() evaluates at a time: enough that each container is decoded a few
 * times only, and few enough that they and their locations need some hundred megabytes at most.
 */
enum { BATCH = 1 << 18 };

struct sites_find {
	struct sites_find *next;
	struct dw_func_index index;
	struct groups groups;
	struct arena arena;
};

struct dwarf_sites {
	struct cairn_sites sites; /* first: the part that the operations' callers use */
	const struct cairn_binary *bin;
	unsigned int threads;
	bool assume_unmodified;
	const struct dwarf *dw;
	struct dwarf *own_dw; /* NULL: another owns it */
	struct cfi *cfi;
	bool kernel;
	struct cairn_types *graph;
	struct dw_types *types;   /* reader that fills the graph */
	struct sites_find *finds; /* results handed out, until close */
	struct dw_func_index all; /* made by the first question about everything */
	bool has_all;
	struct icf_candidates several; /* made by the first question */
	struct symbol_name icf_groups; /* made by the first that they concern */
	bool has_several, has_folds;
	struct active active; /* made by the first question about the middle of a function */
	struct arena at;      /* of the last answer to one */
	bool has_active;
	struct arena kept; /* of answers that live until close */
	struct globals globals;
};

static void close_sites(struct cairn_sites *sites);
static const struct sites_ops ops;

static struct dwarf_sites *own(struct cairn_sites *sites)
{
	return (struct dwarf_sites *)sites;
}

static struct dwarf_sites *sites_new(const struct cairn_binary *bin,
				     const struct cairn_sites_opts *opts)
{
	struct dwarf_sites *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	arena_init(&s->at);
	arena_init(&s->kept);
	s->sites.ops = &ops;
	s->sites.bin = s->bin = bin;
	s->threads = opts ? opts->threads : 0;
	s->assume_unmodified = opts && opts->assume_unmodified;
	s->kernel = cairn_binary_is_kernel(bin);
	return s;
}

/* With s->dw. */
static int finish_open(struct dwarf_sites *s, struct cairn_sites **ret, struct cairn_err *err)
{
	int rc = cfi_open(s->bin, &s->cfi, err);
	if (rc >= 0)
		rc = (s->graph = types_new()) ? dw_types_new(s->dw, s->graph, &s->types, err)
					      : err_nomem(err, "the type graph");
	s->sites.graph = s->graph;
	s->globals = (struct globals){
		.dw = s->dw, .types = s->types, .threads = s->threads, .arena = &s->kept};
	if (rc >= 0)
		*ret = &s->sites;
	return rc;
}

int cairn_sites_open(const struct cairn_binary *bin, const struct cairn_sites_opts *opts,
		     struct cairn_sites **ret, struct cairn_err *err)
{
	int rc = elf_need_x86_64(binary_main(bin), "sites of functions are known", err);
	if (rc < 0)
		return rc;
	struct dwarf_sites *s = sites_new(bin, opts);
	if (!s)
		return err_nomem(err, "the sites of a binary");
	rc = dwarf_open(bin, s->threads, &s->own_dw, err);
	s->dw = s->own_dw;
	if (rc >= 0)
		rc = finish_open(s, ret, err);
	if (rc < 0)
		close_sites(&s->sites);
	return rc;
}

int sites_open_shared(const struct dwarf *dw, struct dw_func_index *functions,
		      const struct cairn_sites_opts *opts, struct cairn_sites **ret,
		      struct cairn_err *err)
{
	struct dwarf_sites *s = sites_new(dwarf_binary(dw), opts);
	if (!s) {
		dw_func_index_fini(functions);
		return err_nomem(err, "the sites of a binary");
	}
	s->dw = dw;
	s->all = *functions;
	s->has_all = functions->n;
	*functions = (struct dw_func_index){0};
	int rc = finish_open(s, ret, err);
	if (rc < 0)
		close_sites(&s->sites);
	return rc;
}

struct dw_types *sites_type_reader(const struct cairn_sites *sites)
{
	return ((const struct dwarf_sites *)sites)->types;
}

static void find_free(struct sites_find *f)
{
	dw_func_index_fini(&f->index);
	groups_fini(&f->groups);
	arena_fini(&f->arena);
	free(f);
}

static void close_sites(struct cairn_sites *sites)
{
	struct dwarf_sites *s = own(sites);
	for (struct sites_find *f = s->finds, *next; f; f = next) {
		next = f->next;
		find_free(f);
	}
	dw_func_index_fini(&s->all);
	icf_candidates_fini(&s->several);
	symbol_name_fini(&s->icf_groups);
	active_fini(&s->active);
	arena_fini(&s->at);
	arena_fini(&s->kept);
	dw_types_free(s->types);
	types_free(s->graph);
	cfi_close(s->cfi);
	dwarf_close(s->own_dw);
	free(s);
}

static size_t missing(const struct cairn_sites *sites, const char **ret)
{
	return dwarf_missing(((const struct dwarf_sites *)sites)->dw, ret);
}

static int complete_type(struct cairn_sites *sites, uint32_t id, struct cairn_err *err)
{
	return dwarf_type_complete(own(sites)->types, id, err);
}

static struct site_env env_of(const struct dwarf_sites *s, const struct dw_func_index *index)
{
	return (struct site_env){
		.bin = s->bin,
		.dw = s->dw,
		.cfi = s->cfi,
		.code = binary_main(s->bin),
		.index = index,
		.assume_unmodified = s->assume_unmodified,
		.kernel = s->kernel,
	};
}

/* ---- one name ---- */

/* Assemblers describe the result of each function as of a type that they do not know. */
static bool has_result(const struct dwarf_sites *s, const struct cairn_function *f)
{
	return f->return_type &&
	       cairn_types_get(s->graph, f->return_type)->kind != CAIRN_T_UNSPECIFIED;
}

static void note_prototype(const struct dwarf_sites *s, const struct group *g,
			   struct cairn_function *f)
{
	const struct dw_unit *u = dwarf_unit_of(s->dw, g->root);
	if (!u || f->n_params || has_result(s, f) || !convention_is_silent(u, g->line))
		return;
	f->params_unknown = true;
	f->return_type = 0;
}

static int hand_out(struct sites_find *f, const struct cairn_function *functions,
		    struct cairn_function_list *ret, struct cairn_err *err)
{
	const struct cairn_function **list = arena_array(&f->arena, f->groups.v.n, sizeof(*list));
	if (!list)
		return err_nomem(err, "a list of functions");
	size_t n = 0;
	for (size_t i = 0; i < f->groups.v.n; i++)
		if (functions[i].n_sites || functions[i].n_without_code)
			list[n++] = &functions[i];
	ret->n = n;
	ret->p = list;
	return (int)n;
}

static int index_all(struct dwarf_sites *s, struct cairn_err *err)
{
	if (s->has_all)
		return 0;
	int rc = dwarf_index_functions(s->dw, s->threads, &s->all, err);
	if (rc < 0)
		return rc;
	s->has_all = true;
	return 0;
}

bool sites_debug_info(struct cairn_sites *sites, struct site_env *ret)
{
	if (sites->ops != &ops)
		return false;
	*ret = env_of(own(sites), NULL);
	return true;
}

int sites_all_functions(struct cairn_sites *sites, struct site_env *ret, struct cairn_err *err)
{
	struct dwarf_sites *s = own(sites);
	int rc = index_all(s, err);
	if (rc >= 0)
		*ret = env_of(s, &s->all);
	return rc;
}

/* Let @env know where functions were folded, when that concerns one of the groups. */
static int find_folds(struct dwarf_sites *s, const struct groups *groups, struct site_env *env,
		      struct cairn_err *err)
{
	int rc = s->has_several ? 0 : icf_candidates_find(s->bin, &s->several, err);
	s->has_several = true;
	if (rc < 0 || !fold_concerns(env, groups, &s->several))
		return rc;
	rc = index_all(s, err);
	if (!rc && !s->has_folds) {
		struct site_env all = env_of(s, &s->all);
		s->has_folds = true;
		rc = icf_find(&all, &s->several, &s->icf_groups, err);
	}
	env->icf_groups = &s->icf_groups;
	return rc;
}

/* The functions of the groups of @f, whose entries are in @index. */
static int build(struct dwarf_sites *s, const struct dw_func_index *index, struct sites_find *f,
		 struct cairn_function_list *ret, struct cairn_err *err)
{
	struct site_env env = env_of(s, index);
	int rc = find_folds(s, &f->groups, &env, err);
	if (rc >= 0)
		rc = entry_rows_collect(&env, s->threads, &f->groups, err);
	if (rc < 0)
		return rc;
	struct cairn_function *functions =
		arena_array(&f->arena, f->groups.v.n, sizeof(*functions));
	if (!functions)
		return err_nomem(err, "functions");
	rc = functions_build(&env, s->threads, f->groups.v.p, f->groups.v.n, s->types, &f->arena,
			     functions, err);
	for (size_t i = 0; rc >= 0 && i < f->groups.v.n; i++)
		note_prototype(s, &f->groups.v.p[i], &functions[i]);
	return rc < 0 ? rc : hand_out(f, functions, ret, err);
}

static int find_named(struct dwarf_sites *s, const struct group_filter *filter,
		      struct sites_find *f, struct cairn_function_list *ret, struct cairn_err *err)
{
	char key[SPEC_KEY_MAX];
	/* A linkage name has no "::" to split at, and is compared as it is. */
	const char *base =
		spec_key(filter->name, key, sizeof(key)) ? key : spec_base_name(filter->name);
	int rc = dwarf_functions_named(s->dw, s->threads, base, &f->index, err);
	if (rc < 0)
		return rc;
	struct site_env env = env_of(s, &f->index);
	rc = group_entries(&env, s->threads, filter, &f->groups, err);
	return rc < 0 ? rc : build(s, &f->index, f, ret, err);
}

/* ---- patterns ---- */

/* Leave the addresses at which none of the functions begins. */
static int without_described(struct symbol_name *symbols, const struct site_env *env,
			     const struct groups *described)
{
	struct symbol_name begin = {0};
	size_t n = 0;
	int rc = 0;
	for (size_t g = 0; g < described->v.n; g++)
		for (size_t i = 0; i < described->v.p[g].entries.n && !rc; i++) {
			struct dw_die die;
			struct cairn_vaddr at;
			if (dw_func_die(env->dw, &env->index->p[described->v.p[g].entries.p[i]],
					&die, NULL) == 1 &&
			    site_entry_of(&die, &at) == 1)
				rc = VEC_ADD(&begin.at, at) ? 0 : -ENOMEM;
		}
	symbol_name_settle(&begin);
	for (size_t i = 0; i < symbols->at.n; i++)
		if (!symbol_name_has(&begin, symbols->at.p[i]))
			symbols->at.p[n++] = symbols->at.p[i];
	symbols->at.n = n;
	symbol_name_fini(&begin);
	return rc;
}

/*
 * The functions that a pattern matches: by the names of the debug information, and by their
 * symbols'. @bare gets where those begin that have a symbol only; symbol_name_fini() frees it,
 * groups_fini() @ret, also after an error.
 */
static int match(struct dwarf_sites *s, const struct group_filter *filter, struct groups *ret,
		 struct symbol_name *bare, struct cairn_err *err)
{
	struct site_env env = env_of(s, &s->all);
	struct groups described = {0};
	struct group_filter begins = {.begins = bare}, both = *filter;
	*ret = (struct groups){0};
	*bare = (struct symbol_name){0};
	bool symbols = filter->is_pattern && !filter->file;
	int rc = symbols ? symbol_names_match(s->bin, filter->name, bare, err) : 0;
	if (rc >= 0 && bare->at.n)
		rc = group_entries(&env, s->threads, &begins, &described, err);
	both.also = &described;
	if (rc >= 0)
		rc = group_entries(&env, s->threads, &both, ret, err);
	if (rc >= 0 && without_described(bare, &env, &described) < 0)
		rc = err_nomem(err, "symbols");
	groups_fini(&described);
	return rc;
}

/* Functions of which only the address is known, after the others. */
static int append_bare(const struct dwarf_sites *s, const struct symbol_name *bare,
		       const char *pattern, struct sites_find *f, struct cairn_function_list *ret,
		       struct cairn_err *err)
{
	const struct cairn_function **list =
		arena_array(&f->arena, ret->n + bare->at.n, sizeof(*list));
	struct cairn_function *functions = arena_array(&f->arena, bare->at.n, sizeof(*functions));
	if (!list || !functions)
		return err_nomem(err, "a list of functions");
	memcpy(list, ret->p, ret->n * sizeof(*list));
	for (size_t i = 0; i < bare->at.n; i++) {
		if (symbol_function(s->bin, pattern, bare->at.p[i], &f->arena, &functions[i]) < 0)
			return err_nomem(err, "functions");
		list[ret->n++] = &functions[i];
	}
	ret->p = list;
	return (int)ret->n;
}

static int find_pattern(struct dwarf_sites *s, const struct group_filter *filter,
			struct sites_find *f, struct cairn_function_list *ret,
			struct cairn_err *err)
{
	struct symbol_name bare = {0};
	int rc = index_all(s, err);
	if (rc >= 0)
		rc = match(s, filter, &f->groups, &bare, err);
	size_t n = f->groups.v.n + bare.at.n;
	if (rc >= 0 && n > CAIRN_FIND_MAX)
		rc = err_set(err, -E2BIG,
			     "%s matches %zu functions; at most %d can be queried at once",
			     filter->name, n, CAIRN_FIND_MAX);
	if (rc >= 0)
		rc = build(s, &s->all, f, ret, err);
	if (rc >= 0 && bare.at.n)
		rc = append_bare(s, &bare, filter->name, f, ret, err);
	ret->found = CAIRN_FOUND_PATTERN;
	symbol_name_fini(&bare);
	return rc;
}

static int find(struct dwarf_sites *s, const struct group_filter *filter,
		struct cairn_function_list *ret, struct cairn_err *err)
{
	struct sites_find *f = calloc(1, sizeof(*f));
	if (!f)
		return err_nomem(err, "a search");
	*ret = (struct cairn_function_list){0};
	int rc = filter->is_pattern ? find_pattern(s, filter, f, ret, err)
				    : find_named(s, filter, f, ret, err);
	if (rc < 0) {
		find_free(f);
		return rc;
	}
	f->next = s->finds;
	s->finds = f;
	return rc;
}

/* ---- one symbol ---- */

/* The functions found for a symbol, before they are handed out. */
struct by_symbol {
	struct dwarf_sites *s;
	const char *name;
	struct symbol_name symbol;
	struct groups begin; /* their declarations; only some of their sites */
	VEC(const struct cairn_function *) found;
};

static bool has_body_at(const struct cairn_function *f, struct cairn_vaddr at)
{
	for (uint32_t i = 0; i < f->n_sites; i++)
		if (f->sites[i].kind == CAIRN_SITE_OUT_OF_LINE && f->sites[i].at.v == at.v)
			return true;
	return false;
}

static bool begins_there(const struct by_symbol *b, const struct cairn_function *f)
{
	for (size_t i = 0; i < b->symbol.at.n; i++)
		if (has_body_at(f, b->symbol.at.p[i]))
			return true;
	return false;
}

/* All of the functions that begin at the symbol's addresses: their copies are elsewhere. */
static int add_described(struct by_symbol *b, struct cairn_err *err)
{
	struct dwarf_sites *s = b->s;
	struct group_filter begins = {.begins = &b->symbol};
	int rc = index_all(s, err);
	if (rc < 0)
		return rc;
	struct site_env env = env_of(s, &s->all);
	rc = group_entries(&env, s->threads, &begins, &b->begin, err);
	for (size_t i = 0; i < b->begin.v.n && rc >= 0; i++) {
		const struct group *g = &b->begin.v.p[i];
		struct group_filter filter = {.name = g->linkage_name ? g->linkage_name : g->name,
					      .file = g->file,
					      .line = g->line};
		struct cairn_function_list list;
		rc = find(s, &filter, &list, err);
		for (size_t k = 0; rc >= 0 && k < list.n; k++)
			if (begins_there(b, list.p[k]) && !VEC_ADD(&b->found, list.p[k]))
				rc = err_nomem(err, "functions");
	}
	return rc;
}

/* A function without debug information for each address at which none begins that has some. */
static int add_bare(struct by_symbol *b, struct sites_find *f, struct cairn_err *err)
{
	size_t n_described = b->found.n;
	for (size_t i = 0; i < b->symbol.at.n; i++) {
		struct cairn_vaddr at = b->symbol.at.p[i];
		bool described = false;
		for (size_t k = 0; k < n_described && !described; k++)
			described = has_body_at(b->found.p[k], at);
		if (described)
			continue;
		struct cairn_function *bare = arena_alloc(&f->arena, sizeof(*bare));
		if (!bare || symbol_function(b->s->bin, b->name, at, &f->arena, bare) < 0 ||
		    !VEC_ADD(&b->found, bare))
			return err_nomem(err, "functions");
	}
	return 0;
}

static int hand_out_symbol(struct by_symbol *b, struct cairn_function_list *ret,
			   struct cairn_err *err)
{
	struct sites_find *f = calloc(1, sizeof(*f));
	if (!f)
		return err_nomem(err, "a search");
	int rc = add_bare(b, f, err);
	const struct cairn_function **list =
		rc < 0 ? NULL : arena_array(&f->arena, b->found.n, sizeof(*list));
	if (!list) {
		find_free(f);
		return err_nomem(err, "functions");
	}
	memcpy(list, b->found.p, b->found.n * sizeof(*list));
	f->next = b->s->finds;
	b->s->finds = f;
	ret->n = b->found.n;
	ret->p = list;
	return (int)ret->n;
}

static int find_symbol(struct dwarf_sites *s, const char *name, struct cairn_function_list *ret,
		       struct cairn_err *err)
{
	struct by_symbol b = {.s = s, .name = name};
	int rc = symbol_name_find(s->bin, name, &b.symbol, err);
	*ret = (struct cairn_function_list){.found = b.symbol.indirect ? CAIRN_FOUND_INDIRECT
								       : CAIRN_FOUND_SYMBOL};
	if (rc > 0)
		rc = add_described(&b, err);
	if (rc >= 0 && b.symbol.at.n)
		rc = hand_out_symbol(&b, ret, err);
	groups_fini(&b.begin);
	symbol_name_fini(&b.symbol);
	VEC_FREE(&b.found);
	return rc;
}

static int find_spec(struct cairn_sites *sites, const char *spec, struct cairn_function_list *ret,
		     struct cairn_err *err)
{
	struct dwarf_sites *s = own(sites);
	char *copy = strdup(spec);
	struct group_filter filter;
	if (!copy)
		return err_nomem(err, "a search");
	spec_parse(copy, &filter);
	int rc = find(s, &filter, ret, err);
	if (!rc && !filter.file && !filter.is_pattern)
		rc = find_symbol(s, filter.name, ret, err);
	free(copy);
	return rc < 0 ? err_while(err, rc, "while looking for %s in %s", spec,
				  cairn_binary_path(s->bin))
		      : rc;
}

/* ---- everything ---- */

static int visit_batch(struct dwarf_sites *s, const struct site_env *env,
		       const struct group *groups, size_t n, sites_visitor *visit, void *ctx,
		       struct cairn_err *err)
{
	struct arena arena;
	arena_init(&arena);
	struct cairn_function *functions = arena_array(&arena, n, sizeof(*functions));
	int rc = functions ? functions_build(env, s->threads, groups, n, s->types, &arena,
					     functions, err)
			   : err_nomem(err, "functions");
	for (size_t i = 0; i < n && !rc; i++) {
		note_prototype(s, &groups[i], &functions[i]);
		rc = visit(ctx, &functions[i]);
	}
	arena_fini(&arena);
	return rc;
}

static int visit_bare(const struct dwarf_sites *s, const struct symbol_name *bare,
		      const char *pattern, sites_visitor *visit, void *ctx, struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < bare->at.n && !rc; i++) {
		struct cairn_function f;
		struct arena arena;
		arena_init(&arena);
		rc = symbol_function(s->bin, pattern, bare->at.p[i], &arena, &f) < 0
			     ? err_nomem(err, "functions")
			     : visit(ctx, &f);
		arena_fini(&arena);
	}
	return rc;
}

static int visit_filtered(struct dwarf_sites *s, const struct group_filter *filter,
			  sites_visitor *visit, void *ctx, struct cairn_err *err)
{
	int rc = index_all(s, err);
	if (rc < 0)
		return rc;
	struct site_env env = env_of(s, &s->all);
	struct groups groups;
	struct symbol_name bare;
	rc = match(s, filter, &groups, &bare, err);
	if (!rc)
		rc = find_folds(s, &groups, &env, err);
	if (!rc)
		rc = entry_rows_collect(&env, s->threads, &groups, err);
	for (size_t i = 0, n; i < groups.v.n && !rc; i += n) {
		size_t n_sites = 0;
		for (n = 0; i + n < groups.v.n && n_sites < BATCH; n++)
			n_sites += groups.v.p[i + n].entries.n;
		rc = visit_batch(s, &env, groups.v.p + i, n, visit, ctx, err);
	}
	if (!rc)
		rc = visit_bare(s, &bare, filter->name, visit, ctx, err);
	symbol_name_fini(&bare);
	groups_fini(&groups);
	return rc;
}

static int visit(struct cairn_sites *sites, const char *pattern, sites_visitor *visitor, void *ctx,
		 struct cairn_err *err)
{
	struct dwarf_sites *s = own(sites);
	struct group_filter filter = {0};
	char *copy = NULL;
	if (pattern) {
		copy = strdup(pattern);
		if (!copy)
			return err_nomem(err, "a pattern");
		spec_parse(copy, &filter);
	}
	int rc = visit_filtered(s, &filter, visitor, ctx, err);
	free(copy);
	return rc;
}

static int offer_symbol(void *near, const char *name, struct cairn_vaddr at, uint64_t size,
			enum symbol_origin origin)
{
	suggest_symbol(near, name);
	return 0;
}

static int suggest(struct cairn_sites *sites, const char *spec, const char **ret, size_t max,
		   struct cairn_err *err)
{
	struct dwarf_sites *s = own(sites);
	int rc = index_all(s, err);
	if (rc < 0)
		return rc;
	char copy[512];
	struct group_filter filter;
	snprintf(copy, sizeof(copy), "%s", spec);
	spec_parse(copy, &filter);
	struct suggestions to = {.wanted = spec_base_name(filter.name),
				 .near.max = max < NEAR_MAX ? max : NEAR_MAX};
	to.is_scoped = to.wanted != filter.name;
	suggest_index(&to, &s->all);
	symbol_names_visit(s->bin, offer_symbol, &to);
	memcpy(ret, to.near.names, to.near.n * sizeof(*ret));
	return (int)to.near.n;
}

static bool imports(const struct cairn_sites *sites, const char *name)
{
	return cairn_binary_imports(sites->bin, name);
}

/* ---- in the middle of functions ---- */

static int passed(struct cairn_sites *sites, struct cairn_vaddr callee,
		  struct cairn_vaddr caller_pc, const struct cairn_loc_step *asked,
		  struct cairn_location *ret, struct cairn_err *err)
{
	struct dwarf_sites *s = own(sites);
	*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_ENTRY_VALUE};
	if (!s->has_active)
		return 0;
	struct site_env env = env_of(s, &s->all);
	return passed_between(&env, &s->active, callee, caller_pc, asked, &s->at, ret, err);
}

/* *@ret: the environment with all functions. */
static int list_code(struct dwarf_sites *s, struct site_env *ret, struct cairn_err *err)
{
	int rc = index_all(s, err);
	*ret = env_of(s, &s->all);
	if (rc < 0 || s->has_active)
		return rc;
	rc = active_init(&s->active, ret, err);
	s->has_active = rc >= 0;
	if (rc < 0)
		active_fini(&s->active);
	return rc;
}

static bool is_file(void *ctx, const char *name)
{
	return lines_has_file(ctx, name);
}

static int lines(struct cairn_sites *sites, const char *spec, struct cairn_lines *ret,
		 struct cairn_err *err)
{
	struct dwarf_sites *s = own(sites);
	struct lines_query query;
	struct site_env env;
	int rc = list_code(s, &env, err);
	char *copy = rc < 0 ? NULL : arena_strdup(&s->kept, spec);
	if (rc < 0)
		return rc;
	if (!copy)
		return err_nomem(err, "lines");
	lines_parse(copy, is_file, (void *)s->dw, &query);
	return lines_find(&env, &s->active, s->threads, &query, &s->kept, ret, err);
}

static int type_of(void *ctx, const struct dw_die *formal, uint32_t *ret, struct cairn_err *err)
{
	return dwarf_type_of(ctx, formal, ret, err);
}

static int vars(struct cairn_sites *sites, const struct cairn_line *line,
		struct cairn_variables *ret, struct cairn_err *err)
{
	struct dwarf_sites *s = own(sites);
	struct site_env env;
	int rc = list_code(s, &env, err);
	if (rc < 0)
		return rc;
	return vars_at(&env, &s->active, &(struct active_types){type_of, s->types}, &s->globals,
		       line, &s->kept, ret, err);
}

static int globals(struct cairn_sites *sites, const char *name, struct site_globals *ret,
		   struct cairn_err *err)
{
	return globals_find(&own(sites)->globals, name, ret, err);
}

static int at(struct cairn_sites *sites, struct cairn_vaddr pc, bool is_exact,
	      const struct cairn_scope **ret, struct cairn_err *err)
{
	struct dwarf_sites *s = own(sites);
	struct site_env env;
	int rc = list_code(s, &env, err);
	if (rc < 0)
		return rc;
	arena_fini(&s->at);
	arena_init(&s->at);
	return active_at(&s->active, &env, &(struct active_types){type_of, s->types}, &s->at, pc,
			 is_exact, ret, err);
}

static const struct sites_ops ops = {
	.close = close_sites,
	.missing = missing,
	.complete_type = complete_type,
	.find = find_spec,
	.visit = visit,
	.suggest = suggest,
	.imports = imports,
	.at = at,
	.passed = passed,
	.lines = lines,
	.vars = vars,
	.globals = globals,
	.symbol = sites_symbol_of_binary,
};
