/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run: what the kernel reports goes to processes and files, tables go to the kernel, and samples
 * are taken over. All of it in the caller's thread, but for the making of tables.
 */
#include <cairn/prof.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/err.h"
#include "base/opts.h"
#include "base/scope.h"
#include "launch/child.h"
#include "prof/kernel.h"
#include "prof/name.h"
#include "prof/probes.h"
#include "prof/samples.h"
#include "profile.skel.h"
#include "walk/walker.h"

/* How often code made at run time is looked at, if a process describes it to GDB or in a jitdump. */
#define LOOK_EVERY_MS         10
/* How often new addresses of code made at run time are named. */
#define NAME_EVERY_NS         200000000u
/* Samples that come as fast as they are read do not keep signals and the end from being seen. */
#define READ_FOR_NS           100000000u
#define SAMPLES_BETWEEN_LOOKS 64
static_assert((int)WALK_N_ENDS == CAIRN_PROF_N_ENDS, "an end has one number");

/* Samples that wait are taken as they are when they have more bytes. */
enum { MAX_WAITING = 16 << 20 };

/* The record of a sample whose frames are to be looked at again. */
struct waiting {
	void *record;
	size_t size;
};

struct cairn_prof {
	struct cairn_prof_opts opts;
	struct prof_kernel kernel;
	struct prof_probes probes;
	struct walker walker;
	struct prof_samples samples;
	struct cairn_prof_counts counts;
	struct child child;
	struct prof_names_opts names_opts;
	struct prof_names *names;
	struct prof_names *noted;    /* of the last window, for its notes; NULL */
	char program[PATH_MAX];      /* its path, if one is profiled */
	uint64_t name_after_ns;      /* CLOCK_MONOTONIC: not before, as it takes time */
	uint64_t read_from_ns;       /* CLOCK_MONOTONIC: when this reading of samples began */
	size_t n_read;               /* since then */
	VEC(struct waiting) waiting; /* in the order in which they came */
	size_t waiting_bytes;
	int epoll_fd;
	uint64_t began_cpu_ns;
	uint64_t opened_ns, first_ns;  /* CLOCK_MONOTONIC; of the first sample, 0: none */
	int64_t began_ns, duration_ns; /* since 1970; of sampling */
	uint64_t started_ns;           /* the window; CLOCK_MONOTONIC */
	bool is_stopped, told_to_end;
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- what the kernel has ---- */

static struct walk_taken taken_of(const struct prof_sample *s, const uint64_t *frames, size_t n)
{
	return (struct walk_taken){.pid = (int)s->pid,
				   .time_ns = s->time_ns,
				   .generation = s->generation,
				   .end = s->end,
				   .n_kernel = s->n_kernel,
				   .n = n,
				   .frames = frames};
}

/* A sample's frames as they are known by now. Returns as samples_add(); *@ret_end: its end. */
static int take_sample(struct cairn_prof *p, const void *record, size_t size, uint8_t *ret_end)
{
	const struct prof_sample *s = record;
	uint64_t own[WALK_MAX_KERNEL + WALK_MAX_FRAMES];
	size_t n;
	const uint64_t *frames = samples_frames(&p->samples, record, size, &n);
	struct walk_taken taken, now;

	*ret_end = s->end;
	if (!frames)
		return samples_add(&p->samples, record, size);
	taken = taken_of(s, frames, n);
	if (!walker_resolve(&p->walker, &taken, own, &now))
		return samples_add(&p->samples, record, size);
	*ret_end = now.end;
	return samples_add_as(&p->samples, record, size, own, now.n, now.end);
}

static int take_record(struct cairn_prof *p, const void *record, size_t size)
{
	const struct prof_sample *s = record;
	struct walk_taken taken;
	uint8_t end;
	int rc = take_sample(p, record, size, &end);

	if (rc <= 0)
		return rc;
	p->counts.n_ends[end]++;
	if (!p->first_ns || s->time_ns < p->first_ns)
		p->first_ns = s->time_ns;
	if (probes_count(&p->probes, s) < 0)
		return -ENOMEM;
	taken = taken_of(s, (const uint64_t *)(s + 1), s->n_frames);
	return walker_learn(&p->walker, &taken, end, s->is_new);
}

/*
 * Whether a sample went through code that its process may have made anew since it was looked at, or
 * has the stack of a sample that waits, which the kernel's program hands over once.
 */
static bool must_wait(const struct cairn_prof *p, const struct prof_sample *s, size_t size)
{
	size_t n;

	if (size < sizeof(*s))
		return false;
	return walker_is_uncertain(&p->walker, (int)s->pid, s->time_ns) ||
	       (p->waiting.n && !samples_frames(&p->samples, s, size, &n));
}

static int keep_waiting(struct cairn_prof *p, const void *record, size_t size)
{
	struct waiting w = {malloc(size), size};

	if (!w.record || !VEC_ADD(&p->waiting, w)) {
		free(w.record);
		return -ENOMEM;
	}
	memcpy(w.record, record, size);
	p->waiting_bytes += size;
	p->walker.processes.keeps_past = true;
	return 0;
}

/* Whether samples were read for long enough. After sampling has ended, all that are left are read. */
static bool is_time(struct cairn_prof *p)
{
	return !p->is_stopped && ++p->n_read % SAMPLES_BETWEEN_LOOKS == 0 &&
	       now_ns(CLOCK_MONOTONIC) - p->read_from_ns > READ_FOR_NS;
}

/* -EAGAIN: the record was taken, and it is time to look at the rest. */
static int on_record(void *ctx, void *record, size_t size)
{
	struct cairn_prof *p = ctx;
	bool waits = p->waiting_bytes < MAX_WAITING && must_wait(p, record, size);
	int rc = waits ? keep_waiting(p, record, size) : take_record(p, record, size);

	if (rc < 0)
		return rc;
	return is_time(p) ? -EAGAIN : 0;
}

/* Those that waited long enough; @all: each. */
static int take_waiting(struct cairn_prof *p, bool all, struct cairn_err *err)
{
	size_t n = p->waiting.n;
	int rc = 0;

	all |= p->waiting_bytes >= MAX_WAITING;
	p->waiting.n = p->waiting_bytes = 0;
	for (size_t i = 0; i < n; i++) {
		struct waiting w = p->waiting.p[i];
		if (rc >= 0 && !all && must_wait(p, w.record, w.size)) {
			p->waiting.p[p->waiting.n++] = w;
			p->waiting_bytes += w.size;
			continue;
		}
		rc = rc < 0 ? rc : take_record(p, w.record, w.size);
		free(w.record);
	}
	p->walker.processes.keeps_past = p->waiting.n > 0;
	return rc < 0 ? err_nomem(err, "samples") : 0;
}

static int take_over(struct cairn_prof *p, struct cairn_err *err)
{
	int rc = walker_follow(&p->walker, err);

	rc = rc ? rc : take_waiting(p, false, err);
	rc = rc ? rc : walker_tell(&p->walker, err);
	if (rc)
		return rc;
	p->read_from_ns = now_ns(CLOCK_MONOTONIC);
	p->n_read = 0;
	rc = ring_buffer__consume(p->kernel.ring);
	if (rc < 0 && rc != -EAGAIN)
		return err_nomem(err, "samples");
	return walker_look(&p->walker, err);
}

/* The same, and no sample waits. */
static int take_over_all(struct cairn_prof *p, struct cairn_err *err)
{
	int rc = take_over(p, err);

	rc = rc ? rc : watched_look_at_made(&p->walker.processes, true, err);
	return rc ? rc : take_waiting(p, true, err);
}

/* ---- opening ---- */

static bool is_tracepoint(const char *text)
{
	static const char word[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	size_t n = strspn(text, word), rest = text[n] == ':' ? strspn(text + n + 1, word) : 0;

	return n && rest && !text[n + 1 + rest];
}

static int check_event(const struct cairn_prof_opts *o, struct cairn_err *err)
{
	bool is_point = o->event == CAIRN_PROF_TRACEPOINT;

	if ((is_point || o->event == CAIRN_PROF_PROBE) != (o->event_text != NULL))
		return err_set(err, -EINVAL, "the text of an event is for tracepoints and probes");
	if (is_point && !is_tracepoint(o->event_text))
		return err_set(err, -EINVAL, "%s: a tracepoint is CATEGORY:NAME", o->event_text);
	if (o->period > INT64_MAX / 2 ||
	    (o->period && !is_point && !o->event_text && o->event != CAIRN_PROF_PAGE_FAULTS))
		return err_set(err, -EINVAL, "a period is for events that are counted");
	return 0;
}

static int check_opts(const struct cairn_prof_opts *o, struct cairn_err *err)
{
	bool some = o->n_pids || o->argv;

	if (o->all == some)
		return err_set(err, -EINVAL, "%s",
			       some ? "all processes, or some of them" : "no process was named");
	if (o->cgroup && !o->all)
		return err_set(err, -EINVAL, "a cgroup limits all processes, and not named ones");
	return check_event(o, err);
}

static int watch(struct cairn_prof *p, int fd, struct cairn_err *err)
{
	struct epoll_event e = {.events = EPOLLIN};

	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &e))
		return err_set(err, -errno, "epoll_ctl: %s", strerror(errno));
	return 0;
}

static int watch_all(struct cairn_prof *p, struct cairn_err *err)
{
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0)
		return err_set(err, -errno, "epoll_create1: %s", strerror(errno));
	int rc = watch(p, ring_buffer__epoll_fd(p->kernel.ring), err);
	rc = rc ? rc : watch(p, p->walker.files.done_fd, err);
	for (size_t i = 0; i < p->walker.reports.rings.list.n && rc == 0; i++)
		rc = watch(p, p->walker.reports.rings.list.p[i].fd, err);
	return rc;
}

static int open_kernel(struct cairn_prof *p, struct cairn_err *err)
{
	int rc = prof_kernel_load(&p->kernel, &p->opts, p->probes.trace, on_record, p, err);

	if (rc)
		return rc;
	const struct walker_maps maps = prof_kernel_maps(&p->kernel);
	rc = walker_open(&p->walker, &maps, p->opts.all, err);
	return rc ? rc : watch_all(p, err);
}

/* Until its exec the command has the mappings of this process, and is not sampled. */
static int add_command(struct cairn_prof *p, struct cairn_err *err)
{
	int rc = walker_know_command(&p->walker, p->program, err);

	rc = rc ? rc : child_start(&p->child, p->opts.exe, p->opts.argv, err);
	return rc ? rc : walker_add_command(&p->walker, p->child.pid, err);
}

/* Those that run already. A process may end while it is looked at. */
static int add_running(struct cairn_prof *p, struct cairn_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < p->opts.n_pids && rc == 0; i++)
		rc = walker_add(&p->walker, p->opts.pids[i], err);
	if (rc == 0 && p->opts.all)
		rc = walker_add_running(&p->walker, err);
	if (rc == 0 && p->opts.argv)
		rc = add_command(p, err);
	return rc ? rc : walker_publish(&p->walker, err);
}

/* The program's path as its mappings have it; "" if there is none. */
static void find_program(struct cairn_prof *p)
{
	char link[40];
	ssize_t n;

	if (p->opts.argv && !realpath(p->opts.exe, p->program))
		p->program[0] = 0;
	if (!p->opts.n_pids)
		return;
	snprintf(link, sizeof(link), "/proc/%d/exe", p->opts.pids[0]);
	n = readlink(link, p->program, sizeof(p->program) - 1);
	p->program[n < 0 ? 0 : n] = 0;
}

static uint64_t frame_of(void *ctx, int pid, uint64_t at)
{
	struct cairn_prof *p = ctx;

	return watched_frame(&p->walker.processes, pid, at);
}

/* One that is there, else one that is made. */
static int sidecar_of(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
		      struct cairn_err *err)
{
	const struct cairn_prof_opts *o = &((struct cairn_prof *)ctx)->opts;
	int rc = 0;

	*ret = NULL;
	if (o->find_sidecar)
		rc = o->find_sidecar(o->find_sidecar_ctx, bin, ret, err);
	if (*ret || rc == -ENOMEM || !o->make_sidecar)
		return rc;
	return o->make_sidecar(o->make_sidecar_ctx, bin, ret, err);
}

int cairn_prof_open(const struct cairn_prof_opts *opts, struct cairn_prof **ret,
		    struct cairn_err *err)
{
	struct cairn_prof_opts o;
	int rc = opts_take(&o, sizeof(o), opts, err);

	rc = rc ? rc : check_opts(&o, err);
	if (rc)
		return rc;
	struct cairn_prof *p = calloc(1, sizeof(*p));
	if (!p)
		return err_nomem(err, "a profile");
	p->opts = o;
	p->samples.keeps_moments = o.moments;
	p->samples.keeps_sum = o.event == CAIRN_PROF_PROBE;
	p->epoll_fd = p->walker.files.done_fd = -1;
	child_init(&p->child);
	find_program(p);
	p->names_opts = (struct prof_names_opts){.frame_of = frame_of,
						 .frame_of_ctx = p,
						 .program = p->program,
						 .show_name = o.show_name,
						 .make_sidecar = sidecar_of,
						 .make_sidecar_ctx = p};
	if (!o.find_sidecar && !o.make_sidecar)
		p->names_opts.make_sidecar = NULL;
	p->began_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	p->opened_ns = now_ns(CLOCK_MONOTONIC);
	rc = prof_names_new(&p->names_opts, &p->names, err);
	rc = rc ? rc : walker_init(&p->walker, err);
	rc = rc ? rc : probes_open(&p->probes, &p->opts, err);
	rc = rc ? rc : open_kernel(p, err);
	rc = rc ? rc : add_running(p, err);
	if (rc) {
		cairn_prof_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

/* ---- running ---- */

int cairn_prof_prepare(struct cairn_prof *p, int timeout_ms, struct cairn_err *err)
{
	return walker_prepare(&p->walker, timeout_ms, err);
}

int cairn_prof_start(struct cairn_prof *p, struct cairn_err *err)
{
	int rc = walker_wait_for_tables(&p->walker, err);

	p->began_ns = (int64_t)now_ns(CLOCK_REALTIME);
	p->started_ns = now_ns(CLOCK_MONOTONIC);
	rc = rc ? rc : prof_kernel_start(&p->kernel, &p->opts, err);
	return rc || !p->opts.argv ? rc : child_go(&p->child, p->opts.exe, err);
}

/* Code made at run time, before it is gone; a tenth of the time at most. */
static int name_new(struct cairn_prof *p, struct cairn_err *err)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), took;
	int rc;

	if (now < p->name_after_ns)
		return 0;
	rc = prof_names_of_new_addresses(p->names, &p->samples, err);
	took = now_ns(CLOCK_MONOTONIC) - now;
	p->name_after_ns = now + (took > NAME_EVERY_NS / 10 ? 10 * took : NAME_EVERY_NS);
	return rc;
}

int cairn_prof_poll(struct cairn_prof *p, int timeout_ms, struct cairn_err *err)
{
	struct epoll_event e[8];
	uint64_t before = p->samples.n;
	/* Nobody reports that code was made, and samples of it wait for a look. */
	if (p->walker.processes.n_made && (timeout_ms < 0 || timeout_ms > LOOK_EVERY_MS))
		timeout_ms = LOOK_EVERY_MS;
	int n = epoll_wait(p->epoll_fd, e, 8, timeout_ms);

	if (n < 0 && errno == EINTR)
		return -EINTR;
	int rc = take_over(p, err);
	child_reap(&p->child);
	rc = rc ? rc : name_new(p, err);
	return rc ? rc : (int)(p->samples.n - before);
}

bool cairn_prof_targets_gone(const struct cairn_prof *p)
{
	return !p->opts.all && !p->walker.processes.n_listed;
}

/* The report of a process's end comes a moment before it can be waited for. */
static void reap(struct cairn_prof *p)
{
	struct timespec moment = {.tv_nsec = 10000000};

	for (int i = 0; i < 100 && p->child.pid && !p->walker.processes.n_listed; i++) {
		if (child_reap(&p->child))
			return;
		nanosleep(&moment, NULL);
	}
}

int cairn_prof_stop(struct cairn_prof *p, struct cairn_err *err)
{
	if (p->is_stopped)
		return 0;
	p->is_stopped = true;
	prof_names_read_ahead(p->names, &p->samples);
	reap(p);
	prof_kernel_stop(&p->kernel);
	p->duration_ns = (int64_t)(now_ns(CLOCK_MONOTONIC) - p->started_ns);
	return take_over_all(p, err);
}

void cairn_prof_counts(const struct cairn_prof *p, struct cairn_prof_counts *ret)
{
	*ret = p->counts;
	prof_kernel_counts(&p->kernel, ret);
	ret->n_samples = p->samples.n;
	ret->n_files = p->walker.n_files;
	ret->n_lost += p->samples.n_broken;
	ret->n_stacks = p->samples.stacks.n;
	ret->n_frames = p->samples.frames.n;
	ret->n_rows = p->walker.tables.n_rows;
	ret->kernel_bytes = prof_kernel_bytes(&p->kernel) + chunks_bytes(&p->walker.tables.rows) +
			    chunks_bytes(&p->walker.tables.pages) +
			    chunks_bytes(&p->walker.processes.segments) +
			    chunks_bytes(&p->walker.processes.regions);
	ret->own_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - p->began_cpu_ns;
	ret->first_sample_ns = p->first_ns > p->opened_ns ? p->first_ns - p->opened_ns : 0;
	ret->n_lost_mappings = p->walker.reports.n_lost;
	ret->n_left_out = p->walker.processes.n_left_out;
	for (int i = PROF_UNAVAILABLE; i < PROF_N_STATES; i++)
		ret->n_without_value += p->samples.n_states[i];
}

int cairn_prof_status(const struct cairn_prof *p)
{
	return p->child.ended && !p->told_to_end ? p->child.status : -1;
}

bool cairn_prof_end_command(struct cairn_prof *p)
{
	bool has_ended;

	/* One that was never started waits for that, and has this process's handlers of signals. */
	if (p->child.go_pipe >= 0)
		child_end(&p->child);
	has_ended = !p->child.pid || child_reap(&p->child);

	if (has_ended || p->told_to_end)
		return has_ended;
	p->told_to_end = true;
	kill(p->child.pid, SIGTERM);
	return false;
}

/* The meaning of values, if the event alone does not say it. */
static void set_types(const struct cairn_prof *p, struct prof_values *v)
{
	if (p->opts.event == CAIRN_PROF_PROBE) {
		v->n_types = probes_types(&p->probes, v->types);
		v->probes = p->probes.trace;
	} else if (p->opts.event == CAIRN_PROF_TRACEPOINT) {
		v->types[0] = (struct cairn_profile_type){p->opts.event_text, "count"};
		v->n_types = 1;
		v->at_tracepoint = true;
	}
	if (p->opts.event_text) {
		v->each = v->run.period = 1;
		v->run.each = v->types[v->n_types - 1];
	}
	if (p->opts.period)
		v->run.period = (int64_t)p->opts.period;
}

static int make_profile(struct cairn_prof *p, struct cairn_profile **ret, struct cairn_err *err)
{
	struct prof_values values =
		prof_values_of(p->kernel.event, p->opts.hz ? p->opts.hz : PROF_DEFAULT_HZ);

	set_types(p, &values);
	values.run.time_ns = p->began_ns;
	values.run.duration_ns = p->duration_ns;
	values.started_ns = p->started_ns;
	return prof_names_profile(p->names, &p->samples, p->walker.files.list.p,
				  p->walker.files.list.n, &values, ret, err);
}

static void drop_noted(struct cairn_prof *p)
{
	prof_names_free(p->noted);
	p->noted = NULL;
}

int cairn_prof_profile(struct cairn_prof *p, struct cairn_profile **ret, struct cairn_err *err)
{
	drop_noted(p);
	return make_profile(p, ret, err);
}

/* Names are made anew: code at an address that was named may be other code soon. */
static int next_window(struct cairn_prof *p, struct cairn_err *err)
{
	struct prof_names *names;
	int rc = prof_names_new(&p->names_opts, &names, err);

	if (rc == 0 && samples_next_window(&p->samples) < 0) {
		prof_names_free(names);
		rc = err_nomem(err, "a window");
	}
	if (rc < 0)
		return rc;
	prof_kernel_next_window(&p->kernel);
	prof_names_end(p->names);
	p->noted = p->names;
	p->names = names;
	p->name_after_ns = 0;
	return 0;
}

int cairn_prof_window(struct cairn_prof *p, struct cairn_profile **ret, struct cairn_err *err)
{
	uint64_t now;
	int rc;

	*ret = NULL;
	if (p->kernel.event == CAIRN_PROF_OFF_CPU)
		return err_set(err, -EOPNOTSUPP, "time blocked cannot be cut into windows");
	drop_noted(p);
	rc = take_over_all(p, err);
	now = now_ns(CLOCK_MONOTONIC);
	p->duration_ns = (int64_t)(now - p->started_ns);
	rc = rc ? rc : make_profile(p, ret, err);
	rc = rc ? rc : next_window(p, err);
	if (rc < 0) {
		cairn_profile_close(*ret);
		*ret = NULL;
		return rc;
	}
	p->began_ns += p->duration_ns;
	p->started_ns = now;
	watched_mark_used(&p->walker.processes);
	files_release_unused(&p->walker.files, &p->walker.tables);
	return 0;
}

const struct cairn_trace *cairn_prof_probes(const struct cairn_prof *p)
{
	return p->probes.trace;
}

const char *cairn_prof_without_value(const struct cairn_prof *p, size_t i, const char **ret_word,
				     uint64_t *ret_n)
{
	struct prof_reason reason = probes_without_value(&p->probes, &p->samples, i);

	*ret_n = reason.n;
	*ret_word = reason.word;
	return reason.text;
}

const char *cairn_prof_note(const struct cairn_prof *p, size_t i)
{
	return prof_names_note(p->noted ? p->noted : p->names, i);
}

void cairn_prof_close(struct cairn_prof *p)
{
	if (!p)
		return;
	child_end(&p->child);
	prof_kernel_free(&p->kernel);
	probes_close(&p->probes);
	walker_fini(&p->walker);
	samples_fini(&p->samples);
	prof_names_free(p->names);
	prof_names_free(p->noted);
	for (size_t i = 0; i < p->waiting.n; i++)
		free(p->waiting.p[i].record);
	VEC_FREE(&p->waiting);
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
	free(p);
}

/* ---- words ---- */

const char *cairn_prof_event_text(const struct cairn_prof *p)
{
	static const char *const texts[] = {
		[CAIRN_PROF_CPU] = "cpu",         [CAIRN_PROF_CPU_CLOCK] = "cpu-clock",
		[CAIRN_PROF_CYCLES] = "cycles",   [CAIRN_PROF_PAGE_FAULTS] = "page-faults",
		[CAIRN_PROF_OFF_CPU] = "off-cpu",
	};

	return p->opts.event_text ? p->opts.event_text : texts[p->kernel.event];
}

const char *cairn_prof_end_text(enum cairn_prof_end end)
{
	static const char *const texts[] = {
		[CAIRN_PROF_COMPLETE] = "complete",
		[CAIRN_PROF_ASSUMED] = "complete by assumption",
		[CAIRN_PROF_NO_USER] = "a thread of the kernel",
		[CAIRN_PROF_NO_PROCESS] =
			"the process was not known yet, or there was no room for it",
		[CAIRN_PROF_NO_MAPPING] = "no mapping is known there",
		[CAIRN_PROF_NOT_READY] = "the file's unwind table was not ready",
		[CAIRN_PROF_UNDESCRIBED] = "no unwind row, and no frame pointer",
		[CAIRN_PROF_UNREADABLE] = "the stack could not be read",
		[CAIRN_PROF_LOST] = "a register was not saved",
		[CAIRN_PROF_LOOP] = "the stack leads back to itself",
		[CAIRN_PROF_LIMIT] = "more than 1,024 frames",
		[CAIRN_PROF_READS] = "too much memory to read",
	};

	return end < CAIRN_PROF_N_ENDS ? texts[end] : "";
}
