/* SPDX-License-Identifier: BSD-2-Clause */
/* Some bytes quoted for a language, as a string of their own. */
#ifndef CLI_QUOTED_H
#define CLI_QUOTED_H

#include <stddef.h>

#include <cairn/text.h>

/*
 * quoted_copy - the first @n bytes of @text, or those before a NUL, as cairn_quote() writes them
 *
 * @ret_n  its length
 * Returns a string to free(); NULL without memory: then a placeholder has to stand for it, since a
 * missing name looks like an empty one.
 */
char *quoted_copy(const char *text, size_t n, enum cairn_quote as, size_t *ret_n);

#endif
