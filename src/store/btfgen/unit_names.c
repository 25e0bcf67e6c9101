/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/unit_impl.h"

#include <stdlib.h>

/* SCOPE::NAME, kept once for all units. */
const char *unit_qualify(struct unit_types *u, const char *scope, const char *name)
{
	size_t n = strlen(scope), m = strlen(name);
	char buf[256], *p = n + m + 3 <= sizeof(buf) ? buf : malloc(n + m + 3);
	if (!p)
		return NULL;
	memcpy(p, scope, n);
	memcpy(p + n, "::", 2);
	memcpy(p + n + 2, name, m + 1);
	const char *found = NULL;
	for (uint64_t h = hash_bytes(p, n + m + 2), at;; h++) {
		if (!map_get(u->names_by_hash, h, &at)) {
			found = arena_strdup(u->names, p);
			if (found && map_put(u->names_by_hash, h, (uint64_t)(uintptr_t)found) < 0)
				found = NULL;
			break;
		}
		if (!strcmp((const char *)(uintptr_t)at, p)) {
			found = (const char *)(uintptr_t)at;
			break;
		}
	}
	if (p != buf)
		free(p);
	return found;
}

/* NULL when it has no name, or when out of memory, which u->walker.rc says. */
const char *unit_full_name(struct unit_types *u, const char *name)
{
	/*
	 * The test for "" is made where the hash is known: few of these strings are in a cache.
	 */
	if (!name || !u->has_namespaces)
		return name;
	for (size_t i = u->open.n; i-- > 0;) {
		/* A declaration inside a function is not qualified. */
		if (u->open.p[i].i != SCOPE_ONLY && u->open.p[i].i & OWNER_FUNC)
			break;
		if (!u->open.p[i].name)
			continue;
		const char *full = unit_qualify(u, u->open.p[i].name, name);
		if (!full)
			u->walker.rc = -ENOMEM;
		return full;
	}
	return *name ? name : NULL;
}
