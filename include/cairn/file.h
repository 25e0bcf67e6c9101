/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that are written whole
 *
 * Functions that make BTF, a sidecar and the like give bytes; this puts bytes into a file.
 *
 *	if (cairn_file_write("out.btf", bytes, size, &err) < 0)
 *		fprintf(stderr, "%s\n", err.msg);
 */
#ifndef CAIRN_FILE_H
#define CAIRN_FILE_H

#include <stddef.h>

#include <cairn/api.h>
#include <cairn/err.h>

CAIRN_BEGIN_DECLS

/*
 * cairn_file_write - make or replace a file, all of it or nothing
 *
 * The bytes go to a file without a name, which is synced and then renamed over @path: a reader sees the old
 * content or the new one, also after a full disk or a kill -9.
 *
 * @path  a symbolic link is followed; a file that is replaced passes its permissions on; what is no regular file (a
 *        terminal, a pipe) is written to directly
 * Returns 0, or what the system said: -ENOENT (no such directory), -EACCES, -EISDIR, -ENOSPC, -EFBIG, -EIO; -ENOMEM.
 * Then @path is as it was. Cost: one write, two fsync. Threads: any; of two writers of one file, the last wins.
 */
int cairn_file_write(const char *path, const void *bytes, size_t size, struct cairn_err *err);

CAIRN_END_DECLS
#endif
