/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of code made at run time: what is read of lists and dumps, the pages that are made of it,
 * and what a look finds to hold no more
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
#include <unistd.h>

#include "alloc_fail.h"
#include "cfi/rule.h"
#include "elf_builder.h"
#include "frame_builder.h"
#include "walk/made.h"

enum { PAGE = 1 << WALK_PAGE_SHIFT, BASE = 0x700000 };

static struct walk_tables tables;

static int begin(void **state)
{
	(void)state;
	return tables_init(&tables, -1, -1, -1, NULL);
}

static int end(void **state)
{
	(void)state;
	tables_fini(&tables);
	return 0;
}

static struct made_code *new_code(size_t n_symfiles)
{
	struct made_code *made = calloc(1, sizeof(*made));
	struct made_list *list = VEC_PUSH(&made->lists);

	for (size_t i = 0; i < n_symfiles; i++)
		assert_non_null(VEC_PUSH(&list->symfiles));
	return made;
}

/* A span with a row of each rule, 16 bytes apart. */
static void add_span(struct made_code *made, size_t symfile, uint64_t lo, uint64_t hi,
		     uint16_t first_rule)
{
	struct made_rows *rows = &made->lists.p[0].symfiles.p[symfile].rows;
	struct made_span span = {.lo = lo, .hi = hi, .first = (uint32_t)rows->rows.n};

	for (uint64_t at = lo; at < hi; at += 16, span.n++)
		assert_true(VEC_ADD(&rows->rows,
				    ((struct made_row){at, (uint16_t)(first_rule + span.n % 5)})));
	assert_true(VEC_ADD(&rows->spans, span));
}

/* As the kernel's program finds it in a page. */
static uint16_t rule_in_page(const struct made_page *p, uint64_t at)
{
	const struct walk_page *page = chunks_at(&tables.pages, p->record);
	const struct walk_row *rows = (const struct walk_row *)tables.rows.blocks.p[page->chunk];
	uint16_t rule = page->before;

	for (uint32_t i = 0; i < page->n_rows && rows[page->first + i].off <= at - p->at; i++)
		rule = rows[page->first + i].rule;
	return rule;
}

static uint16_t rule_at(const struct made_code *made, uint64_t at)
{
	for (size_t i = 0; i < made->pages.n; i++)
		if (at - made->pages.p[i].at < PAGE)
			return rule_in_page(&made->pages.p[i], at);
	return 0;
}

/* By the spans themselves: the newest file of the list comes first. */
static uint16_t expected_at(const struct made_code *made, uint64_t at)
{
	for (size_t i = 0; i < made->lists.p[0].symfiles.n; i++) {
		const struct made_rows *rows = &made->lists.p[0].symfiles.p[i].rows;
		for (size_t k = rows->spans.n; k-- > 0;) {
			const struct made_span *s = &rows->spans.p[k];
			if (at >= s->lo && at < s->hi)
				return rows->rows.p[s->first + (at - s->lo) / 16].rule;
		}
	}
	return 0;
}

static const struct made_interval all = {0, UINT64_MAX};

static struct made_change build(struct made_code *made)
{
	struct made_change change;

	assert_int_equal(made_build(made, &tables, &all, 1, &change), 0);
	return change;
}

static void assert_rules(const struct made_code *made, uint64_t lo, uint64_t hi)
{
	for (uint64_t at = lo; at < hi; at += 4)
		assert_int_equal(rule_at(made, at), expected_at(made, at));
}

static void pages_have_the_rules_of_the_newest_spans(void **state)
{
	struct made_code *made = new_code(2);
	(void)state;

	/*
	 * Within a page, over the border of two, over a whole one, and one in the middle of
	 * another.
	 */
	add_span(made, 1, BASE + 64, BASE + 256, 10);
	add_span(made, 1, BASE + PAGE - 64, BASE + PAGE + 64, 20);
	add_span(made, 1, BASE + 2 * PAGE - 16, BASE + 4 * PAGE + 32, 30);
	add_span(made, 0, BASE + 128, BASE + 192, 40);
	struct made_change change = build(made);
	assert_int_equal(made->pages.n, 5);
	assert_int_equal(change.stale.n, 0);
	assert_int_equal(change.dropped.n, 0);
	assert_rules(made, BASE, BASE + 6 * PAGE);
	made_change_fini(&change);
	made_free(made);
}

static void rows_are_only_of_memory_that_can_have_code(void **state)
{
	const struct made_interval within[] = {{BASE + 32, BASE + 64}, {BASE + 96, BASE + 112}};
	struct made_code *made = new_code(1);
	struct made_change change;
	(void)state;

	/* Half of all addresses. */
	struct made_rows *rows = &made->lists.p[0].symfiles.p[0].rows;
	assert_true(VEC_ADD(&rows->rows, ((struct made_row){0, 7})));
	assert_true(VEC_ADD(&rows->spans, ((struct made_span){0, UINT64_MAX / 2, 0, 1})));
	assert_int_equal(made_build(made, &tables, within, 2, &change), 0);
	assert_int_equal(made->pages.n, 1);
	for (uint64_t at = BASE; at < BASE + 200; at++) {
		bool is_within =
			(at >= BASE + 32 && at < BASE + 64) || (at >= BASE + 96 && at < BASE + 112);
		assert_int_equal(rule_at(made, at), is_within ? 7 : 0);
	}
	made_change_fini(&change);
	/* All of it has more pages than are taken. */
	assert_false(made->is_cut);
	change = build(made);
	assert_true(made->is_cut);
	assert_true(made->pages.n <= 8192);
	made_change_fini(&change);
	made_free(made);
}

static void a_page_that_is_as_before_keeps_its_record(void **state)
{
	struct made_code *made = new_code(2);
	(void)state;

	add_span(made, 1, BASE + 64, BASE + 256, 10);
	add_span(made, 1, BASE + PAGE + 64, BASE + PAGE + 256, 20);
	struct made_change change = build(made);
	made_change_fini(&change);
	uint32_t first = made->pages.p[0].record, second = made->pages.p[1].record;
	add_span(made, 0, BASE + PAGE + 512, BASE + PAGE + 1024, 30);
	change = build(made);
	assert_int_equal(made->pages.p[0].record, first);
	assert_int_not_equal(made->pages.p[1].record, second);
	assert_int_equal(change.dropped.n, 1);
	assert_int_equal(change.dropped.p[0], second);
	/* Where nothing was, nothing ceased to hold. */
	assert_int_equal(change.stale.n, 0);
	made_change_fini(&change);
	assert_rules(made, BASE, BASE + 2 * PAGE);
	made_free(made);
}

static void what_holds_no_more_is_told(void **state)
{
	struct made_code *made = new_code(2);
	(void)state;

	add_span(made, 1, BASE + 64, BASE + 256, 10);
	struct made_change change = build(made);
	made_change_fini(&change);
	add_span(made, 0, BASE + 128, BASE + 160, 40);
	change = build(made);
	assert_int_equal(change.stale.n, 1);
	assert_int_equal(change.stale.p[0].lo, BASE + 128);
	assert_int_equal(change.stale.p[0].hi, BASE + 160);
	made_change_fini(&change);
	/* The same rows, but the code was made anew: that alone tells. */
	change = build(made);
	assert_int_equal(change.stale.n, 0);
	made_change_fini(&change);
	assert_true(VEC_ADD(&made->touched, ((struct made_interval){BASE + 64, BASE + 96})));
	assert_true(VEC_ADD(&made->touched, ((struct made_interval){BASE + 512, BASE + 600})));
	change = build(made);
	assert_int_equal(change.stale.n, 1);
	assert_int_equal(change.stale.p[0].lo, BASE + 64);
	made_change_fini(&change);
	/* All of it goes. */
	made->lists.p[0].symfiles.p[0].rows.spans.n = made->lists.p[0].symfiles.p[1].rows.spans.n =
		0;
	change = build(made);
	assert_int_equal(change.stale.p[0].lo, BASE + 64);
	assert_int_equal(change.stale.p[change.stale.n - 1].hi, BASE + 256);
	assert_int_equal(made->pages.n, 0);
	made_change_fini(&change);
	made_free(made);
}

static void pages_that_were_dropped_are_used_again(void **state)
{
	uint32_t n_pages = 0, row_next = 0;
	(void)state;

	for (int round = 0; round < 1000; round++) {
		struct made_code *made = new_code(1);
		add_span(made, 0, BASE, BASE + 2 * PAGE, (uint16_t)(1 + round));
		struct made_change change = build(made);
		made_change_fini(&change);
		for (size_t i = 0; i < made->pages.n; i++)
			tables_drop_page(&tables, made->pages.p[i].record);
		made_free(made);
		n_pages = round ? n_pages : tables.n_pages;
		row_next = round ? row_next : tables.row_next;
		assert_int_equal(tables.n_pages, n_pages);
		assert_int_equal(tables.row_next, row_next);
	}
	assert_int_equal(tables.n_made_rows, 0);
	assert_int_equal(tables.n_rows, 0);
}

static void without_memory_the_earlier_pages_stay(void **state)
{
	(void)state;
	for (unsigned int n = 1;; n++) {
		struct made_code *made = new_code(2);
		struct made_change change;
		add_span(made, 1, BASE + 64, BASE + 256, 10);
		change = build(made);
		made_change_fini(&change);
		add_span(made, 0, BASE + 128, BASE + 3 * PAGE, 40);
		uint64_t n_rows = tables.n_made_rows;
		alloc_fail_at(n);
		int rc = made_build(made, &tables, &all, 1, &change);
		bool has_failed = alloc_fail_end();
		if (rc == -ENOMEM) {
			assert_true(has_failed);
			assert_int_equal(made->pages.n, 1);
			assert_int_equal(tables.n_made_rows, n_rows);
			assert_int_equal(rule_at(made, BASE + 130), 10 + 66 / 16 % 5);
		} else {
			assert_int_equal(rc, 0);
			assert_rules(made, BASE, BASE + 3 * PAGE);
		}
		made_change_fini(&change);
		made_free(made);
		if (!has_failed)
			return;
	}
}

static void rules_made_at_run_time_leave_room_for_those_of_files(void **state)
{
	struct rule_words w;
	uint16_t number, first = 0;
	(void)state;

	for (int i = 0; i < TABLES_MADE_RULES + 100; i++) {
		rule_cfa(&w, CAIRN_UNWIND_CFA_REG, 0, 7, 8 + i, 0);
		assert_int_equal(tables_made_rule(&tables,
						  (const struct cairn_unwind_rule *)w.words,
						  &number),
				 0);
		assert_true(!number == (i >= TABLES_MADE_RULES));
		first = i ? first : number;
	}
	assert_true(tables.n_rules < WALK_MAX_RULES / 2);
	/* One that is known has its number all the same. */
	rule_cfa(&w, CAIRN_UNWIND_CFA_REG, 0, 7, 8, 0);
	assert_int_equal(
		tables_made_rule(&tables, (const struct cairn_unwind_rule *)w.words, &number), 0);
	assert_int_equal(number, first);
}

/* ---- lists of this process, as anybody may write them ---- */

struct entry {
	struct entry *next, *prev;
	const void *symfile;
	uint64_t size;
};

struct descriptor {
	uint32_t version, action;
	struct entry *relevant, *first;
};

static int read_list(struct made_code *made, struct descriptor *d, bool *ret_changed)
{
	struct made_sources from = {.pid = getpid()};

	assert_true(VEC_ADD(&from.descriptors, (uintptr_t)d));
	int rc = made_read(made, &from, &tables, ret_changed);
	VEC_FREE(&from.descriptors);
	return rc;
}

static void damaged_lists_give_nothing_and_harm_nobody(void **state)
{
	static uint8_t noise[4096];
	struct entry loop = {&loop, NULL, noise, sizeof(noise)};
	struct entry nowhere = {NULL, NULL, (void *)16, 4096};
	struct entry large = {&nowhere, NULL, noise, UINT64_MAX};
	struct entry lost = {(struct entry *)24, NULL, noise, 0};
	struct entry *firsts[] = {&loop, &nowhere, &large, &lost, (struct entry *)8, NULL};
	struct descriptor d = {1, 0, NULL, NULL};
	bool is_changed;
	(void)state;

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)(i * 31 >> 2);
	memcpy(noise,
	       "\x7f"
	       "ELF\2\1\1",
	       7);
	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		struct made_code *made = calloc(1, sizeof(*made));
		d.first = firsts[i];
		for (int round = 0; round < 3; round++) {
			noise[100] = (uint8_t)round;
			assert_int_equal(read_list(made, &d, &is_changed), 0);
			struct made_change change = build(made);
			assert_int_equal(made->pages.n, 0);
			made_change_fini(&change);
		}
		made_free(made);
	}
}

static void entries_that_come_and_go_are_followed(void **state)
{
	enum { N = 300 };
	static struct entry entries[N];
	static uint8_t file[64];
	struct made_code *made = calloc(1, sizeof(*made));
	struct descriptor d = {1, 0, NULL, NULL};
	unsigned int random = 1;
	bool is_changed;
	(void)state;

	for (int round = 0; round < 100; round++) {
		d.first = NULL;
		size_t n = 0;
		for (size_t i = 0; i < N; i++) {
			random = random * 1103515245u + 12345u;
			if (random >> 16 & 1)
				continue;
			entries[i] = (struct entry){d.first, NULL, file, sizeof(file)};
			d.first = &entries[i];
			n++;
		}
		assert_int_equal(read_list(made, &d, &is_changed), 0);
		assert_int_equal(made->lists.p[0].symfiles.n, n);
		const struct entry *e = d.first;
		for (size_t i = 0; i < n; i++, e = e->next)
			assert_int_equal(made->lists.p[0].symfiles.p[i].entry.at, (uintptr_t)e);
	}
	made_free(made);
}

/* A file that describes 64 bytes of code. */
struct described {
	struct elf_builder *b;
	struct frames frames;
	struct entry entry;
};

static void describe(struct described *d, uint64_t at)
{
	static const uint8_t code[64] = {0x55}, push_rbp[] = {0x41, 0x0e, 16};

	*d = (struct described){.b = eb_new(ET_EXEC)};
	eb_section(d->b, (struct eb_section){.name = ".text",
					     .flags = SHF_ALLOC | SHF_EXECINSTR,
					     .addr = at,
					     EB_BYTES(code)});
	size_t cie = frames_cie_debug(&d->frames, 3, false, 8);
	frames_fde_debug(&d->frames, cie, false, at, sizeof(code), push_rbp, sizeof(push_rbp));
	eb_section(d->b, (struct eb_section){.name = ".debug_frame",
					     .data = d->frames.bytes,
					     .size = d->frames.n});
	d->entry.symfile = eb_finish(d->b, &d->entry.size);
}

static void described_free(struct described *d)
{
	frames_free(&d->frames);
	eb_free(d->b);
}

/* Looks at the list from @first on. Whether the rules of the code at @at do not hold any more. */
static bool is_stale_after(struct made_code *made, struct descriptor *d, struct entry *first,
			   uint64_t at)
{
	struct made_change change = {0};
	bool is_changed, is_stale = false;

	d->first = first;
	assert_int_equal(read_list(made, d, &is_changed), 0);
	if (is_changed)
		change = build(made);
	for (size_t i = 0; i < change.stale.n; i++)
		is_stale |= at >= change.stale.p[i].lo && at < change.stale.p[i].hi;
	made_change_fini(&change);
	return is_stale;
}

/* What is in it may be the same at both looks, and another one in between. */
static void a_list_that_changes_is_believed_after_two_looks(void **state)
{
	enum { OLD = BASE, NEW = BASE + 0x100 };
	struct described old, new;
	struct made_code *made = calloc(1, sizeof(*made));
	struct descriptor d = {1, 0, NULL, NULL};
	(void)state;

	describe(&old, OLD);
	describe(&new, NEW);
	new.entry.next = &old.entry;
	/* Code that comes to what is there. */
	assert_false(is_stale_after(made, &d, &old.entry, OLD));
	assert_int_not_equal(rule_at(made, OLD), 0);
	assert_false(is_stale_after(made, &d, &new.entry, OLD));
	/* It goes, and comes again. */
	assert_true(is_stale_after(made, &d, &old.entry, OLD));
	assert_true(is_stale_after(made, &d, &new.entry, OLD));
	assert_false(is_stale_after(made, &d, &new.entry, OLD));
	made_free(made);

	/* The rest of the list could not be read at first. */
	made = calloc(1, sizeof(*made));
	old.entry.next = (struct entry *)8;
	assert_false(is_stale_after(made, &d, &old.entry, OLD));
	assert_int_not_equal(rule_at(made, OLD), 0);
	old.entry.next = NULL;
	assert_true(is_stale_after(made, &d, &new.entry, OLD));
	assert_false(is_stale_after(made, &d, &new.entry, OLD));
	made_free(made);
	described_free(&old);
	described_free(&new);
}

/* A record of a jitdump for 16 bytes of code at @at. */
struct load_record {
	uint32_t id, size;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, at, n_bytes, index;
	char name[8], code[16];
};

static void add_function(FILE *dump, uint64_t at)
{
	struct load_record r = {.size = sizeof(r), .vma = at, .at = at, .n_bytes = 16, .name = "f"};

	assert_int_equal(fwrite(&r, sizeof(r), 1, dump), 1);
	assert_int_equal(fflush(dump), 0);
}

static FILE *begin_dump(char *path)
{
	struct {
		uint32_t magic, version, size, machine, reserved, pid;
		uint64_t time, flags;
	} head = {0x4a695444, 1, sizeof(head), 62, 0, (uint32_t)getpid(), 0, 0};
	int fd = mkstemps(path, 5);
	FILE *dump = fdopen(fd, "w");

	assert_non_null(dump);
	assert_int_equal(fwrite(&head, sizeof(head), 1, dump), 1);
	return dump;
}

static void a_dump_is_believed_until_two_functions_have_had_one_address(void **state)
{
	char path[] = "/tmp/cairn-made-XXXXXX.dump";
	struct made_sources from = {.pid = getpid()};
	struct made_code *made = calloc(1, sizeof(*made));
	FILE *dump = begin_dump(path);
	bool is_changed;
	(void)state;

	assert_true(VEC_ADD(&from.dumps, path));
	/* Each look finds some more functions, between those of before. */
	for (uint64_t look = 0; look < 8; look++) {
		for (uint64_t i = 0; i < 16; i++)
			add_function(dump, 0x100000 + (i * 8 + look * 5 % 8) * 16);
		assert_int_equal(made_read(made, &from, &tables, &is_changed), 0);
		assert_int_equal(made->dumps.p[0].code.n, 16 * (look + 1));
		for (size_t i = 1; i < made->dumps.p[0].code.n; i++)
			assert_true(made->dumps.p[0].code.p[i - 1].hi <=
				    made->dumps.p[0].code.p[i].lo);
		assert_false(made->is_cut);
	}
	add_function(dump, 0x100000 + 37 * 16 + 8);
	assert_int_equal(made_read(made, &from, &tables, &is_changed), 0);
	assert_true(made->is_cut);
	assert_int_equal(made->dumps.p[0].n_known, SIZE_MAX);
	fclose(dump);
	unlink(path);
	VEC_FREE(&from.dumps);
	made_free(made);
}

static void without_memory_a_look_says_so(void **state)
{
	static uint8_t file[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
	struct entry second = {NULL, NULL, file, sizeof(file)},
		     first = {&second, NULL, file, sizeof(file)};
	struct descriptor d = {1, 0, NULL, &first};
	struct made_sources from = {.pid = getpid()};
	bool is_changed;
	(void)state;

	assert_true(VEC_ADD(&from.descriptors, (uintptr_t)&d));
	assert_true(VEC_ADD(&from.dumps, "/nowhere/jit-1.dump"));
	for (unsigned int n = 1;; n++) {
		struct made_code *made = calloc(1, sizeof(*made));
		alloc_fail_at(n);
		int rc = made_read(made, &from, &tables, &is_changed);
		bool has_failed = alloc_fail_end();
		assert_true(rc == 0 || (has_failed && rc == -ENOMEM));
		/* The next look is a whole one. */
		assert_int_equal(made_read(made, &from, &tables, &is_changed), 0);
		assert_int_equal(made->lists.p[0].symfiles.n, 2);
		made_free(made);
		if (!has_failed)
			break;
	}
	VEC_FREE(&from.descriptors);
	VEC_FREE(&from.dumps);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM(pages_have_the_rules_of_the_newest_spans),
		CLAIM(rows_are_only_of_memory_that_can_have_code),
		CLAIM(a_page_that_is_as_before_keeps_its_record),
		CLAIM(what_holds_no_more_is_told),
		CLAIM(pages_that_were_dropped_are_used_again),
		CLAIM(without_memory_the_earlier_pages_stay),
		CLAIM(rules_made_at_run_time_leave_room_for_those_of_files),
		CLAIM(damaged_lists_give_nothing_and_harm_nobody),
		CLAIM(entries_that_come_and_go_are_followed),
		CLAIM(a_list_that_changes_is_believed_after_two_looks),
		CLAIM(a_dump_is_believed_until_two_functions_have_had_one_address),
		CLAIM(without_memory_a_look_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
