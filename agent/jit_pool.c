/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks are used again while a reader may still be in them: it finds that out by the epoch. They
 * are not unmapped before the region is closed, so such a reader does not run into a hole either.
 * The first block of a chunk is its head.
 *
 * A process that fills the first chunk makes much code. Then the cost is the memory, a fault for
 * every 40 functions; so all other chunks ask for a huge page each.
 */
#include "jit_pool.h"

#include <stdbool.h>
#include <sys/mman.h>

struct jit_chunk {
	struct jit_chunk *next;
	size_t n_bytes;
};

static void *map(size_t n_bytes)
{
	void *at = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

/* At a multiple of its size, where a huge page can be. */
static void *map_huge(void)
{
	uint8_t *at = map(2 * JIT_HUGE_BYTES);
	if (!at)
		return NULL;
	size_t before = -(uintptr_t)at % JIT_HUGE_BYTES;
	if (before)
		munmap(at, before);
	munmap(at + before + JIT_HUGE_BYTES, JIT_HUGE_BYTES - before);
	/* Not every kernel has them: then it is memory like any other. */
	madvise(at + before, JIT_HUGE_BYTES, MADV_HUGEPAGE);
	return at + before;
}

static bool add_chunk(struct jit_pool *pool)
{
	size_t n_bytes = pool->chunks ? JIT_HUGE_BYTES : JIT_CHUNK_BYTES;
	struct jit_chunk *chunk = pool->chunks ? map_huge() : map(n_bytes);
	if (!chunk)
		return false;
	chunk->next = pool->chunks;
	chunk->n_bytes = n_bytes;
	pool->chunks = chunk;
	pool->n_cut = 1;
	pool->n_left = n_bytes / JIT_BLOCK_BYTES - 1;
	return true;
}

struct code_jit_table *jit_pool_take(struct jit_pool *pool)
{
	struct code_jit_table *block = pool->unused;
	if (block) {
		pool->unused = (struct code_jit_table *)(uintptr_t)block->next;
		return block;
	}
	if (!pool->n_left && !add_chunk(pool))
		return NULL;
	pool->n_left--;
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
		munmap(pool->chunks, pool->chunks->n_bytes);
		pool->chunks = next;
	}
	*pool = (struct jit_pool){0};
}
