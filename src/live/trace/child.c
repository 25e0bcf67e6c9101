/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Running a command so that it is probed before its first instruction
 *
 * The child is forked first, because links want its pid. It waits on a pipe; the probes are set on
 * the files, then one byte lets it exec. A second pipe, closed by exec, brings the errno of a
 * failed exec. When the tracer dies before that, the first pipe ends and the child leaves without
 * having run anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/kernel.h"

/* The status with which shells report that a command could not be run. */
#define EXIT_NOT_RUN 127

__attribute__((noreturn)) static void run_child(const struct cairn_trace *t, int go, int error)
{
	sigset_t none;
	char byte;
	ssize_t n;

	do
		n = read(go, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(EXIT_NOT_RUN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(t->opts.exe, t->opts.argv);
	int e = errno;
	n = write(error, &e, sizeof(e));
	_exit(EXIT_NOT_RUN);
}

int child_start(struct cairn_trace *t, struct cairn_err *err)
{
	int go[2], error[2];

	if (pipe2(go, O_CLOEXEC))
		return err_set(err, -errno, "pipe: %s", strerror(errno));
	if (pipe2(error, O_CLOEXEC)) {
		int e = -errno;
		close(go[0]);
		close(go[1]);
		return err_set(err, e, "pipe: %s", strerror(-e));
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(go[1]);
		close(error[0]);
		run_child(t, go[0], error[1]);
	}
	int e = pid < 0 ? -errno : 0;
	close(go[0]);
	close(error[1]);
	if (e) {
		close(go[1]);
		close(error[0]);
		return err_set(err, e, "fork: %s", strerror(-e));
	}
	t->pid = t->child = pid;
	t->child_pipe = go[1];
	t->child_error = error[0];
	return 0;
}

int child_go(struct cairn_trace *t, struct cairn_err *err)
{
	int e = 0;
	ssize_t n;

	if (t->child_pipe < 0)
		return 0;
	n = write(t->child_pipe, "g", 1);
	close(t->child_pipe);
	t->child_pipe = -1;
	if (n != 1)
		return err_set(err, -ESRCH, "the process for %s has ended before its exec",
			       t->opts.exe);
	do
		n = read(t->child_error, &e, sizeof(e));
	while (n < 0 && errno == EINTR);
	close(t->child_error);
	t->child_error = -1;
	if (n == sizeof(e))
		return err_set(err, -e, "running %s: %s", t->opts.exe, strerror(e));
	return 0;
}

bool child_reap(struct cairn_trace *t)
{
	if (t->child_ended)
		return true;
	if (!t->child)
		return false;
	t->child_ended = waitpid(t->child, &t->child_status, WNOHANG) == t->child;
	return t->child_ended;
}

void child_end(struct cairn_trace *t)
{
	bool waiting = t->child_pipe >= 0;

	if (waiting)
		close(t->child_pipe);
	if (t->child_error >= 0)
		close(t->child_error);
	t->child_pipe = t->child_error = -1;
	/* The child leaves by itself when the pipe ends; then nothing of it must remain. */
	if (waiting && t->child && !t->child_ended)
		while (waitpid(t->child, &t->child_status, 0) < 0 && errno == EINTR)
			;
	if (waiting)
		t->child = 0;
}
