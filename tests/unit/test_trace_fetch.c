/* SPDX-License-Identifier: BSD-2-Clause */
/* From locations and expressions to fetch programs, run by the reference interpreter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "kernel/kernel.h"
#include "trace/expr/compile.h"
#include "trace_fixture.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* One stretch of memory, and every general register with a value of its own. */
#define MEMORY      0x10000u
#define MEMORY_SIZE 0x400u
#define AT          0x401000u

static struct fixture f;
static uint8_t memory[MEMORY_SIZE];

static uint64_t reg(unsigned int dwarf)
{
	return 0x1111111111111111u * dwarf;
}

static int read_memory(void *ctx, uint64_t from, void *to, size_t n)
{
	if (from < MEMORY || from - MEMORY > MEMORY_SIZE || n > MEMORY_SIZE - (from - MEMORY))
		return -1;
	memcpy(to, memory + (from - MEMORY), n);
	return 0;
}

static void put_memory(uint64_t at, const void *bytes, size_t n)
{
	memcpy(memory + (at - MEMORY), bytes, n);
}

static void put_u64(uint64_t at, uint64_t v)
{
	put_memory(at, &v, sizeof(v));
}

/* The locations of all parameters; each test sets those it needs, the others are optimised out. */
static struct cairn_arg args[N_PARAMS];
static struct cairn_site site;

static void no_locations(void)
{
	site = (struct cairn_site){.at = {AT}, .n_args = N_PARAMS, .args = args};
	for (int i = 0; i < N_PARAMS; i++)
		args[i] = (struct cairn_arg){.name = f.params[i].name,
					     .type = f.params[i].type,
					     .loc = {.why = CAIRN_UNAVAIL_OPTIMISED_OUT}};
}

static void locate(int param, const struct cairn_piece *pieces, uint32_t n)
{
	args[param].loc = (struct cairn_location){.n_pieces = n, .pieces = pieces};
}

#define STEPS(...)                                                                                 \
	.n_steps = sizeof((struct cairn_loc_step[]){__VA_ARGS__}) / sizeof(struct cairn_loc_step), \
	.steps = (const struct cairn_loc_step[])                                                   \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define REG(n)                                                                                     \
	{                                                                                          \
		.op = CAIRN_LOC_REG, .reg = (n)                                                    \
	}
#define CONST(v)                                                                                   \
	{                                                                                          \
		.op = CAIRN_LOC_CONST, .imm = (v)                                                  \
	}
#define IMM(code, v)                                                                               \
	{                                                                                          \
		.op = CAIRN_LOC_##code, .imm = (v)                                                 \
	}
#define SIZED(code, n)                                                                             \
	{                                                                                          \
		.op = CAIRN_LOC_##code, .size = (n)                                                \
	}
#define WITH_REG(code, n)                                                                          \
	{                                                                                          \
		.op = CAIRN_LOC_##code, .operand = CAIRN_LOC_OPERAND_REG, .reg = (n)               \
	}
#define WITH_SLOT(code, n)                                                                         \
	{                                                                                          \
		.op = CAIRN_LOC_##code, .operand = CAIRN_LOC_SLOT, .imm = (n)                      \
	}

#define LOCATE(param, ...)                                                                         \
	locate(param, (const struct cairn_piece[]){__VA_ARGS__},                                   \
	       sizeof((struct cairn_piece[]){__VA_ARGS__}) / sizeof(struct cairn_piece))

struct result {
	enum cairn_unavailable why;
	enum fetch_result run;
	uint32_t faults;
	uint8_t record[512];
	struct fetch_program program;
	struct value_layout layout;
};

static void run(struct result *r, bool has_condition)
{
	struct fetch_machine m = {
		.read = read_memory, .record = r->record, .n_record = sizeof(r->record)};

	for (unsigned int i = 0; i < 16; i++)
		m.file[i] = reg(i);
	m.file[FETCH_FILE_IP] = AT + 0x7000000000;
	fetch_emit(&r->program, FETCH_END);
	assert_false(r->program.full);
	r->run = fetch_run(&m, r->program.ops, r->program.n, has_condition);
	r->faults = m.faults;
}

static void parse(struct arena *a, const char *text, struct probe_text *ret)
{
	const struct expr_scope scope = {.types = f.types, .function = &f.function, .text = text};
	struct cairn_err err = {0};

	if (probe_parse(a, text, ret, &err) < 0)
		fail_msg("%s", err.msg);
	for (uint32_t i = 0; i < ret->n_values; i++)
		if (expr_type_value(&scope, ret->values[i].expr, &err) < 0)
			fail_msg("%s", err.msg);
	if (ret->condition && expr_type_condition(&scope, ret->condition, &err) < 0)
		fail_msg("%s", err.msg);
}

/* Fetch one value, @n bytes of it, to offset 16 of a record. */
static struct result *fetch(const char *expr, uint16_t n, bool is_string)
{
	static struct result r;
	struct arena a = {0};
	struct probe_text p;
	char text[200];

	r = (struct result){.layout = {.out = 16, .n_bytes = n}};
	memset(r.record, 0xee, sizeof(r.record));
	snprintf(text, sizeof(text), "f(%s)", expr);
	parse(&a, text, &p);
	struct compiler c = {.types = f.types, .site = &site, .at = {AT}, .program = &r.program};
	r.why = compile_value(&c, p.values[0].expr, is_string, &r.layout, 3);
	if (r.why == CAIRN_AVAILABLE)
		run(&r, false);
	else
		assert_int_equal(r.program.n, 0);
	arena_fini(&a);
	return &r;
}

static uint64_t fetched(const struct result *r, size_t n)
{
	uint64_t v = 0;

	assert_int_equal(r->why, CAIRN_AVAILABLE);
	assert_int_equal(r->run, FETCH_DONE);
	assert_int_equal(r->faults, 0);
	memcpy(&v, r->record + 16, n < 8 ? n : 8);
	/* Nothing may be written around it. */
	assert_int_equal(r->record[15], 0xee);
	assert_int_equal(r->record[16 + n], 0xee);
	return v;
}

static void a_register_is_stored_by_one_operation(void **state)
{
	no_locations();
	LOCATE(P_I, {.kind = CAIRN_PIECE_VALUE, STEPS(REG(5))});
	struct result *r = fetch("i", 4, false);
	assert_int_equal(fetched(r, 4), (uint32_t)reg(5));
	assert_int_equal(r->program.n, 2);
	assert_int_equal(r->program.ops[0].code, FETCH_STORE_REG);
}

static void memory_is_copied_from_where_it_is(void **state)
{
	no_locations();
	put_u64(MEMORY + 24, 0x1122334455667788);
	LOCATE(P_L, {.kind = CAIRN_PIECE_MEMORY, STEPS(CONST(MEMORY), IMM(ADD, 16), IMM(ADD, 8))});
	struct result *r = fetch("l", 8, false);
	assert_int_equal(fetched(r, 8), 0x1122334455667788);
	/* const, copy, end: the additions went into the copy. */
	assert_int_equal(r->program.n, 3);
}

static void every_operation_of_a_location_is_kept(void **state)
{
	static const struct {
		struct cairn_loc_step steps[5];
		uint32_t n;
		uint64_t expected;
	} cases[] = {
		{{REG(1), IMM(ADD, 5)}, 2, 0x1111111111111116},
		{{REG(1), WITH_REG(SUB, 2)}, 2, 0x1111111111111111u - 0x2222222222222222u},
		{{REG(3), IMM(MUL, 3)}, 2, 0x9999999999999999},
		{{REG(1), IMM(AND, 0xff)}, 2, 0x11},
		{{REG(1), IMM(OR, 0xff)}, 2, 0x11111111111111ff},
		{{REG(1), IMM(XOR, -1)}, 2, 0xeeeeeeeeeeeeeeee},
		{{REG(1), IMM(SHL, 4)}, 2, 0x1111111111111110},
		{{REG(1), IMM(SHL, 64)}, 2, 0},
		{{REG(15), IMM(SHR, 60)}, 2, 0xf},
		{{REG(15), IMM(SHR, 64)}, 2, 0},
		{{REG(15), IMM(SAR, 60)}, 2, UINT64_MAX},
		{{REG(15), IMM(SAR, 100)}, 2, UINT64_MAX},
		{{REG(15), SIZED(SEXT, 1)}, 2, UINT64_MAX},
		{{REG(15), SIZED(ZEXT, 3)}, 2, 0xffffff},
		{{REG(8), SIZED(SEXT, 4)}, 2, 0xffffffff88888888},
		{{REG(1), {.op = CAIRN_LOC_NEG}}, 2, -0x1111111111111111u},
		{{REG(1), {.op = CAIRN_LOC_NOT}}, 2, ~0x1111111111111111u},
		/* slot - acc, not acc - slot */
		{{REG(2), IMM(SAVE, 1), REG(1), WITH_SLOT(SUB, 1)}, 4, 0x1111111111111111},
		{{REG(2), IMM(SAVE, 3), REG(1), WITH_SLOT(LT, 3)}, 4, 0},
		{{REG(15), IMM(LT, 0)}, 2, 1},
		{{REG(1), IMM(GE, 1)}, 2, 1},
		{{REG(1), WITH_REG(EQ, 1)}, 2, 1},
		{{REG(1), WITH_REG(NE, 1)}, 2, 0},
		{{{.op = CAIRN_LOC_ADDR, .imm = AT + 0x234}}, 1, 0x7000000000 + AT + 0x234},
		{{{.op = CAIRN_LOC_ADDR, .imm = AT - 0x234}}, 1, 0x7000000000 + AT - 0x234},
		{{CONST(MEMORY), SIZED(LOAD, 2)}, 2, 0x5678},
	};

	put_u64(MEMORY, 0x12345678);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		no_locations();
		LOCATE(P_L,
		       {.kind = CAIRN_PIECE_VALUE, .n_steps = cases[i].n, .steps = cases[i].steps});
		uint64_t got = fetched(fetch("l", 8, false), 8);
		if (got != cases[i].expected)
			fail_msg("case %zu: 0x%llx", i, (unsigned long long)got);
	}
}

/* A kprobe's instruction pointer is not its site's, and a kernel is where it is. */
static void addresses_in_a_kernel_are_constants(void **state)
{
	struct kernel_piece pieces[] = {{0x1000, 0x100, 0xffffffffc0000000}};
	struct cairn_kernel loaded = {.data = {.p = pieces, .n = 1}};
	const struct fetch_slide kernel = {.is_of_kernel = true, .by = 0x12400000},
				 module = {.is_of_kernel = true,
					   .is_of_module = true,
					   .kernel = &loaded};
	static const struct cairn_loc_step code = {.op = CAIRN_LOC_ADDR,
						   .imm = (int64_t)0xffffffff81000040},
					   of_module = {.op = CAIRN_LOC_ADDR, .imm = 0x1040},
					   of_processor = {.op = CAIRN_LOC_ADDR, .imm = 0x1c0},
					   ip = {.op = CAIRN_LOC_REG, .reg = FETCH_FILE_IP};
	const struct {
		struct fetch_slide slide;
		const struct cairn_loc_step *step;
		bool is_available;
		uint64_t value;
	} cases[] = {
		{kernel, &code, true, 0xffffffff93400040},
		{kernel, &of_processor, true, 0x1c0},
		{module, &of_module, true, 0xffffffffc0000040},
		{module, &code, false, 0},
		{kernel, &ip, false, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct cairn_piece piece = {
			.kind = CAIRN_PIECE_VALUE, .n_steps = 1, .steps = cases[i].step};
		struct fetch_program p = {.slide = cases[i].slide};
		enum cairn_unavailable why = CAIRN_AVAILABLE;
		bool is_available = fetch_emit_steps(&p, &piece, (struct cairn_vaddr){AT}, &why);
		assert_int_equal(is_available, cases[i].is_available);
		assert_true(is_available || why == CAIRN_UNAVAIL_UNSUPPORTED);
		if (!is_available)
			continue;
		assert_int_equal(p.n, 1);
		assert_int_equal(p.ops[0].code, FETCH_CONST);
		assert_int_equal(p.ops[0].imm, cases[i].value);
	}
}

static void values_in_pieces_are_put_together(void **state)
{
	no_locations();
	put_u64(MEMORY + 8, 0xaabbccddeeff0011);
	LOCATE(P_V, {.kind = CAIRN_PIECE_VALUE, .off = 0, .size = 3, STEPS(REG(1))},
	       {.kind = CAIRN_PIECE_MEMORY, .off = 3, .size = 4, STEPS(CONST(MEMORY + 8))},
	       {.kind = CAIRN_PIECE_BYTES, .off = 7, .size = 5, .bytes = (const uint8_t *)"hello"});
	struct result *r = fetch("v", 12, false);
	fetched(r, 12);
	assert_memory_equal(r->record + 16, "\x11\x11\x11\x11\x00\xff\xeehello", 12);
	/* A member that lies in one of them needs only that one. */
	r = fetch("v.name[6]", 1, false);
	assert_int_equal(fetched(r, 1), 'e');
}

static void a_missing_piece_makes_only_what_it_holds_unavailable(void **state)
{
	no_locations();
	LOCATE(P_V, {.kind = CAIRN_PIECE_VALUE, .off = 0, .size = 4, STEPS(REG(1))},
	       {.kind = CAIRN_PIECE_MISSING, .off = 4, .size = 8});
	assert_int_equal(fetch("v", 12, false)->why, CAIRN_UNAVAIL_OPTIMISED_OUT);
	assert_int_equal(fetch("v.name[5]", 1, false)->why, CAIRN_UNAVAIL_OPTIMISED_OUT);
	assert_int_equal(fetched(fetch("v.b", 2, false), 2), 0x1111);
	/* Pieces that leave a gap at the end. */
	LOCATE(P_V, {.kind = CAIRN_PIECE_VALUE, .off = 0, .size = 4, STEPS(REG(1))});
	assert_int_equal(fetch("v", 12, false)->why, CAIRN_UNAVAIL_PARTLY);
}

static void what_a_probe_cannot_do_is_unavailable_with_the_reason(void **state)
{
	no_locations();
	assert_int_equal(fetch("i", 4, false)->why, CAIRN_UNAVAIL_OPTIMISED_OUT);
	LOCATE(P_D, {.kind = CAIRN_PIECE_VALUE, STEPS(REG(17))});
	assert_int_equal(fetch("d", 8, false)->why, CAIRN_UNAVAIL_VECTOR_REGISTER);
	LOCATE(P_I, {.kind = CAIRN_PIECE_VALUE, STEPS(REG(0), WITH_REG(ADD, 20))});
	assert_int_equal(fetch("i", 4, false)->why, CAIRN_UNAVAIL_VECTOR_REGISTER);
	/* The struct has 12 bytes, a register 8: nobody says where the rest is. */
	LOCATE(P_V, {.kind = CAIRN_PIECE_VALUE, STEPS(REG(1))});
	assert_int_equal(fetch("v", 12, false)->why, CAIRN_UNAVAIL_UNSUPPORTED);
	LOCATE(P_I, {.kind = CAIRN_PIECE_VALUE, STEPS(REG(0), WITH_SLOT(ADD, 9))});
	assert_int_equal(fetch("i", 4, false)->why, CAIRN_UNAVAIL_UNSUPPORTED);
	/* No address: it is in a register. */
	LOCATE(P_I, {.kind = CAIRN_PIECE_VALUE, STEPS(REG(0))});
	assert_int_equal(fetch("&i", 8, false)->why, CAIRN_UNAVAIL_IMPLICIT_POINTER);
	site.n_args = 1;
	assert_int_equal(fetch("l", 8, false)->why, CAIRN_UNAVAIL_NO_DESCRIPTION);
}

/* p in a register points to an outer at MEMORY + 64, whose next is one at MEMORY + 192. */
static void make_outers(void)
{
	static const struct cairn_loc_step steps[] = {REG(0), IMM(AND, 0), IMM(ADD, MEMORY + 64)};
	static const struct cairn_piece piece = {
		.kind = CAIRN_PIECE_VALUE, .n_steps = 3, .steps = steps};

	no_locations();
	locate(P_P, &piece, 1);
	put_u64(MEMORY + 64, 0xfffffffe);                  /* x = -2 */
	put_u64(MEMORY + 68, 0x6f6e616d75350000 | 0x2a5d); /* a = -3, b = 0x54b, name = "5umano" */
	put_u64(MEMORY + 76, 0);
	put_u64(MEMORY + 64 + 16, MEMORY + 300); /* s */
	put_u64(MEMORY + 64 + 24, 5);            /* c = GREEN */
	put_u64(MEMORY + 64 + 32, MEMORY + 192); /* next */
	put_u64(MEMORY + 64 + 40 + 16, 77);      /* arr[2] */
	put_u64(MEMORY + 192, 9);
	put_u64(MEMORY + 192 + 16, 0x123); /* next->s is wild */
	put_u64(MEMORY + 192 + 32, 0);
	put_memory(MEMORY + 300, "a string", 9);
}

static void expressions_walk_through_memory(void **state)
{
	make_outers();
	assert_int_equal((int32_t)fetched(fetch("p->x", 4, false), 4), -2);
	assert_int_equal(fetched(fetch("p->next->x", 4, false), 4), 9);
	assert_int_equal(fetched(fetch("p->arr[2]", 8, false), 8), 77);
	assert_int_equal(fetched(fetch("&p->next->arr", 8, false), 8), MEMORY + 192 + 40);
	assert_int_equal(fetched(fetch("*p->s", 1, false), 1), 'a');
	assert_int_equal(fetched(fetch("p->s[2]", 1, false), 1), 's');
	assert_int_equal(fetched(fetch("p[1].x", 4, false), 4), 0);
	struct result *r = fetch("p->next->next->x", 4, false);
	assert_int_equal(r->faults, 1u << 3);
	assert_int_equal(r->run, FETCH_DONE);
}

static void strings_come_with_their_pointer_and_length(void **state)
{
	uint64_t pointer;
	uint16_t len;

	make_outers();
	struct result *r = fetch("p->s", 16, true);
	assert_int_equal(r->faults, 0);
	memcpy(&pointer, r->record + 16, 8);
	memcpy(&len, r->record + 24, 2);
	assert_int_equal(pointer, MEMORY + 300);
	assert_int_equal(len, 9);
	assert_string_equal((char *)r->record + 26, "a string");
	/* Exactly full is not cut; one more is. */
	put_memory(MEMORY + 300, "0123456789abcde\0", 17);
	memcpy(&len, fetch("p->s", 16, true)->record + 24, 2);
	assert_int_equal(len, 16);
	put_memory(MEMORY + 300, "0123456789abcdef", 17);
	memcpy(&len, fetch("p->s", 16, true)->record + 24, 2);
	assert_int_equal(len, 16 | TRACE_STRING_CUT);
	r = fetch("p->next->s", 16, true);
	memcpy(&pointer, r->record + 16, 8);
	assert_int_equal(r->faults, 1u << 3);
	assert_int_equal(pointer, 0x123);
	/* An array is its own text. */
	r = fetch("p->in.name", 16, true);
	assert_string_equal((char *)r->record + 26, "5umano");
}

static enum fetch_result decide(const char *condition, enum cairn_unavailable *why)
{
	static struct result r;
	struct arena a = {0};
	struct probe_text p;
	char text[200];

	r = (struct result){0};
	snprintf(text, sizeof(text), "f() if %s", condition);
	parse(&a, text, &p);
	struct compiler c = {.types = f.types, .site = &site, .at = {AT}, .program = &r.program};
	*why = compile_condition(&c, p.condition);
	if (*why == CAIRN_AVAILABLE)
		run(&r, true);
	arena_fini(&a);
	return r.run;
}

static void conditions_are_c(void **state)
{
	static const struct {
		const char *text;
		enum fetch_result expected;
	} cases[] = {
		/* i is 0x88888888 in the low half of r8, u the same bits, l is -0x1111...11 */
		{"i < 0", FETCH_DONE},
		{"u < 0", FETCH_FILTERED},
		{"i == 0x88888888", FETCH_DONE},
		{"i == u", FETCH_DONE},
		{"i < u", FETCH_FILTERED},
		{"l < u", FETCH_DONE},
		{"l + u > l", FETCH_DONE},
		{"u + 0x77777778 == 0", FETCH_DONE},
		{"u + 0x77777778l == 0", FETCH_FILTERED},
		{"(l & 0xff) == 0xef", FETCH_DONE},
		{"p->x == -2 && p->next->x == 9", FETCH_DONE},
		{"p->in.a == -3", FETCH_DONE},
		{"p->in.b == 0x54b", FETCH_DONE},
		{"p->c == GREEN", FETCH_DONE},
		{"p->c == MINUS", FETCH_FILTERED},
		{"p->next->next == NULL", FETCH_DONE},
		{"p->next->next->x", FETCH_UNDECIDED},
		{"p->next->next && p->next->next->x", FETCH_FILTERED},
		{"!p->next->next || p->next->next->x", FETCH_DONE},
		{"p->s == \"a string\"", FETCH_DONE},
		{"p->s == \"a strin\"", FETCH_FILTERED},
		{"p->s == \"a strings\"", FETCH_FILTERED},
		{"p->s != \"a string\"", FETCH_FILTERED},
		{"p->next->s == \"x\"", FETCH_UNDECIDED},
		{"p->in.name == \"5umano\"", FETCH_DONE},
		{"(p->s == \"a string\") + 1 == 2", FETCH_DONE},
		{"p->x / 0", FETCH_UNDECIDED},
		{"p->x % -2 == 0 && p->x / -1 == 2", FETCH_DONE},
		{"1 << 31 < 0 && 1u << 31 > 0", FETCH_DONE},
		{"p->arr[2] - 77 == 0 && *p->arr == 0", FETCH_DONE},
		{"(1 + (2 + (3 + (4 + (5 + p->x))))) == 13", FETCH_DONE},
		{"((i == 1) + (p->x == -2)) * (p->next->x + u - u) == 9", FETCH_DONE},
	};
	enum cairn_unavailable why;

	make_outers();
	LOCATE(P_I, {.kind = CAIRN_PIECE_VALUE, STEPS(REG(8))});
	LOCATE(P_U, {.kind = CAIRN_PIECE_VALUE, STEPS(REG(8))});
	LOCATE(P_L, {.kind = CAIRN_PIECE_VALUE, STEPS(REG(1), {.op = CAIRN_LOC_NEG})});
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (decide(cases[i].text, &why) != cases[i].expected || why != CAIRN_AVAILABLE)
			fail_msg("%s", cases[i].text);
	decide("i", &why);
	assert_int_equal(why, CAIRN_AVAILABLE);
	decide("s == \"x\"", &why);
	assert_int_equal(why, CAIRN_UNAVAIL_OPTIMISED_OUT);
}

static void constants_are_recognised(void **state)
{
	no_locations();
	LOCATE(P_I, {.kind = CAIRN_PIECE_VALUE, STEPS(CONST(40), IMM(ADD, 2))});
	struct result *r = fetch("i", 4, false);
	assert_int_equal(fetched(r, 4), 42);
	r->program.n--;
	assert_true(compile_is_constant(&r->program, 0));
	LOCATE(P_I, {.kind = CAIRN_PIECE_BYTES, .size = 4, .bytes = (const uint8_t *)"\1\2\3\4"});
	r = fetch("i", 4, false);
	assert_int_equal(fetched(r, 4), 0x04030201);
	r->program.n--;
	assert_true(compile_is_constant(&r->program, 0));
	LOCATE(P_I, {.kind = CAIRN_PIECE_VALUE, STEPS({.op = CAIRN_LOC_ADDR, .imm = AT})});
	r = fetch("i", 4, false);
	assert_false(compile_is_constant(&r->program, 0));
}

/* Up to @count bytes at @from, to @out; at most 16. */
static void emit_bytes(struct fetch_program *p, uint64_t from, uint64_t count, uint16_t out)
{
	fetch_emit(p, FETCH_CONST)->imm = count;
	fetch_emit(p, FETCH_SAVE)->reg = FETCH_TEMP;
	fetch_emit(p, FETCH_CONST)->imm = from;
	struct fetch_op *op = fetch_emit(p, FETCH_BYTES);
	op->reg = FETCH_TEMP;
	op->size = 4;
	op->out = out;
}

static void targets_are_fetched_by_their_length_and_one_by_one(void **state)
{
	static struct result r;
	memset(&r, 0, sizeof(r));
	put_memory(MEMORY, "0123456789abcdefghij", 20);
	emit_bytes(&r.program, MEMORY, 5, 0);
	uint32_t bad = r.program.n;
	emit_bytes(&r.program, 0x10, 5, 16);
	uint32_t good = r.program.n;
	emit_bytes(&r.program, MEMORY, 1000, 32);
	/* Nothing is read of none, wherever it may be. */
	emit_bytes(&r.program, 0x10, 0, 48);
	fetch_close_value(&r.program, 0, 2);
	fetch_close_part(&r.program, 0, bad);
	fetch_close_part(&r.program, bad, good);
	run(&r, false);
	assert_int_equal(r.run, FETCH_DONE);
	assert_int_equal(r.faults, 1 << 2);
	assert_memory_equal(r.record, "01234\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_memory_equal(r.record + 16, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_memory_equal(r.record + 32, "0123456789abcdef\0\0", 18);
}

static void programs_too_long_are_noticed(void **state)
{
	struct fetch_program p = {0};
	static struct cairn_loc_step steps[CAIRN_LOC_STEPS_MAX];
	enum cairn_unavailable why;

	for (int i = 0; i < CAIRN_LOC_STEPS_MAX; i++)
		steps[i] = (struct cairn_loc_step){.op = CAIRN_LOC_NOT};
	const struct cairn_piece piece = {.n_steps = CAIRN_LOC_STEPS_MAX, .steps = steps};
	for (int i = 0; i < 4; i++)
		assert_true(fetch_emit_steps(&p, &piece, (struct cairn_vaddr){AT}, &why));
	assert_int_equal(p.n, FETCH_OPS_MAX);
	assert_false(p.full);
	fetch_emit(&p, FETCH_END);
	assert_int_equal(p.n, FETCH_OPS_MAX);
	assert_true(p.full);
}

static void programs_are_printed_for_people(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	make_outers();
	LOCATE(P_P, {.kind = CAIRN_PIECE_MEMORY, STEPS(REG(7), IMM(ADD, 24))});
	struct result *r = fetch("p->next->x", 4, false);
	assert_int_equal(fetch_print(r->program.ops, r->program.n, out), 0);
	fclose(out);
	assert_string_equal(text,
			    "reg %rsp\t(value 3)\nadd 0x18\t(value 3)\nload 8 bytes\t(value 3)\n"
			    "add 0x20\t(value 3)\nload 8 bytes\t(value 3)\n"
			    "copy +0x0 -> record+16, 4 bytes\t(value 3)\nend\n");
	free(text);
}

static int build(void **state)
{
	fixture_init(&f);
	return 0;
}

static int clean(void **state)
{
	fixture_fini(&f);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_register_is_stored_by_one_operation),
		cmocka_unit_test(memory_is_copied_from_where_it_is),
		cmocka_unit_test(every_operation_of_a_location_is_kept),
		cmocka_unit_test(addresses_in_a_kernel_are_constants),
		cmocka_unit_test(values_in_pieces_are_put_together),
		cmocka_unit_test(a_missing_piece_makes_only_what_it_holds_unavailable),
		cmocka_unit_test(what_a_probe_cannot_do_is_unavailable_with_the_reason),
		cmocka_unit_test(expressions_walk_through_memory),
		cmocka_unit_test(strings_come_with_their_pointer_and_length),
		cmocka_unit_test(conditions_are_c),
		cmocka_unit_test(constants_are_recognised),
		cmocka_unit_test(targets_are_fetched_by_their_length_and_one_by_one),
		cmocka_unit_test(programs_too_long_are_noticed),
		cmocka_unit_test(programs_are_printed_for_people),
	};
	return cmocka_run_group_tests(tests, build, clean);
}
