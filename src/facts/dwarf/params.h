/* SPDX-License-Identifier: BSD-2-Clause */
/* dw_param_sibling() and the queries of parameters, for callers that read those of every copy. */
#ifndef DWARF_PARAMS_H
#define DWARF_PARAMS_H

#include "dwarf/near.h"

/* As dw_param_sibling(): the next parameter mostly follows directly, or there is none. */
static inline int dw_param_next(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err)
{
	const struct dw_unit *u = die->unit;
	const uint8_t *p =
		die->has_children ? NULL : dw_skip_attrs(die->abbrev, die->attrs, u->end);
	if (p && p < u->end && !*p)
		return 0;
	const struct dw_abbrev *a = p ? dw_usual_abbrev(u, p) : NULL;
	if (!a || a->tag != DW_TAG_formal_parameter)
		return dw_param_sibling(die, ret, err);
	dw_die_init(ret, u, a, p, p + 1);
	return 1;
}

/* dw_ref() of DW_AT_abstract_origin. */
static inline dw_off dw_origin_of(const struct dw_die *die)
{
	struct dw_near n = die->abbrev->near[DW_SLOT_ORIGIN];
	const struct dw_unit *u = die->unit;
	if (n.form != DW_FORM_ref4 || die->abbrev->first.fixed > u->end - die->attrs)
		return dw_ref(die, DW_AT_abstract_origin);
	uint64_t at = u->off + dw_load_u32(die->attrs + n.off);
	bool is_inside =
		at >= (uint64_t)(u->dies - u->sec->p) && at < (uint64_t)(u->end - u->sec->p);
	return is_inside ? at | u->tag : dw_ref(die, DW_AT_abstract_origin);
}

#endif
