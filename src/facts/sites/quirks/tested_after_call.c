/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/quirks/tested_after_call.h"

#include "elf/elf.h"
#include "insn/insn.h"

enum { NEAR = 6 }; /* instructions that are examined on each path */

/* The end of a path that consists of jumps only. */
static uint32_t destination(const struct cfg *g, uint32_t i)
{
	for (unsigned int n = 0; i != GRAPH_NONE && n < NEAR; n++) {
		const struct cfg_insn *insn = &g->v.p[i];
		if (insn->is_nop)
			i = insn->next;
		else if (insn->is_branch && insn->next == GRAPH_NONE && insn->target != GRAPH_NONE)
			i = insn->target;
		else
			return i;
	}
	return i;
}

/* The next branch with a condition, up to which nothing happens; GRAPH_NONE: there is none near. */
static uint32_t next_condition(const struct cfg *g, uint32_t i)
{
	for (unsigned int n = 0; i != GRAPH_NONE && n < NEAR; n++) {
		const struct cfg_insn *insn = &g->v.p[i];
		if (insn->is_branch)
			return insn->next != GRAPH_NONE && insn->target != GRAPH_NONE ? i
										      : GRAPH_NONE;
		if (insn->has_effect || insn->is_call)
			return GRAPH_NONE;
		i = insn->next;
	}
	return GRAPH_NONE;
}

static bool decode(const struct event_count *p, uint32_t i, const uint8_t **bytes, struct insn *ret)
{
	size_t n;
	uint64_t at = p->cfg->v.p[i].at;
	return elf_code_at(p->code, (struct cairn_vaddr){at}, bytes, &n) &&
	       insn_decode(*bytes, n, at, ret);
}

/*
 * The register that a branch depends on: test %rsi,%rsi before it. 0: none, or another condition.
 */
static uint16_t register_tested(const struct event_count *p, uint32_t branch)
{
	const struct cfg_insn *test =
		branch && branch != GRAPH_NONE ? &p->cfg->v.p[branch - 1] : NULL;
	struct insn insn;
	const uint8_t *bytes;
	size_t n;
	if (!test || test->next != branch || test->len != 3 ||
	    !elf_code_at(p->code, (struct cairn_vaddr){test->at}, &bytes, &n) || n < 3)
		return 0;
	bool is_test = (bytes[0] & 0xf8) == 0x48 && bytes[1] == 0x85 && bytes[2] >= 0xc0 &&
		       (bytes[2] >> 3 & 7) == (bytes[2] & 7);
	if (!is_test || !insn_decode(bytes, n, test->at, &insn))
		return 0;
	return insn.reads && !(insn.reads & (insn.reads - 1u)) ? insn.reads : 0;
}

/* True if the next instructions read the memory that a register points to. */
static bool is_pointer_used(const struct event_count *p, uint32_t i, uint16_t reg)
{
	struct insn insn;
	const uint8_t *bytes;
	for (unsigned int n = 0; i != GRAPH_NONE && n < NEAR && decode(p, i, &bytes, &insn); n++) {
		if (insn.reads_memory && insn.reads & reg)
			return true;
		if (insn.writes & reg || p->cfg->v.p[i].is_branch || p->cfg->v.p[i].is_call)
			return false;
		i = p->cfg->v.p[i].next;
	}
	return false;
}

/*
 * One path from the first condition has a second condition, which can leave to the target of the
 * other path.
 */
struct shape {
	/* stays: the other target of the second one. GRAPH_NONE: the code has no such shape */
	uint32_t second, stays;
};

static struct shape shape_of(const struct cfg *g, uint32_t way, uint32_t other)
{
	const struct shape none = {GRAPH_NONE, GRAPH_NONE};
	uint32_t second = next_condition(g, way);
	if (second == GRAPH_NONE)
		return none;
	uint32_t next = g->v.p[second].next, target = g->v.p[second].target,
		 out = destination(g, other);
	bool leaves_by_jump = destination(g, target) == out;
	if (leaves_by_jump == (destination(g, next) == out))
		return none;
	return (struct shape){second, leaves_by_jump ? next : target};
}

/*
 * A condition that may be decided before the pointer is known to be one reads nothing through a
 * register, but for the stack's.
 */
static bool reads_no_pointer(const struct event_count *p, uint32_t from, uint32_t to)
{
	enum { RSP = 1 << 7 };
	struct insn insn;
	const uint8_t *bytes;
	for (uint32_t i = from; i < to; i++)
		if (!decode(p, i, &bytes, &insn) || (insn.reads_memory && insn.reads & ~RSP))
			return false;
	return true;
}

bool tested_after_call_is(const struct event_count *p, uint32_t at)
{
	const struct cfg *g = p->cfg;
	uint32_t first = g->has_jump_back ? next_condition(g, at) : GRAPH_NONE;
	if (first == GRAPH_NONE || first < at)
		return false;
	struct shape one = shape_of(g, g->v.p[first].next, g->v.p[first].target);
	struct shape other = shape_of(g, g->v.p[first].target, g->v.p[first].next);
	/* A test for NULL as the second condition is rare, and seen by its bytes. */
	uint16_t reg = register_tested(p, one.second), reg2 = register_tested(p, other.second);
	if ((!reg && !reg2) || !reads_no_pointer(p, at, first))
		return false;
	return (reg && is_pointer_used(p, one.stays, reg)) ||
	       (reg2 && is_pointer_used(p, other.stays, reg2));
}
