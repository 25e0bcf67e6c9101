/* SPDX-License-Identifier: BSD-2-Clause */
/* The plain tables: files, functions, symbols, and the index of names. */
#include <errno.h>

#include "pack/encode.h"
#include "pack/name_hash.h"

void encode_files(const struct joined *j, struct bytes *ret)
{
	for (size_t i = 0; i < j->files.path.n; i++)
		put_u32(ret, j->files.path.p[j->files.ranking.order.p[i]]);
}

void encode_functions(const struct joined *j, struct bytes *ret)
{
	for (size_t i = 0; i < j->functions.v.n; i++) {
		struct pack_function f = j->functions.v.p[j->functions.ranking.order.p[i]];
		f.file = j->files.ranking.rank.p[f.file];
		put_bytes(ret, &f, sizeof(f));
	}
}

/* ---- names ---- */

/* An entry of the index: the bucket its hash falls into, and the function. */
struct entry {
	uint32_t bucket, function;
};

static int by_bucket(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->bucket != y->bucket)
		return x->bucket < y->bucket ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

static uint32_t bucket_of(const struct joined *j, uint32_t string, uint32_t n_buckets)
{
	return pack_name_hash((const char *)j->strings->text.v.p + string) & (n_buckets - 1);
}

/* Buckets: a power of two, with two to four names in each. */
static uint32_t n_buckets_for(size_t n)
{
	uint32_t buckets = 1;
	while (buckets < n / 4 && buckets < 1u << 30)
		buckets *= 2;
	return buckets;
}

void encode_names(const struct joined *j, struct bytes *ret)
{
	VEC(struct entry) entries = {0};
	uint32_t n = (uint32_t)j->functions.v.n, n_buckets = n_buckets_for(n);
	for (uint32_t i = 1; i < n; i++) {
		const struct pack_function *f = &j->functions.v.p[j->functions.ranking.order.p[i]];
		struct entry by_name = {f->name ? bucket_of(j, f->name, n_buckets) : 0, i};
		struct entry by_linkage = {f->linkage ? bucket_of(j, f->linkage, n_buckets) : 0, i};
		if ((f->name && !VEC_ADD(&entries, by_name)) ||
		    (f->linkage && (!f->name || by_name.bucket != by_linkage.bucket) &&
		     !VEC_ADD(&entries, by_linkage)))
			ret->failed = true;
	}
	if (entries.n)
		qsort(entries.p, entries.n, sizeof(*entries.p), by_bucket);
	put_u32(ret, n_buckets);
	uint32_t at = 0;
	for (uint32_t bucket = 0; bucket <= n_buckets; bucket++) {
		while (at < entries.n && entries.p[at].bucket < bucket)
			at++;
		put_u32(ret, at);
	}
	for (size_t i = 0; i < entries.n; i++)
		put_u32(ret, entries.p[i].function);
	VEC_FREE(&entries);
}

/* ---- symbols ---- */

/* @starts: from a symbol to the record with its own start, for its rests. */
static int put_symbol(const struct functions *f, size_t i, struct code_span span, struct strings *strings,
		      struct map *starts, struct bytes *ret)
{
	const struct function_range *r = &f->ranges.p[i];
	uint64_t lo = r->lo - span.base, hi = r->hi - span.base, start;
	if (r->lo < span.base || lo >= span.size)
		return 0;
	if (hi > span.size)
		hi = span.size;
	struct pack_symbol s = {.at = (uint32_t)lo, .size = (uint32_t)(hi - lo)};
	if (s.size >= PACK_SYMBOL_REST)
		return -ERANGE;
	uint64_t key = (uint64_t)(uintptr_t)r->symbol;
	if (r->lo != r->symbol->at.v && map_get(starts, key, &start)) {
		s.size |= PACK_SYMBOL_REST;
		s.name = (uint32_t)start;
	} else {
		uint32_t number = (uint32_t)(ret->v.n / sizeof(s));
		int rc = strings_add(strings, r->symbol->name, &s.name);
		if (rc < 0 || (rc = map_put(starts, key, number)) < 0)
			return rc;
	}
	put_bytes(ret, &s, sizeof(s));
	return 0;
}

int encode_symbols(const struct functions *f, struct code_span span, struct strings *strings, struct bytes *ret)
{
	struct map starts;
	int rc = 0;
	map_init(&starts);
	for (size_t i = 0; rc >= 0 && i < f->ranges.n; i++)
		rc = put_symbol(f, i, span, strings, &starts, ret);
	map_fini(&starts);
	return rc;
}
