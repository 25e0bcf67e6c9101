/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn profile: where processes spend their time, with whole stacks, as they run. */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "demangled.h"
#include "interrupt.h"
#include "profile_event.h"
#include "profile_run.h"
#include "profile_sidecars.h"
#include "profile_stdout.h"
#include "profile_windows.h"
#include "push.h"
#include "say.h"
#include "truncated.h"

/* Ctrl-C in 100 ms, and as often as cairn_prof_poll() wants. */
#define POLL_MS 50

/* Longer than the tables of a compiler take on a machine that has nothing else to do. */
#define PREPARE_NS UINT64_C(2000000000)

/* A start on a machine with time to spare takes a tenth of a second, or two with large tables. */
#define STARVED_SECONDS 4

#define HZ_DEFAULT     99
#define WINDOW_DEFAULT 60
#define KEEP_DEFAULT   60
/* The kernel's own limit is kernel.perf_event_max_sample_rate. */
#define HZ_MAX         100000

struct profile_values {
	struct opt_list pids, out;
	const char *command, *cgroup, *event;
	struct sidecar_wish wish;
	struct push_wish push;
	unsigned long hz, top, ring_kib, jobs, period;
	double seconds, window;
	unsigned long keep;
	bool continuous;
	bool all, off_cpu, no_kernel, json, by_total, fail_on_loss, no_demangle, best_effort;
};

#define AT(field) offsetof(struct profile_values, field)

static const struct opt opts[] = {
	{'p', "pid", OPT_LIST, "PID", AT(pids),
	 "profile this process and those that it starts; may be repeated"},
	{'c', "command", OPT_TEXT, "CMD", AT(command),
	 "run CMD and profile it from its first instruction, until it ends or is told to "
	 "(SIGTERM); no "
	 "shell, so quote it as one word"},
	{'a', "all", OPT_FLAG, NULL, AT(all), "profile every process, and the kernel"},
	{0, "cgroup", OPT_TEXT, "DIR", AT(cgroup),
	 "profile the processes of this directory of cgroup v2, such as a container's"},
	{'F', "frequency", OPT_COUNT, "HZ", AT(hz),
	 "take HZ samples a second on each processor (99)"},
	{0, "duration", OPT_SECONDS, "TIME", AT(seconds), "end after TIME: 10, 500ms, 2m"},
	{0, "continuous", OPT_FLAG, NULL, AT(continuous),
	 "run without an end, in windows: each is a profile of its own, for -o and --push"},
	{0, "window", OPT_SECONDS, "TIME", AT(window),
	 "with --continuous: length of a window (60)"},
	{0, "keep", OPT_COUNT, "N", AT(keep),
	 "with --continuous: keep the files of the last N windows (60)"},
	{'o', "output", OPT_LIST, "NAME", AT(out),
	 "write the profile to NAME, which ends with .html, .folded, .pb.gz, .json, "
	 ".firefox.json, .firefox.json.gz or .ctf (a directory); may be repeated"},
	{0, "event", OPT_TEXT, "EVENT", AT(event),
	 "what is sampled: cpu, cpu-clock, cycles, page-faults, off-cpu, a tracepoint of the "
	 "kernel "
	 "as CATEGORY:NAME, or calls of a function, inlined ones, too, as cairn trace takes it: "
	 "[PATH:]FUNC[(NUMBER)][ if COND]; NUMBER is what a call weighs, such as n * size:bytes "
	 "(cpu: cycles if they can be counted here, else cpu-clock)"},
	{0, "period", OPT_COUNT, "N", AT(period),
	 "of page faults, tracepoints and calls: sample each Nth on a processor (1)"},
	{0, "best-effort", OPT_FLAG, NULL, AT(best_effort),
	 "of calls: leave out sites that cannot be probed, and list them"},
	{0, "off-cpu", OPT_FLAG, NULL, AT(off_cpu), "the same as --event off-cpu"},
	{0, "no-kernel", OPT_FLAG, NULL, AT(no_kernel), "leave out functions of the kernel"},
	{0, "top", OPT_COUNT, "N", AT(top),
	 "show N functions (20), and half as many names of threads"},
	{0, "total", OPT_FLAG, NULL, AT(by_total),
	 "order by the time in a function and all that it called, not by its own"},
	{0, "json", OPT_FLAG, NULL, AT(json), "one JSON object per function, then a summary"},
	{0, "fail-on-loss", OPT_FLAG, NULL, AT(fail_on_loss), "exit with 5 when samples were lost"},
	DEMANGLE_OPT_OFF(AT(no_demangle)),
	{0, "ring", OPT_COUNT, "KIB", AT(ring_kib),
	 "size of the buffer between kernel and cairn, a power of two (4096)"},
	SIDECAR_OPT_NO_CACHE(AT(wish.no_cache)),
	SIDECAR_OPT_DEBUGINFOD(AT(wish.debuginfod)),
	{'j', "jobs", OPT_COUNT, "N", AT(jobs),
	 "use N threads to make sidecars; otherwise one per processor"},
	{0, "push", OPT_TEXT, "URL", AT(push.url),
	 "send the profile to the Pyroscope, the Parca or, with --otlp, the collector at URL; what "
	 "it does not take waits for the next push"},
	PUSH_OPTS(struct profile_values, push),
	{0},
};

static const struct example examples[] = {
	{"sudo cairn profile -c './server --bench' -o server.html",
	 "run a program, show the functions that take its time, and write its flame graph"},
	{"sudo cairn profile -p 1234 --duration 10 -o p.pb.gz -o p.folded",
	 "ten seconds of a process, for pprof and for flamegraph.pl"},
	{"sudo cairn profile -a --duration 10", "everything that runs on this machine"},
	{"sudo cairn profile -p 1234 --off-cpu --duration 10",
	 "where its threads wait, and for how long"},
	{"sudo cairn profile -p 1234 --event 'xmalloc(size:bytes)' --duration 10",
	 "who calls xmalloc, inlined or not, and how many bytes each asks for"},
	{"sudo cairn profile -a --duration 60 --push http://profiles:4040 --label "
	 "service_name=shop",
	 "a minute of this machine, to a Pyroscope"},
	{"sudo cairn profile -a --continuous -F 19 --push http://profiles:4040",
	 "this machine, for ever"},
	{"sudo cairn profile -p 1234 --json --duration 10 | jq -r .function",
	 "for other programs to read"},
	{0},
};

/* ---- what to profile ---- */

static bool read_pid(const char *text, int *ret)
{
	char *end;
	long pid = strtol(text, &end, 10);

	*ret = (int)pid;
	return isdigit((unsigned char)*text) && !*end && pid > 0 && pid <= INT32_MAX;
}

static int read_pids(const struct opt_list *list, int *pids)
{
	for (size_t i = 0; i < list->n; i++)
		if (!read_pid(list->items[i], &pids[i]))
			return fail(STATUS_USAGE, "not a process id: %s", list->items[i]);
	return STATUS_YES;
}

static int check_targets(const struct profile_values *v)
{
	int n = (v->pids.n > 0) + (v->command != NULL) + (v->all || v->cgroup);

	if (n == 0)
		return fail(STATUS_USAGE,
			    "nothing to profile: name processes (-p), a command (-c) or "
			    "everything (-a)\nTry: cairn profile --help");
	if (n > 1)
		return fail(STATUS_USAGE, "-p profiles processes that run, -c starts one, -a and "
					  "--cgroup take all; choose one");
	return STATUS_YES;
}

static enum cairn_prof_event event_of(const struct profile_values *v)
{
	const char *text;

	return v->off_cpu ? CAIRN_PROF_OFF_CPU : profile_event_of(v->event, &text);
}

/* A word that is none of the events is taken for a function's name, which needs a file. */
static int check_event(const struct profile_values *v)
{
	enum cairn_prof_event event = event_of(v);
	bool is_plain = event == CAIRN_PROF_PROBE && !strpbrk(v->event, ":(");

	if (v->hz && !profile_event_has_rate(event))
		return fail(STATUS_USAGE, "-F: each of these events is a sample");
	if (v->period && (profile_event_has_rate(event) || event == CAIRN_PROF_OFF_CPU))
		return fail(STATUS_USAGE, "--period: for events that are counted; -F sets a rate");
	if (v->best_effort && event != CAIRN_PROF_PROBE)
		return fail(STATUS_USAGE, "--best-effort: for a probe, which has sites");
	if (is_plain && (v->all || v->cgroup || v->pids.n > 1))
		return fail(STATUS_USAGE,
			    "--event takes cpu, cpu-clock, cycles, page-faults, off-cpu, a "
			    "tracepoint CATEGORY:NAME, or a function PATH:FUNC[(NUMBER)]; not: %s",
			    v->event);
	return STATUS_YES;
}

static int check_options(const struct profile_values *v)
{
	if (v->off_cpu && v->event && strcmp(v->event, "off-cpu") != 0)
		return fail(STATUS_USAGE, "--off-cpu and --event %s: choose one", v->event);
	if (check_event(v) != STATUS_YES)
		return STATUS_USAGE;
	if (v->hz > HZ_MAX)
		return fail(STATUS_USAGE, "-F %lu: at most %d samples a second", v->hz, HZ_MAX);
	if (v->ring_kib > (1u << 20) || (v->ring_kib & (v->ring_kib - 1)))
		return fail(STATUS_USAGE, "--ring %lu: a power of two, at most %u", v->ring_kib,
			    1u << 20);
	return profile_check_names(&v->out);
}

/* Seconds: beyond them the sums of a window may be too large, and below it does nothing else. */
#define WINDOW_MIN 0.1
#define WINDOW_MAX 86400

static int check_windows(const struct profile_values *v)
{
	if (!v->continuous && (v->window || v->keep))
		return fail(STATUS_USAGE, "--window and --keep are for --continuous");
	if (!v->continuous)
		return STATUS_YES;
	if (event_of(v) == CAIRN_PROF_OFF_CPU)
		return fail(STATUS_USAGE,
			    "--continuous: time blocked cannot be cut into windows, as "
			    "a thread may be blocked for many");
	if (v->window && (v->window < WINDOW_MIN || v->window > WINDOW_MAX))
		return fail(STATUS_USAGE, "--window: from 100ms to 24h");
	if (v->keep > 1u << 20)
		return fail(STATUS_USAGE, "--keep %lu: at most %u", v->keep, 1u << 20);
	if (!v->out.n && !v->push.url)
		return fail(STATUS_USAGE, "--continuous: name what becomes of a window\nTry: -o "
					  "NAME.pb.gz or --push URL");
	return STATUS_YES;
}

/* Before it samples for an hour. */
static int open_push(const struct profile_values *v, struct push *push)
{
	int status;

	if (v->push.url) {
		status = push_open(&v->push, push);
		if (status == STATUS_YES)
			push->quiet = true;
		return status;
	}
	if (v->push.labels.n || v->push.headers.n || v->push.as || v->push.otlp || v->push.ca ||
	    v->push.spool || v->push.spool_mib || v->push.timeout)
		return fail(STATUS_USAGE, "--label, --header, --as, --otlp, --ca, --spool, "
					  "--spool-size and --timeout are for --push URL");
	return STATUS_YES;
}

/* ---- the run ---- */

/* An interrupt comes as -EINTR, and is seen when sampling begins. */
int profile_prepare(struct cairn_prof *prof, struct cairn_err *err)
{
	struct profile_progress progress = {0};
	uint64_t end = clock_now_ns() + PREPARE_NS;
	int n = 1;

	while ((n > 0 || n == -EINTR) && !interrupt_seen() && clock_now_ns() < end) {
		n = cairn_prof_prepare(prof, POLL_MS, err);
		if (n > 0)
			profile_progress_tables(&progress, n);
	}
	profile_progress_end(&progress);
	return n == -ENOMEM ? n : 0;
}

int profile_sample(struct cairn_prof *prof, double seconds, struct cairn_err *err)
{
	struct profile_progress progress = {0};
	/* Thirty years are never over, and the nanoseconds of many more have no number. */
	uint64_t limit = seconds && seconds < 1e9 ? (uint64_t)(seconds * 1e9 + 0.5) : 0;
	uint64_t start = clock_now_ns(), past = 0;
	int r = 0;

	while (!interrupt_seen() && !cairn_prof_targets_gone(prof) && (!limit || past < limit)) {
		uint64_t left_ms = limit ? (limit - past + 999999) / 1000000u : POLL_MS;

		r = cairn_prof_poll(prof, left_ms < POLL_MS ? (int)left_ms : POLL_MS, err);
		if (r < 0 && r != -EINTR)
			break;
		past = clock_now_ns() - start;
		profile_progress(&progress, prof, limit > past ? limit - past : 0);
	}
	profile_progress_end(&progress);
	return r < 0 && r != -EINTR ? r : 0;
}

/* The title of a page: what was profiled. */
static char *title_of(const struct profile_values *v)
{
	char *title = NULL;
	size_t size;
	FILE *out = open_memstream(&title, &size);

	if (!out)
		return NULL;
	fputs("cairn profile", out);
	if (v->command)
		fprintf(out, " -c %s", v->command);
	for (size_t i = 0; i < v->pids.n; i++)
		fprintf(out, " -p %s", v->pids.items[i]);
	if (v->cgroup)
		fprintf(out, " --cgroup %s", v->cgroup);
	else if (v->all)
		fputs(" -a", out);
	return fclose(out) == 0 ? title : NULL;
}

/* Files that are written beside the summary, for which all frames are counted. */
struct writing {
	const struct profile_values *values;
	const struct profile_run *run;
	pthread_t thread;
	int status;
};

static void *write_outputs(void *arg)
{
	struct writing *w = arg;
	char *title = title_of(w->values);

	w->status = profile_write_all(w->run->profile, w->run->type, &w->values->out,
				      title ? title : "cairn profile");
	free(title);
	return NULL;
}

int profile_push_add(struct push *push, struct cairn_profile *profile)
{
	char node[256] = "";

	gethostname(node, sizeof(node) - 1);
	return push_add(push, profile, "the run", *node ? node : NULL);
}

static int push_run(struct push *push, struct cairn_profile *profile)
{
	int added = profile_push_add(push, profile), sent = push_send(push);

	push_report(push, stderr);
	return sent == STATUS_YES ? added : sent;
}

static int summarize(const struct profile_values *v, struct profile_run *run)
{
	struct cairn_err err = {0};
	int r = cairn_profile_shares(run->profile, run->type, &run->shares, &err), status;

	if (r == 0)
		r = cairn_profile_threads(run->profile, run->type, &run->threads.list,
					  &run->threads.n, &err);
	if (r < 0) {
		cairn_profile_shares_free(&run->shares);
		return fail_err(r, &err, STATUS_NOT_HERE);
	}
	run->threads.sum = run->shares.sum;
	if (v->by_total)
		profile_order_by_total(&run->shares);
	cairn_prof_counts(run->prof, &run->counts);
	status = profile_report(run, v->json);
	fflush(stdout);
	cairn_profile_shares_free(&run->shares);
	free(run->threads.list);
	return status;
}

/* The files are written whatever becomes of the summary. */
static int report(const struct profile_values *v, struct profile_run *run)
{
	struct writing w = {.values = v, .run = run};
	bool is_beside;
	int status;

	run->type = cairn_profile_n_types(run->profile) - 1;
	is_beside = v->out.n && pthread_create(&w.thread, NULL, write_outputs, &w) == 0;
	status = summarize(v, run);
	if (is_beside)
		pthread_join(w.thread, NULL);
	else
		write_outputs(&w);
	return w.status != STATUS_YES ? w.status : status;
}

static int name_and_report(const struct profile_values *v, struct profile_run *run)
{
	static const struct cairn_prof_counts none;
	struct cairn_profile *profile;
	struct cairn_err err = {0};
	int r = cairn_prof_profile(run->prof, &profile, &err), pushed = STATUS_YES;

	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	cairn_prof_counts(run->prof, &run->counts);
	profile_note_losses(profile, &none, &run->counts);
	run->profile = profile;
	cairn_prof_end_command(run->prof);
	r = report(v, run);
	if (run->push)
		pushed = push_run(run->push, profile);
	cairn_profile_close(profile);
	return pushed != STATUS_YES ? pushed : r;
}

/*
 * Among hundreds of busy programs this one has a small share of the processors, too, and its start
 * takes as many times longer. @since_ns: when it began, of clock_now_ns().
 */
static void say_if_starved(uint64_t since_ns)
{
	double wall = (double)(clock_now_ns() - since_ns) / 1e9;
	struct timespec own;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
	double cpu = (double)own.tv_sec + (double)own.tv_nsec / 1e9;
	if (wall > STARVED_SECONDS && cpu < wall / 5)
		fprintf(stderr,
			"cairn: sampling began after %.0f s, %.1f s of them on a processor: others "
			"had the rest; `nice -n -10 cairn profile` begins sooner\n",
			wall, cpu);
}

/* Tables first: what runs already is unwound from the first sample on. */
static int begin(const struct profile_run *run, struct cairn_err *err)
{
	int r = profile_prepare(run->prof, err);

	r = r ? r : cairn_prof_start(run->prof, err);
	if (r)
		return r;
	profile_event_sites(run->prof);
	say_if_starved(run->since_ns);
	return 0;
}

static int run_continuous(const struct profile_values *v, struct profile_run *run)
{
	char *title = title_of(v);
	struct profile_windows windows = {.seconds = v->window ? v->window : WINDOW_DEFAULT,
					  .n_keep = v->keep ? v->keep : KEEP_DEFAULT,
					  .out = &v->out,
					  .title = title ? title : "cairn profile"};
	struct cairn_err err = {0};
	int r = begin(run, &err);

	r = r < 0 ? fail_err(r, &err, STATUS_USAGE)
		  : profile_windows_run(run, &windows, v->seconds, v->json);
	free(title);
	return r;
}

/* Whatever ends it, what was sampled is shown. */
static int run_all(const struct profile_values *v, struct profile_run *run)
{
	struct cairn_err err = {0}, stop_err = {0};
	uint64_t start;
	int r = begin(run, &err), stopped, status;

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	start = clock_now_ns();
	r = profile_sample(run->prof, v->seconds, &err);
	run->seconds = (double)(clock_now_ns() - start) / 1e9;
	stopped = cairn_prof_stop(run->prof, &stop_err);
	status = name_and_report(v, run);
	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	return stopped < 0 ? fail_err(stopped, &stop_err, STATUS_NOT_HERE) : status;
}

/* It was told to; a second Ctrl-C ends this program, and leaves it alone. */
static void wait_for_command(struct cairn_prof *prof)
{
	struct timespec moment = {.tv_nsec = 10000000};

	while (!cairn_prof_end_command(prof))
		nanosleep(&moment, NULL);
}

/*
 * Each file that is mapped anywhere takes a descriptor. A command would inherit the limit, and may
 * not be made for it.
 */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int open_and_run(const struct profile_values *v, const struct command *command,
			const int *pids, struct push *push)
{
	const char *event_text = NULL;
	enum cairn_prof_event event =
		v->off_cpu ? CAIRN_PROF_OFF_CPU : profile_event_of(v->event, &event_text);
	struct profile_sidecars sidecars = {.wish = v->wish, .lock = PTHREAD_MUTEX_INITIALIZER};
	struct profile_run run = {.since_ns = clock_now_ns(),
				  .hz = profile_event_has_rate(event)
						? (v->hz ? (unsigned int)v->hz : HZ_DEFAULT)
						: 0,
				  .n_top = v->top ? v->top : 20,
				  .push = v->push.url ? push : NULL,
				  .fail_on_loss = v->fail_on_loss};
	struct cairn_prof_opts prof_opts = {.size = sizeof(prof_opts),
					    .pids = pids,
					    .n_pids = v->pids.n,
					    .argv = command->argv,
					    .exe = command->exe,
					    .all = v->all || v->cgroup,
					    .cgroup = v->cgroup,
					    .event = event,
					    .hz = run.hz,
					    .no_kernel = v->no_kernel,
					    .ring_bytes = v->ring_kib * 1024,
					    .find_sidecar = profile_find_sidecar,
					    .find_sidecar_ctx = &sidecars,
					    .make_sidecar = v->continuous ? profile_later_sidecar
									  : profile_make_sidecar,
					    .make_sidecar_ctx = &sidecars,
					    .show_name = shown_name,
					    .moments = profile_needs_moments(&v->out),
					    .event_text = event_text,
					    .find_sites = profile_find_sites,
					    .find_sites_ctx = &sidecars,
					    .period = v->period,
					    .best_effort = v->best_effort};
	struct profile_stdout out = {0};
	struct cairn_err err = {0};
	int r;

	sidecars.wish.lines = sidecars.wish.many = true;
	sidecars.wish.jobs = (unsigned int)v->jobs;
	if (!command->argv)
		allow_many_files();
	interrupt_catch();
	r = cairn_prof_open(&prof_opts, &run.prof, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_NO);
	r = profile_stdout_begin(&out);
	if (r == STATUS_YES)
		r = v->continuous ? run_continuous(v, &run) : run_all(v, &run);
	r = profile_stdout_end(&out, r);
	wait_for_command(run.prof);
	cairn_prof_close(run.prof);
	return r;
}

static int run(void *values, const struct operands *operands)
{
	const struct profile_values *v = values;
	struct command command = {0};
	struct push push = {.wish = &v->push};
	int status = check_targets(v);
	int *pids = calloc(v->pids.n + 1, sizeof(*pids));

	if (!pids)
		status = fail(STATUS_NOT_HERE, "no memory");
	if (status == STATUS_YES)
		status = check_options(v);
	if (status == STATUS_YES)
		status = check_windows(v);
	if (status == STATUS_YES)
		status = read_pids(&v->pids, pids);
	if (status == STATUS_YES && v->command)
		status = command_parse(v->command, &command);
	if (v->no_demangle)
		demangle_never();
	truncated_is_survived();
	if (status == STATUS_YES)
		status = open_push(v, &push);
	if (status == STATUS_YES)
		status = open_and_run(v, &command, pids, &push);
	push_close(&push);
	command_fini(&command);
	free(pids);
	return status;
}

const struct cmd cmd_profile = {
	.name = "profile",
	.summary = "sample where processes spend their time, with whole stacks",
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct profile_values),
	.run = run,
};
