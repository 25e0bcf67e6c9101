/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells whether another user could have written a file; trust.c explains it. */
#ifndef SIDECAR_TRUST_H
#define SIDECAR_TRUST_H

#include "elf/elf.h"

/*
 * trusted_open - open a file for reading that only root and the caller can have written
 *
 * Returns a descriptor; -EPERM (err: which file or directory, and why); -ENOENT and other errors of
 * openat(2).
 */
int trusted_open(const char *path, struct cairn_err *err);

/*
 * trusted_source - whether a sidecar that is made of a binary may be kept
 *
 * The writer of the binary, or of a file that its debug information is from, decides the contents
 * of the sidecar, and the build-id by which it is found. For root each of these files has to be one
 * that trusted_open() would open, with the links on its path resolved. For others each has to
 * belong to root or to the caller. Returns 0; -EPERM (err: which file, and why); -ENOMEM.
 */
int trusted_source(const struct cairn_binary *bin, struct cairn_err *err);

/*
 * trusted_make - open a directory as trusted_open() does, and make it and those above it when they
 * are missing
 *
 * Each is made for its owner alone, below one that was looked at before: nothing is made where
 * another user could have led us.
 */
int trusted_make(const char *path, struct cairn_err *err);

#endif
