/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of a sidecar, read into a graph when they are asked for
 *
 * .cairn.types has what names need; what a struct consists of is in .BTF. complete.c brings the two together.
 */
#ifndef PACK_SITES_TYPES_H
#define PACK_SITES_TYPES_H

#include <cairn/btf.h>

#include "base/map.h"
#include "base/vec.h"
#include "pack/pack_impl.h"
#include "types/build.h"

struct pack_types {
	const struct cairn_pack *pack;
	struct cairn_types *graph; /* of the same numbers, then those that .BTF adds */
	uint8_t *known;		   /* by number of .cairn.types */
	VEC(uint32_t) wanted;

	/* Made by the first type that has to be completed. */
	bool opened;
	struct cairn_btf *btf;
	struct cairn_types *whole; /* of .BTF */
	struct map from_whole;	   /* id in whole to id in graph */
	struct map to_whole;	   /* the reverse, of those that are known */
	VEC(uint32_t) inside;	   /* what is still to be completed */
	size_t n_lost;		   /* could not be completed */
};

/* Returns 0 or -ENOMEM; pack_types_fini() also afterwards. */
int pack_types_init(struct pack_types *t, const struct cairn_pack *pack);
void pack_types_fini(struct pack_types *t);

/* Read a type and all that its name needs. Returns its id: @number, or 0 (void) for one that is damaged; -ENOMEM in @rc. */
uint32_t pack_types_read(struct pack_types *t, uint32_t number, int *rc);

/*
 * pack_types_complete - as cairn_sites_complete_type()
 *
 * A struct or enum that .BTF has twice under this name and size, or not at all, stays unread: never another's members.
 * Returns 0, -EBADMSG (damaged .BTF), -ENOMEM.
 */
int pack_types_complete(struct pack_types *t, uint32_t id, struct cairn_err *err);

#endif
