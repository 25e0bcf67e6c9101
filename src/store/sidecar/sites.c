/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sites from a sidecar
 *
 * A name leads to the numbers of functions that end in it. The other parts that the user typed (a
 * file, a line, namespaces) are compared with the begin of each record. Then the record is read
 * (sites_read.c), and its contents live until close.
 */
#include <cairn/sidecar.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/search.h"
#include "sidecar/reduced.h"
#include "sidecar/sites_read.h"
#include "sidecar/symbol_table.h"
#include "sites/answers.h"
#include "sites/provider.h"
#include "sites/spec.h"
#include "sites/suggest.h"
#include "sites/symbol_names.h"

struct sidecar_sites {
	struct cairn_sites sites; /* first */
	const struct cairn_sidecar *sidecar;
	struct sidecar_types types;
	struct arena arena; /* the returned results */
	struct answers answered;
	struct reduced *reduced; /* opened by the first question about the middle of a function */
};

static struct sidecar_sites *own(struct cairn_sites *sites)
{
	return (struct sidecar_sites *)sites;
}

/* True if function @number is one of the requested ones. */
static bool is_wanted(const struct sidecar_sites *s, uint32_t number,
		      const struct group_filter *want)
{
	struct cairn_function f;
	if (!sites_read_name(s->sidecar, number, &f))
		return false;
	struct group g = {.name = f.name,
			  .linkage_name = f.linkage_name,
			  .file = f.decl_file,
			  .line = f.decl_line};
	return group_passes(want, &g);
}

/* Functions known only by a symbol, at code that is the described code. */
static int read_bare(const struct cairn_sidecar *p, const struct sidecar_symbol_name *symbol,
		     struct arena *arena, struct cairn_function *ret, struct cairn_err *err)
{
	int rc = bare_function(p, symbol, arena, ret);
	if (rc < 0)
		return err_nomem(err, "a function");
	cairn_sidecar_covers(p, ret->sites->at);
	return cairn_sidecar_trouble(p, err);
}

/* An answer counts only if no damage was found on the way. */
static int settle(const struct sidecar_sites *s, int rc, struct cairn_err *err)
{
	int trouble = rc == -ENOMEM ? 0 : cairn_sidecar_trouble(s->sidecar, err);
	return trouble < 0 ? trouble : rc;
}

/* ---- operations ---- */

/* Hand out @n functions. */
static int hand_out(struct sidecar_sites *s, const struct cairn_function *const *found, size_t n,
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

/* Adds the functions among [@from, @to) of @numbers that are wanted. */
static int find_among(struct sidecar_sites *s, const struct table *numbers, uint32_t from,
		      uint32_t to, const struct group_filter *want, struct cairn_function_list *ret,
		      struct cairn_err *err)
{
	VEC(const struct cairn_function *) found = {0};
	int rc = 0;
	for (uint32_t i = from; i < to && rc >= 0; i++) {
		uint32_t number = table_get(numbers, i, 0);
		if (number >= s->sidecar->sites.n || !is_wanted(s, number, want))
			continue;
		struct cairn_function *f = arena_alloc(&s->arena, sizeof(*f));
		rc = f ? sites_read_function(&s->types, &s->arena, number, f, err)
		       : err_nomem(err, "a function");
		if (rc >= 0 && (f->n_sites || f->n_without_code) && !VEC_ADD(&found, f))
			rc = err_nomem(err, "functions");
	}
	if (rc >= 0)
		rc = hand_out(s, found.p, found.n, ret, err);
	VEC_FREE(&found);
	return rc;
}

/* ---- patterns ---- */

/* The matches of a pattern, among the names of functions and the names of their symbols. */
struct matches {
	bool *functions;                              /* by number */
	VEC(const struct sidecar_symbol_name *) bare; /* by address, each once */
};

static int by_address(const void *a, const void *b)
{
	const struct sidecar_symbol_name *x = *(const struct sidecar_symbol_name *const *)a,
					 *y = *(const struct sidecar_symbol_name *const *)b;
	return x->at < y->at ? -1 : x->at > y->at;
}

static bool is_matched_symbol(const struct cairn_sidecar *p, const struct sidecar_symbol_name *s,
			      const char *pattern)
{
	const char *name = sidecar_string(p, s->name);
	bool nowhere =
		s->what & SYMBOL_IMPORTED || (s->what & SYMBOL_BARE && s->at == SYMBOL_NOWHERE);
	return name && !nowhere && symbol_name_matches(pattern, name);
}

static int match_symbols(struct sidecar_sites *s, const char *pattern, struct matches *m)
{
	const struct cairn_sidecar *p = s->sidecar;
	size_t n = 0;
	for (uint32_t i = 0; i < p->n_symbol_names; i++) {
		const struct sidecar_symbol_name *symbol = sidecar_symbol(p, i);
		uint32_t number = symbol->what & SYMBOL_FUNCTION_MASK;
		if (!is_matched_symbol(p, symbol, pattern))
			continue;
		if (!(symbol->what & SYMBOL_BARE) && number < p->sites.n)
			m->functions[number] = true;
		if (symbol->what & SYMBOL_BARE && !(symbol->what & SYMBOL_PART) &&
		    !VEC_ADD(&m->bare, symbol))
			return -ENOMEM;
	}
	if (m->bare.n)
		qsort(m->bare.p, m->bare.n, sizeof(*m->bare.p), by_address);
	for (size_t i = 0; i < m->bare.n; i++)
		if (!n || m->bare.p[n - 1]->at != m->bare.p[i]->at)
			m->bare.p[n++] = m->bare.p[i];
	m->bare.n = n;
	return 0;
}

/* Frees in both cases: matches_fini(). */
static int match(struct sidecar_sites *s, const struct group_filter *want, struct matches *ret,
		 struct cairn_err *err)
{
	*ret = (struct matches){.functions =
					calloc(s->sidecar->sites.n + 1, sizeof(*ret->functions))};
	if (!ret->functions)
		return err_nomem(err, "functions");
	for (uint32_t i = 0; i < s->sidecar->sites.n; i++)
		ret->functions[i] = is_wanted(s, i, want);
	bool symbols = want->is_pattern && !want->file;
	return symbols && match_symbols(s, want->name, ret) < 0 ? err_nomem(err, "symbols") : 0;
}

static void matches_fini(struct matches *m)
{
	free(m->functions);
	VEC_FREE(&m->bare);
}

/*
 * @visitor gets each match. Its data is in @arena, or, if @arena is NULL, is freed after the call.
 */
static int visit_matches(struct sidecar_sites *s, const struct matches *m, struct arena *arena,
			 sites_visitor *visitor, void *ctx, struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < s->sidecar->sites.n + m->bare.n && !rc; i++) {
		bool bare = i >= s->sidecar->sites.n;
		struct arena own;
		if (!bare && !m->functions[i])
			continue;
		arena_init(&own);
		struct arena *a = arena ? arena : &own;
		struct cairn_function *f = arena_alloc(a, sizeof(*f));
		if (!f)
			rc = err_nomem(err, "a function");
		else if (bare)
			rc = read_bare(s->sidecar, m->bare.p[i - s->sidecar->sites.n], a, f, err);
		else
			rc = sites_read_function(&s->types, a, (uint32_t)i, f, err);
		if (!rc)
			rc = visitor(ctx, f);
		arena_fini(&own);
	}
	return rc;
}

struct found {
	VEC(const struct cairn_function *) v;
	const char *pattern;
	struct cairn_err *err;
};

static int keep(void *ctx, const struct cairn_function *f)
{
	struct found *found = ctx;
	if (!f->n_sites && !f->n_without_code)
		return 0;
	if (found->v.n == CAIRN_FIND_MAX)
		return err_set(
			found->err, -E2BIG,
			"%s matches more than %d functions; one query can have at most that number",
			found->pattern, CAIRN_FIND_MAX);
	return VEC_ADD(&found->v, f) ? 0 : err_nomem(found->err, "functions");
}

static int find_pattern(struct sidecar_sites *s, const struct group_filter *want,
			struct cairn_function_list *ret, struct cairn_err *err)
{
	struct found found = {.pattern = want->name, .err = err};
	struct matches m;
	int rc = match(s, want, &m, err);
	if (!rc)
		rc = visit_matches(s, &m, &s->arena, keep, &found, err);
	if (rc >= 0)
		rc = hand_out(s, found.v.p, found.v.n, ret, err);
	ret->found = CAIRN_FOUND_PATTERN;
	VEC_FREE(&found.v);
	matches_fini(&m);
	return rc;
}

/* ---- names of symbols ---- */

/* The meaning of a name that no function has. */
static int find_symbol(struct sidecar_sites *s, const char *name, struct cairn_function_list *ret,
		       struct cairn_err *err)
{
	struct named_symbols named = symbols_named(s->sidecar, name);
	VEC(const struct cairn_function *) found = {0};
	int rc = 0;
	for (uint32_t i = 0; i < named.n && rc >= 0; i++) {
		uint32_t what = named.p[i].what;
		bool bare = what & SYMBOL_BARE;
		ret->found = what & SYMBOL_INDIRECT ? CAIRN_FOUND_INDIRECT : CAIRN_FOUND_SYMBOL;
		if (what & SYMBOL_IMPORTED || (bare && named.p[i].at == SYMBOL_NOWHERE) ||
		    (!bare && what & SYMBOL_PART))
			continue;
		struct cairn_function *f = arena_alloc(&s->arena, sizeof(*f));
		if (!f)
			rc = -ENOMEM;
		else if (bare)
			rc = read_bare(s->sidecar, &named.p[i], &s->arena, f, err);
		else
			rc = sites_read_function(&s->types, &s->arena, what & SYMBOL_FUNCTION_MASK,
						 f, err);
		if (rc >= 0 && !VEC_ADD(&found, f))
			rc = -ENOMEM;
	}
	if (rc >= 0)
		rc = hand_out(s, found.p, found.n, ret, err);
	VEC_FREE(&found);
	return rc == -ENOMEM ? err_nomem(err, "functions") : rc;
}

static int find_spec(struct sidecar_sites *s, const char *spec, struct cairn_function_list *ret,
		     struct cairn_err *err)
{
	const struct cairn_sidecar *p = s->sidecar;
	struct group_filter want;
	char *copy = arena_strdup(&s->arena, spec);
	*ret = (struct cairn_function_list){0};
	if (!copy)
		return err_nomem(err, "a search");
	spec_parse(copy, &want);
	if (want.is_pattern)
		return find_pattern(s, &want, ret, err);
	char key[SPEC_KEY_MAX];
	uint32_t from, to;
	names_find(&p->site_names,
		   spec_key(want.name, key, sizeof(key)) ? key : spec_base_name(want.name), &from,
		   &to);
	int rc = find_among(s, &p->site_names.entries, from, to, &want, ret, err);
	return rc || want.file ? rc : find_symbol(s, want.name, ret, err);
}

static int find(struct cairn_sites *sites, const char *spec, struct cairn_function_list *ret,
		struct cairn_err *err)
{
	struct sidecar_sites *s = own(sites);
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
	struct sidecar_sites *s = own(sites);
	struct group_filter want = {0};
	char *copy = pattern ? arena_strdup(&s->arena, pattern) : NULL;
	if (pattern && !copy)
		return err_nomem(err, "a pattern");
	if (copy)
		spec_parse(copy, &want);
	struct matches m;
	int rc = match(s, &want, &m, err);
	if (!rc)
		rc = visit_matches(s, &m, NULL, visitor, ctx, err);
	matches_fini(&m);
	return rc > 0 ? rc : settle(s, rc, err);
}

static uint64_t address_at(const struct cairn_sidecar *p, uint32_t i)
{
	return (uint64_t)table_get(&p->addresses, i, ADDRESS_HIGH) << 32 |
	       table_get(&p->addresses, i, ADDRESS_LOW);
}

static bool symbol(struct cairn_sites *sites, struct cairn_vaddr at, char *name, size_t size)
{
	const struct cairn_sidecar *p = own(sites)->sidecar;
	uint32_t lo = SEARCH(0, p->addresses.n, mid, address_at(p, mid) < at.v);
	bool found = lo < p->addresses.n && address_at(p, lo) == at.v;
	const char *text =
		found ? sidecar_string(p, table_get(&p->addresses, lo, ADDRESS_NAME)) : NULL;
	if (!text)
		return false;
	snprintf(name, size, "%s", text);
	return true;
}

static size_t missing(const struct cairn_sites *sites, const char **ret)
{
	*ret = "";
	return 0;
}

static int complete_type(struct cairn_sites *sites, uint32_t id, struct cairn_err *err)
{
	return settle(own(sites), sidecar_types_complete(&own(sites)->types, id, err), err);
}

/* Among the last components of names, as the debug information has them, and names of symbols. */
static int suggest(struct cairn_sites *sites, const char *spec, const char **ret, size_t max,
		   struct cairn_err *err)
{
	struct sidecar_sites *s = own(sites);
	struct suggestions to = {.near.max = max < NEAR_MAX ? max : NEAR_MAX};
	struct group_filter want;
	char *copy = arena_strdup(&s->arena, spec);
	if (!copy)
		return err_nomem(err, "a name");
	spec_parse(copy, &want);
	to.wanted = spec_base_name(want.name);
	to.is_scoped = to.wanted != want.name;
	for (uint32_t i = 0; i < s->sidecar->sites.n && to.near.max; i++) {
		struct cairn_function f;
		if (!sites_read_name(s->sidecar, i, &f))
			continue;
		if (f.name[0])
			suggest_offer(&to, spec_base_name(f.name));
		if (f.linkage_name)
			suggest_symbol(&to, f.linkage_name);
	}
	for (uint32_t i = 0; i < s->sidecar->n_symbol_names && to.near.max; i++) {
		const char *name = sidecar_string(s->sidecar, sidecar_symbol(s->sidecar, i)->name);
		if (name)
			suggest_symbol(&to, name);
	}
	memcpy(ret, to.near.names, to.near.n * sizeof(*ret));
	return settle(s, (int)to.near.n, err);
}

static bool imports(const struct cairn_sites *sites, const char *name)
{
	struct named_symbols named =
		symbols_named(((const struct sidecar_sites *)sites)->sidecar, name);
	return named.n && named.p->what & SYMBOL_IMPORTED;
}

/* Also where it has been opened. */
static int open_reduced(struct sidecar_sites *s, struct cairn_err *err)
{
	if (s->reduced)
		return 0;
	if (!s->sites.bin)
		return err_set(
			err, -EOPNOTSUPP,
			"%s: without the binary nothing is known of the middle of its functions",
			elf_path(s->sidecar->elf));
	return reduced_open(s->sidecar, s->sites.bin, &s->types, &s->reduced, err);
}

static int at(struct cairn_sites *sites, struct cairn_vaddr pc, bool is_exact,
	      const struct cairn_scope **ret, struct cairn_err *err)
{
	struct sidecar_sites *s = own(sites);
	int rc = open_reduced(s, err);
	if (rc >= 0)
		rc = reduced_at(s->reduced, pc, is_exact, ret, err);
	return rc < 0 ? rc : settle(s, rc, err);
}

static int passed(struct cairn_sites *sites, struct cairn_vaddr callee,
		  struct cairn_vaddr caller_pc, const struct cairn_loc_step *asked,
		  struct cairn_location *ret, struct cairn_err *err)
{
	struct sidecar_sites *s = own(sites);
	*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_ENTRY_VALUE};
	return s->reduced ? reduced_passed(s->reduced, callee, caller_pc, asked, ret, err) : 0;
}

static void close_sites(struct cairn_sites *sites)
{
	struct sidecar_sites *s = own(sites);
	reduced_close(s->reduced);
	sidecar_types_fini(&s->types);
	VEC_FREE(&s->answered.v);
	arena_fini(&s->arena);
	free(s);
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
	.symbol = symbol,
};

size_t cairn_sidecar_sites_lost(const struct cairn_sites *sites)
{
	return ((const struct sidecar_sites *)sites)->types.n_lost;
}

bool cairn_sidecar_has_args(const struct cairn_sidecar *p)
{
	for (size_t i = 0; i < elf_n_sections(p->elf); i++)
		if (!strcmp(elf_section_at(p->elf, i)->name, REDUCED_SECTION))
			return cairn_sidecar_has_sites(p);
	return false;
}

bool cairn_sidecar_has_sites(const struct cairn_sidecar *p)
{
	return p->sites.n;
}

int cairn_sidecar_sites(const struct cairn_sidecar *p, const struct cairn_binary *bin,
			struct cairn_sites **ret, struct cairn_err *err)
{
	if (!cairn_sidecar_has_sites(p))
		return err_set(err, -ENODATA,
			       "%s: a sidecar without the sites of functions; make it with: cairn "
			       "sidecar FILE",
			       elf_path(p->elf));
	struct sidecar_sites *s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(err, "the sites of a binary");
	s->sidecar = p;
	arena_init(&s->arena);
	if (sidecar_types_init(&s->types, p) < 0) {
		close_sites(&s->sites);
		return err_nomem(err, "types");
	}
	s->sites = (struct cairn_sites){.ops = &ops, .bin = bin, .graph = s->types.graph};
	*ret = &s->sites;
	return 0;
}
