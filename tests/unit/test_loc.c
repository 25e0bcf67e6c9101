/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locations as text, and the calling convention. Folding and choosing are tested on real binaries
 * by tests/truth.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "loc/loc.h"
#include "types/build.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* ---- text ---- */

#define REG(n)                                                                                     \
	{                                                                                          \
		.op = CAIRN_LOC_REG, .reg = (n)                                                    \
	}
#define ADD(n)                                                                                     \
	{                                                                                          \
		.op = CAIRN_LOC_ADD, .imm = (n)                                                    \
	}
#define CONSTANT(n)                                                                                \
	{                                                                                          \
		.op = CAIRN_LOC_CONST, .imm = (n)                                                  \
	}
#define SAVE(n)                                                                                    \
	{                                                                                          \
		.op = CAIRN_LOC_SAVE, .imm = (n)                                                   \
	}

static const char *text_of(enum cairn_piece_kind kind, const struct cairn_loc_step *steps,
			   uint32_t n)
{
	static char buf[256];
	struct cairn_piece piece = {.kind = kind, .n_steps = n, .steps = steps};
	struct cairn_location loc = {.n_pieces = 1, .pieces = &piece};
	size_t len = cairn_location_text(&loc, NULL, NULL, buf, sizeof(buf));
	assert_int_equal(len, strlen(buf));
	return buf;
}

static void locations_read_as_people_write_them(void **state)
{
	/* clang-format off */
	static const struct {
		enum cairn_piece_kind kind;
		uint32_t n;
		struct cairn_loc_step steps[6];
		const char *text;
	} cases[] = {
		{CAIRN_PIECE_VALUE, 1, {REG(5)}, "%rdi"},
		{CAIRN_PIECE_VALUE, 1, {REG(17)}, "%xmm0"},
		{CAIRN_PIECE_VALUE, 2, {REG(3), ADD(8)}, "%rbx+8"},
		{CAIRN_PIECE_VALUE, 2, {REG(3), ADD(-24)}, "%rbx-0x18"},
		{CAIRN_PIECE_MEMORY, 2, {REG(7), ADD(0x18)}, "*(%rsp+0x18)"},
		{CAIRN_PIECE_MEMORY, 1, {REG(7)}, "*(%rsp)"},
		{CAIRN_PIECE_VALUE, 1, {CONSTANT(16)}, "const 16"},
		{CAIRN_PIECE_VALUE, 1, {CONSTANT(-1)}, "const -1"},
		{CAIRN_PIECE_VALUE, 2, {REG(5), {.op = CAIRN_LOC_SHL, .imm = 3}}, "%rdi<<3"},
		{CAIRN_PIECE_VALUE, 3, {REG(5), ADD(1), {.op = CAIRN_LOC_MUL, .imm = 4}}, "(%rdi+1)*4"},
		{CAIRN_PIECE_VALUE, 2, {REG(5), {.op = CAIRN_LOC_LOAD, .size = 8}}, "*(%rdi)"},
		{CAIRN_PIECE_VALUE, 2, {REG(5), {.op = CAIRN_LOC_LOAD, .size = 4}}, "*(u32 *)(%rdi)"},
		{CAIRN_PIECE_VALUE, 2, {REG(5), {.op = CAIRN_LOC_SEXT, .size = 4}}, "(s32)(%rdi)"},
		{CAIRN_PIECE_VALUE,
		 5,
		 {REG(5), SAVE(0), REG(4),
		  {.op = CAIRN_LOC_MUL, .operand = CAIRN_LOC_OPERAND_REG, .reg = 1},
		  {.op = CAIRN_LOC_ADD, .operand = CAIRN_LOC_SLOT, .imm = 0}},
		 "%rdi+(%rsi*%rdx)"},
	};
	/* clang-format on */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(text_of(cases[i].kind, cases[i].steps, cases[i].n),
				    cases[i].text);
}

static bool name_it(void *ctx, struct cairn_vaddr at, char *name, size_t size)
{
	return at.v == 0x1000 && snprintf(name, size, "table") > 0;
}

static void addresses_are_named_where_a_symbol_is_known(void **state)
{
	char buf[64];
	struct cairn_loc_step step = {.op = CAIRN_LOC_ADDR, .imm = 0x1000};
	struct cairn_piece piece = {.kind = CAIRN_PIECE_VALUE, .n_steps = 1, .steps = &step};
	struct cairn_location loc = {.n_pieces = 1, .pieces = &piece};
	cairn_location_text(&loc, name_it, NULL, buf, sizeof(buf));
	assert_string_equal(buf, "&table");
	step.imm = 0x2000;
	cairn_location_text(&loc, name_it, NULL, buf, sizeof(buf));
	assert_string_equal(buf, "&0x2000");
}

static void a_reason_stands_after_what_is_known(void **state)
{
	char buf[128];
	struct cairn_loc_step step = REG(18);
	struct cairn_piece piece = {.kind = CAIRN_PIECE_VALUE, .n_steps = 1, .steps = &step};
	struct cairn_location loc = {
		.why = CAIRN_UNAVAIL_VECTOR_REGISTER, .n_pieces = 1, .pieces = &piece};
	cairn_location_text(&loc, NULL, NULL, buf, sizeof(buf));
	assert_string_equal(buf, "%xmm1 unavailable: in a register that a probe cannot read");
	loc = (struct cairn_location){.why = CAIRN_UNAVAIL_NOT_LIVE};
	cairn_location_text(&loc, NULL, NULL, buf, sizeof(buf));
	assert_string_equal(buf, "unavailable: not live here");
}

static void every_reason_has_a_text_and_a_word_of_its_own(void **state)
{
	for (int i = 0; i < CAIRN_N_UNAVAILABLE; i++) {
		assert_true(strlen(cairn_unavailable_text(i)) > 3);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(cairn_unavailable_id(i), cairn_unavailable_id(k));
	}
}

static void long_text_is_cut_and_its_length_told(void **state)
{
	char buf[8];
	struct cairn_loc_step steps[] = {REG(7), ADD(0x12345)};
	struct cairn_piece piece = {.kind = CAIRN_PIECE_MEMORY, .n_steps = 2, .steps = steps};
	struct cairn_location loc = {.n_pieces = 1, .pieces = &piece};
	assert_int_equal(cairn_location_text(&loc, NULL, NULL, buf, sizeof(buf)),
			 strlen("*(%rsp+0x12345)"));
	assert_string_equal(buf, "*(%rsp+");
	assert_int_equal(cairn_location_text(&loc, NULL, NULL, NULL, 0), strlen("*(%rsp+0x12345)"));
}

/* ---- calling convention ---- */

struct fixture {
	struct cairn_types *types;
	struct arena arena;
	uint32_t i32, f64, ptr, pair, mixed, big;
};

static uint32_t add(struct cairn_types *types, struct cairn_type t)
{
	uint32_t id = types_reserve(types);
	types_set(types, id, &t);
	return id;
}

static uint32_t add_struct(struct fixture *f, uint64_t size, uint32_t n,
			   const struct cairn_member *members)
{
	return add(f->types, (struct cairn_type){.kind = CAIRN_T_STRUCT,
						 .size = size,
						 .n_members = n,
						 .members = members});
}

static int setup(void **state)
{
	static struct fixture f;
	static struct cairn_member pair[2], mixed[2], big[3];
	f.types = types_new();
	arena_init(&f.arena);
	f.i32 = add(f.types, (struct cairn_type){
				     .kind = CAIRN_T_INT, .encoding = CAIRN_ENC_SIGNED, .size = 4});
	f.f64 = add(f.types, (struct cairn_type){.kind = CAIRN_T_FLOAT, .size = 8});
	f.ptr = add(f.types, (struct cairn_type){.kind = CAIRN_T_PTR, .size = 8});
	pair[0] = (struct cairn_member){.type = f.ptr};
	pair[1] = (struct cairn_member){.type = f.i32, .bit_off = 64};
	mixed[0] = (struct cairn_member){.type = f.f64};
	mixed[1] = (struct cairn_member){.type = f.i32, .bit_off = 64};
	for (unsigned int i = 0; i < 3; i++)
		big[i] = (struct cairn_member){.type = f.ptr, .bit_off = 64 * i};
	f.pair = add_struct(&f, 16, 2, pair);
	f.mixed = add_struct(&f, 16, 2, mixed);
	f.big = add_struct(&f, 24, 3, big);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	types_free(f->types);
	arena_fini(&f->arena);
	return 0;
}

/* The locations of up to 10 parameters, joined by spaces. */
static const char *convention_of(struct fixture *f, struct abi_param result, uint32_t n,
				 const struct abi_param *params)
{
	static char all[1024];
	struct cairn_location locs[10];
	assert_int_equal(abi_locations(f->types, &result, params, n, &f->arena, locs), 0);
	all[0] = 0;
	for (uint32_t i = 0; i < n; i++) {
		char one[128];
		if (locs[i].n_pieces)
			locs[i].why = CAIRN_AVAILABLE;
		cairn_location_text(&locs[i], NULL, NULL, one, sizeof(one));
		strcat(all, i ? " " : "");
		strcat(all, locs[i].n_pieces ? one : "?");
	}
	return all;
}

/* All passed by value. */
static const char *convention(struct fixture *f, uint32_t result, uint32_t n,
			      const uint32_t *params)
{
	struct abi_param given[10];
	for (uint32_t i = 0; i < n; i++)
		given[i] = (struct abi_param){.type = params[i]};
	return convention_of(f, (struct abi_param){.type = result}, n, given);
}

static void integers_take_six_registers_then_the_stack(void **state)
{
	struct fixture *f = *state;
	uint32_t p[8] = {f->i32, f->ptr, f->i32, f->i32, f->i32, f->i32, f->i32, f->ptr};
	assert_string_equal(convention(f, 0, 8, p),
			    "%rdi %rsi %rdx %rcx %r8 %r9 *(%rsp+8) *(%rsp+0x10)");
}

static void floats_have_registers_of_their_own(void **state)
{
	struct fixture *f = *state;
	uint32_t p[3] = {f->f64, f->i32, f->f64};
	assert_string_equal(convention(f, 0, 3, p), "%xmm0 %rdi %xmm1");
}

static void small_structs_travel_in_halves(void **state)
{
	struct fixture *f = *state;
	uint32_t p[2] = {f->pair, f->mixed};
	assert_string_equal(convention(f, 0, 2, p), "{%rdi, %rsi} {%xmm0, %rdx}");
}

static void a_struct_that_does_not_fit_goes_to_the_stack_whole(void **state)
{
	struct fixture *f = *state;
	uint32_t p[7] = {f->i32, f->i32, f->i32, f->i32, f->i32, f->pair, f->i32};
	assert_string_equal(convention(f, 0, 7, p), "%rdi %rsi %rdx %rcx %r8 *(%rsp+8) %r9");
}

static void a_large_result_takes_the_first_register(void **state)
{
	struct fixture *f = *state;
	uint32_t p[1] = {f->i32};
	assert_string_equal(convention(f, f->big, 1, p), "%rsi");
}

static void a_large_struct_goes_to_the_stack_and_takes_no_register(void **state)
{
	struct fixture *f = *state;
	uint32_t p[3] = {f->i32, f->big, f->i32};
	assert_string_equal(convention(f, 0, 3, p), "%rdi *(%rsp+8) %rsi");
}

static void what_is_not_certain_makes_the_rest_unknown(void **state)
{
	struct fixture *f = *state;
	uint32_t decimal =
		add(f->types,
		    (struct cairn_type){.kind = CAIRN_T_FLOAT, .size = 16, .name = "_Decimal128"});
	uint32_t p[3] = {f->i32, decimal, f->i32};
	assert_string_equal(convention(f, 0, 3, p), "%rdi ? ?");
}

static void a_class_by_address_is_where_its_pointer_leads(void **state)
{
	struct fixture *f = *state;
	const struct abi_param p[] = {
		{f->pair, ABI_BY_ADDRESS}, {f->i32}, {f->big, ABI_BY_ADDRESS}};
	assert_string_equal(convention_of(f, (struct abi_param){0}, 3, p), "*(%rdi) %rsi *(%rdx)");
	const struct abi_param many[] = {{f->i32},
					 {f->i32},
					 {f->i32},
					 {f->i32},
					 {f->i32},
					 {f->i32},
					 {f->big, ABI_BY_ADDRESS},
					 {f->i32}};
	assert_string_equal(convention_of(f, (struct abi_param){0}, 8, many),
			    "%rdi %rsi %rdx %rcx %r8 %r9 *(*(%rsp+8)) *(%rsp+0x10)");
}

static void a_result_by_address_takes_the_first_register(void **state)
{
	struct fixture *f = *state;
	const struct abi_param p[] = {{f->i32}};
	assert_string_equal(convention_of(f, (struct abi_param){f->pair, ABI_BY_ADDRESS}, 1, p),
			    "%rsi");
}

static void a_class_that_nobody_tells_how_it_is_passed_makes_the_rest_unknown(void **state)
{
	struct fixture *f = *state;
	const struct abi_param p[] = {{f->i32}, {f->pair, ABI_UNKNOWN}, {f->i32}};
	assert_string_equal(convention_of(f, (struct abi_param){0}, 3, p), "%rdi ? ?");
	assert_string_equal(convention_of(f, (struct abi_param){f->pair, ABI_UNKNOWN}, 1, p), "?");
}

static void a_parameter_that_is_not_passed_takes_no_register(void **state)
{
	struct fixture *f = *state;
	const struct abi_param p[] = {{f->ptr}, {f->i32, ABI_NOT_PASSED}, {f->i32}};
	assert_string_equal(convention_of(f, (struct abi_param){0}, 3, p), "%rdi ? %rsi");
}

static void an_empty_class_takes_nothing_and_leaves_the_stack_open(void **state)
{
	struct fixture *f = *state;
	uint32_t empty = add(f->types, (struct cairn_type){.kind = CAIRN_T_CLASS, .size = 1});
	uint32_t p[] = {empty, f->i32, f->i32, f->i32, f->i32, f->i32, f->i32, f->i32};
	assert_string_equal(convention(f, 0, 8, p), "const 0x00 %rdi %rsi %rdx %rcx %r8 %r9 ?");
}

static void a_nullptr_takes_the_register_of_a_pointer(void **state)
{
	struct fixture *f = *state;
	uint32_t null = add(f->types, (struct cairn_type){.kind = CAIRN_T_UNSPECIFIED,
							  .name = "std::nullptr_t"});
	uint32_t p[] = {null, f->i32};
	assert_string_equal(convention(f, 0, 2, p), "? %rsi");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locations_read_as_people_write_them),
		cmocka_unit_test(addresses_are_named_where_a_symbol_is_known),
		cmocka_unit_test(a_reason_stands_after_what_is_known),
		cmocka_unit_test(every_reason_has_a_text_and_a_word_of_its_own),
		cmocka_unit_test(long_text_is_cut_and_its_length_told),
		cmocka_unit_test_setup_teardown(integers_take_six_registers_then_the_stack, setup,
						teardown),
		cmocka_unit_test_setup_teardown(floats_have_registers_of_their_own, setup,
						teardown),
		cmocka_unit_test_setup_teardown(small_structs_travel_in_halves, setup, teardown),
		cmocka_unit_test_setup_teardown(a_struct_that_does_not_fit_goes_to_the_stack_whole,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_large_result_takes_the_first_register, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_large_struct_goes_to_the_stack_and_takes_no_register, setup, teardown),
		cmocka_unit_test_setup_teardown(a_class_by_address_is_where_its_pointer_leads,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_result_by_address_takes_the_first_register, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_class_that_nobody_tells_how_it_is_passed_makes_the_rest_unknown, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_parameter_that_is_not_passed_takes_no_register,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_empty_class_takes_nothing_and_leaves_the_stack_open, setup, teardown),
		cmocka_unit_test_setup_teardown(a_nullptr_takes_the_register_of_a_pointer, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_not_certain_makes_the_rest_unknown, setup,
						teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
