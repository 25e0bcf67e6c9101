/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking into a BPF ring buffer without taking anything out
 *
 * Any process that has the map can map the pages of a ring for reading, whatever the ring's own
 * reader does:
 *
 *	PAGE   WRITTEN BY  WHAT
 *	0      reader      u64 consumer position: bytes taken out since the ring was made
 *	1      kernel      u64 producer position: bytes reserved since then
 *	2...   programs    the data, max_entries bytes, followed by the same pages again
 *
 * A record begins at a multiple of 8: u32 length with bit 31 = busy (being written) and bit 30 =
 * discarded, u32 unused, then the bytes. Its length is there before the producer position passes
 * it, so that busy records can be stepped over.
 *
 *	consumer = 64, producer = 144:   64: len 16, 88: len 24 busy, 120: len 12
 *
 * The race: a record may be overwritten once the reader has passed it, and only then. So each is
 * copied, and the consumer position is read again after the copy. If it has moved beyond the
 * record's start, the copy is dropped and reading goes on at the new position. (It need not have
 * been overwritten by then. Showing it would be a guess.) The reader stores its position with
 * release semantics, and so does the kernel. Here both are loaded with acquire, and a fence keeps
 * the copy before the second load.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/err.h"
#include "decode/bpfmap.h"

enum { HEADER_BYTES = 8, RECORD_ALIGN = 8 };
static const uint32_t BUSY = 1u << 31, DISCARDED = 1u << 30;

/*
 * From kernels newer than the headers: old records give way to new ones, and their position is kept
 * elsewhere.
 */
static const uint32_t FLAG_OVERWRITE = 1u << 19;

struct ring {
	const uint64_t *consumer, *producer;
	const uint8_t *data;
	uint64_t size;
};

static uint64_t load_position(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/* True if no writer can have touched the bytes from @pos on since they were there. */
static bool still_there(const struct ring *ring, uint64_t pos)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return load_position(ring->consumer) <= pos;
}

static int damaged(struct cairn_err *err, uint64_t pos, const char *what)
{
	return err_set(err, -EBADMSG, "the ring buffer at position %llu: %s",
		       (unsigned long long)pos, what);
}

/* The data of one record, once it is known to have been there. */
struct record {
	uint32_t head;
	uint32_t n;
	uint64_t step; /* to the next */
};

static struct record read_header(const struct ring *ring, uint64_t pos)
{
	const uint32_t *at = (const uint32_t *)(ring->data + (pos & (ring->size - 1)));
	struct record r = {.head = __atomic_load_n(at, __ATOMIC_ACQUIRE)};

	r.n = r.head & ~(BUSY | DISCARDED);
	r.step = ((uint64_t)r.n + HEADER_BYTES + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
	return r;
}

/*
 * The record at @pos, which ends before @end. 0: *@ret_step goes to the next; -EAGAIN: it was taken
 * out meanwhile.
 */
static int look_at(const struct ring *ring, uint64_t pos, uint64_t end, uint8_t *copy,
		   struct record *ret)
{
	struct record r = read_header(ring, pos);

	if (r.step > end - pos)
		return still_there(ring, pos) ? -EBADMSG : -EAGAIN;
	if (!(r.head & (BUSY | DISCARDED)))
		memcpy(copy, ring->data + (pos & (ring->size - 1)) + HEADER_BYTES, r.n);
	if (!still_there(ring, pos))
		return -EAGAIN;
	*ret = r;
	return 0;
}

static int hand_out(const struct record *r, const uint8_t *copy, bpfmap_entry_fn *on_entry,
		    void *ctx, struct cairn_bpfmap_stats *stats)
{
	struct cairn_bpfmap_entry entry = {.value = copy, .n_value = r->n, .n_cpus = 1};

	if (r->head & BUSY)
		stats->busy++;
	else if (r->head & DISCARDED)
		stats->discarded++;
	else
		stats->entries++;
	return r->head & (BUSY | DISCARDED) ? 0 : on_entry(ctx, &entry);
}

int ring_peek(const uint64_t *consumer, const uint64_t *producer, const uint8_t *data,
	      uint64_t size, bpfmap_entry_fn *on_entry, void *ctx, struct cairn_bpfmap_stats *stats,
	      struct cairn_err *err)
{
	const struct ring ring = {consumer, producer, data, size};
	/* In this order: a reader that moves in between is never ahead of the end. */
	uint64_t pos = load_position(consumer), end = load_position(producer);
	uint8_t *copy = malloc(size);
	struct record r;
	int rc = 0;

	if (!copy)
		return err_nomem(err, "records of a ring buffer");
	if (pos % RECORD_ALIGN || (pos < end && end - pos > size && still_there(&ring, pos)))
		rc = damaged(err, pos, "the reader's position makes no sense");
	while (!rc && pos < end) {
		/*
		 * A reader that ran ahead of the first look: everything up to where it is now is
		 * gone.
		 */
		rc = end - pos > size ? -EAGAIN : look_at(&ring, pos, end, copy, &r);
		if (!rc) {
			rc = hand_out(&r, copy, on_entry, ctx, stats);
			pos += r.step;
		} else if (rc == -EAGAIN) {
			uint64_t now = load_position(consumer);
			stats->overtaken++;
			rc = now % RECORD_ALIGN || now <= pos
				     ? damaged(err, now, "the reader went back")
				     : 0;
			pos = now;
		} else {
			rc = damaged(err, pos, "a record that is longer than the written part");
		}
	}
	free(copy);
	return rc;
}

/* ---- of the kernel ---- */

static int check_ring(const struct cairn_bpfmap *map, struct cairn_err *err)
{
	uint32_t size = map->info.max_entries;

	if (map->flags & FLAG_OVERWRITE)
		return err_set(err, -EOPNOTSUPP,
			       "map %u is a ring buffer that overwrites records that were not read "
			       "in time; --consume reads it",
			       map->info.id);
	if (!size || size & (size - 1))
		return err_set(err, -EBADMSG,
			       "map %u: a ring buffer of %u bytes, which is no power of 2",
			       map->info.id, size);
	return 0;
}

int bpfmap_peek_ring(struct cairn_bpfmap *map, bpfmap_entry_fn *on_entry, void *ctx,
		     struct cairn_bpfmap_stats *stats, struct cairn_err *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size = map->info.max_entries;
	int rc = check_ring(map, err);

	if (rc < 0)
		return rc;
	size_t n = page * 2 + size * 2;
	uint8_t *at = mmap(NULL, n, PROT_READ, MAP_SHARED, map->fd, 0);
	if (at == MAP_FAILED)
		return err_set(err, -errno, "mapping the ring buffer of map %u: %s", map->info.id,
			       strerror(errno));
	rc = ring_peek((const uint64_t *)at, (const uint64_t *)(at + page), at + 2 * page, size,
		       on_entry, ctx, stats, err);
	munmap(at, n);
	return rc;
}

struct consumer {
	bpfmap_entry_fn *on_entry;
	void *ctx;
	struct cairn_bpfmap_stats *stats;
	int stop;
};

static int on_sample(void *ctx, void *data, size_t n)
{
	struct consumer *c = ctx;
	struct cairn_bpfmap_entry entry = {.value = data, .n_value = (uint32_t)n, .n_cpus = 1};

	c->stats->entries++;
	c->stop = c->on_entry(c->ctx, &entry);
	return c->stop ? -ECANCELED : 0;
}

int bpfmap_consume_ring(struct cairn_bpfmap *map, bpfmap_entry_fn *on_entry, void *ctx,
			struct cairn_bpfmap_stats *stats, struct cairn_err *err)
{
	struct consumer c = {.on_entry = on_entry, .ctx = ctx, .stats = stats};
	struct ring_buffer *ring = ring_buffer__new(map->fd, on_sample, &c, NULL);

	if (!ring)
		return err_set(err, -errno, "mapping the ring buffer of map %u: %s", map->info.id,
			       strerror(errno));
	int rc = ring_buffer__consume(ring);
	ring_buffer__free(ring);
	if (c.stop)
		return c.stop;
	return rc < 0 ? err_set(err, rc, "reading the ring buffer of map %u: %s", map->info.id,
				strerror(-rc))
		      : 0;
}
