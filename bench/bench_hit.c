/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one hit with two integer arguments costs the traced program, beside bpftrace
 *
 *	bench_hit [CALLS]
 *
 * One program calls a function CALLS times and takes its processor time itself: without a probe,
 * traced by us, traced by bpftrace printing the same arguments to /dev/null, and by bpftrace only
 * adding them up in the kernel, which no event leaves; in turns, the best of each. The function
 * begins with a nop, which the kernel emulates, so that the cost of the trap is as small as it gets
 * and that of the rest shows. Exits with 77 and the reason where nothing can be traced.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/trace.h>

#include "target.h"

#define CALLS_DEFAULT 200000
#define ROUNDS        5
#define SKIPPED       77

static const char source[] =
	TARGET_SOURCE("", "void hit(int a, int b) { sink = a + b; }", "", "hit(i, 2)");

static int print(void *ctx, const struct cairn_event *event)
{
	return cairn_event_print(event, CAIRN_VALUE_TEXT, ctx) < 0;
}

/* Traces until it is killed; says with one byte that it is attached. */
__attribute__((noreturn)) static void trace(const struct target *target, int ready)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts), .pid = target->pid};
	struct cairn_err err = {0};
	struct cairn_trace *t;
	FILE *null = fopen("/dev/null", "w");
	int e = cairn_trace_open(&opts, &t, &err);

	if (e >= 0)
		e = cairn_trace_add(t, "hit(a, b)", &err);
	if (e >= 0)
		e = cairn_trace_attach(t, &err);
	if (e < 0 || write(ready, "r", 1) != 1) {
		fprintf(stderr, "%s\n", err.msg);
		_exit(1);
	}
	for (;;)
		cairn_trace_poll(t, 1000, print, null, &err);
}

static pid_t start_ours(const struct target *target)
{
	int ready[2];
	char byte;

	if (pipe(ready))
		return -1;
	pid_t pid = fork();
	if (!pid)
		trace(target, ready[1]);
	close(ready[1]);
	ssize_t n = read(ready[0], &byte, 1);
	close(ready[0]);
	return n == 1 ? pid : -1;
}

/* bpftrace says "Attaching" before it has; what its BEGIN prints comes after. */
static pid_t start_bpftrace(const struct target *target, const char *action)
{
	int out[2];
	char script[200], line[200] = "";

	snprintf(script, sizeof(script), "uprobe:%s:hit { %s }", target->path, action);
	if (pipe(out))
		return -1;
	pid_t pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_WRONLY);
		char number[20];
		snprintf(number, sizeof(number), "%d", target->pid);
		dup2(out[1], 1);
		dup2(null, 2);
		execlp("bpftrace", "bpftrace", "-p", number, "-e", script, NULL);
		_exit(127);
	}
	close(out[1]);
	FILE *from = fdopen(out[0], "r");
	bool there = from && fgets(line, sizeof(line), from) && strstr(line, "Attaching");
	if (!there) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return -1;
	}
	sleep(1);
	/* Its lines go on to /dev/null, as ours do. */
	pid_t drain = fork();
	if (!drain) {
		char buf[65536];
		while (read(out[0], buf, sizeof(buf)) > 0)
			;
		_exit(0);
	}
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	usleep(200000);
}

static void keep_best(double *best, double now)
{
	if (now < *best)
		*best = now;
}

int main(int argc, char **argv)
{
	char calls[20];
	double bare = 1e9, ours = 1e9, theirs[2] = {1e9, 1e9};
	const char *const actions[] = {"printf(\"%d %d\\n\", arg0, arg1);",
				       "@ = sum(arg0 + arg1);"};
	struct target t;

	snprintf(calls, sizeof(calls), "%d", argc > 1 ? atoi(argv[1]) : CALLS_DEFAULT);
	if (geteuid()) {
		puts("tracing needs root");
		return SKIPPED;
	}
	/* The first answer also says that it has been exec'd. */
	if (target_start(&t, source, calls) < 0 || target_measure(&t) <= 0)
		return 1;
	for (int i = 0; i < ROUNDS; i++) {
		keep_best(&bare, target_measure(&t));
		pid_t pid = start_ours(&t);
		if (pid < 0) {
			target_end(&t);
			return SKIPPED;
		}
		keep_best(&ours, target_measure(&t));
		stop(pid);
		for (int k = 0; k < 2 && (pid = start_bpftrace(&t, actions[k])) > 0; k++) {
			keep_best(&theirs[k], target_measure(&t));
			stop(pid);
		}
	}
	target_end(&t);
	printf("per hit, best of %d: no probe %.0f ns, cairn %.0f ns", ROUNDS, bare, ours);
	if (theirs[1] < 1e9)
		printf(", bpftrace %.0f ns, cairn/bpftrace %.2f; bpftrace without events %.0f ns, "
		       "%.2f\n",
		       theirs[0], ours / theirs[0], theirs[1], ours / theirs[1]);
	else
		puts("; no bpftrace to compare with");
	return 0;
}
