/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares layouts: the mistakes that a reader of one struct would make with another
 *
 *	struct cairn_changes *changes;
 *	if (cairn_compare(old_types, old_id, new_types, new_id, NULL, &changes, &err) < 0)
 *		return fail(err.msg);
 *	for (size_t i = 0; i < cairn_changes_n_changes(changes); i++)	// in the order of offsets
 *		puts(cairn_changes_at(changes, i)->path);		// "inner.c"
 *	cairn_changes_free(changes);
 *
 * The two types may be of two graphs: of two ABIs, of two builds, or a C struct and a Go program's
 * declaration of it. Members of anonymous structs and unions count as members of the enclosing
 * struct; structs inside are compared in turn. At the end: lock files, which keep a layout as text
 * to compare with later.
 */
#ifndef CAIRN_LAYOUT_COMPARE_H
#define CAIRN_LAYOUT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

/* The effect for a consumer. Only the first that applies is reported for one member. */
enum cairn_change_kind {
	CAIRN_CHANGE_KIND,     /* a struct is a union or an enum now */
	CAIRN_CHANGE_MOVED,    /* begins elsewhere */
	CAIRN_CHANGE_UNPLACED, /* the offset is not known on one side */
	CAIRN_CHANGE_BITS,   /* a bit-field has another width, or became one, or is none any more */
	CAIRN_CHANGE_LENGTH, /* an array has another number of elements */
	CAIRN_CHANGE_RESIZED, /* has another size */
	CAIRN_CHANGE_TYPE,    /* the same bytes mean another kind of value */
	CAIRN_CHANGE_SIGN,    /* signed became unsigned, or the other way round */
	CAIRN_CHANGE_BYTE_ORDER,
	CAIRN_CHANGE_RENAMED,          /* the same in all else */
	CAIRN_CHANGE_ADDED,            /* between others, which it need not have moved */
	CAIRN_CHANGE_ADDED_AT_END,     /* the older members keep their offsets */
	CAIRN_CHANGE_ADDED_IN_PADDING, /* in bytes that no member had */
	CAIRN_CHANGE_REMOVED,
	CAIRN_CHANGE_ENUMERATOR, /* a name has another value */
	CAIRN_CHANGE_TAIL,       /* the size differs and no member: padding at the end */
	CAIRN_CHANGE_N_KINDS
};

/* As a word, "moved"; and for people, "array length changed". Never NULL. */
const char *cairn_change_id(enum cairn_change_kind kind);
const char *cairn_change_text(enum cairn_change_kind kind);

struct cairn_change_side {
	bool there;       /* else nothing below means anything */
	const char *name; /* of the member or enumerator; NULL when it has none */
	uint32_t type;    /* in that side's graph */
	uint64_t bit_off; /* from the start of the struct that was compared */
	bool unplaced; /* its offset is not known (cairn_member.dynamic): bit_off means nothing */
	uint64_t size; /* bytes of the type */
	uint32_t bit_size; /* of a bit-field */
	int64_t value;     /* of an enumerator */
};

struct cairn_change {
	enum cairn_change_kind kind;
	bool is_enumerator;
	/*
	 * "inner.c", "points[].x", the enumerator's name after its member's "kind.A"; "" is the
	 * whole type.
	 */
	const char *path;
	struct cairn_change_side side[2];
};

struct cairn_changes;

struct cairn_compare_opts {
	size_t size; /* sizeof(struct cairn_compare_opts); a longer, unknown tail must be zero */
	/*
	 * The second side is another language's declaration of the first. Then e_pid, ePid and EPid
	 * are one name, and members whose names have nothing in common are paired in their order. A
	 * member whose name says padding needs no partner. Pointers may be integers of that size,
	 * enums integers that can hold their values, bytes anything; enumerators are compared by
	 * value. A union may be a union under a made-up name (__bindgen_anon_1), bytes of its size,
	 * or one of its members; struct Kind(u32) stands for its content.
	 */
	bool other_language;
	/* The machines of the two sides differ in byte order. */
	bool byte_order_differs;
	/*
	 * Members that may differ: paths as in struct cairn_change, "inner.c". Their inner members
	 * may differ, too. Later members may not, if they move because of it. Borrowed for the
	 * call; "" is no path.
	 */
	const char *const *ignore;
	size_t n_ignore;
};

/* At most this many are kept for one pair of types. */
#define CAIRN_CHANGES_MAX 1000

/*
 * cairn_compare - the differences between two types, member by member
 *
 * @a, @b        graphs, which outlive the result
 * @id_a, @id_b  structs, unions or enums (others are compared, too), perhaps typedefs of such
 * @opts         may be NULL
 * @ret          owned by the caller, cairn_changes_free(); empty if nothing differs
 * Returns 0; -EINVAL for options that are not known here; -ENOMEM. Structs nested deeper than 64
 * are not compared.
 * Cost: O(members), each pair of inner structs once. Threads: any, while no reader adds. Signals:
 * no.
 */
int cairn_compare(const struct cairn_types *a, uint32_t id_a, const struct cairn_types *b,
		  uint32_t id_b, const struct cairn_compare_opts *opts, struct cairn_changes **ret,
		  struct cairn_err *err);
void cairn_changes_free(struct cairn_changes *changes);

/* In the order of offsets; borrowed until cairn_changes_free(). */
size_t cairn_changes_n_changes(const struct cairn_changes *changes);
const struct cairn_change *cairn_changes_at(const struct cairn_changes *changes, size_t i);
/* This many differences are left out, because cairn_compare_opts.ignore has their paths. */
size_t cairn_changes_ignored(const struct cairn_changes *changes);
/* This many members have no known offset on either side: nothing compared where they are. */
size_t cairn_changes_unplaced(const struct cairn_changes *changes);
/* There were more than CAIRN_CHANGES_MAX. */
bool cairn_changes_cut(const struct cairn_changes *changes);

/* Whether two names are one when case and underscores are left out: "e_pid" and "EPid". */
bool cairn_compare_names(const char *a, const char *b);

/*
 * Layouts that must not change: the lock file
 *
 * A text to be committed, one line per member, sorted, so that a review shows what a change does to
 * layouts:
 *
 *	# cairn layout lock 1
 *	abi x86-64
 *
 *	enum kind u32
 *		A 0
 *
 *	struct event 280
 *		0 pid u32
 *		4 kind enum kind
 *		8 comm char[16]
 *		24:3+5 flags u32
 *
 * It is written from a graph and read into one; cairn_compare() reports the differences between two
 * of them. The format is described in docs/formats/layout-lock.md.
 */

/*
 * cairn_lock_write - types and all that they contain, as a lock file
 *
 * @ids  structs, unions, enums, perhaps typedefs of such; each is written once
 * @abi  its name; NULL: not known
 * Returns 0, also if @out failed: ferror() reports that; -ENOMEM. Cost: O(members log types).
 */
int cairn_lock_write(const struct cairn_types *types, const uint32_t *ids, size_t n,
		     const char *abi, FILE *out, struct cairn_err *err);

struct cairn_lock;

/*
 * cairn_lock_read - a lock file as a type graph
 *
 * @text, @size  not used afterwards
 * @name         of the file, for errors
 * Returns 0 with *@ret owned by the caller, cairn_lock_free(). -EBADMSG: err has file and line.
 * -EOPNOTSUPP: of a later version. -ERANGE: too many lines. -ENOMEM. Cost: O(size). Threads: any.
 * Signals: no.
 */
int cairn_lock_read(const char *text, size_t size, const char *name, struct cairn_lock **ret,
		    struct cairn_err *err);
void cairn_lock_free(struct cairn_lock *lock);

/* Borrowed until cairn_lock_free(). */
const struct cairn_types *cairn_lock_types(const struct cairn_lock *lock);
/* NULL: it was not known. */
const char *cairn_lock_abi(const struct cairn_lock *lock);
/*
 * The types that the file lists for themselves, without those that are there because they are
 * contained; *@ret_n of them.
 */
const uint32_t *cairn_lock_ids(const struct cairn_lock *lock, size_t *ret_n);

CAIRN_END_DECLS
#endif
