/* SPDX-License-Identifier: BSD-2-Clause */
/* Instances of classes to BTF records. */
#ifndef BTFGEN_EMIT_H
#define BTFGEN_EMIT_H

#include "btfgen/name_variants.h"

/* The input and the state of the main blob while it is written. */
struct emit {
	const struct classes *c;
	const struct variants *v;
	struct cairn_btf_builder *b;
	const struct cairn_btf *base; /* of main; NULL: none */
	uint32_t *ids;                /* per instance: its record; 0 none */
	uint32_t *group_ids;          /* per group: the record of its forward declaration; 0 none */
	uint32_t index_type;          /* of arrays; 0 none */
	uint32_t ptr_bytes;
	const bool *skip; /* per instance: prototypes that main has no use for */
	uint64_t *losses;
	VEC(struct cairn_btf_member) members;
	VEC(struct cairn_btf_enumerator) values;
	VEC(struct cairn_btf_param) params;
};

/*
 * emit_types - records of all instances that are used, except those to be skipped
 *
 * @e  c, v, b, skip, ptr_bytes, losses are set
 * Returns 0, -ERANGE, -ENOMEM. emit_fini() also then.
 */
int emit_types(struct emit *e, struct cairn_err *err);
void emit_fini(struct emit *e);

/*
 * emit_proto - the FUNC_PROTO of an instance that was skipped, in another builder
 *
 * The type that it refers to is in main. 0, -ERANGE, -ENOMEM.
 */
int emit_proto(struct emit *e, struct cairn_btf_builder *b, uint32_t instance, uint32_t *ret);

/*
 * The target of edge @i of an instance (0 is its own, then those of its elements; @own is the
 * class's).
 */
edge_t emit_edge(const struct emit *e, uint32_t instance, edge_t own, uint32_t i);

/* The id of an edge's target; 0 void. @unit as in name_variants_edge(). */
uint32_t emit_id(const struct emit *e, uint32_t unit, edge_t edge);

/*
 * Bytes of a value of an instance's type; 0 when that is not known. Typedefs and qualifiers are
 * followed.
 */
uint64_t emit_bytes(const struct emit *e, edge_t resolved);

/* True if such values have a sign: integers declared signed, enums with a negative value. */
bool emit_is_signed(const struct emit *e, edge_t resolved);

#endif
