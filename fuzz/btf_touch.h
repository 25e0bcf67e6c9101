/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fuzz targets of BTF do with a blob that opened: everything, and what must hold of it. */
#ifndef FUZZ_BTF_TOUCH_H
#define FUZZ_BTF_TOUCH_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/btf.h>

#include "btf/build.h"

static volatile uint64_t btf_sink;

static inline void touch_elements(const struct cairn_btf *btf, const struct cairn_btf_type *t)
{
	/*
	 * Where vlen counts nothing it may be 2^24. A LOC_PARAM has one location, however long it
	 * is.
	 */
	uint32_t n = t->kind != CAIRN_BTF_LOC_PARAM && t->vlen <= t->n_words ? t->vlen : 0;
	if (t->kind == CAIRN_BTF_LOC_PARAM)
		btf_sink += cairn_btf_loc_param(btf, t).flags;
	for (uint32_t i = 0; i < n; i++) {
		if (t->kind == CAIRN_BTF_STRUCT || t->kind == CAIRN_BTF_UNION)
			btf_sink += cairn_btf_member(t, i).type;
		else if (t->kind == CAIRN_BTF_ENUM || t->kind == CAIRN_BTF_ENUM64)
			btf_sink += (uint64_t)cairn_btf_enumerator(t, i).value;
		else if (t->kind == CAIRN_BTF_FUNC_PROTO)
			btf_sink += cairn_btf_param(t, i).type;
		else if (t->kind == CAIRN_BTF_DATASEC)
			btf_sink += cairn_btf_secinfo(t, i).size;
		else if (t->kind == CAIRN_BTF_LOCSEC)
			btf_sink += cairn_btf_loc(btf, t, i).offset;
	}
}

static inline void touch_records(const struct cairn_btf *btf)
{
	struct cairn_btf_type t;
	for (uint32_t id = 1; id < cairn_btf_end_id(btf); id++) {
		if (!cairn_btf_type(btf, id, &t))
			abort();
		btf_sink += strlen(t.name);
		for (uint32_t i = 0; i < t.n_words; i++)
			btf_sink += t.words[i];
		touch_elements(btf, &t);
		if (id < 20)
			btf_sink += cairn_btf_find(btf, t.name, t.kind, 0);
	}
}

static inline bool keep_some(void *ctx, const char *name)
{
	return *name & 1;
}

/* Bytes that one of the transformations gave: they open again, on @base. */
static inline void reopen(void *bytes, size_t size, const struct cairn_btf *base,
			  enum cairn_btf_dialect dialect)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .base = base, .dialect = dialect};
	struct cairn_btf *btf;
	struct cairn_err err;
	int rc = cairn_btf_open_mem(bytes, size, "output", &opts, &btf, &err);
	if (rc == 0)
		cairn_btf_close(btf);
	else if (rc != -ENOMEM)
		abort();
	free(bytes);
}

static inline void touch_transformations(const struct cairn_btf *btf)
{
	const struct cairn_btf *base = cairn_btf_base(btf);
	enum cairn_btf_dialect dialect = cairn_btf_dialect(btf);
	struct cairn_err err;
	void *bytes = NULL, *more = NULL;
	size_t size, more_size;
	if (cairn_btf_dedup(btf, NULL, &bytes, &size, &err) == 0)
		reopen(bytes, size, base, dialect);
	if (cairn_btf_sort(btf, NULL, &bytes, &size, &err) == 0)
		reopen(bytes, size, base, dialect);
	if (cairn_btf_split_loc(btf, keep_some, NULL, &bytes, &size, &more, &more_size, &err) ==
	    0) {
		reopen(bytes, size, base, dialect);
		free(more);
	}
	if (base && cairn_btf_distil_base(btf, &bytes, &size, &more, &more_size, &err) == 0) {
		reopen(bytes, size, NULL, dialect);
		free(more);
	}
	for (int form = 0; form < 8; form++) {
		struct cairn_btf_convert_opts opts = {.size = sizeof(opts),
						      .base = base,
						      .dialect = form % 3,
						      .layout = form & 1,
						      .big_endian = form & 2,
						      .downgrade = form & 4,
						      .kernel = form == 3 || form == 7};
		if (cairn_btf_convert(btf, &opts, NULL, &bytes, &size, &err) == 0)
			reopen(bytes, size, base, opts.kernel ? CAIRN_BTF_NO_LOC : opts.dialect);
	}
}

static inline void touch_btf(const struct cairn_btf *btf)
{
	touch_records(btf);
	btf_sink += (uint64_t)cairn_btf_check(btf, NULL, NULL);
	btf_sink += (uint64_t)cairn_btf_check_for_kernel(btf, 0, NULL, NULL);
	touch_transformations(btf);
}

/* The blob of a builder goes to @put; the builder is freed. */
static inline void put_blob(struct cairn_btf_builder *b,
			    void (*put)(const void *bytes, size_t size))
{
	void *bytes;
	size_t size;
	if (cairn_btf_finish(b, &bytes, &size, NULL) < 0)
		abort();
	put(bytes, size);
	free(bytes);
	cairn_btf_builder_free(b);
}

static inline struct cairn_btf_builder *seed_builder(struct cairn_btf_build_opts opts)
{
	struct cairn_btf_builder *b;
	opts.size = sizeof(opts);
	if (cairn_btf_builder_new(&opts, &b, NULL) < 0)
		abort();
	return b;
}

static inline uint32_t seed_string(struct cairn_btf_builder *b, const char *s)
{
	uint32_t off;
	if (cairn_btf_add_string(b, s, &off) < 0)
		abort();
	return off;
}

#endif
