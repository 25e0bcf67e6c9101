/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long it takes to attach to and detach from 10,000 sites of a live process
 *
 *	bench_attach [SITES]
 *
 * A program with that many inlined copies of one function is generated and compiled; it runs and
 * waits while it is traced. Targets: attach in 50 ms, detach in 150 ms. Exits with 77 and the
 * reason where nothing can be traced.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/trace.h>

#define SITES_DEFAULT 10000
#define ROUNDS        5
#define SKIPPED       77

/* Copies are spread over functions of 50, as in real programs; each copy is its own site. */
static int write_source(const char *path, unsigned int sites)
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

static pid_t run(const char *program)
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

static int once(pid_t pid, double *attach_ms, double *detach_ms, double *load_ms,
		unsigned int *sites)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts), .pid = pid};
	struct cairn_trace_stats s = {.size = sizeof(s)};
	struct cairn_err err = {0};
	struct cairn_trace *t;
	int e = cairn_trace_open(&opts, &t, &err);

	if (e >= 0)
		e = cairn_trace_add(t, "copy(a)", &err);
	if (e >= 0)
		e = cairn_trace_attach(t, &err);
	if (e < 0) {
		printf("%s\n", err.msg);
		return e == -EPERM || e == -EOPNOTSUPP ? SKIPPED : 1;
	}
	cairn_trace_detach(t);
	cairn_trace_stats(t, &s, NULL, &err);
	*attach_ms = (double)s.attach_ns / 1e6;
	*detach_ms = (double)s.detach_ns / 1e6;
	*load_ms = (double)s.load_ns / 1e6;
	*sites = s.n_attached;
	cairn_trace_close(t);
	return 0;
}

static int measure(pid_t pid)
{
	double best[3] = {1e9, 1e9, 1e9};
	unsigned int sites = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double now[3];
		int e = once(pid, &now[0], &now[1], &now[2], &sites);
		if (e)
			return e;
		printf("sites %u attach %.1f ms detach %.1f ms load %.1f ms\n", sites, now[0],
		       now[1], now[2]);
		for (int k = 0; k < 3; k++)
			best[k] = now[k] < best[k] ? now[k] : best[k];
	}
	printf("best of %d: %u sites, attach %.1f ms (target 50), detach %.1f ms (target 150), "
	       "load %.1f ms\n",
	       ROUNDS, sites, best[0], best[1], best[2]);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int sites = argc > 1 ? (unsigned int)atoi(argv[1]) : SITES_DEFAULT;
	char dir[] = "/tmp/cairn-bench-XXXXXX", path[64], command[200];

	if (geteuid()) {
		puts("tracing needs root");
		return SKIPPED;
	}
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/sites.c", dir);
	snprintf(command, sizeof(command), "gcc -g -O2 -o %s/sites %s", dir, path);
	if (write_source(path, sites) || system(command))
		return 1;
	snprintf(path, sizeof(path), "%s/sites", dir);
	pid_t pid = run(path);
	int e = pid > 0 ? measure(pid) : 1;
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command) ? 1 : e;
}
