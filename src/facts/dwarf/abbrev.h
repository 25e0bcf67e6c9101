/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Abbreviations, compiled
 *
 * To step over a DIE, only the sizes of its attributes matter. So each abbreviation becomes a list
 * of steps "advance by @fixed bytes, then do @then", where runs of fixed-size forms are added up:
 *
 *	name strp, file data1, line data2, type ref4, sibling ref4
 *		──►  {15, END}
 *	name string, line data1, location exprloc, type ref4
 *		──►  {0, STR} {1, BLOCK} {4, END}
 *
 * Most DIEs of C are one step: one comparison with the end of the unit and one addition. The
 * attributes themselves are read from @specs, the table's own bytes, which were checked when it was
 * compiled.
 *
 * A vmlinux has 315,000 abbreviations, each unit its own table of them, and only 8,500 that differ
 * in more than their code. So a table is a list of pointers, and each worker compiles only the
 * abbreviations that it had not met (abbrev_pool.h).
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
	DW_THEN_MORE, /* nothing: a run longer than @fixed can say */
	DW_THEN_LEB,
	DW_THEN_STR,   /* NUL-terminated */
	DW_THEN_BLOCK, /* ULEB length */
	DW_THEN_BLOCK1,
	DW_THEN_BLOCK2,
	DW_THEN_BLOCK4,
	DW_THEN_INDIRECT, /* the form stands before the value */
	DW_THEN_UNKNOWN,  /* a form of unknown size; an error only when a DIE uses it */
};

struct dw_step {
	uint16_t fixed;
	uint8_t then;
};

#define DW_NO_FAST UINT16_MAX

/*
 * Attributes that are queried often. For each of them an abbreviation knows whether it has it, and
 * where in the first run of a DIE. A query is then a load of that and one of the value, and the
 * pairs need not be read again.
 */
enum dw_slot {
	DW_SLOT_NONE, /* of all others */
	DW_SLOT_SIBLING,
	DW_SLOT_LOCATION,
	DW_SLOT_LOCVIEWS,
	DW_SLOT_CONST_VALUE,
	DW_SLOT_NAME,
	DW_SLOT_LINKAGE_NAME,
	DW_SLOT_BYTE_SIZE,
	DW_SLOT_TYPE,
	DW_SLOT_LOW_PC,
	DW_SLOT_HIGH_PC,
	DW_SLOT_RANGES,
	DW_SLOT_ENTRY_PC,
	DW_SLOT_ENTRY_VIEW,
	DW_SLOT_FRAME_BASE,
	DW_SLOT_ORIGIN,
	DW_SLOT_SPECIFICATION,
	DW_SLOT_DECL_FILE,
	DW_SLOT_DECL_LINE,
	DW_SLOT_DECL_COLUMN,
	DW_SLOT_CALL_FILE,
	DW_SLOT_CALL_LINE,
	DW_SLOT_CALL_COLUMN,
	DW_N_SLOTS,
};

struct dw_near {
	uint8_t form; /* 0: it is not there; DW_NEAR_BY_PAIR: by its pair */
	/* in the DIE; for DW_FORM_implicit_const, the offset of the value from the first pair */
	uint8_t off;
};
#define DW_NEAR_BY_PAIR UINT8_MAX

/* Indexed by attribute: up to DW_AT_call_line, and from DW_AT_GNU_locviews on. */
extern const uint8_t dw_slots[0x5a], dw_gnu_slots[2];

struct dw_abbrev {
	const uint8_t *specs;              /* attribute, form pairs in .debug_abbrev, up to 0, 0 */
	const struct dw_step *more;        /* after @first, unless that is the END */
	const struct dw_func_abbrev *func; /* of a subprogram, an inlined subroutine */
	/* dw_attr_bit() of each attribute: most questions are for one that is not there */
	uint32_t has;
	uint16_t tag;
	uint16_t sibling; /* offset of DW_AT_sibling (ref4) in first run, or DW_NO_FAST */
	struct dw_step first;
	uint8_t has_children;
	struct dw_near near[DW_N_SLOTS];
};

/*
 * The offsets, in the first run of a function's DIE, of the values that the index needs;
 * DW_NO_FAST: read it by dw_attr().
 */
struct dw_func_abbrev {
	uint16_t name, linkage_name, origin;
	uint8_t flags; /* enum dw_func_flags as far as the abbreviation gives them */
	bool has_name, has_linkage_name, has_origin;
	bool name_is_strp, linkage_name_is_strp;
	bool flags_need_values; /* DW_AT_declaration in a form that could say no */
};

struct dw_abbrevs {
	/* Key: the same bytes mean other sizes in a unit of another kind. */
	const struct dw_file *file;
	uint64_t off;
	uint8_t addr_size, offset_size, ref_addr_size;

	bool has_siblings;          /* one of them has DW_AT_sibling */
	const struct dw_abbrev **p; /* those of equal bytes are the same, mostly */
	size_t n;
	uint64_t *codes; /* sorted, code of p[i]; NULL when they are 1, 2, ... n */
};

/* Several attributes have a bit in common; those that are queried most have one of their own. */
static inline uint32_t dw_attr_bit(uint16_t at)
{
	return UINT32_C(1) << ((at ^ at >> 3 ^ at >> 6) & 31);
}

static inline enum dw_slot dw_slot_of(uint16_t at)
{
	enum { LINKAGE_NAME = 0x6e, FIRST_GNU = 0x2137 };
	if (at < sizeof(dw_slots))
		return (enum dw_slot)dw_slots[at];
	if (at == LINKAGE_NAME)
		return DW_SLOT_LINKAGE_NAME;
	return (size_t)at - FIRST_GNU < sizeof(dw_gnu_slots)
		       ? (enum dw_slot)dw_gnu_slots[at - FIRST_GNU]
		       : DW_SLOT_NONE;
}

struct dw_abbrev_pool;
int dw_abbrevs_compile(struct dw_abbrevs *t, struct dw_abbrev_pool *pool, _Atomic uint64_t *budget,
		       struct cairn_err *err);
void dw_abbrevs_fini(struct dw_abbrevs *t);
size_t dw_abbrev_index_sparse(const struct dw_abbrevs *t, uint64_t code);

/* The index of a code in p[]; one past the last if the table has no such code. */
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

/* The byte after a value of variable size at @p; NULL if that is rare or wrong. */
static inline const uint8_t *dw_after_value(const uint8_t *p, const uint8_t *end, uint8_t then)
{
	switch (then) {
	case DW_THEN_MORE:
		return p;
	case DW_THEN_LEB:
		while (p < end)
			if (*p++ < 0x80)
				return p;
		return NULL;
	case DW_THEN_STR:
		while (p < end)
			if (!*p++)
				return p;
		return NULL;
	case DW_THEN_BLOCK:
	case DW_THEN_BLOCK1:
		if (p == end || (then == DW_THEN_BLOCK && *p >= 0x80) || *p >= end - p)
			return NULL;
		return p + 1 + *p;
	}
	return NULL;
}

/*
 * The byte after all attributes of a DIE, the first of which is at @p; NULL for a rare or wrong
 * form; dw_abbrev_skip() then reports it.
 */
static inline const uint8_t *dw_skip_attrs(const struct dw_abbrev *a, const uint8_t *p,
					   const uint8_t *end)
{
	struct dw_step step = a->first;
	for (const struct dw_step *more = a->more; step.fixed <= (size_t)(end - p);
	     step = *more++) {
		p += step.fixed;
		if (step.then == DW_THEN_END)
			return p;
		p = dw_after_value(p, end, step.then);
		if (!p)
			return NULL;
	}
	return NULL;
}

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
