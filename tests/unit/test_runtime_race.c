/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that is read while it goes on: an honest one that frees and reuses code as fast as it
 * can, and hostile ones
 *
 * Of the honest one every answer is compared with what the code itself says: its rule and its name
 * have the same number. Of the hostile ones it is claimed that reading ends, and that nothing is
 * trusted that contradicts the mappings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cairn/code.h>
#include <cairn/jit/jit.h>

#include "code/runtime.h"

enum { SLOTS = 8, SLOT = 256, REGION = 1 << 16, NUMBERS = 1000, LOOKS = 1500, SECONDS = 100 };

static char *region;

static int start(void (*run)(void))
{
	int ready[2], pid;
	char c;
	assert_return_code(pipe(ready), errno);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], "r", 1) == 1)
			run();
		_exit(1);
	}
	assert_return_code(pid, errno);
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(int pid)
{
	int status;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* It was still there: it did not fail. */
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Of the processor: how long it takes depends on who else is there. */
static uint64_t spent_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- an honest one ---- */

/* What is at each place now, except where it is changed just now. */
struct truth {
	unsigned int busy, number[SLOTS];
};

static volatile struct truth *truth;

static void publish(struct cairn_jit *jit, unsigned int slot, unsigned int number)
{
	char name[32], *at = region + slot * SLOT;
	struct cairn_jit_info info = {.size = sizeof(info), .name = name};
	struct cairn_jit_frame f;
	snprintf(name, sizeof(name), "%u %u", slot, number);
	cairn_jit_begin(&f, at);
	cairn_jit_cfa(&f, at + 1, CAIRN_JIT_SP, (int32_t)(16 + 8 * number));
	if (cairn_jit_publish(jit, &f, at + SLOT - slot, &info))
		_exit(2);
}

static void reuse_for_ever(void)
{
	struct cairn_jit_opts opts = {sizeof(opts), "race", CAIRN_JIT_COPY_NAMES};
	struct cairn_jit *jit;
	if (cairn_jit_open(region, REGION, &opts, &jit))
		_exit(2);
	for (unsigned int i = 0;; i++) {
		unsigned int slot = i * 5 % SLOTS;
		truth->busy = slot;
		cairn_jit_withdraw(jit, region + slot * SLOT, region + (slot + 1) * SLOT);
		publish(jit, slot, i % NUMBERS);
		truth->number[slot] = i % NUMBERS;
		truth->busy = SLOTS;
	}
}

struct counts {
	size_t found, named, refused;
};

/* @was: number of the code that was there at the mark; NUMBERS: nobody knows. */
static void check_slot(struct code_runtime *rt, unsigned int slot, unsigned int was,
		       struct counts *n)
{
	struct code_found f;
	unsigned int its_slot, number;
	assert_int_equal(code_runtime_find(rt, (uintptr_t)region + slot * SLOT + 100, &f, NULL), 0);
	/* Memory that the registry is not yet there for, or not any more. */
	if (f.unwind != CAIRN_CODE_UNWIND_ROWS) {
		n->refused++;
		return;
	}
	int32_t cfa = ((const struct cairn_unwind_rule *)f.rule.words)->off;
	assert_true(cfa >= 16 && cfa % 8 == 0 && cfa < 16 + 8 * NUMBERS);
	assert_true(was == NUMBERS || cfa == (int32_t)(16 + 8 * was));
	n->found++;
	if (!f.n_functions || !f.functions[0].name)
		return;
	assert_int_equal(sscanf(f.functions[0].name, "%u %u", &its_slot, &number), 2);
	assert_int_equal(its_slot, slot);
	assert_int_equal(16 + 8 * number, cfa);
	n->named++;
}

static void stop_process(int pid)
{
	int status;
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

/* It is stopped for the mark, and goes on: at once, after the settling, or after it all. */
static void look(struct code_runtime *rt, struct code_space *space, int pid, int i,
		 struct counts *n)
{
	unsigned int was[SLOTS];
	alarm(SECONDS);
	stop_process(pid);
	for (unsigned int slot = 0; slot < SLOTS; slot++)
		was[slot] = slot == truth->busy ? NUMBERS : truth->number[slot];
	assert_int_equal(code_runtime_prepare(rt, space, NULL), 0);
	assert_int_equal(code_runtime_freeze(rt, NULL), 0);
	if (i % 3 == 0)
		kill(pid, SIGCONT);
	if (i % 6 == 0)
		usleep(200);
	assert_int_equal(code_runtime_resolve(rt, NULL), 0);
	if (i % 3 == 1)
		kill(pid, SIGCONT);
	if (i % 6 == 1)
		usleep(200);
	for (unsigned int slot = 0; slot < SLOTS; slot++)
		check_slot(rt, slot, was[slot], n);
	kill(pid, SIGCONT);
}

static void code_that_is_freed_and_reused_is_never_another_generations(void **state)
{
	int pid = start(reuse_for_ever);
	struct counts n = {0};
	struct code_space *space;
	struct code_runtime *rt;
	assert_int_equal(code_space_open_pid(pid, 1, &space, NULL), 0);
	assert_int_equal(code_runtime_new(code_memory_of_process(pid), pid, EM_X86_64, &rt, NULL),
			 0);
	for (int i = 0; i < LOOKS; i++) {
		if (i < 10 || i % 100 == 0)
			assert_int_equal(code_space_refresh_pid(space, pid, NULL), 0);
		look(rt, space, pid, i, &n);
	}
	print_message("%zu rules, %zu with a name; %zu refused\n", n.found, n.named, n.refused);
	assert_true(n.found > LOOKS && n.named > LOOKS && n.refused > SLOTS);
	code_runtime_free(rt);
	code_space_free(space);
	end(pid);
}

/*
 * Read without being stopped: it is there each time, or it is told that it changes faster than
 * that.
 */
static void what_changes_faster_than_it_is_read_is_told(void **state)
{
	int pid = start(reuse_for_ever);
	struct cairn_code *code;
	size_t n_trusted = 0, n_unsteady = 0;
	assert_int_equal(cairn_code_open_pid(pid, NULL, &code, NULL), 0);
	for (int i = 0; i < 100; i++) {
		const struct cairn_code_range *r =
			cairn_code_find(code, (struct cairn_addr){(uintptr_t)region + 100}, 0);
		alarm(SECONDS);
		bool is_unsteady = cairn_code_note(code, 0) &&
				   strstr(cairn_code_note(code, 0), "faster than they are read");
		bool is_read = r && r->source == CAIRN_CODE_JIT && r->is_trusted && !r->why;
		n_unsteady += is_unsteady;
		n_trusted += is_read;
		/* Before the region is opened there is nothing to tell. */
		assert_true(i < 10 || is_read || is_unsteady);
		assert_int_equal(cairn_code_refresh(code, NULL), 0);
	}
	print_message("%zu times read, %zu times told\n", n_trusted, n_unsteady);
	cairn_code_close(code);
	end(pid);
}

/* ---- hostile ones ---- */

static struct codectl_registry *forge(uint32_t n)
{
	size_t size = 4096 + n * sizeof(struct codectl_entry) + 65536;
	int fd = memfd_create(CODECTL_REGISTRY_NAME, 0);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		_exit(2);
	struct codectl_registry *h = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	*h = (struct codectl_registry){.magic = CODECTL_REGISTRY_MAGIC,
				       .version = CODECTL_REGISTRY_VERSION,
				       .header_size = sizeof(*h),
				       .self = (uintptr_t)h,
				       .size = size,
				       .entries = (uintptr_t)h + 4096,
				       .entry_stride = sizeof(struct codectl_entry),
				       .n_entries = n};
	return h;
}

static uint64_t random_word(void)
{
	static uint64_t x = 88172645463325252u;
	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/* An address where something interesting is: tables, itself, nothing, the region, or any number. */
static uint64_t random_address(const struct codectl_registry *h)
{
	switch (random_word() % 6) {
	case 0:
		return (uintptr_t)h + random_word() % h->size;
	case 1:
		return (uintptr_t)region + random_word() % REGION;
	case 2:
		return 0;
	case 3:
		return (uintptr_t)reuse_for_ever;
	case 4:
		return (uintptr_t)h + 4096;
	default:
		return random_word();
	}
}

static void scribble(struct codectl_registry *h, uint32_t n)
{
	struct codectl_entry *e = (struct codectl_entry *)(uintptr_t)((uintptr_t)h + 4096);
	uint64_t *tables = (uint64_t *)(e + n);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t lo = (uintptr_t)region + random_word() % REGION;
		e[i] = (struct codectl_entry){.epoch = random_word() % 4,
					      .last_epoch = random_word() % 4,
					      .option = (uint32_t)(random_word() % 4)};
		e[i].info.jit = (struct code_jit_info){
			.text_start = random_word() % 4 ? lo : random_address(h),
			.text_end = lo + random_word() % REGION,
			.unwind_head = random_address(h),
			.extended = random_word() % 8 ? CODE_JIT_EXTENDED : 0,
			.symbols_head = random_address(h),
			.lines_head = random_address(h),
			.unwind_start = random_address(h),
			.unwind_end = random_address(h),
			.unwind_kind = (uint32_t)(random_word() % 4),
			.name = random_address(h)};
	}
	for (size_t i = 0; i < 8192; i++)
		tables[i] = random_word() % 3 ? random_word() % 64 : random_address(h);
}

static void change_on_each_read(void)
{
	struct codectl_registry *h = forge(64);
	for (;;) {
		scribble(h, 64);
		h->n_entries = random_word() % 64 ? 64 : (uint32_t)random_word();
		h->entries = (uintptr_t)h + (random_word() % 64 ? 4096 : random_word());
	}
}

/* Under the reader the mapping shrinks, goes, and comes again. */
static void come_and_go(void)
{
	for (;;) {
		struct codectl_registry *h = forge(64);
		size_t size = h->size;
		scribble(h, 64);
		munmap((char *)h + 8192, size - 8192);
		munmap(h, 8192);
	}
}

/* All of its tables are one, which is as long as can be. */
static void cost_as_much_as_can_be(void)
{
	enum { N = 60000, BYTES = 60 << 20 };
	struct codectl_registry *h = forge(N);
	struct codectl_entry *e = (struct codectl_entry *)(uintptr_t)((uintptr_t)h + 4096);
	struct code_jit_table *t =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t n = (BYTES - sizeof(*t)) / 24 * 24;
	*t = (struct code_jit_table){.reserved_len = n, .used_len = n, .stride = 24, .size = 24};
	for (uint32_t i = 0; i < N; i++) {
		e[i] = (struct codectl_entry){.epoch = i + 1, .option = CODE_REGISTER_JIT};
		e[i].info.jit = (struct code_jit_info){.text_start = (uintptr_t)region + i,
						       .text_end = (uintptr_t)region + i + 1,
						       .unwind_head = (uintptr_t)t,
						       .extended = CODE_JIT_EXTENDED,
						       .symbols_head = (uintptr_t)t,
						       .lines_head = (uintptr_t)t};
	}
	for (;;)
		pause();
}

/* What is trusted lies where no file is, and is not more than can be. */
static void check_ranges(const struct cairn_code *code)
{
	for (size_t i = 0; i < cairn_code_n_ranges(code); i++) {
		const struct cairn_code_range *r = cairn_code_range(code, i);
		assert_true(r->lo.v < r->hi.v || !r->is_trusted);
		assert_true(r->is_trusted || r->why);
		if (r->source == CAIRN_CODE_JIT && r->is_trusted)
			assert_true(r->hi.v - r->lo.v <= UINT64_C(1) << 32);
	}
	const struct cairn_code_range *own =
		cairn_code_find(code, (struct cairn_addr){(uintptr_t)reuse_for_ever}, 0);
	assert_true(own && own->source == CAIRN_CODE_FILE);
}

static void read_hostile(void (*run)(void), int n, uint64_t max_ns)
{
	int pid = start(run);
	struct cairn_code *code;
	struct cairn_err err = {0};
	uint64_t begin = spent_ns();
	if (cairn_code_open_pid(pid, NULL, &code, &err) < 0)
		fail_msg("%s", err.msg);
	for (int i = 0; i < n; i++) {
		struct cairn_frame frames[CAIRN_FRAMES_MAX];
		alarm(SECONDS);
		check_ranges(code);
		for (uint64_t off = 0; off < REGION; off += 4093)
			assert_true(cairn_code_frames(code,
						      (struct cairn_addr){(uintptr_t)region + off},
						      frames, CAIRN_FRAMES_MAX, NULL, &err) >= 0);
		if (cairn_code_refresh(code, &err) < 0)
			fail_msg("%s", err.msg);
	}
	assert_true(spent_ns() - begin < max_ns);
	cairn_code_close(code);
	end(pid);
}

enum { SECOND = 1000000000 };

static void a_registry_that_changes_on_each_read_is_read_in_bounded_time(void **state)
{
	read_hostile(change_on_each_read, 100, UINT64_C(60) * SECOND);
}

static void a_mapping_that_comes_and_goes_is_read_in_bounded_time(void **state)
{
	read_hostile(come_and_go, 300, UINT64_C(60) * SECOND);
}

static void tables_that_are_shared_by_all_regions_are_read_up_to_a_limit(void **state)
{
	read_hostile(cost_as_much_as_can_be, 1, UINT64_C(60) * SECOND);
}

static int make_region(void **state)
{
	region = mmap(NULL, REGION, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	return region == MAP_FAILED || truth == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_that_is_freed_and_reused_is_never_another_generations),
		cmocka_unit_test(what_changes_faster_than_it_is_read_is_told),
		cmocka_unit_test(a_registry_that_changes_on_each_read_is_read_in_bounded_time),
		cmocka_unit_test(a_mapping_that_comes_and_goes_is_read_in_bounded_time),
		cmocka_unit_test(tables_that_are_shared_by_all_regions_are_read_up_to_a_limit),
	};
	alarm(SECONDS);
	return cmocka_run_group_tests(tests, make_region, NULL);
}
