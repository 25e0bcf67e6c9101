/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What processes write about their code beside their memory: perf maps, jitdump files, and who is
 * believed.
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "code/jitdump.h"
#include "code/name_map.h"
#include "code/perf_map.h"
#include "code/process_file.h"
#include "jitdump_builder.h"
#include "workspace.h"

/* ---- ranges of which the newest counts ---- */

static void of_ranges_that_overlap_the_newest_has_the_addresses(void **state)
{
	struct name_map m = {0};
	static const struct name_range want[] = {
		{0, 20, 0}, {20, 30, 1}, {30, 50, 2}, {50, 100, 0}};
	assert_true(name_map_add(&m, 0, 100, 0) && name_map_add(&m, 20, 40, 1) &&
		    name_map_add(&m, 30, 50, 2));
	assert_int_equal(name_map_flatten(&m), 0);
	assert_int_equal(m.ranges.n, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(m.ranges.p[i].lo, want[i].lo);
		assert_int_equal(m.ranges.p[i].hi, want[i].hi);
		assert_int_equal(m.ranges.p[i].item, want[i].item);
	}
	assert_null(name_map_find(&m, 100));
	assert_int_equal(name_map_find(&m, 99)->item, 0);
	assert_true(name_map_touches(&m, 99, 200));
	assert_false(name_map_touches(&m, 100, 200));
	name_map_fini(&m);
}

/* Ranges anywhere in 64 addresses, against an array with the newest of each address. */
static void any_ranges_are_as_if_written_one_over_the_other(void **state)
{
	srandom(1);
	for (unsigned int round = 0; round < 2000; round++) {
		struct name_map m = {0};
		int newest[64];
		memset(newest, 0xff, sizeof(newest));
		for (uint32_t item = 0; item < 1 + round % 20; item++) {
			uint64_t lo = (uint64_t)random() % 64,
				 hi = lo + (uint64_t)random() % (65 - lo);
			assert_true(name_map_add(&m, lo, hi, item));
			for (uint64_t at = lo; at < hi; at++)
				newest[at] = (int)item;
		}
		assert_int_equal(name_map_flatten(&m), 0);
		for (uint64_t at = 0; at < 64; at++) {
			const struct name_range *r = name_map_find(&m, at);
			assert_int_equal(r ? (int)r->item : -1, newest[at]);
		}
		name_map_fini(&m);
	}
}

static void a_range_may_end_with_the_last_address(void **state)
{
	struct name_map m = {0};
	assert_true(name_map_add(&m, UINT64_MAX - 8, UINT64_MAX, 0) &&
		    name_map_add(&m, 0, UINT64_MAX, 1));
	assert_int_equal(name_map_flatten(&m), 0);
	assert_int_equal(name_map_find(&m, UINT64_MAX - 1)->item, 1);
	assert_null(name_map_find(&m, UINT64_MAX));
	name_map_fini(&m);
}

/* ---- perf maps ---- */

static int parse(const char *text, size_t n, struct perf_map *m)
{
	char *copy = malloc(n + 1);
	memset(m, 0, sizeof(*m));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, n);
	copy[n] = 0;
	return perf_map_parse(copy, n, m);
}

static void assert_named(const struct perf_map *m, uint64_t at, const char *name, uint64_t lo)
{
	uint64_t got;
	assert_non_null(perf_map_find(m, at, &got));
	assert_string_equal(perf_map_find(m, at, &got), name);
	assert_int_equal(got, lo);
}

static const char perf_lines[] =
	"7f3a4c000 1c0 LazyCompile:~fib /srv/a.js:3\n"
	"0x00007fff00001000 0x0000000000000020 int java.lang.Math.abs(int)\n"
	"7f3a4c100 10 replaced\n";

static void lines_with_and_without_0x_are_read_and_the_last_counts(void **state)
{
	struct perf_map m;
	uint64_t lo;
	assert_int_equal(parse(perf_lines, strlen(perf_lines), &m), 0);
	assert_named(&m, 0x7f3a4c000, "LazyCompile:~fib /srv/a.js:3", 0x7f3a4c000);
	assert_named(&m, 0x7f3a4c10f, "replaced", 0x7f3a4c100);
	assert_named(&m, 0x7f3a4c110, "LazyCompile:~fib /srv/a.js:3", 0x7f3a4c000);
	assert_named(&m, 0x7fff0000101f, "int java.lang.Math.abs(int)", 0x7fff00001000);
	assert_null(perf_map_find(&m, 0x7f3a4c1c0, &lo));
	perf_map_fini(&m);
}

static void what_is_no_line_is_left_out(void **state)
{
	static const char text[] =
		"\n10\n10 \n10 10\n10 10 \n 10 10 a\nxyz 10 a\n10 -1 a\n-10 10 a\n"
		"ffffffffffffffff 2 a\n10000000000000000 1 a\n10  10 a\n10 0 a\n20 10 b\n30 10 "
		"unended";
	struct perf_map m;
	uint64_t lo;
	assert_int_equal(parse(text, strlen(text), &m), 0);
	assert_int_equal(m.items.n, 1);
	assert_named(&m, 0x20, "b", 0x20);
	/* Its newline is still to be written: so the name may be half of one. */
	assert_null(perf_map_find(&m, 0x30, &lo));
	perf_map_fini(&m);
}

static void a_nul_ends_a_name_and_nothing_else(void **state)
{
	static const char text[] = "10 10 a\0b\n30 10 c\n\0\0\n50 10 d\n";
	struct perf_map m;
	assert_int_equal(parse(text, sizeof(text) - 1, &m), 0);
	assert_named(&m, 0x10, "a", 0x10);
	assert_named(&m, 0x30, "c", 0x30);
	assert_named(&m, 0x50, "d", 0x50);
	perf_map_fini(&m);
}

static void a_perf_map_cut_anywhere_has_the_lines_before(void **state)
{
	for (size_t n = 0; n <= strlen(perf_lines); n++) {
		struct perf_map m;
		size_t whole = 0;
		for (size_t i = 0; i < n; i++)
			whole += perf_lines[i] == '\n';
		assert_int_equal(parse(perf_lines, n, &m), 0);
		assert_int_equal(m.items.n, whole);
		perf_map_fini(&m);
	}
}

static void a_perf_map_without_memory_says_so(void **state)
{
	for (unsigned int n = 1;; n++) {
		struct perf_map m = {0};
		alloc_fail_at(n);
		int rc = parse(perf_lines, strlen(perf_lines), &m);
		if (!alloc_fail_end()) {
			perf_map_fini(&m);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
		perf_map_fini(&m);
	}
}

/* ---- jitdump ---- */

static int read_dump(const struct jitdump_builder *b, size_t n, struct jitdump *d)
{
	uint8_t *copy = malloc(n ? n : 1);
	memset(d, 0, sizeof(*d));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, b->bytes, n);
	return jitdump_parse(copy, n, d, NULL);
}

static struct jitdump dump_of(const struct jitdump_builder *b)
{
	struct jitdump d;
	assert_int_equal(read_dump(b, b->n, &d), 0);
	return d;
}

static void build_dump(struct jitdump_builder *b)
{
	static const struct jd_line lines[] = {
		{0x1000, 3, "a.js"}, {0x1008, 4, "\xff"}, {0x100c, 9, "b.js"}};
	*b = (struct jitdump_builder){0};
	jd_header(b);
	jd_lines(b, 0x1000, lines, 3);
	jd_unwinding_of_push(b, 0x1000, 0x14);
	jd_load(b, 0x1000, 0x14, 1, "f");
	jd_load(b, 0x2000, 0x100, 2, "g");
	jd_move(b, 0x1000, 0x2040, 0x14, 1);
}

static void functions_of_a_dump_are_found_and_the_newest_counts(void **state)
{
	struct jitdump_builder b;
	build_dump(&b);
	struct jitdump d = dump_of(&b);
	assert_string_equal(jitdump_find(&d, 0x1013)->name, "f");
	assert_null(jitdump_find(&d, 0x1014));
	assert_string_equal(jitdump_find(&d, 0x203f)->name, "g");
	/* It was moved into what g had. */
	assert_string_equal(jitdump_find(&d, 0x2040)->name, "f");
	assert_string_equal(jitdump_find(&d, 0x2054)->name, "g");
	assert_null(d.why);
	jitdump_fini(&d);
}

static void assert_line(const struct jitdump *d, uint64_t at, uint32_t line, const char *file)
{
	const char *got = NULL;
	assert_int_equal(jitdump_line(d, jitdump_find(d, at), at, &got), line);
	assert_true(file ? got && !strcmp(got, file) : !got);
}

static void lines_go_with_a_function_that_moves(void **state)
{
	struct jitdump_builder b;
	build_dump(&b);
	struct jitdump d = dump_of(&b);
	for (size_t i = 0; i < 2; i++) {
		uint64_t lo = i ? 0x2040 : 0x1000;
		assert_line(&d, lo, 3, "a.js");
		assert_line(&d, lo + 7, 3, "a.js");
		assert_line(&d, lo + 8, 4, "a.js");
		assert_line(&d, lo + 0x13, 9, "b.js");
	}
	assert_line(&d, 0x2000, 0, NULL);
	jitdump_fini(&d);
}

static void lines_that_are_shifted_by_the_header_of_an_elf_file_are_put_right(void **state)
{
	static const struct jd_line lines[] = {{0x1040, 3, "a.js"}, {0x1050, 4, "\x07\xd1\x03"}};
	struct jitdump_builder b = {0};
	jd_header(&b);
	jd_lines(&b, 0x1000, lines, 2);
	jd_load(&b, 0x1000, 0x100, 1, "f");
	struct jitdump d = dump_of(&b);
	assert_line(&d, 0x100f, 3, "a.js");
	/* V8 writes names that it has freed. */
	assert_line(&d, 0x1010, 4, NULL);
	jitdump_fini(&d);
}

static void lines_and_rules_are_those_of_the_next_load_only(void **state)
{
	static const struct jd_line line = {0x1000, 3, "a.js"};
	struct jitdump_builder b = {0};
	struct rule_words rule;
	jd_header(&b);
	jd_lines(&b, 0x1000, &line, 1);
	jd_unwinding_of_push(&b, 0x1000, 0x10);
	jd_load(&b, 0x1000, 0x10, 1, "f");
	jd_load(&b, 0x1000, 0x10, 2, "again");
	jd_lines(&b, 0x1000, &line, 1);
	jd_load(&b, 0x3000, 0x10, 3, "other");
	struct jitdump d = dump_of(&b);
	assert_line(&d, 0x1000, 0, NULL);
	assert_line(&d, 0x3000, 0, NULL);
	assert_int_equal(jitdump_rule(&d, jitdump_find(&d, 0x1001), 0x1001, &rule), 0);
	assert_int_equal(rule.words[0], 0);
	jitdump_fini(&d);
}

static int32_t cfa_off(const struct jitdump *d, uint64_t at)
{
	struct rule_words rule;
	struct cairn_unwind_rule head;
	assert_int_equal(jitdump_rule(d, jitdump_find(d, at), at, &rule), 0);
	memcpy(&head, rule.words, sizeof(head));
	assert_int_equal(head.cfa, CAIRN_UNWIND_CFA_REG);
	assert_int_equal(head.reg, 7);
	return head.off;
}

static void unwinding_records_lead_to_rules_wherever_the_code_went(void **state)
{
	struct jitdump_builder b;
	build_dump(&b);
	struct jitdump d = dump_of(&b);
	assert_int_equal(cfa_off(&d, 0x1000), 8);
	assert_int_equal(cfa_off(&d, 0x1001), 16);
	assert_int_equal(cfa_off(&d, 0x2040), 8);
	assert_int_equal(cfa_off(&d, 0x2053), 16);
	jitdump_fini(&d);
}

/*
 * What node 20 wrote for "function fib(n)", optimized: .eh_frame, then .eh_frame_hdr, for 384 bytes
 * of code.
 */
static const uint8_t v8_unwinding[] =
	"\x18\0\0\0\0\0\0\0\x03zLR\0\x01\x78\x10\x02\xff\x1b\x0c\x07\x08\x90\x01\0\0\0\0"
	"\x28\0\0\0\x20\0\0\0\x5c\xfe\xff\xff\x7e\x01\0\0\0\x4f\x0e\x10\x86\x02\x43\x0d\x06\x03\x04"
	"\x01\x0d\x07\x41\x0e"
	"\x08\x52\x0c\x06\x10\0\0\0\0\0\0\0\0\0\0\0"
	"\x01\x1b\x03\x3b\xb0\xff\xff\xff\x01\0\0\0\x34\xfe\xff\xff\xd0\xff\xff";

static void what_v8_writes_is_read(void **state)
{
	struct jitdump_builder b = {0};
	struct rule_words rule;
	struct cairn_unwind_rule head;
	assert_int_equal(sizeof(v8_unwinding), 96);
	jd_header(&b);
	jd_unwinding(&b, v8_unwinding, sizeof(v8_unwinding), 20, 96);
	jd_load(&b, 0x7f4a64006180, 384, 1, "JS:*fib /srv/w.js:1:13");
	struct jitdump d = dump_of(&b);
	assert_int_equal(cfa_off(&d, 0x7f4a64006180), 8);
	assert_int_equal(cfa_off(&d, 0x7f4a6400618f), 16); /* push %rbp at 14 */
	assert_int_equal(jitdump_rule(&d, jitdump_find(&d, 0x7f4a64006200), 0x7f4a64006200, &rule),
			 0);
	memcpy(&head, rule.words, sizeof(head));
	assert_int_equal(head.reg, 6);
	assert_int_equal(head.off, 16);
	jitdump_fini(&d);
}

static void a_mapped_size_of_0_says_that_there_is_a_frame_pointer(void **state)
{
	struct jitdump_builder b = {0};
	jd_header(&b);
	jd_unwinding(&b, v8_unwinding + 76, 20, 20, 0);
	jd_load(&b, 0x1000, 16, 1, "f");
	jd_load(&b, 0x2000, 16, 2, "g");
	struct jitdump d = dump_of(&b);
	assert_true(jitdump_find(&d, 0x1000)->keeps_frame_pointer);
	assert_int_equal(jitdump_find(&d, 0x1000)->eh_size, 0);
	assert_false(jitdump_find(&d, 0x2000)->keeps_frame_pointer);
	jitdump_fini(&d);
}

static void look_everywhere(const struct jitdump *d)
{
	for (size_t i = 0; i < d->functions.n; i++) {
		const struct jitdump_function *f = &d->functions.p[i];
		struct rule_words rule;
		const char *file;
		jitdump_line(d, f, f->lo, &file);
		jitdump_line(d, f, f->hi - 1, &file);
		jitdump_rule(d, f, f->lo, &rule);
	}
}

static void a_dump_cut_anywhere_has_the_functions_before(void **state)
{
	struct jitdump_builder b;
	size_t before = 0;
	build_dump(&b);
	for (size_t n = 0; n <= b.n; n++) {
		struct jitdump d;
		int rc = read_dump(&b, n, &d);
		assert_int_equal(rc, n < 40 ? -EBADMSG : 0);
		assert_true(d.functions.n >= before && d.functions.n <= 3);
		before = d.functions.n;
		look_everywhere(&d);
		jitdump_fini(&d);
	}
	assert_int_equal(before, 3);
}

static void no_bit_that_is_flipped_in_a_dump_does_harm(void **state)
{
	struct jitdump_builder b;
	build_dump(&b);
	for (size_t bit = 0; bit < b.n * 8; bit++) {
		struct jitdump d;
		b.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		int rc = read_dump(&b, b.n, &d);
		assert_true(rc == 0 || rc == -EBADMSG);
		look_everywhere(&d);
		jitdump_fini(&d);
		b.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void hostile_numbers_in_a_dump_are_refused(void **state)
{
	static const struct jd_line line = {0x5000, 3, "a.js"};
	struct jitdump_builder b = {0};
	struct rule_words rule;
	jd_header(&b);
	jd_load(&b, UINT64_MAX - 1, 16, 1, "wraps");
	jd_load(&b, 0x1000, 0, 2, "empty");
	jd_move(&b, 0x1000, 0x2000, 16, 77);
	jd_unwinding(&b, "", 1, 5, 8);
	size_t lines = b.n;
	jd_lines(&b, 0x5000, &line, 1);
	memset(b.bytes + lines + 24, 0xff, 8); /* how many */
	jd_load(&b, 0x5000, 0x100000000, 3, "large");
	struct jitdump d = dump_of(&b);
	assert_int_equal(d.functions.n, 1);
	assert_line(&d, 0x5000, 3, "a.js");
	assert_int_equal(jitdump_rule(&d, jitdump_find(&d, 0x5000), 0x5000, &rule), 0);
	assert_int_equal(rule.words[0], 0);
	jitdump_fini(&d);
}

static void a_record_smaller_than_its_head_ends_a_dump_and_is_told(void **state)
{
	struct jitdump_builder b = {0};
	jd_header(&b);
	jd_load(&b, 0x1000, 16, 1, "f");
	jd_u32(&b, JD_LOAD);
	jd_u32(&b, 15);
	jd_u64(&b, 0);
	jd_load(&b, 0x2000, 16, 1, "g");
	struct jitdump d = dump_of(&b);
	assert_int_equal(d.functions.n, 1);
	assert_string_equal(d.why, "a record is smaller than its head");
	jitdump_fini(&d);
}

static void a_dump_without_memory_says_so(void **state)
{
	struct jitdump_builder b;
	build_dump(&b);
	for (unsigned int n = 1;; n++) {
		struct jitdump d = {0};
		struct rule_words rule;
		alloc_fail_at(n);
		int rc = read_dump(&b, b.n, &d);
		if (rc == 0)
			rc = jitdump_rule(&d, &d.functions.p[0], 0x1001, &rule);
		bool has_failed = alloc_fail_end();
		jitdump_fini(&d);
		if (!has_failed)
			break;
		assert_int_equal(rc, -ENOMEM);
	}
}

/* ---- who is believed ---- */

static void put(const struct workspace *w, const char *text)
{
	workspace_write(w, "file", text);
}

static int take(const struct workspace *w, const struct stat *known, struct process_file *f,
		bool *is_same)
{
	struct cairn_err err = {0};
	return process_file_read(getpid(), workspace_path(w, "file"), PROCESS_FILE_MAX, known, f,
				 is_same, &err);
}

static void a_file_is_read_when_it_is_new_or_has_changed(void **state)
{
	struct process_file f, again;
	struct workspace w;
	bool is_same;
	workspace_open(&w);
	assert_int_equal(take(&w, NULL, &f, &is_same), 0);
	assert_null(f.bytes);
	put(&w, "one");
	assert_int_equal(take(&w, NULL, &f, &is_same), 0);
	assert_string_equal(f.bytes, "one");
	assert_int_equal(take(&w, &f.st, &again, &is_same), 0);
	assert_true(is_same);
	assert_null(again.bytes);
	put(&w, "and more");
	assert_int_equal(take(&w, &f.st, &again, &is_same), 0);
	assert_false(is_same);
	assert_string_equal(again.bytes, "and more");
	free(f.bytes);
	free(again.bytes);
	workspace_close(&w);
}

static void what_is_no_regular_file_is_not_believed(void **state)
{
	struct process_file f;
	struct workspace w;
	bool is_same;
	workspace_open(&w);
	assert_return_code(mkfifo(workspace_path(&w, "file"), 0600), errno);
	assert_int_equal(take(&w, NULL, &f, &is_same), -EACCES);
	workspace_close(&w);
}

static void a_file_of_another_user_is_not_believed(void **state)
{
	struct process_file f;
	struct workspace w;
	bool is_same;
	if (geteuid() != 0)
		skip();
	workspace_open(&w);
	put(&w, "planted");
	assert_return_code(chown(workspace_path(&w, "file"), 65534, 65534), errno);
	assert_int_equal(take(&w, NULL, &f, &is_same), -EACCES);
	assert_null(f.bytes);
	workspace_close(&w);
}

/* Started by one user, running as another: only what the second one writes. */
static void of_a_setuid_program_the_one_who_started_it_is_not_believed(void **state)
{
	struct process_file f;
	struct workspace w;
	bool is_same;
	int status;
	if (geteuid() != 0)
		skip();
	workspace_open(&w);
	put(&w, "planted");
	assert_return_code(chown(workspace_path(&w, "file"), 65534, 65534), errno);
	int pid = fork();
	if (pid == 0)
		_exit(setresuid(65534, 0, 0) < 0 ? 1 : take(&w, NULL, &f, &is_same) != -EACCES);
	assert_return_code(waitpid(pid, &status, 0), errno);
	assert_int_equal(status, 0);
	workspace_close(&w);
}

static void a_process_in_no_container_sees_its_own_number(void **state)
{
	assert_int_equal(process_own_number(getpid()), getpid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_ranges_that_overlap_the_newest_has_the_addresses),
		cmocka_unit_test(any_ranges_are_as_if_written_one_over_the_other),
		cmocka_unit_test(a_range_may_end_with_the_last_address),
		cmocka_unit_test(lines_with_and_without_0x_are_read_and_the_last_counts),
		cmocka_unit_test(what_is_no_line_is_left_out),
		cmocka_unit_test(a_nul_ends_a_name_and_nothing_else),
		cmocka_unit_test(a_perf_map_cut_anywhere_has_the_lines_before),
		cmocka_unit_test(a_perf_map_without_memory_says_so),
		cmocka_unit_test(functions_of_a_dump_are_found_and_the_newest_counts),
		cmocka_unit_test(lines_go_with_a_function_that_moves),
		cmocka_unit_test(lines_that_are_shifted_by_the_header_of_an_elf_file_are_put_right),
		cmocka_unit_test(lines_and_rules_are_those_of_the_next_load_only),
		cmocka_unit_test(unwinding_records_lead_to_rules_wherever_the_code_went),
		cmocka_unit_test(what_v8_writes_is_read),
		cmocka_unit_test(a_mapped_size_of_0_says_that_there_is_a_frame_pointer),
		cmocka_unit_test(a_dump_cut_anywhere_has_the_functions_before),
		cmocka_unit_test(no_bit_that_is_flipped_in_a_dump_does_harm),
		cmocka_unit_test(hostile_numbers_in_a_dump_are_refused),
		cmocka_unit_test(a_record_smaller_than_its_head_ends_a_dump_and_is_told),
		cmocka_unit_test(a_dump_without_memory_says_so),
		cmocka_unit_test(a_file_is_read_when_it_is_new_or_has_changed),
		cmocka_unit_test(what_is_no_regular_file_is_not_believed),
		cmocka_unit_test(a_file_of_another_user_is_not_believed),
		cmocka_unit_test(of_a_setuid_program_the_one_who_started_it_is_not_believed),
		cmocka_unit_test(a_process_in_no_container_sees_its_own_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
