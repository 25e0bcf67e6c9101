/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames that are borrowed
 *
 * LuaJIT's traces make no frame. They run in the one that the interpreter made, which is written in
 * assembler, and move the stack pointer down by some words of their own. LuaJIT registers an FDE
 * for traces, which has no rule at all. It is there for LuaJIT's exception handler only, and that
 * handler never unwinds past a trace.
 *
 *	rsp        words of the trace, an unknown multiple of 16 bytes
 *	S          the interpreter's frame, as the row for its entry says: CFA = S + 80
 *	S + ...      a pointer to the state, which has S in it
 *	CFA - 8    the return address
 *	CFA        the frame of the interpreter's caller
 *
 * So the interpreter is looked for by its return address, upwards from the stack pointer. The
 * address has to follow a direct call. The row for the call's target has to describe a frame at the
 * first instruction already. The frame of a compiled function is empty there, so no compiler writes
 * such a row. And a word in the frame has to point to the state, which holds the frame's address.
 * An old frame that was left on the stack fails here: the state holds the address of the innermost
 * frame.
 *
 * Registers that the interpreter does not keep are unknown in the caller: traces use them too.
 */
#include "unwind/interpreter_frame.h"

#include <elf.h>
#include <string.h>

#include "base/err.h"
#include "cfi/table.h"
#include "code/maps.h"
#include "code/runtime.h"
#include "insn/call.h"

enum {
	RSP = 7,
	WORD = 8,
	/*
	 * From the stack pointer to the return address. LuaJIT's traces have at most 256 slots of 4
	 * bytes.
	 */
	BORROW_DEPTH = 2048,
	MAX_FRAME = 512,  /* of the interpreter */
	MAX_STATES = 256, /* one per coroutine; more are forgotten together */
	FLAGS = 7,        /* low bits of the frame's address in the state */
};
#define KEPT (1u << 3 | 1u << 6 | 0xfu << 12) /* rbx, rbp, r12 to r15 */

/*
 * The row for the target of the direct call before @ret_addr; NULL when there is no such call, or
 * no row.
 */
static const struct cairn_unwind_rule *rule_of_callee(const struct borrow *b, uint64_t ret_addr,
						      int *rc, struct cairn_err *err)
{
	uint8_t call[INSN_CALL_REL32];
	int32_t distance;
	const struct code_mapping *m = code_maps_find(code_space_maps(b->space), ret_addr);
	const struct code_image *image;
	struct cairn_vaddr at;
	if (!m || !m->is_executable || code_is_anonymous(m) ||
	    !code_memory_all(b->memory, ret_addr - sizeof(call), call, sizeof(call)) ||
	    call[0] != 0xe8)
		return NULL;
	memcpy(&distance, call + 1, sizeof(distance));
	*rc = code_space_find(b->space, (struct cairn_addr){ret_addr + (uint64_t)(int64_t)distance},
			      &image, &at, err);
	if (*rc < 0 || !image || !image->bin || !unwind_table_is_open(&image->table))
		return NULL;
	return unwind_table_find(&image->table, at);
}

static bool has_frame_at_entry(const struct cairn_unwind_rule *rule)
{
	return rule && rule->cfa == CAIRN_UNWIND_CFA_REG && rule->reg == RSP &&
	       rule->off >= 2 * WORD && rule->off <= MAX_FRAME && rule->off % 16 == 0;
}

static bool read_state(const struct code_memory *memory, struct interpreter_frame_state *state)
{
	return code_memory_all(memory, state->at, state->words, sizeof(state->words));
}

void interpreter_frame_catch(struct interpreter_frame_states *states,
			     const struct code_memory *memory)
{
	states->has_missed = false;
	for (size_t i = 0; i < states->list.n; i++)
		states->list.p[i].is_read = read_state(memory, &states->list.p[i]);
}

/* The entry of the state at @at, which the last stop may have read; NULL: there is none. */
static const struct interpreter_frame_state *caught(const struct borrow *b, uint64_t at)
{
	for (size_t i = 0; b->states && i < b->states->list.n; i++)
		if (b->states->list.p[i].at == at)
			return &b->states->list.p[i];
	return NULL;
}

static bool has_word(const struct interpreter_frame_state *state, uint64_t frame)
{
	for (size_t k = 0; k < BORROW_STATE_WORDS; k++)
		if ((state->words[k] & ~(uint64_t)FLAGS) == frame)
			return true;
	return false;
}

/*
 * The process runs while we read, so what was read proves nothing. The state is noted, and the next
 * stop reads it.
 */
static int miss(const struct borrow *b, uint64_t at, struct cairn_err *err)
{
	struct interpreter_frame_states *states = b->states;
	if (states->list.n == MAX_STATES)
		states->list.n = 0;
	states->has_missed = true;
	return VEC_ADD(&states->list, (struct interpreter_frame_state){.at = at})
		       ? 0
		       : err_nomem(err, "an interpreter's states");
}

/* Whether the word @at of a frame leads to a state that has the frame's address: 1, 0, -ENOMEM. */
static int leads_to(const struct borrow *b, uint64_t at, uint64_t frame, struct cairn_err *err)
{
	const struct interpreter_frame_state *known = caught(b, at);
	struct interpreter_frame_state state = {.at = at};
	if (known)
		return known->is_read && has_word(known, frame);
	if (!read_state(b->memory, &state))
		return 0;
	if (!b->states || has_word(&state, frame))
		return has_word(&state, frame);
	return miss(b, at, err);
}

/*
 * Whether the frame at @frame is the innermost: one of its words points to a state that holds
 * @frame. 1, 0, -ENOMEM.
 */
static int is_innermost(const struct borrow *b, uint64_t frame, uint64_t end, struct cairn_err *err)
{
	uint64_t words[MAX_FRAME / WORD];
	size_t n = (end - frame) / WORD;
	int rc = 0;
	if (!b->read(b->ctx, (struct cairn_addr){frame}, words, n * WORD))
		return 0;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct code_mapping *m = code_maps_find(code_space_maps(b->space), words[i]);
		/* A word that points into the frame's own mapping proves nothing: no state is there. */
		if (m && m->is_readable && !m->is_executable && words[i] % WORD == 0 &&
		    !(m->lo <= frame && frame < m->hi))
			rc = leads_to(b, words[i], frame, err);
	}
	return rc;
}

static bool leave(const struct borrow *b, const struct cairn_unwind_rule *rule, uint64_t frame,
		  struct cairn_regs *regs)
{
	struct cairn_regs r = *regs;
	r.r[RSP] = frame;
	r.known = 1 << RSP;
	if (cairn_unwind_step(rule, b->machine, b->read, b->ctx, &r) != CAIRN_STEP_OK)
		return false;
	r.known &= KEPT | 1 << RSP;
	*regs = r;
	return true;
}

int interpreter_frame_caller(const struct borrow *b, struct cairn_regs *regs, struct cairn_err *err)
{
	uint64_t sp = regs->r[RSP], words[BORROW_DEPTH / WORD];
	size_t n = sizeof(words) / WORD;
	int rc = 0;
	if (b->machine != EM_X86_64 || !(regs->known & 1 << RSP) || sp % 16)
		return 0;
	/* If the stack is shorter, half as much is read. */
	while (n && !b->read(b->ctx, (struct cairn_addr){sp}, words, n * WORD))
		n /= 2;
	for (size_t i = 1; i < n && rc == 0; i += 2) {
		const struct cairn_unwind_rule *rule = rule_of_callee(b, words[i], &rc, err);
		uint64_t cfa = sp + (i + 1) * WORD;
		if (rc < 0 || !has_frame_at_entry(rule) || cfa - sp < (uint64_t)rule->off)
			continue;
		rc = is_innermost(b, cfa - (uint64_t)rule->off, cfa - WORD, err);
		if (rc == 1 && !leave(b, rule, cfa - (uint64_t)rule->off, regs))
			rc = 0;
	}
	return rc;
}
