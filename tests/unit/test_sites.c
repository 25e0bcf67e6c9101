/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From DWARF to sites and locations, over DIE trees written by hand: what each compiler's oddity
 * means. Whole programs are compared with gdb and with their own logs by tests/truth.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <cairn/sites.h>

#include "dwarf/constants.h"
#include "sites_fixture.h"

/*
 * Every tree here is one unit with the abstract function "callee(a, b)" and the body "caller" at
 * [0x1000, 0x1100) with frame base rsp + 16, into which callee is inlined at [0x1010, 0x1030).
 */
struct tree {
	struct db *db;
	int callee, a, b;
};

#define IN_REG(n) (DW_OP_reg0 + (n))
#define BREG(n)   (DW_OP_breg0 + (n))
#define LIT(n)    (DW_OP_lit0 + (n))
#define EXPR(...) DB_EXPR(DW_AT_location, __VA_ARGS__)

static struct tree begin(const char *producer)
{
	struct tree t = {.db = db_new((struct db_format){.version = 5})};
	t.callee = db_label(t.db);
	t.a = db_label(t.db);
	t.b = db_label(t.db);
	db_unit(t.db, DW_UT_compile);
	DB_DIE(t.db, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "unit.c"),
	       DB_STR(DW_AT_producer, producer), DB_U(DW_AT_language, DW_FORM_data1, DW_LANG_C11));
	db_here(t.db, t.callee);
	DB_DIE(t.db, DW_TAG_subprogram, DB_CHILDREN, DB_STR(DW_AT_name, "callee"),
	       DB_U(DW_AT_decl_line, DW_FORM_data1, 7), DB_U(DW_AT_inline, DW_FORM_data1, 1));
	db_here(t.db, t.a);
	DB_DIE(t.db, DW_TAG_formal_parameter, DB_LEAF, DB_STR(DW_AT_name, "a"));
	db_here(t.db, t.b);
	DB_DIE(t.db, DW_TAG_formal_parameter, DB_LEAF, DB_STR(DW_AT_name, "b"));
	db_null(t.db);
	DB_DIE(t.db, DW_TAG_subprogram, DB_CHILDREN, DB_STR(DW_AT_name, "caller"),
	       DB_ADDR(DW_AT_low_pc, 0x1000), DB_U(DW_AT_high_pc, DW_FORM_data4, 0x100),
	       DB_EXPR(DW_AT_frame_base, BREG(7), 16));
	return t;
}

static struct result finish(struct tree *t)
{
	db_null(t->db); /* caller's children */
	db_null(t->db); /* the unit's */
	db_unit_end(t->db);
	return find_callee(t->db);
}

static void end(struct tree *t, struct result *r)
{
	close_result(t->db, r);
}

static const char *arg_text(struct result *r, uint32_t i, uint32_t arg)
{
	/* Used in turn: a test compares a few texts. */
	static char text[8][256];
	static unsigned int n_text;
	char *buf = text[n_text++ % 8];
	assert_true(arg < site(r, i)->n_args);
	cairn_location_text(&site(r, i)->args[arg].loc, NULL, NULL, buf, sizeof(text[0]));
	return buf;
}

/* A copy of callee at [0x1010, 0x1030) with DW_AT_entry_pc at its start. */
static void inlined(struct tree *t)
{
	DB_DIE(t->db, DW_TAG_inlined_subroutine, DB_CHILDREN,
	       DB_REF(DW_AT_abstract_origin, t->callee), DB_ADDR(DW_AT_low_pc, 0x1010),
	       DB_U(DW_AT_high_pc, DW_FORM_data4, 0x20), DB_ADDR(DW_AT_entry_pc, 0x1010),
	       DB_U(DW_AT_GNU_entry_view, DW_FORM_data1, 2));
}

static void formal(struct tree *t, int origin, struct db_attr location)
{
	DB_DIE(t->db, DW_TAG_formal_parameter, DB_LEAF, DB_REF(DW_AT_abstract_origin, origin),
	       location);
}

/* ---- expressions ---- */

static void assert_location(struct db_attr location, const char *text)
{
	struct tree t = begin("GNU C17 12.2.0");
	inlined(&t);
	formal(&t, t.a, location);
	db_null(t.db);
	struct result r = finish(&t);
	assert_string_equal(arg_text(&r, 0, 0), text);
	end(&t, &r);
}

static void a_value_and_an_address_are_told_apart(void **state)
{
	assert_location(EXPR(BREG(5), 0, DW_OP_stack_value), "%rdi");
	/*
	 * A register that is the variable's home for the whole scope need not hold it yet at its
	 * first instruction.
	 */
	assert_location(EXPR(IN_REG(5)), "unavailable: may not have been stored to its slot yet");
	assert_location(EXPR(BREG(5), 8), "*(%rdi+8)");
	assert_location(EXPR(BREG(5), 8, DW_OP_stack_value), "%rdi+8");
	assert_location(EXPR(BREG(5), 8, DW_OP_deref), "*(*(%rdi+8))");
	assert_location(
		EXPR(BREG(5), 8, DW_OP_deref, DW_OP_stack_value),
		"*(%rdi+8) unavailable: computed from memory that may hold another value here");
}

static void constants_of_every_width(void **state)
{
	assert_location(EXPR(LIT(7), DW_OP_stack_value), "const 7");
	assert_location(EXPR(DW_OP_const1s, 0xff, DW_OP_stack_value), "const -1");
	assert_location(EXPR(DW_OP_const2u, 0xff, 0xff, DW_OP_stack_value), "const 65535");
	assert_location(EXPR(DW_OP_const4s, 0xfe, 0xff, 0xff, 0xff, DW_OP_stack_value), "const -2");
	assert_location(EXPR(DW_OP_constu, 0x80, 0x01, DW_OP_stack_value), "const 128");
	assert_location(EXPR(DW_OP_implicit_value, 2, 0x34, 0x12), "const 0x1234");
	assert_location(DB_U(DW_AT_const_value, DW_FORM_data1, 9), "const 9");
	assert_location(((struct db_attr){
				.at = DW_AT_const_value, .form = DW_FORM_sdata, .u = (uint64_t)-3}),
			"const -3");
}

static void arithmetic_is_folded(void **state)
{
	assert_location(EXPR(BREG(5), 0, LIT(3), DW_OP_shl, DW_OP_stack_value), "%rdi<<3");
	assert_location(EXPR(LIT(3), LIT(4), DW_OP_mul, DW_OP_stack_value), "const 12");
	assert_location(EXPR(BREG(5), 4, BREG(4), 0, DW_OP_plus, DW_OP_stack_value), "%rdi+4+%rsi");
	assert_location(EXPR(LIT(5), BREG(5), 0, DW_OP_minus, DW_OP_stack_value), "5-%rdi");
	assert_location(
		EXPR(BREG(5), 0, BREG(4), 0, BREG(1), 0, DW_OP_mul, DW_OP_plus, DW_OP_stack_value),
		"%rsi*%rdx+%rdi");
	assert_location(
		EXPR(BREG(5), 0, BREG(4), 0, BREG(1), 0, DW_OP_mul, DW_OP_minus, DW_OP_stack_value),
		"%rdi-(%rsi*%rdx)");
	assert_location(EXPR(BREG(5), 0, DW_OP_dup, DW_OP_plus, DW_OP_stack_value), "%rdi+%rdi");
	assert_location(EXPR(BREG(5), 0, BREG(4), 0, DW_OP_swap, DW_OP_minus, DW_OP_stack_value),
			"%rsi-%rdi");
}

static void pieces_make_a_struct(void **state)
{
	assert_location(EXPR(BREG(5), 0, DW_OP_stack_value, DW_OP_piece, 8, BREG(4), 0,
			     DW_OP_stack_value, DW_OP_piece, 8),
			"{%rdi, %rsi}");
	assert_location(EXPR(IN_REG(5), DW_OP_piece, 4, DW_OP_piece, 4),
			"{%rdi, optimised out} unavailable: partly optimised out");
}

static void what_needs_another_frame_is_unavailable(void **state)
{
	assert_location(EXPR(DW_OP_GNU_parameter_ref, 0, 0, 0, 0),
			"unavailable: needs the caller's frame");
	assert_location(EXPR(DW_OP_implicit_pointer, 0, 0, 0, 0, 0),
			"unavailable: points to something that is not in memory");
	assert_location(EXPR(IN_REG(17)),
			"%xmm0 unavailable: in a register that a probe cannot read");
}

static void a_damaged_or_unknown_expression_is_unavailable(void **state)
{
	assert_location(EXPR(DW_OP_plus), "unavailable: its description is damaged");
	assert_location(EXPR(DW_OP_const4u, 1), "unavailable: its description is damaged");
	assert_location(EXPR(BREG(5), 0, DW_OP_bra, 0, 0),
			"unavailable: its description uses an operation that is not supported");
	assert_location(EXPR(0xff),
			"unavailable: its description uses an operation that is not supported");
}

/* DW_AT_frame_base of the container is rsp + 16; what the slot holds at the entry is not known. */
static void a_stack_slot_for_the_whole_scope_is_not_trusted_at_its_entry(void **state)
{
	assert_location(EXPR(DW_OP_fbreg, 8),
			"unavailable: may not have been stored to its slot yet");
	assert_location(EXPR(DW_OP_fbreg, 8, DW_OP_stack_value), "%rsp+0x18");
}

static void a_shift_to_the_right_needs_to_know_how_wide_its_operand_is(void **state)
{
	static const char unknown[] =
		"unavailable: its description uses an operation that is not supported";
	assert_location(EXPR(BREG(5), 0, LIT(3), DW_OP_shr, DW_OP_stack_value), unknown);
	assert_location(EXPR(BREG(5), 0, LIT(3), DW_OP_shra, DW_OP_stack_value), unknown);
	/* Cut to 32 bits first, as an unsigned value; of a signed one the sign would be lost. */
	assert_location(EXPR(BREG(5), 0, DW_OP_const4u, 0xff, 0xff, 0xff, 0xff, DW_OP_and, LIT(3),
			     DW_OP_shr, DW_OP_stack_value),
			"(%rdi&0xffffffff)>>3");
	assert_location(EXPR(BREG(5), 0, DW_OP_const4u, 0xff, 0xff, 0xff, 0xff, DW_OP_and, LIT(3),
			     DW_OP_shra, DW_OP_stack_value),
			unknown);
	/* How GCC extends a sign. */
	assert_location(EXPR(BREG(5), 0, DW_OP_const1u, 32, DW_OP_shl, DW_OP_const1u, 32,
			     DW_OP_shra, DW_OP_stack_value),
			"(%rdi<<0x20)>>s0x20");
}

static void entry_value_counts_while_the_register_is_unchanged(void **state)
{
	/* The code is zeros: "add %al, (%rax)", which writes no register. */
	assert_location(EXPR(DW_OP_entry_value, 1, IN_REG(5), DW_OP_stack_value), "%rdi");
	/* More than a register at entry is the caller's business. */
	assert_location(
		EXPR(DW_OP_entry_value, 2, BREG(5), 8, DW_OP_stack_value),
		"unavailable: needs the caller's frame: its register may have changed since entry");
}

static void body(struct tree *t, struct db_attr a, struct db_attr b)
{
	DB_DIE(t->db, DW_TAG_subprogram, DB_CHILDREN, DB_REF(DW_AT_abstract_origin, t->callee),
	       DB_ADDR(DW_AT_low_pc, 0x1040), DB_U(DW_AT_high_pc, DW_FORM_data4, 0x20));
	formal(t, t->a, a);
	formal(t, t->b, b);
	db_null(t->db);
}

static void bodies_at_one_address_know_what_all_of_them_say(void **state)
{
	(void)state;
	struct tree t = begin("GNU C11 12.2.0");
	body(&t, EXPR(BREG(5), 0, DW_OP_stack_value), EXPR(BREG(1), 1, DW_OP_stack_value));
	body(&t, EXPR(BREG(4), 0, DW_OP_stack_value), EXPR(BREG(1), 1, DW_OP_stack_value));
	struct result r = finish(&t);
	assert_int_equal(r.found.p[0]->n_sites, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_string_equal(arg_text(&r, i, 0),
				    "unavailable: several locations are given and they differ");
		assert_string_equal(arg_text(&r, i, 1), "%rdx+1");
	}
	end(&t, &r);
}

/* ---- lists and views ---- */

/* A DWARF 5 list with views; returns attributes through @list and @views. */
struct range_view {
	uint64_t lo, hi, view_lo, view_hi;
	uint8_t op;
};

static void list_of(struct tree *t, const struct range_view *entries, size_t n,
		    struct db_attr *list, struct db_attr *views)
{
	*views = DB_SECOFF(DW_AT_GNU_locviews, db_at(t->db, DB_LOCLISTS));
	for (size_t i = 0; i < n; i++) {
		db_uleb(t->db, DB_LOCLISTS, entries[i].view_lo);
		db_uleb(t->db, DB_LOCLISTS, entries[i].view_hi);
	}
	*list = DB_SECOFF(DW_AT_location, db_at(t->db, DB_LOCLISTS));
	for (size_t i = 0; i < n; i++) {
		db_u8(t->db, DB_LOCLISTS, DW_LLE_start_end);
		db_addr(t->db, DB_LOCLISTS, entries[i].lo);
		db_addr(t->db, DB_LOCLISTS, entries[i].hi);
		db_uleb(t->db, DB_LOCLISTS, 1);
		db_u8(t->db, DB_LOCLISTS, entries[i].op);
	}
	db_u8(t->db, DB_LOCLISTS, DW_LLE_end_of_list);
}

static void list_header(struct tree *t)
{
	db_length(t->db, DB_LOCLISTS);
	db_uint(t->db, DB_LOCLISTS, 5, 2);
	db_u8(t->db, DB_LOCLISTS, 8);
	db_u8(t->db, DB_LOCLISTS, 0);
	db_uint(t->db, DB_LOCLISTS, 0, 4);
}

/* The site is (0x1010, view 2). */
static void assert_choice(const struct range_view *entries, size_t n, bool with_views,
			  const char *text)
{
	struct tree t = begin("GNU C17 12.2.0");
	struct db_attr list, views;
	list_header(&t);
	list_of(&t, entries, n, &list, &views);
	inlined(&t);
	if (with_views)
		DB_DIE(t.db, DW_TAG_formal_parameter, DB_LEAF, DB_REF(DW_AT_abstract_origin, t.a),
		       list, views);
	else
		formal(&t, t.a, list);
	db_null(t.db);
	struct result r = finish(&t);
	assert_string_equal(arg_text(&r, 0, 0), text);
	end(&t, &r);
}

static void the_entry_that_contains_the_address_is_chosen(void **state)
{
	const struct range_view e[] = {
		{0x1000, 0x1010, 0, 0, IN_REG(1)},
		{0x1010, 0x1018, 0, 0, IN_REG(2)},
		{0x1018, 0x1030, 0, 0, IN_REG(3)},
	};
	assert_choice(e, 3, true, "%rcx");
	assert_choice(e + 2, 1, true, "unavailable: not live here");
	assert_choice(e, 1, true, "unavailable: not live here");
}

static void at_one_address_the_view_decides(void **state)
{
	const struct range_view e[] = {
		{0x1000, 0x1010, 0, 2, IN_REG(1)}, /* ends just before the entry */
		{0x1010, 0x1010, 2, 4, IN_REG(2)}, /* no instruction long, and the argument */
		{0x1010, 0x1030, 4, 0, IN_REG(3)}, /* after the function changed it */
	};
	assert_choice(e, 3, true, "%rcx");
	assert_choice(e, 1, true, "unavailable: not live here");
	assert_choice(e + 2, 1, true, "unavailable: not live here");
}

static void an_argument_bound_right_after_the_entrys_row_is_the_argument(void **state)
{
	const struct range_view e[] = {
		{0x1010, 0x1014, 3, 0, IN_REG(2)},
		{0x1014, 0x1030, 0, 0, IN_REG(3)},
	};
	assert_choice(e, 2, true, "%rcx");
}

static void locations_that_contradict_each_other_are_ambiguous(void **state)
{
	const struct range_view e[] = {
		{0x1000, 0x1030, 0, 0, IN_REG(1)},
		{0x1010, 0x1018, 0, 0, IN_REG(2)},
	};
	assert_choice(e, 2, true, "unavailable: several locations are given and they differ");
	const struct range_view twice[] = {e[0], e[0]};
	assert_choice(twice, 2, true, "%rdx");
}

static void without_views_a_value_may_belong_to_a_later_statement(void **state)
{
	const struct range_view e[] = {{0x1010, 0x1030, 0, 0, IN_REG(2)}};
	assert_choice(e, 1, true, "%rcx");
	assert_choice(e, 1, false, "%rcx unavailable: the function may already have changed it");
}

/* ---- parameters ---- */

static void a_parameter_without_a_die_is_missing_and_shifts_nothing(void **state)
{
	struct tree t = begin("GNU C17 12.2.0");
	inlined(&t);
	formal(&t, t.b, EXPR(BREG(4), 0, DW_OP_stack_value));
	db_null(t.db);
	struct result r = finish(&t);
	assert_int_equal(site(&r, 0)->n_args, 2);
	assert_string_equal(site(&r, 0)->args[0].name, "a");
	assert_int_equal(site(&r, 0)->args[0].loc.why, CAIRN_UNAVAIL_NO_DESCRIPTION);
	assert_string_equal(arg_text(&r, 0, 1), "%rsi");
	end(&t, &r);
}

static void parameters_are_matched_by_origin_not_by_position(void **state)
{
	struct tree t = begin("GNU C17 12.2.0");
	inlined(&t);
	formal(&t, t.b, EXPR(BREG(4), 0, DW_OP_stack_value));
	formal(&t, t.a, EXPR(BREG(5), 0, DW_OP_stack_value));
	db_null(t.db);
	struct result r = finish(&t);
	assert_string_equal(arg_text(&r, 0, 0), "%rdi");
	assert_string_equal(arg_text(&r, 0, 1), "%rsi");
	end(&t, &r);
}

/* ---- addresses ---- */

/*
 * References to outside the unit, into the middle of a DIE, to a DIE that is no parameter, and in a
 * circle.
 */
static void a_damaged_origin_shifts_no_argument(void **state)
{
	for (int damage = 0; damage < 4; damage++) {
		struct tree t = begin("GNU C17 12.2.0");
		int self = db_label(t.db);
		struct db_attr origins[] = {
			DB_U(DW_AT_abstract_origin, DW_FORM_ref4, 0x7fffffff),
			DB_U(DW_AT_abstract_origin, DW_FORM_ref4, db_offset(t.db, t.a) + 1),
			DB_REF(DW_AT_abstract_origin, t.callee),
			DB_REF(DW_AT_abstract_origin, self),
		};
		inlined(&t);
		db_here(t.db, self);
		DB_DIE(t.db, DW_TAG_formal_parameter, DB_LEAF, origins[damage],
		       EXPR(BREG(5), 0, DW_OP_stack_value));
		formal(&t, t.b, EXPR(BREG(4), 0, DW_OP_stack_value));
		db_null(t.db);
		struct result r = finish(&t);
		assert_string_equal(arg_text(&r, 0, 1), "%rsi");
		assert_int_equal(site(&r, 0)->args[0].loc.why, CAIRN_UNAVAIL_NO_DESCRIPTION);
		end(&t, &r);
	}
}

static void entry_pc_is_the_address_even_outside_the_copys_own_range(void **state)
{
	struct tree t = begin("GNU C17 12.2.0");
	DB_DIE(t.db, DW_TAG_inlined_subroutine, DB_LEAF, DB_REF(DW_AT_abstract_origin, t.callee),
	       DB_ADDR(DW_AT_low_pc, 0x1010), DB_U(DW_AT_high_pc, DW_FORM_data4, 0x20),
	       DB_ADDR(DW_AT_entry_pc, 0x100c));
	struct result r = finish(&t);
	assert_int_equal(site(&r, 0)->at.v, 0x100c);
	assert_int_equal(site(&r, 0)->rule, CAIRN_AT_ENTRY_PC);
	end(&t, &r);
}

static void entry_pc_outside_the_containing_function_is_not_believed(void **state)
{
	struct tree t = begin("GNU C17 12.2.0");
	DB_DIE(t.db, DW_TAG_inlined_subroutine, DB_LEAF, DB_REF(DW_AT_abstract_origin, t.callee),
	       DB_ADDR(DW_AT_low_pc, 0x1010), DB_U(DW_AT_high_pc, DW_FORM_data4, 0x20),
	       DB_ADDR(DW_AT_entry_pc, 0x1200));
	struct result r = finish(&t);
	assert_int_equal(site(&r, 0)->at.v, 0x1010);
	assert_int_equal(site(&r, 0)->rule, CAIRN_AT_LOW_PC);
	end(&t, &r);
}

static void an_offset_as_entry_pc_counts_from_the_start_of_the_range(void **state)
{
	struct tree t = begin("GNU C17 12.2.0");
	DB_DIE(t.db, DW_TAG_inlined_subroutine, DB_LEAF, DB_REF(DW_AT_abstract_origin, t.callee),
	       DB_ADDR(DW_AT_low_pc, 0x1010), DB_U(DW_AT_high_pc, DW_FORM_data4, 0x20),
	       DB_U(DW_AT_entry_pc, DW_FORM_data1, 6));
	struct result r = finish(&t);
	assert_int_equal(site(&r, 0)->at.v, 0x1016);
	end(&t, &r);
}

static void a_copy_without_code_is_counted_and_is_no_site(void **state)
{
	struct tree t = begin("GNU C17 12.2.0");
	DB_DIE(t.db, DW_TAG_inlined_subroutine, DB_LEAF, DB_REF(DW_AT_abstract_origin, t.callee));
	DB_DIE(t.db, DW_TAG_inlined_subroutine, DB_LEAF, DB_REF(DW_AT_abstract_origin, t.callee),
	       DB_ADDR(DW_AT_low_pc, 0x1010), DB_U(DW_AT_high_pc, DW_FORM_data4, 0));
	struct result r = finish(&t);
	assert_int_equal(r.found.p[0]->n_sites, 0);
	assert_int_equal(r.found.p[0]->n_without_code, 2);
	end(&t, &r);
}

static void copies_inside_copies_tell_their_chain(void **state)
{
	struct tree t = begin("GNU C17 12.2.0");
	inlined(&t);
	DB_DIE(t.db, DW_TAG_inlined_subroutine, DB_LEAF, DB_REF(DW_AT_abstract_origin, t.callee),
	       DB_ADDR(DW_AT_low_pc, 0x1010), DB_U(DW_AT_high_pc, DW_FORM_data4, 4),
	       DB_U(DW_AT_call_line, DW_FORM_data1, 30), DB_U(DW_AT_call_column, DW_FORM_data1, 3));
	db_null(t.db);
	struct result r = finish(&t);
	assert_int_equal(r.found.p[0]->n_sites, 2);
	const struct cairn_site *inner = site(&r, 1);
	assert_int_equal(inner->n_chain, 2);
	assert_int_equal(inner->chain[0].call_line, 30);
	assert_int_equal(inner->chain[0].call_column, 3);
	assert_string_equal(inner->chain[1].function, "callee");
	assert_string_equal(inner->container, "caller");
	assert_int_equal(inner->container_off, 0x10);
	/* Both begin at one instruction. */
	assert_int_equal(inner->n_shared, 2);
	end(&t, &r);
}

/* ---- names ---- */

static void names_can_be_chosen_by_file_and_line(void **state)
{
	struct tree t = begin("GNU C17 12.2.0");
	inlined(&t);
	db_null(t.db);
	struct result r = finish(&t);
	struct cairn_function_list l;
	assert_int_equal(cairn_sites_find(r.sites, "nothing.c:callee", &l, NULL), 0);
	assert_int_equal(cairn_sites_find(r.sites, "calle", &l, NULL), 0);
	assert_int_equal(cairn_sites_find(r.sites, "", &l, NULL), 0);
	assert_int_equal(cairn_sites_find(r.sites, ":::", &l, NULL), 0);
	const char *near[4];
	assert_int_equal(cairn_sites_suggest(r.sites, "calee", near, 4, NULL),
			 2); /* and "caller" */
	assert_string_equal(near[0], "callee");
	end(&t, &r);
}

static int fail_after_two(void *ctx, const struct cairn_function *f)
{
	return ++*(int *)ctx == 2 ? -EINTR : 0;
}

static void a_visit_can_be_ended(void **state)
{
	struct tree t = begin("GNU C17 12.2.0");
	inlined(&t);
	db_null(t.db);
	struct result r = finish(&t);
	int n = 0;
	assert_int_equal(cairn_sites_visit(r.sites, fail_after_two, &n, NULL), -EINTR);
	assert_int_equal(n, 2);
	end(&t, &r);
}

/* A body of no parameters, whose result has a type that its language does not know. */
static struct result body_of(struct db **ret, const char *producer, unsigned int language)
{
	struct db *db = *ret = db_new((struct db_format){.version = 5});
	int unknown = db_label(db);
	db_unit(db, DW_UT_compile);
	DB_DIE(db, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "unit"),
	       DB_STR(DW_AT_producer, producer), DB_U(DW_AT_language, DW_FORM_data2, language));
	DB_DIE(db, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "callee"),
	       DB_REF(DW_AT_type, unknown), DB_ADDR(DW_AT_low_pc, 0x1000),
	       DB_U(DW_AT_high_pc, DW_FORM_data4, 0x100));
	db_here(db, unknown);
	DB_DIE(db, DW_TAG_unspecified_type, DB_LEAF);
	db_null(db);
	db_unit_end(db);
	return find_callee(db);
}

static void a_function_of_an_assembler_may_have_parameters_and_a_result(void **state)
{
	struct tree t;
	struct result r = body_of(&t.db, "GNU AS 2.40", DW_LANG_Mips_Assembler);
	assert_true(r.found.p[0]->params_unknown);
	assert_int_equal(r.found.p[0]->return_type, 0);
	end(&t, &r);
	r = body_of(&t.db, "GNU C17 12.2.0", DW_LANG_C11);
	assert_false(r.found.p[0]->params_unknown);
	assert_int_not_equal(r.found.p[0]->return_type, 0);
	end(&t, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_and_an_address_are_told_apart),
		cmocka_unit_test(constants_of_every_width),
		cmocka_unit_test(arithmetic_is_folded),
		cmocka_unit_test(pieces_make_a_struct),
		cmocka_unit_test(what_needs_another_frame_is_unavailable),
		cmocka_unit_test(a_damaged_or_unknown_expression_is_unavailable),
		cmocka_unit_test(a_stack_slot_for_the_whole_scope_is_not_trusted_at_its_entry),
		cmocka_unit_test(a_shift_to_the_right_needs_to_know_how_wide_its_operand_is),
		cmocka_unit_test(bodies_at_one_address_know_what_all_of_them_say),
		cmocka_unit_test(entry_value_counts_while_the_register_is_unchanged),
		cmocka_unit_test(the_entry_that_contains_the_address_is_chosen),
		cmocka_unit_test(at_one_address_the_view_decides),
		cmocka_unit_test(an_argument_bound_right_after_the_entrys_row_is_the_argument),
		cmocka_unit_test(locations_that_contradict_each_other_are_ambiguous),
		cmocka_unit_test(without_views_a_value_may_belong_to_a_later_statement),
		cmocka_unit_test(a_parameter_without_a_die_is_missing_and_shifts_nothing),
		cmocka_unit_test(parameters_are_matched_by_origin_not_by_position),
		cmocka_unit_test(a_damaged_origin_shifts_no_argument),
		cmocka_unit_test(entry_pc_is_the_address_even_outside_the_copys_own_range),
		cmocka_unit_test(entry_pc_outside_the_containing_function_is_not_believed),
		cmocka_unit_test(an_offset_as_entry_pc_counts_from_the_start_of_the_range),
		cmocka_unit_test(a_copy_without_code_is_counted_and_is_no_site),
		cmocka_unit_test(copies_inside_copies_tell_their_chain),
		cmocka_unit_test(names_can_be_chosen_by_file_and_line),
		cmocka_unit_test(a_visit_can_be_ended),
		cmocka_unit_test(a_function_of_an_assembler_may_have_parameters_and_a_result),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
