/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Abbreviations found by their bytes. That what they are compiled to is right is checked wherever
 * DIEs are read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "alloc_fail.h"
#include "base/map.h"
#include "dwarf/abbrev_pool.h"
#include "dwarf/constants.h"
#include "dwarf_open.h"

/* A member: name strp, type ref4, place data1; its tag is in front, its code is not. */
#define MEMBER                                                                                     \
	0x0d, 0, DW_AT_name, DW_FORM_strp, DW_AT_type, DW_FORM_ref4, DW_AT_data_member_location,   \
		DW_FORM_data1
#define END 0, 0

/*
 * What an abbreviation takes, followed by something else; the same of it cut off at each byte is
 * nothing.
 */
static size_t bytes_of(const uint8_t *p, size_t n)
{
	uint8_t room[64];
	memcpy(room, p, n);
	memset(room + n, 0x11, sizeof(room) - n);
	size_t taken = dw_abbrev_bytes(room, room + sizeof(room));
	for (size_t cut = 0; cut < taken; cut++) {
		/* At the end of what may be read. */
		uint8_t *alone = malloc(cut + 1);
		memcpy(alone, p, cut);
		assert_int_equal(dw_abbrev_bytes(alone, alone + cut), 0);
		free(alone);
	}
	return taken;
}
#define BYTES_OF(...)                                                                              \
	bytes_of((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void an_abbreviation_ends_after_its_zeros(void **state)
{
	assert_int_equal(BYTES_OF(MEMBER, END), 10);
	assert_int_equal(BYTES_OF(0x34, 1, END), 4);
	/* A tag and an attribute of two bytes. */
	assert_int_equal(BYTES_OF(0x89, 0x82, 0x01, 0, 0xb1, 0x42, DW_FORM_udata, END), 9);
}

static void a_constant_in_the_abbreviation_belongs_to_it(void **state)
{
	assert_int_equal(BYTES_OF(0x34, 0, DW_AT_decl_file, DW_FORM_implicit_const, 5, END), 7);
	assert_int_equal(BYTES_OF(0x34, 0, DW_AT_decl_file, DW_FORM_implicit_const, 0, END), 7);
	/* 64, and 0 in two bytes: the last one is 0. */
	assert_int_equal(BYTES_OF(0x34, 0, DW_AT_decl_file, DW_FORM_implicit_const, 0xc0, 0, END),
			 8);
	assert_int_equal(BYTES_OF(0x34, 0, DW_AT_decl_file, DW_FORM_implicit_const, 0x80, 0, END),
			 8);
}

static void numbers_that_are_longer_than_need_be_are_not_looked_for(void **state)
{
	/* Each pair could be 0, 0 in disguise. */
	assert_int_equal(BYTES_OF(0xb4, 0, 0, END), 0);
	assert_int_equal(BYTES_OF(0x34, 0, 0x80, 0, DW_FORM_udata, END), 0);
	assert_int_equal(BYTES_OF(0x34, 0, DW_AT_name, 0x88, 0, END), 0);
	assert_int_equal(BYTES_OF(0x34, 0, 0x80, 0, 0x80, 0), 0);
}

static void the_same_bytes_are_found_for_the_same_sizes_and_file_only(void **state)
{
	const uint8_t here[] = {MEMBER, END}, elsewhere[] = {MEMBER, END}, other[] = {0x0d, 1, END};
	static const char file;
	struct dw_abbrevs t = {.file = (const struct dw_file *)&file,
			       .addr_size = 8,
			       .offset_size = 4,
			       .ref_addr_size = 4};
	struct dw_abbrevs same = t, wide = t, small = t, old = t, supplementary = t;
	struct dw_abbrev_pool pool = {0};
	const struct dw_abbrev a = {.tag = DW_TAG_member};

	same.off = 77;
	wide.offset_size = 8;
	small.addr_size = 4;
	old.ref_addr_size = 8;
	supplementary.file = NULL;
	assert_null(dw_abbrev_pool_find(&pool, &t, here, sizeof(here)));
	assert_int_equal(dw_abbrev_pool_add(&pool, &t, here, sizeof(here), &a), 0);
	assert_ptr_equal(dw_abbrev_pool_find(&pool, &t, here, sizeof(here)), &a);
	assert_ptr_equal(dw_abbrev_pool_find(&pool, &same, elsewhere, sizeof(elsewhere)), &a);
	assert_null(dw_abbrev_pool_find(&pool, &t, other, sizeof(other)));
	assert_null(dw_abbrev_pool_find(&pool, &t, here, sizeof(here) - 1));
	assert_null(dw_abbrev_pool_find(&pool, &wide, here, sizeof(here)));
	assert_null(dw_abbrev_pool_find(&pool, &small, here, sizeof(here)));
	assert_null(dw_abbrev_pool_find(&pool, &old, here, sizeof(here)));
	assert_null(dw_abbrev_pool_find(&pool, &supplementary, here, sizeof(here)));
	dw_abbrev_pool_fini(&pool);
}

enum { MANY = 20000 };

/*
 * A tag, and a number in two pairs of attribute and form; none of them is DW_FORM_implicit_const.
 */
struct key {
	uint8_t bytes[8];
};

static struct key key_of(uint32_t number)
{
	struct key k = {{0x34, 0, 1, 1, 1, 1, 0, 0}};
	for (int i = 0; i < 4; i++)
		k.bytes[2 + i] = (uint8_t)(64 | (number >> 6 * i & 63));
	return k;
}

static void of_many_each_is_found_or_not_but_never_another(void **state)
{
	struct key *keys = calloc(MANY, sizeof(*keys));
	struct dw_abbrev *abbrevs = calloc(MANY, sizeof(*abbrevs));
	struct dw_abbrev_pool pool = {0};
	struct dw_abbrevs t = {.addr_size = 8};
	size_t found = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		keys[i] = key_of(i);
		assert_int_equal(dw_abbrev_bytes(keys[i].bytes, keys[i].bytes + sizeof(keys[i])),
				 sizeof(keys[i]));
		assert_int_equal(
			dw_abbrev_pool_add(&pool, &t, keys[i].bytes, sizeof(keys[i]), &abbrevs[i]),
			0);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		struct key copy = key_of(i);
		const struct dw_abbrev *a =
			dw_abbrev_pool_find(&pool, &t, copy.bytes, sizeof(copy));
		assert_true(!a || a == &abbrevs[i]);
		found += a != NULL;
	}
	assert_true(found > MANY - MANY / 100);
	for (uint32_t i = MANY; i < 2 * MANY; i++) {
		struct key copy = key_of(i);
		assert_null(dw_abbrev_pool_find(&pool, &t, copy.bytes, sizeof(copy)));
	}
	dw_abbrev_pool_fini(&pool);
	free(abbrevs);
	free(keys);
}

/* Made so that all want one slot of the first 1,024. */
static void what_finds_no_slot_near_its_own_is_left_out(void **state)
{
	enum { PILE = 100 };
	struct key keys[PILE];
	struct dw_abbrev abbrevs[PILE];
	struct dw_abbrev_pool pool = {0};
	struct dw_abbrevs t = {.addr_size = 8};
	uint32_t n = 0, found = 0;

	for (uint32_t i = 0; n < PILE; i++) {
		keys[n] = key_of(i);
		n += (map_hash_bytes(keys[n].bytes, sizeof(keys[n])) & 1023) == 1000;
	}
	for (uint32_t i = 0; i < PILE; i++)
		assert_int_equal(
			dw_abbrev_pool_add(&pool, &t, keys[i].bytes, sizeof(keys[i]), &abbrevs[i]),
			0);
	assert_int_equal(pool.cap, 1024);
	for (uint32_t i = 0; i < PILE; i++) {
		const struct dw_abbrev *a =
			dw_abbrev_pool_find(&pool, &t, keys[i].bytes, sizeof(keys[i]));
		assert_true(!a || a == &abbrevs[i]);
		found += a != NULL;
	}
	assert_true(found && found < PILE);
	assert_int_equal(found, pool.n);
	dw_abbrev_pool_fini(&pool);
}

static void without_memory_it_is_as_it_was(void **state)
{
	struct key *keys = calloc(MANY, sizeof(*keys));
	struct dw_abbrev_pool pool = {0};
	struct dw_abbrevs t = {.addr_size = 8};
	const struct dw_abbrev a = {0};
	unsigned int failed = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		keys[i] = key_of(i);
		alloc_fail_at(1);
		int rc = dw_abbrev_pool_add(&pool, &t, keys[i].bytes, sizeof(keys[i]), &a);
		if (!alloc_fail_end()) {
			assert_int_equal(rc, 0);
			continue;
		}
		failed++;
		assert_int_equal(rc, -ENOMEM);
		assert_null(dw_abbrev_pool_find(&pool, &t, keys[i].bytes, sizeof(keys[i])));
		if (i)
			assert_ptr_equal(
				dw_abbrev_pool_find(&pool, &t, keys[0].bytes, sizeof(keys[0])), &a);
		assert_int_equal(dw_abbrev_pool_add(&pool, &t, keys[i].bytes, sizeof(keys[i]), &a),
				 0);
	}
	/* The first slots, and each time they are doubled. */
	assert_true(failed > 4);
	dw_abbrev_pool_fini(&pool);
	free(keys);
}

static void units_whose_codes_differ_share_what_is_compiled(void **state)
{
	struct db *d = db_new((struct db_format){.version = 5});
	for (uint64_t step = 1; step <= 7; step += 6) {
		db_format(d, (struct db_format){.version = 5, .code_step = step});
		db_unit(d, DW_UT_compile);
		DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
		DB_DIE(d, DW_TAG_base_type, DB_LEAF, DB_STR(DW_AT_name, "int"),
		       DB_U(DW_AT_byte_size, DW_FORM_data1, 4));
		db_null(d);
		db_unit_end(d);
	}
	struct opened o = open_db(d);
	struct dw_die first = root_of(&o, 0), second = root_of(&o, 1);
	assert_ptr_equal(first.abbrev, second.abbrev);
	assert_int_equal(dw_die_child(&first, &first, NULL), 1);
	assert_int_equal(dw_die_child(&second, &second, NULL), 1);
	assert_int_equal(second.tag, DW_TAG_base_type);
	assert_ptr_equal(first.abbrev, second.abbrev);
	shut(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_abbreviation_ends_after_its_zeros),
		cmocka_unit_test(a_constant_in_the_abbreviation_belongs_to_it),
		cmocka_unit_test(numbers_that_are_longer_than_need_be_are_not_looked_for),
		cmocka_unit_test(the_same_bytes_are_found_for_the_same_sizes_and_file_only),
		cmocka_unit_test(of_many_each_is_found_or_not_but_never_another),
		cmocka_unit_test(what_finds_no_slot_near_its_own_is_left_out),
		cmocka_unit_test(without_memory_it_is_as_it_was),
		cmocka_unit_test(units_whose_codes_differ_share_what_is_compiled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
