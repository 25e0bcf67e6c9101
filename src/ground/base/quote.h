/* SPDX-License-Identifier: BSD-2-Clause */
/* Quoted names (cairn/text.h) in an arena. */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <cairn/text.h>

#include "base/arena.h"

/* @name, quoted; NULL when out of memory. @as is one that expresses every name. */
char *arena_quote(struct arena *arena, const char *name, enum cairn_quote as);

/*
 * The name of @n bytes that CAIRN_QUOTE_WORD or CAIRN_QUOTE_COMMENT wrote; NULL when out of memory.
 */
char *arena_unquote(struct arena *arena, const char *quoted, size_t n);

#endif
