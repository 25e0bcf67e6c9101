/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where control leaves an inlined copy; the essay is in copy_exits.c
 *
 * For probes that follow a call of the copy from its site to its end.
 */
#ifndef SITES_COPY_EXITS_H
#define SITES_COPY_EXITS_H

#include <cairn/sites.h>

#include "base/arena.h"

struct copy_ends;

/* The container's frame, which is the address of its return address: register @reg + @off. */
struct copy_frame {
	uint8_t reg; /* its DWARF number: 0 to 15 */
	int32_t off;
};

struct copy_exit {
	struct cairn_vaddr at;
	struct copy_frame frame; /* there */
};

struct copy_exits {
	struct copy_frame entry; /* at the site */
	uint32_t n;
	const struct copy_exit *p;
	/*
	 * True if code that has not passed the site reaches an exit, too. Then a call that was left
	 * otherwise (longjmp) has to be forgotten at @container, when the container is called again.
	 */
	bool is_shared;
	struct cairn_vaddr container; /* the first instruction of the function around the copy */
};

/*
 * copy_ends_new - a search in the debug information of @sites
 *
 * Returns 0 and *@ret, which is NULL if another provider answers for them; or -ENOMEM.
 */
int copy_ends_new(struct cairn_sites *sites, struct copy_ends **ret);
/* Takes NULL. */
void copy_ends_free(struct copy_ends *e);

/*
 * copy_ends_find - all exits of an inlined copy
 *
 * @f, @site  a site of the function, with the kind CAIRN_SITE_INLINED
 * @arena     owns the result
 * @ret_why   why they are not known, for people; NULL: they are
 * Returns 0 or -ENOMEM.
 * Cost: decodes the function around the copy, if the last site was in another one; some passes over
 * its instructions.
 */
int copy_ends_find(struct copy_ends *e, const struct cairn_function *f,
		   const struct cairn_site *site, struct arena *arena, struct copy_exits *ret,
		   const char **ret_why);

#endif
