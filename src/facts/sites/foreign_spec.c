/* SPDX-License-Identifier: BSD-2-Clause */
/* Meanings that a name that was not found may have to users of perf, gdb and bpftrace. */
#include <cairn/sites.h>

#include <stdio.h>
#include <string.h>

/* "file.c:7": gdb's and perf's word for a line. */
static bool is_line(const char *spec, size_t *ret_file)
{
	const char *colon = strrchr(spec, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	*ret_file = colon ? (size_t)(colon - spec) : 0;
	return digits && !colon[1 + digits] && colon > spec && colon[-1] != ':';
}

size_t cairn_sites_spec_hint(const char *spec, char *buf, size_t size)
{
	const char *offset = strchr(spec, '+'), *result = strstr(spec, "%return");
	size_t file;
	int n = 0;
	if (size)
		*buf = '\0';
	if (is_line(spec, &file))
		n = snprintf(buf, size,
			     "%s is a line: cairn sites FILE --lines %s shows where it begins, and "
			     "'%.*s:*' has "
			     "all functions of that file",
			     spec, spec, (int)file, spec);
	else if (result && !result[strlen("%return")])
		n = snprintf(
			buf, size,
			"%%return is a function's return to perf, and cairn has sites of calls "
			"only: %.*s",
			(int)(result - spec), spec);
	else if (offset > spec && !strncmp(offset, "+0x", 3))
		n = snprintf(buf, size,
			     "%s is an address in a function: cairn trace can set a probe there, "
			     "and cairn "
			     "addr tells what is there",
			     spec);
	return n > 0 ? (size_t)n : 0;
}
