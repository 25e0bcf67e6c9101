/* SPDX-License-Identifier: BSD-2-Clause */
/* Reorganising: the groups of a struct, and the search for their best order. */
#ifndef LAYOUT_ORDER_H
#define LAYOUT_ORDER_H

#include "base/arena.h"
#include "layout/place.h"
#include "layout/view.h"

/* Members that move as one. */
struct group {
	uint32_t first, n; /* of the members, which are in their original order */
	uint32_t kind;     /* groups of one kind are placed alike, and are used as often */
	uint64_t min_bits; /* that its members cover, without the bytes that alignment adds */
	uint32_t align;    /* bytes, of its first member */
	bool bits;         /* begins with a bit-field */
	bool hot;          /* a member of it is used */
	/* One ordinary member: it is placed without asking the rules; bits. */
	bool simple;
	uint64_t simple_align, simple_size;
};

struct order {
	const struct cairn_abi *abi;
	/* all members in their original order; attributes of the struct */
	struct cairn_place_record rec;
	const uint64_t *weights; /* per member; NULL: not known */
	uint32_t cacheline;      /* bytes */
	bool merge, lines_first, size_only;
	uint32_t align;                   /* bytes, of the struct */
	const struct group *first, *last; /* pinned; NULL: none */
	const struct group *groups;       /* that may move, in their original order */
	uint32_t n;
};

/* The cost of an order; smaller is better, compared by better(). */
struct cost {
	uint64_t size;   /* bytes */
	uint64_t lines;  /* cache lines with hot members */
	uint64_t far;    /* sum of weight * number of the cache line */
	uint64_t turned; /* pairs of groups that are not in their original order */
};

/* Is @a strictly better? */
bool order_better(const struct order *o, const struct cost *a, const struct cost *b);

/* The end of @g when it follows the bit @pos; bit_off of its members is set. */
uint64_t order_place(const struct order *o, const struct group *g, uint64_t pos);

/* Places everything: @first, the groups as @perm has them, @last. */
struct cost order_cost(const struct order *o, const uint32_t *perm);

/* No order is smaller, in bytes. */
uint64_t order_bound(const struct order *o);

/*
 * A good order, in @perm: of a few plain ones the best. The original one is among them. 0; -ENOMEM.
 */
int order_greedy(const struct order *o, struct cost *ret, uint32_t *perm);

/*
 * order_exact - the best order, if it is found
 *
 * @best, @perm in: one that is known; out: the best of all
 * Returns 1 when it is proven; 0 when there were too many possibilities, and nothing changed;
 * -ENOMEM.
 */
int order_exact(const struct order *o, struct cost *best, uint32_t *perm);

#endif
