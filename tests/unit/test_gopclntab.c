/* SPDX-License-Identifier: BSD-2-Clause */
/* Go's own table of functions: what it says, and what is left of it when it is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_fail.h"
#include "cfi/cfi.h"
#include "cfi/table.h"
#include "elf/elf.h"
#include "elf/gopclntab.h"
#include "elf_builder.h"
#include "go_table.h"

struct program {
	struct elf_builder *b;
	struct cairn_binary *bin;
};

static struct program with_table(const void *bytes, size_t n)
{
	static const uint8_t code[0x100] = {0xc3};
	struct program p = {.b = eb_new(ET_EXEC)};
	size_t size;
	eb_section(p.b, (struct eb_section){.name = ".text",
					    .flags = SHF_ALLOC | SHF_EXECINSTR,
					    .addr = GO_TABLE_TEXT,
					    EB_BYTES(code)});
	eb_section(p.b, (struct eb_section){.name = ".gopclntab",
					    .flags = SHF_ALLOC,
					    .addr = 2 * GO_TABLE_TEXT,
					    .data = bytes,
					    .size = n});
	const uint8_t *file = eb_finish(p.b, &size);
	assert_int_equal(binary_open_mem(file, size, "program", &p.bin, NULL), 0);
	return p;
}

static void close_program(struct program *p)
{
	cairn_binary_close(p->bin);
	eb_free(p->b);
}

struct frames {
	uint64_t lo[8];
	int64_t below[8];
	unsigned int n;
};

static int note(void *ctx, uint64_t lo, uint64_t hi, int64_t below)
{
	struct frames *f = ctx;
	f->lo[f->n] = lo;
	f->below[f->n++] = below;
	return 0;
}

static void functions_and_frames_are_read_in_both_versions(void **state)
{
	static const size_t versions[] = {GO_1_18, GO_1_20};
	static const char *const names[] = {"runtime.main", "main.f", "runtime.goexit"};
	for (size_t v = 0; v < 2; v++) {
		struct go_table table;
		go_table_make(versions[v], &table);
		struct program p = with_table(table.bytes, table.n);
		struct gopclntab t;
		struct go_function f;
		assert_true(gopclntab_open(binary_main(p.bin), &t));
		assert_int_equal(t.n, GO_TABLE_FUNCTIONS);
		for (uint32_t i = 0; i < t.n; i++) {
			struct frames frames = {.n = 0};
			assert_true(gopclntab_function(&t, i, &f));
			assert_string_equal(f.name, names[i]);
			assert_true(f.lo == GO_TABLE_TEXT + 32 * i && f.hi == f.lo + 32);
			assert_int_equal(f.is_outermost, i == GO_TABLE_FUNCTIONS - 1);
			assert_int_equal(gopclntab_frames(&t, &f, note, &frames), 0);
			assert_int_equal(frames.n, 3);
			assert_true(frames.lo[1] == f.lo + 4 && frames.lo[2] == f.lo + 24);
			assert_true(frames.below[0] == 0 && frames.below[1] == 24 &&
				    frames.below[2] == 0);
		}
		assert_false(gopclntab_function(&t, t.n, &f));
		close_program(&p);
	}
}

/* How much of the program is described. */
static uint64_t described(struct cairn_binary *bin)
{
	struct cfi *cfi;
	uint8_t *bytes;
	size_t size;
	assert_int_equal(cfi_open(bin, &cfi, NULL), 0);
	int rc = unwind_table_build(cfi, UNWIND_AS_WRITTEN, 1, &bytes, &size, NULL);
	uint64_t n = rc < 0 ? 0 : ((struct cairn_unwind_header *)bytes)->text_bytes;
	assert_true(rc == 0 || rc == -ENOMEM);
	if (rc == 0)
		free(bytes);
	cfi_close(cfi);
	return n;
}

static void a_table_that_is_cut_says_less_and_nothing_else(void **state)
{
	struct go_table table;
	go_table_make(GO_1_20, &table);
	uint64_t last = 0;
	for (size_t n = 0; n <= table.n; n++) {
		uint8_t *bytes = malloc(n + 1);
		memcpy(bytes, table.bytes, n);
		struct program p = with_table(bytes, n);
		uint64_t now = described(p.bin);
		assert_true(now >= last && now <= 32 * GO_TABLE_FUNCTIONS);
		last = now;
		close_program(&p);
		free(bytes);
	}
	assert_int_equal(last, 32 * GO_TABLE_FUNCTIONS);
}

static void without_memory_there_are_no_rows(void **state)
{
	struct go_table table;
	unsigned int n = 0;
	go_table_make(GO_1_20, &table);
	struct program p = with_table(table.bytes, table.n);
	bool failed = true;
	while (failed) {
		struct cfi *cfi = NULL;
		uint8_t *bytes = NULL;
		size_t size;
		alloc_fail_at(++n);
		int rc = cfi_open(p.bin, &cfi, NULL);
		if (rc == 0)
			rc = unwind_table_build(cfi, UNWIND_AS_WRITTEN, 1, &bytes, &size, NULL);
		failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		if (rc == 0)
			free(bytes);
		cfi_close(cfi);
	}
	assert_true(n > 3);
	close_program(&p);
}

/*
 * One function after the other in a table in which all share one list of frames: it says no more
 * than there is code.
 */
static void frames_stay_within_their_function(void **state)
{
	struct go_table table;
	go_table_make(GO_1_20, &table);
	/* The first pair of all: 200 bytes, where functions have 32. */
	for (size_t i = 0; i + 3 < table.n; i++)
		if (!memcmp(table.bytes + i, "\0\2\4\60\24", 5))
			table.bytes[i + 2] = 100;
	struct program p = with_table(table.bytes, table.n);
	struct gopclntab t;
	struct go_function f;
	struct frames frames = {.n = 0};
	assert_true(gopclntab_open(binary_main(p.bin), &t) && gopclntab_function(&t, 0, &f));
	gopclntab_frames(&t, &f, note, &frames);
	assert_int_equal(frames.n, 0);
	close_program(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_and_frames_are_read_in_both_versions),
		cmocka_unit_test(a_table_that_is_cut_says_less_and_nothing_else),
		cmocka_unit_test(without_memory_there_are_no_rows),
		cmocka_unit_test(frames_stay_within_their_function),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
