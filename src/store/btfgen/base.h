/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The base that main is split from, as if it were one more unit
 *
 * The base's records are put into the arrays of unit.h and get classes like those of DWARF, before
 * all of them. A class that the base has keeps the base's id and is not written again. A name that
 * the base and the module define differently is ambiguous, as between two units. If a record points
 * to a name that the base only declares and the module defines, the record is written again
 * (base_known.c).
 */
#ifndef BTFGEN_BASE_H
#define BTFGEN_BASE_H

#include "btfgen/type_classes.h"

/*
 * unit_types_read_base - the types of a base and of its bases, in place of a unit; then
 * unit_types_finish() is done, too
 *
 * Places are ids. pahole writes int a[2][3] as int a[6]: see unit_types.flat_arrays.
 * Returns 0 or -ENOMEM, -ERANGE.
 */
int unit_types_read_base(struct unit_types *u, const struct cairn_btf *base);

/*
 * base_keep_known - take the base's id from classes that point to a declaration in the base and to
 * a definition here
 *
 * @c  of the base and all units, joined
 * Returns 0 or -ENOMEM.
 */
int base_keep_known(struct classes *c, struct cairn_err *err);

#endif
