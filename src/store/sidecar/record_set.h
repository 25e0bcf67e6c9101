/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of any length, each written once and known by its number
 *
 * In the file: a table of where each begins, and the end of the last; then the records.
 */
#ifndef SIDECAR_RECORD_SET_H
#define SIDECAR_RECORD_SET_H

#include "base/cursor.h"
#include "base/map.h"
#include "sidecar/bits.h"
#include "sidecar/bytes.h"

/* ---- writing ---- */

struct record_set {
	struct bytes record; /* the one at hand: fill it, then call record_set_add() */
	struct bytes data;
	VEC(uint32_t) starts;
	struct map by_hash; /* to the number; of equal hashes the next key is free */
};

/*
 * Number of the record at hand, which is empty afterwards. 0, -ENOMEM, -ERANGE (more than 4 GiB).
 */
int record_set_add(struct record_set *s, uint32_t *ret);
void record_set_put(const struct record_set *s, struct bytes *ret);
void record_set_fini(struct record_set *s);

/* Records in the order of @order (n numbers), or in their own. */
void put_records(const struct bytes *data, const uint32_t *starts, size_t n, const uint32_t *order,
		 struct bytes *ret);

/* ---- reading ---- */

struct records {
	struct table starts; /* one more than there are */
	uint32_t n;
	const uint8_t *data;
	uint32_t size;
	struct cursor_src src;
};

/* Record @i; an empty cursor when there is none, or its checksum differs. */
static inline struct cursor record_at(const struct records *r, uint32_t i, struct cairn_err *err)
{
	uint32_t from = table_get(&r->starts, i, 0), end = table_get(&r->starts, i + 1, 0);
	bool there = i < r->n && from < end && end <= r->size &&
		     (!r->starts.guard || guard_check(r->starts.guard, r->data + from, end - from));
	return cursor_of(&r->src, there ? r->data + from : r->data, there ? end - from : 0, false,
			 err);
}

#endif
