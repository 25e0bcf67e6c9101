/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes are followed, by reports that come in the order in which a kernel sends them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "prof/sampled.h"

static struct prof_files files;
static struct sampled sampled;

static int begin(void **state)
{
	struct cairn_err err = {0};

	sampled_init(&sampled, &files, -1, -1, -1, false);
	return files_init(&files, &err);
}

static int end(void **state)
{
	sampled_fini(&sampled);
	files_fini(&files);
	return 0;
}

/* A process that has ended and is not waited for has no mappings, like a thread of the kernel. */
static pid_t without_mappings(void)
{
	pid_t pid = fork();
	siginfo_t info;

	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	return pid;
}

static const struct prof_known *last(void)
{
	return &sampled.list.p[sampled.list.n - 1];
}

static void a_child_has_the_mappings_of_its_parent(void **state)
{
	struct cairn_err err = {0};
	int child = 1 << 23;

	assert_int_equal(sampled_add(&sampled, getpid(), false, &err), 0);
	size_t n = last()->mappings.n;
	assert_true(n > 1);
	assert_int_equal(sampled_forked(&sampled, getpid(), child, &err), 0);
	assert_int_equal(last()->pid, child);
	assert_int_equal(last()->mappings.n, n);
	assert_true(last()->has_mappings);
	assert_int_equal(sampled_frame(&sampled, child, (uintptr_t)begin),
			 sampled_frame(&sampled, getpid(), (uintptr_t)begin));
}

static void a_child_of_a_process_without_mappings_has_none(void **state)
{
	struct cairn_err err = {0};
	pid_t parent = without_mappings();

	assert_int_equal(sampled_add(&sampled, parent, false, &err), 0);
	assert_int_equal(last()->mappings.n, 0);
	assert_int_equal(sampled_forked(&sampled, parent, parent + 1, &err), 0);
	assert_int_equal(last()->pid, parent + 1);
	assert_int_equal(last()->mappings.n, 0);
	assert_int_equal(sampled_frame(&sampled, parent + 1, 0x400000), 0);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
}

static void the_child_of_one_that_is_not_followed_is_not(void **state)
{
	struct cairn_err err = {0};

	assert_int_equal(sampled_forked(&sampled, 1 << 23, getpid(), &err), 0);
	assert_int_equal(sampled.list.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_child_has_the_mappings_of_its_parent, begin, end),
		cmocka_unit_test_setup_teardown(a_child_of_a_process_without_mappings_has_none,
						begin, end),
		cmocka_unit_test_setup_teardown(the_child_of_one_that_is_not_followed_is_not, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
