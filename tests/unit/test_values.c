/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes as typed values, as text and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <complex.h>
#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/decode.h>

#include "type_graph.h"

/* glibc has them for GCC only. */
#ifndef CMPLX
#define CMPLX(re, im)  __builtin_complex((double)(re), (double)(im))
#define CMPLXL(re, im) __builtin_complex((long double)(re), (long double)(im))
#endif

static char *printed(uint32_t id, const void *bytes, size_t n, struct cairn_value_opts opts)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	assert_non_null(out);
	opts.size = sizeof(opts);
	assert_int_equal(cairn_value_print(types, id, bytes, n, &opts, out), 0);
	fclose(out);
	return text;
}

static void assert_prints(uint32_t id, const void *bytes, size_t n, struct cairn_value_opts opts,
			  const char *expected)
{
	char *text = printed(id, bytes, n, opts);
	assert_string_equal(text, expected);
	free(text);
}

#define TEXT     ((struct cairn_value_opts){.style = CAIRN_VALUE_TEXT})
#define JSON     ((struct cairn_value_opts){.style = CAIRN_VALUE_JSON})
#define VALUE(v) (&(__typeof__(v)){v}), sizeof(v)
#define BOTH(id, v, text, json)                                                                    \
	do {                                                                                       \
		assert_prints(id, VALUE(v), TEXT, text);                                           \
		assert_prints(id, VALUE(v), JSON, json);                                           \
	} while (0)

static void integers_print_in_decimal_up_to_128_bits(void **state)
{
	__int128 lowest = (__int128)((unsigned __int128)1 << 127);
	unsigned __int128 highest = ~(unsigned __int128)0;
	uint32_t i64 = scalar("long", 8, CAIRN_ENC_SIGNED);
	uint32_t u64 = scalar("unsigned long", 8, CAIRN_ENC_UNSIGNED);
	uint32_t i128 = scalar("__int128", 16, CAIRN_ENC_SIGNED);
	uint32_t u128 = scalar("unsigned __int128", 16, CAIRN_ENC_UNSIGNED);
	BOTH(t_int(), -5, "-5", "-5");
	BOTH(i64, INT64_MIN, "-9223372036854775808", "-9223372036854775808");
	BOTH(u64, UINT64_MAX, "18446744073709551615", "18446744073709551615");
	BOTH(i128, lowest, "-170141183460469231731687303715884105728",
	     "-170141183460469231731687303715884105728");
	BOTH(u128, highest, "340282366920938463463374607431768211455",
	     "340282366920938463463374607431768211455");
	BOTH(scalar("signed char", 1, CAIRN_ENC_SIGNED_CHAR), (int8_t)-65, "-65", "-65");
	BOTH(scalar("unsigned char", 1, CAIRN_ENC_UNSIGNED_CHAR), (uint8_t)65, "65", "65");
	struct cairn_value_opts hex = {.hex = true};
	assert_prints(t_int(), VALUE(-1), hex, "0xffffffff");
	assert_prints(i128, VALUE(lowest), hex, "0x80000000000000000000000000000000");
	hex.style = CAIRN_VALUE_JSON;
	assert_prints(u64, VALUE(UINT64_C(31)), hex, "\"0x1f\"");
	uint32_t odd = scalar("_BitInt(24)", 3, CAIRN_ENC_SIGNED);
	assert_prints(odd, "\xff\xff\xff", 3, TEXT, "-1");
	uint32_t wide = scalar("_BitInt(256)", 32, CAIRN_ENC_SIGNED);
	uint8_t bytes[32] = {0x12, 0x34};
	assert_prints(wide, bytes, 32, TEXT,
		      "0x0000000000000000000000000000000000000000000000000000000000003412");
}

static void booleans_pointers_and_what_has_no_value(void **state)
{
	uint32_t b = scalar("_Bool", 1, CAIRN_ENC_BOOL);
	BOTH(b, (uint8_t)0, "false", "false");
	BOTH(b, (uint8_t)1, "true", "true");
	BOTH(b, (uint8_t)2, "2", "2");
	BOTH(ptr(0), (uint64_t)0x7ffe12345678, "0x7ffe12345678", "\"0x7ffe12345678\"");
	BOTH(ptr(func(0, NULL, 0, false)), (uint64_t)0, "0x0", "\"0x0\"");
	BOTH(scalar("_Decimal32", 4, CAIRN_ENC_OPAQUE), 1, "0x00000001", "\"0x00000001\"");
	BOTH(0, 1, "<no value>", "null");
	BOTH(func(0, NULL, 0, false), 1, "<no value>", "null");
	BOTH(add((struct cairn_type){.kind = CAIRN_T_STRUCT, .name = "s", .declaration = true}), 1,
	     "<incomplete>", "null");
	assert_prints(t_int(), "\1\2\3", 3, TEXT, "<cut off>");
	assert_prints(t_int(), "\1\2\3", 3, JSON, "null");
	assert_prints(t_int(), NULL, 0, JSON, "null");
}

static void chars_and_strings_are_escaped(void **state)
{
	uint32_t c = t_char();
	BOTH(c, (char)'a', "'a'", "\"a\"");
	BOTH(c, (char)0, "'\\0'", "\"\\u0000\"");
	BOTH(c, (char)'\'', "'\\''", "\"'\"");
	BOTH(c, (char)'"', "'\"'", "\"\\\"\"");
	BOTH(c, (char)'\n', "'\\n'", "\"\\u000a\"");
	BOTH(c, (char)0x1b, "'\\033'", "\"\\u001b\"");
	BOTH(c, (char)0xe9, "'\\351'", "-23");

	uint32_t s8 = array(c, 8);
	assert_prints(s8, "ab\0junk", 8, TEXT, "\"ab\"");
	assert_prints(s8, "12345678", 8, TEXT, "\"12345678\"");
	assert_prints(s8, "a\"\\\n\t\1\0", 8, TEXT, "\"a\\\"\\\\\\n\\t\\001\"");
	assert_prints(s8, "a\"\\\n\t\1\0", 8, JSON, "\"a\\\"\\\\\\u000a\\u0009\\u0001\"");
	assert_prints(s8, "\xe2\x82\xac\xff\xc3\xa9\0", 8, TEXT, "\"\xe2\x82\xac\\377\xc3\xa9\"");
	assert_prints(s8, "\xe2\x82\xac\xff\xc3\xa9\0", 8, JSON, "\"\xe2\x82\xac\\ufffd\xc3\xa9\"");
	/* Overlong, a surrogate, beyond U+10FFFF, a C1 control, cut short. */
	assert_prints(s8, "\xc0\xaf\xc2\x9b\0\0\0", 8, JSON, "\"\\ufffd\\ufffd\\u009b\"");
	assert_prints(s8, "\xed\xa0\x80\0\0\0\0", 8, JSON, "\"\\ufffd\\ufffd\\ufffd\"");
	assert_prints(s8, "\xf4\x90\x80\x80\0\0\0", 8, JSON, "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
	assert_prints(array(c, 2), "\xe2\x82", 2, TEXT, "\"\\342\\202\"");
	assert_prints(s8, "abc", 3, TEXT, "\"abc\"<cut off>");
	assert_prints(s8, "abc", 3, JSON, "\"abc...\"");
	struct cairn_value_opts two = {.max_elems = 2};
	assert_prints(s8, "abcdefg", 8, two, "\"ab\"...");
	assert_prints(array(scalar("unsigned char", 1, CAIRN_ENC_UNSIGNED_CHAR), 3), "\1\2\3", 3,
		      TEXT, "{1, 2, 3}");
}

static void enums_print_by_name_and_never_invent_one(void **state)
{
	uint32_t color = enumeration(
		"color", 4, CAIRN_ENC_UNSIGNED,
		ENUMERATORS({"RED", 0}, {"GREEN", 1}, {"BLUE", 2}, {"GREY", 3}, {"PINK", 4}));
	BOTH(color, 2u, "BLUE", "\"BLUE\"");
	BOTH(color, 5u, "5", "5");
	uint32_t flags =
		enumeration("flags", 4, CAIRN_ENC_UNSIGNED,
			    ENUMERATORS({"NONE", 0}, {"A", 1}, {"B", 2}, {"D", 8}, {"ALL", 11}));
	BOTH(flags, 0u, "NONE", "\"NONE\"");
	BOTH(flags, 9u, "A|D", "\"A|D\"");
	BOTH(flags, 11u, "ALL", "\"ALL\"");
	BOTH(flags, 0x43u, "A|B|0x40", "\"A|B|0x40\"");
	BOTH(flags, 0x40u, "64", "64");
	uint32_t neg =
		enumeration("neg", 4, CAIRN_ENC_SIGNED, ENUMERATORS({"MINUS", -1}, {"ZERO", 0}));
	BOTH(neg, -1, "MINUS", "\"MINUS\"");
	BOTH(neg, -2, "-2", "-2");
	uint32_t wide = enumeration("wide", 8, CAIRN_ENC_UNSIGNED,
				    ENUMERATORS({"TOP", INT64_MIN}, {"LOW", 1}));
	BOTH(wide, UINT64_C(1) << 63, "TOP", "\"TOP\"");
	BOTH(wide, UINT64_C(1) << 63 | 1, "LOW|TOP", "\"LOW|TOP\"");
	uint32_t small = enumeration("small", 1, CAIRN_ENC_UNSIGNED, ENUMERATORS({"X", 200}));
	BOTH(small, (uint8_t)200, "X", "\"X\"");
}

static void floats_read_back_exactly_in_every_locale(void **state)
{
	uint32_t f32 = t_float("float", 4), f64 = t_float("double", 8);
	uint32_t f80 = t_float("long double", 16), f128 = t_float("_Float128", 16);
	setlocale(LC_ALL, "de_DE.UTF-8");
	BOTH(f32, 0.1f, "0.1", "0.1");
	BOTH(f64, 0.1, "0.1", "0.1");
	BOTH(f64, 1.0 / 3, "0.3333333333333333", "0.3333333333333333");
	BOTH(f64, -0.0, "-0", "-0");
	BOTH(f64, DBL_MAX, "1.7976931348623157e+308", "1.7976931348623157e+308");
	BOTH(f64, (double)NAN, "nan", "\"NaN\"");
	BOTH(f64, (double)INFINITY, "inf", "\"Infinity\"");
	BOTH(f64, -(double)INFINITY, "-inf", "\"-Infinity\"");
	setlocale(LC_ALL, "C");
	BOTH(f80, 0.1L, "0.1", "0.1");
	BOTH(f80, 1e4000L, "1e+4000", "1e+4000");
	/* An exponent without the leading one: the x87 refuses it, and so do we. */
	uint8_t unnormal[16] = {1, 0, 0, 0, 0, 0, 0, 0, 1, 0x40};
	assert_prints(f80, unnormal, 16, TEXT, "0x00000000000040010000000000000001");
	BOTH(f128, (__float128)0.5, "0.5", "0.5");
	BOTH(f128, (__float128)-1234567, "-1234567", "-1234567");
	BOTH(f128, (__float128)0, "0", "0");
	BOTH(f128, (__float128)INFINITY, "inf", "\"Infinity\"");
	BOTH(f128, (__float128)1 / 3, "0x3ffd5555555555555555555555555555",
	     "\"0x3ffd5555555555555555555555555555\"");
	uint32_t half = t_float("_Float16", 2);
	BOTH(half, (uint16_t)0x3c00, "1", "1");
	/* As short as reads back as a half; the number is -2.328125. */
	BOTH(half, (uint16_t)0xc0a8, "-2.328", "-2.328");
	BOTH(half, (uint16_t)0x0001, "6e-08", "6e-08");
	BOTH(t_float("__bf16", 2), (uint16_t)0x3fc0, "1.5", "1.5");
	for (int i = 0; i < 20000; i++) {
		uint64_t bits =
			(uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
		double d, back;
		memcpy(&d, &bits, sizeof(d));
		char *text = printed(f64, &d, sizeof(d), TEXT);
		back = strtod(text, NULL);
		assert_true(isnan(d) ? isnan(back) : back == d);
		free(text);
	}
}

static void complex_numbers_have_two_parts(void **state)
{
	uint32_t c = add((struct cairn_type){.kind = CAIRN_T_FLOAT,
					     .name = "complex double",
					     .size = 16,
					     .encoding = CAIRN_ENC_COMPLEX});
	BOTH(c, CMPLX(1, -2.5), "1-2.5i", "[1,-2.5]");
	BOTH(c, CMPLX(0.1, (double)INFINITY), "0.1+infi", "[0.1,\"Infinity\"]");
	BOTH(c, CMPLX(0.1, -(double)NAN), "0.1+nani", "[0.1,\"NaN\"]");
	uint32_t l = add((struct cairn_type){.kind = CAIRN_T_FLOAT,
					     .name = "complex long double",
					     .size = 32,
					     .encoding = CAIRN_ENC_COMPLEX});
	BOTH(l, CMPLXL(1, -0.1L), "1-0.1i", "[1,-0.1]");
	/* Sizes that no complex number has. */
	static const uint8_t bytes[6] = {1, 2, 3, 4, 5, 6};
	static const char *const texts[] = {"<incomplete>", "0x01", "0x01+0x02i", "0x030201"};
	for (uint64_t size = 0; size < 4; size++) {
		uint32_t odd = add((struct cairn_type){
			.kind = CAIRN_T_FLOAT, .size = size, .encoding = CAIRN_ENC_COMPLEX});
		assert_prints(odd, bytes, sizeof(bytes), TEXT, texts[size]);
	}
}

/* Every width at every offset, signed and unsigned, against arithmetic. */
static void bit_fields_of_any_width_at_any_offset(void **state)
{
	uint32_t i128 = scalar("__int128", 16, CAIRN_ENC_SIGNED);
	uint32_t u128 = scalar("unsigned __int128", 16, CAIRN_ENC_UNSIGNED);
	for (unsigned int width = 1; width <= 128; width++) {
		for (unsigned int off = 0; off < 24; off++) {
			/* One bit set at the top and one at the bottom; around it all ones. */
			uint8_t bytes[20];
			char expected[64];
			memset(bytes, 0xff, sizeof(bytes));
			for (unsigned int i = 1; i + 1 < width; i++)
				bytes[(off + i) / 8] &= (uint8_t) ~(1u << (off + i) % 8);
			struct cairn_member m = {.name = "m", .bit_off = off, .bit_size = width};
			m.type = u128;
			char *text = NULL;
			size_t len;
			FILE *out = open_memstream(&text, &len);
			struct cairn_value_opts hex = {.size = sizeof(hex), .hex = true};
			cairn_value_print_member(types, &m, bytes, (off + width + 7) / 8, &hex,
						 out);
			fputc(' ', out);
			m.type = i128;
			cairn_value_print_member(types, &m, bytes, sizeof(bytes), NULL, out);
			fputc(' ', out);
			cairn_value_print_member(types, &m, bytes, (off + width + 7) / 8 - 1, NULL,
						 out);
			fclose(out);
			unsigned __int128 v = (unsigned __int128)1 << (width - 1) | 1;
			uint64_t high = (uint64_t)(v >> 64);
			int n = high ? snprintf(expected, sizeof(expected), "0x%lx%016lx -", high,
						(uint64_t)v)
				     : snprintf(expected, sizeof(expected), "0x%lx -", (uint64_t)v);
			assert_memory_equal(text, expected, n);
			if (width > 1 && width <= 64) {
				int64_t as_signed =
					(int64_t)((uint64_t)v << (64 - width)) >> (64 - width);
				snprintf(expected, sizeof(expected), "%ld <cut off>", as_signed);
				assert_string_equal(text + n - 1, expected);
			}
			free(text);
		}
	}
}

static void bit_fields_of_bool_and_enum(void **state)
{
	uint32_t b = scalar("_Bool", 1, CAIRN_ENC_BOOL);
	uint32_t e = enumeration("e", 4, CAIRN_ENC_UNSIGNED, ENUMERATORS({"P", 0}, {"Q", 3}));
	uint32_t s =
		aggregate(CAIRN_T_STRUCT, "s", 1,
			  MEMBERS({.name = "b", .type = b, .bit_size = 1},
				  {.name = "e", .type = e, .bit_off = 1, .bit_size = 2},
				  {.name = "i", .type = t_int(), .bit_off = 3, .bit_size = 5}));
	assert_prints(s, "\x8f", 1, TEXT, "{.b = true, .e = Q, .i = -15}");
	assert_prints(s, "\x8f", 1, JSON, "{\"b\":true,\"e\":\"Q\",\"i\":-15}");
}

static void structs_unions_and_bases(void **state)
{
	uint32_t i = t_int(), f = t_float("float", 4);
	uint32_t u = aggregate(CAIRN_T_UNION, NULL, 4,
			       MEMBERS({.name = "i", .type = i}, {.name = "f", .type = f}));
	uint32_t base = aggregate(CAIRN_T_CLASS, "ns::Base", 4, MEMBERS({.name = "x", .type = i}));
	uint32_t s =
		aggregate(CAIRN_T_CLASS, "S", 16,
			  MEMBERS({.type = base, .is_base_class = true}, {.type = u, .bit_off = 32},
				  {.name = "a", .type = array(i, 2), .bit_off = 64},
				  {.type = base, .is_base_class = true, .dynamic = true}));
	const int bytes[4] = {7, 0x3f800000, 1, -1};
	assert_prints(s, bytes, sizeof(bytes), TEXT,
		      "{<ns::Base> = {.x = 7}, {.i = 1065353216, .f = 1}, .a = {1, -1}, "
		      "<ns::Base> = <offset not known>}");
	assert_prints(s, bytes, sizeof(bytes), JSON,
		      "{\"<ns::Base>\":{\"x\":7},\"i\":1065353216,\"f\":1,\"a\":[1,-1],"
		      "\"<ns::Base>\":null}");
	assert_prints(s, bytes, 11, TEXT,
		      "{<ns::Base> = {.x = 7}, {.i = 1065353216, .f = 1}, .a = {<cut off>}, "
		      "<ns::Base> = <offset not known>}");
	assert_prints(
		s, bytes, 4, JSON,
		"{\"<ns::Base>\":{\"x\":7},\"i\":null,\"f\":null,\"a\":null,\"<ns::Base>\":null}");
}

static void arrays_of_wide_characters_are_text(void **state)
{
	uint32_t u = scalar("char16_t", 2, CAIRN_ENC_UTF);
	uint32_t w = scalar("wchar_t", 4, CAIRN_ENC_SIGNED);
	const uint16_t pairs[] = {'a', 0xd83d, 0xde00, 0xd83d, 0, 'x'};
	const uint32_t odd[] = {'q', '"', 0x110000, 0xe4};

	assert_prints(array(u, 6), pairs, sizeof(pairs), TEXT, "\"a😀\\ud83d\"");
	assert_prints(array(u, 6), pairs, sizeof(pairs), JSON, "\"a😀\\ufffd\"");
	assert_prints(flexible(u), pairs, 7, TEXT, "\"a😀\"");
	assert_prints(array(w, 4), odd, sizeof(odd), TEXT, "\"q\\\"\\U00110000ä\"");
	assert_prints(array(w, 4), odd, 10, TEXT, "\"q\\\"\"<cut off>");
	assert_prints(array(w, 4), odd, 3, TEXT, "\"\"<cut off>");
	assert_prints(array(w, 4), odd, sizeof(odd),
		      (struct cairn_value_opts){.max_elems = 1, .style = CAIRN_VALUE_JSON},
		      "\"q...\"");
	assert_prints(array(scalar("int", 4, CAIRN_ENC_SIGNED), 2), odd, 8, TEXT, "{113, 34}");
}

static void arrays_end_where_the_bytes_do(void **state)
{
	uint32_t i = t_int(), c = t_char();
	const int bytes[6] = {1, 2, 3, 4, 5, 6};
	assert_prints(array(array(i, 3), 2), bytes, sizeof(bytes), TEXT, "{{1, 2, 3}, {4, 5, 6}}");
	assert_prints(array(i, 1u << 30), bytes, sizeof(bytes), TEXT,
		      "{1, 2, 3, 4, 5, 6, <cut off>}");
	assert_prints(array(i, 6), bytes, sizeof(bytes),
		      (struct cairn_value_opts){.max_elems = 2, .style = CAIRN_VALUE_JSON},
		      "[1,2,\"...\"]");
	assert_prints(flexible(i), bytes, 9, TEXT, "{1, 2}");
	uint32_t s =
		aggregate(CAIRN_T_STRUCT, "s", 8,
			  MEMBERS({.name = "n", .type = i}, {.name = "h", .type = c, .bit_off = 32},
				  {.name = "tail", .type = flexible(c), .bit_off = 40}));
	assert_prints(s, "\2\0\0\0xhello", 10, TEXT, "{.n = 2, .h = 'x', .tail = \"hello\"}");
	assert_prints(s, "\2\0\0\0x", 5, TEXT, "{.n = 2, .h = 'x', .tail = \"\"}");
	/* A flexible array in the middle does not run over what follows. */
	uint32_t odd =
		aggregate(CAIRN_T_STRUCT, "odd", 8,
			  MEMBERS({.name = "z", .type = flexible(i)}, {.name = "n", .type = i},
				  {.name = "m", .type = i, .bit_off = 32}));
	assert_prints(odd, bytes, 8, TEXT, "{.z = {}, .n = 1, .m = 2}");
	/* 2^60 elements without a size are one. */
	uint32_t none = aggregate(CAIRN_T_STRUCT, "none", 0, NULL, 0);
	assert_prints(array(none, UINT64_C(1) << 60), bytes, 4, TEXT, "{{}, ...}");
	/* A stride that is larger than the element. */
	uint32_t strided = add((struct cairn_type){
		.kind = CAIRN_T_ARRAY, .ref = i, .has_count = true, .count = 3, .size = 24});
	assert_prints(strided, bytes, 24, TEXT, "{1, 3, 5}");
}

static void nesting_and_repetition_are_limited(void **state)
{
	uint32_t ring = types_reserve(types);
	const struct cairn_member arms[] = {
		{.name = "a", .type = ring}, {.name = "b", .type = ring}, {.type = ring}};
	types_set(types, ring,
		  &(struct cairn_type){
			  .kind = CAIRN_T_UNION, .size = 8, .members = arms, .n_members = 3});
	for (uint32_t depth = 0; depth <= 100; depth += 10) {
		struct cairn_value_opts opts = {.max_depth = depth, .style = CAIRN_VALUE_JSON};
		char *text = printed(ring, "12345678", 8, opts);
		assert_true(strlen(text) < 10 << 20);
		free(text);
	}
	uint32_t deep = t_int();
	for (int i = 0; i < 20; i++)
		deep = array(deep, 1);
	const int one = 1;
	assert_prints(deep, &one, sizeof(one), (struct cairn_value_opts){.max_depth = 3},
		      "{{{...}}}");
	assert_prints(deep, &one, sizeof(one),
		      (struct cairn_value_opts){.max_depth = 3, .style = CAIRN_VALUE_JSON},
		      "[[[\"...\"]]]");
}

static void offsets_beyond_everything_are_cut_off(void **state)
{
	uint32_t i = t_int();
	uint32_t s =
		aggregate(CAIRN_T_STRUCT, "s", UINT64_MAX,
			  MEMBERS({.name = "a", .type = i, .bit_off = UINT64_MAX - 7},
				  {.name = "b", .type = i, .bit_off = UINT64_MAX, .bit_size = 128},
				  {.name = "c", .type = i, .bit_off = 3},
				  {.name = "d", .type = i, .bit_size = UINT32_MAX},
				  {.name = "e", .type = array(i, UINT64_MAX), .bit_off = 0}));
	const int one = 1;
	assert_prints(s, &one, sizeof(one), TEXT,
		      "{.a = <cut off>, .b = <cut off>, .c = <not at a byte boundary>, "
		      ".d = <wider than 128 bits>, .e = {1, <cut off>}}");
}

static void a_name_from_the_input_cannot_break_json(void **state)
{
	uint32_t s = aggregate(CAIRN_T_STRUCT, "s", 4,
			       MEMBERS({.name = "a\"\n\xff\x1b[31m", .type = t_int()}));
	BOTH(s, 1, "{.a\"\\n\\377\\033[31m = 1}", "{\"a\\\"\\u000a\\ufffd\\u001b[31m\":1}");
}

static void options_are_checked_and_stream_errors_reported(void **state)
{
	struct {
		struct cairn_value_opts known;
		uint64_t newer;
	} opts = {.known.size = sizeof(opts), .newer = 0};
	const int one = 1;
	FILE *full = fopen("/dev/full", "w");
	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	assert_int_equal(cairn_value_print(types, t_int(), &one, sizeof(one), NULL, full), -ENOSPC);
	fclose(full);
	FILE *null = fopen("/dev/null", "w");
	assert_non_null(null);
	assert_int_equal(cairn_value_print(types, t_int(), &one, 4, &opts.known, null), 0);
	opts.newer = 1;
	assert_int_equal(cairn_value_print(types, t_int(), &one, 4, &opts.known, null), -EINVAL);
	opts.newer = 0;
	opts.known.style = 7;
	assert_int_equal(cairn_value_print(types, t_int(), &one, 4, &opts.known, null), -EINVAL);
	fclose(null);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM(integers_print_in_decimal_up_to_128_bits),
		CLAIM(booleans_pointers_and_what_has_no_value),
		CLAIM(chars_and_strings_are_escaped),
		CLAIM(enums_print_by_name_and_never_invent_one),
		CLAIM(floats_read_back_exactly_in_every_locale),
		CLAIM(complex_numbers_have_two_parts),
		CLAIM(bit_fields_of_any_width_at_any_offset),
		CLAIM(bit_fields_of_bool_and_enum),
		CLAIM(structs_unions_and_bases),
		CLAIM(arrays_of_wide_characters_are_text),
		CLAIM(arrays_end_where_the_bytes_do),
		CLAIM(nesting_and_repetition_are_limited),
		CLAIM(offsets_beyond_everything_are_cut_off),
		CLAIM(a_name_from_the_input_cannot_break_json),
		CLAIM(options_are_checked_and_stream_errors_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
