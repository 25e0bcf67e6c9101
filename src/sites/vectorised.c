/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/vectorised.h"

#include "elf/elf.h"
#include "insn/insn.h"

/* A loop of the copy's own: what is vectorised there are its turns, not calls. */
static bool has_own_loop(const struct passage *p, const struct passage_scratch *scratch, uint8_t own)
{
	const struct graph *g = p->graph;
	for (size_t n = 0; n < scratch->own.n; n++) {
		uint32_t i = scratch->own.p[n], to = g->v.p[i].target;
		if (g->v.p[i].is_indirect || (to != GRAPH_NONE && to <= i && scratch->marks[to] & own))
			return true;
	}
	return false;
}

static bool has_packed(const struct passage *p, struct dw_range r)
{
	const struct graph *g = p->graph;
	const uint8_t *code;
	size_t n;
	if (!elf_code_at(p->code, r.lo, &code, &n))
		return false;
	for (size_t i = graph_from(g, r.lo.v); i < g->v.n && g->v.p[i].at < r.hi.v; i++) {
		uint64_t off = g->v.p[i].at - r.lo.v;
		if (off + g->v.p[i].len <= n && insn_is_packed(code + off, g->v.p[i].len))
			return true;
	}
	return false;
}

bool vectorised_is(const struct passage *p, const struct passage_scratch *scratch, uint8_t own)
{
	for (uint32_t k = 0; k < p->copy->n_ranges; k++)
		if (has_packed(p, p->copy->ranges[k]))
			return !has_own_loop(p, scratch, own);
	return false;
}
