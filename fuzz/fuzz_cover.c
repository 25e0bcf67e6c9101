/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions of BPF programs
 *
 * Whatever they are, what they do with their context is known or refused with a reason, and a program
 * that is built of them has all its jumps within.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cover/cover.h"

enum { INSNS_MAX = 512 };

static void check_jumps(const struct cover_built *built)
{
	const struct bpf_insn *insns = built->code.insns.p;
	int64_t n = (int64_t)built->code.insns.n;

	for (int64_t i = 0; i < n; i++) {
		uint8_t class = BPF_CLASS(insns[i].code), op = BPF_OP(insns[i].code);
		bool is_jump = (class == BPF_JMP && op != BPF_CALL && op != BPF_EXIT);
		if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
		else if (is_jump)
			assert(i + 1 + insns[i].off >= 0 && i + 1 + insns[i].off < n);
	}
}

static void build(const struct bpf_insn *insns, size_t n, struct cover_use *use)
{
	static const struct cover_site site = {0};
	struct cover_built built;

	/* Arguments are those of a trace. */
	use->words &= 1u << WORD_IP | 1u << WORD_CS;
	assert(build_program(insns, n, use, &site, 0, &built, NULL) == 0);
	if (!built.why)
		check_jumps(&built);
	built_fini(&built);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct bpf_insn insns[INSNS_MAX];
	size_t n = size / sizeof(*insns) < INSNS_MAX ? size / sizeof(*insns) : INSNS_MAX;
	struct cover_use use;

	memcpy(insns, bytes, n * sizeof(*insns));
	assert(use_find(insns, n, &use, NULL) == 0);
	assert(use.words >> WORDS == 0);
	if (!use.why)
		build(insns, n, &use);
	use_fini(&use);
	return 0;
}

#define INSN(c, d, s, o, i)                                                                        \
	{                                                                                          \
		.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)                \
	}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const struct bpf_insn reads[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 7, 6, 8 * WORD_IP, 0),
		INSN(BPF_STX | BPF_MEM | BPF_DW, 10, 6, -8, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_stackid),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, 7, 0, 1, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 6, 10, -8, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	static const struct bpf_insn calls[] = {
		INSN(BPF_LD | BPF_IMM | BPF_DW, 2, BPF_PSEUDO_FUNC, 0, 5),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 1),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 0, 1, 8 * WORD_CS, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	put(reads, sizeof(reads));
	put(calls, sizeof(calls));
}
