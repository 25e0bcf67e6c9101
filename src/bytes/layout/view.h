/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module layout describes, prints, compares and reorganises the layout of types.
 *
 * This header: a view of laid-out types, shared by describing (facts.c, align.c) and printing
 * (print*.c).
 *
 * Texts and sums are those of pahole, so that scripts that read it keep working; where its rules
 * are guesses, they are guessed here in the same way, and the functions say so.
 */
#ifndef LAYOUT_VIEW_H
#define LAYOUT_VIEW_H

#include <errno.h>

#include <cairn/layout.h>

enum {
	/* Structs in structs, by value: the deepest known are about 15. */
	NEST_MAX = 64,
	DEFAULT_CACHELINE = 64,
};

enum { FACT_UNKNOWN, FACT_NO, FACT_YES };

/* The computed facts about a type, kept once. */
struct type_memo {
	uint32_t natural; /* 0: not known yet */
	uint32_t align;   /* layout_align(); 0: not known yet */
	uint8_t embeds;   /* a flexible array deeper inside: FACT_* */
	uint8_t unplaced; /* a member, also of a base class, without an offset: FACT_* */
	bool aligning;    /* align is being computed */
	/* being computed: a struct that contains itself, which only damaged input has */
	bool busy;
};

struct cairn_layout {
	const struct cairn_types *types;
	struct cairn_layout_opts opts;
	struct type_memo *memo; /* per id */
	/*
	 * Per id, where the memo says unplaced: the bytes up to the end of its last member that
	 * has an offset. Few types have one: the pages of the others are never touched.
	 */
	uint64_t *own;
	uint32_t n;
	/*
	 * Memory ran out since layout_begin(): results computed since then must not be returned.
	 * Sizes and alignments are needed in too many functions for each to pass an error on.
	 */
	bool no_memory;
	/* While a struct is printed in a new form: a type, and its substitute. */
	uint32_t other_id;
	const struct cairn_type *other;
	const bool *separate; /* per member of other: "char :0" stands before it */
};

static inline bool is_aggregate(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION;
}

static inline bool is_structure(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS;
}

static inline bool has_layout(const struct cairn_type *t)
{
	return is_aggregate(t) && !t->declaration && !t->unread;
}

static inline const struct cairn_type *layout_resolve(const struct cairn_layout *l, uint32_t id)
{
	id = cairn_types_resolve(l->types, id);
	return l->other && id == l->other_id ? l->other : cairn_types_get(l->types, id);
}

/*
 * The begin of every function that is called from outside, and its result: 0 or -ENOMEM.
 */
static inline void layout_begin(struct cairn_layout *l)
{
	l->no_memory = false;
}

static inline int layout_end(const struct cairn_layout *l)
{
	return l->no_memory ? -ENOMEM : 0;
}

/* A struct with its members in the order of their places (sorted.c). */
struct layout_sorted {
	struct cairn_type type;
	struct cairn_member *members;
	uint32_t *order; /* which member of the type each one is */
};

/*
 * 1 and *@ret, layout_sorted_free(); 0: it is in order, or has none; -ENOMEM, which the view
 * remembers.
 */
int layout_sort(struct cairn_layout *l, const struct cairn_type *t, struct layout_sorted *ret);
void layout_sorted_free(struct layout_sorted *s);

/* Zeroed, for cairn_layout_facts(); free(). NULL: no memory, which the view remembers. */
struct cairn_layout_member *layout_members_new(struct cairn_layout *l, const struct cairn_type *t);

/* cairn_layout_facts() for use inside; the view remembers -ENOMEM. */
int layout_facts(struct cairn_layout *l, uint32_t id, struct cairn_layout_facts *ret,
		 struct cairn_layout_member *members);

/* The same for a type that has a layout and whose members are in order; @m of all members. */
void layout_facts_of(struct cairn_layout *l, const struct cairn_type *t,
		     struct cairn_layout_facts *ret, struct cairn_layout_member *m);

/*
 * The largest alignment that the scalars in a type have by their sizes, up to the ABI's maximum; a
 * packed struct does not respect it. At least 1.
 */
uint32_t layout_natural_align(struct cairn_layout *l, uint32_t id);

/*
 * Alignment of a member of this type on the ABI of the view, in bytes, as far as the types tell; at
 * least 1.
 */
uint32_t layout_align(struct cairn_layout *l, uint32_t id);

/* ---- unplaced.c ---- */

/* Its offset is not known, or it is a base class that has such a member. */
bool layout_is_unplaced(struct cairn_layout *l, const struct cairn_member *m);
/* It is a base class that has such a member: it covers less than an object of that class. */
bool layout_is_partial(struct cairn_layout *l, const struct cairn_member *m);
/* The bytes that it covers where it begins; @size: of its type. */
uint64_t layout_own_size(struct cairn_layout *l, const struct cairn_member *m, uint64_t size);

/* The parts of cairn_layout_facts(), of a type that has a layout; @m of all members. */
void layout_place_members(struct cairn_layout *l, const struct cairn_type *t,
			  struct cairn_layout_member *m);
void layout_find_holes(struct cairn_layout *l, const struct cairn_type *t,
		       struct cairn_layout_member *m, struct cairn_layout_facts *ret);
void layout_find_alignments(struct cairn_layout *l, const struct cairn_type *t,
			    struct cairn_layout_member *m, struct cairn_layout_facts *ret);

#endif
