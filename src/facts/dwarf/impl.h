/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data that the files of this module share: sections and units
 *
 *	struct dwarf
 *	  file[0]: the debug file      sec[]: .debug_info .debug_types .debug_abbrev ...
 *	  file[1]: dwz's alternate     sec[]
 *	  split.file[]: .dwo, .dwp     sec[]: .debug_info.dwo ...; .debug_addr of file[0]
 *	  units[]: in order of dw_off   ──► abbrevs (shared by units of one table)
 *
 * dwarf_open() makes all of it, and it is constant from then on. The exceptions are the line tables
 * and the list of scopes of a unit: the first user makes one and publishes it with one
 * compare-and-swap.
 */
#ifndef DWARF_IMPL_H
#define DWARF_IMPL_H

#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "dwarf/abbrev.h"
#include "dwarf/dwarf.h"

/* Limits on what input may make us allocate, each with its reason. */
enum {
	/* No known program has a million; each costs some 250 bytes here, and 11 bytes of input. */
	DW_UNITS_MAX = 4 << 20,
	/*
	 * Bytes of abbreviation tables that are compiled, as a multiple of .debug_abbrev. Tables do
	 * not overlap, so linkers need 1; a table may be compiled again for another size of address
	 * or offset. Without it, n units pointing one after the other into one large table would
	 * cost n times its size.
	 */
	DW_ABBREV_OVERLAP_MAX = 8,
	/*
	 * Real DIEs have up to 30 attributes. Some take no bytes in the DIE, so that a tiny unit
	 * could make us walk a large table.
	 */
	DW_ATTRS_MAX = 1024,
};

enum dw_sec {
	DW_SEC_INFO,
	DW_SEC_TYPES,
	DW_SEC_ABBREV,
	DW_SEC_STR,
	DW_SEC_LINE_STR,
	DW_SEC_STR_OFFSETS,
	DW_SEC_ADDR,
	DW_SEC_RANGES,
	DW_SEC_RNGLISTS,
	DW_SEC_LOC,
	DW_SEC_LOCLISTS,
	DW_SEC_LINE,
	DW_N_SECS
};

struct dw_section {
	const uint8_t *p;
	uint64_t n;
	struct cursor_src src;
	bool ends_in_nul; /* then every string that starts inside also ends inside */
};

/* One ELF file with DWARF. */
struct dw_file {
	const struct dwarf *dw;
	struct elf *elf;
	const char *path;
	/* where its _alt and _sup forms point; NULL when there is none */
	const struct dw_file *alt;
	dw_off tag; /* DW_OFF_ALT, the number of a .dwo file or 0: marks its DIEs */
	bool relocatable;
	bool is_split; /* a .dwo file, or a package of them */
	struct dw_section sec[DW_N_SECS];
	uint8_t *joined[2]; /* bytes of .debug_info, .debug_types, when they are our own */
};

struct dw_files;      /* file table of a line program, line_files.c */
struct dw_rows;       /* its rows, line.c */
struct dw_positions;  /* its lines and columns by address, positions.c */
struct dw_scope_list; /* its scopes, scopes.c */

struct dw_unit {
	struct dwarf *dw;
	const struct dw_file *file;
	const struct dw_section *sec; /* .debug_info or .debug_types of @file */
	const struct dw_abbrevs *abbrevs;
	const uint8_t *dies, *end; /* first DIE, first byte after the unit */
	dw_off tag;                /* DW_OFF_ALT, DW_OFF_TYPES, 0: or it to offsets in @sec */
	uint64_t off;              /* of the header, in @sec */
	uint64_t abbrev_off;
	uint64_t signature, type_off; /* of a type unit; type_off from the header */
	uint32_t index;
	uint16_t version, language;
	uint8_t addr_size, offset_size, unit_type;
	bool gcc, clang, lto, optimised, follows_assignments, renames_webs;
	bool lists_special_members, may_throw_anywhere;
	bool is_type_unit;

	/* From the root DIE. */
	bool has_str_offsets_base, has_addr_base, has_rnglists_base, has_loclists_base,
		has_stmt_list;
	uint64_t str_offsets_base, addr_base, rnglists_base, loclists_base, stmt_list;
	uint64_t low_pc; /* base of ranges and lists; 0 when absent */
	const char *name, *comp_dir, *producer;

	/* Split DWARF, split.c. */
	bool has_dwo_id;
	uint64_t dwo_id;
	const char *dwo_name;     /* of a skeleton: the file with the rest; NULL for others */
	uint64_t gnu_ranges_base; /* of a skeleton: for the DW_AT_ranges of the rest */
	uint64_t ranges_at, locations_at; /* added to offsets of lists in attributes */
	const struct dw_file *line_file;  /* the file whose .debug_line @stmt_list is in */
	/* the file whose .debug_rnglists has its ranges; NULL: its own */
	const struct dw_file *ranges_file;

	_Atomic(struct dw_files *) files;
	_Atomic(struct dw_rows *) rows;
	_Atomic(struct dw_positions *) positions;
	_Atomic(struct dw_scope_list *) scopes;
};

/* The files that exist because of -gsplit-dwarf. */
struct dw_split {
	struct dw_file *file;
	size_t n_files;
	size_t n_missing;
	VEC(char) missing; /* which, and where was looked; a line each */
};

struct dwarf {
	const struct cairn_binary *bin;
	unsigned int threads; /* of dwarf_open(): for all that is read of it later, too */
	struct dw_file file[2];
	struct dw_split split;
	struct dw_unit *units; /* in order of dw_off */
	size_t n_units;
	struct dw_tables tables, split_tables;
	struct map signatures; /* of a type: to the index of its unit */
};

/* Cursors. */
static inline struct cursor dw_section_cursor(const struct dw_section *s, uint64_t off,
					      struct cairn_err *err)
{
	uint64_t at = off < s->n ? off : s->n;
	struct cursor c = cursor_of(&s->src, s->p + at, s->n - at, false, err);
	if (off > s->n)
		cur_fail(&c, "the section it should be in");
	return c;
}

static inline struct cursor dw_unit_cursor(const struct dw_unit *u, const uint8_t *p,
					   struct cairn_err *err)
{
	return cursor_of(&u->sec->src, p, (size_t)(u->end - p), false, err);
}

/*
 * Mark failed because the bytes there make no sense, as cur_fail() does where there are none. The
 * error is -EBADMSG. The user of a failed cursor returns dw_failure(): -EOPNOTSUPP after
 * dw_unknown(), else -EBADMSG.
 */
void dw_expected(struct cursor *c, const char *what);
void dw_unknown(struct cursor *c, const char *what, uint64_t value);
int dw_failure(const struct cursor *c);

/* Little-endian loads of bytes whose presence was checked for the whole run. */
static inline uint16_t dw_load_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t dw_load_u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t dw_load_u64(const uint8_t *p)
{
	return dw_load_u32(p) | (uint64_t)dw_load_u32(p + 4) << 32;
}

/* files.c: the sections of an ELF file; none for NULL. */
int dw_file_init(struct dw_file *file, const struct dwarf *dw, struct elf *elf, bool is_split,
		 struct cairn_err *err);
void dw_file_fini(struct dw_file *file);
/*
 * Decompresses the sections of a file that dw_file_init() will need, several at a time; takes NULL.
 */
void dw_sections_make_ready(struct elf *elf, unsigned int threads);

/* unit_header.c: adds the units of a section to @ret. */
struct dw_unit_list {
	struct dw_unit *p;
	size_t n, cap;
};
int dw_headers_read(struct dwarf *dw, const struct dw_file *file, enum dw_sec id,
		    struct dw_unit_list *ret, struct cairn_err *err);

/* unit_root.c: facts that others are read by, then the rest; 0 or negative. */
int dw_root_read_bases(struct dw_unit *u, struct cairn_err *err);
int dw_root_read_facts(struct dw_unit *u, struct cairn_err *err);

/* producer.c: what the compiler's name and options say; @producer stays the caller's. */
void dw_producer_read(struct dw_unit *u, const char *producer);
/* DIE at @p of a unit; as dw_die_at(). */
int dw_die_parse(const struct dw_unit *u, const uint8_t *p, struct dw_die *ret,
		 struct cairn_err *err);

/*
 * The abbreviation of the DIE at @p, when its code is a small index, as nearly all are; NULL
 * otherwise, and of a null entry.
 */
static inline const struct dw_abbrev *dw_usual_abbrev(const struct dw_unit *u, const uint8_t *p)
{
	const struct dw_abbrevs *t = u->abbrevs;
	return p < u->end && *p < 0x80 && (size_t)*p - 1 < t->n && !t->codes ? t->p[*p - 1] : NULL;
}

/* The DIE at @p, whose attributes begin at @attrs. */
static inline void dw_die_init(struct dw_die *die, const struct dw_unit *u,
			       const struct dw_abbrev *a, const uint8_t *p, const uint8_t *attrs)
{
	die->unit = u;
	die->abbrev = a;
	die->off = (uint64_t)(p - u->sec->p) | u->tag;
	die->tag = a->tag;
	die->has_children = a->has_children;
	die->attrs = attrs;
}

/* split.c: reads the units of skeletons. */
int dw_split_read(struct dwarf *dw, unsigned int threads, struct cairn_err *err);
void dw_split_fini(struct dw_split *split);

/* units.c */
int dw_units_read(struct dwarf *dw, unsigned int threads, struct cairn_err *err);

/* die.c: dw_attr() of one that is not near, or is unusual, or damaged. */
int dw_attr_by_pair(const struct dw_die *die, uint16_t at, struct dw_value *ret,
		    struct cairn_err *err);
/* die.c: true if the DIE's DW_AT_sibling is usable; sets the offset of the next DIE. */
bool dw_die_jump(const struct dw_die *die, const uint8_t *skip_attrs, const uint8_t **ret);
/* Follows DW_AT_specification, DW_AT_abstract_origin, DW_AT_signature. 1, 0 none, negative. */
int dw_die_origin(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err);

/* line_files.c, line.c, positions.c: frees the memory of a unit's line tables. */
void dw_files_free(struct dw_files *files);
void dw_rows_free(struct dw_rows *rows);
void dw_positions_free(struct dw_positions *p);
/* scopes.c */
void dw_scope_list_free(struct dw_scope_list *list);

#endif
