/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scan: one pass over all DIEs of a unit, which keeps those that are functions or inlined
 * copies
 *
 * A scanner belongs to one worker and is used for one unit after the other; its memory is kept.
 */
#ifndef DWARF_SCAN_H
#define DWARF_SCAN_H

#include "dwarf/impl.h"
#include "dwarf/index.h"
#include "dwarf/walk.h"

/* In dw_func.flags, only inside this module. */
enum {
	DW_FUNC_MATCHED = 1 << 6, /* it belongs to the wanted name */
	DW_FUNC_KEPT = 1 << 7,    /* it does, or an entry inside it does */
};

/*
 * A name to look for. The same string usually stands once in .debug_str, and DIEs refer to it by
 * offset. So the offsets at which the name stands are found once, and then compared instead of
 * strings. A linker lets "size" be the end of "max_size", so every end counts, and there may be
 * hundreds. A name that "<" follows counts as well: C++ names of templates hold the arguments.
 */
enum { DW_NAME_OFFSETS_MAX = 1 << 16, DW_NAME_BITS = 4096 };

struct dw_name_offsets {
	VEC(uint64_t) v; /* in order */
	/* bit (offset % DW_NAME_BITS) of each: most are refused by it */
	uint64_t bits[DW_NAME_BITS / 64];
	bool complete; /* false: there are more, compare strings */
};

struct dw_name_filter {
	const char *name;
	size_t n;                     /* its length */
	struct dw_name_offsets in[2]; /* per file of the dwarf */
};

/* false when out of memory */
bool dw_name_filter_init(struct dw_name_filter *f, const struct dwarf *dw, const char *name);
void dw_name_filter_fini(struct dw_name_filter *f);

struct dw_open_func {
	uint64_t depth;
	uint32_t i;
};

struct dw_scanner {
	const struct dw_name_filter *filter; /* NULL: keep names, match nothing */
	/* result: for the last unit scanned; parents are indices in here */
	VEC(struct dw_func) funcs;
	bool any_matched;
	uint64_t n_dies; /* sum over all units */
	VEC(struct dw_open_func) open;
	/* for units of each: the tags that can hold code differ */
	struct dw_walker in_c, elsewhere;
};

void dw_scanner_init(struct dw_scanner *s, const struct dw_name_filter *filter);
int dw_scan_unit(struct dw_scanner *s, const struct dw_unit *u, struct cairn_err *err);
void dw_scanner_fini(struct dw_scanner *s);

/*
 * The same for callers that walk a unit anyway. They show the scanner each DW_TAG_subprogram and
 * DW_TAG_inlined_subroutine that their walker delivers, and all other DIEs that it delivers, for
 * functions end there. 0, or negative as dw_scan_unit().
 */
void dw_scanner_begin(struct dw_scanner *s);
int dw_scanner_see(struct dw_scanner *s, const struct dw_walker *w, struct cairn_err *err);

static inline void dw_scanner_leave(struct dw_scanner *s, const struct dw_walker *w)
{
	while (s->open.n && s->open.p[s->open.n - 1].depth >= w->lowest)
		s->open.n--;
}

#endif
