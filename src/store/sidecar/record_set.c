/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar/record_set.h"

#include <errno.h>

#include "sidecar/bits_out.h"

static uint32_t end_of(const struct bytes *data, const uint32_t *starts, size_t n, size_t i)
{
	return i + 1 < n ? starts[i + 1] : (uint32_t)data->v.n;
}

int record_set_add(struct record_set *s, uint32_t *ret)
{
	struct bytes *b = &s->record;
	size_t n = b->v.n;
	uint64_t known, key = map_hash_bytes(b->v.p, n);
	b->v.n = 0;
	for (; map_get(&s->by_hash, key, &known); key++) {
		uint32_t from = s->starts.p[known],
			 to = end_of(&s->data, s->starts.p, s->starts.n, known);
		if (to - from == n && (!n || !memcmp(s->data.v.p + from, b->v.p, n))) {
			*ret = (uint32_t)known;
			return 0;
		}
	}
	*ret = (uint32_t)s->starts.n;
	if (n > UINT32_MAX - s->data.v.n)
		return -ERANGE;
	if (b->failed || !VEC_ADD(&s->starts, (uint32_t)s->data.v.n))
		return -ENOMEM;
	put_bytes(&s->data, b->v.p, n);
	return s->data.failed ? -ENOMEM : map_put(&s->by_hash, key, *ret);
}

void put_records(const struct bytes *data, const uint32_t *starts, size_t n, const uint32_t *order,
		 struct bytes *ret)
{
	uint32_t *ends = malloc((n + 1) * sizeof(*ends)), at = 0;
	if (!ends) {
		ret->failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		size_t from = order ? order[i] : i;
		ends[i] = at;
		at += end_of(data, starts, n, from) - starts[from];
	}
	ends[n] = at;
	put_table(ends, n + 1, 1, ret);
	for (size_t i = 0; i < n; i++) {
		size_t from = order ? order[i] : i,
		       size = end_of(data, starts, n, from) - starts[from];
		if (size)
			put_bytes(ret, data->v.p + starts[from], size);
	}
	ret->failed |= data->failed;
	free(ends);
}

void record_set_put(const struct record_set *s, struct bytes *ret)
{
	put_records(&s->data, s->starts.p, s->starts.n, NULL, ret);
}

void record_set_fini(struct record_set *s)
{
	VEC_FREE(&s->record.v);
	VEC_FREE(&s->data.v);
	VEC_FREE(&s->starts);
	map_fini(&s->by_hash);
}
