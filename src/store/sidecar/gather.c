/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions and inlined copies of a unit
 *
 * One walk over the unit's DIEs. Each function with code, and each copy inside it, becomes a frame;
 * its ranges wait until the walk has left the function and are flattened then. A copy inside a
 * function that the linker dropped is dropped with it: its own addresses, small numbers, do not
 * tell.
 *
 * A chain of references tells which function a frame is: copy, abstract instance, declaration in a
 * class. The chain may lead to DIEs further down or in other units, so it is followed after the
 * walk. The name and the linkage name are the first ones in the chain. File and line are those of
 * its end, because that is the declaration, which all references share.
 */
#include "sidecar/gather.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/search.h"
#include "dwarf/constants.h"

enum slot {
	NAME,
	LINKAGE_NAME,
	MIPS_LINKAGE_NAME,
	ORIGIN,
	SPECIFICATION,
	DECL_FILE,
	DECL_LINE,
	LOW_PC,
	HIGH_PC,
	RANGES,
	ENTRY_PC,
	CALL_FILE,
	CALL_LINE,
	CALL_COLUMN,
};

static const uint16_t attrs[] = {
	[NAME] = DW_AT_name,
	[LINKAGE_NAME] = DW_AT_linkage_name,
	[MIPS_LINKAGE_NAME] = DW_AT_MIPS_linkage_name,
	[ORIGIN] = DW_AT_abstract_origin,
	[SPECIFICATION] = DW_AT_specification,
	[DECL_FILE] = DW_AT_decl_file,
	[DECL_LINE] = DW_AT_decl_line,
	[LOW_PC] = DW_AT_low_pc,
	[HIGH_PC] = DW_AT_high_pc,
	[RANGES] = DW_AT_ranges,
	[ENTRY_PC] = DW_AT_entry_pc,
	[CALL_FILE] = DW_AT_call_file,
	[CALL_LINE] = DW_AT_call_line,
	[CALL_COLUMN] = DW_AT_call_column,
};

enum role {
	FUNCTION = 1,
	COPY,
	SCOPE, /* its children's depth would otherwise look like that of a sibling's */
};

static uint8_t role_anywhere(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
		return FUNCTION;
	case DW_TAG_inlined_subroutine:
		return COPY;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_common_block:
		return SCOPE;
	case DW_TAG_array_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_call_site:
	case DW_TAG_GNU_call_site:
		return DW_ROLE_PRUNE;
	}
	return DW_ROLE_PASS;
}

/* In C++ a class inside a function holds its member functions, with their code. In C it cannot. */
static uint8_t role_in_c(uint16_t tag)
{
	if (tag == DW_TAG_structure_type || tag == DW_TAG_union_type)
		return DW_ROLE_PRUNE;
	return role_anywhere(tag);
}

static const struct dw_query wishes[] = {
	{attrs, sizeof(attrs) / sizeof(attrs[0]), role_in_c},
	{attrs, sizeof(attrs) / sizeof(attrs[0]), role_anywhere},
};

int gatherer_init(struct gatherer *g, const struct dwarf *dw, struct code_span span, bool sites)
{
	*g = (struct gatherer){.dw = dw, .span = span, .sites = sites};
	map_init(&g->foreign);
	int rc = dw_walker_init(&g->walkers[0], &wishes[0]);
	return rc < 0 ? rc : dw_walker_init(&g->walkers[1], &wishes[1]);
}

void gatherer_fini(struct gatherer *g)
{
	dw_walker_fini(&g->walkers[0]);
	dw_walker_fini(&g->walkers[1]);
	VEC_FREE(&g->open);
	VEC_FREE(&g->ranges);
	VEC_FREE(&g->heap);
	VEC_FREE(&g->file_of);
	map_fini(&g->foreign);
}

void unit_facts_fini(struct unit_facts *f)
{
	VEC_FREE(&f->functions);
	VEC_FREE(&f->frames);
	VEC_FREE(&f->stretches);
	VEC_FREE(&f->code);
	VEC_FREE(&f->rows);
	VEC_FREE(&f->lines);
	VEC_FREE(&f->files);
}

/* ---- ranges ---- */

/* If a range is partly outside the binary's code, the part inside counts. */
static int add_range(void *ctx, struct dw_range r)
{
	struct gatherer *g = ctx;
	uint64_t base = g->span.base, end = base + g->span.size;
	uint64_t lo = r.lo.v > base ? r.lo.v : base, hi = r.hi.v < end ? r.hi.v : end;
	if (lo >= hi)
		return 0;
	struct nested_range n = {(uint32_t)(lo - base), (uint32_t)(hi - base), g->frame};
	return VEC_ADD(&g->ranges, n) ? 0 : -ENOMEM;
}

/* Returns 1, 0 when there is no code, or an error. */
static int add_ranges(struct gatherer *g, struct dw_walker *w, uint32_t frame)
{
	size_t before = g->ranges.n;
	struct dw_range r;
	int rc = 0;
	g->frame = frame;
	if (dw_seen(w, RANGES)) {
		struct dw_die die = dw_walker_die(w);
		rc = dw_ranges(&die, add_range, g, g->err);
	} else if (dw_seen_range(w, LOW_PC, HIGH_PC, &r)) {
		rc = add_range(g, r);
	}
	return rc < 0 ? rc : g->ranges.n > before;
}

/* ---- frames ---- */

static dw_off origin_of(struct dw_walker *w)
{
	dw_off origin = dw_seen_ref(w, ORIGIN);
	return origin ? origin : dw_seen_ref(w, SPECIFICATION);
}

static int add_function(struct gatherer *g, struct dw_walker *w)
{
	int rc = 0;
	struct unit_function f = {.die = dw_walker_off(w),
				  .origin = origin_of(w),
				  .name = dw_seen_str(w, NAME),
				  .linkage = dw_seen_str(w, LINKAGE_NAME),
				  .line = (uint32_t)dw_seen_uint(w, DECL_LINE, 0)};
	if (!f.linkage)
		f.linkage = dw_seen_str(w, MIPS_LINKAGE_NAME);
	if (dw_seen(w, DECL_FILE))
		f.file = gather_file(g, g->unit, dw_seen_uint(w, DECL_FILE, 0), &rc);
	return VEC_ADD(&g->to->functions, f) ? rc : -ENOMEM;
}

static int add_copy(struct gatherer *g, struct dw_walker *w, uint32_t parent)
{
	int rc = 0;
	struct unit_frame f = {.parent = parent,
			       .function = NO_FUNCTION,
			       .origin = origin_of(w),
			       .die = dw_walker_off(w),
			       .call_line = (uint32_t)dw_seen_uint(w, CALL_LINE, 0),
			       .call_column = (uint32_t)dw_seen_uint(w, CALL_COLUMN, 0)};
	if (dw_seen(w, CALL_FILE))
		f.call_file = gather_file(g, g->unit, dw_seen_uint(w, CALL_FILE, 0), &rc);
	return VEC_ADD(&g->to->frames, f) ? rc : -ENOMEM;
}

/* The frames around a DIE at @depth. Leaving an out-of-line function completes it. */
static int leave_to(struct gatherer *g, uint64_t depth, struct open_frame *ret)
{
	bool had = g->open.n;
	while (g->open.n && g->open.p[g->open.n - 1].depth >= depth)
		g->open.n--;
	*ret = g->open.n ? g->open.p[g->open.n - 1]
			 : (struct open_frame){.frame = NO_FRAME, .site = NO_FRAME};
	return had && !g->open.n ? flatten_ranges(g) : 0;
}

static int open_frame(struct gatherer *g, struct dw_walker *w, uint32_t frame, uint32_t site)
{
	struct open_frame o = {.depth = w->depth, .frame = frame, .site = site};
	return VEC_ADD(&g->open, o) ? 0 : -ENOMEM;
}

/*
 * A function inside a function (C++: of a local class; GNU C) has code of its own. Its ranges do
 * not nest in those of the outer one, and are flattened with them all the same.
 */
static int see_function(struct gatherer *g, struct dw_walker *w)
{
	struct unit_facts *to = g->to;
	uint32_t function = (uint32_t)to->functions.n, frame = (uint32_t)to->frames.n;
	int rc = add_function(g, w);
	if (rc < 0)
		return rc;
	rc = add_ranges(g, w, frame);
	if (rc < 0)
		return rc;
	if (!rc)
		return open_frame(g, w, NO_FRAME, NO_FRAME);
	struct unit_frame f = {.parent = NO_FRAME, .function = function, .die = dw_walker_off(w)};
	return VEC_ADD(&to->frames, f) ? open_frame(g, w, frame, frame) : -ENOMEM;
}

/*
 * If nothing is left of a copy, no address belongs to it, and copies inside it belong to its
 * parent. But it can be a site; then it becomes a frame that no code leads to.
 */
static int see_copy_without_code(struct gatherer *g, struct dw_walker *w,
				 const struct open_frame *around)
{
	uint32_t frame = (uint32_t)g->to->frames.n;
	if (!g->sites || !dw_seen(w, ENTRY_PC))
		return open_frame(g, w, around->frame, around->site);
	int rc = add_copy(g, w, around->site);
	return rc < 0 ? rc : open_frame(g, w, around->frame, frame);
}

static int see_copy(struct gatherer *g, struct dw_walker *w, const struct open_frame *around)
{
	uint32_t frame = (uint32_t)g->to->frames.n;
	if (around->frame == NO_FRAME)
		return open_frame(g, w, NO_FRAME, NO_FRAME);
	int rc = add_ranges(g, w, frame);
	if (rc < 0)
		return rc;
	if (!rc)
		return see_copy_without_code(g, w, around);
	rc = add_copy(g, w, around->frame);
	return rc < 0 ? rc : open_frame(g, w, frame, frame);
}

static int walk(struct gatherer *g)
{
	struct dw_walker *w = &g->walkers[dw_unit_is_c(g->unit) ? 0 : 1];
	struct open_frame around;
	int role, rc = dw_walker_enter(w, g->unit, g->err);
	while (rc >= 0 && (role = dw_walker_next(w)) != 0) {
		rc = role < 0 ? role : leave_to(g, w->depth, &around);
		if (rc >= 0 && role == FUNCTION)
			rc = see_function(g, w);
		else if (rc >= 0 && role == COPY)
			rc = see_copy(g, w, &around);
	}
	return rc < 0 ? rc : leave_to(g, 0, &around);
}

/* ---- which function ---- */

static struct unit_function *own_function(struct unit_facts *f, dw_off die)
{
	size_t lo = SEARCH(0, f->n_own, mid, f->functions.p[mid].die < die);
	return lo < f->n_own && f->functions.p[lo].die == die ? &f->functions.p[lo] : NULL;
}

/* A function of another unit, read by its DIE. */
static int read_foreign(struct gatherer *g, dw_off off, struct unit_function *ret)
{
	struct dw_die die;
	struct dw_value v;
	int rc = dw_die_at(g->dw, off, &die, g->err);
	if (rc < 0)
		return rc;
	*ret = (struct unit_function){.die = off};
	if (!rc)
		return 0;
	ret->name = dw_str(&die, DW_AT_name);
	ret->linkage = dw_str(&die, DW_AT_linkage_name);
	if (!ret->linkage)
		ret->linkage = dw_str(&die, DW_AT_MIPS_linkage_name);
	ret->line = (uint32_t)dw_udata(&die, DW_AT_decl_line, 0);
	ret->origin = dw_ref(&die, DW_AT_abstract_origin);
	if (!ret->origin)
		ret->origin = dw_ref(&die, DW_AT_specification);
	rc = 0;
	if (dw_attr(&die, DW_AT_decl_file, &v, NULL) == 1)
		ret->file = gather_file(g, die.unit, dw_udata(&die, DW_AT_decl_file, 0), &rc);
	return rc;
}

/* Number of the function made of a DIE elsewhere. */
static int foreign_function(struct gatherer *g, dw_off off, size_t *ret)
{
	struct unit_function f;
	uint64_t known;
	if (map_get(&g->foreign, off, &known)) {
		*ret = (size_t)known;
		return 0;
	}
	int rc = read_foreign(g, off, &f);
	if (rc < 0)
		return rc;
	*ret = g->to->functions.n;
	return VEC_ADD(&g->to->functions, f) ? map_put(&g->foreign, off, *ret) : -ENOMEM;
}

/* Number of the function that a DIE is. */
static int find_function(struct gatherer *g, dw_off die, size_t *ret)
{
	struct unit_function *own = own_function(g->to, die);
	if (!own)
		return foreign_function(g, die, ret);
	*ret = (size_t)(own - g->to->functions.p);
	return 0;
}

/*
 * Follows the origins of function @i; names from the first that has them, the declaration from the
 * last.
 */
static int resolve(struct gatherer *g, size_t i)
{
	struct unit_function found = g->to->functions.p[i];
	for (int links = 0; found.origin && !found.resolved; links++) {
		size_t next;
		int rc = find_function(g, found.origin, &next);
		if (rc < 0)
			return rc;
		if (links == DW_ORIGIN_MAX)
			return err_set(g->err, -EBADMSG,
				       "%s: the origins of the DIE at 0x%" PRIx64 " form a ring",
				       cairn_binary_debug_path(dwarf_binary(g->dw)), found.die);
		struct unit_function to = g->to->functions.p[next];
		found.name = found.name ? found.name : to.name;
		found.linkage = found.linkage ? found.linkage : to.linkage;
		found.file = to.file;
		found.line = to.line;
		found.origin = to.origin;
		found.resolved = to.resolved;
	}
	found.resolved = true;
	found.origin = 0;
	g->to->functions.p[i] = found;
	return 0;
}

static int resolve_all(struct gatherer *g)
{
	struct unit_facts *f = g->to;
	f->n_own = f->functions.n;
	for (size_t i = 0; i < f->frames.n; i++) {
		struct unit_frame *frame = &f->frames.p[i];
		size_t function = frame->function;
		if (frame->parent != NO_FRAME && !frame->origin)
			continue;
		int rc = frame->origin ? find_function(g, frame->origin, &function) : 0;
		if (rc >= 0)
			rc = resolve(g, function);
		if (rc < 0)
			return rc;
		frame->function = (uint32_t)function;
	}
	return 0;
}

int gather_unit(struct gatherer *g, const struct dw_unit *u, struct unit_facts *ret,
		struct cairn_err *err)
{
	g->unit = u;
	g->to = ret;
	g->err = err;
	g->open.n = g->ranges.n = g->file_of.n = 0;
	map_fini(&g->foreign);
	map_init(&g->foreign);
	int rc = VEC_ADD(&ret->files, NULL) ? walk(g) : -ENOMEM;
	if (rc >= 0)
		rc = resolve_all(g);
	if (rc >= 0)
		rc = gather_rows(g);
	return rc == -ENOMEM ? err_nomem(err, "the facts of a unit about code") : rc;
}
