/* SPDX-License-Identifier: BSD-2-Clause */
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
#ifndef CAIRN_LAYOUT_LOCK_H
#define CAIRN_LAYOUT_LOCK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

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
