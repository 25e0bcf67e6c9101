/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table in the kernel that grows, an array of equal blocks. Each block is a map of its own, and
 * its memory is shared with us.
 */
#ifndef WALK_CHUNKS_H
#define WALK_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"

struct chunks {
	int fd; /* of the array of maps */
	const char *name;
	size_t element, n_elements; /* bytes of one; number in a block */
	size_t max_blocks;
	VEC(uint8_t *) blocks; /* mapped */
};

/*
 * chunks_init - an empty table
 *
 * @fd          borrowed; -1: the blocks are memory of this process only, for tests
 * @element     bytes of an element, a multiple of 8
 * @n_elements  of a block
 */
void chunks_init(struct chunks *c, const char *name, int fd, size_t element, size_t n_elements);
void chunks_fini(struct chunks *c);

/*
 * chunks_grow - one block more; zeroed
 *
 * Returns its number, or negative: -ENOSPC: as many blocks as there may be; -ENOMEM,
 * the errors of bpf(2).
 */
int chunks_grow(struct chunks *c, struct cairn_err *err);

/* Element number @i, counted over all blocks; they have it. */
void *chunks_at(const struct chunks *c, size_t i);

size_t chunks_bytes(const struct chunks *c);

#endif
