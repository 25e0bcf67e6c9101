/* SPDX-License-Identifier: BSD-2-Clause */
/* A map of the kernel, for the files bpfmap_*.c. */
#ifndef DECODE_BPFMAP_H
#define DECODE_BPFMAP_H

#include <cairn/bpfmap.h>
#include <cairn/btf.h>

#include "base/vec.h"

/* BTF of the kernel's, and the same as types. */
struct bpfmap_btf {
	uint32_t id;
	void *bytes;
	struct cairn_btf *btf;
	struct cairn_types *types;
};

enum bpfmap_how {
	BPFMAP_KEYS,  /* by keys, or many at once */
	BPFMAP_QUEUE, /* lookup without a key: the next one */
	BPFMAP_RING,
	BPFMAP_OWNERS, /* lookup by a descriptor of the value's owner */
	BPFMAP_NOT,
};

struct cairn_bpfmap {
	int fd;
	enum bpfmap_how how;
	uint32_t flags; /* BPF_F_* it was made with */
	struct cairn_bpfmap_info info;
	char kind_text[24];
	VEC(struct bpfmap_btf) btfs;
};

typedef int bpfmap_entry_fn(void *ctx, const struct cairn_bpfmap_entry *entry);

/* bpfmap_entries.c */
int bpfmap_each_key(struct cairn_bpfmap *map, bpfmap_entry_fn *on_entry, void *ctx,
		    struct cairn_bpfmap_stats *stats, struct cairn_err *err);
int bpfmap_each_queued(struct cairn_bpfmap *map, bool consume, bpfmap_entry_fn *on_entry, void *ctx,
		       struct cairn_bpfmap_stats *stats, struct cairn_err *err);

/* bpfmap_storage.c */
int bpfmap_each_owner(struct cairn_bpfmap *map, bpfmap_entry_fn *on_entry, void *ctx,
		      struct cairn_bpfmap_stats *stats, struct cairn_err *err);

/* bpfmap_ring.c */
int bpfmap_peek_ring(struct cairn_bpfmap *map, bpfmap_entry_fn *on_entry, void *ctx,
		     struct cairn_bpfmap_stats *stats, struct cairn_err *err);
int bpfmap_consume_ring(struct cairn_bpfmap *map, bpfmap_entry_fn *on_entry, void *ctx,
			struct cairn_bpfmap_stats *stats, struct cairn_err *err);

/*
 * ring_peek - the records of a ring in memory, as bpfmap_peek_ring()
 *
 * @consumer, @producer positions, which others change at any time
 * @data                 @size bytes, followed by the same bytes again, so that no record is in two
 *	                  pieces
 */
int ring_peek(const uint64_t *consumer, const uint64_t *producer, const uint8_t *data,
	      uint64_t size, bpfmap_entry_fn *on_entry, void *ctx, struct cairn_bpfmap_stats *stats,
	      struct cairn_err *err);

#endif
