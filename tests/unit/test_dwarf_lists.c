/* SPDX-License-Identifier: BSD-2-Clause */
/* Range lists, location lists and line programs, written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dwarf/constants.h"
#include "dwarf/index.h"
#include "dwarf_builder.h"
#include "dwarf_open.h"

/* ---- the unit around a list ---- */

/* A unit at 0x1000 with one DIE, which has what is given. */
static struct db *unit_with(struct db *d, struct db_attr a, struct db_attr b)
{
	db_uint(d, DB_ADDR_SEC, 0, 8);
	db_addr(d, DB_ADDR_SEC, 0x1100);
	db_addr(d, DB_ADDR_SEC, 0x1200);
	db_addr(d, DB_ADDR_SEC, 0x1300);
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_ADDR(DW_AT_low_pc, 0x1000),
	       DB_SECOFF(DW_AT_addr_base, 8), DB_SECOFF(DW_AT_rnglists_base, 12),
	       DB_SECOFF(DW_AT_loclists_base, 12));
	DB_DIE(d, DW_TAG_variable, DB_LEAF, a, b);
	db_null(d);
	db_unit_end(d);
	return d;
}

static struct dw_die the_die(const struct opened *o)
{
	struct dw_die root = root_of(o, 0), die;
	assert_int_equal(dw_die_child(&root, &die, NULL), 1);
	return die;
}

/* What was visited, as text. */
struct seen {
	char text[512];
};

static int see_range(void *ctx, struct dw_range r)
{
	struct seen *s = ctx;
	size_t n = strlen(s->text);
	snprintf(s->text + n, sizeof(s->text) - n, "%" PRIx64 "-%" PRIx64 " ", r.lo.v, r.hi.v);
	return 0;
}

static int see_location(void *ctx, const struct dw_loc_entry *e)
{
	struct seen *s = ctx;
	size_t n = strlen(s->text);
	if (e->everywhere)
		snprintf(s->text + n, sizeof(s->text) - n, "everywhere:");
	else if (e->has_views)
		snprintf(s->text + n, sizeof(s->text) - n,
			 "%" PRIx64 "v%" PRIu64 "-%" PRIx64 "v%" PRIu64 ":", e->lo.v, e->view_lo,
			 e->hi.v, e->view_hi);
	else
		snprintf(s->text + n, sizeof(s->text) - n, "%" PRIx64 "-%" PRIx64 ":", e->lo.v,
			 e->hi.v);
	for (uint64_t i = 0; i < e->expr_len; i++) {
		n = strlen(s->text);
		snprintf(s->text + n, sizeof(s->text) - n, "%02x", e->expr[i]);
	}
	n = strlen(s->text);
	snprintf(s->text + n, sizeof(s->text) - n, " ");
	return 0;
}

static void ranges_are(struct db *d, const char *expected, int n)
{
	struct opened o = open_db(d);
	struct seen s = {""};
	struct dw_die die = the_die(&o);
	int rc = dw_ranges(&die, see_range, &s, &o.err);
	if (rc != n)
		fail_msg("returned %d, expected %d: %s", rc, n, o.err.msg);
	assert_string_equal(s.text, expected);
	shut(&o);
}

static void locations_are(struct db *d, const char *expected, int n)
{
	struct opened o = open_db(d);
	struct seen s = {""};
	struct dw_die die = the_die(&o);
	int rc = dw_locations(&die, DW_AT_location, see_location, &s, &o.err);
	if (rc != n)
		fail_msg("returned %d, expected %d: %s", rc, n, o.err.msg);
	assert_string_equal(s.text, expected);
	shut(&o);
}

static const struct db_attr nothing = {0};

/* ---- ranges ---- */

static void low_and_high_pc_are_one_range(void **state)
{
	ranges_are(unit_with(db_new((struct db_format){0}), DB_ADDR(DW_AT_low_pc, 0x1234),
			     DB_U(DW_AT_high_pc, DW_FORM_data4, 0x10)),
		   "1234-1244 ", 1);
	ranges_are(unit_with(db_new((struct db_format){0}), DB_U(DW_AT_low_pc, DW_FORM_addrx, 1),
			     DB_ADDR(DW_AT_high_pc, 0x1234)),
		   "1200-1234 ", 1);
	ranges_are(unit_with(db_new((struct db_format){0}), DB_ADDR(DW_AT_low_pc, 0x1234), nothing),
		   "", 0);
	ranges_are(unit_with(db_new((struct db_format){0}), DB_ADDR(DW_AT_low_pc, 0x1234),
			     DB_U(DW_AT_high_pc, DW_FORM_data4, 0)),
		   "", 0);
	/* Backwards, by an address and by a length of almost 2^64. */
	ranges_are(unit_with(db_new((struct db_format){0}), DB_ADDR(DW_AT_low_pc, 0x1234),
			     DB_ADDR(DW_AT_high_pc, 0x1233)),
		   "", -EBADMSG);
	ranges_are(unit_with(db_new((struct db_format){0}), DB_ADDR(DW_AT_low_pc, 0x1234),
			     DB_U(DW_AT_high_pc, DW_FORM_data8, UINT64_MAX)),
		   "", -EBADMSG);
}

static void code_that_the_linker_dropped_is_left_out(void **state)
{
	static const uint64_t dropped[] = {0, UINT64_MAX, UINT64_MAX - 1};
	for (size_t i = 0; i < 3; i++)
		ranges_are(unit_with(db_new((struct db_format){0}),
				     DB_ADDR(DW_AT_low_pc, dropped[i]),
				     DB_U(DW_AT_high_pc, DW_FORM_data4, 0x10)),
			   "", 0);
	/* In a relocatable file 0 is where the first section starts. */
	ranges_are(unit_with(db_new((struct db_format){.relocatable = true}),
			     DB_ADDR(DW_AT_low_pc, 0), DB_U(DW_AT_high_pc, DW_FORM_data4, 0x10)),
		   "0-10 ", 1);
}

static struct db *with_v4_ranges(void)
{
	struct db *d = db_new((struct db_format){.version = 4});
	static const uint64_t list[] = {0x10,
					0x20,
					/* base 0x1000 */ 1,
					1, /* dropped */
					UINT64_MAX,
					0x1800,
					0,
					0x8,
					0x8,
					0x8, /* empty */
					UINT64_MAX,
					0,
					0x1900,
					0x1910,
					0,
					0x10,
					/* dropped */ 0,
					0};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		db_addr(d, DB_RANGES, list[i]);
	return d;
}

static void version_4_ranges_follow_the_base_address(void **state)
{
	ranges_are(unit_with(with_v4_ranges(), DB_SECOFF(DW_AT_ranges, 0), nothing),
		   "1010-1020 1800-1808 1900-1910 ", 3);
	ranges_are(unit_with(with_v4_ranges(), DB_SECOFF(DW_AT_ranges, 9999), nothing), "",
		   -EBADMSG);
}

/* Header with @n offsets; the lists follow. */
static struct db *with_list_header(enum db_sec sec, uint32_t n)
{
	struct db *d = db_new((struct db_format){0});
	db_uint(d, sec, 0, 4); /* length: not looked at */
	db_uint(d, sec, 5, 2);
	db_uint(d, sec, 8, 2);
	db_uint(d, sec, n, 4);
	return d;
}

static struct db *with_rnglist(void)
{
	struct db *d = with_list_header(DB_RNGLISTS, 2);
	db_off(d, DB_RNGLISTS, UINT32_MAX);
	db_off(d, DB_RNGLISTS, 8); /* of the list, from the base */
	db_u8(d, DB_RNGLISTS, DW_RLE_offset_pair);
	db_uleb(d, DB_RNGLISTS, 0x10);
	db_uleb(d, DB_RNGLISTS, 0x20);
	db_u8(d, DB_RNGLISTS, DW_RLE_base_addressx);
	db_uleb(d, DB_RNGLISTS, 2);
	db_u8(d, DB_RNGLISTS, DW_RLE_offset_pair);
	db_uleb(d, DB_RNGLISTS, 0);
	db_uleb(d, DB_RNGLISTS, 1);
	db_u8(d, DB_RNGLISTS, DW_RLE_base_address);
	db_addr(d, DB_RNGLISTS, UINT64_MAX); /* dropped */
	db_u8(d, DB_RNGLISTS, DW_RLE_offset_pair);
	db_uleb(d, DB_RNGLISTS, 0x20);
	db_uleb(d, DB_RNGLISTS, 0x30);
	db_u8(d, DB_RNGLISTS, DW_RLE_startx_endx);
	db_uleb(d, DB_RNGLISTS, 0);
	db_uleb(d, DB_RNGLISTS, 1);
	db_u8(d, DB_RNGLISTS, DW_RLE_startx_length);
	db_uleb(d, DB_RNGLISTS, 1);
	db_uleb(d, DB_RNGLISTS, 5);
	db_u8(d, DB_RNGLISTS, DW_RLE_start_end);
	db_addr(d, DB_RNGLISTS, 0x1500);
	db_addr(d, DB_RNGLISTS, 0x1501);
	db_u8(d, DB_RNGLISTS, DW_RLE_start_length);
	db_addr(d, DB_RNGLISTS, 0x1600);
	db_uleb(d, DB_RNGLISTS, 0x80);
	db_u8(d, DB_RNGLISTS, DW_RLE_start_length);
	db_addr(d, DB_RNGLISTS, 0); /* dropped */
	db_uleb(d, DB_RNGLISTS, 0x80);
	db_u8(d, DB_RNGLISTS, DW_RLE_end_of_list);
	db_u8(d, DB_RNGLISTS, 0x55); /* at 20 + ... : a list of an unknown kind */
	return d;
}

static void version_5_ranges_of_every_kind_are_read(void **state)
{
	static const char expected[] =
		"1010-1020 1300-1301 1100-1200 1200-1205 1500-1501 1600-1680 ";
	ranges_are(unit_with(with_rnglist(), DB_SECOFF(DW_AT_ranges, 20), nothing), expected, 6);
	ranges_are(unit_with(with_rnglist(), DB_U(DW_AT_ranges, DW_FORM_rnglistx, 1), nothing),
		   expected, 6);
	ranges_are(unit_with(with_rnglist(), DB_U(DW_AT_ranges, DW_FORM_rnglistx, 0), nothing), "",
		   -EBADMSG);
	ranges_are(unit_with(with_rnglist(), DB_U(DW_AT_ranges, DW_FORM_rnglistx, UINT64_MAX),
			     nothing),
		   "", -EBADMSG);
	struct db *d = with_rnglist();
	uint64_t unknown = db_at(d, DB_RNGLISTS) - 1;
	ranges_are(unit_with(d, DB_SECOFF(DW_AT_ranges, unknown), nothing), "", -EBADMSG);
	ranges_are(unit_with(with_rnglist(), DB_STR(DW_AT_ranges, "text"), nothing), "", -EBADMSG);
}

static int stop_at_once(void *ctx, struct dw_range r)
{
	return 42;
}

static void a_visitor_ends_the_walk_with_its_own_result(void **state)
{
	struct opened o = open_db(unit_with(with_rnglist(), DB_SECOFF(DW_AT_ranges, 20), nothing));
	struct dw_die die = the_die(&o);
	assert_int_equal(dw_ranges(&die, stop_at_once, NULL, NULL), 42);
	shut(&o);
}

/* ---- locations ---- */

static void one_entry(struct db *d, uint8_t kind, uint8_t op)
{
	db_u8(d, DB_LOCLISTS, kind);
	switch (kind) {
	case DW_LLE_offset_pair:
		db_uleb(d, DB_LOCLISTS, 0x10);
		db_uleb(d, DB_LOCLISTS, 0x20);
		break;
	case DW_LLE_startx_endx:
		db_uleb(d, DB_LOCLISTS, 0);
		db_uleb(d, DB_LOCLISTS, 1);
		break;
	case DW_LLE_startx_length:
		db_uleb(d, DB_LOCLISTS, 2);
		db_uleb(d, DB_LOCLISTS, 5);
		break;
	case DW_LLE_start_end:
		db_addr(d, DB_LOCLISTS, 0x1500);
		db_addr(d, DB_LOCLISTS, 0x1500);
		break;
	case DW_LLE_start_length:
		db_addr(d, DB_LOCLISTS, 0x1600);
		db_uleb(d, DB_LOCLISTS, 0x80);
		break;
	}
	db_uleb(d, DB_LOCLISTS, 1);
	db_u8(d, DB_LOCLISTS, op);
}

/* @pairs  view pairs before the list, at 16 */
static struct db *with_loclist(unsigned int pairs)
{
	struct db *d = with_list_header(DB_LOCLISTS, 1);
	db_off(d, DB_LOCLISTS, 4 + 2 * pairs);
	for (unsigned int i = 0; i < pairs; i++) {
		db_uleb(d, DB_LOCLISTS, 2 * i);
		db_uleb(d, DB_LOCLISTS, 2 * i + 1);
	}
	one_entry(d, DW_LLE_offset_pair, DW_OP_reg0);
	one_entry(d, DW_LLE_startx_endx, DW_OP_reg0 + 1);
	db_u8(d, DB_LOCLISTS, DW_LLE_base_addressx);
	db_uleb(d, DB_LOCLISTS, 1);
	one_entry(d, DW_LLE_startx_length, DW_OP_reg0 + 2);
	one_entry(d, DW_LLE_start_end, DW_OP_reg0 + 3);
	db_u8(d, DB_LOCLISTS, DW_LLE_base_address);
	db_addr(d, DB_LOCLISTS, 0x1700);
	one_entry(d, DW_LLE_default_location, DW_OP_reg0 + 4);
	one_entry(d, DW_LLE_start_length, DW_OP_reg0 + 5);
	one_entry(d, DW_LLE_offset_pair, DW_OP_reg0 + 6);
	db_u8(d, DB_LOCLISTS, DW_LLE_end_of_list);
	return d;
}

static void version_5_locations_of_every_kind_are_read(void **state)
{
	static const char expected[] =
		"1010-1020:50 1100-1200:51 1300-1305:52 1500-1500:53 everywhere:54 "
		"1600-1680:55 1710-1720:56 ";
	locations_are(unit_with(with_loclist(0), DB_SECOFF(DW_AT_location, 16), nothing), expected,
		      7);
	locations_are(
		unit_with(with_loclist(0), DB_U(DW_AT_location, DW_FORM_loclistx, 0), nothing),
		expected, 7);
	locations_are(unit_with(with_loclist(0), DB_U(DW_AT_location, DW_FORM_loclistx, 1 << 20),
				nothing),
		      "", -EBADMSG);
}

static void view_pairs_belong_to_the_entries_that_state_bounds(void **state)
{
	static const char expected[] =
		"1010v0-1020v1:50 1100v2-1200v3:51 1300v4-1305v5:52 1500v6-1500v7:53 "
		"everywhere:54 1600v8-1680v9:55 1710v10-1720v11:56 ";
	locations_are(unit_with(with_loclist(6), DB_SECOFF(DW_AT_location, 28),
				DB_SECOFF(DW_AT_GNU_locviews, 16)),
		      expected, 7);
	/* Pairs after the end of the section. */
	locations_are(unit_with(with_loclist(6), DB_SECOFF(DW_AT_location, 28),
				DB_SECOFF(DW_AT_GNU_locviews, 99999)),
		      "", -EBADMSG);
}

static void a_view_pair_inside_the_list_belongs_to_the_next_entry(void **state)
{
	struct db *d = with_list_header(DB_LOCLISTS, 0);
	db_u8(d, DB_LOCLISTS, DW_LLE_GNU_view_pair);
	db_uleb(d, DB_LOCLISTS, 1);
	db_uleb(d, DB_LOCLISTS, 2);
	one_entry(d, DW_LLE_offset_pair, DW_OP_reg0);
	one_entry(d, DW_LLE_start_end, DW_OP_reg0);
	db_u8(d, DB_LOCLISTS, DW_LLE_end_of_list);
	locations_are(unit_with(d, DB_SECOFF(DW_AT_location, 12), nothing),
		      "1010v1-1020v2:50 1500-1500:50 ", 2);
}

static struct db *with_v4_locations(void)
{
	struct db *d = db_new((struct db_format){.version = 4});
	for (uint8_t i = 0; i < 4; i++) /* two view pairs */
		db_uleb(d, DB_LOC, i);
	for (uint8_t i = 0; i < 2; i++) {
		db_addr(d, DB_LOC, 0x10);
		db_addr(d, DB_LOC, 0x20);
		db_uint(d, DB_LOC, 1, 2);
		db_u8(d, DB_LOC, DW_OP_reg0 + i);
		if (i)
			break;
		db_addr(d, DB_LOC, UINT64_MAX);
		db_addr(d, DB_LOC, 0x1800);
	}
	db_addr(d, DB_LOC, 0);
	db_addr(d, DB_LOC, 0);
	return d;
}

static void version_4_locations_follow_the_base_and_have_views(void **state)
{
	locations_are(unit_with(with_v4_locations(), DB_SECOFF(DW_AT_location, 4), nothing),
		      "1010-1020:50 1810-1820:51 ", 2);
	locations_are(unit_with(with_v4_locations(), DB_SECOFF(DW_AT_location, 4),
				DB_SECOFF(DW_AT_GNU_locviews, 0)),
		      "1010v0-1020v1:50 1810v2-1820v3:51 ", 2);
}

static void single_expressions_hold_everywhere(void **state)
{
	locations_are(unit_with(db_new((struct db_format){0}),
				DB_EXPR(DW_AT_location, DW_OP_fbreg, 0x70), nothing),
		      "everywhere:9170 ", 1);
	locations_are(unit_with(db_new((struct db_format){0}),
				(struct db_attr){.at = DW_AT_location, .form = DW_FORM_exprloc},
				nothing),
		      "everywhere: ", 1);
	locations_are(unit_with(db_new((struct db_format){0}), nothing, nothing), "", 0);
	locations_are(unit_with(db_new((struct db_format){0}),
				DB_U(DW_AT_location, DW_FORM_udata, 0), nothing),
		      "", -EBADMSG);
}

static void a_location_from_high_to_low_is_refused(void **state)
{
	struct db *d = with_list_header(DB_LOCLISTS, 0);
	db_u8(d, DB_LOCLISTS, DW_LLE_start_end);
	db_addr(d, DB_LOCLISTS, 0x1500);
	db_addr(d, DB_LOCLISTS, 0x1400);
	db_uleb(d, DB_LOCLISTS, 0);
	locations_are(unit_with(d, DB_SECOFF(DW_AT_location, 12), nothing), "", -EBADMSG);
}

/* ---- lines ---- */

struct line_mark {
	uint64_t length, header;
};

/* Line base -5, line range 14, opcode base 13. */
static struct line_mark line_start(struct db *d, uint16_t version, uint8_t max_ops,
				   uint8_t line_range)
{
	static const uint8_t operands[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	struct line_mark m = {.length = db_length(d, DB_LINE)};
	db_uint(d, DB_LINE, version, 2);
	if (version == 5)
		db_uint(d, DB_LINE, 8, 2);
	db_off(d, DB_LINE, 0);
	m.header = db_at(d, DB_LINE);
	db_u8(d, DB_LINE, 1);
	if (version >= 4)
		db_u8(d, DB_LINE, max_ops);
	db_u8(d, DB_LINE, 1);
	db_u8(d, DB_LINE, (uint8_t)-5);
	db_u8(d, DB_LINE, line_range);
	db_u8(d, DB_LINE, 13);
	db_bytes(d, DB_LINE, operands, sizeof(operands));
	return m;
}

static void no_files(struct db *d, uint16_t version)
{
	db_uint(d, DB_LINE, 0, version < 5 ? 2 : 4);
}

static void line_ops(struct db *d, struct line_mark m)
{
	db_patch(d, DB_LINE, m.header - 4, db_at(d, DB_LINE) - m.header, 4);
}

static void set_address(struct db *d, uint64_t at)
{
	db_u8(d, DB_LINE, 0);
	db_uleb(d, DB_LINE, 9);
	db_u8(d, DB_LINE, DW_LNE_set_address);
	db_addr(d, DB_LINE, at);
}

static void end_sequence(struct db *d, uint64_t advance)
{
	db_u8(d, DB_LINE, DW_LNS_advance_pc);
	db_uleb(d, DB_LINE, advance);
	db_u8(d, DB_LINE, 0);
	db_uleb(d, DB_LINE, 1);
	db_u8(d, DB_LINE, DW_LNE_end_sequence);
}

static struct db *line_unit(struct db *d)
{
	db_unit(d, DW_UT_compile);
	DB_DIE(d, DW_TAG_compile_unit, DB_LEAF, DB_STR(DW_AT_comp_dir, "/src"),
	       DB_STR(DW_AT_name, "a.c"), DB_U(DW_AT_stmt_list, DW_FORM_data4, 0));
	db_unit_end(d);
	return d;
}

static void rows_are(struct db *d, const char *expected)
{
	struct opened o = open_db(d);
	const struct dw_row *rows;
	char text[1024] = "";
	assert_int_equal(o.rc, 0);
	int64_t n = dw_unit_rows(dwarf_unit(o.dw, 0), &rows, &o.err);
	if (n < 0)
		fail_msg("%s", o.err.msg);
	for (int64_t i = 0; i < n; i++) {
		const struct dw_row *r = &rows[i];
		size_t len = strlen(text);
		if (r->end_sequence)
			snprintf(text + len, sizeof(text) - len, "%" PRIx64 " end; ", r->at.v);
		else
			snprintf(text + len, sizeof(text) - len, "%" PRIx64 " %u:%u:%u v%u%s%s; ",
				 r->at.v, r->file, r->line, r->column, r->view,
				 r->is_stmt ? "" : " no", r->prologue_end ? " pe" : "");
	}
	assert_string_equal(text, expected);
	shut(&o);
}

static void every_opcode_does_what_the_standard_says(void **state)
{
	for (uint16_t version = 2; version <= 5; version++) {
		struct db *d = db_new((struct db_format){.version = version});
		struct line_mark m = line_start(d, version, 1, 14);
		no_files(d, version);
		line_ops(d, m);
		set_address(d, 0x1000);
		db_u8(d, DB_LINE, DW_LNS_copy);
		db_u8(d, DB_LINE, 0x4b);   /* +4, line + 1 */
		db_u8(d, DB_LINE, 13 + 5); /* +0, line + 0 */
		db_u8(d, DB_LINE, DW_LNS_set_prologue_end);
		db_u8(d, DB_LINE, DW_LNS_advance_line);
		db_sleb(d, DB_LINE, -1);
		db_u8(d, DB_LINE, DW_LNS_negate_stmt);
		db_u8(d, DB_LINE, DW_LNS_copy);
		db_u8(d, DB_LINE, DW_LNS_set_file);
		db_uleb(d, DB_LINE, 3);
		db_u8(d, DB_LINE, DW_LNS_set_column);
		db_uleb(d, DB_LINE, 77);
		db_u8(d, DB_LINE, DW_LNS_set_basic_block);
		db_u8(d, DB_LINE, DW_LNS_set_epilogue_begin);
		db_u8(d, DB_LINE, DW_LNS_set_isa);
		db_uleb(d, DB_LINE, 300);
		db_u8(d, DB_LINE, DW_LNS_const_add_pc); /* (255 - 13) / 14 = 17 */
		db_u8(d, DB_LINE, DW_LNS_copy);
		db_u8(d, DB_LINE, 0); /* discriminator: no change */
		db_uleb(d, DB_LINE, 2);
		db_u8(d, DB_LINE, DW_LNE_set_discriminator);
		db_uleb(d, DB_LINE, 9);
		db_u8(d, DB_LINE, DW_LNS_fixed_advance_pc);
		db_uint(d, DB_LINE, 0x100, 2);
		db_u8(d, DB_LINE, DW_LNS_copy);
		end_sequence(d, 1);
		db_length_end(d, DB_LINE, m.length);
		rows_are(line_unit(d),
			 "1000 1:1:0 v0; 1004 1:2:0 v0; 1004 1:2:0 v1; 1004 1:1:0 v2 no pe; "
			 "1015 3:1:77 v0 no; 1115 3:1:77 v1 no; 1116 end; ");
	}
}

static void sequences_are_sorted_and_dropped_ones_left_out(void **state)
{
	static const uint64_t starts[] = {0x1800, 0, 0x1000, UINT64_MAX, 0x1010, 0x1020};
	struct db *d = db_new((struct db_format){0});
	struct line_mark m = line_start(d, 5, 1, 14);
	no_files(d, 5);
	line_ops(d, m);
	for (size_t i = 0; i < 6; i++) {
		set_address(d, starts[i]);
		db_u8(d, DB_LINE, DW_LNS_copy);
		end_sequence(d, starts[i] == 0x1020 ? 0 : 0x10);
	}
	db_length_end(d, DB_LINE, m.length);
	/*
	 * The end of one stands before the start of the next; that of an empty one after its start.
	 */
	rows_are(line_unit(d),
		 "1000 1:1:0 v0; 1010 end; 1010 1:1:0 v0; 1020 end; 1020 1:1:0 v0; 1020 end; "
		 "1800 1:1:0 v0; 1810 end; ");
}

static int see_rows(void *ctx, const struct dw_row *rows, size_t n_rows)
{
	struct seen *s = ctx;
	for (size_t i = 0; i < n_rows; i++) {
		size_t n = strlen(s->text);
		snprintf(s->text + n, sizeof(s->text) - n, "%" PRIx64 " ", rows[i].at.v);
		if (rows[i].at.v == 0x1234)
			return 42;
	}
	return 0;
}

static void visited_rows_come_in_the_order_of_the_program(void **state)
{
	static const uint64_t starts[] = {0x1800, 0, 0x1000, 0x1234, 0x1300};
	for (size_t n = 3; n <= 5; n += 2) {
		struct db *d = db_new((struct db_format){0});
		struct line_mark m = line_start(d, 5, 1, 14);
		struct seen s = {""};
		no_files(d, 5);
		line_ops(d, m);
		for (size_t i = 0; i < n; i++) {
			set_address(d, starts[i]);
			db_u8(d, DB_LINE, DW_LNS_copy);
			end_sequence(d, 0x10);
		}
		db_length_end(d, DB_LINE, m.length);
		struct opened o = open_db(line_unit(d));
		assert_int_equal(o.rc, 0);
		/* The visitor ends the walk at 0x1234. */
		assert_int_equal(dw_unit_visit_rows(dwarf_unit(o.dw, 0), see_rows, &s, NULL),
				 n > 3 ? 42 : 0);
		assert_string_equal(s.text, n > 3 ? "1800 0 1000 1234 " : "1800 0 1000 ");
		shut(&o);
	}
}

static void rows_that_do_not_rise_are_sorted_all_the_same(void **state)
{
	struct db *d = db_new((struct db_format){0});
	struct line_mark m = line_start(d, 5, 1, 14);
	no_files(d, 5);
	line_ops(d, m);
	for (unsigned int i = 0; i < 5; i++) {
		set_address(d, 0x1000 + (i * 3 % 5) * 0x10);
		db_u8(d, DB_LINE, 13 + 6); /* line + 1 */
	}
	set_address(d, 0x1100);
	end_sequence(d, 0);
	db_length_end(d, DB_LINE, m.length);
	rows_are(line_unit(d),
		 "1000 1:2:0 v0; 1010 1:4:0 v0; 1020 1:6:0 v0; 1030 1:3:0 v0; 1040 1:5:0 v0; "
		 "1100 end; ");
}

static void operations_of_a_wide_instruction_share_its_address(void **state)
{
	struct db *d = db_new((struct db_format){0});
	struct line_mark m = line_start(d, 5, 3, 14);
	no_files(d, 5);
	line_ops(d, m);
	set_address(d, 0x1000);
	for (int i = 0; i < 4; i++)
		db_u8(d, DB_LINE, 13 + 14 + 5); /* one operation on */
	end_sequence(d, 2);
	db_length_end(d, DB_LINE, m.length);
	rows_are(line_unit(d),
		 "1000 1:1:0 v0; 1000 1:1:0 v0; 1001 1:1:0 v0; 1001 1:1:0 v0; 1002 end; ");
}

static void damaged_line_programs_are_refused(void **state)
{
	/* clang-format off */
	static const struct {
		uint8_t max_ops, line_range, op;
		uint16_t version;
		int rc;
	} cases[] = {
		{0, 14, DW_LNS_copy, 5, -EBADMSG}, {1, 0, 200, 5, -EBADMSG},
		{1, 0, DW_LNS_const_add_pc, 5, -EBADMSG}, {1, 14, DW_LNS_advance_pc, 5, -EBADMSG},
		{1, 14, DW_LNS_copy, 5, -EBADMSG}, /* a sequence without end */
		{1, 14, DW_LNS_copy, 6, -EOPNOTSUPP},
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct db *d = db_new((struct db_format){0});
		struct line_mark m =
			line_start(d, cases[i].version, cases[i].max_ops, cases[i].line_range);
		no_files(d, 5);
		line_ops(d, m);
		db_u8(d, DB_LINE, cases[i].op);
		db_length_end(d, DB_LINE, m.length);
		struct opened o = open_db(line_unit(d));
		const struct dw_row *rows;
		assert_int_equal(o.rc, 0);
		assert_int_equal(dw_unit_rows(dwarf_unit(o.dw, 0), &rows, &o.err), cases[i].rc);
		assert_int_equal(o.err.code, cases[i].rc);
		shut(&o);
	}
}

static void a_unit_without_a_line_program_has_no_rows(void **state)
{
	struct opened o = open_db(unit_with(db_new((struct db_format){0}), nothing, nothing));
	const struct dw_row *rows;
	assert_int_equal(dw_unit_rows(dwarf_unit(o.dw, 0), &rows, &o.err), 0);
	assert_null(dw_unit_file(dwarf_unit(o.dw, 0), 1));
	shut(&o);
}

static void paths_of_version_4_count_from_1(void **state)
{
	struct db *d = db_new((struct db_format){.version = 4});
	struct line_mark m = line_start(d, 4, 1, 14);
	/* clang-format off */
	static const struct {
		const char *name;
		uint8_t dir;
		const char *path;
	} files[] = {
		{"a.c", 0, "/src/a.c"}, {"b.h", 1, "/src/include/b.h"}, {"c.h", 2, "/usr/include/c.h"},
		{"/abs/d.h", 1, "/abs/d.h"}, {"e.h", 9, "/src/e.h"},
	};
	/* clang-format on */
	db_cstr(d, DB_LINE, "include");
	db_cstr(d, DB_LINE, "/usr/include");
	db_u8(d, DB_LINE, 0);
	for (size_t i = 0; i < 5; i++) {
		db_cstr(d, DB_LINE, files[i].name);
		db_uleb(d, DB_LINE, files[i].dir);
		db_uint(d, DB_LINE, 0, 2);
	}
	db_u8(d, DB_LINE, 0);
	line_ops(d, m);
	db_length_end(d, DB_LINE, m.length);
	struct opened o = open_db(line_unit(d));
	const struct dw_unit *u = dwarf_unit(o.dw, 0);
	assert_null(dw_unit_file(u, 0));
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(dw_unit_file(u, i + 1), files[i].path);
	assert_null(dw_unit_file(u, 6));
	/* The same pointer each time: it may be kept. */
	assert_ptr_equal(dw_unit_file(u, 1), dw_unit_file(u, 1));
	shut(&o);
}

static void paths_of_version_5_count_from_0_whatever_the_forms(void **state)
{
	static const uint8_t dirs[] = {1, DW_LNCT_path, DW_FORM_line_strp};
	static const uint8_t files[] = {4,
					DW_LNCT_MD5,
					DW_FORM_data16,
					DW_LNCT_path,
					DW_FORM_strp,
					DW_LNCT_directory_index,
					DW_FORM_data1,
					0x80,
					0x40 /* vendor's */,
					DW_FORM_block1};
	struct db *d = db_new((struct db_format){0});
	struct line_mark m = line_start(d, 5, 1, 14);
	db_bytes(d, DB_LINE, dirs, sizeof(dirs));
	db_uleb(d, DB_LINE, 2);
	db_off(d, DB_LINE, 0);
	db_off(d, DB_LINE, 6);
	db_cstr(d, DB_LINE_STR, "/proj");
	db_cstr(d, DB_LINE_STR, "lib");
	db_bytes(d, DB_LINE, files, sizeof(files));
	db_uleb(d, DB_LINE, 2);
	for (uint8_t i = 0; i < 2; i++) {
		db_uint(d, DB_LINE, 0x1234, 16);
		db_off(d, DB_LINE, db_str(d, i ? "b.c" : "a.c"));
		db_u8(d, DB_LINE, i);
		db_u8(d, DB_LINE, 2);
		db_uint(d, DB_LINE, 0xffff, 2);
	}
	line_ops(d, m);
	db_length_end(d, DB_LINE, m.length);
	struct opened o = open_db(line_unit(d));
	const struct dw_unit *u = dwarf_unit(o.dw, 0);
	assert_string_equal(dw_unit_file(u, 0), "/proj/a.c");
	assert_string_equal(dw_unit_file(u, 1), "/proj/lib/b.c");
	assert_null(dw_unit_file(u, 2));
	shut(&o);
}

static void a_count_of_2_to_the_60_files_without_bytes_ends_at_once(void **state)
{
	static const uint8_t dirs[] = {1, DW_LNCT_path, DW_FORM_flag_present};
	struct db *d = db_new((struct db_format){0});
	struct line_mark m = line_start(d, 5, 1, 14);
	db_bytes(d, DB_LINE, dirs, sizeof(dirs));
	db_uleb(d, DB_LINE, (uint64_t)1 << 60);
	line_ops(d, m);
	db_length_end(d, DB_LINE, m.length);
	struct opened o = open_db(line_unit(d));
	assert_null(dw_unit_file(dwarf_unit(o.dw, 0), 1));
	shut(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(low_and_high_pc_are_one_range),
		cmocka_unit_test(code_that_the_linker_dropped_is_left_out),
		cmocka_unit_test(version_4_ranges_follow_the_base_address),
		cmocka_unit_test(version_5_ranges_of_every_kind_are_read),
		cmocka_unit_test(a_visitor_ends_the_walk_with_its_own_result),
		cmocka_unit_test(version_5_locations_of_every_kind_are_read),
		cmocka_unit_test(view_pairs_belong_to_the_entries_that_state_bounds),
		cmocka_unit_test(a_view_pair_inside_the_list_belongs_to_the_next_entry),
		cmocka_unit_test(version_4_locations_follow_the_base_and_have_views),
		cmocka_unit_test(single_expressions_hold_everywhere),
		cmocka_unit_test(a_location_from_high_to_low_is_refused),
		cmocka_unit_test(every_opcode_does_what_the_standard_says),
		cmocka_unit_test(sequences_are_sorted_and_dropped_ones_left_out),
		cmocka_unit_test(visited_rows_come_in_the_order_of_the_program),
		cmocka_unit_test(rows_that_do_not_rise_are_sorted_all_the_same),
		cmocka_unit_test(operations_of_a_wide_instruction_share_its_address),
		cmocka_unit_test(damaged_line_programs_are_refused),
		cmocka_unit_test(a_unit_without_a_line_program_has_no_rows),
		cmocka_unit_test(paths_of_version_4_count_from_1),
		cmocka_unit_test(paths_of_version_5_count_from_0_whatever_the_forms),
		cmocka_unit_test(a_count_of_2_to_the_60_files_without_bytes_ends_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
