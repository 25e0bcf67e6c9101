/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The writer for JITs: what another process reads of regions and functions that are published,
 * withdrawn, published again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/jit/codectl.h>
#include <cairn/jit/jit.h>

#include "alloc_fail.h"
#include "between.h"
#include "codectl_view.h"

enum { REGION = 1 << 20, ROWS_MAX = 1 << 17 };

/* Nothing is mapped there, and nobody cares. */
static char *const region = (char *)0x100000000;

static struct code_jit_unwind_fre rows[ROWS_MAX];
static struct code_jit_symbol symbols[ROWS_MAX];
static struct code_jit_line lines[ROWS_MAX];
static long n_rows, n_symbols, n_lines;

/* The registry of this process, and the region's tables. */
static const struct codectl_entry *look(void)
{
	static struct view v;
	if (v.at)
		view_free(&v);
	assert_true(view_find(getpid(), &v));
	assert_true(view_read(&v));
	const struct codectl_entry *e = view_at(&v, (uintptr_t)region);
	assert_non_null(e);
	assert_int_equal(e->option, CODE_REGISTER_JIT);
	assert_int_equal(view_count(&v), 1);
	n_rows = view_chain(&v, e->info.jit.unwind_head, sizeof(rows[0]), rows, ROWS_MAX);
	n_symbols = view_chain(&v, e->info.jit.symbols_head, sizeof(symbols[0]), symbols, ROWS_MAX);
	n_lines = view_chain(&v, e->info.jit.lines_head, sizeof(lines[0]), lines, ROWS_MAX);
	assert_true(n_rows >= 0 && n_symbols >= 0 && n_lines >= 0);
	return e;
}

static const struct code_jit_symbol *symbol_at(uint64_t off, uint32_t depth)
{
	for (long i = 0; i < n_symbols; i++)
		if (symbols[i].depth == depth && off >= symbols[i].ip_off &&
		    off < (uint64_t)symbols[i].ip_off + symbols[i].size)
			return &symbols[i];
	return NULL;
}

static uint32_t line_at(uint64_t off)
{
	uint32_t line = 0;
	for (long i = 0; i < n_lines && lines[i].ip_off <= off; i++)
		line = lines[i].line;
	return line;
}

static struct cairn_jit *open_region(uint32_t flags)
{
	struct cairn_jit_opts opts = {sizeof(opts), "test", flags};
	struct cairn_jit *jit;
	assert_int_equal(cairn_jit_open(region, REGION, &opts, &jit), 0);
	return jit;
}

/* push at 1, pop at size - 2: three rows; the CFA in the middle is @cfa. */
static int publish(struct cairn_jit *jit, uint64_t off, uint32_t size, int32_t cfa,
		   const struct cairn_jit_info *info)
{
	struct cairn_jit_frame frame;
	char *start = region + off;
	cairn_jit_begin(&frame, start);
	cairn_jit_cfa(&frame, start + 1, CAIRN_JIT_SP, cfa);
	cairn_jit_cfa(&frame, start + size - 1, CAIRN_JIT_SP, CAIRN_JIT_ENTRY_CFA);
	return cairn_jit_publish(jit, &frame, start + size, info);
}

static int publish_named(struct cairn_jit *jit, uint64_t off, uint32_t size, int32_t cfa,
			 const char *name)
{
	struct cairn_jit_info info = {.size = sizeof(info), .name = name};
	return publish(jit, off, size, cfa, &info);
}

static void withdraw(struct cairn_jit *jit, uint64_t off, uint64_t size)
{
	cairn_jit_withdraw(jit, region + off, region + off + size);
}

/* ---- claims ---- */

static void a_frame_is_described_by_its_changes(void **state)
{
	struct cairn_jit *jit = open_region(0);
	struct cairn_jit_frame f;
	char *at = region + 100;
	cairn_jit_begin(&f, at);
	cairn_jit_cfa(&f, at + 1, CAIRN_JIT_SP, 16); /* push rbp */
	cairn_jit_fp_saved(&f, at + 1, -16);
	cairn_jit_cfa(&f, at + 4, CAIRN_JIT_FP, 16); /* mov rbp, rsp */
	cairn_jit_remember(&f);
	cairn_jit_cfa(&f, at + 30, CAIRN_JIT_SP, 8); /* leave; an early return */
	cairn_jit_fp_restored(&f, at + 30);
	cairn_jit_recall(&f, at + 31);
	cairn_jit_cfa(&f, at + 60, CAIRN_JIT_SP, 8);
	cairn_jit_fp_restored(&f, at + 60);
	assert_int_equal(cairn_jit_publish(jit, &f, at + 61, NULL), 0);

	const struct codectl_entry *e = look();
	static const struct code_jit_unwind_fre want[] = {
		{1, 100, CAIRN_JIT_ENTRY_CFA, 0, 0, 0, {0}},
		{3, 101, 16, 0, -16, CODE_ROW_FP, {0}},
		{26, 104, 16, 0, -16, CODE_ROW_CFA_FP | CODE_ROW_FP, {0}},
		{1, 130, 8, 0, 0, 0, {0}},
		{29, 131, 16, 0, -16, CODE_ROW_CFA_FP | CODE_ROW_FP, {0}},
		{1, 160, 8, 0, 0, 0, {0}},
	};
	assert_int_equal(n_rows, 6);
	assert_memory_equal(rows, want, sizeof(want));
	assert_int_equal(e->info.jit.text_end - e->info.jit.text_start, REGION);
	assert_int_equal(e->info.jit.extended, CODE_JIT_EXTENDED);
	cairn_jit_close(jit);
}

static void names_inlined_copies_and_lines_are_published_with_it(void **state)
{
	static const struct cairn_jit_inline inlines[] = {{4, 20, 1, 77, "inner", "file.lua"},
							  {8, 12, 2, 5, "innermost", NULL},
							  {24, 28, 1, 78, "inner", "file.lua"}};
	static const struct cairn_jit_line at[] = {
		{0, 70, "file.lua"}, {4, 5, "lib.lua"}, {20, 77, "file.lua"}};
	struct cairn_jit_info info = {sizeof(info), "outer", inlines, 3, at, 3};
	struct cairn_jit *jit = open_region(0);
	assert_int_equal(publish(jit, 1000, 32, 64, &info), 0);
	/* One of no name and no lines is next to it. */
	assert_int_equal(publish(jit, 1032, 16, 32, NULL), 0);
	look();
	assert_int_equal(n_symbols, 4);
	assert_string_equal((char *)(uintptr_t)symbol_at(1031, 0)->name, "outer");
	assert_string_equal((char *)(uintptr_t)symbol_at(1010, 1)->name, "inner");
	assert_string_equal((char *)(uintptr_t)symbol_at(1010, 2)->name, "innermost");
	assert_int_equal(symbol_at(1010, 1)->call_line, 77);
	assert_string_equal((char *)(uintptr_t)symbol_at(1010, 1)->call_file, "file.lua");
	assert_int_equal(symbol_at(1024, 1)->call_line, 78);
	assert_null(symbol_at(1022, 1));
	assert_null(symbol_at(1032, 0));
	assert_int_equal(line_at(1003), 70);
	assert_int_equal(line_at(1004), 5);
	assert_int_equal(line_at(1031), 77);
	assert_int_equal(line_at(1032), 0);
	assert_int_equal(view_row(rows, n_rows, 1033)->cfa_off, 32);
	cairn_jit_close(jit);
}

static void many_functions_fill_many_tables_of_one_generation(void **state)
{
	enum { N = 20000 };
	struct cairn_jit *jit = open_region(0);
	assert_int_equal(publish_named(jit, 0, 16, 16, "f"), 0);
	uint64_t epoch = look()->epoch;
	for (uint32_t i = 1; i < N; i++)
		assert_int_equal(publish_named(jit, i * 32, 16 + i % 16, (int32_t)(16 + i), "f"),
				 0);
	assert_int_equal(look()->epoch, epoch);
	assert_int_equal(n_rows, 3 * N);
	assert_int_equal(n_symbols, N);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(rows[3 * i + 1].ip_off, i * 32 + 1);
		assert_int_equal(rows[3 * i + 1].cfa_off, 16 + i);
		assert_int_equal(symbols[i].ip_off, i * 32);
	}
	cairn_jit_close(jit);
}

static void what_is_withdrawn_is_not_described(void **state)
{
	struct cairn_jit *jit = open_region(0);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(publish_named(jit, i * 100, 100, 16, "f"), 0);
	uint64_t epoch = look()->epoch;
	withdraw(jit, 5000, 100);
	withdraw(jit, 9900, 100);
	assert_int_equal(look()->epoch, epoch);
	for (uint32_t at = 0; at < 10000; at++) {
		bool is_gone = at / 100 == 50 || at / 100 == 99;
		assert_int_equal(!view_row(rows, n_rows, at), is_gone);
		assert_int_equal(!symbol_at(at, 0), is_gone);
	}
	cairn_jit_close(jit);
}

static void an_address_that_is_used_again_is_of_a_new_generation(void **state)
{
	struct cairn_jit *jit = open_region(0);
	assert_int_equal(publish_named(jit, 1000, 100, 16, "old"), 0);
	assert_int_equal(publish_named(jit, 2000, 100, 16, "other"), 0);
	uint64_t epoch = look()->epoch;
	withdraw(jit, 1000, 100);
	assert_int_equal(look()->epoch, epoch);
	assert_int_equal(publish_named(jit, 1020, 50, 48, "new"), 0);
	assert_true(look()->epoch > epoch);
	epoch = look()->epoch;
	assert_null(view_row(rows, n_rows, 1019));
	assert_int_equal(view_row(rows, n_rows, 1025)->cfa_off, 48);
	assert_string_equal((char *)(uintptr_t)symbol_at(1025, 0)->name, "new");
	assert_string_equal((char *)(uintptr_t)symbol_at(2025, 0)->name, "other");
	/* What follows it, up to what is there, is of the same generation. */
	assert_int_equal(publish_named(jit, 1070, 930, 48, "next"), 0);
	assert_int_equal(publish_named(jit, 3000, 100, 48, "last"), 0);
	assert_int_equal(publish_named(jit, 500, 100, 48, "first"), 0);
	assert_true(look()->epoch > epoch);
	for (uint32_t at = 500; at < 3100; at++) {
		bool is_there = at < 600 || (at >= 1020 && at < 2100) || at >= 3000;
		assert_int_equal(view_row(rows, n_rows, at) != NULL, is_there);
		assert_int_equal(symbol_at(at, 0) != NULL, is_there);
	}
	cairn_jit_close(jit);
}

static void what_is_described_is_not_described_again(void **state)
{
	struct cairn_jit *jit = open_region(0);
	assert_int_equal(publish_named(jit, 1000, 100, 16, "a"), 0);
	assert_int_equal(publish_named(jit, 1200, 100, 16, "b"), 0);
	uint64_t epoch = look()->epoch;
	static const uint32_t wrong[][2] = {{1000, 100}, {1099, 50}, {950, 51}, {1020, 10},
					    {900, 500},  {1299, 50}, {1250, 10}};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(publish_named(jit, wrong[i][0], wrong[i][1], 16, "x"), -EEXIST);
	assert_int_equal(look()->epoch, epoch);
	assert_int_equal(n_rows, 6);
	assert_int_equal(publish_named(jit, 1100, 100, 16, "between"), 0);
	cairn_jit_close(jit);
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct cairn_jit_opts opts = {sizeof(opts), NULL, 4};
	struct cairn_jit_inline copy = {0, 10, 1, 0, "x", NULL};
	struct cairn_jit_line line = {40, 1, "x"};
	struct cairn_jit_info info = {.size = sizeof(info), .name = "f"};
	struct {
		struct cairn_jit_info info;
		uint64_t more;
	} longer = {{.size = sizeof(longer), .name = "f"}, 1};
	struct cairn_jit *jit, *other;
	struct cairn_jit_frame f;
	assert_int_equal(cairn_jit_open(region, REGION, &opts, &jit), -EINVAL);
	assert_int_equal(cairn_jit_open(region, 0, NULL, &jit), -EINVAL);
	assert_int_equal(cairn_jit_open(region, (size_t)5 << 30, NULL, &jit), -ERANGE);
	jit = open_region(0);
	assert_int_equal(cairn_jit_open(region + 4096, 4096, NULL, &other), -EEXIST);
	assert_int_equal(publish(jit, REGION - 10, 20, 16, NULL), -EINVAL);
	assert_int_equal(publish(jit, (uint64_t)-5, 20, 16, NULL), -EINVAL);
	cairn_jit_begin(&f, region);
	assert_int_equal(cairn_jit_publish(jit, &f, region, NULL), -EINVAL);
	cairn_jit_cfa(&f, region + 10, CAIRN_JIT_SP, 16);
	assert_int_equal(cairn_jit_publish(jit, &f, region + 9, NULL), -EINVAL);
	cairn_jit_cfa(&f, region + 5, CAIRN_JIT_SP, 16);
	assert_int_equal(cairn_jit_publish(jit, &f, region + 20, NULL), -EINVAL);
	cairn_jit_begin(&f, region);
	for (int i = 1; i <= CAIRN_JIT_ROWS_MAX + 1; i++)
		cairn_jit_cfa(&f, region + i, CAIRN_JIT_SP, 8 * i);
	assert_int_equal(cairn_jit_publish(jit, &f, region + 100, NULL), -ERANGE);
	info.lines = &line;
	info.n_lines = 1;
	assert_int_equal(publish(jit, 0, 40, 16, &info), -EINVAL);
	info.n_lines = 0;
	info.inlines = &copy;
	info.n_inlines = 1;
	assert_int_equal(publish(jit, 0, 9, 16, &info), -EINVAL);
	info.name = NULL;
	assert_int_equal(publish(jit, 0, 40, 16, &info), -EINVAL);
	assert_int_equal(publish(jit, 0, 40, 16, &longer.info), -EINVAL);
	look();
	assert_int_equal(n_rows, 0);
	longer.more = 0;
	assert_int_equal(publish(jit, 0, 40, 16, &longer.info), 0);
	cairn_jit_close(jit);
	cairn_jit_close(NULL);
}

static void names_are_copied_where_that_was_asked_for(void **state)
{
	struct cairn_jit *jit = open_region(CAIRN_JIT_COPY_NAMES);
	char name[32];
	for (uint32_t round = 0; round < 20; round++)
		for (uint32_t i = 0; i < 100; i++) {
			struct cairn_jit_inline copy = {0, 8, 1, 0, name, NULL};
			struct cairn_jit_info info = {sizeof(info), name, &copy, 1, NULL, 0};
			snprintf(name, sizeof(name), "f%u of round %u", i, round);
			if (round)
				withdraw(jit, i * 64, 64);
			assert_int_equal(publish(jit, i * 64, 64, 16, &info), 0);
		}
	memset(name, 0, sizeof(name));
	look();
	assert_string_equal((char *)(uintptr_t)symbol_at(64 * 7 + 3, 0)->name, "f7 of round 19");
	assert_string_equal((char *)(uintptr_t)symbol_at(64 * 99 + 3, 1)->name, "f99 of round 19");
	cairn_jit_close(jit);
}

static void the_last_function_of_4_gib_has_lines_in_order(void **state)
{
	static const uint64_t size = UINT64_C(1) << 32;
	static const struct cairn_jit_line at[] = {{0, 70, "file.lua"}, {4, 71, "file.lua"}};
	struct cairn_jit_info info = {
		.size = sizeof(info), .name = "last", .lines = at, .n_lines = 2};
	struct cairn_jit_opts opts = {sizeof(opts), "test", 0};
	struct cairn_jit *jit;
	assert_int_equal(cairn_jit_open(region, size, &opts, &jit), 0);
	assert_int_equal(publish(jit, size - 64, 32, 16, &info), 0);
	assert_int_equal(publish(jit, size - 32, 32, 16, &info), 0);
	look();
	assert_int_equal(n_lines, 5);
	for (long i = 1; i < n_lines; i++)
		assert_true(lines[i].ip_off >= lines[i - 1].ip_off);
	assert_int_equal(line_at(size - 32), 70);
	assert_int_equal(line_at(size - 1), 71);
	cairn_jit_close(jit);
}

static void a_function_may_have_more_lines_than_a_table(void **state)
{
	enum { N = 9000 };
	static struct cairn_jit_line many[N];
	static struct cairn_jit_inline copies[N];
	for (uint32_t i = 0; i < N; i++) {
		many[i] = (struct cairn_jit_line){i * 4, i + 1, "long.c"};
		copies[i] = (struct cairn_jit_inline){i * 4, i * 4 + 4, 1, i, "copy", NULL};
	}
	struct cairn_jit_info info = {sizeof(info), "long", copies, N, many, N};
	struct cairn_jit *jit = open_region(0);
	assert_int_equal(publish_named(jit, 0, 16, 16, "before"), 0);
	assert_int_equal(publish_named(jit, 900000, 16, 16, "after"), 0);
	assert_int_equal(publish(jit, 1000, N * 4, 16, &info), 0);
	look();
	assert_int_equal(n_symbols, N + 3);
	for (uint32_t i = 0; i < N; i += 13) {
		assert_int_equal(line_at(1000 + i * 4 + 3), i + 1);
		assert_int_equal(symbol_at(1000 + i * 4 + 3, 1)->call_line, i);
	}
	assert_int_equal(line_at(1000 + N * 4), 0);
	/* And gone as a whole. */
	withdraw(jit, 1000, N * 4);
	look();
	assert_int_equal(line_at(1004), 0);
	assert_null(symbol_at(1004, 1));
	assert_int_equal(publish(jit, 1000, N * 4, 16, &info), 0);
	look();
	assert_int_equal(line_at(1004), 2);
	cairn_jit_close(jit);
}

/* ---- against a map of bytes ---- */

enum { SPACE = 1 << 14, UNIT = 16 };

struct model {
	uint32_t owner[SPACE];    /* of each unit: function's number, 0: none */
	uint32_t in_epoch[SPACE]; /* who described it in this epoch; 0: nobody */
	uint64_t epoch;
};

/* The tables say what the model says, and no address changed hands within an epoch. */
static void compare(struct model *m)
{
	uint64_t epoch = look()->epoch;
	static uint32_t seen[SPACE];
	memset(seen, 0, sizeof(seen));
	for (long i = 0; i < n_rows; i++)
		for (uint32_t at = rows[i].ip_off; at < rows[i].ip_off + rows[i].size; at++)
			if (at % UNIT == 1)
				seen[at / UNIT] = (uint32_t)rows[i].cfa_off;
	if (epoch != m->epoch)
		memset(m->in_epoch, 0, sizeof(m->in_epoch));
	m->epoch = epoch;
	for (uint32_t i = 0; i < SPACE; i++) {
		assert_int_equal(seen[i], m->owner[i]);
		assert_true(!seen[i] || !m->in_epoch[i] || m->in_epoch[i] == seen[i]);
		if (seen[i])
			m->in_epoch[i] = seen[i];
	}
	long n_live = 0;
	for (long i = 0; i < n_symbols; i++)
		n_live += symbols[i].size != 0;
	for (long i = 0; i < n_symbols; i++)
		if (symbols[i].size)
			assert_int_equal(symbols[i].name, m->owner[symbols[i].ip_off / UNIT]);
	for (uint32_t i = 0; i < SPACE; i++)
		n_live -= m->owner[i] && (!i || m->owner[i - 1] != m->owner[i]);
	assert_int_equal(n_live, 0);
	for (uint32_t i = 0; i < SPACE; i += 7)
		assert_int_equal(line_at(i * UNIT + 3), m->owner[i]);
}

static bool is_free(const struct model *m, uint32_t lo, uint32_t n)
{
	for (uint32_t i = lo; i < lo + n; i++)
		if (m->owner[i])
			return false;
	return true;
}

static void set(struct model *m, uint32_t lo, uint32_t n, uint32_t owner)
{
	for (uint32_t i = lo; i < lo + n; i++)
		m->owner[i] = owner;
}

static void free_at(struct cairn_jit *jit, struct model *m, uint32_t at)
{
	uint32_t lo = at, n = 1;
	while (lo && m->owner[lo - 1] == m->owner[at])
		lo--;
	while (lo + n < SPACE && m->owner[lo + n] == m->owner[at])
		n++;
	withdraw(jit, lo * UNIT, n * UNIT);
	set(m, lo, n, 0);
}

/* The name is the function's number, which the tables do not mind; so is its CFA, and its line. */
static int publish_number(struct cairn_jit *jit, uint32_t lo, uint32_t n, uint32_t number)
{
	struct cairn_jit_line line = {0, number, NULL};
	struct cairn_jit_info info = {sizeof(info), (char *)(uintptr_t)number, NULL, 0, &line, 1};
	struct cairn_jit_frame f;
	char *start = region + lo * UNIT;
	cairn_jit_begin(&f, start);
	cairn_jit_cfa(&f, f.start, CAIRN_JIT_SP, (int32_t)number);
	cairn_jit_cfa(&f, start + UNIT / 2, CAIRN_JIT_SP, (int32_t)number);
	return cairn_jit_publish(jit, &f, start + n * UNIT, &info);
}

static void random_use_of_memory_agrees_with_a_map(void **state)
{
	static struct model m;
	struct cairn_jit *jit = open_region(0);
	uint32_t random = 7, number = 0;
	memset(&m, 0, sizeof(m));
	for (int i = 0; i < 60000; i++) {
		random = random * 1664525 + 1013904223;
		uint32_t lo = (random >> 8) % (SPACE - 16), n = 1 + (random >> 28);
		/*
		 * Now more is made, now more is freed; sometimes in a small part, and one after the
		 * other.
		 */
		bool frees = random >> 5 & 7 ? i / 5000 % 3 == 2 : random >> 4 & 1;
		if (i % 1000 > 700)
			lo %= 512;
		if (frees) {
			if (m.owner[lo])
				free_at(jit, &m, lo);
		} else {
			bool can = is_free(&m, lo, n);
			assert_int_equal(publish_number(jit, lo, n, ++number), can ? 0 : -EEXIST);
			if (can)
				set(&m, lo, n, number);
		}
		if (i % 97 == 0)
			compare(&m);
	}
	compare(&m);
	cairn_jit_close(jit);
}

static void memory_that_is_freed_in_bulk_is_used_again_in_order(void **state)
{
	static struct model m;
	struct cairn_jit *jit = open_region(0);
	uint32_t number = 0;
	uint64_t first = look()->epoch;
	memset(&m, 0, sizeof(m));
	for (uint32_t round = 0; round < 12; round++) {
		for (uint32_t lo = 0; lo + 4 <= SPACE; lo += 4) {
			if (m.owner[lo])
				continue;
			assert_int_equal(publish_number(jit, lo, 4, ++number), 0);
			set(&m, lo, 4, number);
		}
		compare(&m);
		uint64_t epoch = m.epoch;
		for (uint32_t lo = 0; lo < SPACE; lo += 4)
			if (lo / 1024 % 3 == round % 3)
				free_at(jit, &m, lo);
		compare(&m);
		/* Freeing takes no new generation; filling again takes one or two for each gap. */
		assert_int_equal(m.epoch, epoch);
		assert_between(epoch - first, round * 5, round * 12 + 2);
	}
	cairn_jit_close(jit);
}

static void without_memory_nothing_is_published(void **state)
{
	struct cairn_jit_inline copy = {0, 8, 1, 0, "copy", NULL};
	struct cairn_jit_opts opts = {sizeof(opts), "test", CAIRN_JIT_COPY_NAMES};
	struct cairn_jit_info info = {sizeof(info), "f", &copy, 1, NULL, 0};
	struct cairn_jit *jit;
	for (unsigned int n = 1;; n++) {
		alloc_fail_at(n);
		int rc = cairn_jit_open(region, REGION, &opts, &jit);
		if (!alloc_fail_end())
			break;
		assert_int_equal(rc, -ENOMEM);
	}
	unsigned int n_failed = 0;
	for (unsigned int n = 1;; n++) {
		alloc_fail_at(n);
		int rc = publish(jit, 1000, 64, 16, &info);
		if (!alloc_fail_end()) {
			assert_int_equal(rc, 0);
			break;
		}
		n_failed++;
		assert_int_equal(rc, -ENOMEM);
		look();
		assert_int_equal(n_rows + n_symbols, 0);
	}
	assert_true(n_failed >= 3);
	cairn_jit_close(jit);
}

static void a_child_goes_on_with_its_copy(void **state)
{
	struct cairn_jit *jit = open_region(0);
	assert_int_equal(publish_named(jit, 1000, 100, 16, "old"), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		withdraw(jit, 1000, 100);
		_exit(publish_named(jit, 1000, 100, 32, "child") != 0 ||
		      (look(), view_row(rows, n_rows, 1050)->cfa_off != 32));
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	look();
	assert_int_equal(view_row(rows, n_rows, 1050)->cfa_off, 16);
	cairn_jit_close(jit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_is_described_by_its_changes),
		cmocka_unit_test(names_inlined_copies_and_lines_are_published_with_it),
		cmocka_unit_test(many_functions_fill_many_tables_of_one_generation),
		cmocka_unit_test(what_is_withdrawn_is_not_described),
		cmocka_unit_test(an_address_that_is_used_again_is_of_a_new_generation),
		cmocka_unit_test(what_is_described_is_not_described_again),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(names_are_copied_where_that_was_asked_for),
		cmocka_unit_test(the_last_function_of_4_gib_has_lines_in_order),
		cmocka_unit_test(a_function_may_have_more_lines_than_a_table),
		cmocka_unit_test(random_use_of_memory_agrees_with_a_map),
		cmocka_unit_test(memory_that_is_freed_in_bulk_is_used_again_in_order),
		cmocka_unit_test(without_memory_nothing_is_published),
		cmocka_unit_test(a_child_goes_on_with_its_copy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
