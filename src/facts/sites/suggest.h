/* SPDX-License-Identifier: BSD-2-Clause */
/* Names near to one that was not found. */
#ifndef SITES_SUGGEST_H
#define SITES_SUGGEST_H

#include "base/near.h"
#include "dwarf/index.h"

/* The nearest names of those offered. */
struct suggestions {
	const char *wanted;
	/* in a scope, which names that are offered are without: one that is equal may be meant */
	bool is_scoped;
	struct near_names near;
};

/*
 * suggest_offer - take @name if it is near to wanted, is not the wanted name itself, and is not
 * there yet.
 */
void suggest_offer(struct suggestions *s, const char *name);

/* The same for a linker's name, unless it is a mangled one, which users do not type. */
void suggest_symbol(struct suggestions *s, const char *name);

/*
 * Offer all functions of the index that have code, or copies. Names are borrowed from the index's
 * input.
 */
void suggest_index(struct suggestions *s, const struct dw_func_index *index);

#endif
