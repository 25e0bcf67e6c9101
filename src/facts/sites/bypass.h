/* SPDX-License-Identifier: BSD-2-Clause */
/* Edges that lead into a copy past its sites: case (2) of event_count.c. */
#ifndef SITES_BYPASS_H
#define SITES_BYPASS_H

#include "sites/copy_code.h"

/* The number of places where the copy's first statement occurs again: an unrolled loop. */
uint32_t bypass_count_beginnings(const struct copy_code *c, const struct event_count *p);
/* Edges into the copy past its sites, for calls that hit none of them. 0 or -ENOMEM. */
int bypass_find(struct copy_code *c, const struct event_count *p, uint32_t *ret);

#endif
