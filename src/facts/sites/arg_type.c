/* SPDX-License-Identifier: BSD-2-Clause */
/* What the type of a parameter is, typedefs aside. */
#include "sites/arg_type.h"

#include "dwarf/constants.h"
#include "dwarf/near.h"

/* Longer chains of typedefs are damaged. */
enum { CHAIN_MAX = 64 };

/*
 * Typedefs, and tags that stand for the type that they refer to; @through_const: also qualifiers
 * that only make it unassignable.
 */
static bool is_passed_through(uint16_t tag, bool through_const)
{
	switch (tag) {
	case DW_TAG_typedef:
	case DW_TAG_template_alias:
	case DW_TAG_subrange_type:
	case DW_TAG_packed_type:
	case DW_TAG_shared_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
		return true;
	case DW_TAG_const_type:
	case DW_TAG_immutable_type:
		return through_const;
	}
	return false;
}

bool arg_type_without_names(const struct dw_die *formal, bool through_const, struct dw_die *ret)
{
	dw_off type = dw_ref_deep(formal, DW_AT_type);
	for (int i = 0; i < CHAIN_MAX && type && dw_die_near(formal->unit, type, ret, NULL) == 1;
	     i++) {
		if (!is_passed_through(ret->tag, through_const))
			return true;
		type = dw_ref(ret, DW_AT_type);
	}
	return false;
}

bool arg_is_bool(const struct dw_unit *unit, dw_off formal)
{
	struct dw_die die, type;
	return dw_die_near(unit, formal, &die, NULL) == 1 &&
	       arg_type_without_names(&die, true, &type) && type.tag == DW_TAG_base_type &&
	       dw_udata(&type, DW_AT_encoding, DW_ATE_void) == DW_ATE_boolean;
}

bool arg_is_pointer(const struct dw_unit *unit, dw_off formal)
{
	struct dw_die die, type;
	return dw_die_near(unit, formal, &die, NULL) == 1 &&
	       arg_type_without_names(&die, true, &type) &&
	       (type.tag == DW_TAG_pointer_type || type.tag == DW_TAG_reference_type ||
		type.tag == DW_TAG_rvalue_reference_type);
}
