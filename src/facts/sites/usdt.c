/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/usdt.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "elf/elf.h"
#include "elf/stapsdt.h"
#include "sites/usdt_arg.h"
#include "types/build.h"

enum { N_INT_TYPES = 8, N_FLOAT_TYPES = 2 };

struct cairn_usdt {
	const struct cairn_binary *bin;
	struct arena arena;
	VEC(struct cairn_usdt_site) sites;
	struct usdt_symbols symbols;
	struct cairn_types *types; /* NULL until a tracer asks */
	uint32_t ints[N_INT_TYPES], floats[N_FLOAT_TYPES];
};

/* ---- reading ---- */

struct reading {
	struct cairn_usdt *usdt;
	struct cairn_err *err;
};

static int add_site(void *ctx, const struct stapsdt *note)
{
	struct reading *r = ctx;
	struct cairn_usdt *u = r->usdt;
	struct cairn_usdt_site *s = VEC_PUSH(&u->sites);
	struct cairn_vaddr start;
	if (!s)
		return err_nomem(r->err, "USDT probes");
	*s = (struct cairn_usdt_site){.provider = note->provider,
				      .name = note->name,
				      .at = note->at,
				      .hazard = cairn_hazard_at(u->bin, note->at, false),
				      .has_semaphore = note->semaphore.v != 0,
				      .semaphore = note->semaphore};
	s->has_off = cairn_binary_foff(u->bin, s->at, &s->off);
	if (s->has_semaphore)
		s->has_semaphore_off = cairn_binary_foff(u->bin, s->semaphore, &s->semaphore_off);
	if (cairn_binary_symbol_of(u->bin, s->at, &s->symbol, &start))
		s->symbol_off = s->at.v - start.v;
	int n = usdt_args_parse(&u->symbols, note->args, &u->arena, &s->args, r->err);
	s->n_args = n < 0 ? 0 : (uint32_t)n;
	return n < 0 ? n : 0;
}

static int order_of(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int order_of_args(const struct cairn_usdt_site *a, const struct cairn_usdt_site *b)
{
	int order = order_of(a->n_args, b->n_args);
	for (uint32_t i = 0; i < a->n_args && !order; i++)
		order = strcmp(a->args[i].text, b->args[i].text);
	return order;
}

static int order_of_sites(const void *x, const void *y)
{
	const struct cairn_usdt_site *a = x, *b = y;
	int order = strcmp(a->provider, b->provider);
	order = order ? order : strcmp(a->name, b->name);
	order = order ? order : order_of(a->at.v, b->at.v);
	order = order ? order : order_of(a->semaphore.v, b->semaphore.v);
	return order ? order : order_of_args(a, b);
}

static void sort(struct cairn_usdt *u)
{
	size_t n = 0;
	if (u->sites.n)
		qsort(u->sites.p, u->sites.n, sizeof(*u->sites.p), order_of_sites);
	for (size_t i = 0; i < u->sites.n; i++)
		if (!n || order_of_sites(&u->sites.p[n - 1], &u->sites.p[i]))
			u->sites.p[n++] = u->sites.p[i];
	u->sites.n = n;
}

int cairn_usdt_open(const struct cairn_binary *bin, struct cairn_usdt **ret, struct cairn_err *err)
{
	struct cairn_usdt *u = calloc(1, sizeof(*u));
	struct reading r = {u, err};
	if (!u)
		return err_nomem(err, "USDT probes");
	u->bin = u->symbols.bin = bin;
	arena_init(&u->arena);
	const struct functions *functions;
	/* So that no name or hazard is lost for lack of memory. */
	int rc = binary_functions(bin, &functions, err);
	if (rc >= 0)
		rc = elf_visit_stapsdt(binary_main(bin), add_site, &r, err);
	if (rc < 0) {
		cairn_usdt_close(u);
		return rc;
	}
	sort(u);
	*ret = u;
	return 0;
}

void cairn_usdt_close(struct cairn_usdt *usdt)
{
	if (!usdt)
		return;
	types_free(usdt->types);
	usdt_symbols_fini(&usdt->symbols);
	VEC_FREE(&usdt->sites);
	arena_fini(&usdt->arena);
	free(usdt);
}

size_t cairn_usdt_sites(const struct cairn_usdt *usdt, const struct cairn_usdt_site **ret)
{
	*ret = usdt->sites.p;
	return usdt->sites.n;
}

/* ---- as functions ---- */

static bool add_type(struct cairn_types *types, struct cairn_type t, uint32_t *ret)
{
	*ret = types_reserve(types);
	if (*ret)
		types_set(types, *ret, &t);
	return *ret;
}

/* The names of <stdint.h>: the note tells no others. */
static int make_types(struct cairn_usdt *u)
{
	static const char *const ints[N_INT_TYPES] = {"uint8_t",  "int8_t",  "uint16_t", "int16_t",
						      "uint32_t", "int32_t", "uint64_t", "int64_t"};
	struct cairn_types *types = types_new();
	bool made = types;
	for (unsigned int i = 0; i < N_INT_TYPES && made; i++)
		made = add_type(types,
				(struct cairn_type){.kind = CAIRN_T_INT,
						    .name = ints[i],
						    .size = 1u << i / 2,
						    .encoding = i % 2 ? CAIRN_ENC_SIGNED
								      : CAIRN_ENC_UNSIGNED},
				&u->ints[i]);
	for (unsigned int i = 0; i < N_FLOAT_TYPES && made; i++)
		made = add_type(types,
				(struct cairn_type){.kind = CAIRN_T_FLOAT,
						    .name = i ? "double" : "float",
						    .size = i ? 8 : 4},
				&u->floats[i]);
	if (made)
		u->types = types;
	else
		types_free(types);
	return made ? 0 : -ENOMEM;
}

/* A parameter as it is at all sites: where they differ, the widest. */
struct param_kind {
	uint8_t size;
	bool is_signed, is_float, differs;
};

static struct param_kind kind_of_param(const struct cairn_usdt_site *sites, size_t n, uint32_t i)
{
	struct param_kind kind = {0};
	for (size_t k = 0; k < n; k++) {
		if (i >= sites[k].n_args || !sites[k].args[i].size)
			continue;
		const struct cairn_usdt_arg *arg = &sites[k].args[i];
		kind.differs |=
			kind.size && (kind.size != arg->size || kind.is_signed != arg->is_signed ||
				      kind.is_float != arg->is_float);
		kind.size = arg->size > kind.size ? arg->size : kind.size;
		kind.is_signed |= arg->is_signed;
		kind.is_float |= arg->is_float;
	}
	if (kind.differs)
		kind.size = 8;
	return kind;
}

static uint32_t type_of_kind(const struct cairn_usdt *u, const struct param_kind *kind)
{
	if (kind->is_float && !kind->differs && kind->size >= 4)
		return u->floats[kind->size == 8];
	return kind->size ? u->ints[2 * __builtin_ctz(kind->size) + kind->is_signed] : u->ints[6];
}

/* The value of a narrower argument as 8 bytes: the sites of a probe have arguments of one type. */
static int widen(const struct cairn_usdt_arg *arg, struct arena *arena, struct cairn_location *ret)
{
	const struct cairn_piece *from = arg->loc.pieces;
	struct cairn_piece *piece = arena_alloc(arena, sizeof(*piece));
	struct cairn_loc_step *steps = arena_array(arena, from->n_steps + 2u, sizeof(*steps));
	if (!piece || !steps)
		return -ENOMEM;
	uint32_t n = from->n_steps;
	memcpy(steps, from->steps, n * sizeof(*steps));
	if (from->kind == CAIRN_PIECE_MEMORY)
		steps[n++] = (struct cairn_loc_step){.op = CAIRN_LOC_LOAD, .size = arg->size};
	steps[n++] = (struct cairn_loc_step){.op = arg->is_signed ? CAIRN_LOC_SEXT : CAIRN_LOC_ZEXT,
					     .size = arg->size};
	*piece = (struct cairn_piece){.kind = CAIRN_PIECE_VALUE, .n_steps = n, .steps = steps};
	ret->pieces = piece;
	return 0;
}

static int arg_of(const struct cairn_usdt_site *site, uint32_t i, const struct cairn_param *param,
		  bool differs, struct arena *arena, struct cairn_arg *ret)
{
	*ret = (struct cairn_arg){
		.name = param->name, .type = param->type, .loc.why = CAIRN_UNAVAIL_NO_DESCRIPTION};
	if (i >= site->n_args)
		return 0;
	ret->loc = site->args[i].loc;
	if (!differs || ret->loc.why != CAIRN_AVAILABLE)
		return 0;
	/* A float at one site and none at another has no common type. */
	if (site->args[i].is_float)
		ret->loc.why = CAIRN_UNAVAIL_OTHER_PARAMETER;
	return widen(&site->args[i], arena, &ret->loc);
}

static int site_of(const struct cairn_usdt_site *from, const struct cairn_function *f,
		   const bool *differs, struct arena *arena, struct cairn_site *ret)
{
	struct cairn_arg *args = arena_array(arena, f->n_params + 1u, sizeof(*args));
	if (!args)
		return -ENOMEM;
	*ret = (struct cairn_site){.kind = CAIRN_SITE_PLACE,
				   .rule = CAIRN_AT_GIVEN,
				   .at = from->at,
				   .off = from->off,
				   .has_off = from->has_off,
				   .hazard = from->hazard,
				   .symbol = from->symbol,
				   .symbol_off = from->symbol_off,
				   .n_args = f->n_params,
				   .args = args,
				   .n_shared = 1};
	for (uint32_t i = 0; i < f->n_params; i++)
		if (arg_of(from, i, &f->params[i], differs[i], arena, &args[i]) < 0)
			return -ENOMEM;
	return 0;
}

static int make_params(const struct cairn_usdt *u, const struct cairn_usdt_site *sites, size_t n,
		       struct arena *arena, struct cairn_function *f, bool *differs)
{
	struct cairn_param *params = arena_array(arena, USDT_ARGS_MAX, sizeof(*params));
	if (!params)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (sites[i].n_args > f->n_params)
			f->n_params = sites[i].n_args;
	for (uint32_t i = 0; i < f->n_params; i++) {
		struct param_kind kind = kind_of_param(sites, n, i);
		differs[i] = kind.differs;
		params[i].name = arena_printf(arena, "$arg%u", i + 1);
		params[i].type = type_of_kind(u, &kind);
		if (!params[i].name)
			return -ENOMEM;
	}
	f->params = params;
	return 0;
}

static int make_function(const struct cairn_usdt *u, const struct cairn_usdt_site *from, size_t n,
			 struct arena *arena, struct usdt_function *ret)
{
	bool differs[USDT_ARGS_MAX];
	struct cairn_function *f = &ret->function;
	struct cairn_site *sites = arena_array(arena, n, sizeof(*sites));
	uint64_t *semaphores = arena_array(arena, n, sizeof(*semaphores));
	*f = (struct cairn_function){
		.name = arena_printf(arena, "%s:%s", from->provider, from->name),
		.n_sites = (uint32_t)n,
		.sites = sites};
	ret->semaphores = semaphores;
	if (!f->name || !sites || !semaphores || make_params(u, from, n, arena, f, differs) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (site_of(&from[i], f, differs, arena, &sites[i]) < 0)
			return -ENOMEM;
		if (from[i].has_semaphore)
			semaphores[i] = from[i].has_semaphore_off ? from[i].semaphore_off.v
								  : USDT_SEMAPHORE_NOWHERE;
	}
	return 0;
}

static bool is_same_probe(const struct cairn_usdt_site *a, const struct cairn_usdt_site *b)
{
	return !strcmp(a->provider, b->provider) && !strcmp(a->name, b->name);
}

/* The sites of one probe from @from on. */
static size_t n_of_probe(const struct cairn_usdt *u, size_t from)
{
	size_t n = 1;
	while (from + n < u->sites.n && is_same_probe(&u->sites.p[from], &u->sites.p[from + n]))
		n++;
	return n;
}

int usdt_functions_find(struct cairn_usdt *usdt, const char *provider, const char *name,
			struct arena *arena, struct usdt_functions *ret, struct cairn_err *err)
{
	struct usdt_function *found = arena_array(arena, usdt->sites.n + 1, sizeof(*found));
	*ret = (struct usdt_functions){.p = found};
	if (!found || (!usdt->types && make_types(usdt) < 0))
		return err_nomem(err, "USDT probes");
	for (size_t i = 0, n; i < usdt->sites.n; i += n) {
		const struct cairn_usdt_site *s = &usdt->sites.p[i];
		n = n_of_probe(usdt, i);
		if (fnmatch(provider, s->provider, 0) || fnmatch(name, s->name, 0))
			continue;
		if (make_function(usdt, s, n, arena, &found[ret->n++]) < 0)
			return err_nomem(err, "USDT probes");
	}
	return 0;
}

const struct cairn_types *usdt_types(const struct cairn_usdt *usdt)
{
	return usdt->types;
}
