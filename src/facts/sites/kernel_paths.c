/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/kernel_paths.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "elf/functions.h"
#include "elf/imports.h"
#include "insn/kernel_flow.h"

struct kernel_paths {
	const struct cairn_binary *bin;
	struct elf *code;
	struct kernel_flow *flow;
	const struct functions *functions;
	struct map silent; /* addresses that a module calls, of functions that never return */
};

static int note_import(void *ctx, const char *name, struct cairn_vaddr at)
{
	struct kernel_paths *p = ctx;

	return kernel_flow_never_returns(name) ? map_put(&p->silent, at.v, 1) : 0;
}

static int prepare(struct kernel_paths *p)
{
	int rc = kernel_flow_new(p->bin, &p->flow);

	if (rc < 0)
		return rc;
	if (elf_visit_stubs(p->code, note_import, p, NULL) == -ENOMEM)
		return -ENOMEM;
	return binary_functions(p->bin, &p->functions, NULL) == -ENOMEM ? -ENOMEM : 0;
}

int kernel_paths_new(const struct cairn_binary *bin, struct kernel_paths **ret)
{
	struct kernel_paths *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return -ENOMEM;
	p->bin = bin;
	p->code = binary_main(bin);
	rc = prepare(p);
	if (rc < 0)
		kernel_paths_free(p);
	else
		*ret = p;
	return rc;
}

void kernel_paths_free(struct kernel_paths *p)
{
	if (!p)
		return;
	kernel_flow_free(p->flow);
	map_fini(&p->silent);
	free(p);
}

/* The instruction that begins at an address, or is there. */
static uint32_t insn_around(const struct cfg *g, uint64_t at)
{
	uint32_t i = cfg_at(g, at);
	size_t next;

	if (i != GRAPH_NONE)
		return i;
	next = cfg_from(g, at);
	return next ? (uint32_t)next - 1 : GRAPH_NONE;
}

static int lead(struct cfg *g, uint32_t i, uint64_t to)
{
	uint32_t target = cfg_at(g, to);

	if (target != GRAPH_NONE)
		return cfg_add_edge(g, i, target);
	g->v.p[i].goes_elsewhere = true;
	g->v.p[i].is_nop = false;
	return 0;
}

/* Other code may be there when it runs, also where the file has nops. */
static void keep(struct cfg *g, uint64_t lo, uint64_t hi)
{
	for (size_t i = cfg_from(g, lo); i < g->v.n && g->v.p[i].at < hi; i++)
		g->v.p[i].is_nop = false;
}

static int apply(struct cfg *g, const struct kernel_flow_fact *fact)
{
	uint32_t i = insn_around(g, fact->at);
	struct cfg_insn *insn;

	if (i == GRAPH_NONE)
		return 0;
	insn = &g->v.p[i];
	switch (fact->kind) {
	case KERNEL_FLOW_LEADS:
		return lead(g, i, fact->to);
	case KERNEL_FLOW_CHANGED:
		keep(g, fact->at, fact->to);
		break;
	case KERNEL_FLOW_CALLS:
		insn->is_call = insn->has_effect = true;
		break;
	case KERNEL_FLOW_DEAD:
		insn->is_branch = false;
		insn->next = GRAPH_NONE;
		break;
	case KERNEL_FLOW_RETURNS:
		insn->is_branch = false;
		insn->is_return = true;
		break;
	case KERNEL_FLOW_ELSEWHERE:
		insn->goes_elsewhere = true;
		break;
	}
	return 0;
}

static int apply_all(const struct kernel_paths *p, struct cfg *g)
{
	int rc = 0;

	for (size_t k = 0; k < g->pieces.n && !rc; k++) {
		const struct kernel_flow_fact *facts;
		size_t n;
		facts = kernel_flow_between(p->flow, g->pieces.p[k].lo, g->pieces.p[k].hi, &n);
		for (size_t i = 0; i < n && !rc; i++)
			rc = apply(g, &facts[i]);
	}
	return rc;
}

static int end(struct cfg *g, uint32_t i)
{
	struct cfg_insn *insn = &g->v.p[i];
	bool is_listed = insn->is_call;

	insn->next = GRAPH_NONE;
	insn->is_end = true;
	return is_listed || VEC_ADD(&g->ends, i) ? 0 : -ENOMEM;
}

/* ud2 of BUG(), and int3. */
static bool is_stop(const struct kernel_paths *p, const struct cfg_insn *insn)
{
	const uint8_t *code;
	size_t n;

	if (insn->len > 2 || !elf_code_at(p->code, (struct cairn_vaddr){insn->at}, &code, &n) ||
	    n < insn->len)
		return false;
	if (insn->len == 1)
		return code[0] == 0xcc;
	return code[0] == 0x0f && code[1] == 0x0b && !kernel_flow_warns(p->flow, insn->at);
}

static int end_stops(const struct kernel_paths *p, struct cfg *g)
{
	int rc = 0;

	for (uint32_t i = 0; i < g->v.n && !rc; i++)
		if (is_stop(p, &g->v.p[i]))
			rc = end(g, i);
	return rc;
}

static bool never_returns(const struct kernel_paths *p, uint64_t to)
{
	const struct elf_symbol *s =
		p->functions ? functions_at(p->functions, (struct cairn_vaddr){to}) : NULL;
	uint64_t is_silent = 0;

	map_get(&p->silent, to, &is_silent);
	return is_silent || (s && s->at.v == to && kernel_flow_never_returns(s->name));
}

static int end_calls(const struct kernel_paths *p, struct cfg *g)
{
	int rc = 0;

	for (size_t i = 0; i < g->calls.n && !rc; i++)
		if (never_returns(p, g->calls.p[i].to))
			rc = end(g, g->calls.p[i].from);
	return rc;
}

int kernel_paths_change(void *ctx, struct cfg *g)
{
	const struct kernel_paths *p = ctx;
	int rc = end_calls(p, g);

	if (!rc)
		rc = end_stops(p, g);
	return rc ? rc : apply_all(p, g);
}
