/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function index: every DIE that is a function or an inlined copy of one
 *
 * One pass over all units in parallel. An entry is small, so that a kernel (14 million DIEs) gives
 * some tens of megabytes; names and attributes are read later, for the few entries that are
 * queried. Entries stand in order of their DIE's offset, a parent before its children.
 */
#ifndef DWARF_INDEX_H
#define DWARF_INDEX_H

#include "dwarf/dwarf.h"

enum dw_func_flags {
	DW_FUNC_INLINED = 1 << 0,     /* DW_TAG_inlined_subroutine, else DW_TAG_subprogram */
	DW_FUNC_HAS_CODE = 1 << 1,    /* has DW_AT_low_pc or DW_AT_ranges or DW_AT_entry_pc */
	DW_FUNC_DECLARATION = 1 << 2, /* DW_AT_declaration */
	DW_FUNC_ABSTRACT = 1 << 3,    /* DW_AT_inline is there: an abstract instance */
	/* origin is DW_AT_specification, else DW_AT_abstract_origin */
	DW_FUNC_SPECIFICATION = 1 << 4,
	DW_FUNC_ENTRY_VIEW = 1 << 5 /* has DW_AT_GNU_entry_view */
};

#define DW_FUNC_NONE UINT32_MAX

struct dw_func {
	dw_off die;
	dw_off origin;    /* DW_AT_abstract_origin or DW_AT_specification; 0 none */
	const char *name; /* DW_AT_name of this very DIE; NULL when it has none */
	/*
	 * A large program has millions of these, so they share a word. There are fewer units than
	 * 2^24, see impl.h.
	 */
	uint32_t unit : 24; /* index of its unit */
	uint32_t flags : 8; /* enum dw_func_flags */
	uint32_t parent;    /* index of the innermost enclosing entry, DW_FUNC_NONE at the top */
};

struct dw_func_index {
	struct dw_func *p;
	size_t n, cap; /* memory of pages_grown() for cap entries */
	/*
	 * DIEs stepped over; subtrees that cannot hold code may be jumped over by DW_AT_sibling. 0
	 * of dw_index_build_take().
	 */
	uint64_t n_dies;
};

/*
 * dwarf_index_functions - build it
 *
 * A unit with damaged DIEs ends the build with -EBADMSG; nothing is missed silently.
 * @ret  filled; dw_func_index_fini() frees it
 * Same result for any number of threads.
 */
int dwarf_index_functions(const struct dwarf *dw, unsigned int threads, struct dw_func_index *ret,
			  struct cairn_err *err);
void dw_func_index_fini(struct dw_func_index *index);

/*
 * The same index for callers that walk all units for another purpose. For each unit, in any order
 * and by any of @threads workers:
 *
 *	struct dw_scanner *s = dw_index_build_scanner(b, worker);
 *	dw_scanner_begin(s); dw_scanner_see(s, &walker, err) ...		// scan.h
 *	dw_index_build_add(b, number of the unit, worker, err);
 *
 * Call dw_index_build_take() after all were added. New and add return 0, -ENOMEM, -ERANGE; free
 * also after an error.
 */
struct dw_index_build;
struct dw_scanner;
int dw_index_build_new(const struct dwarf *dw, unsigned int threads, struct dw_index_build **ret,
		       struct cairn_err *err);
struct dw_scanner *dw_index_build_scanner(struct dw_index_build *b, unsigned int worker);
int dw_index_build_add(struct dw_index_build *b, size_t unit, unsigned int worker,
		       struct cairn_err *err);
void dw_index_build_take(struct dw_index_build *b, struct dw_func_index *ret);
void dw_index_build_free(struct dw_index_build *b);

/* The entry of a DIE by binary search; DW_FUNC_NONE when it is not a function. */
uint32_t dw_func_index_find(const struct dw_func_index *index, dw_off die);

/*
 * The same, cheaper, for an entry that usually is in the unit of entry @near: one that @near refers
 * to.
 */
uint32_t dw_func_index_find_near(const struct dw_func_index *index, uint32_t near, dw_off die);

/* Its DIE. Returns as dw_die_at(), and costs less. */
static inline int dw_func_die(const struct dwarf *dw, const struct dw_func *f, struct dw_die *ret,
			      struct cairn_err *err)
{
	return dw_die_near(dwarf_unit(dw, f->unit), f->die, ret, err);
}

/* dw_die_prefetch() of its DIE. */
static inline void dw_func_prefetch(const struct dwarf *dw, const struct dw_func *f)
{
	dw_die_prefetch(dwarf_unit(dw, f->unit), f->die);
}

/*
 * dwarf_functions_named - the entries that belong to a name, in one parallel pass, without keeping
 * the rest
 *
 * For "sites FILE FUNC" on a large file. Visits subprograms whose DW_AT_name or DW_AT_linkage_name
 * is @name or, with template arguments, @name<...>. Visits the DIEs that refer to them
 * (specifications, concrete bodies, inlined copies; over at most DW_ORIGIN_MAX links, across units
 * and files) and, for each, the chain of enclosing entries. Same form as the full index, with only
 * these entries in it; parent indices refer to it.
 */
int dwarf_functions_named(const struct dwarf *dw, unsigned int threads, const char *name,
			  struct dw_func_index *ret, struct cairn_err *err);

#endif
