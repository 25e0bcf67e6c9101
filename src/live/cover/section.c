/* SPDX-License-Identifier: BSD-2-Clause */
#include "cover/cover.h"

#include <string.h>

struct prefix {
	const char *text;
	enum section_kind kind;
	bool of_kernel;
};

/* The first that fits. Without a slash it is the whole name: the target is said elsewhere. */
static const struct prefix prefixes[] = {
	{"kprobe/", SECTION_KPROBE, true},           {"uprobe/", SECTION_UPROBE, false},
	{"kretprobe/", SECTION_RETURN, true},        {"uretprobe/", SECTION_RETURN, false},
	{"uretprobe.s/", SECTION_RETURN, false},     {"uprobe.s/", SECTION_SLEEPABLE, false},
	{"fentry.s/", SECTION_SLEEPABLE, true},      {"fexit.s/", SECTION_RETURN, true},
	{"fentry/", SECTION_FENTRY, true},           {"fexit/", SECTION_RETURN, true},
	{"kprobe.multi/", SECTION_PATTERN, true},    {"kretprobe.multi/", SECTION_RETURN, true},
	{"kprobe.session/", SECTION_RETURN, true},   {"uprobe.multi/", SECTION_PATTERN, false},
	{"uretprobe.multi/", SECTION_RETURN, false}, {"kprobe", SECTION_KPROBE, true},
	{"uprobe", SECTION_UPROBE, false},           {"kretprobe", SECTION_RETURN, true},
	{"uretprobe", SECTION_RETURN, false},
};

static bool has_offset(const struct section *s)
{
	const char *name = s->of_kernel || !s->target ? s->target : strrchr(s->target, ':');

	return name && strchr(name, '+');
}

static bool fits(const struct prefix *p, const char *name)
{
	size_t n = strlen(p->text);

	return p->text[n - 1] == '/' ? !strncmp(name, p->text, n) : !strcmp(name, p->text);
}

struct section section_of(const char *name, const char *given)
{
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		const struct prefix *p = &prefixes[i];
		const char *slash = strchr(name, '/');
		struct section s = {p->kind, p->of_kernel, slash ? slash + 1 : given};
		if (!fits(p, name))
			continue;
		if (has_offset(&s))
			s.kind = SECTION_OFFSET;
		return s;
	}
	return (struct section){.kind = SECTION_OTHER};
}

const char *section_obstacle(enum section_kind kind)
{
	switch (kind) {
	case SECTION_RETURN:
		return "it runs at the return, and an inlined copy has none";
	case SECTION_SLEEPABLE:
		return "it may sleep, and a probe at an inlined copy may not";
	case SECTION_PATTERN:
		return "it is for several functions: name one with kprobe/FUNC";
	case SECTION_OFFSET:
		return "it is for an instruction, not for a function";
	case SECTION_TRACEFS:
		return "it is attached to an event that was made in tracefs, and of which function "
		       "that "
		       "is, is not known";
	default:
		return NULL;
	}
}
