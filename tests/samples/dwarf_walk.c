/* SPDX-License-Identifier: BSD-2-Clause */
#include "dwarf_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/constants.h"
#include "dwarf/walk.h"

/* Deeper trees are read by the index only. */
enum { DEPTH_MAX = 64 };

/* An error without its story is a bug of ours. */
static int64_t checked(struct dwarf_walk *w, int64_t rc, struct cairn_err *err)
{
	if (rc >= 0)
		return rc;
	w->errors++;
	if (err->code != rc || !err->msg[0]) {
		fprintf(stderr, "returned %lld, but the error says %d \"%s\"\n", (long long)rc,
			err->code, err->msg);
		abort();
	}
	*err = (struct cairn_err){0};
	return rc;
}

static void touch(const uint8_t *p, uint64_t n)
{
	__attribute__((unused)) volatile uint8_t sink = 0;
	for (uint64_t i = 0; i < n; i++)
		sink ^= p[i];
}

static int see_range(void *ctx, struct dw_range range)
{
	if (range.lo.v >= range.hi.v)
		abort();
	((struct dwarf_walk *)ctx)->ranges++;
	return 0;
}

static int see_location(void *ctx, const struct dw_loc_entry *e)
{
	if (!e->everywhere && e->lo.v > e->hi.v)
		abort();
	touch(e->expr, e->expr_len);
	((struct dwarf_walk *)ctx)->locations++;
	return 0;
}

static void see_attrs(struct dwarf_walk *w, const struct dw_die *die, struct cairn_err *err)
{
	const uint8_t *specs = die->abbrev->specs;
	struct dw_spec spec;
	while (dw_spec_next(&specs, &spec)) {
		struct dw_value v;
		if (checked(w, dw_attr(die, spec.at, &v, err), err) <= 0)
			continue;
		w->attrs++;
		if (v.cls == DW_CLASS_STRING)
			touch((const uint8_t *)v.str, strlen(v.str));
		if (v.cls == DW_CLASS_BLOCK || v.cls == DW_CLASS_EXPRLOC)
			touch(v.block.p, v.block.n);
	}
}

static void see_die(struct dwarf_walk *w, const struct dw_die *die, struct cairn_err *err)
{
	struct dw_value v;
	char name[64];
	w->dies++;
	see_attrs(w, die, err);
	checked(w, dw_attr_deep(die, DW_AT_name, &v, NULL, err), err);
	checked(w, dw_ranges(die, see_range, w, err), err);
	checked(w, dw_locations(die, DW_AT_location, see_location, w, err), err);
	checked(w, dw_locations(die, DW_AT_frame_base, see_location, w, err), err);
	/* Walks the unit: enough for a few. */
	if (w->dies % 16 == 1)
		dw_qualified_name(die->unit->dw, die, name, sizeof(name));
	dw_unit_file(die->unit, dw_udata(die, DW_AT_decl_file, 1));
}

static void see_unit(struct dwarf_walk *w, const struct dw_unit *u, struct cairn_err *err)
{
	struct dw_die open[DEPTH_MAX];
	int depth = checked(w, dw_unit_root(u, &open[0], err), err) > 0 ? 0 : -1;
	while (depth >= 0) {
		see_die(w, &open[depth], err);
		if (depth + 1 < DEPTH_MAX &&
		    checked(w, dw_die_child(&open[depth], &open[depth + 1], err), err) > 0) {
			depth++;
			continue;
		}
		struct dw_die next;
		for (; depth > 0; depth--) {
			if (checked(w, dw_die_sibling(&open[depth], &next, err), err) <= 0)
				continue;
			open[depth] = next;
			break;
		}
		if (!depth)
			break;
	}
	const struct dw_row *rows;
	int64_t n = checked(w, dw_unit_rows(u, &rows, err), err);
	for (int64_t i = 0; i < n; i++)
		if (i && rows[i].at.v < rows[i - 1].at.v)
			abort();
	w->rows += n > 0 ? (uint64_t)n : 0;
}

/* ---- the walker gives what dw_attr() gives ---- */

/* clang-format off */
static const uint16_t wanted[] = {
	DW_AT_name,	DW_AT_type,	    DW_AT_abstract_origin, DW_AT_byte_size,
	DW_AT_low_pc,	DW_AT_high_pc,	    DW_AT_linkage_name,	   DW_AT_decl_line,
	DW_AT_location, DW_AT_const_value,  DW_AT_external,	   DW_AT_data_member_location,
	DW_AT_producer, DW_AT_GNU_locviews, DW_AT_upper_bound,	   DW_AT_specification,
};
/* clang-format on */
enum { N_WANTED = sizeof(wanted) / sizeof(wanted[0]) };

static uint8_t role_of(uint16_t tag)
{
	return tag == DW_TAG_formal_parameter ? 2 : 1;
}

static bool same_value(const struct dw_value *a, const struct dw_value *b)
{
	if (a->cls != b->cls || a->form != b->form)
		return false;
	if (a->cls == DW_CLASS_BLOCK || a->cls == DW_CLASS_EXPRLOC)
		return a->block.p == b->block.p && a->block.n == b->block.n;
	return a->cls == DW_CLASS_STRING ? a->str == b->str : a->u == b->u;
}

static bool same_short_forms(struct dw_walker *w, unsigned int slot, const struct dw_value *v)
{
	bool is_number =
		v->cls == DW_CLASS_UDATA || v->cls == DW_CLASS_SDATA || v->cls == DW_CLASS_FLAG;
	dw_off ref = v->cls == DW_CLASS_REF         ? v->ref
		     : v->cls == DW_CLASS_SIGNATURE ? dwarf_type_of_signature(w->unit->dw, v->u)
						    : 0;
	struct cairn_vaddr at = {1};
	bool is_addr = v->cls == DW_CLASS_ADDRESS;
	return dw_seen_uint(w, slot, 77) == (is_number ? v->u : 77) &&
	       dw_seen_ref(w, slot) == ref &&
	       dw_seen_str(w, slot) == (v->cls == DW_CLASS_STRING ? v->str : NULL) &&
	       dw_seen_addr(w, slot, &at) == is_addr && at.v == (is_addr ? v->addr.v : 1);
}

static void compare_slot(struct dw_walker *w, const struct dw_die *die, unsigned int slot)
{
	struct dw_value ours, theirs;
	struct cairn_err unused;
	int their_rc = dw_attr(die, wanted[slot], &theirs, &unused);
	if (dw_seen(w, slot) != (their_rc != 0) || dw_seen_value(w, slot, &ours) != their_rc ||
	    (their_rc > 0 && !(same_value(&ours, &theirs) && same_short_forms(w, slot, &theirs)))) {
		fprintf(stderr, "DIE 0x%llx: attribute 0x%x is not what dw_attr() gives\n",
			(unsigned long long)die->off, wanted[slot]);
		abort();
	}
}

static int see_by_walker(struct dw_walker *w, const struct dw_unit *u, uint64_t *n,
			 struct cairn_err *err)
{
	int rc = dw_walker_enter(w, u, err);
	while (rc >= 0 && (rc = dw_walker_next(w)) > 0) {
		struct dw_die die, seen = dw_walker_die(w);
		++*n;
		if (rc != role_of(dw_walker_tag(w)) ||
		    dw_die_at(u->dw, dw_walker_off(w), &die, err) != 1 ||
		    die.abbrev != seen.abbrev || die.attrs != seen.attrs || die.tag != seen.tag)
			abort();
		for (unsigned int slot = 0; slot < N_WANTED && w->rc >= 0; slot++)
			compare_slot(w, &die, slot);
	}
	return rc;
}

static void see_by_walkers(struct dwarf_walk *ret, const struct dwarf *dw, struct cairn_err *err)
{
	struct dw_query wish = {.attrs = wanted, .n_attrs = N_WANTED, .role = role_of};
	struct dw_walker w;
	dw_walker_init(&w, &wish);
	for (size_t i = 0; i < dwarf_n_units(dw); i++)
		checked(ret, see_by_walker(&w, dwarf_unit(dw, i), &ret->walked, err), err);
	dw_walker_fini(&w);
}

static void check_index(const struct dw_func_index *index)
{
	for (size_t i = 0; i < index->n; i++) {
		const struct dw_func *f = &index->p[i];
		if (i && f->die <= index->p[i - 1].die)
			abort();
		if (f->parent != DW_FUNC_NONE && f->parent >= i)
			abort();
		if (dw_func_index_find(index, f->die) != i)
			abort();
		if (f->name)
			touch((const uint8_t *)f->name, strlen(f->name));
	}
}

void dwarf_walk(const struct dwarf *dw, struct dwarf_walk *ret)
{
	struct dw_func_index index;
	struct cairn_err err = {0};
	*ret = (struct dwarf_walk){0};
	for (size_t i = 0; i < dwarf_n_units(dw); i++)
		see_unit(ret, dwarf_unit(dw, i), &err);
	see_by_walkers(ret, dw, &err);
	if (checked(ret, dwarf_index_functions(dw, 1, &index, &err), &err) == 0) {
		check_index(&index);
		ret->functions = index.n;
		dw_func_index_fini(&index);
	}
	if (checked(ret, dwarf_functions_named(dw, 1, "add", &index, &err), &err) == 0) {
		check_index(&index);
		dw_func_index_fini(&index);
	}
}

int dwarf_walk_bytes(const void *bytes, size_t size, struct dwarf_walk *ret)
{
	struct cairn_binary *bin;
	struct dwarf *dw;
	struct cairn_err err = {0};
	*ret = (struct dwarf_walk){0};
	int rc = binary_open_mem(bytes, size, "input", &bin, &err);
	if (rc < 0)
		return rc;
	rc = (int)checked(ret, dwarf_open(bin, 1, &dw, &err), &err);
	if (rc == 0) {
		dwarf_walk(dw, ret);
		dwarf_close(dw);
	}
	cairn_binary_close(bin);
	return rc;
}
