/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function index, the search for a name, qualified names; and that nothing damaged brings any
 * of it down.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_fail.h"
#include "dwarf/constants.h"
#include "dwarf/index.h"
#include "dwarf_builder.h"
#include "dwarf_open.h"
#include "dwarf_seeds.h"
#include "dwarf_walk.h"

static struct dw_func_index index_of(const struct opened *o)
{
	struct dw_func_index index;
	struct cairn_err err = {0};
	assert_int_equal(o->rc, 0);
	if (dwarf_index_functions(o->dw, 1, &index, &err) < 0)
		fail_msg("%s", err.msg);
	return index;
}

static struct dw_func_index named(const struct opened *o, const char *name)
{
	struct dw_func_index index;
	struct cairn_err err = {0};
	assert_int_equal(o->rc, 0);
	if (dwarf_functions_named(o->dw, 1, name, &index, &err) < 0)
		fail_msg("%s", err.msg);
	return index;
}

static const char *name_or(const struct dw_func *f, const char *otherwise)
{
	return f->name ? f->name : otherwise;
}

/* ---- what the index says ---- */

static void the_index_tells_kinds_origins_and_parents(void **state)
{
	struct db *d = db_new((struct db_format){0});
	int inner = db_label(d), outer = db_label(d);
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
	db_here(d, inner);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STRP(DW_AT_name, "inner"),
	       DB_U(DW_AT_inline, DW_FORM_data1, 1));
	db_here(d, outer);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STRP(DW_AT_name, "outer"),
	       DB_U(DW_AT_inline, DW_FORM_data1, 1));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STRP(DW_AT_name, "printf"),
	       DB_FLAG(DW_AT_declaration));
	DB_DIE(d, DW_TAG_subprogram, DB_CHILDREN, DB_STRP(DW_AT_name, "main"),
	       DB_ADDR(DW_AT_low_pc, 0x1000));
	DB_DIE(d, DW_TAG_lexical_block, DB_CHILDREN);
	DB_DIE(d, DW_TAG_inlined_subroutine, DB_CHILDREN, DB_REF(DW_AT_abstract_origin, outer),
	       DB_ADDR(DW_AT_entry_pc, 0x1004));
	DB_DIE(d, DW_TAG_inlined_subroutine, DB_LEAF, DB_REF(DW_AT_abstract_origin, inner),
	       DB_SECOFF(DW_AT_ranges, 0));
	db_null(d);
	db_null(d);
	DB_DIE(d, DW_TAG_inlined_subroutine, DB_LEAF, DB_REF(DW_AT_abstract_origin, inner));
	db_null(d);
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_func_index index = index_of(&o);
	static const struct {
		const char *name;
		uint8_t flags;
		uint32_t parent;
	} expected[] = {
		{"inner", DW_FUNC_ABSTRACT, DW_FUNC_NONE},
		{"outer", DW_FUNC_ABSTRACT, DW_FUNC_NONE},
		{"printf", DW_FUNC_DECLARATION, DW_FUNC_NONE},
		{"main", DW_FUNC_HAS_CODE, DW_FUNC_NONE},
		{"-", DW_FUNC_INLINED | DW_FUNC_HAS_CODE, 3},
		{"-", DW_FUNC_INLINED | DW_FUNC_HAS_CODE, 4},
		{"-", DW_FUNC_INLINED, 3},
	};
	assert_int_equal(index.n, 7);
	for (size_t i = 0; i < 7; i++) {
		assert_string_equal(name_or(&index.p[i], "-"), expected[i].name);
		assert_int_equal(index.p[i].flags, expected[i].flags);
		assert_int_equal(index.p[i].parent, expected[i].parent);
		assert_int_equal(dw_func_index_find(&index, index.p[i].die), i);
	}
	assert_int_equal(index.p[4].origin, db_offset(d, outer));
	assert_int_equal(index.p[5].origin, db_offset(d, inner));
	assert_int_equal(dw_func_index_find(&index, 1), DW_FUNC_NONE);
	assert_int_equal(index.n_dies, 9);
	dw_func_index_fini(&index);

	index = named(&o, "inner");
	assert_int_equal(index.n, 5); /* inner, main, outer's copy, inner's two */
	assert_string_equal(index.p[0].name, "inner");
	assert_string_equal(index.p[1].name, "main");
	assert_int_equal(index.p[2].origin, db_offset(d, outer));
	assert_int_equal(index.p[2].parent, 1);
	assert_int_equal(index.p[3].parent, 2);
	assert_int_equal(index.p[4].parent, 1);
	assert_int_equal(index.p[3].flags, DW_FUNC_INLINED | DW_FUNC_HAS_CODE);
	dw_func_index_fini(&index);
	index = named(&o, "nothing");
	assert_int_equal(index.n, 0);
	dw_func_index_fini(&index);
	shut(&o);
}

static void a_name_is_found_as_the_end_of_a_longer_string_and_by_linkage_name(void **state)
{
	struct db *d = db_new((struct db_format){0});
	uint64_t longer = db_str(d, "max_size");
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.cc"));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_U(DW_AT_name, DW_FORM_strp, longer + 4));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_U(DW_AT_name, DW_FORM_strp, longer));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "size"));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STRP(DW_AT_name, "f"),
	       DB_STRP(DW_AT_linkage_name, "size"));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STRP(DW_AT_name, "g"),
	       DB_STR(DW_AT_MIPS_linkage_name, "size"));
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_STRP(DW_AT_name, "size"));
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_func_index index = named(&o, "size");
	assert_int_equal(index.n, 4);
	assert_string_equal(index.p[0].name, "size");
	assert_string_equal(index.p[1].name, "size");
	assert_string_equal(index.p[2].name, "f");
	assert_string_equal(index.p[3].name, "g");
	dw_func_index_fini(&index);
	shut(&o);
}

static void a_name_that_ends_a_hundred_thousand_strings_is_still_found(void **state)
{
	struct db *d = db_new((struct db_format){0});
	/* More occurrences than are kept as offsets; strings are compared then. */
	for (unsigned int i = 0; i < 100000; i++)
		db_cstr(d, DB_STR_SEC, i == 50000 ? "xx" : "x");
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_U(DW_AT_name, DW_FORM_strp, 180001));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_U(DW_AT_name, DW_FORM_strp, 100000)); /* "xx" */
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_U(DW_AT_name, DW_FORM_strp, UINT32_MAX));
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_func_index index = named(&o, "x");
	assert_int_equal(index.n, 1);
	assert_string_equal(index.p[0].name, "x");
	dw_func_index_fini(&index);
	shut(&o);
}

/* A chain over @n units: the name in the last, each DIE refers to one in the next unit. */
static struct db *chain(unsigned int n)
{
	struct db *d = db_new((struct db_format){0});
	int label[32];
	for (unsigned int i = 0; i <= n; i++)
		label[i] = db_label(d);
	for (unsigned int i = 0; i < n; i++) {
		db_unit(d, i % 2 ? DW_UT_partial : DW_UT_compile);
		DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
		db_here(d, label[i]);
		if (i + 1 < n)
			DB_DIE(d, DW_TAG_subprogram, DB_LEAF,
			       DB_REF_ADDR(DW_AT_abstract_origin, label[i + 1]));
		else
			DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STRP(DW_AT_name, "f"));
		DB_DIE(d, DW_TAG_subprogram, DB_CHILDREN, DB_STRP(DW_AT_name, "caller"));
		DB_DIE(d, DW_TAG_inlined_subroutine, DB_LEAF,
		       DB_REF(DW_AT_abstract_origin, label[i]));
		db_null(d);
		db_null(d);
		db_unit_end(d);
	}
	return d;
}

static void a_name_is_followed_across_units_along_chains(void **state)
{
	struct opened o = open_db(chain(8));
	struct dw_func_index index = named(&o, "f");
	/* In each unit: the link, the caller, the copy. */
	assert_int_equal(index.n, 24);
	for (uint32_t i = 0; i < 24; i++)
		assert_int_equal(index.p[i].parent, i % 3 == 2 ? i - 1 : DW_FUNC_NONE);
	dw_func_index_fini(&index);
	shut(&o);
}

static void the_result_is_the_same_for_any_number_of_threads(void **state)
{
	struct opened o = open_db(chain(12));
	for (int full = 0; full <= 1; full++) {
		struct dw_func_index one, many;
		for (unsigned int threads = 2; threads <= 8; threads++) {
			if (full) {
				assert_int_equal(dwarf_index_functions(o.dw, 1, &one, NULL), 0);
				assert_int_equal(dwarf_index_functions(o.dw, threads, &many, NULL),
						 0);
			} else {
				assert_int_equal(dwarf_functions_named(o.dw, 1, "f", &one, NULL),
						 0);
				assert_int_equal(
					dwarf_functions_named(o.dw, threads, "f", &many, NULL), 0);
			}
			assert_int_equal(one.n, 36);
			assert_int_equal(one.n, many.n);
			assert_int_equal(one.n_dies, many.n_dies);
			for (size_t i = 0; i < one.n; i++) {
				assert_int_equal(one.p[i].die, many.p[i].die);
				assert_int_equal(one.p[i].parent, many.p[i].parent);
				assert_int_equal(one.p[i].origin, many.p[i].origin);
				assert_int_equal(one.p[i].flags, many.p[i].flags);
				assert_ptr_equal(one.p[i].name, many.p[i].name);
			}
			dw_func_index_fini(&one);
			dw_func_index_fini(&many);
		}
	}
	shut(&o);
}

/* A class with a body inside, as GCC writes for a class local to a function; @language decides. */
static size_t functions_inside_a_struct(uint8_t language)
{
	struct db *d = db_new((struct db_format){0});
	int end = db_label(d);
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_U(DW_AT_language, DW_FORM_data1, language));
	DB_DIE(d, DW_TAG_structure_type, DB_CHILDREN, DB_STRP(DW_AT_name, "local"),
	       DB_REF(DW_AT_sibling, end));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "method"),
	       DB_ADDR(DW_AT_low_pc, 0x1000));
	db_null(d);
	db_here(d, end);
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_STR(DW_AT_name, "v"));
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_func_index index = index_of(&o);
	size_t n = index.n;
	dw_func_index_fini(&index);
	shut(&o);
	return n;
}

static void functions_inside_a_class_are_found_in_cplusplus(void **state)
{
	assert_int_equal(functions_inside_a_struct(DW_LANG_C_plus_plus_14), 1);
	assert_int_equal(functions_inside_a_struct(DW_LANG_Rust), 1);
	assert_int_equal(functions_inside_a_struct(0), 1);
	/* C has no such thing; there the jump is what makes the scan fast. */
	assert_int_equal(functions_inside_a_struct(DW_LANG_C11), 0);
}

static void a_declaration_flag_that_says_no_is_believed(void **state)
{
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_U(DW_AT_declaration, DW_FORM_flag, 0));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_U(DW_AT_declaration, DW_FORM_flag, 1));
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_func_index index = index_of(&o);
	assert_int_equal(index.p[0].flags, 0);
	assert_int_equal(index.p[1].flags, DW_FUNC_DECLARATION);
	dw_func_index_fini(&index);
	shut(&o);
}

static void a_damaged_unit_ends_the_index_and_is_named(void **state)
{
	struct db *d = db_new((struct db_format){0});
	for (int i = 0; i < 3; i++) {
		db_unit(d, DW_UT_compile);
		DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN,
		       DB_STR(DW_AT_name, i == 1 ? "bad.c" : "good.c"));
		DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "f"));
		if (i == 1)
			db_u8(d, DB_INFO, 99);
		db_null(d);
		db_unit_end(d);
	}
	struct opened o = open_db(d);
	for (unsigned int threads = 1; threads <= 4; threads++) {
		struct dw_func_index index;
		assert_int_equal(dwarf_index_functions(o.dw, threads, &index, &o.err), -EBADMSG);
		assert_non_null(strstr(o.err.msg, "bad.c"));
		assert_non_null(strstr(o.err.msg, "abbreviation 99"));
		assert_int_equal(dwarf_functions_named(o.dw, threads, "f", &index, &o.err),
				 -EBADMSG);
	}
	shut(&o);
}

/* ---- names ---- */

static void names_are_qualified_by_the_scopes_of_the_declaration(void **state)
{
	struct db *d = db_new((struct db_format){0});
	int declared = db_label(d), defined = db_label(d), copy = db_label(d), plain = db_label(d),
	    hidden = db_label(d), local = db_label(d);
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN,
	       DB_U(DW_AT_language, DW_FORM_data1, DW_LANG_C_plus_plus_14));
	DB_DIE(d, DW_TAG_namespace, DB_CHILDREN, DB_STR(DW_AT_name, "std"));
	DB_DIE(d, DW_TAG_class_type, DB_CHILDREN, DB_STR(DW_AT_name, "vector<int>"));
	db_here(d, declared);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "size"));
	db_null(d);
	DB_DIE(d, DW_TAG_namespace, DB_CHILDREN);
	db_here(d, hidden);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "helper"));
	db_null(d);
	db_null(d);
	db_here(d, defined);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_REF(DW_AT_specification, declared));
	db_here(d, plain);
	DB_DIE(d, DW_TAG_subprogram, DB_CHILDREN, DB_STR(DW_AT_name, "main"));
	DB_DIE(d, DW_TAG_lexical_block, DB_CHILDREN);
	db_here(d, copy);
	DB_DIE(d, DW_TAG_inlined_subroutine, DB_LEAF, DB_REF(DW_AT_abstract_origin, defined));
	DB_DIE(d, DW_TAG_structure_type, DB_CHILDREN);
	db_here(d, local);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "operator()"));
	db_null(d);
	db_null(d);
	db_null(d);
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	/* clang-format off */
	const struct {
		int label;
		const char *name;
	} expected[] = {
		{declared, "std::vector<int>::size"}, {defined, "std::vector<int>::size"},
		{copy, "std::vector<int>::size"},     {plain, "main"},
		{hidden, "std::(anonymous namespace)::helper"}, {local, "main()::(anonymous)::operator()"},
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct dw_die die = die_at(&o, db_offset(d, expected[i].label));
		char name[64], cut[8];
		int n = dw_qualified_name(o.dw, &die, name, sizeof(name));
		assert_string_equal(name, expected[i].name);
		assert_int_equal(n, strlen(expected[i].name));
		assert_int_equal(dw_qualified_name(o.dw, &die, cut, sizeof(cut)), n);
		assert_memory_equal(cut, expected[i].name, n < 7 ? n : 7);
		assert_int_equal(strlen(cut), n < 7 ? n : 7);
		assert_int_equal(dw_qualified_name(o.dw, &die, NULL, 0), n);
	}
	shut(&o);
}

/* ---- robustness ---- */

static void nesting_a_million_deep_is_walked_without_recursion(void **state)
{
	enum { DEPTH = 1000000 };
	for (int functions = 0; functions <= 1; functions++) {
		struct db *d = db_new((struct db_format){0});
		int last = db_label(d);
		db_unit(d, DW_UT_compile);
		DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.cc"));
		DB_DIE(d, functions ? DW_TAG_subprogram : DW_TAG_lexical_block, DB_CHILDREN);
		for (size_t i = 1; i < DEPTH; i++)
			db_u8(d, DB_INFO, 2); /* the code of the DIE above */
		for (size_t i = 0; i < DEPTH; i++)
			db_null(d);
		db_here(d, last);
		DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "f"));
		db_null(d);
		db_unit_end(d);
		struct opened o = open_db(d);
		struct dw_die root = root_of(&o, 0), die;
		assert_int_equal(dw_die_child(&root, &die, NULL), 1);
		assert_int_equal(dw_die_sibling(&die, &die, NULL), 1);
		assert_string_equal(dw_str(&die, DW_AT_name), "f");
		struct dw_func_index index = index_of(&o);
		assert_int_equal(index.n, functions ? DEPTH + 1 : 1);
		assert_int_equal(index.n_dies, DEPTH + 2);
		assert_int_equal(index.p[index.n - 1].parent, DW_FUNC_NONE);
		dw_func_index_fini(&index);
		index = named(&o, "f");
		assert_int_equal(index.n, 1);
		dw_func_index_fini(&index);
		char name[8];
		assert_int_equal(dw_qualified_name(o.dw, &die, name, sizeof(name)), 1);
		assert_string_equal(name, "f");
		shut(&o);
	}
}

static void the_samples_are_read_without_an_error(void **state)
{
	for (unsigned int i = 0; i < DWARF_SEEDS; i++) {
		struct opened o = open_db(dwarf_seed(i));
		struct dwarf_walk seen;
		assert_int_equal(o.rc, 0);
		dwarf_walk(o.dw, &seen);
		assert_int_equal(seen.errors, 0);
		assert_int_equal(seen.functions, i ? 4 : 3);
		assert_true(seen.dies > 5 && seen.ranges >= 2 && seen.locations > 0);
		assert_int_equal(seen.rows, 4);
		struct dw_func_index index = named(&o, "add");
		assert_int_equal(index.n, i ? 4 : 3);
		dw_func_index_fini(&index);
		shut(&o);
	}
}

/* A copy that ends where the bytes end, so that a sanitizer sees one byte too many. */
static int walk_copy(const uint8_t *bytes, size_t size)
{
	struct dwarf_walk seen;
	uint8_t *copy = malloc(size ? size : 1);
	assert_non_null(copy);
	memcpy(copy, bytes, size);
	int rc = dwarf_walk_bytes(copy, size, &seen);
	free(copy);
	return rc;
}

static void files_cut_at_every_byte_give_an_error_or_an_answer(void **state)
{
	for (unsigned int i = 0; i < DWARF_SEEDS; i++) {
		struct db *d = dwarf_seed(i);
		size_t size, refused = 0;
		uint8_t *bytes = db_finish(d, &size);
		for (size_t n = 0; n < size; n++)
			refused += walk_copy(bytes, n) < 0;
		/* The section headers are at the end. */
		assert_true(refused > size * 9 / 10);
		db_free(d);
	}
}

/*
 * The sections themselves, cut at every byte: unlike a cut file, the rest of it stays whole.
 */
static void sections_cut_at_every_byte_give_an_error_or_an_answer(void **state)
{
	for (unsigned int i = 0; i < DWARF_SEEDS; i++) {
		for (enum db_sec sec = 0; sec < DB_N_SECS; sec++) {
			struct db *whole = dwarf_seed(i);
			uint64_t n = db_at(whole, sec);
			db_free(whole);
			for (uint64_t cut = 0; cut < n; cut++) {
				struct db *d = dwarf_seed(i);
				size_t size;
				db_cut(d, sec, cut);
				const uint8_t *bytes = db_finish(d, &size);
				walk_copy(bytes, size);
				db_free(d);
			}
		}
	}
}

static void every_flipped_bit_gives_an_error_or_an_answer(void **state)
{
	for (unsigned int i = 0; i < DWARF_SEEDS; i++) {
		struct db *d = dwarf_seed(i);
		size_t size, opened = 0;
		uint8_t *bytes = db_finish(d, &size);
		for (size_t bit = 0; bit < size * 8; bit++) {
			/* .text is 4096 zeros, which nobody reads. */
			if (bit % 8 == 0 && bit / 8 + 64 < size && !bytes[bit / 8] &&
			    bit / 8 > 256 && bit / 8 < 0x1000) {
				bit += 7;
				continue;
			}
			bytes[bit / 8] ^= 1u << bit % 8;
			opened += walk_copy(bytes, size) == 0;
			bytes[bit / 8] ^= 1u << bit % 8;
		}
		assert_true(opened > size);
		db_free(d);
	}
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
	struct opened o = open_db(chain(4));
	struct cairn_err err = {0};
	const struct cairn_binary *bin = o.bin;
	struct dw_func_index index;
	struct dwarf *dw;
	unsigned int n, reported = 0;
	for (n = 1;; n++) {
		alloc_fail_at(n);
		int rc = dwarf_open(bin, 1, &dw, &err);
		bool failed = alloc_fail_end();
		if (!failed)
			break;
		/* One that only makes a table smaller may fail. */
		if (rc == 0)
			dwarf_close(dw);
		else
			assert_int_equal(rc, -ENOMEM);
		reported += rc < 0;
	}
	assert_true(reported > 5);
	dwarf_close(dw);
	for (int full = 0; full <= 1; full++) {
		for (n = 1;; n++) {
			alloc_fail_at(n);
			int rc = full ? dwarf_index_functions(o.dw, 1, &index, &err)
				      : dwarf_functions_named(o.dw, 1, "f", &index, &err);
			bool failed = alloc_fail_end();
			assert_int_equal(rc, failed ? -ENOMEM : 0);
			if (!failed)
				break;
		}
		assert_true(n > 3);
		dw_func_index_fini(&index);
	}
	shut(&o);
}

static void failing_allocations_of_line_tables_are_reported(void **state)
{
	const struct dw_row *rows;
	struct cairn_err err = {0};
	for (unsigned int seed = 0; seed < DWARF_SEEDS; seed++) {
		struct opened o = open_db(dwarf_seed(seed));
		assert_int_equal(o.rc, 0);
		const struct dw_unit *u = dwarf_unit(o.dw, 0);
		unsigned int n;
		for (n = 1;; n++) {
			alloc_fail_at(n);
			int64_t rc = dw_unit_rows(u, &rows, &err);
			bool failed = alloc_fail_end();
			assert_int_equal(rc, failed ? -ENOMEM : 4);
			if (!failed)
				break;
		}
		assert_true(n > 3);
		for (n = 1;; n++) {
			alloc_fail_at(n);
			const char *path = dw_unit_file(u, 1);
			if (!alloc_fail_end()) {
				assert_non_null(path);
				break;
			}
		}
		assert_true(n > 1);
		shut(&o);
	}
}

static void an_entry_is_found_from_wherever_the_search_begins(void **state)
{
	enum { N = 100, STEP = 10 };
	struct dw_func entries[N] = {0};
	for (uint32_t i = 0; i < N; i++)
		entries[i].die = STEP * i + STEP / 2;
	for (size_t n = 0; n <= N; n += N / 4) {
		struct dw_func_index index = {.p = entries, .n = n};
		for (uint32_t near = 0; near <= n; near++)
			for (dw_off die = 0; die < STEP * (N + 1); die++)
				if (dw_func_index_find_near(&index, near, die) !=
				    dw_func_index_find(&index, die))
					fail_msg("%d of %zu entries, from %u", (int)die, n, near);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_is_found_from_wherever_the_search_begins),
		cmocka_unit_test(the_index_tells_kinds_origins_and_parents),
		cmocka_unit_test(a_name_is_found_as_the_end_of_a_longer_string_and_by_linkage_name),
		cmocka_unit_test(a_name_that_ends_a_hundred_thousand_strings_is_still_found),
		cmocka_unit_test(a_name_is_followed_across_units_along_chains),
		cmocka_unit_test(the_result_is_the_same_for_any_number_of_threads),
		cmocka_unit_test(functions_inside_a_class_are_found_in_cplusplus),
		cmocka_unit_test(a_declaration_flag_that_says_no_is_believed),
		cmocka_unit_test(a_damaged_unit_ends_the_index_and_is_named),
		cmocka_unit_test(names_are_qualified_by_the_scopes_of_the_declaration),
		cmocka_unit_test(nesting_a_million_deep_is_walked_without_recursion),
		cmocka_unit_test(the_samples_are_read_without_an_error),
		cmocka_unit_test(files_cut_at_every_byte_give_an_error_or_an_answer),
		cmocka_unit_test(sections_cut_at_every_byte_give_an_error_or_an_answer),
		cmocka_unit_test(every_flipped_bit_gives_an_error_or_an_answer),
		cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
		cmocka_unit_test(failing_allocations_of_line_tables_are_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
