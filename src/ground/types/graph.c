/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Storage of the type graph
 *
 * Nodes lie in chunks of equal size, and a directory points at the chunks:
 *
 *	id 2050 ──► directory[2050 / 1024 = 2] ──► chunk ──► node 2050 % 1024 = 2
 *
 * When the graph grows only the directory moves. So a pointer to a node stays valid while a reader
 * goes on adding. This lets a lazy reader and the users of its results share one graph.
 */
#include "types/build.h"

#include <stdlib.h>

#include "base/vec.h"

/* 1024 nodes are about 100 KiB: small beside any real graph, few enough steps for a large one. */
enum { CHUNK_BITS = 10, CHUNK = 1 << CHUNK_BITS };

/* Ids above are free for callers to mark with a high bit. */
static const uint32_t ID_LIMIT = UINT32_C(1) << 31;

struct cairn_types {
	struct arena arena;
	VEC(struct cairn_type *) chunks;
	VEC(struct cairn_type *) blocks; /* as they were allocated: chunks in a row */
	uint32_t n;
};

struct cairn_types *types_new(void)
{
	struct cairn_types *types = calloc(1, sizeof(*types));
	if (!types)
		return NULL;
	arena_init(&types->arena);
	/*
	 * Id 0 is void, and a zeroed node is void. The id itself is the result: 0, as for failure.
	 */
	types_reserve(types);
	if (types->n == 1)
		return types;
	types_free(types);
	return NULL;
}

void types_free(struct cairn_types *types)
{
	if (!types)
		return;
	for (size_t i = 0; i < types->blocks.n; i++)
		free(types->blocks.p[i]);
	VEC_FREE(&types->blocks);
	VEC_FREE(&types->chunks);
	arena_fini(&types->arena);
	free(types);
}

struct arena *types_arena(struct cairn_types *types)
{
	return &types->arena;
}

static struct cairn_type *node(const struct cairn_types *types, uint32_t id)
{
	return &types->chunks.p[id >> CHUNK_BITS][id & (CHUNK - 1)];
}

static bool add_chunks(struct cairn_types *types, size_t n)
{
	struct cairn_type *block = calloc(n * CHUNK, sizeof(*block));

	if (!block || !VEC_ADD(&types->blocks, block)) {
		free(block);
		return false;
	}
	for (size_t i = 0; i < n; i++)
		if (!VEC_ADD(&types->chunks, block + i * CHUNK))
			return false;
	return true;
}

uint32_t types_reserve(struct cairn_types *types)
{
	if (types->n == ID_LIMIT)
		return 0;
	if (types->n == types->chunks.n * CHUNK && !add_chunks(types, 1))
		return 0;
	return types->n++;
}

/* In one block, of which the system gives only the pages that are touched. */
bool types_reserve_to(struct cairn_types *types, uint32_t end)
{
	size_t have = types->chunks.n, need = ((size_t)end + CHUNK - 1) / CHUNK;

	if (end > ID_LIMIT || (need > have && !add_chunks(types, need - have)))
		return false;
	if (types->n < end)
		types->n = end;
	return true;
}

struct cairn_type *types_node(struct cairn_types *types, uint32_t id)
{
	/* Void stays void, whatever a reader that ran out of ids does with its 0. */
	return id && id < types->n ? node(types, id) : NULL;
}

void types_set(struct cairn_types *types, uint32_t id, const struct cairn_type *type)
{
	struct cairn_type *to = types_node(types, id);

	if (to)
		*to = *type;
}

/* Void for an id that is none. */
static inline const struct cairn_type *get(const struct cairn_types *types, uint32_t id)
{
	return node(types, id < types->n ? id : 0);
}

const struct cairn_type *cairn_types_get(const struct cairn_types *types, uint32_t id)
{
	return get(types, id);
}

uint32_t cairn_types_n_types(const struct cairn_types *types)
{
	return types->n;
}

static bool is_transparent(enum cairn_type_kind kind)
{
	switch (kind) {
	case CAIRN_T_TYPEDEF:
	case CAIRN_T_CONST:
	case CAIRN_T_VOLATILE:
	case CAIRN_T_RESTRICT:
	case CAIRN_T_ATOMIC:
		return true;
	default:
		return false;
	}
}

/* Typedefs of typedefs and qualifiers: real chains have less than twenty. A ring must end. */
enum { CHAIN_LIMIT = 1024 };

/* Views of whole kernels ask for millions: no call of a function that another may replace. */
static inline uint32_t resolve(const struct cairn_types *types, uint32_t id)
{
	for (unsigned int steps = 0; steps < CHAIN_LIMIT; steps++) {
		const struct cairn_type *t = get(types, id);
		if (!is_transparent(t->kind))
			return id < types->n ? id : 0;
		id = t->ref;
	}
	return 0;
}

uint32_t cairn_types_resolve(const struct cairn_types *types, uint32_t id)
{
	return resolve(types, id);
}

/* Typedefs, qualifiers and arrays around a value's type. Real ones have less than ten. */
enum { AROUND_LIMIT = 256 };

uint32_t types_substance(const struct cairn_types *types, uint32_t id)
{
	for (unsigned int around = 0; around < AROUND_LIMIT; around++) {
		id = resolve(types, id);
		const struct cairn_type *t = get(types, id);
		if (t->kind != CAIRN_T_ARRAY)
			return id;
		id = t->ref;
	}
	return 0;
}

uint64_t cairn_types_size(const struct cairn_types *types, uint32_t id)
{
	return get(types, resolve(types, id))->size;
}
