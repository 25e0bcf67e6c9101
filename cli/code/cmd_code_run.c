/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cairn code run: a program whose code is registered, by the agent in it, or by itself with
 * codectl(2) served from here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/shared/codectl.h>
#include <cairn/serve.h>

#include "agent.h"
#include "cmd.h"
#include "command.h"
#include "json.h"
#include "say.h"

struct run_values {
	unsigned long nr;
	bool rfc_numbers, verbose, json;
};

#define AT(field) offsetof(struct run_values, field)

static const struct opt opts[] = {
	{0, "syscall", OPT_COUNT, "NR", AT(nr),
	 "without the agent: serve codectl as the system call NR, a number that the kernel does "
	 "not have"},
	{0, "rfc-numbers", OPT_FLAG, NULL, AT(rfc_numbers),
	 "with --syscall: the options' numbers of the RFC as it was posted: 0 registers ELF, 1 "
	 "registers JIT, 2 unregisters"},
	{'v', "verbose", OPT_FLAG, NULL, AT(verbose),
	 "with --syscall: report each call and its result on standard error"},
	{0, "json", OPT_FLAG, NULL, AT(json),
	 "with --syscall: the same as one JSON object per call, on standard error"},
	{0},
};

static const struct example examples[] = {
	{"cairn code run -- luajit script.lua",
	 "run a program with the agent: all its code is registered, and that of its children"},
	{"cairn code run --syscall 500 -- ./jit",
	 "run a program that calls syscall(500, CODE_REGISTER_JIT, &info, sizeof(info), 0)"},
	{"cairn code run -v --syscall 500 --rfc-numbers -- ld.so ./prog",
	 "a loader built for the RFC's numbering; each call is reported"},
	{0},
};

static const char *option_name(const struct run_values *values, uint32_t option)
{
	static const char *const reviewed[] = {"CODE_UNREGISTER", "CODE_REGISTER_ELF",
					       "CODE_REGISTER_JIT"};
	static const char *const rfc[] = {"CODE_REGISTER_ELF", "CODE_REGISTER_JIT",
					  "CODE_UNREGISTER"};

	if (option >= sizeof(rfc) / sizeof(*rfc))
		return NULL;
	return values->rfc_numbers ? rfc[option] : reviewed[option];
}

static void report_json(const struct cairn_served_call *call, const char *name)
{
	struct json j = {.out = stderr};

	json_open(&j, NULL, '{');
	json_int(&j, "pid", call->pid);
	json_uint(&j, "option", call->option);
	json_text(&j, "name", name);
	json_uint(&j, "info", call->info);
	json_uint(&j, "info_size", call->info_size);
	json_uint(&j, "flags", call->flags);
	json_int(&j, "result", call->result);
	json_text(&j, "error", call->result ? strerrorname_np(-call->result) : NULL);
	json_close(&j);
}

/* As strace shows a call. */
static void answered(void *ctx, const struct cairn_served_call *call)
{
	const struct run_values *values = ctx;
	const char *name = option_name(values, call->option);

	if (*call->why)
		say(stderr, "cairn: process %d: %s\n", call->pid, call->why);
	if (values->json)
		return report_json(call, name);
	if (!values->verbose)
		return;
	say(stderr, "[%d] codectl(", call->pid);
	if (name)
		say(stderr, "%s", name);
	else
		say(stderr, "%" PRIu32, call->option);
	say(stderr, ", %#" PRIx64 ", %" PRIu64 ", %" PRIu32 ") = ", call->info, call->info_size,
	    call->flags);
	if (call->result)
		say(stderr, "-1 %s\n", strerrorname_np(-call->result));
	else
		say(stderr, "0\n");
}

static void restricted(void *ctx)
{
	say(stderr, "cairn: without root the command runs with no_new_privs: setuid programs that "
		    "it starts gain no privileges\n");
}

/* The status as a shell returns it. */
static int status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int serve(const char *exe, struct run_values *values, char **argv)
{
	struct cairn_serve_opts how = {.size = sizeof(how),
				       .nr = (long)values->nr,
				       .rfc_numbers = values->rfc_numbers,
				       .answered = answered,
				       .restricted = restricted,
				       .ctx = values};
	struct cairn_err err = {0};
	int status;

	int r = cairn_serve_run(exe, argv, &how, &status, &err);
	if (r == -EINVAL)
		return fail_told(STATUS_USAGE, &err);
	return r < 0 ? fail_err(r, &err, STATUS_NO) : status_of(status);
}

/* In place of this program: its process, its signals, its exit status. */
static int run_with_agent(const char *exe, char **argv)
{
	int status = agent_preload(exe);

	if (status != STATUS_YES)
		return status;
	execv(exe, argv);
	return fail(STATUS_NOT_HERE, "cannot run %s: %s", exe, strerror(errno));
}

static int run(void *v, const struct operands *operands)
{
	struct run_values *values = v;

	if (!values->nr && (values->rfc_numbers || values->verbose || values->json))
		return fail(STATUS_USAGE, "--rfc-numbers, --verbose and --json are about the "
					  "system call: add --syscall NR");
	char *exe = command_find(operands->items[0]);
	if (!exe)
		return fail(STATUS_USAGE, "no program %s", operands->items[0]);
	int status = values->nr ? serve(exe, values, operands->items)
				: run_with_agent(exe, operands->items);
	free(exe);
	return status;
}

const struct cmd cmd_code_run = {
	.name = "code run",
	.summary = "run a program whose code is registered",
	.operands = "CMD [ARG...]",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct run_values),
	.run = run,
};
