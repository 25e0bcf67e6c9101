/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/otlp_tables.h"

#include <string.h>

static const pb_stack empty_stack = CAIRN_OTLP__STACK__INIT;
static const pb_attribute empty_attribute = CAIRN_OTLP__KEY_VALUE_AND_UNIT__INIT;

/* The first of each table is the empty one: 0 means "none" everywhere. */
void otlp_tables_init(struct otlp_tables *t)
{
	*t = (struct otlp_tables){0};
	t->failed = !VEC_ADD(&t->strings, "") ||
		    !VEC_ADD(&t->attributes, (pb_attribute *)&empty_attribute) ||
		    !VEC_ADD(&t->stacks, (pb_stack *)&empty_stack);
}

void otlp_tables_fini(struct otlp_tables *t)
{
	VEC_FREE(&t->strings);
	VEC_FREE(&t->attributes);
	VEC_FREE(&t->stacks);
	map_fini(&t->string_ids);
	map_fini(&t->attribute_ids);
	map_fini(&t->stack_ids);
	arena_fini(&t->arena);
}

void *otlp_take(struct otlp_tables *t, size_t n, size_t size)
{
	void *p = arena_array(&t->arena, n ? n : 1, size);

	t->failed |= !p;
	return p;
}

void *otlp_messages(struct otlp_tables *t, size_t n, size_t size)
{
	void **list = otlp_take(t, n, sizeof(*list));
	char *all = otlp_take(t, n, size);

	for (size_t i = 0; list && all && i < n; i++)
		list[i] = all + i * size;
	return t->failed ? NULL : list;
}

const char *otlp_text(struct otlp_tables *t, const char *text)
{
	const char *utf8 = profile_utf8(&t->arena, text);

	t->failed |= !utf8;
	return utf8 ? utf8 : "";
}

/* ---- things that are there once ---- */

typedef bool same_fn(const struct otlp_tables *t, uint64_t at, const void *key);

/* Its index; or 0 and the key of the map under which it may be put. */
static uint64_t find(const struct otlp_tables *t, const struct map *ids, uint64_t *hash,
		     same_fn *same, const void *key)
{
	uint64_t at;

	for (; map_get(ids, *hash, &at); ++*hash)
		if (same(t, at, key))
			return at;
	return 0;
}

static bool same_string(const struct otlp_tables *t, uint64_t at, const void *key)
{
	return !strcmp(t->strings.p[at], key);
}

int32_t otlp_string(struct otlp_tables *t, const char *text)
{
	const char *utf8 = text && *text ? otlp_text(t, text) : "";
	uint64_t hash = map_hash_str(utf8), at;

	if (!*utf8)
		return 0;
	at = find(t, &t->string_ids, &hash, same_string, utf8);
	if (at)
		return (int32_t)at;
	at = t->strings.n;
	if (!VEC_ADD(&t->strings, utf8) || map_put(&t->string_ids, hash, at) < 0)
		t->failed = true;
	return (int32_t)at;
}

static bool same_value(const pb_any_value *a, const pb_any_value *b)
{
	if (a->value_case != b->value_case)
		return false;
	if (a->value_case == CAIRN_OTLP__ANY_VALUE__VALUE_STRING_VALUE)
		return !strcmp(a->string_value, b->string_value);
	return a->value_case == CAIRN_OTLP__ANY_VALUE__VALUE_INT_VALUE
		       ? a->int_value == b->int_value
		       : a->bool_value == b->bool_value;
}

static bool same_attribute(const struct otlp_tables *t, uint64_t at, const void *key)
{
	const pb_attribute *a = t->attributes.p[at], *b = key;

	return a->key_strindex == b->key_strindex && a->unit_strindex == b->unit_strindex &&
	       same_value(a->value, b->value);
}

static uint64_t hash_of(const pb_attribute *a)
{
	const pb_any_value *v = a->value;
	uint64_t hash = v->value_case == CAIRN_OTLP__ANY_VALUE__VALUE_STRING_VALUE
				? map_hash_str(v->string_value)
			: v->value_case == CAIRN_OTLP__ANY_VALUE__VALUE_INT_VALUE
				? (uint64_t)v->int_value
				: 1;
	uint64_t parts[] = {hash, (uint64_t)v->value_case, (uint64_t)a->key_strindex,
			    (uint64_t)a->unit_strindex};

	return map_hash_bytes(parts, sizeof(parts));
}

static void add_attribute(struct otlp_tables *t, const pb_attribute *a, uint64_t hash)
{
	pb_attribute *own = otlp_take(t, 1, sizeof(*own));
	pb_any_value *value = otlp_take(t, 1, sizeof(*value));

	if (t->failed)
		return;
	*own = *a;
	*value = *a->value;
	own->value = value;
	t->failed = !VEC_ADD(&t->attributes, own) ||
		    map_put(&t->attribute_ids, hash, t->attributes.n - 1) < 0;
}

int32_t otlp_attribute(struct otlp_tables *t, const char *key, const pb_any_value *value,
		       const char *unit)
{
	pb_attribute a = CAIRN_OTLP__KEY_VALUE_AND_UNIT__INIT;
	uint64_t hash, at;

	a.key_strindex = otlp_string(t, key);
	a.value = (pb_any_value *)value;
	a.unit_strindex = otlp_string(t, unit);
	hash = hash_of(&a);
	at = find(t, &t->attribute_ids, &hash, same_attribute, &a);
	if (at)
		return (int32_t)at;
	add_attribute(t, &a, hash);
	return (int32_t)(t->attributes.n - 1);
}

/* ---- values ---- */

pb_any_value otlp_text_value(struct otlp_tables *t, const char *text)
{
	pb_any_value v = CAIRN_OTLP__ANY_VALUE__INIT;

	v.value_case = CAIRN_OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	v.string_value = (char *)otlp_text(t, text);
	return v;
}

pb_any_value otlp_number_value(int64_t number)
{
	pb_any_value v = CAIRN_OTLP__ANY_VALUE__INIT;

	v.value_case = CAIRN_OTLP__ANY_VALUE__VALUE_INT_VALUE;
	v.int_value = number;
	return v;
}

int32_t otlp_true(struct otlp_tables *t, const char *key)
{
	pb_any_value v = CAIRN_OTLP__ANY_VALUE__INIT;

	v.value_case = CAIRN_OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
	v.bool_value = true;
	return otlp_attribute(t, key, &v, "");
}

/* ---- stacks ---- */

struct stack_key {
	const int32_t *locations;
	size_t n;
};

static bool same_stack(const struct otlp_tables *t, uint64_t at, const void *key)
{
	const pb_stack *s = t->stacks.p[at];
	const struct stack_key *k = key;

	return s->n_location_indices == k->n &&
	       !memcmp(s->location_indices, k->locations, k->n * sizeof(*k->locations));
}

static void add_stack(struct otlp_tables *t, const struct stack_key *key, uint64_t hash)
{
	pb_stack *own = otlp_take(t, 1, sizeof(*own));

	if (t->failed)
		return;
	cairn_otlp__stack__init(own);
	own->location_indices = (int32_t *)key->locations;
	own->n_location_indices = key->n;
	t->failed = !VEC_ADD(&t->stacks, own) || map_put(&t->stack_ids, hash, t->stacks.n - 1) < 0;
}

/* Locations begin with 0 in the model, and with 1 in the table. */
int32_t otlp_stack(struct otlp_tables *t, const uint32_t *stack, size_t n)
{
	struct stack_key key = {.n = n};
	int32_t *locations = n ? otlp_take(t, n, sizeof(*locations)) : NULL;
	uint64_t hash, at;

	if (!locations)
		return 0;
	for (size_t i = 0; i < n; i++)
		locations[i] = (int32_t)(stack[i] + 1);
	key.locations = locations;
	hash = map_hash_bytes(locations, n * sizeof(*locations));
	at = find(t, &t->stack_ids, &hash, same_stack, &key);
	if (at)
		return (int32_t)at;
	add_stack(t, &key, hash);
	return (int32_t)(t->stacks.n - 1);
}
