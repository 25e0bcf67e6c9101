/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walk that runs in the kernel, held against the library's: the same rule for every row of this
 * machine's libraries, the same caller for every rule, the same stack of this thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <cairn/backtrace.h>
#include <cairn/prof.h>
#include <cairn/unwind.h>

#include "code/maps.h"
#include "walk/files.h"
#include "kernel_walk.h"

static_assert((int)WALK_END_COMPLETE == CAIRN_PROF_COMPLETE &&
		      (int)WALK_END_ASSUMED == CAIRN_PROF_ASSUMED &&
		      (int)WALK_END_NO_USER == CAIRN_PROF_NO_USER &&
		      (int)WALK_END_NO_PROCESS == CAIRN_PROF_NO_PROCESS &&
		      (int)WALK_END_NO_MAPPING == CAIRN_PROF_NO_MAPPING &&
		      (int)WALK_END_NOT_READY == CAIRN_PROF_NOT_READY &&
		      (int)WALK_END_UNDESCRIBED == CAIRN_PROF_UNDESCRIBED &&
		      (int)WALK_END_UNREADABLE == CAIRN_PROF_UNREADABLE &&
		      (int)WALK_END_LOST == CAIRN_PROF_LOST &&
		      (int)WALK_END_LOOP == CAIRN_PROF_LOOP &&
		      (int)WALK_END_LIMIT == CAIRN_PROF_LIMIT &&
		      (int)WALK_END_READS == CAIRN_PROF_READS,
	      "the program's ends are those of the header");

/* The memory of a step: words that tell their own address, or that of the test. */
static bool is_made_up;

static uint64_t word_at(uint64_t at)
{
	return at * UINT64_C(0x9e3779b97f4a7c15) >> 1;
}

static long walk_read(void *to, uint32_t n, uint64_t from)
{
	if (is_made_up) {
		for (uint32_t i = 0; i < n; i += 8) {
			uint64_t w = word_at(from + i);
			memcpy((char *)to + i, &w, n - i < 8 ? n - i : 8);
		}
		return 0;
	}
	struct iovec local = {to, n}, remote = {(void *)(uintptr_t)from, n};
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)n ? 0 : -EFAULT;
}

static bool read_made_up(void *ctx, struct cairn_addr at, void *ret, size_t n)
{
	(void)ctx;
	return walk_read(ret, (uint32_t)n, at.v) == 0;
}

static void begin_tables(void)
{
	assert_int_equal(tables_init(&walk_tables, -1, -1, -1, NULL), 0);
	memset(walk_cache, 0, sizeof(walk_cache));
}

/* ---- rows ---- */

static void same_rule(const struct walk_pages *pages, const struct unwind_table *t, uint64_t at)
{
	const struct cairn_unwind_rule *rule = unwind_table_find(t, (struct cairn_vaddr){at});
	struct walk_rule want;

	if (!tables_rule(rule, &want))
		want = (struct walk_rule){0};
	if (at >> WALK_PAGE_SHIFT >= pages->n) {
		assert_int_equal(want.cfa, 0);
		return;
	}
	int number = find_row(pages->first, at);
	assert_true(number >= 0 && (size_t)number < walk_tables.n_rules);
	assert_memory_equal(&walk_tables.rules[number], &want, sizeof(want));
}

/* Every row's first and last byte, and the byte before the first row. *@pages is where they are. */
static size_t compare_rows(const char *path, struct walk_pages *pages)
{
	struct cairn_binary *bin;
	struct cairn_unwind *made;
	struct unwind_table t;
	size_t size;

	*pages = (struct walk_pages){0};
	if (cairn_binary_open(path, NULL, &bin, NULL) < 0)
		return 0;
	assert_int_equal(cairn_unwind_make(bin, 0, &made, NULL), 0);
	const void *bytes = cairn_unwind_bytes(made, &size);
	assert_int_equal(unwind_table_open(bytes, size, path, "", &t, NULL), 0);
	assert_int_equal(tables_add(&walk_tables, &t, 0, pages, NULL), 0);
	for (uint32_t i = 0; i < t.n_rows && t.machine == EM_X86_64; i++) {
		struct cairn_vaddr lo, hi;
		unwind_table_row(&t, i, &lo, &hi);
		same_rule(pages, &t, lo.v);
		if (hi.v > lo.v)
			same_rule(pages, &t, hi.v - 1);
		if (i == 0 && lo.v)
			same_rule(pages, &t, lo.v - 1);
	}
	size_t n = t.machine == EM_X86_64 ? t.n_rows : 0;
	cairn_unwind_close(made);
	cairn_binary_close(bin);
	return n;
}

/* Of each two files one is dropped again, so that the rows of others are where its were. */
static size_t compare_library(const char *path, size_t i)
{
	struct walk_pages pages;
	size_t n = compare_rows(path, &pages);

	if (i % 2)
		tables_drop(&walk_tables, pages);
	return n;
}

static void all_rows_of_libraries_have_the_library_s_rule(void **state)
{
	static const char dir[] = "/usr/lib/x86_64-linux-gnu";
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t n_files = 0, n_rows = 0;
	(void)state;

	begin_tables();
	n_rows += compare_library("/proc/self/exe", 0);
	while (d && n_files < 60 && (e = readdir(d))) {
		char path[600];
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (strstr(e->d_name, ".so.") && e->d_type == DT_REG)
			n_rows += compare_library(path, ++n_files);
	}
	if (d)
		closedir(d);
	print_message("%zu rows of %zu libraries, %u rules, %" PRIu64 " without room\n", n_rows,
		      n_files, walk_tables.n_rules, walk_tables.n_unsaid);
	assert_true(n_rows > 1000);
	tables_fini(&walk_tables);
}

/* As --continuous on a machine that builds programs all day. */
static void files_that_come_and_go_take_no_more_room(void **state)
{
	struct walk_pages pages;
	size_t before;
	(void)state;

	begin_tables();
	compare_rows("/proc/self/exe", &pages);
	before = chunks_bytes(&walk_tables.rows) + chunks_bytes(&walk_tables.pages);
	for (int i = 0; i < 20; i++) {
		tables_drop(&walk_tables, pages);
		assert_int_equal(walk_tables.n_rows, 0);
		compare_rows("/proc/self/exe", &pages);
	}
	assert_int_equal(chunks_bytes(&walk_tables.rows) + chunks_bytes(&walk_tables.pages),
			 before);
	tables_fini(&walk_tables);
}

/* Against a flag for each element; neighbours are one gap, and no gap is empty. */
static void room_that_is_given_back_is_taken_once(void **state)
{
	enum { BLOCKS = 3, SIZE = 200 };
	bool is_free[BLOCKS][SIZE] = {{false}};
	struct gaps g = {0};
	(void)state;

	srand(1);
	for (int round = 0; round < 20000; round++) {
		uint32_t block = (uint32_t)rand() % BLOCKS, first = (uint32_t)rand() % SIZE, n = 0;
		uint32_t want = 1 + (uint32_t)rand() % 40;
		while (first + n < SIZE && n < want && !is_free[block][first + n])
			is_free[block][first + n++] = true;
		assert_int_equal(gaps_give(&g, block, first, n), 0);
		for (size_t i = 0; i < g.list.n; i++)
			assert_true(
				g.list.p[i].n &&
				(!i || g.list.p[i - 1].block < g.list.p[i].block ||
				 g.list.p[i - 1].first + g.list.p[i - 1].n < g.list.p[i].first));
		want = 1 + (uint32_t)rand() % 60;
		if (rand() % 2 || !gaps_take(&g, want, &block, &first))
			continue;
		for (n = 0; n < want; n++) {
			assert_true(is_free[block][first + n]);
			is_free[block][first + n] = false;
		}
	}
	gaps_fini(&g);
}

/* ---- rules ---- */

static void same_caller(const struct cairn_unwind_rule *rule, bool is_innermost)
{
	struct cairn_regs r = {.pc = {0x401234}, .known = is_innermost ? 0xffff : 1 << 6 | 1 << 7};
	static struct walk w;
	enum cairn_step want;
	int end;

	memset(&w, 0, offsetof(struct walk, scratch));
	for (int i = 0; i < 16; i++)
		r.r[i] = w.regs[i] = 0x7f0000001000 + (uint64_t)i * 0x100000;
	w.pc = r.pc.v;
	w.knows_all = is_innermost;
	w.knows_fp = 1;
	w.bx = is_innermost ? BX_KNOWN : BX_LOST;
	if (!tables_rule(rule, &w.rule) || !(w.rule.cfa & 15) || w.rule.flags & WALK_OUTERMOST)
		return;
	want = cairn_unwind_step(rule, EM_X86_64, read_made_up, NULL, &r);
	end = step_by_rule(&w);
	if (want == CAIRN_STEP_LOST) {
		assert_int_equal(end, WALK_END_LOST);
		return;
	}
	if (want == CAIRN_STEP_STUCK) {
		assert_int_equal(end, WALK_END_LOOP);
		return;
	}
	assert_int_equal(want, CAIRN_STEP_OK);
	assert_int_equal(end, 0);
	assert_true(w.pc == r.pc.v && w.regs[RSP] == r.r[RSP]);
	assert_int_equal(w.knows_fp, (r.known >> RBP & 1));
	if (w.knows_fp)
		assert_true(w.regs[RBP] == r.r[RBP]);
}

static void all_rules_lead_to_the_caller_of_the_library_s_step(void **state)
{
	static const char *const paths[] = {"/proc/self/exe", "/usr/lib/x86_64-linux-gnu/libc.so.6",
					    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
					    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
					    "/lib64/ld-linux-x86-64.so.2"};
	size_t n = 0;
	(void)state;

	is_made_up = true;
	for (size_t p = 0; p < sizeof(paths) / sizeof(*paths); p++) {
		struct cairn_binary *bin;
		struct cairn_unwind *made;
		if (cairn_binary_open(paths[p], NULL, &bin, NULL) < 0)
			continue;
		assert_int_equal(cairn_unwind_make(bin, 0, &made, NULL), 0);
		const struct cairn_unwind_header *h = cairn_unwind_bytes(made, &(size_t){0});
		for (uint32_t i = 0; i < h->n_rows; i++, n++) {
			struct cairn_vaddr lo, hi;
			const struct cairn_unwind_rule *rule = cairn_unwind_row(made, i, &lo, &hi);
			same_caller(rule, true);
			same_caller(rule, false);
		}
		cairn_unwind_close(made);
		cairn_binary_close(bin);
	}
	is_made_up = false;
	assert_true(n > 1000);
}

/* ---- a whole stack ---- */

static struct walk_files files;
static size_t n_ready;

static void on_ready(void *ctx, uint32_t number, const struct walk_file *file)
{
	(void)ctx;
	(void)number;
	(void)file;
	n_ready++;
}

/* The mappings of this process, with tables. */
static void map_self(void)
{
	struct code_maps maps;
	uint32_t number;

	assert_int_equal(files_init(&files, NULL), 0);
	assert_int_equal(code_maps_read(getpid(), &maps, NULL), 0);
	walk_segments = calloc(maps.p.n, sizeof(*walk_segments));
	n_walk_segments = n_ready = 0;
	for (size_t i = 0; i < maps.p.n; i++)
		if (maps.p.p[i].is_executable)
			assert_int_equal(
				files_number(&files, getpid(), 0, &maps.p.p[i], &number, NULL), 0);
	while (n_ready + 1 < files.list.n)
		assert_int_equal(files_put_tables(&files, &walk_tables, on_ready, NULL, NULL), 0);
	for (size_t i = 0; i < maps.p.n; i++) {
		const struct code_mapping *m = &maps.p.p[i];
		if (!m->is_executable)
			continue;
		assert_int_equal(files_number(&files, getpid(), 0, m, &number, NULL), 0);
		const struct walk_file *f = number ? files.list.p[number] : NULL;
		walk_segments[n_walk_segments++] =
			(struct walk_segment){m->lo, m->hi, files_at(&files, number, m),
					      f ? f->pages.first : 0, f ? f->pages.n : 0};
	}
	code_maps_fini(&maps);
}

static void begin_walk(struct walk *w, const ucontext_t *uc)
{
	static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				    REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				    REG_R12, REG_R13, REG_R14, REG_R15};

	for (int i = 0; i < 16; i++)
		w->regs[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
	w->pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	w->process = (struct walk_process){0, (uint32_t)n_walk_segments, 1, WALK_HAS_MAPPINGS};
}

/* The address of a frame in this process. */
static uint64_t address_of(uint64_t frame)
{
	for (size_t i = 0; i < n_walk_segments; i++) {
		const struct walk_segment *s = &walk_segments[i];
		if (s->at && s->at >> WALK_FILE_SHIFT == frame >> WALK_FILE_SHIFT &&
		    frame - s->at < s->hi - s->lo)
			return s->lo + (frame - s->at);
	}
	return frame & WALK_RAW_MASK;
}

static bool is_exact(const struct cairn_backtrace *walk, size_t frame)
{
	for (uint32_t i = 0; i < walk->n_exact; i++)
		if (walk->exact[i] == frame)
			return true;
	return false;
}

static __attribute__((noinline)) void compare_here(void)
{
	static struct walk w;
	struct cairn_addr pcs[WALK_MAX_FRAMES];
	struct cairn_backtrace walk;
	ucontext_t uc;

	memset(&w, 0, sizeof(w));
	assert_int_equal(getcontext(&uc), 0);
	/* getcontext() ends with a return: the first frame is this function. */
	size_t n = cairn_backtrace_context(&uc, pcs, WALK_MAX_FRAMES, &walk);
	begin_walk(&w, &uc);
	w.max_frames = WALK_MAX_FRAMES;
	w.n_reads = 0;
	walk_user(&w);
	assert_int_equal(walk.end, CAIRN_WALK_OUTERMOST);
	assert_int_equal(w.end, WALK_END_COMPLETE);
	assert_int_equal(w.n, n);
	/* What a handler returns to was not called; what comes after it was interrupted. */
	for (size_t i = 0; i < n; i++)
		assert_true(address_of(w.frames[i]) ==
			    pcs[i].v - !(is_exact(&walk, i) || is_exact(&walk, i + 1)));
}

static __attribute__((noinline)) int recurse(int n, char *room)
{
	char own[64];

	memset(own, n, sizeof(own));
	if (n == 0)
		compare_here();
	else
		recurse(n - 1, own);
	return own[n % 64] + room[0];
}

static void the_stack_of_this_thread_is_the_library_s(void **state)
{
	char room[64] = {0};
	(void)state;

	if (cairn_backtrace_prepare(NULL) < 0)
		skip();
	begin_tables();
	map_self();
	recurse(3, room);
	recurse(200, room);
	/* The second time the cache answers. */
	recurse(200, room);
	files_fini(&files);
	tables_fini(&walk_tables);
	free(walk_segments);
}

static int ordered(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b < 0 ? -1 : (compare_here(), 0);
}

static void a_callback_of_libc_too(void **state)
{
	int two[] = {1, 1};
	(void)state;

	if (cairn_backtrace_prepare(NULL) < 0)
		skip();
	begin_tables();
	map_self();
	qsort(two, 2, sizeof(int), ordered);
	files_fini(&files);
	tables_fini(&walk_tables);
	free(walk_segments);
}

static volatile sig_atomic_t n_handled;

static void on_signal(int number)
{
	(void)number;
	compare_here();
	n_handled++;
}

/* In a leaf, whose frame is counted from any register; the handler has a stack of its own. */
static void a_signal_s_handler_leads_to_what_was_interrupted(void **state)
{
	static char room[1 << 16];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	(void)state;

	if (cairn_backtrace_prepare(NULL) < 0)
		skip();
	begin_tables();
	map_self();
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	raise(SIGUSR1);
	assert_int_equal(sigaltstack(&stack, NULL), 0);
	raise(SIGUSR1);
	assert_int_equal(n_handled, 2);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	files_fini(&files);
	tables_fini(&walk_tables);
	free(walk_segments);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_rows_of_libraries_have_the_library_s_rule),
		cmocka_unit_test(files_that_come_and_go_take_no_more_room),
		cmocka_unit_test(room_that_is_given_back_is_taken_once),
		cmocka_unit_test(all_rules_lead_to_the_caller_of_the_library_s_step),
		cmocka_unit_test(the_stack_of_this_thread_is_the_library_s),
		cmocka_unit_test(a_callback_of_libc_too),
		cmocka_unit_test(a_signal_s_handler_leads_to_what_was_interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
