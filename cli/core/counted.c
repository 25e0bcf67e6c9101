/* SPDX-License-Identifier: BSD-2-Clause */
#include "counted.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXTS = 8, TEXT_MAX = 64 };

static const char *plural_end(const char *one, size_t n)
{
	if (n > 1 && one[n - 1] == 'y' && !strchr("aeiou", one[n - 2]))
		return "ies";
	return n && strchr("sx", one[n - 1]) ? "es" : "s";
}

const char *counted(uint64_t n, const char *one)
{
	static _Thread_local char texts[TEXTS][TEXT_MAX];
	static _Thread_local unsigned int last;
	char *text = texts[last++ % TEXTS];
	size_t len = strlen(one);
	const char *end = n == 1 ? "" : plural_end(one, len);
	int kept = (int)(*end == 'i' ? len - 1 : len);

	snprintf(text, TEXT_MAX, "%" PRIu64 " %.*s%s", n, kept, one, end);
	return text;
}
