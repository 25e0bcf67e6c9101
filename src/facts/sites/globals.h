/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The variables of a name that live as long as the program: those of files, namespaces and classes,
 * and the static ones of functions
 */
#ifndef SITES_GLOBALS_H
#define SITES_GLOBALS_H

#include <cairn/sites.h>

#include "base/arena.h"
#include "dwarf/types.h"
#include "dwarf/variables.h"

/* One variable. */
struct site_global {
	const char *name; /* with its scopes: "ns::count", "parse::calls" of a function */
	const char *file; /* that declares it; NULL unknown */
	const char *unit; /* the source file that was compiled; it may be another one */
	uint32_t line;    /* 0 unknown */
	uint32_t type;    /* in cairn_sites_types() */
	bool is_external; /* other units may use it */
	bool is_in_function;
	bool is_nested;      /* in a block of the function */
	bool is_declaration; /* of a namespace or a class; the definition is not in the unit */
	bool has_place;      /* false: it was left out, or is on the function's stack */
	struct cairn_location loc; /* the same everywhere */
};

struct site_globals {
	size_t n;
	const struct site_global *p; /* in the order of the debug information */
};

/* The searches that were made; zeroed at first. */
struct globals {
	const struct dwarf *dw;
	struct dw_types *types;
	unsigned int threads;
	struct arena *arena; /* owns what is found */
	struct globals_search *searches;
};

/*
 * globals_find - as sites_globals()
 */
int globals_find(struct globals *g, const char *name, struct site_globals *ret,
		 struct cairn_err *err);

/* Those of one unit, of any name, without the ones in functions. */
int globals_of_unit(struct globals *g, const struct dw_unit *unit, struct site_globals *ret,
		    struct cairn_err *err);

/*
 * sites_globals - the variables of a name
 *
 * @name  without scopes
 * @ret   borrowed until cairn_sites_close()
 * Returns their number. -EOPNOTSUPP: @sites are a sidecar's, which has no variables; -EBADMSG,
 * -ENOMEM. Cost: a walk over all DIEs, once per name.
 */
int sites_globals(struct cairn_sites *sites, const char *name, struct site_globals *ret,
		  struct cairn_err *err);

/*
 * Whether a name with scopes, as a user writes it, is that of a variable. @scopes may begin with
 * the end of the path of its file: "a.c", "ns", "a.c::parse".
 */
bool global_is_in(const struct site_global *g, const char *scopes);

#endif
