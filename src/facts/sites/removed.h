/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters that GCC removed from a function: their values may be those of another call. */
#ifndef SITES_REMOVED_H
#define SITES_REMOVED_H

#include "sites/site.h"

/*
 * removed_doubt - make unavailable the values of removed parameters that may be another copy's
 *
 * @sites  of one function, with code or without; the call sorts them by container
 * Cost: sorts them.
 */
void removed_doubt(struct built_site **sites, size_t n);

/* Whether a parameter of the copy was removed. */
bool removed_any(const struct built_site *b);

#endif
