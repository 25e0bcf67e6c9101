/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers with what they count. */
#include <cairn/text.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *plural_end(const char *one, size_t n)
{
	if (n > 1 && one[n - 1] == 'y' && !strchr("aeiou", one[n - 2]))
		return "ies";
	return n && strchr("sx", one[n - 1]) ? "es" : "s";
}

struct cairn_counted cairn_counted(uint64_t n, const char *one)
{
	struct cairn_counted ret;
	size_t len = strlen(one);
	const char *end = n == 1 ? "" : plural_end(one, len);
	int kept = (int)(*end == 'i' ? len - 1 : len);

	snprintf(ret.text, sizeof(ret.text), "%" PRIu64 " %.*s%s", n, kept, one, end);
	return ret;
}
