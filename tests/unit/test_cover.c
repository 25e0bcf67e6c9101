/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BPF programs at functions that were inlined: which registers they read, and the code before them
 *
 * The code is run by a small machine here. What it puts into a register must be what the reference
 * interpreter of fetch programs gives; and a program with its prologue must return what it returns
 * alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "alloc_fail.h"
#include "cover/command.h"
#include "cover/cover.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* ---- instructions ---- */

#define INSN(c, d, s, o, i)                                                                        \
	{                                                                                          \
		.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)                \
	}
#define MOV(d, s)       INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define SET(d, i)       INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define ADD(d, i)       INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define ADD_REG(d, s)   INSN(BPF_ALU64 | BPF_ADD | BPF_X, d, s, 0, 0)
#define LOAD(d, s, o)   INSN(BPF_LDX | BPF_MEM | BPF_DW, d, s, o, 0)
#define LOAD_4(d, s, o) INSN(BPF_LDX | BPF_MEM | BPF_W, d, s, o, 0)
#define STORE(d, s, o)  INSN(BPF_STX | BPF_MEM | BPF_DW, d, s, o, 0)
#define HELPER(n)       INSN(BPF_JMP | BPF_CALL, 0, 0, 0, n)
#define CALL(to)        INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, to)
#define IF_ZERO(r, to)  INSN(BPF_JMP | BPF_JEQ | BPF_K, r, 0, to, 0)
#define GOTO(to)        INSN(BPF_JMP | BPF_JA, 0, 0, to, 0)
#define EXIT            INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

enum { DI = 14, SI = 13, DX = 12, CX = 11, IP = WORD_IP };

/* ---- the machine ---- */

struct machine {
	const struct bpf_insn *insns;
	size_t n;
	uint64_t context[WORDS];
	uint64_t seen; /* context of the last helper that wants it, as it was handed over */
	uint8_t stacks[4][512];
	unsigned int depth;
	unsigned int steps;
	bool has_fault;
};

static uint64_t extended(const void *from, uint8_t size)
{
	uint64_t v = 0;

	memcpy(&v, from, size == BPF_B ? 1 : size == BPF_H ? 2 : size == BPF_W ? 4 : 8);
	return v;
}

static void *at(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static uint64_t alu(uint8_t op, uint64_t a, uint64_t b)
{
	switch (op) {
	case BPF_MOV:
		return b;
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return a << (b & 63);
	case BPF_RSH:
		return a >> (b & 63);
	case BPF_ARSH:
		return (uint64_t)((int64_t)a >> (b & 63));
	case BPF_NEG:
		return -a;
	}
	fail();
	return 0;
}

static bool holds(uint8_t op, uint64_t a, uint64_t b)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (op) {
	case BPF_JA:
		return true;
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JLE:
		return a <= b;
	case BPF_JSLT:
		return x < y;
	case BPF_JSLE:
		return x <= y;
	case BPF_JSGT:
		return x > y;
	case BPF_JSGE:
		return x >= y;
	}
	fail();
	return false;
}

/* All memory is here; the lowest page cannot be read. */
static uint64_t call_helper(struct machine *m, int32_t helper, uint64_t *r)
{
	if (helper == BPF_FUNC_get_stackid) {
		m->seen = r[1];
		return 1;
	}
	if (helper == BPF_FUNC_get_prandom_u32)
		return 5;
	assert_true(helper == BPF_FUNC_probe_read_kernel || helper == BPF_FUNC_probe_read_user);
	if (r[3] < 4096)
		return (uint64_t)-EFAULT;
	memcpy(at(r[1]), at(r[3]), r[2]);
	return 0;
}

static uint64_t run_function(struct machine *m, size_t pc, uint64_t r1);

static void run_call(struct machine *m, size_t pc, uint64_t *r)
{
	const struct bpf_insn *insn = &m->insns[pc];

	r[0] = insn->src_reg == BPF_PSEUDO_CALL ? run_function(m, pc + 1 + (size_t)insn->imm, r[1])
						: call_helper(m, insn->imm, r);
	for (int i = 1; i <= 5; i++)
		r[i] = 0xdead0000 + (uint64_t)i;
}

static void access_memory(const struct bpf_insn *insn, uint64_t *r)
{
	uint8_t class = BPF_CLASS(insn->code), size = BPF_SIZE(insn->code);
	size_t n = size == BPF_B ? 1 : size == BPF_H ? 2 : size == BPF_W ? 4 : 8;
	uint64_t value = class == BPF_ST ? (uint64_t)insn->imm : r[insn->src_reg];

	if (class == BPF_LDX)
		r[insn->dst_reg] = extended(at(value + (uint64_t)insn->off), size);
	else
		memcpy(at(r[insn->dst_reg] + (uint64_t)insn->off), &value, n);
}

static size_t run_one(struct machine *m, size_t pc, uint64_t *r)
{
	const struct bpf_insn *insn = &m->insns[pc];
	uint64_t b = BPF_SRC(insn->code) == BPF_X ? r[insn->src_reg] : (uint64_t)insn->imm;

	switch (BPF_CLASS(insn->code)) {
	case BPF_LD:
		r[insn->dst_reg] = (uint32_t)insn->imm | (uint64_t)(uint32_t)insn[1].imm << 32;
		return pc + 2;
	case BPF_ALU64:
		r[insn->dst_reg] = alu(BPF_OP(insn->code), r[insn->dst_reg], b);
		return pc + 1;
	case BPF_JMP:
		if (BPF_OP(insn->code) == BPF_CALL)
			run_call(m, pc, r);
		else if (holds(BPF_OP(insn->code), r[insn->dst_reg], b))
			return pc + 1 + (size_t)insn->off;
		return pc + 1;
	}
	if (insn->code == (BPF_STX | BPF_ATOMIC | BPF_DW))
		m->has_fault = true;
	else
		access_memory(insn, r);
	return pc + 1;
}

static uint64_t run_function(struct machine *m, size_t pc, uint64_t r1)
{
	uint64_t r[11] = {0};

	assert_true(m->depth < ARRAY_SIZE(m->stacks));
	memset(m->stacks[m->depth], 0xee, sizeof(m->stacks[0]));
	r[1] = r1;
	r[10] = (uint64_t)(uintptr_t)m->stacks[m->depth++] + 512;
	while (m->insns[pc].code != (BPF_JMP | BPF_EXIT)) {
		assert_true(pc < m->n && m->steps++ < 10000);
		pc = run_one(m, pc, r);
	}
	m->depth--;
	return r[0];
}

static uint64_t run_insns(struct machine *m, const struct bpf_insn *insns, size_t n)
{
	m->insns = insns;
	m->n = n;
	m->depth = m->steps = 0;
	return run_function(m, 0, (uint64_t)(uintptr_t)m->context);
}

/* ---- what a program reads ---- */

static struct cover_use look(const struct bpf_insn *insns, size_t n)
{
	struct cover_use use;

	assert_int_equal(use_find(insns, n, &use, NULL), 0);
	return use;
}

static void expect_words(const struct bpf_insn *insns, size_t n, uint32_t words, uint32_t n_calls)
{
	struct cover_use use = look(insns, n);

	assert_null(use.why);
	assert_int_equal(use.words, words);
	assert_int_equal(use.n_context_calls, n_calls);
	use_fini(&use);
}

static void expect_why(const struct bpf_insn *insns, size_t n, const char *why)
{
	struct cover_use use = look(insns, n);

	assert_non_null(use.why);
	assert_non_null(strstr(use.why, why));
	use_fini(&use);
}

#define WORDS_OF(insns, words, n_calls) expect_words(insns, ARRAY_SIZE(insns), words, n_calls)
#define WHY_OF(insns, why)              expect_why(insns, ARRAY_SIZE(insns), why)

static void the_registers_that_are_read_are_known(void **state)
{
	(void)state;
	static const struct bpf_insn direct[] = {LOAD(0, 1, 8 * DI), EXIT};
	static const struct bpf_insn half[] = {LOAD_4(0, 1, 8 * SI + 4), EXIT};
	static const struct bpf_insn moved[] = {MOV(6, 1), ADD(6, 8), LOAD(0, 6, 8 * DI), EXIT};
	static const struct bpf_insn kept[] = {STORE(10, 1, -16), HELPER(BPF_FUNC_get_prandom_u32),
					       LOAD(6, 10, -16), LOAD(0, 6, 8 * DX), EXIT};
	static const struct bpf_insn paths[] = {
		MOV(6, 1), LOAD(2, 1, 8 * CX), IF_ZERO(2, 2), SET(0, 0),
		GOTO(1),   LOAD(0, 6, 8 * IP), EXIT};
	static const struct bpf_insn probed[] = {MOV(6, 1),
						 MOV(3, 1),
						 ADD(3, 8 * SI),
						 SET(2, 16),
						 MOV(1, 10),
						 ADD(1, -16),
						 HELPER(BPF_FUNC_probe_read_kernel),
						 SET(0, 0),
						 EXIT};
	static const struct bpf_insn in_function[] = {CALL(1), EXIT, LOAD(0, 1, 8 * DI), EXIT};
	static const struct bpf_insn none[] = {SET(0, 0), EXIT};

	WORDS_OF(direct, 1u << DI, 0);
	WORDS_OF(half, 1u << SI, 0);
	WORDS_OF(moved, 1u << (DI + 1), 0);
	WORDS_OF(kept, 1u << DX, 0);
	WORDS_OF(paths, 1u << CX | 1u << IP, 0);
	WORDS_OF(probed, 1u << SI | 1u << DI, 0);
	WORDS_OF(in_function, 1u << DI, 0);
	WORDS_OF(none, 0, 0);
}

static void calls_that_have_the_context_are_known(void **state)
{
	(void)state;
	static const struct bpf_insn once[] = {HELPER(BPF_FUNC_get_stackid), EXIT};
	static const struct bpf_insn twice[] = {MOV(6, 1), HELPER(BPF_FUNC_get_stackid), MOV(1, 6),
						HELPER(BPF_FUNC_perf_event_output), EXIT};
	static const struct bpf_insn left_over[] = {HELPER(BPF_FUNC_get_prandom_u32), EXIT};

	WORDS_OF(once, 0, 1);
	WORDS_OF(twice, 0, 2);
	WORDS_OF(left_over, 0, 0);
}

static void what_cannot_be_told_is_refused(void **state)
{
	(void)state;
	static const struct bpf_insn unknown_offset[] = {HELPER(BPF_FUNC_get_prandom_u32), EXIT};
	static const struct bpf_insn either[] = {MOV(6, 1),     LOAD(2, 1, 8 * DI), MOV(3, 10),
						 IF_ZERO(2, 1), MOV(6, 3),          LOAD(0, 6, -8),
						 EXIT};
	static const struct bpf_insn sum[] = {MOV(6, 1), LOAD(2, 1, 8 * DI), ADD_REG(6, 2),
					      LOAD(0, 6, 0), EXIT};
	static const struct bpf_insn shifted[] = {ADD(1, 8), HELPER(BPF_FUNC_get_stackid), EXIT};
	static const struct bpf_insn in_map[] = {MOV(6, 1), HELPER(BPF_FUNC_map_lookup_elem),
						 STORE(0, 6, 0), EXIT};
	static const struct bpf_insn handed_on[] = {
		STORE(10, 1, -8), MOV(1, 10),         ADD(1, -8), CALL(2), SET(0, 0), EXIT,
		LOAD(2, 1, 0),    LOAD(0, 2, 8 * DI), EXIT};
	static const struct bpf_insn beyond[] = {LOAD(0, 1, 8 * WORDS), EXIT};
	static const struct bpf_insn written[] = {SET(2, 0), STORE(1, 2, 8 * DI), EXIT};
	static const struct bpf_insn returned[] = {MOV(0, 1), EXIT};
	static const struct bpf_insn unbounded[] = {MOV(3, 1), LOAD(2, 1, 0), MOV(1, 10),
						    HELPER(BPF_FUNC_probe_read_kernel), EXIT};
	static const struct bpf_insn tail[] = {HELPER(BPF_FUNC_tail_call), EXIT};
	static const struct bpf_insn where[] = {HELPER(BPF_FUNC_get_func_ip), EXIT};
	static const struct bpf_insn result[] = {HELPER(BPF_FUNC_override_return), EXIT};
	static const struct bpf_insn out[] = {GOTO(7), EXIT};
	static const struct bpf_insn end[] = {SET(0, 0)};

	WORDS_OF(unknown_offset, 0, 0);
	WHY_OF(either, "not understood");
	WHY_OF(sum, "not understood");
	WHY_OF(shifted, "not understood");
	WHY_OF(in_map, "not understood");
	WHY_OF(handed_on, "keeps its context in memory");
	WHY_OF(beyond, "not understood");
	WHY_OF(written, "not understood");
	WHY_OF(returned, "not understood");
	WHY_OF(unbounded, "not understood");
	WHY_OF(tail, "tail-calls");
	WHY_OF(where, "address");
	WHY_OF(result, "result");
	WHY_OF(out, "leads out");
	WHY_OF(end, "leads out");
	expect_why(NULL, 0, "not there");
	expect_why(end, COVER_INSNS_MAX + 1, "too long");
}

/* ---- a program after its prologue ---- */

/* It reads no argument, so its prologue needs no trace. */
static struct cover_built build(const struct bpf_insn *insns, size_t n)
{
	static const struct cover_site site = {0};
	struct cover_use use = look(insns, n);
	struct cover_built built;

	assert_null(use.why);
	assert_int_equal(build_program(insns, n, &use, &site, 0, &built, NULL), 0);
	use_fini(&use);
	return built;
}

static void expect_same_result(const struct bpf_insn *insns, size_t n)
{
	struct cover_built built = build(insns, n);
	struct machine m = {.seen = 0};

	assert_null(built.why);
	for (uint64_t ip = 0; ip < 3; ip++) {
		m.context[WORD_IP] = ip;
		m.context[WORD_CS] = 3 - ip;
		m.seen = 0;
		uint64_t alone = run_insns(&m, insns, n), had = m.seen;
		m.seen = 0;
		assert_int_equal(run_insns(&m, built.code.insns.p, built.code.insns.n), alone);
		/* A helper has the probe's own registers. */
		assert_int_equal(m.seen, had);
	}
	built_fini(&built);
}

static void a_program_does_after_its_prologue_what_it_does_alone(void **state)
{
	(void)state;
	static const struct bpf_insn forth[] = {MOV(6, 1),
						LOAD(7, 1, 8 * IP),
						IF_ZERO(7, 3),
						HELPER(BPF_FUNC_get_stackid),
						MOV(1, 6),
						HELPER(BPF_FUNC_get_stackid),
						LOAD(0, 6, 8 * WORD_CS),
						ADD_REG(0, 7),
						EXIT};
	static const struct bpf_insn back[] = {
		MOV(6, 1),  LOAD(7, 1, 8 * IP),
		SET(8, 0),  ADD(8, 1),
		MOV(1, 6),  HELPER(BPF_FUNC_get_stackid),
		ADD(7, -1), INSN(BPF_JMP | BPF_JSGT | BPF_K, 7, 0, -5, 0),
		MOV(0, 8),  EXIT};
	static const struct bpf_insn functions[] = {MOV(6, 1),
						    CALL(4),
						    MOV(1, 6),
						    HELPER(BPF_FUNC_get_stackid),
						    LOAD(0, 6, 8 * IP),
						    EXIT,
						    HELPER(BPF_FUNC_get_stackid),
						    EXIT};
	static const struct bpf_insn nothing[] = {SET(0, 7), EXIT};

	expect_same_result(forth, ARRAY_SIZE(forth));
	expect_same_result(back, ARRAY_SIZE(back));
	expect_same_result(functions, ARRAY_SIZE(functions));
	expect_same_result(nothing, ARRAY_SIZE(nothing));
}

static void a_callback_is_found_where_it_is_now(void **state)
{
	(void)state;
	static const struct bpf_insn insns[] = {
		HELPER(BPF_FUNC_get_stackid),
		INSN(BPF_LD | BPF_IMM | BPF_DW, 2, BPF_PSEUDO_FUNC, 0, 3),
		INSN(0, 0, 0, 0, 0),
		SET(0, 0),
		EXIT,
		SET(0, 1),
		EXIT};
	struct cover_built built = build(insns, ARRAY_SIZE(insns));
	size_t last = built.code.insns.n - 2;

	assert_int_equal(built.functions.n, 3);
	assert_int_equal(built.functions.p[0], 0);
	assert_int_equal(built.functions.p[2], last);
	for (size_t i = 0; i < last; i++)
		if (built.code.insns.p[i].src_reg == BPF_PSEUDO_FUNC &&
		    built.code.insns.p[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			assert_int_equal(i + 1 + (size_t)built.code.insns.p[i].imm, last);
	built_fini(&built);
}

static void without_memory_nothing_is_built(void **state)
{
	(void)state;
	static const struct bpf_insn insns[] = {
		HELPER(BPF_FUNC_get_stackid),
		INSN(BPF_LD | BPF_IMM | BPF_DW, 2, BPF_PSEUDO_FUNC, 0, 3),
		INSN(0, 0, 0, 0, 0),
		SET(0, 0),
		EXIT,
		SET(0, 1),
		EXIT};
	static const struct cover_site site = {0};

	for (unsigned int n = 1;; n++) {
		struct cover_built built = {.why = NULL};
		struct cover_use use;
		alloc_fail_at(n);
		int r = use_find(insns, ARRAY_SIZE(insns), &use, NULL);
		if (!r)
			r = build_program(insns, ARRAY_SIZE(insns), &use, &site, 0, &built, NULL);
		bool has_failed = alloc_fail_end();
		built_fini(&built);
		use_fini(&use);
		assert_int_equal(r, has_failed ? -ENOMEM : 0);
		if (!has_failed)
			break;
	}
}

/* ---- what a command tells ---- */

struct told {
	struct cairn_cover_request head;
	char bytes[16];
};

static struct told told(uint32_t kind, const char *text)
{
	struct told t = {.head = {.kind = kind, .program = 7}};

	memcpy(t.bytes, text, strlen(text));
	t.head.size = (uint32_t)(sizeof(t.head) + strlen(text));
	return t;
}

static int take(const struct told *t, size_t n, struct request *ret)
{
	return request_take((const uint8_t *)t, n, ret, NULL);
}

static void a_request_is_taken_when_it_is_whole(void **state)
{
	(void)state;
	const struct told t = told(CAIRN_COVER_ATTACH, "vfs_read");
	struct request r;

	for (size_t n = 0; n < t.head.size; n++)
		assert_int_equal(take(&t, n, &r), 0);
	assert_int_equal(take(&t, sizeof(t), &r), t.head.size);
	assert_int_equal(r.head.program, 7);
	assert_int_equal(r.n, 8);
	assert_memory_equal(r.bytes, "vfs_read", 8);
}

static void a_request_that_is_none_is_refused(void **state)
{
	(void)state;
	struct told t = told(CAIRN_COVER_ATTACH, "vfs_read");
	struct request r;

	t.bytes[3] = '\0';
	assert_int_equal(take(&t, sizeof(t), &r), -EBADMSG);
	t = told(CAIRN_COVER_FIND, "");
	assert_int_equal(take(&t, sizeof(t), &r), -EBADMSG);
	t = told(CAIRN_COVER_LOADED, "not8");
	assert_int_equal(take(&t, sizeof(t), &r), -EBADMSG);
	t = told(9, "");
	assert_int_equal(take(&t, sizeof(t), &r), -EBADMSG);
	t = told(CAIRN_COVER_DETACH, "");
	t.head.size = sizeof(t.head) - 1;
	assert_int_equal(take(&t, sizeof(t), &r), -EBADMSG);
	t.head.size = CAIRN_COVER_REQUEST_MAX + 1;
	assert_int_equal(take(&t, sizeof(t), &r), -EBADMSG);
}

static void programs_are_kept_or_there_is_no_memory(void **state)
{
	(void)state;
	const struct told t = told(CAIRN_COVER_LOADED, "12345678");
	struct loaded loaded = {0};
	struct request r;
	int e = -ENOMEM;

	assert_int_equal(take(&t, sizeof(t), &r), t.head.size);
	for (unsigned int n = 1; e; n++) {
		alloc_fail_at(n);
		e = loaded_keep(&loaded, &r, NULL);
		assert_int_equal(e, alloc_fail_end() ? -ENOMEM : 0);
	}
	/* The same number again is another program of that number. */
	assert_int_equal(loaded_keep(&loaded, &r, NULL), 0);
	assert_int_equal(loaded.programs.n, 1);
	assert_int_equal(loaded.programs.p[0].n, 1);
	loaded_fini(&loaded);
}

/* ---- one argument ---- */

static uint64_t state_;

/* xorshift: the same numbers in each run. */
static uint64_t random_number(void)
{
	state_ ^= state_ << 13;
	state_ ^= state_ >> 7;
	state_ ^= state_ << 17;
	return state_;
}

static uint64_t memory[16];

static int read_here(void *ctx, uint64_t from, void *to, size_t n)
{
	(void)ctx;
	if (from < 4096)
		return -1;
	memcpy(to, at(from), n);
	return 0;
}

/* Of a code, with operands at random; small shifts and those by 64 and more among them. */
static struct fetch_op random_op(uint8_t code)
{
	struct fetch_op op = {.code = code, .size = (uint8_t)(1 + random_number() % 8)};

	op.imm = random_number() % 2 ? random_number() % 80 : random_number();
	op.reg = (uint8_t)(random_number() % 16);
	if (code == FETCH_SAVE || (code >= FETCH_ADD && random_number() % 3 == 0))
		op.reg = (uint8_t)(FETCH_SLOT + random_number() % 2);
	if (code >= FETCH_ADD && random_number() % 2)
		op.flags = FETCH_F_FILE;
	if (code >= FETCH_ADD && random_number() % 2)
		op.flags |= FETCH_F_SWAP;
	return op;
}

static const uint8_t codes[] = {
	FETCH_REG, FETCH_CONST, FETCH_SEXT, FETCH_ZEXT, FETCH_NEG, FETCH_NOT, FETCH_SAVE, FETCH_ADD,
	FETCH_SUB, FETCH_MUL,   FETCH_AND,  FETCH_OR,   FETCH_XOR, FETCH_SHL, FETCH_SHR,  FETCH_SAR,
	FETCH_EQ,  FETCH_NE,    FETCH_LT,   FETCH_LE,   FETCH_GT,  FETCH_GE};

/* Both slots first, then some operations, a load or a copy now and then, and a store. */
static uint32_t random_ops(struct fetch_op *ops, uint32_t n_bytes, bool is_unreadable)
{
	uint32_t n = 0, of = (uint32_t)(random_number() % 8);
	uint64_t from = is_unreadable ? 8 : (uint64_t)(uintptr_t)&memory[random_number() % 8];

	for (uint8_t i = 0; i < 2; i++) {
		ops[n++] = random_op(FETCH_REG);
		ops[n++] = (struct fetch_op){.code = FETCH_SAVE, .reg = (uint8_t)(FETCH_SLOT + i)};
	}
	if (random_number() % 2 || is_unreadable) {
		ops[n++] = (struct fetch_op){.code = FETCH_CONST, .imm = from - 8};
		ops[n++] = (struct fetch_op){.code = FETCH_ADD, .imm = 8};
		if (random_number() % 2) {
			ops[n++] = (struct fetch_op){.code = FETCH_COPY,
						     .size = (uint8_t)__builtin_ctz(n_bytes)};
			return n;
		}
		ops[n++] = (struct fetch_op){.code = FETCH_LOAD,
					     .size = (uint8_t)(1 + random_number() % 8)};
	}
	while (of--)
		ops[n++] = random_op(codes[random_number() % ARRAY_SIZE(codes)]);
	ops[n++] = random_number() % 4
			   ? (struct fetch_op){.code = FETCH_STORE, .size = (uint8_t)n_bytes}
			   : (struct fetch_op){.code = FETCH_STORE_REG,
					       .reg = (uint8_t)(random_number() % 16),
					       .size = (uint8_t)n_bytes};
	return n;
}

static uint64_t extend(uint64_t v, uint32_t n_bytes, bool with_sign)
{
	uint32_t shift = 64 - 8 * n_bytes;

	return with_sign ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
}

/* The prologue of an argument alone, which returns it. */
static struct cover_code code_of(const struct trace_located_arg *arg, bool of_kernel)
{
	const struct cover_slot slot = {.at = -8, .spare = -16, .of_kernel = of_kernel};
	struct cover_code c = {.failed = false};

	code_add(&c, BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0);
	fetch_arg(&c, arg, &slot);
	code_add(&c, BPF_LDX | BPF_MEM | BPF_DW, 0, 10, -8, 0);
	code_add(&c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	for (size_t i = 0; i < c.faults.n; i++)
		c.insns.p[c.faults.p[i]].off = (int16_t)(c.insns.n - c.faults.p[i] - 1);
	code_add(&c, BPF_STX | BPF_ATOMIC | BPF_DW, 6, 6, 0, 0);
	code_add(&c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	assert_false(c.failed);
	return c;
}

static void expect_same_value(const struct trace_located_arg *arg, bool of_kernel)
{
	struct fetch_machine f = {.read = read_here, .n_record = 8};
	struct fetch_op ops[FETCH_OPS_MAX];
	struct cover_code c = code_of(arg, of_kernel);
	struct machine m = {.seen = 0};
	uint64_t record = 0;

	memcpy(ops, arg->ops, arg->n_ops * sizeof(*ops));
	ops[arg->n_ops] = (struct fetch_op){.code = FETCH_END};
	f.record = (uint8_t *)&record;
	for (unsigned int i = 0; i < 16; i++) {
		f.file[i] = random_number() % 3 ? random_number() : random_number() % 70;
		m.context[trace_register_word(i)] = f.file[i];
	}
	assert_int_equal(fetch_run(&f, ops, arg->n_ops + 1, false), FETCH_DONE);
	uint64_t value = run_insns(&m, c.insns.p, c.insns.n);
	assert_int_equal(m.has_fault, f.faults != 0);
	if (!f.faults)
		assert_int_equal(value, extend(record, arg->n_bytes, arg->is_signed));
	code_fini(&c);
}

static void an_argument_is_what_the_reference_interpreter_says(void **state)
{
	(void)state;
	state_ = 0x9e3779b97f4a7c15;
	for (size_t i = 0; i < ARRAY_SIZE(memory); i++)
		memory[i] = random_number();
	for (unsigned int i = 0; i < 50000; i++) {
		static const uint8_t sizes[] = {1, 2, 4, 8};
		struct fetch_op ops[FETCH_OPS_MAX];
		struct trace_located_arg arg = {.is_available = true,
						.is_signed = random_number() % 2,
						.n_bytes = sizes[random_number() % 4],
						.ops = ops};
		arg.n_ops = random_ops(ops, arg.n_bytes, random_number() % 16 == 0);
		assert_true(fetch_is_known(&arg));
		expect_same_value(&arg, random_number() % 2);
	}
}

static void what_has_no_instructions_is_no_argument(void **state)
{
	(void)state;
	static const struct fetch_op bad[] = {
		{.code = FETCH_DIV, .imm = 3},
		{.code = FETCH_KNOWN},
		{.code = FETCH_STRING, .size = 4},
		{.code = FETCH_JZ},
		{.code = FETCH_REG, .reg = 40},
		{.code = FETCH_SAVE, .reg = FETCH_SLOT + 2},
		{.code = FETCH_STORE, .size = 3},
		{.code = FETCH_STORE, .size = 8, .out = 4},
		{.code = FETCH_COPY, .size = 4},
		{.code = FETCH_STORE, .size = 4, .out = 2},
		{.code = FETCH_LOAD, .size = 9},
		{.code = FETCH_ADD, .flags = FETCH_F_FILE, .reg = 30},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct trace_located_arg arg = {
			.is_available = true, .n_bytes = 8, .ops = &bad[i], .n_ops = 1};
		assert_false(fetch_is_known(&arg));
	}
}

static void constants_are_extended(void **state)
{
	(void)state;
	static const uint8_t bytes[8] = {0xfe, 0xff, 0xff, 0xff, 1, 2, 3, 4};
	struct trace_located_arg arg = {.is_available = true, .n_bytes = 4, .constant = bytes};
	struct machine m = {.seen = 0};

	for (unsigned int i = 0; i < 2; i++) {
		arg.is_signed = i;
		struct cover_code c = code_of(&arg, false);
		assert_int_equal(run_insns(&m, c.insns.p, c.insns.n),
				 i ? (uint64_t)-2 : 0xfffffffe);
		code_fini(&c);
	}
}

/* ---- names of sections ---- */

static void a_section_says_what_a_program_is_for(void **state)
{
	(void)state;
	static const struct {
		const char *name, *given, *target;
		enum section_kind kind;
		bool of_kernel;
	} rows[] = {
		{"kprobe/f", NULL, "f", SECTION_KPROBE, true},
		{"uprobe//bin/a:f", "x", "/bin/a:f", SECTION_UPROBE, false},
		{"kprobe", "f", "f", SECTION_KPROBE, true},
		{"kprobe", NULL, NULL, SECTION_KPROBE, true},
		{"kprobe/f+4", NULL, "f+4", SECTION_OFFSET, true},
		{"uprobe//bin/a+b:f", NULL, "/bin/a+b:f", SECTION_UPROBE, false},
		{"uprobe//bin/a:f+4", NULL, "/bin/a:f+4", SECTION_OFFSET, false},
		{"uretprobe//bin/a:f", NULL, "/bin/a:f", SECTION_RETURN, false},
		{"kprobe.multi/f*", NULL, "f*", SECTION_PATTERN, true},
		{"fentry/f", NULL, "f", SECTION_FENTRY, true},
		{"uprobe.s//bin/a:f", NULL, "/bin/a:f", SECTION_SLEEPABLE, false},
		{"tp_btf/f", NULL, NULL, SECTION_OTHER, false},
		{"kprobes", "f", NULL, SECTION_OTHER, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct section s = section_of(rows[i].name, rows[i].given);
		assert_int_equal(s.kind, rows[i].kind);
		assert_int_equal(s.of_kernel, rows[i].of_kernel);
		assert_int_equal(!s.target, !rows[i].target);
		if (s.target)
			assert_string_equal(s.target, rows[i].target);
		assert_int_equal(!section_obstacle(s.kind),
				 s.kind == SECTION_KPROBE || s.kind == SECTION_UPROBE ||
					 s.kind == SECTION_FENTRY || s.kind == SECTION_OTHER);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_registers_that_are_read_are_known),
		cmocka_unit_test(calls_that_have_the_context_are_known),
		cmocka_unit_test(what_cannot_be_told_is_refused),
		cmocka_unit_test(a_program_does_after_its_prologue_what_it_does_alone),
		cmocka_unit_test(a_callback_is_found_where_it_is_now),
		cmocka_unit_test(without_memory_nothing_is_built),
		cmocka_unit_test(a_request_is_taken_when_it_is_whole),
		cmocka_unit_test(a_request_that_is_none_is_refused),
		cmocka_unit_test(programs_are_kept_or_there_is_no_memory),
		cmocka_unit_test(an_argument_is_what_the_reference_interpreter_says),
		cmocka_unit_test(what_has_no_instructions_is_no_argument),
		cmocka_unit_test(constants_are_extended),
		cmocka_unit_test(a_section_says_what_a_program_is_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
