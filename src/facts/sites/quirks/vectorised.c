/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/quirks/vectorised.h"

#include "elf/elf.h"
#include "insn/insn.h"

/*
 * True if the copy has a loop of its own: vector code there works on passes of that loop, not on
 * calls.
 */
static bool has_own_loop(const struct event_count *p, const struct event_count_scratch *scratch,
			 uint8_t own)
{
	const struct cfg *g = p->cfg;
	for (size_t n = 0; n < scratch->own.n; n++) {
		uint32_t i = scratch->own.p[n], to = g->v.p[i].target;
		if (g->v.p[i].is_indirect ||
		    (to != GRAPH_NONE && to <= i && scratch->marks[to] & own))
			return true;
	}
	return false;
}

/* The instructions of @g in [lo, hi). */
static bool has_packed(const struct elf *code, const struct cfg *g, uint64_t lo, uint64_t hi)
{
	const uint8_t *bytes;
	size_t n;
	if (!elf_code_at(code, (struct cairn_vaddr){lo}, &bytes, &n))
		return false;
	for (size_t i = cfg_from(g, lo); i < g->v.n && g->v.p[i].at < hi; i++) {
		uint64_t off = g->v.p[i].at - lo;
		if (off + g->v.p[i].len <= n && insn_may_be_packed(bytes + off, g->v.p[i].len) &&
		    insn_is_packed(bytes + off, g->v.p[i].len))
			return true;
	}
	return false;
}

/*
 * True if any piece of the function has such instructions: most have none, and one search answers
 * for all of a function's copies.
 */
static bool function_has_packed(const struct elf *code, struct cfg *g)
{
	if (!g->is_packed_known) {
		g->is_packed_known = true;
		g->has_packed = false;
		for (size_t i = 0; i < g->pieces.n && !g->has_packed; i++)
			g->has_packed = has_packed(code, g, g->pieces.p[i].lo, g->pieces.p[i].hi);
	}
	return g->has_packed;
}

bool vectorised_is(const struct event_count *p, const struct event_count_scratch *scratch,
		   uint8_t own)
{
	if (!function_has_packed(p->code, p->cfg))
		return false;
	for (uint32_t k = 0; k < p->copy->n_ranges; k++)
		if (has_packed(p->code, p->cfg, p->copy->ranges[k].lo.v, p->copy->ranges[k].hi.v))
			return !has_own_loop(p, scratch, own);
	return false;
}
