/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gathering: a unit's facts about code, in the form that the sidecar's sections are made from
 *
 * Units are read in parallel, each into a struct of its own; nothing here depends on another unit.
 * Addresses are 32-bit distances from the first byte of code in the binary, see struct code_span.
 *
 *	gather.c   functions and inlined copies: a tree of frames, and which frame each stretch of
 *	           code belongs to
 *	flatten.c  nested ranges into such stretches
 *	rows.c     the line program
 *
 * A piece is a run of stretches without a gap: a function, a part of one, a sequence of a line
 * program. Pieces of all units are sorted and joined afterwards; within a piece, addresses rise.
 */
#ifndef SIDECAR_GATHER_H
#define SIDECAR_GATHER_H

#include "base/map.h"
#include "base/vec.h"
#include "dwarf/dwarf.h"
#include "dwarf/walk.h"

/* All code of a binary lies in [base, base + size). */
struct code_span {
	uint64_t base;
	uint32_t size;
};

/* [lo, hi), and items [from, from + n) of the list that it is a piece of. */
struct piece {
	uint32_t lo, hi;
	uint32_t from, n;
};

#define NO_FRAME UINT32_MAX

/* From @at to the next stretch, or the end of the piece, the innermost frame is @frame. */
struct stretch {
	uint32_t at;
	uint32_t frame; /* of the unit */
};

/* A function, or a copy that was inlined into its parent. */
struct unit_frame {
	/* of the unit, below its own number; NO_FRAME: an out-of-line function */
	uint32_t parent;
	uint32_t function; /* of the unit; NO_FUNCTION for a copy of nothing that is known */
	uint32_t call_file, call_line; /* of the unit; of a copy */
	uint32_t call_column;
	dw_off origin; /* of a copy: DIE of its function, until that is found */
	dw_off die;
};

#define NO_FUNCTION UINT32_MAX

/* A function as its declaration and its linker name identify it. */
struct unit_function {
	dw_off die, origin;
	const char *name;    /* NULL without one */
	const char *linkage; /* NULL without one */
	uint32_t file;       /* of the unit: of the declaration */
	uint32_t line;
	bool resolved; /* origins have been followed */
};

/* The source position from @at on. */
struct unit_row {
	uint32_t at, line;
	uint32_t file; /* of the unit */
	uint32_t column;
};

#define NO_FILE 0

struct unit_facts {
	VEC(struct unit_function) functions; /* in order of DIE as far as the unit's own go */
	size_t n_own;
	VEC(struct unit_frame) frames; /* a parent before its children */
	VEC(struct stretch) stretches;
	VEC(struct piece) code;
	VEC(struct unit_row) rows;
	VEC(struct piece) lines;
	VEC(const char *) files; /* paths; files.p[NO_FILE] is NULL */
};

void unit_facts_fini(struct unit_facts *f);

struct open_frame {
	uint64_t depth;
	uint32_t frame; /* NO_FRAME: not code, and nothing inside it is */
	uint32_t site;  /* the same, or a copy without code in it */
};

struct nested_range {
	uint32_t lo, hi;
	uint32_t frame;
};

/* Scratch memory of one worker. */
struct gatherer {
	const struct dwarf *dw;
	struct code_span span;
	bool sites; /* copies without code are wanted, too */
	/* one that leaves types out, for C, and one that looks into them */
	struct dw_walker walkers[2];
	const struct dw_unit *unit;
	struct unit_facts *to;
	struct cairn_err *err;
	VEC(struct open_frame) open;
	/* of the out-of-line function at hand, and all inside it */
	VEC(struct nested_range) ranges;
	VEC(uint32_t) heap;
	/* file number of a unit, and so of an alternate one, to one of ours + 1 */
	VEC(uint32_t) file_of;
	struct map foreign; /* DIE of another unit to the function made of it */
	uint32_t frame;     /* the frame whose ranges are being read */
};

/* Returns 0 or -EINVAL. gatherer_fini() takes zeroes. */
int gatherer_init(struct gatherer *g, const struct dwarf *dw, struct code_span span, bool sites);
void gatherer_fini(struct gatherer *g);

/*
 * gather_unit - all facts of a unit
 *
 * @ret  zeroed; unit_facts_fini() frees it, also after an error
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ENOENT, -ENOMEM.
 */
int gather_unit(struct gatherer *g, const struct dw_unit *u, struct unit_facts *ret,
		struct cairn_err *err);

/* ---- parts ---- */

/*
 * gather_files.c: number of a path among the unit's; NO_FILE for one that is not known. -ENOMEM is
 * left in @rc.
 */
uint32_t gather_file(struct gatherer *g, const struct dw_unit *u, uint64_t file, int *rc);

/* rows.c: the unit's line program into rows and lines. */
int gather_rows(struct gatherer *g);

/* flatten.c: g->ranges into stretches and code; empties g->ranges. Returns 0 or -ENOMEM. */
int flatten_ranges(struct gatherer *g);

#endif
