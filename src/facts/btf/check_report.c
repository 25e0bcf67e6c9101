/* SPDX-License-Identifier: BSD-2-Clause */
/* Broken rules: counted, and passed to the caller of the check. */
#include "btf/check.h"

#include <stdarg.h>
#include <stdio.h>

void btf_broken(struct btf_check *c, uint32_t id, const char *fmt, ...)
{
	char text[256];
	bool own = id >= c->btf->start_id && id < c->btf->end_id;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->n_broken++;
	if (c->report)
		c->report(c->ctx, id, own ? btf_record_off(c->btf, id) : 0, text);
}

bool btf_check_ref(struct btf_check *c, const struct cairn_btf_type *t, const char *what,
		   uint32_t id, uint64_t mask)
{
	struct cairn_btf_type to = {.kind = CAIRN_BTF_VOID};
	if (id && !cairn_btf_type(c->btf, id, &to)) {
		btf_broken(c, t->id, "%s: %s is id %u, which does not exist",
			   btf_kind_name(t->kind), what, id);
		return false;
	}
	/* Nothing is known about a kind from the future. */
	if (to.kind >= CAIRN_BTF_N_KINDS || (mask >> to.kind & 1))
		return true;
	btf_broken(c, t->id, "%s: %s is id %u, a %s", btf_kind_name(t->kind), what, id,
		   btf_kind_name(to.kind));
	return false;
}
