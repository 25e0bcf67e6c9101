/* SPDX-License-Identifier: BSD-2-Clause */
/* Versions of Linux, as users and uname(2) write them. */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "btf.h"

/* One to three digits, and how they end in *@end. */
static bool number(const char *text, char **end, unsigned long *ret)
{
	*ret = strtoul(text, end, 10);
	return *text >= '0' && *text <= '9' && *ret < 256;
}

int btf_linux_version(const char *text, uint32_t *ret)
{
	struct utsname here;
	unsigned long major, minor;
	char *end;

	if (!strcmp(text, "all")) {
		*ret = 0;
		return STATUS_YES;
	}
	if (!*text && uname(&here) == 0)
		text = here.release;
	if (!number(text, &end, &major) || *end != '.' || !number(end + 1, &end, &minor) ||
	    (*end && !strchr(".-+_", *end)))
		return fail(STATUS_USAGE, "no version of Linux: '%s'; it is like 6.18, or all",
			    text);
	*ret = CAIRN_BTF_LINUX(major, minor);
	if (*ret < CAIRN_BTF_LINUX_OLDEST)
		return fail(STATUS_USAGE,
			    "the rules of Linux %lu.%lu are not known; those of 6.1 and later are",
			    major, minor);
	return STATUS_YES;
}
