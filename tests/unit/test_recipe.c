/* SPDX-License-Identifier: BSD-2-Clause */
/* Recipes: strings and vectors by their layouts, right ones and those that only have the name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/decode.h>

#include "alloc_fail.h"
#include "decode/recipe.h"
#include "type_graph.h"

#define AT(NAME, TYPE, OFF)                                                                        \
	{                                                                                          \
		.name = (NAME), .type = (TYPE), .bit_off = (OFF)*8                                 \
	}

/* ---- the memory that values are from ---- */

enum { BASE = 0x1000 };

static const char memory[] = "hello\0world\"\x01";

static size_t read_memory(void *ctx, uint64_t at, void *to, size_t n)
{
	size_t there = sizeof(memory) - 1;
	(void)ctx;
	if (at == 0xbad)
		return CAIRN_VALUE_UNREADABLE_MEMORY;
	if (at < BASE || at - BASE >= there)
		return 0;
	n = n < there - (at - BASE) ? n : there - (size_t)(at - BASE);
	memcpy(to, memory + (at - BASE), n);
	return n;
}

static void expect_with(struct cairn_value_opts opts, uint32_t id, const void *bytes, size_t n,
			const char *text)
{
	char *got = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&got, &size);
	assert_non_null(out);
	opts.size = sizeof(opts);
	assert_int_equal(cairn_value_print(types, id, bytes, n, &opts, out), 0);
	fclose(out);
	assert_string_equal(got, text);
	free(got);
}

static void expect_both(uint32_t id, const void *bytes, size_t n, const char *text,
			const char *json)
{
	expect_with((struct cairn_value_opts){.read = read_memory}, id, bytes, n, text);
	expect_with((struct cairn_value_opts){.read = read_memory, .style = CAIRN_VALUE_JSON}, id,
		    bytes, n, json);
}

/* ---- types ---- */

static uint32_t t_size(void)
{
	return scalar("unsigned long", 8, CAIRN_ENC_UNSIGNED);
}

/* Members of types that functions below make; they live as long as the program. */
static struct cairn_member *members(size_t n)
{
	static struct cairn_member pool[512];
	static size_t used;
	assert_true(used + n <= ARRAY_SIZE(pool));
	used += n;
	return &pool[used - n];
}

static uint32_t view_of(const char *name, uint32_t element, uint64_t size, uint64_t len_at,
			uint64_t str_at)
{
	struct cairn_member *m = members(2);
	m[0] = (struct cairn_member)AT("_M_len", t_size(), len_at);
	m[1] = (struct cairn_member)AT("_M_str", ptr(element), str_at);
	return aggregate(CAIRN_T_CLASS, name, size, m, 2);
}

static const char view_name[] = "std::basic_string_view<char, std::char_traits<char> >";

static void a_view_is_its_text(void **state)
{
	uint32_t id = view_of(view_name, t_char(), 16, 0, 8);
	expect_both(id, (const uint64_t[]){5, BASE}, 16, "\"hello\"", "\"hello\"");
	expect_both(id, (const uint64_t[]){0, 0}, 16, "\"\"", "\"\"");
	/* NULs count, and what is no character is escaped. */
	expect_both(id, (const uint64_t[]){13, BASE}, 16, "\"hello\\000world\\\"\\001\"",
		    "\"hello\\u0000world\\\"\\u0001\"");
	/* More than could be read. */
	expect_both(id, (const uint64_t[]){100, BASE + 6}, 16, "\"world\\\"\\001\"...",
		    "\"world\\\"\\u0001...\"");
}

static void a_target_that_is_not_there_is_said(void **state)
{
	uint32_t id = view_of(view_name, t_char(), 16, 0, 8);
	expect_both(id, (const uint64_t[]){5, 0xbad}, 16, "<unreadable: 5 bytes at 0xbad>",
		    "{\"unreadable\":\"5 bytes at 0xbad\"}");
	expect_both(id, (const uint64_t[]){5, 0x10}, 16,
		    "<unavailable: 5 bytes at 0x10 are not here>",
		    "{\"unavailable\":\"5 bytes at 0x10 are not here\"}");
	expect_with((struct cairn_value_opts){0}, id, (const uint64_t[]){5, BASE}, 16,
		    "<unavailable: 5 bytes at 0x1000 are not here>");
	/* No memory has so many. */
	expect_both(id, (const uint64_t[]){UINT64_MAX, BASE}, 16, "<not a value of its type>",
		    "null");
	expect_both(id, (const uint64_t[]){5}, 8, "<cut off>", "null");
}

static void what_only_has_the_name_is_a_struct(void **state)
{
	static const uint64_t bytes[] = {5, BASE, 0};
	uint32_t c = t_char();
	expect_both(view_of(view_name, c, 24, 0, 8), bytes, 24, "{._M_len = 5, ._M_str = 0x1000}",
		    "{\"_M_len\":5,\"_M_str\":\"0x1000\"}");
	expect_both(view_of(view_name, t_int(), 16, 0, 8), bytes, 16,
		    "{._M_len = 5, ._M_str = 0x1000}", "{\"_M_len\":5,\"_M_str\":\"0x1000\"}");
	expect_both(view_of("std::basic_string_view<wchar_t, T>", c, 16, 0, 8), bytes, 16,
		    "{._M_len = 5, ._M_str = 0x1000}", "{\"_M_len\":5,\"_M_str\":\"0x1000\"}");
	struct recipe r;
	/* Words that overlap, or lie outside. */
	assert_false(recipe_of(types, view_of(view_name, c, 16, 4, 8), &r));
	assert_false(recipe_of(types, view_of(view_name, c, 16, 0, 12), &r));
	assert_true(recipe_of(types, view_of(view_name, c, 16, 8, 0), &r));
	/* Members of other names, and a length that is no word. */
	assert_false(recipe_of(types,
			       aggregate(CAIRN_T_CLASS, view_name, 16,
					 MEMBERS(AT("len", t_size(), 0), AT("_M_str", ptr(c), 8))),
			       &r));
	assert_false(
		recipe_of(types,
			  aggregate(CAIRN_T_CLASS, view_name, 16,
				    MEMBERS(AT("_M_len", t_int(), 0), AT("_M_str", ptr(c), 8))),
			  &r));
	assert_false(recipe_of(types,
			       aggregate(CAIRN_T_CLASS, view_name, 16,
					 MEMBERS(AT("_M_len", ptr(c), 0), AT("_M_str", ptr(c), 8))),
			       &r));
	assert_false(
		recipe_of(types,
			  aggregate(CAIRN_T_UNION, view_name, 16,
				    MEMBERS(AT("_M_len", t_size(), 0), AT("_M_str", ptr(c), 8))),
			  &r));
	assert_false(recipe_of(
		types,
		add((struct cairn_type){
			.kind = CAIRN_T_CLASS, .name = view_name, .size = 16, .unread = true}),
		&r));
}

static void raw_is_the_struct(void **state)
{
	uint32_t id = view_of(view_name, t_char(), 16, 0, 8);
	expect_with((struct cairn_value_opts){.raw = true, .read = read_memory}, id,
		    (const uint64_t[]){5, BASE}, 16, "{._M_len = 5, ._M_str = 0x1000}");
	/* No machine with these types has the other byte order. */
	expect_with((struct cairn_value_opts){.big_endian = true, .read = read_memory}, id,
		    (const uint64_t[]){0, 0}, 16, "{._M_len = 0, ._M_str = 0x0}");
}

/* As libstdc++ has it: the members are in a base class of a member of a base class. */
static uint32_t vector_of(uint32_t element, uint32_t end_of)
{
	struct cairn_member *m = members(5);
	m[0] = (struct cairn_member)AT("_M_start", ptr(element), 0);
	m[1] = (struct cairn_member)AT("_M_finish", ptr(end_of), 8);
	m[2] = (struct cairn_member)AT("_M_end_of_storage", ptr(element), 16);
	uint32_t data =
		aggregate(CAIRN_T_STRUCT, "std::_Vector_base<T>::_Vector_impl_data", 24, m, 3);
	m[3] = (struct cairn_member){.type = data, .is_base_class = true};
	uint32_t impl =
		aggregate(CAIRN_T_STRUCT, "std::_Vector_base<T>::_Vector_impl", 24, &m[3], 1);
	m[4] = (struct cairn_member)AT("_M_impl", impl, 0);
	struct cairn_member *base = members(1);
	*base = (struct cairn_member){
		.type = aggregate(CAIRN_T_STRUCT, "std::_Vector_base<T>", 24, &m[4], 1),
		.is_base_class = true};
	return aggregate(CAIRN_T_CLASS, "std::vector<T, std::allocator<T> >", 24, base, 1);
}

static void a_vector_is_its_elements(void **state)
{
	uint32_t u8 = scalar("unsigned char", 1, CAIRN_ENC_UNSIGNED_CHAR),
		 u16 = scalar("unsigned short", 2, CAIRN_ENC_UNSIGNED);
	uint32_t id = vector_of(u8, u8);
	expect_both(id, (const uint64_t[]){BASE, BASE + 2, BASE + 9}, 24, "{104, 101}",
		    "[104,101]");
	expect_both(id, (const uint64_t[]){0, 0, 0}, 24, "{}", "[]");
	expect_both(id, (const uint64_t[]){BASE + 11, BASE + 99, 0}, 24, "{34, 1, ...}",
		    "[34,1,\"...\"]");
	/*
	 * The end before the begin; not a whole number of elements; less than one element could be
	 * read.
	 */
	expect_both(id, (const uint64_t[]){BASE + 2, BASE, 0}, 24, "<not a value of its type>",
		    "null");
	id = vector_of(u16, u16);
	expect_both(id, (const uint64_t[]){BASE, BASE + 3, 0}, 24, "<not a value of its type>",
		    "null");
	expect_both(id, (const uint64_t[]){BASE + 12, BASE + 14, 0}, 24,
		    "<unavailable: 2 bytes at 0x100c are not here>",
		    "{\"unavailable\":\"2 bytes at 0x100c are not here\"}");
	struct recipe r;
	assert_false(recipe_of(types, vector_of(u16, u8), &r));
}

static void elements_may_have_recipes(void **state)
{
	uint32_t view = view_of(view_name, t_char(), 16, 0, 8), id = vector_of(view, view);
	/* The memory has no views in it: their words are those of its text. */
	expect_both(id, (const uint64_t[]){BASE, BASE, 0}, 24, "{}", "[]");
	struct recipe_at all[4];
	uint32_t both = aggregate(CAIRN_T_STRUCT, "both", 48,
				  MEMBERS(AT("n", t_size(), 0), AT("v", id, 8), AT("s", view, 32)));
	assert_int_equal(recipe_all(types, both, all, 4), 2);
	assert_int_equal(all[0].off, 8);
	assert_int_equal(all[1].off, 32);
	assert_int_equal(all[1].recipe.kind, RECIPE_TEXT);
	assert_int_equal(recipe_all(types, both, all, 1), 1);
}

static void a_unique_pointer_is_one(void **state)
{
	uint32_t deleter = aggregate(CAIRN_T_STRUCT, "std::default_delete<int>", 1, NULL, 0);
	uint32_t no_head = aggregate(CAIRN_T_STRUCT, "std::_Head_base<1>", 1,
				     MEMBERS(AT("_M_head_impl", deleter, 0)));
	uint32_t head = aggregate(CAIRN_T_STRUCT, "std::_Head_base<0>", 8,
				  MEMBERS(AT("_M_head_impl", ptr(t_int()), 0)));
	uint32_t tuple = aggregate(CAIRN_T_CLASS, "std::tuple<int *>", 8,
				   MEMBERS({.type = no_head, .is_base_class = true},
					   {.type = head, .is_base_class = true}));
	uint32_t impl = aggregate(CAIRN_T_CLASS, "std::__uniq_ptr_impl<int>", 8,
				  MEMBERS(AT("_M_t", tuple, 0)));
	uint32_t id =
		aggregate(CAIRN_T_CLASS, "std::unique_ptr<int>", 8, MEMBERS(AT("_M_t", impl, 0)));
	expect_both(id, (const uint64_t[]){0x1234}, 8, "0x1234", "\"0x1234\"");
	/* A deleter with a state makes it another layout. */
	uint32_t two = aggregate(CAIRN_T_CLASS, "std::tuple<int *>", 16,
				 MEMBERS({.type = head, .is_base_class = true},
					 {.type = head, .bit_off = 64, .is_base_class = true}));
	id = aggregate(CAIRN_T_CLASS, "std::unique_ptr<int>", 16, MEMBERS(AT("_M_t", two, 0)));
	struct recipe r;
	assert_false(recipe_of(types, id, &r));
}

/* As libc++ has it: the members are in a base class of a member, and in a union without a name. */
static uint32_t inside_string(struct cairn_member length, uint64_t data_at, uint64_t room)
{
	uint32_t c = t_char();
	struct cairn_type chars = {
		.kind = CAIRN_T_ARRAY, .ref = c, .size = room, .has_count = true, .count = room};
	struct cairn_member *m = members(10);
	m[0] = length;
	m[1] = (struct cairn_member)AT("__data_", add(chars), data_at);
	m[2] = (struct cairn_member)AT("__cap_", t_size(), 0);
	m[3] = (struct cairn_member)AT("__size_", t_size(), 8);
	m[4] = (struct cairn_member)AT("__data_", ptr(c), 16);
	m[5] = (struct cairn_member)AT("__l", aggregate(CAIRN_T_STRUCT, "__long", 24, &m[2], 3), 0);
	m[6] = (struct cairn_member)AT("__s", aggregate(CAIRN_T_STRUCT, "__short", 24, &m[0], 2),
				       0);
	m[7] = (struct cairn_member)AT(NULL, aggregate(CAIRN_T_UNION, NULL, 24, &m[5], 2), 0);
	m[8] = (struct cairn_member)AT("__value_", aggregate(CAIRN_T_STRUCT, "__rep", 24, &m[7], 1),
				       0);
	uint32_t elem = aggregate(CAIRN_T_STRUCT, "__compressed_pair_elem", 24, &m[8], 1);
	m[9] = (struct cairn_member){.type = elem, .is_base_class = true};
	struct cairn_member *r = members(1);
	*r = (struct cairn_member)AT(
		"__r_", aggregate(CAIRN_T_CLASS, "__compressed_pair", 24, &m[9], 1), 0);
	return aggregate(CAIRN_T_CLASS,
			 "std::__1::basic_string<char, std::__1::char_traits<char> >", 24, r, 1);
}

static void a_string_of_libcxx_is_inside_or_elsewhere(void **state)
{
	uint32_t u8 = scalar("unsigned char", 1, CAIRN_ENC_UNSIGNED_CHAR);
	const struct cairn_member byte = AT("__size_", u8, 0), bits = {.name = "__size_",
								       .type = u8,
								       .bit_off = 1,
								       .bit_size = 7};
	const struct cairn_member at_end = AT("__size_", u8, 23),
				  other = {.name = "__size_", .type = u8, .bit_size = 7};
	uint32_t ids[] = {inside_string(byte, 1, 23), inside_string(bits, 1, 23)};
	for (size_t i = 0; i < 2; i++) {
		expect_both(ids[i], "\6abc\0xyz\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, "\"abc\"",
			    "\"abc\"");
		expect_both(ids[i], (const uint64_t[]){33, 5, BASE}, 24, "\"hello\"", "\"hello\"");
		/* 23 characters are more than there is room for. */
		expect_both(ids[i], (const uint64_t[]){46, 5, BASE}, 24,
			    "<not a value of its type>", "null");
	}
	struct recipe r;
	assert_false(recipe_of(types, inside_string(at_end, 0, 23), &r));
	assert_false(recipe_of(types, inside_string(other, 1, 23), &r));
	assert_false(recipe_of(types, inside_string(byte, 1, 24), &r));
	assert_false(recipe_of(types, inside_string(byte, 2, 22), &r));
}

static void rust_and_go_have_theirs(void **state)
{
	uint32_t u8 = scalar("u8", 1, CAIRN_ENC_UNSIGNED),
		 u16 = scalar("u16", 2, CAIRN_ENC_UNSIGNED);
	expect_both(aggregate(CAIRN_T_STRUCT, "&str", 16,
			      MEMBERS(AT("data_ptr", ptr(u8), 0), AT("length", t_size(), 8))),
		    (const uint64_t[]){BASE, 5}, 16, "\"hello\"", "\"hello\"");
	expect_both(aggregate(CAIRN_T_STRUCT, "&[u16]", 16,
			      MEMBERS(AT("data_ptr", ptr(u16), 0), AT("length", t_size(), 8))),
		    (const uint64_t[]){BASE, 1}, 16, "{25960}", "[25960]");
	expect_both(aggregate(CAIRN_T_STRUCT, "string", 16,
			      MEMBERS(AT("str", ptr(u8), 0), AT("len", t_size(), 8))),
		    (const uint64_t[]){BASE, 2}, 16, "\"he\"", "\"he\"");
	expect_both(aggregate(CAIRN_T_STRUCT, "[]uint8", 24,
			      MEMBERS(AT("array", ptr(u8), 0), AT("len", t_size(), 8),
				      AT("cap", t_size(), 16))),
		    (const uint64_t[]){BASE, 2, 9}, 24, "{104, 101}", "[104,101]");
	/* A Vec keeps a pointer to bytes: what they are is its parameter. */
	uint32_t inner = aggregate(CAIRN_T_STRUCT, "RawVecInner", 16,
				   MEMBERS(AT("ptr", ptr(u8), 0), AT("cap", t_size(), 8)));
	uint32_t buf = aggregate(CAIRN_T_STRUCT, "RawVec", 16, MEMBERS(AT("inner", inner, 0)));
	const struct cairn_member vec[] = {AT("buf", buf, 0), AT("len", t_size(), 16)};
	struct cairn_type t = {.kind = CAIRN_T_STRUCT,
			       .name = "alloc::vec::Vec<u16, A>",
			       .size = 24,
			       .members = vec,
			       .n_members = 2};
	struct recipe r;
	assert_false(recipe_of(types, add(t), &r));
	t.ref = u16;
	expect_both(add(t), (const uint64_t[]){BASE, 9, 2}, 24, "{25960, 27756}", "[25960,27756]");
}

static void lack_of_memory_is_told(void **state)
{
	uint32_t id = view_of(view_name, t_char(), 16, 0, 8);
	struct cairn_value_opts opts = {.size = sizeof(opts), .read = read_memory};
	struct cairn_decode *d = NULL;
	int rc = -1;
	for (long n = 0; rc < 0 && n < 100; n++) {
		alloc_fail_at(n);
		rc = cairn_decode_new(types, id, &opts, &d, NULL);
		alloc_fail_at(-1);
	}
	assert_int_equal(rc, 0);
	cairn_decode_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM(a_view_is_its_text),
		CLAIM(a_target_that_is_not_there_is_said),
		CLAIM(what_only_has_the_name_is_a_struct),
		CLAIM(raw_is_the_struct),
		CLAIM(a_vector_is_its_elements),
		CLAIM(elements_may_have_recipes),
		CLAIM(a_unique_pointer_is_one),
		CLAIM(a_string_of_libcxx_is_inside_or_elsewhere),
		CLAIM(rust_and_go_have_theirs),
		CLAIM(lack_of_memory_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
