/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events and calls: what is no call, and where it is said that events may not be as many as calls.
 * Over DIE trees and instructions written by hand; tests/truth/call_counts.py counts the calls of
 * whole programs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <cairn/sites.h>

#include "alloc_fail.h"
#include "between.h"
#include "dwarf/constants.h"
#include "sites_fixture.h"

#define GCC   "GNU C17 12.2.0 -O2 -g"
#define CLANG "clang version 14.0.6"

/* Instructions, two bytes each where that is possible. */
#define NOTHING  0x31, 0xc0 /* xor %eax, %eax */
#define STORE    0x89, 0x07 /* mov %eax, (%rdi) */
#define NOP      0x66, 0x90
#define RET      0xc3, 0x90             /* and padding */
#define CALL     0xff, 0x15, 0, 0, 0, 0 /* through a pointer, 6 bytes */
#define JE(off)  0x74, (uint8_t)(off)   /* from the end of it */
#define JMP(off) 0xeb, (uint8_t)(off)

#define CALL_OF(off)                                                                               \
	0xe8, (uint8_t)(off), (uint8_t)((off) >> 8), (uint8_t)((off) >> 16),                       \
		(uint8_t)((off) >> 24) /* from the end of it */

/* A row of the line table: at 0x1000 and more, of line 1 to 127. */
struct row {
	uint8_t at, line, column;
};

/*
 * The abstract "callee", declared at line 7, column 5; then the body "caller" at [0x1000, 0x1040).
 */
struct tree {
	struct db *db;
	int callee;
	uint8_t if_column; /* of a statement at 0x1000, after which 0x1002 has the call's, in column 5, and the entry; 0: none */
	uint8_t if_branch; /* where two bytes of that statement are again, from 0x1000 on, before another statement; 0: nowhere */
	uint8_t line0,
		line0_end; /* from and to where the line table says 0, from 0x1000 on; both 0: it has no rows */
	const struct row *rows; /* each begins a statement; NULL: see above */
	size_t n_rows;
	uint8_t view; /* of the entries of copies that follow; 0: 1 */
};

static struct tree begin(const char *producer, const uint8_t *code, size_t n, uint8_t caller_line)
{
	struct tree t = {.db = db_new((struct db_format){.version = 5})};
	t.callee = db_label(t.db);
	db_code(t.db, code, n);
	db_unit(t.db, DW_UT_compile);
	DB_DIE(t.db, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "unit.c"),
	       DB_STR(DW_AT_producer, producer), DB_U(DW_AT_stmt_list, DW_FORM_sec_offset, 0),
	       DB_U(DW_AT_language, DW_FORM_data1, DW_LANG_C11));
	db_here(t.db, t.callee);
	DB_DIE(t.db, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "callee"),
	       DB_U(DW_AT_decl_file, DW_FORM_data1, 1), DB_U(DW_AT_decl_line, DW_FORM_data1, 7),
	       DB_U(DW_AT_decl_column, DW_FORM_data1, 5), DB_U(DW_AT_inline, DW_FORM_data1, 1));
	DB_DIE(t.db, DW_TAG_subprogram, DB_CHILDREN, DB_STR(DW_AT_name, "caller"),
	       DB_ADDR(DW_AT_low_pc, 0x1000), DB_U(DW_AT_high_pc, DW_FORM_data4, 0x40),
	       DB_U(DW_AT_decl_file, DW_FORM_data1, 1),
	       DB_U(DW_AT_decl_line, DW_FORM_data1, caller_line),
	       DB_U(DW_AT_decl_column, DW_FORM_data1, 5));
	return t;
}

/* One sequence from 0x1000 to 0x1040, of line 1 but for the part that has line 0. */
static void rows(struct db *db, const struct tree *t)
{
	/* clang-format off */
	const uint8_t program[] = {
		DW_LNS_copy,
		DW_LNS_advance_pc, t->line0, DW_LNS_advance_line, 0x7f, DW_LNS_copy,
		DW_LNS_advance_pc, t->line0_end - t->line0, DW_LNS_advance_line, 1, DW_LNS_copy,
		DW_LNS_advance_pc, 0x40 - t->line0_end, 0, 1, DW_LNE_end_sequence,
	};
	/* clang-format on */
	db_bytes(db, DB_LINE, (const uint8_t[]){0, 9, DW_LNE_set_address}, 3);
	db_uint(db, DB_LINE, 0x1000, 8);
	db_bytes(db, DB_LINE, program, sizeof(program));
}

/*
 * The statements of if_column, in lines 20 and 21, and the entry's row at the callee's declaration;
 * then those of if_branch.
 */
static void statements(struct db *db, const struct tree *t)
{
	/* clang-format off */
	const uint8_t program[] = {
		DW_LNS_advance_line, 19, DW_LNS_set_column, t->if_column, DW_LNS_copy,
		DW_LNS_advance_pc, 2, DW_LNS_advance_line, 1, DW_LNS_set_column, 5, DW_LNS_copy,
		DW_LNS_advance_line, 0x72, DW_LNS_copy,
	};
	/* clang-format on */
	/* clang-format off */
	const uint8_t again[] = {
		DW_LNS_advance_pc, t->if_branch - 2, DW_LNS_advance_line, 13, DW_LNS_negate_stmt, DW_LNS_copy,
		DW_LNS_advance_pc, 2, DW_LNS_advance_line, 5, DW_LNS_negate_stmt, DW_LNS_copy,
	};
	/* clang-format on */
	const uint8_t last = t->if_branch ? t->if_branch + 2 : 2;
	const uint8_t end[] = {DW_LNS_advance_pc, 0x40 - last, 0, 1, DW_LNE_end_sequence};
	db_bytes(db, DB_LINE, (const uint8_t[]){0, 9, DW_LNE_set_address}, 3);
	db_uint(db, DB_LINE, 0x1000, 8);
	db_bytes(db, DB_LINE, program, sizeof(program));
	if (t->if_branch)
		db_bytes(db, DB_LINE, again, sizeof(again));
	db_bytes(db, DB_LINE, end, sizeof(end));
}

static void given_rows(struct db *db, const struct tree *t)
{
	uint8_t at = 0, line = 1;
	db_bytes(db, DB_LINE, (const uint8_t[]){0, 9, DW_LNE_set_address}, 3);
	db_uint(db, DB_LINE, 0x1000, 8);
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct row *r = &t->rows[i];
		const uint8_t advance = (uint8_t)(r->line - line) & 0x7f;
		const uint8_t program[] = {
			DW_LNS_advance_pc, (uint8_t)(r->at - at), DW_LNS_advance_line,
			advance,           DW_LNS_set_column,     r->column,
			DW_LNS_copy,
		};
		db_bytes(db, DB_LINE, program, sizeof(program));
		at = r->at;
		line = r->line;
	}
	db_bytes(db, DB_LINE,
		 (const uint8_t[]){DW_LNS_advance_pc, (uint8_t)(0x40 - at), 0, 1,
				   DW_LNE_end_sequence},
		 5);
}

/* A line table of version 4 with one file, so that file numbers have names. */
static void lines(struct db *db, const struct tree *t)
{
	uint64_t unit = db_length(db, DB_LINE);
	db_uint(db, DB_LINE, 4, 2);
	uint64_t header = db_at(db, DB_LINE);
	db_uint(db, DB_LINE, 0, 4);
	static const uint8_t fields[] = {1, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0};
	db_bytes(db, DB_LINE, fields, sizeof(fields));
	db_cstr(db, DB_LINE, "unit.c");
	static const uint8_t file[] = {0, 0, 0, 0};
	db_bytes(db, DB_LINE, file, sizeof(file));
	db_patch(db, DB_LINE, header, db_at(db, DB_LINE) - header - 4, 4);
	if (t->line0_end)
		rows(db, t);
	if (t->if_column)
		statements(db, t);
	if (t->rows)
		given_rows(db, t);
	db_length_end(db, DB_LINE, unit);
}

/* A copy at [lo, hi), called at a line; @entry 0: the compiler lost it. */
static void copy(struct tree *t, uint64_t lo, uint64_t hi, uint64_t entry, uint8_t line,
		 bool children)
{
	if (entry)
		DB_DIE(t->db, DW_TAG_inlined_subroutine, children,
		       DB_REF(DW_AT_abstract_origin, t->callee), DB_ADDR(DW_AT_low_pc, lo),
		       DB_U(DW_AT_high_pc, DW_FORM_data4, hi - lo), DB_ADDR(DW_AT_entry_pc, entry),
		       DB_U(DW_AT_GNU_entry_view, DW_FORM_data1, t->view ? t->view : 1),
		       DB_U(DW_AT_call_file, DW_FORM_data1, 1),
		       DB_U(DW_AT_call_line, DW_FORM_data1, line),
		       DB_U(DW_AT_call_column, DW_FORM_data1, 5));
	else
		DB_DIE(t->db, DW_TAG_inlined_subroutine, children,
		       DB_REF(DW_AT_abstract_origin, t->callee), DB_ADDR(DW_AT_low_pc, lo),
		       DB_U(DW_AT_high_pc, DW_FORM_data4, hi - lo),
		       DB_U(DW_AT_call_file, DW_FORM_data1, 1),
		       DB_U(DW_AT_call_line, DW_FORM_data1, line),
		       DB_U(DW_AT_call_column, DW_FORM_data1, 5));
}

static struct result finish(struct tree *t)
{
	db_null(t->db);
	db_null(t->db);
	db_unit_end(t->db);
	lines(t->db, t);
	return find_callee(t->db);
}

static void end(struct tree *t, struct result *r)
{
	close_result(t->db, r);
}

#define BEGIN(producer, line, ...)                                                                 \
	static const uint8_t code[] = {__VA_ARGS__};                                               \
	struct tree t = begin(producer, code, sizeof(code), line)

/* ---- parts ---- */

static void a_copy_called_at_its_own_declaration_is_a_part(void **state)
{
	BEGIN(GCC, 20, NOTHING, NOTHING, STORE, STORE, RET);
	copy(&t, 0x1002, 0x1008, 0x1002, 30, true);
	copy(&t, 0x1004, 0x1008, 0x1004, 7, false);
	db_null(t.db);
	struct result r = finish(&t);
	assert_int_equal(site(&r, 0)->kind, CAIRN_SITE_INLINED);
	assert_int_equal(site(&r, 1)->kind, CAIRN_SITE_PART);
	/* A part has its site in the chain like every copy. */
	assert_int_equal(site(&r, 1)->n_chain, 2);
	end(&t, &r);
}

static void a_part_whose_head_left_no_die_is_a_part(void **state)
{
	BEGIN(GCC, 20, NOTHING, NOTHING, STORE, STORE, RET);
	copy(&t, 0x1004, 0x1008, 0x1004, 7, false);
	struct result r = finish(&t);
	assert_int_equal(site(&r, 0)->kind, CAIRN_SITE_PART);
	end(&t, &r);
}

static void two_functions_of_one_macro_call_each_other(void **state)
{
	/*
	 * The caller is declared where the callee is: at the macro's use, where all its calls are,
	 * too.
	 */
	BEGIN(GCC, 7, NOTHING, NOTHING, STORE, STORE, RET);
	copy(&t, 0x1004, 0x1008, 0x1004, 7, false);
	struct result r = finish(&t);
	assert_int_equal(site(&r, 0)->kind, CAIRN_SITE_INLINED);
	end(&t, &r);
}

/* ---- ways ---- */

static uint32_t doubts_of_copy(const char *producer, const uint8_t *code, size_t n, uint64_t lo,
			       uint64_t hi, uint64_t entry, struct cairn_site *ret)
{
	struct tree t = begin(producer, code, n, 20);
	copy(&t, lo, hi, entry, 30, false);
	struct result r = finish(&t);
	*ret = *site(&r, 0);
	end(&t, &r);
	return ret->count_caveats;
}

#define DOUBTS(producer, lo, hi, entry, ret, ...)                                                  \
	doubts_of_copy(producer, (const uint8_t[]){__VA_ARGS__},                                   \
		       sizeof((const uint8_t[]){__VA_ARGS__}), lo, hi, entry, ret)

static void a_copy_in_a_straight_line_is_passed_once(void **state)
{
	struct cairn_site s;
	assert_int_equal(
		DOUBTS(GCC, 0x1004, 0x1008, 0x1004, &s, NOTHING, NOTHING, STORE, STORE, RET), 0);
	/* In a loop of the caller each pass is a call. */
	assert_int_equal(
		DOUBTS(GCC, 0x1002, 0x1004, 0x1002, &s, NOTHING, STORE, NOTHING, JE(-6), RET), 0);
	/* So is a way around all of it, and one into its entry. */
	assert_int_equal(DOUBTS(GCC, 0x1004, 0x1006, 0x1004, &s, NOTHING, JE(2), STORE, RET), 0);
	assert_int_equal(DOUBTS(GCC, 0x1004, 0x1006, 0x1004, &s, JE(2), NOTHING, STORE, RET), 0);
}

static void a_loop_of_its_own_passes_the_entry_again(void **state)
{
	struct cairn_site s;
	assert_int_equal(DOUBTS(GCC, 0x1002, 0x1006, 0x1002, &s, NOTHING, STORE, JE(-4), RET),
			 CAIRN_COUNT_LOOPED);
	assert_int_equal(
		DOUBTS(GCC, 0x1002, 0x1008, 0x1002, &s, NOTHING, STORE, STORE, JE(-4), RET), 0);
}

static void a_jump_into_the_middle_is_a_bypass(void **state)
{
	struct cairn_site s;
	/* 0x1002: to 0x1006, past the entry at 0x1004. */
	assert_int_equal(DOUBTS(GCC, 0x1004, 0x1008, 0x1004, &s, NOTHING, JE(2), STORE, STORE, RET),
			 CAIRN_COUNT_BYPASSED);
	assert_int_equal(s.n_bypasses, 1);
	/* From where the entry is still ahead it is an instruction that was moved up. */
	assert_int_equal(
		DOUBTS(GCC, 0x1002, 0x1008, 0x1006, &s, JE(0), NOTHING, NOTHING, STORE, RET), 0);
}

static void a_site_without_code_of_its_own_at_a_join_is_shared(void **state)
{
	struct cairn_site s;
	/* The entry is 0x1006, after the copy's last instruction, and 0x1000 jumps there. */
	assert_int_equal(
		DOUBTS(GCC, 0x1004, 0x1006, 0x1006, &s, JE(4), NOTHING, STORE, NOTHING, RET),
		CAIRN_COUNT_SHARED_PC);
	assert_int_equal(
		DOUBTS(GCC, 0x1004, 0x1006, 0x1006, &s, NOTHING, NOTHING, STORE, NOTHING, RET), 0);
}

static void a_call_in_front_of_a_loops_padding_returns(void **state)
{
	struct cairn_site s;
	/*
	 * The entry is 0x1008, the head of a loop: after the call and padding, and where je leads.
	 */
	assert_int_equal(DOUBTS(GCC, 0x1000, 0x1006, 0x1008, &s, CALL, NOP, STORE, JE(-4), RET),
			 CAIRN_COUNT_SHARED_PC);
	/*
	 * The entry is 0x100a. A jump from above leads there, too: after the call is padding of a
	 * function that does not return.
	 */
	assert_false(DOUBTS(GCC, 0x1002, 0x1008, 0x100a, &s, JE(8), CALL, NOP, STORE, RET) &
		     CAIRN_COUNT_SHARED_PC);
}

static void a_copy_whose_entry_gcc_lost_is_doubted_unless_it_does_something(void **state)
{
	struct cairn_site s;
	assert_int_equal(DOUBTS(GCC, 0x1002, 0x1004, 0, &s, NOTHING, NOTHING, RET),
			 CAIRN_COUNT_NO_ENTRY);
	assert_int_equal(DOUBTS(GCC, 0x1002, 0x1004, 0, &s, NOTHING, STORE, RET), 0);
	/* Clang has no entries, GCC without optimisation has lost none. */
	assert_int_equal(DOUBTS(CLANG, 0x1002, 0x1004, 0, &s, NOTHING, NOTHING, RET), 0);
	assert_int_equal(DOUBTS("GNU C17 12.2.0 -g", 0x1002, 0x1004, 0, &s, NOTHING, NOTHING, RET),
			 0);
}

static void a_copy_that_only_jumps_to_another_is_merged_with_it(void **state)
{
	/* je 0x1006; nothing; jmp 0x1006, which is a copy; the first copy is the jmp alone. */
	BEGIN(GCC, 20, JE(4), NOTHING, JMP(2), NOP, STORE, RET);
	copy(&t, 0x1004, 0x1006, 0x1004, 30, false);
	copy(&t, 0x1008, 0x100a, 0x1008, 31, false);
	struct result r = finish(&t);
	assert_int_equal(site(&r, 0)->count_caveats, CAIRN_COUNT_MERGED);
	end(&t, &r);
}

/* The last site: its copy is at 0x1006, where code leads that may be another copy's. */
static uint32_t doubts_of_end(const char *producer, uint64_t other, uint8_t line)
{
	static const uint8_t code[] = {JE(4), STORE, NOTHING, STORE, RET};
	struct tree t = begin(producer, code, sizeof(code), 20);
	if (other)
		copy(&t, other, other + 2, 0, 30, false);
	copy(&t, 0x1006, 0x1008, 0, line, false);
	struct result r = finish(&t);
	uint32_t doubts = site(&r, other ? 1 : 0)->count_caveats;
	end(&t, &r);
	return doubts & CAIRN_COUNT_SHARED_PC;
}

static void an_end_that_clang_merged_from_several_calls_may_end_another_copy(void **state)
{
	assert_int_equal(doubts_of_end(CLANG, 0x1002, 0), CAIRN_COUNT_SHARED_PC);
	/* A call of one place; GCC; no other copy. */
	assert_int_equal(doubts_of_end(CLANG, 0x1002, 31), 0);
	assert_int_equal(doubts_of_end(GCC, 0x1002, 0), 0);
	assert_int_equal(doubts_of_end(CLANG, 0, 0), 0);
}

static uint32_t with_if_branch(uint8_t column, uint8_t branch, const uint8_t *code, size_t n)
{
	struct tree t = begin(GCC, code, n, 15);
	t.if_column = column;
	t.if_branch = branch;
	copy(&t, 0x1002, 0x1008, 0x1002, 21, false);
	struct result r = finish(&t);
	uint32_t doubts = site(&r, 0)->count_caveats;
	end(&t, &r);
	return doubts;
}

static uint32_t after_if(uint8_t column, const uint8_t *code, size_t n)
{
	return with_if_branch(column, 0, code, n);
}

static void a_call_that_its_own_condition_does_not_keep_from_its_site_is_doubted(void **state)
{
	/*
	 * if (...) at 0x1000, in column 3; the call's own statement is in column 5; je leaves the
	 * copy.
	 */
	static const uint8_t combined[] = {NOTHING, NOTHING, JE(2), STORE, RET};
	assert_int_equal(after_if(3, combined, sizeof(combined)), CAIRN_COUNT_BEFORE_TEST);
	/* A statement that stands beside the call's is no condition. */
	assert_int_equal(after_if(5, combined, sizeof(combined)), 0);
	/*
	 * Nor is anything combined where the condition's own branch is there, or the copy begins
	 * without one.
	 */
	static const uint8_t branch[] = {JE(6), NOTHING, JE(2), STORE, RET};
	assert_int_equal(after_if(3, branch, sizeof(branch)), 0);
	static const uint8_t store[] = {NOTHING, STORE, JE(2), STORE, RET};
	assert_int_equal(after_if(3, store, sizeof(store)), 0);
}

static void a_call_put_in_front_of_its_condition_is_doubted(void **state)
{
	/*
	 * if (...) { callee(); at 0x1002, a store that both arms begin with; and the branch of the
	 * if at 0x1004.
	 */
	static const uint8_t arms[] = {NOTHING, STORE, JE(2), STORE, RET};
	assert_int_equal(with_if_branch(3, 4, arms, sizeof(arms)), CAIRN_COUNT_BEFORE_TEST);
	/* The branch is another statement's. */
	assert_int_equal(with_if_branch(3, 6, arms, sizeof(arms)), 0);
	/* A statement that stands beside the call's is no condition. */
	assert_int_equal(with_if_branch(5, 4, arms, sizeof(arms)), 0);
	/* A loop's goes back. */
	static const uint8_t loop[] = {NOTHING, STORE, JE(-6), STORE, RET};
	assert_false(with_if_branch(3, 4, loop, sizeof(loop)) & CAIRN_COUNT_BEFORE_TEST);
	/* Of the call nothing is left to be decided once another function was called. */
	static const uint8_t called[] = {NOTHING, CALL, JE(2), STORE, RET};
	assert_false(with_if_branch(3, 7, called, sizeof(called)) & CAIRN_COUNT_BEFORE_TEST);
}

/* ---- ways in ---- */

static void without_an_entry_a_copy_begins_where_other_code_leads_to_first(void **state)
{
	struct cairn_site s;
	/*
	 * jmp 0x1006; the copy's loop is 0x1002 to 0x100a, and its lowest address is not where it
	 * is entered.
	 */
	DOUBTS(CLANG, 0x1002, 0x100a, 0, &s, JMP(4), STORE, STORE, NOTHING, JE(-8), RET);
	assert_int_equal(s.at.v, 0x1006);
	assert_int_equal(s.rule, CAIRN_AT_CFG_ENTRY);
	/* A nop before it is the caller's. */
	DOUBTS(CLANG, 0x1002, 0x1008, 0, &s, NOTHING, NOP, STORE, JE(-4), RET);
	assert_int_equal(s.at.v, 0x1004);
}

static void a_copy_with_two_ways_in_has_two_sites(void **state)
{
	/* je 0x1008, or 0x1004; both lead to 0x100a. */
	BEGIN(CLANG, 20, NOTHING, JE(4), STORE, JMP(2), STORE, STORE, RET);
	copy(&t, 0x1004, 0x100c, 0, 30, false);
	struct result r = finish(&t);
	assert_int_equal(r.found.p[0]->n_sites, 2);
	assert_int_equal(site(&r, 0)->at.v, 0x1004);
	assert_int_equal(site(&r, 1)->at.v, 0x1008);
	assert_int_equal(site(&r, 1)->rule, CAIRN_AT_CFG_ENTRY);
	assert_int_equal(site(&r, 0)->die, site(&r, 1)->die);
	assert_int_equal(site(&r, 0)->count_caveats | site(&r, 1)->count_caveats, 0);
	end(&t, &r);
}

static void work_ahead_of_time_is_no_site(void **state)
{
	struct cairn_site s;
	/*
	 * je 0x1004, past an instruction of the copy that has no effect: the store is what every
	 * call comes to.
	 */
	assert_int_equal(DOUBTS(CLANG, 0x1002, 0x1006, 0, &s, JE(2), NOTHING, STORE, RET), 0);
	assert_int_equal(s.at.v, 0x1004);
	/* With an effect it is the call's beginning, and the jump a way after it. */
	assert_int_equal(DOUBTS(CLANG, 0x1002, 0x1006, 0, &s, JE(2), STORE, STORE, RET),
			 CAIRN_COUNT_BYPASSED);
	assert_int_equal(s.at.v, 0x1002);
	/* Nor does it count where a way from it ends before the store. */
	DOUBTS(CLANG, 0x1002, 0x1006, 0, &s, JE(2), JE(2), STORE, RET);
	assert_int_equal(s.at.v, 0x1002);
}

static void a_way_that_joins_the_copys_own_after_a_known_condition_is_a_bypass(void **state)
{
	struct cairn_site s;
	/*
	 * The entry is 0x1008; it jumps to 0x1002, the caller's instruction before the copy's
	 * store, where 0x1000 falls, too.
	 */
	assert_int_equal(DOUBTS(GCC, 0x1004, 0x100c, 0x1008, &s, JE(6), NOTHING, STORE, RET,
				NOTHING, JMP(-10)),
			 CAIRN_COUNT_BYPASSED);
	/* Without a store it can have been moved there from the end of the copy. */
	assert_int_equal(DOUBTS(GCC, 0x1004, 0x100c, 0x1008, &s, JE(6), NOTHING, NOTHING, RET,
				NOTHING, JMP(-10)),
			 0);
}

static void a_way_past_the_site_after_a_call_that_returns_is_a_bypass(void **state)
{
	struct cairn_site s;
	/*
	 * The entry is 0x1012; it jumps to the copy's store at 0x100e, where 0x1009 comes from
	 * after its call. That the called function returns shows where it is called before: only
	 * that call leads to 0x1007.
	 */
	assert_int_equal(DOUBTS(GCC, 0x100e, 0x1016, 0x1012, &s, JE(7), CALL_OF(0x39), JMP(9),
				CALL_OF(0x32), STORE, RET, NOTHING, JMP(-8)),
			 CAIRN_COUNT_BYPASSED);
	/* Two functions: the second one may end the program. */
	assert_int_equal(DOUBTS(GCC, 0x100e, 0x1016, 0x1012, &s, JE(7), CALL_OF(0x38), JMP(9),
				CALL_OF(0x32), STORE, RET, NOTHING, JMP(-8)),
			 0);
}

static uint32_t with_rows(const struct row *rows, size_t n_rows, const uint8_t *code, size_t n,
			  uint64_t other, uint64_t lo, uint64_t hi)
{
	struct tree t = begin(CLANG, code, n, 20);
	t.rows = rows;
	t.n_rows = n_rows;
	copy(&t, lo, hi, 0, 30, false);
	if (other)
		copy(&t, other, other + 2, 0, 31, false);
	struct result r = finish(&t);
	uint32_t doubts = site(&r, other && site(&r, 0)->at.v == other)->count_caveats;
	end(&t, &r);
	return doubts;
}

static void a_join_after_the_site_in_the_same_line_is_a_bypass(void **state)
{
	/* je 0x1004 is another copy's. On this way what the copy loads at 0x1002 was known. */
	static const uint8_t code[] = {JE(2), NOTHING, NOTHING, RET};
	static const struct row same[] = {{0, 9, 1}, {2, 9, 5}, {4, 9, 7}, {6, 30, 1}};
	static const struct row in_front[] = {{0, 9, 1}, {2, 9, 5}, {4, 8, 7}, {6, 30, 1}};
	static const struct row end[] = {{0, 9, 1}, {2, 9, 5}, {4, 11, 7}, {6, 30, 1}};
	static const struct row of_another[] = {{0, 9, 1}, {2, 9, 5}, {4, 3, 7}, {6, 30, 1}};
	assert_int_equal(with_rows(same, 4, code, sizeof(code), 0x1000, 0x1002, 0x1006),
			 CAIRN_COUNT_BYPASSED);
	assert_int_equal(with_rows(in_front, 4, code, sizeof(code), 0x1000, 0x1002, 0x1006),
			 CAIRN_COUNT_BYPASSED);
	/*
	 * After the line of the site it is an end that both copies share; before the declaration it
	 * is another function's.
	 */
	assert_int_equal(with_rows(end, 4, code, sizeof(code), 0x1000, 0x1002, 0x1006), 0);
	assert_int_equal(with_rows(of_another, 4, code, sizeof(code), 0x1000, 0x1002, 0x1006), 0);
}

static void the_first_statement_once_more_is_another_calls_beginning(void **state)
{
	/* The copy is before a nop and after it. */
	static const uint8_t code[] = {NOTHING, STORE, JE(6), NOP, STORE, NOTHING, RET};
	static const uint8_t straight[] = {NOTHING, STORE, NOTHING, NOP, STORE, NOTHING, RET};
	static const struct row again[] = {
		{0, 30, 1}, {2, 9, 5}, {4, 10, 1}, {8, 9, 5}, {10, 30, 1}};
	static const struct row other[] = {
		{0, 30, 1}, {2, 9, 5}, {4, 10, 1}, {8, 9, 7}, {10, 30, 1}};
	assert_int_equal(with_rows(again, 5, code, sizeof(code), 0, 0x1002, 0x100a),
			 CAIRN_COUNT_BYPASSED);
	assert_int_equal(with_rows(other, 5, code, sizeof(code), 0, 0x1002, 0x100a), 0);
	/*
	 * Nothing is decided in between: one statement, in which an instruction of the caller's was
	 * put.
	 */
	assert_int_equal(with_rows(again, 5, straight, sizeof(straight), 0, 0x1002, 0x100a), 0);
}

static void
of_two_markers_at_one_address_the_first_is_the_heads_and_the_other_its_parts(void **state)
{
	static const struct row rows[] = {{2, 30, 5}, {2, 7, 5}, {4, 7, 5},
					  {4, 8, 3},  {4, 7, 5}, {8, 30, 5}};
	BEGIN(GCC, 20, NOTHING, NOTHING, STORE, STORE, RET);
	t.rows = rows;
	t.n_rows = sizeof(rows) / sizeof(rows[0]);
	copy(&t, 0x1002, 0x1008, 0x1002, 30, true);
	t.view = 2;
	copy(&t, 0x1004, 0x1008, 0x1004, 7, false);
	db_null(t.db);
	struct result r = finish(&t);
	assert_int_equal(r.found.p[0]->n_sites, 3);
	assert_int_equal(site(&r, 0)->at.v, 0x1002);
	for (uint32_t i = 1; i < 3; i++) {
		const struct cairn_site *s = site(&r, i);
		assert_int_equal(s->at.v, 0x1004);
		assert_int_equal(s->kind, s->rule == CAIRN_AT_ENTRY_ROW ? CAIRN_SITE_INLINED
									: CAIRN_SITE_PART);
		assert_int_equal(s->die == site(&r, 0)->die, s->kind == CAIRN_SITE_INLINED);
	}
	end(&t, &r);
}

static void a_call_has_an_event_at_each_of_two_markers_at_one_address(void **state)
{
	static const struct row rows[] = {{4, 30, 3}, {4, 7, 5}, {4, 8, 3}, {4, 7, 5}, {8, 30, 5}};
	BEGIN(GCC, 20, NOTHING, NOTHING, STORE, STORE, RET);
	t.rows = rows;
	t.n_rows = sizeof(rows) / sizeof(rows[0]);
	copy(&t, 0x1004, 0x1008, 0x1004, 30, false);
	struct result r = finish(&t);
	assert_int_equal(r.found.p[0]->n_sites, 2);
	assert_int_equal(site(&r, 0)->count_caveats, CAIRN_COUNT_SHARED_PC);
	assert_int_equal(site(&r, 1)->count_caveats, CAIRN_COUNT_SHARED_PC);
	end(&t, &r);
}

static uint32_t with_line0(uint8_t lo, uint8_t hi, const uint8_t *code, size_t n, uint64_t copy_lo,
			   uint64_t copy_hi, uint32_t *n_sites, struct cairn_site *ret)
{
	struct tree t = begin(CLANG, code, n, 20);
	t.line0 = lo;
	t.line0_end = hi;
	copy(&t, copy_lo, copy_hi, 0, 30, false);
	struct result r = finish(&t);
	*n_sites = r.found.p[0]->n_sites;
	*ret = *site(&r, 0);
	end(&t, &r);
	return ret->count_caveats;
}

static void a_value_copied_where_paths_meet_is_no_way_in(void **state)
{
	/* je 0x1008, where the result is made 0 for who did not call. */
	static const uint8_t code[] = {JE(6), STORE, NOTHING, JMP(2), NOTHING, STORE, RET};
	struct cairn_site s;
	uint32_t n;
	assert_int_equal(with_line0(8, 10, code, sizeof(code), 0x1002, 0x100a, &n, &s), 0);
	assert_int_equal(n, 1);
	assert_int_equal(s.at.v, 0x1002);
	/*
	 * With a line it is one; nor is it none where it computes: a statement that was merged with
	 * another.
	 */
	with_line0(0x20, 0x22, code, sizeof(code), 0x1002, 0x100a, &n, &s);
	assert_int_equal(n, 2);
	static const uint8_t stores[] = {JE(6), STORE, NOTHING, JMP(2), STORE, STORE, RET};
	with_line0(8, 10, stores, sizeof(stores), 0x1002, 0x100a, &n, &s);
	assert_int_equal(n, 2);
}

static void a_loop_through_code_of_no_line_is_the_copys(void **state)
{
	/*
	 * The copy at 0x1004 jumps back to 0x1002, where a statement of its own was merged with one
	 * of the caller's.
	 */
	static const uint8_t code[] = {NOTHING, STORE, STORE, JE(-6), RET};
	struct cairn_site s;
	uint32_t n;
	assert_int_equal(with_line0(2, 4, code, sizeof(code), 0x1004, 0x1008, &n, &s),
			 CAIRN_COUNT_LOOPED);
	/* With a line it is the caller's loop around the call. */
	assert_int_equal(with_line0(0x20, 0x22, code, sizeof(code), 0x1004, 0x1008, &n, &s), 0);
}

/* What is said of the number of events at the entry of a body with this code. */
static uint32_t doubts_of_body(const uint8_t *code, size_t size)
{
	struct tree t = begin(CLANG, code, size, 20);
	copy(&t, 0x1002, 0x1004, 0, 30, false);
	struct result r = finish(&t);
	struct cairn_function_list found;
	assert_int_equal(cairn_sites_find(r.sites, "caller", &found, NULL), 1);
	assert_int_equal(found.p[0]->sites[0].kind, CAIRN_SITE_OUT_OF_LINE);
	uint32_t doubts = found.p[0]->sites[0].count_caveats;
	end(&t, &r);
	return doubts;
}

static void a_body_that_begins_with_a_loop_is_passed_again(void **state)
{
	static const uint8_t loop[] = {NOTHING, STORE, JE(-6), RET},
			     not_first[] = {NOTHING, STORE, JE(-4), RET};
	const struct {
		const uint8_t *code;
		uint32_t doubts;
	} bodies[] = {{loop, CAIRN_COUNT_LOOPED}, {not_first, 0}};
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(doubts_of_body(bodies[i].code, sizeof(loop)), bodies[i].doubts);
}

#define CALL_SELF(off)                                                                             \
	0xe8, (uint8_t)(off), 0xff, 0xff, 0xff, NOP, NOP,                                          \
		0x90 /* from the end of its 5 bytes; 10 bytes */

static void
a_body_that_calls_itself_and_has_a_loop_after_its_first_instructions_is_doubted(void **state)
{
	static const uint8_t both[] = {NOTHING, STORE, JE(16), CALL_SELF(-11), JMP(-16), RET},
			     no_loop[] = {NOTHING, STORE, JE(16), CALL_SELF(-11), JMP(0), RET},
			     no_call[] = {NOTHING, STORE, JE(16), CALL_SELF(-9), JMP(-16), RET},
			     after_call[] = {CALL_SELF(-5), NOTHING, STORE, JE(-6), JMP(0), RET};
	const struct {
		const uint8_t *code;
		uint32_t doubts;
	} bodies[] = {{both, CAIRN_COUNT_RECURSION}, {no_loop, 0}, {no_call, 0}, {after_call, 0}};
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(doubts_of_body(bodies[i].code, sizeof(both)), bodies[i].doubts);
}

/* ---- hostile code ---- */

static void every_end_of_the_code_is_survived(void **state)
{
	static const uint8_t code[] = {NOTHING, JE(4), STORE, JMP(2), STORE, 0xff, 0xe0,
				       STORE,   0xe8,  0,     0,      0,     0,    RET};
	for (size_t n = 0; n <= sizeof(code); n++) {
		struct tree t = begin(CLANG, code, n, 20);
		copy(&t, 0x1004, 0x100c, 0, 30, false);
		struct result r = finish(&t);
		assert_int_equal(site(&r, 0)->kind, CAIRN_SITE_INLINED);
		end(&t, &r);
	}
}

static void every_flipped_bit_of_the_code_is_survived(void **state)
{
	static const uint8_t code[] = {NOTHING, JE(4), STORE, JMP(2), STORE, 0xff, 0xe0,
				       STORE,   0xe8,  0,     0,      0,     0,    RET};
	for (size_t bit = 0; bit < sizeof(code) * 8; bit++) {
		uint8_t flipped[sizeof(code)];
		memcpy(flipped, code, sizeof(code));
		flipped[bit / 8] ^= (uint8_t)(1u << bit % 8);
		struct tree t = begin(CLANG, flipped, sizeof(flipped), 20);
		copy(&t, 0x1004, 0x100c, 0, 30, false);
		struct result r = finish(&t);
		assert_true(site(&r, 0)->at.v >= 0x1004 && site(&r, 0)->at.v < 0x100c);
		end(&t, &r);
	}
}

static void failed_allocations_lose_no_memory_and_invent_no_sites(void **state)
{
	static const uint8_t code[] = {NOTHING, JE(4), STORE, JMP(2), STORE, STORE, RET};
	struct tree t = begin(CLANG, code, sizeof(code), 20);
	copy(&t, 0x1004, 0x100c, 0, 30, false);
	struct result r = finish(&t);
	unsigned int n;
	for (n = 1;; n++) {
		struct cairn_function_list found;
		struct cairn_sites *sites;
		struct cairn_err err = {0};
		assert_int_equal(cairn_sites_open(r.bin, NULL, &sites, &err), 0);
		alloc_fail_at(n);
		int rc = cairn_sites_find(sites, "callee", &found, &err);
		bool failed = alloc_fail_end();
		/* Without the code's graph the copy has its first range only. */
		assert_true(rc == 1 || (failed && rc == -ENOMEM));
		if (rc == 1)
			assert_between(found.p[0]->n_sites, failed ? 1 : 2, 2);
		cairn_sites_close(sites);
		if (!failed)
			break;
	}
	assert_true(n > 20);
	end(&t, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_called_at_its_own_declaration_is_a_part),
		cmocka_unit_test(a_part_whose_head_left_no_die_is_a_part),
		cmocka_unit_test(two_functions_of_one_macro_call_each_other),
		cmocka_unit_test(a_copy_in_a_straight_line_is_passed_once),
		cmocka_unit_test(a_loop_of_its_own_passes_the_entry_again),
		cmocka_unit_test(a_jump_into_the_middle_is_a_bypass),
		cmocka_unit_test(a_site_without_code_of_its_own_at_a_join_is_shared),
		cmocka_unit_test(a_call_in_front_of_a_loops_padding_returns),
		cmocka_unit_test(a_copy_whose_entry_gcc_lost_is_doubted_unless_it_does_something),
		cmocka_unit_test(a_copy_that_only_jumps_to_another_is_merged_with_it),
		cmocka_unit_test(an_end_that_clang_merged_from_several_calls_may_end_another_copy),
		cmocka_unit_test(without_an_entry_a_copy_begins_where_other_code_leads_to_first),
		cmocka_unit_test(a_copy_with_two_ways_in_has_two_sites),
		cmocka_unit_test(work_ahead_of_time_is_no_site),
		cmocka_unit_test(
			a_way_that_joins_the_copys_own_after_a_known_condition_is_a_bypass),
		cmocka_unit_test(a_way_past_the_site_after_a_call_that_returns_is_a_bypass),
		cmocka_unit_test(a_join_after_the_site_in_the_same_line_is_a_bypass),
		cmocka_unit_test(the_first_statement_once_more_is_another_calls_beginning),
		cmocka_unit_test(
			of_two_markers_at_one_address_the_first_is_the_heads_and_the_other_its_parts),
		cmocka_unit_test(a_call_has_an_event_at_each_of_two_markers_at_one_address),
		cmocka_unit_test(
			a_call_that_its_own_condition_does_not_keep_from_its_site_is_doubted),
		cmocka_unit_test(a_call_put_in_front_of_its_condition_is_doubted),
		cmocka_unit_test(a_value_copied_where_paths_meet_is_no_way_in),
		cmocka_unit_test(a_loop_through_code_of_no_line_is_the_copys),
		cmocka_unit_test(a_body_that_begins_with_a_loop_is_passed_again),
		cmocka_unit_test(
			a_body_that_calls_itself_and_has_a_loop_after_its_first_instructions_is_doubted),
		cmocka_unit_test(every_end_of_the_code_is_survived),
		cmocka_unit_test(every_flipped_bit_of_the_code_is_survived),
		cmocka_unit_test(failed_allocations_lose_no_memory_and_invent_no_sites),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
