/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reaching a function's entry again without a call
 *
 * A tail call leaves no frame. So a caller that called f may have f on the stack with other
 * arguments than it passed:
 *
 *	main:	mov  $1, %edi		g:	...		f:	...
 *		call f				mov  $2, %edi		call wait
 *						jmp  f			jmp  g
 *	The stack is wait, f, main; and f's n may be 1 or 2.
 *
 * f's jumps are followed, and those of the functions that they lead to, and so on. If none leads to
 * f, its frame is that of the call. A doubtful jump is taken to lead to the entry, as follows:
 *
 *	jump to f's entry, or from another function into f
 *		may return to the entry
 *	jump to code of no function (the PLT, assembler)
 *		may: it leaves the file, and may come back
 *	jump through a table of distances
 *		may not: a switch (insn/table_jump.c) stays in the function
 *	other indirect jump where the CFA is rsp + 8
 *		may: registers and stack are as at the entry, so it may be a tail call
 *	other indirect jump
 *		may not: a switch. A callee reached so would return to a slot without a return
 *		address
 *	more than FUNCTIONS_MAX functions
 *		may
 */
#include "sites/reentry.h"

#include <errno.h>

#include "loc/code.h"

enum {
	/* A chain of tail calls is short. After a few of them nearly everything can be reached. */
	FUNCTIONS_MAX = 32,
	/* Instructions before a switch's jump, which compute its address. */
	LINE_BYTES_MAX = 256,
	RSP = 7,
	ENTRY_CFA = 8,
};

struct reentry {
	const struct site_env *env;
	const struct active *active;
	struct cairn_vaddr entry; /* of functions[0] */
	uint32_t functions[FUNCTIONS_MAX];
	unsigned int n;
	/*
	 * The function that is being followed: its DIE; and its instructions, each before the next.
	 */
	const struct dw_die *die;
	const uint8_t *line;
	size_t n_line;
};

/* The end of code_visit() with "no". */
enum { MAY_COME_BACK = -1 };

static bool is_switch(const struct reentry *r, const struct code_insn *insn)
{
	struct cairn_vaddr at = {insn->at};
	struct cfi_row row;
	if (insn_is_table_jump(r->line, r->n_line + insn->step.len))
		return true;
	return r->env->cfi && cfi_row_at(r->env->cfi, at, &row, NULL) == 1 &&
	       row.cfa == CFI_CFA_REG_OFFSET && !(row.cfa_reg == RSP && row.cfa_off == ENTRY_CFA);
}

static int add_function(struct reentry *r, uint32_t function)
{
	for (unsigned int i = 0; i < r->n; i++)
		if (r->functions[i] == function)
			return i ? 0 : MAY_COME_BACK;
	if (function == DW_FUNC_NONE || r->n == FUNCTIONS_MAX)
		return MAY_COME_BACK;
	r->functions[r->n++] = function;
	return 0;
}

static int follow_jump(struct reentry *r, const struct code_insn *insn)
{
	struct cairn_vaddr to = {insn->step.target};
	if (insn->step.flow == INSN_JUMP_INDIRECT)
		return is_switch(r, insn) ? 0 : MAY_COME_BACK;
	if (insn->step.flow != INSN_JUMP && insn->step.flow != INSN_BRANCH)
		return 0;
	int is_in = dw_ranges_hold(r->die, to, NULL);
	if (is_in < 0 || to.v == r->entry.v)
		return MAY_COME_BACK;
	return is_in ? 0 : add_function(r, active_function(r->active, to));
}

static int follow(void *arg, const struct code_insn *insn)
{
	struct reentry *r = arg;
	if (!r->n_line || r->line + r->n_line != insn->bytes || r->n_line > LINE_BYTES_MAX) {
		r->line = insn->bytes;
		r->n_line = 0;
	}
	int rc = follow_jump(r, insn);
	r->n_line = insn->step.flow == INSN_NEXT ? r->n_line + insn->step.len : 0;
	return rc;
}

int reentry_is_excluded(const struct site_env *env, const struct active *active, uint32_t function)
{
	struct reentry r = {.env = env, .active = active, .functions = {function}, .n = 1};
	for (unsigned int i = 0; i < r.n; i++) {
		struct dw_die die;
		int rc = dw_die_at(env->dw, env->index->p[r.functions[i]].die, &die, NULL);
		if (rc == 1 && !i)
			rc = site_entry_of(&die, &r.entry);
		if (rc != 1)
			return rc == -ENOMEM ? rc : 0;
		r.die = &die;
		r.n_line = 0;
		rc = code_visit(env->code, &die, follow, &r);
		if (rc < 0)
			return rc == -ENOMEM ? rc : 0;
	}
	return 1;
}
