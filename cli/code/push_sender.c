/* SPDX-License-Identifier: BSD-2-Clause */
#include "push_sender.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Its words until then are known; that it was killed is not. */
static void note_end(struct push_sender *s, int status)
{
	s->pid = 0;
	s->status = WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_NOT_HERE;
	if (WIFSIGNALED(status))
		fail(STATUS_YES,
		     "the process that pushes was ended by signal %d: what it had not "
		     "sent waits for the next one",
		     WTERMSIG(status));
}

static bool is_running(struct push_sender *s)
{
	pid_t ended;
	int status;

	if (!s->pid)
		return false;
	ended = waitpid(s->pid, &status, WNOHANG);
	if (ended == s->pid)
		note_end(s, status);
	else if (ended < 0)
		s->pid = 0;
	return s->pid;
}

/* Numbers as options take them. */
struct numbers {
	char mib[48], timeout[48];
};

/* The words of the command; freed by the caller, their text is borrowed. NULL: no memory. */
static char **words_of(const struct push *p, struct numbers *numbers)
{
	const struct push_wish *w = p->wish;
	const char **words = calloc(2 * w->headers.n + 20, sizeof(*words));
	size_t n = 0;

	if (!words)
		return NULL;
	for (const char *const *at = (const char *const[]){"cairn", "profile", "push", "--spool",
							   p->spool.path, NULL};
	     *at; at++)
		words[n++] = *at;
	for (size_t i = 0; i < w->headers.n; i++) {
		words[n++] = "--header";
		words[n++] = w->headers.items[i];
	}
	if (w->otlp)
		words[n++] = "--otlp";
	if (w->ca) {
		words[n++] = "--ca";
		words[n++] = w->ca;
	}
	snprintf(numbers->mib, sizeof(numbers->mib), "--spool-size=%lu",
		 w->spool_mib ? w->spool_mib : 256);
	snprintf(numbers->timeout, sizeof(numbers->timeout), "--timeout=%.6f",
		 w->timeout ? w->timeout : 30);
	words[n++] = numbers->mib;
	words[n++] = numbers->timeout;
	words[n++] = "--";
	words[n++] = p->url;
	return (char **)words;
}

/* Ctrl-C is meant for the profiler; what waits is in the spool. Its lines are nobody's answer. */
static int start(char **words, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int r;

	sigemptyset(&none);
	if (posix_spawn_file_actions_init(&files))
		return ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&files);
		return ENOMEM;
	}
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &none);
	r = posix_spawn(pid, "/proc/self/exe", &files, &attributes, words, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return r;
}

void push_sender_start(struct push_sender *s, const struct push *p)
{
	struct numbers numbers;
	char **words;
	int r = ENOMEM;

	if (is_running(s))
		return;
	words = words_of(p, &numbers);
	if (words)
		r = start(words, &s->pid);
	if (r) {
		s->pid = 0;
		s->status = fail(STATUS_NOT_HERE, "cannot start to push: %s", strerror(r));
	}
	free(words);
}

int push_sender_wait(struct push_sender *s)
{
	pid_t ended = -1;
	int status = 0;

	while (s->pid && (ended = waitpid(s->pid, &status, 0)) < 0 && errno == EINTR)
		;
	if (s->pid && ended == s->pid)
		note_end(s, status);
	s->pid = 0;
	return s->status;
}
