/* SPDX-License-Identifier: BSD-2-Clause */
#include <cairn/btf/sites.h>

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/search.h"
#include "btf/btf.h"
#include "btfsites/btfsites.h"
#include "elf/elf.h"
#include "sites/suggest.h"
#include "sites/symbol_names.h"
#include "types/build.h"

static const struct sites_ops ops;

struct btf_sites *btfsites_new(const struct cairn_binary *bin)
{
	struct btf_sites *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->sites.ops = &ops;
	s->sites.bin = bin;
	s->base = elf_lowest_address(binary_main(bin));
	s->kernel = cairn_binary_is_kernel(bin);
	s->relocatable = cairn_binary_is_relocatable(bin);
	arena_init(&s->arena);
	return s;
}

void btfsites_free(struct btf_sites *s)
{
	if (!s)
		return;
	btf_types_free(s->reader);
	types_free(s->sites.graph);
	while (s->n_chain)
		cairn_btf_close(s->chain[--s->n_chain]);
	insn_starts_fini(&s->around.starts);
	cfi_close(s->cfi);
	btfsites_forget_few(s);
	arena_fini(&s->arena);
	VEC_FREE(&s->sections);
	VEC_FREE(&s->by_address.v);
	VEC_FREE(&s->answered.v);
	free(s->path);
	free(s);
}

static void close_sites(struct cairn_sites *sites)
{
	btfsites_free(btf_sites_of(sites));
}

static size_t missing(const struct cairn_sites *sites, const char **ret)
{
	*ret = "";
	return 0;
}

/* An answer counts only if no file became shorter on the way. */
static int settle(const struct btf_sites *s, int rc, struct cairn_err *err)
{
	if (rc == -ENOMEM)
		return rc;
	int verdict = btf_verdict(s->inlined, rc, NULL, err);
	return verdict < 0 ? verdict : binary_check_inputs(s->sites.bin, err) < 0 ? -EBADMSG : rc;
}

static int complete_type(struct cairn_sites *sites, uint32_t id, struct cairn_err *err)
{
	struct btf_sites *s = btf_sites_of(sites);
	return settle(s, btf_types_read(s->reader, id, err), err);
}

/* ---- one name ---- */

static int hand_out(struct btf_sites *s, const struct cairn_function *const *found, size_t n,
		    struct cairn_function_list *ret, struct cairn_err *err)
{
	const struct cairn_function **list = arena_array(&s->arena, n, sizeof(*list));
	if (!list)
		return err_nomem(err, "functions");
	if (n)
		memcpy(list, found, n * sizeof(*list));
	ret->n = n;
	ret->p = list;
	return (int)n;
}

/* Functions on their way to a caller. */
struct found {
	VEC(const struct cairn_function *) v;
};

/* @places  those of @id */
static int add_function(struct btf_sites *s, uint32_t id, struct place *places, uint32_t n_places,
			const struct symbol_name *bodies, struct found *ret, struct cairn_err *err)
{
	struct cairn_function *f = arena_alloc(&s->arena, sizeof(*f));
	int rc = f ? btfsites_function(s, id, places, n_places, bodies->at.p,
				       btfsites_has_body(s, id) ? bodies->at.n : 0, &s->arena, f,
				       err)
		   : err_nomem(err, "a function");
	if (rc >= 0 && f->n_sites && !VEC_ADD(&ret->v, f))
		rc = err_nomem(err, "functions");
	return rc;
}

/* As symbol_function(). Into a kernel go kprobes, which are refused elsewhere than user probes. */
static int bare_function(const struct btf_sites *s, const char *name, struct cairn_vaddr at,
			 struct arena *arena, struct cairn_function *ret)
{
	int rc = symbol_function(s->sites.bin, name, at, arena, ret);
	struct cairn_site *site = rc < 0 ? NULL : (struct cairn_site *)ret->sites;
	if (site && s->kernel)
		site->hazard = btfsites_kernel_hazard(s, at);
	return rc;
}

/*
 * Bodies that are not known to have the prototype of a FUNC of the name: functions of unknown
 * parameters.
 */
static int add_bare(struct btf_sites *s, const char *name, const struct symbol_name *bodies,
		    struct found *ret, struct cairn_err *err)
{
	for (size_t i = 0; i < bodies->at.n; i++) {
		struct cairn_function *f = arena_alloc(&s->arena, sizeof(*f));
		if (!f || bare_function(s, name, bodies->at.p[i], &s->arena, f) < 0 ||
		    !VEC_ADD(&ret->v, f))
			return err_nomem(err, "functions");
	}
	return 0;
}

static bool has_a_body(const struct btf_sites *s, const struct func_ids *ids)
{
	for (size_t i = 0; i < ids->v.n; i++)
		if (btfsites_has_body(s, ids->v.p[i]))
			return true;
	return false;
}

static int by_function(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->proto > y->proto) - (x->proto < y->proto);
}

/* Those of one function, of all that are in this order. */
static struct place *places_of(const struct place_list *all, uint32_t id, size_t *ret_n)
{
	struct place *p = all->v.p;
	size_t n = all->v.n, lo = SEARCH(0, n, mid, p[mid].func < id), hi = lo;
	while (hi < n && p[hi].func == id)
		hi++;
	*ret_n = hi - lo;
	return n ? &p[lo] : NULL;
}

/* Of all that is to be read next: the places, and the bodies. */
static int see_few(struct btf_sites *s, const struct place_list *places,
		   const struct symbol_name *bodies)
{
	VEC(uint64_t) at = {0};
	bool ok = true;
	for (size_t i = 0; i < places->v.n && ok; i++)
		ok = VEC_ADD(&at, places->v.p[i].at);
	for (size_t i = 0; i < bodies->at.n && ok; i++)
		ok = VEC_ADD(&at, bodies->at.p[i].v);
	int rc = ok ? btfsites_see_few(s, at.p, at.n) : -ENOMEM;
	VEC_FREE(&at);
	return rc;
}

static int add_functions(struct btf_sites *s, const struct func_ids *ids,
			 const struct symbol_name *bodies, struct found *ret, struct cairn_err *err)
{
	struct place_list places = {0};
	int rc = btfsites_places(s, ids, &places, err);
	if (places.v.n)
		qsort(places.v.p, places.v.n, sizeof(*places.v.p), by_function);
	if (rc >= 0 && see_few(s, &places, bodies) < 0)
		rc = err_nomem(err, "functions");
	for (size_t i = 0; i < ids->v.n && rc >= 0; i++) {
		size_t n = 0;
		struct place *p = places_of(&places, ids->v.p[i], &n);
		rc = add_function(s, ids->v.p[i], p, (uint32_t)n, bodies, ret, err);
	}
	VEC_FREE(&places.v);
	return rc;
}

/* Only FUNCs of this binary: those of a base are of another one, unless they have a site here. */
static int add_named(struct btf_sites *s, const char *name, const struct func_ids *ids,
		     struct found *ret, struct cairn_err *err)
{
	struct symbol_name bodies = {0};
	int rc = ids->v.n ? symbol_name_find(s->sites.bin, name, &bodies, err) : 0;
	if (rc >= 0 && ids->v.n)
		rc = add_functions(s, ids, &bodies, ret, err);
	if (rc >= 0 && ids->v.n && !has_a_body(s, ids))
		rc = add_bare(s, name, &bodies, ret, err);
	symbol_name_fini(&bodies);
	return rc;
}

static int find_named(struct btf_sites *s, const char *name, struct cairn_function_list *ret,
		      struct cairn_err *err)
{
	struct func_ids ids = {0};
	struct found found = {0};
	int rc = btfsites_named(s, name, &ids) < 0 ? err_nomem(err, "a search") : 0;
	if (rc >= 0)
		rc = add_named(s, name, &ids, &found, err);
	if (rc >= 0)
		rc = hand_out(s, found.v.p, found.v.n, ret, err);
	/* Nothing that a user could type tells them apart, so they are no choice. */
	ret->found = ret->n > 1 ? CAIRN_FOUND_PATTERN : CAIRN_FOUND_NAME;
	VEC_FREE(&ids.v);
	VEC_FREE(&found.v);
	return rc;
}

/* ---- symbols that are no FUNC ---- */

/* Another symbol at the address that is a FUNC: malloc is __libc_malloc. NULL: none. */
static int name_at(struct btf_sites *s, struct cairn_vaddr at, const char **ret,
		   struct cairn_err *err)
{
	const struct elf_symbol *p;
	size_t n;
	int rc = btfsites_symbols_at(s, at.v, &p, &n, err);
	*ret = NULL;
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n; i++) {
		struct func_ids ids = {0};
		rc = p[i].type == STT_FUNC ? btfsites_named(s, p[i].name, &ids) : 0;
		bool is_func = ids.v.n && has_a_body(s, &ids);
		VEC_FREE(&ids.v);
		if (rc < 0)
			return err_nomem(err, "a search");
		if (is_func) {
			*ret = p[i].name;
			return 0;
		}
	}
	return 0;
}

static int add_symbol(struct btf_sites *s, const char *name, struct cairn_vaddr at,
		      struct found *ret, struct cairn_err *err)
{
	const char *other;
	struct func_ids ids = {0};
	struct symbol_name one = {0};
	int rc = name_at(s, at, &other, err);
	if (rc >= 0 && other && btfsites_named(s, other, &ids) < 0)
		rc = err_nomem(err, "a search");
	if (rc >= 0 && !VEC_ADD(&one.at, at))
		rc = err_nomem(err, "a symbol");
	if (rc >= 0)
		rc = other ? add_named(s, other, &ids, ret, err)
			   : add_bare(s, name, &one, ret, err);
	symbol_name_fini(&one);
	VEC_FREE(&ids.v);
	return rc;
}

static int find_symbol(struct btf_sites *s, const char *name, struct cairn_function_list *ret,
		       struct cairn_err *err)
{
	struct symbol_name symbol = {0};
	struct found found = {0};
	int rc = symbol_name_find(s->sites.bin, name, &symbol, err);
	for (size_t i = 0; i < symbol.at.n && rc >= 0; i++)
		rc = add_symbol(s, name, symbol.at.p[i], &found, err);
	if (rc >= 0)
		rc = hand_out(s, found.v.p, found.v.n, ret, err);
	ret->found = symbol.indirect ? CAIRN_FOUND_INDIRECT : CAIRN_FOUND_SYMBOL;
	symbol_name_fini(&symbol);
	VEC_FREE(&found.v);
	return rc;
}

/* ---- many functions ---- */

/* A walk over functions needs this of all of them. */
struct walk {
	struct btf_sites *s;
	struct func_ids ids;   /* by name */
	struct place_list all; /* by function */
	struct body_names bodies;
	bool with_bare; /* symbols that are no FUNC match, too */
	const struct group_filter *want;
	sites_visitor *visit;
	void *ctx;
	struct arena *keep; /* of the results; NULL: they are freed after the call */
	struct cairn_err *err;
};

static int walk_init(struct walk *w)
{
	int rc = btfsites_all_places(w->s, &w->all, w->err);
	if (rc < 0)
		return rc;
	if (w->all.v.n)
		qsort(w->all.v.p, w->all.v.n, sizeof(*w->all.v.p), by_function);
	if (btfsites_matching(w->s, w->want, &w->all, &w->ids) < 0 ||
	    btfsites_bodies(w->s->sites.bin, &w->bodies) < 0)
		return err_nomem(w->err, "functions");
	return 0;
}

static void walk_fini(struct walk *w)
{
	VEC_FREE(&w->ids.v);
	VEC_FREE(&w->all.v);
	VEC_FREE(&w->bodies.v);
}

static const char *func_name(const struct btf_sites *s, uint32_t id)
{
	struct cairn_btf_type t;
	return cairn_btf_type(s->inlined, id, &t) ? t.name : "";
}

static int hand_to_visitor(struct walk *w, const struct cairn_function *f)
{
	return f->n_sites ? w->visit(w->ctx, f) : 0;
}

static int visit_function(struct walk *w, uint32_t id, const struct cairn_vaddr *bodies,
			  size_t n_bodies, struct arena *arena)
{
	size_t n;
	struct place *p = places_of(&w->all, id, &n);
	struct cairn_function *f = arena_alloc(arena, sizeof(*f));
	int rc = f ? btfsites_function(w->s, id, p, (uint32_t)n, bodies, n_bodies, arena, f, w->err)
		   : err_nomem(w->err, "a function");
	return rc < 0 ? rc : hand_to_visitor(w, f);
}

static int visit_bare(struct walk *w, const char *name, struct cairn_vaddr at, struct arena *arena)
{
	struct cairn_function *f = arena_alloc(arena, sizeof(*f));
	if (!f || bare_function(w->s, name, at, arena, f) < 0)
		return err_nomem(w->err, "functions");
	return hand_to_visitor(w, f);
}

/* Functions of one name, [from, to) of w->ids. */
static int visit_name(struct walk *w, size_t from, size_t to, struct arena *arena)
{
	const struct body_name *named;
	const char *name = func_name(w->s, w->ids.v.p[from]);
	size_t n = btfsites_bodies_of(&w->bodies, name, &named);
	struct cairn_vaddr *bodies = arena_array(arena, n, sizeof(*bodies));
	struct func_ids ids = {{.p = w->ids.v.p + from, .n = to - from}};
	int rc = bodies ? 0 : err_nomem(w->err, "functions");
	for (size_t i = 0; i < n && !rc; i++)
		bodies[i] = named[i].at;
	for (size_t i = from; i < to && !rc; i++)
		rc = visit_function(w, w->ids.v.p[i], bodies,
				    btfsites_has_body(w->s, w->ids.v.p[i]) ? n : 0, arena);
	for (size_t i = 0; i < n && !rc && !has_a_body(w->s, &ids); i++)
		rc = visit_bare(w, name, named[i].at, arena);
	return rc;
}

static int visit_funcs(struct walk *w)
{
	struct arena own;
	int rc = 0;
	for (size_t i = 0, k; i < w->ids.v.n && !rc; i = k) {
		const char *name = func_name(w->s, w->ids.v.p[i]);
		for (k = i + 1; k < w->ids.v.n && !strcmp(func_name(w->s, w->ids.v.p[k]), name);)
			k++;
		if (!name[0])
			continue;
		arena_init(&own);
		rc = visit_name(w, i, k, w->keep ? w->keep : &own);
		arena_fini(&own);
	}
	return rc;
}

/* True for a name that a FUNC has: the walk over FUNCs has visited it. */
static bool is_visited(const struct walk *w, const char *name)
{
	size_t lo = SEARCH(0, w->ids.v.n, mid, strcmp(func_name(w->s, w->ids.v.p[mid]), name) < 0);
	return lo < w->ids.v.n && !strcmp(func_name(w->s, w->ids.v.p[lo]), name);
}

static int visit_symbols(struct walk *w)
{
	struct arena own;
	int rc = 0;
	for (size_t i = 0; i < w->bodies.v.n && !rc; i++) {
		const struct body_name *b = &w->bodies.v.p[i];
		if (!symbol_name_matches(w->want->name, b->name) || is_visited(w, b->name))
			continue;
		arena_init(&own);
		rc = visit_bare(w, b->name, b->at, w->keep ? w->keep : &own);
		arena_fini(&own);
	}
	return rc;
}

static int walk_run(struct walk *w)
{
	int rc = walk_init(w);
	if (!rc)
		rc = visit_funcs(w);
	if (!rc && w->want->is_pattern)
		rc = visit_symbols(w);
	walk_fini(w);
	return rc;
}

struct kept {
	struct found found;
	const char *pattern;
	struct cairn_err *err;
};

static int keep(void *ctx, const struct cairn_function *f)
{
	struct kept *k = ctx;
	if (k->found.v.n == CAIRN_FIND_MAX)
		return err_set(k->err, -E2BIG,
			       "%s matches more than %d functions; one query can have at most "
			       "that number",
			       k->pattern, CAIRN_FIND_MAX);
	return VEC_ADD(&k->found.v, f) ? 0 : err_nomem(k->err, "functions");
}

static int find_pattern(struct btf_sites *s, const struct group_filter *want,
			struct cairn_function_list *ret, struct cairn_err *err)
{
	struct kept kept = {.pattern = want->name, .err = err};
	struct walk w = {
		.s = s, .want = want, .visit = keep, .ctx = &kept, .keep = &s->arena, .err = err};
	int rc = walk_run(&w);
	if (rc >= 0)
		rc = hand_out(s, kept.found.v.p, kept.found.v.n, ret, err);
	ret->found = CAIRN_FOUND_PATTERN;
	VEC_FREE(&kept.found.v);
	return rc;
}

/* ---- operations ---- */

static int parse(struct btf_sites *s, const char *spec, struct group_filter *ret,
		 struct cairn_err *err)
{
	char *copy = arena_strdup(&s->arena, spec);
	if (!copy)
		return err_nomem(err, "a name");
	spec_parse(copy, ret);
	if (!ret->file)
		return 0;
	return err_set(err, -EOPNOTSUPP,
		       "%s: BTF does not record in which file a function is declared: name %s "
		       "alone",
		       s->path, ret->name);
}

/* A stripped file has functions of which nothing says where they are. */
static int say_if_lost(struct btf_sites *s, const char *name, struct cairn_err *err)
{
	struct func_ids ids = {0};
	int rc = btfsites_named(s, name, &ids);
	bool has_code = rc >= 0 && has_a_body(s, &ids);
	VEC_FREE(&ids.v);
	if (rc < 0)
		return err_nomem(err, "a search");
	if (!has_code)
		return 0;
	return err_set(err, -ENODATA,
		       "%s: %s has code, and was inlined nowhere. No symbol says where its code is",
		       cairn_binary_path(s->sites.bin), name);
}

static int find_spec(struct btf_sites *s, const char *spec, struct cairn_function_list *ret,
		     struct cairn_err *err)
{
	struct group_filter want;
	int rc = parse(s, spec, &want, err);
	*ret = (struct cairn_function_list){0};
	if (rc < 0)
		return rc;
	if (want.is_pattern)
		return find_pattern(s, &want, ret, err);
	rc = find_named(s, want.name, ret, err);
	if (!rc)
		rc = find_symbol(s, want.name, ret, err);
	return rc ? rc : say_if_lost(s, want.name, err);
}

static int find(struct cairn_sites *sites, const char *spec, struct cairn_function_list *ret,
		struct cairn_err *err)
{
	struct btf_sites *s = btf_sites_of(sites);
	const struct cairn_function_list *known = answers_find(&s->answered, spec);
	if (known) {
		*ret = *known;
		return (int)ret->n;
	}
	int rc = settle(s, find_spec(s, spec, ret, err), err);
	if (rc >= 0)
		answers_keep(&s->answered, &s->arena, spec, ret);
	return rc;
}

static int visit(struct cairn_sites *sites, const char *pattern, sites_visitor *visitor, void *ctx,
		 struct cairn_err *err)
{
	struct btf_sites *s = btf_sites_of(sites);
	struct group_filter want = {0};
	int rc = pattern ? parse(s, pattern, &want, err) : 0;
	struct walk w = {.s = s, .want = &want, .visit = visitor, .ctx = ctx, .err = err};
	if (rc >= 0)
		rc = walk_run(&w);
	return rc > 0 ? rc : settle(s, rc, err);
}

static int offer_symbol(void *to, const char *name, struct cairn_vaddr at, uint64_t size,
			enum symbol_origin origin)
{
	suggest_symbol(to, name);
	return 0;
}

static int suggest(struct cairn_sites *sites, const char *spec, const char **ret, size_t max,
		   struct cairn_err *err)
{
	struct btf_sites *s = btf_sites_of(sites);
	struct suggestions to = {.near.max = max < NEAR_MAX ? max : NEAR_MAX};
	struct group_filter want;
	struct cairn_btf_type t;
	int rc = parse(s, spec, &want, err);
	if (rc < 0)
		return rc;
	to.wanted = spec_base_name(want.name);
	to.is_scoped = to.wanted != want.name;
	for (uint32_t id = cairn_btf_start_id(s->main); cairn_btf_type(s->inlined, id, &t); id++)
		if (t.kind == CAIRN_BTF_FUNC && t.name[0])
			suggest_offer(&to, spec_base_name(t.name));
	symbol_names_visit(s->sites.bin, offer_symbol, &to);
	memcpy(ret, to.near.names, to.near.n * sizeof(*ret));
	return settle(s, (int)to.near.n, err);
}

static bool imports(const struct cairn_sites *sites, const char *name)
{
	return cairn_binary_imports(sites->bin, name);
}

static int at(struct cairn_sites *sites, struct cairn_vaddr pc, bool is_exact,
	      const struct cairn_scope **ret, struct cairn_err *err)
{
	return err_set(err, -EOPNOTSUPP,
		       "%s: BTF has sites only, and nothing of the middle of functions",
		       btf_sites_of(sites)->path);
}

static int passed(struct cairn_sites *sites, struct cairn_vaddr callee,
		  struct cairn_vaddr caller_pc, const struct cairn_loc_step *asked,
		  struct cairn_location *ret, struct cairn_err *err)
{
	*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_ENTRY_VALUE};
	return 0;
}

static const struct sites_ops ops = {
	.close = close_sites,
	.missing = missing,
	.complete_type = complete_type,
	.find = find,
	.visit = visit,
	.suggest = suggest,
	.imports = imports,
	.at = at,
	.passed = passed,
	.symbol = btfsites_symbol,
};

const char *cairn_btf_sites_path(const struct cairn_sites *sites)
{
	return sites->ops == &ops ? ((const struct btf_sites *)sites)->path : NULL;
}

/* ---- sites at an address ---- */

static int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->func > y->func) - (x->func < y->func);
}

static int sort_places(struct btf_sites *s, struct cairn_err *err)
{
	if (s->by_address.v.n)
		return 0;
	int rc = btfsites_all_places(s, &s->by_address, err);
	if (rc < 0)
		s->by_address.v.n = 0;
	if (s->by_address.v.n)
		qsort(s->by_address.v.p, s->by_address.v.n, sizeof(struct place), by_address);
	return rc;
}

static int name_of_site(const struct btf_sites *s, uint32_t func, const char **ret,
			struct cairn_err *err)
{
	struct cairn_btf_type t;
	if (!cairn_btf_type(s->inlined, func, &t) || t.kind != CAIRN_BTF_FUNC || !t.name[0])
		return err_set(err, -EBADMSG,
			       "%s: a site's function is no FUNC with a name (id %" PRIu32 ")",
			       s->path, func);
	*ret = t.name;
	return 0;
}

static int names_at(const struct btf_sites *s, uint64_t at, const char **ret, size_t max,
		    struct cairn_err *err)
{
	const struct place *p = s->by_address.v.p;
	size_t n = s->by_address.v.n, n_found = 0;
	int rc = 0;
	for (size_t i = SEARCH(0, n, mid, p[mid].at < at);
	     i < n && p[i].at == at && n_found < max && rc >= 0; i++)
		if (!n_found || p[i].func != p[i - 1].func)
			rc = name_of_site(s, p[i].func, &ret[n_found++], err);
	return rc < 0 ? rc : (int)n_found;
}

int cairn_btf_sites_at(struct cairn_sites *sites, struct cairn_vaddr at_address, const char **ret,
		       size_t max, struct cairn_err *err)
{
	struct btf_sites *s = btf_sites_of(sites);
	if (!cairn_btf_sites_path(sites))
		return err_set(err, -EINVAL, "these sites are not from BTF");
	int rc = sort_places(s, err);
	return settle(s, rc < 0 ? rc : names_at(s, at_address.v, ret, max, err), err);
}
