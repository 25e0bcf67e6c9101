/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of code
 *
 *	.debug_ranges, DWARF 3, 4     pairs of addresses relative to a base, which is the unit's
 *	                              DW_AT_low_pc until a pair (largest address, new base); 0, 0 ends
 *	.debug_rnglists, DWARF 5      u8 DW_RLE_*, operands; DW_RLE_end_of_list ends
 *
 * Discarded code. A linker that drops a function (a COMDAT copy, --gc-sections) leaves its DWARF behind
 * with a start that cannot be: 0 (bfd, gold), the largest address (lld), the largest less one (lld in
 * .debug_ranges, where the largest has a meaning), or 1 (bfd in .debug_ranges, an empty pair 1, 1). They
 * are left out, by what the start of the *function* was: base or low_pc, so that a part of such a function
 * at offset 16 of 0 does not come back to life.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/impl.h"
#include "dwarf/lists.h"

struct walk {
	const struct dw_unit *u;
	int (*visit)(void *ctx, struct dw_range range);
	void *ctx;
	struct cairn_err *err;
	int n;
};

/* A range; @from is the address that the linker filled in. Returns 0, or what ends the walk. */
static int found(struct walk *w, uint64_t from, uint64_t lo, uint64_t hi)
{
	const struct dw_unit *u = w->u;
	if (dw_is_discarded(u, from) || dw_is_discarded(u, lo) || lo == hi)
		return 0;
	if (lo > hi)
		return err_set(w->err, -EBADMSG,
			       "%s: %s+0x%" PRIx64 ": a range of code from 0x%" PRIx64
			       " to 0x%" PRIx64 " in this unit",
			       u->file->path, u->sec->src.section, u->off, lo, hi);
	w->n++;
	return w->visit(w->ctx, (struct dw_range){{lo}, {hi}});
}

static int walk_ranges(struct walk *w, uint64_t off)
{
	const struct dw_unit *u = w->u;
	struct cursor c = dw_section_cursor(&u->file->sec[DW_SEC_RANGES], off, w->err);
	uint64_t base = u->low_pc, largest = dw_largest_address(u);
	while (!c.failed) {
		uint64_t lo = cur_uint(&c, u->addr_size), hi = cur_uint(&c, u->addr_size);
		if (c.failed)
			break;
		if (!lo && !hi)
			return 0;
		if (lo == largest) {
			base = hi;
			continue;
		}
		int rc = found(w, base ? base : base + lo, (base + lo) & largest,
			       (base + hi) & largest);
		if (rc)
			return rc;
	}
	return -EBADMSG;
}

static int walk_rnglist(struct walk *w, uint64_t off)
{
	struct cursor c = dw_section_cursor(&w->u->file->sec[DW_SEC_RNGLISTS], off, w->err);
	struct dw_list list = {.u = w->u, .c = &c, .base = w->u->low_pc};
	for (;;) {
		uint8_t kind = cur_u8(&c);
		if (c.failed)
			return -EBADMSG;
		struct dw_bounds b;
		int rc;
		switch (kind) {
		case DW_RLE_end_of_list:
			return 0;
		case DW_RLE_base_addressx:
			rc = dw_list_base_addressx(&list);
			break;
		case DW_RLE_base_address:
			rc = dw_list_base_address(&list);
			break;
		case DW_RLE_startx_endx:
			rc = dw_list_startx_endx(&list, &b);
			break;
		case DW_RLE_startx_length:
			rc = dw_list_startx_length(&list, &b);
			break;
		case DW_RLE_offset_pair:
			rc = dw_list_offset_pair(&list, &b);
			break;
		case DW_RLE_start_end:
			rc = dw_list_start_end(&list, &b);
			break;
		case DW_RLE_start_length:
			rc = dw_list_start_length(&list, &b);
			break;
		default:
			rc = dw_list_unknown(&list, kind);
		}
		if (rc > 0)
			rc = found(w, b.from, b.lo, b.hi);
		if (rc)
			return rc;
	}
}

static int walk_list(struct walk *w, const struct dw_value *v)
{
	const struct dw_unit *u = w->u;
	bool is_offset = v->cls == DW_CLASS_SECOFF || (u->version < 4 && v->cls == DW_CLASS_UDATA);
	if (!is_offset)
		return err_set(w->err, -EBADMSG,
			       "%s: %s+0x%" PRIx64
			       ": DW_AT_ranges of a DIE of this unit has form 0x%x",
			       u->file->path, u->sec->src.section, u->off, v->form);
	if (u->version < 5)
		return walk_ranges(w, v->u);
	uint64_t off = v->u;
	if (v->form == DW_FORM_rnglistx) {
		int rc = dw_list_index(u, DW_SEC_RNGLISTS, v->u, &off, w->err);
		if (rc < 0)
			return rc;
	}
	return walk_rnglist(w, off);
}

/* DW_AT_low_pc and DW_AT_high_pc, which is an address or a length. */
static int walk_pair(struct walk *w, const struct dw_die *die)
{
	struct dw_value lo, hi;
	int rc = dw_attr(die, DW_AT_low_pc, &lo, w->err);
	if (rc > 0)
		rc = dw_attr(die, DW_AT_high_pc, &hi, w->err);
	if (rc <= 0 || lo.cls != DW_CLASS_ADDRESS)
		return rc < 0 ? rc : 0;
	if (hi.cls == DW_CLASS_ADDRESS)
		return found(w, lo.addr.v, lo.addr.v, hi.addr.v);
	if (hi.cls != DW_CLASS_UDATA && hi.cls != DW_CLASS_SDATA)
		return err_set(w->err, -EBADMSG,
			       "%s: DIE at 0x%" PRIx64 ": DW_AT_high_pc has form 0x%x",
			       die->unit->file->path, die->off, hi.form);
	return found(w, lo.addr.v, lo.addr.v, lo.addr.v + hi.u);
}

int dw_ranges(const struct dw_die *die, int (*visit)(void *ctx, struct dw_range range), void *ctx,
	      struct cairn_err *err)
{
	struct walk w = {.u = die->unit, .visit = visit, .ctx = ctx, .err = err};
	struct dw_value v;
	int rc = dw_attr(die, DW_AT_ranges, &v, err);
	if (rc > 0)
		rc = walk_list(&w, &v);
	else if (!rc)
		rc = walk_pair(&w, die);
	return rc ? rc : w.n;
}
