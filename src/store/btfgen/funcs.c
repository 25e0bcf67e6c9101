/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/funcs.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/search.h"
#include "btf/build.h"
#include "btfgen/changed.h"
#include "btfgen/dead.h"
#include "dwarf/constants.h"
#include "dwarf/params.h"
#include "sites/convention.h"
#include "sites/own_symbol.h"

#define NONE UINT32_MAX

static uint64_t name_key(const char *name)
{
	return hash_bytes(name, strlen(name));
}

static edge_t edge_of(const struct func_table *f, uint32_t instance, const struct type_class *k,
		      uint32_t i)
{
	const edge_t *edges = f->variants->v.p[instance].edges;
	return name_variants_resolve(f->variants, edges ? edges[i]
						  : i   ? k->elems[i - 1].edge
							: k->edge);
}

/* Whether two prototypes have the same types; the names of parameters do not count. */
static bool same_types(const struct func_table *f, uint32_t a, uint32_t b)
{
	if (a == b)
		return true;
	const struct type_class *x = &f->c->v.p[f->variants->v.p[a].class_];
	const struct type_class *y = &f->c->v.p[f->variants->v.p[b].class_];
	if (x->n_elems != y->n_elems || x->variadic != y->variadic)
		return false;
	for (uint32_t i = 0; i <= x->n_elems; i++)
		if (edge_of(f, a, x, i) != edge_of(f, b, y, i))
			return false;
	return true;
}

/*
 * The first function of a name; NONE when there is none. *@key: the name's, and then where it is or
 * would be.
 */
static uint32_t first_at(const struct func_table *f, const char *name, uint64_t *key)
{
	uint64_t first;
	for (; map_get(&f->by_name, *key, &first); ++*key)
		if (f->v.p[first].name == name || !strcmp(f->v.p[first].name, name))
			return (uint32_t)first;
	return NONE;
}

static uint32_t first_of(const struct func_table *f, const char *name, uint64_t *ret_key)
{
	*ret_key = name_key(name);
	return first_at(f, name, ret_key);
}

/* The function of that name and prototype, new when there is none. */
static int intern(struct func_table *f, const struct func *d, uint32_t proto, uint32_t *ret)
{
	uint64_t key = d->name_hash;
	uint32_t last = NONE;
	for (uint32_t i = first_at(f, d->name, &key); i != NONE; last = i, i = f->v.p[i].next) {
		if (!same_types(f, f->v.p[i].proto, proto))
			continue;
		if (f->v.p[i].declared && !d->declaration) {
			f->v.p[i].proto = proto;
			f->v.p[i].declared = false;
		}
		*ret = i;
		return 0;
	}
	*ret = (uint32_t)f->v.n;
	f->has_equal_hashes |= key != d->name_hash;
	if (last != NONE)
		f->v.p[last].next = *ret;
	else if (map_put(&f->by_name, key, *ret) < 0)
		return -ENOMEM;
	struct btf_func v = {.name = d->name,
			     .said = d->name,
			     .proto = proto,
			     .declared = d->declaration,
			     .next = NONE,
			     .is_first = last == NONE};
	return VEC_ADD(&f->v, v) ? 0 : -ENOMEM;
}

/*
 * Searches in steps that double from @near on: consecutive lookups are mostly in one unit.
 */
static uint32_t find_die(const struct func_table *f, size_t near, dw_off die)
{
	size_t lo = near < f->n_dies ? near : 0, hi = lo, step = 16;
	for (; lo && f->dies[lo] > die; step *= 2) {
		hi = lo;
		lo = lo > step ? lo - step : 0;
	}
	for (; hi < f->n_dies && f->dies[hi] <= die; step *= 2) {
		lo = hi;
		hi = f->n_dies - hi > step ? hi + step : f->n_dies;
	}
	lo = SEARCH(lo, hi, i, f->dies[i] < die);
	return lo < f->n_dies && f->dies[lo] == die ? (uint32_t)lo : NONE;
}

uint32_t func_table_at(const struct func_table *f, dw_off abstract, uint32_t *near)
{
	uint32_t i = find_die(f, *near, abstract);
	if (i == NONE)
		return NONE;
	*near = i;
	return f->of_die[i];
}

/* Functions in the order of units. */
struct func_walk {
	const struct classes *c;
	size_t span;
	const struct func *p, *end;
};

static const struct func *next_func(struct func_walk *w)
{
	while (w->p == w->end) {
		if (w->span == w->c->spans.n)
			return NULL;
		const struct unit_span *s = &w->c->spans.p[w->span++];
		w->p = w->end = type_classes_funcs(w->c, s);
		if (s->funcs.from == s->funcs.to)
			continue;
		w->end += s->funcs.to;
		w->p += s->funcs.from;
	}
	return w->p++;
}

/*
 * Most DIEs repeat an earlier one with the same words: then the position of the name is enough to
 * recognise it.
 */
struct said {
	const struct func *d;
	edge_t proto;
	struct h128 key;
};

static struct said said_by(const struct func_table *f, const struct func *d)
{
	edge_t proto = name_variants_edge(f->variants, d->unit, d->proto + 1);
	return (struct said){
		.d = d,
		.proto = proto,
		.key = h128_mix(h128_start(d->declaration), (uintptr_t)d->name, proto)};
}

static int intern_die(struct func_table *f, struct hash_table *seen, size_t i,
		      const struct said *said)
{
	uint32_t *to = &f->of_die[i];
	*to = hash_table_find(seen, said->key);
	if (*to == NONE) {
		int rc = intern(f, said->d, said->proto - 1, to);
		if (rc >= 0)
			rc = hash_table_add(seen, said->key, *to);
		if (rc < 0)
			return rc;
	}
	f->v.p[*to].external |= said->d->external;
	return 0;
}

/* The DIEs to look up exceed the caches, so each is prefetched some steps ahead. */
static int intern_all(struct func_table *f)
{
	enum { AHEAD = 8 };
	struct said ahead[AHEAD];
	struct hash_table seen = {0};
	struct func_walk walk = {.c = f->c};
	size_t n = f->n_dies;
	/* A kernel has 2.6 function DIEs for each distinct one. */
	int rc = hash_table_reserve(&seen, n / 3);
	for (size_t i = 0; i < n + AHEAD && rc >= 0; i++) {
		struct said *said = &ahead[i % AHEAD];
		if (i >= AHEAD)
			rc = intern_die(f, &seen, i - AHEAD, said);
		if (i < n) {
			*said = said_by(f, next_func(&walk));
			f->dies[i] = said->d->die;
			hash_table_prefetch(&seen, said->key);
			map_prefetch(&f->by_name, said->d->name_hash);
		}
	}
	hash_table_fini(&seen);
	return rc;
}

static int first_range(void *ctx, struct dw_range r)
{
	*(struct cairn_vaddr *)ctx = r.lo;
	return 1;
}

/*
 * foo.isra.0, foo.constprop.0, foo.part.0: parameters were removed, or it is the rest of foo only.
 */
static bool is_clone(const char *symbol)
{
	return symbol_has(symbol, ".isra.") || symbol_has(symbol, ".constprop.") ||
	       symbol_has(symbol, ".part.") || symbol_has(symbol, ".cold");
}

/*
 * The function whose code a body is, and in *@ret_die the DIE that names it. NONE when the body's
 * origins lead to no declaration.
 */
static uint32_t function_of(const struct func_table *f, const struct dwarf *dw, dw_off origin,
			    uint32_t *near, dw_off *ret_die)
{
	for (int i = 0; i < DW_ORIGIN_MAX && origin; i++) {
		struct dw_die die;
		uint32_t found = func_table_at(f, origin, near);
		*ret_die = origin;
		if (found != NONE)
			return found;
		if (dw_die_at(dw, origin, &die, NULL) != 1)
			return NONE;
		origin = dw_ref(&die, DW_AT_abstract_origin);
	}
	return NONE;
}

static void note_body(struct func_table *f, const struct dwarf *dw, const struct body *b,
		      uint32_t *near)
{
	dw_off said_by;
	uint32_t i =
		b->is_whole || b->is_dead ? function_of(f, dw, b->origin, near, &said_by) : NONE;
	if (i == NONE)
		return;
	f->has_dead |= b->is_dead;
	f->v.p[i].has_dead |= b->is_dead;
	if (b->is_dead)
		return;
	f->v.p[i].is_changed |= b->is_changed;
	f->v.p[i].is_silent |= b->is_silent;
	if (f->v.p[i].has_body)
		return;
	f->v.p[i].has_body = true;
	f->v.p[i].body = b->die;
	f->v.p[i].said_by = said_by;
}

/*
 * An overridden function takes its parameter names from the code that is called.
 */
static void take_living_prototypes(struct func_table *f)
{
	struct func_walk walk = {.c = f->c};
	for (size_t i = 0; f->has_dead && i < f->n_dies; i++) {
		const struct func *d = next_func(&walk);
		struct btf_func *v = &f->v.p[f->of_die[i]];
		if (v->has_dead && v->has_body && v->said_by == d->die)
			v->proto = name_variants_edge(f->variants, d->unit, d->proto + 1) - 1;
	}
}

/* An assembler says a type that it leaves open. */
static bool has_result(const struct dw_die *function)
{
	struct dw_die type;
	dw_off off = dw_ref_deep(function, DW_AT_type);
	return off && (dw_die_near(function->unit, off, &type, NULL) != 1 ||
		       type.tag != DW_TAG_unspecified_type);
}

/*
 * True if a body without parameters and result is one that the debug information does not describe.
 */
static bool is_silent(const struct dw_die *body)
{
	struct dw_die from = *body, param;
	struct dw_value line;
	dw_off origin = dw_ref(body, DW_AT_abstract_origin);
	if (origin && dw_die_near(body->unit, origin, &from, NULL) != 1)
		return false;
	if (has_result(&from) || dw_param_child(&from, &param, NULL) == 1)
		return false;
	return convention_is_silent(body->unit,
				    dw_attr_deep(&from, DW_AT_decl_line, &line, NULL, NULL) == 1);
}

static int see_body(struct changed *changed, struct dead *dead, struct body *b,
		    struct cairn_err *err)
{
	struct cairn_vaddr at = {b->addr};
	struct dw_die die;
	if (dw_die_at(changed->dw, b->die, &die, NULL) != 1 ||
	    (!at.v && dw_ranges(&die, first_range, &at, NULL) <= 0))
		return 0;
	const char *symbol = own_symbol(changed->dw, at, b->die);
	if (!symbol && dead_note(dead, &die, b) < 0)
		return -ENOMEM;
	b->is_whole = !symbol || !is_clone(symbol);
	b->is_silent = b->is_whole && is_silent(&die);
	int rc = b->is_whole ? changed_has(changed, &die, at, err) : 0;
	b->is_changed = rc == 1;
	return rc;
}

int func_bodies_see(const struct dwarf *dw, struct classes *c, struct cairn_err *err)
{
	struct changed changed;
	struct dead dead = {0};
	int rc = changed_init(&changed, dw, err);
	for (size_t i = 0; i < c->bodies.n && rc >= 0; i++)
		rc = see_body(&changed, &dead, &c->bodies.p[i], err);
	if (rc >= 0)
		rc = dead_find(&dead, dw);
	dead_fini(&dead);
	changed_fini(&changed);
	return rc < 0 ? err_nomem(err, "the bodies of functions") : 0;
}

/* The only definition of a name, when none of that name has code. */
static struct btf_func *without_code(struct func_table *f, const char *name, uint64_t key)
{
	struct btf_func *only = NULL;
	uint64_t first;
	/* Most symbols are of a function with code: then nothing of it needs to be compared. */
	if (!map_get(&f->by_name, key, &first) || (f->v.p[first].has_body && !f->has_equal_hashes))
		return NULL;
	for (uint32_t k = first_at(f, name, &key); k != NONE; k = f->v.p[k].next) {
		struct btf_func *v = &f->v.p[k];
		if (v->has_body || v->is_changed || v->is_silent || (only && !v->declared))
			return NULL;
		if (!v->declared)
			only = v;
	}
	return only;
}

/*
 * Functions of equal code are folded into one (GCC's -fipa-icf): a symbol is all that the others
 * have.
 */
static int note_folded(struct func_table *f, const struct dwarf *dw)
{
	enum { AHEAD = 8 };
	uint64_t keys[AHEAD];
	const struct elf_symbol *symbols;
	size_t n = 0;
	int rc = elf_symbols(binary_debug(dwarf_binary(dw)), &symbols, &n, NULL);
	for (size_t i = 0; rc >= 0 && i < n + AHEAD; i++) {
		uint64_t *key = &keys[i % AHEAD];
		const struct elf_symbol *s = i >= AHEAD ? &symbols[i - AHEAD] : NULL;
		struct btf_func *v =
			s && s->type == STT_FUNC ? without_code(f, s->name, *key) : NULL;
		if (v)
			v->has_body = true;
		if (i >= n || symbols[i].type != STT_FUNC)
			continue;
		*key = name_key(symbols[i].name);
		map_prefetch(&f->by_name, *key);
	}
	return rc == -ENOMEM ? rc : 0;
}

/* The number of functions of one name that have code. */
static uint32_t n_bodies(const struct func_table *f, uint32_t first)
{
	uint32_t n = 0;
	for (uint32_t k = first; k != NONE; k = f->v.p[k].next)
		n += f->v.p[k].has_body;
	return n;
}

/* The linker's name of a function, when that is no other function's name. NULL: it has none. */
static const char *linkage_name(const struct func_table *f, const struct dwarf *dw,
				const struct btf_func *v)
{
	struct dw_die die;
	uint64_t key;
	if (!v->body || dw_die_at(dw, v->body, &die, NULL) != 1)
		return NULL;
	const char *name = dw_str_deep(&die, DW_AT_linkage_name);
	if (!name)
		name = dw_str_deep(&die, DW_AT_MIPS_linkage_name);
	return name && *name && first_of(f, name, &key) == NONE ? name : NULL;
}

/*
 * The function already seen with that linkage name, or @i, which has it from now on; NONE: out of
 * memory.
 */
static uint32_t first_with(struct hash_table *said, const char *linkage, uint32_t i)
{
	struct h128 key = h128_mix(h128_start(0), name_key(linkage), strlen(linkage));
	uint32_t other = hash_table_find(said, key);
	if (other != NONE)
		return other;
	return hash_table_add(said, key, i) < 0 ? NONE : i;
}

/* Functions that share a name: each by its linker's name, when that is its alone. */
static int tell_apart(struct func_table *f, const struct dwarf *dw, struct hash_table *said,
		      uint32_t first)
{
	for (uint32_t k = first; k != NONE; k = f->v.p[k].next) {
		struct btf_func *v = &f->v.p[k];
		const char *linkage = v->has_body ? linkage_name(f, dw, v) : NULL;
		if (!linkage)
			continue;
		uint32_t other = first_with(said, linkage, k);
		if (other == NONE)
			return -ENOMEM;
		v->in_main = other == k;
		v->said = linkage;
		f->v.p[other].in_main &= other == k;
	}
	return 0;
}

/* Among the functions of one name that have code, exactly one prototype must remain. */
static int choose_main(struct func_table *f, const struct dwarf *dw, uint64_t *losses)
{
	struct hash_table said = {0};
	int rc = 0;
	for (size_t i = 0; i < f->v.n && rc >= 0; i++) {
		if (!f->v.p[i].is_first)
			continue;
		if (n_bodies(f, (uint32_t)i) > 1)
			rc = tell_apart(f, dw, &said, (uint32_t)i);
		else
			for (uint32_t k = (uint32_t)i; k != NONE; k = f->v.p[k].next)
				f->v.p[k].in_main = f->v.p[k].has_body;
	}
	for (size_t i = 0; i < f->v.n; i++) {
		losses[CAIRN_LOSS_FUNC_PROTO] += f->v.p[i].has_body && !f->v.p[i].in_main;
		losses[CAIRN_LOSS_FUNC_CHANGED] += f->v.p[i].is_changed;
		losses[CAIRN_LOSS_FUNC_SILENT] += f->v.p[i].is_silent;
	}
	hash_table_fini(&said);
	return rc;
}

static void use_proto(const struct func_table *f, edge_t edge)
{
	edge = name_variants_resolve(f->variants, edge);
	if (edge && !(edge & EDGE_GROUP))
		f->skip[edge - 1] = false;
}

/* Prototypes are records of main when a type refers to them, or a function there has them. */
static void find_skipped(const struct func_table *f)
{
	const struct variants *v = f->variants;
	for (size_t i = 0; i < v->v.n; i++)
		f->skip[i] = f->c->v.p[v->v.p[i].class_].kind == TYPE_PROTO;
	for (size_t i = 0; i < v->v.n; i++) {
		const struct type_class *k = &f->c->v.p[v->v.p[i].class_];
		const edge_t *edges = v->v.p[i].edges;
		if (!v->v.p[i].used || k->kind == TYPE_PROTO)
			continue;
		use_proto(f, edges ? edges[0] : k->edge);
	}
	for (size_t i = 0; i < f->v.n; i++)
		if (f->v.p[i].in_main)
			f->skip[f->v.p[i].proto] = false;
}

int func_table_number(const struct variants *variants, struct func_table *ret,
		      struct cairn_err *err)
{
	const struct classes *c = variants->c;
	*ret = (struct func_table){.c = c, .variants = variants};
	for (size_t i = 0; i < c->lists.n; i++)
		ret->n_dies += c->lists.p[i].funcs.n;
	ret->dies = malloc((ret->n_dies + 1) * sizeof(*ret->dies));
	ret->of_die = malloc((ret->n_dies + 1) * sizeof(*ret->of_die));
	ret->skip = calloc(variants->v.n + 1, sizeof(*ret->skip));
	if (!ret->dies || !ret->of_die || !ret->skip)
		return err_nomem(err, "functions");
	return intern_all(ret) < 0 ? err_nomem(err, "functions") : 0;
}

int func_table_choose(const struct dwarf *dw, struct func_table *f, uint64_t *losses,
		      struct cairn_err *err)
{
	uint32_t near = 0;
	for (size_t i = 0; i < f->c->bodies.n; i++)
		note_body(f, dw, &f->c->bodies.p[i], &near);
	take_living_prototypes(f);
	for (size_t i = 0; i < f->v.n; i++)
		f->v.p[i].has_body &= !f->v.p[i].is_changed && !f->v.p[i].is_silent;
	if (note_folded(f, dw) < 0 || choose_main(f, dw, losses) < 0)
		return err_nomem(err, "functions");
	find_skipped(f);
	return 0;
}

int func_table_emit(struct func_table *f, const struct emit *e, uint32_t *ret_n,
		    struct cairn_err *err)
{
	for (size_t i = 0; i < f->v.n; i++) {
		struct btf_func *v = &f->v.p[i];
		uint32_t name;
		if (!v->in_main)
			continue;
		int rc = cairn_btf_add_string(e->b, v->said, &name);
		if (rc >= 0)
			rc = btf_add_func(e->b, name,
					  v->external ? CAIRN_BTF_GLOBAL : CAIRN_BTF_STATIC,
					  e->ids[v->proto], &v->id);
		if (rc < 0)
			return err_set(err, rc,
				       "functions: more than BTF can number, or out of memory");
		++*ret_n;
	}
	return 0;
}

void func_table_fini(struct func_table *f)
{
	VEC_FREE(&f->v);
	free(f->dies);
	free(f->of_die);
	free(f->skip);
	map_fini(&f->by_name);
}
