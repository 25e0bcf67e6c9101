/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder that no other user can put another one in the place of. */
#ifndef CLI_OWN_FOLDER_H
#define CLI_OWN_FOLDER_H

#include <cairn/err.h>

/*
 * own_folder_make - make a folder, and those on the way to it that are missing, for this user alone
 *
 * Returns 0; -EPERM: a folder or a link on the way is another user's, or others may write there;
 * the system's error.
 */
int own_folder_make(const char *path, struct cairn_err *err);

#endif
