/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walker. That its values are those of dw_attr() is checked wherever dwarf_walk() is used: on
 * compiled programs, on damaged files and by the fuzzer. Here: which DIEs it delivers, and the rare
 * shapes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dwarf/constants.h"
#include "dwarf/walk.h"
#include "dwarf_open.h"

enum { NAME, TYPE, VALUE, N_SLOTS };
static const uint16_t attrs[N_SLOTS] = {DW_AT_name, DW_AT_type, DW_AT_const_value};

enum { OTHER = 1, STRUCT, VARIABLE };
static uint8_t role(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
		return STRUCT;
	case DW_TAG_variable:
		return VARIABLE;
	case DW_TAG_lexical_block:
		return DW_ROLE_PASS;
	case DW_TAG_subprogram:
		return DW_ROLE_PRUNE;
	}
	return OTHER;
}
static const struct dw_query query = {.attrs = attrs, .n_attrs = N_SLOTS, .role = role};

static struct dw_walker enter(const struct opened *o, size_t unit, struct cairn_err *err)
{
	struct dw_walker w;
	assert_int_equal(o->rc, 0);
	assert_int_equal(dw_walker_init(&w, &query), 0);
	assert_int_equal(dw_walker_enter(&w, dwarf_unit(o->dw, unit), err), 0);
	return w;
}

/* "name@depth" of what is delivered, from here to the end of the unit. */
static const char *rest(struct dw_walker *w)
{
	static char text[256];
	text[0] = 0;
	int rc;
	while ((rc = dw_walker_next(w)) > 0) {
		const char *name = dw_seen_str(w, NAME);
		size_t n = strlen(text);
		snprintf(text + n, sizeof(text) - n, "%s@%d ", name ? name : "-", (int)w->depth);
	}
	assert_int_equal(rc, 0);
	return text;
}

/* With and without DW_AT_sibling, which the walker jumps by. */
static struct db *tree(bool siblings)
{
	struct db *d = db_new((struct db_format){.version = 4});
	int after_function = db_label(d), after_struct = db_label(d);
	struct db_attr to_after_function = DB_REF(DW_AT_sibling, after_function);
	struct db_attr to_after_struct = DB_REF(DW_AT_sibling, after_struct);
	if (!siblings)
		to_after_function = to_after_struct = DB_U(DW_AT_decl_line, DW_FORM_data1, 7);
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STRP(DW_AT_name, "a.c"));
	DB_DIE(d, DW_TAG_subprogram, DB_CHILDREN, DB_STR(DW_AT_name, "f"), to_after_function);
	DB_DIE(d, DW_TAG_lexical_block, DB_CHILDREN, DB_STR(DW_AT_name, "hidden block"));
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_STR(DW_AT_name, "hidden"));
	db_null(d);
	db_null(d);
	db_here(d, after_function);
	DB_DIE(d, DW_TAG_structure_type, DB_CHILDREN, to_after_struct, DB_STR(DW_AT_name, "s"));
	DB_DIE(d, DW_TAG_member, DB_LEAF, DB_STRP(DW_AT_name, "m"));
	db_null(d);
	db_here(d, after_struct);
	DB_DIE(d, DW_TAG_lexical_block, DB_CHILDREN, DB_STR(DW_AT_name, "passed"));
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_STR(DW_AT_name, "v"));
	db_null(d);
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_STR(DW_AT_name, "w"));
	db_null(d);
	db_unit_end(d);
	return d;
}

static void roles_say_what_is_delivered(void **state)
{
	for (int siblings = 0; siblings < 2; siblings++) {
		struct opened o = open_db(tree(siblings));
		struct dw_walker w = enter(&o, 0, &o.err);
		assert_string_equal(rest(&w), "a.c@0 s@1 m@2 v@2 w@1 ");
		dw_walker_fini(&w);
		shut(&o);
	}
}

static void children_of_a_delivered_die_can_be_skipped(void **state)
{
	for (int siblings = 0; siblings < 2; siblings++) {
		struct opened o = open_db(tree(siblings));
		struct dw_walker w = enter(&o, 0, &o.err);
		assert_int_equal(dw_walker_next(&w), OTHER);
		assert_int_equal(dw_walker_next(&w), STRUCT);
		dw_walker_skip_children(&w);
		dw_walker_skip_children(&w); /* the second time there are none left */
		assert_string_equal(dw_seen_str(&w, NAME), "s"); /* it is still the delivered one */
		assert_string_equal(rest(&w), "v@2 w@1 ");
		dw_walker_fini(&w);
		shut(&o);
	}
}

/* More values of variable size than a walker has runs for. */
static void a_value_after_many_of_variable_size_is_read(void **state)
{
	struct db *d = db_new((struct db_format){0});
	struct db_attr many[DW_RUNS_MAX + 8] = {0};
	for (int i = 0; i < DW_RUNS_MAX + 4; i++)
		many[i] = DB_U(DW_AT_lo_user + i, DW_FORM_udata, 300 + i);
	many[DW_RUNS_MAX + 4] = DB_STRP(DW_AT_name, "far");
	many[DW_RUNS_MAX + 5] = DB_U(DW_AT_const_value, DW_FORM_data4, 0x12345678);
	many[DW_RUNS_MAX + 6] = DB_U(DW_AT_type, DW_FORM_udata, 1);
	db_unit(d, DW_UT_compile);
	db_die(d, DW_TAG_variable, DB_LEAF, many);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_walker w = enter(&o, 0, &o.err);
	assert_int_equal(dw_walker_next(&w), VARIABLE);
	assert_string_equal(dw_seen_str(&w, NAME), "far");
	assert_int_equal(dw_seen_uint(&w, VALUE, 0), 0x12345678);
	assert_int_equal(dw_seen_ref(&w, TYPE), 0); /* a number is no reference */
	assert_int_equal(dw_walker_next(&w), 0);
	dw_walker_fini(&w);
	shut(&o);
}

static void one_walker_reads_units_of_different_formats(void **state)
{
	struct db *d = db_new((struct db_format){.version = 4});
	for (int i = 0; i < 4; i++) {
		db_format(d, (struct db_format){.version = i & 1 ? 5 : 4,
						.offset_size = i & 2 ? 8 : 4,
						.code_step = i == 3 ? 1000 : 0});
		db_unit(d, DW_UT_compile);
		DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STRP(DW_AT_name, "u"));
		DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_U(DW_AT_const_value, DW_FORM_sdata, -5),
		       DB_STRP(DW_AT_name, "v"));
		db_null(d);
		db_unit_end(d);
	}
	struct opened o = open_db(d);
	struct dw_walker w = enter(&o, 0, &o.err);
	for (size_t unit = 0; unit < 4; unit++) {
		assert_int_equal(dw_walker_enter(&w, dwarf_unit(o.dw, unit), &o.err), 0);
		assert_int_equal(dw_walker_next(&w), OTHER);
		assert_string_equal(dw_seen_str(&w, NAME), "u");
		assert_int_equal(dw_walker_next(&w), VARIABLE);
		assert_string_equal(dw_seen_str(&w, NAME), "v");
		assert_int_equal((int64_t)dw_seen_uint(&w, VALUE, 0), -5);
		assert_int_equal(dw_walker_next(&w), 0);
	}
	assert_int_equal(w.n_dies, 8);
	dw_walker_fini(&w);
	shut(&o);
}

static void a_damaged_value_ends_the_walk(void **state)
{
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STRP(DW_AT_name, "u"));
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_U(DW_AT_type, DW_FORM_ref4, 0xffff));
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_STR(DW_AT_name, "v"));
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct cairn_err err = {0};
	struct dw_walker w = enter(&o, 0, &err);
	assert_int_equal(dw_walker_next(&w), OTHER);
	assert_int_equal(dw_walker_next(&w), VARIABLE);
	assert_true(dw_seen(&w, TYPE));
	assert_int_equal(dw_seen_ref(&w, TYPE), 0);
	assert_int_equal(dw_walker_next(&w), -EBADMSG);
	assert_int_equal(dw_walker_next(&w), -EBADMSG);
	assert_non_null(strstr(err.msg, "0xffff"));
	/* Not asked for, it does no harm. */
	assert_int_equal(dw_walker_enter(&w, dwarf_unit(o.dw, 0), &err), 0);
	assert_string_equal(rest(&w), "u@0 -@1 v@1 ");
	dw_walker_fini(&w);
	shut(&o);
}

static void a_nesting_of_a_million_is_walked(void **state)
{
	enum { DEEP = 1000000 };
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	for (int i = 0; i < DEEP; i++)
		DB_DIE(d, DW_TAG_structure_type, DB_CHILDREN, DB_STR(DW_AT_name, "s"));
	for (int i = 0; i < DEEP; i++)
		db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_walker w = enter(&o, 0, &o.err);
	for (uint64_t i = 0; i < DEEP; i++) {
		assert_int_equal(dw_walker_next(&w), STRUCT);
		assert_int_equal(w.depth, i);
	}
	assert_int_equal(dw_walker_next(&w), 0);
	assert_int_equal(dw_walker_enter(&w, dwarf_unit(o.dw, 0), &o.err), 0);
	assert_int_equal(dw_walker_next(&w), STRUCT);
	dw_walker_skip_children(&w);
	assert_int_equal(dw_walker_next(&w), 0);
	dw_walker_fini(&w);
	shut(&o);
}

static void a_wish_of_too_many_attributes_is_refused(void **state)
{
	uint16_t all[DW_QUERY_MAX + 1] = {0};
	struct dw_walker w;
	struct dw_query greedy = {.attrs = all, .n_attrs = DW_QUERY_MAX + 1, .role = role};
	assert_int_equal(dw_walker_init(&w, &greedy), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roles_say_what_is_delivered),
		cmocka_unit_test(children_of_a_delivered_die_can_be_skipped),
		cmocka_unit_test(a_value_after_many_of_variable_size_is_read),
		cmocka_unit_test(one_walker_reads_units_of_different_formats),
		cmocka_unit_test(a_damaged_value_ends_the_walk),
		cmocka_unit_test(a_nesting_of_a_million_is_walked),
		cmocka_unit_test(a_wish_of_too_many_attributes_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
