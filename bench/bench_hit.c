/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one hit with two integer arguments costs the traced program, beside bpftrace; and what a call
 * costs that is followed from its entry to its return
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
__attribute__((noreturn)) static void trace(const struct target *target, const char *probe,
					    int ready)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts), .pid = target->pid};
	struct cairn_err err = {0};
	struct cairn_trace *t;
	FILE *null = fopen("/dev/null", "w");
	int e = cairn_trace_open(&opts, &t, &err);

	if (e >= 0)
		e = cairn_trace_add(t, probe, &err);
	if (e >= 0)
		e = cairn_trace_attach(t, &err);
	if (e < 0 || write(ready, "r", 1) != 1) {
		fprintf(stderr, "%s\n", err.msg);
		_exit(1);
	}
	for (;;)
		cairn_trace_poll(t, 1000, print, null, &err);
}

static pid_t start_ours(const struct target *target, const char *probe)
{
	int ready[2];
	char byte;

	if (pipe(ready))
		return -1;
	pid_t pid = fork();
	if (!pid)
		trace(target, probe, ready[1]);
	close(ready[1]);
	ssize_t n = read(ready[0], &byte, 1);
	close(ready[0]);
	return n == 1 ? pid : -1;
}

/* bpftrace says "Attaching" before it has; what its BEGIN prints comes after. */
static pid_t start_bpftrace(const struct target *target, const char *format)
{
	int out[2];
	char script[400], line[200] = "";

	snprintf(script, sizeof(script), format, target->path, target->path);
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

/* What is done at a hit, by both; %s is the program's path. */
struct task {
	const char *what, *probe;
	const char *scripts[2]; /* with events, and without */
	double ours, theirs[2];
};

static struct task tasks[] = {
	{"hit",
	 "hit(a, b)",
	 {"uprobe:%s:hit { printf(\"%%d %%d\\n\", arg0, arg1); }",
	  "uprobe:%s:hit { @ = sum(arg0 + arg1); }"},
	 1e9,
	 {1e9, 1e9}},
	{"call with its duration",
	 "hit($duration)",
	 {"uprobe:%s:hit { @s[tid] = nsecs; } uretprobe:%s:hit /@s[tid]/ "
	  "{ printf(\"%%d\\n\", nsecs - @s[tid]); delete(@s[tid]); }",
	  "uprobe:%s:hit { @s[tid] = nsecs; } uretprobe:%s:hit /@s[tid]/ "
	  "{ @ = sum(nsecs - @s[tid]); delete(@s[tid]); }"},
	 1e9,
	 {1e9, 1e9}},
};

/* False if nothing can be traced. */
static bool measure(struct target *t, struct task *task)
{
	pid_t pid = start_ours(t, task->probe);

	if (pid < 0)
		return false;
	keep_best(&task->ours, target_measure(t));
	stop(pid);
	for (int k = 0; k < 2 && (pid = start_bpftrace(t, task->scripts[k])) > 0; k++) {
		keep_best(&task->theirs[k], target_measure(t));
		stop(pid);
	}
	return true;
}

static void show(const struct task *task, double bare)
{
	printf("per %s, best of %d: no probe %.0f ns, cairn %.0f ns", task->what, ROUNDS, bare,
	       task->ours);
	if (task->theirs[1] < 1e9)
		printf(", bpftrace %.0f ns, cairn/bpftrace %.2f; bpftrace without events %.0f ns, "
		       "%.2f\n",
		       task->theirs[0], task->ours / task->theirs[0], task->theirs[1],
		       task->ours / task->theirs[1]);
	else
		puts("; no bpftrace to compare with");
}

int main(int argc, char **argv)
{
	enum { N_TASKS = sizeof(tasks) / sizeof(tasks[0]) };
	char calls[20];
	double bare = 1e9;
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
		for (int k = 0; k < N_TASKS; k++) {
			if (measure(&t, &tasks[k]))
				continue;
			target_end(&t);
			return SKIPPED;
		}
	}
	target_end(&t);
	for (int k = 0; k < N_TASKS; k++)
		show(&tasks[k], bare);
	return 0;
}
