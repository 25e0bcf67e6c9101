/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DWARF for tests, written in readable code
 *
 *	struct db *d = db_new((struct db_format){.version = 5});
 *	int add = db_label(d);
 *	db_unit(d, DW_UT_compile);
 *	DB_DIE(d, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"));
 *	db_here(d, add);
 *	DB_DIE(d, DW_TAG_subprogram, DB_LEAF, DB_STRP(DW_AT_name, "add"), DB_U(DW_AT_inline, DW_FORM_data1, 1));
 *	DB_DIE(d, DW_TAG_inlined_subroutine, DB_LEAF, DB_REF(DW_AT_abstract_origin, add));
 *	db_null(d);
 *	db_unit_end(d);
 *	size_t size;
 *	uint8_t *elf = db_finish(d, &size);
 *	...
 *	db_free(d);
 *
 * Abbreviations are made on the way: DIEs of one shape share one. Labels are places of DIEs, which
 * may be referred to before they are bound. Everything that is not a DIE (lists, line programs) is
 * appended to its section byte by byte. Nothing is checked, so that wrong DWARF can be written too.
 * Out of memory aborts.
 */
#ifndef SAMPLES_DWARF_BUILDER_H
#define SAMPLES_DWARF_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;

enum db_sec {
	DB_INFO,
	DB_TYPES,
	DB_ABBREV,
	DB_STR_SEC,
	DB_LINE_STR,
	DB_STR_OFFSETS,
	DB_ADDR_SEC,
	DB_RANGES,
	DB_RNGLISTS,
	DB_LOC,
	DB_LOCLISTS,
	DB_LINE,
	DB_EH_FRAME, /* loaded at DB_EH_FRAME_AT */
	DB_N_SECS
};

enum { DB_EH_FRAME_AT = 0x3000 };

struct db_format {
	uint16_t version;    /* 0 means 5 */
	uint8_t offset_size; /* 0 means 4; 8 is 64-bit DWARF */
	uint8_t addr_size;   /* 0 means 8 */
	bool relocatable;    /* ET_REL instead of ET_DYN; there are no relocations */
	uint64_t code_step;  /* abbreviation codes are 1 + i * code_step; 0 means 1 */
};

struct db *db_new(struct db_format format);
void db_free(struct db *d);

/* Changes the format for the units that follow; abbreviations start anew. */
void db_format(struct db *d, struct db_format format);

/* ---- units and DIEs ---- */

/* @type  DW_UT_*; type units of version 4 go to .debug_types, as do their DIEs. */
void db_unit(struct db *d, uint8_t type);
/* The same with the fields of a type unit. */
void db_type_unit(struct db *d, uint64_t signature, int type_label);
void db_unit_end(struct db *d);

int db_label(struct db *d);
/* Binds a label to the next DIE. */
void db_here(struct db *d, int label);
/* Its offset in .debug_info or .debug_types, once it is bound. */
uint64_t db_offset(const struct db *d, int label);

struct db_attr {
	uint16_t at, form;
	uint64_t u;
	const char *str;
	const void *bytes;
	size_t n;
	int label; /* 0: none */
};

#define DB_CHILDREN true
#define DB_LEAF     false

#define DB_U(a, f, v)     ((struct db_attr){.at = (a), .form = (f), .u = (uint64_t)(v)})
#define DB_ADDR(a, v)     DB_U(a, DW_FORM_addr, v)
#define DB_FLAG(a)        DB_U(a, DW_FORM_flag_present, 1)
#define DB_STR(a, s)      ((struct db_attr){.at = (a), .form = DW_FORM_string, .str = (s)})
#define DB_STRP(a, s)     ((struct db_attr){.at = (a), .form = DW_FORM_strp, .str = (s)})
#define DB_REF(a, l)      ((struct db_attr){.at = (a), .form = DW_FORM_ref4, .label = (l)})
#define DB_REF_ADDR(a, l) ((struct db_attr){.at = (a), .form = DW_FORM_ref_addr, .label = (l)})
#define DB_EXPR(a, ...)                                                                            \
	((struct db_attr){.at = (a),                                                               \
			  .form = DW_FORM_exprloc,                                                 \
			  .bytes = (const uint8_t[]){__VA_ARGS__},                                 \
			  .n = sizeof((const uint8_t[]){__VA_ARGS__})})
#define DB_SECOFF(a, v) DB_U(a, DW_FORM_sec_offset, v)

/*
 * A DIE. Attributes with a string use .str for string, strp, line_strp; all others use .u, or
 * .bytes for blocks, or .label for references. DW_FORM_indirect stands in front: .u is the real
 * form, .str .bytes .label its value, or .n for a number.
 */
void db_die(struct db *d, uint16_t tag, bool children, const struct db_attr *attrs);
enum {
	DB_ATTRS_MAX = 24
}; /* of one DIE in DB_DIE(); what is not given is zero and ends the list */
#define DB_DIE(d, tag, children, ...)                                                              \
	db_die(d, tag, children, (const struct db_attr[DB_ATTRS_MAX]){__VA_ARGS__})
/* Ends the children of the innermost open DIE. */
void db_null(struct db *d);

/* ---- bytes ---- */

uint64_t db_at(const struct db *d, enum db_sec sec); /* where the next byte goes */
void db_u8(struct db *d, enum db_sec sec, uint8_t v);
void db_uint(struct db *d, enum db_sec sec, uint64_t v, unsigned int size);
void db_uleb(struct db *d, enum db_sec sec, uint64_t v);
void db_sleb(struct db *d, enum db_sec sec, int64_t v);
void db_bytes(struct db *d, enum db_sec sec, const void *p, size_t n);
void db_cstr(struct db *d, enum db_sec sec, const char *s); /* with its NUL */
/* A number of the format's size of offsets, of addresses. */
void db_off(struct db *d, enum db_sec sec, uint64_t v);
void db_addr(struct db *d, enum db_sec sec, uint64_t v);
/* Offset of a string in .debug_str; the same string is stored once. */
uint64_t db_str(struct db *d, const char *s);

/* A length field of the format, to be closed when what it counts has been written. */
uint64_t db_length(struct db *d, enum db_sec sec);
void db_length_end(struct db *d, enum db_sec sec, uint64_t mark);

/* Overwrites. */
void db_patch(struct db *d, enum db_sec sec, uint64_t at, uint64_t v, unsigned int size);

/* The section will end after @n bytes. Nothing may be added to it afterwards. */
void db_cut(struct db *d, enum db_sec sec, uint64_t n);

/*
 * Instructions at 0x1000 and on, at most 256 bytes; the rest is zeros. Borrowed until db_finish().
 */
void db_code(struct db *d, const uint8_t *code, size_t n);

/* ---- the file ---- */

/*
 * An ELF file with .text at 0x1000 (0x1000 bytes) and the sections that have content; owned by @d.
 */
uint8_t *db_finish(struct db *d, size_t *ret_size);

#endif
