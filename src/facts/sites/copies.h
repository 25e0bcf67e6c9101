/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Visits all sites of all functions that symbol and convention do not give: inlined copies, and
 * clones
 *
 * The facts are those of functions_build(), without types and names, for callers that write down
 * the sites of a whole program. The visit goes unit by unit: each unit's memory is near while it is
 * used, and is released after it.
 */
#ifndef SITES_COPIES_H
#define SITES_COPIES_H

#include "sites/entry_rows.h"

struct copies_visitor {
	/*
	 * Called for each site, from several threads at a time.
	 * @group     of the site, in the groups that were given
	 * @abstract  DIE that declares it, without DW_AT_abstract_origin
	 * A negative result ends the visit and is returned. Pointed-to data lives until it returns.
	 */
	int (*site)(void *ctx, unsigned int worker, uint32_t group, dw_off abstract,
		    const struct cairn_site *site, struct cairn_err *err);
	/*
	 * Called from the calling thread, now and then. May be NULL; a negative result ends the
	 * visit and is returned.
	 */
	int (*progress)(void *ctx, size_t done, size_t total, struct cairn_err *err);
	void *ctx;
};

/*
 * copies_visit - visit them all
 *
 * @env      bare
 * @threads  workers are numbered below pool_width(@threads)
 * @rows     of entry_rows_by_unit()
 * Sites of one DIE come in their order, one after the other; others in any order.
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ENOMEM, or the result of the visitor.
 */
int copies_visit(const struct site_env *env, unsigned int threads, const struct groups *groups,
		 const struct entry_rows *rows, const struct copies_visitor *visitor,
		 struct cairn_err *err);

#endif
