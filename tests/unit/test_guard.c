/* SPDX-License-Identifier: BSD-2-Clause */
/* Checksums of files that this project wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_fail.h"
#include "elf/guard.h"

/* A file of @n bytes after its head, which is sealed; *@ret_size: all of it. */
static uint8_t *sealed(size_t n, size_t *ret_size)
{
	*ret_size = GUARD_AT + guard_section_size(n) + n;
	uint8_t *file = calloc(1, *ret_size);
	for (size_t i = 0; i < n; i++)
		file[*ret_size - n + i] = (uint8_t)(i * 7 + i / 256);
	guard_seal(file, *ret_size);
	return file;
}

static void a_sealed_file_of_any_size_is_whole(void **state)
{
	static const size_t around[] = {0,
					GUARD_PAGE,
					2 * GUARD_PAGE,
					255 * GUARD_PAGE,
					256 * GUARD_PAGE,
					257 * GUARD_PAGE};
	for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++)
		for (size_t n = around[i] < 40 ? 0 : around[i] - 40; n < around[i] + 40; n++) {
			struct guard *g;
			size_t size;
			uint8_t *file = sealed(n, &size);
			assert_int_equal(guard_open(file, size, "f", &g, NULL), 0);
			assert_non_null(g);
			assert_int_equal(g->n_bytes, n);
			assert_int_equal(guard_check_all(g, "f", NULL), 0);
			guard_close(g);
			free(file);
		}
}

static void a_change_of_any_byte_is_found_and_its_page_told(void **state)
{
	size_t size;
	uint8_t *file = sealed(3 * GUARD_PAGE + 100, &size);
	for (size_t i = 0; i < size; i++) {
		struct cairn_err err = {0};
		struct guard *g = NULL;
		file[i] ^= 0x20;
		int rc = guard_open(file, size, "f", &g, &err);
		/* Without its name there is no seal, which whoever opens a sidecar asks for. */
		if (i >= GUARD_AT && i < GUARD_AT + 8) {
			assert_null(g);
		} else {
			if (g)
				rc = guard_check_all(g, "f", &err);
			assert_int_equal(rc, -EBADMSG);
			assert_non_null(strstr(err.msg, "f: damaged"));
		}
		guard_close(g);
		file[i] ^= 0x20;
	}
	free(file);
}

static void a_file_cut_at_any_byte_is_refused(void **state)
{
	size_t size;
	uint8_t *file = sealed(2 * GUARD_PAGE + 5, &size);
	for (size_t n = 0; n < size; n++) {
		struct guard *g = NULL;
		uint8_t *cut = malloc(n ? n : 1);
		memcpy(cut, file, n);
		int rc = guard_open(cut, n, "f", &g, NULL);
		assert_true(rc == -EBADMSG || (n < GUARD_AT + GUARD_HEAD && !g));
		free(cut);
	}
	free(file);
}

static void only_what_is_asked_for_is_checked(void **state)
{
	size_t size;
	struct guard *g;
	uint8_t *file = sealed(4 * GUARD_PAGE, &size);
	uint8_t *pages = file + size - 4 * GUARD_PAGE;
	pages[2 * GUARD_PAGE] ^= 1;
	assert_int_equal(guard_open(file, size, "f", &g, NULL), 0);
	assert_true(guard_check(g, pages, 2 * GUARD_PAGE));
	assert_true(guard_near(g, pages));
	assert_true(guard_check(g, pages + 3 * GUARD_PAGE, 1));
	assert_int_equal(guard_verdict(g, "f", NULL), 0);
	/* It vouches for the next page, too. */
	assert_false(guard_near(g, pages + GUARD_PAGE));
	assert_false(guard_check(g, pages + 2 * GUARD_PAGE - 1, 2));
	assert_int_equal(guard_verdict(g, "f", NULL), -EBADMSG);
	guard_close(g);
	free(file);
}

static void no_memory_is_an_error(void **state)
{
	size_t size;
	struct guard *g;
	struct cairn_err err = {0};
	uint8_t *file = sealed(100, &size);
	alloc_fail_at(1);
	int rc = guard_open(file, size, "f", &g, &err);
	assert_true(alloc_fail_end());
	assert_int_equal(rc, -ENOMEM);
	free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sealed_file_of_any_size_is_whole),
		cmocka_unit_test(a_change_of_any_byte_is_found_and_its_page_told),
		cmocka_unit_test(a_file_cut_at_any_byte_is_refused),
		cmocka_unit_test(only_what_is_asked_for_is_checked),
		cmocka_unit_test(no_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
