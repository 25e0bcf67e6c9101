/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a file is to be written, without being led elsewhere. */
#ifndef BASE_OWN_PATH_H
#define BASE_OWN_PATH_H

#include "base/err.h"

/*
 * own_path_open - the directory of @path, and the name in it
 *
 * Whoever owns a directory may plant a symbolic link in it before root writes there. So the path is walked component by
 * component, each opened below the one before, and root follows only links that root made. Other users follow all, as open() does.
 *
 * @ret_name  gets the last component, which was no symbolic link when it was looked at; to be freed
 * Returns a descriptor of the directory (O_PATH); -EPERM (err: which link is whose), -ELOOP, -ENOMEM, what openat(2) says.
 */
int own_path_open(const char *path, char **ret_name, struct cairn_err *err);

#endif
