/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/place/foreign.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *kind, *message;
} kinds[] = {
	{"kprobe:", "kprobe: is a kernel function, which is written kernel:FUNC here"},
	{"kretprobe:", "kretprobe: is the return of a kernel function, of which calls are traced: "
		       "kernel:FUNC"},
	{"fentry:", "fentry: is a kernel function, which is written kernel:FUNC here"},
	{"fexit:", "fexit: is the return of a kernel function, of which calls are traced: "
		   "kernel:FUNC"},
	{"tracepoint:", "tracepoint: is an event of the kernel, and user functions are traced: "
			"FILE:FUNC"},
	{"uretprobe:", "uretprobe: is a function's return, and calls are traced: FILE:FUNC"},
};

const char *foreign_kind(const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t n = strlen(kinds[i].kind);

		if (len >= n && !memcmp(text, kinds[i].kind, n))
			return kinds[i].message;
	}
	return NULL;
}

/* "ffffffff81000000 T name", and with "\t[module]". */
static bool is_function(const char *line, const char *name)
{
	char kind, found[512];

	return sscanf(line, "%*x %c %511s", &kind, found) == 2 && toupper(kind) == 'T' &&
	       !strcmp(found, name);
}

bool foreign_is_kernel_function(const char *name)
{
	FILE *in = fopen("/proc/kallsyms", "re");
	char line[1024];
	bool found = false;

	while (in && !found && fgets(line, sizeof(line), in))
		found = is_function(line, name);
	if (in)
		fclose(in);
	return found;
}
