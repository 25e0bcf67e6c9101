/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds where copies without entries begin, by line
 *
 * Clang has no entries (GCC's markers), only the line of each instruction. If a value is known on
 * one path, or loaded there already, the copy's use of it begins at a join. Only the path that had
 * to load it passes the site:
 *
 *	     v              v
 *	  P: load  5:9      |	(known on this path)
 *	     +------+-------+
 *	            v
 *	         i: test  5:13
 *
 * The instruction at i has the line of the site, or one between it and the function's declaration;
 * an end that several copies share has a later line.
 *
 * Clang also peels the first pass off a loop around the call, or unrolls the loop. The first
 * statement then occurs again, after code outside of the copy.
 *
 * GCC at link time (-flto) often has no entries, either, but it marks where each statement begins.
 */
#include "sites/quirks/clang_entry_lines.h"

#include "dwarf/constants.h"

bool entry_lines_begin_at(const struct event_count *p, uint32_t i)
{
	const struct dw_position *here = cfg_position(p->cfg, i), *site;
	struct dw_value line;
	for (size_t k = 0; here && k < p->n_sites; k++) {
		site = p->at[k] == GRAPH_NONE ? NULL : cfg_position(p->cfg, p->at[k]);
		if (!site || here->line > site->line)
			continue;
		if (here->line == site->line)
			return true;
		bool has_line =
			dw_attr_deep(&p->copy->die, DW_AT_decl_line, &line, NULL, NULL) == 1 &&
			(line.cls == DW_CLASS_UDATA || line.cls == DW_CLASS_SDATA);
		if (has_line && line.u <= here->line)
			return true;
	}
	return false;
}

/*
 * True if nothing decides between an instruction and a later one: the caller's instructions in
 * between were interleaved with the copy's.
 */
static bool is_straight_line(const struct cfg *g, uint32_t from, uint32_t to)
{
	uint32_t i = from;
	while (i != GRAPH_NONE && i < to && !g->v.p[i].is_branch)
		i = g->v.p[i].next != GRAPH_NONE && !g->v.p[g->v.p[i].next].is_target
			    ? g->v.p[i].next
			    : GRAPH_NONE;
	return i == to;
}

bool entry_lines_repeat_at(const struct event_count *p, uint32_t i)
{
	const struct dw_position *here = cfg_position(p->cfg, i), *site;
	bool repeats = false;
	for (size_t k = 0; here && here->is_stmt && here->at == p->cfg->v.p[i].at && k < p->n_sites;
	     k++) {
		site = p->at[k] == GRAPH_NONE ? NULL : cfg_position(p->cfg, p->at[k]);
		if (!site || site->line != here->line || site->column != here->column)
			continue;
		/* GCC marks each statement that is begun once. */
		if (!dw_unit_is_gcc(p->copy->die.unit) && is_straight_line(p->cfg, p->at[k], i))
			return false;
		repeats = true;
	}
	return repeats;
}
