/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn stack: the stacks of all threads of a process or of a core file. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "demangled.h"
#include "say.h"
#include "shared_opts.h"
#include "stack.h"

struct stack_values {
	unsigned long rounds, max_frames, jobs;
	double interval;
	const char *sysroot, *program;
	struct opt_list debug_dirs;
	bool args, json, symbols, no_cache, no_demangle;
	const char *debuginfod;
};

#define AT(field) offsetof(struct stack_values, field)

static const struct opt opts[] = {
	{'n', "rounds", OPT_COUNT, "N", AT(rounds), "take the stacks N times"},
	{'i', "interval", OPT_SECONDS, "TIME", AT(interval),
	 "with -n, wait so long between two rounds; otherwise 1s"},
	{0, "max-frames", OPT_COUNT, "N", AT(max_frames),
	 "at most N frames of a thread; otherwise 1024"},
	{'e', "executable", OPT_TEXT, "FILE", AT(program),
	 "the program of a core file, if the core file does not name it"},
	{0, "sysroot", OPT_TEXT, "DIR", AT(sysroot), "look for the files of a core file below DIR"},
	OPT_CORE_DEBUG_DIR(AT(debug_dirs)),
	{'a', "args", OPT_FLAG, NULL, AT(args),
	 "the values of parameters, if the debug information has their locations"},
	{'s', "symbols", OPT_FLAG, NULL, AT(symbols),
	 "names of the symbol table only: no inlined calls, no lines"},
	DEMANGLE_OPT_OFF(AT(no_demangle)),
	{0, "json", OPT_FLAG, NULL, AT(json), "one JSON object per thread"},
	{0, "no-cache", OPT_FLAG, NULL, AT(no_cache),
	 "neither look in the cache of sidecars nor keep one there"},
	SIDECAR_OPT_DEBUGINFOD(AT(debuginfod)),
	{'j', "jobs", OPT_COUNT, "N", AT(jobs),
	 "use N threads for tables and sidecars; otherwise one per processor"},
	{0},
};

static const struct example examples[] = {
	{"cairn stack 1234",
	 "the stack of every thread of a process, with inlined calls and lines"},
	{"cairn stack --args core.1234", "the same with the values of parameters, of a core file"},
	{"cairn stack -s -n 10 -i 100ms 1234", "ten times, ten in a second, names only"},
	{"cairn stack 1234 --json | jq -r '.end' | sort | uniq -c",
	 "how many of its stacks are complete"},
	{"cairn stack core.1234",
	 "the stack of every thread when the program crashed, the crashed one first"},
	{0},
};

static void report_moment(const struct cairn_stacks *stacks)
{
	struct cairn_stacks_moment m;
	size_t n = cairn_stacks_n_threads(stacks);

	cairn_stacks_moment(stacks, &m);
	if (!m.stopped_ns) {
		say(stderr, "%zu thread%s\n", n, n == 1 ? "" : "s");
		return;
	}
	say(stderr, "%zu thread%s, stopped for %.3f ms, %s\n", n, n == 1 ? "" : "s",
	    (double)m.stopped_ns / 1e6,
	    m.is_consistent ? "all at one moment" : "not all at one moment");
}

/* The worst end of all stacks. */
static enum exit_status worse(enum exit_status a, enum exit_status b)
{
	return a == STATUS_NO || b == STATUS_YES ? a : b;
}

static enum exit_status status_of(enum cairn_walk_end end)
{
	if (end == CAIRN_WALK_ASSUMED)
		return STATUS_ASSUMED;
	return end == CAIRN_WALK_OUTERMOST ? STATUS_YES : STATUS_NO;
}

/* Whether every stack is complete. */
static enum exit_status show(const struct cairn_stacks *stacks, const struct stack_values *values,
			     struct stack_names *names, unsigned long round)
{
	enum exit_status status = cairn_stacks_n_threads(stacks) > 0 ? STATUS_YES : STATUS_NO;

	for (size_t i = 0; i < cairn_stacks_n_threads(stacks); i++) {
		const struct cairn_thread_stack *t = cairn_stacks_thread(stacks, i);

		status = worse(status, status_of(t->end));
		if (values->json)
			stack_json(stdout, t, names, round);
		else
			stack_text(stdout, t, names);
	}
	fflush(stdout);
	if (cairn_stacks_note(stacks))
		say(stderr, "%s\n", cairn_stacks_note(stacks));
	if (!values->json)
		report_moment(stacks);
	return status;
}

static void wait_for(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	nanosleep(&t, NULL);
}

static int take(int pid, const char *core, const struct stack_values *values,
		struct stack_names *names)
{
	struct cairn_stacks_opts how = {.size = sizeof(how),
					.max_frames = values->max_frames,
					.threads = (unsigned int)values->jobs,
					.program = values->program,
					.sysroot = values->sysroot,
					.debug_dirs = values->debug_dirs.items,
					.n_debug_dirs = values->debug_dirs.n,
					.find_sidecar = stack_names_find_sidecar,
					.find_sidecar_ctx = names,
					.vectors = values->args,
					.no_registers = !values->args};
	unsigned long rounds = values->rounds ? values->rounds : 1;
	struct cairn_stacks *stacks;
	struct cairn_err err = {0};
	enum exit_status status = STATUS_YES;
	int r;

	if (!stack_names_init(names))
		return fail_err(-ENOMEM, &err, STATUS_NO);
	r = pid ? cairn_stacks_open_pid(pid, &how, &stacks, &err)
		: cairn_stacks_open_core(core, &how, &stacks, &err);
	if (r < 0) {
		stack_names_fini(names);
		return fail_err(r, &err, STATUS_NO);
	}
	names->with_args = values->args ? stacks : NULL;
	for (unsigned long round = 1;; round++) {
		status = worse(status, show(stacks, values, names, round));
		if (round == rounds)
			break;
		wait_for(values->interval > 0 ? values->interval : 1);
		r = cairn_stacks_again(stacks, &err);
		if (r < 0)
			break;
	}
	stack_names_tell_trouble(names);
	/* Names are borrowed from its files. */
	stack_names_fini(names);
	cairn_stacks_close(stacks);
	if (r < 0)
		return fail_err(r, &err, STATUS_NO);
	return status;
}

/*
 * As much as a pipe holds: a process of 100 threads is written in a few pieces, where stdio would
 * make a hundred.
 */
static void write_in_large_pieces(void)
{
	static char buffer[1 << 16];

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
}

static int parse_pid(const char *word)
{
	char *end;
	long pid = strtol(word, &end, 10);

	return isdigit((unsigned char)*word) && !*end && pid > 0 && pid <= INT32_MAX ? (int)pid : 0;
}

static int run(void *v, const struct operands *operands)
{
	struct stack_values *values = v;
	struct stack_names names = {.wish = {.no_cache = values->no_cache,
					     .lines = true,
					     .jobs = (unsigned int)values->jobs},
				    .debuginfod = values->debuginfod,
				    .symbols_only = values->symbols};
	int pid = parse_pid(operands->items[0]);

	if (operands->n != 1)
		return fail(STATUS_USAGE, "one process or core file at a time");
	if (!pid && values->rounds > 1)
		return fail(STATUS_USAGE, "%s: a core file has one moment only",
			    operands->items[0]);
	if (pid && values->program)
		return fail(STATUS_USAGE,
			    "--executable is for core files; of process %d it is known", pid);
	if (values->no_demangle)
		demangle_never();
	write_in_large_pieces();
	return take(pid, operands->items[0], values, &names);
}

const struct cmd cmd_stack = {
	.name = "stack",
	.summary = "stacks of all threads",
	.operands = "PID|CORE",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct stack_values),
	.run = run,
};
