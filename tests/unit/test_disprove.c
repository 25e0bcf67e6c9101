/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows that the instructions disprove say less, and no others do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/unwind.h>

#include "alloc_fail.h"
#include "cfi/rule.h"
#include "cfi/table.h"
#include "elf/elf.h"
#include "elf_builder.h"
#include "frame_builder.h"

enum { TEXT = 0xf000, FRAME = 0x40000, RBX = 3, RBP = 6, RSP = 7, R12 = 12 };

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

struct sample {
	struct frames f;
	struct elf_builder *b;
	struct cairn_binary *bin;
	struct cfi *cfi;
	uint8_t *table;
	size_t size;
	struct unwind_table t;
	struct cairn_err err;
};

static int build_table(struct sample *s, enum unwind_belief belief)
{
	return unwind_table_build(s->cfi, belief, 1, &s->table, &s->size, &s->err);
}

/* A file with one function, or two: the second one at @second, and rows for neither. */
static void open_functions(struct sample *s, const uint8_t *code, size_t n_code, size_t second,
			   const uint8_t *program, size_t n)
{
	size_t size;
	*s = (struct sample){.b = eb_new(ET_DYN)};
	size_t cie = frames_cie_eh(&s->f, "zR", "\x1b");
	frames_fde_eh(&s->f, FRAME, cie, TEXT, second, program, n);
	if (second < n_code)
		frames_fde_eh(&s->f, FRAME, cie, TEXT + second, n_code - second, NULL, 0);
	eb_load(s->b, eb_section(s->b, (struct eb_section){.name = ".text",
							   .flags = SHF_ALLOC | SHF_EXECINSTR,
							   .addr = TEXT,
							   .data = code,
							   .size = n_code}));
	eb_section(s->b, (struct eb_section){.name = ".eh_frame",
					     .flags = SHF_ALLOC,
					     .addr = FRAME,
					     .data = s->f.bytes,
					     .size = s->f.n});
	uint8_t *bytes = eb_finish(s->b, &size);
	assert_int_equal(binary_open_mem(bytes, size, "sample", &s->bin, &s->err), 0);
	assert_int_equal(cfi_open(s->bin, &s->cfi, &s->err), 0);
}

static void open_function(struct sample *s, const uint8_t *code, size_t n_code,
			  const uint8_t *program, size_t n)
{
	open_functions(s, code, n_code, n_code, program, n);
}

static void make(struct sample *s, enum unwind_belief belief)
{
	free(s->table);
	assert_int_equal(build_table(s, belief), 0);
	assert_int_equal(unwind_table_open(s->table, s->size, "sample", "table", &s->t, &s->err),
			 0);
}

static void table_of(struct sample *s, const uint8_t *code, size_t n_code, const uint8_t *program,
		     size_t n)
{
	open_function(s, code, n_code, program, n);
	make(s, UNWIND_PROVED);
}

static void end(struct sample *s)
{
	free(s->table);
	cfi_close(s->cfi);
	cairn_binary_close(s->bin);
	eb_free(s->b);
	frames_free(&s->f);
}

static const struct cairn_unwind_rule *row(const struct sample *s, uint64_t off)
{
	return unwind_table_find(&s->t, (struct cairn_vaddr){TEXT + off});
}

/* The CFA is at rsp + @cfa, and @reg is lost or the caller's. */
static void assert_row(const struct sample *s, uint64_t off, int cfa, unsigned int reg,
		       bool is_lost)
{
	const struct cairn_unwind_rule *r = row(s, off);
	uint32_t word = rule_word_of(r, reg);
	if (r->cfa != CAIRN_UNWIND_CFA_REG || r->reg != RSP || r->off != cfa || !!word != is_lost ||
	    (word && cairn_unwind_word_saved(word) != CAIRN_UNWIND_LOST))
		fail_msg("+%lu: kind %d, register %d%+d, word %x", (unsigned long)off, r->cfa,
			 r->reg, r->off, word);
}

static void assert_undescribed(const struct sample *s, uint64_t off)
{
	if (row(s, off)->cfa != CAIRN_UNWIND_UNDESCRIBED)
		fail_msg("+%lu is described", (unsigned long)off);
}

static void a_register_that_is_overwritten_without_a_word_is_lost_from_there_on(void **state)
{
	/* nop; xor %ebx,%ebx; ret */
	struct sample s;
	table_of(&s, BYTES(0x90, 0x31, 0xdb, 0xc3), NULL, 0);
	assert_row(&s, 0, 8, RBX, false);
	assert_row(&s, 1, 8, RBX, false);
	assert_row(&s, 3, 8, RBX, true);
	assert_row(&s, 3, 8, R12, false);
	make(&s, UNWIND_AS_WRITTEN);
	assert_row(&s, 3, 8, RBX, false);
	end(&s);
}

static void it_is_lost_where_one_of_two_ways_overwrites_it(void **state)
{
	/* je +3; xor %r12d,%r12d; nop; ret */
	struct sample s;
	table_of(&s, BYTES(0x74, 0x03, 0x45, 0x31, 0xe4, 0x90, 0xc3), NULL, 0);
	assert_row(&s, 2, 8, R12, false);
	assert_row(&s, 5, 8, R12, true);
	assert_row(&s, 6, 8, R12, true);
	end(&s);
}

static void it_is_the_callers_again_when_it_was_kept_in_another_register(void **state)
{
	/* mov %rbx,%rax; xor %ebx,%ebx; mov %rax,%rbx; ret */
	struct sample s;
	table_of(&s, BYTES(0x48, 0x89, 0xd8, 0x31, 0xdb, 0x48, 0x89, 0xc3, 0xc3), NULL, 0);
	assert_row(&s, 3, 8, RBX, false);
	assert_row(&s, 5, 8, RBX, true);
	assert_row(&s, 8, 8, RBX, false);
	end(&s);
}

static void what_came_from_memory_is_not_known_to_be_the_callers(void **state)
{
	/* mov (%rdi),%rbx; ret */
	struct sample s;
	table_of(&s, BYTES(0x48, 0x8b, 0x1f, 0xc3), NULL, 0);
	assert_row(&s, 3, 8, RBX, true);
	end(&s);
}

static void where_the_stack_pointer_was_moved_without_a_word_nothing_is_described(void **state)
{
	/* push %rbx; nop; pop %rbx; ret */
	struct sample s;
	table_of(&s, BYTES(0x53, 0x90, 0x5b, 0xc3), NULL, 0);
	assert_row(&s, 0, 8, RBX, false);
	assert_undescribed(&s, 1);
	assert_undescribed(&s, 2);
	assert_row(&s, 3, 8, RBX, true);
	assert_int_equal(((const struct cairn_unwind_header *)s.table)->text_bytes, 2);
	make(&s, UNWIND_AS_WRITTEN);
	assert_row(&s, 1, 8, RBX, false);
	end(&s);
}

static void where_the_stack_pointer_came_from_somewhere_nothing_is_described(void **state)
{
	/* lea (%rsp),%r10; and $-16,%rsp; nop; lea (%r10),%rsp; ret */
	struct sample s;
	table_of(
		&s,
		BYTES(0x4c, 0x8d, 0x14, 0x24, 0x48, 0x83, 0xe4, 0xf0, 0x90, 0x49, 0x8d, 0x22, 0xc3),
		NULL, 0);
	assert_row(&s, 4, 8, RBX, false);
	assert_undescribed(&s, 8);
	assert_undescribed(&s, 9);
	end(&s);
}

static void functions_that_say_where_registers_are_saved_are_believed(void **state)
{
	/* push %rbx; xor %ebx,%ebx; xor %r12d,%r12d; pop %rbx; ret: nothing about r12 */
	struct sample s;
	table_of(&s, BYTES(0x53, 0x31, 0xdb, 0x45, 0x31, 0xe4, 0x5b, 0xc3),
		 BYTES(0x41, 0x0e, 16, 0x83, 2, 0x46, 0x0e, 8, 0xc3));
	assert_row(&s, 6, 16, R12, false);
	assert_int_equal(cairn_unwind_word_saved(rule_word_of(row(&s, 6), RBX)),
			 CAIRN_UNWIND_AT_CFA);
	assert_row(&s, 7, 8, RBX, false);
	end(&s);
}

static void a_last_row_that_is_far_from_where_the_return_is_is_not_described(void **state)
{
	/* push %rbx; nop; pop %rbx; repz ret: after the pop rsp+24 is said for rsp+8 */
	struct sample s;
	table_of(&s, BYTES(0x53, 0x90, 0x5b, 0xf3, 0xc3),
		 BYTES(0x41, 0x0e, 16, 0x83, 2, 0x42, 0x0e, 24, 0xc3));
	assert_row(&s, 0, 8, RBX, false);
	assert_int_equal(row(&s, 1)->off, 16);
	assert_undescribed(&s, 3);
	end(&s);
}

/* gdb has such a piece of code: the return goes to what was pushed. */
static void a_return_to_what_was_pushed_may_be_far(void **state)
{
	/* push %rbx; ret, and rsp+16 said */
	struct sample s;
	table_of(&s, BYTES(0x53, 0xc3), BYTES(0x41, 0x0e, 16, 0x83, 2));
	assert_int_equal(row(&s, 1)->off, 16);
	end(&s);
}

/*
 * As GCC writes it: push %rbp; mov %rsp,%rbp; lea 16(%rbp),%r10; @push; leave or pop %rbp; lea
 * -8(%r10),%rsp; ret.
 */
static void realigned(struct sample *s, uint8_t push, uint8_t end)
{
	/*
	 * rbp is at *(rbp+0) from after the mov on, the CFA is r10+0 from after the lea on, and
	 * rsp+8 at the ret
	 */
	table_of(s,
		 BYTES(0x55, 0x48, 0x89, 0xe5, 0x4c, 0x8d, 0x55, 0x10, push, end, 0x49, 0x8d, 0x62,
		       0xf8, 0xc3),
		 BYTES(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x44, 0x0c, 10, 0, 0x10, 6, 2, 0x76,
		       0, 0x46, 0x0c, 7, 8));
	assert_int_equal(cairn_unwind_word_saved(rule_word_of(row(s, 9), RBP)), CAIRN_UNWIND_AT_FP);
	assert_int_equal(row(s, 10)->reg, 10);
}

enum { NOP = 0x90, PUSH_RAX = 0x50, LEAVE = 0xc9, POP_RBP = 0x5d };

static void where_rbp_is_given_back_it_is_the_callers_and_not_in_memory_at_itself(void **state)
{
	static const uint8_t ends[] = {LEAVE, POP_RBP};
	for (size_t i = 0; i < sizeof(ends); i++) {
		struct sample s;
		realigned(&s, NOP, ends[i]);
		assert_int_equal(rule_word_of(row(&s, 10), RBP), 0);
		assert_row(&s, 14, 8, RBP, false);
		make(&s, UNWIND_AS_WRITTEN);
		assert_int_equal(cairn_unwind_word_saved(rule_word_of(row(&s, 14), RBP)),
				 CAIRN_UNWIND_AT_FP);
		end(&s);
	}
}

static void after_another_pop_of_rbp_what_is_said_to_be_at_it_is_lost(void **state)
{
	struct sample s;
	realigned(&s, PUSH_RAX, POP_RBP);
	assert_int_equal(cairn_unwind_word_saved(rule_word_of(row(&s, 10), RBP)),
			 CAIRN_UNWIND_LOST);
	assert_row(&s, 14, 8, RBP, true);
	end(&s);
}

static void small_functions_that_keep_to_their_registers_are_as_they_are_written(void **state)
{
	/* mov %rdi,%rax; lea (%rax,%rsi),%r8; call next + 0x10; ret */
	struct sample s;
	table_of(&s, BYTES(0x48, 0x89, 0xf8, 0x4c, 0x8d, 0x04, 0x30, 0xe8, 0x10, 0, 0, 0, 0xc3),
		 NULL, 0);
	assert_int_equal(((const struct cairn_unwind_header *)s.table)->n_rows, 2);
	end(&s);
}

static void a_call_that_may_not_return_disproves_nothing(void **state)
{
	/* push %rax; call; ret: if the call returned, the CFA would be at rsp+16 */
	struct sample s;
	table_of(&s, BYTES(0x50, 0xe8, 0, 1, 0, 0, 0xc3), BYTES(0x41, 0x0e, 16, 0x45, 0x0e, 8));
	assert_row(&s, 1, 16, RBX, false);
	assert_row(&s, 6, 8, RBX, false);
	end(&s);
}

static void the_outermost_frame_stays_so_wherever_its_stack_pointer_is(void **state)
{
	/*
	 * endbr64; xor %ebp,%ebp; pop %rsi; and $-16,%rsp; push %rax; hlt, as _start has it;
	 * undefined rip after the first
	 */
	struct sample s;
	table_of(
		&s,
		BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xed, 0x5e, 0x48, 0x83, 0xe4, 0xf0, 0x50, 0xf4),
		BYTES(0x44, 0x07, 0x10));
	for (uint64_t off = 4; off <= 12; off++)
		assert_true(row(&s, off)->flags & CAIRN_UNWIND_OUTERMOST);
	end(&s);
}

static void code_that_loops_and_jumps_into_itself_ends(void **state)
{
	/* 1: xor %rbx,%r12; xchg %rbx,%r13; jne 1b + 1; jmp 1b */
	struct sample s;
	table_of(&s, BYTES(0x49, 0x31, 0xdc, 0x4c, 0x87, 0xeb, 0x75, 0xf9, 0xeb, 0xf6), NULL, 0);
	assert_row(&s, 6, 8, R12, true);
	end(&s);
}

/* xor %ebx,%ebx; jmp +1; nop; ret; and the second one: nop; nop; je -3; ret */
#define TWO_FUNCTIONS BYTES(0x31, 0xdb, 0xeb, 0x03, 0x90, 0xc3, 0x90, 0x90, 0x74, 0xfd, 0xc3)

static void what_a_jump_into_the_middle_of_another_function_brings_is_lost_there(void **state)
{
	struct sample s;
	open_functions(&s, TWO_FUNCTIONS, 6, NULL, 0);
	make(&s, UNWIND_PROVED);
	assert_row(&s, 2, 8, RBX, true);
	assert_row(&s, 4, 8, RBX, false);
	assert_row(&s, 6, 8, RBX, false);
	assert_row(&s, 7, 8, RBX, true);
	assert_row(&s, 10, 8, RBX, true);
	assert_undescribed(&s, 11);
	assert_int_equal(((const struct cairn_unwind_header *)s.table)->text_bytes, 11);
	end(&s);
}

static void the_beginning_of_another_function_is_believed(void **state)
{
	/* xor %ebx,%ebx; jmp +0; and the second one: nop; ret */
	struct sample s;
	open_functions(&s, BYTES(0x31, 0xdb, 0xeb, 0x00, 0x90, 0xc3), 4, NULL, 0);
	make(&s, UNWIND_PROVED);
	assert_row(&s, 2, 8, RBX, true);
	assert_row(&s, 4, 8, RBX, false);
	end(&s);
}

/* Mostly instructions that the essay is about, with any operands and jumps. */
static void random_code_is_followed_to_an_end(void **state)
{
	static const uint8_t openings[] = {0x53, 0x5b, 0x55, 0x5d, 0xc9, 0x74, 0xeb, 0xe8,
					   0x48, 0x49, 0x4c, 0x4d, 0x31, 0x89, 0x8b, 0x87,
					   0x8d, 0x0f, 0xc3, 0x66, 0xc5, 0x62, 0xff, 0x83};
	uint32_t x = 1;
	for (unsigned int round = 0; round < 300; round++) {
		struct sample s;
		uint8_t code[256];
		for (size_t i = 0; i < sizeof(code); i++) {
			x = x * 1664525 + 1013904223;
			code[i] = x >> 31 ? openings[(x >> 16) % sizeof(openings)]
					  : (uint8_t)(x >> 20);
		}
		open_function(&s, code, sizeof(code), NULL, 0);
		make(&s, UNWIND_PROVED);
		assert_int_equal(row(&s, 0)->cfa, CAIRN_UNWIND_CFA_REG);
		end(&s);
	}
}

static void every_failing_allocation_is_reported(void **state)
{
	struct sample s;
	unsigned int n_failed = 0;
	open_functions(&s, TWO_FUNCTIONS, 6, NULL, 0);
	for (unsigned int n = 1;; n++) {
		alloc_fail_at(n);
		int rc = build_table(&s, UNWIND_PROVED);
		if (!alloc_fail_end()) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
		n_failed++;
	}
	assert_true(n_failed > 8);
	end(&s);
}

/* ---- SFrame ---- */

static struct cairn_sframe_encoded encoded(struct sample *s, unsigned int version)
{
	struct cairn_sframe_encoded e;
	assert_int_equal(cairn_sframe_encode(s->bin, version, (struct cairn_vaddr){0}, &e, &s->err),
			 0);
	return e;
}

static void a_function_that_moves_its_stack_pointer_without_a_word_is_not_in_sframe(void **state)
{
	/* push %rax; pop %rax; ret; and the second one: ret */
	struct sample s;
	open_functions(&s, BYTES(0x50, 0x58, 0xc3, 0xc3), 3, NULL, 0);
	for (unsigned int version = 2; version <= 3; version++) {
		struct cairn_sframe_encoded e = encoded(&s, version);
		assert_int_equal(e.n_functions, 1);
		assert_int_equal(e.text_bytes, 1);
		assert_int_equal(e.n_left_out, 1);
		assert_int_equal(e.n_disproved, 1);
		assert_int_equal(e.n_mended, 0);
		free(e.bytes);
	}
	end(&s);
}

static void what_sframe_does_not_say_may_be_disproved(void **state)
{
	/* xor %ebx,%ebx; ret */
	struct sample s;
	open_function(&s, BYTES(0x31, 0xdb, 0xc3), NULL, 0);
	struct cairn_sframe_encoded e = encoded(&s, 2);
	assert_int_equal(e.n_functions, 1);
	assert_int_equal(e.n_disproved + e.n_mended, 0);
	free(e.bytes);
	end(&s);
}

static void
a_frame_pointer_that_is_overwritten_without_a_word_keeps_a_function_out_of_sframe(void **state)
{
	/* xor %ebp,%ebp; ret */
	struct sample s;
	open_function(&s, BYTES(0x31, 0xed, 0xc3), NULL, 0);
	struct cairn_sframe_encoded e = encoded(&s, 3);
	assert_int_equal(e.n_functions, 0);
	assert_int_equal(e.n_disproved, 1);
	free(e.bytes);
	end(&s);
}

/* By offset: whether a row says where the frame pointer is. */
struct fp_rows {
	uint32_t off[8];
	bool has_fp[8];
	size_t n;
};

static int take_fp(void *ctx, uint32_t off, const struct cairn_unwind_rule *rule)
{
	struct fp_rows *rows = ctx;
	assert_true(rows->n < 8);
	rows->off[rows->n] = off;
	rows->has_fp[rows->n++] = rule_word_of(rule, RBP) != 0;
	return 0;
}

static void sframe_has_what_is_left_of_a_row_where_it_can_say_it(void **state)
{
	struct sample s;
	struct cairn_sframe *sframe;
	struct fp_rows rows = {0};
	realigned(&s, NOP, LEAVE);
	struct cairn_sframe_encoded e = encoded(&s, 3);
	assert_int_equal(e.n_functions, 1);
	assert_int_equal(e.n_mended, 1);
	assert_int_equal(cairn_sframe_open(e.bytes, e.size, (struct cairn_vaddr){0}, "sample",
					   &sframe, &s.err),
			 0);
	cairn_sframe_rows(sframe, 0, take_fp, &rows);
	/* The last two begin after leave, where there was no row, and at the return. */
	assert_true(rows.n >= 2);
	assert_int_equal(rows.off[rows.n - 2], 10);
	assert_false(rows.has_fp[rows.n - 2]);
	assert_int_equal(rows.off[rows.n - 1], 14);
	assert_false(rows.has_fp[rows.n - 1]);
	cairn_sframe_close(sframe);
	free(e.bytes);
	/* Version 2 cannot say the rest either. */
	e = encoded(&s, 2);
	assert_int_equal(e.n_functions, 0);
	assert_int_equal(e.n_disproved, 1);
	free(e.bytes);
	end(&s);
}

static void every_failing_allocation_of_sframe_is_reported(void **state)
{
	struct sample s;
	unsigned int n_failed = 0;
	open_functions(&s, TWO_FUNCTIONS, 6, NULL, 0);
	for (unsigned int n = 1;; n++) {
		struct cairn_sframe_encoded e = {0};
		alloc_fail_at(n);
		int rc = cairn_sframe_encode(s.bin, 3, (struct cairn_vaddr){0}, &e, &s.err);
		free(e.bytes);
		if (!alloc_fail_end()) {
			assert_int_equal(rc, 0);
			break;
		}
		n_failed++;
		assert_int_equal(rc, -ENOMEM);
		assert_true(n < 1000);
	}
	assert_true(n_failed > 16);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_register_that_is_overwritten_without_a_word_is_lost_from_there_on),
		cmocka_unit_test(it_is_lost_where_one_of_two_ways_overwrites_it),
		cmocka_unit_test(it_is_the_callers_again_when_it_was_kept_in_another_register),
		cmocka_unit_test(what_came_from_memory_is_not_known_to_be_the_callers),
		cmocka_unit_test(
			where_the_stack_pointer_was_moved_without_a_word_nothing_is_described),
		cmocka_unit_test(where_the_stack_pointer_came_from_somewhere_nothing_is_described),
		cmocka_unit_test(functions_that_say_where_registers_are_saved_are_believed),
		cmocka_unit_test(a_last_row_that_is_far_from_where_the_return_is_is_not_described),
		cmocka_unit_test(a_return_to_what_was_pushed_may_be_far),
		cmocka_unit_test(
			where_rbp_is_given_back_it_is_the_callers_and_not_in_memory_at_itself),
		cmocka_unit_test(after_another_pop_of_rbp_what_is_said_to_be_at_it_is_lost),
		cmocka_unit_test(
			small_functions_that_keep_to_their_registers_are_as_they_are_written),
		cmocka_unit_test(a_call_that_may_not_return_disproves_nothing),
		cmocka_unit_test(the_outermost_frame_stays_so_wherever_its_stack_pointer_is),
		cmocka_unit_test(code_that_loops_and_jumps_into_itself_ends),
		cmocka_unit_test(
			what_a_jump_into_the_middle_of_another_function_brings_is_lost_there),
		cmocka_unit_test(the_beginning_of_another_function_is_believed),
		cmocka_unit_test(random_code_is_followed_to_an_end),
		cmocka_unit_test(every_failing_allocation_is_reported),
		cmocka_unit_test(
			a_function_that_moves_its_stack_pointer_without_a_word_is_not_in_sframe),
		cmocka_unit_test(what_sframe_does_not_say_may_be_disproved),
		cmocka_unit_test(
			a_frame_pointer_that_is_overwritten_without_a_word_keeps_a_function_out_of_sframe),
		cmocka_unit_test(sframe_has_what_is_left_of_a_row_where_it_can_say_it),
		cmocka_unit_test(every_failing_allocation_of_sframe_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
