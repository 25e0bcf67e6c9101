/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/attach/traced.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_noted(const struct cairn_trace *t, int pid)
{
	for (size_t i = 0; i < t->n_traced; i++)
		if (t->traced[i].pid == pid)
			return true;
	return false;
}

static int note(struct cairn_trace *t, int pid, struct cairn_err *err)
{
	if (pid <= 0)
		return err_set(err, -EINVAL, "%d is not a process id", pid);
	if (is_noted(t, pid))
		return 0;
	if (kill(pid, 0) && errno == ESRCH)
		return err_set(err, -ESRCH, "there is no process %d", pid);
	t->traced[t->n_traced++] = (struct traced){.pid = pid, .pidfd = -1};
	return 0;
}

int traced_take_opts(struct cairn_trace *t, struct cairn_err *err)
{
	size_t n = t->opts.n_pids;
	int e = 0;

	if (!n && !t->opts.pid)
		return 0;
	if (n >= CAIRN_TRACE_PIDS_MAX)
		return err_set(err, -EINVAL, "at most %d processes can be traced",
			       CAIRN_TRACE_PIDS_MAX);
	t->traced = arena_array(&t->arena, n + 1, sizeof(*t->traced));
	if (!t->traced)
		return err_nomem(err, "processes");
	if (t->opts.pid)
		e = note(t, t->opts.pid, err);
	for (size_t i = 0; i < n && e == 0; i++)
		e = note(t, t->opts.pids[i], err);
	if (e < 0)
		return e;
	/* The first one stands for all where one is enough. */
	t->opts.pid = t->traced[0].pid;
	t->pid = t->n_traced == 1 ? t->opts.pid : 0;
	return 0;
}

int traced_set(struct cairn_trace *t, int pid, struct cairn_err *err)
{
	t->traced = arena_alloc(&t->arena, sizeof(*t->traced));
	if (!t->traced)
		return err_nomem(err, "a process");
	t->traced[0] = (struct traced){.pid = pid, .pidfd = -1};
	t->n_traced = 1;
	t->pid = pid;
	return 0;
}

int traced_open(struct cairn_trace *t, struct cairn_err *err)
{
	for (size_t i = 0; i < t->n_traced; i++) {
		struct traced *p = &t->traced[i];
		p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
		if (p->pidfd < 0)
			return err_set(err, errno == EINVAL ? -ESRCH : -errno, "process %d: %s",
				       p->pid, strerror(errno));
	}
	return 0;
}

void traced_close(struct cairn_trace *t)
{
	for (size_t i = 0; i < t->n_traced; i++) {
		if (t->traced[i].pidfd >= 0)
			close(t->traced[i].pidfd);
		t->traced[i].pidfd = -1;
	}
}

static bool ends_now(struct traced *p)
{
	struct pollfd fd = {.fd = p->pidfd, .events = POLLIN};

	if (p->pidfd < 0 || poll(&fd, 1, 0) != 1)
		return false;
	close(p->pidfd);
	p->pidfd = -1;
	p->has_ended = true;
	return true;
}

bool traced_are_gone(struct cairn_trace *t, void (*on_end)(struct cairn_trace *t, int pid))
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_traced; i++) {
		if (ends_now(&t->traced[i]))
			on_end(t, t->traced[i].pid);
		n += t->traced[i].has_ended;
	}
	return n && n == t->n_traced;
}
