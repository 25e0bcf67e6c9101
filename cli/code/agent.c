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
static const char *const places[] = {"agent/libcairn-agent.so", CAIRN_AGENT_FROM_PROGRAM};

/* malloc()ed; NULL when it is nowhere. */
static char *find_agent(void)
{
	char program[4096], *path;
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (n < 0)
		return NULL;
	program[n] = '\0';
	*strrchr(program, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (asprintf(&path, "%s/%s", program, places[i]) < 0)
			return NULL;
		char *whole = realpath(path, NULL);
		free(path);
		if (whole)
			return whole;
	}
	return NULL;
}

static void say_obstacle(const char *exe)
{
	static const char *const why[] = {
		[CAIRN_PRELOAD_STATIC] = "it has no program interpreter (static programs do not)",
		[CAIRN_PRELOAD_PRIVILEGED] =
			"it gains privileges, and the loader then ignores LD_PRELOAD",
		[CAIRN_PRELOAD_FOREIGN] = "it is of another machine than cairn",
	};
	enum cairn_preload_obstacle obstacle;
	/* A program that may be run and not be read is not judged. */
	if (cairn_preload_look(exe, &obstacle, NULL) == 0 && obstacle)
		say(stderr, "cairn: %s does not load the agent: %s; programs that it starts may\n",
		    exe, why[obstacle]);
}

int agent_preload(const char *exe)
{
	const char *before = getenv("LD_PRELOAD");
	char *agent = find_agent(), *value;
	if (!agent)
		return fail(
			STATUS_NOT_HERE,
			"libcairn-agent.so was not found in the build folder or in LIBDIR/cairn");
	/* The loader has no way to write them. */
	if (strpbrk(agent, " :")) {
		int status = fail(STATUS_NOT_HERE,
				  "%s: a path with a blank or a colon cannot be preloaded", agent);
		free(agent);
		return status;
	}
	bool has_before = before && *before;
	int n = asprintf(&value, "%s%s%s", has_before ? before : "", has_before ? ":" : "", agent);
	free(agent);
	if (n < 0)
		return fail(STATUS_NOT_HERE, "no memory");
	int r = setenv("LD_PRELOAD", value, 1);
	free(value);
	if (r < 0)
		return fail(STATUS_NOT_HERE, "no memory");
	say_obstacle(exe);
	return STATUS_YES;
}
