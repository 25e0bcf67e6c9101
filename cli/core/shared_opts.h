/* SPDX-License-Identifier: BSD-2-Clause */
/* Options that several verbs have: one text and one letter for one thing. */
#ifndef CLI_SHARED_OPTS_H
#define CLI_SHARED_OPTS_H

#include "cmd.h"

/* clang-format off */
#define OPT_DEBUG_DIR(at) \
	{0, "debug-dir", OPT_LIST, "DIR", (at), \
	 "look for debug files in DIR, then in /usr/lib/debug; may be repeated"}
#define OPT_CORE_DEBUG_DIR(at) \
	{0, "debug-dir", OPT_LIST, "DIR", (at), \
	 "look for the files of a core file in DIR/.build-id, too; may be repeated"}
#define OPT_DEBUG_FILE(at) \
	{0, "debug-file", OPT_TEXT, "FILE", (at), "take the debug information from FILE"}
#define OPT_ASSUME_UNMODIFIED(at) \
	{0, "assume-unmodified", OPT_FLAG, NULL, (at), \
	 "accept a parameter's value at a site as the argument even if the debug information, " \
	 "mostly Clang's, does not show whether the function has already changed it"}
#define OPT_JOBS(at) \
	{'j', "jobs", OPT_COUNT, "N", (at), "use N threads; otherwise one per processor"}
/* clang-format on */

#endif
