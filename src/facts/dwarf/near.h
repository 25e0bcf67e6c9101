/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads values in the first run of a DIE, at the offsets that its abbreviation has (enum dw_slot).
 */
#ifndef DWARF_NEAR_H
#define DWARF_NEAR_H

#include <errno.h>

#include "dwarf/constants.h"
#include "dwarf/forms.h"
#include "dwarf/impl.h"

/*
 * A number of up to two bytes as DW_FORM_implicit_const has it, which was checked when the table
 * was compiled.
 */
static inline bool dw_short_sleb(const uint8_t *p, int64_t *ret)
{
	if (p[0] < 0x80) {
		*ret = p[0] - (p[0] & 0x40) * 2;
		return true;
	}
	*ret = (p[0] & 0x7f) + p[1] * 0x80 - (p[1] & 0x40) * 0x100;
	return p[1] < 0x80;
}

/*
 * The value of an attribute that is in the first run. Returns 1; -EAGAIN if it has to be read by
 * its pair, which also reports errors.
 */
static inline int dw_near_value(const struct dw_die *die, struct dw_near n, struct dw_value *ret)
{
	const struct dw_unit *u = die->unit;
	const struct dw_abbrev *a = die->abbrev;
	/* The whole run has to be there. */
	if (a->first.fixed > u->end - die->attrs)
		return -EAGAIN;
	const uint8_t *p = die->attrs + n.off;
	ret->form = n.form;
	ret->cls = DW_CLASS_UDATA;
	switch (n.form) {
	case DW_FORM_data1:
		ret->u = *p;
		return 1;
	case DW_FORM_data2:
		ret->u = dw_load_u16(p);
		return 1;
	case DW_FORM_data4:
		ret->u = dw_load_u32(p);
		return 1;
	case DW_FORM_data8:
		ret->u = dw_load_u64(p);
		return 1;
	case DW_FORM_flag_present:
		ret->cls = DW_CLASS_FLAG;
		ret->u = 1;
		return 1;
	case DW_FORM_implicit_const:
		ret->cls = DW_CLASS_SDATA;
		return dw_short_sleb(a->specs + n.off, &ret->s) ? 1 : -EAGAIN;
	case DW_FORM_sdata:
		ret->cls = DW_CLASS_SDATA;
		return u->end - p >= 2 && dw_short_sleb(p, &ret->s) ? 1 : -EAGAIN;
	case DW_FORM_exprloc:
		if (p == u->end || *p >= 0x80 || *p >= u->end - p)
			return -EAGAIN;
		ret->cls = DW_CLASS_EXPRLOC;
		ret->block.p = p + 1;
		ret->block.n = *p;
		return 1;
	case DW_FORM_addr:
		ret->cls = DW_CLASS_ADDRESS;
		ret->addr.v = dw_load_u64(p);
		return 1;
	case DW_FORM_sec_offset:
		ret->cls = DW_CLASS_SECOFF;
		ret->u = dw_load_u32(p);
		return 1;
	case DW_FORM_strp:
		ret->cls = DW_CLASS_STRING;
		ret->str = dw_section_str(u->file, DW_SEC_STR, dw_load_u32(p), NULL);
		return ret->str ? 1 : -EAGAIN;
	case DW_FORM_ref4:
		ret->cls = DW_CLASS_REF;
		ret->ref = (u->off + dw_load_u32(p)) | u->tag;
		p = u->sec->p + u->off + dw_load_u32(p);
		return p >= u->dies && p < u->end ? 1 : -EAGAIN;
	}
	return -EAGAIN;
}

/* dw_attr(), for callers that have the slot. */
static inline int dw_attr_at(const struct dw_die *die, enum dw_slot slot, uint16_t at,
			     struct dw_value *ret, struct cairn_err *err)
{
	struct dw_near n = die->abbrev->near[slot];
	if (!n.form)
		return 0;
	if (n.form != DW_NEAR_BY_PAIR && dw_near_value(die, n, ret) == 1)
		return 1;
	return dw_attr_by_pair(die, at, ret, err);
}

/* dw_udata(), for callers that have the slot. */
static inline uint64_t dw_udata_at(const struct dw_die *die, enum dw_slot slot, uint16_t at,
				   uint64_t otherwise)
{
	struct dw_near n = die->abbrev->near[slot];
	if (!n.form)
		return otherwise;
	if (die->abbrev->first.fixed <= die->unit->end - die->attrs) {
		switch (n.form) {
		case DW_FORM_data1:
			return die->attrs[n.off];
		case DW_FORM_data2:
			return dw_load_u16(die->attrs + n.off);
		}
	}
	return dw_udata(die, at, otherwise);
}

#endif
