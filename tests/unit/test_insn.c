/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <errno.h>

#include "alloc_fail.h"
#include "elf/elf.h"
#include "elf_builder.h"
#include "need.h"
#include "insn/carry.h"
#include "insn/insn.h"
#include "insn/values.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define CODE(s)       (const uint8_t *)(s), sizeof(s) - 1

/* DWARF register numbers, as bits. */
enum {
	RAX = 1 << 0,
	RDX = 1 << 1,
	RCX = 1 << 2,
	RBX = 1 << 3,
	RSI = 1 << 4,
	RDI = 1 << 5,
	RBP = 1 << 6,
	RSP = 1 << 7,
	R8 = 1 << 8,
	R15 = 1 << 15,
};

static struct insn decode(const uint8_t *bytes, size_t n)
{
	struct insn insn = {0};
	if (!insn_decode(bytes, n, 0x1000, &insn))
		fail_msg("not decoded: %02x...", bytes[0]);
	assert_int_equal(insn.len, n);
	return insn;
}

/* The two say the same of @bytes, also when they end early. */
static void assert_step_is_decode(const uint8_t *bytes, size_t n)
{
	struct insn insn = {0};
	struct insn_step step = {0};
	bool decoded = insn_decode(bytes, n, 0x1000, &insn);
	if (insn_step(bytes, n, 0x1000, &step) != decoded ||
	    (decoded && (step.len != insn.len || step.flow != insn.flow ||
			 step.target != insn.target || step.writes_memory != insn.writes_memory)))
		fail_msg("%02x %02x %02x %02x %02x, %zu bytes", bytes[0], bytes[1], bytes[2],
			 bytes[3], bytes[4], n);
}

/*
 * The @i-th of all instructions with a prefix, one of the two tables' opcodes, and a ModRM byte:
 * 2^17 for each prefix, of 15 bytes together with what follows them: a SIB byte, a displacement, an
 * immediate.
 */
static void make_instruction(uint8_t bytes[24], const char *prefix, unsigned int i, uint8_t sib)
{
	size_t n = strlen(prefix);
	memcpy(bytes, prefix, n);
	if (i >> 16 & 1)
		bytes[n++] = 0x0f;
	bytes[n++] = (uint8_t)(i >> 8); /* opcode */
	bytes[n++] = (uint8_t)i;        /* ModRM */
	for (uint8_t k = 0; n < 15; k++)
		bytes[n++] = (uint8_t)(sib + 0x33 * k);
}

static void a_step_says_what_a_decode_says_for_every_opcode_and_modrm(void **state)
{
	enum { NO_BASE = 0x25 };
	static const char *const prefixes[] = {
		"",     "\x66", "\x65",     "\x41",     "\x48",     "\x66\x48", "\x66\x2e",
		"\xf3", "\xf0", "\xf3\x48", "\xf0\x48", "\xf0\x41", "\x66\xf0", "\xf3\xf0"};
	for (unsigned int i = 0; i < ARRAY_SIZE(prefixes) * 2 * 256 * 256; i++) {
		uint8_t bytes[24] = {0};
		make_instruction(bytes, prefixes[i >> 17], i, NO_BASE);
		assert_step_is_decode(bytes, 15);
	}
}

/* Returns how many registers it is apart from. */
static unsigned int assert_others_are_apart(const uint8_t bytes[24])
{
	struct insn insn = {0};
	bool decoded = insn_decode(bytes, 15, 0, &insn);
	unsigned int n = 0;
	for (unsigned int reg = 0; reg < 16; reg++) {
		uint8_t len;
		if (insn_named_registers(bytes, 15, &len) >> reg & 1)
			continue;
		n++;
		struct insn_access access = insn_accesses(bytes, 15, reg, INT64_MIN / 2, UINT_MAX);
		if (!decoded || len != insn.len || insn.flow != INSN_NEXT ||
		    (insn.reads | insn.writes) >> reg & 1 || access.loads || access.stores)
			fail_msg("%02x %02x %02x %02x has register %u", bytes[0], bytes[1],
				 bytes[2], bytes[3], reg);
	}
	return n;
}

static void an_instruction_has_no_registers_but_those_that_it_names(void **state)
{
	static const char *const prefixes[] = {"",     "\x40", "\x41", "\x42", "\x44",
					       "\x48", "\x4f", "\x66", "\xf3"};
	static const uint8_t sibs[] = {0x25, 0x04, 0x7b, 0xd6};
	unsigned int n = 0, all = ARRAY_SIZE(prefixes) * 2 * 256 * 256;
	for (unsigned int i = 0; i < all; i++) {
		uint8_t bytes[24] = {0};
		make_instruction(bytes, prefixes[i >> 17], i, sibs[i % ARRAY_SIZE(sibs)]);
		n += assert_others_are_apart(bytes);
	}
	/* A fourth of all opcodes is of ordinary instructions, which have two of 16 registers. */
	assert_true(n > all * 16 / 8);
}

static void a_step_says_what_a_decode_says_of_code_that_ends_early(void **state)
{
	for (unsigned int i = 0; i < 2 * 256 * 4; i++) {
		static const uint8_t modrm[] = {0x05, 0x44, 0x84, 0xc1};
		uint8_t bytes[16] = {0x48, 0x0f, [15] = 0};
		size_t at = i & 1024 ? 2 : 1;
		bytes[at] = (uint8_t)(i >> 2);
		bytes[at + 1] = modrm[i & 3];
		for (size_t n = 1; n < sizeof(bytes); n++)
			assert_step_is_decode(bytes, n);
	}
}

static void many_steps_are_single_ones_one_after_the_other(void **state)
{
	/*
	 * push %rbp; mov %rsp,%rbp; nopw 0(%rax,%rax,1); call; je; xchg %rax,%r8; pause; jmp *%rax;
	 * ret; mov of 10 bytes
	 */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x66, 0x0f, 0x1f, 0x44, 0x00,
				       0x00, 0xe8, 1,    0,    0,    0,    0x74, 0xf0, 0x49,
				       0x90, 0xf3, 0x90, 0x90, 0xff, 0xe0, 0xc3, 0x48, 0xb8,
				       1,    2,    3,    4,    5,    6,    7,    8};
	static const bool nops[] = {false, false, true,  false, false, false,
				    false, true,  false, false, false};
	struct insn_step many[32], one;
	size_t off = 0, bytes;
	assert_int_equal(insn_steps(code, sizeof(code), sizeof(code), 0x1000, many, 32, &bytes),
			 ARRAY_SIZE(nops));
	assert_int_equal(bytes, sizeof(code));
	for (size_t i = 0; i < ARRAY_SIZE(nops); off += one.len, i++) {
		assert_true(insn_step(code + off, sizeof(code) - off, 0x1000 + off, &one));
		assert_int_equal(many[i].len, one.len);
		assert_int_equal(many[i].flow, one.flow);
		assert_int_equal(many[i].target, one.target);
		assert_int_equal(many[i].writes_memory, one.writes_memory);
		assert_int_equal(many[i].is_nop, nops[i]);
		assert_int_equal(one.is_nop, nops[i]);
	}
	/*
	 * No more than asked for, and nothing that goes on after the end, whether or not that may
	 * be read.
	 */
	assert_int_equal(insn_steps(code, sizeof(code), sizeof(code), 0x1000, many, 3, &bytes), 3);
	assert_int_equal(bytes, 10);
	for (size_t readable = 12; readable <= sizeof(code); readable++) {
		assert_int_equal(insn_steps(code, 12, readable, 0x1000, many, 32, &bytes), 3);
		assert_int_equal(bytes, 10);
	}
}

enum { R12 = 1 << 12, KEPT = RBX | RBP | RSP | 0xf000 };

/* What the decoder says of it, but for what calls and returns do to rsp. */
static void assert_sweep_is_decode(const uint8_t *bytes, size_t n)
{
	struct insn insn = {0};
	uint8_t two[32] = {0};
	if (!insn_decode(bytes, n, 0x1000, &insn))
		return;
	bool moves_only = insn.flow == INSN_CALL || insn.flow == INSN_CALL_INDIRECT ||
			  insn.flow == INSN_RETURN;
	uint16_t writes = insn.writes & (uint16_t)(moves_only ? ~RSP : 0xffff);
	for (unsigned int reg = 0; reg < 16; reg++)
		if (KEPT & 1u << reg && insn_writes_any(bytes, insn.len, (uint16_t)(1u << reg)) !=
						!!(writes & 1u << reg))
			fail_msg("%02x %02x %02x %02x %02x, register %u", bytes[0], bytes[1],
				 bytes[2], bytes[3], bytes[4], reg);
	/* mov $1,%ebx after it is found: the length is right. */
	memcpy(two, bytes, insn.len);
	memcpy(two + insn.len, "\xbb\x01\x00\x00\x00", 5);
	if (!insn_writes_any(two, insn.len + 5u, RBX) ||
	    (!(writes & R12) && insn_writes_any(two, insn.len + 5u, R12)))
		fail_msg("%02x %02x %02x %02x %02x, length", bytes[0], bytes[1], bytes[2], bytes[3],
			 bytes[4]);
}

static void a_sweep_finds_what_a_decode_finds_for_every_opcode_and_modrm(void **state)
{
	static const char *const prefixes[] = {"",
					       "\x66",
					       "\x41",
					       "\x4c",
					       "\x48",
					       "\x66\x48",
					       "\xf3",
					       "\xf2",
					       "\xf3\x48",
					       "\x0f",
					       "\x66\x0f",
					       "\xf3\x0f",
					       "\xf2\x0f",
					       "\x48\x0f",
					       "\x45\x0f",
					       "\x66\x48\x0f",
					       "\xf3\x48\x0f",
					       "\x0f\x38",
					       "\x66\x0f\x38",
					       "\x48\x0f\x38",
					       "\xf2\x48\x0f\x38",
					       "\x66\x0f\x3a",
					       "\x66\x48\x0f\x3a",
					       "\xc5\xf8",
					       "\xc5\x79",
					       "\xc5\xfa",
					       "\xc5\xfb",
					       "\xc5\xfd",
					       "\xc4\xe2\x78",
					       "\xc4\xc2\xf8",
					       "\xc4\xe2\x7b",
					       "\xc4\xe2\xfb",
					       "\xc4\xe2\x79",
					       "\xc4\x62\xf2",
					       "\xc4\xe3\x7b",
					       "\xc4\xe3\x79",
					       "\xc4\xe3\x7d",
					       "\xc4\xe1\xf9",
					       "\xc4\xe1\xfb",
					       "\x62\xf1\x7c\x48",
					       "\x62\xf1\xfd\x48",
					       "\x62\xf1\x7e\x08",
					       "\x62\xf2\x7d\x48",
					       "\x62\xf3\x7d\x48",
					       "\x62\xf1\xff\x08"};
	for (unsigned int i = 0; i < ARRAY_SIZE(prefixes) * 256 * 256; i++) {
		uint8_t bytes[24] = {0};
		size_t n = strlen(prefixes[i >> 16]);
		memcpy(bytes, prefixes[i >> 16], n);
		bytes[n++] = (uint8_t)(i >> 8);
		bytes[n++] = (uint8_t)i;
		for (uint8_t k = 0; n < 15; k++)
			bytes[n++] = (uint8_t)(0x25 + 0x33 * k);
		assert_sweep_is_decode(bytes, n);
	}
}

static void bytes_that_are_no_instruction_may_write_anything(void **state)
{
	assert_true(insn_writes_any((const uint8_t *)"\x90\x06", 2, RBX));
	assert_true(insn_writes_any((const uint8_t *)"\x90\x48\x8b", 3, RBX));
	assert_false(insn_writes_any((const uint8_t *)"\x90\xc3", 2, KEPT));
	assert_false(insn_writes_any(NULL, 0, KEPT));
}

static void where_values_come_from(void **state)
{
	enum { COMPUTED, LOADED, MOVED, CHANGED, MOVED_AND_CHANGED, NOTHING };
	static const struct {
		const char *text, *bytes;
		size_t n;
		unsigned int reg, how, from;
		bool may_keep;
	} cases[] = {
		{"mov %rbx,%rax", "\x48\x89\xd8", 3, 0, MOVED, 3, false},
		{"mov %ebx,%eax", "\x89\xd8", 2, 0, COMPUTED, 0, false},
		{"mov 8(%rdi),%rbx", "\x48\x8b\x5f\x08", 4, 3, LOADED, 0, false},
		{"mov 8(%rdi),%ebx", "\x8b\x5f\x08", 3, 3, COMPUTED, 0, false},
		{"mov $1,%rbx", "\x48\xc7\xc3\x01\x00\x00\x00", 7, 3, COMPUTED, 0, false},
		{"movq %xmm0,%rbx", "\x66\x48\x0f\x7e\xc3", 5, 3, LOADED, 0, false},
		{"pop %r12", "\x41\x5c", 2, 12, LOADED, 0, false},
		{"leave", "\xc9", 1, 6, LOADED, 0, false},
		{"lea (%rbx),%rax", "\x48\x8d\x03", 3, 0, MOVED, 3, false},
		{"lea 8(%rbx),%rax", "\x48\x8d\x43\x08", 4, 0, MOVED_AND_CHANGED, 3, false},
		{"lea (%rbx,%rcx),%rax", "\x48\x8d\x04\x0b", 4, 0, COMPUTED, 0, false},
		{"lea 8(%rip),%rbx", "\x48\x8d\x1d\x08\x00\x00\x00", 7, 3, COMPUTED, 0, false},
		{"xchg %rbx,%rdi", "\x48\x87\xdf", 3, 3, MOVED, 5, false},
		{"xchg %rbx,(%rdi)", "\x48\x87\x1f", 3, 3, LOADED, 0, false},
		{"cmove %rax,%rbx", "\x48\x0f\x44\xd8", 4, 3, MOVED, 0, true},
		{"cmove (%rax),%rbx", "\x48\x0f\x44\x18", 4, 3, LOADED, 0, true},
		{"add $8,%rbx", "\x48\x83\xc3\x08", 4, 3, CHANGED, 0, false},
		{"xor %rax,%rbx", "\x48\x31\xc3", 3, 3, CHANGED, 0, false},
		{"xor %rbx,%rbx", "\x48\x31\xdb", 3, 3, COMPUTED, 0, false},
		{"xor %ebx,%ebx", "\x31\xdb", 2, 3, COMPUTED, 0, false},
		{"or %rbx,%rbx", "\x48\x09\xdb", 3, 3, NOTHING, 0, false},
		{"adc %rax,%rbx", "\x48\x11\xc3", 3, 3, COMPUTED, 0, false},
		{"cpuid", "\x0f\xa2", 2, 3, COMPUTED, 0, false},
		{"mulx (%rsi),%rbx,%r8", "\xc4\x62\xe3\xf6\x06", 5, 3, COMPUTED, 0, false},
		{"push %rbx", "\x53", 1, 3, NOTHING, 0, false},
		{"mov %al,%bh", "\x88\xc7", 2, 3, COMPUTED, 0, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct insn_values v;
		unsigned int bit = 1u << cases[i].reg, how = cases[i].how;
		assert_true(insn_values((const uint8_t *)cases[i].bytes, cases[i].n, &v));
		if (!!(v.computed & bit) != (how == COMPUTED) ||
		    !!(v.loaded & bit) != (how == LOADED) ||
		    !!(v.moved & bit) != (how == MOVED || how == MOVED_AND_CHANGED) ||
		    !!(v.changed & bit) != (how == CHANGED || how == MOVED_AND_CHANGED) ||
		    !!(v.may_keep & bit) != cases[i].may_keep ||
		    (v.moved & bit && v.from[cases[i].reg] != cases[i].from))
			fail_msg("%s: computed %x, loaded %x, moved %x, changed %x", cases[i].text,
				 v.computed, v.loaded, v.moved, v.changed);
		assert_false(insn_values((const uint8_t *)cases[i].bytes, cases[i].n - 1, &v));
	}
}

static void registers_read_and_written_are_those_of_all_operands(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		unsigned int reads, writes;
		bool reads_memory, writes_memory;
	} cases[] = {
		{"\x48\x89\xd8", 3, RBX, RAX, false, false},          /* mov %rbx,%rax */
		{"\x53", 1, RBX | RSP, RSP, false, true},             /* push %rbx */
		{"\x41\x5f", 2, RSP, RSP | R15, true, false},         /* pop %r15 */
		{"\x8a\x07", 2, RDI, RAX, true, false},               /* mov (%rdi),%al */
		{"\x88\x04\x17", 3, RAX | RDI | RDX, 0, false, true}, /* mov %al,(%rdi,%rdx) */
		{"\x48\x8d\x44\x24\x08", 5, RSP, RAX, false, false},  /* lea 8(%rsp),%rax */
		{"\x0f\x1f\x44\x00\x00", 5, 0, 0, false, false},      /* nop */
		{"\xf7\xe1", 2, RAX | RCX, RAX | RDX, false, false},  /* mul %ecx */
		{"\x0f\xa2", 2, RAX | RCX, RAX | RBX | RCX | RDX, false, false}, /* cpuid */
		{"\x48\x01\x18", 3, RAX | RBX, 0, true, true},     /* add %rbx,(%rax) */
		{"\x0f\x44\xc1", 3, RAX | RCX, RAX, false, false}, /* cmove %ecx,%eax */
		{"\xc9", 1, RBP, RSP | RBP, true, false},          /* leave */
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct insn insn = decode((const uint8_t *)cases[i].bytes, cases[i].n);
		print_message("case %zu\n", i);
		assert_int_equal(insn.writes, cases[i].writes);
		assert_int_equal(insn.reads & cases[i].reads, cases[i].reads);
		assert_int_equal(insn.reads_memory, cases[i].reads_memory);
		assert_int_equal(insn.writes_memory, cases[i].writes_memory);
		assert_int_equal(insn.flow, INSN_NEXT);
	}
}

static void packed_arithmetic_is_told_from_what_scalar_code_has(void **state)
{
	static const struct {
		const char *what, *bytes;
		size_t n;
		bool packed;
	} cases[] = {
		{"paddd", "\x66\x0f\xfe\xc3", 4, true},
		{"paddd xmm8", "\x66\x44\x0f\xfe\xc3", 5, true},
		{"pmuludq", "\x66\x0f\xf4\xc2", 4, true},
		{"pmulld", "\x66\x0f\x38\x40\xc1", 5, true},
		{"pslld $13", "\x66\x0f\x72\xf1\x0d", 5, true},
		{"addps", "\x0f\x58\xc1", 3, true},
		{"mulpd", "\x66\x0f\x59\xc1", 4, true},
		{"vpaddd", "\xc5\xf9\xfe\xc0", 4, true},
		{"vpmulld", "\xc4\xe2\x79\x40\xc0", 5, true},
		{"vfmadd231ps", "\xc4\xe2\x71\xb8\xc2", 5, true},
		{"vpaddd zmm", "\x62\xf1\x7d\x48\xfe\xc0", 6, true},
		{"vfmadd231sd", "\xc4\xe2\xf1\xb9\xc2", 5, false},
		{"vaddsd", "\xc5\xf3\x58\xc1", 4, false},
		{"addsd", "\xf2\x0f\x58\xc1", 4, false},
		{"mulss", "\xf3\x0f\x59\xc1", 4, false},
		{"pxor", "\x66\x0f\xef\xc0", 4, false},
		{"xorps", "\x0f\x57\xc0", 3, false},
		{"movdqu", "\xf3\x0f\x6f\x1f", 4, false},
		{"movups", "\x0f\x11\x1f", 3, false},
		{"punpckldq", "\x66\x0f\x62\xc1", 4, false},
		{"pshufd", "\x66\x0f\x70\xc0\x08", 5, false},
		{"cvtsi2sd", "\xf2\x0f\x2a\xc7", 4, false},
		{"jo", "\x0f\x80\x10\x00\x00\x00", 6, false},
		{"movzbl", "\x0f\xb6\xc0", 3, false},
		{"add", "\x48\x01\xd8", 3, false},
		{"nothing", "", 0, false},
		{"a prefix", "\x66", 1, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("%s\n", cases[i].what);
		assert_int_equal(insn_is_packed((const uint8_t *)cases[i].bytes, cases[i].n),
				 cases[i].packed);
	}
}

static void string_instruction_with_rep_is_marked(void **state)
{
	struct insn insn = decode(CODE("\xf3\x48\xa5")); /* rep movsq */
	assert_true(insn.has_rep);
	assert_true(insn.reads_memory && insn.writes_memory);
	assert_int_equal(insn.writes, RSI | RDI | RCX);
	assert_false(decode(CODE("\x48\xa5")).has_rep);
	assert_false(decode(CODE("\xf3\x0f\x1e\xfa")).has_rep); /* endbr64 */
}

static void flow_and_targets(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		enum insn_flow flow;
		uint64_t target;
	} cases[] = {
		{"\xeb\x10", 2, INSN_JUMP, 0x1012},
		{"\xe9\xfb\xff\xff\xff", 5, INSN_JUMP, 0x1000},
		{"\x74\xfe", 2, INSN_BRANCH, 0x1000},
		{"\x0f\x85\x00\x01\x00\x00", 6, INSN_BRANCH, 0x1106},
		{"\xe2\x00", 2, INSN_BRANCH, 0x1002},
		{"\xe8\x00\x00\x00\x00", 5, INSN_CALL, 0x1005},
		{"\xff\xd0", 2, INSN_CALL_INDIRECT, 0},
		{"\xff\x25\x00\x00\x00\x00", 6, INSN_JUMP_INDIRECT, 0},
		{"\x3e\xff\xe0", 3, INSN_JUMP_INDIRECT, 0},
		{"\xc3", 1, INSN_RETURN, 0},
		{"\xf3\xc3", 2, INSN_RETURN, 0},
		{"\xcc", 1, INSN_TRAP, 0},
		{"\x0f\x0b", 2, INSN_TRAP, 0},
		{"\xf4", 1, INSN_TRAP, 0},
		{"\x0f\x05", 2, INSN_TRAP, 0},
		{"\xcd\x80", 2, INSN_TRAP, 0},
		{"\xf3\x0f\x1e\xfa", 4, INSN_NEXT, 0},
		{"\x90", 1, INSN_NEXT, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct insn insn = decode((const uint8_t *)cases[i].bytes, cases[i].n);
		print_message("case %zu\n", i);
		assert_int_equal(insn.flow, cases[i].flow);
		assert_int_equal(insn.target, cases[i].target);
	}
}

static void an_instruction_that_is_cut_short_does_not_decode(void **state)
{
	static const uint8_t movabs[] = {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8};
	struct insn insn;
	for (size_t n = 0; n < sizeof(movabs); n++)
		assert_false(insn_decode(movabs, n, 0, &insn));
	assert_true(insn_decode(movabs, sizeof(movabs), 0, &insn));
}

static void register_names(void **state)
{
	assert_string_equal(insn_reg_name(5), "rdi");
	assert_string_equal(insn_reg_name(7), "rsp");
	assert_string_equal(insn_reg_name(17), "xmm0");
	assert_string_equal(insn_reg_name(82), "xmm31");
	assert_null(insn_reg_name(57));
	assert_null(insn_reg_name(1000));
	assert_string_equal(insn_subreg_name(5, 4), "edi");
	assert_string_equal(insn_subreg_name(1, 1), "dl");
	assert_string_equal(insn_subreg_name(15, 2), "r15w");
	assert_string_equal(insn_subreg_name(15, 8), "r15");
	assert_string_equal(insn_subreg_name(17, 4), "xmm0");
	assert_null(insn_subreg_name(0, 3));
}

static void uprobe_rules(void **state)
{
	static const struct {
		const char *what, *bytes;
		size_t n;
		enum cairn_hazard hazard;
		bool emulated;
	} cases[] = {
		{"nop", "\x90", 1, CAIRN_HAZARD_NONE, true},
		{"push %rbp", "\x55", 1, CAIRN_HAZARD_NONE, true},
		{"push %r12", "\x41\x54", 2, CAIRN_HAZARD_NONE, true},
		{"rex.w push %rax", "\x48\x50", 2, CAIRN_HAZARD_NONE, false},
		{"jmp", "\xeb\x10", 2, CAIRN_HAZARD_NONE, true},
		{"je", "\x0f\x84\x10\x00\x00\x00", 6, CAIRN_HAZARD_NONE, true},
		{"call", "\xe8\x10\x00\x00\x00", 5, CAIRN_HAZARD_NONE, true},
		{"call *%rax", "\xff\xd0", 2, CAIRN_HAZARD_NONE, false},
		{"loop", "\xe2\x10", 2, CAIRN_HAZARD_NONE, false},
		{"mov", "\x48\x89\xd8", 3, CAIRN_HAZARD_NONE, false},
		{"endbr64", "\xf3\x0f\x1e\xfa", 4, CAIRN_HAZARD_NONE, false},
		{"mov %fs:0x28,%rax", "\x64\x48\x8b\x04\x25\x28\x00\x00\x00", 9, CAIRN_HAZARD_NONE,
		 false},
		{"syscall", "\x0f\x05", 2, CAIRN_HAZARD_SEES_STEP, false},
		{"sysenter", "\x0f\x34", 2, CAIRN_HAZARD_SEES_STEP, false},
		{"vmcall", "\x0f\x01\xc1", 3, CAIRN_HAZARD_SEES_STEP, false},
		{"vmmcall", "\x0f\x01\xd9", 3, CAIRN_HAZARD_SEES_STEP, false},
		{"pushfq", "\x9c", 1, CAIRN_HAZARD_SEES_STEP, false},
		{"pushfw", "\x66\x9c", 2, CAIRN_HAZARD_SEES_STEP, false},
		{"popfq", "\x9d", 1, CAIRN_HAZARD_NONE, false},
		{"lahf", "\x9f", 1, CAIRN_HAZARD_NONE, false},
		{"sgdt (%rdi)", "\x0f\x01\x07", 3, CAIRN_HAZARD_SEES_STEP, false},
		{"sidt (%rdi)", "\x0f\x01\x0f", 3, CAIRN_HAZARD_SEES_STEP, false},
		{"smsw %rax", "\x48\x0f\x01\xe0", 4, CAIRN_HAZARD_SEES_STEP, false},
		{"sldt %rax", "\x48\x0f\x00\xc0", 4, CAIRN_HAZARD_SEES_STEP, false},
		{"str %rax", "\x48\x0f\x00\xc8", 4, CAIRN_HAZARD_SEES_STEP, false},
		{"rdtscp", "\x0f\x01\xf9", 3, CAIRN_HAZARD_NONE, false},
		{"lcall *(%rdi)", "\xff\x1f", 2, CAIRN_HAZARD_SEES_STEP, false},
		{"ljmp *(%rdi)", "\xff\x2f", 2, CAIRN_HAZARD_NONE, false},
		{"cpuid", "\x0f\xa2", 2, CAIRN_HAZARD_SEES_STEP, false},
		{"xbegin", "\xc7\xf8\x10\x00\x00\x00", 6, CAIRN_HAZARD_SEES_STEP, false},
		{"fld1", "\xd9\xe8", 2, CAIRN_HAZARD_NONE, false},
		{"rep movsq", "\xf3\x48\xa5", 3, CAIRN_HAZARD_REPEATS, false},
		{"rep stosb", "\xf3\xaa", 2, CAIRN_HAZARD_REPEATS, false},
		{"repne scasb", "\xf2\xae", 2, CAIRN_HAZARD_REPEATS, false},
		{"repe cmpsb", "\xf3\xa6", 2, CAIRN_HAZARD_REPEATS, false},
		{"movsq", "\x48\xa5", 2, CAIRN_HAZARD_NONE, false},
		{"repz ret", "\xf3\xc3", 2, CAIRN_HAZARD_NONE, false},
		{"4-byte nop", "\x0f\x1f\x40\x00", 4, CAIRN_HAZARD_NONE, true},
		{"5-byte nop", "\x0f\x1f\x44\x00\x00", 5, CAIRN_HAZARD_NOP5_RED_ZONE, true},
		{"other 5-byte nop", "\x66\x0f\x1f\x40\x00", 5, CAIRN_HAZARD_NOP5_RED_ZONE, false},
		{"66 66 66 66 90", "\x66\x66\x66\x66\x90", 5, CAIRN_HAZARD_NOP5_RED_ZONE, true},
		{"lea 0(%rsp),%rsp", "\x48\x8d\x64\x24\x00", 5, CAIRN_HAZARD_NOP5_RED_ZONE, false},
		{"9-byte nop", "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00", 9, CAIRN_HAZARD_NONE, false},
		{"10-byte nop", "\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 10,
		 CAIRN_HAZARD_SEGMENT_PREFIX, false},
		{"notrack jmp", "\x3e\xff\xe0", 3, CAIRN_HAZARD_SEGMENT_PREFIX, false},
		{"lock incl", "\xf0\xff\x00", 3, CAIRN_HAZARD_LOCK_PREFIX, false},
		{"lock cmpxchg", "\xf0\x48\x0f\xb1\x0a", 5, CAIRN_HAZARD_LOCK_PREFIX, false},
		{"mov %eax,%ss", "\x8e\xd0", 2, CAIRN_HAZARD_MASKS_TRAPS, false},
		{"mov %eax,%ds", "\x8e\xd8", 2, CAIRN_HAZARD_NONE, false},
		{"int3", "\xcc", 1, CAIRN_HAZARD_TRAP, false},
		{"int 0x80", "\xcd\x80", 2, CAIRN_HAZARD_NOT_PROBEABLE, false},
		{"hlt", "\xf4", 1, CAIRN_HAZARD_NOT_PROBEABLE, false},
		{"jmpw", "\x66\xe9\x00\x00\x00\x00", 6, CAIRN_HAZARD_NOT_PROBEABLE, false},
		{"vpxor", "\xc5\xf9\xef\xc0", 4, CAIRN_HAZARD_NOT_PROBEABLE, false},
		{"pxor", "\x66\x0f\xef\xc0", 4, CAIRN_HAZARD_NONE, false},
		{"vpor", "\xc5\xf9\xeb\xc0", 4, CAIRN_HAZARD_MISEMULATED, false},
		{"vpord zmm", "\x62\xf1\x7d\x48\xeb\xc0", 6, CAIRN_HAZARD_MISEMULATED, false},
		{"vpcmpeqb", "\xc5\xf9\x74\xc0", 4, CAIRN_HAZARD_MISEMULATED, false},
		{"vzeroupper", "\xc5\xf8\x77", 3, CAIRN_HAZARD_MISEMULATED, false},
		{"vcmpps", "\xc5\xf8\xc2\xc0\x00", 5, CAIRN_HAZARD_MISEMULATED, false},
		{"vpaddd", "\xc5\xf9\xfe\xc0", 4, CAIRN_HAZARD_NONE, false},
		{"xchg %r8,%rax", "\x49\x90", 2, CAIRN_HAZARD_MISEMULATED, false},
		{"push %es", "\x06", 1, CAIRN_HAZARD_NOT_PROBEABLE, false},
		{"nothing", "", 0, CAIRN_HAZARD_NOT_PROBEABLE, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("%s\n", cases[i].what);
		struct insn_uprobe u = insn_uprobe((const uint8_t *)cases[i].bytes, cases[i].n);
		assert_string_equal(cairn_hazard_id(u.hazard), cairn_hazard_id(cases[i].hazard));
		assert_int_equal(u.emulated, cases[i].emulated);
	}
}

static void every_hazard_has_its_own_word_and_sentence(void **state)
{
	for (int i = CAIRN_HAZARD_NONE; i < CAIRN_HAZARD_N; i++) {
		assert_non_null(cairn_hazard_text(i));
		for (int j = i + 1; j < CAIRN_HAZARD_N; j++)
			assert_string_not_equal(cairn_hazard_id(i), cairn_hazard_id(j));
	}
	assert_string_equal(cairn_hazard_id((enum cairn_hazard)99), "unknown");
}

static void boundaries_step_over_what_does_not_decode(void **state)
{
	static const uint8_t code[] = {0x90, 0x48, 0x89, 0xd8, 0x06, 0xc3, 0x48};
	uint8_t bits[1] = {0};
	assert_int_equal(insn_boundaries(code, sizeof(code), bits), 2);
	assert_int_equal(bits[0], 1 << 0 | 1 << 1 | 1 << 4 | 1 << 5 | 1 << 6);
}

static void red_zone_of_hand_written_functions(void **state)
{
	/* mov %edi,-4(%rsp); ret */
	assert_true(insn_uses_red_zone(CODE("\x89\x7c\x24\xfc\xc3")));
	/* push %rbp; mov %rsp,%rbp; mov %edi,-4(%rbp) */
	assert_true(insn_uses_red_zone(CODE("\x55\x48\x89\xe5\x89\x7d\xfc\x5d\xc3")));
	/* the same with sub $16,%rsp before the access */
	assert_false(
		insn_uses_red_zone(CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\x89\x7d\xfc\xc9\xc3")));
	/* the access lies below what was allocated */
	assert_true(
		insn_uses_red_zone(CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\x89\x7d\xec\xc9\xc3")));
	/* rbp is any pointer: mov %edi,-4(%rbp) */
	assert_false(insn_uses_red_zone(CODE("\x89\x7d\xfc\xc3")));
	/* lea -8(%rsp),%rax */
	assert_true(insn_uses_red_zone(CODE("\x48\x8d\x44\x24\xf8\xc3")));
	/* sub $8,%rsp; mov %edi,4(%rsp) */
	assert_false(
		insn_uses_red_zone(CODE("\x48\x83\xec\x08\x89\x7c\x24\x04\x48\x83\xc4\x08\xc3")));
	/* what does not decode might do anything */
	assert_true(insn_uses_red_zone(CODE("\x06\xc3")));
	assert_false(insn_uses_red_zone(CODE("")));
}

static void place_in_a_function_must_be_a_boundary(void **state)
{
	/* endbr64; nop5; mov %rbx,%rax; nop5; lock incl (%rax); ret */
	static const uint8_t func[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44,
				       0x00, 0x00, 0x48, 0x89, 0xd8, 0x0f, 0x1f,
				       0x44, 0x00, 0x00, 0xf0, 0xff, 0x00, 0xc3};
	static const struct {
		size_t off;
		enum cairn_hazard hazard;
	} cases[] = {
		{0, CAIRN_HAZARD_NONE},
		{1, CAIRN_HAZARD_NOT_A_BOUNDARY},
		{4, CAIRN_HAZARD_NONE}, /* nothing ran before this nop */
		{9, CAIRN_HAZARD_NONE},
		{10, CAIRN_HAZARD_NOT_A_BOUNDARY},
		{12, CAIRN_HAZARD_NOP5_RED_ZONE},
		{17, CAIRN_HAZARD_LOCK_PREFIX},
		{18, CAIRN_HAZARD_NOT_A_BOUNDARY},
		{20, CAIRN_HAZARD_NONE},
		{21, CAIRN_HAZARD_NOT_A_BOUNDARY},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(insn_hazard_in(func, sizeof(func), cases[i].off), cases[i].hazard);
	assert_int_equal(insn_hazard_in(func + 4, sizeof(func) - 4, 0), CAIRN_HAZARD_NONE);
}

/* ---- whole files ---- */

enum { TEXT = 0x1000 };

/* Two functions with padding between them, which is outside of both, and one without a symbol. */
/* clang-format off */
static const uint8_t text[] = {
	/* 0x00 leaf: */
	0x0f, 0x1f, 0x44, 0x00, 0x00, /* nop5 at the entry */
	0x89, 0x7c, 0x24, 0xfc,       /* mov %edi,-4(%rsp) */
	0x0f, 0x1f, 0x44, 0x00, 0x00, /* 0x09: nop5 */
	0xf0, 0xff, 0x07,             /* 0x0e: lock incl (%rdi) */
	0xc3,                         /* 0x11 */
	0x0f, 0x1f, 0x44, 0x00, 0x00, /* 0x12: never executed */
	0xcc,
	0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, /* 0x18: between functions */
	/* 0x22 calm: */
	0xf3, 0x0f, 0x1e, 0xfa,       /* endbr64 */
	0x0f, 0x1f, 0x44, 0x00, 0x00, /* 0x26 */
	0x90,                         /* 0x2b */
	0x0f, 0x1f, 0x44, 0x00, 0x00, /* 0x2c: nop5, but no red zone */
	0x3e, 0xff, 0xe0,             /* 0x31: notrack jmp */
	/* 0x34, no symbol: */
	0xc5, 0xf9, 0xeb, 0xc0,       /* vpor */
	0xc3,
};
/* clang-format on */

static struct elf_builder *build_file(bool with_symbols, struct cairn_binary **ret)
{
	struct elf_builder *b = eb_new(ET_DYN);
	uint32_t section = eb_section(b, (struct eb_section){.name = ".text",
							     .flags = SHF_ALLOC | SHF_EXECINSTR,
							     .addr = TEXT,
							     EB_BYTES(text)});
	eb_load(b, section);
	static const uint8_t data[16] = {0x90};
	uint32_t other = eb_section(
		b, (struct eb_section){
			   .name = ".data", .flags = SHF_ALLOC, .addr = 0x3000, EB_BYTES(data)});
	eb_load(b, other);
	if (with_symbols) {
		eb_symbol(b, (struct eb_symbol){"leaf", section, TEXT, 0x18, STT_FUNC, STB_GLOBAL});
		eb_symbol(b,
			  (struct eb_symbol){"alias", section, TEXT, 0x12, STT_FUNC, STB_GLOBAL});
		eb_symbol(b, (struct eb_symbol){"calm", section, TEXT + 0x22, 0x12, STT_FUNC,
						STB_GLOBAL});
	}
	size_t size;
	uint8_t *bytes = eb_finish(b, &size);
	struct cairn_err err = {0};
	if (binary_open_mem(bytes, size, "file", ret, &err) < 0)
		fail_msg("%s", err.msg);
	return b;
}

struct listed {
	uint64_t at[16];
	enum cairn_hazard hazard[16];
	size_t n, stop_after;
};

static int list_one(void *ctx, struct cairn_vaddr at, enum cairn_hazard hazard)
{
	struct listed *l = ctx;
	assert_true(l->n < ARRAY_SIZE(l->at));
	l->at[l->n] = at.v - TEXT;
	l->hazard[l->n++] = hazard;
	return l->n == l->stop_after ? -7 : 0;
}

static void hazards_of_a_file_are_those_of_its_functions(void **state)
{
	struct cairn_binary *bin;
	struct elf_builder *b = build_file(true, &bin);
	struct listed l = {0};
	assert_int_equal(cairn_hazards(bin, list_one, &l, NULL), 0);
	assert_int_equal(l.n, 3);
	static const struct {
		uint64_t at;
		enum cairn_hazard hazard;
	} want[] = {
		{0x09, CAIRN_HAZARD_NOP5_RED_ZONE},
		{0x0e, CAIRN_HAZARD_LOCK_PREFIX},
		{0x31, CAIRN_HAZARD_SEGMENT_PREFIX},
	};
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(l.at[i], want[i].at);
		assert_int_equal(l.hazard[i], want[i].hazard);
	}
	l = (struct listed){.stop_after = 2};
	assert_int_equal(cairn_hazards(bin, list_one, &l, NULL), -7);
	assert_int_equal(l.n, 2);
	cairn_binary_close(bin);
	eb_free(b);
}

static void hazards_of_a_stripped_file_are_those_of_all_its_code(void **state)
{
	struct cairn_binary *bin;
	struct elf_builder *b = build_file(false, &bin);
	struct listed l = {0};
	assert_int_equal(cairn_hazards(bin, list_one, &l, NULL), 0);
	static const uint64_t want[] = {0x00, 0x09, 0x0e, 0x26, 0x2c, 0x31, 0x34};
	assert_int_equal(l.n, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_int_equal(l.at[i], want[i]);
	assert_int_equal(l.hazard[6], CAIRN_HAZARD_MISEMULATED);
	cairn_binary_close(bin);
	eb_free(b);
}

static void hazard_at_an_address(void **state)
{
	struct cairn_binary *bin;
	struct elf_builder *b = build_file(true, &bin);
	static const struct {
		uint64_t at;
		bool is_entry;
		enum cairn_hazard hazard;
	} cases[] = {
		{TEXT, true, CAIRN_HAZARD_NONE},
		{TEXT, false, CAIRN_HAZARD_NOP5_RED_ZONE},
		{TEXT + 1, false, CAIRN_HAZARD_NOT_A_BOUNDARY},
		{TEXT + 5, false, CAIRN_HAZARD_NONE},
		{TEXT + 9, false, CAIRN_HAZARD_NOP5_RED_ZONE},
		{TEXT + 0xe, false, CAIRN_HAZARD_LOCK_PREFIX},
		{TEXT + 0xf, false, CAIRN_HAZARD_NOT_A_BOUNDARY},
		{TEXT + 0x26, false, CAIRN_HAZARD_NONE},
		{TEXT + 0x2c, false, CAIRN_HAZARD_NOP5_RED_ZONE},
		{TEXT + 0x34, false, CAIRN_HAZARD_MISEMULATED},
		{TEXT + sizeof(text), false, CAIRN_HAZARD_NOT_A_BOUNDARY},
		{0x3000, false, CAIRN_HAZARD_NOT_A_BOUNDARY},
		{0, true, CAIRN_HAZARD_NOT_A_BOUNDARY},
		{UINT64_MAX, false, CAIRN_HAZARD_NOT_A_BOUNDARY},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cairn_vaddr at = {cases[i].at};
		print_message("case 0x%lx\n", (unsigned long)at.v);
		assert_string_equal(cairn_hazard_id(cairn_hazard_at(bin, at, cases[i].is_entry)),
				    cairn_hazard_id(cases[i].hazard));
	}
	cairn_binary_close(bin);
	eb_free(b);
}

static void listing_hazards_reports_every_failing_allocation(void **state)
{
	struct cairn_binary *bin;
	struct elf_builder *b = build_file(true, &bin);
	unsigned int n = 1;
	for (;; n++) {
		struct listed l = {0};
		struct cairn_err err = {0};
		alloc_fail_at(n);
		int rc = cairn_hazards(bin, list_one, &l, &err);
		if (!alloc_fail_end()) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
		assert_int_equal(err.code, -ENOMEM);
	}
	assert_true(n > 1);
	cairn_binary_close(bin);
	eb_free(b);
}

/* ---- second opinions ---- */

struct boundaries {
	struct cairn_binary *bin;
	const uint8_t *code;
	size_t n;
	uint64_t lo;
	uint8_t *bits;
};

static void boundaries_open(struct boundaries *b, const char *path)
{
	struct cairn_err err = {0};
	const struct elf_section *s = NULL;
	if (cairn_binary_open(path, NULL, &b->bin, &err) < 0 ||
	    elf_section(binary_main(b->bin), ".text", &s, &err) < 0)
		fail_msg("%s", err.msg);
	b->code = s->data;
	b->n = s->size;
	b->lo = s->addr.v;
	b->bits = calloc(1, b->n / 8 + 1);
	assert_int_equal(insn_boundaries(b->code, b->n, b->bits), 0);
}

static void boundaries_close(struct boundaries *b)
{
	free(b->bits);
	cairn_binary_close(b->bin);
}

static void boundaries_of_libc_are_those_of_objdump(void **state)
{
	static const char path[] = "/lib/x86_64-linux-gnu/libc.so.6";
	need("objdump");
	if (access(path, R_OK) != 0) {
		print_message("skipped: no %s\n", path);
		skip();
	}
	struct boundaries b;
	boundaries_open(&b, path);
	FILE *f = popen("objdump -d -w -j .text --no-show-raw-insn /lib/x86_64-linux-gnu/libc.so.6",
			"r");
	assert_non_null(f);
	char line[512];
	size_t n = 0, ours = 0;
	while (fgets(line, sizeof(line), f)) {
		unsigned long at;
		char colon;
		if (line[0] != ' ' || sscanf(line, " %lx%c", &at, &colon) != 2 || colon != ':')
			continue;
		if (!(b.bits[(at - b.lo) / 8] >> (at - b.lo) % 8 & 1))
			fail_msg("objdump has an instruction at 0x%lx, we have not", at);
		n++;
	}
	pclose(f);
	for (size_t i = 0; i < b.n; i++)
		ours += b.bits[i / 8] >> i % 8 & 1;
	print_message("%zu instructions\n", n);
	assert_true(n > 100000);
	assert_int_equal(ours, n);
	boundaries_close(&b);
}

/* The compiler itself says so: with -mno-red-zone nothing may be found, without it everything. */
static void red_zone_is_found_exactly_when_the_compiler_uses_it(void **state)
{
	static const char *const compilers[] = {"gcc", "clang"};
	static const char *const flags[] = {"-O0",
					    "-O0 -mno-red-zone",
					    "-O2",
					    "-O2 -mno-red-zone",
					    "-O2 -fno-omit-frame-pointer",
					    "-O2 -fno-omit-frame-pointer -mno-red-zone"};
	char dir[] = "/tmp/cairn-red-XXXXXX", cmd[512], path[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/r.c", dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("int leaf(int a, int b) { volatile int x[4] = {a, b, a, b}; return x[1] + x[2]; }\n",
	      f);
	fclose(f);
	size_t compiled = 0;
	for (size_t i = 0; i < ARRAY_SIZE(compilers) * ARRAY_SIZE(flags); i++) {
		const char *cc = compilers[i / ARRAY_SIZE(flags)],
			   *flag = flags[i % ARRAY_SIZE(flags)];
		snprintf(cmd, sizeof(cmd), "%s %s -c -o %s/r.o %s 2>/dev/null", cc, flag, dir,
			 path);
		if (system(cmd) != 0) {
			print_message("not compiled: %s %s\n", cc, flag);
			continue;
		}
		char object[64];
		snprintf(object, sizeof(object), "%s/r.o", dir);
		struct boundaries b;
		boundaries_open(&b, object);
		print_message("%s %s\n", cc, flag);
		assert_int_equal(insn_uses_red_zone(b.code, b.n), !strstr(flag, "-mno-red-zone"));
		boundaries_close(&b);
		compiled++;
	}
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	assert_int_equal(system(cmd), 0);
	if (!compiled) {
		print_message("skipped: neither gcc nor clang works here\n");
		skip();
	}
}

static void accesses_to_a_slot_are_told_apart(void **state)
{
	(void)state;
	static const uint8_t store[] = {0x48, 0x89, 0x44, 0x24, 0x10};   /* mov %rax, 0x10(%rsp) */
	static const uint8_t load[] = {0x8b, 0x44, 0x24, 0x14};          /* mov 0x14(%rsp), %eax */
	static const uint8_t add[] = {0x83, 0x44, 0x24, 0x10, 0x01};     /* addl $1, 0x10(%rsp) */
	static const uint8_t address[] = {0x48, 0x8d, 0x44, 0x24, 0x10}; /* lea 0x10(%rsp), %rax */
	const unsigned int sp = 7, bp = 6;
	struct insn_access a = insn_accesses(store, sizeof(store), sp, 0x10, 8);
	assert_true(a.stores && !a.loads);
	a = insn_accesses(store, sizeof(store), sp, 0x18, 8);
	assert_true(!a.stores && !a.loads);
	a = insn_accesses(store, sizeof(store), bp, 0x10, 8);
	assert_true(!a.stores && !a.loads);
	a = insn_accesses(load, sizeof(load), sp, 0x10, 8);
	assert_true(a.loads && !a.stores && !a.takes_address);
	a = insn_accesses(add, sizeof(add), sp, 0x10, 8);
	assert_true(a.loads && a.stores);
	a = insn_accesses(address, sizeof(address), sp, 0x10, 8);
	assert_true(a.loads && !a.stores && a.takes_address);
	a = insn_accesses(store, 2, sp, 0x10, 8);
	assert_true(a.loads && a.stores);
}

static void a_register_that_is_stored_in_a_slot_is_told(void **state)
{
	(void)state;
	enum { SP = 7, IN_RSI = 4, IN_R9 = 9 };
	static const struct {
		uint8_t n, code[8];
		int64_t off;
		unsigned int reg, bytes; /* 0: it is none */
	} cases[] = {
		{5, {0x48, 0x89, 0x74, 0x24, 0x10}, 0x10, IN_RSI, 8}, /* mov %rsi,0x10(%rsp) */
		{4, {0x89, 0x74, 0x24, 0x10}, 0x10, IN_RSI, 4},
		{4, {0x44, 0x89, 0x0c, 0x24}, 0, IN_R9, 4}, /* mov %r9d,(%rsp) */
		{5, {0x40, 0x88, 0x74, 0x24, 0x10}, 0x10, IN_RSI, 1},
		{5, {0x48, 0x89, 0x74, 0x24, 0x10}, 0x0c, 0, 0},       /* another slot */
		{5, {0x48, 0x8b, 0x74, 0x24, 0x10}, 0x10, 0, 0},       /* a load */
		{5, {0x48, 0x01, 0x74, 0x24, 0x10}, 0x10, 0, 0},       /* add */
		{4, {0x88, 0x64, 0x24, 0x10}, 0x10, 0, 0},             /* mov %ah,0x10(%rsp) */
		{8, {0xc7, 0x44, 0x24, 0x10, 1, 0, 0, 0}, 0x10, 0, 0}, /* a constant */
		{4, {0x48, 0x89, 0x74, 0x24}, 0x10, 0, 0},             /* cut */
		{1, {0x56}, 0, 0, 0},                                  /* push %rsi */
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int reg = 0, bytes = 0;
		bool is_one = insn_stores_register(cases[i].code, cases[i].n, SP, cases[i].off,
						   &reg, &bytes);
		if (is_one != (cases[i].bytes != 0) || reg != cases[i].reg ||
		    bytes != cases[i].bytes)
			fail_msg("case %zu: %d, register %u, %u bytes", i, is_one, reg, bytes);
	}
}

static void what_carries_a_number_on_is_known(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct {
		uint8_t n, code[8];
		struct insn_carry is;
	} cases[] = {
		{3, {0x48, 0x29, 0xda}, {CARRY_DIFFERENCE, 3, 1, 0, 0}},	 /* sub %rbx,%rdx */
		{3, {0x48, 0x2b, 0xd3}, {CARRY_DIFFERENCE, 3, 1, 0, 0}},	 /* the other form */
		{2, {0x29, 0xda}, {CARRY_DIFFERENCE, 3, 1, 0, 0}},		 /* sub %ebx,%edx */
		{2, {0x29, 0xd2}, {CARRY_NOTHING, 0, 0, 0, 0}},			 /* sub %edx,%edx */
		{4, {0x48, 0x83, 0xea, 0x01}, {CARRY_NOTHING, 0, 0, 0, 0}},	 /* sub $1,%rdx */
		{3, {0x48, 0x89, 0xda}, {CARRY_COPY, 3, 1, 0, 0}},		 /* mov %rbx,%rdx */
		{2, {0x88, 0xda}, {CARRY_NOTHING, 0, 0, 0, 0}},			 /* mov %bl,%dl */
		{5, {0x48, 0x89, 0x4c, 0x24, 0x08}, {CARRY_SAVE, 2, 0, 7, 8}},	 /* mov %rcx,8(%rsp) */
		{4, {0x48, 0x8b, 0x14, 0x24}, {CARRY_RESTORE, 0, 1, 7, 0}},	 /* mov (%rsp),%rdx */
		{4, {0x48, 0x8b, 0x55, 0xf8}, {CARRY_RESTORE, 0, 1, 6, -8}},	 /* mov -8(%rbp),%rdx */
		{4, {0x48, 0x89, 0x50, 0x18}, {CARRY_NOTHING, 0, 0, 0, 0}},	 /* mov %rdx,0x18(%rax) */
		{5, {0x48, 0x89, 0x14, 0xc4}, {CARRY_NOTHING, 0, 0, 0, 0}},	 /* mov %rdx,(%rsp,%rax,8) */
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct insn_carry c;
		const struct insn_carry *is = &cases[i].is;
		struct insn insn;
		assert_true(insn_carry(cases[i].code, cases[i].n, 0, &insn, &c));
		bool same =
			c.what == is->what &&
			(is->what == CARRY_NOTHING || is->what == CARRY_RESTORE ||
			 c.from == is->from) &&
			(is->what == CARRY_NOTHING || is->what == CARRY_SAVE || c.to == is->to) &&
			(!is->base || (c.base == is->base && c.off == is->off));
		if (!same)
			fail_msg("case %zu: %d, %u to %u, %u%+lld", i, c.what, c.from, c.to, c.base,
				 (long long)c.off);
	}
	assert_false(insn_carry((const uint8_t[]){0x48, 0x89}, 2, 0, &(struct insn){0},
				&(struct insn_carry){0}));
}

static void copies_of_registers_are_told(void **state)
{
	/* clang-format off */
	static const struct {
		uint8_t code[8];
		size_t n;
		bool is_store, is_load, is_copy, is_bit;
		unsigned int reg, bytes;
		int64_t off;
	} cases[] = {
		{{0x48, 0x89, 0x7c, 0x24, 0x10}, 5, true, false, false, false, 5, 8, 0x10}, /* mov %rdi,0x10(%rsp) */
		{{0x88, 0x44, 0x24, 0x07}, 4, true, false, false, false, 0, 1, 7},	      /* mov %al,7(%rsp) */
		{{0x8b, 0x7c, 0x24, 0x10}, 4, false, true, false, false, 5, 4, 0x10},	      /* mov 0x10(%rsp),%edi */
		{{0x40, 0x88, 0xf0}, 3, false, false, true, false, 4, 1, 0},		      /* mov %sil,%al */
		{{0x88, 0xe0}, 2, false, false, false, false, 0, 0, 0},			      /* mov %ah,%al */
		{{0x24, 0x01}, 2, false, false, false, true, 0, 0, 0},			      /* and $1,%al */
		{{0x24, 0x03}, 2, false, false, false, false, 0, 0, 0},			      /* and $3,%al */
		{{0x83, 0xe0, 0x01}, 3, false, false, false, false, 0, 0, 0},		      /* and $1,%eax */
		{{0x48, 0x8b, 0x3c, 0x04}, 4, false, false, false, false, 0, 0, 0},	      /* mov (%rsp,%rax),%rdi */
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct insn_slot_move m = {0};
		unsigned int to = 99, from = 99, bytes = 99;
		bool moves = insn_moves_slot(cases[i].code, cases[i].n, 7, &m);
		assert_int_equal(moves, cases[i].is_store || cases[i].is_load);
		if (moves) {
			assert_int_equal(m.is_store, cases[i].is_store);
			assert_int_equal(m.reg, cases[i].reg);
			assert_int_equal(m.bytes, cases[i].bytes);
			assert_int_equal(m.off, cases[i].off);
		}
		assert_int_equal(
			insn_copies_register(cases[i].code, cases[i].n, &to, &from, &bytes),
			cases[i].is_copy);
		if (cases[i].is_copy) {
			assert_int_equal(to, 0);
			assert_int_equal(from, cases[i].reg);
			assert_int_equal(bytes, cases[i].bytes);
		}
		assert_int_equal(insn_keeps_lowest_bit(cases[i].code, cases[i].n, &to),
				 cases[i].is_bit);
	}
}

static void an_address_in_the_frame_is_told_from_others(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct {
		unsigned int reg; /* as DWARF counts: 7 rsp, 6 rbp; 0: none */
		int64_t off;
		uint8_t n, code[8];
	} cases[] = {
		{7, 8, 5, {0x48, 0x8d, 0x7c, 0x24, 0x08}},	/* lea 8(%rsp),%rdi */
		{7, 8, 5, {0x4c, 0x8d, 0x44, 0x24, 0x08}},	/* lea 8(%rsp),%r8 */
		{7, 8, 5, {0x48, 0x8d, 0x7c, 0x04, 0x08}},	/* lea 8(%rsp,%rax,1),%rdi */
		{6, -16, 4, {0x48, 0x8d, 0x45, 0xf0}},	/* lea -16(%rbp),%rax */
		{7, 0, 3, {0x48, 0x89, 0xe7}},		/* mov %rsp,%rdi */
		{7, 0, 3, {0x48, 0x8b, 0xfc}},		/* the same, encoded the other way */
		{6, 0, 3, {0x49, 0x89, 0xe8}},		/* mov %rbp,%r8 */
		{0, 0, 2, {0x89, 0xe7}},			/* mov %esp,%edi: no address */
		{0, 0, 3, {0x48, 0x89, 0xfc}},			/* mov %rdi,%rsp */
		{0, 0, 3, {0x4c, 0x89, 0xe7}},		/* mov %r12,%rdi */
		{0, 0, 4, {0x49, 0x8d, 0x45, 0xf0}},		/* lea -16(%r13),%rax */
		{0, 0, 5, {0x49, 0x8d, 0x44, 0x24, 0x08}},	/* lea 8(%r12),%rax */
		{0, 0, 7, {0x48, 0x8d, 0x05, 1, 0, 0, 0}},	/* lea 1(%rip),%rax */
		{0, 0, 5, {0x48, 0x8b, 0x7c, 0x24, 0x08}},	/* mov 8(%rsp),%rdi */
		{0, 0, 5, {0x48, 0x89, 0x7c, 0x24, 0x08}},	/* mov %rdi,8(%rsp) */
		{0, 0, 1, {0x48}}, {0, 0, 2, {0x48, 0x8d}}, {0, 0, 3, {0x48, 0x8d, 0x3c}}, {0, 0, 0, {0}},
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned int reg = 0;
		int64_t off = 0;
		bool is_one = insn_takes_frame_address(cases[i].code, cases[i].n, &reg, &off);
		assert_int_equal(is_one, cases[i].reg != 0);
		if (is_one) {
			assert_int_equal(reg, cases[i].reg);
			assert_int_equal(off, cases[i].off);
		}
	}
}

static void a_switch_s_jump_is_told_from_others(void **state)
{
	(void)state;
#define ENTRY 0x48, 0x63, 0x04, 0x82 /* movslq (%rdx,%rax,4),%rax */
#define SUM   0x48, 0x01, 0xd0       /* add %rdx,%rax */
#define JUMP  0xff, 0xe0             /* jmp *%rax */
	/* clang-format off */
	static const struct {
		bool is_table;
		uint8_t n, code[24];
	} cases[] = {
		{true, 9, {ENTRY, SUM, JUMP}},
		{true, 10, {ENTRY, SUM, 0x3e, JUMP}},					/* notrack */
		{true, 12, {ENTRY, 0x45, 0x31, 0xc0, SUM, JUMP}},			/* xor %r8d,%r8d between */
		{true, 9, {0x4c, 0x63, 0x1c, 0x82, 0x4c, 0x01, 0xda, 0xff, 0xe2}},	/* movslq (%rdx,%rax,4),%r11; add %r11,%rdx; jmp *%rdx */
		{false, 6, {ENTRY, JUMP}},
		{false, 5, {SUM, JUMP}},
		{false, 9, {ENTRY, SUM, 0xff, 0xe2}},					/* jmp *%rdx */
		{false, 12, {ENTRY, SUM, 0x48, 0x8b, 0x00, JUMP}},			/* mov (%rax),%rax: a pointer in the end */
		{false, 9, {0x48, 0x8b, 0x04, 0xc2, SUM, JUMP}},			/* whole words: mov (%rdx,%rax,8),%rax */
		{false, 14, {ENTRY, SUM, 0xe8, 0, 0, 0, 0, JUMP}},			/* call between */
		{false, 7, {ENTRY, SUM}},						/* no jump */
		{false, 7, {0xff, 0x24, 0xc5, 0, 0x40, 0, 0}},				/* jmp *0x4000(,%rax,8) */
		{false, 8, {ENTRY, SUM, 0xff}},
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (insn_is_table_jump(cases[i].code, cases[i].n) != cases[i].is_table)
			fail_msg("case %zu", i);
	}
	assert_false(insn_is_table_jump(cases[0].code, 0));
#undef ENTRY
#undef SUM
#undef JUMP
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_says_what_a_decode_says_for_every_opcode_and_modrm),
		cmocka_unit_test(a_step_says_what_a_decode_says_of_code_that_ends_early),
		cmocka_unit_test(an_instruction_has_no_registers_but_those_that_it_names),
		cmocka_unit_test(many_steps_are_single_ones_one_after_the_other),
		cmocka_unit_test(a_sweep_finds_what_a_decode_finds_for_every_opcode_and_modrm),
		cmocka_unit_test(bytes_that_are_no_instruction_may_write_anything),
		cmocka_unit_test(where_values_come_from),
		cmocka_unit_test(registers_read_and_written_are_those_of_all_operands),
		cmocka_unit_test(string_instruction_with_rep_is_marked),
		cmocka_unit_test(packed_arithmetic_is_told_from_what_scalar_code_has),
		cmocka_unit_test(flow_and_targets),
		cmocka_unit_test(an_instruction_that_is_cut_short_does_not_decode),
		cmocka_unit_test(register_names),
		cmocka_unit_test(uprobe_rules),
		cmocka_unit_test(every_hazard_has_its_own_word_and_sentence),
		cmocka_unit_test(boundaries_step_over_what_does_not_decode),
		cmocka_unit_test(red_zone_of_hand_written_functions),
		cmocka_unit_test(place_in_a_function_must_be_a_boundary),
		cmocka_unit_test(hazards_of_a_file_are_those_of_its_functions),
		cmocka_unit_test(hazards_of_a_stripped_file_are_those_of_all_its_code),
		cmocka_unit_test(hazard_at_an_address),
		cmocka_unit_test(listing_hazards_reports_every_failing_allocation),
		cmocka_unit_test(boundaries_of_libc_are_those_of_objdump),
		cmocka_unit_test(red_zone_is_found_exactly_when_the_compiler_uses_it),
		cmocka_unit_test(accesses_to_a_slot_are_told_apart),
		cmocka_unit_test(a_register_that_is_stored_in_a_slot_is_told),
		cmocka_unit_test(what_carries_a_number_on_is_known),
		cmocka_unit_test(copies_of_registers_are_told),
		cmocka_unit_test(an_address_in_the_frame_is_told_from_others),
		cmocka_unit_test(a_switch_s_jump_is_told_from_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
