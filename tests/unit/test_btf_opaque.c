/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of kinds that nobody knows, through what moves records: dedup, sort, split, distil. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "alloc_fail.h"
#include "btf/btf.h"
#include "btf_fixture.h"

#define NO_ID 0x10000 /* above all ids here, so that it can be none */

typedef int transform(const struct cairn_btf *btf, uint32_t *map, void **ret, size_t *ret_size,
		      struct cairn_err *err);

/* The transformed blob; transforming that changes nothing. */
static struct blob after(transform *fn, const struct cairn_btf *btf)
{
	struct cairn_err err = {0};
	struct blob b = {0};
	void *again;
	size_t again_size;
	if (fn(btf, NULL, &b.bytes, &b.size, &err) < 0)
		fail_msg("%s", err.msg);
	b.btf = must_open_mem(b.bytes, b.size, cairn_btf_base(btf));
	assert_int_equal(fn(b.btf, NULL, &again, &again_size, &err), 0);
	assert_int_equal(again_size, b.size);
	assert_memory_equal(again, b.bytes, b.size);
	free(again);
	return b;
}

static void assert_refused(transform *fn, const struct cairn_btf *btf, const char *story)
{
	struct cairn_err err = {0};
	void *bytes;
	size_t size;
	assert_int_equal(fn(btf, NULL, &bytes, &size, &err), -EOPNOTSUPP);
	if (!strstr(err.msg, story))
		fail_msg("not \"%s\": %s", story, err.msg);
}

static void assert_words(const struct cairn_btf *btf, uint32_t id, uint32_t kind,
			 const uint32_t *words, uint32_t n)
{
	struct cairn_btf_type t = must_have(btf, id);
	assert_int_equal(t.kind, kind);
	assert_int_equal(t.n_words, n);
	assert_memory_equal(t.words, words, n * sizeof(*words));
}

static struct cairn_btf_builder *with_made_up_kinds(const struct cairn_btf *base)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){
		.base = base, .layout = true, .dialect = CAIRN_BTF_LOC_N});
	learn_made_up_kinds(b);
	return b;
}

/* ---- dedup ---- */

static void dedup_leaves_unknown_kinds_as_they_are(void **state)
{
	struct cairn_btf_builder *b = with_made_up_kinds(NULL);
	add_int(b);
	str(b, "nobody uses this one");
	uint32_t text = str(b, "perhaps a name");
	uint32_t of_8[] = {1, text}, of_4_and_8[] = {3, 1, 2, NO_ID, text};
	uint32_t x = add_made_up(b, KIND_OF_8_BYTES, 0, of_8);
	ADD(ref, b, CAIRN_BTF_PTR, 0, x);
	uint32_t twice = add_int(b);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "number"), twice);
	add_made_up(b, KIND_OF_4_BYTES_AND_8_PER_ELEMENT, 2, of_4_and_8);
	struct blob in = finish(b, NULL), out = after(cairn_btf_dedup, in.btf);
	assert_int_equal(cairn_btf_end_id(out.btf), 6);
	assert_words(out.btf, 2, KIND_OF_8_BYTES, of_8, 2);
	assert_int_equal(must_have(out.btf, 3).ref, 2);
	assert_int_equal(must_have(out.btf, 4).ref, 1);
	assert_string_equal(must_have(out.btf, 4).name, "number");
	assert_words(out.btf, 5, KIND_OF_4_BYTES_AND_8_PER_ELEMENT, of_4_and_8, 5);
	assert_string_equal(cairn_btf_string(out.btf, text), "perhaps a name");
	blob_free(&out);
	blob_free(&in);
}

static void dedup_never_merges_what_it_does_not_know(void **state)
{
	struct cairn_btf_builder *b = with_made_up_kinds(NULL);
	uint32_t words[] = {NO_ID, NO_ID};
	add_made_up(b, KIND_OF_8_BYTES, 0, words);
	add_made_up(b, KIND_OF_8_BYTES, 0, words);
	struct blob in = finish(b, NULL), out = after(cairn_btf_dedup, in.btf);
	assert_int_equal(cairn_btf_end_id(out.btf), 3);
	blob_free(&out);
	blob_free(&in);
}

static void dedup_refuses_what_may_refer_to_what_moves(void **state)
{
	struct cairn_btf_builder *b = with_made_up_kinds(NULL);
	uint32_t words[] = {NO_ID, 3};
	add_int(b);
	add_int(b);
	ADD(ref, b, CAIRN_BTF_PTR, 0, 1);
	uint32_t id = add_made_up(b, KIND_OF_8_BYTES, 0, words);
	struct blob in = finish(b, NULL);
	char story[100];
	snprintf(story, sizeof(story),
		 "record %u is of kind 40, which is not known: its word at offset 0x%x may be id 3",
		 id, (unsigned int)btf_record_off(in.btf, id) + 16);
	assert_refused(cairn_btf_dedup, in.btf, story);
	blob_free(&in);
}

/* Kernel, module, and what is on top of that: only the kernel's layout section tells. */
static void layout_of_the_eldest_is_enough(void **state)
{
	uint32_t words[] = {1, NO_ID};
	struct cairn_btf_builder *b = with_made_up_kinds(NULL);
	add_int(b);
	struct blob kernel = finish(b, NULL);
	b = builder((struct cairn_btf_build_opts){.base = kernel.btf});
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "a"), 1);
	struct blob module = finish(b, kernel.btf);
	b = builder((struct cairn_btf_build_opts){.base = module.btf});
	btf_builder_learn_kinds(b, module.btf);
	add_made_up(b, KIND_OF_8_BYTES, 0, words);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "c"), 1);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "b"), 1);
	add_int(b);
	struct blob top = finish(b, module.btf);
	struct blob once = after(cairn_btf_dedup, top.btf), sorted = after(cairn_btf_sort, top.btf);
	assert_false(cairn_btf_has_layout(once.btf));
	assert_int_equal(cairn_btf_end_id(once.btf), 6);
	assert_words(once.btf, 3, KIND_OF_8_BYTES, words, 2);
	assert_words(sorted.btf, 3, KIND_OF_8_BYTES, words, 2);
	assert_string_equal(must_have(sorted.btf, 4).name, "b");
	blob_free(&sorted);
	blob_free(&once);
	blob_free(&top);
	blob_free(&module);
	blob_free(&kernel);
}

/* As many elements as a prototype would have in more room. */
static void a_prototype_of_an_unknown_kind_has_no_parameters_to_check(void **state)
{
	struct cairn_btf_builder *b = with_made_up_kinds(NULL);
	struct cairn_btf_type t = {.kind = KIND_OF_8_BYTES, .vlen = 1000};
	uint32_t words[] = {NO_ID, NO_ID}, id;
	assert_int_equal(cairn_btf_add_record(b, &t, words, 2, &id), 0);
	ADD(func, b, str(b, "f"), CAIRN_BTF_GLOBAL, id);
	struct blob in = finish(b, NULL);
	assert_int_equal(cairn_btf_check(in.btf, NULL, NULL), 0);
	assert_true(cairn_btf_check_for_kernel(in.btf, 0, NULL, NULL) > 0);
	blob_free(&in);
}

/* ---- the others ---- */

static void sort_moves_a_record_whose_words_hold(void **state)
{
	struct cairn_btf_builder *b = with_made_up_kinds(NULL);
	uint32_t text, of_number[] = {NO_ID, NO_ID}, of_text[] = {NO_ID, 0}, of_id[] = {NO_ID, 1};
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "z"), 2);
	add_int(b);
	text = str(b, "perhaps a name");
	of_text[1] = text;
	add_made_up(b, KIND_OF_8_BYTES, 0, of_number);
	add_made_up(b, KIND_OF_8_BYTES, 0, of_text);
	struct blob in = finish(b, NULL), out = after(cairn_btf_sort, in.btf);
	assert_words(out.btf, 1, KIND_OF_8_BYTES, of_number, 2);
	assert_words(out.btf, 2, KIND_OF_8_BYTES, of_text, 2);
	assert_string_equal(cairn_btf_string(out.btf, text), "perhaps a name");
	assert_string_equal(must_have(out.btf, must_have(out.btf, 4).ref).name, "int");
	blob_free(&out);
	blob_free(&in);

	b = with_made_up_kinds(NULL);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "z"), 2);
	add_int(b);
	add_made_up(b, KIND_OF_8_BYTES, 0, of_id);
	in = finish(b, NULL);
	assert_refused(cairn_btf_sort, in.btf, "may be id 1, which would be another one");
	blob_free(&in);
}

static bool keep_none(void *ctx, const char *name)
{
	return false;
}

static int split_main(const struct cairn_btf *btf, uint32_t *map, void **ret, size_t *ret_size,
		      struct cairn_err *err)
{
	void *loc = NULL;
	size_t loc_size;
	int rc = cairn_btf_split_loc(btf, keep_none, NULL, ret, ret_size, &loc, &loc_size, err);
	free(loc);
	return rc;
}

static void split_keeps_unknown_kinds_in_main(void **state)
{
	struct cairn_btf_builder *b = with_made_up_kinds(NULL);
	uint32_t words[] = {1, NO_ID}, of_func[] = {NO_ID, 0}, text;
	uint32_t func = add_each_kind(b, true);
	text = words[1] = str(b, "perhaps a name");
	assert_true(text > btf_builder_next_id(b));
	uint32_t n = btf_builder_next_id(b);
	add_made_up(b, KIND_OF_8_BYTES, 0, words);
	struct blob in = finish(b, NULL), main = after(split_main, in.btf);
	uint32_t last = cairn_btf_end_id(main.btf) - 1;
	assert_true(last < n);
	assert_words(main.btf, last, KIND_OF_8_BYTES, words, 2);
	assert_string_equal(cairn_btf_string(main.btf, text), "perhaps a name");
	blob_free(&main);
	blob_free(&in);

	/* What goes to the location data is not in main under any number. */
	b = with_made_up_kinds(NULL);
	func = of_func[1] = add_each_kind(b, true);
	add_made_up(b, KIND_OF_8_BYTES, 0, of_func);
	in = finish(b, NULL);
	assert_int_equal(must_have(in.btf, func).kind, CAIRN_BTF_FUNC);
	assert_refused(split_main, in.btf, "which would be another one");
	blob_free(&in);
}

static void distilled_base_cannot_hold_what_nobody_knows(void **state)
{
	struct cairn_err err = {0};
	uint32_t words[] = {NO_ID, NO_ID};
	void *base, *split;
	size_t base_size, split_size;
	struct blob below = each_kind((struct cairn_btf_build_opts){0});
	struct cairn_btf_builder *b = with_made_up_kinds(below.btf);
	add_made_up(b, KIND_OF_8_BYTES, 0, words);
	struct blob top = finish(b, below.btf);
	assert_int_equal(
		cairn_btf_distil_base(top.btf, &base, &base_size, &split, &split_size, &err),
		-EOPNOTSUPP);
	assert_non_null(strstr(err.msg, "kinds that are not known"));
	blob_free(&top);
	blob_free(&below);
}

static void no_memory_is_said(void **state)
{
	transform *fns[] = {cairn_btf_dedup, cairn_btf_sort, split_main};
	struct cairn_btf_builder *b = with_made_up_kinds(NULL);
	uint32_t words[] = {NO_ID, NO_ID};
	add_int(b);
	add_int(b);
	add_made_up(b, KIND_OF_8_BYTES, 0, words);
	struct blob in = finish(b, NULL);
	for (unsigned int i = 1, which = 0; which < ARRAY_SIZE(fns); i++) {
		void *bytes = NULL;
		size_t size;
		alloc_fail_at(i);
		int rc = fns[which](in.btf, NULL, &bytes, &size, NULL);
		bool failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		free(bytes);
		if (failed)
			continue;
		which++;
		i = 0;
	}
	blob_free(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dedup_leaves_unknown_kinds_as_they_are),
		cmocka_unit_test(dedup_never_merges_what_it_does_not_know),
		cmocka_unit_test(dedup_refuses_what_may_refer_to_what_moves),
		cmocka_unit_test(layout_of_the_eldest_is_enough),
		cmocka_unit_test(a_prototype_of_an_unknown_kind_has_no_parameters_to_check),
		cmocka_unit_test(sort_moves_a_record_whose_words_hold),
		cmocka_unit_test(split_keeps_unknown_kinds_in_main),
		cmocka_unit_test(distilled_base_cannot_hold_what_nobody_knows),
		cmocka_unit_test(no_memory_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
