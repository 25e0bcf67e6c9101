/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn code: the owners of the addresses of a process. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "code.h"
#include "shared_opts.h"

struct code_values {
	struct opt_list at, debug_dirs;
	const char *sysroot;
	double interval;
	unsigned long time_ns;
	bool watch, all, jit, json;
};

#define AT(field) offsetof(struct code_values, field)

static const struct opt opts[] = {
	{0, "at", OPT_LIST, "ADDR", AT(at),
	 "the owner of this address, in hexadecimal, and its functions; may be repeated"},
	{0, "time", OPT_COUNT, "NS", AT(time_ns),
	 "with --at, the owner at this time of CLOCK_MONOTONIC, as far as the registry still has "
	 "it"},
	{'w', "watch", OPT_FLAG, NULL, AT(watch),
	 "go on, and report new (+), removed (-) and changed (~) code"},
	{'i', "interval", OPT_SECONDS, "TIME", AT(interval),
	 "with --watch, look so often; otherwise 1s"},
	{0, "jit", OPT_FLAG, NULL, AT(jit),
	 "code made at run time only: no files, no objects of the registry"},
	{'a', "all", OPT_FLAG, NULL, AT(all),
	 "also removed code, as far as the registry still has it"},
	{0, "sysroot", OPT_TEXT, "DIR", AT(sysroot), "look for the files of a core file below DIR"},
	OPT_CORE_DEBUG_DIR(AT(debug_dirs)),
	{0, "json", OPT_FLAG, NULL, AT(json), "one JSON object per range"},
	{0},
};

static const struct example examples[] = {
	{"cairn code 1234", "every range of code of a process, its source, and how it is unwound"},
	{"cairn code 1234 --at 7f10a2c5d3f5", "the owner of an address, and the function there"},
	{"cairn code 1234 --jit --watch", "the code that its JIT registers and frees"},
	{"cairn code 1234 --json | jq 'select(.trusted == false)'",
	 "the entries that contradict the mappings, and why"},
	{0},
};

static bool is_wanted(const struct cairn_code_range *r, void *ctx)
{
	const struct code_values *values = ctx;

	return !values->jit || (r->source != CAIRN_CODE_FILE && r->source != CAIRN_CODE_VDSO &&
				r->source != CAIRN_CODE_ELF);
}

static int show(const struct cairn_code *code, struct code_values *values)
{
	size_t n = 0;

	for (size_t i = 0; i < cairn_code_n_ranges(code); i++) {
		const struct cairn_code_range *r = cairn_code_range(code, i);

		if ((r->is_removed && !values->all) || !is_wanted(r, values))
			continue;
		if (values->json)
			code_json(stdout, r, CODE_THERE);
		else if (!n)
			code_text_head(stdout);
		if (!values->json)
			code_text(stdout, r, CODE_THERE);
		n++;
	}
	code_notes(code, values->json);
	return n ? STATUS_YES : STATUS_NO;
}

/* ---- --at ---- */

static bool parse_address(const char *word, struct cairn_addr *ret)
{
	char *end;

	errno = 0;
	ret->v = strtoull(word, &end, 16);
	return isxdigit((unsigned char)*word) && !*end && !errno;
}

static int show_at(struct cairn_code *code, const struct code_values *values)
{
	int status = STATUS_YES;

	for (size_t i = 0; i < values->at.n; i++) {
		struct cairn_frame frames[CAIRN_FRAMES_MAX];
		struct cairn_err err = {0};
		struct cairn_addr at;
		uint64_t off = 0;

		parse_address(values->at.items[i], &at);
		const struct cairn_code_range *r = cairn_code_find(code, at, values->time_ns);
		/* Names are those of now. */
		int n = r && r != cairn_code_find(code, at, 0)
				? 0
				: cairn_code_frames(code, at, frames, CAIRN_FRAMES_MAX, &off, &err);

		if (n < 0)
			return fail_err(n, &err, STATUS_NO);
		if (values->json)
			code_at_json(stdout, at, r, frames, n, off);
		else
			code_at_text(stdout, at, r, frames, n, off);
		if (!r || !r->is_trusted)
			status = STATUS_NO;
	}
	code_notes(code, values->json);
	return status;
}

/* ---- --watch ---- */

static void wait_for(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	nanosleep(&t, NULL);
}

/* Until it is interrupted, or the process has ended. */
static int watch(struct cairn_code *code, struct code_values *values)
{
	struct code_seen seen = {0};
	struct cairn_err err = {0};
	int r = code_follow(&seen, code, values->json, is_wanted, values);

	while (r >= 0) {
		fflush(stdout);
		wait_for(values->interval > 0 ? values->interval : 1);
		r = cairn_code_refresh(code, &err);
		if (r == 0 && !cairn_code_n_ranges(code))
			r = -ESRCH;
		if (r == 0)
			r = code_follow(&seen, code, values->json, is_wanted, values);
	}
	code_seen_fini(&seen);
	return r == -ESRCH ? STATUS_YES : fail_err(r, &err, STATUS_NO);
}

static int answer(struct cairn_code *code, struct code_values *values)
{
	if (values->at.n)
		return show_at(code, values);
	int status = show(code, values);

	return values->watch ? watch(code, values) : status;
}

static int parse_pid(const char *word)
{
	char *end;
	long pid = strtol(word, &end, 10);

	return isdigit((unsigned char)*word) && !*end && pid > 0 && pid <= INT32_MAX ? (int)pid : 0;
}

static int check(const struct code_values *values, const struct operands *operands, int pid)
{
	struct cairn_addr at;

	if (operands->n != 1)
		return fail(STATUS_USAGE, "one process or core file at a time");
	if (!pid && values->watch)
		return fail(STATUS_USAGE, "%s: a core file has one moment only",
			    operands->items[0]);
	if (values->time_ns && !values->at.n)
		return fail(STATUS_USAGE, "--time takes an address: --at ADDR");
	if (values->at.n && values->watch)
		return fail(STATUS_USAGE, "--at or --watch, not both");
	for (size_t i = 0; i < values->at.n; i++)
		if (!parse_address(values->at.items[i], &at))
			return fail(STATUS_USAGE, "%s is no address in hexadecimal",
				    values->at.items[i]);
	return STATUS_YES;
}

static int run(void *v, const struct operands *operands)
{
	struct code_values *values = v;
	struct cairn_code_opts how = {.size = sizeof(how),
				      .sysroot = values->sysroot,
				      .debug_dirs = values->debug_dirs.items,
				      .n_debug_dirs = values->debug_dirs.n};
	const char *word = operands->items[0];
	int pid = parse_pid(word), status = check(values, operands, pid);
	struct cairn_code *code;
	struct cairn_err err = {0};

	if (status != STATUS_YES)
		return status;
	int r = pid ? cairn_code_open_pid(pid, &how, &code, &err)
		    : cairn_code_open_core(word, &how, &code, &err);
	if (r == -ENOENT)
		return fail_told(STATUS_USAGE, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_NO);
	status = answer(code, values);
	cairn_code_close(code);
	return status;
}

const struct cmd cmd_code = {
	.name = "code",
	.summary = "the owners of the addresses of a process",
	.operands = "PID|CORE",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct code_values),
	.run = run,
};
