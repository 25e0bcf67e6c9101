/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/err.h"
#include "base/scope.h"
#include "launch/permission.h"
#include "perf/ring.h"
#include "prof/abi.h"
#include "prof/late.h"
#include "prof/tracepoint.h"
#include "profile.skel.h"
#include "trace/attach/link.h"

enum {
	/* Some seconds of samples at 1,000 a second, or a tenth of a second of new deep stacks. */
	DEFAULT_RING_BYTES = 4 << 20,
	LOG_MAX = 400,
	/* Intervals in which a timer may begin at the right moment. */
	PHASE_TRIES = 8,
	/* Of a processor: tasks that wait for pages at once, and the sample that interrupts them. */
	LATE_WALKS = 4,
	/* Milliseconds for tasks to return that have a sample to hand over. */
	LATE_WAIT_MS = 20,
};

/* Inode of the first pid namespace on every Linux (PROC_PID_INIT_INO). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

/* What the program counts on each processor. */
struct counts {
	uint64_t n_lost, walk_ns, n_filtered, n_undecided, n_waiting, n_late;
};

static __thread char last_words[LOG_MAX];

static int keep_last_words(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level == LIBBPF_WARN)
		vsnprintf(last_words, sizeof(last_words), fmt, args);
	return 0;
}

static size_t ring_bytes(const struct cairn_prof_opts *opts)
{
	return opts->ring_bytes ? opts->ring_bytes : DEFAULT_RING_BYTES;
}

static bool is_sampled(enum cairn_prof_event event)
{
	return event != CAIRN_PROF_PROBE && event != CAIRN_PROF_TRACEPOINT &&
	       event != CAIRN_PROF_OFF_CPU;
}

/* Programs of the others are not preempted, unless they wait for pages of their task. */
static uint32_t n_walks(const struct cairn_prof_opts *opts, enum late_form late)
{
	if (opts->event == CAIRN_PROF_PROBE || opts->event == CAIRN_PROF_TRACEPOINT)
		return WALK_MAX_WALKS;
	return late == LATE_NONE ? 1 : LATE_WALKS;
}

static enum late_form late_form(const struct cairn_prof_opts *opts)
{
	/* A probe's registers are others when its task returns, and a blocked thread's time is over. */
	return is_sampled(opts->event) ? late_form_of_kernel() : LATE_NONE;
}

static void set_constants(struct profile_bpf *bpf, const struct cairn_prof_opts *opts,
			  enum late_form late)
{
	uint64_t seed;
	struct stat ns;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint64_t)getpid();
	bpf->rodata->seed = seed;
	bpf->rodata->all = opts->all;
	bpf->rodata->with_kernel = !opts->no_kernel;
	bpf->rodata->in_cgroup = opts->cgroup != NULL;
	bpf->rodata->own_tgid = (uint32_t)getpid();
	bpf->rodata->wakeup_bytes = ring_bytes(opts) / 8;
	bpf->rodata->period = opts->period ? opts->period : 1;
	bpf->rodata->n_walks = n_walks(opts, late);
	bpf->rodata->is_late_form_7_0 = late == LATE_7_0;
	bpf->rodata->has_loop =
		libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, NULL) == 1;
	if (stat("/proc/self/ns/pid", &ns) || ns.st_ino == FIRST_PID_NAMESPACE)
		return;
	bpf->rodata->pidns_dev = ns.st_dev;
	bpf->rodata->pidns_ino = ns.st_ino;
}

static int size_maps(struct profile_bpf *bpf, const struct cairn_prof_opts *opts,
		     enum late_form late)
{
	uint32_t n = WALK_CACHE_SLOTS * (uint32_t)perf_n_processors();
	int e = bpf_map__set_max_entries(bpf->maps.ring, (uint32_t)ring_bytes(opts));

	if (!e && late == LATE_NONE)
		e = bpf_map__set_autocreate(bpf->maps.late_samples, false);
	e = e ? e : bpf_map__set_max_entries(bpf->maps.walks, n_walks(opts, late));
	e = e ? e : bpf_map__set_max_entries(bpf->maps.cache, n);
	return e ? e : bpf_map__set_max_entries(bpf->maps.row_cache, n);
}

static int load_error(int e, struct cairn_err *err)
{
	size_t n = strcspn(last_words, "\n");

	if (permission_is_locked())
		return permission_locked(err);
	/* The verifier's word for a program that it refuses is EACCES. */
	if (e == -EPERM)
		return permission_error(err, "loading a BPF program");
	return err_set(err, e == -ESRCH || e == -EINVAL ? -EOPNOTSUPP : e,
		       "this kernel does not take the BPF program: %s%s%.*s", strerror(-e),
		       n ? ": " : "", (int)n, last_words);
}

static void choose_programs(struct profile_bpf *bpf, enum cairn_prof_event event, bool has_multi,
			    enum late_form late)
{
	bool is_probe = event == CAIRN_PROF_PROBE, is_point = event == CAIRN_PROF_TRACEPOINT;

	bpf_program__set_autoload(bpf->progs.on_sample, is_sampled(event) && late == LATE_NONE);
	bpf_program__set_autoload(bpf->progs.on_sample_late,
				  is_sampled(event) && late != LATE_NONE);
	bpf_program__set_autoload(bpf->progs.on_switch, event == CAIRN_PROF_OFF_CPU);
	bpf_program__set_autoload(bpf->progs.on_probe, is_probe);
	bpf_program__set_autoload(bpf->progs.on_tracepoint, is_point);
	bpf_program__set_autoload(bpf->progs.on_raw_tracepoint, is_point);
	if (has_multi)
		bpf_program__set_expected_attach_type(bpf->progs.on_probe, LINK_UPROBE_MULTI);
}

/* The probes' tables, and the program that their links have. */
static int load_with_probes(struct prof_kernel *k, struct cairn_err *err)
{
	struct trace_links *l = &k->probe_links;
	int e = trace_fill_tables(k->probes, k->bpf->maps.sites, k->bpf->maps.ops);

	for (size_t i = 0; i < TRACE_N_CLASSES; i++)
		l->program_fds[i] = bpf_program__fd(k->bpf->progs.on_probe);
	return e ? err_set(err, e, "filling the tables of the BPF program: %s", strerror(-e)) : 0;
}

static int configure(struct prof_kernel *k, const struct cairn_prof_opts *opts, bool has_multi,
		     enum late_form late)
{
	choose_programs(k->bpf, opts->event, has_multi, late);
	set_constants(k->bpf, opts, late);
	int e = size_maps(k->bpf, opts, late);
	if (e || !k->probes)
		return e;
	return trace_size_tables(k->probes, k->bpf->maps.sites, k->bpf->maps.ops);
}

static int try_load(struct prof_kernel *k, const struct cairn_prof_opts *opts, bool has_multi,
		    enum late_form late)
{
	SCOPE_FREE void *bytes = NULL;

	last_words[0] = 0;
	k->bpf = late_open(late, &bytes);
	int e = k->bpf ? configure(k, opts, has_multi, late) : -ENOMEM;
	return e ? e : profile_bpf__load(k->bpf);
}

static int load(struct prof_kernel *k, const struct cairn_prof_opts *opts, struct cairn_err *err)
{
	libbpf_print_fn_t before = libbpf_set_print(keep_last_words);
	bool has_multi = k->probes && link_multi_is_known();
	enum late_form late = late_form(opts);
	int e;

	k->probe_links.backend = has_multi ? CAIRN_BACKEND_UPROBE_MULTI : CAIRN_BACKEND_UPROBE;
	e = try_load(k, opts, has_multi, late);
	if (e && e != -EPERM && late != LATE_NONE) {
		profile_bpf__destroy(k->bpf);
		e = try_load(k, opts, has_multi, LATE_NONE);
	}
	libbpf_set_print(before);
	if (e)
		return load_error(e, err);
	return k->probes ? load_with_probes(k, err) : 0;
}

static int attach(struct prof_kernel *k, const struct bpf_program *p, struct cairn_err *err)
{
	int fd = bpf_raw_tracepoint_open(NULL, bpf_program__fd(p));

	if (fd < 0)
		return err_set(err, -errno, "attaching to %s: %s", bpf_program__section_name(p),
			       strerror(errno));
	return VEC_ADD(&k->links, fd) ? 0 : err_nomem(err, "links");
}

static int use_cgroup(struct prof_kernel *k, const char *path, struct cairn_err *err)
{
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t zero = 0, value = (uint32_t)fd;

	if (fd < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (bpf_map_update_elem(bpf_map__fd(k->bpf->maps.cgroup), &zero, &value, BPF_ANY))
		return err_set(err, errno == EBADF ? -ENOENT : -errno,
			       "%s is no directory of cgroup v2", path);
	return 0;
}

int prof_kernel_load(struct prof_kernel *k, const struct cairn_prof_opts *opts,
		     struct cairn_trace *probes,
		     int (*on_record)(void *ctx, void *record, size_t size), void *ctx,
		     struct cairn_err *err)
{
	*k = (struct prof_kernel){.event = opts->event, .probes = probes};
	int rc = load(k, opts, err);
	if (rc == 0 && opts->cgroup)
		rc = use_cgroup(k, opts->cgroup, err);
	rc = rc ? rc : attach(k, k->bpf->progs.on_fork, err);
	rc = rc ? rc : attach(k, k->bpf->progs.on_exec, err);
	if (rc)
		return rc;
	k->ring = ring_buffer__new(bpf_map__fd(k->bpf->maps.ring), on_record, ctx, NULL);
	return k->ring ? 0 : err_set(err, -errno, "the ring of samples: %s", strerror(errno));
}

struct walker_maps prof_kernel_maps(const struct prof_kernel *k)
{
	return WALKER_MAPS_OF(k->bpf);
}

/* ---- events ---- */

static struct perf_event_attr attr_of(enum cairn_prof_event event, unsigned int hz)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = event == CAIRN_PROF_CYCLES ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.disabled = 1,
	};

	attr.config = event == CAIRN_PROF_CYCLES        ? PERF_COUNT_HW_CPU_CYCLES
		      : event == CAIRN_PROF_PAGE_FAULTS ? PERF_COUNT_SW_PAGE_FAULTS
							: PERF_COUNT_SW_CPU_CLOCK;
	if (event == CAIRN_PROF_PAGE_FAULTS) {
		attr.sample_period = 1;
		return attr;
	}
	attr.freq = 1;
	attr.sample_freq = hz ? hz : PROF_DEFAULT_HZ;
	return attr;
}

static int event_error(int e, const struct cairn_prof_opts *opts, struct cairn_err *err)
{
	if (e == -EACCES || e == -EPERM)
		return permission_error(err, "sampling processes");
	if (e == -EINVAL && opts->hz)
		return err_set(err, -EINVAL,
			       "%u samples a second are more than "
			       "/proc/sys/kernel/perf_event_max_sample_rate allows",
			       opts->hz);
	return err_set(err, e, "perf_event_open(2): %s", strerror(-e));
}

static int sample_fd(const struct prof_kernel *k)
{
	int fd = bpf_program__fd(k->bpf->progs.on_sample_late);

	return fd >= 0 ? fd : bpf_program__fd(k->bpf->progs.on_sample);
}

static int add_event(struct prof_kernel *k, struct perf_event_attr *attr, int processor)
{
	int fd = perf_open(attr, -1, processor);

	if (fd < 0)
		return fd == -ENODEV ? 0 : fd;
	if (!VEC_ADD(&k->events, fd)) {
		close(fd);
		return -ENOMEM;
	}
	return ioctl(fd, PERF_EVENT_IOC_SET_BPF, sample_fd(k)) ||
			       ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)
		       ? -errno
		       : 0;
}

static int common_divisor(int a, int b)
{
	while (b) {
		int rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* A step with which each of @n processors has its turn, and neighbours are far from each other. */
static int step_for(int n)
{
	int step = n * 5 / 8 + 1;

	while (common_divisor(n, step) != 1)
		step++;
	return step;
}

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Until the time @at or whole intervals later; a busy machine may wake this process too late. */
static void wait_for_phase(uint64_t at, uint64_t interval, uint64_t late_ns)
{
	for (int i = 0; i < PHASE_TRIES; i++, at += interval) {
		struct timespec until = {.tv_sec = (time_t)(at / 1000000000),
					 .tv_nsec = (long)(at % 1000000000)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		uint64_t now = monotonic_ns();
		if (now < at + late_ns)
			return;
		at += (now - at) / interval * interval;
	}
}

/*
 * If the timers of all processors expired together, they would stop a server and its client at the
 * same moments. Such a pair is in step, and would be hit at the same places again and again: up to
 * two thirds of its samples would be missing. So the timers begin one after the other, at equal
 * distances within an interval.
 */
static int add_events(struct prof_kernel *k, struct perf_event_attr *attr)
{
	uint64_t began = monotonic_ns(), interval = 1000000000 / attr->sample_freq;
	int n = perf_n_processors(), step = step_for(n), e = 0;
	uint64_t part = interval / (uint64_t)n;

	for (int i = 0; i < n && !e; i++) {
		if (k->event == CAIRN_PROF_CPU_CLOCK)
			wait_for_phase(began + part * (uint64_t)i, interval, part / 4);
		e = add_event(k, attr, (int)((int64_t)i * step % n));
	}
	return e;
}

static bool counts_cycles(void)
{
	struct perf_event_attr attr = attr_of(CAIRN_PROF_CYCLES, 0);
	SCOPE_CLOSE int fd = perf_open(&attr, -1, 0);

	return fd >= 0;
}

static int attach_tracepoint(struct prof_kernel *k, const char *name, struct cairn_err *err)
{
	int fd = tracepoint_attach(name, bpf_program__fd(k->bpf->progs.on_tracepoint),
				   bpf_program__fd(k->bpf->progs.on_raw_tracepoint), err);

	if (fd < 0)
		return fd;
	if (VEC_ADD(&k->links, fd))
		return 0;
	close(fd);
	return err_nomem(err, "links");
}

int prof_kernel_start(struct prof_kernel *k, const struct cairn_prof_opts *opts,
		      struct cairn_err *err)
{
	if (opts->event == CAIRN_PROF_OFF_CPU)
		return attach(k, k->bpf->progs.on_switch, err);
	if (opts->event == CAIRN_PROF_PROBE)
		return trace_set_links(k->probes, &k->probe_links, err);
	if (opts->event == CAIRN_PROF_TRACEPOINT)
		return attach_tracepoint(k, opts->event_text, err);
	if (opts->event == CAIRN_PROF_CPU)
		k->event = counts_cycles() ? CAIRN_PROF_CYCLES : CAIRN_PROF_CPU_CLOCK;
	else if (opts->event == CAIRN_PROF_CYCLES && !counts_cycles())
		return err_set(err, -EOPNOTSUPP,
			       "this machine counts no cycles: it has no performance counters, or "
			       "its hypervisor keeps them");
	struct perf_event_attr attr = attr_of(k->event, opts->hz);
	int e = add_events(k, &attr);
	return e ? event_error(e, opts, err) : 0;
}

void prof_kernel_next_window(struct prof_kernel *k)
{
	/* Any number that is not near one of before; hashes mix it well. */
	k->bpf->bss->window += UINT64_C(0x9e3779b97f4a7c15);
}

/* ---- counts ---- */

/* Hits within the kernel's own work for a hit, for which the kernel does not run the program. */
static uint64_t n_missed(const struct prof_kernel *k)
{
	const struct bpf_program *programs[] = {k->bpf->progs.on_probe, k->bpf->progs.on_tracepoint,
						k->bpf->progs.on_raw_tracepoint,
						k->bpf->progs.on_switch};
	uint64_t n = 0;

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);
		int fd = bpf_program__fd(programs[i]);

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size))
			n += info.recursion_misses;
	}
	return n;
}

static struct counts sum_counts(const struct prof_kernel *k)
{
	int n = libbpf_num_possible_cpus();
	SCOPE_FREE struct counts *each = n > 0 ? calloc((size_t)n, sizeof(*each)) : NULL;
	struct counts sum = {0};
	uint32_t zero = 0;

	if (!each || bpf_map_lookup_elem(bpf_map__fd(k->bpf->maps.counts), &zero, each))
		return sum;
	for (int i = 0; i < n; i++) {
		sum.n_lost += each[i].n_lost;
		sum.walk_ns += each[i].walk_ns;
		sum.n_filtered += each[i].n_filtered;
		sum.n_undecided += each[i].n_undecided;
		sum.n_waiting += each[i].n_waiting;
		sum.n_late += each[i].n_late;
	}
	return sum;
}

/* Samples that wait for their task to return. */
static uint64_t n_waiting(const struct prof_kernel *k)
{
	struct counts sum = sum_counts(k);

	return sum.n_waiting - sum.n_late;
}

void prof_kernel_stop(struct prof_kernel *k)
{
	struct timespec moment = {.tv_nsec = 1000000};

	while (k->events.n)
		close(k->events.p[--k->events.n]);
	while (k->links.n)
		close(k->links.p[--k->links.n]);
	links_detach(&k->probe_links);
	for (int i = 0; k->bpf && i < LATE_WAIT_MS && n_waiting(k); i++)
		nanosleep(&moment, NULL);
	k->has_stopped = true;
}

void prof_kernel_counts(const struct prof_kernel *k, struct cairn_prof_counts *ret)
{
	struct counts sum = sum_counts(k);

	ret->n_lost += sum.n_lost + n_missed(k);
	/* Their tasks are blocked, or have ended. */
	if (k->has_stopped)
		ret->n_lost += sum.n_waiting - sum.n_late;
	ret->walk_ns = sum.walk_ns;
	ret->n_filtered = sum.n_filtered;
	ret->n_undecided = sum.n_undecided;
	ret->n_late = sum.n_late;
}

size_t prof_kernel_bytes(const struct prof_kernel *k)
{
	const struct bpf_map *map;
	size_t n = 0;

	bpf_object__for_each_map(map, k->bpf->obj)
	{
		size_t each = bpf_map__key_size(map) + bpf_map__value_size(map);
		bool is_fixed = bpf_map__type(map) == BPF_MAP_TYPE_ARRAY ||
				bpf_map__type(map) == BPF_MAP_TYPE_ARRAY_OF_MAPS;

		if (bpf_map__type(map) == BPF_MAP_TYPE_RINGBUF)
			n += bpf_map__max_entries(map);
		else if (is_fixed)
			n += bpf_map__max_entries(map) * each;
		else if (bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_ARRAY)
			n += each * (size_t)perf_n_processors();
	}
	return n;
}

void prof_kernel_free(struct prof_kernel *k)
{
	prof_kernel_stop(k);
	VEC_FREE(&k->events);
	VEC_FREE(&k->links);
	links_fini(&k->probe_links);
	ring_buffer__free(k->ring);
	profile_bpf__destroy(k->bpf);
}
