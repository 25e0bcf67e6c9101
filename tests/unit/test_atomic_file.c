/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cairn/file.h>

#include "base/atomic_file.h"
#include "base/scope.h"

#include "space.h"

#define BIG     300000
#define SKIPPED 77

static size_t n_entries(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2; /* . and .. */
}

/* The content in a static buffer, its size in *@size; -1 when there is no file. */
static const char *content(const char *path, ssize_t *size)
{
	static char bytes[BIG + 1];
	int fd = open(path, O_RDONLY);

	*size = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
	if (fd >= 0)
		close(fd);
	return bytes;
}

static void assert_content(const char *path, const char *wanted)
{
	ssize_t size;
	const char *bytes = content(path, &size);

	assert_int_equal(size, strlen(wanted));
	assert_memory_equal(bytes, wanted, (size_t)size);
}

static void a_new_file_has_the_bytes_and_the_mode_less_the_umask(void **state)
{
	const char *path = workspace_path(&space, "new");
	mode_t before = umask(027);
	struct stat st;

	assert_int_equal(cairn_file_write(path, "abc", 3, NULL), 0);
	umask(before);
	assert_content(path, "abc");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void a_replaced_file_passes_its_permissions_on(void **state)
{
	const char *path = workspace_path(&space, "kept");
	struct stat st;

	workspace_write(&space, "kept", "old content");
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(cairn_file_write(path, "new", 3, NULL), 0);
	assert_content(path, "new");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void nothing_is_seen_before_the_commit_and_nothing_after_an_abort(void **state)
{
	char *path = strdup(workspace_path(&space, "half"));
	size_t before = n_entries(space.dir);
	struct atomic_file f;
	struct stat st;

	assert_int_equal(atomic_file_open(&f, path, 0666, NULL), 0);
	assert_int_equal(atomic_file_write(&f, "abc", 3, NULL), 0);
	assert_int_equal(stat(path, &st), -1);
	atomic_file_abort(&f);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(n_entries(space.dir), before);
	free(path);
}

static void a_symbolic_link_is_followed_and_stays_a_link(void **state)
{
	char *link_path = strdup(workspace_path(&space, "link"));
	struct stat st;

	workspace_write(&space, "target", "old");
	assert_int_equal(symlink("target", link_path), 0);
	assert_int_equal(cairn_file_write(link_path, "new", 3, NULL), 0);
	assert_int_equal(lstat(link_path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_content(workspace_path(&space, "target"), "new");
	free(link_path);
}

static void a_pipe_is_written_to_and_stays_a_pipe(void **state)
{
	int fds[2];
	char name[32], bytes[3];
	struct stat st;

	assert_int_equal(pipe(fds), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", fds[1]);
	assert_int_equal(cairn_file_write(name, "abc", 3, NULL), 0);
	assert_int_equal(read(fds[0], bytes, 3), 3);
	assert_memory_equal(bytes, "abc", 3);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(cairn_file_write("/dev/null", "abc", 3, NULL), 0);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

static void what_cannot_be_written_says_which_file_and_why(void **state)
{
	struct cairn_err err = {0};

	assert_int_equal(cairn_file_write("/no/such/dir/x", "a", 1, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/no/such/dir/x: "));
	assert_int_equal(cairn_file_write(space.dir, "a", 1, &err), -EISDIR);
	assert_int_equal(cairn_file_write("/dev/full", "a", 1, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "/dev/full: cannot write it"));
}

static void a_name_as_long_as_allowed_can_be_written(void **state)
{
	char name[256];

	memset(name, 'n', 255);
	name[255] = '\0';
	const char *path = workspace_path(&space, name);
	assert_int_equal(cairn_file_write(path, "abc", 3, NULL), 0);
	assert_int_equal(cairn_file_write(path, "def", 3, NULL), 0);
	assert_content(path, "def");
}

/* Runs in a child, whose exit status is 0, or the number of what did not hold. */
static int in_child(int (*fn)(const char *path), const char *path)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(fn(path));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void skip_or_succeed(int status)
{
	if (status == SKIPPED) {
		print_message("may not mount a file system\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static char big[BIG];

static int write_beyond_the_limit_of_file_size(const char *path)
{
	struct rlimit limit = {100000, 100000};

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit))
		return 1;
	return cairn_file_write(path, big, sizeof(big), NULL) == -EFBIG ? 0 : 2;
}

static void a_file_that_grows_too_large_leaves_the_old_one(void **state)
{
	char *path = strdup(workspace_path(&space, "limited"));

	workspace_write(&space, "limited", "old");
	size_t before = n_entries(space.dir);
	assert_int_equal(in_child(write_beyond_the_limit_of_file_size, path), 0);
	assert_content(path, "old");
	assert_int_equal(n_entries(space.dir), before);
	free(path);
}

/* Covers @dir with an empty file system of 64 KiB that only this process sees. */
static bool cover(const char *dir)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", dir, "tmpfs", 0, "size=64k");
}

static int write_to_a_full_disk(const char *dir)
{
	struct cairn_err err = {0};
	char path[128];
	ssize_t size;

	if (!cover(dir))
		return SKIPPED;
	snprintf(path, sizeof(path), "%s/file", dir);
	if (cairn_file_write(path, "old", 3, &err))
		return 1;
	if (cairn_file_write(path, big, sizeof(big), &err) != -ENOSPC || !strstr(err.msg, path))
		return 2;
	if (memcmp(content(path, &size), "old", 3) || size != 3)
		return 3;
	return n_entries(dir) == 1 ? 0 : 4;
}

static void a_full_disk_leaves_the_old_file_and_nothing_else(void **state)
{
	char *dir = strdup(workspace_path(&space, "disk"));

	assert_int_equal(mkdir(dir, 0777), 0);
	int status = in_child(write_to_a_full_disk, dir);
	free(dir);
	skip_or_succeed(status);
}

/* A file without a name gets one through /proc. */
static int write_without_proc(const char *dir)
{
	struct atomic_file f;
	char path[128];
	ssize_t size;

	if (!cover("/proc"))
		return SKIPPED;
	snprintf(path, sizeof(path), "%s/file", dir);
	if (cairn_file_write(path, "old", 3, NULL) || cairn_file_write(path, "new", 3, NULL))
		return 1;
	if (atomic_file_open(&f, path, 0666, NULL) || atomic_file_write(&f, big, sizeof(big), NULL))
		return 2;
	if (n_entries(dir) != 2)
		return 3;
	atomic_file_abort(&f);
	if (memcmp(content(path, &size), "new", 3) || size != 3)
		return 4;
	return n_entries(dir) == 1 ? 0 : 5;
}

static void without_nameless_files_a_temporary_name_does_the_same(void **state)
{
	char *dir = strdup(workspace_path(&space, "named"));

	assert_int_equal(mkdir(dir, 0777), 0);
	int status = in_child(write_without_proc, dir);
	free(dir);
	skip_or_succeed(status);
}

/* Replaces the file by a's and b's in turn until it is killed. */
static void write_for_ever(const char *path)
{
	for (char letter = 'a';; letter ^= 'a' ^ 'b') {
		memset(big, letter, sizeof(big));
		if (cairn_file_write(path, big, sizeof(big), NULL))
			_exit(1);
	}
}

static bool is_whole(const char *path)
{
	ssize_t size;
	const char *bytes = content(path, &size);

	if (size != BIG || (bytes[0] != 'a' && bytes[0] != 'b'))
		return false;
	return !memcmp(bytes, bytes + 1, BIG - 1);
}

static void a_killed_writer_leaves_a_whole_file(void **state)
{
	const char *path = workspace_path(&space, "killed");

	memset(big, 'a', sizeof(big));
	assert_int_equal(cairn_file_write(path, big, sizeof(big), NULL), 0);
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();

		if (!pid)
			write_for_ever(path);
		/* A reader beside the writer, then the kill at some point of a write. */
		for (int look = 0; look < 5; look++)
			assert_true(is_whole(path));
		nanosleep(&(struct timespec){.tv_nsec = i * 137000L}, NULL);
		assert_int_equal(kill(pid, SIGKILL), 0);
		int status;
		waitpid(pid, &status, 0);
		assert_true(WIFSIGNALED(status));
		assert_true(is_whole(path));
	}
}

static void assert_pair(const char *first, const char *second, const char *wanted)
{
	assert_content(first, wanted);
	assert_content(second, wanted);
}

static void files_that_belong_together_are_all_replaced_or_none(void **state)
{
	SCOPE_FREE char *first = strdup(workspace_path(&space, "first")),
			*second = strdup(workspace_path(&space, "second"));
	const struct cairn_file old[] = {{first, "old", 3}, {second, "old", 3}};
	const struct cairn_file new[] = {{first, "new", 3}, {second, "new", 3}};
	const struct cairn_file full[] = {{first, "new", 3}, {"/dev/full", "new", 3}};
	const struct cairn_file nowhere[] = {
		{first, "new", 3}, {second, "new", 3}, {"/no/such/dir/x", "new", 3}};

	assert_int_equal(cairn_file_write_together(old, 2, NULL), 0);
	assert_pair(first, second, "old");
	assert_int_equal(cairn_file_write_together(full, 2, NULL), -ENOSPC);
	assert_int_equal(cairn_file_write_together(nowhere, 3, NULL), -ENOENT);
	assert_pair(first, second, "old");
	assert_int_equal(cairn_file_write_together(new, 2, NULL), 0);
	assert_pair(first, second, "new");
	assert_int_equal(cairn_file_write_together(NULL, 0, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_file_has_the_bytes_and_the_mode_less_the_umask),
		cmocka_unit_test(a_replaced_file_passes_its_permissions_on),
		cmocka_unit_test(nothing_is_seen_before_the_commit_and_nothing_after_an_abort),
		cmocka_unit_test(a_symbolic_link_is_followed_and_stays_a_link),
		cmocka_unit_test(a_pipe_is_written_to_and_stays_a_pipe),
		cmocka_unit_test(what_cannot_be_written_says_which_file_and_why),
		cmocka_unit_test(a_name_as_long_as_allowed_can_be_written),
		cmocka_unit_test(a_file_that_grows_too_large_leaves_the_old_one),
		cmocka_unit_test(a_full_disk_leaves_the_old_file_and_nothing_else),
		cmocka_unit_test(without_nameless_files_a_temporary_name_does_the_same),
		cmocka_unit_test(a_killed_writer_leaves_a_whole_file),
		cmocka_unit_test(files_that_belong_together_are_all_replaced_or_none),
	};

	return cmocka_run_group_tests(tests, open_space, close_space);
}
