/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples in windows: what is forgotten, and what is not yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "alloc_fail.h"
#include "prof/samples.h"

struct record {
	struct prof_sample sample;
	uint64_t frames[3];
};

static int add(struct prof_samples *s, uint64_t stack, bool is_new)
{
	struct record r = {.sample = {.stack = stack,
				      .weight = 1,
				      .time_ns = 1000 + stack,
				      .cpu = 5,
				      .pid = 7,
				      .tid = 8,
				      .is_new = is_new,
				      .n_kernel = 1,
				      .n_frames = is_new ? 3 : 0},
			   .frames = {stack + 100, stack + 101, stack + 102}};

	return samples_add(s, &r, is_new ? sizeof(r) : sizeof(r.sample));
}

static void expect_stack(const struct prof_samples *s, size_t i, uint64_t stack)
{
	const struct prof_stack *k = &s->stacks.p[i];
	const uint64_t frames[] = {stack + 100, stack + 101, stack + 102};

	assert_true(k->hash == stack && k->n == 3 && k->n_kernel == 1);
	assert_memory_equal(s->frames.p + k->first, frames, sizeof(frames));
}

/* A hit of a probe; the record alone, of a stack that is there. */
static int hit(struct prof_samples *s, uint8_t state, uint64_t weight)
{
	struct prof_sample r = {.stack = 1, .weight = weight, .pid = 7, .tid = 8, .state = state};

	return samples_add(s, &r, sizeof(r));
}

static void a_hit_without_a_number_counts_and_weighs_nothing(void **state)
{
	struct prof_samples s = {.keeps_sum = true};

	add(&s, 1, true);
	assert_int_equal(hit(&s, PROF_WEIGHED, 41), 1);
	assert_int_equal(hit(&s, PROF_WEIGHED, 0), 1);
	assert_int_equal(hit(&s, PROF_UNAVAILABLE, 9), 1);
	assert_int_equal(hit(&s, PROF_NOT_READ, 9), 1);
	assert_int_equal(hit(&s, PROF_NOT_READ, 9), 1);
	assert_int_equal(hit(&s, PROF_STACK_ONLY, 9), 0);
	assert_int_equal(hit(&s, PROF_N_STATES, 9), 0);
	assert_int_equal(s.n, 6);
	assert_int_equal(s.n_broken, 1);
	assert_int_equal(s.counts.n, 3);
	assert_true(s.counts.p[0].n == 3 && s.counts.p[0].weight == 42);
	assert_true(s.counts.p[1].state == PROF_UNAVAILABLE && s.counts.p[1].n == 1);
	assert_true(s.counts.p[2].state == PROF_NOT_READ && s.counts.p[2].n == 2);
	assert_true(!s.counts.p[1].weight && !s.counts.p[2].weight);
	assert_true(s.n_states[PROF_WEIGHED] == 3 && s.n_states[PROF_NOT_READ] == 2);
	samples_fini(&s);
}

/* Of each window anew: its profile is one of its own. */
static void a_number_that_a_sum_has_no_room_for_is_left_out_of_it(void **state)
{
	struct prof_samples s = {.keeps_sum = true};

	add(&s, 1, true);
	assert_int_equal(hit(&s, PROF_WEIGHED, INT64_MAX - 1), 1);
	assert_int_equal(hit(&s, PROF_WEIGHED, 1), 1);
	assert_true(s.counts.p[1].state == PROF_TOO_LARGE && s.counts.p[1].n == 1);
	assert_int_equal(hit(&s, PROF_WEIGHED, 0), 1);
	assert_true(s.counts.p[0].n == 3 && s.counts.p[0].weight == INT64_MAX);
	assert_int_equal(samples_next_window(&s), 0);
	assert_int_equal(hit(&s, PROF_WEIGHED, 5), 1);
	assert_true(s.counts.p[0].state == PROF_WEIGHED && s.counts.p[0].weight == 5);
	assert_int_equal(s.n_states[PROF_TOO_LARGE], 1);
	samples_fini(&s);
}

static void a_window_has_its_own_counts(void **state)
{
	struct prof_samples s = {0};

	for (int i = 0; i < 5; i++)
		assert_int_equal(add(&s, 1, i == 0), 1);
	assert_int_equal(samples_next_window(&s), 0);
	assert_int_equal(s.counts.n + s.stacks.n + s.frames.n, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(add(&s, 3, i == 0), 1);
	assert_int_equal(s.counts.n, 1);
	assert_int_equal(s.counts.p[0].n, 3);
	assert_int_equal(s.n, 8);
	samples_fini(&s);
}

static void a_record_on_its_way_finds_the_stack_of_the_window_before(void **state)
{
	struct prof_samples s = {0};
	size_t n;

	assert_int_equal(add(&s, 1, true), 1);
	assert_int_equal(add(&s, 3, true), 1);
	assert_int_equal(samples_next_window(&s), 0);
	assert_non_null(samples_frames(&s, &(struct prof_sample){.stack = 3},
				       sizeof(struct prof_sample), &n));
	assert_int_equal(n, 3);
	assert_int_equal(add(&s, 3, false), 1);
	assert_int_equal(add(&s, 3, false), 1);
	assert_int_equal(s.stacks.n, 1);
	expect_stack(&s, 0, 3);
	/* It is of this window now, and so is known in the next one. 1 was forgotten. */
	assert_int_equal(samples_next_window(&s), 0);
	assert_int_equal(add(&s, 3, false), 1);
	expect_stack(&s, 0, 3);
	assert_int_equal(add(&s, 1, false), 0);
	assert_int_equal(s.n_broken, 1);
	assert_int_equal(s.n, 5);
	samples_fini(&s);
}

static void the_memory_is_that_of_two_windows(void **state)
{
	struct prof_samples s = {0};
	size_t cap = 0;

	for (uint64_t window = 0; window < 200; window++) {
		for (uint64_t i = 0; i < 500; i++)
			assert_int_equal(add(&s, (window * 500 + i) * 2 + 1, true), 1);
		if (window == 1)
			cap = s.frames.cap + s.stacks.cap + s.counts.cap;
		if (window > 1)
			assert_true(s.frames.cap + s.stacks.cap + s.counts.cap <= cap);
		assert_int_equal(samples_next_window(&s), 0);
		assert_null(s.before->before);
	}
	assert_int_equal(s.n, 100000);
	samples_fini(&s);
}

static void moments_are_kept_when_they_are_wanted_and_end_with_their_window(void **state)
{
	struct prof_samples s = {0};

	assert_int_equal(add(&s, 1, true), 1);
	assert_int_equal(s.moments.n, 0);
	s.keeps_moments = true;
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(add(&s, i % 2 + 1, i == 1), 1);
	assert_int_equal(s.moments.n, 6);
	for (uint32_t i = 0; i < 6; i++) {
		const struct prof_moment *m = &s.moments.p[i];

		assert_true(m->count == i % 2 && m->cpu == 5 && m->weight == 1);
		assert_int_equal(m->time_ns, 1001 + i % 2);
	}
	assert_int_equal(samples_next_window(&s), 0);
	assert_int_equal(s.moments.n, 0);
	assert_int_equal(add(&s, 1, false), 1);
	assert_int_equal(s.moments.n, 1);
	/* As if there had been very many. */
	s.moments.n = PROF_MOMENTS_MAX;
	assert_int_equal(add(&s, 1, false), 1);
	assert_int_equal(s.n_without_moment, 1);
	VEC_FREE(&s.moments);
	alloc_fail_at(1);
	assert_int_equal(add(&s, 1, false), -ENOMEM);
	assert_true(alloc_fail_end());
	samples_fini(&s);
}

static void without_memory_nothing_is_forgotten(void **state)
{
	struct prof_samples s = {0};

	assert_int_equal(add(&s, 1, true), 1);
	alloc_fail_at(1);
	assert_int_equal(samples_next_window(&s), -ENOMEM);
	assert_true(alloc_fail_end());
	assert_int_equal(s.counts.n, 1);
	assert_int_equal(add(&s, 1, false), 1);
	samples_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hit_without_a_number_counts_and_weighs_nothing),
		cmocka_unit_test(a_number_that_a_sum_has_no_room_for_is_left_out_of_it),
		cmocka_unit_test(a_window_has_its_own_counts),
		cmocka_unit_test(a_record_on_its_way_finds_the_stack_of_the_window_before),
		cmocka_unit_test(the_memory_is_that_of_two_windows),
		cmocka_unit_test(moments_are_kept_when_they_are_wanted_and_end_with_their_window),
		cmocka_unit_test(without_memory_nothing_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
