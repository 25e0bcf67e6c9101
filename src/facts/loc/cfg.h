/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control-flow graph of one function: its instructions and the edges between them
 *
 * It answers questions about paths: flow.c follows registers, this file follows control. The edges
 * of a direct jump or branch are exact. An indirect jump is assumed to go to every instruction that
 * nothing else leads to, unless cfg_find_tables() has found its targets; a call is assumed to
 * return.
 */
#ifndef LOC_CFG_H
#define LOC_CFG_H

#include "base/vec.h"
#include "dwarf/dwarf.h"

#define GRAPH_NONE UINT32_MAX

struct cfg_insn {
	uint64_t at;
	uint32_t next; /* the next one in memory, if control can continue there; else GRAPH_NONE */
	uint32_t target; /* of a direct jump or branch within the function; else GRAPH_NONE */
	uint32_t order;  /* cfg_number(); UINT32_MAX when nothing leads there */
	uint8_t len;
	bool is_indirect; /* an indirect jump: goes to all of cfg.orphans, or has cfg.edges */
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
	bool is_orphan; /* one of cfg.orphans */
	bool is_return;
	/* By cfg_new_changed(): */
	bool has_edges;      /* it leads to the targets of cfg.edges, too */
	bool is_end;         /* control does not go on, and does not leave the function either */
	bool goes_elsewhere; /* it may leave the function, or where it leads is not known */
	/* Once is_loops_known: */
	bool is_in_loop; /* something leads from it to it again */
	bool is_reached; /* from the entry */
};

/* Code without a gap. */
struct cfg_piece {
	uint64_t lo, hi;
	uint32_t first;  /* instruction */
	uint32_t starts; /* cfg.starts of its first byte */
};

struct cfg_jump {
	uint32_t from;
	uint64_t to; /* an address */
};

struct cfg_call {
	uint32_t from;
	uint64_t to; /* the address that is called */
};

struct cfg_edge {
	uint32_t from, to;
};

struct cfg {
	VEC(struct cfg_insn) v; /* in order of address */
	/* no known path reaches them: targets of indirect jumps, landing pads */
	VEC(uint32_t) orphans;
	VEC(uint32_t) indirect; /* the indirect jumps, without those that have edges */
	/* cfg_find_tables(): of indirect jumps, by both ends; and of cfg_new_changed() */
	VEC(struct cfg_edge) edges, edges_to;
	VEC(struct cfg_call) calls; /* direct ones, in order of address */
	/*
	 * Direct jumps within the function by their targets: those to i are jumps[jumps_to[i]] up
	 * to jumps[jumps_to[i + 1]].
	 */
	uint32_t *jumps, *jumps_to;
	size_t cap_jumps, cap_jumps_to;
	VEC(struct cfg_piece) pieces; /* in order of address */
	/* of each byte of the pieces: the number of the instruction that starts there + 1, or 0 */
	VEC(uint32_t) starts;
	/* cfg_number(): instructions by falling order, but those that nothing leads to */
	VEC(uint32_t) by_order;
	VEC(struct cfg_jump) found; /* direct jumps in order of address, wherever they go */
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
 * cfg_new - decode a function
 *
 * @function  its DIE; all its ranges
 * @ret       before: a graph that is not needed any more, or NULL; its memory is used again. After:
 *            NULL if the function's code cannot be decoded to the end, or there is no memory
 * Returns 0 or -ENOMEM.
 * Cost: one step per instruction.
 */
int cfg_new(struct elf *code, const struct dw_die *function, struct cairn_vaddr entry,
	    struct cfg **ret);

/*
 * cfg_new_changed - the same of code whose instructions do not show all edges
 *
 * @change  called when the instructions are there, and before anything is concluded from them. It
 *          may change their flags, end them (next, is_end: adds them to cfg.ends), and call
 *          cfg_add_edge(). Returns 0 or -ENOMEM.
 */
int cfg_new_changed(struct elf *code, const struct dw_die *function, struct cairn_vaddr entry,
		    int (*change)(void *ctx, struct cfg *g), void *ctx, struct cfg **ret);

/* An edge for cfg_new_changed(). It adds none to an indirect jump. Returns 0 or -ENOMEM. */
int cfg_add_edge(struct cfg *g, uint32_t from, uint32_t to);

/* After cfg.edges changed: both orders of them. Returns 0 or -ENOMEM. */
int cfg_use_edges(struct cfg *g);

void cfg_free(struct cfg *g);

/*
 * cfg_find_tables - find the targets of the indirect jumps that are switches' (jump_tables.c)
 *
 * Before cfg_number(). Jumps whose targets are found are no more in cfg.indirect; their edges are
 * what cfg_next() and cfg_before() say.
 * Returns 0 or -ENOMEM.
 * Cost: decodes the instructions before each jump; it may go back through all of the function to
 * where the table's address is taken.
 */
int cfg_find_tables(const struct elf *code, struct cfg *g);

/* Whether an indirect jump has edges. */
bool cfg_is_known_jump(const struct cfg *g, uint32_t i);
/* The @n-th target of an indirect jump, and the @n-th one that leads to @i; GRAPH_NONE: no more. */
uint32_t cfg_indirect_target(const struct cfg *g, uint32_t i, uint32_t n);
uint32_t cfg_indirect_before(const struct cfg *g, uint32_t i, uint32_t n);

/*
 * cfg_number - number the instructions so that, loops aside, each has a higher number than those
 * before it
 *
 * In a reverse postorder from the entry. Few questions need that; the second time it costs nothing.
 * Returns 0 or -ENOMEM.
 */
int cfg_number(struct cfg *g);

/*
 * cfg_may_come_back - whether a path may lead from an instruction to it again
 *
 * With an indirect jump the answer is always 1; else it is exact. Most of a program is in no loop.
 * Returns 1; 0; -ENOMEM.
 * Cost: passes over the instructions and jumps the first time, then one load.
 */
int cfg_may_come_back(struct cfg *g, uint32_t i);

/* Whether that is known to be not so without further work. */
static inline bool cfg_is_straight(const struct cfg *g, uint32_t i)
{
	return !g->indirect.n && !g->edges.n &&
	       (!g->has_jump_back || (g->is_loops_known && !g->v.p[i].is_in_loop));
}

/*
 * cfg_is_reached - whether the function's entry leads to an instruction. Returns and costs as
 * cfg_may_come_back().
 */
int cfg_is_reached(struct cfg *g, uint32_t i);

/*
 * For those two, for a graph without indirect jumps: set is_in_loop and is_reached. Returns 0 or
 * -ENOMEM.
 */
int cfg_find_loops(struct cfg *g);

/* The instruction that starts at @at; GRAPH_NONE when none does. */
uint32_t cfg_at(const struct cfg *g, uint64_t at);

/*
 * cfg_returns - whether a direct call is known to return
 *
 * True if, after another call of the same function, there is an instruction that nothing else leads
 * to. False if there is no such call.
 * Cost: the function's calls.
 */
bool cfg_returns(const struct cfg *g, uint32_t call);

/* The line and column of an instruction; NULL where it has none, and of code with entries. */
const struct dw_position *cfg_position(const struct cfg *g, uint32_t i);

/* The first instruction that starts at @at or later; g->v.n when none does. */
size_t cfg_from(const struct cfg *g, uint64_t at);

/*
 * cfg_next - the successors of an instruction, one by one
 *
 * @k  0 at first, then unchanged from the last call
 * Returns an instruction, or GRAPH_NONE after the last.
 */
static inline uint32_t cfg_next(const struct cfg *g, uint32_t i, uint32_t *k)
{
	const struct cfg_insn *insn = &g->v.p[i];
	if (*k == 0 && (*k = 1, insn->next != GRAPH_NONE))
		return insn->next;
	if (*k == 1 && (*k = 2, insn->target != GRAPH_NONE))
		return insn->target;
	return insn->is_indirect || insn->has_edges ? cfg_indirect_target(g, i, (*k)++ - 2)
						    : GRAPH_NONE;
}

/* cfg_before - the predecessors of an instruction, one by one, as cfg_next() */
uint32_t cfg_before(const struct cfg *g, uint32_t i, uint32_t *k);

/*
 * cfg_spread - mark all instructions that are reached from some instructions
 *
 * @from     @n of them; they have the bit already
 * @marks    one byte per instruction; bit @bit is spread
 * @within   instructions that have none of these bits are not entered; 0: all are
 * @without  instructions that have one of these bits are not entered
 * Returns 0 or -ENOMEM.
 * Cost: the paths from the instructions that are marked.
 */
int cfg_spread(const struct cfg *g, const uint32_t *from, size_t n, uint8_t *marks, uint8_t bit,
	       uint8_t within, uint8_t without);

#endif
