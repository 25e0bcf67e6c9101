/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cairn trace: calls of functions, inlined ones too, with typed arguments, as they happen or summed
 * up.
 */
#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cairn/trace.h>

#include "cmd.h"
#include "command.h"
#include "demangled.h"
#include "interrupt.h"
#include "say.h"
#include "shared_opts.h"
#include "sidecar.h"
#include "style.h"
#include "trace.h"
#include "trace_aggregate.h"
#include "trace_emit.h"
#include "trace_files.h"
#include "trace_kernel.h"
#include "trace_sample.h"
#include "trace_script.h"
#include "trace_stack.h"
#include "trace_which.h"

struct trace_values {
	struct opt_list pids;
	const char *command, *command_output;
	const char *cgroup, *comm;
	const char *sample, *max_slowdown;
	struct opt_list out;
	const char *backend;
	const char *stack;
	const char *format, *time, *rotate;
	const char *emit;
	const char *debug_file;
	struct opt_list debug_dirs;
	struct sidecar_wish wish;
	struct aggregate_values aggregates;
	unsigned long max_events, str_len, value_len, ring_kib, jobs;
	double seconds;
	bool kernel, json, graph, verbose, best_effort, fail_on_loss, dry_run, children, no_move,
		assume_unmodified, no_demangle;
};

#define AT(field) offsetof(struct trace_values, field)

static const struct opt opts[] = {
	{'p', "pid", OPT_LIST, "PID,...", AT(pids), "trace these processes; may be repeated"},
	{'c', "command", OPT_TEXT, "CMD", AT(command),
	 "run CMD and trace it from its first instruction; no shell, so quote it as one word"},
	{0, "command-output", OPT_TEXT, "FILE", AT(command_output),
	 "standard output and error of CMD go to FILE, and do not mix with the events"},
	{0, "cgroup", OPT_TEXT, "DIR", AT(cgroup),
	 "trace the processes of this directory of cgroup v2, such as a container's"},
	{0, "comm", OPT_TEXT, "NAME", AT(comm),
	 "trace the processes of this name, as ps -C takes it, also those that start later"},
	{'k', "kernel", OPT_FLAG, NULL, AT(kernel),
	 "trace functions of the running kernel: FUNC, of a loaded module MODULE:FUNC; "
	 "kernel:FUNC needs no -k"},
	{'n', "events", OPT_COUNT, "N", AT(max_events), "end after N events"},
	{0, "duration", OPT_SECONDS, "TIME", AT(seconds), "end after TIME: 10, 500ms, 2m"},
	{'o', "output", OPT_LIST, "FILE", AT(out),
	 "write the events to FILE, to NAME.pftrace for Perfetto, or to NAME.ctf; sums as a page "
	 "with bars, NAME.html; with --by '$stack' a profile, NAME.html, NAME.folded or "
	 "NAME.pb.gz; may be repeated"},
	{0, "rotate", OPT_TEXT, "SIZE[,COUNT]", AT(rotate),
	 "begin a new FILE when it has SIZE bytes: 64M, 1G; keep COUNT old ones as FILE.1, FILE.2 "
	 "and so on (10)"},
	{0, "format", OPT_TEXT, "TEXT", AT(format),
	 "print TEXT for each event, with fields: '{$time} {$comm:>15} {req->path:s} {len:08x}'"},
	{0, "time", OPT_TEXT, "relative|monotonic|wall|delta", AT(time),
	 "which time of an event is shown (relative: since the probes were attached); delta: since "
	 "the last event of the thread"},
	{0, "json", OPT_FLAG, NULL, AT(json),
	 "one JSON object per event, and one with the summary"},
	{0, "stack", OPT_MAYBE, "N", AT(stack),
	 "under each event its stack, as \"cairn stack\" prints it; the first N frames"},
	{0, "graph", OPT_FLAG, NULL, AT(graph),
	 "show calls as a tree, with their durations: an entry opens a brace, its return closes "
	 "it"},
	AGGREGATE_OPTS(AT(aggregates)),
	{0, "sample", OPT_TEXT, "1/N", AT(sample),
	 "take one of N hits, drawn at random; the others are counted"},
	{0, "max-slowdown", OPT_TEXT, "LIMIT", AT(max_slowdown),
	 "take fewer hits, or remove the probes, when the processes are slowed down by more: 10%, "
	 "off "
	 "(10%; with -c off)"},
	{0, "best-effort", OPT_FLAG, NULL, AT(best_effort),
	 "attach all sites that can be attached, and report the missing ones, instead of attaching "
	 "nothing"},
	{0, "fail-on-loss", OPT_FLAG, NULL, AT(fail_on_loss), "exit with 5 when events were lost"},
	{0, "dry-run", OPT_FLAG, NULL, AT(dry_run),
	 "show which sites would be attached and which values fetched; needs no privileges"},
	{0, "emit", OPT_TEXT, "bpftrace|perf|gdb|c", AT(emit),
	 "print what would be traced as a script for another tool, or a program of C; needs no "
	 "privileges"},
	{'v', "verbose", OPT_FLAG, NULL, AT(verbose),
	 "with --dry-run: show the programs that fetch the values, too"},
	{0, "str-len", OPT_COUNT, "N", AT(str_len), "show at most N bytes of a string (63)"},
	{0, "value-len", OPT_COUNT, "N", AT(value_len),
	 "fetch at most N bytes of a struct or an array (512)"},
	{'f', "follow", OPT_FLAG, NULL, AT(children),
	 "trace the children of the processes, too, also those that run already"},
	{0, "no-move", OPT_FLAG, NULL, AT(no_move),
	 "never move a probe to a cheaper instruction of the same basic block, or off one with a "
	 "hazard"},
	OPT_ASSUME_UNMODIFIED(AT(assume_unmodified)),
	DEMANGLE_OPT_OFF(AT(no_demangle)),
	{0, "backend", OPT_TEXT, "auto|uprobe_session|uprobe_multi|uprobe|kprobe", AT(backend),
	 "how probes are attached (auto)"},
	{0, "ring", OPT_COUNT, "KIB", AT(ring_kib),
	 "size of the buffer between kernel and cairn (8192)"},
	SIDECAR_OPTS(AT(wish)),
	OPT_DEBUG_DIR(AT(debug_dirs)),
	{0, "debug-file", OPT_TEXT, "FILE", AT(debug_file),
	 "of kernel functions: take the debug information from FILE, a vmlinux or a module"},
	{'j', "jobs", OPT_COUNT, "N", AT(jobs),
	 "use N threads to read debug information; otherwise one per processor"},
	{0},
};

static const struct example examples[] = {
	{"sudo cairn trace -c 'ls /usr/bin' '/lib/x86_64-linux-gnu/libc.so.6:tcache_get'",
	 "each call that ls makes of a function that its libc has inlined"},
	{"sudo cairn trace -p 1234 'parse(req->path, req->flags:hex) if req->size > 4096'",
	 "expressions over the parameters; the condition is decided in the kernel"},
	{"sudo cairn trace -p 1234 --duration 10 --json parse reply | jq .args",
	 "ten seconds of two functions, for other programs to read"},
	{"sudo cairn trace -p 1234 --avg req->size --hist req->size --by req->path 'parse if "
	 "req->size'",
	 "sizes by path, summed up in the kernel: nothing is sent for each call"},
	{"sudo cairn trace --cgroup /sys/fs/cgroup/system.slice/web.service --count --by '$comm' "
	 "libc.so.6:malloc",
	 "the processes of a service, also those that it starts later"},
	{"sudo cairn trace -k 'vfs_write(file->f_flags:hex, count) if count > 4096'",
	 "a function of the kernel, in all processes, where it is inlined, too"},
	{"cairn trace --emit bpftrace -p 1234 'parse(req->size) if req->size > 4096' >parse.bt",
	 "the same probe for bpftrace, also where the function is inlined"},
	{"cairn trace --dry-run -p 1234 parse",
	 "the sites that would be attached, and where each value is read"},
	{0},
};

static int attach(struct session *session)
{
	struct cairn_err err = {0};
	int r;

	trace_missing(session->trace);
	interrupt_catch();
	r = cairn_trace_attach(session->trace, &err);
	if (r >= 0) {
		session->is_attached = true;
		trace_attached(session, (unsigned int)r);
		return STATUS_YES;
	}
	fail_err(r, &err, STATUS_NO);
	if (r != -ENOENT && r != -EOPNOTSUPP)
		return r == -ESRCH ? STATUS_NO : STATUS_NOT_HERE;
	trace_refusals(session->trace, stderr);
	return r == -ENOENT ? STATUS_NO : STATUS_NOT_HERE;
}

static int check_debug_file(const struct session *session)
{
	return session->debug_file && !session->kernels
		       ? fail(STATUS_USAGE, "--debug-file is for kernel functions: -k, kernel:FUNC")
		       : STATUS_YES;
}

static int add_probes(struct session *session, const struct operands *operands)
{
	for (size_t i = 0; i < operands->n; i++) {
		struct cairn_err err = {0};
		int r = cairn_trace_add(session->trace, operands->items[i], &err);

		if (r < 0)
			return session->kernel_status ? session->kernel_status
						      : fail_asked(r, &err);
		trace_added(session, operands->items[i], (uint32_t)r);
	}
	return STATUS_YES;
}

static enum cairn_trace_backend backend_of(const char *word)
{
	if (!word || !strcmp(word, "auto"))
		return CAIRN_BACKEND_AUTO;
	if (!strcmp(word, "uprobe_session"))
		return CAIRN_BACKEND_UPROBE_SESSION;
	if (!strcmp(word, "kprobe"))
		return CAIRN_BACKEND_KPROBE;
	return strcmp(word, "uprobe") ? CAIRN_BACKEND_UPROBE_MULTI : CAIRN_BACKEND_UPROBE;
}

static enum cairn_trace_time time_of(const char *word)
{
	static const char *const words[] = {[CAIRN_TIME_RELATIVE] = "relative",
					    [CAIRN_TIME_MONOTONIC] = "monotonic",
					    [CAIRN_TIME_WALL] = "wall",
					    [CAIRN_TIME_DELTA] = "delta"};

	for (unsigned int i = 0; word && i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], word))
			return (enum cairn_trace_time)i;
	return CAIRN_TIME_RELATIVE;
}

static uint32_t at_most_32_bits(unsigned long value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* Only standard output can be a terminal. */
static struct cairn_trace_style event_style(const struct trace_values *values)
{
	struct style s = style_for(stdout);
	bool is_shown = !values->json && !values->out.n && *s.off;

	return is_shown ? (struct cairn_trace_style){s.name, s.faint, s.bad, s.off}
			: (struct cairn_trace_style){"", "", "", ""};
}

static int open_trace(const struct trace_values *values, const struct command *command,
		      struct session *session)
{
	const struct cairn_trace_style style = event_style(values);
	struct cairn_trace_opts trace_opts = {
		.size = sizeof(trace_opts),
		.style = &style,
		.pids = session->pids,
		.n_pids = session->n_pids,
		.cgroup = values->cgroup,
		.comm = values->comm,
		.argv = command->argv,
		.exe = command->exe,
		.best_effort = values->best_effort,
		.follow_children = values->children,
		.no_move = values->no_move,
		.assume_unmodified = values->assume_unmodified,
		.find_sidecar = trace_find_sidecar,
		.find_sidecar_ctx = session,
		.find_names = trace_stack_find_sidecar,
		.find_names_ctx = session,
		.of_kernel = values->kernel,
		.find_kernel = trace_kernel_find,
		.find_kernel_ctx = session,
		.show_name = shown_name,
		.time = time_of(values->time),
		.format = values->format,
		.shows_calls = values->graph,
		.backend = backend_of(values->backend),
		.ring_bytes = at_most_32_bits(values->ring_kib > UINT32_MAX / 1024
						      ? UINT32_MAX
						      : values->ring_kib * 1024),
		.string_bytes = at_most_32_bits(values->str_len),
		.value_bytes = at_most_32_bits(values->value_len),
		.debug_dirs = values->debug_dirs.items,
		.n_debug_dirs = values->debug_dirs.n,
		.threads = (unsigned int)values->jobs,
	};
	struct cairn_err err = {0};
	int r, status = STATUS_YES;

	if (values->stack)
		status = trace_stack_open(values->stack, &trace_opts.stack_frames, session);
	if (status)
		return status;
	if (values->max_slowdown)
		status = trace_guard_read(values->max_slowdown, &session->max_slowdown);
	else if (!values->command)
		session->max_slowdown = 0.1;
	session->has_limit = values->max_slowdown;
	if (!status && values->sample)
		status = trace_sample_read(values->sample, &trace_opts.sample);
	if (!status && values->command_output)
		status = trace_which_output(values->command_output, &trace_opts.command_output);
	if (status)
		return status;
	session->command_output = trace_opts.command_output;
	session->sample = trace_opts.sample;
	r = cairn_trace_open(&trace_opts, &session->trace, &err);
	return r < 0 ? fail_err(r, &err, r == -ESRCH ? STATUS_NO : STATUS_USAGE) : STATUS_YES;
}

/* In JSON the events have their depths. */
static int open_graph(const struct trace_values *values, struct session *session)
{
	struct cairn_trace_graph_opts graph_opts = {.size = sizeof(graph_opts),
						    .with_time = values->time != NULL};
	struct cairn_err err = {0};
	int r = 0;

	if (values->graph && !values->json)
		r = cairn_trace_graph_new(&graph_opts, &session->graph, &err);
	return r < 0 ? fail_err(r, &err, STATUS_NOT_HERE) : STATUS_YES;
}

static int open_aggregates(const struct trace_values *values, struct session *session)
{
	const struct aggregate_values *v = &values->aggregates;

	if (aggregate_is_wanted(v))
		return aggregate_open(v, session);
	if (!v->every && !v->clear && !v->top && !v->max_keys)
		return STATUS_YES;
	return fail(STATUS_USAGE, "--top, --every, --clear and --max-keys are for what is summed "
				  "up: --count, --sum EXPR and so on, and --by KEY");
}

/* Thirty years are never over, and the nanoseconds of many more have no number: 0. */
static uint64_t nanoseconds(double seconds)
{
	return seconds < 1e9 ? (uint64_t)(seconds * 1e9 + 0.5) : 0;
}

static int go(const struct trace_values *values, const struct command *command,
	      const struct operands *operands, struct session *session)
{
	const struct file_values files = {.out = values->out,
					  .rotate = values->rotate,
					  .repeats = values->aggregates.every != 0};
	int status = open_trace(values, command, session);

	if (!status)
		status = open_aggregates(values, session);
	if (!status)
		status = open_graph(values, session);
	if (!status)
		status = add_probes(session, operands);
	if (!status)
		status = check_debug_file(session);
	trace_note_trouble(session);
	if (status)
		return status;
	if (values->emit)
		return trace_emit(session, values->emit);
	if (values->dry_run)
		return trace_plan(session, values->best_effort, values->verbose);
	status = trace_files_open(&files, session);
	if (!status)
		status = attach(session);
	return status ? status : trace_watch(session, nanoseconds(values->seconds));
}

static int check_which(const struct trace_values *v)
{
	bool is_limited = v->cgroup || v->comm;

	if (v->pids.n && v->command)
		return fail(STATUS_USAGE,
			    "-p traces a process that runs, -c starts one; choose one");
	if (is_limited && (v->pids.n || v->command))
		return fail(STATUS_USAGE, "--cgroup and --comm choose among all processes, -p and "
					  "-c name them; choose one");
	if (v->children && !v->pids.n && !v->command)
		return fail(STATUS_USAGE, "-f follows the children of -p and -c");
	if (v->command_output && !v->command)
		return fail(STATUS_USAGE, "--command-output is for the command of -c");
	return STATUS_YES;
}

/* Options that cannot be together. An exit status. */
static int check(const struct trace_values *values)
{
	bool is_table = aggregate_is_wanted(&values->aggregates);

	if (values->format && values->json)
		return fail(STATUS_USAGE, "--format is for text: with --json, list the values in "
					  "the probe: 'FUNC(EXPR, ...)'");
	if (values->graph && (is_table || values->stack || values->format))
		return fail(STATUS_USAGE, "--graph shows calls in its own way: not with --format, "
					  "--stack and sums of hits");
	if (is_table && (values->format || values->time))
		return fail(STATUS_USAGE, "%s is for events, and hits that are summed up make none",
			    values->format ? "--format" : "--time");
	return STATUS_YES;
}

static int check_emit(const struct trace_values *values)
{
	const struct emit_values v = {
		.dry_run = values->dry_run,
		.json = values->json,
		.has_output = values->out.n,
		.has_limit = values->max_events || values->seconds > 0,
		.time = values->time,
		.aggregates = &values->aggregates,
	};

	return values->emit ? trace_emit_check(&v) : STATUS_YES;
}

static int run_probes(struct trace_values *values, const struct operands *operands)
{
	/* clang-format off */
	struct session session = {
		.out = stdout, .json = values->json, .max_events = values->max_events,
		.fail_on_loss = values->fail_on_loss, .has_command = values->command,
		.looks = values->command, .of_process = values->command || values->pids.n,
		.cgroup = values->cgroup, .comm = values->comm,
		.wants_children = values->children, .wish = values->wish,
		.every_ns = nanoseconds(values->aggregates.every),
		.debug_file = values->debug_file,
	};
	/* clang-format on */
	struct command command = {0};
	int status = check(values);

	if (!status)
		status = check_emit(values);
	if (status)
		return status;
	/* One thread prints. */
	__fsetlocking(stdout, FSETLOCKING_BYCALLER);
	session.wish.many = true;
	session.wish.debug_dirs = values->debug_dirs;
	session.wish.jobs = (unsigned int)values->jobs;

	status = check_which(values);
	if (status)
		return status;
	if (values->no_demangle)
		demangle_never();
	status = trace_which_pids(&values->pids, &session);
	if (!status && values->command)
		status = command_parse(values->command, &command);
	if (!status)
		status = go(values, &command, operands, &session);
	/* Some are written now, of what the trace has. */
	int closed = trace_files_close(&session);
	status = closed ? closed : status;
	trace_keep_sidecars(&session);
	trace_stack_close(&session);
	cairn_trace_close(session.trace);
	trace_kernel_close(&session);
	aggregate_close(&session);
	cairn_trace_graph_free(session.graph);
	free(session.mapped);
	free(session.pids);
	if (session.command_output)
		close(session.command_output);
	command_fini(&command);
	return status;
}

static int run(void *v, const struct operands *operands)
{
	struct trace_values *values = v;
	struct cairn_script *script = NULL;
	struct operands probes;

	if (!trace_script_is_given(operands))
		return run_probes(values, operands);
	int status =
		trace_script_take(operands, &values->aggregates, &values->format, &script, &probes);
	if (!status)
		status = run_probes(values, &probes);
	cairn_script_free(script);
	return status;
}

const struct cmd cmd_trace = {
	.name = "trace",
	.summary = "watch calls of functions, inlined ones too, with typed arguments",
	.operands = "PROBE...",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct trace_values),
	.run = run,
};
