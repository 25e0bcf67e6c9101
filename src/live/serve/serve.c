/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serving codectl(2) from outside
 *
 *	process                kernel                here
 *	codectl(...)  ──────►  seccomp filter  ────►  reads the arguments from /proc, checks them,
 *	       ◄──── 0 or an errno ─────────────────  and keeps them in the registry of the process
 *
 * A kernel would keep a registry with the memory of a process: copied when it forks, gone when it
 * executes another program or ends. Forks and execs are not reported here (processes.h explains how
 * they are noticed all the same). Intercepting these calls, too, would break a program that is
 * interrupted in them, or that outlives its supervisor.
 *
 * Data read from a process counts only if the process still waits in the call. So the
 * notification's id is checked again after each read, since its pid may be another process's by
 * then.
 */
#include <cairn/serve.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/opts.h"
#include "serve/filter.h"
#include "serve/processes.h"
#include "serve/request.h"

enum { MAX_EVENTS = 32 };

struct server {
	struct cairn_serve_opts opts;
	struct filter_child child;
	struct processes processes;
	struct seccomp_notif *req;
	struct seccomp_notif_resp *resp;
	struct seccomp_notif_sizes sizes;
	int epoll, signals;
	sigset_t old_signals;
	bool has_ended, was_told_to_end;
};

/* The source of an event: descriptors of processes have their pid. */
enum source { FROM_LISTENER = -1, FROM_EXEC = -2, FROM_SIGNALS = -3 };

/* ---- one call ---- */

struct call {
	const struct server *server;
	int pid;
};

static bool is_still_waiting(const struct server *s)
{
	return ioctl(s->child.listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &s->req->id) == 0;
}

/* If a process no longer waits, another one may have its number by now. */
static int read_caller(void *ctx, uint64_t at, void *ret, size_t n)
{
	const struct call *c = ctx;
	bool was_read = target_read(c->pid, at, ret, n);
	if (!is_still_waiting(c->server))
		return -ESRCH;
	return was_read ? 0 : -EFAULT;
}

/* The caller's result; -ESRCH is no answer, since no caller waits for one. */
static int serve_request(struct server *s, int pid, const uint64_t args[4], struct cairn_err *err)
{
	struct call call = {s, pid};
	struct caller caller = {read_caller, &call};
	struct fetched f;
	struct process *p;
	int rc = request_fetch(&caller,
			       s->opts.rfc_numbers ? CODECTL_NUMBERS_RFC : CODECTL_NUMBERS_REVIEWED,
			       args, &f);
	if (rc == 0)
		rc = process_get(&s->processes, pid, &p, err);
	if (rc < 0)
		return rc;
	if (!p->served && served_new(&p->id, &p->served, err) < 0)
		return -ENOMEM;
	return served_apply(p->served, &f.request);
}

/* ---- notifications ---- */

static void answer(struct server *s, int error)
{
	memset(s->resp, 0, s->sizes.seccomp_notif_resp);
	s->resp->id = s->req->id;
	s->resp->error = error;
	/* It fails when the process was killed meanwhile; then no caller waits. */
	(void)ioctl(s->child.listener, SECCOMP_IOCTL_NOTIF_SEND, s->resp);
}

static void serve_call(struct server *s, int pid)
{
	const struct seccomp_data *d = &s->req->data;
	const uint64_t args[4] = {d->args[0], d->args[1], d->args[2], d->args[3]};
	struct cairn_err err = {0};
	int rc = serve_request(s, pid, args, &err);
	if (rc == -ESRCH)
		return;
	answer(s, rc);
	struct cairn_served_call done = {
		pid, (uint32_t)args[0], args[1], args[2], (uint32_t)args[3], rc, err.msg};
	if (s->opts.answered)
		s->opts.answered(s->opts.ctx, &done);
}

static void serve_one(struct server *s)
{
	memset(s->req, 0, s->sizes.seccomp_notif);
	/* ENOENT: the process was killed before its call could be received. */
	if (ioctl(s->child.listener, SECCOMP_IOCTL_NOTIF_RECV, s->req))
		return;
	/* The filter has seen to both; a number means nothing without the architecture. */
	if (s->req->data.nr != s->opts.nr || s->req->data.arch != AUDIT_ARCH_X86_64)
		return;
	int pid = target_process_of((int)s->req->pid);
	if (pid)
		serve_call(s, pid);
}

/* ---- the loop ---- */

static void take_signal(struct server *s)
{
	struct signalfd_siginfo info;
	if (read(s->signals, &info, sizeof(info)) == sizeof(info))
		s->was_told_to_end = true;
}

static void take_event(struct server *s, const struct epoll_event *e, int *ret_exec_error)
{
	switch (e->data.fd) {
	case FROM_LISTENER:
		if (e->events & EPOLLIN)
			serve_one(s);
		else /* the last process below the filter has ended */
			s->has_ended = true;
		return;
	case FROM_EXEC:
		*ret_exec_error = filter_exec_error(&s->child);
		return;
	case FROM_SIGNALS:
		take_signal(s);
		return;
	}
	process_end(&s->processes, e->data.fd);
}

static int serve(struct server *s, const char *exe, struct cairn_err *err)
{
	struct epoll_event events[MAX_EVENTS];
	int exec_error = 0;
	while (!s->has_ended && !s->was_told_to_end) {
		int n = epoll_wait(s->epoll, events, MAX_EVENTS, -1);
		if (n < 0 && errno != EINTR)
			return err_set(err, -errno, "epoll: %s", strerror(errno));
		for (int i = 0; i < n; i++)
			take_event(s, &events[i], &exec_error);
	}
	if (exec_error)
		return err_set(err, -exec_error, "running %s: %s", exe, strerror(exec_error));
	return s->was_told_to_end ? err_set(err, -EINTR,
					    "ended by a signal: codectl returns ENOSYS from now on")
				  : 0;
}

/* ---- setting up ---- */

static int listen_to(struct server *s, int fd, enum source source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = source};
	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* An interrupt from the terminal is the command's; the supervisor ends when its processes have. */
static int set_up_signals(struct server *s)
{
	sigset_t ends, blocked;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigaddset(&ends, SIGQUIT);
	blocked = ends;
	sigaddset(&blocked, SIGINT);
	sigprocmask(SIG_BLOCK, &blocked, &s->old_signals);
	s->signals = signalfd(-1, &ends, SFD_CLOEXEC);
	return s->signals < 0 ? -errno : 0;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static int set_up(struct server *s, struct cairn_err *err)
{
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &s->sizes))
		return err_set(err, -ENOSYS, "this kernel has no seccomp notification: %s",
			       strerror(errno));
	/* A kernel with larger ones writes them whole. */
	s->req = calloc(1, larger(s->sizes.seccomp_notif, sizeof(*s->req)));
	s->resp = calloc(1, larger(s->sizes.seccomp_notif_resp, sizeof(*s->resp)));
	if (!s->req || !s->resp)
		return err_nomem(err, "notifications");
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	int rc = s->epoll < 0 ? -errno : set_up_signals(s);
	if (rc == 0)
		rc = listen_to(s, s->signals, FROM_SIGNALS);
	s->processes = (struct processes){.epoll = s->epoll};
	return rc < 0 ? err_set(err, rc, "supervising: %s", strerror(-rc)) : 0;
}

static void tear_down(struct server *s)
{
	processes_fini(&s->processes);
	filter_child_end(&s->child);
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->signals >= 0)
		close(s->signals);
	sigprocmask(SIG_SETMASK, &s->old_signals, NULL);
	free(s->req);
	free(s->resp);
}

static int start(struct server *s, const char *exe, char *const argv[], struct cairn_err *err)
{
	int rc = filter_start((int)s->opts.nr, exe, argv, &s->child, err);
	if (rc < 0)
		return rc;
	if (s->child.is_restricted && s->opts.restricted)
		s->opts.restricted(s->opts.ctx);
	rc = listen_to(s, s->child.listener, FROM_LISTENER);
	if (rc == 0)
		rc = listen_to(s, s->child.socket, FROM_EXEC);
	return rc < 0 ? err_set(err, rc, "supervising: %s", strerror(-rc)) : 0;
}

int cairn_serve_run(const char *exe, char *const argv[], const struct cairn_serve_opts *opts,
		    int *ret_status, struct cairn_err *err)
{
	struct server s = {.child = {.listener = -1, .socket = -1}, .epoll = -1, .signals = -1};
	*ret_status = 0;
	int rc = opts_take(&s.opts, sizeof(s.opts), opts, err);
	if (rc == 0)
		rc = filter_may_serve(s.opts.nr, err);
	if (rc < 0)
		return rc;
	sigprocmask(SIG_BLOCK, NULL, &s.old_signals);
	rc = set_up(&s, err);
	if (rc == 0)
		rc = start(&s, exe, argv, err);
	int pid = s.child.pid;
	if (rc == 0)
		rc = serve(&s, exe, err);
	tear_down(&s);
	if (rc == 0)
		while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
			;
	return rc;
}
