/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that a program's loader lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "launch/needed.h"
#include "launch/script.h"

#define LOADER "/lib64/ld-linux-x86-64.so.2"

struct program {
	Elf64_Ehdr e;
	Elf64_Phdr p[2];
	char loader[64];
};

static struct program program_with(const char *loader)
{
	struct program p = {
		.e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		      .e_phoff = sizeof(Elf64_Ehdr),
		      .e_phentsize = sizeof(Elf64_Phdr),
		      .e_phnum = 2},
		.p = {{.p_type = PT_PHDR},
		      {.p_type = PT_INTERP,
		       .p_offset = offsetof(struct program, loader),
		       .p_filesz = strlen(loader) + 1}},
	};

	strcpy(p.loader, loader);
	return p;
}

static void the_loader_is_that_of_the_headers(void **state)
{
	struct program p = program_with(LOADER);
	char path[64];

	assert_true(needed_loader(&p, sizeof(p), path, sizeof(path)));
	assert_string_equal(path, LOADER);
	p = program_with("/lib/ld-musl-x86_64.so.1");
	assert_true(needed_loader(&p, sizeof(p), path, sizeof(path)));
}

static void a_loader_that_is_not_known_to_list_is_not_run(void **state)
{
	static const char *const others[] = {"/bin/sh", "ld-linux-x86-64.so.2", "/tmp/ld", "/",
					     "/ld-linux/run"};
	char path[64];

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct program p = program_with(others[i]);
		assert_false(needed_loader(&p, sizeof(p), path, sizeof(path)));
	}
}

static void a_damaged_program_has_no_loader(void **state)
{
	struct program p = program_with(LOADER);
	char path[sizeof(LOADER)];

	/* Cut at each byte, from a block of its own, whose end a sanitizer watches. */
	for (size_t n = 0; n < offsetof(struct program, loader) + sizeof(LOADER); n++) {
		void *part = malloc(n ? n : 1);
		memcpy(part, &p, n);
		assert_false(needed_loader(part, n, path, sizeof(path)));
		free(part);
	}
	assert_false(needed_loader(&p, sizeof(p), path, sizeof(path) - 1));
	p.loader[sizeof(LOADER) - 1] = 'x';
	assert_false(needed_loader(&p, sizeof(p), path, sizeof(path)));
	p = program_with(LOADER);
	p.p[1].p_offset = UINT64_MAX;
	assert_false(needed_loader(&p, sizeof(p), path, sizeof(path)));
	p = program_with(LOADER);
	p.p[1].p_filesz = 0;
	assert_false(needed_loader(&p, sizeof(p), path, sizeof(path)));
	p = program_with(LOADER);
	p.e.e_phoff = UINT64_MAX - 8;
	assert_false(needed_loader(&p, sizeof(p), path, sizeof(path)));
	p = program_with(LOADER);
	p.e.e_phnum = UINT16_MAX;
	assert_false(needed_loader(&p, sizeof(p), path, sizeof(path)));
}

static void each_line_with_a_file_is_a_path(void **state)
{
	static const char text[] = "\tlinux-vdso.so.1 (0x00007f91e6c86000)\n"
				   "\tliba.so => /opt/with space/liba.so (0x00007f91e3400000)\n"
				   "\tlibgone.so => not found\n"
				   "\t" LOADER " (0x00007f91e6c88000)\n"
				   "\tstatically linked\n"
				   "=> /\n => / (0x\n/no/end";
	struct needed n = {0};

	assert_int_equal(needed_parse(text, sizeof(text) - 1, &n), 0);
	assert_int_equal(n.paths.n, 3);
	assert_string_equal(n.paths.p[0], "/opt/with space/liba.so");
	assert_string_equal(n.paths.p[1], LOADER);
	assert_string_equal(n.paths.p[2], "/");
	needed_free(&n);
	for (size_t i = 0; i < sizeof(text); i++) {
		char *part = malloc(i ? i : 1);
		memcpy(part, text, i);
		assert_int_equal(needed_parse(part, i, &n), 0);
		needed_free(&n);
		free(part);
	}
}

static bool has(const struct needed *n, const char *part)
{
	bool is_found = false;

	for (size_t i = 0; i < n->paths.n; i++)
		is_found |= strstr(n->paths.p[i], part) != NULL;
	return is_found;
}

static void a_real_program_has_its_libraries(void **state)
{
	struct cairn_err err = {0};
	struct needed n;
	char *self = realpath("/proc/self/exe", NULL);

	assert_int_equal(needed_list(self, &n, &err), 0);
	free(self);
	assert_true(has(&n, "libcmocka"));
	assert_true(has(&n, "/libc.so.6"));
	needed_free(&n);
	assert_int_equal(needed_list("/etc/passwd", &n, &err), 0);
	assert_int_equal(n.paths.n, 0);
	assert_int_equal(needed_list("/no/such/program", &n, &err), 0);
	assert_int_equal(n.paths.n, 0);
}

static void a_lack_of_memory_is_said(void **state)
{
	struct cairn_err err = {0};
	char *self = realpath("/proc/self/exe", NULL);
	struct needed n;

	for (unsigned int i = 1;; i++) {
		alloc_fail_at(i);
		int rc = needed_list(self, &n, &err);
		bool has_failed = alloc_fail_end();
		needed_free(&n);
		if (!has_failed)
			break;
		assert_true(rc == -ENOMEM || rc == 0);
	}
	free(self);
}

/* ---- scripts ---- */

static void the_line_of_a_script_is_read_as_the_kernel_reads_it(void **state)
{
	static const struct {
		const char *text, *interpreter, *argument;
	} cases[] = {
		{"#!/bin/sh\n", "/bin/sh", ""},
		{"#! /bin/sh -e \nexit\n", "/bin/sh", "-e"},
		{"#!\t/usr/bin/env python3\n", "/usr/bin/env", "python3"},
		{"#!/usr/bin/env -S a b\n", "/usr/bin/env", "-S a b"},
		{"#!x", "x", ""},
		{"#!\n", NULL, NULL},
		{"#! \t\n/bin/sh", NULL, NULL},
		{"# /bin/sh\n", NULL, NULL},
		{"", NULL, NULL},
	};
	struct script_line line;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool is_script = script_parse(cases[i].text, strlen(cases[i].text), &line);
		assert_int_equal(is_script, cases[i].interpreter != NULL);
		if (!is_script)
			continue;
		assert_string_equal(line.interpreter, cases[i].interpreter);
		assert_string_equal(line.argument, cases[i].argument);
	}
}

static void a_line_that_is_cut_anywhere_is_no_more_than_its_beginning(void **state)
{
	static const char text[] = "#! /usr/bin/env python3\n";
	struct script_line line;

	for (size_t n = 0; n < sizeof(text); n++) {
		char *cut = malloc(n + 1);
		assert_non_null(cut);
		memcpy(cut, text, n);
		if (script_parse(cut, n, &line)) {
			assert_int_equal(
				strncmp(line.interpreter, "/usr/bin/env", strlen(line.interpreter)),
				0);
			assert_int_equal(strncmp(line.argument, "python3", strlen(line.argument)),
					 0);
		}
		free(cut);
	}
}

static void a_line_longer_than_the_kernel_reads_ends_there(void **state)
{
	char text[1000] = "#!/";
	struct script_line line;

	memset(text + 3, 'x', sizeof(text) - 3);
	assert_true(script_parse(text, sizeof(text), &line));
	assert_int_equal(strlen(line.interpreter), SCRIPT_LINE_MAX - 3);
}

static void env_runs_the_first_program_of_its_path(void **state)
{
	char folder[] = "/tmp/cairn-script-XXXXXX", path[64], program[128], found[128];
	struct script_line line = {"/usr/bin/env", "a-tool"};

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "relative:/nowhere:%s:/bin", folder);
	snprintf(program, sizeof(program), "%s/a-tool", folder);
	setenv("PATH", path, 1);
	assert_false(script_of_env(&line, found, sizeof(found)));
	FILE *f = fopen(program, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(program, 0755), 0);
	assert_true(script_of_env(&line, found, sizeof(found)));
	assert_string_equal(found, program);
	assert_false(script_of_env(&line, found, strlen(program)));
	strcpy(line.argument, "-S a-tool");
	assert_false(script_of_env(&line, found, sizeof(found)));
	strcpy(line.argument, "a-tool");
	strcpy(line.interpreter, "/bin/sh");
	assert_false(script_of_env(&line, found, sizeof(found)));
	unlink(program);
	rmdir(folder);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_loader_is_that_of_the_headers),
		cmocka_unit_test(a_loader_that_is_not_known_to_list_is_not_run),
		cmocka_unit_test(a_damaged_program_has_no_loader),
		cmocka_unit_test(each_line_with_a_file_is_a_path),
		cmocka_unit_test(a_real_program_has_its_libraries),
		cmocka_unit_test(a_lack_of_memory_is_said),
		cmocka_unit_test(the_line_of_a_script_is_read_as_the_kernel_reads_it),
		cmocka_unit_test(a_line_that_is_cut_anywhere_is_no_more_than_its_beginning),
		cmocka_unit_test(a_line_longer_than_the_kernel_reads_ends_there),
		cmocka_unit_test(env_runs_the_first_program_of_its_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
