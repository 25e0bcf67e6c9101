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
		cmocka_unit_test(a_window_has_its_own_counts),
		cmocka_unit_test(a_record_on_its_way_finds_the_stack_of_the_window_before),
		cmocka_unit_test(the_memory_is_that_of_two_windows),
		cmocka_unit_test(moments_are_kept_when_they_are_wanted_and_end_with_their_window),
		cmocka_unit_test(without_memory_nothing_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
