/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar/name_index.h"

#include <errno.h>

#include "sidecar/bits_out.h"

/*
 * Names per bucket, on average: more make a lookup compare more strings, less make the index
 * larger.
 */
enum { NAMES_PER_BUCKET = 4 };

int name_index_add(struct name_index *x, const char *name, uint32_t number)
{
	return VEC_ADD(&x->hashes, (uint64_t)sidecar_name_hash(name) << 32 | number) ? 0 : -ENOMEM;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Hashes to buckets; in order, and each once. Returns the number of buckets, a power of two. */
static uint32_t fill_buckets(struct name_index *x)
{
	uint32_t n_buckets = 1;
	size_t n = 0;
	while (n_buckets < x->hashes.n / NAMES_PER_BUCKET && n_buckets < 1u << 30)
		n_buckets *= 2;
	for (size_t i = 0; i < x->hashes.n; i++)
		x->hashes.p[i] &= (uint64_t)(n_buckets - 1) << 32 | UINT32_MAX;
	if (x->hashes.n)
		qsort(x->hashes.p, x->hashes.n, sizeof(*x->hashes.p), by_number);
	for (size_t i = 0; i < x->hashes.n; i++)
		if (!n || x->hashes.p[n - 1] != x->hashes.p[i])
			x->hashes.p[n++] = x->hashes.p[i];
	x->hashes.n = n;
	return n_buckets;
}

void name_index_put(struct name_index *x, struct bytes *ret)
{
	uint32_t n_buckets = fill_buckets(x), at = 0, n = (uint32_t)x->hashes.n;
	uint32_t *values = malloc(((size_t)n_buckets + 1 + n) * sizeof(*values));
	if (!values) {
		ret->failed = true;
		return;
	}
	for (uint64_t bucket = 0; bucket <= n_buckets; bucket++) {
		while (at < n && x->hashes.p[at] >> 32 < bucket)
			at++;
		values[bucket] = at;
	}
	for (uint32_t i = 0; i < n; i++)
		values[n_buckets + 1 + i] = (uint32_t)x->hashes.p[i];
	put_table(values, (size_t)n_buckets + 1, 1, ret);
	put_table(values + n_buckets + 1, n, 1, ret);
	free(values);
}

void name_index_fini(struct name_index *x)
{
	VEC_FREE(&x->hashes);
}
