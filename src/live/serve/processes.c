/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

static struct process *find(const struct processes *ps, int pid)
{
	for (size_t i = 0; i < ps->all.n; i++)
		if (ps->all.p[i]->id.pid == pid)
			return ps->all.p[i];
	return NULL;
}

static void process_free(struct process *p)
{
	served_end(p->served);
	if (p->ended >= 0)
		close(p->ended);
	free(p);
}

void process_end(struct processes *ps, int pid)
{
	for (size_t i = 0; i < ps->all.n; i++) {
		if (ps->all.p[i]->id.pid != pid)
			continue;
		process_free(ps->all.p[i]);
		ps->all.p[i] = ps->all.p[--ps->all.n];
		return;
	}
}

void processes_fini(struct processes *ps)
{
	for (size_t i = 0; i < ps->all.n; i++)
		process_free(ps->all.p[i]);
	VEC_FREE(&ps->all);
}

/* The event of its end comes with its pid. */
static int watch(struct processes *ps, struct process *p, struct cairn_err *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = p->id.pid};
	p->ended = (int)syscall(SYS_pidfd_open, p->id.pid, 0);
	if (p->ended < 0 || epoll_ctl(ps->epoll, EPOLL_CTL_ADD, p->ended, &event))
		return err_set(err, -errno, "process %d: %s", p->id.pid, strerror(errno));
	return 0;
}

static int process_new(struct processes *ps, const struct target_id *id, struct process **ret,
		       struct cairn_err *err)
{
	struct process *p = calloc(1, sizeof(*p));
	if (!p)
		return err_nomem(err, "a process");
	*p = (struct process){.id = *id, .ended = -1};
	int rc = watch(ps, p, err);
	if (rc == 0 && !VEC_ADD(&ps->all, p))
		rc = err_nomem(err, "a process");
	if (rc < 0)
		process_free(p);
	else
		*ret = p;
	return rc;
}

/* fork copies the random bytes that make a program one, and an exec brings others. */
static bool is_same_program(const struct target_id *a, const struct target_id *b)
{
	return !memcmp(a->program, b->program, sizeof(a->program));
}

/*
 * Start times have ticks of 10 ms, in which a program may start and fork; pids ascend, but for one
 * time in millions.
 */
static bool is_older(const struct target_id *a, const struct target_id *b)
{
	return a->start != b->start ? a->start < b->start : a->pid < b->pid;
}

/*
 * The process whose registrations @p began with: the nearest ancestor that has some. One in between
 * may have ended, and its children have another parent then. So where the living ancestors of the
 * program have none, it is a process that is older than all of them. A sibling is not.
 */
static const struct process *find_forked(const struct processes *ps, const struct process *p)
{
	struct target_id top = p->id, above;

	while (target_identify(target_parent_of(top.pid), &above) &&
	       is_same_program(&above, &p->id)) {
		const struct process *parent = find(ps, above.pid);

		if (parent && parent->served && parent->id.start == above.start)
			return parent;
		top = above;
	}
	for (size_t i = 0; i < ps->all.n; i++) {
		const struct process *other = ps->all.p[i];

		if (other->served && is_same_program(&other->id, &p->id) &&
		    is_older(&other->id, &top))
			return other;
	}
	return NULL;
}

/* Copies the registrations that the parent had when it forked. */
static int inherit(struct processes *ps, struct process *p, struct cairn_err *err)
{
	const struct process *from = find_forked(ps, p);
	return from ? served_copy(from->served, target_forked_ns(&p->id), &p->id, &p->served, err)
		    : 0;
}

/* Checks if it is still the program that made the registry's registrations. */
static void settle(struct process *p, const struct target_id *now)
{
	if (is_same_program(&p->id, now))
		return;
	served_end(p->served);
	p->served = NULL;
	p->id = *now;
}

int process_get(struct processes *ps, int pid, struct process **ret, struct cairn_err *err)
{
	struct target_id now;
	if (!target_identify(pid, &now))
		return err_set(err, -ESRCH, "process %d has ended, or may not be read", pid);
	struct process *p = find(ps, pid);
	if (p && p->id.start != now.start) {
		process_end(ps, pid);
		p = NULL;
	}
	if (p) {
		settle(p, &now);
		*ret = p;
		return 0;
	}
	int rc = process_new(ps, &now, &p, err);
	if (rc == 0)
		rc = inherit(ps, p, err);
	*ret = p;
	return rc;
}
