/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The builder: records are appended to one vector of words, strings to one table. finish() writes
 * header, records, layout and strings one after the other. Nothing is sorted or merged here, so
 * that the same calls give the same bytes.
 */
#include "btf/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/opts.h"
#include "base/vec.h"
#include "btf/btf.h"
#include "btf/strings.h"

struct cairn_btf_builder {
	const struct cairn_btf *base;
	enum cairn_btf_dialect dialect;
	bool big_endian, has_layout;
	uint32_t header_bytes; /* 0: the shortest that does */
	uint32_t start_id;
	struct btf_strings strings;
	VEC(uint32_t) words;
	VEC(uint32_t) records; /* word number of each record */
	/* For every kind that records may have; the first n_layout are written. */
	struct btf_kind_layout layout[BTF_KIND_MAX + 1];
	uint32_t n_layout;
};

/* ---- strings ---- */

int cairn_btf_add_string(struct cairn_btf_builder *b, const char *s, uint32_t *ret)
{
	return btf_strings_add(&b->strings, s, strlen(s), ret);
}

const char *btf_builder_string(const struct cairn_btf_builder *b, uint32_t off)
{
	return btf_strings_at(&b->strings, off);
}

int btf_builder_adopt_strings(struct cairn_btf_builder *b, const struct cairn_btf *btf)
{
	return btf_strings_adopt(&b->strings, btf->strings, btf->strings_size);
}

/* ---- life ---- */

static void fill_layout(struct cairn_btf_builder *b)
{
	for (uint32_t kind = 1; kind < CAIRN_BTF_N_KINDS; kind++) {
		const struct btf_shape *shape = btf_shape(
			kind, b->dialect == CAIRN_BTF_LOC_V1 ? b->dialect : CAIRN_BTF_LOC_N);
		b->layout[kind] =
			(struct btf_kind_layout){4 * shape->n_fixed, 4 * shape->n_elem, 0};
	}
	b->n_layout = b->dialect == CAIRN_BTF_NO_LOC ? CAIRN_BTF_LOC_PARAM : CAIRN_BTF_N_KINDS;
}

int cairn_btf_builder_new(const struct cairn_btf_build_opts *opts, struct cairn_btf_builder **ret,
			  struct cairn_err *err)
{
	struct cairn_btf_build_opts o;
	int rc = opts_take(&o, sizeof(o), opts, err);
	if (rc < 0)
		return rc;
	struct cairn_btf_builder *b = calloc(1, sizeof(*b));
	if (!b)
		return err_nomem(err, "a BTF builder");
	b->base = o.base;
	b->dialect = o.dialect;
	b->big_endian = o.big_endian;
	b->has_layout = o.layout;
	b->start_id = b->base ? b->base->end_id : 1;
	fill_layout(b);
	rc = btf_strings_init(&b->strings, b->base);
	if (rc < 0) {
		cairn_btf_builder_free(b);
		return err_set(err, rc, "no room for the strings of the base");
	}
	*ret = b;
	return 0;
}

void cairn_btf_builder_free(struct cairn_btf_builder *b)
{
	if (!b)
		return;
	btf_strings_fini(&b->strings);
	VEC_FREE(&b->words);
	VEC_FREE(&b->records);
	free(b);
}

void btf_builder_adopt_form(struct cairn_btf_builder *b, const struct cairn_btf *btf)
{
	b->header_bytes = btf->header_bytes < BTF_HEADER_NEW ? BTF_HEADER_OLD : BTF_HEADER_NEW;
	if (!btf->layout ||
	    btf->layout_dialect == (b->dialect ^ CAIRN_BTF_LOC_N ^ CAIRN_BTF_LOC_V1))
		return;
	b->n_layout = btf->n_layout <= BTF_KIND_MAX ? btf->n_layout : BTF_KIND_MAX + 1;
	for (uint32_t kind = 0; kind < b->n_layout; kind++)
		btf_layout_of(btf, kind, &b->layout[kind]);
}

void btf_builder_learn_kinds(struct cairn_btf_builder *b, const struct cairn_btf *btf)
{
	for (uint32_t kind = CAIRN_BTF_N_KINDS; kind <= BTF_KIND_MAX; kind++)
		if (btf_layout_of(btf, kind, &b->layout[kind]) && b->n_layout <= kind)
			b->n_layout = kind + 1;
}

/* ---- records ---- */

enum cairn_btf_dialect btf_builder_dialect(const struct cairn_btf_builder *b)
{
	return b->dialect;
}

uint32_t btf_builder_next_id(const struct cairn_btf_builder *b)
{
	return b->start_id + (uint32_t)b->records.n;
}

/* Room for @n more words. */
static int make_room(struct cairn_btf_builder *b, uint64_t n)
{
	/*
	 * The whole blob stays below 4 GiB, and ids below 2^31: a record has at least three words.
	 */
	if (b->words.n + n > UINT32_MAX / 4 - BTF_HEADER_NEW || btf_builder_next_id(b) >= INT32_MAX)
		return -ERANGE;
	if (b->words.n + n <= b->words.cap)
		return 0;
	size_t cap = 2 * b->words.cap > b->words.n + n ? 2 * b->words.cap : b->words.n + n + 1024;
	uint32_t *p = realloc(b->words.p, cap * sizeof(*p));
	if (!p)
		return -ENOMEM;
	b->words.p = p;
	b->words.cap = cap;
	return 0;
}

uint32_t *btf_add_space(struct cairn_btf_builder *b, uint32_t name, uint32_t info, uint32_t ref,
			uint32_t n_words, uint32_t *ret, int *rc)
{
	uint32_t at = (uint32_t)b->words.n;
	*rc = make_room(b, (uint64_t)BTF_RECORD_WORDS + n_words);
	if (*rc == 0 && !VEC_ADD(&b->records, at))
		*rc = -ENOMEM;
	if (*rc < 0)
		return NULL;
	uint32_t *record = b->words.p + at;
	record[BTF_RECORD_NAME] = name;
	record[BTF_RECORD_INFO] = info;
	record[BTF_RECORD_REF] = ref;
	b->words.n += BTF_RECORD_WORDS + (size_t)n_words;
	*ret = btf_builder_next_id(b) - 1;
	return record + BTF_RECORD_WORDS;
}

/* Is @n_words the right number for a record of this kind and vlen? */
static bool right_size(const struct cairn_btf_builder *b, const struct cairn_btf_type *t,
		       uint32_t n_words)
{
	if (t->kind == CAIRN_BTF_VOID || t->kind > BTF_KIND_MAX || t->vlen > BTF_VLEN_MAX)
		return false;
	const struct btf_shape *shape = btf_shape(t->kind, b->dialect);
	if (shape)
		return n_words == btf_n_words(shape, t->kind, t->vlen);
	if (t->kind < CAIRN_BTF_N_KINDS || t->kind >= b->n_layout)
		return false;
	struct btf_kind_layout l = b->layout[t->kind];
	return 4ull * n_words == l.fixed_bytes + (uint64_t)l.elem_bytes * t->vlen;
}

int cairn_btf_add_record(struct cairn_btf_builder *b, const struct cairn_btf_type *t,
			 const uint32_t *words, uint32_t n_words, uint32_t *ret)
{
	int rc = 0;
	if (!right_size(b, t, n_words))
		return -EINVAL;
	uint32_t *space = btf_add_space(b, t->name_off, BTF_INFO(t->kind, t->kflag, t->vlen),
					t->ref, n_words, ret, &rc);
	if (!space)
		return rc;
	if (words && n_words)
		memcpy(space, words, n_words * sizeof(*words));
	else
		memset(space, 0, n_words * sizeof(*words));
	return 0;
}

uint32_t *btf_builder_record(struct cairn_btf_builder *b, uint32_t id)
{
	if (id < b->start_id || id - b->start_id >= b->records.n)
		return NULL;
	return b->words.p + b->records.p[id - b->start_id];
}

uint32_t *cairn_btf_record_words(struct cairn_btf_builder *b, uint32_t id)
{
	uint32_t *record = btf_builder_record(b, id);
	return record ? record + BTF_RECORD_WORDS : NULL;
}

/* ---- the blob ---- */

/* The sections: offsets from the end of the header, and sizes, in bytes. */
struct sections {
	uint32_t header, types, layout_off, layout, strings_off, strings;
};

static struct sections site_sections(const struct cairn_btf_builder *b)
{
	struct sections s = {
		.header = b->has_layout || b->header_bytes == BTF_HEADER_NEW ? BTF_HEADER_NEW
									     : BTF_HEADER_OLD,
		.types = 4 * (uint32_t)b->words.n,
		.layout = b->has_layout ? 4 * b->n_layout : 0,
		.strings = (uint32_t)b->strings.size,
	};
	s.layout_off = s.layout ? s.types : 0;
	s.strings_off = s.types + s.layout;
	return s;
}

/* Fields in this machine's order; the first holds magic, version and flags. */
static void put_header(const struct cairn_btf_builder *b, const struct sections *s, uint32_t *h)
{
	uint8_t prefix[4] = {0x9f, 0xeb, BTF_BLOB_VERSION, 0};
	if (b->big_endian) {
		prefix[0] = 0xeb;
		prefix[1] = 0x9f;
	}
	memcpy(h, prefix, sizeof(prefix));
	h[1] = s->header;
	h[2] = 0;
	h[3] = s->types;
	h[4] = s->strings_off;
	h[5] = s->strings;
	if (s->header == BTF_HEADER_NEW) {
		h[6] = s->layout_off;
		h[7] = s->layout;
	}
}

static void put_layout(const struct cairn_btf_builder *b, uint8_t *p)
{
	for (uint32_t kind = 0; kind < b->n_layout; kind++, p += 4) {
		struct btf_kind_layout l = b->layout[kind];
		p[0] = l.fixed_bytes;
		p[1] = l.elem_bytes;
		p[b->big_endian ? 3 : 2] = (uint8_t)l.flags;
		p[b->big_endian ? 2 : 3] = (uint8_t)(l.flags >> 8);
	}
}

/* In a big-endian blob v1's register comes first too, as the upper half of its word. */
static void order_halves(const struct cairn_btf_builder *b, uint32_t *types)
{
	for (size_t i = 0; i < b->records.n; i++) {
		uint32_t *p = types + b->records.p[i], info = p[BTF_RECORD_INFO];
		if (BTF_KIND_OF(info) == CAIRN_BTF_LOC_PARAM && !BTF_KFLAG_OF(info))
			p[BTF_RECORD_WORDS] = p[BTF_RECORD_WORDS] << 16 | p[BTF_RECORD_WORDS] >> 16;
	}
}

int cairn_btf_finish(struct cairn_btf_builder *b, void **ret, size_t *ret_size,
		     struct cairn_err *err)
{
	struct sections s = site_sections(b);
	uint64_t size = (uint64_t)s.header + s.types + s.layout + s.strings;
	if (size > INT32_MAX)
		return err_set(err, -ERANGE, "BTF of %llu bytes; the limit is 2 GiB",
			       (unsigned long long)size);
	uint32_t *blob = malloc(size);
	if (!blob)
		return err_nomem(err, "a BTF blob");
	uint32_t *types = blob + s.header / 4;
	put_header(b, &s, blob);
	if (s.types)
		memcpy(types, b->words.p, s.types);
	if (b->big_endian && b->dialect == CAIRN_BTF_LOC_V1)
		order_halves(b, types);
	if (b->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
		for (uint32_t *p = blob + 1; p < types + b->words.n; p++)
			*p = __builtin_bswap32(*p);
	uint8_t *tail = (uint8_t *)types + s.types;
	if (s.layout)
		put_layout(b, tail);
	if (s.strings)
		memcpy(tail + s.layout, b->strings.p, s.strings);
	*ret = blob;
	*ret_size = size;
	return btf_verdict(b->base, 0, ret, err);
}
