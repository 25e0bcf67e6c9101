/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the ring buffer, and the counters. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "base/scope.h"
#include "trace/attach/family.h"
#include "trace/place/in_kernel.h"
#include "trace/attach/kernel.h"
#include "trace/stacks/stacks.h"
#include "trace/attach/traced.h"
#include "trace/read/times.h"
#include "trace.skel.h"

/*
 * How often the ring is looked at while it is not filled enough to wake us. A hit that wakes the
 * reader costs the traced program a microsecond; so it does not, and a person waits 10 ms at most
 * for a line.
 */
#define LOOK_EVERY_MS        10
/* Events that come as fast as they are read do not keep processes from being looked at, */
#define READ_FOR_NS          2000000u
/* nor a signal from being seen: where there are no stacks to take, the time is longer. */
#define READ_ALONE_FOR_NS    100000000u
#define EVENTS_BETWEEN_LOOKS 64

/* The stack of an event, from the end of its record. Returns 0 or -ENOMEM. */
static int add_stack(struct cairn_trace *t, const uint8_t *record, struct cairn_event *event)
{
	uint32_t n_record = t->probes.p[event->site->probe]->n_record;
	struct stack_hit hit = {.pid = (int)event->pid,
				.tid = (int)event->tid,
				.comm = event->comm,
				.time_ns = event->time_ns,
				.site = event->site};

	memcpy(&hit.ref, record + n_record - sizeof(hit.ref), sizeof(hit.ref));
	event->stack = stacks_show(t, &hit);
	if (!event->stack)
		return -ENOMEM;
	t->stacks->n_cut += stacks_is_cut(t->stacks, event->stack);
	return 0;
}

/* Hands out the event of a record. */
static int deliver(struct cairn_trace *t, const void *data, size_t size)
{
	struct trace_kernel *k = t->kernel;
	struct decode_space *s = k->space;

	if (!decode_record(t, data, size, s)) {
		k->n_broken++;
		return 0;
	}
	if (t->stacks && add_stack(t, data, &s->event) < 0)
		return -ENOMEM;
	if (times_note(t->times, &s->event) < 0)
		return -ENOMEM;
	/* The event of a call is its return. */
	if (!s->event.call || s->call.moment != CAIRN_CALL_ENTRY)
		t->probes.p[s->event.site->probe]->events++;
	k->n_delivered++;
	k->stop = k->on_event ? k->on_event(k->ctx, &s->event) : 0;
	/*
	 * libbpf goes on if the result is not negative, and this record counts as consumed either
	 * way.
	 */
	return k->stop ? -ECANCELED : 0;
}

/* Stacks are kept, and so are hits whose stack waits for a look at their process. */
static int take_with_stacks(struct cairn_trace *t, void *data, size_t size)
{
	const struct trace_record *rec = data;
	bool is_stack = stacks_is_stack(data, size);
	int e = 0;

	if (is_stack && !t->aggregates)
		return stacks_take(t, data, size, false);
	if (size >= sizeof(struct trace_stack))
		e = is_stack ? stacks_make_wait(t->stacks, data, size,
						(int)((struct trace_stack *)data)->pid,
						((struct trace_stack *)data)->time_ns)
			     : stacks_make_wait(t->stacks, data, size, (int)rec->pid, rec->time_ns);
	if (e)
		return e < 0 ? e : 0;
	return is_stack ? stacks_take(t, data, size, true) : deliver(t, data, size);
}

/* Whether records were read for long enough: those who make them may be faster than this. */
static bool is_time(const struct cairn_trace *t)
{
	const struct trace_kernel *k = t->kernel;

	if (t->stacks)
		return trace_now_ns() - k->began_ns > READ_FOR_NS;
	return k->n_delivered % EVENTS_BETWEEN_LOOKS == 0 &&
	       trace_now_ns() - k->began_ns > READ_ALONE_FOR_NS;
}

/* -EAGAIN: the record was taken, and it is time to look at processes, or at signals. */
static int on_record(void *ctx, void *data, size_t size)
{
	struct cairn_trace *t = ctx;
	int e = t->stacks ? take_with_stacks(t, data, size) : deliver(t, data, size);

	return e == 0 && is_time(t) ? -EAGAIN : e;
}

/* Records that have waited long enough; @all: each. */
static int deliver_waiting(struct cairn_trace *t, bool all)
{
	size_t size;
	int e = 0;

	while (t->stacks && !e) {
		SCOPE_FREE void *record = stacks_next_waiting(t->stacks, all, &size);
		if (!record)
			break;
		e = stacks_is_stack(record, size) ? stacks_take(t, record, size, true)
						  : deliver(t, record, size);
	}
	return e;
}

static int open_ring(struct cairn_trace *t, struct cairn_err *err)
{
	struct trace_kernel *k = t->kernel;

	if (k->ring)
		return 0;
	if (!k->space && !(k->space = calloc(1, sizeof(*k->space))))
		return err_nomem(err, "events");
	k->ring = ring_buffer__new(bpf_map__fd(k->bpf->maps.ring), on_record, t, NULL);
	return k->ring ? 0 : err_set(err, -errno, "mapping the ring buffer: %s", strerror(errno));
}

/*
 * One look into the ring. 1 when events were handed out or the callback requested a stop; -EAGAIN
 * when there may be more.
 */
static int consume(struct cairn_trace *t, bool all)
{
	struct trace_kernel *k = t->kernel;
	int e = deliver_waiting(t, all);

	k->began_ns = trace_now_ns();
	if (e == 0)
		e = ring_buffer__consume(k->ring);
	if (e >= 0 && all)
		e = deliver_waiting(t, all);
	if (k->stop || k->n_delivered || e == -ECANCELED)
		return 1;
	return e < 0 ? e : 0;
}

/* The same, between looks at the processes whose stacks are taken. */
static int look_and_consume(struct cairn_trace *t, bool all, struct cairn_err *err)
{
	int e;

	do {
		e = stacks_update(t, err);
		e = e < 0 ? e : consume(t, all);
		if (stacks_look(t, err) < 0)
			return -ENOMEM;
	} while (e == -EAGAIN && all);
	return e == -EAGAIN ? 0 : e;
}

int cairn_trace_poll(struct cairn_trace *t, int timeout_ms,
		     int (*on_event)(void *ctx, const struct cairn_event *event), void *ctx,
		     struct cairn_err *err)
{
	struct trace_kernel *k = t->kernel;
	uint64_t end = trace_now_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000u;

	if (!k)
		return err_set(err, -EINVAL, "not attached");
	if (t->aggregates && !t->stacks)
		return err_set(err, -EINVAL, "hits that are summed up make no events");
	int e = open_ring(t, err);
	if (e < 0)
		return e;
	k->on_event = on_event;
	k->ctx = ctx;
	k->stop = 0;
	k->n_delivered = 0;
	while ((e = look_and_consume(t, !k->links.fds.n, err)) == 0) {
		uint64_t now = trace_now_ns();
		if (now >= end)
			return 0;
		uint64_t left_ms = (end - now + 999999) / 1000000u;
		struct pollfd ready = {.fd = ring_buffer__epoll_fd(k->ring), .events = POLLIN};
		int wait_ms = left_ms < LOOK_EVERY_MS ? (int)left_ms : LOOK_EVERY_MS;
		if (poll(&ready, 1, wait_ms) < 0 && errno == EINTR)
			return -EINTR;
	}
	if (e < 0)
		return err_set(err, e, "reading the ring buffer: %s", strerror(-e));
	return k->stop ? k->stop : k->n_delivered;
}

bool cairn_trace_target_gone(struct cairn_trace *t)
{
	if (!t->n_traced)
		return false;
	child_reap(&t->child);
	if (!traced_are_gone(t, family_forget))
		return false;
	return !t->kernel || !t->opts.follow_children || t->kernel->exit_link < 0 ||
	       __atomic_load_n(&t->kernel->bpf->bss->n_children_alive, __ATOMIC_RELAXED) == 0;
}

static int add_counts(struct cairn_trace *t, struct cairn_trace_stats *s,
		      struct cairn_trace_counts *counts)
{
	for (uint32_t i = 0; i < t->probes.n; i++) {
		struct cairn_trace_counts c = {.events = t->probes.p[i]->events};
		int e = t->kernel ? kernel_counts(t->kernel, i, &c) : 0;
		if (e < 0)
			return e;
		s->total.events += c.events;
		s->total.lost += c.lost;
		s->total.filtered += c.filtered;
		s->total.undecided += c.undecided;
		s->total.failed += c.failed;
		s->total.unwound += c.unwound;
		s->total.unfinished += c.unfinished;
		s->total.too_deep += c.too_deep;
		s->total.apart += c.apart;
		s->total.undrawn += c.undrawn;
		s->total.entries_lost += c.entries_lost;
		if (counts)
			counts[i] = c;
	}
	return 0;
}

static void kernel_stats(const struct cairn_trace *t, struct cairn_trace_stats *s)
{
	const struct trace_kernel *k = t->kernel;
	const struct links_missed missed = links_missed(&k->links);

	s->n_attached = k->links.n_attached;
	s->n_links = k->links.n;
	s->missed = kernel_missed(k) + k->n_broken + missed.hits;
	s->returns_missed = missed.returns;
	s->missed_unknown = missed.is_unknown;
	s->backend = k->links.has_sessions ? CAIRN_BACKEND_UPROBE_SESSION : k->links.backend;
	s->n_unloaded = in_kernel_unloaded(t);
	s->sleepable = k->sleepable;
	s->children_known = k->has_children;
	if (t->stacks) {
		s->n_stacks = t->stacks->n_different;
		s->n_stacks_lost = k->bpf->bss->n_stacks_lost + t->stacks->n_forgotten;
		s->n_stacks_cut = t->stacks->n_cut;
		s->missed += t->stacks->n_broken;
	}
	s->n_children = k->bpf->bss->n_children + k->n_running;
	s->n_running = k->n_running;
	s->children_followed =
		t->opts.follow_children && k->has_children && !k->bpf->bss->n_family_full;
}

int cairn_trace_stats(struct cairn_trace *t, struct cairn_trace_stats *ret,
		      struct cairn_trace_counts *counts, struct cairn_err *err)
{
	struct cairn_trace_stats s = {.size = ret->size,
				      .n_sites = (uint32_t)t->sites.n,
				      .n_programs = (uint32_t)t->programs.n,
				      .sample = t->sample ? t->sample : 1,
				      .sampled_since_ns = t->sampled_since_ns,
				      .given_up_ns = t->given_up_ns,
				      .load_ns = t->load_ns,
				      .attach_ns = t->attach_ns,
				      .detach_ns = t->detach_ns};

	if (ret->size < sizeof(ret->size))
		return err_set(err, -EINVAL, "the size of the statistics is not set");
	for (size_t i = 0; i < t->probes.n; i++) {
		s.n_refused += t->probes.p[i]->pub.n_refused;
		s.follows |= t->probes.p[i]->returns != NULL;
	}
	if (t->kernel)
		kernel_stats(t, &s);
	int e = add_counts(t, &s, counts);
	if (e < 0)
		return err_set(err, e, "reading the counters: %s", strerror(-e));
	size_t given = ret->size;
	memcpy(ret, &s, given < sizeof(s) ? given : sizeof(s));
	return 0;
}
