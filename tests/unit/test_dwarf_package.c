/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of a package of .dwo files. What whole packages give is claimed by
 * tests/cli/test_split.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "alloc_fail.h"
#include "dwarf/package.h"
#include "package_index.h"

/* Adds @n bytes of an index, from a block that ends where they do. */
static int add(struct dw_package *p, const uint8_t *bytes, size_t n, struct cairn_err *err)
{
	uint8_t *copy = malloc(n ? n : 1);
	struct cursor_src src = {.file = "a.dwp", .section = ".debug_cu_index", .base = copy};
	memcpy(copy, bytes, n);
	int rc = dw_package_add(p, cursor_of(&src, copy, n, false, err));
	free(copy);
	return rc;
}

static struct dw_package read_back(const struct package_index *x)
{
	uint8_t bytes[PACKAGE_INDEX_BYTES];
	struct dw_package p = {0};
	struct cairn_err err = {0};
	assert_int_equal(add(&p, bytes, package_index_write(x, bytes), &err), 0);
	return p;
}

static void a_unit_is_found_at_each_of_its_bytes_and_nowhere_else(void **state)
{
	struct dw_package p = read_back(&package_v2);
	for (uint64_t off = 0; off < 0x70; off++) {
		const struct dw_package_unit *u = dw_package_at(&p, false, off);
		assert_non_null(u);
		assert_true(u->signature == (off < 0x40 ? 0x99 : 0x1122334455667788));
	}
	assert_null(dw_package_at(&p, false, 0x70));
	assert_null(dw_package_at(&p, false, UINT64_MAX));
	assert_null(dw_package_at(&p, true, 0));
	dw_package_fini(&p);
}

static void columns_of_version_2_and_5_mean_what_each_says(void **state)
{
	struct dw_package p = read_back(&package_v2);
	const struct dw_package_unit *u = dw_package_at(&p, false, 0x40);
	assert_int_equal(u->part[DW_PART_ABBREV], 0x20);
	assert_int_equal(u->part[DW_PART_LOC], 0x10);
	assert_int_equal(u->part[DW_PART_STR_OFFSETS], 8);
	assert_int_equal(u->part[DW_PART_RNGLISTS], 0);
	dw_package_fini(&p);
	p = read_back(&package_v5);
	u = dw_package_at(&p, false, 0x50);
	assert_int_equal(u->part[DW_PART_ABBREV], 1);
	assert_int_equal(u->part[DW_PART_LINE], 2);
	assert_int_equal(u->part[DW_PART_LOC], 3);
	assert_int_equal(u->part[DW_PART_STR_OFFSETS], 4);
	assert_int_equal(u->part[DW_PART_RNGLISTS], 5);
	dw_package_fini(&p);
}

static void units_and_types_are_found_in_one_package(void **state)
{
	uint8_t bytes[PACKAGE_INDEX_BYTES];
	struct dw_package p = read_back(&package_v2);
	assert_int_equal(add(&p, bytes, package_index_write(&package_types, bytes), NULL), 0);
	assert_int_equal(p.units.n, 3);
	assert_true(dw_package_at(&p, true, 0x31)->signature == 0xcc);
	assert_true(dw_package_at(&p, false, 0x31)->signature == 0x99);
	assert_null(dw_package_at(&p, true, 0xf));
	dw_package_fini(&p);
}

static void an_index_cut_at_any_byte_is_refused(void **state)
{
	static const struct package_index *const all[] = {&package_v2, &package_v5, &package_types};
	uint8_t bytes[PACKAGE_INDEX_BYTES];
	for (size_t k = 0; k < 3; k++) {
		size_t n = package_index_write(all[k], bytes);
		for (size_t cut = 0; cut < n; cut++) {
			struct dw_package p = {0};
			struct cairn_err err = {0};
			assert_int_equal(add(&p, bytes, cut, &err), -EBADMSG);
			assert_non_null(strstr(err.msg, ".debug_cu_index"));
			assert_int_equal(p.units.n, 0);
			dw_package_fini(&p);
		}
	}
}

static void refuses(size_t at, uint32_t v, int rc, const char *what)
{
	uint8_t bytes[PACKAGE_INDEX_BYTES];
	struct dw_package p = {0};
	struct cairn_err err = {0};
	size_t n = package_index_write(&package_v5, bytes);
	package_put(bytes, at, v, 4);
	assert_int_equal(add(&p, bytes, n, &err), rc);
	assert_non_null(strstr(err.msg, what));
	dw_package_fini(&p);
}

static void counts_beyond_the_bytes_and_other_versions_are_refused(void **state)
{
	refuses(0, 3, -EOPNOTSUPP, "version 3, expected 2 or 5");
	refuses(4, 0, -EBADMSG, "0 columns, 2 units");
	refuses(4, UINT32_MAX, -EBADMSG, "4294967295 columns");
	refuses(8, UINT32_MAX, -EBADMSG, "4294967295 units");
	refuses(12, UINT32_MAX, -EBADMSG, "4294967295 slots");
}

static void flipped_bits_are_survived(void **state)
{
	uint8_t bytes[PACKAGE_INDEX_BYTES];
	size_t n = package_index_write(&package_v5, bytes);
	for (size_t bit = 0; bit < 8 * n; bit++) {
		struct dw_package p = {0};
		struct cairn_err err = {0};
		bytes[bit / 8] ^= 1u << bit % 8;
		int rc = add(&p, bytes, n, &err);
		assert_true(rc == 0 || (rc == err.code && err.msg[0]));
		bytes[bit / 8] ^= 1u << bit % 8;
		dw_package_fini(&p);
	}
}

static void lack_of_memory_is_told(void **state)
{
	uint8_t bytes[PACKAGE_INDEX_BYTES];
	size_t n = package_index_write(&package_v5, bytes);
	struct cursor_src src = {.file = "a.dwp", .section = ".debug_cu_index", .base = bytes};
	unsigned int failed = 0;
	for (unsigned int i = 1;; i++) {
		struct dw_package p = {0};
		alloc_fail_at(i);
		int rc = dw_package_add(&p, cursor_of(&src, bytes, n, false, NULL));
		bool did_fail = alloc_fail_end();
		dw_package_fini(&p);
		assert_int_equal(rc, did_fail ? -ENOMEM : 0);
		if (!did_fail)
			break;
		failed++;
	}
	assert_true(failed > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_unit_is_found_at_each_of_its_bytes_and_nowhere_else),
		cmocka_unit_test(columns_of_version_2_and_5_mean_what_each_says),
		cmocka_unit_test(units_and_types_are_found_in_one_package),
		cmocka_unit_test(an_index_cut_at_any_byte_is_refused),
		cmocka_unit_test(counts_beyond_the_bytes_and_other_versions_are_refused),
		cmocka_unit_test(flipped_bits_are_survived),
		cmocka_unit_test(lack_of_memory_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
