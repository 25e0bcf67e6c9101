/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the further sites of a function's copies, besides the one of each DIE. */
#ifndef SITES_EXTRA_ENTRIES_H
#define SITES_EXTRA_ENTRIES_H

#include "sites/group.h"

/* The first entry of a copy. */
struct first_entry {
	struct cairn_vaddr at;
	uint64_t view;
	struct built_site *site;
};

/* Scratch of extra_request(), zeroed at first. */
struct first_entries {
	VEC(struct first_entry) v;
};

struct site_requests {
	VEC(struct site_request) v;
};

/*
 * extra_request - append requests for the further sites of a group's copies
 *
 * First the other CFG entries of copies without an entry; then the line rows at which duplicated
 * code is entered (entry_rows.h).
 * @sites    one for each of the group's entries; those whose entry has a row record what stands
 *           around it
 * @scratch  kept from one group to the next
 * Returns 0 or -ENOMEM.
 */
int extra_request(const struct site_env *env, const struct group *group, struct built_site *sites,
		  struct first_entries *scratch, struct site_requests *ret, struct cairn_err *err);

#endif
