/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <cairn/text.h>

#include "base/arena.h"
#include "base/cursor.h"
#include "base/keyed.h"
#include "base/large_vec.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/search.h"
#include "base/vec.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static struct cursor over(const uint8_t *bytes, size_t n, struct cairn_err *err)
{
	static struct cursor_src src = {.file = "input", .section = ".test"};
	src.base = bytes;
	return cursor_of(&src, bytes, n, false, err);
}

static void a_count_agrees_with_its_noun(void **state)
{
	char longest[64];

	assert_string_equal(cairn_counted(0, "event").text, "0 events");
	assert_string_equal(cairn_counted(1, "event").text, "1 event");
	assert_string_equal(cairn_counted(2, "event").text, "2 events");
	assert_string_equal(cairn_counted(1, "body").text, "1 body");
	assert_string_equal(cairn_counted(3, "body").text, "3 bodies");
	assert_string_equal(cairn_counted(2, "array").text, "2 arrays");
	assert_string_equal(cairn_counted(2, "process").text, "2 processes");
	assert_string_equal(cairn_counted(2, "box").text, "2 boxes");
	/* A noun of 40 letters after the longest number is whole. */
	snprintf(longest, sizeof(longest), "%040d", 0);
	assert_int_equal(strlen(cairn_counted(UINT64_MAX, longest).text), 20 + 1 + 40 + 1);
	/* Two in one statement. */
	assert_string_not_equal(cairn_counted(1, "byte").text, cairn_counted(2, "byte").text);
}

static void cursor_reads_little_and_big_endian(void **state)
{
	const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
	struct cursor c = over(bytes, sizeof(bytes), NULL);
	assert_int_equal(cur_u16(&c), 0x0201);
	assert_int_equal(cur_u32(&c), 0x06050403);
	assert_int_equal(cur_uint(&c, 3), 0x090807);
	c = over(bytes, sizeof(bytes), NULL);
	c.big_endian = true;
	assert_int_equal(cur_u16(&c), 0x0102);
	assert_int_equal(cur_uint(&c, 3), 0x030405);
	assert_false(c.failed);
}

static void cursor_tells_where_the_data_ended_and_only_once(void **state)
{
	const uint8_t bytes[] = {1, 2, 3};
	struct cairn_err err = {0};
	struct cursor c = over(bytes, sizeof(bytes), &err);
	cur_u8(&c);
	assert_int_equal(cur_u32(&c), 0);
	assert_true(c.failed);
	assert_int_equal(err.code, -EBADMSG);
	assert_non_null(strstr(err.msg, "input: .test+0x1"));
	err.msg[0] = 0;
	assert_int_equal(cur_u8(&c), 0);
	assert_string_equal(err.msg, "");
	assert_false(cur_more(&c));
}

static void leb128_values(void **state)
{
	static const struct {
		uint8_t bytes[12];
		size_t n;
		uint64_t u;
		int64_t s;
	} cases[] = {
		{{0x02}, 1, 2, 2},
		{{0x7f}, 1, 127, -1},
		{{0xff, 0x00}, 2, 127, 127},
		{{0x80, 0x7f}, 2, 16256, -128},
		{{0x81, 0x80, 0x00}, 3, 1, 1},
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 10, UINT64_MAX, -1},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cursor c = over(cases[i].bytes, cases[i].n, NULL);
		assert_int_equal(cur_uleb(&c), cases[i].u);
		assert_false(c.failed);
		c = over(cases[i].bytes, cases[i].n, NULL);
		assert_int_equal(cur_sleb(&c), cases[i].s);
		assert_false(c.failed);
	}
}

static void leb128_beyond_64_bits_is_refused(void **state)
{
	uint8_t bytes[11] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0};
	struct cursor c = over(bytes, sizeof(bytes), NULL);
	cur_uleb(&c);
	assert_true(c.failed);
	memset(bytes, 0x80, sizeof(bytes));
	c = over(bytes, sizeof(bytes), NULL);
	cur_uleb(&c);
	assert_true(c.failed);
}

static void string_without_an_end_is_refused(void **state)
{
	const uint8_t bytes[] = {'a', 'b'};
	struct cursor c = over(bytes, sizeof(bytes), NULL);
	assert_string_equal(cur_str(&c), "");
	assert_true(c.failed);
}

static void sub_cursor_cannot_leave_its_part(void **state)
{
	const uint8_t bytes[] = {1, 2, 3, 4};
	struct cursor c = over(bytes, sizeof(bytes), NULL);
	struct cursor sub = cur_sub(&c, 2);
	assert_int_equal(cur_u8(&c), 3);
	cur_u16(&sub);
	assert_false(sub.failed);
	cur_u8(&sub);
	assert_true(sub.failed);
	sub = cur_sub(&c, 2);
	assert_true(sub.failed);
}

static void map_finds_what_was_put(void **state)
{
	struct map m;
	map_init(&m);
	uint64_t v;
	assert_false(map_get(&m, 0, &v));
	for (uint64_t k = 0; k < 10000; k++)
		assert_int_equal(map_put(&m, k * 7919, k), 0);
	assert_int_equal(map_put(&m, 0, 42), 0);
	assert_int_equal(m.n, 10000);
	for (uint64_t k = 1; k < 10000; k++) {
		assert_true(map_get(&m, k * 7919, &v));
		assert_int_equal(v, k);
	}
	assert_true(map_get(&m, 0, &v));
	assert_int_equal(v, 42);
	assert_false(map_get(&m, 1, &v));
	map_fini(&m);
}

static void arena_keeps_pieces_apart(void **state)
{
	struct arena a, b;
	arena_init(&a);
	arena_init(&b);
	char *one = arena_strdup(&a, "one");
	char *big = arena_alloc(&a, 3 << 20);
	char *two = arena_printf(&b, "%d", 2);
	memset(big, 'x', 3 << 20);
	arena_adopt(&a, &b);
	arena_fini(&b);
	assert_string_equal(one, "one");
	assert_string_equal(two, "2");
	assert_null(arena_array(&a, SIZE_MAX / 4, 8));
	arena_fini(&a);
}

static int square(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	uint64_t *out = ctx;
	if (item == 700 || item == 900)
		return err_set(err, -EBADMSG, "item %zu", item);
	out[item] = item * item;
	return 0;
}

static void pool_runs_every_item_and_reports_the_lowest_failure(void **state)
{
	static uint64_t out[1000];
	for (unsigned int threads = 1; threads <= 4; threads++) {
		memset(out, 0, sizeof(out));
		assert_int_equal(pool_run(600, threads, square, out, NULL), 0);
		for (size_t i = 0; i < 600; i++)
			assert_int_equal(out[i], i * i);
		struct cairn_err err = {0};
		assert_int_equal(pool_run(1000, threads, square, out, &err), -EBADMSG);
		assert_string_equal(err.msg, "item 700");
	}
	assert_int_equal(pool_run(0, 0, square, out, NULL), 0);
}

static void large_tables_are_zero_and_begin_at_a_large_page(void **state)
{
	enum { LARGE = 2 << 20 };
	static const size_t sizes[] = {0, 1, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE + 12345};
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t n = sizes[i];
		unsigned char *p = pages_zeroed(n, 1);
		assert_non_null(p);
		for (size_t k = 0; k < n; k++) {
			if (p[k])
				fail_msg("byte %zu of %zu", k, n);
			p[k] = 0xa5;
		}
		assert_true(n < LARGE || (uintptr_t)p % LARGE == 0);
		pages_free(p, n, 1);
	}
	pages_free(NULL, LARGE, 8);
	assert_null(pages_zeroed(SIZE_MAX, 2));
	assert_null(pages_zeroed(SIZE_MAX / 2, 1));
	assert_null(pages_zeroed(SIZE_MAX - 1, 1));
}

static void a_large_vector_keeps_its_items_while_its_pages_move(void **state)
{
	enum { N = 3 << 20 };
	VEC(uint32_t) v = {0};
	for (uint32_t i = 0; i < N; i++)
		if (!LARGE_ADD(&v, i * 7))
			fail_msg("item %u", i);
	assert_int_equal(v.n, N);
	for (uint32_t i = 0; i < N; i++)
		if (v.p[i] != i * 7)
			fail_msg("item %u is %u", i, v.p[i]);
	assert_false(LARGE_RESERVE(&v, SIZE_MAX / 2));
	assert_false(LARGE_RESERVE(&v, (size_t)1 << 50));
	assert_int_equal(v.p[N - 1], (N - 1) * 7);
	LARGE_FREE(&v);
	assert_null(v.p);
	LARGE_FREE(&v);
}

static void each_bit_and_the_length_of_a_string_count_in_its_hash(void **state)
{
	enum { LONGEST = 40 };
	unsigned char bytes[LONGEST] = {0};
	for (size_t n = 0; n < LONGEST; n++) {
		uint64_t hash = map_hash_bytes(bytes, n);
		assert_int_not_equal(hash, map_hash_bytes(bytes, n + 1));
		for (size_t bit = 0; bit < 8 * n; bit++) {
			bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
			assert_int_not_equal(hash, map_hash_bytes(bytes, n));
			bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		}
		assert_int_equal(hash, map_hash_bytes(bytes, n));
	}
}

static void keyed_things_come_in_order_and_equal_ones_as_they_were(void **state)
{
	enum { MOST = 3000 };
	static struct keyed k[MOST];
	static const uint32_t spreads[] = {1, 3, 255, 256, 70000, 0x1000000, UINT32_MAX};
	uint64_t random = 1;
	for (size_t s = 0; s < ARRAY_SIZE(spreads); s++)
		for (size_t n = 0; n < MOST; n = n < 40 ? n + 1 : n * 3) {
			for (size_t i = 0; i < n; i++) {
				random = random * 6364136223846793005 + 1442695040888963407;
				k[i].key = (uint32_t)(random >> 33) % spreads[s] +
					   (UINT32_MAX - spreads[s]);
				k[i].value = (uint32_t)i;
			}
			assert_int_equal(keyed_sort(k, n), 0);
			bool seen[MOST] = {0};
			for (size_t i = 0; i < n; i++) {
				assert_true(k[i].value < n && !seen[k[i].value]);
				seen[k[i].value] = true;
				if (i)
					assert_true(k[i - 1].key < k[i].key ||
						    (k[i - 1].key == k[i].key &&
						     k[i - 1].value < k[i].value));
			}
		}
}

/*
 * Each count of items up to 20, each part of them, each value: what is there and what is between.
 */
static void a_search_gives_what_a_walk_gives(void **state)
{
	static const uint8_t items[20] = {1,  3,  3,  3,  7,  9,  9,  11, 13, 15,
					  17, 17, 19, 21, 23, 23, 23, 25, 27, 29};
	for (uint32_t n = 0; n <= ARRAY_SIZE(items); n++)
		for (uint32_t from = 0; from <= n; from++)
			for (unsigned int key = 0; key <= 30; key++) {
				uint32_t first = from, last = from;
				while (first < n && items[first] <= key)
					first++;
				if (first > from)
					last = first - 1;
				assert_int_equal(SEARCH(from, n, i, items[i] <= key), first);
				assert_int_equal(SEARCH_LAST(from, n - from, i, items[i] <= key),
						 last);
			}
	assert_int_equal(SEARCH(UINT64_MAX - 9, UINT64_MAX, i, i < UINT64_MAX - 3), UINT64_MAX - 3);
}

static bool ask(uint32_t i, uint32_t border, uint8_t *asked)
{
	assert_int_equal(asked[i], 0);
	asked[i] = 1;
	return i < border;
}

static void a_search_asks_no_index_twice(void **state)
{
	for (uint32_t border = 0; border <= 100; border++) {
		uint8_t asked[100] = {0}, n_asked = 0;
		assert_int_equal(SEARCH(0, 100u, i, ask(i, border, asked)), border);
		for (size_t i = 0; i < sizeof(asked); i++)
			n_asked += asked[i];
		assert_true(n_asked <= 7);
	}
}

static void vector_grows(void **state)
{
	VEC(uint32_t) v = {0};
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(VEC_ADD(&v, i));
	assert_int_equal(v.n, 1000);
	assert_int_equal(v.p[999], 999);
	VEC_FREE(&v);
}

static void outer_frames_put_while_in_front(void **state)
{
	struct cairn_err err = {0};
	assert_int_equal(err_set(&err, -ENOENT, "no such thing as %d", 3), -ENOENT);
	assert_int_equal(err_while(&err, -ENOENT, "while looking for %s", "it"), -ENOENT);
	assert_string_equal(err.msg, "while looking for it: no such thing as 3");
	assert_int_equal(err_set(NULL, -EINVAL, "nobody listens"), -EINVAL);
}

/* Text is passed on in steps of 8 bytes. A byte may stand at each place of a step, and after it. */
static void each_byte_of_a_text_is_quoted_wherever_it_stands(void **state)
{
	enum { N = 19 };
	for (unsigned int byte = 1; byte < 256; byte++)
		for (size_t at = 0; at < N; at++) {
			char name[N + 1] = {0}, expected[N + 8], quoted[N + 8], *put = expected;
			memset(name, '~', N);
			name[at] = (char)byte;
			for (size_t i = 0; i < N; i++) {
				unsigned char c = (unsigned char)name[i];
				put += c < 0x20 || c > 0x7e ? sprintf(put, "\\x%02x", c)
							    : sprintf(put, "%c", c);
			}
			assert_int_equal(
				cairn_quote(name, CAIRN_QUOTE_TEXT, quoted, sizeof(quoted)),
				put - expected);
			assert_string_equal(quoted, expected);
			assert_int_equal(cairn_quote(name, CAIRN_QUOTE_TEXT, NULL, 0),
					 put - expected);
		}
}

static void a_name_is_cut_where_its_buffer_ends(void **state)
{
	char to[8];
	assert_int_equal(cairn_quote("1234567", CAIRN_QUOTE_TEXT, to, sizeof(to)), 7);
	assert_string_equal(to, "1234567");
	assert_int_equal(cairn_quote("12345678", CAIRN_QUOTE_TEXT, to, sizeof(to)), 8);
	assert_string_equal(to, "1234567");
	assert_int_equal(cairn_quote("12345\n", CAIRN_QUOTE_TEXT, to, sizeof(to)), 9);
	assert_string_equal(to, "12345");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_count_agrees_with_its_noun),
		cmocka_unit_test(cursor_reads_little_and_big_endian),
		cmocka_unit_test(cursor_tells_where_the_data_ended_and_only_once),
		cmocka_unit_test(leb128_values),
		cmocka_unit_test(leb128_beyond_64_bits_is_refused),
		cmocka_unit_test(string_without_an_end_is_refused),
		cmocka_unit_test(sub_cursor_cannot_leave_its_part),
		cmocka_unit_test(map_finds_what_was_put),
		cmocka_unit_test(arena_keeps_pieces_apart),
		cmocka_unit_test(pool_runs_every_item_and_reports_the_lowest_failure),
		cmocka_unit_test(large_tables_are_zero_and_begin_at_a_large_page),
		cmocka_unit_test(a_large_vector_keeps_its_items_while_its_pages_move),
		cmocka_unit_test(each_bit_and_the_length_of_a_string_count_in_its_hash),
		cmocka_unit_test(keyed_things_come_in_order_and_equal_ones_as_they_were),
		cmocka_unit_test(a_search_gives_what_a_walk_gives),
		cmocka_unit_test(a_search_asks_no_index_twice),
		cmocka_unit_test(vector_grows),
		cmocka_unit_test(outer_frames_put_while_in_front),
		cmocka_unit_test(each_byte_of_a_text_is_quoted_wherever_it_stands),
		cmocka_unit_test(a_name_is_cut_where_its_buffer_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
