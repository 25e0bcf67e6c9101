/* SPDX-License-Identifier: BSD-2-Clause */
/* One C type, many spellings: "unsigned long" for GCC's "long unsigned int". */
#ifndef SOURCE_SPELLING_H
#define SOURCE_SPELLING_H

#include <stdbool.h>

/*
 * Whether two names mean one base type: they are equal, or they are C's words for it in another
 * order.
 */
bool spelled_alike(const char *a, const char *b);

#endif
