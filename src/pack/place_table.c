/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions and their places into bytes; format.h says what they mean
 *
 * Where a copy stands (its chain of calls, what contains it) is what its frame says already, so a place needs the
 * frame's number only. That is checked for each: where the two differ, the chain is written in full. Locations repeat
 * (an argument in %rdi is the same everywhere), so each is written once.
 */
#include "pack/place_table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "loc/provider.h"
#include "loc/spec.h"
#include "pack/name_hash.h"

/* ---- strings, types, locations ---- */

static int put_string(struct place_table *p, struct bytes *b, const char *string)
{
	uint32_t off;
	int rc = strings_add(p->strings, string, &off);
	put_uleb(b, off);
	return rc;
}

static int put_type_number(struct place_table *p, struct bytes *b, uint32_t id)
{
	uint32_t number = 0;
	int rc = type_table_add(&p->types, id, &number);
	put_uleb(b, number);
	return rc;
}

/* What the text of a location calls an address must be known without symbols, too. */
static int note_address(struct place_table *p, uint64_t at)
{
	char name[1024];
	uint64_t known;
	struct named_address a = {.at = at};
	if (map_get(&p->known_address, at, &known) ||
	    !p->sites->ops->symbol(p->sites, (struct cairn_vaddr){at}, name, sizeof(name)))
		return 0;
	int rc = strings_add(p->strings, name, &a.name);
	if (rc < 0)
		return rc;
	return VEC_ADD(&p->addresses, a) ? map_put(&p->known_address, at, 1) : -ENOMEM;
}

static int put_piece(struct place_table *p, const struct cairn_piece *piece, struct bytes *b)
{
	int rc = 0;
	put_u8(b, (uint8_t)piece->kind);
	put_uleb(b, piece->off);
	put_uleb(b, piece->size);
	put_uleb(b, piece->n_steps);
	for (uint32_t i = 0; rc >= 0 && i < piece->n_steps; i++) {
		const struct cairn_loc_step *s = &piece->steps[i];
		put_u8(b, s->op);
		put_u8(b, (uint8_t)(s->operand | s->size << 4));
		put_u8(b, s->reg);
		put_sleb(b, s->imm);
		if (s->op == CAIRN_LOC_ADDR)
			rc = note_address(p, (uint64_t)s->imm);
	}
	if (piece->kind == CAIRN_PIECE_BYTES)
		put_bytes(b, piece->bytes, piece->size);
	return rc;
}

static int add_location(struct place_table *p, const struct cairn_location *loc, uint32_t *ret)
{
	struct bytes *b = &p->scratch;
	uint64_t known;
	int rc = 0;
	b->v.n = 0;
	put_u8(b, (uint8_t)loc->why);
	put_uleb(b, loc->n_pieces);
	for (uint32_t i = 0; rc >= 0 && i < loc->n_pieces; i++)
		rc = put_piece(p, &loc->pieces[i], b);
	if (rc < 0 || b->failed)
		return rc < 0 ? rc : -ENOMEM;
	uint64_t key = map_hash_bytes(b->v.p, b->v.n);
	for (; map_get(&p->location_of, key, &known); key++)
		if (p->locations.v.n - known >= b->v.n && !memcmp(p->locations.v.p + known, b->v.p, b->v.n)) {
			*ret = (uint32_t)known;
			return 0;
		}
	*ret = (uint32_t)p->locations.v.n;
	put_bytes(&p->locations, b->v.p, b->v.n);
	if (p->locations.v.n > UINT32_MAX)
		return -ERANGE;
	return p->locations.failed ? -ENOMEM : map_put(&p->location_of, key, *ret);
}

/* ---- where a place stands ---- */

static bool same_string(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : !a == !b;
}

/* The unit that has frame @number. */
static size_t unit_of(const struct joined *j, uint32_t number)
{
	size_t lo = 0, hi = j->n_units;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;
		if (j->numbers[mid].first_frame <= number)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static const char *name_of(const struct unit_facts *f, const struct unit_frame *frame)
{
	return frame->function == NO_FUNCTION ? NULL : f->functions.p[frame->function].name;
}

/* The frames from @number outwards say the same as the place. */
static bool frame_says(const struct joined *j, uint32_t number, const struct cairn_site *s)
{
	size_t unit = unit_of(j, number);
	const struct unit_facts *f = &j->units[unit];
	const struct unit_frame *frame = &f->frames.p[number - j->numbers[unit].first_frame];
	for (uint32_t i = 0; i < s->n_chain; i++) {
		const struct cairn_inlined_call *call = &s->chain[i];
		if (frame->parent == NO_FRAME || !same_string(name_of(f, frame), call->function) ||
		    !same_string(f->files.p[frame->call_file], call->call_file) || frame->call_line != call->call_line ||
		    frame->call_column != call->call_column)
			return false;
		frame = &f->frames.p[frame->parent];
	}
	return frame->parent == NO_FRAME && same_string(name_of(f, frame), s->container);
}

static int put_chain(struct place_table *p, const struct cairn_site *s, struct bytes *b)
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

/* ---- places ---- */

/* Of the place before. */
struct before {
	uint64_t at, die, off;
	uint32_t frame;
};

static bool args_are_params(const struct cairn_function *f, const struct cairn_site *s)
{
	if (s->n_args != f->n_params)
		return false;
	for (uint32_t i = 0; i < s->n_args; i++)
		if (s->args[i].type != f->params[i].type || !same_string(s->args[i].name, f->params[i].name))
			return false;
	return true;
}

static int put_args(struct place_table *p, const struct cairn_site *s, bool own, struct bytes *b)
{
	int rc = 0;
	if (own)
		put_uleb(b, s->n_args);
	for (uint32_t i = 0; rc >= 0 && i < s->n_args; i++) {
		uint32_t location = 0;
		if (own)
			rc = put_string(p, b, s->args[i].name);
		if (own && rc >= 0)
			rc = put_type_number(p, b, s->args[i].type);
		if (rc >= 0)
			rc = add_location(p, &s->args[i].loc, &location);
		put_uleb(b, location);
	}
	return rc;
}

static int put_place(struct place_table *p, const struct cairn_function *f, const struct cairn_site *s,
		     struct before *before)
{
	struct bytes *b = &p->data;
	uint64_t frame = 0, off = s->off.v - s->at.v;
	bool has_frame = map_get(&p->frame_of_die, s->die, &frame) && frame_says(p->joined, (uint32_t)frame, s);
	bool own_args = !args_are_params(f, s);
	bool new_off = s->has_off && off != before->off;
	put_u8(b, (uint8_t)((s->has_off ? PLACE_HAS_OFF : 0) | (new_off ? PLACE_NEW_OFF : 0) |
			    (s->hazard ? PLACE_HAZARD : 0) | (s->count_doubts || s->n_behind ? PLACE_DOUBTS : 0) |
			    (has_frame ? 0 : PLACE_OWN_CHAIN) | (own_args ? PLACE_OWN_ARGS : 0)));
	put_u8(b, (uint8_t)(s->kind | s->rule << 2));
	put_sleb(b, (int64_t)(s->at.v - before->at));
	put_sleb(b, (int64_t)(s->die - before->die));
	put_sleb(b, s->container_off);
	if (new_off)
		put_sleb(b, (int64_t)off);
	if (s->hazard)
		put_uleb(b, s->hazard);
	if (s->count_doubts || s->n_behind) {
		put_uleb(b, s->count_doubts);
		put_uleb(b, s->n_behind);
	}
	int rc = 0;
	if (has_frame)
		put_uleb(b, fold((uint32_t)frame - before->frame));
	else
		rc = put_chain(p, s, b);
	*before = (struct before){s->at.v, s->die, s->has_off ? off : before->off,
				  has_frame ? (uint32_t)frame : before->frame};
	return rc < 0 ? rc : put_args(p, s, own_args, b);
}

/* ---- functions ---- */

static int add_hash(struct place_table *p, const char *name, uint32_t function)
{
	if (map_put(&p->known_names, map_hash_str(name), 1) < 0)
		return -ENOMEM;
	return VEC_ADD(&p->hashes, (uint64_t)pack_name_hash(name) << 32 | function) ? 0 : -ENOMEM;
}

/* The name as a user may type its last part: also without template arguments. */
static int add_hashes(struct place_table *p, const struct cairn_function *f, uint32_t function)
{
	const char *base = spec_base_name(f->name);
	const char *open = strchr(base, '<');
	int rc = add_hash(p, base, function);
	if (rc >= 0 && open && open > base && strncmp(base, "operator", 8)) {
		char *plain = strndup(base, (size_t)(open - base));
		rc = plain ? add_hash(p, plain, function) : -ENOMEM;
		free(plain);
	}
	if (rc >= 0 && f->linkage_name)
		rc = add_hash(p, f->linkage_name, function);
	return rc;
}

static int put_function(struct place_table *p, const struct cairn_function *f)
{
	struct bytes *b = &p->data;
	int rc = put_string(p, b, f->name);
	if (rc >= 0)
		rc = put_string(p, b, f->linkage_name);
	if (rc >= 0)
		rc = put_string(p, b, f->decl_file);
	put_uleb(b, f->decl_line);
	put_u8(b, (uint8_t)((f->variadic ? FUNCTION_VARIADIC : 0) | (f->params_unknown ? FUNCTION_PARAMS_UNKNOWN : 0)));
	if (rc >= 0)
		rc = put_type_number(p, b, f->return_type);
	put_uleb(b, f->n_without_code);
	put_uleb(b, f->n_params);
	for (uint32_t i = 0; rc >= 0 && i < f->n_params; i++) {
		rc = put_string(p, b, f->params[i].name);
		if (rc >= 0)
			rc = put_type_number(p, b, f->params[i].type);
	}
	put_uleb(b, f->n_sites);
	return rc;
}

static int see_function(void *ctx, const struct cairn_function *f)
{
	struct place_table *p = ctx;
	struct before before = {.at = p->span.base};
	uint32_t number = (uint32_t)p->starts.n;
	if (p->data.v.n > UINT32_MAX / 2)
		return -ERANGE;
	if (!VEC_ADD(&p->starts, (uint32_t)p->data.v.n))
		return -ENOMEM;
	int rc = add_hashes(p, f, number);
	if (rc >= 0)
		rc = put_function(p, f);
	for (uint32_t i = 0; rc >= 0 && i < f->n_sites; i++)
		rc = put_place(p, f, &f->sites[i], &before);
	for (uint32_t i = 0; rc >= 0 && i < f->n_sites; i++)
		if (f->sites[i].kind == CAIRN_SITE_ENTRY &&
		    !VEC_ADD(&p->bodies, ((struct body){f->sites[i].at.v, number})))
			rc = -ENOMEM;
	p->n_sites += f->n_sites;
	return rc < 0 ? rc : p->data.failed ? -ENOMEM : 0;
}

static int index_frames(struct place_table *p)
{
	const struct joined *j = p->joined;
	for (size_t u = 0; u < j->n_units; u++)
		for (uint32_t i = 0; i < j->units[u].frames.n; i++)
			if (map_put(&p->frame_of_die, j->units[u].frames.p[i].die, j->numbers[u].first_frame + i) < 0)
				return -ENOMEM;
	return 0;
}

static int by_body(const void *a, const void *b)
{
	const struct body *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

int place_table_make(struct place_table *p, const struct cairn_binary *bin, unsigned int threads, const struct joined *j,
		  struct code_span span, struct strings *strings, struct cairn_err *err)
{
	struct cairn_sites_opts opts = {.size = sizeof(opts), .threads = threads};
	p->joined = j;
	p->span = span;
	p->strings = strings;
	int rc = cairn_sites_open(bin, &opts, &p->sites, err);
	if (rc < 0)
		return rc;
	p->types.graph = cairn_sites_types(p->sites);
	p->types.strings = strings;
	rc = index_frames(p);
	if (rc >= 0)
		rc = cairn_sites_visit(p->sites, see_function, p, err);
	if (rc >= 0 && p->bodies.n)
		qsort(p->bodies.p, p->bodies.n, sizeof(*p->bodies.p), by_body);
	if (rc == -ERANGE)
		return err_set(err, rc, "more places, types or names than 32 bits number");
	return rc == -ENOMEM ? err_nomem(err, "the places of functions") : rc;
}

void place_table_fini(struct place_table *p)
{
	cairn_sites_close(p->sites);
	type_table_fini(&p->types);
	map_fini(&p->frame_of_die);
	map_fini(&p->known_names);
	VEC_FREE(&p->bodies);
	map_fini(&p->location_of);
	map_fini(&p->known_address);
	VEC_FREE(&p->locations.v);
	VEC_FREE(&p->scratch.v);
	VEC_FREE(&p->addresses);
	VEC_FREE(&p->starts);
	VEC_FREE(&p->hashes);
	VEC_FREE(&p->data.v);
}

/* ---- sections ---- */

/* Number of records, where each starts, the end of the last, and the records. */
static void put_records(const uint32_t *starts, size_t n, const struct bytes *data, struct bytes *ret)
{
	put_u32(ret, (uint32_t)n);
	put_bytes(ret, starts, n * sizeof(*starts));
	put_u32(ret, (uint32_t)data->v.n);
	put_bytes(ret, data->v.p, data->v.n);
	ret->failed |= data->failed;
}

void encode_places(const struct place_table *p, struct bytes *ret)
{
	put_records(p->starts.p, p->starts.n, &p->data, ret);
}

void encode_types(const struct place_table *p, struct bytes *ret)
{
	put_records(p->types.starts.p, p->types.starts.n, &p->types.data, ret);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* As .cairn.names: number of buckets, where each begins, functions. */
void encode_place_names(struct place_table *p, struct bytes *ret)
{
	uint32_t n_buckets = 1, at = 0;
	while (n_buckets < p->hashes.n / 4 && n_buckets < 1u << 30)
		n_buckets *= 2;
	for (size_t i = 0; i < p->hashes.n; i++)
		p->hashes.p[i] &= (uint64_t)(n_buckets - 1) << 32 | UINT32_MAX;
	if (p->hashes.n)
		qsort(p->hashes.p, p->hashes.n, sizeof(*p->hashes.p), by_number);
	put_u32(ret, n_buckets);
	for (uint64_t bucket = 0; bucket <= n_buckets; bucket++) {
		while (at < p->hashes.n && p->hashes.p[at] >> 32 < bucket)
			at++;
		put_u32(ret, at);
	}
	for (size_t i = 0; i < p->hashes.n; i++)
		put_u32(ret, (uint32_t)p->hashes.p[i]);
}

static int by_address(const void *a, const void *b)
{
	const struct named_address *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

void encode_addresses(struct place_table *p, struct bytes *ret)
{
	if (p->addresses.n)
		qsort(p->addresses.p, p->addresses.n, sizeof(*p->addresses.p), by_address);
	for (size_t i = 0; i < p->addresses.n; i++) {
		struct pack_address a = {.at = p->addresses.p[i].at, .name = p->addresses.p[i].name};
		put_bytes(ret, &a, sizeof(a));
	}
}
