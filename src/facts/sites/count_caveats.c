/* SPDX-License-Identifier: BSD-2-Clause */
/* Names the reasons why the number of events may differ from the number of calls. */
#include <cairn/sites.h>

#include <stddef.h>

static const struct {
	enum cairn_count_caveat caveat;
	const char *id, *text;
} caveats[] = {
	{CAIRN_COUNT_NO_ENTRY, "no-entry",
	 "no entry in the debug information: may be hit without a call"},
	{CAIRN_COUNT_LOOPED, "looped",
	 "inside a loop of the function: one call may hit this more than once"},
	{CAIRN_COUNT_BYPASSED, "bypassed", "some calls may bypass this address"},
	{CAIRN_COUNT_SHARED_PC, "shared-pc",
	 "address shared with the caller's code: may be hit without a call"},
	{CAIRN_COUNT_BEFORE_TEST, "before-test",
	 "reached before the call's condition is tested: may be hit without a call"},
	{CAIRN_COUNT_MERGED, "merged", "merged with another call site; counted there"},
	{CAIRN_COUNT_FOLDED, "folded",
	 "shared by other functions (identical code folding): their calls hit it, too"},
	{CAIRN_COUNT_VECTORISED, "vectorised",
	 "computes with vectors: one event may stand for several calls"},
	{CAIRN_COUNT_RECURSION, "recursion",
	 "calls itself, and some of these calls may have become jumps that bypass this address"},
	{CAIRN_COUNT_UNKNOWN, "unknown",
	 "not checked: BTF does not record which code is the copy's; events may differ from calls"},
};

const char *cairn_count_caveat_text(enum cairn_count_caveat caveat)
{
	for (size_t i = 0; i < sizeof(caveats) / sizeof(caveats[0]); i++)
		if (caveats[i].caveat == caveat)
			return caveats[i].text;
	return "unknown";
}

const char *cairn_count_caveat_id(enum cairn_count_caveat caveat)
{
	for (size_t i = 0; i < sizeof(caveats) / sizeof(caveats[0]); i++)
		if (caveats[i].caveat == caveat)
			return caveats[i].id;
	return "unknown";
}
