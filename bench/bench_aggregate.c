/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What sums in the kernel cost, and events at high rates, beside bpftrace
 *
 *	bench_aggregate CAIRN [CALLS]
 *
 * 1. A hit that counts by a key, a histogram of a hot inlined function, and a pair of entry and
 *    return with a histogram of the durations: what one call costs the traced program, with us, with
 *    bpftrace, and with a BPF program that does nothing at the same place; in turns, the best of each.
 * 2. Attaching to 10,000 inlined copies with a sum.
 * 3. The time from the start of the program CAIRN to its being attached, for malloc of the C library
 *    with a sidecar, beside bpftrace's.
 * 4. Events a second from a full ring buffer to text, by the processor time of the reader.
 * 5. What is lost at 300,000 events a second with the ring buffer as it is.
 *
 * Exits with 77 and the reason where nothing can be traced.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "copies.h"
#include "live/uprobe_multi.h"
#include "target.h"
#include "tracers.h"

#define CALLS_DEFAULT  200000
#define ROUNDS         5
#define COPIES         10000
#define RATE           300000
#define DRAINED_EVENTS 60000 /* 6 MiB of the ring buffer's 8 */
#define SKIPPED        77

/* spot() begins with a nop, so that its place is as cheap as hit()'s. */
static const char source[] = TARGET_SOURCE(
	"extern volatile int sink;\n"
	"static inline __attribute__((always_inline)) void spot(int a)\n"
	"{ asm volatile(\"nop\"); sink = a; asm volatile(\"\" : : \"r\"(a) : \"memory\"); }\n",
	"void hit(int a, int b) { sink = a + b; }\n"
	"__attribute__((noinline, noipa)) void around(int a) { spot(a); }",
	"", "{ hit(i, 2); around(i); }");
/* As many calls a second as its argument says, for two seconds. */
static const char paced[] = TARGET_SOURCE(
	"", "void hit(int a, int b) { sink = a + b; }",
	"struct timespec at; long first, now_ns; (void)now;",
	"; clock_gettime(CLOCK_MONOTONIC, &at); first = at.tv_sec * 1000000000 + at.tv_nsec; "
	"for (long i = 0; i < 2l * n; i++) { do { clock_gettime(CLOCK_MONOTONIC, &at); "
	"now_ns = at.tv_sec * 1000000000 + at.tv_nsec; } while (now_ns - first < i * 1000000000 / "
	"n); "
	"hit((int)i, 2); }");

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- what one hit costs ---- */

enum who { NOBODY, EMPTY, OURS, THEIRS, N_WHO };

struct task {
	const char *what;
	struct tracing how;
	const char *at_entry, *at_return; /* what bpftrace does */
	double best[N_WHO];
};

static const struct cairn_aggregate count = {.kind = CAIRN_AGGREGATE_COUNT};
static const struct cairn_aggregate hist = {.kind = CAIRN_AGGREGATE_HIST, .text = "a"};
static const struct cairn_aggregate duration = {.kind = CAIRN_AGGREGATE_HIST, .text = "$duration"};
static struct task tasks[] = {
	{"count by a key",
	 {.probe = "hit", .items = &count, .n_items = 1, .by = "a & 63"},
	 "{ @[arg0 & 63] = count(); }",
	 NULL,
	 {1e9, 1e9, 1e9, 1e9}},
	{"histogram of an inlined function",
	 {.probe = "spot", .items = &hist, .n_items = 1},
	 "{ @ = hist(reg(\"di\")); }",
	 NULL,
	 {1e9, 1e9, 1e9, 1e9}},
	{"histogram of the durations of calls",
	 {.probe = "hit", .items = &duration, .n_items = 1},
	 "{ @s[tid] = nsecs; }",
	 "/@s[tid]/ { @ = hist(nsecs - @s[tid]); delete(@s[tid]); }",
	 {1e9, 1e9, 1e9, 1e9}},
};
enum { N_TASKS = sizeof(tasks) / sizeof(tasks[0]) };

/* The place where we would probe: its address and its offset in the file. */
static int place_of(const struct target *t, const struct tracing *how, uint64_t *at, uint64_t *off)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts), .pid = t->pid};
	struct cairn_err err = {0};
	struct cairn_trace *trace = NULL;
	int e = cairn_trace_open(&opts, &trace, &err);

	if (e >= 0)
		e = cairn_trace_add(trace, how->probe, &err);
	if (e < 0) {
		fprintf(stderr, "%s\n", err.msg);
	} else {
		*at = cairn_trace_site(trace, 0)->at.v;
		*off = cairn_trace_site(trace, 0)->off.v;
	}
	cairn_trace_close(trace);
	return e < 0 ? e : 0;
}

static void measure_empty(struct target *t, struct task *task, uint64_t off)
{
	int prog = uprobe_multi_prog();
	int link = prog < 0 ? prog : uprobe_multi_attach(prog, t->path, &off, 1);

	if (link >= 0) {
		keep_best(&task->best[EMPTY], target_measure(t));
		close(link);
	}
	if (prog >= 0)
		close(prog);
}

static void measure_theirs(struct target *t, struct task *task, uint64_t at)
{
	char script[600];
	int n = snprintf(script, sizeof(script), "uprobe:%s:%#llx %s", t->path,
			 (unsigned long long)at, task->at_entry);

	if (task->at_return)
		snprintf(script + n, sizeof(script) - (size_t)n, " uretprobe:%s:hit %s", t->path,
			 task->at_return);
	pid_t pid = start_bpftrace(t, script);
	if (pid < 0)
		return;
	keep_best(&task->best[THEIRS], target_measure(t));
	stop(pid);
}

/* False if nothing can be traced. */
static bool measure(struct target *t, struct task *task)
{
	uint64_t at, off;

	if (place_of(t, &task->how, &at, &off) < 0)
		return false;
	keep_best(&task->best[NOBODY], target_measure(t));
	if (!task->at_return)
		measure_empty(t, task, off);
	pid_t pid = start_ours(t, &task->how);
	if (pid < 0)
		return false;
	keep_best(&task->best[OURS], target_measure(t));
	stop(pid);
	measure_theirs(t, task, at);
	return true;
}

static void show(const struct task *task)
{
	const double *best = task->best;

	printf("%s, per call, best of %d: no probe %.0f ns, cairn %.0f ns", task->what, ROUNDS,
	       best[NOBODY], best[OURS]);
	if (best[EMPTY] < 1e9)
		printf(", empty program %.0f ns, cairn/empty %.2f", best[EMPTY],
		       best[OURS] / best[EMPTY]);
	if (best[THEIRS] < 1e9)
		printf(", bpftrace %.0f ns, cairn/bpftrace %.2f", best[THEIRS],
		       best[OURS] / best[THEIRS]);
	puts(best[THEIRS] < 1e9 ? "" : "; no bpftrace to compare with");
}

static int measure_hits(const char *calls)
{
	struct target t;
	bool can = true;

	/* The first answer also says that it has been exec'd. */
	if (target_start(&t, source, calls) < 0 || target_measure(&t) <= 0)
		return 1;
	for (int i = 0; i < ROUNDS && can; i++)
		for (int k = 0; k < N_TASKS && can; k++)
			can = measure(&t, &tasks[k]);
	target_end(&t);
	for (int k = 0; k < N_TASKS && can; k++)
		show(&tasks[k]);
	return can ? 0 : SKIPPED;
}

/* ---- attaching ---- */

static int measure_attaching(void)
{
	struct cairn_aggregate sum = {.kind = CAIRN_AGGREGATE_SUM, .text = "a"};
	struct cairn_aggregate_opts sums = {.size = sizeof(sums), .items = &sum, .n_items = 1};
	struct attaching best = {1e9, 1e9, 1e9, 0};
	char dir[] = "/tmp/cairn-bench-XXXXXX";
	pid_t pid = start_copies(dir, COPIES);
	int e = pid > 0 ? 0 : 1;

	for (int i = 0; i < ROUNDS && !e; i++)
		e = attach_copies(pid, &sums, &best);
	end_copies(dir, pid);
	if (!e)
		printf("best of %d: %u sites with a sum, attach %.1f ms (target 60), load %.1f "
		       "ms\n",
		       ROUNDS, best.n_sites, best.attach_ms, best.load_ms);
	return e;
}

/* ---- from start to attached ---- */

/* Until a program says "Attach..." or "attach..." on either output, in milliseconds; 0: never. */
static double start_to_attached(void (*run)(const struct target *, const char *),
				const struct target *t, const char *cairn)
{
	int out[2];
	double start = seconds(CLOCK_MONOTONIC);

	if (pipe(out))
		return 0;
	pid_t pid = fork();
	if (!pid) {
		dup2(out[1], 1);
		dup2(out[1], 2);
		run(t, cairn);
		_exit(127);
	}
	close(out[1]);
	bool is_attached = is_attaching(out[0]);
	double ms = (seconds(CLOCK_MONOTONIC) - start) * 1e3;
	close(out[0]);
	stop(pid);
	return is_attached ? ms : 0;
}

static void run_cairn(const struct target *t, const char *cairn)
{
	char pid[20];

	snprintf(pid, sizeof(pid), "%d", t->pid);
	execl(cairn, cairn, "trace", "--count", "-p", pid, "libc.so.6:malloc", NULL);
}

static void run_bpftrace(const struct target *t, const char *cairn)
{
	char pid[20];

	(void)cairn;
	snprintf(pid, sizeof(pid), "%d", t->pid);
	exec_bpftrace(pid, "uprobe:libc:malloc { @ = count(); }");
}

static int measure_start(const char *cairn)
{
	struct target t;
	double ours = 1e9, theirs = 1e9;

	if (target_start(&t, source, "1") < 0 || target_measure(&t) <= 0)
		return 1;
	/* The first one makes the sidecar. */
	setenv("CAIRN_CACHE", t.dir, 1);
	bool can = start_to_attached(run_cairn, &t, cairn) > 0;
	for (int i = 0; i < ROUNDS && can; i++) {
		keep_best(&ours, start_to_attached(run_cairn, &t, cairn));
		double ms = start_to_attached(run_bpftrace, &t, NULL);
		if (ms > 0)
			keep_best(&theirs, ms);
	}
	target_end(&t);
	if (!can) {
		printf("%s was started, and did not attach to malloc of the C library\n", cairn);
		return 1;
	}
	printf("start to attached, malloc of the C library: cairn %.0f ms (target 60)", ours);
	if (theirs < 1e9)
		printf(", bpftrace %.0f ms, cairn/bpftrace %.2f", theirs, ours / theirs);
	puts("");
	return 0;
}

/* ---- events ---- */

static const struct tracing two_values = {.probe = "hit(a, b)"};

/* Fills the ring buffer while nobody reads it, and then reads it. */
static int measure_text(void)
{
	struct cairn_err err = {0};
	struct cairn_trace_stats s = {.size = sizeof(s)};
	struct cairn_trace *trace = NULL;
	struct target t;
	char calls[20];
	FILE *null = fopen("/dev/null", "w");
	double best = 1e9;

	snprintf(calls, sizeof(calls), "%d", DRAINED_EVENTS);
	if (!null || target_start(&t, source, calls) < 0 || target_measure(&t) <= 0)
		return 1;
	int e = open_ours(&t, &two_values, &trace, &err);
	for (int i = 0; i < ROUNDS && e >= 0; i++) {
		target_measure(&t);
		double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
		e = cairn_trace_poll(trace, 0, print_event, null, &err);
		keep_best(&best, seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
	}
	if (e >= 0)
		cairn_trace_stats(trace, &s, NULL, &err);
	cairn_trace_close(trace);
	target_end(&t);
	fclose(null);
	if (e < 0)
		return SKIPPED;
	printf("events to text: %.2f million a second of one processor, %llu events, %llu lost\n",
	       DRAINED_EVENTS / best / 1e6, (unsigned long long)s.total.events,
	       (unsigned long long)s.total.lost);
	return 0;
}

static int measure_losses(void)
{
	struct cairn_err err = {0};
	struct cairn_trace_stats s = {.size = sizeof(s)};
	struct cairn_trace *trace = NULL;
	struct target t;
	char rate[20];
	FILE *null = fopen("/dev/null", "w");

	snprintf(rate, sizeof(rate), "%d", RATE);
	if (!null || target_start(&t, paced, rate) < 0 || target_measure(&t) <= 0)
		return 1;
	int e = open_ours(&t, &two_values, &trace, &err);
	double start = seconds(CLOCK_MONOTONIC);
	fputc('g', t.to);
	fflush(t.to);
	while (e >= 0 && seconds(CLOCK_MONOTONIC) - start < 4)
		e = cairn_trace_poll(trace, 100, print_event, null, &err);
	if (e >= 0)
		cairn_trace_stats(trace, &s, NULL, &err);
	cairn_trace_close(trace);
	target_end(&t);
	fclose(null);
	if (e < 0)
		return SKIPPED;
	printf("%d events a second, asked for, for two seconds: %llu events, %llu lost (target "
	       "0)\n",
	       RATE, (unsigned long long)s.total.events, (unsigned long long)s.total.lost);
	return 0;
}

int main(int argc, char **argv)
{
	char calls[20];

	if (argc < 2) {
		fputs("usage: bench_aggregate CAIRN [CALLS]\n", stderr);
		return 2;
	}
	if (geteuid()) {
		puts("tracing needs root");
		return SKIPPED;
	}
	snprintf(calls, sizeof(calls), "%d", argc > 2 ? atoi(argv[2]) : CALLS_DEFAULT);
	int e = measure_hits(calls);
	e = e ? e : measure_attaching();
	e = e ? e : measure_start(argv[1]);
	e = e ? e : measure_text();
	return e ? e : measure_losses();
}
