/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile_event.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "trace.h"

static const char *const words[] = {
	[CAIRN_PROF_CPU] = "cpu",         [CAIRN_PROF_CPU_CLOCK] = "cpu-clock",
	[CAIRN_PROF_CYCLES] = "cycles",   [CAIRN_PROF_PAGE_FAULTS] = "page-faults",
	[CAIRN_PROF_OFF_CPU] = "off-cpu",
};

static bool is_file(const char *text, size_t n)
{
	char path[4096];
	struct stat st;

	if (n >= sizeof(path))
		return false;
	memcpy(path, text, n);
	path[n] = 0;
	return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Two words with a colon between: a source file has a dot, and a path a slash. */
static bool is_tracepoint(const char *text)
{
	static const char word[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	size_t n = strspn(text, word), rest = text[n] == ':' ? strspn(text + n + 1, word) : 0;

	return n && rest && !text[n + 1 + rest];
}

/* bpftrace's and perf's words for the kind before it. */
static const char *after_kind(const char *text)
{
	static const char kind[] = "tracepoint:";

	return strncmp(text, kind, sizeof(kind) - 1) ? NULL : text + sizeof(kind) - 1;
}

enum cairn_prof_event profile_event_of(const char *text, const char **ret_text)
{
	const char *point = text ? after_kind(text) : NULL;

	*ret_text = NULL;
	for (size_t i = 0; text && i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(text, words[i]))
			return (enum cairn_prof_event)i;
	if (!text)
		return CAIRN_PROF_CPU;
	*ret_text = point ? point : text;
	if (point || (is_tracepoint(text) && strncmp(text, "u:", 2) != 0 &&
		      strncmp(text, "uprobe:", 7) != 0 && !is_file(text, strcspn(text, ":"))))
		return CAIRN_PROF_TRACEPOINT;
	return CAIRN_PROF_PROBE;
}

bool profile_event_has_rate(enum cairn_prof_event event)
{
	return event == CAIRN_PROF_CPU || event == CAIRN_PROF_CPU_CLOCK ||
	       event == CAIRN_PROF_CYCLES;
}

void profile_event_sites(const struct cairn_prof *prof)
{
	const struct cairn_trace *probes = cairn_prof_probes(prof);

	if (!probes)
		return;
	trace_refusals(probes, stderr);
	trace_caveats(probes, stderr);
	fflush(stderr);
}
