/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finding the sites
 *
 * Workers evaluate units in any order, and each worker numbers the records that it needs. Then the
 * sites are sorted by function, address and DIE. Records are numbered as this order meets them, so
 * that the blob does not depend on which worker found which site.
 */
#include "btfgen/sites.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/keyed.h"
#include "base/large_vec.h"
#include "base/pool.h"
#include "btfgen/loc_record.h"
#include "elf/elf.h"
#include "sites/copies.h"
#include "sites/entry_rows.h"
#include "sites/icf.h"
#include "sites/own_symbol.h"

#define NONE UINT32_MAX

enum { REG_COUNT = 16, WORD = 8 };

/* A site as a worker found it. */
struct found {
	uint64_t at;
	dw_off die;
	uint32_t seq; /* among the worker's: sites of one DIE are in their order */
	uint32_t worker;
	uint32_t group;
	uint32_t func;   /* func_table.v */
	uint32_t proto;  /* the worker's */
	uint32_t offset; /* in its section */
};

/*
 * The parameters of a function, in worker.values: the facts that follow from their types take many
 * steps to find out.
 */
struct signature {
	uint32_t first, n;
	bool is_known;
};

struct worker {
	VEC(struct found) found;
	struct sites records; /* params, protos and slots only */
	VEC(uint32_t) slots;  /* of the site at hand */
	/*
	 * Numbers + 1 of the records that most sites need: params of a value in a register, by
	 * bytes; protos of one slot, by that.
	 */
	uint32_t in_register[REG_COUNT][WORD + 1];
	VEC(uint32_t) of_slot;
	struct cairn_btfgen counts;
	/*
	 * The last function found, and its number: the sites of one function are consecutive in a
	 * unit.
	 */
	dw_off abstract;
	uint32_t func, near;
	const struct signature *signature; /* its parameters */
	struct signature *signatures; /* per function of func_table.v, of those that were met */
	VEC(struct loc_value) values;
};

struct finder {
	const struct cairn_binary *bin;
	const struct dwarf *dw;
	const struct site_opts *opts;
	const struct func_table *funcs;
	const struct emit *e;
	uint64_t base;
	struct worker *workers;
	unsigned int n_workers;
	size_t n_groups;
	struct sites *ret;
};

/*
 * The base of the arguments' addresses. A relocatable file has none: its sections are placed one by
 * one.
 */
static uint64_t base_address(const struct cairn_binary *bin)
{
	return cairn_binary_is_relocatable(bin) ? UINT64_MAX : elf_lowest_address(binary_main(bin));
}

/* ---- records, each once ---- */

static struct h128 param_hash(const struct cairn_btf_loc_param *p)
{
	struct h128 h = h128_start(p->flags | (uint64_t)p->size << 32);
	h = h128_mix(h, p->n_regs | (uint64_t)p->reg[0] << 32, p->reg[1]);
	return h128_mix(h, (uint64_t)p->offset, (uint64_t)p->value);
}

static int intern_param(struct sites *p, const struct cairn_btf_loc_param *param, uint32_t *ret)
{
	struct h128 hash = param_hash(param);
	*ret = hash_table_find(&p->params_by_hash, hash);
	if (*ret != NONE)
		return 0;
	*ret = (uint32_t)p->params.n;
	return VEC_ADD(&p->params, *param) ? hash_table_add(&p->params_by_hash, hash, *ret)
					   : -ENOMEM;
}

static int intern_proto(struct sites *p, const uint32_t *slots, uint32_t n, uint32_t *ret)
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
	return VEC_ADD(&p->protos, proto) ? hash_table_add(&p->protos_by_hash, hash, *ret)
					  : -ENOMEM;
}

/* ---- a site ---- */

static int learn_signature(const struct finder *f, struct worker *w, uint32_t func,
			   struct signature *ret)
{
	uint32_t instance = f->funcs->v.p[func].proto;
	const struct type_class *proto = &f->e->c->v.p[f->e->v->v.p[instance].class_];
	*ret = (struct signature){
		.first = (uint32_t)w->values.n, .n = proto->n_elems, .is_known = true};
	for (uint32_t k = 0; k < proto->n_elems; k++) {
		edge_t type = emit_edge(f->e, instance, proto->elems[k].edge, k + 1);
		struct loc_value value = {.bytes = emit_bytes(f->e, type),
					  .is_signed = emit_is_signed(f->e, type),
					  .base = f->base};
		if (!VEC_ADD(&w->values, value))
			return -ENOMEM;
	}
	return 0;
}

/* Go to the function of an abstract DIE. */
static int enter_function(const struct finder *f, struct worker *w, dw_off abstract)
{
	w->abstract = abstract;
	w->func = func_table_at(f->funcs, abstract, &w->near);
	if (w->func == NONE)
		return 0;
	struct signature *s = &w->signatures[w->func];
	w->signature = s;
	return s->is_known ? 0 : learn_signature(f, w, w->func, s);
}

/*
 * The slot that remembers the number of its record; NULL unless the whole value is in a register.
 */
static uint32_t *register_record(struct worker *w, const struct cairn_location *loc, uint64_t bytes)
{
	const struct cairn_piece *p = loc->pieces;
	if (loc->why != CAIRN_AVAILABLE || loc->n_pieces != 1 || p->kind != CAIRN_PIECE_VALUE ||
	    p->off || p->size || bytes > WORD)
		return NULL;
	bool is_register =
		p->n_steps == 1 && p->steps->op == CAIRN_LOC_REG && p->steps->reg < REG_COUNT;
	return is_register ? &w->in_register[p->steps->reg][bytes] : NULL;
}

/* The slot of a location that is not remembered. */
static int new_slot(struct worker *w, const struct cairn_location *loc,
		    const struct loc_value *value, uint32_t *ret)
{
	struct cairn_btf_loc_param param;
	enum cairn_btfgen_loss loss;
	uint32_t number = NONE;
	if (loc_record(loc, value, &param, &loss)) {
		w->counts.n_located++;
		if (intern_param(&w->records, &param, &number) < 0)
			return -ENOMEM;
	} else if (loss != CAIRN_N_LOSSES) {
		w->counts.losses[loss]++;
	} else if ((unsigned int)loc->why < CAIRN_N_UNAVAILABLE) {
		w->counts.unavailable[loc->why]++;
	}
	*ret = number + 1;
	return 0;
}

static int add_slot(struct worker *w, const struct cairn_site *site, uint32_t i)
{
	struct cairn_location none = {.why = CAIRN_UNAVAIL_NO_DESCRIPTION};
	const struct cairn_location *loc = i < site->n_args ? &site->args[i].loc : &none;
	const struct loc_value *value = &w->values.p[w->signature->first + i];
	uint32_t *known = register_record(w, loc, value->bytes), slot = known ? *known : 0;
	w->counts.n_arguments++;
	if (slot)
		w->counts.n_located++;
	else if (new_slot(w, loc, value, &slot) < 0)
		return -ENOMEM;
	if (known)
		*known = slot;
	return VEC_ADD(&w->slots, slot) ? 0 : -ENOMEM;
}

/* The proto of the slots at hand. */
static int proto_of_slots(struct worker *w, uint32_t *ret)
{
	uint32_t slot = w->slots.n == 1 ? w->slots.p[0] : NONE;
	if (slot == NONE)
		return intern_proto(&w->records, w->slots.p, (uint32_t)w->slots.n, ret);
	while (w->of_slot.n <= slot)
		if (!VEC_ADD(&w->of_slot, 0))
			return -ENOMEM;
	*ret = w->of_slot.p[slot] - 1;
	if (*ret != NONE)
		return 0;
	int rc = intern_proto(&w->records, &slot, 1, ret);
	w->of_slot.p[slot] = *ret + 1;
	return rc;
}

static int add_site(const struct finder *f, struct worker *w, struct found *found,
		    const struct cairn_site *site)
{
	const char *section;
	uint64_t off;
	if (!cairn_binary_section_of(f->bin, site->at, &section, &off) || off > UINT32_MAX) {
		w->counts.losses[CAIRN_LOSS_SITE]++;
		return 0;
	}
	int rc = 0;
	w->slots.n = 0;
	for (uint32_t i = 0; i < w->signature->n && rc >= 0; i++)
		rc = add_slot(w, site, i);
	if (rc >= 0)
		rc = proto_of_slots(w, &found->proto);
	found->at = site->at.v;
	found->die = site->die;
	found->seq = (uint32_t)w->found.n;
	found->offset = (uint32_t)off;
	return rc >= 0 && LARGE_ADD(&w->found, *found) ? 0 : -ENOMEM;
}

static bool has_site(const struct finder *f, const struct cairn_site *s)
{
	if (s->kind == CAIRN_SITE_INLINED)
		return true;
	if (s->kind != CAIRN_SITE_OUT_OF_LINE || !s->symbol)
		return false;
	const char *own = own_symbol(f->dw, s->at, s->die), *symbol = own ? own : s->symbol;
	return symbol_has(symbol, ".isra.") || symbol_has(symbol, ".constprop.");
}

static int see_site(void *arg, unsigned int worker, uint32_t group, dw_off abstract,
		    const struct cairn_site *site, struct cairn_err *err)
{
	const struct finder *f = arg;
	struct worker *w = &f->workers[worker];
	if (!has_site(f, site))
		return 0;
	if (abstract != w->abstract && enter_function(f, w, abstract) < 0)
		return err_nomem(err, "sites");
	if (w->func == NONE)
		return 0;
	struct found found = {.worker = worker, .group = group, .func = w->func};
	return add_site(f, w, &found, site) < 0 ? err_nomem(err, "sites") : 0;
}

static int see_progress(void *arg, size_t done, size_t total, struct cairn_err *err)
{
	const struct site_opts *o = ((const struct finder *)arg)->opts;
	if (!o->progress || !o->progress(o->ctx, CAIRN_BTFGEN_SITES, done, total))
		return 0;
	return err_set(err, -ECANCELED, "cancelled");
}

/* ---- in order ---- */

/* All sites by group: those of group g are [first[g], first[g + 1]). */
struct order {
	struct found *p;
	size_t n;
	size_t *first;
	size_t n_groups;
};

static int by_address(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->die != y->die)
		return x->die < y->die ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Groups that a worker takes at once. */
enum { CHUNK = 256 };

/* Scratch of one worker. */
struct sorting {
	VEC(struct keyed) turns;
	VEC(struct found) found;
};

/*
 * Put them in the order of addresses, those at one address as they were. Returns 1, or 0 when they
 * are too far apart; -ENOMEM.
 */
static int sort_by_distance(struct found *p, size_t n, struct sorting *s)
{
	uint64_t lowest = UINT64_MAX, highest = 0;
	for (size_t i = 0; i < n; i++) {
		lowest = p[i].at < lowest ? p[i].at : lowest;
		highest = p[i].at > highest ? p[i].at : highest;
	}
	if (highest - lowest > UINT32_MAX)
		return 0;
	s->turns.n = s->found.n = 0;
	if (!VEC_RESERVE(&s->turns, n) || !VEC_RESERVE(&s->found, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		s->turns.p[i] =
			(struct keyed){.key = (uint32_t)(p[i].at - lowest), .value = (uint32_t)i};
	if (keyed_sort(s->turns.p, n) < 0)
		return -ENOMEM;
	memcpy(s->found.p, p, n * sizeof(*p));
	for (size_t i = 0; i < n; i++)
		p[i] = s->found.p[s->turns.p[i].value];
	return 1;
}

static bool is_sorted(const struct found *p, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (by_address(&p[i - 1], &p[i]) > 0)
			return false;
	return true;
}

/* Few sites share an address, so input in the order of addresses is mostly sorted. */
static int sort_group(struct found *p, size_t n, struct sorting *s)
{
	if (is_sorted(p, n))
		return 0;
	int rc = sort_by_distance(p, n, s);
	if (rc >= 0 && (!rc || !is_sorted(p, n)))
		qsort(p, n, sizeof(*p), by_address);
	return rc < 0 ? rc : 0;
}

static int sort_chunk(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	const struct order *o = arg;
	struct sorting s = {0};
	int rc = 0;
	for (size_t g = item * CHUNK; g < o->n_groups && g < (item + 1) * CHUNK && rc >= 0; g++)
		rc = sort_group(o->p + o->first[g], o->first[g + 1] - o->first[g], &s);
	VEC_FREE(&s.turns);
	VEC_FREE(&s.found);
	return rc < 0 ? err_nomem(err, "sites") : 0;
}

static int put_in_order(struct finder *f, struct order *ret, struct cairn_err *err)
{
	size_t total = 0, n_groups = f->n_groups;
	for (unsigned int i = 0; i < f->n_workers; i++)
		total += f->workers[i].found.n;
	*ret = (struct order){.p = pages_zeroed(total + 1, sizeof(*ret->p)),
			      .n = total + 1,
			      .first = calloc(n_groups + 2, sizeof(*ret->first)),
			      .n_groups = n_groups};
	if (!ret->p || !ret->first)
		return err_nomem(err, "sites");
	for (unsigned int i = 0; i < f->n_workers; i++)
		for (size_t k = 0; k < f->workers[i].found.n; k++)
			ret->first[f->workers[i].found.p[k].group + 2]++;
	for (size_t g = 2; g < n_groups + 2; g++)
		ret->first[g] += ret->first[g - 1];
	for (unsigned int i = 0; i < f->n_workers; i++) {
		for (size_t k = 0; k < f->workers[i].found.n; k++)
			ret->p[ret->first[f->workers[i].found.p[k].group + 1]++] =
				f->workers[i].found.p[k];
		LARGE_FREE(&f->workers[i].found);
	}
	return pool_run((n_groups + CHUNK - 1) / CHUNK, f->opts->threads, sort_chunk, ret, err);
}

static int section_of(struct finder *f, const struct found *at, uint32_t *ret)
{
	struct sites *p = f->ret;
	struct site_section s = {.start = at->at - at->offset};
	uint64_t off;
	for (*ret = 0; *ret < p->sections.n; ++*ret)
		if (p->sections.p[*ret].start == s.start)
			return 0;
	cairn_binary_section_of(f->bin, (struct cairn_vaddr){at->at}, &s.name, &off);
	return VEC_ADD(&p->sections, s) ? 0 : -ENOMEM;
}

/* The records of a worker by the numbers that they get; NONE: not met yet. */
struct renumbered {
	uint32_t *params, *protos;
};

static uint32_t *none_of(size_t n)
{
	uint32_t *p = malloc((n + 1) * sizeof(*p));
	if (p)
		memset(p, 0xff, n * sizeof(*p));
	return p;
}

static int renumber(struct finder *f, struct renumbered *to, const struct found *at, uint32_t *ret)
{
	struct worker *w = &f->workers[at->worker];
	const struct loc_proto *proto = &w->records.protos.p[at->proto];
	*ret = to->protos[at->proto];
	if (*ret != NONE)
		return 0;
	uint32_t *slots = proto->n ? w->records.slots.p + proto->first : NULL;
	for (uint32_t i = 0; i < proto->n; i++) {
		if (!slots[i])
			continue;
		uint32_t *param = &to->params[slots[i] - 1];
		if (*param == NONE &&
		    intern_param(f->ret, &w->records.params.p[slots[i] - 1], param) < 0)
			return -ENOMEM;
		slots[i] = *param + 1;
	}
	int rc = intern_proto(f->ret, slots, proto->n, ret);
	to->protos[at->proto] = *ret;
	return rc;
}

static int take_sites(struct finder *f, const struct order *o)
{
	struct renumbered *to = calloc(f->n_workers, sizeof(*to));
	int rc = to ? 0 : -ENOMEM;
	for (unsigned int i = 0; i < f->n_workers && rc >= 0; i++) {
		to[i].params = none_of(f->workers[i].records.params.n);
		to[i].protos = none_of(f->workers[i].records.protos.n);
		rc = to[i].params && to[i].protos ? 0 : -ENOMEM;
	}
	size_t n = o->first[o->n_groups];
	if (rc >= 0 && !LARGE_RESERVE(&f->ret->v, n))
		rc = -ENOMEM;
	for (size_t i = 0; i < n && rc >= 0; i++) {
		const struct found *at = &o->p[i];
		struct site p = {.func = at->func, .offset = at->offset};
		rc = section_of(f, at, &p.section);
		if (rc >= 0)
			rc = renumber(f, &to[at->worker], at, &p.proto);
		f->ret->v.p[f->ret->v.n++] = p;
	}
	for (unsigned int i = 0; to && i < f->n_workers; i++) {
		free(to[i].params);
		free(to[i].protos);
	}
	free(to);
	return rc;
}

static void add_counts(struct finder *f, struct cairn_btfgen *ret)
{
	for (unsigned int i = 0; i < f->n_workers; i++) {
		const struct cairn_btfgen *c = &f->workers[i].counts;
		ret->n_arguments += c->n_arguments;
		ret->n_located += c->n_located;
		for (int k = 0; k < CAIRN_N_LOSSES; k++)
			ret->losses[k] += c->losses[k];
		for (int k = 0; k < CAIRN_N_UNAVAILABLE; k++)
			ret->unavailable[k] += c->unavailable[k];
	}
}

/* The input that the sites module needs to evaluate functions, and its results. */
struct site_search {
	struct site_opts opts;
	const struct cairn_binary *bin;
	struct cfi *cfi;
	struct dw_func_index index;
	struct groups groups;
	struct entry_rows rows;
	struct symbol_name icf_groups;
	struct site_env env;
	struct finder finder;
};

/* Here and below as cairn_sites_open() and _visit(), without the parts that only people read. */
int sites_search_new(const struct cairn_binary *bin, const struct site_opts *opts,
		     const struct dwarf *dw, struct site_search **ret, struct cairn_err *err)
{
	struct site_search *s = calloc(1, sizeof(*s));
	*ret = s;
	if (!s)
		return err_nomem(err, "sites");
	s->opts = *opts;
	s->bin = bin;
	s->env = (struct site_env){.bin = bin,
				   .dw = dw,
				   .code = binary_main(bin),
				   .index = &s->index,
				   .assume_unmodified = opts->assume_unmodified,
				   .bare = true};
	return 0;
}

struct dw_func_index *sites_index(struct site_search *s)
{
	return &s->index;
}

int sites_open_cfi(struct site_search *s, struct cairn_err *err)
{
	int rc = cfi_open(s->bin, &s->cfi, err);
	s->env.cfi = s->cfi;
	return rc;
}

int sites_prepare(struct site_search *s, struct cairn_err *err)
{
	int rc =
		group_entries(&s->env, s->opts.threads, &(struct group_filter){0}, &s->groups, err);
	return rc < 0 ? rc
		      : entry_rows_by_unit(&s->env, s->opts.threads, &s->groups, &s->rows, err);
}

int sites_find_folds(struct site_search *s, struct cairn_err *err)
{
	struct icf_candidates several = {0};
	int rc = icf_candidates_find(s->bin, &several, err);
	if (rc >= 0)
		rc = icf_find(&s->env, &several, &s->icf_groups, err);
	icf_candidates_fini(&several);
	return rc;
}

void sites_search_trim(struct site_search *s)
{
	groups_fini(&s->groups);
	entry_rows_fini(&s->rows);
	dw_func_index_fini(&s->index);
	symbol_name_fini(&s->icf_groups);
	cfi_close(s->cfi);
	s->groups = (struct groups){0};
	s->cfi = NULL;
}

static void finder_fini(struct finder *f)
{
	for (unsigned int i = 0; f->workers && i < f->n_workers; i++) {
		struct worker *w = &f->workers[i];
		LARGE_FREE(&w->found);
		VEC_FREE(&w->slots);
		VEC_FREE(&w->of_slot);
		VEC_FREE(&w->values);
		free(w->signatures);
		sites_fini(&w->records);
	}
	free(f->workers);
	f->workers = NULL;
}

void sites_search_free(struct site_search *s)
{
	if (!s)
		return;
	sites_search_trim(s);
	finder_fini(&s->finder);
	free(s);
}

static int finder_init(struct finder *f)
{
	f->n_workers = pool_width(f->opts->threads);
	f->workers = calloc(f->n_workers, sizeof(*f->workers));
	for (unsigned int i = 0; f->workers && i < f->n_workers; i++) {
		f->workers[i].func = NONE;
		f->workers[i].signatures = calloc(f->funcs->v.n + 1, sizeof(struct signature));
		if (!f->workers[i].signatures)
			return -ENOMEM;
	}
	return f->workers ? 0 : -ENOMEM;
}

int sites_find(struct site_search *s, const struct func_table *funcs, const struct emit *e,
	       struct cairn_btfgen *counts, struct sites *ret, struct cairn_err *err)
{
	struct finder *f = &s->finder;
	*ret = (struct sites){.has_site = calloc(funcs->v.n + 1, sizeof(*ret->has_site))};
	*f = (struct finder){.bin = s->bin,
			     .dw = s->env.dw,
			     .opts = &s->opts,
			     .funcs = funcs,
			     .e = e,
			     .base = base_address(s->bin),
			     .n_groups = s->groups.v.n,
			     .ret = ret};
	if (!ret->has_site || finder_init(f) < 0)
		return err_nomem(err, "worker memory");
	s->env.icf_groups = &s->icf_groups;
	struct copies_visitor visitor = {.site = see_site, .progress = see_progress, .ctx = f};
	int rc = copies_visit(&s->env, s->opts.threads, &s->groups, &s->rows, &visitor, err);
	if (rc < 0)
		return rc;
	for (unsigned int i = 0; i < f->n_workers; i++)
		for (size_t k = 0; k < f->workers[i].found.n; k++)
			ret->has_site[f->workers[i].found.p[k].func] = true;
	add_counts(f, counts);
	return 0;
}

int sites_join(struct site_search *s, struct cairn_err *err)
{
	struct finder *f = &s->finder;
	struct order order;
	int rc = put_in_order(f, &order, err);
	if (rc >= 0 && take_sites(f, &order) < 0)
		rc = err_nomem(err, "sites");
	pages_free(order.p, order.n, sizeof(*order.p));
	free(order.first);
	finder_fini(f);
	return rc < 0 ? rc : 0;
}

void sites_fini(struct sites *p)
{
	free(p->has_site);
	LARGE_FREE(&p->v);
	VEC_FREE(&p->sections);
	VEC_FREE(&p->params);
	VEC_FREE(&p->protos);
	VEC_FREE(&p->slots);
	hash_table_fini(&p->params_by_hash);
	hash_table_fini(&p->protos_by_hash);
}
