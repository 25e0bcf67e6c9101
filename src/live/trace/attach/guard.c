/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The overload guard
 *
 * A hit costs the traced process a trap and the run of the kernel's program. The kernel counts runs
 * and their time; the trap was measured on a child. Their sum over the processor time of the traced
 * process, or of the machine where other processes run into the probes, too, is the slowdown. A
 * process that mostly sleeps has little processor time, so nothing is done while all hits together
 * take less than a fiftieth of one processor.
 *
 * What can be saved by taking some of the hits is the program's time. If the traps alone are too
 * many, only removing the probes helps.
 */
#include "trace/attach/guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/scope.h"
#include "trace/place/in_kernel.h"
#include "trace/attach/kernel.h"
#include "trace/attach/traced.h"
#include "trace.skel.h"

/* Between two looks. */
#define WINDOW_NS    UINT64_C(200000000)
/* A hit that is not taken still costs its program's beginning. */
#define UNDRAWN_NS   100
#define WALL_SHARE   0.02
/* Below the limit, so that it is not touched again and again. */
#define AIM          0.9
#define SAMPLE_LIMIT (1u << 20)

struct guard_decision guard_decide(const struct guard_window *w, double max)
{
	double traps = (double)w->n_hits * (double)w->trap_ns, run = (double)w->run_ns;
	double cost = traps + run, rest = (double)w->cpu_ns - cost;
	struct guard_decision d = {.sample = w->sample};

	/* The clocks differ by some microseconds, and a program cannot run in no time. */
	rest = rest > (double)w->cpu_ns / 1000 ? rest : (double)w->cpu_ns / 1000 + 1;
	d.slowdown = cost / rest;
	if (d.slowdown <= max || cost < WALL_SHARE * (double)w->wall_ns)
		return d;
	double fixed = traps + (double)w->n_hits * UNDRAWN_NS, allowed = max * AIM * rest;
	d.action = GUARD_DETACH;
	while (fixed < allowed && d.sample < SAMPLE_LIMIT && fixed + run > allowed) {
		d.sample *= 2;
		run /= 2;
	}
	if (fixed + run <= allowed)
		d.action = GUARD_THIN;
	return d;
}

/* ---- what is measured ---- */

static void add_program(int fd, struct trace_guard *g)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return;
	g->n_hits += info.run_cnt;
	g->run_ns += info.run_time_ns;
}

static void read_programs(const struct trace_kernel *k, struct trace_guard *g)
{
	const struct trace_links *l = &k->links;

	g->n_hits = g->run_ns = 0;
	for (unsigned int i = 0; i < TRACE_N_CLASSES; i++) {
		add_program(l->program_fds[i], g);
		add_program(l->has_kernel_multi ? l->multi_fds[i] : -1, g);
		add_program(l->follow_fds[i], g);
		add_program(l->return_fds[i], g);
		add_program(l->exit_fds[i], g);
		add_program(l->copy_enter_fds[i], g);
		add_program(l->copy_exit_fds[i], g);
		add_program(l->copy_reset_fds[i], g);
		if (l->enter_fds[i] != l->follow_fds[i])
			add_program(l->enter_fds[i], g);
	}
}

static uint64_t nanoseconds(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

/* Of all processes of the machine; 0: it is not known. */
static uint64_t machine_cpu_ns(void)
{
	unsigned long long user, nice, system, irq, softirq;
	SCOPE_FCLOSE FILE *f = fopen("/proc/stat", "re");

	if (!f || fscanf(f, "cpu %llu %llu %llu %*u %*u %llu %llu", &user, &nice, &system, &irq,
			 &softirq) != 5)
		return 0;
	return (user + nice + system + irq + softirq) *
	       (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Of several processes, a cgroup or a name the kernel's program chooses: all others are hit, too. */
static bool hits_others(const struct cairn_trace *t)
{
	return t->kernel->links.pid <= 0;
}

static uint64_t traced_cpu_ns(const struct cairn_trace *t)
{
	uint64_t sum = 0;

	if (hits_others(t))
		return machine_cpu_ns();
	for (size_t i = 0; i < t->n_traced; i++) {
		struct timespec now;
		clockid_t clock;
		if (!clock_getcpuclockid(t->traced[i].pid, &clock) && !clock_gettime(clock, &now))
			sum += nanoseconds(&now);
	}
	return sum;
}

static bool is_all_emulated(const struct cairn_trace *t)
{
	for (size_t i = 0; i < t->sites.n; i++)
		if (t->sites.p[i]->attached && !t->sites.p[i]->pub.emulated)
			return false;
	return true;
}

static bool is_any_followed(const struct cairn_trace *t)
{
	for (size_t i = 0; i < t->sites.n; i++)
		if (t->sites.p[i]->attached && t->sites.p[i]->follows)
			return true;
	return false;
}

/* Half of the hits of calls that are followed are returns, where no instruction is stepped over. */
static int measure_trap(const struct cairn_trace *t, uint64_t *ret)
{
	uint64_t at_return = 0;
	int e = guard_trap_ns(is_all_emulated(t), ret);

	if (e || !is_any_followed(t))
		return e;
	e = guard_trap_ns(true, &at_return);
	*ret = (*ret + at_return) / 2;
	return e;
}

static int open_guard(struct trace_guard *g)
{
	if (g->is_open)
		return 0;
	g->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	g->is_open = g->stats_fd >= 0;
	return g->is_open ? 0 : -EOPNOTSUPP;
}

/* ---- acting ---- */

static uint32_t sample_of(const struct cairn_trace *t)
{
	return t->sample ? t->sample : 1;
}

static void act(struct cairn_trace *t, const struct guard_decision *d)
{
	uint64_t now = trace_now_ns();

	if (d->action == GUARD_THIN) {
		t->sample = d->sample;
		t->sampled_since_ns = now - t->attached_at_ns;
		__atomic_store_n(&t->kernel->bpf->bss->draw_below, trace_draw_below(d->sample),
				 __ATOMIC_RELAXED);
	}
	if (d->action == GUARD_DETACH) {
		t->given_up_ns = now - t->attached_at_ns;
		kernel_detach(t->kernel);
		t->detach_ns = trace_now_ns() - now;
	}
}

/* What happened since the last look. The measured cost of a trap is needed once there are hits. */
static int end_window(struct cairn_trace *t, const struct trace_guard *before,
		      struct guard_window *ret)
{
	struct trace_guard *g = &t->guard;

	*ret = (struct guard_window){
		.wall_ns = g->time_ns - before->time_ns,
		.cpu_ns = g->cpu_ns > before->cpu_ns ? g->cpu_ns - before->cpu_ns : 0,
		.n_hits = g->n_hits - before->n_hits,
		.run_ns = g->run_ns - before->run_ns,
		.sample = sample_of(t)};
	if (!ret->n_hits || g->has_trap)
		return 0;
	int e = measure_trap(t, &g->trap_ns);
	g->has_trap = e == 0;
	return e;
}

int cairn_trace_guard(struct cairn_trace *t, double max, struct cairn_trace_load *ret,
		      struct cairn_err *err)
{
	struct trace_guard *g = &t->guard, before = *g;
	struct guard_window w;
	uint64_t now = trace_now_ns();

	*ret = (struct cairn_trace_load){.slowdown = -1};
	if (in_kernel(t))
		return err_set(err, -EOPNOTSUPP,
			       "what a probe of the kernel costs is not measured");
	if (!t->kernel || !t->kernel->links.fds.n || (g->time_ns && now - g->time_ns < WINDOW_NS))
		return 0;
	if (open_guard(g) < 0)
		return err_set(err, -EOPNOTSUPP,
			       "the kernel does not measure programs: the slowdown is not known");
	g->time_ns = now;
	g->cpu_ns = traced_cpu_ns(t);
	read_programs(t->kernel, g);
	/* 0, or less than before: it is not known, as that of a process that has ended. */
	if (!before.time_ns || !g->cpu_ns || g->cpu_ns < before.cpu_ns)
		return 0;
	int e = end_window(t, &before, &w);
	if (e < 0)
		return err_set(err, e, "the cost of a probe cannot be measured: %s", strerror(-e));
	w.trap_ns = g->trap_ns;
	struct guard_decision d = guard_decide(&w, max);
	ret->slowdown = d.slowdown;
	ret->of_machine = hits_others(t);
	ret->hits_per_s = (double)w.n_hits * 1e9 / (double)w.wall_ns;
	ret->acted = d.action != GUARD_GO_ON;
	ret->detached = d.action == GUARD_DETACH;
	ret->sample = d.sample;
	act(t, &d);
	return 0;
}
