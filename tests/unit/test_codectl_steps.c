/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that is stopped, or killed, at any instruction
 *
 * A child registers, removes, publishes and withdraws, one instruction at a time. After each of
 * them it is read from outside, and must say what was so before the call that it is in, or what is
 * so after it. That is what a kill at this instruction leaves, too: memory does not change any more
 * then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cairn/jit/codectl.h>
#include <cairn/jit/jit.h>

#include "between.h"
#include "code/jit_table.h"
#include "code/maps.h"
#include "code/registry.h"

#define REGION UINT64_C(0x300000000)

enum verb { ADD, REMOVE, OPEN, PUBLISH, WITHDRAW, CLOSE };

struct call {
	enum verb verb;
	unsigned int what; /* an object, or a function */
};

/* From the first call of a process on: its registry is made. */
static const struct call first_calls[] = {
	{ADD, 0}, {REMOVE, 0}, {OPEN, 0}, {PUBLISH, 0}, {CLOSE, 0}};

/* After so many removals that places are used again. */
/* clang-format off */
static const struct call later_calls[] = {
	{ADD, 0}, {ADD, 1}, {REMOVE, 0}, {ADD, 2}, {ADD, 0}, {REMOVE, 2}, {OPEN, 0},
	{PUBLISH, 0},  /* the first name: a table more, so a new generation */
	{PUBLISH, 1},  /* after it */
	{WITHDRAW, 0},
	{PUBLISH, 2},  /* where the first one was: a new generation */
	{PUBLISH, 3},  /* before all: the region's first table changes */
	{PUBLISH, 4},  /* in between */
	{WITHDRAW, 1}, {CLOSE, 0}, {REMOVE, 1},
};
/* clang-format on */

struct script {
	const struct call *calls;
	int n;
};

static const struct script first_script = {first_calls,
					   sizeof(first_calls) / sizeof(first_calls[0])};
static const struct script later_script = {later_calls,
					   sizeof(later_calls) / sizeof(later_calls[0])};

enum {
	N_OBJECTS = 3,
	N_FUNCTIONS = 5,
	PLACES = CODECTL_MIN_REMOVED + N_OBJECTS + 8,
	MAX_STEPS = 2000000,
	SECONDS = 100, /* between two looks */
};

/* Sanitizers make many instructions of one, and readers slow: every so many of them then. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 31 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { STRIDE = 31 };
#else
enum { STRIDE = 1 };
#endif
#else
enum { STRIDE = 1 };
#endif

/*
 * Else its allocator asks for the time. Below a hypervisor the time has a version, which steps
 * change, so that the kernel's function for it begins anew many times: 2 million steps were seen.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_release_to_os_interval_ms=-1";
}

static const char *const paths[N_OBJECTS] = {
	"/usr/lib/a.so", "/usr/lib/b.so",
	"/a/path/that/needs/another/block/than/the/one/that/is/there/c.so"};

static const struct {
	uint32_t off, size;
	int32_t cfa;
	const char *name;
} functions[N_FUNCTIONS] = {
	{1000, 200, 32, "first"}, {2000, 200, 48, "second"}, {1100, 60, 64, "third"},
	{500, 100, 80, "fourth"}, {1500, 100, 96, "fifth"},
};

static uint64_t object_at(unsigned int i)
{
	return (i + 1) * UINT64_C(0x10000000);
}

/* ---- the child ---- */

/*
 * The vDSO reads the clock again when the kernel's tick changed it meanwhile. One instruction at a
 * time, a read takes longer than a tick and never ends. A system call is one instruction.
 */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	return (int)syscall(SYS_clock_gettime, clock, ret);
}

static struct cairn_jit *jit;

static int do_publish(unsigned int i)
{
	struct cairn_jit_line line = {0, i + 1, "file"};
	struct cairn_jit_info info = {sizeof(info), functions[i].name, NULL, 0, &line, 1};
	struct cairn_jit_frame f;
	char *start = (char *)(uintptr_t)REGION + functions[i].off;
	cairn_jit_begin(&f, start);
	cairn_jit_cfa(&f, start + 10, CAIRN_JIT_SP, functions[i].cfa);
	cairn_jit_cfa(&f, start + 50, CAIRN_JIT_SP, 8);
	return cairn_jit_publish(jit, &f, start + functions[i].size, &info);
}

static long do_add(uint64_t at, const char *path)
{
	struct code_elf_info elf = {.elf_start = at,
				    .elf_end = at + 0x10000,
				    .text_start = at + 0x1000,
				    .text_end = at + 0x2000,
				    .pathname = (uintptr_t)path};
	return codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0);
}

static long do_remove(uint64_t at)
{
	struct code_unregister_info range = {at + 0x1000, at + 0x2000};
	return codectl(CODE_UNREGISTER, &range, sizeof(range), 0);
}

static void do_call(const struct call *call)
{
	struct cairn_jit_opts opts = {sizeof(opts), "region", CAIRN_JIT_COPY_NAMES};
	char *start = (char *)(uintptr_t)REGION + functions[call->what].off;
	long rc = 0;
	switch (call->verb) {
	case ADD:
		rc = do_add(object_at(call->what), paths[call->what]);
		break;
	case REMOVE:
		rc = do_remove(object_at(call->what));
		break;
	case OPEN:
		rc = cairn_jit_open((void *)(uintptr_t)REGION, 1 << 20, &opts, &jit);
		break;
	case PUBLISH:
		rc = do_publish(call->what);
		break;
	case WITHDRAW:
		cairn_jit_withdraw(jit, start, start + functions[call->what].size);
		break;
	case CLOSE:
		cairn_jit_close(jit);
		break;
	}
	if (rc)
		_exit(4);
}

static void child(const struct script *script, int n_before, volatile int *at)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(2);
	for (int i = 0; i < n_before; i++)
		if (do_add(0x1000, "/old") || do_remove(0x1000))
			_exit(3);
	raise(SIGSTOP);
	for (*at = 0; *at < script->n; *at = *at + 1)
		do_call(&script->calls[*at]);
	_exit(0);
}

/* ---- what may be found ---- */

struct now {
	bool object[N_OBJECTS], region, function[N_FUNCTIONS];
};

static struct now state_after(const struct script *script, int n_calls)
{
	struct now s = {0};
	for (int i = 0; i < n_calls; i++) {
		const struct call *c = &script->calls[i];
		switch (c->verb) {
		case ADD:
		case REMOVE:
			s.object[c->what] = c->verb == ADD;
			break;
		case OPEN:
		case CLOSE:
			s.region = c->verb == OPEN;
			memset(s.function, 0, sizeof(s.function));
			break;
		case PUBLISH:
		case WITHDRAW:
			s.function[c->what] = c->verb == PUBLISH;
			break;
		}
	}
	return s;
}

/* ---- what is found ---- */

struct looker {
	int pid;
	struct registry r;
	struct jit_tables tables;
	unsigned long n_steps, n_read;
	uint64_t last_epoch;
};

/* Where it is, as soon as there is one. */
static bool find_registry(struct looker *l)
{
	struct code_maps maps;
	if (l->r.lo || code_maps_read(l->pid, &maps, NULL) < 0)
		return l->r.lo;
	for (size_t i = 0; i < maps.p.n; i++)
		if (!strcmp(maps.p.p[i].path, "/memfd:" CODECTL_REGISTRY_NAME)) {
			l->r.lo = maps.p.p[i].lo;
			l->r.hi = maps.p.p[i].hi;
		}
	code_maps_fini(&maps);
	return l->r.lo;
}

/* False when there is none yet; what is there must be sound. */
static bool look(struct looker *l)
{
	struct cairn_err err = {0};
	if (!find_registry(l))
		return false;
	int rc = registry_copy(&l->r, PLACES, &err);
	/* Not complete yet; or the process has ended. */
	if (rc == -ENOENT || rc == -EFAULT)
		return false;
	if (rc < 0)
		fail_msg("instruction %lu: %s", l->n_steps, err.msg);
	assert_int_equal(registry_parse(&l->r, true, NULL), 0);
	assert_int_equal(registry_strings(&l->r, NULL), 0);
	if (registry_check(&l->r, NULL) != 0)
		return false;
	for (size_t i = 0; i < l->r.entries.n; i++)
		if (l->r.entries.p[i].why)
			fail_msg("instruction %lu: entry %zu: %s", l->n_steps, i,
				 l->r.entries.p[i].why);
	l->n_read++;
	return true;
}

static uint64_t text_of(const struct registry_entry *e)
{
	return e->option == CODE_REGISTER_JIT ? e->jit.text_start : e->elf.text_start;
}

/* The valid one that begins there, of two the one with the higher epoch. */
static const struct registry_entry *entry_at(const struct looker *l, uint64_t at)
{
	const struct registry_entry *found = NULL;
	for (size_t i = 0; i < l->r.entries.n; i++) {
		const struct registry_entry *e = &l->r.entries.p[i];
		if (!e->is_removed && text_of(e) == at && (!found || e->epoch > found->epoch))
			found = e;
	}
	return found;
}

/*
 * Every byte of the function has its row: 2; none has the one that no other function has: 0; else
 * 1.
 */
static int coverage(const struct looker *l, unsigned int i)
{
	bool some = false, all = true;
	for (uint32_t k = 0; k < functions[i].size; k++) {
		const struct jit_row *row = jit_row_at(&l->tables, functions[i].off + k);
		bool is_body = k >= 10 && k < 50;
		bool is_mine =
			row && row->cfa_off == (is_body ? functions[i].cfa : 8) && !row->info;
		some |= is_mine && is_body;
		all &= is_mine;
	}
	return all ? 2 : some;
}

static bool has_name(const struct looker *l, unsigned int i)
{
	const struct jit_symbol *s;
	char name[16] = "";
	if (!jit_symbols_at(&l->tables, functions[i].off + 5, &s, 1) ||
	    s->off != functions[i].off || s->size != functions[i].size)
		return false;
	l->r.memory.read(l->r.memory.ctx, s->name, name, sizeof(name) - 1);
	const struct jit_line *line = jit_line_at(&l->tables, functions[i].off + 5);
	return !strcmp(name, functions[i].name) && line && line->line == i + 1;
}

static void check_region(struct looker *l, const struct registry_entry *e, const struct now *before,
			 const struct now *after, bool withdraws)
{
	uint64_t budget = 1 << 30;
	assert_string_equal(e->name, "region");
	assert_int_equal(jit_tables_read(&l->r.memory, &e->jit, &budget, &l->tables, NULL), 0);
	assert_true(!l->tables.rows_why && !l->tables.symbols_why && !l->tables.lines_why);
	for (unsigned int i = 0; i < N_FUNCTIONS; i++) {
		/* Of two at the same place, at most one is there at a time. */
		int found = coverage(l, i);
		if (before->function[i] == after->function[i])
			assert_int_equal(found, before->function[i] ? 2 : 0);
		else if (!withdraws)
			assert_int_not_equal(found, 1);
		if (found == 2 && !withdraws)
			assert_true(has_name(l, i));
	}
}

static void check_object(const struct registry_entry *e, unsigned int i)
{
	assert_int_equal(e->option, CODE_REGISTER_ELF);
	assert_true(e->elf.elf_start == object_at(i) && e->elf.elf_end == object_at(i) + 0x10000);
	assert_true(!e->elf.build_id && !e->elf.unwind_kind && e->since_ns);
	assert_string_equal(e->name, paths[i]);
}

/* What was removed is whole as long as it says that it was something. */
static void check_removed(const struct looker *l)
{
	for (size_t i = 0; i < l->r.entries.n; i++) {
		const struct registry_entry *e = &l->r.entries.p[i];
		if (!e->is_removed)
			continue;
		assert_true(e->since_ns && e->since_ns <= e->until_ns);
		if (e->option == CODE_REGISTER_ELF && e->elf.elf_start != 0x1000)
			check_object(e, (unsigned int)(e->elf.elf_start / 0x10000000) - 1);
	}
}

static void check(struct looker *l, const struct script *script, int at)
{
	struct now before = state_after(script, at),
		   after = state_after(script, at + 1 < script->n ? at + 1 : script->n);
	for (unsigned int i = 0; i < N_OBJECTS; i++) {
		const struct registry_entry *e = entry_at(l, object_at(i) + 0x1000);
		if (before.object[i] == after.object[i])
			assert_int_equal(e != NULL, before.object[i]);
		if (e)
			check_object(e, i);
	}
	const struct registry_entry *region = entry_at(l, REGION);
	if (before.region == after.region)
		assert_int_equal(region != NULL, before.region);
	if (region)
		check_region(l, region, &before, &after,
			     at < script->n && script->calls[at].verb == WITHDRAW);
	check_removed(l);
	for (size_t i = 0; i < l->r.entries.n; i++)
		l->last_epoch = l->r.entries.p[i].epoch > l->last_epoch ? l->r.entries.p[i].epoch
									: l->last_epoch;
}

/* ---- step by step ---- */

/* False when it has ended, as it should. */
static bool wait_stopped(int pid)
{
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSTOPPED(status))
		return true;
	assert_int_equal(status, 0);
	return false;
}

static struct looker start(const struct script *script, int n_before, volatile int *at)
{
	fflush(NULL);
	int pid = fork();
	if (pid == 0)
		child(script, n_before, at);
	assert_return_code(pid, errno);
	assert_true(wait_stopped(pid));
	assert_return_code(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL), errno);
	return (struct looker){.pid = pid, .r = {.memory = code_memory_of_process(pid)}};
}

/* Nothing is registered, and nothing was, before the first registry is there. */
static void check_none(const struct script *script, int at)
{
	assert_true(at == 0 || at >= script->n);
}

static void run_script(const struct script *script, int n_before, struct looker *ret)
{
	volatile int *at =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct looker l = start(script, n_before, at);
	while (ptrace(*at < script->n ? PTRACE_SINGLESTEP : PTRACE_CONT, l.pid, NULL, NULL) == 0 &&
	       wait_stopped(l.pid)) {
		l.n_steps++;
		assert_true(l.n_steps < MAX_STEPS);
		if (l.n_steps % STRIDE)
			continue;
		alarm(SECONDS);
		if (look(&l))
			check(&l, script, *at);
		else
			check_none(script, *at);
	}
	assert_int_equal(*at, script->n);
	print_message("%lu instructions, a registry after %lu of them\n", l.n_steps, l.n_read);
	munmap((void *)at, 4096);
	registry_fini(&l.r);
	jit_tables_fini(&l.tables);
	*ret = l;
}

static void every_instruction_of_a_first_call_leaves_no_registry_or_a_sound_one(void **state)
{
	struct looker l;
	run_script(&first_script, 0, &l);
	assert_true(l.n_read > 1000 && l.n_read < l.n_steps / STRIDE);
}

static void every_instruction_leaves_what_was_before_or_what_is_after_it(void **state)
{
	struct looker l;
	run_script(&later_script, CODECTL_MIN_REMOVED, &l);
	assert_true(l.n_steps > 20000 && l.n_read >= l.n_steps / STRIDE);
	/* Five objects, a region, and four generations of it at least. */
	assert_between(l.last_epoch, CODECTL_MIN_REMOVED + 5 + 4, CODECTL_MIN_REMOVED + 5 + 8);
}

/* Each step hands the processor over twice, and waking another CPU costs more than the step. */
static void pin_to_one_cpu(void)
{
	cpu_set_t allowed, one;
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	CPU_ZERO(&one);
	for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--)
		if (CPU_ISSET(cpu, &allowed)) {
			CPU_SET(cpu, &one);
			break;
		}
	sched_setaffinity(0, sizeof(one), &one);
}

int main(void)
{
	/* clang-format off */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instruction_of_a_first_call_leaves_no_registry_or_a_sound_one),
		cmocka_unit_test(every_instruction_leaves_what_was_before_or_what_is_after_it),
	};
	/* clang-format on */
	/* Whatever goes wrong: when no step is made it ends, and the children with it. */
	alarm(SECONDS);
	pin_to_one_cpu();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
