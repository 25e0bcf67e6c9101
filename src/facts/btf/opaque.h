/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries records of unknown kinds
 *
 * The first word of any record is its name, the second its kind and vlen, and a layout section
 * gives its size. The meaning of the other words is not known: numbers, ids, offsets of strings. So
 * a record may be carried into another blob, even to another id, only if the words still mean there
 * what they meant here:
 *
 *	strings  all stay at their offsets; the blob that is written adopts the string section
 *	ids      no word, read as an id, is the id of another thing in the result
 *
 * A size that happens to equal an id that moves is taken for that id: the record is refused without
 * need, but the result is never wrong.
 */
#ifndef BTF_OPAQUE_H
#define BTF_OPAQUE_H

#include "btf/move.h"

static inline bool btf_is_opaque(uint32_t kind)
{
	return kind >= CAIRN_BTF_N_KINDS;
}

/* Is there one among the own records? */
bool btf_has_opaque(const struct cairn_btf *btf);

/*
 * btf_carry_opaque - add an own record of @m->btf of such a kind, its words untouched
 *
 * The builder has adopted the strings of @m->btf. @m->map: 0 for ids that are not in the result.
 * Returns 0, -ENOMEM, -ERANGE, or -EOPNOTSUPP: a word may be an id that moves (err: the record, the
 * word's offset).
 */
int btf_carry_opaque(const struct btf_move *m, uint32_t id, struct cairn_err *err);

/*
 * btf_copy_record - add a record of @owner as it is
 *
 * @ret  the new one, valid until the next record is added
 * Returns 0, -ENOMEM, -ERANGE.
 */
int btf_copy_record(const struct btf_move *m, const struct cairn_btf *owner, uint32_t id,
		    uint32_t **ret, struct cairn_err *err);

#endif
