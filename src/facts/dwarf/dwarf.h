/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads DWARF: units, DIEs, attributes, ranges, location lists, lines
 *
 * Versions 4 and 5 (2 and 3 as far as they are the same), 32- and 64-bit DWARF, in the debug file
 * of a binary and in dwz's alternate file. There are two ways to use it:
 *
 *  - by address of a DIE: dw_die_at(), then children, attributes, lists;
 *  - by a scan over everything: the function index (index.h), which steps over all DIEs with
 *    compiled abbreviations, in parallel by unit, and keeps the few that describe code.
 *
 * All pointers borrow the mapped sections. After dwarf_open() any number of threads may read a
 * struct dwarf. Data that is computed on first use (unit headers of the alternate file, line
 * tables) is serialised inside.
 */
#ifndef DWARF_DWARF_H
#define DWARF_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/addr.h>
#include <cairn/err.h>

#include "elf/elf.h"

struct dwarf;
struct dw_unit;
struct dw_abbrev;

/*
 * The identity of a DIE: its offset in .debug_info of the debug file. With DW_OFF_ALT it is in the
 * alternate file's, with DW_OFF_TYPES in .debug_types (DWARF 4 type units). The bits above
 * DW_OFF_DWO are the number of the .dwo file or package that has it, counted from 1. 0 is no DIE (a
 * header is there).
 *
 *	63   62     61 ... 40       39 ... 0
 *	ALT  TYPES  number of .dwo  offset in the section
 */
typedef uint64_t dw_off;
#define DW_OFF_ALT   ((dw_off)1 << 63)
#define DW_OFF_TYPES ((dw_off)1 << 62)
#define DW_OFF_DWO   ((dw_off)1 << 40)

static inline uint64_t dw_off_in_section(dw_off off)
{
	return off & (DW_OFF_DWO - 1);
}

struct dw_die {
	const struct dw_unit *unit;
	const struct dw_abbrev *abbrev;
	dw_off off;
	uint16_t tag; /* DW_TAG_*, dwarf/constants.h */
	bool has_children;
	const uint8_t *attrs; /* first attribute value, in place */
};

/* One attribute value, decoded as far as its form allows. */
enum dw_class {
	DW_CLASS_NONE,
	DW_CLASS_ADDRESS,
	DW_CLASS_UDATA,     /* u: constant of a form without sign (data1 ... data8, udata) */
	DW_CLASS_SDATA,     /* s: sdata, implicit_const */
	DW_CLASS_BLOCK,     /* block: also data16 */
	DW_CLASS_EXPRLOC,   /* block */
	DW_CLASS_FLAG,      /* u */
	DW_CLASS_STRING,    /* str */
	DW_CLASS_REF,       /* ref: also across units and to the alternate file */
	DW_CLASS_SIGNATURE, /* u: 8-byte type signature */
	/* u: offset or index into a list section (the form decides: see dwarf ranges, lists) */
	DW_CLASS_SECOFF,
};

struct dw_value {
	enum dw_class cls;
	uint16_t form;
	union {
		uint64_t u;
		int64_t s;
		const char *str;
		dw_off ref;
		struct cairn_vaddr addr;
		struct {
			const uint8_t *p;
			uint64_t n;
		} block;
	};
};

/*
 * dwarf_open - unit headers and abbreviations of a binary's debug information
 *
 * @threads  as in pool_run()
 * Returns 0. -ENODATA: the binary has no DWARF (err: where it was searched). -EBADMSG: damaged unit
 * header, abbreviation table or root DIE. -EOPNOTSUPP: unknown version.
 * Split DWARF: the .dwo files that skeleton units name, or a package of them (FILE.dwp), are opened
 * here. A missing one is no error, see dwarf_missing().
 * Cost: reads unit headers, each distinct abbreviation table once, and the root DIEs.
 */
int dwarf_open(const struct cairn_binary *bin, unsigned int threads, struct dwarf **ret,
	       struct cairn_err *err);
void dwarf_close(struct dwarf *dw);

/*
 * dwarf_release - drop everything but strings for now
 *
 * Its memory goes back to the system, see elf_release(): names that were found stay in it. Cost:
 * one system call for each section; for a kernel the time that closing the file would take
 * otherwise.
 * Threads: any, also while others read.
 */
void dwarf_release(const struct dwarf *dw);
const struct cairn_binary *dwarf_binary(const struct dwarf *dw);

/*
 * dwarf_missing - the .dwo files that were not found: their content is not known
 *
 * @ret  for the first few, where they were searched and why each candidate was refused, one per
 *       line; "" if none is missing. Lives as long as @dw.
 * Returns their number.
 */
size_t dwarf_missing(const struct dwarf *dw, const char **ret);

/* ---- units ---- */

/* Units in order of offset: .debug_info, then .debug_types, then those of the alternate file. */
size_t dwarf_n_units(const struct dwarf *dw);
const struct dw_unit *dwarf_unit(const struct dwarf *dw, size_t i);
/* The unit that holds a DIE; NULL when the offset is in none. O(log units). */
const struct dw_unit *dwarf_unit_of(const struct dwarf *dw, dw_off off);

/* The DIE of the type that a DW_CLASS_SIGNATURE value names; 0 when no type unit has it. */
dw_off dwarf_type_of_signature(const struct dwarf *dw, uint64_t signature);

/* Offset of its header: references inside a unit count from there. */
dw_off dw_unit_off(const struct dw_unit *u);
uint16_t dw_unit_version(const struct dw_unit *u);
uint8_t dw_unit_addr_size(const struct dw_unit *u);
uint8_t dw_unit_offset_size(const struct dw_unit *u); /* 4 or 8 */
bool dw_unit_is_type_unit(const struct dw_unit *u);
/* The unit's root DIE. Returns 1, 0 for an empty unit, -EBADMSG. */
int dw_unit_root(const struct dw_unit *u, struct dw_die *ret, struct cairn_err *err);

/*
 * Facts from the root DIE, read once when the unit is opened. Strings "" and numbers 0 when absent.
 */
const char *dw_unit_name(const struct dw_unit *u);
const char *dw_unit_comp_dir(const struct dw_unit *u);
uint16_t dw_unit_language(const struct dw_unit *u);
/* C of any year; not languages built on it. */
bool dw_unit_is_c(const struct dw_unit *u);
bool dw_unit_is_cxx(const struct dw_unit *u);   /* C++ of any year */
bool dw_unit_is_gcc(const struct dw_unit *u);   /* by producer: "GNU " */
bool dw_unit_is_clang(const struct dw_unit *u); /* by producer: contains "clang" */
/* by producer: GCC's back end at link time, "GNU GIMPLE" */
bool dw_unit_is_lto(const struct dw_unit *u);
bool dw_unit_is_optimised(const struct dw_unit *u); /* by producer: " -O", but not " -O0" */
/*
 * False by producer for GCC's -fno-var-tracking-assignments: a variable is described by the register
 * that the compiler chose for it, also before the register is set.
 */
bool dw_unit_follows_assignments(const struct dw_unit *u);
/*
 * By producer: GCC with -fweb, also by -funroll-loops or a profile. A description may name a
 * register that holds another value (docs/findings/gcc-web-renames-registers.md).
 */
bool dw_unit_renames_webs(const struct dw_unit *u);
/*
 * By producer: GCC with -fnon-call-exceptions, which Ada, D and Go have by default, or with no record
 * of its options. An instruction that is no call may then lead to a landing pad.
 */
bool dw_unit_may_throw_anywhere(const struct dw_unit *u);
/*
 * Describes functions without their types and parameters: GCC's -g1 by its producer; -C debuginfo=1
 * of Rust, by abbreviations.
 */
bool dw_unit_is_terse(const struct dw_unit *u);

/*
 * By producer: GCC from version 8 on. It lists the special members that a C++ class declares, with
 * DW_AT_defaulted and DW_AT_deleted, except with -gstrict-dwarf or another -fabi-version.
 */
bool dw_unit_lists_special_members(const struct dw_unit *u);

/*
 * By producer: Go's own compiler, as opposed to GCC's front end for Go. From version 1.17 on it
 * states that it passes arguments in registers.
 */
enum dw_go { DW_GO_NOT, DW_GO_STACK, DW_GO_REGISTERS };
enum dw_go dw_unit_go(const struct dw_unit *u);

/* ---- DIEs ---- */

/*
 * Returns 1; 0 when there is a null entry at @off; -EBADMSG when @off is in no unit or not
 * decodable.
 */
int dw_die_at(const struct dwarf *dw, dw_off off, struct dw_die *ret, struct cairn_err *err);

/* The same, cheaper, for a DIE that usually is in unit @u: one that a DIE of @u refers to. */
int dw_die_near(const struct dw_unit *u, dw_off off, struct dw_die *ret, struct cairn_err *err);

/*
 * Have the bytes of a DIE of @u fetched meanwhile: references lead anywhere in a file that no cache
 * holds.
 */
void dw_die_prefetch(const struct dw_unit *u, dw_off off);

/*
 * dw_die_child, dw_die_sibling - first child, next sibling
 *
 * Returns 1 and *@ret, 0 when there is none, -EBADMSG.
 * Cost: a sibling after a DIE with children uses DW_AT_sibling, or steps over the whole subtree.
 */
int dw_die_child(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err);
int dw_die_sibling(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err);

/*
 * The same for callers that need parameters alone: DW_TAG_formal_parameter,
 * DW_TAG_unspecified_parameters. Other children cost little.
 */
int dw_param_child(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err);
int dw_param_sibling(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err);

/*
 * Visits the contents of a function before one of its DIEs: the scopes around that with their
 * variables, piece by piece
 *
 *	struct dw_locals w;
 *	dw_locals_enter(&w, &function);
 *	while ((what = dw_locals_next(&w, copy->off, &die)) != DW_LOCAL_NONE)
 *		...			// then with the offset of a later DIE
 */
struct dw_locals {
	const struct dw_unit *unit;
	const uint8_t *at;
};
enum dw_local {
	DW_LOCAL_NONE,  /* nothing more before @to, or the unit ends, or is damaged */
	DW_LOCAL_SCOPE, /* DW_TAG_lexical_block, DW_TAG_inlined_subroutine, with children */
	DW_LOCAL_END,
	/* DW_TAG_variable, DW_TAG_formal_parameter, with DW_AT_location or DW_AT_const_value */
	DW_LOCAL_VARIABLE,
};

void dw_locals_enter(struct dw_locals *w, const struct dw_die *function);

/*
 * dw_locals_next - the next scope or variable before @to, or the end of a scope that began
 *
 * @ret  for a scope and a variable: the DIE
 * A scope that is known to end before @to is stepped over.
 */
enum dw_local dw_locals_next(struct dw_locals *w, dw_off to, struct dw_die *ret);

/*
 * dw_attr - one attribute of a DIE itself (origins are not followed)
 *
 * Returns 1 and *@ret; 0 when it is absent; -EBADMSG, -EOPNOTSUPP (unknown form), -ENOENT (its
 * value is in an alternate file that was not found).
 */
int dw_attr(const struct dw_die *die, uint16_t at, struct dw_value *ret, struct cairn_err *err);

/*
 * dw_attr_deep - the same, following DW_AT_abstract_origin and DW_AT_specification, at most
 * DW_ORIGIN_MAX links (real chains are 3 long; a longer one is a cycle)
 *
 * @ret_die  the DIE that has it; may be NULL. It matters for file numbers: they belong to its unit.
 */
enum { DW_ORIGIN_MAX = 16 };
int dw_attr_deep(const struct dw_die *die, uint16_t at, struct dw_value *ret,
		 struct dw_die *ret_die, struct cairn_err *err);

/*
 * Short forms that give a default when the attribute is absent, of another class or damaged. For
 * facts with a safe default (names, line numbers), not for locations.
 */
const char *dw_str(const struct dw_die *die, uint16_t at);      /* NULL */
const char *dw_str_deep(const struct dw_die *die, uint16_t at); /* NULL */
uint64_t dw_udata(const struct dw_die *die, uint16_t at, uint64_t otherwise);
bool dw_flag(const struct dw_die *die, uint16_t at);
dw_off dw_ref(const struct dw_die *die, uint16_t at);      /* 0 */
dw_off dw_ref_deep(const struct dw_die *die, uint16_t at); /* 0 */

/*
 * The size in bytes of the type that a DIE has, typedefs and qualifiers aside; 0 if it is not
 * recorded, as for an array.
 */
uint64_t dw_type_bytes(const struct dw_die *die);

/*
 * The name a user would write, qualified by namespaces and classes: "std::vector<int>::size".
 * Follows specification and origin; finds the parents in a list of the unit, which is made for the
 * first name. Written to @buf as snprintf would. Returns the length needed, or -EBADMSG.
 */
int dw_qualified_name(const struct dwarf *dw, const struct dw_die *die, char *buf, size_t size);

/* ---- code ranges ---- */

struct dw_range {
	struct cairn_vaddr lo, hi;
};

/*
 * dw_ranges - the code of a DIE: DW_AT_low_pc with DW_AT_high_pc, or DW_AT_ranges
 *
 * In the order of the input; empty ranges and those the linker discarded (lo 0 or -1 in a linked
 * file) left out. @visit with a result other than 0 ends the walk.
 * Returns the number of ranges visited, 0 for a DIE without code, -EBADMSG, or the result of
 * @visit.
 */
int dw_ranges(const struct dw_die *die, int (*visit)(void *ctx, struct dw_range range), void *ctx,
	      struct cairn_err *err);

/*
 * The same, appended to @to, which the caller frees. Returns their number, -EBADMSG, -ENOMEM
 * (without a message in @err).
 */
struct dw_range_list {
	struct dw_range *p;
	size_t n, cap;
};
int dw_ranges_append(const struct dw_die *die, struct dw_range_list *to, struct cairn_err *err);

/* Whether the code of a DIE holds @at: 1, 0, or as dw_ranges(). Cost: all of its ranges. */
int dw_ranges_hold(const struct dw_die *die, struct cairn_vaddr at, struct cairn_err *err);

/* ---- location lists ---- */

struct dw_loc_entry {
	struct cairn_vaddr lo, hi;
	/*
	 * GCC's views (DW_AT_GNU_locviews): the entry holds from (lo, view_lo) to (hi, view_hi),
	 * compared as pairs, so that an entry with lo == hi is not empty when view_lo < view_hi.
	 * Both 0 without views.
	 */
	uint64_t view_lo, view_hi;
	bool has_views;
	bool everywhere; /* a single expression or DW_LLE_default_location: no bounds */
	const uint8_t *expr;
	uint64_t expr_len;
};

/*
 * dw_locations - the entries of a location attribute
 *
 * @at  DW_AT_location usually; DW_AT_frame_base
 * Visits every entry in input order, also the empty ones (lo == hi).
 * Returns the number of entries; 0 if the attribute is absent; -EBADMSG; -EOPNOTSUPP; the result of
 * @visit.
 */
int dw_locations(const struct dw_die *die, uint16_t at,
		 int (*visit)(void *ctx, const struct dw_loc_entry *entry), void *ctx,
		 struct cairn_err *err);

/*
 * Entry @index of .debug_addr, as this unit sees it (DW_OP_addrx, DW_OP_constx). Returns 1 or
 * -EBADMSG.
 */
int dw_unit_addrx(const struct dw_unit *u, uint64_t index, uint64_t *ret, struct cairn_err *err);

/* ---- lines ---- */

/*
 * The path of a file number of this unit's line table (DW_AT_decl_file, DW_AT_call_file), made
 * absolute with the compilation directory where it is relative. NULL for an unknown number. Lives
 * as long as @u's dwarf. Cost: the line table's header, once per unit. Threads: any.
 */
const char *dw_unit_file(const struct dw_unit *u, uint64_t file);

/*
 * The same in pieces as they are written, "" for a missing one: the path is the pieces that are not
 * empty, with "/" between them.
 */
struct dw_path {
	const char *base, *dir, *name;
};

/*
 * False for an unknown number. For callers that query many units: linkers give equal paths of DWARF
 * 5 the same address, so that three addresses show whether a path was met before. No memory is kept
 * except, once per unit, the offsets of the entries.
 */
bool dw_unit_path(const struct dw_unit *u, uint64_t file, struct dw_path *ret);

/* Bytes of the path with its 0; it is written to @buf unless that is NULL. */
size_t dw_path_write(const struct dw_path *path, char *buf);

struct dw_row {
	struct cairn_vaddr at;
	uint32_t file, line;
	uint16_t column;
	bool is_stmt;
	/* at is the first address after the sequence; the other members mean nothing */
	bool end_sequence;
	bool prologue_end;
	uint16_t view; /* position among the rows of one address within its sequence, from 0 */
};

/*
 * dw_unit_rows - the line table, sorted by address; rows of one address in their original order
 *
 * Borrowed, as long as the dwarf. Returns the number of rows, 0 without a line table, -EBADMSG.
 * Cost: decoded on first use and kept.
 */
int64_t dw_unit_rows(const struct dw_unit *u, const struct dw_row **ret, struct cairn_err *err);

/*
 * dw_unit_visit_rows - visit the rows as the line program makes them, some at a time, keeping
 * nothing
 *
 * In the program's order, not sorted; end rows are left out; rows of sequences that the linker
 * dropped are not. @visit with a result other than 0 ends the walk; @rows, @n of them, at most
 * DW_ROWS_AT_ONCE, live until it returns.
 * Returns 0, also without a line table; -EBADMSG, -EOPNOTSUPP after visiting the rows before the
 * damage; the result of @visit.
 * Cost: runs the program each time, without an allocation. Threads: any.
 */
enum { DW_ROWS_AT_ONCE = 256 };
int dw_unit_visit_rows(const struct dw_unit *u,
		       int (*visit)(void *ctx, const struct dw_row *rows, size_t n), void *ctx,
		       struct cairn_err *err);

/*
 * The same with the end row of each sequence that has rows, and without the sequences that the
 * linker dropped.
 */
int dw_unit_visit_sequences(const struct dw_unit *u,
			    int (*visit)(void *ctx, const struct dw_row *rows, size_t n), void *ctx,
			    struct cairn_err *err);

/* The line and column of the code from an address on, up to the next one's; 16 bytes each. */
struct dw_position {
	uint64_t at;
	uint32_t line; /* 0: it belongs to no line */
	uint16_t column;
	bool is_stmt;
	/* the first address after a sequence: no code of this unit, until the next one */
	bool is_end;
};

/*
 * dw_unit_positions - the lines and columns of the unit's code
 *
 * @ret  sorted by address; borrowed, as long as the dwarf
 * Returns their number, 0 without a line table; positions after damage are missing; -ENOMEM.
 * Cost: runs the line program on first use, and keeps the positions. Threads: any.
 */
int64_t dw_unit_positions(const struct dw_unit *u, const struct dw_position **ret,
			  struct cairn_err *err);

/* The last of @n positions that begins at an address or before it; @n when none does. */
size_t dw_positions_from(const struct dw_position *p, size_t n, uint64_t at);

#endif
