/* SPDX-License-Identifier: BSD-2-Clause */
/* Positions of members, and the types that a type leads to. */
#ifndef DWARF_TYPES_PLACE_H
#define DWARF_TYPES_PLACE_H

#include "dwarf/types_ids.h"

/*
 * The position of a member, from the start of the struct: bit_off, bit_size and dynamic of a zeroed
 * *@m.
 */
void dw_types_place(const struct dw_die *die, struct cairn_member *m);

/*
 * The first DIE with @at among @die's type and the types that its typedefs and qualifiers lead to.
 * False if there is none.
 */
bool dw_find_after(const struct dw_die *die, uint16_t at, struct dw_die *ret);

/* Bits that a member's type takes; 0: it has no size. */
uint64_t dw_type_bits(const struct dw_die *die);

#endif
