/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn run: BPF programs of others, of an object or of a command, at inlined functions, too. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include <cairn/cover.h>
#include <cairn/text.h>

#include "agent.h"
#include "cmd.h"
#include "command.h"
#include "demangled.h"
#include "interrupt.h"
#include "json.h"
#include "say.h"
#include "shared_opts.h"
#include "sidecar.h"
#include "trace.h"
#include "trace_kernel.h"

struct run_values {
	struct sidecar_wish wish;
	struct opt_list debug_dirs, targets;
	const char *debug_file, *pin;
	unsigned long jobs;
	double seconds;
	bool cover_inlined, best_effort, json;
};

#define AT(field) offsetof(struct run_values, field)

static const struct opt opts[] = {
	{0, "cover-inlined", OPT_FLAG, NULL, AT(cover_inlined),
	 "attach the programs at the inlined copies of their functions, too"},
	{0, "attach", OPT_LIST, "PROGRAM=FUNC", AT(targets),
	 "attach a program whose SEC() does not say to what, such as SEC(\"kprobe\"); a uprobe to "
	 "PATH:FUNC; may be repeated"},
	{0, "best-effort", OPT_FLAG, NULL, AT(best_effort),
	 "attach what can be attached, and report the calls that are not seen, instead of "
	 "attaching nothing"},
	{0, "pin", OPT_TEXT, "DIR", AT(pin),
	 "pin the object's maps in DIR, below /sys/fs/bpf, as long as it runs"},
	{0, "duration", OPT_SECONDS, "TIME", AT(seconds), "end after TIME: 10, 500ms, 2m"},
	{0, "json", OPT_FLAG, NULL, AT(json), "one JSON object per program, at the end"},
	SIDECAR_OPTS(AT(wish)),
	OPT_DEBUG_DIR(AT(debug_dirs)),
	{0, "debug-file", OPT_TEXT, "FILE", AT(debug_file),
	 "of kernel functions: take the debug information from FILE, a vmlinux or a module"},
	OPT_JOBS(AT(jobs)),
	{0},
};

static const struct example examples[] = {
	{"sudo cairn run --cover-inlined tool.bpf.o",
	 "attach all programs of an object, at inlined calls of their functions, too, until "
	 "Ctrl-C"},
	{"sudo cairn run --cover-inlined --pin /sys/fs/bpf/tool tool.bpf.o",
	 "and pin its maps, for other programs to read"},
	{"sudo cairn run --cover-inlined --best-effort -- ./tool",
	 "run a tool that attaches its programs itself"},
	{0},
};

/* ---- what is reported ---- */

static void report_text(const struct cairn_covered *p)
{
	say(stderr, "%s  %s", p->name, p->section);
	if (p->is_attached)
		say(stderr, ", attached");
	else if (p->target)
		say(stderr, ", which no symbol has");
	else
		say(stderr, ", not attached: its SEC() does not say to what");
	if (p->n_sites)
		say(stderr, ", %s more covered", cairn_counted(p->n_sites, "site").text);
	if (p->why && p->n_left_out)
		say(stderr, "; not covered: %s, %s", cairn_counted(p->n_left_out, "site").text,
		    p->why);
	else if (p->why)
		say(stderr, "; not covered: %s", p->why);
	say(stderr, "\n");
	if (p->caveat)
		say(stderr, "  hits may not be calls at %s: %s\n",
		    cairn_counted(p->n_caveats, "site").text, p->caveat);
}

static void report_json(const struct cairn_covered *p)
{
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_text(&j, "program", p->name);
	json_text(&j, "section", p->section);
	json_text(&j, "target", p->target);
	json_bool(&j, "attached", p->is_attached);
	json_uint(&j, "covered", p->n_sites);
	json_uint(&j, "left_out", p->n_left_out);
	json_text(&j, "why", p->why);
	json_uint(&j, "caveats", p->n_caveats);
	json_text(&j, "caveat", p->caveat);
	json_uint(&j, "lost", p->n_lost);
	json_uint(&j, "missed", p->n_missed);
	json_bool(&j, "missed_is_unknown", p->missed_is_unknown);
	json_close(&j);
}

static void report_losses(const struct cairn_covered *p)
{
	if (p->n_lost)
		say(stderr,
		    "%s: %s at covered sites lost: an argument's memory could not be read\n",
		    p->name, cairn_counted(p->n_lost, "call").text);
	if (p->n_missed)
		say(stderr, "%s: the kernel did not run it for %s at covered sites\n", p->name,
		    cairn_counted(p->n_missed, "hit").text);
	if (p->missed_is_unknown)
		say(stderr,
		    "%s: this kernel does not tell how many hits its probes missed (Linux 6.7 "
		    "does)\n",
		    p->name);
}

static void report_end(struct cairn_cover *cover, bool as_json)
{
	cairn_cover_count(cover);
	for (uint32_t i = 0; i < cairn_cover_n_programs(cover); i++) {
		report_losses(cairn_cover_program(cover, i));
		if (as_json)
			report_json(cairn_cover_program(cover, i));
	}
}

/* ---- the run ---- */

static void wait_until_told(double seconds)
{
	struct timespec left = {.tv_sec = (time_t)seconds};

	left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
	while (!interrupt_seen()) {
		struct timespec day = {.tv_sec = 86400};
		if (nanosleep(seconds > 0 ? &left : &day, &left) == 0 && seconds > 0)
			return;
	}
}

static int pin(struct cairn_cover *cover, const char *dir)
{
	struct cairn_err err = {0};
	int e = dir ? cairn_cover_pin(cover, dir, &err) : 0;

	return e < 0 ? fail_err(e, &err, STATUS_NO) : STATUS_YES;
}

static int attach(struct cairn_cover *cover, const struct session *session)
{
	struct cairn_err err = {0};
	int e;

	interrupt_catch();
	e = cairn_cover_attach(cover, &err);
	if (e < 0 && session->kernel_status)
		return session->kernel_status;
	if (e < 0)
		return fail_err(e, &err, STATUS_NO);
	for (uint32_t i = 0; i < cairn_cover_n_programs(cover); i++)
		report_text(cairn_cover_program(cover, i));
	say(stderr, "attached\n");
	return STATUS_YES;
}

static struct cairn_cover_opts opts_of(const struct run_values *values, struct session *session)
{
	return (struct cairn_cover_opts){
		.size = sizeof(struct cairn_cover_opts),
		.best_effort = values->best_effort,
		.targets = values->targets.items,
		.n_targets = values->targets.n,
		.debug_dirs = values->debug_dirs.items,
		.n_debug_dirs = values->debug_dirs.n,
		.threads = (unsigned int)values->jobs,
		.find_sidecar = trace_find_sidecar,
		.find_sidecar_ctx = session,
		.find_kernel = trace_kernel_find,
		.find_kernel_ctx = session,
		.show_name = shown_name,
	};
}

static int cover_object(const struct run_values *values, struct session *session, const char *path)
{
	const struct cairn_cover_opts cover_opts = opts_of(values, session);
	struct cairn_cover *cover;
	struct cairn_err err = {0};
	int status, e = cairn_cover_open(path, &cover_opts, &cover, &err);

	if (e < 0)
		return fail_err(e, &err, e == -ENOENT || e == -EINVAL ? STATUS_USAGE : STATUS_NO);
	status = attach(cover, session);
	if (!status)
		status = pin(cover, values->pin);
	if (!status) {
		wait_until_told(values->seconds);
		report_end(cover, values->json);
		if (values->pin)
			cairn_cover_unpin(cover, values->pin);
	}
	cairn_cover_close(cover);
	return status;
}

/* ---- a command ---- */

/* Its own lines may be on standard error, too. */
static void command_covered(void *ctx, int pid, const struct cairn_covered *p, const char *refused)
{
	if (refused)
		say(stderr, "cairn: %s\n", refused);
	else
		report_text(p);
}

static void command_detached(void *ctx, int pid, const struct cairn_covered *p)
{
	report_losses(p);
}

/* As a shell returns it. */
static int status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int cover_found_command(const struct run_values *values, struct session *session,
			       const char *exe, char **argv)
{
	const struct cairn_cover_opts cover_opts = opts_of(values, session);
	const struct cairn_cover_command command = {
		.size = sizeof(command), .covered = command_covered, .detached = command_detached};
	struct cairn_err err = {0};
	int status = agent_preload_cover(exe);

	if (status)
		return status;
	int e = cairn_cover_run(exe, argv, &cover_opts, &command, &status, &err);
	return e < 0 ? fail_err(e, &err, STATUS_NO) : status_of(status);
}

static int cover_command(const struct run_values *values, struct session *session, char **argv)
{
	if (values->pin || values->targets.n || values->seconds > 0 || values->json)
		return fail(STATUS_USAGE,
			    "--attach, --pin, --duration and --json are of an object: a "
			    "command attaches its programs, ends and writes itself");
	char *exe = command_find(argv[0]);
	if (!exe)
		return fail(STATUS_USAGE, "no program %s", argv[0]);
	int status = cover_found_command(values, session, exe, argv);
	free(exe);
	return status;
}

static int run(void *v, const struct operands *operands)
{
	const struct run_values *values = v;
	struct session session = {.wish = values->wish, .debug_file = values->debug_file};

	if (!values->cover_inlined)
		return fail(STATUS_USAGE, "cairn run is for programs at inlined functions: add "
					  "--cover-inlined");
	if (operands->n > 1 && !operands->is_command)
		return fail(STATUS_USAGE, "one object at a time; a command is after --");
	session.wish.many = true;
	session.wish.debug_dirs = values->debug_dirs;
	session.wish.jobs = (unsigned int)values->jobs;
	int status = operands->is_command ? cover_command(values, &session, operands->items)
					  : cover_object(values, &session, operands->items[0]);
	trace_kernel_close(&session);
	return status;
}

const struct cmd cmd_run = {
	.name = "run",
	.summary = "attach BPF programs of others to inlined functions, too",
	.operands = "OBJECT|-- CMD [ARG...]",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct run_values),
	.run = run,
};
