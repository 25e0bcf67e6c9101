/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short programs give what their fetch programs give
 *
 * The values are computed by the code of the BPF program, compiled for the host, and compared with
 * the reference interpreter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "trace/aggregate/aggregate.h"

/* As the kernel has it. */
struct pt_regs {
	__u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax;
	__u64 rip, cs, flags, rsp, ss;
};

#define opaque(x) asm volatile("" : "+r"(x))
#include "trace/bpf/binary.bpf.h"
#include "trace/bpf/short_value.bpf.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define KEY_WORDS (TRACE_SHORT_KEY / 8)

static struct aggregates sums;
static struct trace_program program;
static struct fetch_op ops[FETCH_OPS_MAX];
static struct cairn_trace t = {.aggregates = &sums};
static uint64_t file[FETCH_FILE];
static uint64_t state;

/* xorshift: the same numbers in each run. */
static uint64_t random_number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void begin(uint32_t n_numbers, uint32_t n_values, bool has_condition)
{
	sums = (struct aggregates){.n_numbers = n_numbers,
				   .n_values = n_values,
				   .values_at = 8 * n_numbers + AGGREGATE_HEADER};
	sums.plan.n_key = n_values ? TRACE_SHORT_KEY : 0;
	program = (struct trace_program){.has_condition = has_condition};
	t.programs.p = &program;
	t.programs.n = 1;
	t.ops.p = ops;
}

static void emit(struct fetch_op op)
{
	assert_true(program.n < FETCH_OPS_MAX);
	ops[program.n++] = op;
}

static struct pt_regs registers(void)
{
	return (struct pt_regs){.rax = file[0],
				.rdx = file[1],
				.rcx = file[2],
				.rbx = file[3],
				.rsi = file[4],
				.rdi = file[5],
				.rbp = file[6],
				.rsp = file[7],
				.r8 = file[8],
				.r9 = file[9],
				.r10 = file[10],
				.r11 = file[11],
				.r12 = file[12],
				.r13 = file[13],
				.r14 = file[14],
				.r15 = file[15],
				.rip = file[FETCH_FILE_IP]};
}

/* As the BPF program: the number, then the key without its header. */
static enum fetch_result run_short(const struct trace_short *s, uint64_t slot[1 + KEY_WORDS])
{
	const struct pt_regs regs = registers();

	memset(slot, 0, 8 * (1 + KEY_WORDS));
	if (program.has_condition && !short_value(&regs, &s->condition))
		return FETCH_FILTERED;
	if (sums.n_numbers)
		slot[0] = short_value(&regs, &s->number);
	for (uint32_t i = 0; i < sums.n_values; i++)
		put_value((__u64 *)(slot + 1), s->values[i].word,
			  short_value(&regs, &s->values[i]));
	return FETCH_DONE;
}

static enum fetch_result run_long(uint64_t slot[1 + KEY_WORDS])
{
	struct fetch_machine m = {.record = (uint8_t *)(slot + 1 - sums.n_numbers),
				  .n_record = 8 * (sums.n_numbers + KEY_WORDS)};

	memset(slot, 0, 8 * (1 + KEY_WORDS));
	memcpy(m.file, file, sizeof(file));
	enum fetch_result r = fetch_run(&m, ops, program.n, program.has_condition);
	assert_true(r == FETCH_DONE || r == FETCH_FILTERED);
	assert_int_equal(m.faults, 0);
	return r;
}

/* Of the program so far, with the registers of now. */
static void expect_the_same(const struct trace_short *s)
{
	uint64_t ours[1 + KEY_WORDS], theirs[1 + KEY_WORDS];
	enum fetch_result r = run_long(theirs);

	assert_int_equal(run_short(s, ours), r);
	if (r == FETCH_DONE)
		assert_memory_equal(ours, theirs, sizeof(ours));
}

/* Numbers at the edges of all sizes, with other bytes above. */
static const uint64_t edges[] = {0,
				 1,
				 0x7f,
				 0xffffffffffffff80,
				 0xabcdef0123458000,
				 0x1234567880000000,
				 0xfedcba987fffffff,
				 0x8000000000000000,
				 0xffffffffffffffff};

static void expect_the_same_at_edges(uint8_t reg, const struct trace_short *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
		file[reg] = edges[i];
		expect_the_same(s);
	}
}

static void set_registers(void)
{
	for (unsigned int i = 0; i < FETCH_FILE; i++)
		file[i] = random_number();
}

/* ---- the forms that are short ---- */

/* 0: none; then SEXT and ZEXT of 1 to 8 bytes. */
#define N_CUTS 17

static void emit_cut(unsigned int which)
{
	if (which)
		emit((struct fetch_op){.code = which > 8 ? FETCH_ZEXT : FETCH_SEXT,
				       .size = (uint8_t)(1 + (which - 1) % 8)});
}

struct form {
	uint8_t reg, code; /* FETCH_END: no operation */
	uint64_t imm;
	unsigned int before, after;
};

static void emit_form(const struct form *f)
{
	emit((struct fetch_op){.code = FETCH_REG, .reg = f->reg});
	emit_cut(f->before);
	if (f->code == FETCH_END)
		return;
	emit((struct fetch_op){.code = f->code, .imm = f->imm});
	emit_cut(f->after);
}

/* Whether a value is cut, with its sign, to fewer bytes than are stored. */
static bool is_widened(const struct form *f, uint32_t size)
{
	return f->code != FETCH_END && f->after >= 1 && f->after <= 8 && f->after < size &&
	       size < 8;
}

static void compare_condition(const struct form *f)
{
	struct trace_short s;

	begin(0, 0, true);
	emit_form(f);
	emit((struct fetch_op){.code = FETCH_FILTER});
	emit((struct fetch_op){.code = FETCH_END});
	assert_true(aggregate_shorten(&t, 0, &s));
	expect_the_same_at_edges(f->reg, &s);
}

static void compare_number(const struct form *f)
{
	struct trace_short s;

	begin(1, 0, false);
	emit_form(f);
	emit((struct fetch_op){.code = FETCH_STORE, .size = 8});
	emit((struct fetch_op){.code = FETCH_END});
	assert_true(aggregate_shorten(&t, 0, &s));
	expect_the_same_at_edges(f->reg, &s);
}

static void compare_key(const struct form *f, uint8_t size)
{
	struct trace_short s;

	begin(0, 1, false);
	emit_form(f);
	emit((struct fetch_op){.code = FETCH_STORE, .size = size, .out = (uint16_t)(24 - size)});
	emit((struct fetch_op){.code = FETCH_END});
	assert_int_equal(aggregate_shorten(&t, 0, &s), !is_widened(f, size));
	if (!is_widened(f, size))
		expect_the_same_at_edges(f->reg, &s);
}

static void compare(const struct form *f)
{
	compare_condition(f);
	compare_number(f);
	for (uint8_t size = 1; size <= 8; size *= 2)
		compare_key(f, size);
}

static void compare_operation(uint8_t code, uint64_t imm)
{
	struct form f = {.reg = 5, .code = code, .imm = imm};

	if (!imm && code >= FETCH_DIV && code <= FETCH_UMOD)
		return;
	for (f.before = 0; f.before < N_CUTS; f.before += 1 + (f.before > 0))
		for (f.after = 0; f.after < N_CUTS; f.after++)
			compare(&f);
}

static void every_operation_gives_the_same(void **ignored)
{
	static const uint64_t numbers[] = {0, 1, 7, 63, 64, 0x80000000, UINT64_MAX, 1ULL << 63};

	for (uint8_t code = FETCH_ADD; code < FETCH_N_CODES; code++)
		for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
			compare_operation(code, numbers[i]);
	for (unsigned int before = 0; before < N_CUTS; before++)
		compare(&(struct form){.reg = 5, .before = before});
}

static void every_register_is_the_one_of_the_file(void **ignored)
{
	struct trace_short s;

	for (uint8_t reg = 0; reg <= FETCH_FILE_IP; reg++) {
		set_registers();
		compare(&(struct form){.reg = reg, .code = FETCH_SUB, .imm = 3});
		begin(1, 0, false);
		emit((struct fetch_op){.code = FETCH_STORE_REG, .reg = reg, .size = 8});
		emit((struct fetch_op){.code = FETCH_END});
		set_registers();
		assert_true(aggregate_shorten(&t, 0, &s));
		expect_the_same(&s);
	}
	/* What a program has saved is not in a register. */
	ops[0].reg = FETCH_FILE_IP + 1;
	assert_false(aggregate_shorten(&t, 0, &s));
}

/* ---- any program ---- */

static struct fetch_op random_op(void)
{
	static const uint8_t sizes[] = {1, 2, 4, 8};
	uint64_t r = random_number();
	struct fetch_op op = {.code = (uint8_t)(r % FETCH_N_CODES),
			      .reg = (uint8_t)(r >> 8) % 20,
			      .size = sizes[r >> 16 & 3],
			      .imm = r >> 20 & 1 ? edges[(r >> 32) % ARRAY_SIZE(edges)]
						 : (r >> 32) % 70};

	op.flags = (r >> 21 & 7) == 0 ? (uint8_t)(r >> 24 & 3) : 0;
	if (op.code == FETCH_STORE || op.code == FETCH_STORE_REG)
		op.out = (uint16_t)((r >> 40) % 5 * op.size);
	return op;
}

/* A part that ends as most do, or anything. */
static void emit_random_part(uint8_t end, uint32_t out)
{
	emit((struct fetch_op){.code = random_number() & 3 ? FETCH_REG : FETCH_CONST,
			       .reg = (uint8_t)(random_number() % 17),
			       .imm = random_number()});
	for (uint64_t n = random_number() % 4; n; n--)
		emit(random_op());
	struct fetch_op op = random_op();
	op.code = random_number() & 7 ? end : op.code;
	op.out = (uint16_t)(out + (out ? random_number() % (8 / op.size) * op.size : 0));
	emit(op);
}

static bool compare_random(void)
{
	uint64_t r = random_number();
	uint32_t n_numbers = r & 1, n_values = (r >> 1) % 3;
	struct trace_short s;

	begin(n_numbers, n_values, r >> 8 & 1);
	if (program.has_condition)
		emit_random_part(FETCH_FILTER, 0);
	if (n_numbers) {
		emit_random_part(FETCH_STORE, 0);
		ops[program.n - 1].size = 8;
	}
	for (uint32_t i = 0; i < n_values; i++)
		emit_random_part(FETCH_STORE, 8 * (n_numbers + 1 + i));
	emit((struct fetch_op){.code = FETCH_END});
	if (!aggregate_shorten(&t, 0, &s))
		return false;
	set_registers();
	expect_the_same(&s);
	return true;
}

/* What is short gives the same, whatever the program was. */
static void no_program_is_short_that_gives_something_else(void **ignored)
{
	unsigned int n_short = 0;

	for (unsigned int i = 0; i < 400000; i++)
		n_short += compare_random();
	assert_true(n_short > 20000);
}

static int start(void **ignored)
{
	state = 0x9e3779b97f4a7c15;
	set_registers();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_operation_gives_the_same, start),
		cmocka_unit_test_setup(every_register_is_the_one_of_the_file, start),
		cmocka_unit_test_setup(no_program_is_short_that_gives_something_else, start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
