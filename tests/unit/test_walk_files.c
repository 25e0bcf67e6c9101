/* SPDX-License-Identifier: BSD-2-Clause */
/* Which number a mapped file has: by its content, and not by its name and inode alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "walk/watched.h"
#include "workspace.h"

static struct workspace space;
static struct walk_files files;
static struct watched sampled;

/* Two programs of one size whose code differs. */
static const char SOURCE[] = "int main(int n, char **v) { (void)v; return n * N; }\n";

static int open_space(void **state)
{
	workspace_open(&space);
	workspace_write(&space, "program.c", SOURCE);
	workspace_run(&space, "gcc -O2 -DN=3 -Wl,--build-id=0x1111 -o one program.c && "
			      "gcc -O2 -DN=5 -Wl,--build-id=0x2222 -o two program.c");
	return 0;
}

static int close_space(void **state)
{
	workspace_close(&space);
	return 0;
}

static int begin(void **state)
{
	struct cairn_err err = {0};

	workspace_run(&space, "rm -f file other gone/file && cp one file && mkdir -p gone");
	return files_init(&files, &err);
}

static int end(void **state)
{
	files_fini(&files);
	return 0;
}

static const char *path_of(const char *name)
{
	return workspace_path(&space, name);
}

static struct code_mapping mapping_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (struct code_mapping){.lo = 0x10000,
				     .hi = 0x20000,
				     .dev = st.st_dev,
				     .ino = st.st_ino,
				     .is_executable = true,
				     .path = path};
}

static uint32_t number_then(const struct code_mapping *m, uint64_t time_ns)
{
	struct cairn_err err = {0};
	uint32_t number;

	assert_int_equal(files_number(&files, getpid(), time_ns, m, &number, &err), 0);
	return number;
}

static uint32_t number_of(const char *name)
{
	struct code_mapping m = mapping_of(path_of(name));

	return number_then(&m, 0);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The kernel's times of files have steps of some milliseconds. */
static void let_time_pass(void)
{
	struct timespec steps = {.tv_nsec = 50000000};

	nanosleep(&steps, NULL);
}

/*
 * Not while its table is made: a program that reads a file which becomes shorter needs a handler.
 */
static void write_again(void)
{
	do
		let_time_pass();
	while (files_n_waited_for(&files));
	workspace_run(&space, "cat two >file");
}

static void a_file_has_one_number(void **state)
{
	uint32_t number = number_of("file");

	assert_true(number > 0);
	assert_non_null(files.list.p[number]->bin);
	assert_int_equal(number_of("file"), number);
	assert_int_not_equal(number_of("two"), number);
}

static void a_file_that_is_written_again_has_another_number(void **state)
{
	uint32_t first = number_of("file");

	assert_true(files_is_as_it_ran(files.list.p[first]));
	write_again();
	uint32_t second = number_of("file");
	assert_int_not_equal(second, first);
	assert_int_equal(number_of("file"), second);
	/* What the first one's binary reads now is the second one's code. */
	assert_false(files_is_as_it_ran(files.list.p[first]));
	assert_true(files_is_as_it_ran(files.list.p[second]));
	assert_memory_equal(files.list.p[first]->identity.build_id, "\x11\x11", 2);
	assert_memory_equal(files.list.p[second]->identity.build_id, "\x22\x22", 2);
}

static void a_copy_that_keeps_the_times_has_another_number(void **state)
{
	struct stat st;
	uint32_t first = number_of("file");

	assert_int_equal(stat(path_of("file"), &st), 0);
	write_again();
	const struct timespec times[2] = {st.st_atim, st.st_mtim};
	assert_int_equal(utimensat(AT_FDCWD, path_of("file"), times, 0), 0);
	assert_int_not_equal(number_of("file"), first);
	assert_false(files_is_as_it_ran(files.list.p[first]));
}

static void other_attributes_and_names_change_nothing(void **state)
{
	uint32_t first = number_of("file");

	let_time_pass();
	workspace_run(&space, "chmod 700 file && ln file other && chmod 755 file");
	assert_int_equal(number_of("file"), first);
	assert_int_equal(number_of("other"), first);
	assert_true(files_is_as_it_ran(files.list.p[first]));
	/* Also when its last name is gone. */
	struct code_mapping m = mapping_of(path_of("file"));
	workspace_run(&space, "rm file other");
	assert_int_equal(number_then(&m, 0), first);
	assert_true(files_is_as_it_ran(files.list.p[first]));
}

static void what_was_mapped_before_it_was_written_is_what_was_there(void **state)
{
	uint64_t before = now_ns();
	uint32_t first = number_of("file"), second;
	struct code_mapping m = mapping_of(path_of("file"));

	write_again();
	let_time_pass();
	/* Reports come late, also after the first one of the new content. */
	assert_int_equal(number_then(&m, before), first);
	second = number_then(&m, now_ns());
	assert_int_not_equal(second, first);
}

static void what_was_made_after_the_mapping_is_not_what_was_mapped(void **state)
{
	uint64_t before = now_ns();

	let_time_pass();
	workspace_run(&space, "cp one other");
	let_time_pass();
	struct code_mapping m = mapping_of(path_of("other"));
	/* As if the inode had been that of a file which was deleted. */
	uint32_t first = number_then(&m, before);
	assert_null(files.list.p[first]->bin);
	assert_non_null(strstr(files.list.p[first]->note, "after it was mapped"));
	uint32_t second = number_then(&m, now_ns());
	assert_int_not_equal(second, first);
	assert_non_null(files.list.p[second]->bin);
}

static void the_inode_of_one_that_could_not_be_opened_is_anothers(void **state)
{
	struct code_mapping m = mapping_of(path_of("file"));
	const char *path = m.path;

	m.path = "/no/such/program";
	uint32_t first = number_then(&m, 0);
	assert_null(files.list.p[first]->bin);
	m.path = path;
	uint32_t second = number_then(&m, 0);
	assert_int_not_equal(second, first);
	assert_string_equal(files.list.p[second]->path, path);
	assert_non_null(files.list.p[second]->bin);
}

static void one_that_could_not_be_opened_is_tried_again_after_a_while(void **state)
{
	struct code_mapping m = mapping_of(path_of("file"));

	workspace_run(&space, "mv file gone/file");
	uint32_t first = number_then(&m, 0);
	struct walk_file *file = files.list.p[first];
	assert_null(file->bin);
	uint64_t wait = file->wait_ns, retry = file->retry_ns;
	assert_true(wait >= 1000000000 && retry > now_ns() - wait);
	/* Still missing: longer, and not another number. */
	file->retry_ns = 0;
	assert_int_equal(number_then(&m, 0), first);
	assert_int_equal(file->wait_ns, 2 * wait);
	workspace_run(&space, "mv gone/file file");
	file->retry_ns = now_ns() + 1000000000000;
	assert_int_equal(number_then(&m, 0), first);
	file->retry_ns = 0;
	uint32_t second = number_then(&m, 0);
	assert_int_not_equal(second, first);
	assert_non_null(files.list.p[second]->bin);
	assert_true(file->is_replaced);
}

static void the_distance_of_openings_has_a_limit(void **state)
{
	struct code_mapping m = mapping_of(path_of("file"));

	m.path = "/no/such/program";
	struct walk_file *file = files.list.p[number_then(&m, 0)];
	for (int i = 0; i < 40; i++) {
		file->retry_ns = 0;
		number_then(&m, 0);
	}
	assert_true(file->wait_ns <= UINT64_C(64000000000));
	assert_int_equal(files.list.n, 2);
}

static const struct walk_mapping *find_mapping(uint64_t at)
{
	const struct walk_known *k = &sampled.list.p[0];

	for (size_t i = 0; i < k->mappings.n; i++)
		if (k->mappings.p[i].lo == at)
			return &k->mappings.p[i];
	return NULL;
}

static int note_written(void *ctx, uint32_t number)
{
	struct cairn_err err = {0};

	*(uint32_t *)ctx = number;
	return watched_file_written(&sampled, number, &err);
}

/* As an update in place does to a library that is in use: no report tells of it. */
static void a_file_that_is_written_while_it_is_mapped_is_found(void **state)
{
	struct cairn_err err = {0};
	int fd = open(path_of("file"), O_RDONLY);
	void *mapped = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	uint32_t found = 0;

	assert_ptr_not_equal(mapped, MAP_FAILED);
	close(fd);
	watched_init(&sampled, &files, -1, -1, -1, false);
	assert_int_equal(watched_add(&sampled, getpid(), false, &err), 0);
	uint32_t first = find_mapping((uintptr_t)mapped)->file;
	assert_int_equal(files_find_written(&files, note_written, &found), 0);
	assert_int_equal(found, 0);
	write_again();
	assert_int_equal(files_find_written(&files, note_written, &found), 0);
	assert_int_equal(found, first);
	assert_int_equal(watched_read_outdated(&sampled, now_ns(), &err), 0);
	assert_int_not_equal(find_mapping((uintptr_t)mapped)->file, first);
	found = 0;
	assert_int_equal(files_find_written(&files, note_written, &found), 0);
	assert_int_equal(found, 0);
	watched_fini(&sampled);
	assert_int_equal(munmap(mapped, 4096), 0);
}

static void ignore(void *ctx, uint32_t number, const struct walk_file *file)
{
}

static struct walk_tables tables;

/* As the caller does when the thread has made the table. */
static void take_tables(void)
{
	struct cairn_err err = {0};

	assert_int_equal(tables_init(&tables, -1, -1, -1, &err), 0);
	while (files_n_waited_for(&files))
		let_time_pass();
	assert_int_equal(files_put_tables(&files, &tables, ignore, NULL, &err), 0);
}

static void a_deleted_file_is_let_go_two_windows_after_its_last_use(void **state)
{
	uint32_t kept = number_of("two"), number = number_of("file");
	struct walk_file *file = files.list.p[number];

	take_tables();
	workspace_run(&space, "rm file");
	for (int i = 0; i < 5; i++) {
		file->is_used = true;
		files_release_unused(&files, &tables);
	}
	assert_non_null(file->bin);
	files_release_unused(&files, &tables);
	assert_non_null(file->bin);
	files_release_unused(&files, &tables);
	assert_null(file->bin);
	assert_false(file->identity.is_taken);
	uint64_t n_rows = tables.n_rows;
	assert_int_not_equal(file->pages.n, 0);
	files_release_unused(&files, &tables);
	assert_int_equal(file->pages.n, 0);
	assert_in_range(tables.n_rows, 1, n_rows - 1);
	/* A file that is there can be run again. */
	assert_non_null(files.list.p[kept]->bin);
	assert_int_equal(number_of("two"), kept);
	/* Another one may have its inode now, and its name. */
	workspace_run(&space, "cp two file");
	struct code_mapping m = mapping_of(path_of("file"));
	m.dev = file->dev;
	m.ino = file->ino;
	assert_int_not_equal(number_then(&m, 0), number);
	tables_fini(&tables);
}

static void a_file_that_is_not_run_for_long_is_let_go_and_known_again(void **state)
{
	uint32_t number = number_of("two"), again;
	struct walk_file *file = files.list.p[number];

	take_tables();
	for (int i = 0; i < 29; i++)
		files_release_unused(&files, &tables);
	assert_non_null(file->bin);
	files_release_unused(&files, &tables);
	assert_null(file->bin);
	files_release_unused(&files, &tables);
	assert_int_equal(file->pages.n, 0);
	again = number_of("two");
	assert_int_not_equal(again, number);
	assert_non_null(files.list.p[again]->bin);
	tables_fini(&tables);
}

static void of_very_many_that_nobody_runs_the_oldest_are_let_go(void **state)
{
	enum { N_FILES = 300, N_OLDER = 150 };
	struct walk_file *file[N_FILES];
	char name[32];

	workspace_run(&space, "for i in $(seq 0 299); do cp two many.$i; done");
	for (int i = 0; i < N_FILES; i++) {
		snprintf(name, sizeof(name), "many.%d", i);
		uint32_t number = number_of(name);
		file[i] = files.list.p[number];
	}
	take_tables();
	for (int i = N_OLDER; i < N_FILES; i++)
		file[i]->is_used = true;
	files_release_unused(&files, &tables);
	for (int i = 0; i < N_FILES; i++)
		assert_non_null(file[i]->bin);
	files_release_unused(&files, &tables);
	for (int i = 0; i < N_FILES; i++)
		assert_int_equal(!file[i]->bin, i < N_OLDER);
	/* Those that are left are few enough to stay for the time that a file has. */
	for (int i = 0; i < 20; i++)
		files_release_unused(&files, &tables);
	assert_non_null(file[N_FILES - 1]->bin);
	tables_fini(&tables);
}

static void a_number_that_nobody_has_any_more_is_another_file_s(void **state)
{
	uint32_t kept = number_of("two"), number = number_of("file"), again;
	size_t n = files.list.n;

	take_tables();
	workspace_run(&space, "rm file");
	for (int i = 0; i < 4; i++) {
		files.list.p[kept]->is_used = true;
		assert_int_equal(files.spare.n, 0);
		files_release_unused(&files, &tables);
	}
	assert_int_equal(files.spare.n, 1);
	/* A file that is there is found as it was; what is new takes the number, and the next one not. */
	assert_int_equal(number_of("two"), kept);
	workspace_run(&space, "cp two third && cp two fourth");
	again = number_of("third");
	assert_int_equal(again, number);
	assert_string_equal(files.list.p[again]->path, path_of("third"));
	assert_int_equal(files.list.n, n);
	assert_int_equal(number_of("fourth"), n);
	assert_int_equal(number_of("third"), number);
	while (files_n_waited_for(&files))
		let_time_pass();
	struct cairn_err err = {0};
	assert_int_equal(files_put_tables(&files, &tables, ignore, NULL, &err), 0);
	assert_true(files.list.p[again]->is_made);
	assert_int_not_equal(files.list.p[again]->pages.n, 0);
	tables_fini(&tables);
}

static void one_that_is_still_missing_does_not_keep_a_number_that_others_get(void **state)
{
	struct code_mapping m = mapping_of(path_of("file"));
	uint32_t number, again, other;

	workspace_run(&space, "rm file");
	m.lo = 0x10000;
	m.hi = 0x20000;
	number = number_then(&m, 0);
	assert_null(files.list.p[number]->bin);
	take_tables();
	for (int i = 0; i < 5; i++)
		files_release_unused(&files, &tables);
	assert_int_equal(files.spare.n, 1);
	again = number_then(&m, 0);
	assert_false(files.list.p[again]->is_spare);
	other = number_of("two");
	assert_int_not_equal(other, again);
	assert_string_equal(files.list.p[again]->path, path_of("file"));
	tables_fini(&tables);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM(a_file_has_one_number),
		CLAIM(a_file_that_is_written_again_has_another_number),
		CLAIM(a_copy_that_keeps_the_times_has_another_number),
		CLAIM(other_attributes_and_names_change_nothing),
		CLAIM(what_was_mapped_before_it_was_written_is_what_was_there),
		CLAIM(what_was_made_after_the_mapping_is_not_what_was_mapped),
		CLAIM(the_inode_of_one_that_could_not_be_opened_is_anothers),
		CLAIM(one_that_could_not_be_opened_is_tried_again_after_a_while),
		CLAIM(the_distance_of_openings_has_a_limit),
		CLAIM(a_file_that_is_written_while_it_is_mapped_is_found),
		CLAIM(a_deleted_file_is_let_go_two_windows_after_its_last_use),
		CLAIM(a_file_that_is_not_run_for_long_is_let_go_and_known_again),
		CLAIM(of_very_many_that_nobody_runs_the_oldest_are_let_go),
		CLAIM(a_number_that_nobody_has_any_more_is_another_file_s),
		CLAIM(one_that_is_still_missing_does_not_keep_a_number_that_others_get),
	};

	return cmocka_run_group_tests(tests, open_space, close_space);
}
