/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of dedup: dedup.c loads the graph and writes the result. dedup_partition.c finds equal
 * types, dedup_forward.c those that differ only in forward declarations, dedup_defined.c those
 * among them that the base must not stand for.
 */
#ifndef BTF_DEDUP_H
#define BTF_DEDUP_H

#include "btf/btf.h"

/*
 * A set of nodes that were not separated: members[first] to members[first + n - 1], in ascending
 * order.
 */
struct btf_class {
	uint32_t first, n;
};

/*
 * The types of a blob and its bases as a graph. Nodes are ids; 0 is void. Records are copies, whose
 * names are made equal where their texts are: equal texts have equal offsets.
 */
struct btf_graph {
	const struct cairn_btf *btf;
	uint32_t n;        /* nodes: end_id */
	uint32_t *words;   /* records of the whole chain */
	uint32_t *records; /* first word of each node's record; for node 0: 0 */
	/* of kinds not known: one without ids and names */
	const struct btf_shape *shapes[BTF_KIND_MAX + 1];
	/*
	 * The node that replaces a node wherever something refers to it: itself, or the definition
	 * for a declaration.
	 */
	uint32_t *stands;
	/* The partition. */
	uint32_t *class_of;
	uint32_t *members;
	struct btf_class *classes;
	uint32_t n_classes;
};

static inline uint32_t *btf_graph_record(const struct btf_graph *g, uint32_t node)
{
	return g->words + g->records[node];
}

static inline uint32_t btf_graph_kind(const struct btf_graph *g, uint32_t node)
{
	return node ? BTF_KIND_OF(btf_graph_record(g, node)[BTF_RECORD_INFO]) : CAIRN_BTF_VOID;
}

static inline const struct btf_shape *btf_graph_shape(const struct btf_graph *g, uint32_t node)
{
	return g->shapes[btf_graph_kind(g, node)];
}

static inline struct btf_fields btf_graph_ids(const struct btf_graph *g, uint32_t node)
{
	return btf_ids_of(btf_graph_shape(g, node), btf_graph_record(g, node));
}

/* The class of a node's replacement. */
static inline uint32_t btf_graph_class(const struct btf_graph *g, uint32_t node)
{
	return g->class_of[g->stands[node]];
}

static inline bool btf_graph_is_struct(const struct btf_graph *g, uint32_t node)
{
	uint32_t kind = btf_graph_kind(g, node);
	return kind == CAIRN_BTF_STRUCT || kind == CAIRN_BTF_UNION;
}

/* Is @fwd a declaration of the struct or union @definition? */
static inline bool btf_graph_declares(const struct btf_graph *g, uint32_t fwd, uint32_t definition)
{
	if (btf_graph_kind(g, fwd) != CAIRN_BTF_FWD || !btf_graph_is_struct(g, definition))
		return false;
	const uint32_t *f = btf_graph_record(g, fwd), *d = btf_graph_record(g, definition);
	bool is_union = btf_graph_kind(g, definition) == CAIRN_BTF_UNION;
	return f[BTF_RECORD_NAME] == d[BTF_RECORD_NAME] &&
	       BTF_KFLAG_OF(f[BTF_RECORD_INFO]) == is_union;
}

/* Equal in everything but the ids they refer to; and a hash that agrees. Not of void. */
bool btf_graph_alike(const struct btf_graph *g, uint32_t a, uint32_t b);
uint64_t btf_graph_hash(const struct btf_graph *g, uint32_t node);

/*
 * btf_partition - the coarsest partition in which equal nodes are alike and refer to equal nodes
 *
 * Sets class_of, members, classes (all allocated by the caller for n nodes). stands is read, and
 * also written: if a forward declaration's name turns out to have several different definitions,
 * the declaration stands for itself.
 * Returns 0, -ENOMEM.
 */
int btf_partition(struct btf_graph *g);

/*
 * btf_unify_forwards - own structs that are equal to an earlier one if forward declarations are
 * taken for any struct of their name
 *
 * On a graph in which btf_partition() found no two equal nodes. Makes the earlier stand for the
 * later.
 * Returns how many, or -ENOMEM.
 */
int btf_unify_forwards(struct btf_graph *g);

/*
 * btf_point_to_defined - for each node: is it an own struct that leads to a definition which the
 * base only declares? The path goes through pointers and other types without members of their own.
 *
 * Returns an array for free(), or NULL when there is no memory.
 */
bool *btf_point_to_defined(const struct btf_graph *g);

#endif
