/* SPDX-License-Identifier: BSD-2-Clause */
/* Types of a sidecar, read into a graph when they are asked for. */
#ifndef PACK_SITES_TYPES_H
#define PACK_SITES_TYPES_H

#include "base/vec.h"
#include "pack/pack_impl.h"
#include "types/build.h"

struct pack_types {
	const struct cairn_pack *pack;
	struct cairn_types *graph; /* of the same numbers */
	uint8_t *known;		   /* by number */
	VEC(uint32_t) wanted;
};

/* Returns 0 or -ENOMEM; pack_types_fini() also afterwards. */
int pack_types_init(struct pack_types *t, const struct cairn_pack *pack);
void pack_types_fini(struct pack_types *t);

/* Read a type and all that its name needs. Returns its id: @number, or 0 (void) for one that is damaged; -ENOMEM in @rc. */
uint32_t pack_types_read(struct pack_types *t, uint32_t number, int *rc);

#endif
