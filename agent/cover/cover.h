/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library that `cairn run --cover-inlined` has loaded into a program
 *
 * It stands before the functions by which programs reach bpf(2) and perf_event_open(2), reports what
 * they load and attach, and calls the kernel as they would have.
 *
 *	calls.c    the functions that it stands before
 *	loads.c    programs that are loaded
 *	attach.c   programs that are attached and detached
 *	probes.c   the probes of this process
 *	wire.c     the socket, and the one thread that is in here
 *	system.h   system calls, and memory of the program
 *
 * A process without the variable in its environment, or whose supervisor has ended, is left alone.
 */
#ifndef AGENT_COVER_COVER_H
#define AGENT_COVER_COVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/shared/cover.h>

#include <linux/bpf.h>
#include <linux/perf_event.h>

/* ---- wire.c ---- */

/*
 * cover_enter - become the one thread in here, with a connection of this process
 *
 * False: there is no supervisor, or this thread is in already, which a signal handler finds.
 */
bool cover_enter(void);
void cover_leave(void);

/* Whether an earlier thread of this process has connected: without one, nothing is known of it. */
bool cover_is_connected(void);

/* The types of perf events, of the supervisor. */
uint32_t cover_kprobe_type(void);
uint32_t cover_uprobe_type(void);

/*
 * cover_ask - send a request, and wait for its answer
 *
 * @bytes  @n of them, after the request; its size is set here
 * Returns the answer's result: 0 or a negative errno; 0, too, when the supervisor has ended.
 */
int cover_ask(struct cairn_cover_request *request, const void *bytes, size_t n,
	      uint32_t *ret_value);

/* ---- probes.c ---- */

/* A perf event that is a probe, or a link; whichever is not there is -1. */
struct probe {
	int event, link;
	uint32_t kind; /* enum cairn_cover_probe; 0: this place is free */
	bool is_body;  /* false: the kernel has no such function, and the event is a dummy */
	uint64_t at;
	int pid;
	char *text;
	uint32_t handle; /* 0: no program is attached */
	uint64_t cookie;
};

/* NULL when there is no room. The text is copied. */
struct probe *probe_add(const struct probe *as);
/* The one whose event, or whose link, is @fd; NULL. */
struct probe *probe_of_event(int fd);
struct probe *probe_of_link(int fd);
/* Cheap, and by any thread: false if neither is. */
bool probe_may_have(int fd);
void probe_free(struct probe *p);
/* Those of a parent are the parent's: this process begins with none. */
void probes_forget(void);

/* ---- loads.c ---- */

/* bpf(BPF_PROG_LOAD) has returned @fd for the @size bytes at @attr. */
void loads_report(const void *attr, size_t size, int fd);
/* The number of a program; 0: it has none. */
uint32_t loads_number(int fd);

/* ---- attach.c ---- */

/* perf_event_open(2): its result. */
long attach_open(const void *attr, long pid, long cpu, long group, unsigned long flags);
/* bpf(BPF_LINK_CREATE) and bpf(BPF_RAW_TRACEPOINT_OPEN): their results. */
long attach_link(long command, const void *attr, size_t size);
/* ioctl(2) of a perf event: its result. */
long attach_ioctl(int fd, unsigned long request, unsigned long arg);
/* close(2) is about to close @fd. */
void attach_closing(int fd);

#endif
