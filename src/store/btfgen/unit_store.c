/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/search.h"
#include "btfgen/unit_impl.h"

/* ---- places ---- */

/*
 * The sections that units are in: of the file, its alternate one, of type units, of every .dwo
 * file.
 */
static int list_sections(struct unit_types *u)
{
	for (size_t i = 0; i < u->dw->n_units; i++) {
		const struct dw_unit *unit = &u->dw->units[i];
		if (u->sections.n && u->sections.p[u->sections.n - 1].tag == unit->tag)
			continue;
		if (!VEC_ADD(&u->sections,
			     ((struct unit_section){.tag = unit->tag, .start = u->end})))
			return -ENOMEM;
		u->end += unit->sec->n;
	}
	return 0;
}

/* The begin of a tag's DIE; false when no unit has it. */
static bool start_of(const struct unit_types *u, dw_off tag, uint64_t *ret)
{
	size_t lo = SEARCH(0, u->sections.n, mid, u->sections.p[mid].tag < tag);
	if (lo == u->sections.n || u->sections.p[lo].tag != tag)
		return false;
	*ret = u->sections.p[lo].start;
	return true;
}

int unit_begin_places(struct unit_types *u, const struct dw_unit *unit)
{
	uint64_t start = 0;
	u->unit_off = unit->off;
	u->unit_tag = unit->tag;
	u->unit_end = (uint64_t)(unit->end - unit->sec->p) - unit->off;
	if (u->whole && !u->sections.n && list_sections(u) < 0)
		return -ENOMEM;
	if (u->whole)
		start_of(u, unit->tag, &start);
	u->ref_bias = u->whole ? (uint32_t)(start + unit->off) : 0;
	return 0;
}

/*
 * The local offset of a reference; 0 and u->walker.rc when it leads outside of the data that is
 * read.
 */
local_off unit_local_of(struct unit_types *u, dw_off off)
{
	if (!off)
		return 0;
	if (u->whole) {
		uint64_t in_section = dw_off_in_section(off), start;
		return start_of(u, off - in_section, &start) ? (local_off)(start + in_section) : 0;
	}
	uint64_t at = off - (u->unit_off | u->unit_tag);
	if (at < u->unit_end)
		return (local_off)at;
	u->walker.rc = -EXDEV;
	return 0;
}

dw_off unit_die_off(const struct unit_types *u, local_off off)
{
	if (!u->whole)
		return (u->unit_off + off) | u->unit_tag;
	size_t lo = SEARCH(0, u->sections.n, mid, u->sections.p[mid].start <= off);
	return lo ? (off - u->sections.p[lo - 1].start) | u->sections.p[lo - 1].tag : off;
}

/* ---- scopes and elements ---- */

int unit_open_scope(struct unit_types *u, uint32_t i, const char *name)
{
	struct open_scope s = {
		.name = name, .depth = u->walker.depth, .i = i, .tagged = i, .component = -1};
	if (!dw_walker_has_children(&u->walker))
		return 0;
	if (u->open.n == u->open.cap)
		return VEC_ADD(&u->open, s) ? 0 : -ENOMEM;
	u->open.p[u->open.n++] = s;
	return 0;
}

int unit_open_part(struct unit_types *u, uint32_t tagged, int32_t component)
{
	struct open_scope s = {.depth = u->walker.depth,
			       .i = SCOPE_ONLY,
			       .tagged = tagged,
			       .component = component};
	if (!dw_walker_has_children(&u->walker))
		return 0;
	return VEC_ADD(&u->open, s) ? 0 : -ENOMEM;
}

struct elem *unit_grow_elems(struct unit_types *u)
{
	if (u->elems.n >= UINT32_MAX / 2 || !VEC_PUSH(&u->elems)) {
		u->walker.rc = -ENOMEM;
		return NULL;
	}
	return &u->elems.p[--u->elems.n];
}
