/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the type reader share
 *
 *	types.c           the reader: memo, work list, one function per kind of type
 *	types_array.c     arrays
 *	types_inside.c    members, bit-fields, enumerators
 *	types_complete.c  looking inside, definitions for declarations
 *	type_names.c      qualified names
 *	type_index.c      definitions by name, in all units
 */
#ifndef DWARF_TYPES_IMPL_H
#define DWARF_TYPES_IMPL_H

#include "base/map.h"
#include "base/vec.h"
#include "dwarf/constants.h"
#include "dwarf/impl.h"
#include "dwarf/types.h"

/* ---- type_names.c ---- */

/* Longest qualified name that is kept; templates of templates reach some thousand characters. */
enum { DW_TYPE_NAME_MAX = 16 << 10 };

/*
 * dw_type_name - @name with the scopes that enclose the DIE at @off in front
 *
 * Returns its length; 0 when it is longer than @size or nested too deep; negative as dw_scopes_around().
 * @ret_private  it is local to a function or in an anonymous namespace; may be NULL
 */
int64_t dw_type_name(const struct dwarf *dw, dw_off off, const char *name, char *buf, size_t size,
		     bool *ret_private, struct cairn_err *err);

/* ---- type_index.c ---- */

struct dw_type_index;
int dw_type_index_new(const struct dwarf *dw, unsigned int threads, struct dw_type_index **ret,
		      struct cairn_err *err);
void dw_type_index_free(struct dw_type_index *index);
/* All that are listed, sorted; free(). NULL: no memory. */
dw_off *dw_type_index_offsets(const struct dw_type_index *index, size_t *ret_n);

/*
 * The definition of that name. 1 and *@ret; 0 none; -ENOTUNIQ. In one unit only:
 * dw_type_index_in_unit(), which lists nothing.
 */
int dw_type_index_find(const struct dw_type_index *index, uint16_t tag, const char *name,
		       dw_off *ret, struct cairn_err *err);
int dw_type_index_in_unit(const struct dw_unit *u, uint16_t tag, const char *name, dw_off *ret,
			  struct cairn_err *err);

/* ---- types.c ---- */

struct dw_types {
	const struct dwarf *dw;
	struct cairn_types *graph;
	struct map ids;	   /* DIE offset to id */
	struct map unread; /* id to DIE offset; 0 once it is read */
	struct dw_type_index *index; /* made when it is needed first */
	VEC(struct {
		dw_off off;
		uint32_t id;
	})
	todo;
	VEC(uint32_t) arrays; /* whose size waits for that of their elements */
};

/* The id of a DIE, reserved and put on the work list when it is new; 0 only when out of memory. */
uint32_t dw_types_id(struct dw_types *r, dw_off off);
/* DW_AT_type of a DIE itself; *@ret is void when it has none. 0 or negative. */
int dw_types_ref(struct dw_types *r, const struct dw_die *die, uint32_t *ret,
		 struct cairn_err *err);
/* A node of @size bytes that are not decoded; 0 when out of memory. */
uint32_t dw_types_opaque(struct dw_types *r, const char *name, uint64_t size);

/* Read all that is on the work list, also behind a failure; the first failure is told. */
int dw_types_drain(struct dw_types *r, struct cairn_err *err);
/* A struct, class, union or enum from the outside; a type whose bytes are not decoded. Fill *@t. */
int dw_types_read_named(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			struct cairn_err *err);
int dw_types_read_opaque(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			 struct cairn_err *err);

/* ---- types_array.c ---- */

/* Fills *@t for the outermost dimension, whose id is @id, and adds nodes for the others. */
int dw_types_read_array(struct dw_types *r, const struct dw_die *die, uint32_t id,
			struct cairn_type *t, struct cairn_err *err);
/* Sizes of all arrays that were read; their elements are known by now. */
int dw_types_size_arrays(struct dw_types *r, struct cairn_err *err);

/* ---- types_inside.c ---- */

/* Members of a struct, parameters of a function type, enumerators; added to *@t. 0 or negative. */
int dw_types_members(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
		     struct cairn_err *err);
int dw_types_parameters(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			struct cairn_err *err);
int dw_types_enumerators(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			 struct cairn_err *err);

#endif
