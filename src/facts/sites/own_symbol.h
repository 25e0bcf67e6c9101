/* SPDX-License-Identifier: BSD-2-Clause */
/* Of several symbols at one address the one that a body is called by. */
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
 * own_symbol - the function symbol that begins where a body does, and is the body's own
 *
 * A linker that folds equal code (--icf) leaves several there: of foo.constprop.0 and bar the body
 * of foo has the first. Its plain name is taken before that of a clone; without either, and where
 * there is one symbol only, what cairn_binary_symbol_of() gives.
 *
 * @die  of the body
 * Returns NULL when no symbol begins at @at; borrowed. Cost: O(log symbols). Threads: any.
 */
const char *own_symbol(const struct dwarf *dw, struct cairn_vaddr at, dw_off die);

#endif
