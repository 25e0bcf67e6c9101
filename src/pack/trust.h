/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether somebody else could have written a file; the essay is in trust.c. */
#ifndef PACK_TRUST_H
#define PACK_TRUST_H

#include "base/err.h"

/*
 * trusted_open - open a file for reading that nobody but root and the caller can have written
 *
 * Returns a descriptor; -EPERM (err: which file or directory, and why); -ENOENT and what else openat(2) says.
 */
int trusted_open(const char *path, struct cairn_err *err);

#endif
