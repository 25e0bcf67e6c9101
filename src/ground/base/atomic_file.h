/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic file: readers see the whole content, or nothing
 *
 * Bytes go to a file that has no name yet (O_TMPFILE; if the file system lacks it, a file named
 * ".NAME.PID-N.tmp" beside the target). Committing syncs it and renames it over the target. So a
 * reader sees the old file or the new one, also after a full disk, a kill -9 or a power failure. A
 * writer that is killed leaves no file. Two exceptions leave a ".tmp" file: a file system without
 * O_TMPFILE, and the instant between link and rename.
 *
 *	struct atomic_file f;
 *	if (atomic_file_open(&f, path, 0666, err) < 0)
 *		return err->code;
 *	r = atomic_file_write(&f, bytes, size, err);
 *	return r < 0 ? (atomic_file_abort(&f), r) : atomic_file_commit(&f, err);
 */
#ifndef BASE_ATOMIC_FILE_H
#define BASE_ATOMIC_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct atomic_file {
	int fd; /* for pwrite(), mmap() and ftruncate() before the commit */
	/* the target's directory: renames above it have no effect any more */
	int dir;
	char *name;        /* the target in it, no symbolic link; NULL: written to directly */
	char *tmp;         /* in it; NULL: the file has no name */
	const char *shown; /* as the caller spelt it, for error texts; the caller's */
};

/*
 * atomic_file_open - begin to write
 *
 * @path  must outlive @f. A symbolic link is followed, by root only when it is root's (own_path.h);
 *	   a target that is no regular file (a terminal, a pipe, /dev/null) holds nothing that could
 *	   be kept whole and is written to directly
 * @mode  for a new file, less the umask; a file that is replaced passes its permissions on
 * Returns 0, or the system's errno (err: the file, and the action that failed), -EISDIR, -ENOMEM.
 */
int atomic_file_open(struct atomic_file *f, const char *path, mode_t mode, struct cairn_err *err);

/* Append @size bytes; 0, or -ENOSPC, -EFBIG, -EIO... */
int atomic_file_write(struct atomic_file *f, const void *bytes, size_t size, struct cairn_err *err);

/* Sync, give it its name; closes @f, also when it fails, and then the target is as it was. */
int atomic_file_commit(struct atomic_file *f, struct cairn_err *err);

/* Drops the written bytes, and closes. */
void atomic_file_abort(struct atomic_file *f);

#endif
