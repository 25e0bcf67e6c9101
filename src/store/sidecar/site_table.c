/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns functions into bytes; format.h documents them
 *
 * A function is usually one of .cairn.functions, and its sites are marks of frames. Then its record
 * has only their numbers. Data that many functions share, such as the prototype of a file's
 * operations, is a prototype.
 */
#include "sidecar/site_table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "sidecar/bits_out.h"
#include "sidecar/format.h"
#include "sidecar/reduced.h"
#include "sites/provider.h"
#include "sites/spec.h"

int put_string(struct site_table *p, struct bytes *b, const char *string)
{
	uint32_t off;
	int rc = strings_add(p->strings, string, &off);
	put_uleb(b, off);
	return rc;
}

int put_type_number(struct site_table *p, struct bytes *b, uint32_t id)
{
	uint32_t number = 0;
	int rc = type_table_add(&p->types, id, &number);
	put_uleb(b, number);
	return rc;
}

/* ---- prototypes ---- */

static int put_parameter(struct site_table *p, const struct cairn_param *param, struct bytes *b)
{
	uint32_t name, type = 0;
	uint64_t number;
	int rc = strings_add(p->strings, param->name, &name);
	if (rc >= 0)
		rc = type_table_add(&p->types, param->type, &type);
	if (rc >= 0 && !map_get(&p->parameter_of, (uint64_t)name << 32 | type, &number)) {
		number = p->parameters.n / 2;
		rc = VEC_ADD(&p->parameters, name) && VEC_ADD(&p->parameters, type) ? 0 : -ENOMEM;
		if (rc >= 0)
			rc = map_put(&p->parameter_of, (uint64_t)name << 32 | type, number);
	}
	put_uleb(b, rc < 0 ? 0 : number);
	return rc;
}

static int put_prototype(struct site_table *p, const struct cairn_function *f)
{
	struct bytes *b = &p->prototypes.record;
	uint32_t number = 0;
	put_u8(b, (uint8_t)((f->variadic ? PROTOTYPE_VARIADIC : 0) |
			    (f->params_unknown ? PROTOTYPE_PARAMS_UNKNOWN : 0)));
	int rc = put_type_number(p, b, f->return_type);
	for (uint32_t i = 0; rc >= 0 && i < f->n_params; i++)
		rc = put_parameter(p, &f->params[i], b);
	if (rc >= 0)
		rc = record_set_add(&p->prototypes, &number);
	put_uleb(&p->data, number);
	return rc;
}

/* ---- sites in full ---- */

static int put_chain(struct site_table *p, const struct cairn_site *s, struct bytes *b)
{
	int rc = put_string(p, b, s->container);
	put_uleb(b, s->n_chain);
	for (uint32_t i = 0; rc >= 0 && i < s->n_chain; i++) {
		rc = put_string(p, b, s->chain[i].function);
		if (rc >= 0)
			rc = put_string(p, b, s->chain[i].call_file);
		put_uleb(b, s->chain[i].call_line);
		put_uleb(b, s->chain[i].call_column);
	}
	return rc;
}

static int put_own_args(struct site_table *p, const struct cairn_site *s, struct bytes *b)
{
	int rc = 0;
	put_uleb(b, s->n_args);
	for (uint32_t i = 0; rc >= 0 && i < s->n_args; i++) {
		rc = put_string(p, b, s->args[i].name);
		if (rc >= 0)
			rc = put_type_number(p, b, s->args[i].type);
	}
	return rc;
}

static int put_own_site(struct site_table *p, const struct cairn_function *f,
			const struct cairn_site *s)
{
	struct bytes *b = &p->data;
	uint32_t frame = frame_of_site(p, s);
	bool plain;
	int rc = args_are_params(p, f, s, &plain);
	put_u8(b,
	       (uint8_t)((frame == NO_FRAME ? SITE_OWN_CHAIN : 0) | (plain ? 0 : SITE_OWN_ARGS)));
	put_site_attrs(s, b);
	put_sleb(b, (int64_t)(s->at.v - p->span.base));
	put_uleb(b, s->die);
	put_sleb(b, s->container_off);
	if (frame != NO_FRAME)
		put_uleb(b, frame);
	else if (rc >= 0)
		rc = put_chain(p, s, b);
	if (rc >= 0 && !plain)
		rc = put_own_args(p, s, b);
	for (uint32_t i = 0; rc >= 0 && i < s->n_args; i++) {
		uint32_t location = 0;
		rc = add_location(p, &s->args[i].loc, &location);
		put_uleb(b, location);
	}
	return rc;
}

/* ---- functions ---- */

static int add_name(struct site_table *p, const char *name, uint32_t function)
{
	uint64_t hash = map_hash_str(name);
	int rc = map_put(&p->known_names, hash, 1);
	if (rc >= 0)
		rc = map_put(&p->known_names, known_pair(hash, function), 1);
	return rc < 0 ? rc : name_index_add(&p->names, name, function);
}

/* The name as a user may type its last part: also without template arguments. */
static int add_names(struct site_table *p, const struct cairn_function *f, uint32_t function)
{
	const char *base = spec_base_name(f->name);
	const char *open = strchr(base, '<');
	int rc = add_name(p, base, function);
	if (rc >= 0 && open && open > base && strncmp(base, "operator", 8)) {
		char *plain = strndup(base, (size_t)(open - base));
		rc = plain ? add_name(p, plain, function) : -ENOMEM;
		free(plain);
	}
	if (rc >= 0 && f->linkage_name)
		rc = add_name(p, f->linkage_name, function);
	return rc;
}

static const char *string_at(const struct site_table *p, uint32_t off)
{
	return off ? (const char *)p->strings->text.v.p + off : NULL;
}

/* The function of a frame that has the same declaration, by appearance; 0 when there is none. */
static uint32_t declared_as(const struct site_table *p, const struct cairn_function *f)
{
	const struct joined *j = p->joined;
	for (uint32_t i = 0; i < f->n_sites; i++) {
		if (p->frames.p[i] == NO_FRAME)
			continue;
		uint32_t number = function_of(j, p->frames.p[i]);
		const struct function_entry *e = &j->functions.v.p[number];
		bool same = e->line == f->decl_line &&
			    same_string(string_at(p, j->files.path.p[e->file]), f->decl_file);
		return same ? number : 0;
	}
	return 0;
}

static int put_front(struct site_table *p, const struct cairn_function *f, bool own_sites)
{
	struct bytes *b = &p->data;
	uint32_t number = declared_as(p, f);
	const struct function_entry *e = &p->joined->functions.v.p[number];
	bool own_name = !number || !same_string(string_at(p, e->name), f->name) ||
			!same_string(string_at(p, e->linkage), f->linkage_name);
	int rc = 0;
	put_u8(b, (uint8_t)((number ? 0 : SITES_OWN_FUNCTION) | (own_name ? SITES_OWN_NAME : 0) |
			    (own_sites ? SITES_OWN_SITES : 0)));
	if (number) {
		put_uleb(b, p->joined->functions.ranking.rank.p[number]);
	} else {
		rc = put_string(p, b, f->decl_file);
		put_uleb(b, f->decl_line);
	}
	if (rc >= 0 && own_name)
		rc = put_string(p, b, f->name);
	if (rc >= 0 && own_name)
		rc = put_string(p, b, f->linkage_name);
	return rc;
}

static int put_sites(struct site_table *p, const struct cairn_function *f, bool own_sites)
{
	uint32_t before = 0;
	int rc = 0;
	put_uleb(&p->data, f->n_sites);
	for (uint32_t i = 0; rc >= 0 && i < f->n_sites; i++) {
		uint32_t frame = p->frames.p[i];
		if (own_sites)
			put_u8(&p->data, frame == NO_FRAME);
		if (frame == NO_FRAME) {
			rc = put_own_site(p, f, &f->sites[i]);
			continue;
		}
		put_uleb(&p->data, fold(frame - before));
		before = frame;
	}
	return rc;
}

static int mark_sites(struct site_table *p, const struct cairn_function *f, bool *ret_own)
{
	enum { AHEAD = 6 };
	p->frames.n = 0;
	*ret_own = false;
	for (uint32_t i = 0; i < f->n_sites; i++) {
		uint32_t frame;
		if (i + AHEAD < f->n_sites)
			map_prefetch(&p->frame_of_die, f->sites[i + AHEAD].die);
		int rc = mark_site(p, f, &f->sites[i], &frame);
		if (rc < 0)
			return rc;
		if (!VEC_ADD(&p->frames, frame))
			return -ENOMEM;
		*ret_own |= frame == NO_FRAME;
	}
	return 0;
}

static int add_bodies(struct site_table *p, const struct cairn_function *f, uint32_t number)
{
	for (uint32_t i = 0; i < f->n_sites; i++) {
		const struct cairn_site *s = &f->sites[i];
		/* Parts that are inlined begin in the middle of others. */
		bool is_part = s->kind == CAIRN_SITE_PART && !s->n_chain;
		if ((is_part || s->kind == CAIRN_SITE_OUT_OF_LINE) &&
		    !VEC_ADD(&p->bodies, ((struct body){s->at.v, number, is_part})))
			return -ENOMEM;
	}
	return 0;
}

static int see_function(void *ctx, const struct cairn_function *f)
{
	struct site_table *p = ctx;
	uint32_t number = (uint32_t)p->starts.n;
	bool own_sites = false;
	if (p->data.v.n > UINT32_MAX / 2)
		return -ERANGE;
	if (!VEC_ADD(&p->starts, (uint32_t)p->data.v.n))
		return -ENOMEM;
	int rc = add_names(p, f, number);
	if (rc >= 0)
		rc = add_bodies(p, f, number);
	if (rc >= 0)
		rc = mark_sites(p, f, &own_sites);
	if (rc >= 0)
		rc = put_front(p, f, own_sites);
	if (rc >= 0)
		rc = put_prototype(p, f);
	put_uleb(&p->data, f->n_without_code);
	if (rc >= 0)
		rc = put_sites(p, f, own_sites);
	p->n_sites += f->n_sites;
	return rc < 0 ? rc : p->data.failed ? -ENOMEM : 0;
}

static int index_frames(struct site_table *p)
{
	const struct joined *j = p->joined;
	for (size_t u = 0; u < j->n_units; u++)
		for (uint32_t i = 0; i < j->units[u].frames.n; i++)
			if (map_put(&p->frame_of_die, j->units[u].frames.p[i].die,
				    (uint64_t)u << 32 | i) < 0)
				return -ENOMEM;
	p->marks = calloc((size_t)j->n_frames + 1, sizeof(*p->marks));
	return p->marks ? 0 : -ENOMEM;
}

static int by_body(const void *a, const void *b)
{
	const struct body *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

int site_table_make(struct site_table *p, unsigned int threads, const struct joined *j,
		    struct code_span span, const struct meanings *meanings, struct strings *strings,
		    struct cairn_err *err)
{
	p->joined = j;
	p->span = span;
	p->strings = strings;
	p->types.graph = cairn_sites_types(p->sites);
	p->types.reader = sites_type_reader(p->sites);
	p->types.meanings = meanings;
	p->types.strings = strings;
	if (!meanings->named.is_whole)
		dwarf_types_index_typedefs(p->types.reader);
	int rc = index_frames(p);
	if (rc >= 0)
		rc = cairn_sites_visit(p->sites, see_function, p, err);
	if (rc >= 0 && p->bodies.n)
		qsort(p->bodies.p, p->bodies.n, sizeof(*p->bodies.p), by_body);
	if (rc >= 0 && p->is_reduced_wanted) {
		rc = reduced_make(p, threads, &p->reduced, &p->n_reduced, err);
		if (rc < 0)
			return rc;
	}
	if (rc >= 0)
		rc = type_table_finish(&p->types, err);
	if (rc == -ERANGE)
		return err_set(err, rc, "more sites, types or names than 32 bits number");
	return rc == -ENOMEM ? err_nomem(err, "the sites of functions") : rc;
}

void site_table_fini(struct site_table *p)
{
	cairn_sites_close(p->sites);
	type_table_fini(&p->types);
	map_fini(&p->frame_of_die);
	map_fini(&p->known_address);
	map_fini(&p->known_names);
	VEC_FREE(&p->bodies);
	map_fini(&p->parameter_of);
	record_set_fini(&p->locations);
	record_set_fini(&p->prototypes);
	ranked_set_fini(&p->site_attrs);
	ranked_set_fini(&p->arguments);
	name_index_fini(&p->names);
	VEC_FREE(&p->parameters);
	VEC_FREE(&p->addresses);
	VEC_FREE(&p->starts);
	VEC_FREE(&p->frames);
	VEC_FREE(&p->data.v);
	VEC_FREE(&p->reduced.v);
	free(p->marks);
}

/* ---- sections ---- */

void encode_sites(const struct site_table *p, struct bytes *ret)
{
	put_records(&p->data, p->starts.p, p->starts.n, NULL, ret);
}

void encode_parameters(const struct site_table *p, struct bytes *ret)
{
	put_table(p->parameters.p, p->parameters.n / 2, 2, ret);
}

static int by_address(const void *a, const void *b)
{
	const struct address_name *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

void encode_addresses(struct site_table *p, struct bytes *ret)
{
	VEC(uint32_t) values = {0};
	bool ok = true;
	if (p->addresses.n)
		qsort(p->addresses.p, p->addresses.n, sizeof(*p->addresses.p), by_address);
	for (size_t i = 0; i < p->addresses.n; i++) {
		const struct address_name *a = &p->addresses.p[i];
		ok = ok && VEC_ADD(&values, (uint32_t)(a->at >> 32)) &&
		     VEC_ADD(&values, (uint32_t)a->at) && VEC_ADD(&values, a->name);
	}
	if (ok)
		put_table(values.p, p->addresses.n, 3, ret);
	ret->failed |= !ok;
	VEC_FREE(&values);
}
