/* SPDX-License-Identifier: BSD-2-Clause */
/* The type graph: names as C writes them, members. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "type_graph.h"

/* ---- names ---- */

static void assert_name(uint32_t id, const char *expected)
{
	char buf[512];
	assert_int_equal(cairn_types_name(types, id, buf, sizeof(buf)), strlen(expected));
	assert_string_equal(buf, expected);
}

static void assert_declares(uint32_t id, const char *name, const char *expected)
{
	char buf[512];
	assert_int_equal(cairn_types_declare(types, id, name, buf, sizeof(buf)), strlen(expected));
	assert_string_equal(buf, expected);
}

static void qualifiers_stand_where_c_programmers_put_them(void **state)
{
	uint32_t c = t_char();
	uint32_t cc = derived(CAIRN_T_CONST, c);
	assert_name(0, "void");
	assert_name(ptr(0), "void *");
	assert_name(ptr(cc), "const char *");
	assert_name(derived(CAIRN_T_CONST, ptr(c)), "char *const");
	assert_name(ptr(derived(CAIRN_T_CONST, ptr(cc))), "const char *const *");
	assert_declares(derived(CAIRN_T_RESTRICT, ptr(cc)), "s", "const char *restrict s");
	assert_name(derived(CAIRN_T_VOLATILE, derived(CAIRN_T_CONST, t_int())),
		    "const volatile int");
	assert_name(derived(CAIRN_T_ATOMIC, t_int()), "_Atomic int");
	assert_name(derived(CAIRN_T_CONST, array(c, 4)), "const char [4]");
	assert_declares(ptr(derived(CAIRN_T_CONST, array(c, 4))), "p", "const char (*p)[4]");
}

static void declarators_read_from_the_name_outwards(void **state)
{
	uint32_t i = t_int(), c = t_char();
	uint32_t params_fn = func(i, MEMBERS({.type = ptr(0)}, {.type = i}), false);
	assert_name(array(ptr(c), 4), "char *[4]");
	assert_declares(array(ptr(c), 4), "argv", "char *argv[4]");
	assert_declares(ptr(array(i, 4)), "p", "int (*p)[4]");
	assert_declares(array(array(i, 3), 2), "m", "int m[2][3]");
	assert_declares(flexible(i), "tail", "int tail[]");
	assert_name(params_fn, "int (void *, int)");
	assert_declares(params_fn, "f", "int f(void *, int)");
	assert_name(ptr(params_fn), "int (*)(void *, int)");
	assert_declares(array(derived(CAIRN_T_CONST, ptr(params_fn)), 4), "table",
			"int (*const table[4])(void *, int)");
	assert_declares(
		func(ptr(func(0, MEMBERS({.type = i}), false)),
		     MEMBERS({.type = i}, {.type = ptr(func(0, MEMBERS({.type = i}), false))}),
		     false),
		"signal", "void (*signal(int, void (*)(int)))(int)");
	assert_name(func(i, MEMBERS({.type = ptr(derived(CAIRN_T_CONST, c))}), true),
		    "int (const char *, ...)");
	assert_name(func(0, NULL, 0, false), "void (void)");
	assert_name(add((struct cairn_type){.kind = CAIRN_T_FUNC}), "void ()");
}

static void tags_and_cxx_names(void **state)
{
	uint32_t s = aggregate(CAIRN_T_STRUCT, "list_head", 16, NULL, 0);
	uint32_t v = add((struct cairn_type){
		.kind = CAIRN_T_CLASS, .name = "std::vector<int>", .bare_name = true});
	assert_name(ptr(derived(CAIRN_T_CONST, s)), "const struct list_head *");
	assert_name(aggregate(CAIRN_T_UNION, "u", 4, NULL, 0), "union u");
	assert_name(ptr(aggregate(CAIRN_T_STRUCT, NULL, 4, NULL, 0)), "struct {...} *");
	assert_name(enumeration("e", 4, CAIRN_ENC_UNSIGNED, NULL, 0), "enum e");
	assert_name(enumeration(NULL, 4, CAIRN_ENC_UNSIGNED, NULL, 0), "enum {...}");
	assert_name(add((struct cairn_type){.kind = CAIRN_T_TYPEDEF, .name = "size_t"}), "size_t");
	assert_name(derived(CAIRN_T_REF, derived(CAIRN_T_CONST, v)), "const std::vector<int> &");
	assert_name(derived(CAIRN_T_RREF, v), "std::vector<int> &&");
	assert_name(add((struct cairn_type){
			    .kind = CAIRN_T_MEMBER_PTR, .ref = t_int(), .container = v}),
		    "int std::vector<int>::*");
	assert_name(add((struct cairn_type){.kind = CAIRN_T_MEMBER_PTR,
					    .ref = func(0, NULL, 0, true),
					    .container = v}),
		    "void (std::vector<int>::*)(...)");
	uint32_t vec = add((struct cairn_type){.kind = CAIRN_T_ARRAY,
					       .ref = t_float("float", 4),
					       .has_count = true,
					       .count = 4,
					       .size = 16,
					       .vector = true});
	assert_name(ptr(vec), "float __attribute__((vector_size(16))) *");
}

static void a_name_is_cut_as_snprintf_does(void **state)
{
	char buf[8] = "unused.";
	uint32_t p = ptr(derived(CAIRN_T_CONST, t_char()));
	assert_int_equal(cairn_types_name(types, p, NULL, 0), 12);
	assert_int_equal(cairn_types_name(types, p, buf, sizeof(buf)), 12);
	assert_string_equal(buf, "const c");
	assert_int_equal(cairn_types_name(types, p, buf, 1), 12);
	assert_string_equal(buf, "");
}

static void a_chain_of_a_million_pointers_and_every_cycle_ends(void **state)
{
	uint32_t id = t_char();
	char buf[512];
	for (int i = 0; i < 1000000; i++)
		id = ptr(id);
	assert_true(cairn_types_name(types, id, buf, sizeof(buf)) < 128);
	assert_non_null(strstr(buf, "... ***"));
	for (int i = 0; i < 1000000; i++) {
		id = derived(CAIRN_T_TYPEDEF, id);
		if (i == 1000)
			assert_int_equal(
				cairn_types_get(types, cairn_types_resolve(types, id))->kind,
				CAIRN_T_PTR);
	}
	assert_int_equal(cairn_types_resolve(types, id), 0);

	uint32_t self = types_reserve(types);
	types_set(types, self, &(struct cairn_type){.kind = CAIRN_T_PTR, .ref = self});
	assert_true(cairn_types_name(types, self, buf, sizeof(buf)) < 128);

	/* A tail of three that leads into a ring of five typedefs. */
	uint32_t ring[8];
	for (size_t i = 0; i < 8; i++)
		ring[i] = types_reserve(types);
	for (size_t i = 0; i < 8; i++)
		types_set(types, ring[i],
			  &(struct cairn_type){.kind = CAIRN_T_CONST,
					       .ref = ring[i == 7 ? 3 : i + 1]});
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(cairn_types_resolve(types, ring[i]), 0);

	/* A function that takes itself twice: 2^depth parameters. */
	uint32_t fn = types_reserve(types);
	const struct cairn_member twice[] = {{.type = fn}, {.type = fn}};
	types_set(types, fn,
		  &(struct cairn_type){
			  .kind = CAIRN_T_FUNC, .ref = fn, .members = twice, .n_members = 2});
	assert_true(cairn_types_name(types, fn, buf, sizeof(buf)) < 1 << 20);
}

static void a_pointer_to_a_node_stays_valid_while_the_graph_grows(void **state)
{
	uint32_t id = t_int();
	const struct cairn_type *before = cairn_types_get(types, id);
	for (int i = 0; i < 100000; i++)
		ptr(id);
	assert_ptr_equal(cairn_types_get(types, id), before);
	assert_string_equal(before->name, "int");
	assert_int_equal(cairn_types_n_types(types), 100002);
	assert_int_equal(cairn_types_get(types, UINT32_MAX)->kind, CAIRN_T_VOID);
	assert_int_equal(cairn_types_resolve(types, UINT32_MAX), 0);
	types_set(types, 0, &(struct cairn_type){.kind = CAIRN_T_INT});
	assert_int_equal(cairn_types_get(types, 0)->kind, CAIRN_T_VOID);
}

/* ---- members ---- */

static void a_member_is_found_inside_anonymous_members_and_bases(void **state)
{
	uint32_t i = t_int();
	uint32_t deep = aggregate(
		CAIRN_T_STRUCT, NULL, 8,
		MEMBERS({.name = "lo", .type = i}, {.name = "hi", .type = i, .bit_off = 32}));
	uint32_t u = aggregate(CAIRN_T_UNION, NULL, 8,
			       MEMBERS({.name = "f", .type = i}, {.type = deep}));
	uint32_t far_base = aggregate(CAIRN_T_CLASS, "Far", 4, MEMBERS({.name = "far", .type = i}));
	uint32_t base =
		aggregate(CAIRN_T_CLASS, "Base", 12,
			  MEMBERS({.type = far_base, .is_base_class = true, .dynamic = true},
				  {.name = "x", .type = i, .bit_off = 32},
				  {.name = "y", .type = i, .bit_off = 64}));
	uint32_t s = aggregate(CAIRN_T_CLASS, "S", 32,
			       MEMBERS({.type = base, .is_base_class = true, .bit_off = 64},
				       {.type = u, .bit_off = 128},
				       {.name = "x", .type = i, .bit_off = 192, .bit_size = 3}));
	uint32_t alias = derived(CAIRN_T_TYPEDEF, derived(CAIRN_T_CONST, s));
	struct cairn_member m;
	assert_true(cairn_types_member(types, alias, "hi", &m));
	assert_int_equal(m.bit_off, 160);
	assert_true(cairn_types_member(types, alias, "y", &m));
	assert_int_equal(m.bit_off, 128);
	assert_false(m.dynamic);
	/* The class's own x hides the one of its base. */
	assert_true(cairn_types_member(types, alias, "x", &m));
	assert_int_equal(m.bit_off, 192);
	assert_int_equal(m.bit_size, 3);
	assert_true(cairn_types_member(types, alias, "far", &m));
	assert_true(m.dynamic);
	assert_false(cairn_types_member(types, alias, "z", &m));
	assert_false(cairn_types_member(types, i, "x", &m));
}

static void a_struct_that_contains_itself_has_no_unknown_member(void **state)
{
	uint32_t ring = types_reserve(types);
	const struct cairn_member in[] = {{.type = ring}, {.type = ring, .is_base_class = true}};
	types_set(types, ring,
		  &(struct cairn_type){.kind = CAIRN_T_STRUCT, .members = in, .n_members = 2});
	struct cairn_member m;
	assert_false(cairn_types_member(types, ring, "x", &m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM(qualifiers_stand_where_c_programmers_put_them),
		CLAIM(declarators_read_from_the_name_outwards),
		CLAIM(tags_and_cxx_names),
		CLAIM(a_name_is_cut_as_snprintf_does),
		CLAIM(a_chain_of_a_million_pointers_and_every_cycle_ends),
		CLAIM(a_pointer_to_a_node_stays_valid_while_the_graph_grows),
		CLAIM(a_member_is_found_inside_anonymous_members_and_bases),
		CLAIM(a_struct_that_contains_itself_has_no_unknown_member),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
