/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the head of a probe to a symbol, where the debug information does not have the function
 *
 *	libcrypto.so.3:SHA512_Update	a function of the symbol table
 *	./stripped:malloc		one of another file, where this file calls it: its stub
 *	./prog:ns::Point::add		a C++ or Rust name, of which the symbol is the mangled form
 *
 * Nothing but the address is known. The arguments are what the calling convention passes in
 * registers at the entry: $arg1 to $arg6, of 8 bytes each. Inlined copies cannot be known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "elf/elf.h"
#include "elf/gopclntab.h"
#include "elf/imports.h"
#include "elf/versions.h"
#include "sites/spec.h"
#include "sites/symbol_names.h"
#include "trace/place/find_path.h"
#include "trace/trace.h"
#include "types/build.h"

/* Integers and pointers that System V passes in registers: rdi rsi rdx rcx r8 r9. */
enum { N_REGISTER_ARGS = 6 };
static const uint8_t arg_registers[N_REGISTER_ARGS] = {5, 4, 1, 2, 8, 9};

/* Symbols of one demangled name; more of them are no name that a person typed. */
enum { OVERLOADS_MAX = 64 };

/* The types that registers are cast to; the first one is that of a register itself. */
static const struct cairn_type word_types[] = {
	{.name = "unsigned long", .size = 8, .encoding = CAIRN_ENC_UNSIGNED},
	{.name = "long", .size = 8, .encoding = CAIRN_ENC_SIGNED},
	{.name = "unsigned int", .size = 4, .encoding = CAIRN_ENC_UNSIGNED},
	{.name = "int", .size = 4, .encoding = CAIRN_ENC_SIGNED},
	{.name = "unsigned short", .size = 2, .encoding = CAIRN_ENC_UNSIGNED},
	{.name = "short", .size = 2, .encoding = CAIRN_ENC_SIGNED},
	{.name = "unsigned char", .size = 1, .encoding = CAIRN_ENC_UNSIGNED_CHAR},
	{.name = "signed char", .size = 1, .encoding = CAIRN_ENC_SIGNED},
	{.name = "char", .size = 1, .encoding = CAIRN_ENC_SIGNED_CHAR},
	{.name = "bool", .size = 1, .encoding = CAIRN_ENC_BOOL},
};

int trace_words(struct cairn_trace *t, struct cairn_err *err)
{
	struct cairn_types *words = t->words ? t->words : types_new();

	for (size_t i = 0; words && !t->words && i < sizeof(word_types) / sizeof(word_types[0]);
	     i++) {
		struct cairn_type type = word_types[i];
		uint32_t id = types_reserve(words);
		type.kind = CAIRN_T_INT;
		if (id) {
			types_set(words, id, &type);
		} else {
			types_free(words);
			words = NULL;
		}
		t->word = i ? t->word : id;
	}
	t->words = words;
	return words ? 0 : err_nomem(err, "types");
}

/* ---- arguments ---- */

static bool is_of_go(const struct cairn_binary *bin, struct cairn_vaddr at)
{
	struct gopclntab go;
	struct go_function f;

	if (!gopclntab_open(binary_main(bin), &go))
		return false;
	for (uint32_t i = 0; i < go.n; i++)
		if (gopclntab_function(&go, i, &f) && f.lo <= at.v && at.v < f.hi)
			return true;
	return false;
}

static const struct cairn_param *make_params(struct cairn_trace *t)
{
	struct cairn_param *params = arena_array(&t->arena, N_REGISTER_ARGS, sizeof(*params));

	for (unsigned int i = 0; params && i < N_REGISTER_ARGS; i++) {
		params[i] = (struct cairn_param){arena_printf(&t->arena, "$arg%u", i + 1), t->word};
		if (!params[i].name)
			return NULL;
	}
	return params;
}

/* Only at an entry the registers are still the caller's. */
static enum cairn_unavailable why_no_args(const struct cairn_binary *bin,
					  const struct cairn_site *site)
{
	if (site->kind != CAIRN_SITE_OUT_OF_LINE && site->rule != CAIRN_AT_SYMBOL)
		return CAIRN_UNAVAIL_NO_DESCRIPTION;
	return is_of_go(bin, site->at) ? CAIRN_UNAVAIL_NO_CONVENTION : CAIRN_AVAILABLE;
}

static const struct cairn_arg *make_args(struct cairn_trace *t, const struct cairn_binary *bin,
					 const struct cairn_site *site,
					 const struct cairn_param *params)
{
	struct cairn_arg *args = arena_array(&t->arena, N_REGISTER_ARGS, sizeof(*args));
	struct cairn_piece *pieces = arena_array(&t->arena, N_REGISTER_ARGS, sizeof(*pieces));
	struct cairn_loc_step *steps = arena_array(&t->arena, N_REGISTER_ARGS, sizeof(*steps));
	enum cairn_unavailable why = why_no_args(bin, site);

	if (!args || !pieces || !steps)
		return NULL;
	for (unsigned int i = 0; i < N_REGISTER_ARGS; i++) {
		steps[i] = (struct cairn_loc_step){.op = CAIRN_LOC_REG, .reg = arg_registers[i]};
		pieces[i] = (struct cairn_piece){
			.kind = CAIRN_PIECE_VALUE, .n_steps = 1, .steps = &steps[i]};
		args[i] = (struct cairn_arg){.name = params[i].name, .type = params[i].type};
		args[i].loc.why = why;
		args[i].loc.pieces = &pieces[i];
		args[i].loc.n_pieces = why == CAIRN_AVAILABLE;
	}
	return args;
}

int symbol_target(struct cairn_trace *t, const struct trace_file *f,
		  const struct cairn_function *from, struct trace_target *ret,
		  struct cairn_err *err)
{
	struct cairn_function *function = arena_alloc(&t->arena, sizeof(*function));
	struct cairn_site *sites = arena_array(&t->arena, from->n_sites + 1u, sizeof(*sites));
	int e = trace_words(t, err);
	const struct cairn_param *params = e == 0 ? make_params(t) : NULL;

	if (e < 0 || !function || !sites || !params)
		return e < 0 ? e : err_nomem(err, "a probe");
	for (uint32_t i = 0; i < from->n_sites; i++) {
		sites[i] = from->sites[i];
		sites[i].args = make_args(t, f->bin, &from->sites[i], params);
		sites[i].n_args = N_REGISTER_ARGS;
		if (!sites[i].args)
			return err_nomem(err, "a probe");
	}
	*function = *from;
	function->sites = sites;
	function->params = params;
	function->n_params = N_REGISTER_ARGS;
	/* The register that integers and pointers are returned in. */
	function->return_type = t->word;
	*ret = (struct trace_target){.function = function, .types = t->words};
	return 0;
}

/* ---- finding ---- */

struct search {
	struct cairn_trace *t;
	const struct trace_file *file;
	const char *name;
	VEC(struct cairn_vaddr) at;
	VEC(const char *) symbols; /* of demangled names, parallel to at */
	struct cairn_err *err;
};

static int take(struct search *s, struct cairn_vaddr at, const char *symbol)
{
	for (size_t i = 0; i < s->at.n; i++)
		if (s->at.p[i].v == at.v)
			return 0;
	if (s->at.n == OVERLOADS_MAX)
		return 0;
	return VEC_ADD(&s->at, at) && VEC_ADD(&s->symbols, symbol) ? 0
								   : err_nomem(s->err, "symbols");
}

static int take_stub(void *ctx, const char *name, struct cairn_vaddr at)
{
	struct search *s = ctx;

	return strcmp(name, s->name) ? 0 : take(s, at, name);
}

/* All of a qualified name, or its end: "Point::add" for "ns::Point::add". */
static bool is_end_of(const char *tail, const char *name)
{
	size_t n = strlen(name), k = strlen(tail);

	return k <= n && !strcmp(name + n - k, tail) &&
	       (k == n || (n - k >= 2 && name[n - k - 1] == ':'));
}

/* A name that a compiler mangled begins so. */
static bool is_mangled(const char *symbol)
{
	return symbol[0] == '_' && (symbol[1] == 'Z' || symbol[1] == 'R');
}

static int take_demangled(void *ctx, const char *symbol, struct cairn_vaddr at, uint64_t size,
			  enum symbol_origin origin)
{
	struct search *s = ctx;
	char shown[SPEC_KEY_MAX];

	if (origin != SYMBOL_OF_CODE || !is_mangled(symbol) || strstr(symbol, ".cold"))
		return 0;
	size_t n = s->t->opts.show_name(symbol, NULL, shown, sizeof(shown));
	return n < sizeof(shown) && is_end_of(s->name, shown) ? take(s, at, symbol) : 0;
}

/* Returns the number found, or an error. */
static int find_demangled(struct search *s)
{
	int e = s->t->opts.show_name ? symbol_names_visit(s->file->bin, take_demangled, s) : 0;

	return e < 0 ? e : (int)s->at.n;
}

static int find_stubs(struct search *s)
{
	int e = elf_visit_stubs(binary_main(s->file->bin), take_stub, s, s->err);

	return e < 0 ? e : (int)s->at.n;
}

static void end_search(struct search *s)
{
	VEC_FREE(&s->at);
	VEC_FREE(&s->symbols);
}

/* ---- targets ---- */

static int make_targets(struct cairn_trace *t, const struct trace_file *f, const char *name,
			const struct cairn_vaddr *at, size_t n, struct trace_targets *ret,
			struct cairn_err *err)
{
	struct trace_target *targets = arena_array(&t->arena, n, sizeof(*targets));
	struct cairn_function function;

	if (!targets)
		return err_nomem(err, "probes");
	for (size_t i = 0; i < n; i++) {
		if (symbol_function(f->bin, name, at[i], &t->arena, &function) < 0)
			return err_nomem(err, "a probe");
		int e = symbol_target(t, f, &function, &targets[i], err);
		if (e < 0)
			return e;
		targets[i].is_symbol = true;
	}
	ret->p = targets;
	ret->n = n;
	return 1;
}

/* A stub has no symbol; objdump's name for it is NAME@plt. */
static int name_stubs(struct cairn_trace *t, const char *name, struct trace_targets *ret,
		      struct cairn_err *err)
{
	const char *symbol = arena_printf(&t->arena, "%s@plt", name);

	if (!symbol)
		return err_nomem(err, "a probe");
	for (size_t i = 0; i < ret->n; i++) {
		struct trace_target *target = (struct trace_target *)&ret->p[i];
		struct cairn_function *function = (struct cairn_function *)target->function;
		struct cairn_site *site = (struct cairn_site *)function->sites;

		target->is_import = true;
		function->name = name;
		site->kind = CAIRN_SITE_PLACE;
		site->symbol = symbol;
		site->symbol_off = 0;
	}
	return 1;
}

static int ambiguous(const struct search *s, struct cairn_err *err)
{
	char list[1000] = "";
	size_t at = 0;

	for (size_t i = 0; i < s->symbols.n && at < sizeof(list); i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s  %s", i ? "\n" : "",
				       s->symbols.p[i]);
	return err_lines(err, -ENOTUNIQ, list,
			 "%s has %zu functions %s; choose one by its symbol:", s->file->shown,
			 s->at.n, s->name);
}

/* Several functions of one name, of several units: nothing tells them apart but their address. */
static int ambiguous_symbol(const struct trace_file *f, const char *name, size_t n,
			    struct cairn_err *err)
{
	return err_set(err, -ENOTUNIQ,
		       "%s has %zu functions with the symbol %s; as a pattern, '[%c]%s', it "
		       "stands for all of them",
		       f->shown, n, name, name[0], name + 1);
}

static int take_version(void *ctx, struct cairn_vaddr at)
{
	*(struct cairn_vaddr *)ctx = at;
	return 0;
}

/* Of several versions the one that the linker takes; false: it is none of them. */
static bool has_default(const struct trace_file *f, const char *name,
			const struct symbol_name *found, struct cairn_vaddr *ret)
{
	*ret = (struct cairn_vaddr){0};
	return elf_visit_version(binary_main(f->bin), name, NULL, take_version, ret, NULL) == 0 &&
	       ret->v && symbol_name_has(found, *ret);
}

static int by_symbol(struct cairn_trace *t, const struct trace_file *f, const char *name,
		     struct trace_targets *ret, struct cairn_err *err)
{
	bool is_pattern = cairn_sites_is_pattern(name);
	struct cairn_vaddr version;
	struct symbol_name found;
	int e = is_pattern ? symbol_names_match(f->bin, name, &found, err)
			   : symbol_name_find(f->bin, name, &found, err);

	if (e < 0)
		return e;
	ret->found = is_pattern ? CAIRN_FOUND_PATTERN : CAIRN_FOUND_NAME;
	if (found.indirect)
		ret->found = CAIRN_FOUND_INDIRECT;
	e = 0;
	if (found.at.n > 1 && ret->found == CAIRN_FOUND_NAME &&
	    has_default(f, name, &found, &version))
		e = make_targets(t, f, name, &version, 1, ret, err);
	else if (found.at.n > 1 && ret->found == CAIRN_FOUND_NAME)
		e = ambiguous_symbol(f, name, found.at.n, err);
	else if (found.at.n)
		e = make_targets(t, f, name, found.at.p, found.at.n, ret, err);
	symbol_name_fini(&found);
	return e;
}

static int stub_targets(struct search *s, int n, struct trace_targets *ret, struct cairn_err *err)
{
	/* A file may have two stubs of a function whose address it takes, too. */
	int e = make_targets(s->t, s->file, s->name, s->at.p, s->at.n, ret, err);

	ret->found = n > 1 ? CAIRN_FOUND_INDIRECT : CAIRN_FOUND_NAME;
	return e < 0 ? e : name_stubs(s->t, s->name, ret, err);
}

static int by_other_names(struct search *s, struct trace_targets *ret, struct cairn_err *err)
{
	int n = find_stubs(s);

	ret->found = CAIRN_FOUND_NAME;
	if (n > 0)
		return stub_targets(s, n, ret, err);
	if (n == 0)
		n = find_demangled(s);
	if (n > 1)
		return ambiguous(s, err);
	return n <= 0 ? n : make_targets(s->t, s->file, s->symbols.p[0], s->at.p, 1, ret, err);
}

/* ---- what may be meant ---- */

enum { NEAR_SHOWN = 4 };

static void offer(struct near_names *near, const char *wanted, const char *name)
{
	unsigned int rank = is_mangled(name) ? NEAR_NOT : near_rank(wanted, name);

	if (rank && rank != NEAR_NOT)
		near_offer(near, name, rank);
}

struct offers {
	const char *wanted;
	struct near_names near;
};

static int offer_symbol(void *ctx, const char *name, struct cairn_vaddr at, uint64_t size,
			enum symbol_origin origin)
{
	struct offers *o = ctx;

	if (origin != SYMBOL_OF_ELSEWHERE)
		offer(&o->near, o->wanted, name);
	return 0;
}

static int offer_stub(void *ctx, const char *name, struct cairn_vaddr at)
{
	struct offers *o = ctx;

	offer(&o->near, o->wanted, name);
	return 0;
}

/* " (perhaps you mean: zmalloc, zcalloc)", or "". */
static void near_symbols(const struct trace_file *f, const char *spec, char *buf, size_t size)
{
	struct offers o = {.wanted = spec, .near = {.max = NEAR_SHOWN}};
	size_t at = 0;

	*buf = 0;
	symbol_names_visit(f->bin, offer_symbol, &o);
	elf_visit_stubs(binary_main(f->bin), offer_stub, &o, NULL);
	for (size_t i = 0; i < o.near.n && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%s",
				       i ? ", " : " (perhaps you mean: ", o.near.names[i]);
	if (o.near.n && at < size)
		snprintf(buf + at, size - at, ")");
}

int no_symbol(const struct trace_file *f, const char *spec, int code, struct cairn_err *err)
{
	struct cairn_err before = {0};
	char near[600];

	int e = library_without_so(spec, err);
	if (e < 0)
		return e;
	if (elf_imports(binary_main(f->bin), spec))
		return err_set(err, -ENXIO,
			       "%s is in a shared library, and %s calls it without a stub: write "
			       "LIBRARY:%s, as in libc.so.6:%s",
			       spec, f->shown, spec, spec);
	if (code != -ENODATA || !err)
		return code;
	before = *err;
	near_symbols(f, spec, near, sizeof(near));
	return err_lines(err, code, before.msg,
			 "%s has no symbol %s%s, and no debug information:", f->shown, spec, near);
}

/* "malloc@plt": the stub alone, also where the file has a function of that name. */
static int by_stub(struct search *s, struct trace_targets *ret, struct cairn_err *err)
{
	s->name = arena_strndup(&s->t->arena, s->name, strlen(s->name) - strlen("@plt"));
	if (!s->name)
		return err_nomem(err, "a probe");
	int n = find_stubs(s);
	return n <= 0 ? n : stub_targets(s, n, ret, err);
}

static bool is_stub_name(const char *name)
{
	size_t n = strlen(name);

	return n > strlen("@plt") && !strcmp(name + n - strlen("@plt"), "@plt");
}

int resolve_symbol(struct cairn_trace *t, const struct trace_file *f, const char *spec,
		   struct trace_targets *ret, struct cairn_err *err)
{
	struct search s = {.t = t, .file = f, .name = spec, .err = err};

	/* No symbol says which file it is of. */
	if (spec_colon(spec, spec + strlen(spec)))
		return 0;
	int e = is_stub_name(spec) ? by_stub(&s, ret, err) : by_symbol(t, f, spec, ret, err);
	if (e == 0 && !is_stub_name(spec) && !cairn_sites_is_pattern(spec))
		e = by_other_names(&s, ret, err);
	end_search(&s);
	return e;
}
