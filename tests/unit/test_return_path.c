/* SPDX-License-Identifier: BSD-2-Clause */
/* The size of a frame, by the instructions from where it is to its return. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "alloc_fail.h"
#include "unwind/return_path.h"

enum { RBX = 3, RBP = 6, RSP = 7, R11 = 11 };
enum {
	CODE = 0x10000,
	CODE_SIZE = 0x3000,
	FILE_CODE = 0x20000,
	STACK = 0x70000,
	STACK_SIZE = 0x1000
};
enum { SP = STACK + 0x800, BEGIN = CODE + 0x100, STUB = CODE + 0x800, LEAVE = CODE + 0x1000 };
enum { CALLER = 0x4455, CALLER_FP = 0x6677, FRAME = 0xb8 };

/* Code in no file, code of a file, and a stack: the frame of FRAME bytes is at SP. */
struct world {
	uint8_t code[CODE_SIZE];
	uint64_t stack[STACK_SIZE / 8];
	struct code_block block;
	struct code_memory memory;
	struct code_mapping mappings[3];
	struct code_maps maps;
	struct return_path path;
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

static void put(struct world *w, uint64_t at, const void *code, size_t n)
{
	assert_true(at >= CODE && at + n <= CODE + CODE_SIZE);
	memcpy(w->code + (at - CODE), code, n);
}

#define PUT(w, at, code) put(w, at, code, sizeof(code) - 1)

static void make(struct world *w)
{
	memset(w, 0, sizeof(*w));
	/* hlt: nothing goes on where nothing was put */
	memset(w->code, 0xf4, sizeof(w->code));
	w->block = (struct code_block){w->code, sizeof(w->code), CODE};
	w->memory = code_memory_of_block(&w->block);
	w->mappings[0] = (struct code_mapping){
		.lo = CODE, .hi = CODE + CODE_SIZE, .is_executable = true, .path = ""};
	w->mappings[1] = (struct code_mapping){.lo = FILE_CODE,
					       .hi = FILE_CODE + 0x1000,
					       .is_executable = true,
					       .path = "/lib/a.so"};
	w->mappings[2] =
		(struct code_mapping){.lo = STACK, .hi = STACK + STACK_SIZE, .path = "[stack]"};
	w->maps.p.p = w->mappings;
	w->maps.p.n = 3;
	w->path = (struct return_path){&w->maps, &w->memory, read_stack, w};
	w->regs = (struct cairn_regs){.pc = {BEGIN}, .known = 1 << RSP};
	w->regs.r[RSP] = SP;
	*word_at(w, SP + FRAME) = CALLER;
	*word_at(w, SP + 0x60) = CALLER_FP;
	/* PyPy's end: mov 0x60(%rsp),%rbp; add $0xb8,%rsp; ret */
	PUT(w, LEAVE, "\x48\x8b\x6c\x24\x60\x48\x81\xc4\xb8\x00\x00\x00\xc3");
}

static struct cairn_regs caller_of(struct world *w)
{
	struct cairn_regs caller;
	assert_int_equal(return_path_follow(&w->path, &w->regs, &caller, NULL), 1);
	return caller;
}

static void assert_caller(struct world *w)
{
	const struct cairn_regs caller = caller_of(w);
	assert_int_equal(caller.pc.v, CALLER);
	assert_int_equal(caller.r[RSP], SP + FRAME + 8);
	assert_int_equal(caller.known, 1 << RSP | 1 << RBP);
	assert_int_equal(caller.r[RBP], CALLER_FP);
}

static void assert_none(struct world *w)
{
	struct cairn_regs caller;
	assert_int_equal(return_path_follow(&w->path, &w->regs, &caller, NULL), 0);
}

/* jmp LEAVE */
static void put_jump(struct world *w, uint64_t at, uint64_t to)
{
	int32_t distance = (int32_t)(to - at - 5);
	PUT(w, at, "\xe9");
	put(w, at + 1, &distance, sizeof(distance));
}

/* A loop that never ends, out of which a guard leads: jne STUB; jmp BEGIN. */
static void put_loop(struct world *w)
{
	int32_t distance = STUB - BEGIN - 6;
	PUT(w, BEGIN, "\x0f\x85");
	put(w, BEGIN + 2, &distance, sizeof(distance));
	put_jump(w, BEGIN + 6, BEGIN);
}

static void a_loop_is_left_by_its_guard_and_the_end_of_the_frame_shows_its_size(void **state)
{
	struct world w;
	make(&w);
	put_loop(&w);
	/* push $1; push %rax; pop %rcx; pop %rcx */
	PUT(&w, STUB, "\x6a\x01\x50\x59\x59");
	put_jump(&w, STUB + 5, LEAVE);
	assert_caller(&w);
}

/* movabs $LEAVE+0x2340,%r11; mov $0,%ecx; push %r11; pop %rax; lea -0x2340(%r11),%r11; jmp *%r11 */
static void a_number_in_a_register_is_followed(void **state)
{
	struct world w;
	make(&w);
	put_loop(&w);
	PUT(&w, STUB,
	    "\x49\xbb\x40\x33\x01\x00\x00\x00\x00\x00\xb9\x00\x00\x00\x00\x41\x53\x58"
	    "\x4d\x8d\x9b\xc0\xdc\xff\xff\x41\xff\xe3");
	assert_caller(&w);
	/* Not one that was written over since: mov (%rax),%r11 before the jump. */
	PUT(&w, STUB + 18, "\x4c\x8b\x18\x41\xff\xe3");
	assert_none(&w);
}

static void a_register_of_the_frame_is_followed_only_if_it_is_known(void **state)
{
	struct world w;
	make(&w);
	PUT(&w, BEGIN, "\x41\xff\xe3"); /* jmp *%r11 */
	w.regs.r[R11] = LEAVE;
	assert_none(&w);
	w.regs.known |= 1 << R11;
	assert_caller(&w);
	/* A call may overwrite it: call *%rax; jmp *%r11 */
	PUT(&w, BEGIN, "\xff\xd0\x41\xff\xe3");
	assert_none(&w);
	/* and leaves rbx, jmp *%rbx */
	PUT(&w, BEGIN, "\xff\xd0\xff\xe3");
	w.regs.r[RBX] = LEAVE;
	w.regs.known |= 1 << RBX;
	assert_caller(&w);
}

/* Where two paths meet with different numbers, none is known. */
static void numbers_of_two_paths_are_no_number(void **state)
{
	struct world w;
	make(&w);
	/* mov $LEAVE,%eax; je 1f; mov $LEAVE+1,%eax; 1: jmp *%rax */
	PUT(&w, BEGIN, "\xb8\x00\x10\x01\x00\x74\x05\xb8\x01\x10\x01\x00\xff\xe0");
	PUT(&w, LEAVE + 1, "\xc3");
	assert_none(&w);
	make(&w);
	PUT(&w, BEGIN, "\xb8\x00\x10\x01\x00\x74\x05\xb8\x00\x10\x01\x00\xff\xe0");
	assert_caller(&w);
}

/*
 * A helper takes its argument with it (ret $8): the path past its call is wrong, and is not needed.
 */
static void a_path_past_a_call_counts_only_if_there_is_no_other(void **state)
{
	struct world w;
	make(&w);
	/* je 1f; push %rsi; call *%rax; jmp LEAVE (8 bytes off); 1: jmp LEAVE */
	PUT(&w, BEGIN, "\x74\x08\x56\xff\xd0");
	put_jump(&w, BEGIN + 5, LEAVE);
	put_jump(&w, BEGIN + 10, LEAVE);
	assert_caller(&w);
	/* Past two calls: call *%rax; call *%rax; jmp LEAVE */
	make(&w);
	PUT(&w, BEGIN, "\xff\xd0\xff\xd0");
	put_jump(&w, BEGIN + 4, LEAVE);
	assert_caller(&w);
}

static void a_return_takes_arguments_with_it(void **state)
{
	struct world w;
	make(&w);
	PUT(&w, BEGIN, "\xc2\x08\x01");
	*word_at(&w, SP) = CALLER;
	const struct cairn_regs caller = caller_of(&w);
	assert_int_equal(caller.pc.v, CALLER);
	assert_int_equal(caller.r[RSP], SP + 8 + 0x108);
	assert_int_equal(caller.known, 1 << RSP);
}

/* After an error a helper returns from its caller's frame: add $8,%rsp; ret besides ret. */
static void the_lowest_return_is_the_frames(void **state)
{
	for (int is_first = 0; is_first < 2; is_first++) {
		struct world w;
		make(&w);
		if (is_first)
			PUT(&w, BEGIN, "\x75\x01\xc3\x48\x83\xc4\x08\xc3");
		else
			PUT(&w, BEGIN, "\x75\x05\x48\x83\xc4\x08\xc3\xc3");
		*word_at(&w, SP) = CALLER;
		*word_at(&w, SP + 8) = CALLER + 1;
		assert_int_equal(caller_of(&w).pc.v, CALLER);
	}
}

/* je 1f; push %rax; 1: jmp LEAVE */
static void paths_that_disagree_about_the_stack_pointer_show_nothing(void **state)
{
	struct world w;
	make(&w);
	PUT(&w, BEGIN, "\x74\x01\x50");
	put_jump(&w, BEGIN + 3, LEAVE);
	assert_none(&w);
}

static void a_stack_pointer_that_is_not_known_is_not_followed(void **state)
{
	struct world w;
	make(&w);
	PUT(&w, BEGIN, "\x48\x89\xc4\xc3"); /* mov %rax,%rsp; ret */
	assert_none(&w);
	/* leave; ret: rbp is known, or not */
	PUT(&w, BEGIN, "\xc9\xc3");
	assert_none(&w);
	w.regs.known |= 1 << RBP;
	w.regs.r[RBP] = SP + FRAME - 8;
	*word_at(&w, SP + FRAME - 8) = CALLER_FP;
	assert_caller(&w);
}

static void what_was_pushed_on_the_way_is_not_read_from_the_stack(void **state)
{
	struct world w;
	make(&w);
	/* push %rax; pop %rbp; add $0xb8,%rsp; ret */
	PUT(&w, BEGIN, "\x50\x5d\x48\x81\xc4\xb8\x00\x00\x00\xc3");
	const struct cairn_regs caller = caller_of(&w);
	assert_int_equal(caller.pc.v, CALLER);
	assert_int_equal(caller.known, 1 << RSP);
}

static void code_of_a_file_is_not_followed(void **state)
{
	struct world w;
	make(&w);
	put_jump(&w, BEGIN, FILE_CODE);
	assert_none(&w);
	w.mappings[0].path = "/lib/b.so";
	make(&w);
	put_jump(&w, BEGIN, LEAVE);
	w.mappings[0].path = "/lib/b.so";
	assert_none(&w);
}

static void a_return_above_the_stack_or_below_the_frame_is_none(void **state)
{
	struct world w;
	make(&w);
	PUT(&w, BEGIN, "\x48\x81\xc4\x00\x10\x00\x00\xc3"); /* add $0x1000,%rsp; ret */
	assert_none(&w);
	PUT(&w, BEGIN, "\x50\xc3"); /* push %rax; ret: a jump */
	assert_none(&w);
}

/*
 * The page after the first ends within an instruction, and one that cannot be read ends the path.
 */
static void instructions_lie_across_pages_and_code_ends(void **state)
{
	enum { ACROSS = CODE + 0x1ffe };
	struct world w;
	make(&w);
	put_jump(&w, BEGIN, ACROSS);
	PUT(&w, ACROSS, "\x48\x81\xc4\xb8\x00\x00\x00\xc3");
	assert_int_equal(caller_of(&w).pc.v, CALLER);
	w.block.n = ACROSS + 3 - CODE;
	assert_none(&w);
}

/* 2,000 instructions before the return are more than are followed. */
static void code_without_end_is_followed_to_a_limit(void **state)
{
	struct world w;
	make(&w);
	memset(w.code + (BEGIN - CODE), 0x90, 2000);
	PUT(&w, BEGIN + 2000, "\xc3");
	*word_at(&w, SP) = CALLER;
	assert_none(&w);
	memset(w.code + (BEGIN - CODE), 0x90, 1000);
	PUT(&w, BEGIN + 1000, "\xc3");
	assert_int_equal(caller_of(&w).pc.v, CALLER);
}

static void no_memory_is_said(void **state)
{
	struct world w;
	struct cairn_regs caller;
	struct cairn_err err;
	make(&w);
	alloc_fail_at(1);
	int rc = return_path_follow(&w.path, &w.regs, &caller, &err);
	assert_true(alloc_fail_end());
	assert_int_equal(rc, -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_loop_is_left_by_its_guard_and_the_end_of_the_frame_shows_its_size),
		cmocka_unit_test(a_number_in_a_register_is_followed),
		cmocka_unit_test(a_register_of_the_frame_is_followed_only_if_it_is_known),
		cmocka_unit_test(numbers_of_two_paths_are_no_number),
		cmocka_unit_test(a_path_past_a_call_counts_only_if_there_is_no_other),
		cmocka_unit_test(a_return_takes_arguments_with_it),
		cmocka_unit_test(the_lowest_return_is_the_frames),
		cmocka_unit_test(paths_that_disagree_about_the_stack_pointer_show_nothing),
		cmocka_unit_test(a_stack_pointer_that_is_not_known_is_not_followed),
		cmocka_unit_test(what_was_pushed_on_the_way_is_not_read_from_the_stack),
		cmocka_unit_test(code_of_a_file_is_not_followed),
		cmocka_unit_test(a_return_above_the_stack_or_below_the_frame_is_none),
		cmocka_unit_test(instructions_lie_across_pages_and_code_ends),
		cmocka_unit_test(code_without_end_is_followed_to_a_limit),
		cmocka_unit_test(no_memory_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
