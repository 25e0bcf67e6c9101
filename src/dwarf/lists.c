/* SPDX-License-Identifier: BSD-2-Clause */
#include "dwarf/lists.h"

#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "dwarf/constants.h"

int dw_list_index(const struct dw_unit *u, enum dw_sec sec, uint64_t index, uint64_t *ret,
		  struct cairn_err *err)
{
	bool ranges = sec == DW_SEC_RNGLISTS;
	const struct dw_section *s = &u->file->sec[sec];
	uint64_t base = ranges ? u->rnglists_base : u->loclists_base, at, entry;
	if (!(ranges ? u->has_rnglists_base : u->has_loclists_base))
		return err_set(err, -EBADMSG,
			       "%s: %s+0x%" PRIx64 ": the unit uses list indices but has no %s",
			       u->file->path, u->sec->src.section, u->off,
			       ranges ? "DW_AT_rnglists_base" : "DW_AT_loclists_base");
	if (__builtin_mul_overflow(index, u->offset_size, &at) ||
	    __builtin_add_overflow(at, base, &at))
		at = UINT64_MAX;
	struct cursor c = dw_section_cursor(s, at, err);
	entry = cur_uint(&c, u->offset_size);
	if (!c.failed && __builtin_add_overflow(entry, base, ret))
		dw_expected(&c, "the offset of a list");
	return c.failed ? -EBADMSG : 1;
}

/* The cursor's verdict, else @rc. */
static int verdict(const struct dw_list *l, int rc)
{
	return l->c->failed ? -EBADMSG : rc;
}

static int addrx(struct dw_list *l, uint64_t *ret)
{
	uint64_t index = cur_uleb(l->c);
	return l->c->failed ? -EBADMSG : dw_unit_addrx(l->u, index, ret, l->c->err);
}

int dw_list_base_addressx(struct dw_list *l)
{
	int rc = addrx(l, &l->base);
	return rc < 0 ? rc : 0;
}

int dw_list_base_address(struct dw_list *l)
{
	l->base = cur_uint(l->c, l->u->addr_size);
	return verdict(l, 0);
}

int dw_list_startx_endx(struct dw_list *l, struct dw_bounds *ret)
{
	int rc = addrx(l, &ret->lo);
	ret->from = ret->lo;
	return rc < 0 ? rc : addrx(l, &ret->hi);
}

int dw_list_startx_length(struct dw_list *l, struct dw_bounds *ret)
{
	int rc = addrx(l, &ret->lo);
	ret->from = ret->lo;
	ret->hi = ret->lo + cur_uleb(l->c);
	return rc < 0 ? rc : verdict(l, 1);
}

int dw_list_offset_pair(struct dw_list *l, struct dw_bounds *ret)
{
	ret->lo = l->base + cur_uleb(l->c);
	ret->hi = l->base + cur_uleb(l->c);
	/* Base 0 is what units with more than one section have; then the offset is the address. */
	ret->from = l->base ? l->base : ret->lo;
	return verdict(l, 1);
}

int dw_list_start_end(struct dw_list *l, struct dw_bounds *ret)
{
	ret->from = ret->lo = cur_uint(l->c, l->u->addr_size);
	ret->hi = cur_uint(l->c, l->u->addr_size);
	return verdict(l, 1);
}

int dw_list_start_length(struct dw_list *l, struct dw_bounds *ret)
{
	ret->from = ret->lo = cur_uint(l->c, l->u->addr_size);
	ret->hi = ret->lo + cur_uleb(l->c);
	return verdict(l, 1);
}

int dw_list_unknown(struct dw_list *l, uint8_t kind)
{
	return err_set(l->c->err, -EBADMSG,
		       "%s: %s+0x%" PRIx64 ": a list entry of kind 0x%x, which does not exist",
		       l->c->src->file, l->c->src->section, cur_off(l->c) - 1, kind);
}
