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
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "target.h"
#include "tracers.h"

#define CALLS_DEFAULT 200000
#define ROUNDS        5
#define SKIPPED       77

static const char source[] =
	TARGET_SOURCE("", "void hit(int a, int b) { sink = a + b; }", "", "hit(i, 2)");

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
	struct tracing how = {.probe = task->probe};
	pid_t pid = start_ours(t, &how);
	char script[400];

	if (pid < 0)
		return false;
	keep_best(&task->ours, target_measure(t));
	stop(pid);
	for (int k = 0; k < 2; k++) {
		snprintf(script, sizeof(script), task->scripts[k], t->path, t->path);
		if ((pid = start_bpftrace(t, script)) < 0)
			break;
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
