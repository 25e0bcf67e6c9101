/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Return addresses that are looked for
 *
 * Most code shows by its own end where its return address is (return_path.h). This is asked first:
 * it needs no look at the words on the stack, so old frames cannot mislead it, and it finds frames
 * that such code has for code like itself. The call before that address and the rows from there on
 * are checked as below. What follows is for the rest.
 *
 * YJIT, Chez, Guile and others run code with frames of a form of their own, and rbp for something
 * else. But they were called from compiled code, by a call, and its frames go on from there as
 * usual:
 *
 *     rsp    words of the frame, of unknown number
 *     S      return address: a described function, after a call whose target can be this code
 *     S + 8  the frame of that function, whose rows lead on: to the outermost frame, or to the next
 *            code without rows
 *
 * Old frames are left on a stack, and have return addresses, too. Three checks tell them apart: the
 * stack pointer is a multiple of 16 at a call, the calls lead to their callees (called.h), and both
 * hold for each caller up to the end of the rows. Most old ones fail the first check of a call: it
 * leads to a function that has nothing to do with this code.
 * A caller whose row starts from rbp is known only if the code left rbp unchanged; this is tried
 * when the row needs it. If the rows do not lead on then, it is unknown whether it is the caller,
 * and also which frames are further out. So the search ends there, and leaves out no frame. The
 * same holds for a return address in other code without rows, after a call that may lead here: its
 * frame would be left out. The result may still be an old frame. So it is an assumption, and a
 * stack that is complete by it is not certain to be complete.
 */
#include "unwind/scan.h"

#include <elf.h>

#include "cfi/table.h"
#include "code/runtime.h"
#include "insn/call.h"
#include "unwind/return_path.h"

enum {
	RBP = 6,
	RSP = 7,
	WORD = 8,
	SCAN_BYTES = 16384,
	BLOCK_WORDS = 64,
	/* Steps for a candidate; a stack with this many frames by rows is accepted. */
	MAX_STEPS = 256,
	/* Words that look like return addresses; an interpreter's stack may be full of old ones. */
	MAX_CANDIDATES = 64,
};

enum fit { FIT_NOT, FIT_LOST, FIT_GOES_ON, FIT_OUTERMOST };

static const struct code_mapping *code_at(const struct scan *s, uint64_t at)
{
	const struct code_mapping *m = code_maps_find(code_space_maps(s->called->space), at);
	return m && m->is_executable ? m : NULL;
}

static bool is_after_call(const struct scan *s, uint64_t at)
{
	uint8_t bytes[INSN_CALL_LONGEST];
	return code_at(s, at - 1) &&
	       code_memory_all(s->called->code, at - sizeof(bytes), bytes, sizeof(bytes)) &&
	       insn_ends_with_call(bytes + sizeof(bytes));
}

/* Whether the call before a return address can have led to @callee. 1, 0, -ENOMEM. */
static int may_have_called(const struct scan *s, uint64_t callee, uint64_t ret_addr,
			   struct cairn_err *err)
{
	uint64_t target;
	if (!is_after_call(s, ret_addr))
		return 0;
	int rc = called_is_other(s->called, callee, ret_addr, &target, err);
	return rc < 0 ? rc : !rc;
}

/* The rule of a file at the call before @pc; NULL: none. 0, -ENOMEM. */
static int rule_before(const struct scan *s, uint64_t pc, const struct cairn_unwind_rule **ret,
		       struct cairn_err *err)
{
	const struct code_image *image;
	struct cairn_vaddr at;
	int rc = code_space_find(s->called->space, (struct cairn_addr){pc - 1}, &image, &at, err);
	*ret = NULL;
	if (rc == 0 && image && image->bin && unwind_table_is_open(&image->table))
		*ret = unwind_table_find(&image->table, at);
	if (*ret && (*ret)->cfa == CAIRN_UNWIND_UNDESCRIBED)
		*ret = NULL;
	return rc;
}

/*
 * Code that was not described before is not described here: rows have led to the next frame like
 * it.
 */
static bool is_undescribed_code(const struct scan *s, uint64_t pc)
{
	const struct code_mapping *m = code_at(s, pc - 1);
	return m && code_is_anonymous(m);
}

/* Whether rows lead from @regs, after a call, to where they may end. fit, or -ENOMEM. */
static int follow(const struct scan *s, struct cairn_regs regs, struct cairn_err *err)
{
	for (unsigned int i = 0; i < MAX_STEPS; i++) {
		const struct cairn_unwind_rule *rule;
		uint64_t callee = regs.pc.v - 1;
		int rc = rule_before(s, regs.pc.v, &rule, err);
		if (rc < 0)
			return rc;
		if (!rule)
			return i && is_undescribed_code(s, regs.pc.v) ? FIT_GOES_ON : FIT_NOT;
		enum cairn_step step =
			cairn_unwind_step(rule, s->called->machine, s->read, s->ctx, &regs);
		if (step == CAIRN_STEP_OUTERMOST || (step == CAIRN_STEP_OK && !regs.pc.v))
			return FIT_OUTERMOST;
		/* A signal's frame has no call, and the code that it interrupted may be any. */
		if (step != CAIRN_STEP_OK)
			return step == CAIRN_STEP_LOST ? FIT_LOST : FIT_NOT;
		if (rule->flags & CAIRN_UNWIND_SIGNAL)
			return FIT_GOES_ON;
		rc = may_have_called(s, callee, regs.pc.v, err);
		if (rc != 1)
			return rc < 0 ? rc : FIT_NOT;
	}
	return FIT_GOES_ON;
}

/* With rbp unchanged if the row needs it. fit, or -ENOMEM. */
static int follow_caller(const struct scan *s, const struct cairn_regs *regs,
			 struct cairn_regs *caller, struct cairn_err *err)
{
	int rc = follow(s, *caller, err);
	if (rc != FIT_LOST || !(regs->known & 1 << RBP))
		return rc;
	caller->r[RBP] = regs->r[RBP];
	caller->known |= 1 << RBP;
	rc = follow(s, *caller, err);
	return rc == FIT_NOT ? FIT_LOST : rc;
}

/*
 * 1 when the word @ret_addr at @at can be the caller's; NOT_TOLD when nothing is known from here
 * on.
 */
enum { NOT_TOLD = 2 };

static int try_word(const struct scan *s, uint64_t callee, uint64_t at, uint64_t ret_addr,
		    struct cairn_regs *regs, unsigned int *n_tried, struct cairn_err *err)
{
	struct cairn_regs caller = {.pc = {ret_addr}, .known = 1 << RSP};
	const struct cairn_unwind_rule *rule;
	if (!is_after_call(s, ret_addr))
		return 0;
	if (++*n_tried > MAX_CANDIDATES)
		return NOT_TOLD;
	int rc = may_have_called(s, callee, ret_addr, err);
	if (rc != 1)
		return rc;
	rc = rule_before(s, ret_addr, &rule, err);
	if (rc < 0 || !rule)
		return rc < 0 ? rc : NOT_TOLD;
	caller.r[RSP] = at + WORD;
	rc = follow_caller(s, regs, &caller, err);
	if (rc <= FIT_LOST)
		return rc == FIT_LOST ? NOT_TOLD : rc;
	*regs = caller;
	return 1;
}

/* Whether @caller can have called: by the call before it, and by the rows from there on. */
static int may_be_caller(const struct scan *s, uint64_t callee, const struct cairn_regs *regs,
			 struct cairn_regs *caller, struct cairn_err *err)
{
	const struct cairn_unwind_rule *rule;
	int rc = may_have_called(s, callee, caller->pc.v, err);
	if (rc != 1)
		return rc;
	rc = rule_before(s, caller->pc.v, &rule, err);
	if (rc < 0 || !rule)
		return rc < 0 ? rc : is_undescribed_code(s, caller->pc.v);
	rc = follow_caller(s, regs, caller, err);
	return rc < 0 ? rc : rc != FIT_NOT;
}

int scan_return_path(const struct scan *s, uint64_t callee, struct cairn_regs *regs,
		     struct cairn_err *err)
{
	const struct return_path p = {.maps = code_space_maps(s->called->space),
				      .code = s->called->code,
				      .read = s->read,
				      .ctx = s->ctx};
	struct cairn_regs caller;
	if (s->called->machine != EM_X86_64 || !(regs->known & 1 << RSP))
		return 0;
	int rc = return_path_follow(&p, regs, &caller, err);
	if (rc == 1)
		rc = may_be_caller(s, callee, regs, &caller, err);
	if (rc == 1)
		*regs = caller;
	return rc;
}

int scan_caller(const struct scan *s, uint64_t callee, struct cairn_regs *regs,
		struct cairn_err *err)
{
	uint64_t words[BLOCK_WORDS], sp = regs->r[RSP];
	unsigned int n_tried = 0;
	if (s->called->machine != EM_X86_64 || !(regs->known & 1 << RSP) || sp % WORD)
		return 0;
	for (uint64_t lo = sp; lo - sp < SCAN_BYTES; lo += sizeof(words)) {
		size_t n = BLOCK_WORDS;
		/* The stack may end before. */
		while (n && !s->read(s->ctx, (struct cairn_addr){lo}, words, n * WORD))
			n /= 2;
		for (size_t i = 0; i < n; i++) {
			uint64_t at = lo + i * WORD;
			int rc = (at + WORD) % 16
					 ? 0
					 : try_word(s, callee, at, words[i], regs, &n_tried, err);
			if (rc)
				return rc == NOT_TOLD ? 0 : rc;
		}
		if (n < BLOCK_WORDS)
			break;
	}
	return 0;
}
