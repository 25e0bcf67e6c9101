/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module types holds a graph of types, which readers fill and all others read.
 *
 * This header: filling it.
 *
 * A reader reserves an id, so that types may refer to one another in circles, and sets the node
 * when it is known:
 *
 *	uint32_t id = types_reserve(types);	// void-like until set
 *	types_set(types, id, &(struct cairn_type){.kind = CAIRN_T_PTR, .size = 8, .ref = to});
 *
 * Strings and arrays in a node must live as long as the graph: in the input's mapping, or from
 * types_arena().
 */
#ifndef TYPES_BUILD_H
#define TYPES_BUILD_H

#include <cairn/types.h>

#include "base/arena.h"

/* NULL when out of memory. Holds void as id 0. */
struct cairn_types *types_new(void);
void types_free(struct cairn_types *types);
struct arena *types_arena(struct cairn_types *types);

/* A new id; 0 when out of memory or at the limit of 2^31 ids. */
uint32_t types_reserve(struct cairn_types *types);

/*
 * Ids below @end, all zeroed nodes; false when out of memory or above the limit. Nodes that are
 * never read cost no memory.
 */
bool types_reserve_to(struct cairn_types *types, uint32_t end);

/*
 * A reserved node, zeroed, to be filled in place; NULL for 0 and ids that were not reserved. Valid
 * until the graph is freed.
 */
struct cairn_type *types_node(struct cairn_types *types, uint32_t id);

/* @id was reserved; the struct is copied, the data that it points to is not. */
void types_set(struct cairn_types *types, uint32_t id, const struct cairn_type *type);

/* The type inside typedefs, qualifiers and arrays: the substance of a value of @id. */
uint32_t types_substance(const struct cairn_types *types, uint32_t id);

#endif
