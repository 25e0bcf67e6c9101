/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that copies and bodies are instances of
 *
 * Their parameters and their declaration are recorded once, in the abstract instance, and looked up
 * for each copy.
 */
#ifndef SITES_ABSTRACT_H
#define SITES_ABSTRACT_H

#include "base/vec.h"
#include "dwarf/dwarf.h"
#include "loc/loc.h"

/* The formal parameters of one abstract instance, in order. */
struct formals {
	dw_off function;
	uint32_t n;
	const dw_off *die;
	bool variadic;
	dw_off result; /* of Go, which lists results after parameters: the only one */
	uint32_t n_results;
};

struct abstract {
	struct dw_die die;
	struct formals formals;
	uint64_t line; /* DW_AT_decl_line; 0 without */
};

/*
 * The last lookups, direct-mapped by the DIE in question. The copies of a unit have some fifty
 * abstract instances; the few that evict each other are read again.
 */
struct abstracts {
	struct arena *arena; /* holds them */
	VEC(dw_off) offs;    /* scratch */
	struct known_abstract {
		dw_off die;
		const struct abstract *is;
	} known[256];
};

static inline void abstracts_init(struct abstracts *a, struct arena *arena)
{
	*a = (struct abstracts){.arena = arena};
}

static inline void abstracts_fini(struct abstracts *a)
{
	VEC_FREE(&a->offs);
}

/*
 * abstract_of - the abstract instance that a DIE comes from over its DW_AT_abstract_origin, or
 * itself
 *
 * @unit  where @die most likely is: the unit that refers to it
 * @ret   lives as long as the arena
 * Returns 0, -EBADMSG, -ENOMEM.
 * Cost: reads its DIE and children, unless a recent lookup did.
 */
int abstract_of(struct abstracts *a, const struct dwarf *dw, const struct dw_unit *unit, dw_off die,
		const struct abstract **ret, struct cairn_err *err);

/* The DIE alone, nothing remembered. Returns 1, -EBADMSG. */
int abstract_die(const struct dwarf *dw, const struct dw_unit *unit, dw_off die, struct dw_die *ret,
		 struct cairn_err *err);

#endif
