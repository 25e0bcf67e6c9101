/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters that GCC removed from a function: their values may be those of another call. */
#ifndef SITES_QUIRKS_REMOVED_PARAM_H
#define SITES_QUIRKS_REMOVED_PARAM_H

#include "sites/site.h"

/*
 * removed_param_check - make values of removed parameters unavailable that may be another copy's
 *
 * @sites  of one function, with code or without; the call sorts them by container
 * Cost: sorts them.
 */
void removed_param_check(struct built_site **sites, size_t n);

/* Whether a parameter of the copy was removed. */
bool removed_param_any(const struct built_site *b);

#endif
