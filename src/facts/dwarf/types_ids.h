/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader of types: its ids, and the list of types that are still to be read
 *
 *	types_ids.c  <-  types_array.c, types_inside.c  <-  types.c  <-  types_complete.c
 *
 * Code that meets a type reserves an id for it here and goes on: no file calls one that is further
 * right. types.c reads the types on the list; types_array.c and types_inside.c read arrays and
 * parts. types_complete.c reads the types that were left unread.
 */
#ifndef DWARF_TYPES_IDS_H
#define DWARF_TYPES_IDS_H

#include "base/map.h"
#include "base/vec.h"
#include "dwarf/constants.h"
#include "dwarf/impl.h"
#include "dwarf/type_index.h"
#include "dwarf/types.h"

/* The type @id ends @end bytes, and those of @type, after its start, or later. */
struct dw_extent {
	uint32_t id, type;
	uint64_t end;
};

struct dw_types {
	const struct dwarf *dw;
	struct cairn_types *graph;
	uint8_t pointer_size;        /* 0: the size of the unit's addresses */
	struct map ids;              /* DIE offset to id */
	struct map unread;           /* id to DIE offset; once a definition was read, to its */
	struct map fates;            /* id of a class to its special members (types_passing.c) */
	struct dw_type_index *index; /* made when it is needed first */
	bool indexes_typedefs;       /* that one lists them, too */
	VEC(struct {
		dw_off off;
		uint32_t id;
	})
	todo;
	VEC(uint32_t) arrays; /* whose size waits for that of their elements */
	VEC(struct dw_extent) extents;
};

/* The id of a DIE, reserved and put on the work list when it is new; 0 only when out of memory. */
uint32_t dw_types_id(struct dw_types *r, dw_off off);
/*
 * The id that a reference of @die stands for. Not dw_ref(), which treats damage as absence: absence
 * is void here, and a pointer to an unreadable type is not a void pointer. 0, -EBADMSG (no
 * reference), -ENOMEM.
 */
int dw_types_id_of(struct dw_types *r, const struct dw_die *die, const struct dw_value *v,
		   uint32_t *ret, struct cairn_err *err);
/* DW_AT_type of a DIE itself; *@ret is void when it has none. 0 or negative. */
int dw_types_ref(struct dw_types *r, const struct dw_die *die, uint32_t *ret,
		 struct cairn_err *err);
/* A type whose bytes are not decoded; fills *@t. */
int dw_types_read_opaque(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			 struct cairn_err *err);
/* A node of @size bytes that are not decoded; 0 when out of memory. */
uint32_t dw_types_opaque(struct dw_types *r, const char *name, uint64_t size);

#endif
