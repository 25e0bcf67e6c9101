/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joining: the facts of all units under common numbers, and their pieces in order of address
 *
 * Numbers are given in the order of units, whatever worker read them and when: the same bytes come
 * out for any number of threads.
 */
#ifndef SIDECAR_JOIN_H
#define SIDECAR_JOIN_H

#include "base/err.h"
#include "sidecar/gather.h"
#include "sidecar/intern.h"

/* A unit's numbers in terms of all. */
struct unit_numbers {
	uint32_t first_frame;
	uint32_t *file;     /* of the unit to number of appearance */
	uint32_t *function; /* the same */
};

/* A piece of a unit. */
struct placed {
	uint32_t unit;
	struct piece piece;
};

struct joined {
	const struct unit_facts *units;
	struct unit_numbers *numbers;
	size_t n_units;
	struct strings *strings;
	struct file_table files;
	struct function_table functions;
	uint32_t n_frames;
	VEC(struct placed) code, lines; /* sorted by start; they may overlap, see next_piece() */
	uint64_t n_overlaps;
};

/*
 * join_units - @units belong to the caller and outlive @ret
 *
 * Returns 0, -ENOMEM, -ERANGE (more than 32 bits number). joined_fini() frees it, also after an
 * error.
 */
int join_units(const struct unit_facts *units, size_t n, struct strings *strings,
	       struct joined *ret, struct cairn_err *err);
void joined_fini(struct joined *j);

/*
 * The part of a piece that no earlier one has taken: [*@lo, piece.hi). False when there is none.
 * @end is the end of the part already taken, 0 at first.
 */
static inline bool next_piece(const struct piece *p, uint32_t *end, uint32_t *lo)
{
	if (p->hi <= *end)
		return false;
	*lo = p->lo > *end ? p->lo : *end;
	*end = p->hi;
	return true;
}

#endif
