/* SPDX-License-Identifier: BSD-2-Clause */
/* Text that another process wrote: on a terminal its control characters would be commands. */
#ifndef CLI_PLAIN_H
#define CLI_PLAIN_H

#include <stdio.h>

/* @text, with \x1b for an escape and so on; NULL is nothing. */
static inline void put_plain(FILE *out, const char *text)
{
	for (; text && *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			fprintf(out, "\\x%02x", (unsigned char)*text);
		else
			fputc(*text, out);
}

#endif
