/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A writer at full speed on one processor, a reader from outside on another, and what was true
 *
 *	torture [WALKS [ROWS]]		at least so many: 1,000,000 and 100,000,000
 *
 * The writer has two regions. In one it frees and reuses single places in random order; in the
 * other it appends functions of 47 rows, chains tables, frees all, and begins again. A third one is
 * opened and closed all the time. The writer counts its changes in memory that both share: a
 * counter is odd while its place changes. Every function has a number, which is its CFA and its
 * name.
 *
 * A walk is what a stack of eight frames takes: the registry as it is, then rule and name at eight
 * addresses. The counters before and after tell which numbers were at an address meanwhile; any
 * other is wrong, and so is a name with another number than the rule. Most addresses change while
 * they are read if the machine is busy, so the walks go on until enough rules could be compared.
 *
 * In one of 64 walks the writer is stopped while the registry is copied, as cairn stack does it.
 * The number is then that of this moment, and nothing may be missing where something was, unless
 * the reader says that the code was freed since. Where nothing was, a function that was appended
 * after the copy may be found, as long as nothing is freed: nobody can have stood there. A copy of
 * a registry that goes on may miss what moves from one entry to another: its counter of changes
 * tells.
 */
#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/code.h>
#include <cairn/jit/jit.h>

#include "code/runtime.h"

enum {
	PLACES = 64,
	PLACE = 256,
	SERIES = 64,
	FUNCTION = 64,
	ROWS = 47,
	FRAMES = 8,
	CFA = 16,
	REFRESH = 1000,
	STOPPED = 64,
	PATIENCE = 10 /* times the walks, until half a frame of each was compared */
};

struct truth {
	volatile uint64_t n_rows;
	/* A place's counter: twice the number of its function, one more while it changes. */
	volatile uint64_t places[PLACES];
	/* Functions of the series that were published, over all rounds; odd while it changes. */
	volatile uint64_t series;
};

static struct truth *truth;

static char *places, *series, *passing;

/* ---- the writer ---- */

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	return *x ^= *x << 17;
}

static void check(int rc)
{
	if (rc)
		_exit(3);
}

static struct cairn_jit *open_region(const char *name, char *at, size_t n)
{
	struct cairn_jit_opts opts = {sizeof(opts), name, CAIRN_JIT_COPY_NAMES};
	struct cairn_jit *jit;
	check(cairn_jit_open(at, n, &opts, &jit));
	return jit;
}

static void publish(struct cairn_jit *jit, char *at, unsigned n_bytes, unsigned n_rows,
		    uint64_t number)
{
	char name[32];
	struct cairn_jit_info info = {.size = sizeof(info), .name = name};
	struct cairn_jit_frame f;
	snprintf(name, sizeof(name), "%llu", (unsigned long long)number);
	cairn_jit_begin(&f, at);
	for (unsigned i = 1; i < n_rows; i++)
		cairn_jit_cfa(&f, at + i, CAIRN_JIT_SP, (int32_t)(CFA + 8 * number));
	check(cairn_jit_publish(jit, &f, at + n_bytes, &info));
	truth->n_rows += n_rows;
}

static void count(volatile uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_SEQ_CST);
}

static void change_place(struct cairn_jit *jit, unsigned i)
{
	char *at = places + i * PLACE;
	count(&truth->places[i]);
	cairn_jit_withdraw(jit, at, at + PLACE);
	publish(jit, at, PLACE, 2, truth->places[i] / 2 + 1);
	count(&truth->places[i]);
}

/* The last of a round makes room for the next. */
static void grow_series(struct cairn_jit *jit)
{
	uint64_t n = truth->series / 2;
	count(&truth->series);
	if (n % SERIES == 0)
		cairn_jit_withdraw(jit, series, series + SERIES * FUNCTION);
	publish(jit, series + n % SERIES * FUNCTION, FUNCTION, ROWS, n / SERIES + 1);
	count(&truth->series);
}

static void write_for_ever(void)
{
	uint64_t x = 88172645463325252u;
	struct cairn_jit *a = open_region("places", places, PLACES * PLACE);
	struct cairn_jit *b = open_region("series", series, SERIES * FUNCTION);
	for (;;) {
		struct cairn_jit *c = open_region("passing", passing, 4096);
		publish(c, passing, PLACE, 2, 1);
		for (int i = 0; i < 16; i++) {
			change_place(a, next_random(&x) % PLACES);
			for (int k = 0; k < 64; k++)
				grow_series(b);
		}
		cairn_jit_close(c);
	}
}

/* ---- the reader ---- */

struct counts {
	uint64_t frames, right, named, refused, nothing, moved, wrong, missing;
};

/* Numbers that were at an address between two looks: [first, last]; 0: nothing is possible too. */
struct were {
	uint64_t first, last;
	bool may_be_nothing;
};

/* In the middle of a change both are possible, and nothing. */
static struct were of_place(uint64_t before, uint64_t after)
{
	struct were w = {before / 2, (after + 1) / 2, before != after || before & 1 || !before};
	return w;
}

/* Of function @i in the series: its round. */
static struct were of_series(uint64_t before, uint64_t after, uint64_t i)
{
	uint64_t a = before / 2, b = (after + 1) / 2;
	uint64_t first = a / SERIES + (a % SERIES > i), last = b / SERIES + (b % SERIES > i);
	/* At a round's end all go; the first one of the next round takes them away. */
	if (a % SERIES == 0 && a)
		first = a / SERIES;
	bool is_whole = !((before | after) & 1) && a / SERIES == b / SERIES && a % SERIES > i;
	return (struct were){first, last, !is_whole};
}

struct frame {
	bool is_place, is_stopped;
	unsigned i;
	uint64_t before;
};

static struct were what_was(const struct frame *f, uint64_t after)
{
	return f->is_place ? of_place(f->before, after) : of_series(f->before, after, f->i);
}

static void complain(const char *what, const struct frame *f, const struct were *w, int64_t number,
		     const struct code_found *found)
{
	fprintf(stderr, "%s: %s %u: number %lld of [%llu, %llu], name %s, %s\n", what,
		f->is_place ? "place" : "series", f->i, (long long)number,
		(unsigned long long)w->first, (unsigned long long)w->last,
		found->n_functions ? found->functions[0].name : "none",
		found->why ? found->why : "");
}

static void check_frame(const struct frame *f, uint64_t after, const struct code_found *found,
			struct counts *n)
{
	struct were w = what_was(f, f->is_stopped ? f->before : after);
	/*
	 * It has gone on since. What was there counts as of the copy; where nothing was, functions
	 * may have been appended.
	 */
	if (f->is_stopped && w.may_be_nothing)
		w = what_was(f, after);
	n->frames++;
	if (found->unwind != CAIRN_CODE_UNWIND_ROWS) {
		bool is_freed =
			found->why && (strstr(found->why, "freed") || strstr(found->why, "chang"));
		bool is_missing = !is_freed && !w.may_be_nothing;
		n->refused += is_freed;
		n->nothing += !is_freed && !is_missing;
		n->moved += is_missing && !f->is_stopped;
		if (is_missing && f->is_stopped && !n->missing++)
			complain("missing", f, &w, -1, found);
		return;
	}
	int64_t number = (((const struct cairn_unwind_rule *)found->rule.words)->off - CFA) / 8;
	bool is_right = number >= (int64_t)w.first && number <= (int64_t)w.last;
	if (found->n_functions && found->functions[0].name) {
		is_right &= atoll(found->functions[0].name) == number;
		n->named++;
	}
	n->right += is_right;
	if (!is_right && !n->wrong++)
		complain("wrong", f, &w, number, found);
}

static uint64_t now_at(const struct frame *f)
{
	return __atomic_load_n(f->is_place ? &truth->places[f->i] : &truth->series,
			       __ATOMIC_SEQ_CST);
}

static void stop(int pid)
{
	int status;
	kill(pid, SIGSTOP);
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		exit(1);
}

static void walk(struct code_runtime *rt, int pid, bool is_stopped, uint64_t *x, struct counts *n)
{
	struct frame frames[FRAMES];
	if (is_stopped)
		stop(pid);
	for (int i = 0; i < FRAMES; i++) {
		frames[i].is_stopped = is_stopped;
		frames[i].is_place = next_random(x) & 1;
		frames[i].i = (unsigned)(next_random(x) % (frames[i].is_place ? PLACES : SERIES));
		frames[i].before = now_at(&frames[i]);
	}
	check(code_runtime_freeze(rt, NULL));
	if (is_stopped)
		kill(pid, SIGCONT);
	check(code_runtime_resolve(rt, NULL));
	for (int i = 0; i < FRAMES; i++) {
		const struct frame *f = &frames[i];
		char *at =
			f->is_place ? places + f->i * PLACE + 100 : series + f->i * FUNCTION + 20;
		struct code_found found;
		check(code_runtime_find(rt, (uintptr_t)at, &found, NULL));
		check_frame(f, now_at(f), &found, n);
	}
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* One processor only: then they take turns. */
	sched_setaffinity(0, sizeof(set), &set);
}

static int start_writer(void)
{
	int pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(0);
		write_for_ever();
	}
	return pid;
}

static void read_all(int pid, uint64_t n_walks, uint64_t n_rows, struct counts *n,
		     uint64_t *ret_walks)
{
	struct code_space *space;
	struct code_runtime *rt;
	uint64_t x = 1234567, done = 0;
	check(code_space_open_pid(pid, 1, &space, NULL));
	check(code_runtime_new(code_memory_of_process(pid), pid, EM_X86_64, &rt, NULL));
	for (; done < n_walks || truth->n_rows < n_rows ||
	       (n->right < n_walks / 2 && done < PATIENCE * n_walks);
	     done++) {
		if (done % REFRESH == 0) {
			check(code_space_refresh_pid(space, pid, NULL));
			check(code_runtime_prepare(rt, space, NULL));
		}
		if (waitpid(pid, NULL, WNOHANG)) {
			puts("not ok the writer goes on");
			exit(1);
		}
		walk(rt, pid, done % STOPPED == 0, &x, n);
	}
	code_runtime_free(rt);
	code_space_free(space);
	*ret_walks = done;
}

static char *map(size_t n, int protection, int flags)
{
	char *at = mmap(NULL, n, protection, flags | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		exit(1);
	return at;
}

int main(int argc, char **argv)
{
	uint64_t n_walks = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000,
		 n_rows = argc > 2 ? strtoull(argv[2], NULL, 0) : 100000000;
	struct counts n = {0};
	uint64_t walks;
	truth = (void *)map(sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED);
	places = map(PLACES * PLACE, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	series = map(SERIES * FUNCTION, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	passing = map(4096, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	int pid = start_writer();
	pin(1);
	while (!truth->series && !waitpid(pid, NULL, WNOHANG))
		usleep(1000);
	read_all(pid, n_walks, n_rows, &n, &walks);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	printf("%llu rows written, %llu walks of %d frames: %llu right, %llu of them with their "
	       "name, %llu told as freed meanwhile, %llu where"
	       " nothing was, %llu moved during a copy; %llu wrong, %llu missing\n",
	       (unsigned long long)truth->n_rows, (unsigned long long)walks, FRAMES,
	       (unsigned long long)n.right, (unsigned long long)n.named,
	       (unsigned long long)n.refused, (unsigned long long)n.nothing,
	       (unsigned long long)n.moved, (unsigned long long)n.wrong,
	       (unsigned long long)n.missing);
	printf("%s no_frame_of_another_generation\n",
	       n.wrong || n.right < n_walks / 2 ? "not ok" : "ok");
	printf("%s nothing_that_is_there_is_missing\n", n.missing ? "not ok" : "ok");
	return n.wrong || n.missing;
}
