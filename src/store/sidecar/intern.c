/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar/intern.h"

#include <errno.h>
#include <string.h>

int strings_init(struct strings *s)
{
	map_init(&s->by_hash);
	put_u8(&s->text, 0);
	return s->text.failed ? -ENOMEM : 0;
}

void strings_fini(struct strings *s)
{
	VEC_FREE(&s->text.v);
	map_fini(&s->by_hash);
}

int strings_add(struct strings *s, const char *string, uint32_t *ret)
{
	uint64_t at;
	*ret = 0;
	if (!string || !*string)
		return 0;
	uint64_t key = map_hash_str(string);
	for (; map_get(&s->by_hash, key, &at); key++) {
		if (!strcmp((const char *)s->text.v.p + at, string)) {
			*ret = (uint32_t)at;
			return 0;
		}
	}
	size_t n = strlen(string) + 1;
	if (n > UINT32_MAX - s->text.v.n)
		return -ERANGE;
	*ret = (uint32_t)s->text.v.n;
	put_bytes(&s->text, string, n);
	return s->text.failed ? -ENOMEM : map_put(&s->by_hash, key, *ret);
}

/* ---- ranking ---- */

void ranking_fini(struct ranking *r)
{
	VEC_FREE(&r->uses);
	VEC_FREE(&r->order);
	VEC_FREE(&r->rank);
}

static int by_use(const void *a, const void *b, void *ctx)
{
	const struct ranking *r = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (r->uses.p[x] != r->uses.p[y])
		return r->uses.p[x] > r->uses.p[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

int ranking_make(struct ranking *r)
{
	r->order.n = r->rank.n = 0;
	for (uint32_t i = 0; i < r->uses.n; i++)
		if (!VEC_ADD(&r->order, i) || !VEC_ADD(&r->rank, 0))
			return -ENOMEM;
	if (r->order.n > 2)
		qsort_r(r->order.p + 1, r->order.n - 1, sizeof(*r->order.p), by_use, r);
	for (uint32_t i = 0; i < r->order.n; i++)
		r->rank.p[r->order.p[i]] = i;
	return 0;
}

/* ---- files ---- */

static int file_table_grow(struct file_table *t, uint32_t path)
{
	return VEC_ADD(&t->path, path) && VEC_ADD(&t->ranking.uses, 0) ? 0 : -ENOMEM;
}

int file_table_add(struct file_table *t, struct strings *s, const char *path, uint32_t *ret)
{
	uint32_t string;
	uint64_t known;
	int rc = t->path.n ? 0 : file_table_grow(t, 0);
	if (rc >= 0)
		rc = strings_add(s, path, &string);
	if (rc < 0)
		return rc;
	*ret = 0;
	if (!string)
		return 0;
	if (map_get(&t->by_path, string, &known)) {
		*ret = (uint32_t)known;
		return 0;
	}
	*ret = (uint32_t)t->path.n;
	rc = file_table_grow(t, string);
	return rc < 0 ? rc : map_put(&t->by_path, string, *ret);
}

void file_table_fini(struct file_table *t)
{
	VEC_FREE(&t->path);
	map_fini(&t->by_path);
	ranking_fini(&t->ranking);
}

/* ---- functions ---- */

static int function_table_grow(struct function_table *t, const struct function_entry *f)
{
	return VEC_ADD(&t->v, *f) && VEC_ADD(&t->ranking.uses, 0) ? 0 : -ENOMEM;
}

int function_table_add(struct function_table *t, const struct function_entry *f, uint32_t *ret)
{
	uint64_t known, key = map_hash_bytes(f, sizeof(*f));
	if (!t->v.n && function_table_grow(t, &(struct function_entry){0}) < 0)
		return -ENOMEM;
	for (; map_get(&t->by_key, key, &known); key++) {
		if (!memcmp(&t->v.p[known], f, sizeof(*f))) {
			*ret = (uint32_t)known;
			return 0;
		}
	}
	*ret = (uint32_t)t->v.n;
	int rc = function_table_grow(t, f);
	return rc < 0 ? rc : map_put(&t->by_key, key, *ret);
}

void function_table_fini(struct function_table *t)
{
	VEC_FREE(&t->v);
	map_fini(&t->by_key);
	ranking_fini(&t->ranking);
}
