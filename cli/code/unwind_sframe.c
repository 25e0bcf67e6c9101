/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SFrame as readelf --sframe of binutils 2.46 and later prints it, so that the two can be compared
 *
 *	func idx [3]: pc = 0x1110, size = 218 bytes, attr = "F"
 *	STARTPC         CFA       FP        RA
 *	0000000000001110  sp+8      u         f
 *	0000000000001121  r10+0     (fp+0)    U
 *
 * u: unchanged; f: where the header fixes it; U: a flexible row that says nothing of it but of the
 * frame pointer.
 */
#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "unwind.h"

struct printing {
	FILE *out;
	const struct cairn_sframe_info *info;
	struct cairn_sframe_function f;
	bool is_flexible;
};

static const char *base_name(uint16_t machine, unsigned int reg, char *buf)
{
	if (reg == (machine == EM_AARCH64 ? 31 : 7))
		return "sp";
	if (reg == (machine == EM_AARCH64 ? 29 : 6))
		return "fp";
	snprintf(buf, 8, "r%u", reg & 31);
	return buf;
}

static void place_text(uint16_t machine, const struct cairn_unwind_rule *rule, uint32_t word,
		       char *buf, size_t size)
{
	char name[8];
	int32_t value = cairn_unwind_word_value(word);

	switch (cairn_unwind_word_saved(word)) {
	case CAIRN_UNWIND_AT_CFA:
		snprintf(buf, size, "c%+" PRId32, value);
		return;
	case CAIRN_UNWIND_AT_BASE:
		snprintf(buf, size, "(%s%+" PRId32 ")", base_name(machine, rule->reg, name), value);
		return;
	case CAIRN_UNWIND_AT_FP:
		snprintf(buf, size, "(fp%+" PRId32 ")", value);
		return;
	case CAIRN_UNWIND_IN_REG:
		snprintf(buf, size, "%s+0", base_name(machine, (unsigned int)value, name));
		return;
	default:
		snprintf(buf, size, "?");
	}
}

/* The text for a register; "" when the rule does not mention it. */
static void register_text(const struct printing *p, const struct cairn_unwind_rule *rule,
			  unsigned int reg, char *buf, size_t size)
{
	buf[0] = 0;
	for (uint32_t i = 0; i < rule->n_regs; i++)
		if (cairn_unwind_word_reg(cairn_unwind_words(rule)[i]) == reg)
			place_text(p->info->machine, rule, cairn_unwind_words(rule)[i], buf, size);
}

static int print_row(void *ctx, uint32_t off, const struct cairn_unwind_rule *rule)
{
	const struct printing *p = ctx;
	bool is_arm = p->info->machine == EM_AARCH64;
	char cfa[32], fp[32], ra[32], name[8];
	uint64_t at = p->f.block_size ? off : p->f.at.v + off;

	fprintf(p->out, "    %016" PRIx64, at);
	if (rule->flags & CAIRN_UNWIND_OUTERMOST) {
		fputs("  RA undefined\n", p->out);
		return 0;
	}
	snprintf(cfa, sizeof(cfa),
		 rule->cfa == CAIRN_UNWIND_CFA_DEREF ? "(%s%+" PRId32 ")" : "%s%+" PRId32,
		 base_name(p->info->machine, rule->reg, name), rule->off);
	register_text(p, rule, is_arm ? 29 : 6, fp, sizeof(fp));
	register_text(p, rule, is_arm ? 30 : 16, ra, sizeof(ra));
	if (!ra[0])
		strcpy(ra, is_arm ? "u" : p->is_flexible && fp[0] ? "U" : "f");
	if (rule->flags & CAIRN_UNWIND_RA_SIGNED)
		strcat(ra, "[s]");
	fprintf(p->out, "  %-10s%-10s%-13s\n", cfa, fp[0] ? fp : "u", ra);
	return 0;
}

static void print_header(FILE *out, const struct cairn_sframe_info *info)
{
	static const struct {
		uint8_t bit;
		const char *name;
	} flags[] = {{1, "SFRAME_F_FDE_SORTED"},
		     {2, "SFRAME_F_FRAME_POINTER"},
		     {4, "SFRAME_F_FDE_FUNC_START_PCREL"}};
	const char *before = "    Flags: ";

	fputs("Contents of the SFrame section .sframe:\n  Header :\n\n", out);
	fprintf(out, "    Version: SFRAME_VERSION_%u\n", info->version);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (info->flags & flags[i].bit) {
			fprintf(out, "%s%s", before, flags[i].name);
			before = ",\n           ";
		}
	fputs(info->flags ? "\n" : "    Flags: NONE\n", out);
	if (info->machine == EM_X86_64)
		fputs("    CFA fixed RA offset: -8\n", out);
	fprintf(out,
		"    Num FDEs: %" PRIu32 "\n    Num FREs: %" PRIu32 "\n\n  Function Index :\n\n",
		info->n_functions, info->n_rows);
}

void unwind_sframe_text(FILE *out, const struct cairn_sframe *s)
{
	struct cairn_sframe_info info;
	struct printing p = {.out = out, .info = &info};

	cairn_sframe_info(s, &info);
	print_header(out, &info);
	for (uint32_t i = 0; i < info.n_functions; i++) {
		cairn_sframe_function(s, i, &p.f);
		p.is_flexible = p.f.is_flexible;
		fprintf(out,
			"    func idx [%" PRIu32 "]: pc = 0x%" PRIx64 ", size = %" PRIu32 " bytes",
			i, p.f.at.v, p.f.size);
		if (p.f.is_signal || p.f.is_flexible)
			fprintf(out, ", attr = \"%s%s\"", p.f.is_signal ? "S" : "",
				p.f.is_flexible ? "F" : "");
		fprintf(out, "\n    %s      CFA       FP        RA           \n",
			p.f.block_size ? "STARTPC[m]" : "STARTPC   ");
		if (p.f.refused)
			fprintf(out, "    refused: %s\n", p.f.refused);
		cairn_sframe_rows(s, i, print_row, &p);
		fputs(i + 1 < info.n_functions ? "\n" : "", out);
	}
}
