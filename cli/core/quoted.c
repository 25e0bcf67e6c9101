/* SPDX-License-Identifier: BSD-2-Clause */
#include "quoted.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

char *quoted_copy(const char *text, size_t n, enum cairn_quote as, size_t *ret_n)
{
	char *whole = strndup(text, n), *quoted;
	ssize_t length = whole ? cairn_quote(whole, as, NULL, 0) : -1;

	quoted = length < 0 ? NULL : malloc((size_t)length + 1);
	if (quoted)
		cairn_quote(whole, as, quoted, (size_t)length + 1);
	free(whole);
	*ret_n = quoted ? (size_t)length : 0;
	return quoted;
}
