/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All sites of all functions that their symbol and convention do not tell: inlined copies, and
 * clones
 *
 * What functions_build() says of them, without types and names: for who writes the sites of a whole
 * program down. Unit by unit, so that each is told from memory that is near, and is forgotten then.
 */
#ifndef SITES_COPIES_H
#define SITES_COPIES_H

#include "sites/entry_rows.h"

struct copies_visitor {
	/*
	 * Called for each site, from several threads at a time.
	 * @group     of the site, in the groups that were given
	 * @abstract  DIE that declares it, without DW_AT_abstract_origin
	 * A negative result ends the visit and is returned. What is pointed to lives until it
	 * returns.
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
 * Sites of one DIE come in their order, one behind the other; others in any.
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ENOMEM, what the visitor returned.
 */
int copies_visit(const struct site_env *env, unsigned int threads, const struct groups *groups,
		 const struct entry_rows *rows, const struct copies_visitor *visitor,
		 struct cairn_err *err);

#endif
