/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *spec_base_name(const char *name)
{
	const char *base = name;
	int depth = 0;
	for (const char *p = name; *p; p++) {
		depth += *p == '<';
		depth -= *p == '>' && depth > 0;
		if (!depth && p[0] == ':' && p[1] == ':')
			base = p + 2;
	}
	return *base ? base : name;
}

bool spec_key(const char *name, char *buf, size_t size)
{
	const char *base = spec_base_name(name);
	const char *open = strncmp(base, "operator", 8) ? strchr(base, '<') : NULL;
	size_t n = open && open > base ? (size_t)(open - base) : strlen(base);
	if (n >= size)
		return false;
	memcpy(buf, base, n);
	buf[n] = '\0';
	return true;
}

const char *spec_colon(const char *s, const char *end)
{
	for (; s < end; s++) {
		if (*s != ':')
			continue;
		if (s[1] != ':')
			return s;
		s++;
	}
	return NULL;
}

/*
 * A "*" or "?" that is not part of a C++ name: "operator*", and "f<int *>", in which it follows a
 * type.
 */
static bool is_pattern(const char *name)
{
	int depth = 0;
	if (strstr(name, "operator"))
		return false;
	for (const char *p = name; *p; p++) {
		depth += *p == '<';
		depth -= *p == '>' && depth > 0;
		if ((*p == '*' || *p == '?') && (!depth || p[-1] == '<' || p[-1] == ','))
			return true;
	}
	return false;
}

void spec_parse(char *spec, struct group_filter *ret)
{
	*ret = (struct group_filter){.name = spec, .is_pattern = is_pattern(spec)};
	/* Template arguments may have colons, too. */
	const char *colon = spec_colon(spec, spec + strcspn(spec, "<"));
	if (!colon)
		return;
	spec[colon - spec] = 0;
	ret->file = spec;
	ret->name = colon + 1;
	char *end;
	unsigned long line = strtoul(ret->name, &end, 10);
	if (end != ret->name && end[0] == ':' && end[1] != ':') {
		ret->line = (uint32_t)line;
		ret->name = end + 1;
	}
	ret->is_pattern = is_pattern(ret->name);
}

bool cairn_sites_is_pattern(const char *spec)
{
	char copy[512];
	struct group_filter filter;
	snprintf(copy, sizeof(copy), "%s", spec);
	spec_parse(copy, &filter);
	return is_pattern(filter.name);
}
