/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows against what happened
 *
 * At every instruction of a frame whose call was seen, the rule of the unwind table is applied to
 * the registers. The result has to be the caller's pc, stack pointer and callee-saved registers,
 * those that the ABI lets the callee change and it has to restore. Nothing of the unwinder is used
 * to find out what is right.
 *
 * A register that is not the caller's, under a row that leaves it as it is, is the row's mistake,
 * or the function does not keep it at all. Which of the two is seen at the return: when the
 * register has not got its value back, the function has broken the ABI, and nothing that leaves it
 * "as it is" could be right. Such steps are those of a proven bug, of that function and these
 * registers. Where the return was not seen the instructions are asked (cairn_unwind_check). A row
 * may also say that the register is lost: that was right when the caller's value was gone, and is
 * counted as needless otherwise. What is neither is wrong.
 */
#include "steps.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Of what the caller has, by number: those that are told otherwise. */
static uint32_t told_otherwise(const struct frame *f, const struct cairn_regs *caller)
{
	uint32_t ret = 0;
	for (size_t i = 0; i < N_KEPT; i++)
		if (caller->known & 1u << kept[i] && caller->r[kept[i]] != f->saved[i])
			ret |= 1u << kept[i];
	return ret;
}

static uint32_t word_of(const struct cairn_unwind_rule *rule, unsigned int reg)
{
	for (uint32_t i = 0; i < rule->n_regs; i++)
		if (cairn_unwind_word_reg(cairn_unwind_words(rule)[i]) == reg)
			return cairn_unwind_words(rule)[i];
	return 0;
}

/* ---- functions that break the ABI ---- */

static struct bug *bug_of(struct run *r, const struct file *file, struct cairn_vaddr function)
{
	for (size_t i = 0; i < r->n_bugs; i++)
		if (r->bugs[i].file == file && r->bugs[i].function.v == function.v)
			return &r->bugs[i];
	if (r->n_bugs == MAX_BUGS)
		die("bugs");
	r->bugs[r->n_bugs] = (struct bug){.file = file, .function = function};
	return &r->bugs[r->n_bugs++];
}

/* Registers that the instructions of a function overwrite without restoring them. */
static uint32_t overwritten_by_code(struct file *file, struct cairn_vaddr function)
{
	size_t n;
	uint32_t ret = 0;
	const struct cairn_unwind_disagreement *d = doubts_of(file, &n);
	for (size_t i = 0; i < n; i++)
		if (d[i].kind == CAIRN_UNWIND_DOUBT_KEPT && d[i].function.v == function.v)
			ret |= 1u << d[i].reg;
	return ret;
}

void judge_frame(struct run *r, const struct frame *f, const struct cairn_regs *before,
		 const struct cairn_regs *now)
{
	uint32_t gone = 0;
	struct cairn_vaddr ret = {0};
	struct file *ret_file;
	if (!f->n_doubted && !f->n_lost)
		return;
	r->n_pending--;
	struct cairn_vaddr function = function_of(f->file, f->first);
	if (now && now->pc.v == f->ret_addr && now->r[RSP] == f->cfa) {
		for (size_t i = 0; i < N_KEPT; i++)
			gone |= now->r[kept[i]] != f->saved[i] ? 1u << kept[i] : 0;
		rule_at(r, before->pc.v, &ret_file, &ret);
	}
	uint32_t all = f->doubted | f->lost;
	if (all & ~gone)
		gone |= overwritten_by_code(f->file, function);
	if (f->doubted & ~gone) {
		r->n_wrong += f->n_doubted - 1;
		wrong(r, f->file, f->first, f, "a callee-saved register");
	} else {
		r->n_proven += f->n_doubted;
	}
	if (!(all & gone))
		return;
	struct bug *b = bug_of(r, f->file, function);
	b->regs |= all & gone;
	b->ret = b->ret.v ? b->ret : ret;
	b->n_wrong += f->doubted & ~gone ? 0 : f->n_doubted;
	b->n_lost += f->n_lost;
}

void report_bugs(const struct run *r)
{
	static const char *const names[16] = {[RBX] = "rbx", [RBP] = "rbp", [12] = "r12",
					      [13] = "r13",  [14] = "r14",  [15] = "r15"};
	for (size_t i = 0; i < r->n_bugs; i++) {
		const struct bug *b = &r->bugs[i];
		const char *symbol = "?";
		struct cairn_vaddr start;
		cairn_binary_symbol_of(b->file->bin, b->function, &symbol, &start);
		printf("bug %s %#" PRIx64 " %s:", b->file->path, b->function.v, symbol);
		for (size_t k = 0; k < N_KEPT; k++)
			if (b->regs & 1u << kept[k])
				printf(" %s", names[kept[k]]);
		if (b->ret.v)
			printf(", not the caller's at its return %#" PRIx64, b->ret.v);
		else
			printf(", overwritten by its instructions");
		printf(" (told wrong in %" PRIu64 " steps, lost in %" PRIu64 ")\n", b->n_wrong,
		       b->n_lost);
	}
}

/* A row that the instructions contradict, which is believed. */
static bool is_disproved(struct file *file, struct cairn_vaddr at)
{
	size_t n;
	const struct cairn_unwind_disagreement *d = doubts_of(file, &n);
	struct cairn_vaddr function = function_of(file, at);
	for (size_t i = 0; i < n; i++)
		if (d[i].kind == CAIRN_UNWIND_DOUBT_INSN && d[i].function.v == function.v &&
		    d[i].at.v <= at.v &&
		    cairn_unwind_find(file->table, d[i].at) == cairn_unwind_find(file->table, at))
			return true;
	return false;
}

void wrong(struct run *r, struct file *file, struct cairn_vaddr at, const struct frame *f,
	   const char *what)
{
	const char *symbol = "?";
	struct cairn_vaddr start = at;
	bool is_proven = file && is_disproved(file, at);
	r->n_wrong += !is_proven;
	r->n_proven += is_proven;
	if (!add_to_set(r->wrongs, at.v + (uint64_t)(uintptr_t)file))
		return;
	cairn_binary_symbol_of(file->bin, at, &symbol, &start);
	printf("%s %s %#" PRIx64 " %s+%#" PRIx64 " %s (depth %zu, return address %#" PRIx64 ")\n",
	       is_proven ? "disproved" : "wrong", file->path, at.v, symbol, at.v - start.v, what,
	       r->depth, f->ret_addr);
}

static bool is_as_it_was(const struct frame *f, const struct cairn_regs *caller, const char **what)
{
	*what = "pc";
	if (caller->pc.v != f->ret_addr)
		return false;
	*what = "sp";
	if (caller->r[RSP] != f->cfa)
		return false;
	*what = "a callee-saved register";
	return !told_otherwise(f, caller);
}

/* The trampoline's frame, and what it interrupted: every register. */
static bool is_interrupted_right(struct run *r, const struct frame *f, struct cairn_regs *caller,
				 const char **what)
{
	struct file *file;
	struct cairn_vaddr at;
	const struct cairn_unwind_rule *rule = rule_at(r, caller->pc.v - 1, &file, &at);
	*what = "the interrupted frame";
	if (!rule || cairn_unwind_step(rule, EM_X86_64, read_target, r, caller) != CAIRN_STEP_OK)
		return false;
	/*
	 * An interrupted system call is begun again, or has failed: the kernel sets rax, and steps
	 * back to the instruction.
	 */
	const struct cairn_regs *was = &f->interrupted;
	bool in_syscall = (int64_t)was->r[0] <= -512 && (int64_t)was->r[0] >= -516;
	bool at_pc = caller->pc.v == was->pc.v || (in_syscall && caller->pc.v == was->pc.v - 2);
	return at_pc && (in_syscall || caller->r[0] == was->r[0]) &&
	       memcmp(caller->r + 1, was->r + 1, 15 * sizeof(caller->r[0])) == 0;
}

/*
 * The code is about to leave its stack: a register has the stack pointer of the frame that it goes
 * to.
 */
static bool is_jump(const struct cairn_unwind_rule *rule)
{
	for (uint32_t i = 0; i < rule->n_regs; i++)
		if (cairn_unwind_word_reg(cairn_unwind_words(rule)[i]) == RSP &&
		    cairn_unwind_word_saved(cairn_unwind_words(rule)[i]) == CAIRN_UNWIND_IN_REG)
			return true;
	return false;
}

static void keep_promise(struct run *r, const struct cairn_regs *regs)
{
	static const struct frame none;
	r->n_jumps++;
	if (regs->pc.v == r->promise.pc.v && regs->r[RSP] == r->promise.r[RSP])
		r->n_right++;
	else
		wrong(r, r->promise_file, r->promised_at, &none,
		      "the target of a jump off the stack");
	r->promise_file = NULL;
}

/* The return address is where the row says. */
static bool is_move(struct run *r, const struct cairn_regs *caller)
{
	uint64_t word;
	return read_target(r, (struct cairn_addr){caller->r[RSP] - 8}, &word, sizeof(word)) &&
	       word == caller->pc.v;
}

/* The frame's return will tell. */
static void note(struct run *r, struct frame *f, struct file *file, struct cairn_vaddr at)
{
	if (f->n_doubted || f->n_lost)
		return;
	r->n_pending++;
	f->file = file;
	f->first = at;
}

/* The rest is right, and the row leaves these registers as they are. */
static bool is_doubted(struct run *r, struct frame *f, const struct cairn_unwind_rule *rule,
		       const struct cairn_regs *caller, struct file *file, struct cairn_vaddr at)
{
	uint32_t other = told_otherwise(f, caller);
	if (caller->pc.v != f->ret_addr || caller->r[RSP] != f->cfa || f->is_handler || !other)
		return false;
	for (size_t i = 0; i < N_KEPT; i++)
		if (other & 1u << kept[i] && word_of(rule, kept[i]))
			return false;
	note(r, f, file, at);
	f->n_doubted++;
	f->doubted |= other;
	return true;
}

/* Registers of which the row says that they are lost: are they? */
static void count_lost(struct run *r, struct frame *f, const struct cairn_unwind_rule *rule,
		       const struct cairn_regs *regs, struct file *file, struct cairn_vaddr at)
{
	uint32_t gone = 0, there = 0;
	for (size_t i = 0; i < N_KEPT; i++) {
		uint32_t word = word_of(rule, kept[i]);
		if (!word || cairn_unwind_word_saved(word) != CAIRN_UNWIND_LOST)
			continue;
		if (regs->r[kept[i]] != f->saved[i])
			gone |= 1u << kept[i];
		else
			there |= 1u << kept[i];
	}
	r->n_lost += gone != 0;
	r->n_needless += !gone && there;
	if (!gone)
		return;
	note(r, f, file, at);
	f->n_lost++;
	f->lost |= gone;
}

void check(struct run *r, const struct cairn_regs *regs)
{
	struct file *file;
	struct cairn_vaddr at;
	struct cairn_regs caller = *regs;
	const char *what = "no step";
	r->n_steps++;
	const struct cairn_unwind_rule *here =
		r->promise_file ? rule_at(r, regs->pc.v, &file, &at) : NULL;
	if (here && !is_jump(here))
		keep_promise(r, regs);
	if (!r->depth) {
		r->n_unknown++;
		return;
	}
	struct frame *f = &r->frames[r->depth - 1];
	const struct cairn_unwind_rule *rule = rule_at(r, regs->pc.v, &file, &at);
	if (!rule || rule->cfa == CAIRN_UNWIND_UNDESCRIBED) {
		r->n_undescribed++;
		return;
	}
	if (is_jump(rule)) {
		if (cairn_unwind_step(rule, EM_X86_64, read_target, r, &caller) == CAIRN_STEP_OK) {
			r->promise = caller;
			r->promise_file = file;
			r->promised_at = at;
		}
		return;
	}
	/* The frame of the trampoline itself, while it makes its system call: no call began it. */
	if (rule->flags & CAIRN_UNWIND_SIGNAL)
		return;
	bool is_right =
		cairn_unwind_step(rule, EM_X86_64, read_target, r, &caller) == CAIRN_STEP_OK &&
		is_as_it_was(f, &caller, &what) &&
		(!f->is_handler || is_interrupted_right(r, f, &caller, &what));
	bool is_moved = !is_right && !f->is_moved && caller.pc.v == f->ret_addr &&
			caller.r[RSP] != f->cfa && caller.r[RSP] > regs->r[RSP] &&
			is_move(r, &caller);
	if (is_moved) {
		r->frames[r->depth - 1].is_moved = true;
		r->frames[r->depth - 1].cfa = caller.r[RSP];
	}
	count_lost(r, f, rule, regs, file, at);
	if (is_right || is_moved)
		r->n_right++;
	else if (!is_doubted(r, f, rule, &caller, file, at))
		wrong(r, file, at, f, what);
}
