/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of hashes, arrays, queues
 *
 * The kernel copies many entries per call if it can (since 5.6, for most hashes and arrays). The
 * call requests 4,096 at a time, and more if the kernel reports that one bucket of a hash has more.
 * Otherwise: the next key, its value, the next key. A key that was deleted in between makes the
 * kernel start again from the first, so keys are counted and the number is limited.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/err.h"
#include "base/scope.h"
#include "decode/bpfmap.h"

/* A bucket that needs more than the last is read one by one. */
enum { BATCH = 4096, BATCH_BYTES = 4 << 20, BATCH_BYTES_MAX = 64 << 20 };

/* The kernel's own position between two calls: a key, or a number of a bucket. */
enum { POSITION_MIN = 16 };

struct listing {
	struct cairn_bpfmap *map;
	bpfmap_entry_fn *on_entry;
	void *ctx;
	struct cairn_bpfmap_stats *stats;
	struct cairn_err *err;
	uint32_t n_cpus, stride; /* stride: of one CPU's value */
	size_t n_value;          /* bytes for all of them */
};

static int listing_init(struct listing *l)
{
	const struct cairn_bpfmap_info *info = &l->map->info;
	int cpus = info->is_percpu ? libbpf_num_possible_cpus() : 1;

	if (cpus < 0)
		return err_set(l->err, cpus, "counting processors: %s", strerror(-cpus));
	l->n_cpus = (uint32_t)cpus;
	l->stride = info->is_percpu ? (info->value_size + 7) & ~7u : info->value_size;
	l->n_value = (size_t)l->stride * l->n_cpus;
	return 0;
}

static int hand_out(struct listing *l, const uint8_t *key, const uint8_t *value)
{
	struct cairn_bpfmap_entry entry = {.key = key,
					   .value = value,
					   .n_value = l->map->info.value_size,
					   .n_cpus = l->n_cpus,
					   .stride = l->stride};

	l->stats->entries++;
	return l->on_entry(l->ctx, &entry);
}

static int failed(const struct listing *l, int rc)
{
	return err_set(l->err, rc, "reading map %u (%s): %s", l->map->info.id, l->map->info.name,
		       strerror(-rc));
}

/* ---- many at once ---- */

struct batch {
	uint32_t room; /* entries */
	uint8_t *keys, *values;
	void *from, *to; /* positions */
};

static void batch_fini(struct batch *b)
{
	free(b->keys);
	free(b->values);
	free(b->from);
	free(b->to);
}

static int batch_init(struct batch *b, const struct listing *l, uint32_t room)
{
	const struct cairn_bpfmap_info *info = &l->map->info;
	size_t n_position = info->key_size > POSITION_MIN ? info->key_size : POSITION_MIN;

	*b = (struct batch){.room = room,
			    .keys = calloc(room, info->key_size),
			    .values = calloc(room, l->n_value),
			    .from = calloc(1, n_position),
			    .to = calloc(1, n_position)};
	return b->keys && b->values && b->from && b->to ? 0 : err_nomem(l->err, "entries of a map");
}

static int hand_out_batch(struct listing *l, const struct batch *b, uint32_t n)
{
	int rc = 0;

	for (uint32_t i = 0; i < n && !rc; i++)
		rc = hand_out(l, b->keys + (size_t)i * l->map->info.key_size,
			      b->values + i * l->n_value);
	return rc;
}

static bool may_grow(const struct listing *l, const struct batch *b)
{
	const struct cairn_bpfmap_info *info = &l->map->info;
	return b->room < info->max_entries &&
	       2 * (uint64_t)b->room * (l->n_value + info->key_size) <= BATCH_BYTES_MAX;
}

/* 1: the kernel cannot do that with this map. */
static int list_batches(struct listing *l, struct batch *b)
{
	bool first = true;

	for (;;) {
		uint32_t n = b->room;
		int rc = bpf_map_lookup_batch(l->map->fd, first ? NULL : b->from, b->to, b->keys,
					      b->values, &n, NULL);

		if (rc == -ENOSPC && may_grow(l, b)) {
			/*
			 * One bucket has more than there is room for; the position has not moved.
			 */
			struct batch larger;
			uint32_t most = l->map->info.max_entries;
			if (batch_init(&larger, l, b->room < most / 2 ? b->room * 2 : most) < 0) {
				batch_fini(&larger);
				return -ENOMEM;
			}
			void *position = larger.from;
			larger.from = b->from;
			b->from = position;
			batch_fini(b);
			*b = larger;
			continue;
		}
		if (rc && rc != -ENOENT)
			return first ? 1 : failed(l, rc);
		int handed = hand_out_batch(l, b, n < b->room ? n : b->room);
		if (handed || rc)
			return handed;
		void *position = b->from;
		b->from = b->to;
		b->to = position;
		first = false;
	}
}

/* ---- one by one ---- */

static int list_keys(struct listing *l)
{
	const struct cairn_bpfmap_info *info = &l->map->info;
	SCOPE_FREE uint8_t *keys = calloc(2, info->key_size), *value = calloc(1, l->n_value);
	uint64_t most = 4 * (uint64_t)info->max_entries + 1024;
	uint8_t *key = keys, *next = keys + info->key_size;
	int rc;

	if (!keys || !value)
		return err_nomem(l->err, "entries of a map");
	rc = bpf_map_get_next_key(l->map->fd, NULL, key);
	for (uint64_t i = 0; !rc && i < most; i++) {
		rc = bpf_map_lookup_elem(l->map->fd, key, value);
		/* Deleted since, or an empty place of an array of maps or programs. */
		if (!rc)
			rc = hand_out(l, key, value);
		else if (rc != -ENOENT)
			return failed(l, rc);
		else
			rc = 0;
		if (rc)
			return rc;
		rc = bpf_map_get_next_key(l->map->fd, key, next);
		uint8_t *swap = key;
		key = next;
		next = swap;
	}
	return !rc || rc == -ENOENT ? 0 : failed(l, rc);
}

int bpfmap_each_key(struct cairn_bpfmap *map, bpfmap_entry_fn *on_entry, void *ctx,
		    struct cairn_bpfmap_stats *stats, struct cairn_err *err)
{
	struct listing l = {
		.map = map, .on_entry = on_entry, .ctx = ctx, .stats = stats, .err = err};
	struct batch b;
	int rc = listing_init(&l);

	if (rc < 0)
		return rc;
	size_t each = l.n_value + map->info.key_size + 1;
	uint32_t room = BATCH_BYTES / each < BATCH ? (uint32_t)(BATCH_BYTES / each) + 1 : BATCH;
	if (room > map->info.max_entries)
		room = map->info.max_entries;
	rc = batch_init(&b, &l, room ? room : 1);
	if (!rc)
		rc = list_batches(&l, &b);
	batch_fini(&b);
	return rc == 1 && !stats->entries ? list_keys(&l) : rc;
}

int bpfmap_each_queued(struct cairn_bpfmap *map, bool consume, bpfmap_entry_fn *on_entry, void *ctx,
		       struct cairn_bpfmap_stats *stats, struct cairn_err *err)
{
	struct listing l = {
		.map = map, .on_entry = on_entry, .ctx = ctx, .stats = stats, .err = err};
	SCOPE_FREE uint8_t *value = calloc(1, map->info.value_size);
	int rc = listing_init(&l);

	if (rc < 0 || !value)
		return rc < 0 ? rc : err_nomem(err, "entries of a map");
	if (!consume)
		rc = bpf_map_lookup_elem(map->fd, NULL, value);
	for (uint64_t i = 0; !rc && i < (consume ? map->info.max_entries : 1); i++) {
		if (consume)
			rc = bpf_map_lookup_and_delete_elem(map->fd, NULL, value);
		if (!rc && (rc = hand_out(&l, NULL, value)))
			return rc;
	}
	return !rc || rc == -ENOENT ? 0 : failed(&l, rc);
}
