/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether something can be written in a place, before there is anything to write. */
#ifndef CLI_TRACE_PLACE_H
#define CLI_TRACE_PLACE_H

#include <stdbool.h>

/* Reports why a file, or a directory, cannot be made or replaced at @path; an exit status. */
int trace_place_check(const char *path, bool is_directory);

#endif
