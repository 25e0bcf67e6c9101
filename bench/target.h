/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program whose hits are measured
 *
 * It calls hit() a number of times for each byte on its standard input and answers with the
 * nanoseconds of its own processor time that one call took. hit() begins with a nop, which the
 * kernel emulates.
 *
 *	static const char source[] = TARGET_SOURCE("", "void hit(int a) { sink = a; }", "", "hit(i)");
 *	struct target t;
 *	if (target_start(&t, source, "200000") < 0 || target_measure(&t) <= 0)
 *		return 1;	// the first answer also says that it has been exec'd
 *	...
 *	target_end(&t);
 */
#ifndef BENCH_TARGET_H
#define BENCH_TARGET_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * @types: declarations; @hit: the function; @setup: declarations in main(); @call: of hit(), with i
 * counting.
 */
#define TARGET_SOURCE(types, hit, setup, call)                                                     \
	"#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n" types "\n"                  \
	"volatile int sink;\n"                                                                     \
	"__attribute__((noinline, noipa, patchable_function_entry(1))) " hit "\n"                  \
	"static double now(void)\n"                                                                \
	"{ struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); "                        \
	"return t.tv_sec * 1e9 + t.tv_nsec; }\n"                                                   \
	"int main(int argc, char **argv)\n"                                                        \
	"{\n"                                                                                      \
	"	" setup "\n"                                                                       \
	"	int n = atoi(argv[1]);\n"                                                                \
	"	while (getchar() != EOF) {\n"                                                            \
	"		double start = now();\n"                                                                \
	"		for (int i = 0; i < n; i++) " call ";\n"                                   \
	"		printf(\"%f\\n\", (now() - start) / n); fflush(stdout);\n"                              \
	"	}\n"                                                                                     \
	"	return 0;\n"                                                                             \
	"}\n"

struct target {
	pid_t pid;
	FILE *to, *from;
	char dir[40], path[64];
};

/* Compiles @source and runs it with @calls as its argument. Returns 0 or a negative errno. */
static inline int target_start(struct target *t, const char *source, const char *calls)
{
	int in[2], out[2];
	char command[200];

	strcpy(t->dir, "/tmp/cairn-bench-XXXXXX");
	if (!mkdtemp(t->dir))
		return -errno;
	snprintf(t->path, sizeof(t->path), "%s/hit", t->dir);
	snprintf(command, sizeof(command), "gcc -g -O2 -o %s -xc -", t->path);
	FILE *gcc = popen(command, "w");
	if (!gcc || fputs(source, gcc) < 0 || pclose(gcc) || pipe(in) || pipe(out))
		return -EIO;
	t->pid = fork();
	if (!t->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execl(t->path, t->path, calls, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	t->to = fdopen(in[1], "w");
	t->from = fdopen(out[0], "r");
	return 0;
}

static inline void target_end(struct target *t)
{
	char command[80];

	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	snprintf(command, sizeof(command), "rm -r %s", t->dir);
	if (system(command))
		perror(command);
}

/* Nanoseconds per call of one round; 0 when it does not answer. */
static inline double target_measure(struct target *t)
{
	double ns = 0;

	fputc('g', t->to);
	fflush(t->to);
	return fscanf(t->from, "%lf", &ns) == 1 ? ns : 0;
}

#endif
