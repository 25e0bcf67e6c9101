/* SPDX-License-Identifier: BSD-2-Clause */
/* Why events may not be as many as calls, in words. */
#include <cairn/sites.h>

#include <stddef.h>

static const struct {
	enum cairn_count_caveat doubt;
	const char *id, *text;
} doubts[] = {
	{CAIRN_COUNT_NO_ENTRY, "no-entry", "no entry in the debug information: may be passed without a call"},
	{CAIRN_COUNT_LOOPED, "again", "its own code leads back here: may be passed again by one call"},
	{CAIRN_COUNT_BYPASSED, "behind", "may be entered elsewhere: not every call passes here"},
	{CAIRN_COUNT_SHARED_PC, "shared-path", "has no code here: what is not a call passes here, too"},
	{CAIRN_COUNT_BEFORE_TEST, "condition", "the condition of the call is decided behind here: passed without a call, too"},
	{CAIRN_COUNT_MERGED, "merged", "merged with another call, whose place is passed, too"},
	{CAIRN_COUNT_FOLDED, "folded", "other functions have this code, too: their calls pass here"},
	{CAIRN_COUNT_VECTORISED, "vectorised", "computes with vectors: one event may be for several calls"},
	{CAIRN_COUNT_RECURSION, "recursion", "calls itself, and some of these calls may have become jumps that do not pass here"},
};

const char *cairn_count_caveat_text(enum cairn_count_caveat doubt)
{
	for (size_t i = 0; i < sizeof(doubts) / sizeof(doubts[0]); i++)
		if (doubts[i].doubt == doubt)
			return doubts[i].text;
	return "unknown";
}

const char *cairn_count_caveat_id(enum cairn_count_caveat doubt)
{
	for (size_t i = 0; i < sizeof(doubts) / sizeof(doubts[0]); i++)
		if (doubts[i].doubt == doubt)
			return doubts[i].id;
	return "unknown";
}
