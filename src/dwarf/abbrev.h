/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Abbreviations, compiled
 *
 * To step over a DIE, only the sizes of its attributes matter. So each abbreviation becomes a list of
 * steps "advance by @fixed bytes, then do @then", where runs of fixed-size forms are added up:
 *
 *	name strp, file data1, line data2, type ref4, sibling ref4    ──►  {15, END}
 *	name string, line data1, location exprloc, type ref4          ──►  {0, STR} {1, BLOCK} {4, END}
 *
 * Most DIEs of C are one step: one comparison with the end of the unit and one addition. The attributes
 * themselves are read from @specs, the table's own bytes, which were checked when it was compiled.
 *
 * A vmlinux has 315,000 abbreviations, each unit its own table of them, and only 8,500 that differ in more than their
 * code. So a table is a list of pointers, and each worker compiles what it had not met (abbrev_pool.h).
 */
#ifndef DWARF_ABBREV_H
#define DWARF_ABBREV_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/cursor.h"

struct dw_file;
struct dw_unit;

enum dw_then {
	DW_THEN_END,
	DW_THEN_MORE,     /* nothing: a run longer than @fixed can say */
	DW_THEN_LEB,
	DW_THEN_STR,      /* NUL-terminated */
	DW_THEN_BLOCK,    /* ULEB length */
	DW_THEN_BLOCK1,
	DW_THEN_BLOCK2,
	DW_THEN_BLOCK4,
	DW_THEN_INDIRECT, /* the form is in front of the value */
	DW_THEN_UNKNOWN,  /* a form of unknown size; an error only when a DIE uses it */
};

struct dw_step {
	uint16_t fixed;
	uint8_t then;
};

#define DW_NO_FAST UINT16_MAX

/*
 * Where the first run of a DIE has an attribute. Kept for the tags whose DIEs are looked at closely, functions, copies and
 * parameters: a question for an attribute of theirs is then a few comparisons and a load, and the pairs need not be read again.
 */
struct dw_near {
	uint16_t at;
	uint8_t form; /* 0: of one that is not read in one load; by its pair, then */
	uint8_t off;
};

struct dw_abbrev {
	const uint8_t *specs; /* attribute, form pairs in .debug_abbrev, up to 0, 0 */
	const struct dw_step *more; /* behind @first, unless that is the END */
	const struct dw_func_abbrev *func; /* of a subprogram, an inlined subroutine */
	const struct dw_near *nears;       /* n_near */
	uint32_t has;         /* dw_attr_bit() of each attribute: most questions are for one that is not there */
	uint16_t tag;
	uint16_t sibling;     /* offset of DW_AT_sibling (ref4) in first run, or DW_NO_FAST */
	struct dw_step first;
	uint8_t has_children;
	bool near_is_all;     /* what is not among them is not there */
	uint16_t n_near;
};

/* Where the first run of a function's DIE has what the index wants; DW_NO_FAST: read it by dw_attr(). */
struct dw_func_abbrev {
	uint16_t name, linkage_name, origin;
	uint8_t flags;       /* enum dw_func_flags as far as the abbreviation tells */
	bool has_name, has_linkage_name, has_origin;
	bool name_is_strp, linkage_name_is_strp;
	bool flags_need_values; /* DW_AT_declaration in a form that could say no */
};

struct dw_abbrevs {
	/* Key: the same bytes mean other sizes in a unit of another kind. */
	const struct dw_file *file;
	uint64_t off;
	uint8_t addr_size, offset_size, ref_addr_size;

	const struct dw_abbrev **p; /* those of equal bytes are the same, mostly */
	size_t n;
	uint64_t *codes; /* sorted, code of p[i]; NULL when they are 1, 2, ... n */
};

/* Several attributes have a bit in common; those that are asked for most have not. */
static inline uint32_t dw_attr_bit(uint16_t at)
{
	return UINT32_C(1) << ((at ^ at >> 3 ^ at >> 6) & 31);
}

struct dw_abbrev_pool;
int dw_abbrevs_compile(struct dw_abbrevs *t, struct dw_abbrev_pool *pool, _Atomic uint64_t *budget,
		       struct cairn_err *err);
void dw_abbrevs_fini(struct dw_abbrevs *t);
size_t dw_abbrev_index_sparse(const struct dw_abbrevs *t, uint64_t code);

/* The place of a code in p[]; that behind the last when the table has no such code. */
static inline size_t dw_abbrev_index(const struct dw_abbrevs *t, uint64_t code)
{
	if (t->codes)
		return dw_abbrev_index_sparse(t, code);
	return code - 1 < t->n ? (size_t)(code - 1) : t->n;
}

/* NULL when the table has no such code. */
static inline const struct dw_abbrev *dw_abbrev_find(const struct dw_abbrevs *t, uint64_t code)
{
	size_t i = dw_abbrev_index(t, code);
	return i < t->n ? t->p[i] : NULL;
}

/*
 * One attribute of an abbreviation. The pairs were checked when the table was compiled: they fit 16
 * bits and 0, 0 ends them inside the section.
 */
struct dw_spec {
	uint16_t at, form;
	int64_t implicit;
};
bool dw_spec_next(const uint8_t **p, struct dw_spec *ret);

/* Does one step: its run of bytes, then its value of variable size. */
void dw_step_skip(const struct dw_unit *u, struct dw_step step, struct cursor *c);
/* Steps over all attributes; the cursor stands at the first. */
void dw_abbrev_skip_slow(const struct dw_unit *u, const struct dw_abbrev *a, struct cursor *c);
static inline void dw_abbrev_skip(const struct dw_unit *u, const struct dw_abbrev *a,
				  struct cursor *c)
{
	if (a->first.then == DW_THEN_END)
		cur_skip(c, a->first.fixed);
	else
		dw_abbrev_skip_slow(u, a, c);
}

/* Abbreviation tables of some units. */
struct dw_tables {
	struct dw_abbrevs *p;
	size_t n;
	struct dw_abbrev_pool *pools; /* one per worker */
	unsigned int n_pools;
};

/* abbrev_tables.c: give each unit that has none its table, and compile them. */
int dw_tables_compile(struct dw_tables *ret, struct dw_unit *units, size_t n, unsigned int threads,
		      struct cairn_err *err);
void dw_tables_fini(struct dw_tables *tables);

#endif
