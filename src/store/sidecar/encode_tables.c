/* SPDX-License-Identifier: BSD-2-Clause */
/* The plain tables: files, functions, symbols, and the index of names. */
#include <errno.h>

#include "sidecar/bits_out.h"
#include "sidecar/encode.h"
#include "sidecar/format.h"
#include "sidecar/name_index.h"

void encode_files(const struct joined *j, struct bytes *ret)
{
	size_t n = j->files.path.n;
	uint32_t *paths = malloc(n * sizeof(*paths));
	for (size_t i = 0; paths && i < n; i++)
		paths[i] = j->files.path.p[j->files.ranking.order.p[i]];
	if (paths)
		put_table(paths, n, 1, ret);
	ret->failed |= !paths;
	free(paths);
}

void encode_functions(const struct joined *j, struct bytes *ret)
{
	size_t n = j->functions.v.n;
	struct function_entry *f = malloc(n * sizeof(*f));
	for (size_t i = 0; f && i < n; i++) {
		f[i] = j->functions.v.p[j->functions.ranking.order.p[i]];
		f[i].file = j->files.ranking.rank.p[f[i].file];
	}
	if (f)
		put_table((const uint32_t *)f, n, sizeof(*f) / sizeof(uint32_t), ret);
	ret->failed |= !f;
	free(f);
}

void encode_names(const struct joined *j, struct bytes *ret)
{
	struct name_index index = {0};
	const char *text = (const char *)j->strings->text.v.p;
	int rc = 0;
	for (uint32_t i = 1; rc >= 0 && i < j->functions.v.n; i++) {
		const struct function_entry *f = &j->functions.v.p[j->functions.ranking.order.p[i]];
		if (f->name)
			rc = name_index_add(&index, text + f->name, i);
		if (rc >= 0 && f->linkage)
			rc = name_index_add(&index, text + f->linkage, i);
	}
	name_index_put(&index, ret);
	ret->failed |= rc < 0;
	name_index_fini(&index);
}

/* ---- symbols ---- */

/* @starts: from a symbol to the record with its own start, for its rests. */
static int add_symbol(const struct function_range *r, struct code_span span,
		      struct strings *strings, struct map *starts, struct symbol_table *ret)
{
	uint64_t lo = r->lo - span.base, hi = r->hi - span.base, start;
	if (r->lo < span.base || lo >= span.size)
		return 0;
	if (hi > span.size)
		hi = span.size;
	struct symbol_entry s = {.at = (uint32_t)lo, .size = (uint32_t)(hi - lo)};
	uint64_t key = (uint64_t)(uintptr_t)r->symbol;
	if (functions_is_local_label(r->symbol))
		s.kind = SYMBOL_KIND_LOCAL_LABEL;
	if (r->lo != r->symbol->at.v && map_get(starts, key, &start)) {
		s.kind = SYMBOL_KIND_REST;
		s.name = (uint32_t)start;
	} else {
		int rc = strings_add(strings, r->symbol->name, &s.name);
		if (rc < 0 || (rc = map_put(starts, key, ret->v.n)) < 0)
			return rc;
	}
	return VEC_ADD(&ret->v, s) ? 0 : -ENOMEM;
}

int symbol_table_make(const struct functions *f, struct code_span span, struct strings *strings,
		      struct symbol_table *ret)
{
	struct map starts;
	int rc = 0;
	map_init(&starts);
	for (size_t i = 0; rc >= 0 && i < f->ranges.n; i++)
		rc = add_symbol(&f->ranges.p[i], span, strings, &starts, ret);
	map_fini(&starts);
	return rc;
}

void encode_symbols(const struct symbol_table *symbols, struct bytes *ret)
{
	if (symbols->v.n)
		put_table((const uint32_t *)symbols->v.p, symbols->v.n,
			  sizeof(struct symbol_entry) / sizeof(uint32_t), ret);
}
