/* SPDX-License-Identifier: BSD-2-Clause */
/* Looking at records: by id, by name, element by element. */
#include "base/search.h"
#include "btf/btf.h"

#include <stdlib.h>
#include <string.h>

const struct cairn_btf *cairn_btf_base(const struct cairn_btf *btf)
{
	return btf->base;
}

enum cairn_btf_dialect cairn_btf_dialect(const struct cairn_btf *btf)
{
	return btf->dialect;
}

bool cairn_btf_is_big_endian(const struct cairn_btf *btf)
{
	return btf->big_endian;
}

bool cairn_btf_has_layout(const struct cairn_btf *btf)
{
	return btf->layout != NULL;
}

uint32_t cairn_btf_start_id(const struct cairn_btf *btf)
{
	return btf->start_id;
}

uint32_t cairn_btf_end_id(const struct cairn_btf *btf)
{
	return btf->end_id;
}

const struct cairn_btf *btf_owner(const struct cairn_btf *btf, uint32_t id)
{
	if (id >= btf->end_id)
		return NULL;
	while (btf && id < btf->start_id)
		btf = btf->base;
	return btf;
}

bool cairn_btf_type(const struct cairn_btf *btf, uint32_t id, struct cairn_btf_type *ret)
{
	const struct cairn_btf *owner = btf_owner(btf, id);
	if (!owner)
		return false;
	const uint32_t *p = btf_record(owner, id);
	const char *name = cairn_btf_string(owner, p[BTF_RECORD_NAME]);
	*ret = (struct cairn_btf_type){
		.id = id,
		.kind = BTF_KIND_OF(p[BTF_RECORD_INFO]),
		.kflag = BTF_KFLAG_OF(p[BTF_RECORD_INFO]),
		.vlen = BTF_VLEN_OF(p[BTF_RECORD_INFO]),
		.name_off = p[BTF_RECORD_NAME],
		.name = name ? name : "",
		.ref = p[BTF_RECORD_REF],
		.words = p + BTF_RECORD_WORDS,
		.n_words = btf_record_size(owner, id) - BTF_RECORD_WORDS,
	};
	return true;
}

const char *cairn_btf_string(const struct cairn_btf *btf, uint32_t off)
{
	if (off >= btf_end_string(btf))
		return NULL;
	while (btf && off < btf->start_string)
		btf = btf->base;
	/* The section ends with NUL: a string that starts inside it ends inside it. */
	return btf ? btf->strings + (off - btf->start_string) : NULL;
}

bool btf_string_starts(const struct cairn_btf *btf, uint32_t off)
{
	while (btf && off < btf->start_string)
		btf = btf->base;
	return btf && (off == btf->start_string || !btf->strings[off - btf->start_string - 1]);
}

/* ---- by name ---- */

/* Own ids, sorted by name, then by id. */
struct btf_names {
	uint32_t n;
	uint32_t ids[];
};

void btf_names_free(struct btf_names *names)
{
	free(names);
}

static const char *own_name(const struct cairn_btf *btf, uint32_t id)
{
	const char *name = cairn_btf_string(btf, btf_record(btf, id)[BTF_RECORD_NAME]);
	return name ? name : "";
}

static int by_name(const void *a, const void *b, void *ctx)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order = strcmp(own_name(ctx, x), own_name(ctx, y));
	return order ? order : (x > y) - (x < y);
}

static struct btf_names *sort_names(const struct cairn_btf *btf)
{
	uint32_t n = btf->end_id - btf->start_id;
	struct btf_names *names = malloc(sizeof(*names) + n * sizeof(names->ids[0]));
	if (!names)
		return NULL;
	names->n = 0;
	for (uint32_t id = btf->start_id; id < btf->end_id; id++)
		if (*own_name(btf, id))
			names->ids[names->n++] = id;
	qsort_r(names->ids, names->n, sizeof(names->ids[0]), by_name, (void *)btf);
	return names;
}

/* Threads that come first at the same time each sort; one of them publishes. */
static const struct btf_names *names_of(const struct cairn_btf *btf)
{
	struct cairn_btf *cache = (struct cairn_btf *)btf;
	struct btf_names *names = __atomic_load_n(&cache->names, __ATOMIC_ACQUIRE), *none = NULL;
	if (names)
		return names;
	names = sort_names(btf);
	if (!names || __atomic_compare_exchange_n(&cache->names, &none, names, false,
						  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return names;
	free(names);
	return none;
}

static bool is(const struct cairn_btf *btf, uint32_t id, const char *name, uint32_t kind)
{
	uint32_t info = btf_record(btf, id)[BTF_RECORD_INFO];
	return (kind == CAIRN_BTF_VOID || BTF_KIND_OF(info) == kind) &&
	       !strcmp(own_name(btf, id), name);
}

/* Without memory for the sorted names, and for "" */
static uint32_t find_slow(const struct cairn_btf *btf, const char *name, uint32_t kind,
			  uint32_t from)
{
	for (uint32_t id = from < btf->start_id ? btf->start_id : from + 1; id < btf->end_id; id++)
		if (is(btf, id, name, kind))
			return id;
	return 0;
}

/* In the order of names, and of ids of one name. */
static bool is_before(const struct cairn_btf *btf, uint32_t id, const char *name, uint32_t from)
{
	int order = strcmp(own_name(btf, id), name);
	return order < 0 || (order == 0 && id <= from);
}

static uint32_t find_own(const struct cairn_btf *btf, const char *name, uint32_t kind,
			 uint32_t from)
{
	const struct btf_names *names = *name ? names_of(btf) : NULL;
	if (!names)
		return find_slow(btf, name, kind, from);
	uint32_t lo = SEARCH(0, names->n, i, is_before(btf, names->ids[i], name, from));
	for (; lo < names->n && !strcmp(own_name(btf, names->ids[lo]), name); lo++)
		if (is(btf, names->ids[lo], name, kind))
			return names->ids[lo];
	return 0;
}

uint32_t cairn_btf_find(const struct cairn_btf *btf, const char *name, uint32_t kind, uint32_t from)
{
	for (; btf; btf = btf->base) {
		if (from && from < btf->start_id)
			continue;
		uint32_t id = find_own(btf, name, kind, from);
		if (id)
			return id;
		from = 0;
	}
	return 0;
}

/* ---- elements ---- */

struct cairn_btf_member cairn_btf_member(const struct cairn_btf_type *t, uint32_t i)
{
	const uint32_t *w = t->words + 3 * (size_t)i;
	return (struct cairn_btf_member){
		.name_off = w[0],
		.type = w[1],
		.bit_off = t->kflag ? w[2] & 0xffffff : w[2],
		.bit_size = t->kflag ? w[2] >> 24 : 0,
	};
}

struct cairn_btf_enumerator cairn_btf_enumerator(const struct cairn_btf_type *t, uint32_t i)
{
	if (t->kind == CAIRN_BTF_ENUM64) {
		const uint32_t *w = t->words + 3 * (size_t)i;
		return (struct cairn_btf_enumerator){w[0], (int64_t)((uint64_t)w[2] << 32 | w[1])};
	}
	const uint32_t *w = t->words + 2 * (size_t)i;
	return (struct cairn_btf_enumerator){w[0],
					     t->kflag ? (int64_t)(int32_t)w[1] : (int64_t)w[1]};
}

struct cairn_btf_param cairn_btf_param(const struct cairn_btf_type *t, uint32_t i)
{
	const uint32_t *w = t->words + 2 * (size_t)i;
	return (struct cairn_btf_param){w[0], w[1]};
}

struct cairn_btf_secinfo cairn_btf_secinfo(const struct cairn_btf_type *t, uint32_t i)
{
	const uint32_t *w = t->words + 3 * (size_t)i;
	return (struct cairn_btf_secinfo){w[0], w[1], w[2]};
}
