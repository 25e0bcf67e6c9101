/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A FUNC and its sites
 *
 * Sites of a function are adjacent in a LOCSEC of the N dialect, but nothing promises that to a
 * reader of damaged input, and a pass over a kernel's 316,000 takes less than a millisecond.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "btfsites/btfsites.h"
#include "sites/own_symbol.h"

enum { LOC_WORDS = 3, LOC_FUNC = 0, LOC_PROTO = 1, LOC_OFFSET = 2 };

static int add_place(const struct btf_sites *s, const struct loc_section *section,
		     const uint32_t *loc, struct place_list *ret, struct cairn_err *err)
{
	struct place p = {.at = section->start + loc[LOC_OFFSET],
			  .func = loc[LOC_FUNC],
			  .proto = loc[LOC_PROTO]};
	if (loc[LOC_OFFSET] >= section->size)
		return err_set(err, s->is_embedded ? -EBADMSG : -ESTALE,
			       "%s: a site is beyond the end of %s: it is damaged, or another "
			       "build's",
			       s->path, section->name);
	return VEC_ADD(&ret->v, p) ? 0 : err_nomem(err, "sites");
}

int btfsites_all_places(const struct btf_sites *s, struct place_list *ret, struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < s->sections.n; i++) {
		const struct loc_section *section = &s->sections.p[i];
		const uint32_t *loc = section->words;
		for (uint32_t k = 0; k < section->n && rc >= 0; k++, loc += LOC_WORDS)
			rc = add_place(s, section, loc, ret, err);
	}
	return rc;
}

/* Some FUNCs, by their ids less the smallest one. */
struct wanted {
	uint32_t least, n;
	bool *is_one;
};

static bool wanted_init(struct wanted *w, const struct func_ids *ids)
{
	uint32_t least = UINT32_MAX, most = 0;
	for (size_t i = 0; i < ids->v.n; i++) {
		least = ids->v.p[i] < least ? ids->v.p[i] : least;
		most = ids->v.p[i] > most ? ids->v.p[i] : most;
	}
	*w = (struct wanted){.least = least, .n = ids->v.n ? most - least + 1 : 0};
	w->is_one = calloc((size_t)w->n + 1, sizeof(*w->is_one));
	for (size_t i = 0; w->is_one && i < ids->v.n; i++)
		w->is_one[ids->v.p[i] - least] = true;
	return w->is_one;
}

int btfsites_places(const struct btf_sites *s, const struct func_ids *ids, struct place_list *ret,
		    struct cairn_err *err)
{
	struct wanted w;
	int rc = wanted_init(&w, ids) ? 0 : err_nomem(err, "sites");
	for (size_t i = 0; i < s->sections.n && rc >= 0; i++) {
		const struct loc_section *section = &s->sections.p[i];
		const uint32_t *loc = section->words, *end = loc + (size_t)LOC_WORDS * section->n;
		for (; loc < end && rc >= 0; loc += LOC_WORDS) {
			uint32_t func = loc[LOC_FUNC] - w.least;
			if (func < w.n && w.is_one[func])
				rc = add_place(s, section, loc, ret, err);
		}
	}
	free(w.is_one);
	return rc;
}

/* ---- the prototype ---- */

static int damaged(const struct btf_sites *s, uint32_t id, const char *what, struct cairn_err *err)
{
	return err_set(err, -EBADMSG,
		       "%s: %s (id %" PRIu32 "): it is damaged, or split from another base",
		       s->path, what, id);
}

static int read_params(struct btf_sites *s, const struct cairn_btf_type *proto, struct arena *arena,
		       struct cairn_function *f, struct cairn_err *err)
{
	struct cairn_param *params = arena_array(arena, proto->vlen, sizeof(*params));
	int rc = params ? 0 : err_nomem(err, "the parameters of a function");
	f->params = params;
	for (uint32_t i = 0; i < proto->vlen && rc >= 0; i++) {
		struct cairn_btf_param p = cairn_btf_param(proto, i);
		const char *name = cairn_btf_string(s->inlined, p.name_off);
		if (i + 1 == proto->vlen && !p.type && !p.name_off) {
			f->variadic = true;
			break;
		}
		params[f->n_params++] =
			(struct cairn_param){.name = name && name[0] ? name : NULL, .type = p.type};
		rc = btf_types_read(s->reader, p.type, err);
	}
	return rc;
}

static int read_signature(struct btf_sites *s, uint32_t id, struct arena *arena,
			  struct cairn_function *ret, uint32_t *ret_proto, struct cairn_err *err)
{
	struct cairn_btf_type func, proto;
	if (!cairn_btf_type(s->inlined, id, &func) || func.kind != CAIRN_BTF_FUNC || !func.name[0])
		return damaged(s, id, "a site's function is no FUNC with a name", err);
	if (!cairn_btf_type(s->inlined, func.ref, &proto) || proto.kind != CAIRN_BTF_FUNC_PROTO)
		return damaged(s, id, "a FUNC has no prototype", err);
	*ret = (struct cairn_function){.name = func.name, .return_type = proto.ref};
	*ret_proto = func.ref;
	int rc = btf_types_read(s->reader, proto.ref, err);
	return rc < 0 ? rc : read_params(s, &proto, arena, ret, err);
}

/* ---- sites ---- */

static uint64_t bytes_of(const struct btf_sites *s, uint32_t type)
{
	const struct cairn_types *types = s->sites.graph;
	return cairn_types_get(types, cairn_types_resolve(types, type))->size;
}

static int read_args(const struct btf_sites *s, const struct cairn_function *f, uint32_t proto,
		     struct arena *arena, struct cairn_site *site, struct cairn_err *err)
{
	struct cairn_arg *args = arena_array(arena, f->n_params, sizeof(*args));
	struct cairn_btf_type t = {0};
	if (!args)
		return err_nomem(err, "the arguments of a site");
	if (proto && (!cairn_btf_type(s->inlined, proto, &t) || t.kind != CAIRN_BTF_LOC_PROTO))
		return damaged(s, proto, "a site's locations are no LOC_PROTO", err);
	if (t.vlen > f->n_params)
		return damaged(s, proto, "a site has more locations than parameters", err);
	for (uint32_t i = 0; i < f->n_params; i++) {
		args[i].name = f->params[i].name;
		args[i].type = f->params[i].type;
		uint32_t param = i < t.vlen ? t.words[i] : 0;
		if (btfsites_location(s, param, bytes_of(s, args[i].type), arena, &args[i].loc) < 0)
			return err_nomem(err, "a location");
	}
	site->args = args;
	site->n_args = f->n_params;
	return 0;
}

/* The entry of foo.isra.0 or foo.constprop.0, whose parameters are not where foo's would be. */
static bool is_clone(const struct cairn_function *f, const struct cairn_site *site)
{
	size_t n = strlen(f->name);
	return site->symbol && !site->symbol_off && !strncmp(site->symbol, f->name, n) &&
	       site->symbol[n] == '.' &&
	       (symbol_has(site->symbol, ".isra.") || symbol_has(site->symbol, ".constprop."));
}

/* Nothing else ties a file beside the binary to it. */
static int check_build(const struct btf_sites *s, const struct cairn_function *f,
		       const struct cairn_site *site, struct cairn_err *err)
{
	if (s->is_embedded || !site->symbol || site->hazard != CAIRN_HAZARD_NOT_A_BOUNDARY)
		return 0;
	return err_set(err, -ESTALE,
		       "%s: a site of %s is not at the start of an instruction of %s (0x%" PRIx64
		       "): it is another build's",
		       s->path, f->name, cairn_binary_path(s->sites.bin), site->at.v);
}

static int read_site(struct btf_sites *s, const struct cairn_function *f, const struct place *p,
		     struct arena *arena, struct cairn_site *ret, struct cairn_err *err)
{
	*ret = (struct cairn_site){.kind = CAIRN_SITE_INLINED,
				   .rule = CAIRN_AT_BTF,
				   .at = {p->at},
				   .n_shared = 1,
				   .count_caveats = CAIRN_COUNT_UNKNOWN};
	ret->has_off = cairn_binary_foff(s->sites.bin, ret->at, &ret->off);
	int rc = btfsites_surround(s, ret->at, err);
	if (rc < 0)
		return rc;
	ret->hazard = btfsites_hazard(s, ret->at);
	if (btfsites_place(s, arena, ret) < 0)
		return err_nomem(err, "a site");
	if (is_clone(f, ret))
		ret->kind = CAIRN_SITE_OUT_OF_LINE;
	rc = check_build(s, f, ret, err);
	return rc < 0 ? rc : read_args(s, f, p->proto, arena, ret, err);
}

static int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->proto > y->proto) - (x->proto < y->proto);
}

/* The sites of a function that are still to be read: two lists in the order of addresses. */
struct to_read {
	const struct cairn_vaddr *bodies;
	size_t n_bodies;
	const struct place *places;
	uint32_t n_places;
	uint32_t proto; /* of the bodies: FUNC_PROTO */
};

/* At one address the body first: the call of the function itself begins before those in it. */
static int read_next(struct btf_sites *s, struct to_read *r, struct arena *arena,
		     struct cairn_function *f, struct cairn_site *ret, struct cairn_err *err)
{
	if (r->n_bodies && (!r->n_places || r->bodies->v <= r->places->at)) {
		r->n_bodies--;
		return btfsites_body(s, f, r->proto, *r->bodies++, arena, ret, err);
	}
	r->n_places--;
	return read_site(s, f, r->places++, arena, ret, err);
}

int btfsites_function(struct btf_sites *s, uint32_t id, struct place *places, uint32_t n_places,
		      const struct cairn_vaddr *bodies, size_t n_bodies, struct arena *arena,
		      struct cairn_function *ret, struct cairn_err *err)
{
	struct to_read r = {bodies, n_bodies, places, n_places, 0};
	struct cairn_site *sites = arena_array(arena, n_places + n_bodies, sizeof(*sites));
	int rc = sites ? read_signature(s, id, arena, ret, &r.proto, err) : err_nomem(err, "sites");
	if (n_places)
		qsort(places, n_places, sizeof(*places), by_address);
	while (rc >= 0 && (r.n_bodies || r.n_places))
		rc = read_next(s, &r, arena, ret, &sites[ret->n_sites++], err);
	if (rc < 0)
		return rc;
	sites_count_shared(sites, ret->n_sites);
	ret->sites = sites;
	return 0;
}
