/* SPDX-License-Identifier: BSD-2-Clause */
/* Names as the messages of servers and readers may have them. */
#include "export/profile_impl.h"

#include <ctype.h>
#include <string.h>

#include "base/utf8.h"

/* The place where the text stops being UTF-8; its end, if it does not. */
static size_t utf8_end(const char *text, size_t n)
{
	size_t at = 0, len;
	uint32_t c;

	while (at < n && (len = utf8_length((const uint8_t *)text + at, n - at, &c)))
		at += len;
	return at;
}

bool profile_is_utf8(const char *text)
{
	size_t n = strlen(text);

	return utf8_end(text, n) == n;
}

const char *profile_utf8(struct arena *arena, const char *text)
{
	size_t n = strlen(text), len;
	uint32_t c;
	char *to, *copy;

	if (utf8_end(text, n) == n)
		return text;
	copy = to = arena_array(arena, n * 3 + 1, 1);
	for (size_t at = 0; copy && at < n; at += len ? len : 1) {
		len = utf8_length((const uint8_t *)text + at, n - at, &c);
		to = mempcpy(to, len ? text + at : "\xef\xbf\xbd", len ? len : 3);
	}
	return copy;
}

const char *profile_series_name(struct arena *arena, const char *text)
{
	char *name = arena_strdup(arena, text);

	for (char *at = name; at && *at; at++)
		if (!isalnum((unsigned char)*at))
			*at = '_';
	return name;
}

const char *profile_mapping_path(const struct cairn_profile_mapping *m)
{
	if (m->code == CAIRN_PROFILE_JIT)
		return "[jit]";
	if (m->code == CAIRN_PROFILE_KERNEL && m->path[0] != '[')
		return "[kernel.kallsyms]";
	return m->path;
}
