/* SPDX-License-Identifier: BSD-2-Clause */
/* What the overload guard does about a slowdown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trace/attach/guard.h"

#define SECOND UINT64_C(1000000000)

/* One second: @hits of a microsecond's trap, and @run_ns of the program each. */
static struct guard_window second(uint64_t hits, uint64_t run_ns, uint64_t cpu_ns)
{
	return (struct guard_window){.wall_ns = SECOND,
				     .cpu_ns = cpu_ns,
				     .n_hits = hits,
				     .run_ns = hits * run_ns,
				     .trap_ns = 1000,
				     .sample = 1};
}

static void a_slowdown_below_the_limit_is_let_be(void **state)
{
	struct guard_window w = second(50000, 500, SECOND);
	struct guard_decision d = guard_decide(&w, 0.1);

	assert_int_equal(d.action, GUARD_GO_ON);
	assert_true(d.slowdown > 0.08 && d.slowdown < 0.082);
}

static void traps_that_are_too_many_are_removed(void **state)
{
	struct guard_window w = second(500000, 10, SECOND);
	struct guard_decision d = guard_decide(&w, 0.1);

	assert_int_equal(d.action, GUARD_DETACH);
	assert_true(d.slowdown > 1);
}

static void a_program_that_takes_long_is_run_for_some_of_the_hits(void **state)
{
	struct guard_window w = second(40000, 5000, SECOND);
	struct guard_decision d = guard_decide(&w, 0.1);

	assert_int_equal(d.action, GUARD_THIN);
	/* 760 ms are left; 40 ms of traps, 4 ms of draws, and 200 ms / N must fit into 68.4 ms. */
	assert_int_equal(d.sample, 16);
	w.sample = 4;
	d = guard_decide(&w, 0.1);
	assert_int_equal(d.sample, 64);
}

static void a_process_that_sleeps_is_let_be(void **state)
{
	struct guard_window w = second(1000, 1000, 10 * SECOND / 1000);

	assert_int_equal(guard_decide(&w, 0.1).action, GUARD_GO_ON);
	w = second(20000, 1000, 60 * SECOND / 1000);
	assert_int_equal(guard_decide(&w, 0.1).action, GUARD_DETACH);
}

static void clocks_that_do_not_fit_are_no_reason_to_fail(void **state)
{
	struct guard_window w = second(1000000, 1000, SECOND);
	struct guard_window none = {.sample = 1};

	assert_int_equal(guard_decide(&w, 0.1).action, GUARD_DETACH);
	assert_int_equal(guard_decide(&none, 0.1).action, GUARD_GO_ON);
	w.cpu_ns = 0;
	assert_int_equal(guard_decide(&w, 0.1).action, GUARD_DETACH);
	w = second(1000, 0, SECOND);
	w.run_ns = SECOND;
	assert_true(guard_decide(&w, 0.1).sample <= 1u << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slowdown_below_the_limit_is_let_be),
		cmocka_unit_test(traps_that_are_too_many_are_removed),
		cmocka_unit_test(a_program_that_takes_long_is_run_for_some_of_the_hits),
		cmocka_unit_test(a_process_that_sleeps_is_let_be),
		cmocka_unit_test(clocks_that_do_not_fit_are_no_reason_to_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
