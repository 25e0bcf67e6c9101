/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader's snapshot of a process with 1,000 registered objects and a JIT with 100,000 rows
 *
 *	mark	what threads would wait for: the copies of the entries
 *	first	mark, settle, and every table, by one who reads the process for the first time
 *	again	mark, settle, and a row, by one who has read the tables before
 *
 * The child has all of them in memory of its own; it does not run. Every snapshot is checked to
 * have all rows.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cairn/jit/codectl.h>
#include <cairn/jit/jit.h>

#include "code/runtime.h"

enum {
	N_OBJECTS = 1000,
	N_FUNCTIONS = 33334,
	N_ROWS = 3 * N_FUNCTIONS,
	SIZE = 48,
	OBJECT = 4096,
	ROUNDS = 50
};

static char *text;

static void publish_all(void)
{
	struct cairn_jit_opts opts = {sizeof(opts), "bench", 0};
	struct cairn_jit *jit;
	if (cairn_jit_open(text, (size_t)N_FUNCTIONS * SIZE, &opts, &jit))
		abort();
	for (size_t i = 0; i < N_FUNCTIONS; i++) {
		struct cairn_jit_info info = {.size = sizeof(info), .name = "function"};
		struct cairn_jit_frame f;
		char *at = text + i * SIZE;
		cairn_jit_begin(&f, at);
		cairn_jit_cfa(&f, at + 1, CAIRN_JIT_SP, 16);
		cairn_jit_cfa(&f, at + SIZE - 1, CAIRN_JIT_SP, 8);
		if (cairn_jit_publish(jit, &f, at + SIZE, &info))
			abort();
	}
}

static void register_all(const char *objects)
{
	for (size_t i = 0; i < N_OBJECTS; i++) {
		char path[80];
		uint64_t at = (uintptr_t)objects + i * OBJECT;
		snprintf(path, sizeof(path),
			 "/usr/lib/x86_64-linux-gnu/a-directory/libexample-%04zu.so.1", i);
		/* clang-format off */
		struct code_elf_info elf = {
			.elf_start = at, .elf_end = at + OBJECT, .text_start = at, .text_end = at + OBJECT,
			.pathname = (uintptr_t)path, .build_id = (uintptr_t)path, .build_id_len = 20,
		};
		/* clang-format on */
		if (codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0))
			abort();
	}
}

static int start(void)
{
	size_t n = (size_t)N_FUNCTIONS * SIZE + N_OBJECTS * OBJECT + OBJECT;
	int ready[2], pid;
	char c;
	text = mmap(NULL, n, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (pipe(ready) || (pid = fork()) < 0)
		abort();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		publish_all();
		register_all(text + (((size_t)N_FUNCTIONS * SIZE + 4095) & ~(size_t)4095));
		if (write(ready[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		abort();
	close(ready[0]);
	return pid;
}

static double now_ms(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void check(const struct code_runtime *rt)
{
	size_t n_rows = 0, n_objects = 0;
	for (size_t i = 0; i < code_runtime_n_ranges(rt); i++) {
		const struct cairn_code_range *r = code_runtime_range(rt, i);
		n_objects += r->source == CAIRN_CODE_ELF && r->is_trusted;
		n_rows += r->is_trusted ? r->n_rows : 0;
	}
	if (n_rows < N_ROWS || n_objects != N_OBJECTS) {
		fprintf(stderr, "%zu objects and %zu rows were read, of %d and %d\n", n_objects,
			n_rows, N_OBJECTS, N_ROWS);
		exit(1);
	}
}

struct best {
	double mark, wall, cpu;
};

static void keep(double *best, double value)
{
	if (!*best || value < *best)
		*best = value;
}

/* One snapshot; the mappings are read before it, as they are for a stack. */
static void snapshot(struct code_runtime *rt, struct code_space *space, bool is_first,
		     struct best *best)
{
	struct code_found found;
	double wall = now_ms(CLOCK_MONOTONIC), cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
	if (code_runtime_prepare(rt, space, NULL) || code_runtime_freeze(rt, NULL))
		abort();
	double marked = now_ms(CLOCK_MONOTONIC);
	if (code_runtime_resolve(rt, NULL) ||
	    (is_first ? code_runtime_load_all(rt, NULL)
		      : code_runtime_find(rt, (uintptr_t)text + SIZE, &found, NULL)))
		abort();
	if (!is_first && found.unwind != CAIRN_CODE_UNWIND_ROWS)
		abort();
	keep(&best->mark, marked - wall);
	keep(&best->wall, now_ms(CLOCK_MONOTONIC) - wall);
	keep(&best->cpu, now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	check(rt);
}

int main(void)
{
	int pid = start();
	struct best first = {0}, again = {0};
	struct code_space *space;
	struct code_runtime *rt;
	if (code_space_open_pid(pid, 1, &space, NULL))
		abort();
	for (int i = 0; i < ROUNDS; i++) {
		if (code_runtime_new(code_memory_of_process(pid), pid, 62, &rt, NULL))
			abort();
		snapshot(rt, space, true, &first);
		snapshot(rt, space, false, &again);
		code_runtime_free(rt);
	}
	printf("%d objects, %d rows, %d names: best of %d\n", N_OBJECTS, N_ROWS, N_FUNCTIONS,
	       ROUNDS);
	printf("  mark   %.3f ms\n  first  %.3f ms (%.3f ms of CPU)\n  again  %.3f ms (%.3f ms of "
	       "CPU)\n",
	       first.mark, first.wall, first.cpu, again.wall, again.cpu);
	code_space_free(space);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return first.cpu > 5;
}
