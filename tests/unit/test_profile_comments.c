/* SPDX-License-Identifier: BSD-2-Clause */
/* Comments of profiles: what formats keep of them, memory that is short, and damaged input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/profile.h>

#include "alloc_fail.h"
#include "export/profile_impl.h"

static const struct cairn_profile_type count = {"samples", "count"};
static const char *const comments[] = {"5 samples lost", "version 12", "", "12", "3 #"};
#define N_COMMENTS (sizeof(comments) / sizeof(comments[0]))

/* 0, or the first failure. */
static int fill(struct cairn_profile *p)
{
	const struct cairn_profile_function f = {.name = "f"};
	struct cairn_profile_line line = {0};
	const struct cairn_profile_location location = {.lines = &line, .n_lines = 1};
	const int64_t seven = 7;
	uint32_t id = 0;
	const struct cairn_profile_sample sample = {.stack = &id, .n_stack = 1, .values = &seven};
	int rc = cairn_profile_add_function(p, &f, &line.function, NULL);

	rc = rc ? rc : cairn_profile_add_location(p, &location, &id, NULL);
	rc = rc ? rc : cairn_profile_add_sample(p, &sample, NULL);
	for (size_t i = 0; i < N_COMMENTS && rc == 0; i++)
		rc = cairn_profile_add_comment(p, comments[i], NULL);
	return rc;
}

static struct cairn_profile *filled(void)
{
	struct cairn_profile *p;

	assert_int_equal(cairn_profile_new(&count, 1, &p, NULL), 0);
	assert_int_equal(fill(p), 0);
	return p;
}

/* An empty comment is none in a file. */
static void expect_comments(const struct cairn_profile *p)
{
	size_t n = 0;

	for (size_t i = 0; i < N_COMMENTS; i++)
		if (*comments[i])
			assert_string_equal(cairn_profile_comment(p, n++), comments[i]);
	assert_int_equal(cairn_profile_n_comments(p), n);
	assert_null(cairn_profile_comment(p, n));
	assert_int_equal(cairn_profile_n_samples(p), 1);
	assert_int_equal(cairn_profile_sample(p, 0).values[0], 7);
}

static void comments_come_back_from_both_formats_and_are_of_each_part(void **state)
{
	struct cairn_profile *p = filled(), *again, *part;
	struct cairn_profile_bytes bytes;

	assert_int_equal(cairn_profile_folded(p, 0, &bytes, NULL), 0);
	assert_string_equal(bytes.bytes, "# 5 samples lost\n# version 12 #\n#  #\n# 12 #\n"
					 "# 3 # #\nf 7\n");
	assert_int_equal(cairn_profile_read(bytes.bytes, bytes.size, "x", &again, NULL), 0);
	expect_comments(again);
	cairn_profile_close(again);
	free(bytes.bytes);
	assert_int_equal(cairn_profile_pprof(p, &bytes, NULL), 0);
	assert_int_equal(cairn_profile_read(bytes.bytes, bytes.size, "x", &again, NULL), 0);
	expect_comments(again);
	free(bytes.bytes);
	assert_int_equal(cairn_profile_part(again, 0, 1, &part, NULL), 0);
	expect_comments(part);
	cairn_profile_close(part);
	cairn_profile_close(again);
	cairn_profile_close(p);
}

static void lines_of_comments_have_any_end(void **state)
{
	static const char text[] = "# a\r\n#b\n#\n# \n#  #\n# c 12 #\r\nf 7\n# d";
	struct cairn_profile *p;

	for (size_t i = 0; i < sizeof(text); i++)
		if (cairn_profile_read(text, i, "x", &p, NULL) == 0)
			cairn_profile_close(p);
	assert_int_equal(cairn_profile_read(text, sizeof(text) - 1, "x", &p, NULL), 0);
	assert_int_equal(cairn_profile_n_comments(p), 4);
	assert_string_equal(cairn_profile_comment(p, 0), "a");
	assert_string_equal(cairn_profile_comment(p, 1), "b");
	assert_string_equal(cairn_profile_comment(p, 2), "c 12");
	assert_string_equal(cairn_profile_comment(p, 3), "d");
	cairn_profile_close(p);
}

static void a_comment_that_is_no_string_is_damage(void **state)
{
	/* One type of values, one string and the comment 9. */
	static const uint8_t bytes[] = {0x0a, 0x00, 0x32, 0x00, 0x6a, 0x01, 0x09};
	struct cairn_profile *p;
	struct cairn_err err = {0};

	assert_int_equal(cairn_profile_read(bytes, sizeof(bytes), "x", &p, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "there is no string 9"));
}

static void memory_that_is_short_is_an_error(void **state)
{
	bool failed = true;

	for (unsigned int n = 1; failed; n++) {
		struct cairn_profile *p = NULL, *again = NULL, *part = NULL;
		struct cairn_profile_bytes bytes = {0}, text = {0};
		alloc_fail_at(n);
		int rc = cairn_profile_new(&count, 1, &p, NULL);
		rc = rc ? rc : fill(p);
		rc = rc ? rc : cairn_profile_pprof(p, &bytes, NULL);
		rc = rc ? rc : cairn_profile_read(bytes.bytes, bytes.size, "x", &again, NULL);
		rc = rc ? rc : cairn_profile_part(again, 0, 1, &part, NULL);
		rc = rc ? rc : cairn_profile_folded(part, 0, &text, NULL);
		failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		free(bytes.bytes);
		free(text.bytes);
		cairn_profile_close(p);
		cairn_profile_close(again);
		cairn_profile_close(part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comments_come_back_from_both_formats_and_are_of_each_part),
		cmocka_unit_test(lines_of_comments_have_any_end),
		cmocka_unit_test(a_comment_that_is_no_string_is_damage),
		cmocka_unit_test(memory_that_is_short_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
