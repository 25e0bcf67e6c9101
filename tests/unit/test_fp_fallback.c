/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames that nobody describes: left by their frame pointer where they have one, and not left where
 * it is not one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <string.h>

#include "unwind/fp_fallback.h"

enum { RBX = 3, RBP = 6, RSP = 7 };
enum { CODE = 0x10000, STACK = 0x70000, STACK_SIZE = 0x1000, SP = STACK + 0x800, FP = SP + 0x40 };
enum { CALLER = CODE + 0x800, CALLER_FP = FP + 0x100 };

/* A page of code, a page of stack; a call stands before CALLER. */
struct world {
	uint8_t code[0x1000];
	uint64_t stack[STACK_SIZE / 8];
	struct code_block block;
	struct code_memory memory;
	struct code_mapping mappings[2];
	struct code_maps maps;
	struct assume how;
	struct cairn_regs regs;
};

static uint64_t *word_at(struct world *w, uint64_t at)
{
	return &w->stack[(at - STACK) / 8];
}

static bool read_stack(void *ctx, struct cairn_addr at, void *ret, size_t n)
{
	struct world *w = ctx;
	if (at.v < STACK || at.v + n > STACK + STACK_SIZE)
		return false;
	memcpy(ret, (uint8_t *)w->stack + (at.v - STACK), n);
	return true;
}

/* The frame of FP, whose caller is at CALLER; @code is about to run. */
static void make(struct world *w, const void *code, size_t n)
{
	memset(w, 0, sizeof(*w));
	memset(w->code, 0x90, sizeof(w->code));
	memcpy(w->code + 0x100, code, n);
	w->code[CALLER - CODE - 5] = 0xe8;
	w->block = (struct code_block){w->code, sizeof(w->code), CODE};
	w->memory = code_memory_of_block(&w->block);
	w->mappings[0] = (struct code_mapping){
		.lo = CODE, .hi = CODE + 0x1000, .is_executable = true, .path = "/lib/a.so"};
	w->mappings[1] =
		(struct code_mapping){.lo = STACK, .hi = STACK + STACK_SIZE, .path = "[stack]"};
	w->maps.p.p = w->mappings;
	w->maps.p.n = 2;
	w->how = (struct assume){EM_X86_64, &w->maps, &w->memory, read_stack, w};
	w->regs = (struct cairn_regs){.pc = {CODE + 0x100}, .known = 0xffff};
	w->regs.r[RSP] = SP;
	w->regs.r[RBP] = FP;
	*word_at(w, FP) = CALLER_FP;
	*word_at(w, FP + 8) = CALLER;
}

#define MAKE(w, code) make(w, code, sizeof(code) - 1)

static void assert_caller(struct world *w, bool is_exact, uint64_t sp, uint64_t fp)
{
	struct cairn_regs regs = w->regs;
	const char *why = NULL;
	if (!fp_fallback_caller(&w->how, is_exact, &regs, &why))
		fail_msg("%s", why);
	assert_int_equal(regs.pc.v, CALLER);
	assert_int_equal(regs.r[RSP], sp);
	assert_int_equal(regs.r[RBP], fp);
}

static void assert_none(struct world *w, bool is_exact, const char *want)
{
	struct cairn_regs regs = w->regs;
	const char *why = NULL;
	assert_false(fp_fallback_caller(&w->how, is_exact, &regs, &why));
	assert_string_equal(why, want);
	assert_memory_equal(&regs, &w->regs, sizeof(regs));
}

static void the_caller_is_found_by_the_frame_pointer(void **state)
{
	struct world w;
	MAKE(&w, "\x48\x01\xd8\x48\x89\x45\xf8"); /* add %rbx,%rax; mov %rax,-8(%rbp) */
	assert_caller(&w, true, FP + 16, CALLER_FP);
	assert_caller(&w, false, FP + 16, CALLER_FP);
}

static void what_the_function_kept_for_its_caller_is_not_known(void **state)
{
	struct world w;
	const char *why;
	MAKE(&w, "\x90");
	assert_true(fp_fallback_caller(&w.how, true, &w.regs, &why));
	assert_int_equal(w.regs.known & 1 << RBX, 0);
	assert_int_equal(w.regs.known & (1 << RSP | 1 << RBP), 1 << RSP | 1 << RBP);
}

/* The frame pointer is still the caller's: to follow it would leave out a frame. */
static void before_the_frame_is_made_the_return_address_is_on_top(void **state)
{
	static const char *const begins[] = {
		"\x55\x48\x89\xe5",                     /* push %rbp; mov %rsp,%rbp */
		"\x55\x48\x8b\xec",                     /* the other encoding */
		"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5",     /* endbr64 first */
		"\x48\x85\xdb\x75\x20\x55\x48\x89\xe5", /* test %rbx,%rbx; jne: as V8 begins */
	};
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		struct world w;
		make(&w, begins[i], strlen(begins[i]));
		*word_at(&w, SP) = CALLER;
		*word_at(&w, FP + 8) = 0;
		assert_caller(&w, true, SP + 8, FP);
	}
}

static void between_push_and_mov_the_callers_rbp_is_on_top(void **state)
{
	struct world w;
	MAKE(&w, "\x55\x48\x89\xe5");
	w.regs.pc.v++;
	*word_at(&w, SP) = CALLER_FP;
	*word_at(&w, SP + 8) = CALLER;
	*word_at(&w, FP + 8) = 0;
	assert_caller(&w, true, SP + 16, CALLER_FP);
}

static void at_a_return_its_address_is_on_top(void **state)
{
	static const char *const ends[] = {
		"\xc3",
		"\x48\x83\xf9\x02\x7f\x05\xc2\x10", /* cmp $2,%rcx; jg; ret $16: as V8 ends */
	};
	for (size_t i = 0; i < 2; i++) {
		struct world w;
		make(&w, ends[i], i ? 9 : 1);
		*word_at(&w, SP) = CALLER;
		*word_at(&w, FP + 8) = 0;
		assert_caller(&w, true, SP + 8, FP);
	}
}

/* Up to the instruction that restores it rbp is this frame's. */
static void before_the_frame_is_taken_down_it_is_followed(void **state)
{
	static const char *const ends[] = {"\x5d\xc3", "\xc9\xc3", "\x48\x89\xec\x5d\xc3",
					   "\x48\x83\xc4\x10\x5d\xc3"};
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct world w;
		make(&w, ends[i], strlen(ends[i]));
		*word_at(&w, SP) = CALLER;
		assert_caller(&w, true, FP + 16, CALLER_FP);
	}
}

static void instructions_count_only_where_one_is_about_to_run(void **state)
{
	struct world w;
	MAKE(&w, "\xc3");
	*word_at(&w, SP) = 1;
	assert_caller(&w, false, FP + 16, CALLER_FP);
}

static void another_functions_beginning_is_not_this_ones(void **state)
{
	static const char *const between[] = {"\xeb\x00\x55\x48\x89\xe5",
					      "\xe8\x10\x10\x10\x10\x55\x48\x89\xe5",
					      "\xcc\x55\x48\x89\xe5"};
	for (size_t i = 0; i < sizeof(between) / sizeof(*between); i++) {
		struct world w;
		make(&w, between[i], i == 0 ? 6 : strlen(between[i]));
		*word_at(&w, SP) = 1;
		assert_caller(&w, true, FP + 16, CALLER_FP);
	}
}

static void a_frame_pointer_that_is_none_is_not_followed(void **state)
{
	static const uint64_t values[] = {
		0, SP - 8, FP + 1, STACK + STACK_SIZE - 8, STACK + STACK_SIZE, UINT64_MAX, CODE};
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		struct world w;
		MAKE(&w, "\x90");
		w.regs.r[RBP] = values[i];
		assert_none(&w, true,
			    "rbp, which could be its frame pointer, does not point into the stack");
	}
	struct world w;
	MAKE(&w, "\x90");
	w.regs.known &= ~(UINT32_C(1) << RBP);
	assert_none(&w, true, "its frame pointer is not known");
}

static void what_is_not_after_a_call_is_no_return_address(void **state)
{
	static const uint64_t values[] = {0,  1,         CODE, CODE + 3, CALLER + 1, CODE + 0x1001,
					  SP, UINT64_MAX};
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		struct world w;
		MAKE(&w, "\x90");
		*word_at(&w, FP + 8) = values[i];
		assert_none(&w, true, "rbp does not lead to a return address");
		MAKE(&w, "\xc3");
		*word_at(&w, SP) = values[i];
		assert_none(&w, true, "the top of the stack is no return address");
	}
}

static void code_in_no_file_may_be_returned_to_without_a_call_if_its_frame_is_whole(void **state)
{
	struct world w;
	const char *why;
	MAKE(&w, "\x90");
	*word_at(&w, FP + 8) = CODE + 0x20;
	*word_at(&w, CALLER_FP + 8) = CALLER;
	assert_none(&w, true, "rbp does not lead to a return address");
	w.mappings[0].path = "";
	struct cairn_regs regs = w.regs;
	assert_true(fp_fallback_caller(&w.how, true, &regs, &why));
	assert_string_equal(why, "its callee keeps a frame pointer, and was jumped to");
	assert_int_equal(regs.pc.v, CODE + 0x20);
	*word_at(&w, CALLER_FP + 8) = SP;
	assert_none(&w, true, "rbp does not lead to a return address");
	*word_at(&w, CALLER_FP + 8) = CALLER;
	*word_at(&w, FP) = SP;
	assert_none(&w, true, "rbp does not lead to a return address");
}

static void code_that_may_not_run_has_no_return_addresses(void **state)
{
	struct world w;
	MAKE(&w, "\x90");
	w.mappings[0].is_executable = false;
	assert_none(&w, true, "rbp does not lead to a return address");
}

/* ---- AArch64 ---- */

enum { X29 = 29, X30 = 30, XSP = 31, RECORD = SP + 0x20, FUNCTION = 0x100 };
enum {
	NOP = 0xd503201f,
	STP = 0xa9be7bfd,
	MOV_FP = 0x910003fd,
	LDP = 0xa8c27bfd,
	RETURN = 0xd65f03c0,
	BLR = 0xd63f0000
};

/*
 * @insns from FUNCTION on, of which the one of number @here is about to run; the call before CALLER
 * leads to FUNCTION.
 */
static void make_arm(struct world *w, const uint32_t *insns, size_t n, size_t here)
{
	const uint32_t call = 0x94000000 | (((FUNCTION - (CALLER - CODE - 4)) / 4) & 0x3ffffff),
		       nop = NOP;
	make(w, "", 0);
	for (size_t i = 0; i < sizeof(w->code); i += 4)
		memcpy(w->code + i, &nop, 4);
	memcpy(w->code + FUNCTION, insns, n * sizeof(*insns));
	memcpy(w->code + (CALLER - CODE) - 4, &call, 4);
	w->how.machine = EM_AARCH64;
	w->regs = (struct cairn_regs){.pc = {CODE + FUNCTION + 4 * here}, .known = UINT32_MAX};
	w->regs.r[XSP] = SP;
	w->regs.r[X29] = RECORD;
	w->regs.r[X30] = CALLER;
	*word_at(w, RECORD) = CALLER_FP;
	*word_at(w, RECORD + 8) = CALLER;
}

#define MAKE_ARM(w, here, ...)                                                                     \
	make_arm(w, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4,  \
		 here)

static void assert_arm(struct world *w, bool is_exact, uint64_t fp)
{
	struct cairn_regs regs = w->regs;
	const char *why = NULL;
	if (!fp_fallback_caller(&w->how, is_exact, &regs, &why))
		fail_msg("%s", why);
	assert_int_equal(regs.pc.v, CALLER);
	/* How large the frame was nobody says. */
	assert_int_equal(regs.known, UINT32_C(1) << X29);
	assert_int_equal(regs.r[X29], fp);
}

static void a_frame_of_aarch64_is_left_by_x29(void **state)
{
	struct world w;
	MAKE_ARM(&w, 3, STP, MOV_FP, NOP, NOP);
	assert_arm(&w, true, CALLER_FP);
	assert_arm(&w, false, CALLER_FP);
	/* x30 is another call's by now. */
	MAKE_ARM(&w, 4, STP, MOV_FP, NOP, BLR, NOP);
	w.regs.r[X30] = CODE + FUNCTION + 16;
	assert_arm(&w, true, CALLER_FP);
	/* A signature of the return address is above it. */
	*word_at(&w, RECORD + 8) |= UINT64_C(0x12) << 56;
	assert_arm(&w, true, CALLER_FP);
}

static void without_a_frame_x30_is_the_return_address(void **state)
{
	struct world w;
	MAKE_ARM(&w, 1, NOP, NOP, RETURN);
	assert_arm(&w, true, RECORD);
	MAKE_ARM(&w, 0, STP, MOV_FP);
	assert_arm(&w, true, RECORD);
	MAKE_ARM(&w, 4, STP, MOV_FP, NOP, LDP, RETURN);
	assert_arm(&w, true, RECORD);
}

static void what_does_not_tell_whether_a_frame_was_made_is_not_assumed(void **state)
{
	static const char unknown[] = "it is not known whether it has made its frame";
	struct world w;
	/* Between the two; after a way out; and without a call that leads here. */
	MAKE_ARM(&w, 1, STP, MOV_FP);
	assert_none(&w, true, unknown);
	MAKE_ARM(&w, 4, STP, MOV_FP, LDP, RETURN, NOP);
	assert_none(&w, true, unknown);
	MAKE_ARM(&w, 2, NOP, NOP, NOP);
	w.regs.r[X30] = SP;
	assert_none(&w, true, unknown);
	w.regs.known &= ~(UINT32_C(1) << X29);
	assert_none(&w, true, "its frame pointer is not known");
}

static void x29_that_leads_nowhere_is_not_followed(void **state)
{
	struct world w;
	MAKE_ARM(&w, 3, STP, MOV_FP, NOP, NOP);
	w.regs.r[X29] = SP - 16;
	assert_none(&w, true,
		    "x29, which could be its frame pointer, does not point into the stack");
	w.regs.r[X29] = RECORD;
	*word_at(&w, RECORD) = RECORD - 32;
	assert_none(&w, true, "x29 leads down the stack");
	*word_at(&w, RECORD) = CALLER_FP;
	*word_at(&w, RECORD + 8) = CODE + 0x40;
	assert_none(&w, true, "x29 does not lead to a return address");
}

static void x29_of_0_says_that_there_is_no_caller(void **state)
{
	struct world w;
	MAKE_ARM(&w, 3, STP, MOV_FP, NOP, NOP);
	assert_false(fp_fallback_outermost_arm(false, &w.regs));
	w.regs.r[X29] = 0;
	assert_true(fp_fallback_outermost_arm(false, &w.regs));
	assert_false(fp_fallback_outermost_arm(true, &w.regs));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_caller_is_found_by_the_frame_pointer),
		cmocka_unit_test(what_the_function_kept_for_its_caller_is_not_known),
		cmocka_unit_test(before_the_frame_is_made_the_return_address_is_on_top),
		cmocka_unit_test(between_push_and_mov_the_callers_rbp_is_on_top),
		cmocka_unit_test(at_a_return_its_address_is_on_top),
		cmocka_unit_test(before_the_frame_is_taken_down_it_is_followed),
		cmocka_unit_test(instructions_count_only_where_one_is_about_to_run),
		cmocka_unit_test(another_functions_beginning_is_not_this_ones),
		cmocka_unit_test(a_frame_pointer_that_is_none_is_not_followed),
		cmocka_unit_test(what_is_not_after_a_call_is_no_return_address),
		cmocka_unit_test(
			code_in_no_file_may_be_returned_to_without_a_call_if_its_frame_is_whole),
		cmocka_unit_test(code_that_may_not_run_has_no_return_addresses),
		cmocka_unit_test(a_frame_of_aarch64_is_left_by_x29),
		cmocka_unit_test(without_a_frame_x30_is_the_return_address),
		cmocka_unit_test(what_does_not_tell_whether_a_frame_was_made_is_not_assumed),
		cmocka_unit_test(x29_that_leads_nowhere_is_not_followed),
		cmocka_unit_test(x29_of_0_says_that_there_is_no_caller),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
