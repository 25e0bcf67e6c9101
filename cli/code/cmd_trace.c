/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cairn trace: calls of functions, inlined ones too, with typed arguments, as they happen or summed
 * up.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/file.h>
#include <cairn/text.h>
#include <cairn/trace.h>

#include "clock.h"
#include "cmd.h"
#include "command.h"
#include "demangled.h"
#include "interrupt.h"
#include "say.h"
#include "shared_opts.h"
#include "sidecar.h"
#include "stack.h"
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

/*
 * A signal that comes between the test of the flag and the wait is seen after so long: Ctrl-C in
 * 100 ms.
 */
#define POLL_MS 50

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
	{0, "backend", OPT_TEXT, "auto|uprobe_session|uprobe_multi|uprobe", AT(backend),
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

static int print_event(const struct session *session, const struct cairn_event *event)
{
	enum cairn_value_style style = session->json ? CAIRN_VALUE_JSON : CAIRN_VALUE_TEXT;

	/* Files with formats of their own are enough. */
	if (session->exports && !session->output)
		return 0;
	if (session->graph)
		return cairn_trace_graph_print(session->graph, event, session->out);
	return session->names ? trace_stack_print(session, event)
			      : cairn_event_print(event, style, session->out);
}

static int on_event(void *ctx, const struct cairn_event *event)
{
	struct session *session = ctx;
	int r = print_event(session, event);

	if (r == 0)
		r = trace_files_event(session, event);
	if (r < 0)
		return r;
	/* A call is one event. */
	session->n_events += !event->call || event->call->moment != CAIRN_CALL_ENTRY;
	return session->max_events && session->n_events >= session->max_events;
}

/* Why the loop is over; 0 while it is not. */
static bool is_over(struct session *session, uint64_t end_ns)
{
	return interrupt_seen() || session->has_given_up ||
	       cairn_trace_target_gone(session->trace) || (end_ns && clock_now_ns() >= end_ns);
}

static int wait_ms(uint64_t end_ns)
{
	uint64_t now = clock_now_ns(), left_ms;

	if (!end_ns)
		return POLL_MS;
	left_ms = end_ns > now ? (end_ns - now + 999999) / 1000000 : 0;
	return left_ms < POLL_MS ? (int)left_ms : POLL_MS;
}

/* A process that may not be read (set-user-id), or has ended unseen, does not count as a look. */
static void look_at_mapped(struct session *session)
{
	int missing;

	if (!session->looks || session->all_mapped)
		return;
	if (!session->mapped)
		session->mapped =
			calloc(cairn_trace_n_probes(session->trace), sizeof(*session->mapped));
	if (!session->mapped)
		return;
	missing = cairn_trace_mapped(session->trace, session->mapped, &session->mapped_is_whole,
				     NULL);
	session->all_mapped = missing == 0;
	session->n_looks += missing >= 0;
}

static void look_at_cgroup(struct session *session)
{
	int e = cairn_trace_cgroup_look(session->trace);

	if (e == -ENOENT && !session->has_no_cgroup)
		say(stderr, "%s is gone: no hit is chosen until it is made again\n",
		    session->cgroup);
	if (e == 1)
		say(stderr, "%s was made again: hits of its first %d ms may be missing\n",
		    session->cgroup, POLL_MS);
	session->has_no_cgroup = e == -ENOENT;
}

/* At once, and then every POLL_MS until the command has mapped all probed files. */
static void look_now_and_then(struct session *session)
{
	uint64_t now = clock_now_ns();

	if (now < session->next_look_ns)
		return;
	session->next_look_ns = now + POLL_MS * 1000000ull;
	look_at_mapped(session);
	look_at_cgroup(session);
	trace_guard_look(session);
}

/*
 * Returns 0 or a negative errno. Only the first flush reports a failure; it drops the unwritten
 * events.
 */
static int flush_events(const struct session *session)
{
	if (session->graph)
		cairn_trace_graph_flush(session->graph, session->out);
	return trace_files_flush(session);
}

/*
 * Hands out events until the end is reached. Returns 1 when on_event() wanted no more, 0, or an
 * error.
 */
static int watch(struct session *session, uint64_t end_ns, struct cairn_err *err)
{
	while (!is_over(session, end_ns)) {
		int r;

		look_now_and_then(session);
		r = cairn_trace_poll(session->trace, wait_ms(end_ns), on_event, session, err);

		/*
		 * poll's own count says nothing here: 1 may be one event, or the last that was
		 * wanted.
		 */
		if (session->max_events && session->n_events >= session->max_events)
			return 1;
		if (r < 0 && r != -EINTR)
			return r;
		r = flush_events(session);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Handles the events that were still in the ring. */
static int drain(struct session *session, struct cairn_err *err)
{
	int r;

	do {
		r = cairn_trace_poll(session->trace, 0, on_event, session, err);
		if (session->max_events && session->n_events >= session->max_events)
			return 0;
	} while (r > 0 || r == -EINTR);
	return r;
}

/* With stacks the time is for taking them over. Returns 0 or an error. */
static int wait_with_stacks(struct session *session, uint64_t at_ns, struct cairn_err *err)
{
	uint64_t now = clock_now_ns(), left_ns = at_ns > now ? at_ns - now : 0;
	int ms = left_ns < POLL_MS * 1000000ull ? (int)(left_ns / 1000000) : POLL_MS;
	int r = cairn_trace_poll(session->trace, ms, on_event, session, err);

	return r < 0 && r != -EINTR ? r : 0;
}

static void wait_until(uint64_t at_ns)
{
	uint64_t now = clock_now_ns(), left_ns = at_ns > now ? at_ns - now : 0;
	struct timespec pause = {.tv_nsec = POLL_MS * 1000000};

	if (left_ns < POLL_MS * 1000000ull)
		pause.tv_nsec = (long)left_ns;
	nanosleep(&pause, NULL);
}

/* One table. Hits that are still in progress are in the next one. */
static int show_table(struct session *session, struct cairn_err *err)
{
	int r = aggregate_show(session, false, err);

	if (r == -EAGAIN)
		return 0;
	return r < 0 ? r : flush_events(session);
}

/* Shows tables until the end is reached; returns 0 or an error. */
static int watch_tables(struct session *session, uint64_t every_ns, uint64_t end_ns,
			struct cairn_err *err)
{
	uint64_t next_ns = every_ns ? clock_now_ns() + every_ns : UINT64_MAX;

	while (!is_over(session, end_ns)) {
		look_now_and_then(session);
		uint64_t until_ns = end_ns && end_ns < next_ns ? end_ns : next_ns;
		int r = session->names ? wait_with_stacks(session, until_ns, err) : 0;
		if (r < 0)
			return r;
		if (!session->names)
			wait_until(until_ns);
		/* The last table is shown without the probes. */
		if (clock_now_ns() < next_ns || is_over(session, end_ns))
			continue;
		r = show_table(session, err);
		if (r < 0)
			return r;
		/* An interval that could not be kept is left out. */
		while (next_ns <= clock_now_ns())
			next_ns += every_ns;
	}
	return 0;
}

/* Thirty years are never over, and the nanoseconds of many more have no number: 0. */
static uint64_t nanoseconds(double seconds)
{
	return seconds < 1e9 ? (uint64_t)(seconds * 1e9 + 0.5) : 0;
}

/* What is left once the probes are gone: events in the ring, or the last table. */
static int finish(struct session *session, bool has_enough, struct cairn_err *err)
{
	bool has_rest = !has_enough && (!session->aggregates || session->names);
	int r = has_rest ? drain(session, err) : 0;

	if (r >= 0 && session->graph)
		r = cairn_trace_graph_end(session->graph, session->out);
	return r < 0 || !session->aggregates ? r : aggregate_show(session, true, err);
}

static int trace(struct session *session, double seconds)
{
	struct cairn_err err = {0};
	uint64_t end_ns = 0;
	int r = cairn_trace_start(session->trace, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	if (nanoseconds(seconds))
		end_ns = clock_now_ns() + nanoseconds(seconds);
	if (session->aggregates)
		r = watch_tables(session, session->every_ns, end_ns, &err);
	else
		r = watch(session, end_ns, &err);
	look_at_mapped(session);
	cairn_trace_detach(session->trace);
	if (r >= 0)
		r = finish(session, r == 1, &err);
	if (r >= 0) {
		int flushed = flush_events(session);
		r = flushed < 0 ? flushed : r;
	}
	if (r < 0 && trace_files_failed(session)) {
		fail(STATUS_NOT_HERE, "cannot write %s: %s", trace_files_failed(session),
		     strerror(-r));
		clearerr(session->out); /* reported once */
		return STATUS_NOT_HERE;
	}
	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	r = trace_summary(session);
	return session->status ? session->status : r;
}

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

/* Once: it is the same for all of them. */
static void report_symbol(struct session *session, const struct cairn_trace_probe *probe)
{
	if (!session->told_symbols)
		say(stderr,
		    "%s: no debug information has %s, so its inlined copies cannot be known; its "
		    "arguments are $arg1 to $arg6, the registers that integers are passed in\n",
		    probe->path, probe->function->name);
	session->told_symbols = true;
}

/* Reports the probed functions when the name is not a function's, or not one function's only. */
static void report_added(struct session *session, const char *text, uint32_t first)
{
	const struct cairn_trace *t = session->trace;
	const struct cairn_trace_probe *probe = cairn_trace_probe(t, first);
	uint32_t n = cairn_trace_n_probes(t) - first, n_sites = 0;
	const char *file = probe->function->decl_file, *slash = file ? strrchr(file, '/') : NULL;
	int n_name = (int)strcspn(text, "(");

	uint32_t n_left_out = 0;

	for (uint32_t i = 0; i < n; i++) {
		n_sites += cairn_trace_probe(t, first + i)->n_sites;
		n_left_out += cairn_trace_probe(t, first + i)->n_left_out;
	}
	trace_kernel_report(probe, n_left_out);
	if (probe->found == CAIRN_FOUND_PATTERN)
		say(stderr, "%.*s: %s, %s\n", n_name, text,
		    cairn_counted(n, strncmp(text, "usdt:", 5) ? "function" : "probe").text,
		    cairn_counted(n_sites, "site").text);
	else if (probe->found == CAIRN_FOUND_INDIRECT)
		say(stderr,
		    "%.*s is an indirect function: all its %" PRIu32
		    " implementations are probed\n",
		    n_name, text, n);
	else if (probe->found == CAIRN_FOUND_SYMBOL && file)
		say(stderr, "%.*s is %s (%s:%" PRIu32 ")\n", n_name, text, probe->function->name,
		    slash ? slash + 1 : file, probe->function->decl_line);
	if (probe->is_import)
		say(stderr,
		    "%.*s is in a shared library: only its calls by %s are seen, where they go "
		    "through %s@plt\n",
		    n_name, text, probe->path, probe->function->name);
	else if (probe->is_symbol)
		report_symbol(session, probe);
	if (probe->found != CAIRN_FOUND_PATTERN && probe->function->params_unknown &&
	    !probe->is_symbol)
		say(stderr, "%.*s: its parameters are not known\n", n_name, text);
}

/* Functions of a tree that have no duration. */
static void report_not_followed(const struct cairn_trace *t, uint32_t first)
{
	for (uint32_t i = first; i < cairn_trace_n_probes(t); i++) {
		const struct cairn_trace_probe *probe = cairn_trace_probe(t, i);

		if (probe->not_followed)
			say(stderr, "%s: its calls have no duration: %s\n", probe->text,
			    probe->not_followed);
	}
}

static int check_debug_file(const struct session *session)
{
	return session->debug_file && !session->kernels
		       ? fail(STATUS_USAGE, "--debug-file is for kernel functions: -k, kernel:FUNC")
		       : STATUS_YES;
}

/*
 * Instead of a sidecar that could not be believed the debug information answered, if there is any.
 */
static void report_trouble(struct session *session)
{
	for (size_t i = 0; i < session->n_sidecars; i++)
		if (sidecar_trouble(session->sidecars[i]) && session->n_unkept < KEPT_FILES_MAX)
			session->unkept[session->n_unkept++] = session->sidecar_bins[i];
}

static int add_probes(struct session *session, const struct operands *operands)
{
	for (size_t i = 0; i < operands->n; i++) {
		struct cairn_err err = {0};
		int r = cairn_trace_add(session->trace, operands->items[i], &err);

		if (r < 0)
			return session->kernel_status ? session->kernel_status
						      : fail_err(r, &err, STATUS_USAGE);
		report_added(session, operands->items[i], (uint32_t)r);
		trace_which_awaited(session, (uint32_t)r);
		report_not_followed(session->trace, (uint32_t)r);
	}
	return STATUS_YES;
}

static enum cairn_trace_backend backend_of(const char *word)
{
	if (!word || !strcmp(word, "auto"))
		return CAIRN_BACKEND_AUTO;
	if (!strcmp(word, "uprobe_session"))
		return CAIRN_BACKEND_UPROBE_SESSION;
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

static int find_sidecar(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			struct cairn_err *err)
{
	struct session *session = ctx;
	int r = sidecar_find(&session->wish, bin, ret, err);

	if (!r && *ret && session->n_sidecars < KEPT_FILES_MAX) {
		session->sidecar_bins[session->n_sidecars] = bin;
		session->sidecars[session->n_sidecars++] = *ret;
	}
	if (!r && !*ret && cairn_binary_has_dwarf(bin) && session->n_unkept < KEPT_FILES_MAX)
		session->unkept[session->n_unkept++] = bin;
	return r;
}

/* The next trace of these files starts at once. */
static void keep_sidecars(const struct session *session)
{
	for (size_t i = 0; i < session->n_unkept; i++)
		sidecar_keep(session->unkept[i], &session->wish);
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
		.find_sidecar = find_sidecar,
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
	report_trouble(session);
	if (status)
		return status;
	if (values->emit)
		return trace_emit(session, values->emit);
	if (values->dry_run)
		return trace_plan(session, values->best_effort, values->verbose);
	status = trace_files_open(&files, session);
	if (!status)
		status = attach(session);
	return status ? status : trace(session, values->seconds);
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
	keep_sidecars(&session);
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
