/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of records in the order of their use. */
#include <errno.h>

#include "sidecar/site_table.h"

int ranked_set_add(struct ranked_set *s, uint32_t *ret)
{
	int rc = record_set_add(&s->records, ret);
	if (rc >= 0 && *ret == s->ranking.uses.n && !VEC_ADD(&s->ranking.uses, 0))
		rc = -ENOMEM;
	if (rc >= 0)
		s->ranking.uses.p[*ret]++;
	return rc;
}

void ranked_set_put(struct ranked_set *s, struct bytes *ret)
{
	if (ranking_make(&s->ranking) < 0)
		ret->failed = true;
	else
		put_records(&s->records.data, s->records.starts.p, s->records.starts.n,
			    s->ranking.order.p, ret);
}

void ranked_set_fini(struct ranked_set *s)
{
	record_set_fini(&s->records);
	ranking_fini(&s->ranking);
}
