/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts that an answer lacks, or shows in another way than its source. */
#include "cmd.h"
#include "say.h"

bool warn_of_missing_dwo(size_t n, const char *which, const char *consequence)
{
	if (!n)
		return false;
	say(stderr, "cairn: warning: %zu .dwo file%s of split debug information not found; %s\n", n,
	    n == 1 ? "" : "s", consequence);
	say_lines(stderr, which);
	return true;
}

void warn_of_renamed(size_t n)
{
	if (n)
		say(stderr,
		    "cairn: warning: %zu name%s no identifier%s here and written in another way; "
		    "see the comments\n",
		    n, n == 1 ? " is" : "s are", n == 1 ? "" : "s");
}
