/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for a region's tables: blocks of one size, from chunks that are unmapped together. */
#ifndef AGENT_JIT_POOL_H
#define AGENT_JIT_POOL_H

#include <cairn/shared/codectl.h>

enum {
	/*
	 * 1,364 rows: the unit that moves when addresses are used again, and one read for a reader
	 * of the chain.
	 */
	JIT_BLOCK_BYTES = 32768,
	JIT_CHUNK_BYTES = 1 << 20, /* the first; others are as large as a huge page */
	JIT_HUGE_BYTES = 2 << 20,
};

struct jit_chunk;

struct jit_pool {
	struct jit_chunk *chunks;
	struct code_jit_table *unused; /* by next */
	/* blocks of the last chunk that were handed out, and were not */
	size_t n_cut, n_left;
};

/* NULL when there is no memory. Some system calls for every 31 blocks, then for every 63. */
struct code_jit_table *jit_pool_take(struct jit_pool *pool);

/* No reader finds @block any more, or it will see that the epoch has changed. */
void jit_pool_give(struct jit_pool *pool, struct code_jit_table *block);

void jit_pool_fini(struct jit_pool *pool);

#endif
