/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attaching, as programs do it
 *
 *	event = perf_event_open(kprobe at FUNC)
 *	link = bpf(BPF_LINK_CREATE, program, event)	or ioctl(event, PERF_EVENT_IOC_SET_BPF, program)
 *	close(link)					or close(event)
 *
 * When calls would not be seen the supervisor refuses, and then the program is not attached at all:
 * the link that the kernel made is closed again. An event keeps its program until it is closed, so
 * of events the supervisor is asked before. If the kernel has no function of that name, and the supervisor
 * knows sites of it, the program gets an event that never fires, and the attaching succeeds.
 */
#include "cover.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	TEXT_MAX = 4096,
	PAGE = 4096,
	UPROBE_MULTI = 48, /* attach types that Debian 12's header does not have */
	KPROBE_MULTI = 42,
	RETURN_BIT = 1, /* of config, and of a multi link's flags */
};

/* ---- memory of the program ---- */

/* A string that need not be there whole; false: it is not, or it is too long. */
static bool read_text(uint64_t at, char *ret)
{
	size_t n = 0;

	while (at && n < TEXT_MAX) {
		size_t step = PAGE - (size_t)((at + n) % PAGE);
		step = step < TEXT_MAX - n ? step : TEXT_MAX - n;
		if (system_read_memory((const void *)(uintptr_t)(at + n), ret + n, step) !=
		    (long)step)
			return false;
		if (memchr(ret + n, 0, step))
			return true;
		n += step;
	}
	return false;
}

static bool read_number(uint64_t at, uint64_t *ret)
{
	return at &&
	       system_read_memory((const void *)(uintptr_t)at, ret, sizeof(*ret)) == sizeof(*ret);
}

/* From the root, whatever the program's working directory is later. */
static bool read_path(uint64_t at, char *ret)
{
	char text[TEXT_MAX], here[TEXT_MAX];

	if (!read_text(at, text))
		return false;
	if (*text == '/') {
		strcpy(ret, text);
		return true;
	}
	return getcwd(here, sizeof(here)) &&
	       snprintf(ret, TEXT_MAX, "%s/%s", here, text) < TEXT_MAX;
}

/* ---- asking ---- */

static void detach(struct probe *p)
{
	struct cairn_cover_request request = {.kind = CAIRN_COVER_DETACH, .handle = p->handle};
	uint32_t nothing;

	if (p->handle)
		cover_ask(&request, NULL, 0, &nothing);
	p->handle = 0;
}

static int attach(struct probe *p, uint32_t program, uint64_t cookie)
{
	struct cairn_cover_request request = {.kind = CAIRN_COVER_ATTACH,
					      .program = program,
					      .probe = p->kind,
					      .attached = p->is_body,
					      .pid = p->pid,
					      .cookie = cookie,
					      .at = p->at};
	int r = cover_ask(&request, p->text, p->text ? strlen(p->text) : 0, &p->handle);

	if (!r && !p->handle && !p->is_body)
		return -ENOENT;
	return r;
}

static void let_go(struct probe *p)
{
	detach(p);
	probe_free(p);
}

/* The kernel gave a number again: that it was closed was not seen. */
static void forget_number(long fd)
{
	struct probe *p = probe_of_event((int)fd);

	if (p)
		let_go(p);
	p = probe_of_link((int)fd);
	if (p)
		let_go(p);
}

/* ---- perf events ---- */

static bool read_event(const void *at, struct perf_event_attr *ret)
{
	uint32_t size = 0;

	*ret = (struct perf_event_attr){0};
	if (system_read_memory((const char *)at + offsetof(struct perf_event_attr, size), &size,
			       sizeof(size)) != sizeof(size))
		return false;
	size_t n = size < sizeof(*ret) ? size : sizeof(*ret);
	n = n ? n : PERF_ATTR_SIZE_VER0;
	return system_read_memory(at, ret, n) == (long)n;
}

/* @text: TEXT_MAX bytes. False: it is no probe. */
static bool describe_event(const struct perf_event_attr *e, long pid, struct probe *ret, char *text)
{
	bool is_return = e->config & RETURN_BIT;

	*ret = (struct probe){.event = -1, .link = -1, .is_body = true, .at = e->config2};
	if (e->type == PERF_TYPE_TRACEPOINT) {
		ret->kind = CAIRN_COVER_TRACEPOINT;
		return true;
	}
	if (e->type == cover_kprobe_type()) {
		ret->kind = is_return ? CAIRN_COVER_KPROBE_RETURN : CAIRN_COVER_KPROBE;
		ret->text = read_text(e->config1, text) ? text : NULL;
		return true;
	}
	ret->kind = is_return ? CAIRN_COVER_UPROBE_RETURN : CAIRN_COVER_UPROBE;
	ret->text = text;
	ret->pid = pid ? (int)pid : (int)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
	return e->type == cover_uprobe_type() && read_path(e->config1, text);
}

static bool may_be_inlined(const struct probe *p, long error)
{
	return p->kind == CAIRN_COVER_KPROBE && p->text && !p->at &&
	       (error == -ENOENT || error == -EADDRNOTAVAIL);
}

/* An event that never fires. */
static long open_dummy(const struct probe *p, const struct perf_event_attr *e, const long args[4])
{
	struct cairn_cover_request request = {.kind = CAIRN_COVER_FIND};
	struct perf_event_attr dummy = {.type = PERF_TYPE_SOFTWARE,
					.size = sizeof(dummy),
					.config = PERF_COUNT_SW_DUMMY,
					.disabled = e->disabled};
	uint32_t nothing;

	if (cover_ask(&request, p->text, strlen(p->text), &nothing) < 0)
		return -ENOENT;
	return system_call(SYS_perf_event_open, (long)&dummy, args[0], args[1], args[2], args[3],
			   0);
}

static long note_event(const struct perf_event_attr *e, long fd, const long args[4])
{
	char text[TEXT_MAX];
	struct probe p;

	if (!describe_event(e, args[0], &p, text))
		return fd;
	if (may_be_inlined(&p, fd)) {
		long dummy = open_dummy(&p, e, args);
		p.is_body = false;
		fd = dummy < 0 ? fd : dummy;
	}
	if (fd < 0)
		return fd;
	forget_number(fd);
	p.event = (int)fd;
	probe_add(&p);
	return fd;
}

long attach_open(const void *attr, long pid, long cpu, long group, unsigned long flags)
{
	const long args[4] = {pid, cpu, group, (long)flags};
	long fd = system_call(SYS_perf_event_open, (long)attr, pid, cpu, group, (long)flags, 0);
	struct perf_event_attr e;

	/* Those of a processor's own counters and of software cannot have such programs. */
	if (!read_event(attr, &e) || (e.type < PERF_TYPE_MAX && e.type != PERF_TYPE_TRACEPOINT))
		return fd;
	if (!cover_enter())
		return fd;
	fd = note_event(&e, fd, args);
	cover_leave();
	return fd;
}

/* ---- links ---- */

static long make_link(const struct probe *p, const void *attr, size_t size)
{
	if (p->is_body)
		return system_bpf(BPF_LINK_CREATE, attr, size);
	return system_call(SYS_fcntl, p->event, F_DUPFD_CLOEXEC, 0, 0, 0, 0);
}

/* The new link stays, or is closed again: the supervisor's error. */
static long keep_link(struct probe *p, long fd, int program, uint64_t cookie)
{
	int r = attach(p, loads_number(program), cookie);

	if (r >= 0)
		return fd;
	system_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return r;
}

static long link_event(const union bpf_attr *a, const void *attr, size_t size)
{
	struct probe *p = probe_of_event((int)a->link_create.target_fd);

	if (!p)
		return system_bpf(BPF_LINK_CREATE, attr, size);
	long fd = make_link(p, attr, size);
	if (fd < 0)
		return fd;
	forget_number(fd);
	fd = keep_link(p, fd, (int)a->link_create.prog_fd, a->link_create.perf_event.bpf_cookie);
	p->link = fd < 0 ? -1 : (int)fd;
	return fd;
}

/* The part of union bpf_attr that a link for several functions takes. */
struct multi {
	uint64_t places[2]; /* uprobes: path, offsets; kprobes: flags and number, names */
	uint64_t third, cookies;
	uint32_t n, flags;
	int32_t pid;
};

/* One function, as an event of its own would have it. */
static void describe_uprobe(const struct multi *m, struct probe *ret, char *text)
{
	bool is_one =
		m->n == 1 && read_path(m->places[0], text) && read_number(m->places[1], &ret->at);

	ret->kind = CAIRN_COVER_SEVERAL;
	if (!is_one)
		return;
	ret->kind = m->flags & RETURN_BIT ? CAIRN_COVER_UPROBE_RETURN : CAIRN_COVER_UPROBE;
	ret->text = text;
	ret->pid = m->pid;
	read_number(m->cookies, &ret->cookie);
}

static void describe_kprobe(const union bpf_attr *a, struct probe *ret, char *text)
{
	uint64_t name = 0;
	bool is_one = a->link_create.kprobe_multi.cnt == 1 &&
		      (read_number(a->link_create.kprobe_multi.syms, &name)
			       ? read_text(name, text)
			       : read_number(a->link_create.kprobe_multi.addrs, &ret->at));

	ret->kind = CAIRN_COVER_SEVERAL;
	if (!is_one)
		return;
	ret->kind = a->link_create.kprobe_multi.flags & RETURN_BIT ? CAIRN_COVER_KPROBE_RETURN
								   : CAIRN_COVER_KPROBE;
	ret->text = name ? text : NULL;
	read_number(a->link_create.kprobe_multi.cookies, &ret->cookie);
}

/* False: it is of no function. */
static bool describe_link(long command, const union bpf_attr *a, struct probe *ret, char *text)
{
	struct multi m;

	*ret = (struct probe){.event = -1, .link = -1, .is_body = true};
	memcpy(&m, (const char *)a + 16, sizeof(m));
	if (command == BPF_RAW_TRACEPOINT_OPEN) {
		ret->kind = CAIRN_COVER_FENTRY;
		return !a->raw_tracepoint.name;
	}
	switch (a->link_create.attach_type) {
	case UPROBE_MULTI:
		describe_uprobe(&m, ret, text);
		return true;
	case KPROBE_MULTI:
		describe_kprobe(a, ret, text);
		return true;
	case BPF_TRACE_FENTRY:
	case BPF_TRACE_FEXIT:
	case BPF_MODIFY_RETURN:
		ret->kind = CAIRN_COVER_FENTRY;
		ret->cookie = a->link_create.tracing.cookie;
		return true;
	}
	return false;
}

static int program_of(long command, const union bpf_attr *a)
{
	return (int)(command == BPF_RAW_TRACEPOINT_OPEN ? a->raw_tracepoint.prog_fd
							: a->link_create.prog_fd);
}

static long link_itself(long command, const union bpf_attr *a, const void *attr, size_t size)
{
	char text[TEXT_MAX];
	struct probe p;

	if (!describe_link(command, a, &p, text))
		return system_bpf(command, attr, size);
	long fd = system_bpf(command, attr, size);
	if (fd < 0)
		return fd;
	forget_number(fd);
	fd = keep_link(&p, fd, program_of(command, a), p.cookie);
	p.link = (int)fd;
	if (fd >= 0 && !probe_add(&p))
		detach(&p);
	return fd;
}

long attach_link(long command, const void *attr, size_t size)
{
	union bpf_attr a = {0};
	size_t n = size < sizeof(a) ? size : sizeof(a);
	long fd;

	if (system_read_memory(attr, &a, n) != (long)n || !cover_enter())
		return system_bpf(command, attr, size);
	if (command == BPF_LINK_CREATE && a.link_create.attach_type == BPF_PERF_EVENT)
		fd = link_event(&a, attr, size);
	else
		fd = link_itself(command, &a, attr, size);
	cover_leave();
	return fd;
}

/* ---- ioctl(2) and close(2) ---- */

static long set_program(struct probe *p, int fd, unsigned long request, unsigned long arg)
{
	int r = attach(p, loads_number((int)arg), 0);

	if (r < 0 || !p->is_body)
		return r;
	long done = system_call(SYS_ioctl, fd, (long)request, (long)arg, 0, 0, 0);
	if (done < 0)
		detach(p);
	return done;
}

/*
 * Enabling and disabling the event changes nothing: the kernel runs the programs of a probe as long
 * as its event is open.
 */
long attach_ioctl(int fd, unsigned long request, unsigned long arg)
{
	struct probe *p;

	/* A C library may hand over an int, whatever is above it. */
	request = (uint32_t)request;
	if (request != PERF_EVENT_IOC_SET_BPF || !probe_may_have(fd) || !cover_is_connected() ||
	    !cover_enter())
		return system_call(SYS_ioctl, fd, (long)request, (long)arg, 0, 0, 0);
	p = probe_of_event(fd);
	long r = p ? set_program(p, fd, request, arg)
		   : system_call(SYS_ioctl, fd, (long)request, (long)arg, 0, 0, 0);
	cover_leave();
	return r;
}

void attach_closing(int fd)
{
	if (!cover_is_connected() || !cover_enter())
		return;
	struct probe *p = probe_of_link(fd);
	if (p) {
		detach(p);
		p->link = -1;
		if (p->event < 0)
			probe_free(p);
	}
	p = probe_of_event(fd);
	if (p && p->link < 0)
		let_go(p);
	else if (p)
		p->event = -1;
	cover_leave();
}
