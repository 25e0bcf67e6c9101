/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that a process writes about itself, beside its memory
 *
 * They are in directories that any user may write (/tmp). So only files of root are accepted, or of
 * the user as whom the process makes files: not of the user who started a setuid program. In a
 * container both the path and the process id differ from ours.
 */
#ifndef CODE_PROCESS_FILE_H
#define CODE_PROCESS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cairn/err.h>

/*
 * The number that the process itself sees: the innermost of its pid namespaces. @pid may be one of
 * its threads, and is the answer when it is not known.
 */
int process_own_number(int pid);

struct process_file {
	char *bytes; /* NUL-terminated; NULL: there is no such file */
	size_t n;
	struct stat st; /* of the file that was read */
};

/*
 * process_file_read - the file that the process sees under @path
 *
 * @max    bytes that it may have; at most PROCESS_FILE_MAX
 * @known  the file read before, or NULL: when size, time and inode are the same, bytes stays NULL
 *	    and *@ret_same is set
 * Returns 0, also when there is no such file. Negative:
 *   -EACCES  it belongs to another user, or is no regular file (err)
 *   -ERANGE  larger than @max
 *   -ENOMEM, the errors of open(2) and read(2)
 */
int process_file_read(int pid, const char *path, off_t max, const struct stat *known,
		      struct process_file *ret, bool *ret_same, struct cairn_err *err);

/* A jitdump of an hour of a large JVM has 200 MB. */
enum { PROCESS_FILE_MAX = 512 << 20 };

#endif
