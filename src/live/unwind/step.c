/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One step: a rule applied to the registers of a frame
 *
 *	CFA  the stack pointer of the caller, after the call: rsp + 24, or rbp + 16, or *(rbp - 8)
 *	ra   where the caller goes on: at CFA - 8 on x86-64, in x30 on AArch64 until it is saved
 *	rbx  where the rule says it is saved, or the same as now
 *	rax  lost: the caller does not expect it to be kept
 *
 * A signal trampoline is different: it restores the registers of code that was interrupted, all of
 * them.
 *
 * Stacks grow down, so each caller's frame is above. A step that does not move up is refused: a
 * damaged stack would lead round in circles. A leaf function of AArch64 may have no frame, but then
 * its caller's pc differs; and the code that a signal interrupted may have another stack.
 */
#include <cairn/unwind.h>

#include "cfi/convention.h"

/* Linux gives programs 48 bits of address; the signature of a pointer is above. */
static const uint64_t aarch64_address = (UINT64_C(1) << 48) - 1;

struct step {
	const struct cairn_unwind_rule *rule;
	const struct convention *abi;
	cairn_read_memory read;
	void *ctx;
	const struct cairn_regs *now;
	uint64_t cfa;
	/* The caller's; the return address is kept apart, since x86-64 has no register for it. */
	struct cairn_regs caller;
	uint64_t ra;
	bool has_ra;
};

static bool is_known(const struct cairn_regs *regs, unsigned int reg)
{
	return reg < 32 && regs->known & UINT32_C(1) << reg;
}

static bool read_word(const struct step *s, uint64_t at, uint64_t *ret)
{
	return s->read(s->ctx, (struct cairn_addr){at}, ret, sizeof(*ret));
}

static enum cairn_step find_cfa(struct step *s)
{
	const struct cairn_unwind_rule *r = s->rule;
	if (!is_known(s->now, r->reg))
		return CAIRN_STEP_LOST;
	s->cfa = s->now->r[r->reg] + (uint64_t)(int64_t)r->off;
	if (r->cfa == CAIRN_UNWIND_CFA_REG)
		return CAIRN_STEP_OK;
	if (!read_word(s, s->cfa, &s->cfa))
		return CAIRN_STEP_UNREADABLE;
	s->cfa += (uint64_t)(int64_t)r->add;
	return CAIRN_STEP_OK;
}

static void set(struct step *s, unsigned int reg, bool is_there, uint64_t value)
{
	if (reg == s->abi->ra) {
		s->ra = value;
		s->has_ra = is_there;
	}
	if (reg >= 32 || (reg == s->abi->ra && s->abi->ra != 30))
		return;
	s->caller.r[reg] = value;
	if (is_there)
		s->caller.known |= UINT32_C(1) << reg;
	else
		s->caller.known &= ~(UINT32_C(1) << reg);
}

static bool restore_from(struct step *s, unsigned int reg, uint64_t at)
{
	uint64_t value;
	if (!read_word(s, at, &value))
		return false;
	set(s, reg, true, value);
	return true;
}

static bool restore(struct step *s, uint32_t word)
{
	unsigned int reg = cairn_unwind_word_reg(word);
	uint64_t off = (uint64_t)(int64_t)cairn_unwind_word_value(word);
	switch (cairn_unwind_word_saved(word)) {
	case CAIRN_UNWIND_AT_CFA:
		return restore_from(s, reg, s->cfa + off);
	case CAIRN_UNWIND_AT_BASE:
		return restore_from(s, reg, s->now->r[s->rule->reg] + off);
	case CAIRN_UNWIND_AT_FP:
		if (is_known(s->now, s->abi->fp) &&
		    restore_from(s, reg, s->now->r[s->abi->fp] + off))
			return true;
		/*
		 * GCC's rows still say so where the frame pointer is the caller's already
		 * (docs/findings/gcc-realigned-epilogue.md).
		 */
		if (reg == s->abi->ra)
			return false;
		break;
	case CAIRN_UNWIND_IS_CFA:
		set(s, reg, true, s->cfa + off);
		return true;
	case CAIRN_UNWIND_IN_REG:
		set(s, reg, is_known(s->now, (unsigned int)off), s->now->r[off & 31]);
		return true;
	case CAIRN_UNWIND_SAME:
		set(s, reg, is_known(s->now, reg), s->now->r[reg]);
		return true;
	case CAIRN_UNWIND_IS_PC:
		set(s, reg, true, s->now->pc.v + off);
		return true;
	case CAIRN_UNWIND_LOST:
		break;
	}
	set(s, reg, false, 0);
	return true;
}

/* The ABI's convention for registers without a rule. */
static bool begin_caller(struct step *s)
{
	bool is_signal = s->rule->flags & CAIRN_UNWIND_SIGNAL;
	s->caller = *s->now;
	if (!is_signal)
		s->caller.known &= s->abi->kept;
	set(s, s->abi->sp, true, s->cfa);
	for (uint32_t i = 0; i < s->rule->n_regs; i++)
		if (cairn_unwind_word_reg(cairn_unwind_words(s->rule)[i]) == s->abi->ra)
			return true;
	if (s->abi->ra == 30) {
		s->ra = s->now->r[30];
		s->has_ra = is_known(s->now, 30);
		return true;
	}
	s->has_ra = read_word(s, s->cfa - sizeof(uint64_t), &s->ra);
	return s->has_ra;
}

static bool has_return_address(const struct step *s, enum cairn_unwind_saved saved)
{
	for (uint32_t i = 0; i < s->rule->n_regs; i++) {
		uint32_t word = cairn_unwind_words(s->rule)[i];
		if (cairn_unwind_word_reg(word) == s->abi->ra)
			return cairn_unwind_word_saved(word) == saved;
	}
	return false;
}

/*
 * As at the entry of AArch64's functions; in vfork() of x86-64, which takes its return address off
 * the stack; and in stubs that are jumped to and jump back.
 */
static bool has_return_address_in_register(const struct step *s)
{
	return s->abi->ra == 30 || has_return_address(s, CAIRN_UNWIND_IN_REG) ||
	       has_return_address(s, CAIRN_UNWIND_IS_PC);
}

/*
 * Lock stubs of glibc 2.3 to 2.17 reserve 128 bytes before they call. Their rows for the code
 * around that lead to the row of the call, as if the bytes were reserved there, too; that row leads
 * to the function that jumped to the stub.
 */
static bool is_before_reserve(const struct step *s)
{
	enum { RESERVED = 128 };
	unsigned int sp = s->abi->sp;
	return has_return_address(s, CAIRN_UNWIND_IS_PC) &&
	       s->now->r[sp] - s->caller.r[sp] == RESERVED;
}

static bool makes_progress(const struct step *s)
{
	unsigned int sp = s->abi->sp;
	if (s->rule->flags & CAIRN_UNWIND_SIGNAL || !is_known(s->now, sp))
		return true;
	if (s->caller.r[sp] > s->now->r[sp])
		return true;
	return s->ra != s->now->pc.v && has_return_address_in_register(s) &&
	       (s->caller.r[sp] == s->now->r[sp] || is_before_reserve(s));
}

static enum cairn_step step_by_any(const struct cairn_unwind_rule *rule,
				   const struct convention *abi, cairn_read_memory read, void *ctx,
				   struct cairn_regs *regs)
{
	struct step s = {.rule = rule, .abi = abi, .read = read, .ctx = ctx, .now = regs};
	if (rule->flags & CAIRN_UNWIND_OUTERMOST)
		return CAIRN_STEP_OUTERMOST;
	if (rule->cfa == CAIRN_UNWIND_UNDESCRIBED)
		return CAIRN_STEP_UNDESCRIBED;
	enum cairn_step result = find_cfa(&s);
	if (result != CAIRN_STEP_OK)
		return result;
	if (!begin_caller(&s))
		return CAIRN_STEP_UNREADABLE;
	for (uint32_t i = 0; i < rule->n_regs; i++)
		if (!restore(&s, cairn_unwind_words(rule)[i]))
			return CAIRN_STEP_UNREADABLE;
	if (!s.has_ra)
		return CAIRN_STEP_LOST;
	if (rule->flags & CAIRN_UNWIND_RA_SIGNED)
		s.ra &= aarch64_address;
	if (!makes_progress(&s))
		return CAIRN_STEP_STUCK;
	s.caller.pc.v = s.ra;
	*regs = s.caller;
	return CAIRN_STEP_OK;
}

/*
 * ---- most rules: the CFA is a register plus a number, registers are saved relative to the CFA,
 * the call pushed the return address ----
 */

enum { MAX_USUAL = 8 };

static bool is_usual(const struct cairn_unwind_rule *r, const struct convention *abi,
		     const struct cairn_regs *now)
{
	if (r->cfa != CAIRN_UNWIND_CFA_REG || r->flags || r->n_regs > MAX_USUAL ||
	    !abi->ra_at_cfa || !is_known(now, r->reg))
		return false;
	for (uint32_t i = 0; i < r->n_regs; i++) {
		uint32_t word = cairn_unwind_words(r)[i];
		unsigned int reg = cairn_unwind_word_reg(word);
		if (cairn_unwind_word_saved(word) != CAIRN_UNWIND_AT_CFA || reg >= abi->ra ||
		    reg == abi->sp)
			return false;
	}
	return true;
}

/* As above, with less to copy: registers are changed in place once all is read. */
static enum cairn_step step_as_usual(const struct cairn_unwind_rule *r,
				     const struct convention *abi, cairn_read_memory read,
				     void *ctx, struct cairn_regs *regs)
{
	const uint32_t *words = cairn_unwind_words(r);
	uint64_t cfa = regs->r[r->reg] + (uint64_t)(int64_t)r->off, ra, values[MAX_USUAL];
	if (!read(ctx, (struct cairn_addr){cfa - sizeof(ra)}, &ra, sizeof(ra)))
		return CAIRN_STEP_UNREADABLE;
	for (uint32_t i = 0; i < r->n_regs; i++) {
		struct cairn_addr at = {cfa + (uint64_t)(int64_t)cairn_unwind_word_value(words[i])};
		if (!read(ctx, at, &values[i], sizeof(values[i])))
			return CAIRN_STEP_UNREADABLE;
	}
	if (is_known(regs, abi->sp) && cfa <= regs->r[abi->sp])
		return CAIRN_STEP_STUCK;
	regs->known = (regs->known & abi->kept) | UINT32_C(1) << abi->sp;
	regs->r[abi->sp] = cfa;
	for (uint32_t i = 0; i < r->n_regs; i++) {
		unsigned int reg = cairn_unwind_word_reg(words[i]);
		regs->r[reg] = values[i];
		regs->known |= UINT32_C(1) << reg;
	}
	regs->pc.v = ra;
	return CAIRN_STEP_OK;
}

enum cairn_step cairn_unwind_step(const struct cairn_unwind_rule *rule, uint16_t machine,
				  cairn_read_memory read, void *ctx, struct cairn_regs *regs)
{
	const struct convention *abi = convention_of(machine);
	return is_usual(rule, abi, regs) ? step_as_usual(rule, abi, read, ctx, regs)
					 : step_by_any(rule, abi, read, ctx, regs);
}
