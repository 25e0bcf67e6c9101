/* SPDX-License-Identifier: BSD-2-Clause */
/* DWARF 5's typed operations: an operand has the width and the sign of its type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "dwarf/constants.h"
#include "dwarf_builder.h"
#include "elf/elf.h"
#include "loc/loc.h"

/* Sites of base types in the unit, of 1, 4 and 8 bytes. */
enum { U8, S32, U32, U64, N_TYPES };

struct fixture {
	struct db *db;
	struct cairn_binary *bin;
	struct dwarf *dw;
	uint8_t types[N_TYPES];
};

static int setup(void **state)
{
	static const struct {
		uint8_t size, encoding;
	} types[N_TYPES] = {{1, DW_ATE_unsigned},
			    {4, DW_ATE_signed},
			    {4, DW_ATE_unsigned},
			    {8, DW_ATE_unsigned}};
	static struct fixture f;
	size_t size;
	f.db = db_new((struct db_format){.version = 5});
	db_unit(f.db, DW_UT_compile);
	DB_DIE(f.db, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
	for (int i = 0; i < N_TYPES; i++) {
		int label = db_label(f.db);
		db_here(f.db, label);
		DB_DIE(f.db, DW_TAG_base_type, DB_LEAF, DB_STR(DW_AT_name, "t"),
		       DB_U(DW_AT_byte_size, DW_FORM_data1, types[i].size),
		       DB_U(DW_AT_encoding, DW_FORM_data1, types[i].encoding));
		f.types[i] = (uint8_t)db_offset(f.db, label);
	}
	db_null(f.db);
	db_unit_end(f.db);
	const uint8_t *bytes = db_finish(f.db, &size);
	assert_int_equal(binary_open_mem(bytes, size, "typed", &f.bin, NULL), 0);
	assert_int_equal(dwarf_open(f.bin, 1, &f.dw, NULL), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	dwarf_close(f->dw);
	cairn_binary_close(f->bin);
	db_free(f->db);
	return 0;
}

static const char *folded(struct fixture *f, const uint8_t *expr, size_t n)
{
	static char text[256];
	struct loc_context ctx = {.dw = f->dw};
	struct cairn_location loc;
	struct arena arena;
	arena_init(&arena);
	assert_int_equal(loc_from_expr(&ctx, dwarf_unit(f->dw, 0), expr, n, &arena, &loc), 0);
	cairn_location_text(&loc, NULL, NULL, text, sizeof(text));
	arena_fini(&arena);
	return text;
}

#define FOLDED(f, ...)                                                                             \
	folded(f, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void shr_brings_down_zeros_whatever_the_sign_of_the_type(void **state)
{
	struct fixture *f = *state;
	assert_string_equal(FOLDED(f, DW_OP_regval_type, 5, f->types[S32], DW_OP_lit0 + 28,
				   DW_OP_shr, DW_OP_stack_value),
			    "(s32)((u32)((s32)(%rdi))>>0x1c)");
	/* 0x80000000 >> 28 */
	assert_string_equal(FOLDED(f, DW_OP_const_type, f->types[S32], 4, 0, 0, 0, 0x80,
				   DW_OP_lit0 + 28, DW_OP_shr, DW_OP_stack_value),
			    "const 8");
}

static void shra_brings_down_the_top_bit_whatever_the_sign_of_the_type(void **state)
{
	struct fixture *f = *state;
	/* -8 in 32 bits, which are a number without sign. */
	assert_string_equal(FOLDED(f, DW_OP_const_type, f->types[U32], 4, 0, 0, 0, 0x80,
				   DW_OP_lit0 + 28, DW_OP_shra, DW_OP_stack_value),
			    "const 4294967288");
}

static void a_sum_with_a_constant_stays_in_its_type(void **state)
{
	struct fixture *f = *state;
	assert_string_equal(FOLDED(f, DW_OP_const_type, f->types[U8], 1, 255, DW_OP_plus_uconst, 3,
				   DW_OP_stack_value),
			    "(u8)(0xff+3)");
}

/* The steps of a location compare with sign. */
static void eight_bytes_without_sign_are_not_compared(void **state)
{
	struct fixture *f = *state;
	assert_string_equal(FOLDED(f, DW_OP_regval_type, 5, f->types[U64], DW_OP_regval_type, 4,
				   f->types[U64], DW_OP_lt, DW_OP_stack_value),
			    "unavailable: its description uses an operation that is not supported");
	assert_string_equal(FOLDED(f, DW_OP_regval_type, 5, f->types[U64], DW_OP_regval_type, 4,
				   f->types[U64], DW_OP_eq, DW_OP_stack_value),
			    "%rdi==%rsi");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shr_brings_down_zeros_whatever_the_sign_of_the_type),
		cmocka_unit_test(shra_brings_down_the_top_bit_whatever_the_sign_of_the_type),
		cmocka_unit_test(a_sum_with_a_constant_stays_in_its_type),
		cmocka_unit_test(eight_bytes_without_sign_are_not_compared),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
