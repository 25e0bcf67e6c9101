/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control-flow graph of one function: its instructions and the edges between them
 *
 * It answers questions about paths: flow.c follows registers, this file follows control. The edges
 * of a direct jump or branch are exact. An indirect jump is assumed to go to every instruction that
 * nothing else leads to; a call is assumed to return.
 */
#ifndef LOC_CFG_H
#define LOC_CFG_H

#include "base/vec.h"
#include "dwarf/dwarf.h"

#define GRAPH_NONE UINT32_MAX

struct graph_insn {
	uint64_t at;
	uint32_t next; /* the next one in memory, if control can continue there; else GRAPH_NONE */
	uint32_t target; /* of a direct jump or branch within the function; else GRAPH_NONE */
	uint32_t order;  /* graph_number(); UINT32_MAX when nothing leads there */
	uint8_t len;
	bool is_indirect; /* an indirect jump: goes to all of graph.orphans */
	bool is_branch;   /* a direct jump or branch, wherever it goes */
	bool is_target;   /* of a direct jump or branch */
	bool is_call;
	bool has_effect; /* a call or a store: work that a compiler does not do ahead of time */
	bool is_nop;
	/*
	 * Clang made it of no line: copies of values where paths meet, statements that were merged
	 */
	bool is_line0;
	/* copies a constant, a register or a stack slot, compares or jumps: computes nothing */
	bool only_moves;
	bool is_orphan; /* one of graph.orphans */
	/* Once is_loops_known: */
	bool is_in_loop; /* something leads from it to it again */
	bool is_reached; /* from the entry */
};

/* Code without a gap. */
struct graph_piece {
	uint64_t lo, hi;
	uint32_t first;  /* instruction */
	uint32_t starts; /* graph.starts of its first byte */
};

struct graph_jump {
	uint32_t from;
	uint64_t to; /* an address */
};

struct graph_call {
	uint32_t from;
	uint64_t to; /* the address that is called */
};

struct graph {
	VEC(struct graph_insn) v; /* in order of address */
	/* no known path reaches them: targets of indirect jumps, landing pads */
	VEC(uint32_t) orphans;
	VEC(uint32_t) indirect;       /* the indirect jumps */
	VEC(struct graph_call) calls; /* direct ones, in order of address */
	/*
	 * Direct jumps within the function by their targets: those to i are jumps[jumps_to[i]] up
	 * to jumps[jumps_to[i + 1]].
	 */
	uint32_t *jumps, *jumps_to;
	size_t cap_jumps, cap_jumps_to;
	VEC(struct graph_piece) pieces; /* in order of address */
	/* of each byte of the pieces: the number of the instruction that starts there + 1, or 0 */
	VEC(uint32_t) starts;
	/* graph_number(): instructions by falling order, but those that nothing leads to */
	VEC(uint32_t) by_order;
	VEC(struct graph_jump) found; /* direct jumps in order of address, wherever they go */
	VEC(uint32_t) ends; /* instructions after which control may not go on; calls among them */
	uint32_t entry;
	bool is_numbered, is_loops_known;
	bool has_jump_back;
	bool has_line0;
	/* sites/quirks/vectorised.c: an instruction works on several numbers at once */
	bool is_packed_known, has_packed;
	/*
	 * The positions of the function's unit, for code without GCC's entries (from another
	 * compiler, or made at link time); the dwarf owns them.
	 */
	const struct dw_position *positions;
	size_t n_positions;
};

/*
 * graph_new - decode a function
 *
 * @function  its DIE; all its ranges
 * @ret       before: a graph that is not needed any more, or NULL; its memory is used again. After:
 *            NULL if the function's code cannot be decoded to the end, or there is no memory
 * Returns 0 or -ENOMEM.
 * Cost: one step per instruction.
 */
int graph_new(struct elf *code, const struct dw_die *function, struct cairn_vaddr entry,
	      struct graph **ret);
void graph_free(struct graph *g);

/*
 * graph_number - number the instructions so that, loops aside, each has a higher number than those
 * before it
 *
 * In a reverse postorder from the entry. Few questions need that; the second time it costs nothing.
 * Returns 0 or -ENOMEM.
 */
int graph_number(struct graph *g);

/*
 * graph_may_come_back - whether a path may lead from an instruction to it again
 *
 * With an indirect jump the answer is always 1; else it is exact. Most of a program is in no loop.
 * Returns 1; 0; -ENOMEM.
 * Cost: passes over the instructions and jumps the first time, then one load.
 */
int graph_may_come_back(struct graph *g, uint32_t i);

/* Whether that is known to be not so without further work. */
static inline bool graph_is_straight(const struct graph *g, uint32_t i)
{
	return !g->indirect.n &&
	       (!g->has_jump_back || (g->is_loops_known && !g->v.p[i].is_in_loop));
}

/*
 * graph_is_reached - whether the function's entry leads to an instruction. Returns and costs as
 * graph_may_come_back().
 */
int graph_is_reached(struct graph *g, uint32_t i);

/*
 * For those two, for a graph without indirect jumps: set is_in_loop and is_reached. Returns 0 or
 * -ENOMEM.
 */
int graph_find_loops(struct graph *g);

/* The instruction that starts at @at; GRAPH_NONE when none does. */
uint32_t graph_at(const struct graph *g, uint64_t at);

/*
 * graph_returns - whether a direct call is known to return
 *
 * True if, after another call of the same function, there is an instruction that nothing else leads
 * to. False if there is no such call.
 * Cost: the function's calls.
 */
bool graph_returns(const struct graph *g, uint32_t call);

/* The line and column of an instruction; NULL where it has none, and of code with entries. */
const struct dw_position *graph_position(const struct graph *g, uint32_t i);

/* The first instruction that starts at @at or later; g->v.n when none does. */
size_t graph_from(const struct graph *g, uint64_t at);

/*
 * graph_next - the successors of an instruction, one by one
 *
 * @k  0 at first, then unchanged from the last call
 * Returns an instruction, or GRAPH_NONE after the last.
 */
static inline uint32_t graph_next(const struct graph *g, uint32_t i, uint32_t *k)
{
	const struct graph_insn *insn = &g->v.p[i];
	if (*k == 0 && (*k = 1, insn->next != GRAPH_NONE))
		return insn->next;
	if (*k == 1 && (*k = 2, insn->target != GRAPH_NONE))
		return insn->target;
	return insn->is_indirect && *k - 2 < g->orphans.n ? g->orphans.p[(*k)++ - 2] : GRAPH_NONE;
}

/* graph_before - the predecessors of an instruction, one by one, as graph_next() */
uint32_t graph_before(const struct graph *g, uint32_t i, uint32_t *k);

/*
 * graph_spread - mark all instructions that are reached from some instructions
 *
 * @from     @n of them; they have the bit already
 * @marks    one byte per instruction; bit @bit is spread
 * @within   instructions that have none of these bits are not entered; 0: all are
 * @without  instructions that have one of these bits are not entered
 * Returns 0 or -ENOMEM.
 * Cost: the paths from the instructions that are marked.
 */
int graph_spread(const struct graph *g, const uint32_t *from, size_t n, uint8_t *marks, uint8_t bit,
		 uint8_t within, uint8_t without);

#endif
