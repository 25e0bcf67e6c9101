/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reorganising: finds the order of members that makes a struct smallest, as C would lay it out
 *
 *	struct cairn_reorganized r;
 *	if (cairn_layout_reorganize(layout, id, NULL, &r, &err) < 0)
 *		return fail(err.msg);
 *	cairn_reorganized_print(layout, id, &r, stdout);	// and "saved 8 bytes"
 *	cairn_reorganized_verify_text(layout, id, &r, file);	// compiles only if all is true
 *	cairn_reorganized_free(&r);
 *
 * The units that move are *groups*. A group is a member, a run of adjacent bit-fields, an anonymous
 * struct or union, or a marker without a size with the member that it marks. Members that must stay
 * together are one, too. A flexible array stays last. Every alignment is kept, and the size is the
 * one that the ABI gives, its end rounded up.
 *
 * It does not know the code that depends on the order: casts to the first member, files, other
 * machines, initialisers without names.
 */
#ifndef CAIRN_LAYOUT_REORGANIZE_H
#define CAIRN_LAYOUT_REORGANIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/layout.h>

CAIRN_BEGIN_DECLS

/*
 * With this many movable groups or fewer the result is always proven; with more, if many of them
 * are alike.
 */
#define CAIRN_REORGANIZE_EXACT 12

struct cairn_reorganize_opts {
	size_t size; /* sizeof(struct cairn_reorganize_opts); a longer, unknown tail must be zero */
	bool pin_first; /* the first member stays first */
	/*
	 * Bit-fields of different runs may share a unit. Then they are one memory location (C11,
	 * 3.14): two threads must not write to them at once. Without it, runs that become adjacent
	 * are separated by "char :0".
	 */
	bool merge_bit_fields;
	/* fewer cache lines of hot members are worth bytes; never more than the struct has now */
	bool lines_first;
	/* any order of the smallest size will do: faster, for going through thousands of structs */
	bool size_only;
	/* Each "a,b,c": members that stay side by side, in this order. */
	const char *const *together;
	size_t n_together;
	/* How often a member is used, in any unit; 0: it is cold. NULL: nothing is known. */
	uint64_t (*weight)(void *ctx, const char *member);
	void *ctx;
};

struct cairn_reorganized_member {
	uint32_t index;   /* of the member as it was */
	uint64_t bit_off; /* as in struct cairn_member */
	bool separate;    /* "char :0" stands before it */
};

struct cairn_reorganized {
	uint64_t old_size, new_size; /* bytes */
	uint64_t bound;    /* bytes: no order is smaller than the sum of its members, rounded up */
	uint32_t align;    /* bytes, of the struct; unchanged */
	uint32_t n_groups; /* that may move */
	bool packed;       /* the struct, as far as its offsets show */
	/*
	 * No order is better: smaller, or, with weights, equally small with fewer lines, or the
	 * other way round.
	 */
	bool proven;
	uint32_t old_lines, new_lines; /* cache lines that hot members are in; 0 without weights */
	uint32_t n_moved;              /* groups that are not in their order any more */
	/*
	 * Bits between bit-fields, which only fields without a name can have left free, are not
	 * kept.
	 */
	bool drops_unnamed;
	uint32_t n_members;
	struct cairn_reorganized_member *members; /* in their new order */
};

/*
 * cairn_layout_reorganize - the best order of a struct's members
 *
 * Smallest size first, then (with weights) the fewest cache lines with hot members, then the
 * hottest in the first of them, then the order most like the one it has. A struct that cannot be
 * made smaller stays as it is. The bytes of a cache line are those of the view; the struct is taken
 * to begin at one.
 *
 * @id    a struct, perhaps a typedef or qualified type of one
 * @opts  may be NULL
 * @ret   cairn_reorganized_free(); all zero after an error
 * Returns 0. -EOPNOTSUPP: no struct of C, or a struct whose layout the rules of the ABI do not
 * explain, so that the size of another order is unknown (err: the member whose offset is
 * unexpected). -EINVAL: a member of @together is not there, or may not move, or options that are
 * not known here. -ENOMEM.
 * Cost: O(members log members) if a plain order reaches the bound; else up to 2^groups steps, and
 * never more than some 100 ms. Threads: one at a time per view.
 */
int cairn_layout_reorganize(struct cairn_layout *layout, uint32_t id,
			    const struct cairn_reorganize_opts *opts, struct cairn_reorganized *ret,
			    struct cairn_err *err);

/* Takes one that is all zero. */
void cairn_reorganized_free(struct cairn_reorganized *r);

/* The struct in its new order, as cairn_layout_print(). Returns 0; -ENOMEM. */
int cairn_reorganized_print(struct cairn_layout *layout, uint32_t id,
			    const struct cairn_reorganized *r, FILE *out);

/*
 * cairn_reorganized_verify_text - C that compiles for the ABI of the view only if size and offsets
 * are those of @r
 *
 * The struct is written out with members of the same kinds; those that are structs or unions are
 * written out, too, with the size of each asserted. No header is needed. Bit-fields have no
 * offsetof: their positions are proven by the size and by the members after them.
 * Returns 0; -ENOMEM.
 */
int cairn_reorganized_verify_text(struct cairn_layout *layout, uint32_t id,
				  const struct cairn_reorganized *r, FILE *out,
				  struct cairn_err *err);

CAIRN_END_DECLS
#endif
