/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads DW_AT_producer: the compiler, its version, and the options that change what it describes. */
#include <stdlib.h>
#include <string.h>

#include "dwarf/impl.h"

/* Kinds of options, as bits. */
enum {
	OPTIMISES = 1 << 0,
	OPTIMISES_NOT = 1 << 1,
	NO_ASSIGNMENTS = 1 << 2,
	/*
	 * -fweb gives each use of a register of the compiler a name of its own. It is on with the
	 * loop unrolling that is asked for; what GCC 13 does at -O2 is without it.
	 */
	WEB = 1 << 3,
	NO_WEB = 1 << 4,
	/* Special member functions of C++ are then left out, or named as before GCC 8. */
	OTHER_MEMBERS = 1 << 5,
	/* Instructions that trap throw, too. */
	THROWS_ANYWHERE = 1 << 6,
};

/* Words that an option begins with. */
static const struct option {
	const char *begins;
	unsigned int is;
} options[] = {
	{"-O", OPTIMISES},
	{"-O0", OPTIMISES_NOT},
	{"-fno-var-tracking-assignments", NO_ASSIGNMENTS},
	{"-fweb", WEB},
	{"-funroll-loops", WEB},
	{"-funroll-all-loops", WEB},
	{"-fprofile-use", WEB},
	{"-fauto-profile", WEB},
	{"-fno-web", NO_WEB},
	{"-gstrict-dwarf", OTHER_MEMBERS},
	{"-fabi-version=", OTHER_MEMBERS},
	{"-fnon-call-exceptions", THROWS_ANYWHERE},
};

/* The letters are compared first: a unit has some sixty options, and a kernel thousands of units. */
static bool begins_with(const char *word, const char *with)
{
	return word[1] == with[1] && (!with[2] || word[2] == with[2]) &&
	       !strncmp(word, with, strlen(with));
}

static unsigned int kinds_of(const char *word)
{
	unsigned int kinds = 0;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (begins_with(word, options[i].begins))
			kinds |= options[i].is;
	return kinds;
}

static unsigned int kinds_of_all(const char *producer)
{
	unsigned int kinds = 0;
	for (const char *p = strchr(producer, ' '); p; p = strchr(p + 1, ' '))
		if (p[1] == '-')
			kinds |= kinds_of(p + 1);
	return kinds;
}

/* "GNU C++17 12.2.0 -mtune=generic ...", "GNU GIMPLE 12.2.0 ..." */
static bool is_gcc_since(const char *producer, unsigned long since)
{
	const char *language = strchr(producer, ' '),
		   *version = language ? strchr(language + 1, ' ') : NULL;
	return version && strtoul(version + 1, NULL, 10) >= since;
}

void dw_producer_read(struct dw_unit *u, const char *producer)
{
	enum { LISTS_SPECIAL_MEMBERS = 8 };
	unsigned int kinds = kinds_of_all(producer);
	u->producer = producer;
	u->gcc = strncmp(producer, "GNU ", 4) == 0;
	u->lto = u->gcc && !strncmp(producer + strlen("GNU"), " GIMPLE", strlen(" GIMPLE"));
	u->clang = !u->gcc && strstr(producer, "clang");
	u->optimised = kinds & OPTIMISES && !(kinds & OPTIMISES_NOT);
	u->follows_assignments = !(kinds & NO_ASSIGNMENTS);
	u->renames_webs = u->gcc && kinds & WEB && !(kinds & NO_WEB);
	/* With -gno-record-gcc-switches it is not known. */
	u->may_throw_anywhere = u->gcc && (kinds & THROWS_ANYWHERE || !strstr(producer, " -"));
	u->lists_special_members =
		u->gcc && !(kinds & OTHER_MEMBERS) && is_gcc_since(producer, LISTS_SPECIAL_MEMBERS);
}
