/* SPDX-License-Identifier: BSD-2-Clause */
/* Notices of supervisors: found while they are true, and believed only from who may say it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "code/notice.h"

/* A process that waits, and executes another program when told to. */
struct child {
	int pid, go, has_gone;
};

static struct child start_child(void)
{
	int go[2], gone[2];
	assert_return_code(pipe2(go, O_CLOEXEC), errno);
	assert_return_code(pipe2(gone, O_CLOEXEC), errno);
	int pid = fork();
	if (pid == 0) {
		char c;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(go[0], &c, 1) == 1)
			execl("/bin/sleep", "sleep", "60", NULL);
		_exit(1);
	}
	assert_return_code(pid, errno);
	close(go[0]);
	close(gone[1]);
	return (struct child){pid, go[1], gone[0]};
}

/* The other end of has_gone is closed by the exec. */
static void let_it_exec(const struct child *child)
{
	char c;
	assert_int_equal(write(child->go, "x", 1), 1);
	assert_int_equal(read(child->has_gone, &c, 1), 0);
}

static void end_child(const struct child *child)
{
	notice_take_back(child->pid);
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	close(child->go);
	close(child->has_gone);
}

static struct notice leave_for(const struct child *child)
{
	struct notice n = {.registry = 0x1000, .size = 0x2000};
	struct target_id self;
	struct cairn_err err = {0};
	assert_true(target_identify(getpid(), &self));
	assert_true(target_identify(child->pid, &n.process));
	n.supervisor = self.pid;
	n.supervisor_start = self.start;
	if (notice_leave(&n, &err) < 0)
		fail_msg("%s", err.msg);
	return n;
}

/* Where it lies: the directories are documented. */
static void path_of(int pid, char ret[64])
{
	struct stat st;
	snprintf(ret, 64, "/run/cairn/codectl/%d", pid);
	if (geteuid() == 0)
		return;
	snprintf(ret, 64, "/run/user/%u/cairn/codectl/%d", geteuid(), pid);
	if (stat(ret, &st))
		snprintf(ret, 64, "/tmp/cairn-%u/codectl/%d", geteuid(), pid);
}

static void a_notice_is_found_and_taken_back(void **state)
{
	struct child child = start_child();
	struct notice left = leave_for(&child), found;
	bool is_stale;
	assert_int_equal(notice_find(child.pid, &found, &is_stale, NULL), 0);
	assert_memory_equal(&found, &left, sizeof(left));
	notice_take_back(child.pid);
	assert_int_equal(notice_find(child.pid, &found, &is_stale, NULL), -ENOENT);
	assert_false(is_stale);
	end_child(&child);
}

static void a_notice_ends_with_the_program(void **state)
{
	struct child child = start_child();
	struct notice found;
	bool is_stale;
	leave_for(&child);
	let_it_exec(&child);
	assert_int_equal(notice_find(child.pid, &found, &is_stale, NULL), -ENOENT);
	assert_true(is_stale);
	end_child(&child);
}

static void a_supervisor_that_has_ended_is_not_another_process_of_its_number(void **state)
{
	struct child child = start_child();
	struct notice n = leave_for(&child), found;
	bool is_stale;
	n.supervisor_start--;
	assert_int_equal(notice_leave(&n, NULL), 0);
	assert_int_equal(notice_find(child.pid, &found, &is_stale, NULL), -ENOENT);
	assert_true(is_stale);
	end_child(&child);
}

static void what_others_may_write_is_not_believed(void **state)
{
	struct child child = start_child();
	struct notice found;
	bool is_stale;
	char path[64];
	leave_for(&child);
	path_of(child.pid, path);
	assert_return_code(chmod(path, 0666), errno);
	assert_int_equal(notice_find(child.pid, &found, &is_stale, NULL), -EPERM);
	end_child(&child);
}

/* ---- planted directories ---- */

enum { NOBODY = 65534, THIRD = 1 };
static bool plant_is_harmless;
#define UPPER "/tmp/cairn-65534"

/*
 * An empty /tmp and /run of its own, in which @plant has put something. 0; 77: not permitted; 1: a
 * notice was left, or something made.
 */
static int leave_where_planted(void (*plant)(void))
{
	const struct notice n = {.process = {.pid = 1}, .supervisor = 1, .registry = 1, .size = 1};
	struct stat st;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/tmp", "tmpfs", 0, "mode=1777") ||
	    mount("none", "/run", "tmpfs", 0, "mode=0755"))
		return 77;
	if (mkdir("/tmp/elsewhere", 0777) || chmod("/tmp/elsewhere", 0777))
		return 1;
	plant();
	if (seteuid(NOBODY))
		return 77;
	int rc = notice_leave(&n, NULL);
	if (seteuid(0))
		return 1;
	bool is_right = !plant_is_harmless ? rc == -EPERM : rc == 0;
	return is_right && stat("/tmp/elsewhere/codectl", &st) && stat("/tmp/elsewhere/1", &st) ? 0
												: 1;
}

static void assert_nothing_is_left(void (*plant)(void), bool is_harmless)
{
	int status;
	plant_is_harmless = is_harmless;
	pid_t child = fork();
	if (!child)
		_exit(leave_where_planted(plant));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("no mounts of our own here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void plant_nothing(void)
{
}

static void plant_link(void)
{
	(void)!symlink("/tmp/elsewhere", UPPER);
	(void)!lchown(UPPER, THIRD, THIRD);
}

static void plant_directory(void)
{
	(void)!mkdir(UPPER, 0777);
	(void)!chown(UPPER, THIRD, THIRD);
}

static void plant_pipe(void)
{
	(void)!mkfifo(UPPER, 0666);
	(void)!chown(UPPER, THIRD, THIRD);
}

/* Ours, but all may write there. */
static void plant_open_directory(void)
{
	(void)!mkdir(UPPER, 0777);
	(void)!chown(UPPER, NOBODY, NOBODY);
	(void)!chmod(UPPER, 0777);
}

static void plant_link_in_our_directory(void)
{
	(void)!mkdir(UPPER, 0700);
	(void)!symlink("/tmp/elsewhere", UPPER "/codectl");
	(void)!lchown(UPPER "/codectl", THIRD, THIRD);
	(void)!chown(UPPER, NOBODY, NOBODY);
}

static void nothing_is_left_where_another_user_leads(void **state)
{
	assert_nothing_is_left(plant_nothing, true);
	assert_nothing_is_left(plant_link, false);
	assert_nothing_is_left(plant_directory, false);
	assert_nothing_is_left(plant_pipe, false);
	assert_nothing_is_left(plant_open_directory, false);
	assert_nothing_is_left(plant_link_in_our_directory, false);
}

/* Cut at every byte; a shorter last number would be another size, so the line's end is needed. */
static void a_damaged_notice_is_refused(void **state)
{
	struct child child = start_child();
	struct notice found;
	bool is_stale;
	char path[64], text[512];
	leave_for(&child);
	path_of(child.pid, path);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	size_t n = fread(text, 1, sizeof(text), f);
	fclose(f);
	for (size_t i = 0; i < n; i++) {
		assert_return_code(truncate(path, 0), errno);
		f = fopen(path, "we");
		assert_non_null(f);
		assert_int_equal(fwrite(text, 1, i, f), i);
		fclose(f);
		if (notice_find(child.pid, &found, &is_stale, NULL) != -EBADMSG)
			fail_msg("cut to %zu of %zu bytes it is a notice", i, n);
	}
	end_child(&child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_notice_is_found_and_taken_back),
		cmocka_unit_test(a_notice_ends_with_the_program),
		cmocka_unit_test(a_supervisor_that_has_ended_is_not_another_process_of_its_number),
		cmocka_unit_test(what_others_may_write_is_not_believed),
		cmocka_unit_test(nothing_is_left_where_another_user_leads),
		cmocka_unit_test(a_damaged_notice_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
