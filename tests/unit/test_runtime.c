/* SPDX-License-Identifier: BSD-2-Clause */
/* Code made at run time, written by the real library in this process or a child, and read from outside. */
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
#include <unistd.h>

#include <cairn/codectl.h>
#include <cairn/jit.h>

#include "alloc_fail.h"
#include "code/runtime.h"

enum { REGION = 1 << 20 };

static char *region; /* executable, and no file's; children have it, too */

struct reader {
	struct code_space *space;
	struct code_runtime *rt;
};

static struct reader open_reader(int pid)
{
	struct reader r;
	assert_int_equal(code_space_open_pid(pid, 1, &r.space, NULL), 0);
	assert_int_equal(code_runtime_new(code_memory_of_process(pid), pid, EM_X86_64, &r.rt, NULL), 0);
	return r;
}

static void mark(struct reader *r, int pid)
{
	assert_int_equal(code_space_refresh_pid(r->space, pid, NULL), 0);
	assert_int_equal(code_runtime_prepare(r->rt, r->space, NULL), 0);
	assert_int_equal(code_runtime_mark(r->rt, NULL), 0);
}

static struct reader look(int pid)
{
	struct reader r = open_reader(pid);
	mark(&r, pid);
	assert_int_equal(code_runtime_settle(r.rt, NULL), 0);
	return r;
}

static void close_reader(struct reader *r)
{
	code_runtime_free(r->rt);
	code_space_free(r->space);
}

static struct code_found find(struct reader *r, const void *at)
{
	struct code_found f;
	assert_int_equal(code_runtime_find(r->rt, (uintptr_t)at, &f, NULL), 0);
	return f;
}

static int32_t cfa_of(const struct code_found *f)
{
	return ((const struct cairn_unwind_rule *)f->rule.words)->off;
}

static const struct cairn_code_range *range_at(const struct reader *r, const void *at, enum cairn_code_source source, bool trusted)
{
	for (size_t i = 0; i < code_runtime_n_ranges(r->rt); i++) {
		const struct cairn_code_range *range = code_runtime_range(r->rt, i);
		if (range->source == source && range->is_trusted == trusted && range->lo.v <= (uintptr_t)at &&
		    range->hi.v > (uintptr_t)at && !range->is_removed)
			return range;
	}
	return NULL;
}

static bool has_note(const struct reader *r, const char *says)
{
	for (size_t i = 0; code_runtime_note(r->rt, i); i++)
		if (strstr(code_runtime_note(r->rt, i), says))
			return true;
	return false;
}

/* ---- a process ---- */

static struct cairn_jit *open_region(uint32_t flags)
{
	struct cairn_jit_opts opts = {sizeof(opts), "traces", flags};
	struct cairn_jit *jit;
	if (cairn_jit_open(region, REGION, &opts, &jit) != 0)
		abort();
	return jit;
}

static void publish(struct cairn_jit *jit, size_t off, uint32_t size, int32_t cfa, const char *name)
{
	struct cairn_jit_info info = {.size = sizeof(info), .name = name};
	struct cairn_jit_frame frame;
	cairn_jit_begin(&frame, region + off);
	cairn_jit_cfa(&frame, region + off + 1, CAIRN_JIT_SP, cfa);
	if (cairn_jit_publish(jit, &frame, region + off + size, &info) != 0)
		abort();
}

static void withdraw(struct cairn_jit *jit, size_t off, uint32_t size)
{
	cairn_jit_withdraw(jit, region + off, region + off + size);
}

static long add_elf(const void *lo, size_t n, const char *path, const void *id, uint32_t n_id)
{
	uint64_t at = (uintptr_t)lo;
	struct code_elf_info elf = {.elf_start = at, .elf_end = at + n, .text_start = at, .text_end = at + n,
				    .pathname = (uintptr_t)path, .build_id = (uintptr_t)id, .build_id_len = n_id};
	return codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0);
}

static void remove_range(const void *lo, size_t n)
{
	struct code_unregister_info range = {(uintptr_t)lo, (uintptr_t)lo + n};
	if (codectl(CODE_UNREGISTER, &range, sizeof(range), 0))
		abort();
}

/* ---- a child that does as it is told, a byte at a time ---- */

struct child {
	int pid, to, from;
};

static struct child start_child(void (*step)(char what))
{
	int to[2], from[2];
	assert_return_code(pipe(to), errno);
	assert_return_code(pipe(from), errno);
	int pid = fork();
	if (pid == 0) {
		char c;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		close(to[1]);
		close(from[0]);
		while (read(to[0], &c, 1) == 1) {
			step(c);
			if (write(from[1], &c, 1) != 1)
				break;
		}
		_exit(0);
	}
	assert_return_code(pid, errno);
	close(to[0]);
	close(from[1]);
	return (struct child){pid, to[1], from[0]};
}

static void tell(const struct child *c, char what)
{
	char done = 0;
	assert_int_equal(write(c->to, &what, 1), 1);
	assert_int_equal(read(c->from, &done, 1), 1);
	assert_int_equal(done, what);
}

static void end_child(const struct child *c)
{
	close(c->to);
	close(c->from);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
}

/* ---- claims ---- */

static struct cairn_jit *jit; /* of the child */

static void step_publish(char what)
{
	switch (what) {
	case 'o':
		jit = open_region(CAIRN_JIT_COPY_NAMES);
		break;
	case 'a':
		publish(jit, 1000, 100, 32, "first");
		break;
	case 'b':
		publish(jit, 2000, 100, 48, "second");
		break;
	case 'r': /* another function at the first one's place */
		withdraw(jit, 1000, 100);
		publish(jit, 1000, 100, 64, "third");
		break;
	case 'w':
		withdraw(jit, 1000, 100);
		break;
	case 'c':
		cairn_jit_close(jit);
		break;
	case 'f':
		jit = open_region(CAIRN_JIT_FRAME_POINTERS);
		break;
	}
}

static void a_function_is_found_with_its_rule_and_name(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 1050);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_ROWS);
	assert_int_equal(cfa_of(&f), 32);
	assert_int_equal(f.n_functions, 1);
	assert_string_equal(f.functions[0].function, "first");
	assert_true(f.has_off && f.off == 50);
	assert_string_equal(f.range->owner, "traces");
	assert_true(f.range->source == CAIRN_CODE_JIT && f.range->is_trusted && f.range->generation);
	f = find(&r, region + 1000);
	assert_int_equal(cfa_of(&f), 8);
	close_reader(&r);
	end_child(&c);
}

/* Rows are there for other code: to assume a frame pointer for this would be against what its owner says. */
static void nothing_is_assumed_where_the_owner_describes_other_code(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 5000);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_NONE);
	assert_non_null(strstr(f.why, "and not this"));
	tell(&c, 'c');
	tell(&c, 'f');
	close_reader(&r);
	r = look(c.pid);
	f = find(&r, region + 5000);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_FP);
	assert_null(f.why);
	close_reader(&r);
	end_child(&c);
}

static void memory_that_nobody_describes_is_assumed_to_keep_a_frame_pointer(void **state)
{
	struct child c = start_child(step_publish);
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 5000);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_ASSUMED);
	assert_int_equal(cfa_of(&f), 16);
	assert_int_equal(f.range->source, CAIRN_CODE_ANONYMOUS);
	close_reader(&r);
	end_child(&c);
}

/* What was there at the mark is not taken for what is there when the tables are read. */
static void code_that_was_made_anew_since_the_mark_has_no_rule(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = open_reader(c.pid);
	mark(&r, c.pid);
	tell(&c, 'r');
	assert_int_equal(code_runtime_settle(r.rt, NULL), 0);
	struct code_found f = find(&r, region + 1050);
	assert_int_equal(f.n_functions, 0);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_NONE);
	assert_non_null(strstr(f.why, "since"));
	assert_false(code_runtime_is_steady(r.rt));
	/* At another mark it is there. */
	mark(&r, c.pid);
	assert_int_equal(code_runtime_settle(r.rt, NULL), 0);
	f = find(&r, region + 1050);
	assert_int_equal(cfa_of(&f), 64);
	assert_string_equal(f.functions[0].name, "third");
	assert_true(code_runtime_is_steady(r.rt));
	close_reader(&r);
	end_child(&c);
}

static void code_that_was_made_anew_since_the_settling_has_no_rule(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = look(c.pid);
	tell(&c, 'r');
	struct code_found f = find(&r, region + 1050);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_NONE);
	assert_non_null(strstr(f.why, "since"));
	assert_int_equal(f.n_functions, 0);
	close_reader(&r);
	end_child(&c);
}

/* In one epoch an address is described once: what was read of it stays right for stacks of that epoch. */
static void what_was_read_of_an_epoch_stays_known(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 1050);
	assert_int_equal(cfa_of(&f), 32);
	uint64_t generation = f.range->generation;
	mark(&r, c.pid);
	tell(&c, 'r');
	assert_int_equal(code_runtime_settle(r.rt, NULL), 0);
	f = find(&r, region + 1050);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_ROWS);
	assert_int_equal(cfa_of(&f), 32);
	assert_int_equal(f.range->generation, generation);
	close_reader(&r);
	end_child(&c);
}

/* As stacks are taken: what they lead to is read while nothing runs. */
static void what_was_caught_at_the_mark_outlives_its_code(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = open_reader(c.pid);
	mark(&r, c.pid);
	/* Words of a stack, at any alignment: most are something else. */
	const uint64_t words[] = {0, 1, UINT64_MAX, (uintptr_t)region - 1, (uintptr_t)region + 1050, (uintptr_t)region + REGION + 1};
	uint8_t bytes[sizeof(words) + 1];
	memcpy(bytes + 1, words, sizeof(words));
	assert_int_equal(code_runtime_catch(r.rt, bytes + 1, sizeof(words) / sizeof(*words), NULL), 0);
	tell(&c, 'r');
	assert_int_equal(code_runtime_settle(r.rt, NULL), 0);
	struct code_found f = find(&r, region + 1050);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_ROWS);
	assert_int_equal(cfa_of(&f), 32);
	assert_int_equal(f.n_functions, 1);
	assert_string_equal(f.functions[0].name, "first");
	/* The next mark is another moment. */
	mark(&r, c.pid);
	assert_int_equal(code_runtime_catch(r.rt, words, sizeof(words) / sizeof(*words), NULL), 0);
	assert_int_equal(code_runtime_settle(r.rt, NULL), 0);
	f = find(&r, region + 1050);
	assert_int_equal(cfa_of(&f), 64);
	assert_string_equal(f.functions[0].name, "third");
	close_reader(&r);
	end_child(&c);
}

/* A region that keeps its epoch is read once, and again when it has grown. */
static void a_region_that_grew_is_caught_with_what_is_new(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = open_reader(c.pid);
	const uint64_t words[] = {(uintptr_t)region + 1050, (uintptr_t)region + 2050};
	for (size_t i = 0; i < 3; i++) {
		mark(&r, c.pid);
		assert_int_equal(code_runtime_catch(r.rt, words, i < 2 ? 1 : 2, NULL), 0);
		if (i == 1)
			tell(&c, 'b');
		assert_int_equal(code_runtime_settle(r.rt, NULL), 0);
	}
	tell(&c, 'r');
	struct code_found f = find(&r, region + 2050);
	assert_int_equal(cfa_of(&f), 48);
	assert_string_equal(f.functions[0].name, "second");
	f = find(&r, region + 1050);
	assert_string_equal(f.functions[0].name, "first");
	close_reader(&r);
	end_child(&c);
}

static void tables_that_grow_are_read_again_when_they_are_asked(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 1050);
	tell(&c, 'b');
	mark(&r, c.pid);
	assert_int_equal(code_runtime_settle(r.rt, NULL), 0);
	f = find(&r, region + 2050);
	assert_int_equal(cfa_of(&f), 48);
	assert_string_equal(f.functions[0].name, "second");
	close_reader(&r);
	end_child(&c);
}

static void a_region_that_was_closed_is_shown_as_removed(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	tell(&c, 'c');
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 1050);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_ASSUMED);
	size_t n = 0;
	for (size_t i = 0; i < code_runtime_n_ranges(r.rt); i++) {
		const struct cairn_code_range *range = code_runtime_range(r.rt, i);
		if (range->source != CAIRN_CODE_JIT)
			continue;
		assert_true(range->is_removed && range->until_ns >= range->since_ns);
		assert_string_equal(range->owner, "traces");
		n++;
	}
	assert_true(n > 0);
	close_reader(&r);
	end_child(&c);
}

/* ---- verified against the mappings ---- */

static void step_lie(char what)
{
	static const uint8_t id[20] = {1, 2, 3};
	switch (what) {
	case 'm': /* a JIT where a file is mapped: this program's code */
		if (cairn_jit_open((void *)((uintptr_t)step_lie & ~UINT64_C(4095)), 4096, NULL, &jit))
			abort();
		break;
	case 'n':
		if (cairn_jit_open((void *)0x10000, 4096, NULL, &jit))
			abort();
		break;
	case 'p': /* another file's name */
		if (add_elf((void *)((uintptr_t)step_lie & ~UINT64_C(4095)), 4096, "/usr/bin/sudo", NULL, 0))
			abort();
		break;
	case 'i':
		if (add_elf((void *)((uintptr_t)step_lie & ~UINT64_C(4095)), 4096, "/proc/self/exe", id, 20))
			abort();
		break;
	case 't': /* the truth, by another name */
		if (add_elf((void *)((uintptr_t)step_lie & ~UINT64_C(4095)), 4096, "/tmp/test_runtime.link", NULL, 0))
			abort();
		break;
	case 'l': /* more than there is */
		if (add_elf((void *)((uintptr_t)step_lie & ~UINT64_C(4095)), 1 << 30, NULL, NULL, 0))
			abort();
		break;
	}
}

static void what_contradicts_the_mappings_is_shown_and_not_trusted(void **state)
{
	static const struct {
		char what;
		enum cairn_code_source source;
		const char *says;
	} lies[] = {
		{'m', CAIRN_CODE_JIT, "test_runtime is mapped there"},
		{'n', CAIRN_CODE_JIT, "nothing is mapped there"},
		{'p', CAIRN_CODE_ELF, "test_runtime is mapped there"},
		{'i', CAIRN_CODE_ELF, "build-id is not that"},
		{'l', CAIRN_CODE_ELF, "less code"},
	};
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct child c = start_child(step_lie);
		tell(&c, lies[i].what);
		struct reader r = look(c.pid);
		const void *at = lies[i].what == 'n' ? (void *)0x10000 : (void *)((uintptr_t)step_lie & ~UINT64_C(4095));
		const struct cairn_code_range *range = range_at(&r, at, lies[i].source, false);
		assert_non_null(range);
		assert_non_null(strstr(range->why, lies[i].says));
		assert_null(range_at(&r, at, lies[i].source, true));
		struct code_found f = find(&r, at);
		assert_null(f.range);
		close_reader(&r);
		end_child(&c);
	}
}

static void another_name_of_the_same_file_is_no_contradiction(void **state)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(n > 0);
	path[n] = 0;
	unlink("/tmp/test_runtime.link");
	assert_return_code(symlink(path, "/tmp/test_runtime.link"), errno);
	struct child c = start_child(step_lie);
	tell(&c, 't');
	struct reader r = look(c.pid);
	assert_non_null(range_at(&r, (void *)((uintptr_t)step_lie & ~UINT64_C(4095)), CAIRN_CODE_ELF, true));
	unlink("/tmp/test_runtime.link");
	close_reader(&r);
	end_child(&c);
}

/* ---- overlaps, which the library never makes but in a renewal ---- */

/* Entries as another writer could leave them: a registry of two regions that are both valid. */
static struct codectl_registry *forge(size_t n_entries, int share)
{
	size_t size = 4096 + n_entries * sizeof(struct codectl_entry) + 4096;
	int fd = memfd_create(CODECTL_REGISTRY_NAME, 0);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		abort();
	struct codectl_registry *h = mmap(NULL, size, PROT_READ | PROT_WRITE, share, fd, 0);
	close(fd);
	*h = (struct codectl_registry){.magic = CODECTL_REGISTRY_MAGIC, .version = CODECTL_REGISTRY_VERSION,
				       .header_size = sizeof(*h), .self = (uintptr_t)h, .size = size,
				       .entries = (uintptr_t)h + 4096, .entry_stride = sizeof(struct codectl_entry),
				       .n_entries = (uint32_t)n_entries};
	return h;
}

static struct codectl_entry *entry_of(struct codectl_registry *h, size_t i)
{
	return (struct codectl_entry *)(uintptr_t)h->entries + i;
}

static void put_jit(struct codectl_registry *h, size_t i, uint64_t epoch, size_t lo, size_t hi, uint32_t flags)
{
	*entry_of(h, i) = (struct codectl_entry){.epoch = epoch, .since_ns = 1, .option = CODE_REGISTER_JIT};
	entry_of(h, i)->info.jit = (struct code_jit_info){.text_start = (uintptr_t)region + lo,
							  .text_end = (uintptr_t)region + hi,
							  .extended = CODE_JIT_EXTENDED, .flags = flags};
}

static void step_overlap(char what)
{
	struct codectl_registry *h;
	switch (what) {
	case 'g': /* generations: the newer one comes first */
		h = forge(2, MAP_PRIVATE);
		put_jit(h, 0, 7, 0, 4096, CODE_JIT_FRAME_POINTER);
		put_jit(h, 1, 5, 0, 4096, CODE_JIT_FRAME_POINTER);
		break;
	case 'a': /* an assumption, and what is said within it, earlier */
		h = forge(2, MAP_PRIVATE);
		put_jit(h, 0, 1, 4096, 8192, CODE_JIT_FRAME_POINTER);
		put_jit(h, 1, 2, 0, 65536, CODE_JIT_FRAME_POINTER | CODE_JIT_ASSUMED);
		break;
	case 's':
		h = forge(1, MAP_SHARED);
		put_jit(h, 0, 7, 0, 4096, CODE_JIT_FRAME_POINTER);
		break;
	case 'm': /* a million */
		h = forge(1000000, MAP_PRIVATE);
		for (size_t i = 0; i < 1000000; i++)
			put_jit(h, i, i + 1, i % REGION, i % REGION + 1, 0);
		break;
	}
}

static void of_registrations_that_overlap_the_higher_epoch_counts(void **state)
{
	struct child c = start_child(step_overlap);
	tell(&c, 'g');
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 100);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_FP);
	assert_int_equal(f.range->generation, 7);
	const struct cairn_code_range *older = range_at(&r, region + 100, CAIRN_CODE_JIT, false);
	assert_non_null(older);
	assert_int_equal(older->generation, 5);
	assert_non_null(strstr(older->why, "superseded"));
	close_reader(&r);
	end_child(&c);
}

static void what_is_said_counts_before_what_is_assumed(void **state)
{
	struct child c = start_child(step_overlap);
	tell(&c, 'a');
	struct reader r = look(c.pid);
	assert_int_equal(find(&r, region + 4095).range->generation, 2);
	assert_int_equal(find(&r, region + 4095).unwind, CAIRN_CODE_UNWIND_ASSUMED);
	assert_int_equal(find(&r, region + 4096).range->generation, 1);
	assert_int_equal(find(&r, region + 8191).unwind, CAIRN_CODE_UNWIND_FP);
	assert_int_equal(find(&r, region + 8192).range->generation, 2);
	close_reader(&r);
	end_child(&c);
}

static void a_shared_registry_is_refused_with_words(void **state)
{
	struct child c = start_child(step_overlap);
	tell(&c, 's');
	struct reader r = look(c.pid);
	assert_true(has_note(&r, "shared mapping"));
	assert_null(range_at(&r, region, CAIRN_CODE_JIT, true));
	close_reader(&r);
	end_child(&c);
}

static void of_a_million_registrations_it_is_told_what_is_left_out(void **state)
{
	struct child c = start_child(step_overlap);
	tell(&c, 'm');
	struct reader r = look(c.pid);
	assert_true(has_note(&r, "1000000 entries; the first 65536 are read, 934464 are left out"));
	assert_int_equal(find(&r, region + 100).range->generation, 101);
	assert_int_equal(code_runtime_load_all(r.rt, NULL), 0);
	close_reader(&r);
	end_child(&c);
}

/* ---- hostile registries in a real process ---- */

static void step_damage(char what)
{
	struct codectl_registry *h = forge(4, MAP_PRIVATE);
	put_jit(h, 0, 7, 0, 4096, CODE_JIT_FRAME_POINTER);
	switch (what) {
	case 'v':
		h->version = 9;
		break;
	case 'n':
		h->n_entries = UINT32_MAX;
		break;
	case 'u': /* its entries' pages are not there any more */
		if (munmap((char *)h + 4096, 4096))
			abort();
		break;
	}
}

static void a_damaged_registry_is_told_in_words(void **state)
{
	static const struct {
		char what;
		const char *says;
	} cases[] = {{'v', "of version 9"}, {'n', "4294967295 entries"}, {'u', "in a mapping of"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct child c = start_child(step_damage);
		tell(&c, cases[i].what);
		struct reader r = look(c.pid);
		assert_true(has_note(&r, cases[i].says));
		assert_null(range_at(&r, region, CAIRN_CODE_JIT, true));
		close_reader(&r);
		end_child(&c);
	}
}

/* Between the mark, which looked at it, and the settling. */
static void step_go_away(char what)
{
	static struct codectl_registry *h;
	if (what == 'a') {
		h = forge(4, MAP_PRIVATE);
		put_jit(h, 0, 7, 0, 4096, CODE_JIT_FRAME_POINTER);
	} else {
		munmap(h, h->size);
	}
}

static void a_registry_that_goes_away_leaves_nothing_that_is_trusted(void **state)
{
	struct child c = start_child(step_go_away);
	tell(&c, 'a');
	struct reader r = open_reader(c.pid);
	mark(&r, c.pid);
	tell(&c, 'b');
	assert_int_equal(code_runtime_settle(r.rt, NULL), 0);
	assert_null(range_at(&r, region, CAIRN_CODE_JIT, true));
	const struct cairn_code_range *range = range_at(&r, region, CAIRN_CODE_JIT, false);
	assert_non_null(range);
	assert_non_null(strstr(range->why, "while it was read"));
	close_reader(&r);
	end_child(&c);
}

static void every_allocation_may_fail(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	add_elf(region, 4096, "x", NULL, 0);
	for (unsigned int n = 1;; n++) {
		struct reader r = open_reader(c.pid);
		struct code_found f;
		const uint64_t word = (uintptr_t)region + 1050;
		mark(&r, c.pid);
		alloc_fail_at(n);
		int rc = code_runtime_catch(r.rt, &word, 1, NULL);
		if (rc == 0)
			rc = code_runtime_settle(r.rt, NULL);
		if (rc == 0)
			rc = code_runtime_find(r.rt, (uintptr_t)region + 1050, &f, NULL);
		bool failed = alloc_fail_end();
		close_reader(&r);
		if (!failed)
			break;
		assert_true(rc == -ENOMEM || rc == 0);
		assert_true(n < 10000);
	}
	remove_range(region, 4096);
	end_child(&c);
}

static void what_is_listed_may_fail_at_every_allocation(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	for (unsigned int n = 1;; n++) {
		struct cairn_code *code = NULL;
		struct cairn_err err = {0};
		alloc_fail_at(n);
		int rc = cairn_code_open_pid(c.pid, NULL, &code, &err);
		bool failed = alloc_fail_end();
		if (rc == 0)
			assert_true(cairn_code_n_ranges(code) > 0);
		else
			assert_true(rc == -ENOMEM && err.msg[0]);
		cairn_code_close(rc == 0 ? code : NULL);
		if (!failed)
			break;
		assert_true(n < 10000);
	}
	end_child(&c);
}

static int make_region(void **state)
{
	region = mmap(NULL, REGION, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return region == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_found_with_its_rule_and_name),
		cmocka_unit_test(nothing_is_assumed_where_the_owner_describes_other_code),
		cmocka_unit_test(memory_that_nobody_describes_is_assumed_to_keep_a_frame_pointer),
		cmocka_unit_test(code_that_was_made_anew_since_the_mark_has_no_rule),
		cmocka_unit_test(code_that_was_made_anew_since_the_settling_has_no_rule),
		cmocka_unit_test(what_was_read_of_an_epoch_stays_known),
		cmocka_unit_test(what_was_caught_at_the_mark_outlives_its_code),
		cmocka_unit_test(a_region_that_grew_is_caught_with_what_is_new),
		cmocka_unit_test(tables_that_grow_are_read_again_when_they_are_asked),
		cmocka_unit_test(a_region_that_was_closed_is_shown_as_removed),
		cmocka_unit_test(what_contradicts_the_mappings_is_shown_and_not_trusted),
		cmocka_unit_test(another_name_of_the_same_file_is_no_contradiction),
		cmocka_unit_test(of_registrations_that_overlap_the_higher_epoch_counts),
		cmocka_unit_test(what_is_said_counts_before_what_is_assumed),
		cmocka_unit_test(a_shared_registry_is_refused_with_words),
		cmocka_unit_test(of_a_million_registrations_it_is_told_what_is_left_out),
		cmocka_unit_test(a_damaged_registry_is_told_in_words),
		cmocka_unit_test(a_registry_that_goes_away_leaves_nothing_that_is_trusted),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(what_is_listed_may_fail_at_every_allocation),
	};
	return cmocka_run_group_tests(tests, make_region, NULL);
}
