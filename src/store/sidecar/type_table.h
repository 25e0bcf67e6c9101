/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of a whole program, each once, with their insides
 *
 * Every unit describes the types that it uses, most of them like all others. A record of
 * .cairn.types stands for all descriptions that print alike:
 *
 *	unit 1: DIE 0x2d "char", 0x34 pointer to 0x2d  ──►  1 is "char", 2 is pointer to 1
 *	unit 2: DIE 0x9f "char", 0x98 pointer to 0x9f  ──►  the same two
 *	unit 1: DIE 0x40 struct s { char *p; }         ──►  3 is struct s, "p" at 0: type 2
 *	unit 2: DIE 0xa6 struct s { char *p; }         ──►  the same one
 *
 * Types without an inside are equal when their records are; the types that they refer to are
 * numbered before them. A struct, union or enum may lead to itself. It is known by its meaning
 * (btfgen/meanings.h), which gives the inside, and by the parts of its outside that BTF does not
 * fully record: "class" or "struct", an alignment, whether the name stands alone. It gets its
 * number when it is first met. Its record is written after everything else was numbered, from the
 * description that was met first.
 */
#ifndef SIDECAR_TYPE_TABLE_H
#define SIDECAR_TYPE_TABLE_H

#include <cairn/types.h>

#include "base/map.h"
#include "btfgen/meanings.h"
#include "dwarf/types.h"
#include "sidecar/intern.h"
#include "sidecar/record_set.h"

/* A struct, union or enum. */
struct content_record {
	uint32_t number;
	uint32_t called;     /* id of the description that has the name */
	uint32_t definition; /* id of the definition whose inside is written */
	size_t from, size;   /* in insides, once it is */
};

struct type_table {
	struct dw_types *reader;
	const struct cairn_types *graph; /* that the reader fills */
	const struct meanings *meanings;
	struct strings *strings;
	VEC(uint32_t) number; /* by id of the graph: number + 1, 0 not yet, or TYPE_BUSY */
	VEC(uint32_t) stack;
	struct record_set outsides;          /* of each type: the data that tells it from others */
	VEC(struct content_record) contents; /* by number */
	struct bytes insides;
	size_t n_done;        /* of contents */
	VEC(uint32_t) listed; /* three each, see .cairn.type_names in format.h */
};

/* Number of a type; 0 is void. Returns 0, -ENOMEM, -ERANGE. */
int type_table_add(struct type_table *t, uint32_t id, uint32_t *ret);

/*
 * type_table_finish - list the types that a user can name, and write the insides of all
 *
 * Returns 0, -ENOMEM, -ERANGE, -EBADMSG (the debug information). A damaged type becomes a type
 * named "<damaged>".
 */
int type_table_finish(struct type_table *t, struct cairn_err *err);
void type_table_fini(struct type_table *t);

/* .cairn.types and .cairn.type_names. */
void encode_types(const struct type_table *t, struct bytes *ret);
void encode_type_names(const struct type_table *t, struct bytes *ret);

#endif
