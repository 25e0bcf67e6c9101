/* SPDX-License-Identifier: BSD-2-Clause */
/* A program with many inlined copies of one function, copy(int a, long b), that waits. */
#ifndef BENCH_COPIES_H
#define BENCH_COPIES_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/trace.h>

#define COPIES_SKIPPED 77

/* Copies are spread over functions of 50, as in real programs; each copy is its own site. */
static inline int write_copies(const char *path, unsigned int sites)
{
	FILE *out = fopen(path, "w");

	if (!out)
		return -errno;
	fputs("#include <stdio.h>\n#include <unistd.h>\n"
	      "volatile int sink;\n"
	      "static inline __attribute__((always_inline)) void copy(int a, long b)\n"
	      "{ sink = a; sink += b; }\n",
	      out);
	for (unsigned int i = 0; i < sites; i++) {
		if (i % 50 == 0)
			fprintf(out, "%s__attribute__((noinline)) void f%u(int a, long b)\n{\n",
				i ? "}\n" : "", i / 50);
		fprintf(out, "	copy(a + %u, b); asm volatile(\"\" ::: \"memory\");\n", i);
	}
	fputs("}\nint main(void)\n{\n	puts(\"ready\"); fflush(stdout);\n	for (;;) "
	      "pause();\n",
	      out);
	for (unsigned int i = 0; i < sites; i += 50)
		fprintf(out, "	f%u(sink, 2);\n", i / 50);
	fputs("}\n", out);
	return fclose(out);
}

static inline pid_t run_copies(const char *program)
{
	int ready[2];
	char byte;

	if (pipe(ready))
		return -1;
	pid_t pid = fork();
	if (!pid) {
		dup2(ready[1], 1);
		execl(program, program, NULL);
		_exit(127);
	}
	close(ready[1]);
	ssize_t n = read(ready[0], &byte, 1);
	close(ready[0]);
	return n == 1 ? pid : -1;
}

/* Makes and runs it in a new folder @dir, "/tmp/NAME-XXXXXX". Returns its pid, or -1. */
static inline pid_t start_copies(char *dir, unsigned int n)
{
	char path[64], command[200];

	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/sites.c", dir);
	snprintf(command, sizeof(command), "gcc -g -O2 -o %s/sites %s", dir, path);
	if (write_copies(path, n) || system(command))
		return -1;
	snprintf(path, sizeof(path), "%s/sites", dir);
	return run_copies(path);
}

struct attaching {
	double attach_ms, detach_ms, load_ms;
	unsigned int n_sites;
};

static inline void keep_less(double *best, uint64_t ns)
{
	if ((double)ns / 1e6 < *best)
		*best = (double)ns / 1e6;
}

/*
 * Attaches to all copies and detaches; keeps the least times in @best. @sums NULL: events. Returns
 * 0, 1 or COPIES_SKIPPED.
 */
static inline int attach_copies(pid_t pid, const struct cairn_aggregate_opts *sums,
				struct attaching *best)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts), .pid = pid};
	struct cairn_trace_stats s = {.size = sizeof(s)};
	struct cairn_err err = {0};
	struct cairn_trace *t = NULL;
	int e = cairn_trace_open(&opts, &t, &err);

	if (e >= 0 && sums)
		e = cairn_trace_aggregate(t, sums, &err);
	if (e >= 0)
		e = cairn_trace_add(t, sums ? "copy" : "copy(a)", &err);
	if (e >= 0)
		e = cairn_trace_attach(t, &err);
	if (e < 0) {
		printf("%s\n", err.msg);
		cairn_trace_close(t);
		return e == -EPERM || e == -EOPNOTSUPP ? COPIES_SKIPPED : 1;
	}
	cairn_trace_detach(t);
	cairn_trace_stats(t, &s, NULL, &err);
	keep_less(&best->attach_ms, s.attach_ns);
	keep_less(&best->detach_ms, s.detach_ns);
	keep_less(&best->load_ms, s.load_ns);
	best->n_sites = s.n_attached;
	printf("sites %u attach %.1f ms detach %.1f ms load %.1f ms\n", s.n_attached,
	       (double)s.attach_ns / 1e6, (double)s.detach_ns / 1e6, (double)s.load_ns / 1e6);
	cairn_trace_close(t);
	return 0;
}

static inline void end_copies(const char *dir, pid_t pid)
{
	char command[80];

	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	if (system(command))
		perror(command);
}

#endif
