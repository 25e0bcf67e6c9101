/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the place of a file to be written, without being led elsewhere. */
#ifndef BASE_OWN_PATH_H
#define BASE_OWN_PATH_H

#include "base/err.h"

/*
 * own_path_open - the directory of @path, and the name in it
 *
 * The owner of a directory may plant a symbolic link in it before root writes there. So the path is
 * walked component by component, each opened below the previous one, and root follows only links
 * that root made. Other users follow all but those that a third user put into a directory that all
 * users may write (/tmp), as open() does with fs.protected_symlinks.
 *
 * @ret_name  gets the last component, which was no symbolic link when it was looked at; to be freed
 * Returns a descriptor of the directory (O_PATH); -EPERM (err: which link belongs to whom), -ELOOP,
 * -ENOMEM, the errors of openat(2).
 */
int own_path_open(const char *path, char **ret_name, struct cairn_err *err);

/*
 * own_path_open_special - open for writing a file that is no regular file: a terminal, a pipe, a
 * device
 *
 * By the same rules; and a pipe with a name that another user could plant is refused (-EPERM). A
 * link in /proc that is last is opened directly: the target of /dev/stdout may have no path. Waits
 * for the reader of a pipe.
 */
int own_path_open_special(const char *path, struct cairn_err *err);

#endif
