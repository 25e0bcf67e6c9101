/* SPDX-License-Identifier: BSD-2-Clause */
/* src/bytes/layout/builder.c, src/facts/btf/of_types.c: types from calls, as BTF, as C and back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cairn/btf.h>
#include <cairn/layout/builder.h>

#include "alloc_fail.h"
#include "decl/decl.h"

struct kinds {
	uint32_t character, u8, u32, i32, i64, i128, pointer;
};

static struct kinds kinds_of(struct cairn_layout_builder *b)
{
	return (struct kinds){
		.character = cairn_build_int(b, "char", CAIRN_C_CHAR, false),
		.u8 = cairn_build_int(b, "unsigned char", CAIRN_C_CHAR, true),
		.u32 = cairn_build_int(b, "unsigned int", CAIRN_C_INT, true),
		.i32 = cairn_build_int(b, "int", CAIRN_C_INT, false),
		.i64 = cairn_build_int(b, "long long", CAIRN_C_LLONG, false),
		.pointer = cairn_build_pointer(b, 0),
	};
}

static const struct cairn_type *node(struct cairn_layout_builder *b, uint32_t id)
{
	const struct cairn_types *types;
	struct cairn_err err = {0};

	if (cairn_layout_builder_types(b, &types, &err) < 0)
		fail_msg("%s", err.msg);
	return cairn_types_get(types, id);
}

static uint64_t offset(const struct cairn_type *t, uint32_t i)
{
	assert_int_equal(t->members[i].bit_off % 8, 0);
	return t->members[i].bit_off / 8;
}

static void the_article_s_event_is_276_bytes(void **state)
{
	for (size_t i = 0; cairn_abi_at(i); i++) {
		struct cairn_layout_builder *b = cairn_layout_builder_new(cairn_abi_at(i));
		struct kinds k = kinds_of(b);
		struct cairn_build_member m[] = {
			{.name = "e_pid", .type = k.u32},
			{.name = "e_filename", .type = cairn_build_array(b, k.character, 256)},
			{.name = "e_comm", .type = cairn_build_array(b, k.character, 16)}};
		const struct cairn_type *t = node(b, cairn_build_struct(b, "event", m, 3, NULL));

		assert_int_equal(offset(t, 0), 0);
		assert_int_equal(offset(t, 1), 4);
		assert_int_equal(offset(t, 2), 260);
		assert_int_equal(t->size, 276);
		cairn_layout_builder_free(b);
	}
}

/* hello-ebpf gives 33. */
static void the_size_is_padded_to_the_alignment(void **state)
{
	struct cairn_layout_builder *b = cairn_layout_builder_new(NULL);
	struct kinds k = kinds_of(b);
	struct cairn_build_member m[] = {{.name = "a", .type = k.u8},
					 {.name = "b", .type = k.i64},
					 {.name = "c", .type = k.i32},
					 {.name = "d", .type = k.i64},
					 {.name = "e", .type = k.u8}};

	assert_int_equal(node(b, cairn_build_struct(b, "s", m, 5, NULL))->size, 40);
	cairn_layout_builder_free(b);
}

/* hello-ebpf puts c at 5. */
static void what_follows_a_struct_comes_behind_its_padding(void **state)
{
	struct cairn_layout_builder *b = cairn_layout_builder_new(NULL);
	struct kinds k = kinds_of(b);
	struct cairn_build_member in[] = {{.name = "a", .type = k.u32},
					  {.name = "b", .type = k.u8}};
	struct cairn_build_member out[] = {
		{.name = "in", .type = cairn_build_struct(b, "inner", in, 2, NULL)},
		{.name = "c", .type = k.u8}};
	const struct cairn_type *t = node(b, cairn_build_struct(b, "outer", out, 2, NULL));

	assert_int_equal(offset(t, 1), 8);
	assert_int_equal(t->size, 12);
	cairn_layout_builder_free(b);
}

static void the_first_failure_is_kept_and_names_the_member(void **state)
{
	struct cairn_layout_builder *b = cairn_layout_builder_new(cairn_abi_find("i386"));
	struct kinds k = kinds_of(b);
	struct cairn_build_member wide[] = {
		{.name = "x", .type = k.u32},
		{.name = "y", .type = k.u8, .bit_field = true, .bits = 9}};
	const struct cairn_types *types;
	struct cairn_err err = {0};

	assert_int_equal(cairn_build_struct(b, "s", wide, 2, NULL), 0);
	assert_int_equal(cairn_build_int(b, "__int128", CAIRN_C_INT128, false), 0);
	assert_int_equal(cairn_build_array(b, k.u8, 4), 0);
	assert_int_equal(cairn_layout_builder_types(b, &types, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "member 1 (y): a bit-field wider than its type"));
	cairn_layout_builder_free(b);
}

static void types_that_are_not_there_are_refused(void **state)
{
	struct cairn_build_member m[] = {{.name = "x", .type = 999}};
	const struct cairn_types *types;

	for (int which = 0; which < 4; which++) {
		struct cairn_layout_builder *b = cairn_layout_builder_new(NULL);

		assert_int_equal(which == 0   ? cairn_build_pointer(b, 7)
				 : which == 1 ? cairn_build_array(b, 7, 1)
				 : which == 2 ? cairn_build_typedef(b, "t", 7)
					      : cairn_build_struct(b, "s", m, 1, NULL),
				 0);
		assert_int_equal(cairn_layout_builder_types(b, &types, NULL), -EINVAL);
		cairn_layout_builder_free(b);
	}
}

/* A struct with some of everything. */
static uint32_t build_mixed(struct cairn_layout_builder *b)
{
	struct kinds k = kinds_of(b);
	struct cairn_enumerator values[] = {{"RED", 0}, {"GREEN", 5}};
	struct cairn_build_member arms[] = {{.name = "v4", .type = k.u32},
					    {.name = "v6", .type = cairn_build_array(b, k.u8, 16)}};
	struct cairn_build_member m[] = {
		{.name = "a", .type = k.u8},
		{.name = "bits", .type = k.u32, .bit_field = true, .bits = 5},
		{.type = k.u32, .bit_field = true, .bits = 0},
		{.name = "more", .type = k.u32, .bit_field = true, .bits = 9},
		{.type = cairn_build_union(b, NULL, arms, 2, NULL)},
		{.name = "colour", .type = cairn_build_enum(b, "colour", 4, false, values, 2)},
		{.name = "far", .type = k.u8, .aligned = 16},
		{.name = "d",
		 .type = cairn_build_typedef(b, "real",
					     cairn_build_float(b, "double", CAIRN_C_DOUBLE))},
		{.name = "next", .type = cairn_build_pointer(b, k.i64)},
		{.name = "data", .type = cairn_build_array(b, k.u8, 0)},
	};

	return cairn_build_struct(b, "mixed", m, 10, NULL);
}

static void *btf_of(const struct cairn_types *types, uint32_t id, size_t *ret_size)
{
	struct cairn_btf_build_opts opts = {.size = sizeof(opts)};
	struct cairn_btf_builder *builder;
	struct cairn_err err = {0};
	void *bytes = NULL;

	assert_int_equal(cairn_btf_builder_new(&opts, &builder, &err), 0);
	if (cairn_btf_add_types(builder, types, &id, 1, NULL, &err) < 0 ||
	    cairn_btf_finish(builder, &bytes, ret_size, &err) < 0)
		fail_msg("%s", err.msg);
	cairn_btf_builder_free(builder);
	return bytes;
}

static void btf_of_what_was_built_is_sound_and_its_c_has_the_same_layout(void **state)
{
	struct cairn_layout_builder *b = cairn_layout_builder_new(NULL);
	uint32_t id = build_mixed(b);
	const struct cairn_type *t = node(b, id), *again;
	const struct cairn_types *types;
	struct cairn_err err = {0};
	struct decl *decl;
	struct cairn_btf *btf;
	char *text;
	size_t size, n;

	assert_int_equal(cairn_layout_builder_types(b, &types, &err), 0);
	void *bytes = btf_of(types, id, &size);
	assert_int_equal(cairn_btf_open_mem(bytes, size, "built", NULL, &btf, &err), 0);
	assert_int_equal(cairn_btf_check(btf, NULL, NULL), 0);
	FILE *out = open_memstream(&text, &n);
	assert_int_equal(cairn_btf_dump(btf, CAIRN_BTF_C, NULL, 0, 0, out, &err), 0);
	fclose(out);
	/* Its only directive is one for the compiler. */
	if (decl_parse(text, n, "built.h", cairn_abi_find("x86-64"), &decl, &err) < 0)
		fail_msg("%s\n%s", err.msg, text);
	again = cairn_types_get(decl_types(decl), decl_find(decl, CAIRN_T_STRUCT, "mixed"));
	assert_int_equal(again->size, t->size);
	assert_int_equal(again->n_members, t->n_members);
	for (uint32_t i = 0; i < t->n_members; i++) {
		assert_int_equal(again->members[i].bit_off, t->members[i].bit_off);
		assert_int_equal(again->members[i].bit_size, t->members[i].bit_size);
	}
	decl_free(decl);
	free(text);
	cairn_btf_close(btf);
	free(bytes);
	cairn_layout_builder_free(b);
}

static void structs_that_refer_to_one_another_end(void **state)
{
	static const char text[] =
		"struct b; struct a { struct b *b; struct a *next; }; struct b { struct a *a; int "
		"(*f)(struct a *, ...); "
		"const volatile int x; _Atomic int y; float _Complex c; enum { P = -1 } e; };";
	struct cairn_err err = {0};
	struct decl *decl;
	struct cairn_btf *btf;
	size_t size;

	assert_int_equal(
		decl_parse(text, strlen(text), "t.h", cairn_abi_find("x86-64"), &decl, &err), 0);
	void *bytes = btf_of(decl_types(decl), decl_find(decl, CAIRN_T_STRUCT, "a"), &size);
	assert_int_equal(cairn_btf_open_mem(bytes, size, "t", NULL, &btf, &err), 0);
	assert_int_equal(cairn_btf_check(btf, NULL, NULL), 0);
	assert_int_not_equal(cairn_btf_find(btf, "b", CAIRN_BTF_STRUCT, 0), 0);
	cairn_btf_close(btf);
	free(bytes);
	decl_free(decl);
}

/* Everything that can be made, and BTF of it. */
static int build_all(void)
{
	const struct cairn_enumerator values[] = {{.name = "ONE", .value = 1},
						  {.name = "TWO", .value = 2}};
	struct cairn_layout_builder *b = cairn_layout_builder_new(NULL);
	struct cairn_btf_builder *btf = NULL;
	const struct cairn_types *types;
	void *bytes = NULL;
	size_t size;

	if (!b)
		return -ENOMEM;
	struct kinds k = kinds_of(b);
	uint32_t e = cairn_build_enum(b, "number", 4, false, values, 2);
	struct cairn_build_member in[] = {{.name = "x", .type = k.i64},
					  {.type = k.i32, .bit_field = true, .bits = 3}};
	uint32_t inner = cairn_build_union(b, NULL, in, 2, NULL);
	struct cairn_build_member out[] = {
		{.name = "e", .type = cairn_build_typedef(b, "number_t", e)},
		{.type = inner},
		{.name = "f", .type = cairn_build_float(b, "float", CAIRN_C_FLOAT)},
		{.name = "a", .type = cairn_build_array(b, k.u8, 7)},
		{.name = "b", .type = k.u32, .bit_field = true, .bits = 5}};
	uint32_t id = cairn_build_struct(b, "all", out, 5, NULL);
	int rc = cairn_layout_builder_types(b, &types, NULL);
	if (!rc)
		rc = cairn_btf_builder_new(NULL, &btf, NULL);
	if (!rc)
		rc = cairn_btf_add_types(btf, types, &id, 1, NULL, NULL);
	if (!rc)
		rc = cairn_btf_finish(btf, &bytes, &size, NULL);
	free(bytes);
	cairn_btf_builder_free(btf);
	cairn_layout_builder_free(b);
	return rc;
}

static void without_memory_nothing_is_built(void **state)
{
	bool failed = true;
	unsigned int n;

	for (n = 0; failed; n++) {
		alloc_fail_at(n + 1);
		int rc = build_all();

		failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
	}
	assert_true(n > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_article_s_event_is_276_bytes),
		cmocka_unit_test(the_size_is_padded_to_the_alignment),
		cmocka_unit_test(what_follows_a_struct_comes_behind_its_padding),
		cmocka_unit_test(the_first_failure_is_kept_and_names_the_member),
		cmocka_unit_test(types_that_are_not_there_are_refused),
		cmocka_unit_test(btf_of_what_was_built_is_sound_and_its_c_has_the_same_layout),
		cmocka_unit_test(structs_that_refer_to_one_another_end),
		cmocka_unit_test(without_memory_nothing_is_built),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
