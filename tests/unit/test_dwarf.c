/* SPDX-License-Identifier: BSD-2-Clause */
/* Units, forms and the tree of DIEs, on DWARF written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "dwarf/constants.h"
#include "dwarf/index.h"
#include "dwarf_builder.h"
#include "dwarf_open.h"

/* ---- units ---- */

static void units_of_every_version_and_offset_size_are_read(void **state)
{
	static const uint16_t versions[] = {2, 3, 4, 5};
	for (size_t i = 0; i < 4; i++) {
		for (uint8_t offset_size = 4; offset_size <= 8; offset_size += 4) {
			struct db *d = db_new((struct db_format){.version = versions[i],
								 .offset_size = offset_size});
			db_unit(d, DW_UT_compile);
			DB_DIE(d, DW_TAG_compile_unit, DB_LEAF, DB_STRP(DW_AT_name, "a.c"),
			       DB_STR(DW_AT_comp_dir, "/src"),
			       DB_STRP(DW_AT_producer, "GNU C17 12.2.0"),
			       DB_U(DW_AT_language, DW_FORM_data1, DW_LANG_C99));
			db_unit_end(d);
			struct opened o = open_db(d);
			assert_int_equal(o.rc, 0);
			assert_int_equal(dwarf_n_units(o.dw), 1);
			const struct dw_unit *u = dwarf_unit(o.dw, 0);
			assert_int_equal(dw_unit_version(u), versions[i]);
			assert_int_equal(dw_unit_offset_size(u), offset_size);
			assert_int_equal(dw_unit_addr_size(u), 8);
			assert_string_equal(dw_unit_name(u), "a.c");
			assert_string_equal(dw_unit_comp_dir(u), "/src");
			assert_int_equal(dw_unit_language(u), DW_LANG_C99);
			assert_true(dw_unit_is_gcc(u));
			assert_false(dw_unit_is_clang(u));
			shut(&o);
		}
	}
}

static void facts_of_the_root_may_be_indices_into_tables_told_later(void **state)
{
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_LEAF, DB_U(DW_AT_name, DW_FORM_strx1, 1),
	       DB_U(DW_AT_low_pc, DW_FORM_addrx, 1), DB_SECOFF(DW_AT_str_offsets_base, 8),
	       DB_SECOFF(DW_AT_addr_base, 8));
	db_unit_end(d);
	db_uint(d, DB_STR_OFFSETS, 0, 8); /* header, not looked at */
	db_off(d, DB_STR_OFFSETS, db_str(d, "zero.c"));
	db_off(d, DB_STR_OFFSETS, db_str(d, "one.c"));
	db_uint(d, DB_ADDR_SEC, 0, 8);
	db_addr(d, DB_ADDR_SEC, 0x1000);
	db_addr(d, DB_ADDR_SEC, 0x1234);
	struct opened o = open_db(d);
	struct dw_die root = root_of(&o, 0);
	struct dw_value v;
	assert_string_equal(dw_unit_name(root.unit), "one.c");
	assert_int_equal(dw_attr(&root, DW_AT_low_pc, &v, NULL), 1);
	assert_int_equal(v.addr.v, 0x1234);
	uint64_t at;
	assert_int_equal(dw_unit_addrx(root.unit, 0, &at, NULL), 1);
	assert_int_equal(at, 0x1000);
	assert_int_equal(dw_unit_addrx(root.unit, 2, &at, &o.err), -EBADMSG);
	assert_int_equal(dw_unit_addrx(root.unit, UINT64_MAX / 8, &at, NULL), -EBADMSG);
	shut(&o);
}

static void zero_length_is_padding_and_an_empty_unit_has_no_root(void **state)
{
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	db_unit_end(d);
	db_uint(d, DB_INFO, 0, 4);
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_LEAF, DB_STR(DW_AT_name, "b.c"));
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_die die;
	assert_int_equal(o.rc, 0);
	assert_int_equal(dwarf_n_units(o.dw), 2);
	assert_int_equal(dw_unit_root(dwarf_unit(o.dw, 0), &die, NULL), 0);
	assert_string_equal(dw_unit_name(dwarf_unit(o.dw, 0)), "");
	assert_string_equal(dw_unit_name(dwarf_unit(o.dw, 1)), "b.c");
	shut(&o);
}

static void open_refuses(struct db *d, int code, const char *story)
{
	struct opened o = open_db(d);
	assert_int_equal(o.rc, code);
	assert_int_equal(o.err.code, code);
	if (!strstr(o.err.msg, story))
		fail_msg("\"%s\" does not say \"%s\"", o.err.msg, story);
	shut(&o);
}

static struct db *one_unit(uint16_t version)
{
	struct db *d = db_new((struct db_format){.version = version});
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_LEAF, DB_STR(DW_AT_name, "a.c"));
	db_unit_end(d);
	return d;
}

static void damaged_headers_are_refused_by_name(void **state)
{
	struct db *d = one_unit(5);
	db_patch(d, DB_INFO, 4, 6, 2);
	open_refuses(d, -EOPNOTSUPP, "DWARF version 6, expected 2 to 5");
	d = one_unit(5);
	db_patch(d, DB_INFO, 6, 9, 1);
	open_refuses(d, -EOPNOTSUPP, "unit type 9");
	d = one_unit(5);
	db_patch(d, DB_INFO, 7, 3, 1);
	open_refuses(d, -EOPNOTSUPP, "address size 3");
	d = one_unit(5);
	db_patch(d, DB_INFO, 8, 0x10000, 4);
	open_refuses(d, -EBADMSG, "offset of abbreviations 65536");
	d = one_unit(5);
	db_patch(d, DB_INFO, 0, 0xfffffff5, 4);
	open_refuses(d, -EBADMSG, "unit length below 0xfffffff0");
	d = one_unit(5);
	db_patch(d, DB_INFO, 0, 0x7fffffff, 4);
	open_refuses(d, -EBADMSG, ".debug_info+0x4");
	d = one_unit(4);
	db_patch(d, DB_INFO, 11, 9, 1);
	open_refuses(d, -EBADMSG, "DIE with abbreviation 9");
}

static void a_missing_dwo_is_named_and_the_rest_is_read(void **state)
{
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_skeleton);
	DB_DIE(d, DW_TAG_skeleton_unit, DB_LEAF, DB_STRP(DW_AT_dwo_name, "a.dwo"),
	       DB_STRP(DW_AT_comp_dir, "/nowhere"));
	db_unit_end(d);
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_LEAF, DB_STRP(DW_AT_name, "b.c"));
	db_unit_end(d);
	struct opened o = open_db(d);
	const char *missing;
	assert_int_equal(o.rc, 0);
	assert_int_equal(dwarf_missing(o.dw, &missing), 1);
	assert_non_null(strstr(missing, "/nowhere/a.dwo: No such file or directory"));
	assert_int_equal(dwarf_n_units(o.dw), 2);
	assert_string_equal(dw_unit_name(dwarf_unit(o.dw, 1)), "b.c");
	shut(&o);
}

static void a_file_without_dwarf_says_where_it_was_looked_for(void **state)
{
	open_refuses(db_new((struct db_format){0}), -ENODATA, "no DWARF debug information");
}

static void abbreviation_codes_may_be_any_64_bit_number(void **state)
{
	struct db *d = db_new((struct db_format){.code_step = UINT64_MAX / 2});
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "f"));
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_STR(DW_AT_name, "v")); /* code UINT64_MAX */
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_die root = root_of(&o, 0), f, v;
	assert_int_equal(dw_die_child(&root, &f, NULL), 1);
	assert_int_equal(f.tag, DW_TAG_subprogram);
	assert_int_equal(dw_die_sibling(&f, &v, NULL), 1);
	assert_int_equal(v.tag, DW_TAG_variable);
	assert_int_equal(dw_die_sibling(&v, &v, NULL), 0);
	struct dw_func_index index;
	assert_int_equal(dwarf_index_functions(o.dw, 1, &index, NULL), 0);
	assert_int_equal(index.n, 1);
	assert_string_equal(index.p[0].name, "f");
	assert_int_equal(index.n_dies, 3);
	dw_func_index_fini(&index);
	shut(&o);
}

static void an_abbreviation_defined_twice_is_refused(void **state)
{
	struct db *d = one_unit(5);
	static const uint8_t again[] = {1, DW_TAG_variable, 0, 0, 0};
	db_bytes(d, DB_ABBREV, again, sizeof(again));
	open_refuses(d, -EBADMSG, "defined twice");
}

static void overlapping_abbreviation_tables_cost_no_more_than_a_limit(void **state)
{
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	for (unsigned int i = 0; i < 1000; i++)
		DB_DIE(d, (uint16_t)(DW_TAG_lo_user + i), DB_LEAF, DB_FLAG(DW_AT_external));
	db_unit_end(d);
	/* Empty units, each with a table that starts at another abbreviation of the first. */
	for (unsigned int i = 1; i < 100; i++) {
		uint64_t header = db_at(d, DB_INFO);
		db_unit(d, DW_UT_compile);
		db_patch(d, DB_INFO, header + 8, i * 9, 4); /* bytes of each of the first 127 */
		db_unit_end(d);
	}
	open_refuses(d, -ERANGE, "tables overlap");
}

static void more_attributes_than_any_compiler_writes_are_refused(void **state)
{
	struct db_attr many[1100] = {{0}};
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	for (size_t i = 0; i < 1090; i++)
		many[i] = DB_FLAG(DW_AT_external);
	db_die(d, DW_TAG_compile_unit, DB_LEAF, many);
	db_unit_end(d);
	open_refuses(d, -ERANGE, "more than 1024 attributes");
}

static void type_units_are_found_by_signature(void **state)
{
	for (uint16_t version = 4; version <= 5; version++) {
		struct db *d = db_new((struct db_format){.version = version});
		int type = db_label(d);
		db_unit(d, DW_UT_compile);
		DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.cc"));
		DB_DIE(d, DW_TAG_variable, DB_LEAF,
		       DB_U(DW_AT_type, DW_FORM_ref_sig8, 0x1122334455667788));
		db_null(d);
		db_unit_end(d);
		db_type_unit(d, 0x1122334455667788, type);
		DB_DIE(d, DW_TAG_type_unit, DB_CHILDREN, DB_U(DW_AT_language, DW_FORM_data1, 4));
		db_here(d, type);
		DB_DIE(d, DW_TAG_structure_type, DB_LEAF, DB_STR(DW_AT_name, "S"));
		db_null(d);
		db_unit_end(d);
		struct opened o = open_db(d);
		struct dw_die root = root_of(&o, 0), var;
		assert_int_equal(dwarf_n_units(o.dw), 2);
		assert_true(dw_unit_is_type_unit(dwarf_unit(o.dw, 1)));
		assert_int_equal(dw_die_child(&root, &var, NULL), 1);
		struct dw_value v;
		assert_int_equal(dw_attr(&var, DW_AT_type, &v, NULL), 1);
		assert_int_equal(v.cls, DW_CLASS_SIGNATURE);
		dw_off off = dw_ref(&var, DW_AT_type);
		assert_int_equal(off, dwarf_type_of_signature(o.dw, v.u));
		assert_int_equal(!!(off & DW_OFF_TYPES), version == 4);
		struct dw_die s = die_at(&o, off);
		assert_string_equal(dw_str(&s, DW_AT_name), "S");
		assert_ptr_equal(s.unit, dwarf_unit(o.dw, 1));
		assert_int_equal(dwarf_type_of_signature(o.dw, 1), 0);
		shut(&o);
	}
}

/* ---- forms ---- */

static void every_form_gives_its_class_and_value(void **state)
{
	static const uint8_t block[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	/* clang-format off */
	static const struct {
		struct db_attr attr;
		enum dw_class cls;
		uint64_t u;
	} cases[] = {
		{DB_U(DW_AT_low_pc, DW_FORM_addr, 0x123456789abcdef0), DW_CLASS_ADDRESS, 0x123456789abcdef0},
		{DB_U(DW_AT_low_pc, DW_FORM_addrx, 1), DW_CLASS_ADDRESS, 0x1234},
		{DB_U(DW_AT_low_pc, DW_FORM_addrx1, 1), DW_CLASS_ADDRESS, 0x1234},
		{DB_U(DW_AT_low_pc, DW_FORM_addrx2, 1), DW_CLASS_ADDRESS, 0x1234},
		{DB_U(DW_AT_low_pc, DW_FORM_addrx3, 1), DW_CLASS_ADDRESS, 0x1234},
		{DB_U(DW_AT_low_pc, DW_FORM_addrx4, 1), DW_CLASS_ADDRESS, 0x1234},
		{DB_U(DW_AT_low_pc, DW_FORM_GNU_addr_index, 1), DW_CLASS_ADDRESS, 0x1234},
		{DB_U(DW_AT_upper_bound, DW_FORM_data1, 0xfe), DW_CLASS_UDATA, 0xfe},
		{DB_U(DW_AT_upper_bound, DW_FORM_data2, 0xfedc), DW_CLASS_UDATA, 0xfedc},
		{DB_U(DW_AT_upper_bound, DW_FORM_data4, 0xfedcba98), DW_CLASS_UDATA, 0xfedcba98},
		{DB_U(DW_AT_upper_bound, DW_FORM_data8, UINT64_MAX), DW_CLASS_UDATA, UINT64_MAX},
		{DB_U(DW_AT_upper_bound, DW_FORM_udata, UINT64_MAX), DW_CLASS_UDATA, UINT64_MAX},
		{DB_U(DW_AT_upper_bound, DW_FORM_sdata, INT64_MIN), DW_CLASS_SDATA, (uint64_t)INT64_MIN},
		{DB_U(DW_AT_upper_bound, DW_FORM_implicit_const, -7), DW_CLASS_SDATA, (uint64_t)-7},
		{DB_U(DW_AT_external, DW_FORM_flag, 1), DW_CLASS_FLAG, 1},
		{DB_U(DW_AT_external, DW_FORM_flag, 0), DW_CLASS_FLAG, 0},
		{DB_FLAG(DW_AT_external), DW_CLASS_FLAG, 1},
		{DB_U(DW_AT_type, DW_FORM_ref_sig8, 0x1122334455667788), DW_CLASS_SIGNATURE, 0x1122334455667788},
		{DB_SECOFF(DW_AT_location, 0x77), DW_CLASS_SECOFF, 0x77},
		{DB_U(DW_AT_location, DW_FORM_loclistx, 3), DW_CLASS_SECOFF, 3},
		{DB_U(DW_AT_ranges, DW_FORM_rnglistx, 300), DW_CLASS_SECOFF, 300},
		{DB_STR(DW_AT_name, "in place"), DW_CLASS_STRING, 0},
		{DB_STRP(DW_AT_name, "in .debug_str"), DW_CLASS_STRING, 0},
		{{.at = DW_AT_name, .form = DW_FORM_line_strp, .str = "in .debug_line_str"}, DW_CLASS_STRING, 0},
		{{.at = DW_AT_name, .form = DW_FORM_strx, .u = 1, .str = "one"}, DW_CLASS_STRING, 0},
		{{.at = DW_AT_name, .form = DW_FORM_strx1, .u = 1, .str = "one"}, DW_CLASS_STRING, 0},
		{{.at = DW_AT_name, .form = DW_FORM_strx2, .u = 1, .str = "one"}, DW_CLASS_STRING, 0},
		{{.at = DW_AT_name, .form = DW_FORM_strx3, .u = 1, .str = "one"}, DW_CLASS_STRING, 0},
		{{.at = DW_AT_name, .form = DW_FORM_strx4, .u = 1, .str = "one"}, DW_CLASS_STRING, 0},
		{{.at = DW_AT_name, .form = DW_FORM_GNU_str_index, .u = 1, .str = "one"}, DW_CLASS_STRING, 0},
		{{.at = DW_AT_const_value, .form = DW_FORM_data16, .bytes = block, .n = 16}, DW_CLASS_BLOCK, 0},
		{{.at = DW_AT_const_value, .form = DW_FORM_block, .bytes = block, .n = 9}, DW_CLASS_BLOCK, 0},
		{{.at = DW_AT_const_value, .form = DW_FORM_block1, .bytes = block, .n = 8}, DW_CLASS_BLOCK, 0},
		{{.at = DW_AT_const_value, .form = DW_FORM_block2, .bytes = block, .n = 7}, DW_CLASS_BLOCK, 0},
		{{.at = DW_AT_const_value, .form = DW_FORM_block4, .bytes = block, .n = 0}, DW_CLASS_BLOCK, 0},
		{{.at = DW_AT_location, .form = DW_FORM_exprloc, .bytes = block, .n = 3}, DW_CLASS_EXPRLOC, 0},
		{{.at = DW_AT_byte_size, .form = DW_FORM_indirect, .u = DW_FORM_udata, .n = 300}, DW_CLASS_UDATA, 300},
	};
	/* clang-format on */
	enum { N = sizeof(cases) / sizeof(cases[0]) };
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_SECOFF(DW_AT_str_offsets_base, 8),
	       DB_SECOFF(DW_AT_addr_base, 8));
	for (size_t i = 0; i < N; i++)
		/* The flag after proves that the value was stepped over. */
		DB_DIE(d, DW_TAG_variable, DB_LEAF, cases[i].attr,
		       DB_U(DW_AT_decl_line, DW_FORM_data1, i));
	db_null(d);
	db_unit_end(d);
	db_uint(d, DB_STR_OFFSETS, 0, 12);
	db_off(d, DB_STR_OFFSETS, db_str(d, "one"));
	db_uint(d, DB_ADDR_SEC, 0, 16);
	db_addr(d, DB_ADDR_SEC, 0x1234);
	struct opened o = open_db(d);
	struct dw_die root = root_of(&o, 0), die;
	assert_int_equal(dw_die_child(&root, &die, NULL), 1);
	for (size_t i = 0; i < N; i++) {
		const struct db_attr *a = &cases[i].attr;
		struct dw_value v;
		if (dw_attr(&die, a->at, &v, &o.err) != 1)
			fail_msg("case %zu: %s", i, o.err.msg);
		assert_int_equal(v.cls, cases[i].cls);
		if (v.cls == DW_CLASS_STRING) {
			assert_string_equal(v.str, a->str);
		} else if (v.cls == DW_CLASS_BLOCK || v.cls == DW_CLASS_EXPRLOC) {
			assert_int_equal(v.block.n, a->n);
			assert_memory_equal(v.block.p, a->bytes, a->n);
		} else {
			assert_int_equal(v.u, cases[i].u);
		}
		assert_int_equal(dw_udata(&die, DW_AT_decl_line, 99), i);
		assert_int_equal(dw_attr(&die, DW_AT_bit_size, &v, NULL), 0);
		assert_int_equal(dw_die_sibling(&die, &die, NULL), i + 1 < N);
	}
	shut(&o);
}

static void references_of_all_sizes_reach_the_same_die(void **state)
{
	static const uint16_t forms[] = {DW_FORM_ref1, DW_FORM_ref2, DW_FORM_ref4, DW_FORM_ref8,
					 DW_FORM_ref_addr};
	for (uint8_t offset_size = 4; offset_size <= 8; offset_size += 4) {
		struct db *d = db_new((struct db_format){.offset_size = offset_size});
		int target = db_label(d);
		db_unit(d, DW_UT_compile);
		DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
		for (size_t i = 0; i < 5; i++)
			DB_DIE(d, DW_TAG_variable, DB_LEAF,
			       {.at = DW_AT_type, .form = forms[i], .label = target});
		db_here(d, target);
		DB_DIE(d, DW_TAG_base_type, DB_LEAF, DB_STR(DW_AT_name, "int"));
		uint64_t at = db_offset(d, target);
		DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_U(DW_AT_type, DW_FORM_ref_udata, at));
		db_null(d);
		db_unit_end(d);
		struct opened o = open_db(d);
		struct dw_die root = root_of(&o, 0), die;
		int n = 0;
		for (int rc = dw_die_child(&root, &die, NULL); rc > 0;
		     rc = dw_die_sibling(&die, &die, NULL)) {
			if (die.tag != DW_TAG_variable)
				continue;
			assert_int_equal(dw_ref(&die, DW_AT_type), at);
			n++;
		}
		assert_int_equal(n, 6);
		shut(&o);
	}
}

static void references_that_leave_their_unit_or_section_are_refused(void **state)
{
	static const uint64_t wrong[] = {0, 5, 0x7fffffff};
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
	for (size_t i = 0; i < 3; i++)
		DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_U(DW_AT_type, DW_FORM_ref4, wrong[i]));
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_U(DW_AT_type, DW_FORM_ref_addr, 0x7fffffff));
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_die root = root_of(&o, 0), die;
	struct dw_value v;
	int n = 0;
	for (int rc = dw_die_child(&root, &die, NULL); rc > 0;
	     rc = dw_die_sibling(&die, &die, NULL), n++) {
		assert_int_equal(dw_attr(&die, DW_AT_type, &v, &o.err), -EBADMSG);
		assert_non_null(strstr(o.err.msg, "reference"));
		assert_int_equal(dw_ref(&die, DW_AT_type), 0);
	}
	assert_int_equal(n, 4);
	shut(&o);
}

static void a_reference_to_a_missing_alternate_file_says_so(void **state)
{
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_U(DW_AT_type, DW_FORM_GNU_ref_alt, 0x20),
	       DB_U(DW_AT_name, DW_FORM_GNU_strp_alt, 1));
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_die root = root_of(&o, 0), die;
	struct dw_value v;
	assert_int_equal(dw_die_child(&root, &die, NULL), 1);
	assert_int_equal(dw_attr(&die, DW_AT_type, &v, &o.err), -ENOENT);
	assert_non_null(strstr(o.err.msg, "alternate debug file"));
	assert_int_equal(dw_attr(&die, DW_AT_name, &v, NULL), -ENOENT);
	shut(&o);
}

static void an_unknown_form_is_an_error_only_where_it_is_used(void **state)
{
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_STR(DW_AT_name, "v"), DB_U(DW_AT_type, 0x7f, 1),
	       DB_FLAG(DW_AT_external));
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_die root = root_of(&o, 0), die;
	struct dw_value v;
	struct dw_func_index index;
	assert_int_equal(dw_die_child(&root, &die, NULL), 1);
	assert_string_equal(dw_str(&die, DW_AT_name), "v");
	assert_int_equal(dw_attr(&die, DW_AT_type, &v, &o.err), -EOPNOTSUPP);
	assert_int_equal(dw_attr(&die, DW_AT_external, &v, &o.err), -EOPNOTSUPP);
	assert_int_equal(dw_die_sibling(&die, &die, &o.err), -EOPNOTSUPP);
	assert_int_equal(dwarf_index_functions(o.dw, 1, &index, &o.err), -EOPNOTSUPP);
	assert_non_null(strstr(o.err.msg, "form"));
	shut(&o);
}

static void a_block_of_2_to_the_63_bytes_is_refused(void **state)
{
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, {.at = DW_AT_location, .form = DW_FORM_exprloc});
	/* The length was 0, the last byte: now 2^63. */
	db_patch(d, DB_INFO, db_at(d, DB_INFO) - 1, 0x80, 1);
	for (int i = 0; i < 8; i++)
		db_u8(d, DB_INFO, 0x80);
	db_u8(d, DB_INFO, 1);
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_die root = root_of(&o, 0), die;
	struct dw_value v;
	struct dw_func_index index;
	assert_int_equal(dw_die_child(&root, &die, NULL), 1);
	assert_int_equal(dw_attr(&die, DW_AT_location, &v, &o.err), -EBADMSG);
	assert_int_equal(dw_die_sibling(&die, &die, &o.err), -EBADMSG);
	assert_int_equal(dwarf_index_functions(o.dw, 1, &index, &o.err), -EBADMSG);
	shut(&o);
}

/* ---- the tree ---- */

/* root { s { m } f }, with or without DW_AT_sibling on s; @to: where it points instead of to f. */
static struct db *small_tree(bool with_sibling, uint64_t to)
{
	struct db *d = db_new((struct db_format){0});
	int f = db_label(d);
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"),
	       DB_U(DW_AT_language, DW_FORM_data1, DW_LANG_C11));
	if (with_sibling && to)
		DB_DIE(d, DW_TAG_structure_type, DB_CHILDREN,
		       DB_U(DW_AT_sibling, DW_FORM_ref4, to));
	else if (with_sibling)
		DB_DIE(d, DW_TAG_structure_type, DB_CHILDREN, DB_REF(DW_AT_sibling, f));
	else
		DB_DIE(d, DW_TAG_structure_type, DB_CHILDREN,
		       DB_U(DW_AT_byte_size, DW_FORM_data4, 4));
	DB_DIE(d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "m"));
	db_null(d);
	db_here(d, f);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "f"));
	db_null(d);
	db_unit_end(d);
	return d;
}

static void siblings_are_found_with_and_without_the_attribute(void **state)
{
	for (int with = 0; with <= 1; with++) {
		struct opened o = open_db(small_tree(with, 0));
		struct dw_die root = root_of(&o, 0), s, m, f;
		struct dw_func_index index;
		assert_int_equal(dw_die_child(&root, &s, NULL), 1);
		assert_int_equal(s.tag, DW_TAG_structure_type);
		assert_int_equal(dw_die_child(&s, &m, NULL), 1);
		assert_string_equal(dw_str(&m, DW_AT_name), "m");
		assert_int_equal(dw_die_sibling(&m, &m, NULL), 0);
		assert_int_equal(dw_die_sibling(&s, &f, NULL), 1);
		assert_string_equal(dw_str(&f, DW_AT_name), "f");
		assert_int_equal(dw_die_child(&f, &f, NULL), 0);
		assert_int_equal(dwarf_index_functions(o.dw, 1, &index, NULL), 0);
		assert_int_equal(index.n, 1);
		assert_int_equal(index.n_dies, with ? 3 : 4); /* m is jumped over */
		dw_func_index_fini(&index);
		shut(&o);
	}
}

/*
 * GCC's unit without the attribute on any DIE is one that somebody has rewritten: what is after a
 * block may be a parameter.
 */
static void a_parameter_after_a_block_is_found(void **state)
{
	struct db *d = db_new((struct db_format){0});
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"),
	       DB_STR(DW_AT_producer, "GNU C17 12.2.0"),
	       DB_U(DW_AT_language, DW_FORM_data1, DW_LANG_C11));
	DB_DIE(d, DW_TAG_subprogram, DB_CHILDREN, DB_STR(DW_AT_name, "f"));
	DB_DIE(d, DW_TAG_lexical_block, DB_CHILDREN);
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_STR(DW_AT_name, "v"));
	db_null(d);
	DB_DIE(d, DW_TAG_formal_parameter, DB_LEAF, DB_STR(DW_AT_name, "p"));
	db_null(d);
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_die root = root_of(&o, 0), f, p;
	assert_int_equal(dw_die_child(&root, &f, NULL), 1);
	assert_int_equal(dw_param_child(&f, &p, NULL), 1);
	assert_string_equal(dw_str(&p, DW_AT_name), "p");
	assert_int_equal(dw_param_sibling(&p, &p, NULL), 0);
	shut(&o);
}

static void a_sibling_that_points_back_or_out_of_the_unit_is_ignored(void **state)
{
	static const uint64_t wrong[] = {1, 12, 0x7fffffff, UINT32_MAX};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct opened o = open_db(small_tree(true, wrong[i]));
		struct dw_die root = root_of(&o, 0), s, f;
		struct dw_func_index index;
		assert_int_equal(dw_die_child(&root, &s, NULL), 1);
		assert_int_equal(dw_die_sibling(&s, &f, NULL), 1);
		assert_string_equal(dw_str(&f, DW_AT_name), "f");
		assert_int_equal(dwarf_index_functions(o.dw, 1, &index, NULL), 0);
		assert_int_equal(index.n, 1);
		assert_int_equal(index.n_dies, 4);
		dw_func_index_fini(&index);
		shut(&o);
	}
}

static void an_offset_outside_every_unit_is_no_die(void **state)
{
	struct opened o = open_db(small_tree(false, 0));
	static const dw_off wrong[] = {0,         3, 0x10000, DW_OFF_ALT | 12, DW_OFF_TYPES | 12,
				       UINT64_MAX};
	struct dw_die die;
	assert_int_equal(o.rc, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(dw_die_at(o.dw, wrong[i], &die, &o.err), -EBADMSG);
	assert_null(dwarf_unit_of(o.dw, 0x10000));
	assert_ptr_equal(dwarf_unit_of(o.dw, 0), dwarf_unit(o.dw, 0));
	shut(&o);
}

static void attributes_are_found_along_origins_and_the_finder_is_told(void **state)
{
	struct db *d = db_new((struct db_format){0});
	int declaration = db_label(d), abstract = db_label(d);
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.cc"));
	db_here(d, declaration);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "f"),
	       DB_U(DW_AT_decl_line, DW_FORM_data1, 1));
	db_here(d, abstract);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_REF(DW_AT_specification, declaration),
	       DB_U(DW_AT_decl_line, DW_FORM_data1, 2));
	DB_DIE(d, DW_TAG_inlined_subroutine, DB_LEAF, DB_REF(DW_AT_abstract_origin, abstract));
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_die root = root_of(&o, 0), copy, finder;
	struct dw_value v;
	dw_die_child(&root, &copy, NULL);
	dw_die_sibling(&copy, &copy, NULL);
	assert_int_equal(dw_die_sibling(&copy, &copy, NULL), 1);
	assert_null(dw_str(&copy, DW_AT_name));
	assert_string_equal(dw_str_deep(&copy, DW_AT_name), "f");
	assert_int_equal(dw_attr_deep(&copy, DW_AT_decl_line, &v, &finder, NULL), 1);
	assert_int_equal(v.u, 2);
	assert_int_equal(finder.off, db_offset(d, abstract));
	assert_int_equal(dw_attr_deep(&copy, DW_AT_byte_size, &v, &finder, NULL), 0);
	shut(&o);
}

static void origins_in_a_ring_are_an_error_not_a_hang(void **state)
{
	struct db *d = db_new((struct db_format){0});
	int a = db_label(d), b = db_label(d);
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.cc"));
	db_here(d, a);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_REF(DW_AT_abstract_origin, b));
	db_here(d, b);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_REF(DW_AT_abstract_origin, a));
	db_null(d);
	db_unit_end(d);
	struct opened o = open_db(d);
	struct dw_die root = root_of(&o, 0), die;
	struct dw_value v;
	struct dw_func_index index;
	char name[16];
	assert_int_equal(dw_die_child(&root, &die, NULL), 1);
	assert_int_equal(dw_attr_deep(&die, DW_AT_name, &v, NULL, &o.err), -EBADMSG);
	assert_non_null(strstr(o.err.msg, "ring"));
	assert_null(dw_str_deep(&die, DW_AT_name));
	assert_int_equal(dw_qualified_name(o.dw, &die, name, sizeof(name)), -EBADMSG);
	assert_int_equal(dwarf_functions_named(o.dw, 1, "f", &index, NULL), 0);
	assert_int_equal(index.n, 0);
	dw_func_index_fini(&index);
	shut(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_of_every_version_and_offset_size_are_read),
		cmocka_unit_test(facts_of_the_root_may_be_indices_into_tables_told_later),
		cmocka_unit_test(zero_length_is_padding_and_an_empty_unit_has_no_root),
		cmocka_unit_test(damaged_headers_are_refused_by_name),
		cmocka_unit_test(a_missing_dwo_is_named_and_the_rest_is_read),
		cmocka_unit_test(a_file_without_dwarf_says_where_it_was_looked_for),
		cmocka_unit_test(abbreviation_codes_may_be_any_64_bit_number),
		cmocka_unit_test(an_abbreviation_defined_twice_is_refused),
		cmocka_unit_test(overlapping_abbreviation_tables_cost_no_more_than_a_limit),
		cmocka_unit_test(more_attributes_than_any_compiler_writes_are_refused),
		cmocka_unit_test(type_units_are_found_by_signature),
		cmocka_unit_test(every_form_gives_its_class_and_value),
		cmocka_unit_test(references_of_all_sizes_reach_the_same_die),
		cmocka_unit_test(references_that_leave_their_unit_or_section_are_refused),
		cmocka_unit_test(a_reference_to_a_missing_alternate_file_says_so),
		cmocka_unit_test(an_unknown_form_is_an_error_only_where_it_is_used),
		cmocka_unit_test(a_block_of_2_to_the_63_bytes_is_refused),
		cmocka_unit_test(siblings_are_found_with_and_without_the_attribute),
		cmocka_unit_test(a_parameter_after_a_block_is_found),
		cmocka_unit_test(a_sibling_that_points_back_or_out_of_the_unit_is_ignored),
		cmocka_unit_test(an_offset_outside_every_unit_is_no_die),
		cmocka_unit_test(attributes_are_found_along_origins_and_the_finder_is_told),
		cmocka_unit_test(origins_in_a_ring_are_an_error_not_a_hang),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
