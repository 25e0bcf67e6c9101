/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of code: one, or a list of them (lists.h)
 *
 * Discarded code. A linker that drops a function (a COMDAT copy, --gc-sections) leaves its DWARF
 * with a start that is impossible. It is 0 (bfd, gold), the largest address (lld), the largest less
 * one (lld in .debug_ranges, where the largest has a meaning), or 1 (bfd in .debug_ranges, an empty
 * pair 1, 1). They are left out by the start of the *function*: its base or low_pc. So a part of
 * such a function at offset 16 of 0 does not come back to life.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/impl.h"
#include "dwarf/lists.h"
#include "dwarf/near.h"

struct walk {
	const struct dw_unit *u;
	struct dw_range_list *to; /* NULL: to @visit */
	int (*visit)(void *ctx, struct dw_range range);
	void *ctx;
	struct cairn_err *err;
	int n;
};

/* A range that is not empty, or turned around. Returns 0, or the result that ends the walk. */
static int deliver(struct walk *w, uint64_t lo, uint64_t hi)
{
	const struct dw_unit *u = w->u;
	if (lo > hi)
		return err_set(w->err, -EBADMSG,
			       "%s: %s+0x%" PRIx64 ": a range of code from 0x%" PRIx64
			       " to 0x%" PRIx64 " in this unit",
			       u->file->path, u->sec->src.section, u->off, lo, hi);
	w->n++;
	if (!w->to)
		return w->visit(w->ctx, (struct dw_range){{lo}, {hi}});
	if (w->to->n == w->to->cap && !VEC_RESERVE(w->to, 1))
		return -ENOMEM;
	w->to->p[w->to->n++] = (struct dw_range){{lo}, {hi}};
	return 0;
}

/* A range; @from is the address that the linker filled in. Returns as deliver(). */
static inline int found(struct walk *w, uint64_t from, uint64_t lo, uint64_t hi)
{
	if (dw_is_discarded(w->u, from) || dw_is_discarded(w->u, lo) || lo == hi)
		return 0;
	return deliver(w, lo, hi);
}

static int walk_list(struct walk *w, const struct dw_value *v)
{
	const struct dw_unit *u = w->u;
	struct dw_list list;
	struct dw_bounds b;
	if (!dw_is_list(u, v))
		return err_set(w->err, -EBADMSG,
			       "%s: %s+0x%" PRIx64
			       ": DW_AT_ranges of a DIE of this unit has form 0x%x",
			       u->file->path, u->sec->src.section, u->off, v->form);
	int rc = dw_list_of(u, DW_RANGES, v, &list, w->err);
	while (rc >= 0 && (dw_list_usual_range(&list, &b) ||
			   (!dw_list_ends(&list) && (rc = dw_list_next(&list, &b)) > 0))) {
		rc = found(w, b.from, b.lo, b.hi);
		if (rc)
			return rc;
	}
	return rc < 0 ? rc : 0;
}

/* DW_AT_low_pc and DW_AT_high_pc, which is an address or a length. */
static int walk_pair(struct walk *w, const struct dw_die *die)
{
	const struct dw_abbrev *a = die->abbrev;
	const struct dw_near start = a->near[DW_SLOT_LOW_PC], end = a->near[DW_SLOT_HIGH_PC];
	struct dw_value lo, hi;
	/* As GCC writes them. */
	if (start.form == DW_FORM_addr && end.form == DW_FORM_data8 &&
	    a->first.fixed <= w->u->end - die->attrs) {
		uint64_t at = dw_load_u64(die->attrs + start.off);
		return found(w, at, at, at + dw_load_u64(die->attrs + end.off));
	}
	int rc = dw_attr_at(die, DW_SLOT_LOW_PC, DW_AT_low_pc, &lo, w->err);
	if (rc > 0)
		rc = dw_attr_at(die, DW_SLOT_HIGH_PC, DW_AT_high_pc, &hi, w->err);
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

static int walk(struct walk *w, const struct dw_die *die)
{
	struct dw_value v;
	int rc = dw_attr_at(die, DW_SLOT_RANGES, DW_AT_ranges, &v, w->err);
	if (rc > 0)
		rc = walk_list(w, &v);
	else if (!rc)
		rc = walk_pair(w, die);
	return rc ? rc : w->n;
}

int dw_ranges(const struct dw_die *die, int (*visit)(void *ctx, struct dw_range range), void *ctx,
	      struct cairn_err *err)
{
	struct walk w = {.u = die->unit, .visit = visit, .ctx = ctx, .err = err};
	return walk(&w, die);
}

int dw_ranges_append(const struct dw_die *die, struct dw_range_list *to, struct cairn_err *err)
{
	struct walk w = {.u = die->unit, .to = to, .err = err};
	return walk(&w, die);
}

struct holding {
	struct cairn_vaddr at;
	bool is_in;
};

static int note_holding(void *ctx, struct dw_range r)
{
	struct holding *h = ctx;
	h->is_in |= r.lo.v <= h->at.v && h->at.v < r.hi.v;
	return 0;
}

int dw_ranges_hold(const struct dw_die *die, struct cairn_vaddr at, struct cairn_err *err)
{
	struct holding h = {.at = at};
	int rc = dw_ranges(die, note_holding, &h, err);
	return rc < 0 ? rc : h.is_in;
}
