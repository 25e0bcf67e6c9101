/* SPDX-License-Identifier: BSD-2-Clause */
/* What is done once, and again after a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/code/due.h"

static void a_thing_is_done_once_and_again_after_its_time(void **state)
{
	static struct due d;

	assert_true(due_now(&d, 7, 100, 60));
	assert_false(due_now(&d, 7, 100, 60));
	assert_false(due_now(&d, 7, 159, 60));
	assert_true(due_now(&d, 8, 159, 60));
	assert_true(due_now(&d, 7, 160, 60));
	assert_false(due_now(&d, 7, 219, 60));
	assert_int_equal(d.n, 2);
}

static void the_oldest_of_many_are_forgotten(void **state)
{
	static struct due d;

	for (uint64_t key = 1; key <= DUE_MAX; key++)
		assert_true(due_now(&d, key, 1, 60));
	for (uint64_t key = 1; key <= DUE_MAX; key++)
		assert_false(due_now(&d, key, 2, 60));
	assert_true(due_now(&d, DUE_MAX + 1, 2, 60));
	assert_true(due_now(&d, 1, 2, 60));
	assert_false(due_now(&d, DUE_MAX, 2, 60));
	assert_int_equal(d.n, DUE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thing_is_done_once_and_again_after_its_time),
		cmocka_unit_test(the_oldest_of_many_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
