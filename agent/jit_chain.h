/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chain of tables of rows, symbols or lines, written while it is read; the essay is in
 * jit_chain.c.
 */
#ifndef AGENT_JIT_CHAIN_H
#define AGENT_JIT_CHAIN_H

#include <stdbool.h>

#include "jit_pool.h"

enum jit_kind { JIT_ROWS, JIT_SYMBOLS, JIT_LINES, JIT_N_KINDS };

enum { JIT_APPEND_MAX = 512 }; /* elements at once; half a table of symbols */

/* The writer's data about a table; addresses are offsets in the region. */
struct jit_ref {
	struct code_jit_table *table;
	uint64_t lo;  /* of its first element, or of the one that it was made for */
	uint64_t end; /* after all elements that were ever in it in this epoch */
};

/* Some tables of the chain, [first, first + n), are replaced in the next generation. */
struct jit_plan {
	bool is_made;
	uint32_t first, n;
	struct jit_ref made[3];
	uint32_t n_made;
	uint32_t current; /* among made: the one to append to */
};

struct jit_chain {
	enum jit_kind kind;
	struct jit_pool *pool;
	struct jit_ref *refs; /* by address */
	uint32_t n_refs, room;
	/* The table that elements are appended to, for addresses [lo, hi). */
	struct code_jit_table *table;
	uint32_t current; /* its number */
	uint64_t lo, hi;
	uint64_t region_bytes;
	/*
	 * The last withdrawn element: JITs give up code in the order in which they made it, or in
	 * the reverse order.
	 */
	uint32_t swept;    /* number of the table */
	uint64_t swept_at; /* byte of its elements */
	struct jit_plan plan;
};

void jit_chain_init(struct jit_chain *chain, enum jit_kind kind, struct jit_pool *pool,
		    uint64_t region_bytes);
void jit_chain_fini(struct jit_chain *chain); /* its tables go with the pool */

/* The first table, for the registration; NULL when there is none. With a plan: as it will be. */
struct code_jit_table *jit_chain_head(const struct jit_chain *chain);

/*
 * jit_chain_find_room - a table for @n elements, at most JIT_APPEND_MAX, at addresses [@lo, @hi)
 *
 * Returns 0 when jit_chain_append() can be called; 1 when that needs a new generation, for which a
 * plan was made and nothing that readers see has changed; -EEXIST when something is described
 * there; -ENOMEM.
 */
int jit_chain_find_room(struct jit_chain *chain, uint64_t lo, uint64_t hi, size_t n);

/* The new tables are put into the chain: before the new epoch is valid. */
void jit_chain_splice(struct jit_chain *chain);
/* The old tables are used for something else: when the old epoch is not valid any more. */
void jit_chain_finish(struct jit_chain *chain, void (*drop)(void *ctx, const void *element),
		      void *ctx);
/* Instead of both. */
void jit_chain_cancel(struct jit_chain *chain);

/* The parts of a chain's elements, in bytes. */
static inline size_t jit_stride(enum jit_kind kind)
{
	static const uint8_t strides[JIT_N_KINDS] = {
		[JIT_ROWS] = sizeof(struct code_jit_unwind_fre),
		[JIT_SYMBOLS] = sizeof(struct code_jit_symbol),
		[JIT_LINES] = sizeof(struct code_jit_line),
	};
	return strides[kind];
}

/* Whether @n elements at [@lo, @hi) can be appended right away. */
static inline bool jit_chain_fits(const struct jit_chain *chain, uint64_t lo, uint64_t hi,
				  size_t n_bytes)
{
	/* Without a table no address is at or above lo. */
	return lo >= chain->lo && hi <= chain->hi &&
	       chain->table->reserved_len - chain->table->used_len >= n_bytes;
}

/*
 * The position of the next element. Elements are stored word by word, and then published together.
 */
static inline uint64_t *jit_chain_next(const struct jit_chain *chain)
{
	return (uint64_t *)((uint8_t *)(chain->table + 1) + chain->table->used_len);
}

static inline void jit_chain_publish(struct jit_chain *chain, uint64_t hi, size_t n_bytes)
{
	chain->lo = hi;
	__atomic_store_n(&chain->table->used_len, chain->table->used_len + n_bytes,
			 __ATOMIC_RELEASE);
}

/* Withdraw all elements at addresses [@lo, @hi): one store each. */
void jit_chain_withdraw(struct jit_chain *chain, uint64_t lo, uint64_t hi);

/* Every element, also withdrawn ones. */
void jit_chain_each(const struct jit_chain *chain, void (*each)(void *ctx, const void *element),
		    void *ctx);

#endif
