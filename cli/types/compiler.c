/* SPDX-License-Identifier: BSD-2-Clause */
#include "compiler.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The headers of a kernel take 2 seconds, 300 MB and 20 MB of output. */
enum { CPU_SECONDS_MAX = 60 };
static const size_t MEMORY_MAX = (size_t)2 << 30, OUTPUT_MAX = (size_t)1 << 28;

enum { STATUS_NOT_THERE = 127, STATUS_SIGNALED = 128 };

/* ---- words ---- */

static bool make_room(struct compiler_words *w)
{
	size_t cap = w->cap ? 2 * w->cap : 16;
	char **grown;

	if (w->n + 2 <= w->cap)
		return true;
	grown = realloc(w->p, cap * sizeof(*grown));
	if (!grown)
		return false;
	w->p = grown;
	w->cap = cap;
	return true;
}

void compiler_word(struct compiler_words *w, const char *prefix, const char *text)
{
	char *word = NULL;

	if (!make_room(w) || asprintf(&word, "%s%s", prefix, text) < 0) {
		w->failed = true;
		return;
	}
	w->p[w->n++] = word;
	w->p[w->n] = NULL;
}

void compiler_command(struct compiler_words *w, const char *command)
{
	static const char blanks[] = " \t\n";
	char *copy = strdup(command), *rest = NULL;

	w->failed |= !copy;
	for (char *word = copy ? strtok_r(copy, blanks, &rest) : NULL; word;
	     word = strtok_r(NULL, blanks, &rest))
		compiler_word(w, "", word);
	free(copy);
}

const char *compiler_of_user(const char *otherwise)
{
	const char *cc = getenv("CC");

	return cc && cc[strspn(cc, " \t\n")] ? cc : otherwise;
}

void compiler_words_free(struct compiler_words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->p[i]);
	free(w->p);
	*w = (struct compiler_words){0};
}

/* ---- the child ---- */

/* The limit applies to its own children, too, such as cc1. */
static void limit(int what, size_t max)
{
	struct rlimit r;

	if (getrlimit(what, &r) < 0 || (r.rlim_max != RLIM_INFINITY && r.rlim_max <= max))
		return;
	r.rlim_cur = r.rlim_max = max;
	setrlimit(what, &r);
}

static pid_t start(char *const *argv, int input, bool with_errors, int *ret_fd)
{
	int fds[2];
	pid_t pid;

	if (pipe(fds) < 0)
		return -1;
	pid = fork();
	if (!pid) {
		if (input >= 0) {
			lseek(input, 0, SEEK_SET);
			dup2(input, STDIN_FILENO);
		}
		dup2(fds[1], STDOUT_FILENO);
		if (with_errors)
			dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		limit(RLIMIT_CPU, CPU_SECONDS_MAX);
		limit(RLIMIT_AS, MEMORY_MAX);
		execvp(argv[0], argv);
		_exit(STATUS_NOT_THERE);
	}
	close(fds[1]);
	if (pid < 0)
		close(fds[0]);
	*ret_fd = fds[0];
	return pid;
}

/* More than a pipe holds: a sanitizer looks at all the room that read(2) is given. */
enum { READ_MAX = 1 << 17 };

/* Everything up to the end, or a little more than OUTPUT_MAX; NULL: no memory. */
static char *read_all(int fd, size_t *ret_size)
{
	size_t n = 0, cap = 1 << 16;
	char *text = malloc(cap);
	ssize_t got = 1;

	while (text && got && n <= OUTPUT_MAX) {
		size_t room = cap - n - 1;
		got = read(fd, text + n, room < READ_MAX ? room : READ_MAX);
		if (got < 0 && errno != EINTR)
			break;
		n += got > 0 ? (size_t)got : 0;
		if (n + 1 < cap)
			continue;
		char *grown = realloc(text, cap *= 2);
		if (!grown)
			free(text);
		text = grown;
	}
	if (text)
		text[n] = 0;
	*ret_size = n;
	return text;
}

static int wait_for(pid_t pid)
{
	int state = 0;

	while (waitpid(pid, &state, 0) < 0)
		if (errno != EINTR)
			return STATUS_NOT_THERE;
	return WIFEXITED(state) ? WEXITSTATUS(state) : STATUS_SIGNALED + WTERMSIG(state);
}

struct compiler_answer compiler_run(const struct compiler_words *w, int input, bool with_errors)
{
	struct compiler_answer a = {.status = STATUS_NOT_THERE};
	int fd;

	if (w->failed)
		return a;
	pid_t pid = start(w->p, input, with_errors, &fd);
	if (pid < 0)
		return a;
	a.output = read_all(fd, &a.size);
	if (a.size > OUTPUT_MAX) {
		a.why = "it wrote more than 256 MiB";
		kill(pid, SIGKILL);
	}
	close(fd);
	a.status = wait_for(pid);
	if (a.why && !a.status)
		a.status = STATUS_SIGNALED + SIGKILL;
	return a;
}

int compiler_input(const char *text, size_t size)
{
	int fd = memfd_create("compiler", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (size) {
		ssize_t put = write(fd, text, size);

		if (put < 0 && errno != EINTR) {
			int rc = -errno;

			close(fd);
			return rc;
		}
		text += put > 0 ? put : 0;
		size -= put > 0 ? (size_t)put : 0;
	}
	return fd;
}
