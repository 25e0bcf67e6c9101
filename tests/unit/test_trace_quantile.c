/* SPDX-License-Identifier: BSD-2-Clause */
/* The buckets of quantiles: every number is in one, as narrow as is promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trace/abi_host.h"
#include "trace/quantile.h"

static uint32_t bucket_of(uint64_t v)
{
	return quantile_bucket(v, v ? 63 - (uint32_t)__builtin_clzll(v) : 0);
}

static void expect_in_its_bucket(uint64_t v)
{
	__u64 from, n;

	quantile_bounds(bucket_of(v), &from, &n);
	assert_true(v >= from && v - from < n);
	assert_true(n == 1 || n <= from / QUANTILE_STEPS);
}

static void every_number_is_in_a_bucket_that_is_narrow(void **state)
{
	for (uint64_t v = 0; v < 100000; v++)
		expect_in_its_bucket(v);
	for (unsigned int bit = 0; bit < 64; bit++)
		for (uint64_t d = 0; d < 64; d++) {
			expect_in_its_bucket((UINT64_C(1) << bit) + d);
			expect_in_its_bucket((UINT64_C(1) << bit) - d);
		}
	expect_in_its_bucket(UINT64_MAX);
	assert_int_equal(bucket_of(UINT64_MAX), QUANTILE_BUCKETS - 1);
}

static void buckets_follow_each_other_without_a_gap(void **state)
{
	__u64 end = 0;

	for (uint32_t i = 0; i < QUANTILE_BUCKETS; i++) {
		__u64 from, n;
		quantile_bounds(i, &from, &n);
		assert_true(from == end);
		end = from + n;
	}
	assert_true(end == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_is_in_a_bucket_that_is_narrow),
		cmocka_unit_test(buckets_follow_each_other_without_a_gap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
