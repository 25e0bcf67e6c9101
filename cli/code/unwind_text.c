/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind rules in words. */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>

#include "unwind.h"

const char *unwind_reg_name(uint16_t machine, unsigned int reg, char *buf)
{
	static const char *const x86_64[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
					     "rbp", "rsp", "r8",  "r9",  "r10", "r11",
					     "r12", "r13", "r14", "r15", "ra"};

	if (machine == EM_X86_64 && reg < sizeof(x86_64) / sizeof(x86_64[0]))
		return x86_64[reg];
	if (machine == EM_AARCH64 && reg == 31)
		return "sp";
	snprintf(buf, 8, "%c%u", machine == EM_AARCH64 ? 'x' : 'r', reg & 31);
	return buf;
}

void unwind_cfa_text(uint16_t machine, const struct cairn_unwind_rule *rule, char *buf, size_t size)
{
	char name[8];
	const char *reg = unwind_reg_name(machine, rule->reg, name);

	if (rule->cfa == CAIRN_UNWIND_UNDESCRIBED)
		snprintf(buf, size, "-");
	else if (rule->flags & CAIRN_UNWIND_OUTERMOST)
		snprintf(buf, size, "outermost");
	else if (rule->cfa == CAIRN_UNWIND_CFA_REG)
		snprintf(buf, size, "%s%+" PRId32, reg, rule->off);
	else if (rule->add)
		snprintf(buf, size, "*(%s%+" PRId32 ")%+" PRId32, reg, rule->off, rule->add);
	else
		snprintf(buf, size, "*(%s%+" PRId32 ")", reg, rule->off);
}

void unwind_word_text(uint16_t machine, const struct cairn_unwind_rule *rule, uint32_t word,
		      char *buf, size_t size)
{
	char name[8];
	int32_t value = cairn_unwind_word_value(word);

	switch (cairn_unwind_word_saved(word)) {
	case CAIRN_UNWIND_AT_CFA:
		snprintf(buf, size, "cfa%+" PRId32, value);
		return;
	case CAIRN_UNWIND_IS_CFA:
		snprintf(buf, size, "=cfa%+" PRId32, value);
		return;
	case CAIRN_UNWIND_AT_BASE:
		snprintf(buf, size, "*(%s%+" PRId32 ")", unwind_reg_name(machine, rule->reg, name),
			 value);
		return;
	case CAIRN_UNWIND_AT_FP:
		snprintf(buf, size, "*(%s%+" PRId32 ")", machine == EM_AARCH64 ? "x29" : "rbp",
			 value);
		return;
	case CAIRN_UNWIND_IN_REG:
		snprintf(buf, size, "%s", unwind_reg_name(machine, (unsigned int)value, name));
		return;
	case CAIRN_UNWIND_SAME:
		snprintf(buf, size, "same");
		return;
	case CAIRN_UNWIND_IS_PC:
		snprintf(buf, size, "=pc%+" PRId32, value);
		return;
	case CAIRN_UNWIND_LOST:
		break;
	}
	snprintf(buf, size, "lost");
}
