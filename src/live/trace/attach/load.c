/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loading the BPF program, and letting go of everything of the kernel's
 *
 * The object holds one program per size of record; only those that the probes need are loaded, as
 * the verifier takes 10 to 25 ms for each. The kernel's abilities are found out by trying, best
 * first, never by its version. The exception is described at links_filter_whole_processes().
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/scope.h"
#include "launch/permission.h"
#include "perf/ring.h"
#include "trace/aggregate/aggregate.h"
#include "trace/attach/family.h"
#include "trace/place/in_kernel.h"
#include "trace/attach/kernel.h"
#include "trace/attach/kernel_multi.h"
#include "trace/attach/link.h"
#include "trace/attach/returns.h"
#include "trace/stacks/stacks.h"
#include "trace/attach/traced.h"
#include "trace/weigh.h"
#include "trace.skel.h"

/* Inode of the first pid namespace on every Linux (PROC_PID_INIT_INO). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu
/* Longest last words of libbpf kept for an error. */
#define LOG_MAX             400

static __thread char last_words[LOG_MAX];

static int keep_last_words(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level == LIBBPF_WARN)
		vsnprintf(last_words, sizeof(last_words), fmt, args);
	return 0;
}

struct attempt {
	enum cairn_trace_backend backend;
	bool sleepable, children, sessions;
	bool small_calls; /* as TRACE_SMALL_DEPTH has it */
	bool multi;       /* entries of the kernel go by one link: kernel_multi.h */
};

static bool class_is_needed(const struct cairn_trace *t, uint32_t n_record, enum link_follows how)
{
	for (size_t i = 0; i < t->probes.n; i++)
		if (t->probes.p[i]->n_record == n_record && links_follow(t->probes.p[i]) == how)
			return true;
	return false;
}

/* Whether copies are followed with records of a size. */
static bool copies_need(const struct cairn_trace *t, uint32_t n_record)
{
	for (size_t i = 0; i < t->sites.n; i++)
		if (t->sites.p[i]->copy && !t->sites.p[i]->pub.refused &&
		    t->probes.p[t->sites.p[i]->pub.probe]->n_record == n_record)
			return true;
	return false;
}

static bool follows_calls(const struct cairn_trace *t)
{
	for (size_t i = 0; i < t->probes.n; i++)
		if (t->probes.p[i]->returns)
			return true;
	return false;
}

static bool keeps_numbers(const struct cairn_trace *t)
{
	for (size_t i = 0; i < t->probes.n; i++)
		if (t->probes.p[i]->returns && t->probes.p[i]->returns->n_kept)
			return true;
	return false;
}

#define CLASS_SIZE(n) n,
static const uint32_t class_sizes[] = {TRACE_CLASSES(CLASS_SIZE)};

static struct bpf_program *class_program(const struct trace_bpf *bpf, unsigned int class)
{
#define CLASS_PROGRAM(n) bpf->progs.hit_##n,
	struct bpf_program *programs[] = {TRACE_CLASSES(CLASS_PROGRAM)};

	return class < TRACE_N_CLASSES ? programs[class] : NULL;
}

/* Those that walk the hit's stack. */
static struct bpf_program *stacked_program(const struct trace_bpf *bpf, unsigned int class)
{
#define STACKED_PROGRAM(n) bpf->progs.stacked_##n,
	struct bpf_program *programs[] = {TRACE_CLASSES(STACKED_PROGRAM)};

	return class < TRACE_N_CLASSES ? programs[class] : NULL;
}

/* Those for entries that go by one link. */
static struct bpf_program *multi_program(const struct cairn_trace *t, const struct trace_bpf *bpf,
					 unsigned int class)
{
#define MULTI_PROGRAM(n)   bpf->progs.multi_##n,
#define MULTI_AGGREGATE(n) bpf->progs.multi_aggregate_##n,
	struct bpf_program *programs[] = {TRACE_CLASSES(MULTI_PROGRAM)};
	struct bpf_program *sums[] = {TRACE_AGGREGATE_CLASSES(MULTI_AGGREGATE)};

	if (!t->aggregates)
		return class < TRACE_N_CLASSES ? programs[class] : NULL;
	if (!class && t->aggregates->is_short)
		return bpf->progs.multi_short;
	return class < TRACE_N_AGGREGATE_CLASSES ? sums[class] : NULL;
}

/* The same of hits that are summed up; the sizes are the first of the others. */
static struct bpf_program *aggregate_program(const struct trace_bpf *bpf, unsigned int class)
{
#define AGGREGATE_PROGRAM(n) bpf->progs.aggregate_##n,
	struct bpf_program *programs[] = {TRACE_AGGREGATE_CLASSES(AGGREGATE_PROGRAM)};

	return class < TRACE_N_AGGREGATE_CLASSES ? programs[class] : NULL;
}

static struct bpf_program *stacked_aggregate(const struct trace_bpf *bpf, unsigned int class)
{
#define STACKED_AGGREGATE(n) bpf->progs.stacked_aggregate_##n,
	struct bpf_program *programs[] = {TRACE_AGGREGATE_CLASSES(STACKED_AGGREGATE)};

	return class < TRACE_N_AGGREGATE_CLASSES ? programs[class] : NULL;
}

/* The program for hits of this trace whose records are of a class; NULL: there is none. */
static struct bpf_program *program_of(const struct cairn_trace *t, const struct trace_bpf *bpf,
				      unsigned int class)
{
	if (t->stacks)
		return t->aggregates ? stacked_aggregate(bpf, class) : stacked_program(bpf, class);
	if (t->aggregates && !class && t->aggregates->is_short)
		return t->aggregates->is_common ? bpf->progs.common_short : bpf->progs.all_short;
	return t->aggregates ? aggregate_program(bpf, class) : class_program(bpf, class);
}

/* Of probes that follow their calls. */
struct return_programs {
	struct bpf_program *session, *enter, *leave, *exit;
	struct bpf_program *copy_enter, *copy_exit, *copy_reset;
	struct bpf_map *calls, *small_calls, *kernel_calls;
};

static struct return_programs return_programs(const struct cairn_trace *t,
					      const struct trace_bpf *bpf, uint32_t size)
{
#define OF_SIZE(n)                                                                                 \
	if (size == (n) && !t->aggregates)                                                         \
		return (struct return_programs){                                                   \
			bpf->progs.session_##n,    bpf->progs.enter_##n,                           \
			bpf->progs.leave_##n,      bpf->progs.exit_##n,                            \
			bpf->progs.copy_enter_##n, bpf->progs.copy_exit_##n,                       \
			bpf->progs.copy_reset_##n, bpf->maps.calls_##n,                            \
			bpf->maps.small_calls_##n, bpf->maps.kernel_calls_##n};
#define SUM_OF_SIZE(n)                                                                             \
	if (size == (n) && t->aggregates)                                                          \
		return (struct return_programs){                                                   \
			bpf->progs.sum_session_##n,    bpf->progs.sum_enter_##n,                   \
			bpf->progs.sum_leave_##n,      bpf->progs.sum_exit_##n,                    \
			bpf->progs.sum_copy_enter_##n, bpf->progs.sum_copy_exit_##n,               \
			bpf->progs.copy_reset_##n,     bpf->maps.calls_##n,                        \
			bpf->maps.small_calls_##n,     bpf->maps.kernel_calls_##n};
	TRACE_RETURN_CLASSES(OF_SIZE)
	TRACE_AGGREGATE_RETURN_CLASSES(SUM_OF_SIZE)
	return (struct return_programs){0};
}

/* Those whose entries walk the stack. */
static struct return_programs stacked_returns(const struct cairn_trace *t,
					      const struct trace_bpf *bpf, uint32_t size)
{
	struct return_programs p = return_programs(t, bpf, size);

#define STACKED_OF_SIZE(n)                                                                         \
	if (size == (n) && !t->aggregates) {                                                       \
		p.session = bpf->progs.stacked_session_##n;                                        \
		p.enter = bpf->progs.stacked_enter_##n;                                            \
		p.copy_enter = bpf->progs.stacked_copy_enter_##n;                                  \
	}
#define STACKED_SUM_OF_SIZE(n)                                                                     \
	if (size == (n) && t->aggregates) {                                                        \
		p.session = bpf->progs.stacked_sum_session_##n;                                    \
		p.enter = bpf->progs.stacked_sum_enter_##n;                                        \
		p.copy_enter = bpf->progs.stacked_sum_copy_enter_##n;                              \
	}
	TRACE_RETURN_CLASSES(STACKED_OF_SIZE)
	TRACE_AGGREGATE_RETURN_CLASSES(STACKED_SUM_OF_SIZE)
	return p;
}

static struct return_programs return_programs_of(const struct cairn_trace *t,
						 const struct trace_bpf *bpf, uint32_t size)
{
	return t->stacks ? stacked_returns(t, bpf, size) : return_programs(t, bpf, size);
}

static void choose_program(struct bpf_program *p, bool is_needed, struct attempt how)
{
	if (!p)
		return;
	bpf_program__set_autoload(p, is_needed);
	if (how.backend == CAIRN_BACKEND_UPROBE_MULTI)
		bpf_program__set_expected_attach_type(p, LINK_UPROBE_MULTI);
	if (how.sleepable)
		bpf_program__set_flags(p, BPF_F_SLEEPABLE);
}

/* Calls of the kernel are kept apart. */
static void choose_return_memory(const struct return_programs *p, bool of_kernel, bool is_small,
				 bool is_needed)
{
	bpf_map__set_autocreate(p->calls, is_needed && !of_kernel && !is_small);
	bpf_map__set_autocreate(p->small_calls, is_needed && !of_kernel && is_small);
	bpf_map__set_autocreate(p->kernel_calls, is_needed && of_kernel);
}

/* The programs and the memory of one size; what other sizes have is not made. */
static void choose_return_programs(const struct cairn_trace *t, struct trace_bpf *bpf,
				   uint32_t size, struct attempt how)
{
	struct return_programs p = return_programs_of(t, bpf, size);
	bool by_returns = class_is_needed(t, size, LINKS_FOLLOW_RETURNS);
	bool by_exits = class_is_needed(t, size, LINKS_FOLLOW_EXITS);
	bool by_copies = copies_need(t, size);

	choose_program(p.session, by_returns && how.sessions, how);
	if (p.session && how.sessions)
		bpf_program__set_expected_attach_type(p.session, LINK_UPROBE_SESSION);
	choose_program(p.enter, by_exits || (by_returns && !how.sessions), how);
	choose_program(p.leave, by_returns && !how.sessions, how);
	choose_program(p.exit, by_exits, how);
	choose_program(p.copy_enter, by_copies, how);
	choose_program(p.copy_exit, by_copies, how);
	choose_program(p.copy_reset, by_copies, how);
	if (p.calls)
		choose_return_memory(&p, in_kernel(t), how.small_calls, by_returns || by_exits);
}

/* No memory for calls, whatever the trace is. */
static void choose_no_return_memory(struct trace_bpf *bpf)
{
#define OFF(n)                                                                                     \
	bpf_map__set_autocreate(bpf->maps.calls_##n, false);                                       \
	bpf_map__set_autocreate(bpf->maps.small_calls_##n, false);                                 \
	bpf_map__set_autocreate(bpf->maps.kernel_calls_##n, false);
	TRACE_RETURN_CLASSES(OFF)
}

static bool has_entries_of(const struct cairn_trace *t, uint32_t n_record)
{
	for (size_t i = 0; i < t->sites.n; i++)
		if (t->sites.p[i]->by_multi &&
		    t->probes.p[t->sites.p[i]->pub.probe]->n_record == n_record)
			return true;
	return false;
}

static void choose_multi_program(const struct cairn_trace *t, struct trace_bpf *bpf,
				 unsigned int class, struct attempt how)
{
	struct bpf_program *p = multi_program(t, bpf, class);

	if (!p || !how.multi || !has_entries_of(t, class_sizes[class]))
		return;
	bpf_program__set_autoload(p, true);
	bpf_program__set_expected_attach_type(p, LINK_KPROBE_MULTI);
}

static void choose_programs(const struct cairn_trace *t, struct trace_bpf *bpf, struct attempt how)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, bpf->obj) bpf_program__set_autoload(p, false);
	choose_no_return_memory(bpf);
	for (unsigned int i = 0; i < TRACE_N_CLASSES; i++) {
		bool is_needed = class_is_needed(t, class_sizes[i], LINKS_FOLLOW_NONE);
		choose_program(program_of(t, bpf, i), is_needed, how);
		choose_multi_program(t, bpf, i, how);
		choose_return_programs(t, bpf, class_sizes[i], how);
	}
	/* They read registers only. */
	bpf_program__set_flags(bpf->progs.all_short, 0);
	bpf_program__set_flags(bpf->progs.common_short, 0);
	bpf_program__set_autoload(bpf->progs.on_fork, how.children);
	bpf_program__set_autoload(bpf->progs.on_exit, how.children && traced_has_table(t));
	bpf_program__set_autoload(bpf->progs.on_walk_fork, t->stacks);
	bpf_program__set_autoload(bpf->progs.on_walk_exec, t->stacks);
}

/* The maps of a walk take megabytes, and are not made for traces without stacks. */
static int size_walk(const struct cairn_trace *t, struct trace_bpf *bpf)
{
	struct bpf_map *const maps[] = {bpf->maps.rows,      bpf->maps.pages, bpf->maps.segments,
					bpf->maps.regions,   bpf->maps.rules, bpf->maps.cache,
					bpf->maps.row_cache, bpf->maps.walks, bpf->maps.processes,
					bpf->maps.inodes,    bpf->maps.seen};
	uint32_t n = WALK_CACHE_SLOTS * (uint32_t)perf_n_processors();
	int e = 0;

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]) && !t->stacks && !e; i++)
		e = bpf_map__set_autocreate(maps[i], false);
	e = e ? e : bpf_map__set_max_entries(bpf->maps.walks, WALK_MAX_WALKS);
	e = e ? e : bpf_map__set_max_entries(bpf->maps.cache, n);
	return e ? e : bpf_map__set_max_entries(bpf->maps.row_cache, n);
}

static uint32_t power_of_two(uint32_t n)
{
	return n < 2 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

static uint32_t ring_bytes(const struct cairn_trace *t)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	uint32_t n = t->opts.ring_bytes ? t->opts.ring_bytes : 8u << 20;

	if (t->aggregates && !t->stacks)
		return page;
	return power_of_two(n < page ? page : n > 1u << 30 ? 1u << 30 : n);
}

static int size_runs(struct bpf_map *map)
{
	int n_cpus = libbpf_num_possible_cpus();

	return n_cpus < 0 ? n_cpus : bpf_map__set_max_entries(map, (uint32_t)n_cpus * TRACE_RUNS);
}

static int size_maps(const struct cairn_trace *t, struct trace_bpf *bpf)
{
	int e = trace_size_tables(t, bpf->maps.sites, bpf->maps.ops);

	e = e ? e : size_walk(t, bpf);
	e = e ? e : bpf_map__set_max_entries(bpf->maps.counts, (uint32_t)t->probes.n);
	if (!e)
		e = t->aggregates ? aggregates_size_maps(t, bpf) : size_runs(bpf->maps.runs);
	return e ? e : bpf_map__set_max_entries(bpf->maps.ring, ring_bytes(t));
}

/*
 * Tracepoints see the numbers of the first namespace only, so that children cannot be recognised
 * elsewhere.
 * @ret may be NULL.
 */
static bool in_other_pid_namespace(struct stat *ret)
{
	struct stat ns;

	if (stat("/proc/self/ns/pid", &ns) || ns.st_ino == FIRST_PID_NAMESPACE)
		return false;
	if (ret)
		*ret = ns;
	return true;
}

/*
 * A task has numbers in its own pid namespace and in those around it. BPF gives those of the first
 * namespace, and those of the task's own. So a tracer in another one than the first cannot
 * recognise a process in one further inside.
 */
static int check_pid_namespace(int pid, struct cairn_err *err)
{
	struct stat own, its;
	char name[32];

	snprintf(name, sizeof(name), "/proc/%d/ns/pid", pid);
	if (!in_other_pid_namespace(&own) || stat(name, &its) || own.st_ino == its.st_ino)
		return 0;
	return err_set(err, -EOPNOTSUPP,
		       "process %d is in another pid namespace than this one, and the kernel does "
		       "not report its number here: run this in the first pid namespace (on the "
		       "host), or in that of the process",
		       pid);
}

/* A command is in the namespace of the tracer. */
static int check_pid_namespaces(const struct cairn_trace *t, struct cairn_err *err)
{
	int e = 0;

	for (size_t i = 0; i < t->n_traced && t->opts.pid && e == 0; i++)
		e = check_pid_namespace(t->traced[i].pid, err);
	return e;
}

static void set_stacks(const struct trace_stacks *s, struct trace_bpf *bpf)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint64_t)getpid();
	bpf->rodata->seed = seed;
	bpf->rodata->stacks_of = (uint32_t)s->of;
	bpf->rodata->stack_frames = s->of == STACKS_CALLER ? 2 : s->max_frames;
	bpf->rodata->n_walks = WALK_MAX_WALKS;
}

uint32_t trace_draw_below(uint32_t one_of)
{
	return one_of > 1 ? (uint32_t)(((UINT64_C(1) << 32) + one_of / 2) / one_of) : 0;
}

static enum trace_filter filter_of(const struct cairn_trace *t)
{
	if (!t->n_traced)
		return t->opts.cgroup || t->opts.comm ? TRACE_FILTER_CHOSEN : TRACE_FILTER_NONE;
	return traced_has_table(t) ? TRACE_FILTER_FAMILY : TRACE_FILTER_TGID;
}

static void set_filter(const struct cairn_trace *t, struct trace_bpf *bpf)
{
	uint8_t name[COMM_BYTES] = {0}, mask[COMM_BYTES] = {0};
	size_t n = t->opts.comm ? strlen(t->opts.comm) : 0;

	bpf->rodata->filter = filter_of(t);
	bpf->rodata->target_tgid = (uint32_t)t->pid;
	if (t->opts.cgroup) {
		bpf->bss->cgroup_id = t->cgroup.id;
		bpf->rodata->cgroup_first = t->cgroup.level_first;
		bpf->rodata->cgroup_last = t->cgroup.level_last;
	}
	if (!n)
		return;
	memcpy(name, t->opts.comm, n);
	memset(mask, 0xff, n + 1);
	memcpy((void *)bpf->rodata->comm_name, name, sizeof(name));
	memcpy((void *)bpf->rodata->comm_mask, mask, sizeof(mask));
}

static bool is_linux_since(unsigned int major, unsigned int minor)
{
	struct utsname u;
	unsigned int its[2] = {0};

	return !uname(&u) && sscanf(u.release, "%u.%u", &its[0], &its[1]) == 2 &&
	       (its[0] > major || (its[0] == major && its[1] >= minor));
}

/*
 * Before Linux 6.10 (6.6.33, 6.9.4) the pid of an uprobe_multi link stood for one thread: hits of
 * the others were dropped without a word. There the link takes all processes, and the program does
 * the filtering.
 */
static bool links_filter_whole_processes(void)
{
	return is_linux_since(6, 10);
}

/*
 * Before Linux 6.12 such a link compared the memory, which a process shares with its child between
 * vfork() and exec().
 */
static bool links_filter_exactly(void)
{
	return is_linux_since(6, 12);
}

static int link_pid(const struct cairn_trace *t, enum cairn_trace_backend backend)
{
	if (traced_has_table(t))
		return 0;
	if (backend == CAIRN_BACKEND_UPROBE_MULTI && !links_filter_whole_processes())
		return 0;
	return t->pid;
}

/*
 * Whether a program has to look at the process of a hit. Not where the kernel's link has the hits of
 * the traced process alone, or where every process is traced.
 */
static bool wants_ids(const struct cairn_trace *t, struct attempt how)
{
	enum trace_filter filter = filter_of(t);
	bool is_filtered = how.backend == CAIRN_BACKEND_UPROBE_MULTI &&
			   link_pid(t, how.backend) != 0 && links_filter_exactly();

	return filter != TRACE_FILTER_NONE && (filter != TRACE_FILTER_TGID || !is_filtered);
}

static void set_constants(const struct cairn_trace *t, struct trace_bpf *bpf, struct attempt how)
{
	struct stat ns;

	set_filter(t, bpf);
	bpf->rodata->sleepable = how.sleepable;
	bpf->rodata->small_calls = how.small_calls;
	bpf->rodata->of_kernel = in_kernel(t);
	bpf->rodata->keeps = keeps_numbers(t);
	bpf->rodata->shows_calls = t->opts.shows_calls;
	bpf->rodata->follow = t->opts.follow_children;
	bpf->rodata->wakeup_bytes = ring_bytes(t) / 8;
	bpf->bss->draw_below = trace_draw_below(t->sample);
	bpf->rodata->wants_ids = wants_ids(t, how);
	bpf->rodata->n_sites = (uint32_t)t->sites.n;
	if (t->stacks)
		set_stacks(t->stacks, bpf);
	bpf->rodata->has_loop =
		libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, NULL) == 1;
	if (!in_other_pid_namespace(&ns))
		return;
	bpf->rodata->pidns_dev = ns.st_dev;
	bpf->rodata->pidns_ino = ns.st_ino;
}

static int try_load(const struct cairn_trace *t, struct attempt how, struct trace_bpf **ret)
{
	struct trace_bpf *bpf = trace_bpf__open();
	int e;

	if (!bpf)
		return -errno;
	choose_programs(t, bpf, how);
	set_constants(t, bpf, how);
	e = size_maps(t, bpf);
	e = e ? e : trace_bpf__load(bpf);
	if (e) {
		trace_bpf__destroy(bpf);
		return e;
	}
	*ret = bpf;
	return 0;
}

/* Whether the kernel has the memory for one thread's calls that a map promises; this one tries. */
static bool has_memory(const struct bpf_map *map)
{
	int fd = bpf_map__fd(map), pid_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	void *zeros = calloc(1, bpf_map__value_size(map));
	bool is_refused = zeros && pid_fd >= 0 &&
			  bpf_map_update_elem(fd, &pid_fd, zeros, BPF_ANY) && errno == ENOMEM;

	if (!is_refused && pid_fd >= 0)
		bpf_map_delete_elem(fd, &pid_fd);
	if (pid_fd >= 0)
		close(pid_fd);
	free(zeros);
	return !is_refused;
}

static bool has_memory_for_calls(const struct trace_bpf *bpf)
{
#define MEMORY_OF(n) bpf->maps.calls_##n,
	const struct bpf_map *const maps[] = {TRACE_RETURN_CLASSES(MEMORY_OF)};
	bool ok = true;

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]) && ok; i++)
		ok = bpf_map__fd(maps[i]) < 0 || has_memory(maps[i]);
	return ok;
}

/* Loads, and once more with less memory for each thread, where there is no more. */
static int load(const struct cairn_trace *t, struct attempt how, struct trace_bpf **ret)
{
	int e = try_load(t, how, ret);

	if (e || has_memory_for_calls(*ret))
		return e;
	trace_bpf__destroy(*ret);
	*ret = NULL;
	how.small_calls = true;
	return try_load(t, how, ret);
}

static int fill_tables(const struct cairn_trace *t, struct trace_bpf *bpf)
{
	int e = trace_fill_tables(t, bpf->maps.sites, bpf->maps.ops);

	if (!e && t->aggregates)
		e = aggregates_fill_maps(t, bpf);
	return !e && traced_has_table(t) ? family_note_traced(t, bpf) : e;
}

static int attach_walk(struct trace_kernel *k)
{
	const struct bpf_program *programs[] = {k->bpf->progs.on_walk_fork,
						k->bpf->progs.on_walk_exec};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		int fd = bpf_raw_tracepoint_open(NULL, bpf_program__fd(programs[i]));
		if (fd < 0)
			return -errno;
		k->walk_links[i] = fd;
	}
	return 0;
}

/* From now on the maps of the walk are kept up to date. */
static int open_stacks(struct cairn_trace *t, struct trace_kernel *k, struct cairn_err *err)
{
	const struct walker_maps maps = WALKER_MAPS_OF(k->bpf);
	int e = attach_walk(k);

	if (e)
		return err_set(err, e, "attaching to forks and execs: %s", strerror(-e));
	return stacks_open(t, &maps, bpf_map__fd(k->bpf->maps.seen), err);
}

/* Tracepoints that need neither tracefs nor kprobes, only the kernel's BTF. */
static void attach_children(struct trace_kernel *k)
{
	struct trace_bpf *bpf = k->bpf;

	k->fork_link = bpf_raw_tracepoint_open(NULL, bpf_program__fd(bpf->progs.on_fork));
	if (bpf_program__fd(bpf->progs.on_exit) >= 0)
		k->exit_link = bpf_raw_tracepoint_open(NULL, bpf_program__fd(bpf->progs.on_exit));
	k->has_children = k->fork_link >= 0;
}

static int load_error(int e, struct cairn_err *err)
{
	if (permission_is_locked())
		return permission_locked(err);
	if (e == -EPERM || e == -EACCES)
		return permission_error(err, "loading a BPF program");
	char *end = strchr(last_words, '\n');
	if (end)
		*end = 0;
	return err_set(err, e == -EINVAL ? -EOPNOTSUPP : e,
		       "the kernel does not take the BPF program: %s; %s", strerror(-e),
		       last_words);
}

/* Sessions are for probes that follow their calls, unless another way is asked for. */
static bool may_have_sessions(const struct cairn_trace *t)
{
	bool is_possible = t->opts.backend == CAIRN_BACKEND_UPROBE_SESSION ||
			   t->opts.backend == CAIRN_BACKEND_AUTO;

	return is_possible && follows_calls(t) && link_session_is_known();
}

static int load_best(const struct cairn_trace *t, struct trace_kernel *k)
{
	static const struct attempt attempts[] = {
		{CAIRN_BACKEND_UPROBE_MULTI, true, true, true, false, false},
		{CAIRN_BACKEND_UPROBE_MULTI, true, false, true, false, false},
		{CAIRN_BACKEND_UPROBE_MULTI, true, true, false, false, false},
		{CAIRN_BACKEND_UPROBE_MULTI, true, false, false, false, false},
		{CAIRN_BACKEND_UPROBE_MULTI, false, false, false, false, false},
		{CAIRN_BACKEND_UPROBE, false, true, false, false, false},
		{CAIRN_BACKEND_UPROBE, false, false, false, false, false},
		{CAIRN_BACKEND_KPROBE, false, true, false, false, false},
		{CAIRN_BACKEND_KPROBE, false, false, false, false, false},
	};
	bool kernel = in_kernel(t);
	bool multi = !kernel && t->opts.backend != CAIRN_BACKEND_UPROBE && link_multi_is_known();
	bool sessions = may_have_sessions(t);
	int e = -EOPNOTSUPP;

	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		struct attempt how = attempts[i];
		if ((how.backend == CAIRN_BACKEND_UPROBE_MULTI) != multi ||
		    (how.backend == CAIRN_BACKEND_KPROBE) != kernel ||
		    (how.sessions && !sessions) ||
		    (how.children && (!t->n_traced || in_other_pid_namespace(NULL))))
			continue;
		how.multi = kernel && k->links.has_kernel_multi;
		e = load(t, how, &k->bpf);
		k->links.backend = how.backend;
		k->links.has_sessions = how.sessions;
		k->sleepable = how.sleepable;
		k->has_children = how.children;
		if (e == 0 || e == -EPERM || e == -ENOMEM)
			return e;
	}
	return e;
}

/* The programs that are loaded must be able to leave a call alone, if there may be such calls. */
static int check_stacks(const struct cairn_trace *t, const struct trace_kernel *k,
			struct cairn_err *err)
{
	for (size_t i = 0; i < t->probes.n && !k->links.has_sessions; i++) {
		const struct trace_probe *p = t->probes.p[i];
		if (!p->file->kernel && links_follow(p) == LINKS_FOLLOW_RETURNS &&
		    returns_has_stacks(p->file))
			return err_set(err, -EOPNOTSUPP,
				       "%s: %s uses several stacks in a thread, and a return probe "
				       "could end it; only uprobe_session (Linux 6.13) can follow "
				       "its calls",
				       p->text->text, p->file->shown);
	}
	return 0;
}

static int program_fd(const struct cairn_trace *t, const struct trace_bpf *bpf, unsigned int class)
{
	struct bpf_program *p = program_of(t, bpf, class);

	return p ? bpf_program__fd(p) : -1;
}

static void keep_programs(const struct cairn_trace *t, struct trace_kernel *k)
{
	struct trace_links *l = &k->links;

	for (unsigned int i = 0; i < TRACE_N_CLASSES; i++) {
		struct return_programs p = return_programs_of(t, k->bpf, class_sizes[i]);
		l->program_fds[i] = program_fd(t, k->bpf, i);
		l->multi_fds[i] = -1;
		if (l->has_kernel_multi && multi_program(t, k->bpf, i))
			l->multi_fds[i] = bpf_program__fd(multi_program(t, k->bpf, i));
		l->follow_fds[i] = l->return_fds[i] = l->enter_fds[i] = l->exit_fds[i] = -1;
		l->copy_enter_fds[i] = l->copy_exit_fds[i] = l->copy_reset_fds[i] = -1;
		if (!p.calls)
			continue;
		l->follow_fds[i] = bpf_program__fd(l->has_sessions ? p.session : p.enter);
		l->return_fds[i] = bpf_program__fd(p.leave);
		l->enter_fds[i] = bpf_program__fd(p.enter);
		l->exit_fds[i] = bpf_program__fd(p.exit);
		l->copy_enter_fds[i] = bpf_program__fd(p.copy_enter);
		l->copy_exit_fds[i] = bpf_program__fd(p.copy_exit);
		l->copy_reset_fds[i] = bpf_program__fd(p.copy_reset);
	}
}

static int make_ready(const struct cairn_trace *t, struct trace_kernel *k, struct cairn_err *err)
{
	int e = check_stacks(t, k, err);

	if (e < 0)
		return e;
	e = fill_tables(t, k->bpf);
	return e ? err_set(err, e, "filling the tables of the BPF program: %s", strerror(-e)) : 0;
}

static int check_backend(const struct cairn_trace *t, struct cairn_err *err)
{
	if (t->opts.backend == CAIRN_BACKEND_KPROBE && !in_kernel(t))
		return err_set(err, -EOPNOTSUPP,
			       "kprobes are for functions of the kernel: trace -k");
	if (t->opts.backend == CAIRN_BACKEND_UPROBE_MULTI && !link_multi_is_known())
		return err_set(err, -EOPNOTSUPP, "this kernel has no uprobe_multi (Linux 6.6 has)");
	if (t->opts.backend == CAIRN_BACKEND_UPROBE_SESSION && !link_session_is_known())
		return err_set(err, -EOPNOTSUPP,
			       "this kernel has no uprobe_session (Linux 6.13 has)");
	return 0;
}

int kernel_load(struct cairn_trace *t, struct trace_kernel **ret, struct cairn_err *err)
{
	libbpf_print_fn_t before;
	int e = check_pid_namespaces(t, err);

	if (e)
		return e;
	if (t->aggregates)
		aggregates_note_short(t);
	struct trace_kernel *k = calloc(1, sizeof(*k));
	if (!k)
		return err_nomem(err, "a trace");
	k->fork_link = k->exit_link = k->walk_links[0] = k->walk_links[1] = -1;
	e = check_backend(t, err);
	if (e < 0) {
		free(k);
		return e;
	}
	last_words[0] = 0;
	before = libbpf_set_print(keep_last_words);
	k->links.has_kernel_multi =
		in_kernel(t) && kernel_multi_choose(t) && kernel_multi_is_known();
	e = load_best(t, k);
	if (e && e != -EPERM && k->links.has_kernel_multi) {
		k->links.has_kernel_multi = false;
		e = load_best(t, k);
	}
	libbpf_set_print(before);
	if (e)
		e = load_error(e, err);
	else
		e = make_ready(t, k, err);
	if (e) {
		kernel_free(k);
		return e;
	}
	k->links.pid = link_pid(t, k->links.backend);
	keep_programs(t, k);
	if (k->has_children)
		attach_children(k);
	/* A command has none yet. */
	if (k->has_children && t->opts.pid && family_find_running(t, k) < 0) {
		kernel_free(k);
		return err_nomem(err, "the children of the process");
	}
	e = t->stacks ? open_stacks(t, k, err) : 0;
	if (e) {
		kernel_free(k);
		return e;
	}
	*ret = k;
	return 0;
}

void kernel_detach(struct trace_kernel *k)
{
	links_detach(&k->links);
	if (k->fork_link >= 0)
		close(k->fork_link);
	if (k->exit_link >= 0)
		close(k->exit_link);
	for (size_t i = 0; i < sizeof(k->walk_links) / sizeof(k->walk_links[0]); i++)
		if (k->walk_links[i] >= 0)
			close(k->walk_links[i]);
	k->fork_link = k->exit_link = k->walk_links[0] = k->walk_links[1] = -1;
}

void kernel_free(struct trace_kernel *k)
{
	if (!k)
		return;
	kernel_detach(k);
	ring_buffer__free(k->ring);
	trace_bpf__destroy(k->bpf);
	links_fini(&k->links);
	free(k->space);
	free(k);
}

int kernel_counts(const struct trace_kernel *k, uint32_t probe, struct cairn_trace_counts *ret)
{
	int cpus = libbpf_num_possible_cpus();
	SCOPE_FREE struct trace_counts_entry *each =
		cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;

	if (!each)
		return cpus > 0 ? -ENOMEM : cpus;
	int e = bpf_map__lookup_elem(k->bpf->maps.counts, &probe, sizeof(probe), each,
				     (size_t)cpus * sizeof(*each), 0);
	for (int i = 0; !e && i < cpus; i++) {
		ret->lost += each[i].lost;
		ret->filtered += each[i].filtered;
		ret->undecided += each[i].undecided;
		ret->failed += each[i].failed;
		ret->unwound += each[i].unwound;
		ret->unfinished += each[i].entered - each[i].returned - each[i].unwound;
		ret->too_deep += each[i].too_deep;
		ret->apart += each[i].apart;
		ret->entries_lost += each[i].entries_lost;
		ret->undrawn += each[i].undrawn;
	}
	return e;
}

static uint64_t misses(int fd)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size) ? info.recursion_misses : 0;
}

uint64_t kernel_missed(const struct trace_kernel *k)
{
	uint64_t missed = 0;

	for (unsigned int i = 0; i < TRACE_N_CLASSES; i++)
		missed += misses(k->links.program_fds[i]) +
			  (k->links.has_kernel_multi ? misses(k->links.multi_fds[i]) : 0) +
			  misses(k->links.follow_fds[i]) + misses(k->links.return_fds[i]) +
			  misses(k->links.exit_fds[i]) + misses(k->links.copy_enter_fds[i]) +
			  misses(k->links.copy_exit_fds[i]) + misses(k->links.copy_reset_fds[i]) +
			  (k->links.has_sessions ? misses(k->links.enter_fds[i]) : 0);
	return missed;
}
