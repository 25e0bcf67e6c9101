/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeping stacks: whatever order hits come in, an event's stack is known, and memory has a bound
 *
 * The kernel's program is played here: it sends a stack unless its slot has it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <string.h>
#include <sys/mman.h>

#include "trace/attach/kernel_text.h"
#include "trace/stacks/impl.h"

enum { FRAMES = 40, ROUNDS = 400000 };

#define SEEN_BYTES (TRACE_SEEN_SLOTS * sizeof(uint64_t[2]))

struct sent {
	struct trace_stack head;
	uint64_t frames[FRAMES];
};

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

/* The stack of a number. */
static struct sent stack_of(uint64_t number)
{
	struct sent s = {.head = {.n = FRAMES}};

	s.head.id[0] = (number * 0x9e3779b97f4a7c15u) | 1;
	s.head.id[1] = number;
	for (int i = 0; i < FRAMES; i++)
		s.frames[i] = number * FRAMES + (uint64_t)i;
	return s;
}

static void begin(struct trace_stacks *s)
{
	*s = (struct trace_stacks){.max_kept = TRACE_SEEN_SLOTS};
	s->now = &s->generations[0];
	s->past = &s->generations[1];
	arena_init(&s->arena);
	s->seen =
		mmap(NULL, SEEN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(s->seen != MAP_FAILED);
}

static void end(struct trace_stacks *s)
{
	stacks_forget(s);
	arena_fini(&s->arena);
}

static void send(struct trace_stacks *s, const struct sent *stack)
{
	uint64_t(*seen)[2] = s->seen;
	uint64_t slot = stack->head.id[0] >> 1 & (TRACE_SEEN_SLOTS - 1);
	struct stack_kept *k;

	if (seen[slot][0] == stack->head.id[0] && seen[slot][1] == stack->head.id[1])
		return;
	/* The program notes it after it was sent: it may be read, and a generation end, before. */
	assert_int_equal(stacks_keep_one(s, &stack->head, false, &k), 0);
	seen[slot][0] = stack->head.id[0];
	seen[slot][1] = stack->head.id[1];
}

static void expect_known(const struct trace_stacks *s, const struct sent *stack)
{
	const struct stack_kept *k = stacks_find(s, stack->head.id[0], stack->head.id[1]);

	assert_non_null(k);
	assert_int_equal(k->n, FRAMES);
	assert_memory_equal(k->in->frames.p + k->first, stack->frames, sizeof(stack->frames));
}

/* Some stacks are those of most hits, and the others of few. */
static uint64_t some_number(uint64_t round)
{
	return next_random() % 4 ? next_random() % 3000 : 3000 + round;
}

static void every_event_has_its_stack_and_memory_has_a_bound(void **state)
{
	size_t most = 0, before = mallinfo2().uordblks + mallinfo2().hblkhd;
	struct trace_stacks s;

	begin(&s);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct sent stack = stack_of(some_number(i));
		send(&s, &stack);
		expect_known(&s, &stack);
		if (i % 10000)
			continue;
		size_t used = mallinfo2().uordblks + mallinfo2().hblkhd - before;
		most = used > most ? used : most;
	}
	assert_true(s.n_turns > 4 && s.n_different > 100000);
	/* Two generations with 2^20 frames of 8 bytes at most, in vectors that are filled to a half. */
	assert_true(most < (size_t)64 << 20);
	end(&s);
}

static void what_was_in_the_buffer_at_a_turn_is_known_after_it(void **state)
{
	struct trace_stacks s;
	struct sent first = stack_of(1);

	begin(&s);
	send(&s, &first);
	for (uint64_t i = 2; !s.n_turns; i++) {
		struct sent stack = stack_of(i);
		send(&s, &stack);
	}
	expect_known(&s, &first);
	/* It is sent again, as the program has forgotten it, and known through the next turn. */
	send(&s, &first);
	for (uint64_t i = 1000000; s.n_turns < 2; i++) {
		struct sent stack = stack_of(i);
		send(&s, &stack);
	}
	expect_known(&s, &first);
	end(&s);
}

static void of_keys_the_first_stacks_are_kept_for_ever(void **state)
{
	struct trace_stacks s;
	struct stack_kept *k;

	begin(&s);
	s.keeps_first = true;
	s.max_kept = 100;
	for (uint64_t i = 0; i < 10000; i++) {
		struct sent stack = stack_of(i);
		assert_int_equal(stacks_keep_one(&s, &stack.head, false, &k), 0);
		assert_int_equal(k != NULL, i < 100);
	}
	for (uint64_t i = 0; i < 100; i++) {
		struct sent stack = stack_of(i);
		expect_known(&s, &stack);
	}
	assert_int_equal(s.n_turns, 0);
	end(&s);
}

/* A record whose numbers contradict each other is none of ours. */
static void frames_of_the_kernel_are_counted_apart(void **state)
{
	struct trace_stacks s;
	struct cairn_trace t = {.stacks = &s};
	struct sent stack = stack_of(1);
	struct walk_taken taken;

	begin(&s);
	stack.head.end = WALK_END_LIMIT;
	stack.head.n_kernel = 1;
	assert_int_equal(stacks_take(&t, &stack, sizeof(stack), false), 0);
	taken = stacks_taken(stacks_find(&s, stack.head.id[0], stack.head.id[1]));
	assert_int_equal(taken.n, FRAMES - 1);
	assert_memory_equal(taken.frames, stack.frames + 1, taken.n * sizeof(*taken.frames));
	assert_int_equal(s.n_broken, 0);
	stack.head.n_kernel = FRAMES + 1;
	assert_int_equal(stacks_take(&t, &stack, sizeof(stack), false), 0);
	stack.head.n_kernel = WALK_MAX_KERNEL + 1;
	stack.head.n = WALK_MAX_KERNEL + 1;
	assert_int_equal(stacks_take(&t, &stack, sizeof(stack), false), 0);
	stack.head.n_kernel = 0;
	assert_int_equal(stacks_take(&t, &stack, sizeof(stack), false), 0);
	assert_int_equal(s.n_broken, 3);
	end(&s);
}

static void a_stack_that_ends_in_the_kernel_says_why(void **state)
{
	struct stack_kept k = {.n = 1, .n_kernel = 1, .end = WALK_END_LOST};

	assert_non_null(strstr(stacks_kernel_end(&k, k.end), "one byte"));
	assert_non_null(strstr(stacks_kernel_end(&k, WALK_END_NO_PROCESS), "execve"));
	assert_null(stacks_kernel_end(&k, WALK_END_COMPLETE));
	assert_null(stacks_kernel_end(&k, WALK_END_LIMIT));
	/* Frames of a program follow: the reason is theirs. */
	k.n = 2;
	assert_null(stacks_kernel_end(&k, WALK_END_LOST));
	k = (struct stack_kept){
		.n = WALK_MAX_KERNEL, .n_kernel = WALK_MAX_KERNEL, .end = WALK_END_LIMIT};
	assert_true(stacks_kernel_is_cut(&k));
	assert_non_null(strstr(stacks_kernel_end(&k, WALK_END_LIMIT), "127"));
}

static void one_byte_that_moves_the_stack_pointer_is_known(void **state)
{
	static const struct {
		uint8_t code[5];
		bool moves;
	} codes[] = {
		{{0x55, 0x48, 0x89, 0xe5, 0x90}, true},  /* push %rbp; mov */
		{{0x5b, 0x5d, 0xc3, 0x90, 0x90}, true},  /* pop %rbx */
		{{0xc3, 0x90, 0x90, 0x90, 0x90}, true},  /* ret */
		{{0xc9, 0xc3, 0x90, 0x90, 0x90}, true},  /* leave */
		{{0x9c, 0x58, 0x90, 0x90, 0x90}, true},  /* pushf */
		{{0xf3, 0x0f, 0x1e, 0xfa, 0x55}, true},  /* endbr64; push %rbp */
		{{0xf3, 0x0f, 0x1e, 0xfa, 0xe8}, false}, /* endbr64; call */
		{{0x41, 0x54, 0x55, 0x90, 0x90}, false}, /* push %r12: two bytes, of the same row */
		{{0x0f, 0x1f, 0x44, 0x00, 0x00}, false}, /* a nop */
		{{0x48, 0x83, 0xec, 0x10, 0x90}, false}, /* sub $16, %rsp */
		{{0x90, 0x55, 0x90, 0x90, 0x90}, false}, /* nop */
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		assert_int_equal(kernel_text_moves_stack(codes[i].code), codes[i].moves);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_has_its_stack_and_memory_has_a_bound),
		cmocka_unit_test(what_was_in_the_buffer_at_a_turn_is_known_after_it),
		cmocka_unit_test(of_keys_the_first_stacks_are_kept_for_ever),
		cmocka_unit_test(frames_of_the_kernel_are_counted_apart),
		cmocka_unit_test(a_stack_that_ends_in_the_kernel_says_why),
		cmocka_unit_test(one_byte_that_moves_the_stack_pointer_is_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
