/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mapping of input files; each mapping is in the table that cairn_input_at() looks into
 * (cairn/file.h).
 */
#ifndef BASE_INPUTS_H
#define BASE_INPUTS_H

#include <stddef.h>

#include "base/err.h"

/*
 * input_map - map a file for reading
 *
 * @size  bytes, at least 1
 * @name  for messages; copied
 * Returns the bytes, to be given back by input_unmap(), or NULL with errno. Threads: any.
 */
void *input_map(int fd, size_t size, const char *name);
void input_unmap(const void *bytes, size_t size);

/*
 * The name of the file that @bytes are mapped from, as cairn_input_at() gives it and valid until
 * they are unmapped, if the file is shorter now; else NULL.
 */
const char *input_shortened(const void *bytes);

/* @name became shorter, so what was made of it is not reliable: -EBADMSG; 0 if @name is NULL. */
int input_check(const char *name, struct cairn_err *err);

#endif
