/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses, from several symbols at one address, the one that a body is called by. */
#ifndef SITES_OWN_SYMBOL_H
#define SITES_OWN_SYMBOL_H

#include <string.h>

#include "dwarf/dwarf.h"

/*
 * Whether a symbol has @part, which begins with a dot, as foo.isra.0 has ".isra". Nearly all
 * symbols have no dot.
 */
static inline bool symbol_has(const char *symbol, const char *part)
{
	const char *dot = strchr(symbol, '.');
	return dot && strstr(dot, part);
}

/*
 * own_symbol - the symbol that begins at a body's entry and is the body's own
 *
 * A linker that folds equal code (--icf) leaves several symbols there: for the body of foo,
 * foo.constprop.0 is chosen before bar. The plain name is chosen before a clone's. If there is
 * neither, or one symbol only, the result is that of cairn_binary_symbol_of().
 *
 * @die  of the body
 * Returns NULL when no symbol begins at @at; borrowed. Cost: O(log symbols). Threads: any.
 */
const char *own_symbol(const struct dwarf *dw, struct cairn_vaddr at, dw_off die);

#endif
