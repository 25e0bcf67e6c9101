/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that only symbol tables know: users say malloc, its debug information __libc_malloc, and
 * memcpy is a resolver
 *
 * The table has the names that the functions of .cairn.sites do not answer to, with the results of
 * cairn_sites_find() for them, and the names that the binary imports.
 */
#ifndef SIDECAR_SYMBOL_TABLE_H
#define SIDECAR_SYMBOL_TABLE_H

#include <cairn/sites.h>

#include "base/arena.h"
#include "sidecar/sidecar_impl.h"

/* The meanings of a name: adjacent records. */
struct named_symbols {
	const struct sidecar_symbol_name *p;
	uint32_t n; /* 0: unknown */
};

/* O(log names). */
struct named_symbols symbols_named(const struct cairn_sidecar *p, const char *name);

/* The function of a record without debug information. Returns 0 or -ENOMEM. */
int bare_function(const struct cairn_sidecar *p, const struct sidecar_symbol_name *s,
		  struct arena *arena, struct cairn_function *ret);

#endif
