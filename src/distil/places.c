/* SPDX-License-Identifier: BSD-2-Clause */
#include "distil/places.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "btf/build.h"
#include "distil/loc_record.h"
#include "elf/elf.h"
#include "loc/entry_rows.h"
#include "loc/function.h"
#include "types/build.h"

#define NONE UINT32_MAX

struct finder {
	const struct cairn_binary *bin;
	const struct dwarf *dw;
	const struct func_table *funcs;
	const struct emit *e;
	struct cairn_distilled *counts;
	struct places *ret;
	struct cairn_err *err;
	VEC(uint32_t) slots; /* of the place at hand */
};

/* Where addresses count from. A kernel's per-processor variables are linked at 0, which is nowhere. */
static uint64_t lowest_address(const struct elf *e)
{
	uint64_t lowest = UINT64_MAX;
	for (size_t i = 0; i < elf_n_sections(e); i++) {
		const struct elf_section *s = elf_section_at(e, i);
		if (!(s->flags & SHF_ALLOC) || !strcmp(s->name, ".data..percpu"))
			continue;
		if (s->addr.v < lowest)
			lowest = s->addr.v;
	}
	return lowest == UINT64_MAX ? 0 : lowest;
}

/* ---- records, each once ---- */

static struct h128 param_hash(const struct cairn_btf_loc_param *p)
{
	struct h128 h = h128_start(p->flags | (uint64_t)p->size << 32);
	h = h128_mix(h, p->n_regs | (uint64_t)p->reg[0] << 32, p->reg[1]);
	return h128_mix(h, (uint64_t)p->offset, (uint64_t)p->value);
}

static int intern_param(struct places *p, const struct cairn_btf_loc_param *param, uint32_t *ret)
{
	struct h128 hash = param_hash(param);
	*ret = hash_table_find(&p->params_by_hash, hash);
	if (*ret != NONE)
		return 0;
	*ret = (uint32_t)p->params.n;
	return VEC_ADD(&p->params, *param) ? hash_table_add(&p->params_by_hash, hash, *ret) : -ENOMEM;
}

static int intern_proto(struct places *p, const uint32_t *slots, uint32_t n, uint32_t *ret)
{
	struct h128 hash = h128_start(n);
	for (uint32_t i = 0; i < n; i++)
		hash = h128_mix(hash, slots[i], i);
	*ret = hash_table_find(&p->protos_by_hash, hash);
	if (*ret != NONE)
		return 0;
	*ret = (uint32_t)p->protos.n;
	struct loc_proto proto = {.first = (uint32_t)p->slots.n, .n = n};
	for (uint32_t i = 0; i < n; i++)
		if (!VEC_ADD(&p->slots, slots[i]))
			return -ENOMEM;
	return VEC_ADD(&p->protos, proto) ? hash_table_add(&p->protos_by_hash, hash, *ret) : -ENOMEM;
}

/* ---- places ---- */

static int section_of(struct finder *f, struct cairn_vaddr at, uint32_t *ret, uint32_t *ret_offset)
{
	const char *name;
	uint64_t off;
	if (!cairn_binary_section_of(f->bin, at, &name, &off) || off > UINT32_MAX)
		return -ENOENT;
	uint64_t start = at.v - off;
	*ret_offset = (uint32_t)off;
	for (*ret = 0; *ret < f->ret->sections.n; ++*ret)
		if (f->ret->sections.p[*ret].start == start)
			return 0;
	return VEC_ADD(&f->ret->sections, ((struct place_section){.name = name, .start = start})) ? 0 : -ENOMEM;
}

static int slot_of(struct finder *f, const struct btf_func *func, const struct cairn_site *site, uint32_t i)
{
	const struct type_class *proto = &f->e->c->v.p[f->e->v->v.p[func->proto].class_];
	edge_t type = emit_edge(f->e, func->proto, proto->elems[i].edge, i + 1);
	struct loc_value value = {.bytes = emit_bytes(f->e, type),
				  .is_signed = emit_is_signed(f->e, type),
				  .base = f->ret->base};
	struct cairn_location none = {.why = CAIRN_UNAVAIL_NO_DESCRIPTION};
	const struct cairn_location *loc = i < site->n_args ? &site->args[i].loc : &none;
	struct cairn_btf_loc_param param;
	enum cairn_distil_loss loss;
	uint32_t number = NONE;
	f->counts->n_arguments++;
	if (loc_record(loc, &value, &param, &loss)) {
		f->counts->n_located++;
		if (intern_param(f->ret, &param, &number) < 0)
			return -ENOMEM;
	} else if (loss != CAIRN_N_LOSSES) {
		f->counts->losses[loss]++;
	} else if ((unsigned int)loc->why < CAIRN_N_UNAVAILABLE) {
		f->counts->unavailable[loc->why]++;
	}
	return VEC_ADD(&f->slots, number + 1) ? 0 : -ENOMEM;
}

static int add_place(struct finder *f, const struct cairn_site *site)
{
	struct dw_die abstract;
	int rc = site_abstract(f->dw, site->die, &abstract, f->err);
	if (rc < 0)
		return rc;
	struct place p = {.func = func_table_at(f->funcs, abstract.off)};
	if (p.func == NONE)
		return 0;
	rc = section_of(f, site->at, &p.section, &p.offset);
	if (rc == -ENOENT) {
		f->counts->losses[CAIRN_LOSS_PLACE]++;
		return 0;
	}
	const struct btf_func *func = &f->funcs->v.p[p.func];
	uint32_t n = f->e->c->v.p[f->e->v->v.p[func->proto].class_].n_elems;
	f->slots.n = 0;
	for (uint32_t i = 0; i < n && rc >= 0; i++)
		rc = slot_of(f, func, site, i);
	if (rc >= 0)
		rc = intern_proto(f->ret, f->slots.p, n, &p.proto);
	if (rc < 0 || !VEC_ADD(&f->ret->v, p))
		return err_nomem(f->err, "places");
	return 0;
}

static bool has_place(const struct cairn_site *s)
{
	if (s->kind == CAIRN_SITE_INLINED)
		return true;
	return s->kind == CAIRN_SITE_ENTRY && s->symbol && (strstr(s->symbol, ".isra.") || strstr(s->symbol, ".constprop."));
}

static int visit(struct finder *f, const struct cairn_function *function)
{
	for (uint32_t i = 0; i < function->n_sites; i++) {
		int rc = has_place(&function->sites[i]) ? add_place(f, &function->sites[i]) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

/*
 * Functions evaluated at a time. Their locations take some megabytes; a function of which there are many copies is
 * not cut in two.
 */
enum { BATCH = 2048 };

/* What the loc module needs to evaluate functions. */
struct evaluation {
	struct cfi *cfi;
	struct cairn_types *graph;
	struct dw_types *types;
	struct dw_func_index index;
	struct groups groups;
	struct site_env env;
};

static void evaluation_fini(struct evaluation *v)
{
	groups_fini(&v->groups);
	dw_func_index_fini(&v->index);
	dw_types_free(v->types);
	types_free(v->graph);
	cfi_close(v->cfi);
}

/* As cairn_sites_open() and _visit(), without what only people read. */
static int evaluation_init(struct evaluation *v, const struct finder *f, const struct place_opts *opts)
{
	int rc = cfi_open(f->bin, &v->cfi, f->err);
	if (rc >= 0)
		rc = (v->graph = types_new()) ? dw_types_new(f->dw, v->graph, &v->types, f->err)
					      : err_nomem(f->err, "the type graph");
	if (rc >= 0)
		rc = dwarf_index_functions(f->dw, opts->threads, &v->index, f->err);
	if (rc < 0)
		return rc;
	v->env = (struct site_env){.bin = f->bin,
				   .dw = f->dw,
				   .cfi = v->cfi,
				   .code = binary_main(f->bin),
				   .index = &v->index,
				   .assume_unmodified = opts->assume_unmodified,
				   .bare = true};
	rc = group_entries(&v->env, &(struct group_filter){0}, &v->groups, f->err);
	return rc < 0 ? rc : entry_rows_collect(&v->env, opts->threads, &v->groups, f->err);
}

static int evaluate(struct finder *f, struct evaluation *v, unsigned int threads, size_t from, size_t n)
{
	struct arena arena;
	arena_init(&arena);
	struct cairn_function *functions = arena_array(&arena, n, sizeof(*functions));
	int rc = functions ? functions_build(&v->env, threads, v->groups.v.p + from, n, v->types, &arena, functions,
					     f->err)
			   : err_nomem(f->err, "functions");
	for (size_t i = 0; i < n && rc >= 0; i++)
		rc = visit(f, &functions[i]);
	arena_fini(&arena);
	return rc;
}

int places_find(const struct cairn_binary *bin, const struct place_opts *opts, const struct dwarf *dw,
		const struct func_table *funcs, const struct emit *e, struct cairn_distilled *counts,
		struct places *ret, struct cairn_err *err)
{
	struct finder f = {.bin = bin, .dw = dw, .funcs = funcs, .e = e, .counts = counts, .ret = ret, .err = err};
	struct evaluation v = {0};
	*ret = (struct places){.base = lowest_address(binary_main(bin))};
	int rc = evaluation_init(&v, &f, opts);
	for (size_t i = 0, n = v.groups.v.n; i < n && rc >= 0; i += BATCH) {
		if (opts->progress && opts->progress(opts->ctx, CAIRN_DISTIL_PLACES, i, n))
			rc = err_set(err, -ECANCELED, "cancelled");
		else
			rc = evaluate(&f, &v, opts->threads, i, n - i < BATCH ? n - i : BATCH);
	}
	evaluation_fini(&v);
	VEC_FREE(&f.slots);
	counts->n_places = ret->v.n;
	return rc < 0 ? rc : 0;
}

/* ---- the blob ---- */

struct writer {
	struct places *p;
	struct func_table *funcs;
	struct emit *e;
	struct cairn_btf_builder *b;
	uint32_t *params, *protos; /* ids */
	uint32_t *func_protos;     /* per instance: of FUNC_PROTO in this blob */
};

static int write_func(struct writer *w, struct btf_func *func, uint32_t *n)
{
	uint32_t proto = w->e->ids[func->proto], name;
	int rc = 0;
	if (!proto && !w->func_protos[func->proto])
		rc = emit_proto(w->e, w->b, func->proto, &w->func_protos[func->proto]);
	if (rc >= 0)
		rc = cairn_btf_add_string(w->b, func->name, &name);
	if (rc >= 0)
		rc = btf_add_func(w->b, name, func->external ? CAIRN_BTF_GLOBAL : CAIRN_BTF_STATIC,
				  proto ? proto : w->func_protos[func->proto], &func->id);
	++*n;
	return rc;
}

/* Functions with a place that are not in main, in the order of the table. */
static int write_funcs(struct writer *w, uint32_t *n)
{
	bool *used = calloc(w->funcs->v.n + 1, sizeof(*used));
	int rc = used ? 0 : -ENOMEM;
	for (size_t i = 0; i < w->p->v.n && used; i++)
		used[w->p->v.p[i].func] = true;
	for (size_t i = 0; i < w->funcs->v.n && rc >= 0; i++)
		if (used[i] && !w->funcs->v.p[i].id)
			rc = write_func(w, &w->funcs->v.p[i], n);
	free(used);
	return rc;
}

static int write_locs(struct writer *w)
{
	struct places *p = w->p;
	int rc = 0;
	for (size_t i = 0; i < p->params.n && rc >= 0; i++)
		rc = btf_add_loc_param(w->b, &p->params.p[i], &w->params[i]);
	for (size_t i = 0; i < p->protos.n && rc >= 0; i++) {
		uint32_t *slots = p->slots.p + p->protos.p[i].first;
		for (uint32_t k = 0; k < p->protos.p[i].n; k++)
			slots[k] = slots[k] ? w->params[slots[k] - 1] : 0;
		rc = btf_add_loc_proto(w->b, slots, p->protos.p[i].n, &w->protos[i]);
	}
	return rc;
}

static int by_place(const void *a, const void *b)
{
	const struct cairn_btf_loc *x = a, *y = b;
	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->loc_proto < y->loc_proto ? -1 : x->loc_proto > y->loc_proto;
}

static int write_section(struct writer *w, uint32_t section, struct cairn_btf_loc *locs)
{
	struct places *p = w->p;
	uint32_t n = 0, name, id;
	for (size_t i = 0; i < p->v.n; i++) {
		const struct place *at = &p->v.p[i];
		if (at->section == section)
			locs[n++] = (struct cairn_btf_loc){.func = w->funcs->v.p[at->func].id,
							   .loc_proto = w->protos[at->proto],
							   .offset = at->offset};
	}
	qsort(locs, n, sizeof(*locs), by_place);
	int rc = cairn_btf_add_string(w->b, p->sections.p[section].name, &name);
	return rc < 0 ? rc : btf_add_locsec(w->b, name, locs, n, &id);
}

/* Sections in the order of their addresses, whichever was seen first. */
static int write_sections(struct writer *w)
{
	struct places *p = w->p;
	struct cairn_btf_loc *locs = malloc((p->v.n + 1) * sizeof(*locs));
	int rc = locs ? 0 : -ENOMEM;
	uint64_t from = 0;
	for (size_t done = 0; done < p->sections.n && rc >= 0; done++) {
		uint32_t next = NONE;
		for (uint32_t i = 0; i < p->sections.n; i++)
			if (p->sections.p[i].start >= from &&
			    (next == NONE || p->sections.p[i].start < p->sections.p[next].start))
				next = i;
		from = p->sections.p[next].start + 1;
		rc = write_section(w, next, locs);
	}
	free(locs);
	return rc;
}

int places_emit(struct places *p, const struct cairn_btf *main, struct func_table *funcs, struct emit *e,
		struct cairn_distilled *ret, struct cairn_err *err)
{
	struct cairn_btf_build_opts opts = {.size = sizeof(opts), .base = main, .dialect = CAIRN_BTF_LOC_N};
	struct writer w = {.p = p, .funcs = funcs, .e = e};
	if (!p->v.n)
		return 0;
	w.params = malloc((p->params.n + 1) * sizeof(*w.params));
	w.protos = malloc((p->protos.n + 1) * sizeof(*w.protos));
	w.func_protos = calloc(e->v->v.n + 1, sizeof(*w.func_protos));
	int rc = w.params && w.protos && w.func_protos ? 0 : -ENOMEM;
	if (rc >= 0)
		rc = cairn_btf_builder_new(&opts, &w.b, err);
	if (rc >= 0)
		rc = write_funcs(&w, &ret->n_inlined_functions);
	if (rc >= 0)
		rc = write_locs(&w);
	if (rc >= 0)
		rc = write_sections(&w);
	if (rc >= 0)
		rc = cairn_btf_finish(w.b, &ret->inlined.bytes, &ret->inlined.size, err);
	cairn_btf_builder_free(w.b);
	free(w.params);
	free(w.protos);
	free(w.func_protos);
	return rc < 0 ? err_set(err, rc, "places: more than BTF can number, or out of memory") : 0;
}

void places_fini(struct places *p)
{
	VEC_FREE(&p->v);
	VEC_FREE(&p->sections);
	VEC_FREE(&p->params);
	VEC_FREE(&p->protos);
	VEC_FREE(&p->slots);
	free(p->params_by_hash.slot);
	free(p->protos_by_hash.slot);
}
