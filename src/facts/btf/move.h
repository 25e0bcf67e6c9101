/* SPDX-License-Identifier: BSD-2-Clause */
/* Moving records of one blob into another: ids by a map, names by their text. */
#ifndef BTF_MOVE_H
#define BTF_MOVE_H

#include "btf/btf.h"
#include "btf/build.h"

struct btf_move {
	const struct cairn_btf *btf; /* from */
	struct cairn_btf_builder *b; /* to */
	const uint32_t *map;         /* by id of @btf's chain: the id in the result */
};

/*
 * btf_move_record - add a record of @m->btf or its bases
 *
 * Sites of a LOCSEC are sorted as the dialect has them, because ids are part of the order. A record
 * of a kind that is not known goes as it is, if it can (btf/opaque.h).
 * Returns 0, -EBADMSG (an id or a string that does not exist), -EOPNOTSUPP, -ENOMEM, -ERANGE.
 */
int btf_move_record(const struct btf_move *m, uint32_t id, struct cairn_err *err);

/*
 * btf_check_movable - 0 when all own records of known kinds can be moved
 *
 * -EBADMSG: a reference to an id or string that does not exist.
 */
int btf_check_movable(const struct cairn_btf *btf, struct cairn_err *err);

/* Sort the sites of a LOCSEC: N by (func, offset, loc_proto), v1 by offset, then the same. */
void btf_sort_sites(uint32_t *record, enum cairn_btf_dialect dialect);

#endif
