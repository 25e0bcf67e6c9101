/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What instructions do to the two registers that frames count from, and rows held against that and
 * against SFrame.
 */
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
#include "elf/elf.h"
#include "elf_builder.h"
#include "frame_builder.h"
#include "insn/stack.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { RBP = 6, RSP = 7 };

/* ---- one instruction ---- */

static void the_two_registers_are_followed(void **state)
{
	static const struct {
		const char *text, *bytes;
		size_t n;
		enum insn_stack_from sp, fp;
		int64_t sp_add, fp_add;
	} cases[] = {
		{"push %rbp", "\x55", 1, STACK_FROM_SP, STACK_KEPT, -8, 0},
		{"push %ax", "\x66\x50", 2, STACK_FROM_SP, STACK_KEPT, -2, 0},
		{"push $1", "\x6a\x01", 2, STACK_FROM_SP, STACK_KEPT, -8, 0},
		{"pop %rbx", "\x5b", 1, STACK_FROM_SP, STACK_KEPT, 8, 0},
		{"pop %rbp", "\x5d", 1, STACK_FROM_SP, STACK_UNKNOWN, 8, 0},
		{"pop %rsp", "\x5c", 1, STACK_UNKNOWN, STACK_KEPT, 0, 0},
		{"pushf", "\x9c", 1, STACK_FROM_SP, STACK_KEPT, -8, 0},
		{"popf", "\x9d", 1, STACK_FROM_SP, STACK_KEPT, 8, 0},
		{"leave", "\xc9", 1, STACK_FROM_FP, STACK_UNKNOWN, 8, 0},
		{"mov %rsp,%rbp", "\x48\x89\xe5", 3, STACK_KEPT, STACK_FROM_SP, 0, 0},
		{"mov %rbp,%rsp", "\x48\x89\xec", 3, STACK_FROM_FP, STACK_KEPT, 0, 0},
		{"mov %rax,%rsp", "\x48\x89\xc4", 3, STACK_UNKNOWN, STACK_KEPT, 0, 0},
		{"mov %rax,%rbp", "\x48\x89\xc5", 3, STACK_KEPT, STACK_UNKNOWN, 0, 0},
		{"mov %rsp,%rax", "\x48\x89\xe0", 3, STACK_KEPT, STACK_KEPT, 0, 0},
		{"sub $0x20,%rsp", "\x48\x83\xec\x20", 4, STACK_FROM_SP, STACK_KEPT, -0x20, 0},
		{"add $0x20,%rsp", "\x48\x83\xc4\x20", 4, STACK_FROM_SP, STACK_KEPT, 0x20, 0},
		{"sub %rax,%rsp", "\x48\x29\xc4", 3, STACK_UNKNOWN, STACK_KEPT, 0, 0},
		{"and $-16,%rsp", "\x48\x83\xe4\xf0", 4, STACK_UNKNOWN, STACK_KEPT, 0, 0},
		{"lea -8(%rbp),%rsp", "\x48\x8d\x65\xf8", 4, STACK_FROM_FP, STACK_KEPT, -8, 0},
		{"lea 16(%rsp),%rbp", "\x48\x8d\x6c\x24\x10", 5, STACK_KEPT, STACK_FROM_SP, 0, 16},
		{"lea (%rsp,%rax),%rsp", "\x48\x8d\x24\x04", 4, STACK_UNKNOWN, STACK_KEPT, 0, 0},
		{"nop", "\x90", 1, STACK_KEPT, STACK_KEPT, 0, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct insn_stack s;
		assert_true(insn_stack((const uint8_t *)cases[i].bytes, cases[i].n, 0x1000, &s));
		if (s.len != cases[i].n || s.sp != cases[i].sp || s.fp != cases[i].fp ||
		    s.sp_add != cases[i].sp_add || s.fp_add != cases[i].fp_add)
			fail_msg("%s: rsp %d%+ld, rbp %d%+ld", cases[i].text, s.sp, (long)s.sp_add,
				 s.fp, (long)s.fp_add);
		for (size_t n = 0; n < cases[i].n; n++)
			assert_false(insn_stack((const uint8_t *)cases[i].bytes, n, 0x1000, &s));
	}
}

static void control_is_followed(void **state)
{
	struct insn_stack s;
	assert_true(insn_stack((const uint8_t *)"\xe8\x10\x00\x00\x00", 5, 0x1000, &s));
	assert_true(s.is_call && s.goes_on && !s.jumps && s.target == 0x1015 && s.sp == STACK_KEPT);
	/* A call of the next instruction is how old code finds its own address: nothing returns. */
	assert_true(insn_stack((const uint8_t *)"\xe8\x00\x00\x00\x00", 5, 0x1000, &s));
	assert_true(s.is_call && s.sp == STACK_FROM_SP && s.sp_add == -8);
	assert_true(insn_stack((const uint8_t *)"\xeb\x10", 2, 0x1000, &s));
	assert_true(s.jumps && !s.goes_on && s.target == 0x1012);
	assert_true(insn_stack((const uint8_t *)"\x74\xf0", 2, 0x1000, &s));
	assert_true(s.jumps && s.goes_on && s.target == 0xff2);
	assert_true(insn_stack((const uint8_t *)"\xc3", 1, 0x1000, &s));
	assert_true(!s.jumps && !s.goes_on);
	assert_true(insn_stack((const uint8_t *)"\xff\xe0", 2, 0x1000, &s));
	assert_false(s.goes_on);
	assert_true(insn_stack((const uint8_t *)"\x0f\x05", 2, 0x1000, &s));
	assert_true(s.goes_on);
	assert_true(insn_stack((const uint8_t *)"\x0f\x1f\x00", 3, 0x1000, &s));
	assert_true(s.is_padding);
}

/* ---- a file ---- */

enum { TEXT = 0xf000, FRAME = 0x40000, SFRAME = 0x50000 };

/* push %rbp; mov %rsp,%rbp; sub $0x20,%rsp; leave; ret */
static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xc9, 0xc3};
/* CFA rsp+16 after the push, rbp+16 after the mov, rsp+8 after leave. */
static const uint8_t right[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x45, 0x0c, 7, 8, 0xc6};
/* The same with rsp+24 after the push. */
static const uint8_t wrong[] = {0x41, 0x0e, 24, 0x86, 2, 0x43, 0x0d, 6, 0x45, 0x0c, 7, 8, 0xc6};

struct sample {
	struct frames f;
	struct elf_builder *b;
	struct cairn_binary *bin;
	struct cairn_unwind_checked told;
	struct cairn_unwind_disagreement first;
	unsigned int n;
	struct cairn_err err;
};

static void build(struct sample *s, const uint8_t *program, size_t n, const uint8_t *sframe,
		  size_t sframe_size)
{
	*s = (struct sample){.b = eb_new(ET_DYN)};
	size_t cie = frames_cie_eh(&s->f, "zR", "\x1b"), size;
	frames_fde_eh(&s->f, FRAME, cie, TEXT, sizeof(code), program, n);
	uint32_t text = eb_section(s->b, (struct eb_section){.name = ".text",
							     .flags = SHF_ALLOC | SHF_EXECINSTR,
							     .addr = TEXT,
							     EB_BYTES(code)});
	eb_load(s->b, text);
	eb_section(s->b, (struct eb_section){.name = ".eh_frame",
					     .flags = SHF_ALLOC,
					     .addr = FRAME,
					     .data = s->f.bytes,
					     .size = s->f.n});
	if (sframe)
		eb_section(s->b, (struct eb_section){.name = ".sframe",
						     .flags = SHF_ALLOC,
						     .addr = SFRAME,
						     .data = sframe,
						     .size = sframe_size});
	uint8_t *bytes = eb_finish(s->b, &size);
	assert_int_equal(binary_open_mem(bytes, size, "sample", &s->bin, &s->err), 0);
}

static void end(struct sample *s)
{
	cairn_binary_close(s->bin);
	eb_free(s->b);
	frames_free(&s->f);
}

static int note(void *ctx, const struct cairn_unwind_disagreement *found)
{
	struct sample *s = ctx;
	if (!s->n++)
		s->first = *found;
	return 0;
}

static int check(struct sample *s)
{
	s->n = 0;
	return cairn_unwind_check(s->bin, note, s, &s->told, &s->err);
}

static void true_rows_have_no_disagreement(void **state)
{
	struct sample s;
	build(&s, right, sizeof(right), NULL, 0);
	assert_int_equal(check(&s), 0);
	assert_int_equal(s.n, 0);
	assert_int_equal(s.told.n_fdes, 1);
	assert_int_equal(s.told.text_bytes, sizeof(code));
	assert_int_equal(s.told.followed_bytes, sizeof(code));
	/* From after the mov to after leave. */
	assert_int_equal(s.told.fp_bytes, 5);
	assert_int_equal(s.told.sframe_bytes, 0);
	end(&s);
}

static void a_row_that_the_instructions_contradict_is_told_once_with_both_numbers(void **state)
{
	struct sample s;
	build(&s, wrong, sizeof(wrong), NULL, 0);
	assert_int_equal(check(&s), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.told.n_disagreements, 1);
	assert_int_equal(s.first.kind, CAIRN_UNWIND_DOUBT_INSN);
	assert_int_equal(s.first.at.v, TEXT + 1);
	assert_int_equal(s.first.from.v, TEXT);
	assert_int_equal(s.first.function.v, TEXT);
	assert_int_equal(s.first.reg, RSP);
	assert_int_equal(s.first.row, 24);
	assert_int_equal(s.first.found, 16);
	end(&s);
}

/* SFrame made of one program's rows, in a file whose rows are another's. */
static void check_sframe_of(struct sample *s, const uint8_t *program, size_t n,
			    unsigned int version)
{
	struct sample from;
	struct cairn_sframe_encoded e;
	build(&from, program, n, NULL, 0);
	assert_int_equal(
		cairn_sframe_encode(from.bin, version, (struct cairn_vaddr){SFRAME}, &e, &from.err),
		0);
	build(s, right, sizeof(right), e.bytes, e.size);
	assert_int_equal(check(s), 0);
	free(e.bytes);
	end(&from);
}

static void sframe_is_held_against_the_rows(void **state)
{
	for (unsigned int version = 2; version <= 3; version++) {
		struct sample s;
		check_sframe_of(&s, right, sizeof(right), version);
		assert_int_equal(s.n, 0);
		assert_int_equal(s.told.sframe_bytes, sizeof(code));
		end(&s);
		check_sframe_of(&s, wrong, sizeof(wrong), version);
		assert_int_equal(s.n, 1);
		assert_int_equal(s.first.kind, CAIRN_UNWIND_DOUBT_SFRAME);
		assert_int_equal(s.first.at.v, TEXT + 1);
		assert_int_equal(s.first.function.v, TEXT);
		end(&s);
	}
}

static void a_damaged_sframe_is_an_error_also_without_words(void **state)
{
	struct sample s;
	static const uint8_t bytes[64] = {0xe2, 0xde, 9};
	build(&s, right, sizeof(right), bytes, sizeof(bytes));
	assert_true(check(&s) < 0);
	assert_true(s.err.msg[0]);
	assert_true(cairn_unwind_check(s.bin, note, &s, &s.told, NULL) < 0);
	end(&s);
}

static int stop_at_first(void *ctx, const struct cairn_unwind_disagreement *found)
{
	return 42;
}

static void who_is_told_may_end_it(void **state)
{
	struct sample s;
	build(&s, wrong, sizeof(wrong), NULL, 0);
	assert_int_equal(cairn_unwind_check(s.bin, stop_at_first, NULL, &s.told, &s.err), 42);
	end(&s);
}

static void every_failing_allocation_is_reported(void **state)
{
	struct sample s, from;
	struct cairn_sframe_encoded e;
	unsigned int n_failed = 0;
	build(&from, wrong, sizeof(wrong), NULL, 0);
	assert_int_equal(
		cairn_sframe_encode(from.bin, 2, (struct cairn_vaddr){SFRAME}, &e, &from.err), 0);
	build(&s, right, sizeof(right), e.bytes, e.size);
	for (unsigned int n = 1;; n++) {
		alloc_fail_at(n);
		int rc = check(&s);
		bool was_hit = alloc_fail_end();
		if (!was_hit) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
		n_failed++;
	}
	assert_true(n_failed > 3);
	assert_int_equal(s.n, 1);
	end(&s);
	free(e.bytes);
	end(&from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_two_registers_are_followed),
		cmocka_unit_test(control_is_followed),
		cmocka_unit_test(true_rows_have_no_disagreement),
		cmocka_unit_test(
			a_row_that_the_instructions_contradict_is_told_once_with_both_numbers),
		cmocka_unit_test(sframe_is_held_against_the_rows),
		cmocka_unit_test(a_damaged_sframe_is_an_error_also_without_words),
		cmocka_unit_test(who_is_told_may_end_it),
		cmocka_unit_test(every_failing_allocation_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
