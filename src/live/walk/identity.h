/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a file has the content that was opened
 *
 * Device and inode are not enough: a program that is written in place keeps both, as `cp` does over
 * it, and the inode of a deleted file is used again. A descriptor is held, so that the inode is not
 * used again, and so that a question costs one fstat(2), wherever the file's name leads by now.
 */
#ifndef WALK_IDENTITY_H
#define WALK_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/binary.h>

struct walk_identity {
	bool is_taken;
	int fd; /* of a path only */
	uint64_t size;
	int64_t written_s;   /* the time of the last write, since 1970 */
	uint32_t written_ns; /* the part below a second */
	int64_t changed_ns;  /* the content or the attributes; since 1970 */
	uint8_t build_id[64];
	size_t n_build_id; /* 0: it has none */
};

/*
 * identity_take - note what was opened
 *
 * Returns 0; -ESTALE: its path leads to another file or content than was opened, or nowhere; the
 * errors of open(2). identity_free() in both cases.
 */
int identity_take(struct walk_identity *ret, const struct cairn_binary *bin, struct cairn_err *err);
void identity_free(struct walk_identity *i);

/*
 * Whether the file has still that content; true when none was taken. @ret_written_ns: the last
 * write, since 1970.
 */
bool identity_holds(const struct walk_identity *i, const struct cairn_binary *bin,
		    int64_t *ret_written_ns);

/*
 * identity_is_later - whether a file was made or written after something happened
 *
 * @time_ns  CLOCK_MONOTONIC; 0: it happens now, so it was not
 */
bool identity_is_later(const struct walk_identity *i, uint64_t time_ns);

/* It has fewer bytes than it had. */
bool identity_is_shorter(const struct walk_identity *i);

/* No name leads to it: it is on the disk for those who have it open. */
bool identity_is_deleted(const struct walk_identity *i);

/* The time of an event in CLOCK_MONOTONIC, since 1970. */
int64_t identity_real_ns(uint64_t time_ns);

#endif
