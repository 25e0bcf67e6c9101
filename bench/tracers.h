/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cairn and bpftrace as tracers of a target, each in a process of its own
 *
 *	struct tracing how = {.probe = "hit(a)"};
 *	pid_t pid = start_ours(&target, &how);
 *	... target_measure(&target) ...
 *	stop(pid);
 *
 * bpftrace is the newest one of the lab if it is there, $CAIRN_LAB/sid or ~/.cache/cairn-lab/sid, a
 * Debian whose programs run with its own libraries; else the one of this machine.
 */
#ifndef BENCH_TRACERS_H
#define BENCH_TRACERS_H

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/trace.h>

#include "target.h"

/* What we do: events, or with @items sums of hits. */
struct tracing {
	const char *probe;
	const struct cairn_aggregate *items;
	size_t n_items;
	const char *by;
};

static inline int print_event(void *ctx, const struct cairn_event *event)
{
	return cairn_event_print(event, CAIRN_VALUE_TEXT, ctx) < 0;
}

/* Gets a trace ready, attached. Returns 0 or a negative errno. */
static inline int open_ours(const struct target *target, const struct tracing *how,
			    struct cairn_trace **ret, struct cairn_err *err)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts), .pid = target->pid};
	struct cairn_aggregate_opts sums = {
		.size = sizeof(sums), .items = how->items, .n_items = how->n_items, .by = how->by};
	int e = cairn_trace_open(&opts, ret, err);

	if (e >= 0 && how->n_items)
		e = cairn_trace_aggregate(*ret, &sums, err);
	if (e >= 0)
		e = cairn_trace_add(*ret, how->probe, err);
	return e < 0 ? e : cairn_trace_attach(*ret, err);
}

/* Traces until it is killed; says with one byte that it is attached. */
__attribute__((noreturn)) static void trace(const struct target *target, const struct tracing *how,
					    int ready)
{
	struct cairn_err err = {0};
	struct cairn_trace *t = NULL;
	FILE *null = fopen("/dev/null", "w");

	if (open_ours(target, how, &t, &err) < 0 || write(ready, "r", 1) != 1) {
		fprintf(stderr, "%s\n", err.msg);
		_exit(1);
	}
	for (;;)
		cairn_trace_poll(t, 1000, print_event, null, &err);
}

static inline pid_t start_ours(const struct target *target, const struct tracing *how)
{
	int ready[2];
	char byte;

	if (pipe(ready))
		return -1;
	pid_t pid = fork();
	if (!pid)
		trace(target, how, ready[1]);
	close(ready[1]);
	ssize_t n = read(ready[0], &byte, 1);
	close(ready[0]);
	return n == 1 ? pid : -1;
}

/* The folder of the lab's Debian. */
static inline const char *newest_root(void)
{
	static char root[400];
	char program[440];
	const char *lab = getenv("CAIRN_LAB"), *home = getenv("HOME");

	snprintf(root, sizeof(root), "%s%s/sid",
		 lab    ? lab
		 : home ? home
			: "",
		 lab ? "" : "/.cache/cairn-lab");
	snprintf(program, sizeof(program), "%s/usr/bin/bpftrace", root);
	return access(program, X_OK) ? NULL : root;
}

__attribute__((noreturn)) static inline void exec_bpftrace(const char *pid, const char *script)
{
	const char *root = newest_root();
	char loader[440], program[440], libraries[900];

	if (root) {
		snprintf(loader, sizeof(loader), "%s/lib64/ld-linux-x86-64.so.2", root);
		snprintf(program, sizeof(program), "%s/usr/bin/bpftrace", root);
		snprintf(libraries, sizeof(libraries),
			 "%s/lib/x86_64-linux-gnu:%s/usr/lib/x86_64-linux-gnu", root, root);
		execl(loader, loader, "--library-path", libraries, program, "-p", pid, "-e", script,
		      NULL);
	}
	execlp("bpftrace", "bpftrace", "-p", pid, "-e", script, NULL);
	_exit(127);
}

/* Until it says that it is attaching or attached, on either output. */
static inline bool is_attaching(int from)
{
	char text[4096];
	size_t n = 0;
	struct pollfd fd = {.fd = from, .events = POLLIN};

	while (n < sizeof(text) - 1 && poll(&fd, 1, 20000) == 1) {
		ssize_t got = read(from, text + n, sizeof(text) - 1 - n);
		if (got <= 0)
			return false;
		n += (size_t)got;
		text[n] = 0;
		if (strstr(text, "ttach"))
			return true;
	}
	return false;
}

/* Its lines go on to /dev/null, as ours do. */
static inline void drain(int from)
{
	if (fork())
		return;
	char buf[65536];
	while (read(from, buf, sizeof(buf)) > 0)
		;
	_exit(0);
}

/* bpftrace may say "Attaching" before it has. */
static inline pid_t start_bpftrace(const struct target *target, const char *script)
{
	int out[2];

	if (pipe(out))
		return -1;
	pid_t pid = fork();
	if (!pid) {
		char number[20];
		snprintf(number, sizeof(number), "%d", target->pid);
		dup2(out[1], 1);
		dup2(out[1], 2);
		exec_bpftrace(number, script);
	}
	close(out[1]);
	if (!is_attaching(out[0])) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(out[0]);
		return -1;
	}
	sleep(1);
	drain(out[0]);
	close(out[0]);
	return pid;
}

static inline void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	usleep(200000);
}

static inline void keep_best(double *best, double now)
{
	if (now < *best)
		*best = now;
}

#endif
