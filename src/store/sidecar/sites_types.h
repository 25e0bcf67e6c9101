/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of a sidecar, read into a graph on demand
 *
 * The graph has the numbers of .cairn.types. A struct, union or enum is read only as far as its
 * name needs, and is marked unread; complete.c reads its inside.
 */
#ifndef SIDECAR_SITES_TYPES_H
#define SIDECAR_SITES_TYPES_H

#include "base/vec.h"
#include "sidecar/sidecar_impl.h"
#include "types/build.h"

struct sidecar_types {
	const struct cairn_sidecar *sidecar;
	struct cairn_types *graph; /* of the same numbers */
	uint8_t *known;            /* by number: it is in the graph, or wanted */
	VEC(uint32_t) wanted;
	VEC(uint32_t) inside; /* types still to be completed */
	size_t n_lost;        /* could not be completed */
};

/* Returns 0 or -ENOMEM; sidecar_types_fini() also afterwards. */
int sidecar_types_init(struct sidecar_types *t, const struct cairn_sidecar *sidecar);
void sidecar_types_fini(struct sidecar_types *t);

/*
 * Read a type and all that its name needs. Returns its id: @number, or 0 (void) for one that is
 * damaged; -ENOMEM in @rc.
 */
uint32_t sidecar_types_read(struct sidecar_types *t, uint32_t number, int *rc);

/*
 * sidecar_types_outside - all of a record but the inside
 *
 * @c         at the record; after its outside on return
 * @ret_full  as the compiler describes it; without its inside. References are ids, which are
 *	       wanted.
 * Returns whether there is an inside; -ENOMEM. The cursor has failed when the record is damaged.
 */
int sidecar_types_outside(struct sidecar_types *t, struct cursor *c, struct cairn_type *ret_full);

/*
 * The id of a number that a record names, which is read by sidecar_types_drain(). -ENOMEM in @rc.
 */
uint32_t sidecar_types_want(struct sidecar_types *t, uint64_t number, int *rc);
int sidecar_types_drain(struct sidecar_types *t);

/*
 * sidecar_types_complete - as cairn_sites_complete_type(). Returns 0, -EBADMSG (a damaged record),
 * -ENOMEM.
 */
int sidecar_types_complete(struct sidecar_types *t, uint32_t id, struct cairn_err *err);

#endif
