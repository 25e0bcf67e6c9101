/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arguments that a language passes by an address which its source does not show
 *
 * C++ does so with classes that cannot be copied byte by byte. Clang says it of each class, g++ of
 * those that have member functions.
 */
#include "dwarf/constants.h"
#include "loc/loc.h"

enum {
	/* Structs in structs, and names for one type, that are followed. */
	NESTED_MAX = 4,
	NAMES_MAX = 16,
};

bool loc_is_by_reference(const struct dw_die *formal)
{
	struct dw_die type;
	dw_off at = formal ? dw_ref_deep(formal, DW_AT_type) : 0;
	return at && dw_die_near(formal->unit, at, &type, NULL) == 1 &&
	       dw_udata(&type, DW_AT_calling_convention, 0) == DW_CC_pass_by_reference;
}

static bool is_plain_member(const struct dw_die *member, unsigned int depth);

/*
 * Whether C++ passes objects of a type by value for certain: scalars, and structs without base
 * classes and member functions whose members are such.
 */
static bool is_plain_type(const struct dw_die *type, unsigned int depth)
{
	struct dw_die child;
	switch (type->tag) {
	case DW_TAG_base_type:
	case DW_TAG_pointer_type:
	case DW_TAG_enumeration_type:
		return true;
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_class_type:
		break;
	default:
		return false;
	}
	if (!depth || dw_flag(type, DW_AT_declaration))
		return false;
	int rc = dw_die_child(type, &child, NULL);
	for (; rc == 1; rc = dw_die_sibling(&child, &child, NULL))
		if (child.tag != DW_TAG_member || !is_plain_member(&child, depth - 1))
			return false;
	return rc == 0;
}

static bool is_plain_member(const struct dw_die *member, unsigned int depth)
{
	struct dw_die type = *member, next;
	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		dw_off at = dw_ref_deep(&type, DW_AT_type);
		if (!at || dw_die_near(type.unit, at, &next, NULL) != 1)
			return false;
		type = next;
		if (type.tag != DW_TAG_typedef && type.tag != DW_TAG_const_type &&
		    type.tag != DW_TAG_volatile_type && type.tag != DW_TAG_array_type)
			return is_plain_type(&type, depth);
	}
	return false;
}

bool loc_may_be_by_reference(const struct dw_die *formal)
{
	return !dw_unit_is_c(formal->unit) &&
	       (!dw_unit_is_cxx(formal->unit) || !is_plain_member(formal, NESTED_MAX));
}
