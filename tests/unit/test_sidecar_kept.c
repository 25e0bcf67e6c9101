/* SPDX-License-Identifier: BSD-2-Clause */
/* Sidecars that are kept in a cache, and wrapped for a debuginfod. */
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
#include <unistd.h>

#include <cairn/btf/from_dwarf.h>
#include <cairn/file.h>
#include <cairn/unwind.h>
#include <cairn/sidecar.h>
#include <cairn/source.h>

#include "alloc_fail.h"
#include "space.h"
#include "elf/guard.h"

/* A program of one function, with options for its build-id; skips without the compiler. */
static struct cairn_binary *program(const char *name, const char *options)
{
	struct cairn_binary *bin;
	workspace_write(&space, "prog.c",
			"int twice(int x)\n{\n\treturn 2 * x;\n}\nint main(void)\n{\n\treturn "
			"twice(4);\n}\n");
	if (!workspace_try(&space, "gcc -g -O1 %s -o %s prog.c", options, name))
		skip();
	assert_int_equal(cairn_binary_open(workspace_path(&space, name), NULL, &bin, NULL), 0);
	return bin;
}

#define WITH_ID "-Wl,--build-id"

static struct cairn_sidecar_image packed_of(const struct cairn_binary *bin)
{
	struct cairn_sidecar_make_opts opts = {.size = sizeof(opts), .sites = true};
	struct cairn_sidecar_image image;
	assert_int_equal(cairn_sidecar_make(bin, &opts, &image, NULL), 0);
	return image;
}

/* ---- keeping ---- */

static char cache[256];

static struct cairn_sidecar_search search_in(const char *name)
{
	snprintf(cache, sizeof(cache), "%s", workspace_path(&space, name));
	return (struct cairn_sidecar_search){.size = sizeof(struct cairn_sidecar_search),
					     .cache_dir = cache};
}

static void what_is_kept_already_is_not_made_again(void **state)
{
	struct cairn_binary *bin = program("kept", WITH_ID);
	struct cairn_sidecar_search search = search_in("keep");
	struct cairn_sidecar_image image;
	struct cairn_sidecar *sidecar;
	assert_int_equal(cairn_sidecar_keep(bin, &search, &image, NULL), 1);
	assert_true(image.size > 0);
	cairn_sidecar_image_free(&image);
	assert_int_equal(cairn_sidecar_keep(bin, &search, &image, NULL), 0);
	assert_null(image.bytes);
	search.sites = true;
	assert_int_equal(cairn_sidecar_for(bin, &search, &sidecar, NULL), 0);
	assert_true(cairn_sidecar_is_current(sidecar));
	cairn_sidecar_close(sidecar);
	cairn_binary_close(bin);
}

static void without_a_build_id_or_a_cache_nothing_is_kept(void **state)
{
	struct cairn_binary *bin = program("anonymous", "-Wl,--build-id=none");
	struct cairn_sidecar_search search = search_in("none");
	struct cairn_sidecar_image image;
	struct cairn_err err = {0};
	assert_int_equal(cairn_sidecar_keep(bin, &search, &image, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "no build-id"));
	cairn_binary_close(bin);
	bin = program("kept", WITH_ID);
	search.cache_dir = NULL;
	assert_int_equal(cairn_sidecar_keep(bin, &search, &image, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "no cache"));
	cairn_binary_close(bin);
}

static void in_the_background_a_failure_is_not_repeated_at_once(void **state)
{
	struct cairn_binary *bin = program("again", WITH_ID);
	struct cairn_sidecar_search search = search_in("attempt");
	struct cairn_sidecar_image image;
	struct cairn_err err = {0};
	assert_int_equal(cairn_sidecar_keep(bin, &search, &image, NULL), 1);
	cairn_sidecar_image_free(&image);
	workspace_run(&space, "cd attempt && mv *.cairn $(ls).attempt");
	search.background = true;
	assert_int_equal(cairn_sidecar_keep(bin, &search, &image, &err), -EAGAIN);
	workspace_run(&space, "touch -d '20 minutes ago' attempt/*.attempt");
	assert_int_equal(cairn_sidecar_keep(bin, &search, &image, NULL), 1);
	cairn_sidecar_image_free(&image);
	workspace_run(&space, "test $(ls attempt | wc -l) = 1");
	cairn_binary_close(bin);
}

/* A compiler may be writing it, and the whole one is there in a moment. */
static void a_file_that_changed_while_it_was_read_is_tried_again_at_once(void **state)
{
	struct cairn_binary *bin = program("growing", WITH_ID);
	struct cairn_sidecar_search search = search_in("growing-cache");
	struct cairn_sidecar_image image;
	struct cairn_err err = {0};
	struct stat st;
	search.background = true;
	assert_int_equal(stat(workspace_path(&space, "growing"), &st), 0);
	assert_int_equal(truncate(workspace_path(&space, "growing"), st.st_size - 1), 0);
	assert_int_equal(cairn_sidecar_keep(bin, &search, &image, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "became shorter"));
	cairn_binary_close(bin);
	workspace_run(&space, "test -z \"$(ls -A growing-cache)\"");
	bin = program("growing", WITH_ID);
	assert_int_equal(cairn_sidecar_keep(bin, &search, &image, NULL), 1);
	cairn_sidecar_image_free(&image);
	cairn_binary_close(bin);
}

/* A handle refuses what was made of its own files; others, and later ones, do not know of it. */
static void only_what_is_made_of_a_file_that_was_cut_is_refused(void **state)
{
	struct cairn_sidecar_make_opts opts = {.size = sizeof(opts), .sites = true};
	struct cairn_sidecar_image image;
	struct cairn_btfgen btf;
	struct cairn_sframe_encoded frames;
	struct cairn_source *source;
	struct stat st;
	struct cairn_binary *whole = program("whole", WITH_ID), *cut = program("cut", WITH_ID);
	assert_int_equal(cairn_source_open(workspace_path(&space, "cut"), NULL, &source, NULL), 0);
	assert_null(cairn_binary_shortened(cut));
	assert_int_equal(stat(workspace_path(&space, "cut"), &st), 0);
	assert_int_equal(truncate(workspace_path(&space, "cut"), st.st_size - 1), 0);
	assert_string_equal(cairn_binary_shortened(cut), workspace_path(&space, "cut"));
	assert_string_equal(cairn_source_shortened(source), workspace_path(&space, "cut"));
	assert_int_equal(cairn_sidecar_make(cut, &opts, &image, NULL), -EBADMSG);
	assert_int_equal(cairn_btf_from_dwarf(cut, NULL, &btf, NULL), -EBADMSG);
	assert_int_equal(cairn_sframe_encode(cut, 3, (struct cairn_vaddr){0}, &frames, NULL),
			 -EBADMSG);
	assert_null(cairn_binary_shortened(whole));
	image = packed_of(whole);
	assert_int_equal(cairn_file_write(workspace_path(&space, "whole.out"), image.bytes,
					  image.size, NULL),
			 0);
	cairn_sidecar_image_free(&image);
	cairn_source_close(source);
	cairn_binary_close(cut);
	cairn_binary_close(whole);
	assert_non_null(cairn_inputs_shortened());
}

/* The parts of split DWARF are closed before the sidecar is whole. */
static void a_dwo_file_that_was_cut_is_noticed_after_it_was_closed(void **state)
{
	struct cairn_sidecar_make_opts opts = {.size = sizeof(opts), .sites = true};
	struct cairn_sidecar_image image;
	struct stat st;
	struct cairn_binary *bin = program("split", "-gdwarf-5 -gsplit-dwarf " WITH_ID);
	if (workspace_try(&space, "test ! -e split-prog.dwo"))
		skip();
	assert_int_equal(cairn_sidecar_make(bin, &opts, &image, NULL), 0);
	cairn_sidecar_image_free(&image);
	assert_int_equal(stat(workspace_path(&space, "split-prog.dwo"), &st), 0);
	assert_int_equal(truncate(workspace_path(&space, "split-prog.dwo"), st.st_size - 1), 0);
	assert_non_null(strstr(cairn_binary_shortened(bin), "split-prog.dwo"));
	cairn_binary_close(bin);
}

static void no_memory_for_keeping_is_an_error_and_leaves_no_half_file(void **state)
{
	struct cairn_binary *bin = program("poor", WITH_ID);
	struct cairn_sidecar_search search = search_in("poor-cache");
	struct cairn_sidecar_image image;
	for (unsigned int n = 1;; n += 1 + n / 16) {
		struct cairn_err err = {0};
		workspace_run(&space, "rm -rf poor-cache");
		alloc_fail_at(n);
		int rc = cairn_sidecar_keep(bin, &search, &image, &err);
		bool failed = alloc_fail_end();
		cairn_sidecar_image_free(&image);
		/* Some are for what can be done without, as the name of a file to remove. */
		assert_true(rc == 1 || (failed && rc == -ENOMEM));
		workspace_run(&space, "! ls poor-cache 2>/dev/null | grep -q tmp");
		if (!failed)
			break;
	}
	cairn_binary_close(bin);
}

static void no_memory_for_comparing_is_an_error(void **state)
{
	struct cairn_binary *bin = program("compared", WITH_ID);
	struct cairn_sidecar_image image = packed_of(bin);
	struct cairn_sidecar_opts opts = {.size = sizeof(opts), .binary = bin};
	for (unsigned int n = 1;; n++) {
		struct cairn_sidecar *sidecar = NULL;
		struct cairn_err err = {0};
		alloc_fail_at(n);
		int rc =
			cairn_sidecar_open_mem(image.bytes, image.size, "p", &opts, &sidecar, &err);
		bool failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		if (!rc)
			assert_int_equal(cairn_sidecar_compare(sidecar, NULL), 0);
		cairn_sidecar_close(sidecar);
		if (!failed)
			break;
	}
	cairn_sidecar_image_free(&image);
	cairn_binary_close(bin);
}

/* The sidecar keeps the file open that it is compared with. */
static void a_sidecar_outlives_the_binary_that_it_was_opened_for(void **state)
{
	struct cairn_binary *bin = program("outlived", WITH_ID);
	struct cairn_sidecar_image image = packed_of(bin);
	struct cairn_sidecar_opts opts = {.size = sizeof(opts), .binary = bin};
	struct cairn_sidecar *sidecar;
	assert_int_equal(
		cairn_sidecar_open_mem(image.bytes, image.size, "p", &opts, &sidecar, NULL), 0);
	cairn_binary_close(bin);
	assert_true(cairn_sidecar_is_bound(sidecar));
	assert_int_equal(cairn_sidecar_compare(sidecar, NULL), 0);
	cairn_sidecar_close(sidecar);
	cairn_sidecar_image_free(&image);
}

static void pruning_removes_what_killed_makers_left_when_it_is_old(void **state)
{
	struct cairn_sidecar_pruned pruned;
	workspace_run(&space, "mkdir left && cd left && touch .aa.cairn.1-0.tmp .bb.cairn.2-0.tmp "
			      "cc.cairn.attempt dd.cairn.attempt "
			      ".other.tmp && touch -d '2 hours ago' .aa.cairn.1-0.tmp "
			      "cc.cairn.attempt .other.tmp");
	assert_int_equal(cairn_sidecar_prune(workspace_path(&space, "left"), 1000, &pruned, NULL),
			 0);
	workspace_run(&space, "cd left && test \"$(ls -A | tr '\\n' ' ')\" = '.bb.cairn.2-0.tmp "
			      ".other.tmp dd.cairn.attempt '");
	assert_int_equal(pruned.n_removed, 0);
}

static void as_root_an_open_directory_is_not_pruned(void **state)
{
	struct cairn_sidecar_pruned pruned;
	struct cairn_err err = {0};
	if (geteuid())
		skip();
	workspace_run(&space, "mkdir -p open && chmod 777 open && touch open/a.cairn");
	assert_int_equal(cairn_sidecar_prune(workspace_path(&space, "open"), 0, &pruned, &err),
			 -EPERM);
	assert_non_null(strstr(err.msg, "can be written by other users"));
	workspace_run(&space, "test -e open/a.cairn");
}

/* ---- serving ---- */

static void a_served_id_is_the_real_one_and_more(void **state)
{
	uint8_t real[CAIRN_SIDECAR_SERVED_ID_MAX] = {1, 2, 3}, ret[CAIRN_SIDECAR_SERVED_ID_MAX];
	assert_int_equal(cairn_sidecar_served_id(real, 0, ret), 0);
	assert_int_equal(cairn_sidecar_served_id(real, 3, ret), 9);
	assert_memory_equal(ret, "\1\2\3cairn", 8);
	assert_int_equal(cairn_sidecar_served_id(real, 58, ret), 64);
	assert_int_equal(cairn_sidecar_served_id(real, 59, ret), 0);
}

struct wrapped {
	void *bytes;
	size_t size;
};

static struct wrapped wrapped_of(const struct cairn_binary *bin)
{
	struct cairn_sidecar_image image = packed_of(bin);
	struct wrapped w;
	assert_int_equal(
		cairn_sidecar_wrap(image.bytes, image.size, "packed", &w.bytes, &w.size, NULL), 0);
	cairn_sidecar_image_free(&image);
	return w;
}

static void a_wrapped_sidecar_answers_as_the_sidecar_does(void **state)
{
	struct cairn_binary *bin = program("served", WITH_ID);
	struct wrapped w = wrapped_of(bin);
	struct cairn_sidecar_opts opts = {.size = sizeof(opts)};
	struct cairn_sidecar *sidecar;
	uint32_t number;
	opts.build_id = cairn_binary_build_id(bin, &opts.build_id_len);
	assert_int_equal(cairn_sidecar_open_mem(w.bytes, w.size, "wrapped", &opts, &sidecar, NULL),
			 0);
	assert_int_equal(cairn_sidecar_find(sidecar, "twice", &number, 1), 1);
	assert_int_equal(cairn_sidecar_check(sidecar, NULL), 0);
	cairn_sidecar_close(sidecar);
	free(w.bytes);
	cairn_binary_close(bin);
}

static void what_has_no_build_id_or_is_no_sidecar_is_not_wrapped(void **state)
{
	struct cairn_binary *bin = program("anonymous", "-Wl,--build-id=none");
	struct cairn_sidecar_image image = packed_of(bin);
	struct wrapped w;
	assert_int_equal(
		cairn_sidecar_wrap(image.bytes, image.size, "packed", &w.bytes, &w.size, NULL),
		-EINVAL);
	assert_int_equal(
		cairn_sidecar_wrap(image.bytes, image.size / 2, "packed", &w.bytes, &w.size, NULL),
		-EBADMSG);
	cairn_sidecar_image_free(&image);
	cairn_binary_close(bin);
}

static void a_wrapper_cut_at_any_byte_is_refused(void **state)
{
	struct cairn_binary *bin = program("served", WITH_ID);
	struct wrapped w = wrapped_of(bin);
	for (size_t n = 0; n < w.size; n++) {
		struct cairn_sidecar *sidecar;
		struct cairn_err err = {0};
		void *cut = malloc(n ? n : 1);
		memcpy(cut, w.bytes, n);
		assert_true(cairn_sidecar_open_mem(cut, n, "cut", NULL, &sidecar, &err) < 0);
		assert_non_null(strstr(err.msg, "cut"));
		free(cut);
	}
	free(w.bytes);
	cairn_binary_close(bin);
}

static void a_flipped_bit_of_a_wrapper_never_leads_out_of_the_file(void **state)
{
	struct cairn_binary *bin = program("served", WITH_ID);
	struct wrapped w = wrapped_of(bin);
	unsigned int refused = 0;
	for (size_t i = 0; i < w.size * 8; i += 3) {
		uint8_t *byte = (uint8_t *)w.bytes + i / 8;
		struct cairn_sidecar *sidecar;
		struct cairn_err err = {0};
		*byte ^= 1u << i % 8;
		int rc = cairn_sidecar_open_mem(w.bytes, w.size, "flipped", NULL, &sidecar, &err);
		if (rc >= 0) {
			rc = cairn_sidecar_check(sidecar, &err);
			cairn_sidecar_close(sidecar);
		}
		assert_true(rc >= 0 || err.msg[0]);
		refused += rc < 0;
		*byte ^= 1u << i % 8;
	}
	assert_true(refused > 100);
	free(w.bytes);
	cairn_binary_close(bin);
}

static void another_programs_sidecar_in_a_wrapper_is_refused(void **state)
{
	struct cairn_binary *bin = program("served", WITH_ID);
	struct wrapped w = wrapped_of(bin);
	struct cairn_sidecar *sidecar;
	struct cairn_err err = {0};
	size_t len;
	const uint8_t *id = cairn_binary_build_id(bin, &len);
	/* The first is in the wrapper's note. */
	uint8_t *in_note = memmem(w.bytes, w.size, id, len);
	assert_non_null(in_note);
	in_note[0] ^= 1;
	guard_seal(w.bytes, w.size);
	assert_int_equal(cairn_sidecar_open_mem(w.bytes, w.size, "lie", NULL, &sidecar, &err),
			 -ESTALE);
	assert_non_null(strstr(err.msg, "lie: .debug_cairn"));
	free(w.bytes);
	cairn_binary_close(bin);
}

static void no_memory_for_a_wrapper_is_an_error(void **state)
{
	struct cairn_binary *bin = program("served", WITH_ID);
	struct cairn_sidecar_image image = packed_of(bin);
	struct wrapped w;
	for (unsigned int n = 1;; n++) {
		alloc_fail_at(n);
		int rc = cairn_sidecar_wrap(image.bytes, image.size, "packed", &w.bytes, &w.size,
					    NULL);
		bool failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		if (!failed)
			break;
	}
	for (unsigned int n = 1;; n++) {
		struct cairn_sidecar *sidecar = NULL;
		alloc_fail_at(n);
		int rc = cairn_sidecar_open_mem(w.bytes, w.size, "wrapped", NULL, &sidecar, NULL);
		bool failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		cairn_sidecar_close(sidecar);
		if (!failed)
			break;
	}
	free(w.bytes);
	cairn_sidecar_image_free(&image);
	cairn_binary_close(bin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept_already_is_not_made_again),
		cmocka_unit_test(without_a_build_id_or_a_cache_nothing_is_kept),
		cmocka_unit_test(in_the_background_a_failure_is_not_repeated_at_once),
		cmocka_unit_test(a_file_that_changed_while_it_was_read_is_tried_again_at_once),
		cmocka_unit_test(only_what_is_made_of_a_file_that_was_cut_is_refused),
		cmocka_unit_test(a_dwo_file_that_was_cut_is_noticed_after_it_was_closed),
		cmocka_unit_test(no_memory_for_keeping_is_an_error_and_leaves_no_half_file),
		cmocka_unit_test(no_memory_for_comparing_is_an_error),
		cmocka_unit_test(a_sidecar_outlives_the_binary_that_it_was_opened_for),
		cmocka_unit_test(pruning_removes_what_killed_makers_left_when_it_is_old),
		cmocka_unit_test(as_root_an_open_directory_is_not_pruned),
		cmocka_unit_test(a_served_id_is_the_real_one_and_more),
		cmocka_unit_test(a_wrapped_sidecar_answers_as_the_sidecar_does),
		cmocka_unit_test(what_has_no_build_id_or_is_no_sidecar_is_not_wrapped),
		cmocka_unit_test(a_wrapper_cut_at_any_byte_is_refused),
		cmocka_unit_test(a_flipped_bit_of_a_wrapper_never_leads_out_of_the_file),
		cmocka_unit_test(another_programs_sidecar_in_a_wrapper_is_refused),
		cmocka_unit_test(no_memory_for_a_wrapper_is_an_error),
	};
	return cmocka_run_group_tests(tests, open_space, close_space);
}
