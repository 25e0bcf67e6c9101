/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The child waits on a pipe: one byte lets it exec, and the end of the pipe lets it leave. A second
 * pipe, closed by exec, brings the errno of a failed exec.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "launch/child.h"

int child_become(int go, const char *exe, char *const *argv)
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
	execv(exe, argv);
	return errno;
}

__attribute__((noreturn)) static void run_child(const char *exe, char *const *argv, int output,
						int go, int error)
{
	if (output >= 0 && (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0))
		_exit(EXIT_NOT_RUN);
	int e = child_become(go, exe, argv);
	ssize_t n = write(error, &e, sizeof(e));

	(void)n;
	_exit(EXIT_NOT_RUN);
}

int child_start(struct child *c, const char *exe, char *const *argv, struct cairn_err *err)
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
		run_child(exe, argv, c->output, go[0], error[1]);
	}
	int e = pid < 0 ? -errno : 0;
	close(go[0]);
	close(error[1]);
	if (e) {
		close(go[1]);
		close(error[0]);
		return err_set(err, e, "fork: %s", strerror(-e));
	}
	*c = (struct child){
		.pid = pid, .output = c->output, .go_pipe = go[1], .error_pipe = error[0]};
	return 0;
}

int child_go(struct child *c, const char *exe, struct cairn_err *err)
{
	int e = 0;
	ssize_t n;

	if (c->go_pipe < 0)
		return 0;
	n = write(c->go_pipe, "g", 1);
	close(c->go_pipe);
	c->go_pipe = -1;
	if (n != 1)
		return err_set(err, -ESRCH, "the process for %s has ended before its exec", exe);
	do
		n = read(c->error_pipe, &e, sizeof(e));
	while (n < 0 && errno == EINTR);
	close(c->error_pipe);
	c->error_pipe = -1;
	if (n == sizeof(e))
		return err_set(err, -e, "running %s: %s", exe, strerror(e));
	return 0;
}

void child_init(struct child *c)
{
	*c = (struct child){.output = -1, .go_pipe = -1, .error_pipe = -1};
}

bool child_reap(struct child *c)
{
	if (c->ended)
		return true;
	if (!c->pid)
		return false;
	c->ended = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
	return c->ended;
}

void child_end(struct child *c)
{
	bool waiting = c->go_pipe >= 0;

	if (waiting)
		close(c->go_pipe);
	if (c->error_pipe >= 0)
		close(c->error_pipe);
	c->go_pipe = c->error_pipe = -1;
	/* The child leaves by itself when the pipe ends; then nothing of it must remain. */
	if (waiting && c->pid && !c->ended)
		while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
			;
	if (waiting)
		c->pid = 0;
}
