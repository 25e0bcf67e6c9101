/* SPDX-License-Identifier: BSD-2-Clause */
/* Types of DWARF written by hand: what compilers write rarely, what they never write, and rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/decode.h>

#include "alloc_fail.h"
#include "dwarf/constants.h"
#include "dwarf/types.h"
#include "dwarf_builder.h"
#include "dwarf_open.h"

/* ---- one unit, to be filled ---- */

struct unit {
	struct db *d;
	struct opened o;
	struct cairn_types *graph;
	struct dw_types *r;
};

static struct unit begin_of(uint16_t language, uint8_t addr_size)
{
	struct unit u = {.d = db_new((struct db_format){.version = 5, .addr_size = addr_size})};
	db_unit(u.d, DW_UT_compile);
	DB_DIE(u.d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a"),
	       DB_U(DW_AT_language, DW_FORM_data1, language));
	return u;
}

static struct unit begin(uint16_t language)
{
	return begin_of(language, 8);
}

static void end(struct unit *u)
{
	db_null(u->d);
	db_unit_end(u->d);
	u->o = open_db(u->d);
	assert_int_equal(u->o.rc, 0);
	u->graph = types_new();
	assert_int_equal(dw_types_new(u->o.dw, u->graph, &u->r, NULL), 0);
}

static void close_unit(struct unit *u)
{
	dw_types_free(u->r);
	types_free(u->graph);
	shut(&u->o);
}

/* A label for the DIE that is written next. */
static int here(struct unit *u)
{
	int label = db_label(u->d);
	db_here(u->d, label);
	return label;
}

static int put_int(struct unit *u)
{
	int label = here(u);
	DB_DIE(u->d, DW_TAG_base_type, DB_LEAF, DB_STR(DW_AT_name, "int"),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 4),
	       DB_U(DW_AT_encoding, DW_FORM_data1, DW_ATE_signed));
	return label;
}

static uint32_t read_type(struct unit *u, int label)
{
	uint32_t id = 0;
	struct cairn_err err = {0};
	if (dwarf_type(u->r, db_offset(u->d, label), &id, &err) < 0)
		fail_msg("%s", err.msg);
	if (dwarf_type_complete(u->r, id, &err) < 0)
		fail_msg("%s", err.msg);
	return id;
}

static const struct cairn_type *node(struct unit *u, uint32_t id)
{
	return cairn_types_get(u->graph, id);
}

static void assert_named(struct unit *u, uint32_t id, const char *expected)
{
	char buf[256];
	cairn_types_name(u->graph, id, buf, sizeof(buf));
	assert_string_equal(buf, expected);
}

static void assert_shows(struct unit *u, uint32_t id, const void *bytes, size_t n,
			 const char *expected)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	assert_int_equal(cairn_value_print(u->graph, id, bytes, n, NULL, out), 0);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

/* ---- what is rare ---- */

static void old_bit_offsets_count_from_the_top_and_may_be_negative(void **state)
{
	struct unit u = begin(DW_LANG_C99);
	int i = put_int(&u), s = here(&u);
	DB_DIE(u.d, DW_TAG_structure_type, DB_CHILDREN, DB_STR(DW_AT_name, "s"),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 9));
	/* Bits 35 to 37, with the size of the storage said here and by the type. */
	DB_DIE(u.d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "a"), DB_REF(DW_AT_type, i),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 4), DB_U(DW_AT_bit_size, DW_FORM_data1, 3),
	       DB_U(DW_AT_bit_offset, DW_FORM_data1, 26),
	       DB_U(DW_AT_data_member_location, DW_FORM_data1, 4));
	DB_DIE(u.d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "b"), DB_REF(DW_AT_type, i),
	       DB_U(DW_AT_bit_size, DW_FORM_data1, 3), DB_U(DW_AT_bit_offset, DW_FORM_data1, 26),
	       DB_U(DW_AT_data_member_location, DW_FORM_data1, 4));
	/* Packed: bits 38 to 68 go over the end of the int at byte 4. */
	DB_DIE(u.d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "c"), DB_REF(DW_AT_type, i),
	       DB_U(DW_AT_bit_size, DW_FORM_data1, 31), DB_U(DW_AT_bit_offset, DW_FORM_sdata, -5),
	       DB_U(DW_AT_data_member_location, DW_FORM_data1, 4));
	DB_DIE(u.d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "d"), DB_REF(DW_AT_type, i),
	       DB_U(DW_AT_bit_size, DW_FORM_data1, 3),
	       DB_U(DW_AT_data_bit_offset, DW_FORM_data1, 69));
	db_null(u.d);
	end(&u);
	const struct cairn_type *t = node(&u, read_type(&u, s));
	assert_int_equal(t->n_members, 4);
	static const uint64_t expected[] = {35, 35, 38, 69};
	for (size_t k = 0; k < 4; k++)
		assert_int_equal(t->members[k].bit_off, expected[k]);
	close_unit(&u);
}

static void a_place_that_adds_constants_is_a_constant(void **state)
{
	struct unit u = begin(DW_LANG_C99);
	int i = put_int(&u), s = here(&u);
	DB_DIE(u.d, DW_TAG_structure_type, DB_CHILDREN, DB_U(DW_AT_byte_size, DW_FORM_data2, 1000));
	DB_DIE(u.d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "a"), DB_REF(DW_AT_type, i),
	       DB_EXPR(DW_AT_data_member_location, DW_OP_plus_uconst, 0x90, 0x01));
	DB_DIE(u.d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "b"), DB_REF(DW_AT_type, i),
	       DB_EXPR(DW_AT_data_member_location, DW_OP_const1u, 200, DW_OP_plus, DW_OP_lit0 + 4,
		       DW_OP_plus));
	static const uint8_t wrong[][3] = {
		{DW_OP_deref, DW_OP_nop, DW_OP_nop},
		{DW_OP_lit0, DW_OP_nop, DW_OP_nop},   /* two values are left */
		{DW_OP_plus, DW_OP_nop, DW_OP_nop},   /* nothing to add */
		{DW_OP_nop, DW_OP_plus_uconst, 0x80}, /* cut */
		{DW_OP_lit0, DW_OP_lit0, DW_OP_plus}, /* too deep for us */
	};
	for (size_t k = 0; k < 5; k++)
		DB_DIE(u.d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "w"), DB_REF(DW_AT_type, i),
		       {.at = DW_AT_data_member_location,
			.form = DW_FORM_exprloc,
			.bytes = wrong[k],
			.n = 3});
	DB_DIE(u.d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "far"), DB_REF(DW_AT_type, i),
	       DB_U(DW_AT_data_member_location, DW_FORM_udata, UINT64_MAX));
	db_null(u.d);
	end(&u);
	const struct cairn_type *t = node(&u, read_type(&u, s));
	assert_int_equal(t->members[0].bit_off, 0x90 * 8);
	assert_int_equal(t->members[1].bit_off, 204 * 8);
	for (size_t k = 2; k < 8; k++)
		assert_true(t->members[k].dynamic);
	close_unit(&u);
}

static void what_is_not_decoded_is_shown_as_bytes(void **state)
{
	struct unit u = begin(DW_LANG_Rust);
	int decimal = here(&u);
	DB_DIE(u.d, DW_TAG_base_type, DB_LEAF, DB_STR(DW_AT_name, "_Decimal32"),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 4),
	       DB_U(DW_AT_encoding, DW_FORM_data1, DW_ATE_decimal_float));
	int big = here(&u);
	DB_DIE(u.d, DW_TAG_base_type, DB_LEAF, DB_STR(DW_AT_name, "int"),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 4),
	       DB_U(DW_AT_encoding, DW_FORM_data1, DW_ATE_signed),
	       DB_U(DW_AT_endianity, DW_FORM_data1, 1));
	int variants = here(&u);
	DB_DIE(u.d, DW_TAG_structure_type, DB_CHILDREN, DB_STR(DW_AT_name, "Option"),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 4));
	DB_DIE(u.d, DW_TAG_variant_part, DB_LEAF, DB_REF(DW_AT_discr, big));
	db_null(u.d);
	int bits = here(&u);
	DB_DIE(u.d, DW_TAG_array_type, DB_LEAF, DB_REF(DW_AT_type, big),
	       DB_U(DW_AT_bit_stride, DW_FORM_data1, 3), DB_U(DW_AT_byte_size, DW_FORM_data1, 4));
	int unknown = here(&u);
	DB_DIE(u.d, DW_TAG_set_type, DB_LEAF, DB_U(DW_AT_byte_size, DW_FORM_data1, 4));
	int sealed = here(&u);
	DB_DIE(u.d, DW_TAG_enumeration_type, DB_LEAF, DB_STR(DW_AT_name, "sealed"),
	       DB_FLAG(DW_AT_declaration), DB_U(DW_AT_byte_size, DW_FORM_data1, 4));
	end(&u);
	static const uint8_t bytes[] = {0xff, 0, 0, 0};
	const int labels[] = {decimal, bits, unknown, sealed};
	for (size_t i = 0; i < 4; i++)
		assert_shows(&u, read_type(&u, labels[i]), bytes, 4, "0x000000ff");
	assert_shows(&u, read_type(&u, variants), bytes, 4, "{0x000000ff}");
	/* A number of the other order is one. */
	assert_shows(&u, read_type(&u, big), bytes, 4, "-16777216");
	close_unit(&u);
}

/* A member of @type at byte @at. */
static void put_member(struct unit *u, const char *name, int type, unsigned int at)
{
	DB_DIE(u->d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, name), DB_REF(DW_AT_type, type),
	       DB_U(DW_AT_data_member_location, DW_FORM_data1, at));
}

static int begin_struct(struct unit *u, const char *name, unsigned int size)
{
	int label = here(u);
	DB_DIE(u->d, DW_TAG_structure_type, DB_CHILDREN, DB_STR(DW_AT_name, name),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, size));
	return label;
}

/*
 * A signed discriminant at 4, after what depends on it; values as LLVM writes them, in lists and
 * ranges, and none for the rest.
 */
static void the_variant_that_is_there_is_told_by_its_discriminant(void **state)
{
	struct unit u = begin(DW_LANG_Ada95);
	int i = put_int(&u), s = begin_struct(&u, "record", 8), tag = here(&u);
	put_member(&u, "tag", i, 4);
	DB_DIE(u.d, DW_TAG_variant_part, DB_CHILDREN, DB_REF(DW_AT_discr, tag));
	DB_DIE(u.d, DW_TAG_variant, DB_CHILDREN, DB_U(DW_AT_discr_value, DW_FORM_data1, 0xfb));
	put_member(&u, "below", i, 0);
	db_null(u.d);
	DB_DIE(u.d, DW_TAG_variant, DB_CHILDREN,
	       DB_EXPR(DW_AT_discr_list, 0, 7, 1, 0x70, 0x72, 1, 0xe4, 0, 0xc8, 1));
	put_member(&u, "listed", i, 0);
	db_null(u.d);
	DB_DIE(u.d, DW_TAG_variant, DB_LEAF, DB_U(DW_AT_discr_value, DW_FORM_sdata, 300));
	DB_DIE(u.d, DW_TAG_variant, DB_CHILDREN, DB_U(DW_AT_discr_value, DW_FORM_data2, 400));
	put_member(&u, "low", i, 0);
	put_member(&u, "again", i, 0);
	db_null(u.d);
	db_null(u.d);
	db_null(u.d);
	end(&u);
	uint32_t id = read_type(&u, s);
	const struct {
		int32_t value, tag;
		const char *expected;
	} cases[] = {
		{1, -5, "{.tag = -5, .below = 1}"},
		{2, 7, "{.tag = 7, .listed = 2}"},
		{3, -16, "{.tag = -16, .listed = 3}"},
		{4, -14, "{.tag = -14, .listed = 4}"},
		{5, 200, "{.tag = 200, .listed = 5}"},
		{6, 300, "{.tag = 300}"},
		{7, 400, "{.tag = 400, .low = 7, .again = 7}"},
		{8, 251, "{.tag = 251, <variants> = 08000000}"},
		{9, -17, "{.tag = -17, <variants> = 09000000}"},
	};
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++)
		assert_shows(&u, id, &cases[k], 8, cases[k].expected);
	assert_shows(&u, id, &cases[0], 6, "{.tag = <cut off>, <cut off>}");
	close_unit(&u);
}

/* Of Rust: the variant without a value is there for all others, and the union is the whole. */
static int put_enum(struct unit *u, int number, int some, int none)
{
	int e = begin_struct(u, "core::option::Option<i>", 4), tag;
	tag = db_label(u->d);
	DB_DIE(u->d, DW_TAG_variant_part, DB_CHILDREN, DB_REF(DW_AT_discr, tag));
	db_here(u->d, tag);
	DB_DIE(u->d, DW_TAG_member, DB_LEAF, DB_REF(DW_AT_type, number),
	       DB_U(DW_AT_data_member_location, DW_FORM_data1, 0), DB_FLAG(DW_AT_artificial));
	DB_DIE(u->d, DW_TAG_variant, DB_CHILDREN, DB_U(DW_AT_discr_value, DW_FORM_data1, 0xff));
	put_member(u, "None", none, 0);
	db_null(u->d);
	DB_DIE(u->d, DW_TAG_variant, DB_CHILDREN);
	put_member(u, "Some", some, 0);
	db_null(u->d);
	db_null(u->d);
	db_null(u->d);
	return e;
}

static void an_enum_of_rust_is_the_variant_that_is_there(void **state)
{
	struct unit u = begin(DW_LANG_Rust);
	int i = put_int(&u), some = begin_struct(&u, "Some", 4);
	put_member(&u, "__0", i, 0);
	db_null(u.d);
	int none = begin_struct(&u, "None", 4);
	db_null(u.d);
	int e = put_enum(&u, i, some, none);
	end(&u);
	uint32_t id = read_type(&u, e);
	assert_shows(&u, id, &(int32_t){-1}, 4, "None");
	assert_shows(&u, id, &(int32_t){255}, 4, "Some(255)");
	assert_shows(&u, id, &(int32_t){-1}, 3, "<cut off>");
	assert_shows(&u, id, &(int32_t){0}, 0, "<cut off>");
	close_unit(&u);
}

/*
 * Two that are there for all others, no discriminant for two, and one of 16 bytes: bytes, never a
 * guess.
 */
static void variants_that_nothing_tells_apart_are_shown_as_bytes(void **state)
{
	struct unit u = begin(DW_LANG_Rust);
	int i = put_int(&u), wide = here(&u), labels[3];
	DB_DIE(u.d, DW_TAG_base_type, DB_LEAF, DB_STR(DW_AT_name, "u128"),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 16),
	       DB_U(DW_AT_encoding, DW_FORM_data1, DW_ATE_unsigned));
	int near = here(&u);
	put_member(&u, "near", i, 0);
	int far = here(&u);
	put_member(&u, "far", wide, 0);
	const int discriminants[] = {near, 0, far};
	for (int k = 0; k < 3; k++) {
		labels[k] = begin_struct(&u, "enum", 4);
		if (discriminants[k])
			DB_DIE(u.d, DW_TAG_variant_part, DB_CHILDREN,
			       DB_REF(DW_AT_discr, discriminants[k]));
		else
			DB_DIE(u.d, DW_TAG_variant_part, DB_CHILDREN);
		for (int v = 0; v < 2; v++) {
			if (k)
				DB_DIE(u.d, DW_TAG_variant, DB_CHILDREN,
				       DB_U(DW_AT_discr_value, DW_FORM_data1, v));
			else
				DB_DIE(u.d, DW_TAG_variant, DB_CHILDREN);
			put_member(&u, v ? "B" : "A", i, 0);
			db_null(u.d);
		}
		db_null(u.d);
		db_null(u.d);
	}
	end(&u);
	for (int k = 0; k < 3; k++)
		assert_shows(&u, read_type(&u, labels[k]), &(int32_t){255}, 4, "{0x000000ff}");
	close_unit(&u);
}

static void derivations_without_a_word_in_c_are_looked_through(void **state)
{
	struct unit u = begin(DW_LANG_Pascal83);
	int i = put_int(&u), packed = here(&u);
	DB_DIE(u.d, DW_TAG_packed_type, DB_LEAF, DB_REF(DW_AT_type, i));
	int p = here(&u);
	DB_DIE(u.d, DW_TAG_pointer_type, DB_LEAF, DB_REF(DW_AT_type, packed));
	int range = here(&u);
	DB_DIE(u.d, DW_TAG_subrange_type, DB_LEAF, DB_STR(DW_AT_name, "Month"),
	       DB_REF(DW_AT_type, i));
	int string = here(&u);
	DB_DIE(u.d, DW_TAG_string_type, DB_LEAF, DB_U(DW_AT_byte_size, DW_FORM_data1, 3));
	/* Pascal counts from 1 when nothing is said. */
	int array = here(&u);
	DB_DIE(u.d, DW_TAG_array_type, DB_CHILDREN, DB_REF(DW_AT_type, i));
	DB_DIE(u.d, DW_TAG_subrange_type, DB_LEAF, DB_U(DW_AT_upper_bound, DW_FORM_data1, 12));
	DB_DIE(u.d, DW_TAG_subrange_type, DB_LEAF, DB_U(DW_AT_lower_bound, DW_FORM_sdata, -2),
	       DB_U(DW_AT_upper_bound, DW_FORM_sdata, 2));
	db_null(u.d);
	end(&u);
	assert_named(&u, read_type(&u, p), "int *");
	assert_named(&u, read_type(&u, range), "Month");
	assert_shows(&u, read_type(&u, string), "abc", 3, "\"abc\"");
	assert_named(&u, read_type(&u, array), "int [12][5]");
	close_unit(&u);
}

/* GCC's -1, which is as wide as an address. */
static void an_array_of_no_elements_where_addresses_have_4_bytes(void **state)
{
	struct unit u = begin_of(DW_LANG_C99, 4);
	int i = put_int(&u), array = here(&u);
	DB_DIE(u.d, DW_TAG_array_type, DB_CHILDREN, DB_REF(DW_AT_type, i));
	DB_DIE(u.d, DW_TAG_subrange_type, DB_LEAF,
	       DB_U(DW_AT_upper_bound, DW_FORM_data4, UINT32_MAX));
	db_null(u.d);
	end(&u);
	assert_named(&u, read_type(&u, array), "int [0]");
	close_unit(&u);
}

static void bounds_of_arrays(void **state)
{
	const struct {
		struct db_attr attr;
		bool has_count;
		uint64_t count, size;
	} cases[] = {
		{DB_U(DW_AT_count, DW_FORM_data1, 7), true, 7, 28},
		{DB_U(DW_AT_upper_bound, DW_FORM_data1, 255), true, 256, 1024},
		{DB_U(DW_AT_upper_bound, DW_FORM_data4, UINT32_MAX), true, UINT64_C(1) << 32,
		 UINT64_C(1) << 34},
		{DB_U(DW_AT_count, DW_FORM_data4, UINT32_MAX), true, UINT32_MAX,
		 UINT64_C(4) * UINT32_MAX},
		{DB_U(DW_AT_upper_bound, DW_FORM_data8, UINT64_MAX), true, 0, 0},
		{DB_U(DW_AT_upper_bound, DW_FORM_sdata, -1), true, 0, 0},
		{DB_EXPR(DW_AT_upper_bound, DW_OP_lit0), false, 0, 0},
		{DB_U(DW_AT_upper_bound, DW_FORM_udata, (UINT64_C(1) << 61) - 1), true,
		 UINT64_C(1) << 61, UINT64_C(1) << 63},
		{DB_U(DW_AT_upper_bound, DW_FORM_udata, UINT64_C(1) << 62), true,
		 (UINT64_C(1) << 62) + 1, 0},
	};
	enum { N = sizeof(cases) / sizeof(cases[0]) };
	struct unit u = begin(DW_LANG_C99);
	int i = put_int(&u), labels[N];
	for (size_t k = 0; k < N; k++) {
		labels[k] = here(&u);
		DB_DIE(u.d, DW_TAG_array_type, DB_CHILDREN, DB_REF(DW_AT_type, i));
		DB_DIE(u.d, DW_TAG_subrange_type, DB_LEAF, cases[k].attr);
		db_null(u.d);
	}
	end(&u);
	for (size_t k = 0; k < N; k++) {
		uint32_t id = read_type(&u, labels[k]);
		assert_int_equal(node(&u, id)->has_count, cases[k].has_count);
		assert_int_equal(node(&u, id)->count, cases[k].count);
		assert_int_equal(node(&u, id)->size, cases[k].size);
		/* However large: only the bytes that are there. */
		const int one = 1;
		if (cases[k].count)
			assert_shows(&u, id, &one, sizeof(one), "{1, <cut off>}");
	}
	close_unit(&u);
}

/* ---- what no compiler writes ---- */

static void rings_end(void **state)
{
	struct unit u = begin(DW_LANG_C99);
	/* One of each kind that refers only to itself, and a struct that contains itself. */
	static const uint16_t tags[] = {DW_TAG_pointer_type,      DW_TAG_const_type,
					DW_TAG_typedef,           DW_TAG_array_type,
					DW_TAG_subroutine_type,   DW_TAG_subrange_type,
					DW_TAG_ptr_to_member_type};
	enum { N = sizeof(tags) / sizeof(tags[0]) };
	int labels[N];
	for (size_t i = 0; i < N; i++) {
		labels[i] = here(&u);
		DB_DIE(u.d, tags[i], DB_LEAF, DB_REF(DW_AT_type, labels[i]),
		       DB_REF(DW_AT_containing_type, labels[i]));
	}
	int s = here(&u);
	DB_DIE(u.d, DW_TAG_structure_type, DB_CHILDREN, DB_STR(DW_AT_name, "s"),
	       DB_REF(DW_AT_specification, s));
	DB_DIE(u.d, DW_TAG_member, DB_LEAF, DB_REF(DW_AT_type, s));
	DB_DIE(u.d, DW_TAG_inheritance, DB_LEAF, DB_REF(DW_AT_type, s));
	db_null(u.d);
	/* Two arrays of each other. */
	int one = db_label(u.d), two = db_label(u.d);
	db_here(u.d, one);
	DB_DIE(u.d, DW_TAG_array_type, DB_LEAF, DB_REF(DW_AT_type, two));
	db_here(u.d, two);
	DB_DIE(u.d, DW_TAG_array_type, DB_CHILDREN, DB_REF(DW_AT_type, one));
	DB_DIE(u.d, DW_TAG_subrange_type, DB_LEAF, DB_U(DW_AT_count, DW_FORM_data1, 3));
	db_null(u.d);
	end(&u);
	char buf[1024];
	struct cairn_member m;
	for (size_t i = 0; i < N; i++)
		cairn_types_name(u.graph, read_type(&u, labels[i]), buf, sizeof(buf));
	assert_false(cairn_types_member(u.graph, read_type(&u, s), "x", &m));
	assert_named(&u, read_type(&u, s), "struct s");
	read_type(&u, one);
	read_type(&u, two);
	close_unit(&u);
}

static void a_long_chain_of_each_kind_is_read(void **state)
{
	static const uint16_t tags[] = {DW_TAG_pointer_type, DW_TAG_typedef, DW_TAG_array_type};
	for (size_t k = 0; k < 3; k++) {
		struct unit u = begin(DW_LANG_C_plus_plus_14);
		int first = db_label(u.d), next = first;
		for (int i = 0; i < 300000; i++) {
			db_here(u.d, next);
			next = db_label(u.d);
			DB_DIE(u.d, tags[k], DB_LEAF, DB_REF(DW_AT_type, next));
		}
		db_here(u.d, next);
		put_int(&u);
		end(&u);
		char buf[1024];
		cairn_types_name(u.graph, read_type(&u, first), buf, sizeof(buf));
		assert_true(cairn_types_n_types(u.graph) > 300000);
		close_unit(&u);
	}
}

static void a_nesting_of_many_scopes_costs_no_stack(void **state)
{
	struct unit u = begin(DW_LANG_C_plus_plus_14);
	for (int i = 0; i < 300000; i++)
		DB_DIE(u.d, i % 2 ? DW_TAG_namespace : DW_TAG_structure_type, DB_CHILDREN,
		       DB_STR(DW_AT_name, "n"));
	int deep = here(&u);
	DB_DIE(u.d, DW_TAG_structure_type, DB_LEAF, DB_STR(DW_AT_name, "deep"));
	for (int i = 0; i < 300000; i++)
		db_null(u.d);
	end(&u);
	uint32_t id;
	assert_named(&u, read_type(&u, deep), "...::deep");
	assert_int_equal(dwarf_type_definition(u.r, CAIRN_T_STRUCT, "n::n", &id, NULL), 0);
	assert_int_equal(dwarf_type_definition(u.r, CAIRN_T_STRUCT, "n::n::n", &id, NULL), 1);
	close_unit(&u);
}

static void a_damaged_type_stays_recognisable(void **state)
{
	struct unit u = begin(DW_LANG_C99);
	int i = put_int(&u), bad = here(&u);
	DB_DIE(u.d, DW_TAG_pointer_type, DB_LEAF, DB_U(DW_AT_type, DW_FORM_ref4, 0xffffff));
	int good = here(&u);
	DB_DIE(u.d, DW_TAG_subroutine_type, DB_CHILDREN, DB_REF(DW_AT_type, bad));
	DB_DIE(u.d, DW_TAG_formal_parameter, DB_LEAF, DB_REF(DW_AT_type, i));
	db_null(u.d);
	end(&u);
	struct cairn_err err = {0};
	uint32_t id = 0;
	assert_int_equal(dwarf_type(u.r, db_offset(u.d, good), &id, &err), -EBADMSG);
	assert_int_equal(err.code, -EBADMSG);
	assert_non_null(strstr(err.msg, "reading the type at .debug_info+0x"));
	/* The parameter after it was read all the same, and so it stays. */
	assert_named(&u, id, "<damaged> (int)");
	assert_int_equal(dwarf_type(u.r, db_offset(u.d, good), &id, &err), 0);
	assert_named(&u, id, "<damaged> (int)");
	assert_int_equal(dwarf_type(u.r, 0x7fffffff, &id, &err), -EBADMSG);
	close_unit(&u);
}

/* ---- no memory ---- */

static struct unit put_everything(void)
{
	struct unit u = begin(DW_LANG_C_plus_plus_14);
	int i = put_int(&u), e = db_label(u.d), declared = db_label(u.d), s = db_label(u.d);
	DB_DIE(u.d, DW_TAG_namespace, DB_CHILDREN, DB_STR(DW_AT_name, "ns"));
	db_here(u.d, e);
	DB_DIE(u.d, DW_TAG_enumeration_type, DB_CHILDREN, DB_STR(DW_AT_name, "e"),
	       DB_REF(DW_AT_type, i), DB_U(DW_AT_byte_size, DW_FORM_data1, 4));
	DB_DIE(u.d, DW_TAG_enumerator, DB_LEAF, DB_STR(DW_AT_name, "E"),
	       DB_U(DW_AT_const_value, DW_FORM_data1, 1));
	db_null(u.d);
	db_here(u.d, declared);
	DB_DIE(u.d, DW_TAG_structure_type, DB_LEAF, DB_STR(DW_AT_name, "late"),
	       DB_FLAG(DW_AT_declaration));
	db_here(u.d, s);
	DB_DIE(u.d, DW_TAG_structure_type, DB_CHILDREN, DB_STR(DW_AT_name, "s"),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 8));
	DB_DIE(u.d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "e"), DB_REF(DW_AT_type, e));
	DB_DIE(u.d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "late"),
	       DB_REF(DW_AT_type, declared), DB_U(DW_AT_data_member_location, DW_FORM_data1, 4));
	db_null(u.d);
	db_null(u.d);
	DB_DIE(u.d, DW_TAG_structure_type, DB_CHILDREN, DB_STR(DW_AT_name, "late"),
	       DB_REF(DW_AT_specification, declared), DB_U(DW_AT_byte_size, DW_FORM_data1, 4));
	DB_DIE(u.d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "x"), DB_REF(DW_AT_type, i));
	db_null(u.d);
	return u;
}

static void each_allocation_fails(struct unit u, const char *name, const char *expected)
{
	end(&u);
	unsigned int n = 1;
	for (;; n++) {
		struct cairn_err err = {0};
		struct dw_types *r = NULL;
		uint32_t id;
		alloc_fail_at(n);
		struct cairn_types *graph = types_new();
		int rc = graph ? dw_types_new(u.o.dw, graph, &r, &err) : -ENOMEM;
		if (!rc)
			rc = dwarf_type_definition(r, CAIRN_T_STRUCT, name, &id, &err);
		bool failed = alloc_fail_end();
		if (!failed) {
			assert_int_equal(rc, 1);
			const int bytes[] = {1, 7};
			char *text;
			size_t len;
			FILE *out = open_memstream(&text, &len);
			cairn_value_print(graph, id, bytes, sizeof(bytes), NULL, out);
			fclose(out);
			assert_string_equal(text, expected);
			free(text);
		} else {
			assert_int_equal(rc, -ENOMEM);
		}
		dw_types_free(r);
		types_free(graph);
		if (!failed)
			break;
	}
	assert_true(n > 20);
	close_unit(&u);
}

static void every_allocation_may_fail(void **state)
{
	each_allocation_fails(put_everything(), "ns::s", "{.e = E, .late = {.x = 7}}");
}

static void every_allocation_of_an_enum_may_fail(void **state)
{
	struct unit u = begin(DW_LANG_Rust);
	int i = put_int(&u), some = begin_struct(&u, "Some", 4);
	put_member(&u, "__0", i, 0);
	db_null(u.d);
	int none = begin_struct(&u, "None", 4);
	db_null(u.d);
	put_enum(&u, i, some, none);
	each_allocation_fails(u, "core::option::Option<i>", "Some(1)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(old_bit_offsets_count_from_the_top_and_may_be_negative),
		cmocka_unit_test(a_place_that_adds_constants_is_a_constant),
		cmocka_unit_test(what_is_not_decoded_is_shown_as_bytes),
		cmocka_unit_test(the_variant_that_is_there_is_told_by_its_discriminant),
		cmocka_unit_test(an_enum_of_rust_is_the_variant_that_is_there),
		cmocka_unit_test(variants_that_nothing_tells_apart_are_shown_as_bytes),
		cmocka_unit_test(derivations_without_a_word_in_c_are_looked_through),
		cmocka_unit_test(bounds_of_arrays),
		cmocka_unit_test(an_array_of_no_elements_where_addresses_have_4_bytes),
		cmocka_unit_test(rings_end),
		cmocka_unit_test(a_long_chain_of_each_kind_is_read),
		cmocka_unit_test(a_nesting_of_many_scopes_costs_no_stack),
		cmocka_unit_test(a_damaged_type_stays_recognisable),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(every_allocation_of_an_enum_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
