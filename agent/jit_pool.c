/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks are used again while a reader may still be in them: it finds that out by the epoch. They are not unmapped before
 * the region is closed, so such a reader does not run into a hole either. The first block of a chunk is its head.
 */
#include "jit_pool.h"

#include <stdbool.h>
#include <sys/mman.h>

struct jit_chunk {
	struct jit_chunk *next;
};

enum { BLOCKS_IN_CHUNK = JIT_CHUNK_BYTES / JIT_BLOCK_BYTES };

static bool add_chunk(struct jit_pool *pool)
{
	struct jit_chunk *chunk =
		mmap(NULL, JIT_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (chunk == MAP_FAILED)
		return false;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->n_cut = 1;
	return true;
}

struct code_jit_table *jit_pool_take(struct jit_pool *pool)
{
	struct code_jit_table *block = pool->unused;
	if (block) {
		pool->unused = (struct code_jit_table *)(uintptr_t)block->next;
		return block;
	}
	if ((!pool->chunks || pool->n_cut == BLOCKS_IN_CHUNK) && !add_chunk(pool))
		return NULL;
	return (struct code_jit_table *)((uint8_t *)pool->chunks + pool->n_cut++ * JIT_BLOCK_BYTES);
}

void jit_pool_give(struct jit_pool *pool, struct code_jit_table *block)
{
	__atomic_store_n(&block->next, (uintptr_t)pool->unused, __ATOMIC_RELAXED);
	pool->unused = block;
}

void jit_pool_fini(struct jit_pool *pool)
{
	while (pool->chunks) {
		struct jit_chunk *next = pool->chunks->next;
		munmap(pool->chunks, JIT_CHUNK_BYTES);
		pool->chunks = next;
	}
	*pool = (struct jit_pool){0};
}
