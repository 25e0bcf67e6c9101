/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mapping of input files; each mapping is in the table that cairn_input_at() looks into
 * (cairn/inputs.h).
 */
#ifndef BASE_INPUTS_H
#define BASE_INPUTS_H

#include <stddef.h>

/*
 * input_map - map a file for reading
 *
 * @size  bytes, at least 1
 * @name  for messages; copied
 * Returns the bytes, to be given back by input_unmap(), or NULL with errno. Threads: any.
 */
void *input_map(int fd, size_t size, const char *name);
void input_unmap(const void *bytes, size_t size);

#endif
