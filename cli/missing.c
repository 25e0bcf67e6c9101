/* SPDX-License-Identifier: BSD-2-Clause */
/* Split debug information that is not there. */
#include "cmd.h"
#include "say.h"

bool warn_of_missing_dwo(size_t n, const char *which, const char *consequence)
{
	if (!n)
		return false;
	say(stderr, "cairn: warning: %zu .dwo file%s of split debug information not found; %s\n", n, n == 1 ? "" : "s",
	    consequence);
	say_lines(stderr, which);
	return true;
}
