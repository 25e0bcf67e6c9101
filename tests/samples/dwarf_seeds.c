/* SPDX-License-Identifier: BSD-2-Clause */
#include "dwarf_seeds.h"

#include "dwarf/constants.h"

/* ---- version 5 ---- */

static uint64_t rnglist_v5(struct db *d)
{
	uint64_t mark = db_length(d, DB_RNGLISTS);
	db_uint(d, DB_RNGLISTS, 5, 2);
	db_uint(d, DB_RNGLISTS, 8, 2); /* address size 8, no segments */
	db_uint(d, DB_RNGLISTS, 1, 4); /* one offset */
	uint64_t base = db_at(d, DB_RNGLISTS);
	db_off(d, DB_RNGLISTS, 4);
	db_u8(d, DB_RNGLISTS, DW_RLE_startx_length);
	db_uleb(d, DB_RNGLISTS, 0);
	db_uleb(d, DB_RNGLISTS, 0x10);
	db_u8(d, DB_RNGLISTS, DW_RLE_base_addressx);
	db_uleb(d, DB_RNGLISTS, 1);
	db_u8(d, DB_RNGLISTS, DW_RLE_offset_pair);
	db_uleb(d, DB_RNGLISTS, 0x20);
	db_uleb(d, DB_RNGLISTS, 0x28);
	db_u8(d, DB_RNGLISTS, DW_RLE_start_end);
	db_addr(d, DB_RNGLISTS, 0x1800);
	db_addr(d, DB_RNGLISTS, 0x1810);
	db_u8(d, DB_RNGLISTS, DW_RLE_end_of_list);
	db_length_end(d, DB_RNGLISTS, mark);
	return base;
}

/* Views, then the list they belong to. */
static uint64_t loclist_v5(struct db *d, uint64_t *ret_views)
{
	static const uint8_t in_rdi[] = {1, DW_OP_reg0 + 5},
			     four[] = {2, DW_OP_lit0 + 4, DW_OP_stack_value};
	uint64_t mark = db_length(d, DB_LOCLISTS);
	db_uint(d, DB_LOCLISTS, 5, 2);
	db_uint(d, DB_LOCLISTS, 8, 2);
	db_uint(d, DB_LOCLISTS, 0, 4);
	*ret_views = db_at(d, DB_LOCLISTS);
	for (unsigned int i = 0; i < 4; i++)
		db_uleb(d, DB_LOCLISTS, i);
	uint64_t list = db_at(d, DB_LOCLISTS);
	db_u8(d, DB_LOCLISTS, DW_LLE_offset_pair);
	db_uleb(d, DB_LOCLISTS, 0x4);
	db_uleb(d, DB_LOCLISTS, 0x8);
	db_bytes(d, DB_LOCLISTS, in_rdi, sizeof(in_rdi));
	db_u8(d, DB_LOCLISTS, DW_LLE_base_address);
	db_addr(d, DB_LOCLISTS, 0x1100);
	db_u8(d, DB_LOCLISTS, DW_LLE_start_length);
	db_addr(d, DB_LOCLISTS, 0x1108);
	db_uleb(d, DB_LOCLISTS, 8);
	db_bytes(d, DB_LOCLISTS, four, sizeof(four));
	db_u8(d, DB_LOCLISTS, DW_LLE_default_location);
	db_bytes(d, DB_LOCLISTS, in_rdi, sizeof(in_rdi));
	db_u8(d, DB_LOCLISTS, DW_LLE_end_of_list);
	db_length_end(d, DB_LOCLISTS, mark);
	return list;
}

static void line_header(struct db *d, uint16_t version, uint64_t *ret_length, uint64_t *ret_header)
{
	static const uint8_t operands[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	*ret_length = db_length(d, DB_LINE);
	db_uint(d, DB_LINE, version, 2);
	if (version == 5) {
		db_u8(d, DB_LINE, 8);
		db_u8(d, DB_LINE, 0);
	}
	db_off(d, DB_LINE, 0);
	*ret_header = db_at(d, DB_LINE);
	db_u8(d, DB_LINE, 1);
	if (version >= 4)
		db_u8(d, DB_LINE, 1);
	db_u8(d, DB_LINE, 1);
	db_u8(d, DB_LINE, (uint8_t)-5);
	db_u8(d, DB_LINE, 14);
	db_u8(d, DB_LINE, 13);
	db_bytes(d, DB_LINE, operands, sizeof(operands));
}

static void line_program(struct db *d, uint64_t length, uint64_t header)
{
	db_patch(d, DB_LINE, header - 4, db_at(d, DB_LINE) - header, 4);
	db_u8(d, DB_LINE, 0);
	db_uleb(d, DB_LINE, 9);
	db_u8(d, DB_LINE, DW_LNE_set_address);
	db_addr(d, DB_LINE, 0x1000);
	db_u8(d, DB_LINE, DW_LNS_copy);
	db_u8(d, DB_LINE, 0x4b); /* address += 4, line += 1 */
	db_u8(d, DB_LINE, DW_LNS_negate_stmt);
	db_u8(d, DB_LINE, DW_LNS_copy);
	db_u8(d, DB_LINE, DW_LNS_advance_pc);
	db_uleb(d, DB_LINE, 12);
	db_u8(d, DB_LINE, 0);
	db_uleb(d, DB_LINE, 1);
	db_u8(d, DB_LINE, DW_LNE_end_sequence);
	db_length_end(d, DB_LINE, length);
}

static void line_v5(struct db *d)
{
	static const uint8_t dirs[] = {1, DW_LNCT_path, DW_FORM_string, 2};
	static const uint8_t files[] = {3,
					DW_LNCT_path,
					DW_FORM_string,
					DW_LNCT_directory_index,
					DW_FORM_udata,
					DW_LNCT_MD5,
					DW_FORM_data16,
					2};
	uint64_t length, header;
	line_header(d, 5, &length, &header);
	db_bytes(d, DB_LINE, dirs, sizeof(dirs));
	db_cstr(d, DB_LINE, "/src");
	db_cstr(d, DB_LINE, "include");
	db_bytes(d, DB_LINE, files, sizeof(files));
	for (uint8_t i = 0; i < 2; i++) {
		db_cstr(d, DB_LINE, i ? "a.h" : "a.c");
		db_uleb(d, DB_LINE, i);
		db_uint(d, DB_LINE, 0, 16);
	}
	line_program(d, length, header);
}

static void line_v4(struct db *d, uint16_t version)
{
	uint64_t length, header;
	line_header(d, version, &length, &header);
	db_cstr(d, DB_LINE, "include");
	db_u8(d, DB_LINE, 0);
	for (uint8_t i = 0; i < 2; i++) {
		db_cstr(d, DB_LINE, i ? "a.h" : "a.c");
		db_uleb(d, DB_LINE, i);
		db_uint(d, DB_LINE, 0, 2);
	}
	db_u8(d, DB_LINE, 0);
	line_program(d, length, header);
}

static struct db *version_5(void)
{
	struct db *d = db_new((struct db_format){.version = 5});
	int add = db_label(d), add_a = db_label(d), type = db_label(d), end = db_label(d);
	uint64_t views;
	db_uint(d, DB_STR_OFFSETS, 0, 8);
	db_off(d, DB_STR_OFFSETS, db_str(d, "main"));
	db_uint(d, DB_ADDR_SEC, 0, 8);
	db_addr(d, DB_ADDR_SEC, 0x1100);
	db_addr(d, DB_ADDR_SEC, 0x1200);
	uint64_t ranges = rnglist_v5(d), locations = loclist_v5(d, &views);
	line_v5(d);
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STRP(DW_AT_producer, "GNU C17 12"),
	       DB_STR(DW_AT_name, "a.c"), DB_U(DW_AT_language, DW_FORM_data1, DW_LANG_C11),
	       DB_STR(DW_AT_comp_dir, "/src"), DB_ADDR(DW_AT_low_pc, 0x1000),
	       DB_U(DW_AT_high_pc, DW_FORM_data8, 0x1000), DB_SECOFF(DW_AT_stmt_list, 0),
	       DB_SECOFF(DW_AT_str_offsets_base, 8), DB_SECOFF(DW_AT_addr_base, 8),
	       DB_SECOFF(DW_AT_rnglists_base, ranges), DB_SECOFF(DW_AT_loclists_base, 12));
	db_here(d, type);
	DB_DIE(d, DW_TAG_structure_type, DB_CHILDREN, DB_STR(DW_AT_name, "s"),
	       DB_REF(DW_AT_sibling, add));
	DB_DIE(d, DW_TAG_member, DB_LEAF, DB_STR(DW_AT_name, "m"), DB_REF(DW_AT_type, type));
	db_null(d);
	db_here(d, add);
	DB_DIE(d, DW_TAG_subprogram, DB_CHILDREN, DB_STRP(DW_AT_name, "add"),
	       DB_U(DW_AT_inline, DW_FORM_data1, 1),
	       DB_U(DW_AT_decl_file, DW_FORM_implicit_const, 1));
	db_here(d, add_a);
	DB_DIE(d, DW_TAG_formal_parameter, DB_LEAF, DB_STR(DW_AT_name, "a"),
	       DB_REF(DW_AT_type, type));
	db_null(d);
	DB_DIE(d, DW_TAG_subprogram, DB_CHILDREN, DB_U(DW_AT_name, DW_FORM_strx1, 0),
	       DB_FLAG(DW_AT_external), DB_U(DW_AT_ranges, DW_FORM_rnglistx, 0),
	       DB_EXPR(DW_AT_frame_base, DW_OP_call_frame_cfa), DB_REF(DW_AT_sibling, end));
	DB_DIE(d, DW_TAG_lexical_block, DB_CHILDREN);
	DB_DIE(d, DW_TAG_inlined_subroutine, DB_CHILDREN, DB_REF(DW_AT_abstract_origin, add),
	       DB_ADDR(DW_AT_entry_pc, 0x1104), DB_U(DW_AT_GNU_entry_view, DW_FORM_data1, 1),
	       DB_ADDR(DW_AT_low_pc, 0x1104), DB_U(DW_AT_high_pc, DW_FORM_data8, 4),
	       DB_U(DW_AT_call_line, DW_FORM_indirect, DW_FORM_data1));
	DB_DIE(d, DW_TAG_formal_parameter, DB_LEAF, DB_REF(DW_AT_abstract_origin, add_a),
	       DB_SECOFF(DW_AT_location, locations), DB_SECOFF(DW_AT_GNU_locviews, views));
	db_null(d);
	db_null(d);
	DB_DIE(d, DW_TAG_call_site, DB_LEAF, DB_ADDR(DW_AT_call_return_pc, 0x1108));
	db_null(d);
	db_here(d, end);
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_STR(DW_AT_name, "v"), DB_REF_ADDR(DW_AT_type, type),
	       DB_EXPR(DW_AT_location, DW_OP_addr, 0, 0x20, 0, 0, 0, 0, 0, 0));
	db_null(d);
	db_unit_end(d);
	return d;
}

/* ---- version 4, and 2 ---- */

static void lists_v4(struct db *d)
{
	for (int i = 0; i < 2; i++) {
		enum db_sec sec = i ? DB_LOC : DB_RANGES;
		db_uleb(d, sec,
			0); /* views of the one entry; in .debug_ranges: bytes nobody reads */
		db_uleb(d, sec, 1);
		db_addr(d, sec, UINT64_MAX);
		db_addr(d, sec, 0x1100);
		db_addr(d, sec, 0x4);
		db_addr(d, sec, 0x8);
		if (i) {
			db_uint(d, sec, 1, 2);
			db_u8(d, sec, DW_OP_reg0 + 5);
		}
		db_addr(d, sec, 0);
		db_addr(d, sec, 0);
	}
}

static void unit_v4(struct db *d, bool modern)
{
	int add = db_label(d), member = db_label(d), local = db_label(d);
	uint16_t sec_offset = modern ? DW_FORM_sec_offset : DW_FORM_data8;
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.cc"),
	       DB_U(DW_AT_language, DW_FORM_data1, DW_LANG_C_plus_plus),
	       DB_ADDR(DW_AT_low_pc, 0x1000), DB_U(DW_AT_stmt_list, sec_offset, 0));
	DB_DIE(d, DW_TAG_namespace, DB_CHILDREN, DB_STR(DW_AT_name, "n"));
	DB_DIE(d, DW_TAG_class_type, DB_CHILDREN, DB_STR(DW_AT_name, "c"));
	db_here(d, member);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "add"),
	       DB_STR(DW_AT_MIPS_linkage_name, "_ZN1n1c3addEv"),
	       DB_U(DW_AT_declaration, DW_FORM_flag, 1));
	db_null(d);
	db_null(d);
	db_here(d, add);
	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_REF_ADDR(DW_AT_specification, member),
	       DB_U(DW_AT_inline, DW_FORM_data1, 3));
	DB_DIE(d, DW_TAG_subprogram, DB_CHILDREN, DB_STRP(DW_AT_name, "main"),
	       DB_U(DW_AT_ranges, sec_offset, 2));
	db_here(d, local);
	DB_DIE(d, DW_TAG_variable, DB_LEAF, DB_U(DW_AT_location, sec_offset, 2),
	       DB_U(DW_AT_GNU_locviews, sec_offset, 0), DB_U(DW_AT_type, DW_FORM_ref_sig8, 0x77));
	DB_DIE(d, DW_TAG_inlined_subroutine, DB_LEAF, DB_REF(DW_AT_abstract_origin, add),
	       DB_ADDR(DW_AT_low_pc, 0x1104), DB_ADDR(DW_AT_high_pc, 0x1108),
	       DB_U(DW_AT_call_line, DW_FORM_sdata, 7));
	db_null(d);
	db_null(d);
	db_unit_end(d);
}

static struct db *version_4(void)
{
	struct db *d = db_new((struct db_format){.version = 4, .code_step = 3});
	int type = db_label(d);
	lists_v4(d);
	line_v4(d, 4);
	unit_v4(d, true);
	db_type_unit(d, 0x77, type);
	DB_DIE(d, DW_TAG_type_unit, DB_CHILDREN,
	       DB_U(DW_AT_language, DW_FORM_data1, DW_LANG_C_plus_plus));
	db_here(d, type);
	DB_DIE(d, DW_TAG_structure_type, DB_LEAF, DB_STRP(DW_AT_name, "s"));
	db_null(d);
	db_unit_end(d);
	return d;
}

static struct db *version_2(void)
{
	struct db *d = db_new((struct db_format){.version = 2, .offset_size = 8});
	lists_v4(d);
	db_format(d, (struct db_format){.version = 2});
	line_v4(d, 2);
	db_format(d, (struct db_format){.version = 2, .offset_size = 8});
	unit_v4(d, false);
	return d;
}

struct db *dwarf_seed(unsigned int i)
{
	return i == 0 ? version_5() : i == 1 ? version_4() : version_2();
}

void dwarf_seeds_put(void (*put)(const void *bytes, size_t size))
{
	for (unsigned int i = 0; i < DWARF_SEEDS; i++) {
		struct db *d = dwarf_seed(i);
		size_t size;
		const uint8_t *bytes = db_finish(d, &size);
		put(bytes, size);
		db_free(d);
	}
}
