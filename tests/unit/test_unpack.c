/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that are compressed as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "alloc_fail.h"
#include "elf/unpack.h"

enum { TEXT = 500000, ROOM = 600000 };

static uint8_t text[TEXT], packed[ROOM];

static int make_text(void **state)
{
	uint32_t seed = 7;
	for (size_t i = 0; i < TEXT; i++) {
		seed = seed * 1664525 + 1013904223;
		text[i] = (uint8_t)("aaab"[seed >> 30] + (i / 4096) % 7);
	}
	return 0;
}

static size_t pack_zstd(size_t n)
{
	size_t size = ZSTD_compress(packed, ROOM, text, n, 3);
	assert_false(ZSTD_isError(size));
	return size;
}

static size_t pack_gzip(size_t n)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
	size_t size = libdeflate_gzip_compress(c, text, n, packed, ROOM);
	libdeflate_free_compressor(c);
	assert_true(size > 0);
	return size;
}

static void must_unpack(size_t size, size_t n)
{
	struct cairn_err err = {0};
	uint8_t *bytes;
	size_t found;
	if (unpack(packed, size, "packed", &bytes, &found, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(found, n);
	assert_memory_equal(bytes, text, n);
	free(bytes);
}

static int refused(size_t size, const char *word)
{
	struct cairn_err err = {0};
	uint8_t *bytes;
	size_t n;
	int rc = unpack(packed, size, "packed", &bytes, &n, &err);
	assert_true(rc < 0);
	assert_null(bytes);
	if (!strstr(err.msg, word))
		fail_msg("%s: %s", word, err.msg);
	return rc;
}

static void zstd_and_gzip_give_what_was_packed(void **state)
{
	static const size_t sizes[] = {1, 5000, TEXT};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		must_unpack(pack_zstd(sizes[i]), sizes[i]);
		must_unpack(pack_gzip(sizes[i]), sizes[i]);
	}
}

static void frames_that_follow_each_other_are_one_file(void **state)
{
	size_t first = ZSTD_compress(packed, ROOM, text, 3000, 3);
	size_t second = ZSTD_compress(packed + first, ROOM - first, text + 3000, 40000, 3);
	must_unpack(first + second, 43000);
}

static void what_was_cut_or_changed_is_damaged(void **state)
{
	size_t (*const packs[])(size_t n) = {pack_zstd, pack_gzip};
	for (int i = 0; i < 2; i++) {
		size_t size = packs[i](5000);
		/* The last bytes of a cut gzip are any size, which may be too large. */
		for (size_t n = 6; n < size; n += 13)
			assert_true(refused(n, i ? "" : "damaged zstd") == -EBADMSG || i);
		packed[size / 2] ^= 0x55;
		packed[size / 2 + 1] ^= 0x55;
		if (i)
			assert_int_equal(refused(size, "damaged gzip"), -EBADMSG);
	}
}

static void other_formats_and_sizes_are_refused_with_what_to_do(void **state)
{
	memcpy(packed, "\xfd\x37\x7a\x58\x5a\0", 6);
	assert_int_equal(refused(6, "xz, which is not read here. Unpack it"), -EOPNOTSUPP);
	memcpy(packed, "BZh9", 4);
	assert_int_equal(refused(4, "--debug-file"), -EOPNOTSUPP);
	assert_int_equal(refused(0, "--debug-file"), -EOPNOTSUPP);
	size_t size = pack_gzip(100);
	memcpy(packed + size - 4, "\0\0\0\x20", 4);
	assert_int_equal(refused(size, "more than 256 MB"), -ERANGE);
}

static void without_memory_there_is_nothing(void **state)
{
	size_t (*const packs[])(size_t n) = {pack_zstd, pack_gzip};
	for (int i = 0; i < 2; i++) {
		size_t size = packs[i](TEXT), found;
		for (unsigned int n = 1;; n++) {
			uint8_t *bytes;
			alloc_fail_at(n);
			int rc = unpack(packed, size, "packed", &bytes, &found, NULL);
			bool did_fail = alloc_fail_end();
			assert_int_equal(rc, did_fail ? -ENOMEM : 0);
			free(bytes);
			if (!did_fail)
				break;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zstd_and_gzip_give_what_was_packed),
		cmocka_unit_test(frames_that_follow_each_other_are_one_file),
		cmocka_unit_test(what_was_cut_or_changed_is_damaged),
		cmocka_unit_test(other_formats_and_sizes_are_refused_with_what_to_do),
		cmocka_unit_test(without_memory_there_is_nothing),
	};
	return cmocka_run_group_tests(tests, make_text, NULL);
}
