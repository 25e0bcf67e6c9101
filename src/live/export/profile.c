/* SPDX-License-Identifier: BSD-2-Clause */
/* The model: each thing once, found again by the hash of its members. */
#include "export/profile_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Ids are 32 bits in samples; half of them leave room for sums of two. */
#define IDS_MAX (1u << 31)

/* ---- interning ---- */

typedef bool same_fn(const struct cairn_profile *p, uint64_t id, const void *key);

/*
 * The id that a key has, or false and the key of the map under which it may be put. Keys with one
 * hash take the next free one.
 */
static bool find(const struct cairn_profile *p, const struct map *ids, uint64_t hash, same_fn *same,
		 const void *key, uint64_t *ret)
{
	uint64_t id;

	for (; map_get(ids, hash, &id); hash++)
		if (same(p, id, key)) {
			*ret = id;
			return true;
		}
	*ret = hash;
	return false;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29);
}

/* Equal strings are one, so an address is enough. */
static uint64_t mix_string(uint64_t hash, const char *own)
{
	return mix(hash, (uintptr_t)own);
}

static bool same_string(const struct cairn_profile *p, uint64_t id, const void *key)
{
	return !strcmp(p->strings.p[id], key);
}

const char *profile_string(struct cairn_profile *p, const char *text)
{
	uint64_t at;
	const char *own;

	if (!text)
		text = "";
	if (find(p, &p->string_ids, map_hash_str(text), same_string, text, &at))
		return p->strings.p[at];
	own = arena_strdup(&p->arena, text);
	if (!own || !VEC_ADD(&p->strings, own) || map_put(&p->string_ids, at, p->strings.n - 1) < 0)
		return NULL;
	return own;
}

static int no_memory(struct cairn_err *err)
{
	return err_nomem(err, "a profile");
}

static int too_many(struct cairn_err *err, const char *what)
{
	return err_set(err, -ERANGE, "a profile may have at most %u %s", IDS_MAX, what);
}

/* An array of the profile, with the ids of its items by their hashes. */
struct kept {
	void **items;
	size_t *n, *cap, item_size;
	struct map *ids;
	const char *plural;
};

#define KEPT(array, map, plural)                                                                   \
	(&(struct kept){(void **)&(array).p, &(array).n, &(array).cap, sizeof(*(array).p), &(map), \
			plural})

/* Puts an item that find() did not find at the end; @hash is from there. */
static int keep(const struct kept *k, uint64_t hash, const void *item, uint32_t *ret,
		struct cairn_err *err)
{
	void *own;

	if (*k->n >= IDS_MAX)
		return too_many(err, k->plural);
	own = vec_push_bytes(k->items, k->n, k->cap, k->item_size);
	if (!own || map_put(k->ids, hash, *k->n - 1) < 0)
		return no_memory(err);
	memcpy(own, item, k->item_size);
	*ret = (uint32_t)*k->n - 1;
	return 0;
}

/* The index of an item, which is kept if it is new. */
static int find_or_keep(const struct cairn_profile *p, const struct kept *k, uint64_t hash,
			same_fn *same, const void *item, uint32_t *ret, struct cairn_err *err)
{
	uint64_t at;

	if (!find(p, k->ids, hash, same, item, &at))
		return keep(k, at, item, ret, err);
	*ret = (uint32_t)at;
	return 0;
}

/* ---- the whole ---- */

int cairn_profile_new(const struct cairn_profile_type *types, size_t n_types,
		      struct cairn_profile **ret, struct cairn_err *err)
{
	struct cairn_profile *p;

	*ret = NULL;
	if (n_types < 1 || n_types > 64)
		return err_set(err, -EINVAL, "a profile has 1 to 64 types of values, not %zu",
			       n_types);
	p = calloc(1, sizeof(*p));
	if (!p)
		return no_memory(err);
	p->types = arena_array(&p->arena, n_types, sizeof(*p->types));
	for (size_t i = 0; p->types && i < n_types; i++) {
		p->types[i].type = profile_string(p, types[i].type);
		p->types[i].unit = profile_string(p, types[i].unit);
		if (p->types[i].type && p->types[i].unit)
			p->n_types++;
	}
	if (p->n_types < n_types ||
	    cairn_profile_set_run(p, &(struct cairn_profile_run){0}, NULL) < 0) {
		cairn_profile_close(p);
		return no_memory(err);
	}
	*ret = p;
	return 0;
}

void cairn_profile_close(struct cairn_profile *p)
{
	if (!p)
		return;
	VEC_FREE(&p->strings);
	VEC_FREE(&p->mappings);
	VEC_FREE(&p->functions);
	VEC_FREE(&p->locations);
	VEC_FREE(&p->samples);
	VEC_FREE(&p->stacks);
	VEC_FREE(&p->labels);
	VEC_FREE(&p->values);
	VEC_FREE(&p->moments);
	VEC_FREE(&p->moment_values);
	VEC_FREE(&p->comments);
	map_fini(&p->string_ids);
	map_fini(&p->mapping_ids);
	map_fini(&p->function_ids);
	map_fini(&p->location_ids);
	map_fini(&p->sample_ids);
	arena_fini(&p->arena);
	free(p);
}

int cairn_profile_set_run(struct cairn_profile *p, const struct cairn_profile_run *run,
			  struct cairn_err *err)
{
	const char *type = profile_string(p, run->each.type);
	const char *unit = profile_string(p, run->each.unit);

	if (!type || !unit)
		return no_memory(err);
	p->run = *run;
	p->run.each = (struct cairn_profile_type){type, unit};
	return 0;
}

struct cairn_profile_run cairn_profile_run(const struct cairn_profile *p)
{
	return p->run;
}

/* ---- mappings, functions, locations ---- */

static bool same_mapping(const struct cairn_profile *p, uint64_t id, const void *key)
{
	const struct cairn_profile_mapping *a = &p->mappings.p[id], *b = key;

	return a->start == b->start && a->limit == b->limit && a->offset == b->offset &&
	       a->path == b->path && a->build_id == b->build_id && a->code == b->code &&
	       a->is_linked == b->is_linked;
}

int cairn_profile_add_mapping(struct cairn_profile *p, const struct cairn_profile_mapping *m,
			      uint32_t *ret, struct cairn_err *err)
{
	struct cairn_profile_mapping own = *m;
	uint64_t hash;
	int rc;

	own.path = profile_string(p, m->path);
	own.build_id = profile_string(p, m->build_id);
	if (!own.path || !own.build_id)
		return no_memory(err);
	hash = mix_string(mix(mix(m->start, m->limit), m->offset), own.path);
	hash = mix(mix_string(hash, own.build_id), m->code);
	rc = find_or_keep(p, KEPT(p->mappings, p->mapping_ids, "mappings"), hash, same_mapping,
			  &own, ret, err);
	if (rc == 0)
		++*ret;
	return rc;
}

static bool same_function(const struct cairn_profile *p, uint64_t id, const void *key)
{
	const struct cairn_profile_function *a = &p->functions.p[id], *b = key;

	return a->name == b->name && a->linkage_name == b->linkage_name && a->file == b->file &&
	       a->line == b->line;
}

int cairn_profile_add_function(struct cairn_profile *p, const struct cairn_profile_function *f,
			       uint32_t *ret, struct cairn_err *err)
{
	struct cairn_profile_function own = {.name = profile_string(p, f->name),
					     .linkage_name = profile_string(p, f->linkage_name),
					     .file = profile_string(p, f->file),
					     .line = f->line};
	uint64_t hash;
	int rc;

	if (!own.name || !own.linkage_name || !own.file)
		return no_memory(err);
	hash = mix_string(mix_string(mix_string(own.line, own.name), own.linkage_name), own.file);
	rc = find_or_keep(p, KEPT(p->functions, p->function_ids, "functions"), hash, same_function,
			  &own, ret, err);
	if (rc == 0)
		++*ret;
	return rc;
}

static bool same_location(const struct cairn_profile *p, uint64_t id, const void *key)
{
	const struct cairn_profile_location *a = &p->locations.p[id], *b = key;

	if (a->address != b->address || a->mapping != b->mapping || a->n_lines != b->n_lines ||
	    a->symbol != b->symbol)
		return false;
	for (size_t i = 0; i < a->n_lines; i++)
		if (a->lines[i].function != b->lines[i].function ||
		    a->lines[i].line != b->lines[i].line)
			return false;
	return true;
}

static int check_location(const struct cairn_profile *p, const struct cairn_profile_location *l,
			  struct cairn_err *err)
{
	if (l->mapping > p->mappings.n)
		return err_set(err, -EINVAL, "a profile has no mapping %" PRIu32, l->mapping);
	for (size_t i = 0; i < l->n_lines; i++)
		if (!l->lines[i].function || l->lines[i].function > p->functions.n)
			return err_set(err, -EINVAL, "a profile has no function %" PRIu32,
				       l->lines[i].function);
	return 0;
}

int cairn_profile_add_location(struct cairn_profile *p, const struct cairn_profile_location *l,
			       uint32_t *ret, struct cairn_err *err)
{
	uint64_t hash = mix(mix(mix(l->address, l->mapping), l->n_lines), l->symbol), at;
	struct cairn_profile_location own = *l;
	struct cairn_profile_line *lines;
	int rc = check_location(p, l, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < l->n_lines; i++)
		hash = mix(mix(hash, l->lines[i].function), l->lines[i].line);
	if (find(p, &p->location_ids, hash, same_location, l, &at)) {
		*ret = (uint32_t)at;
		return 0;
	}
	lines = arena_array(&p->arena, l->n_lines ? l->n_lines : 1, sizeof(*lines));
	if (!lines)
		return no_memory(err);
	if (l->n_lines)
		memcpy(lines, l->lines, l->n_lines * sizeof(*lines));
	own.lines = lines;
	return keep(KEPT(p->locations, p->location_ids, "locations"), at, &own, ret, err);
}

/* ---- samples ---- */

static bool same_sample(const struct cairn_profile *p, uint64_t id, const void *key)
{
	const struct kept_sample *a = &p->samples.p[id];
	const struct cairn_profile_sample *b = key;

	if (a->n_stack != b->n_stack || a->n_labels != b->n_labels ||
	    (a->n_stack &&
	     memcmp(p->stacks.p + a->stack, b->stack, a->n_stack * sizeof(*b->stack)) != 0))
		return false;
	for (size_t i = 0; i < a->n_labels; i++) {
		const struct cairn_profile_label *x = &p->labels.p[a->labels + i];
		const struct cairn_profile_label *y = &b->labels[i];

		if (x->key != y->key || x->text != y->text || x->number != y->number ||
		    x->unit != y->unit)
			return false;
	}
	return true;
}

/* The labels with the profile's own strings, at the end of the array; not counted yet. */
static struct cairn_profile_label *own_labels(struct cairn_profile *p,
					      const struct cairn_profile_sample *s)
{
	struct cairn_profile_label *own;

	if (!VEC_RESERVE(&p->labels, s->n_labels ? s->n_labels : 1))
		return NULL;
	own = p->labels.p + p->labels.n;
	for (size_t i = 0; i < s->n_labels; i++) {
		own[i] = (struct cairn_profile_label){
			.key = profile_string(p, s->labels[i].key),
			.text = profile_string(p, s->labels[i].text),
			.number = s->labels[i].number,
			.unit = profile_string(p, s->labels[i].unit),
		};
		if (!own[i].key || !own[i].text || !own[i].unit)
			return NULL;
	}
	return own;
}

static uint64_t hash_sample(const struct cairn_profile_sample *s)
{
	uint64_t hash = mix(s->n_stack, s->n_labels);

	for (size_t i = 0; i < s->n_stack; i++)
		hash = mix(hash, s->stack[i]);
	for (size_t i = 0; i < s->n_labels; i++)
		hash = mix_string(
			mix_string(mix(hash, (uint64_t)s->labels[i].number), s->labels[i].key),
			s->labels[i].text);
	return hash;
}

/* The labels of @s are the last of the array already. */
static int keep_sample(struct cairn_profile *p, const struct cairn_profile_sample *s, uint64_t at,
		       struct cairn_err *err)
{
	struct kept_sample kept = {.stack = (uint32_t)p->stacks.n,
				   .n_stack = (uint32_t)s->n_stack,
				   .labels = (uint32_t)p->labels.n,
				   .n_labels = (uint32_t)s->n_labels};

	if (p->samples.n >= IDS_MAX || p->stacks.n + s->n_stack >= UINT32_MAX ||
	    p->labels.n + s->n_labels >= UINT32_MAX)
		return too_many(err, "samples, or twice as many frames or labels in all");
	if (!VEC_RESERVE(&p->stacks, s->n_stack ? s->n_stack : 1) ||
	    !VEC_RESERVE(&p->values, p->n_types) || !VEC_ADD(&p->samples, kept))
		return no_memory(err);
	if (map_put(&p->sample_ids, at, p->samples.n - 1) < 0) {
		p->samples.n--;
		return no_memory(err);
	}
	if (s->n_stack)
		memcpy(p->stacks.p + p->stacks.n, s->stack, s->n_stack * sizeof(*s->stack));
	memcpy(p->values.p + p->values.n, s->values, p->n_types * sizeof(*s->values));
	p->stacks.n += s->n_stack;
	p->labels.n += s->n_labels;
	p->values.n += p->n_types;
	return 0;
}

int profile_add_value(int64_t *to, int64_t add, struct cairn_err *err)
{
	if (__builtin_add_overflow(*to, add, to))
		return err_set(err, -ERANGE, "a sum of a profile's values exceeds 64 bits");
	return 0;
}

/* All values or, at an overflow, none. */
static int add_values(int64_t *to, const int64_t *values, size_t n, struct cairn_err *err)
{
	int64_t sum[64];

	for (size_t i = 0; i < n; i++) {
		sum[i] = to[i];
		if (profile_add_value(&sum[i], values[i], err) < 0)
			return -ERANGE;
	}
	memcpy(to, sum, n * sizeof(*to));
	return 0;
}

int cairn_profile_add_sample(struct cairn_profile *p, const struct cairn_profile_sample *s,
			     struct cairn_err *err)
{
	struct cairn_profile_sample own = *s;
	uint64_t at;

	for (size_t i = 0; i < s->n_stack; i++)
		if (s->stack[i] >= p->locations.n)
			return err_set(err, -EINVAL, "a profile has no location %" PRIu32,
				       s->stack[i]);
	own.labels = own_labels(p, s);
	if (!own.labels)
		return no_memory(err);
	p->last_sample = p->samples.n;
	if (!find(p, &p->sample_ids, hash_sample(&own), same_sample, &own, &at))
		return keep_sample(p, &own, at, err);
	p->last_sample = at;
	return add_values(p->values.p + at * p->n_types, s->values, p->n_types, err);
}

/* ---- reading ---- */

size_t cairn_profile_n_types(const struct cairn_profile *p)
{
	return p->n_types;
}

const struct cairn_profile_type *cairn_profile_type(const struct cairn_profile *p, size_t i)
{
	return i < p->n_types ? &p->types[i] : NULL;
}

size_t cairn_profile_n_samples(const struct cairn_profile *p)
{
	return p->samples.n;
}

struct cairn_profile_sample cairn_profile_sample(const struct cairn_profile *p, size_t i)
{
	const struct kept_sample *s;

	if (i >= p->samples.n)
		return (struct cairn_profile_sample){0};
	s = &p->samples.p[i];
	return (struct cairn_profile_sample){
		.stack = p->stacks.p + s->stack,
		.n_stack = s->n_stack,
		.values = p->values.p + i * p->n_types,
		.labels = p->labels.p + s->labels,
		.n_labels = s->n_labels,
	};
}

uint32_t cairn_profile_n_locations(const struct cairn_profile *p)
{
	return (uint32_t)p->locations.n;
}

const struct cairn_profile_location *cairn_profile_location(const struct cairn_profile *p,
							    uint32_t id)
{
	return id < p->locations.n ? &p->locations.p[id] : NULL;
}

const struct cairn_profile_function *cairn_profile_function(const struct cairn_profile *p,
							    uint32_t id)
{
	return id && id <= p->functions.n ? &p->functions.p[id - 1] : NULL;
}

const struct cairn_profile_mapping *cairn_profile_mapping(const struct cairn_profile *p,
							  uint32_t id)
{
	return id && id <= p->mappings.n ? &p->mappings.p[id - 1] : NULL;
}

enum cairn_profile_code profile_code(const struct cairn_profile *p,
				     const struct cairn_profile_location *l)
{
	const struct cairn_profile_mapping *m = cairn_profile_mapping(p, l->mapping);

	return m ? m->code : CAIRN_PROFILE_USER;
}

char *profile_unknown_name(const struct cairn_profile *p, const struct cairn_profile_location *l)
{
	const struct cairn_profile_mapping *m = cairn_profile_mapping(p, l->mapping);
	const char *path = m && *m->path ? m->path : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;
	char *name = NULL;
	int n;

	if (path)
		n = asprintf(&name, "%s+0x%" PRIx64, slash && slash[1] ? slash + 1 : path,
			     l->address - m->start + m->offset);
	else
		n = asprintf(&name, "0x%" PRIx64, l->address);
	return n < 0 ? NULL : name;
}

int profile_check_type(const struct cairn_profile *p, size_t type, struct cairn_err *err)
{
	return type < p->n_types ? 0
				 : err_set(err, -EINVAL,
					   "the profile has %zu types of values, so no number %zu",
					   p->n_types, type);
}
