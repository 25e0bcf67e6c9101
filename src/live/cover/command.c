/* SPDX-License-Identifier: BSD-2-Clause */
#include "cover/command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/opts.h"
#include "launch/child.h"

enum { NAME_MAX_BYTES = 64, BACKLOG = 64 };

/* Sources of events; a client's is its address. */
enum source { FROM_LISTENER, FROM_CHILD, FROM_SIGNALS };

struct server {
	struct cover_run run;
	struct cairn_cover_opts opts;
	struct child child;
	int listener, epoll, signals, pidfd;
	VEC(struct client *) clients;
	struct cairn_cover_answer hello;
	sigset_t old_signals;
	bool has_ended, was_told_to_end;
};

/* ---- connections ---- */

static int watch(const struct server *s, int fd, uint64_t source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = source};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* An abstract name is open to all; only this user and root may tell what to attach. */
static bool is_permitted(int fd, pid_t *ret_pid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return false;
	*ret_pid = peer.pid;
	return peer.pid > 0 && (peer.uid == geteuid() || peer.uid == 0);
}

static bool add_client(struct server *s, int fd, pid_t pid)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return false;
	*c = (struct client){.run = &s->run, .fd = fd, .pid = pid};
	if (send(fd, &s->hello, sizeof(s->hello), MSG_NOSIGNAL) != sizeof(s->hello) ||
	    !VEC_ADD(&s->clients, c)) {
		free(c);
		return false;
	}
	if (watch(s, fd, (uintptr_t)c) < 0) {
		s->clients.n--;
		free(c);
		return false;
	}
	return true;
}

static void accept_client(struct server *s)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
	pid_t pid;

	if (fd >= 0 && (!is_permitted(fd, &pid) || !add_client(s, fd, pid)))
		close(fd);
}

static void serve_client(struct server *s, struct client *c)
{
	if (client_serve(c))
		return;
	for (size_t i = 0; i < s->clients.n; i++)
		if (s->clients.p[i] == c)
			s->clients.p[i] = s->clients.p[--s->clients.n];
	client_close(c);
}

/* ---- signals ---- */

/*
 * The terminal's signals go to the command, too. What somebody sends to this process alone is
 * for the command; when that has ended, and only processes of it go on, it is the end.
 */
static void take_signal(struct server *s)
{
	struct signalfd_siginfo info;

	if (read(s->signals, &info, sizeof(info)) != sizeof(info) || info.ssi_code == SI_KERNEL)
		return;
	if (s->has_ended)
		s->was_told_to_end = true;
	else
		kill(s->child.pid, (int)info.ssi_signo);
}

static int catch_signals(struct server *s)
{
	sigset_t caught;

	sigemptyset(&caught);
	sigaddset(&caught, SIGINT);
	sigaddset(&caught, SIGTERM);
	sigaddset(&caught, SIGHUP);
	sigaddset(&caught, SIGQUIT);
	sigaddset(&caught, SIGUSR1);
	sigaddset(&caught, SIGUSR2);
	sigprocmask(SIG_BLOCK, &caught, &s->old_signals);
	s->signals = signalfd(-1, &caught, SFD_CLOEXEC);
	return s->signals < 0 ? -errno : 0;
}

/* ---- the loop ---- */

static void take_event(struct server *s, uint64_t source)
{
	switch (source) {
	case FROM_LISTENER:
		return accept_client(s);
	case FROM_CHILD:
		s->has_ended = child_reap(&s->child);
		return;
	case FROM_SIGNALS:
		return take_signal(s);
	}
	serve_client(s, (struct client *)(uintptr_t)source); // NOLINT(performance-no-int-to-ptr)
}

/* One event at a time: a connection that ends is freed, and may not have another one waiting. */
static int serve(struct server *s, struct cairn_err *err)
{
	while (!s->was_told_to_end && !(s->has_ended && !s->clients.n)) {
		struct epoll_event event;
		int n = epoll_wait(s->epoll, &event, 1, -1);
		if (n < 0 && errno != EINTR)
			return err_set(err, -errno, "epoll: %s", strerror(errno));
		if (n > 0)
			take_event(s, event.data.u64);
		if (s->has_ended && s->pidfd >= 0) {
			close(s->pidfd);
			s->pidfd = -1;
		}
	}
	return 0;
}

/* ---- setting up ---- */

static int event_type(const char *path)
{
	FILE *f = fopen(path, "re");
	int type = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%d", &type) != 1)
		type = -1;
	fclose(f);
	return type;
}

/* Nobody can guess the name, and take it before. */
static int listen_here(struct server *s, char name[NAME_MAX_BYTES])
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -errno;
	int n = snprintf(name, NAME_MAX_BYTES, "cairn-cover-%016llx%016llx",
			 (unsigned long long)random[0], (unsigned long long)random[1]);
	memcpy(at.sun_path + 1, name, (size_t)n);
	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->listener < 0 ||
	    bind(s->listener, (struct sockaddr *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
	    listen(s->listener, BACKLOG))
		return -errno;
	return 0;
}

static int set_up(struct server *s, struct cairn_err *err)
{
	char name[NAME_MAX_BYTES];
	int e = listen_here(s, name);

	s->hello.result = event_type("/sys/bus/event_source/devices/kprobe/type");
	s->hello.value = (uint32_t)event_type("/sys/bus/event_source/devices/uprobe/type");
	if (!e && setenv(CAIRN_COVER_VARIABLE, name, 1))
		e = -errno;
	if (!e) {
		s->epoll = epoll_create1(EPOLL_CLOEXEC);
		e = s->epoll < 0 ? -errno : catch_signals(s);
	}
	e = e ? e : watch(s, s->listener, FROM_LISTENER);
	e = e ? e : watch(s, s->signals, FROM_SIGNALS);
	return e ? err_set(err, e, "supervising: %s", strerror(-e)) : 0;
}

static int start(struct server *s, const char *exe, char *const argv[], struct cairn_err *err)
{
	int e = child_start(&s->child, exe, argv, err);

	if (e < 0)
		return e;
	s->pidfd = (int)syscall(SYS_pidfd_open, s->child.pid, 0);
	e = s->pidfd < 0 ? -errno : watch(s, s->pidfd, FROM_CHILD);
	if (e < 0)
		return err_set(err, e, "watching the command: %s", strerror(-e));
	return child_go(&s->child, exe, err);
}

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void tear_down(struct server *s)
{
	while (s->clients.n)
		client_close(s->clients.p[--s->clients.n]);
	VEC_FREE(&s->clients);
	loaded_fini(&s->run.loaded);
	child_end(&s->child);
	close_one(s->listener);
	close_one(s->epoll);
	close_one(s->pidfd);
	if (s->signals >= 0) {
		close(s->signals);
		sigprocmask(SIG_SETMASK, &s->old_signals, NULL);
	}
	unsetenv(CAIRN_COVER_VARIABLE);
}

int cairn_cover_run(const char *exe, char *const argv[], const struct cairn_cover_opts *opts,
		    const struct cairn_cover_command *command, int *ret_status,
		    struct cairn_err *err)
{
	struct server s = {.listener = -1, .epoll = -1, .signals = -1, .pidfd = -1};
	int e = opts_take(&s.opts, sizeof(s.opts), opts, err);

	*ret_status = 0;
	child_init(&s.child);
	s.run.opts = &s.opts;
	if (!e)
		e = opts_take(&s.run.command, sizeof(s.run.command), command, err);
	e = e ? e : set_up(&s, err);
	e = e ? e : start(&s, exe, argv, err);
	e = e ? e : serve(&s, err);
	*ret_status = s.child.status;
	tear_down(&s);
	return e;
}
