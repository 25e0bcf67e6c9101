/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cairn/serve.h>

#include "agent.h"
#include "cmd.h"
#include "say.h"

/* From the folder of this program: in the build tree, and installed. */
static const char *const places[] = {"agent", CAIRN_LIBRARIES_FROM_PROGRAM};

/* malloc()ed; NULL when it is nowhere. */
static char *find_library(const char *name)
{
	char program[4096], *path;
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (n < 0)
		return NULL;
	program[n] = '\0';
	*strrchr(program, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (asprintf(&path, "%s/%s/%s", program, places[i], name) < 0)
			return NULL;
		char *whole = realpath(path, NULL);
		free(path);
		if (whole)
			return whole;
	}
	return NULL;
}

/* NULL: it will load a library. */
static const char *obstacle_of(const char *exe)
{
	static const char *const why[] = {
		[CAIRN_PRELOAD_STATIC] = "it has no program interpreter (static programs do not)",
		[CAIRN_PRELOAD_PRIVILEGED] =
			"it gains privileges, and the loader then ignores LD_PRELOAD",
		[CAIRN_PRELOAD_FOREIGN] = "it is of another machine than cairn",
	};
	enum cairn_preload_obstacle obstacle;

	/* A program that may be run and not be read is not judged. */
	return cairn_preload_look(exe, &obstacle, NULL) == 0 ? why[obstacle] : NULL;
}

/* The present content stays, and comes first. */
static int add_to_environment(const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	bool has_before = before && *before;
	char *value;

	/* The loader has no way to write them. */
	if (strpbrk(library, " :"))
		return fail(STATUS_NOT_HERE,
			    "%s: a path with a blank or a colon cannot be preloaded", library);
	if (asprintf(&value, "%s%s%s", has_before ? before : "", has_before ? ":" : "", library) <
	    0)
		return fail(STATUS_NOT_HERE, "no memory");
	int r = setenv("LD_PRELOAD", value, 1);
	free(value);
	return r < 0 ? fail(STATUS_NOT_HERE, "no memory") : STATUS_YES;
}

static int preload(const char *name)
{
	char *library = find_library(name);

	if (!library)
		return fail(STATUS_NOT_HERE,
			    "%s was not found in the build folder or in LIBDIR/cairn", name);
	int status = add_to_environment(library);
	free(library);
	return status;
}

int agent_preload(const char *exe)
{
	int status = preload("libcairn-agent.so");
	const char *why = status == STATUS_YES ? obstacle_of(exe) : NULL;

	if (why)
		say(stderr, "cairn: %s does not load the agent: %s; programs that it starts may\n",
		    exe, why);
	return status;
}

int agent_preload_cover(const char *exe)
{
	const char *why = obstacle_of(exe);

	if (why)
		return fail(STATUS_NOT_HERE,
			    "%s cannot be covered, as it would not load libcairn-cover.so: %s", exe,
			    why);
	return preload("libcairn-cover.so");
}
