/* SPDX-License-Identifier: BSD-2-Clause */
/* Sections added to a copy: what other tools read, and what runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/file.h>

#include "alloc_fail.h"
#include "base/inputs.h"
#include "workspace.h"

static struct workspace space;
static char *program, *copy;

static const struct cairn_embed_section two[] = {{".BTF", "types", 5},
						 {".BTF.inline", "sites and more", 15}};

static int open_space(void **state)
{
	workspace_open(&space);
	program = strdup(workspace_path(&space, "program"));
	copy = strdup(workspace_path(&space, "copy"));
	workspace_write(&space, "program.c",
			"#include <stdio.h>\nint main(void) { puts(\"runs\"); return 0; }\n");
	workspace_run(&space, "gcc -g -o program program.c");
	return 0;
}

static int close_space(void **state)
{
	workspace_close(&space);
	free(program);
	free(copy);
	return 0;
}

static void embed(const char *from, const char *to, const struct cairn_embed_section *sections,
		  size_t n)
{
	struct cairn_err err = {0};

	if (cairn_embed(from, to, sections, n, &err) < 0)
		fail_msg("%s", err.msg);
}

static void the_copy_has_the_sections_and_runs(void **state)
{
	embed(program, copy, two, 2);
	workspace_run(&space, "test \"$(./copy)\" = runs");
	workspace_run(&space,
		      "objcopy --dump-section .BTF=a --dump-section .BTF.inline=b copy null");
	workspace_run(&space, "test \"$(cat a)\" = types && test \"$(cat b)\" = 'sites and more'");
	workspace_run(&space, "readelf -aW copy >/dev/null 2>warnings && ! test -s warnings");
	/* All that was there before still is. */
	workspace_run(&space, "readelf -SW program | awk '/\\[/ {print $2, $3}' | grep '^\\.' | "
			      "while read s t; do "
			      "readelf -SW copy | grep -qF \" $s \" || exit 1; done");
	workspace_run(&space,
		      "objcopy --strip-debug copy stripped && test \"$(./stripped)\" = runs");
}

static void a_section_of_the_name_is_replaced(void **state)
{
	const struct cairn_embed_section newer = {".BTF", "newer types", 11};

	embed(program, copy, two, 2);
	embed(copy, copy, &newer, 1);
	workspace_run(&space,
		      "objcopy --dump-section .BTF=a --dump-section .BTF.inline=b copy null");
	workspace_run(&space,
		      "test \"$(cat a)\" = 'newer types' && test \"$(cat b)\" = 'sites and more'");
	workspace_run(&space, "test $(readelf -SW copy | grep -c ' .BTF ') = 1");
}

static void what_is_loaded_is_not_replaced(void **state)
{
	const struct cairn_embed_section text = {".text", "x", 1};
	struct cairn_err err = {0};

	unlink(copy);
	assert_int_equal(cairn_embed(program, copy, &text, 1, &err), -EEXIST);
	assert_non_null(strstr(err.msg, ".text is part of a loaded segment"));
	assert_int_equal(access(copy, F_OK), -1);
}

static void more_sections_than_16_bits_number(void **state)
{
	workspace_run(&space, "awk 'BEGIN { for (i = 0; i < 66000; i++) print \".section .s\" i "
			      "\"; .byte 1\" }' >many.s && "
			      "gcc -c -o many.o many.s");
	embed(workspace_path(&space, "many.o"), copy, two, 2);
	workspace_run(&space, "objcopy --dump-section .BTF.inline=b copy null && test \"$(cat b)\" "
			      "= 'sites and more'");
	workspace_run(&space, "readelf -SW copy | grep -q ' .s65999 '");
}

static void a_damaged_file_is_refused_and_nothing_written(void **state)
{
	char *cut = strdup(workspace_path(&space, "cut"));
	struct stat st;

	assert_int_equal(stat(program, &st), 0);
	unlink(copy);
	/* The table of sections is the last thing in the file. */
	for (off_t size = 0; size < st.st_size; size += size < 64 ? 1 : 97) {
		struct cairn_err err = {0};

		workspace_run(&space, "head -c %ld program >cut", (long)size);
		assert_int_equal(cairn_embed(cut, copy, two, 2, &err), -EBADMSG);
		assert_non_null(strstr(err.msg, "cut: "));
		assert_int_equal(access(copy, F_OK), -1);
	}
	free(cut);
}

/* A program that lives long reads many files. */
static void another_input_that_became_shorter_stops_no_writing(void **state)
{
	workspace_run(&space, "rm -f copy && cp program input");
	int fd = open(workspace_path(&space, "input"), O_RDWR | O_CLOEXEC);
	struct stat st;
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	void *bytes = input_map(fd, (size_t)st.st_size, workspace_path(&space, "input"));
	assert_non_null(bytes);
	assert_null(input_shortened(bytes));
	assert_int_equal(ftruncate(fd, st.st_size - 1), 0);
	assert_string_equal(input_shortened(bytes), workspace_path(&space, "input"));
	assert_int_equal(cairn_embed(program, copy, two, 2, NULL), 0);
	input_unmap(bytes, (size_t)st.st_size);
	close(fd);
	assert_string_equal(cairn_inputs_shortened(), workspace_path(&space, "input"));
	assert_int_equal(cairn_embed_alone(EM_X86_64, copy, two, 2, NULL), 0);
}

/*
 * Each byte of the header and of the first entries of the table, wrong in two ways: an error, or a
 * copy, but no fault.
 */
static void wrong_bytes_are_survived(void **state)
{
	int fd = open(program, O_RDONLY);
	static uint8_t bytes[1 << 20];
	ssize_t size = read(fd, bytes, sizeof(bytes));
	uint64_t table;

	close(fd);
	assert_true(size > 4096 && size < (ssize_t)sizeof(bytes));
	memcpy(&table, bytes + 40, sizeof(table));
	char *wrong = strdup(workspace_path(&space, "wrong"));
	unsigned int refused = 0;

	for (unsigned int i = 0; i < 2 * (64 + 256); i++) {
		size_t off = i / 2 < 64 ? i / 2 : table + i / 2 - 64;
		uint8_t was = bytes[off];
		struct cairn_err err = {0};

		bytes[off] = i % 2 ? 0xff : was ^ 0x10;
		fd = open(wrong, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		assert_int_equal(write(fd, bytes, (size_t)size), size);
		close(fd);
		int r = cairn_embed(wrong, copy, two, 2, &err);

		assert_true(r == 0 || (r == err.code && err.msg[0]));
		refused += r < 0;
		bytes[off] = was;
	}
	assert_true(refused > 20);
	free(wrong);
}

static void permissions_are_kept_and_failing_allocations_are_errors(void **state)
{
	struct stat st;

	unlink(copy);
	assert_int_equal(chmod(program, 0750), 0);
	for (unsigned int n = 1;; n++) {
		alloc_fail_at(n);
		int r = cairn_embed(program, copy, two, 2, NULL);

		if (!alloc_fail_end()) {
			assert_int_equal(r, 0);
			break;
		}
		assert_true(r == -ENOMEM || r == 0);
		assert_true(r == 0 || access(copy, F_OK) == -1);
		unlink(copy);
	}
	assert_int_equal(stat(copy, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0750);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_copy_has_the_sections_and_runs),
		cmocka_unit_test(a_section_of_the_name_is_replaced),
		cmocka_unit_test(what_is_loaded_is_not_replaced),
		cmocka_unit_test(more_sections_than_16_bits_number),
		cmocka_unit_test(a_damaged_file_is_refused_and_nothing_written),
		cmocka_unit_test(another_input_that_became_shorter_stops_no_writing),
		cmocka_unit_test(wrong_bytes_are_survived),
		cmocka_unit_test(permissions_are_kept_and_failing_allocations_are_errors),
	};

	return cmocka_run_group_tests(tests, open_space, close_space);
}
