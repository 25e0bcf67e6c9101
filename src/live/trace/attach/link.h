/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaching a BPF program to instructions of a file: the two ways the kernel has. */
#ifndef TRACE_LINK_H
#define TRACE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* BPF_TRACE_UPROBE_MULTI; the headers of the reference system are older than it. */
#define LINK_UPROBE_MULTI 48

/* BPF_TRACE_KPROBE_MULTI */
#define LINK_KPROBE_MULTI 42

/* BPF_TRACE_UPROBE_SESSION */
#define LINK_UPROBE_SESSION 57

/* Whether the kernel has uprobe_multi links. Cost: one failing bpf(2). */
bool link_multi_is_known(void);
/* The same of sessions. */
bool link_session_is_known(void);

/* A program that does nothing, for the links that the kernel has. A descriptor or a negative errno. */
int link_load_nothing(void);
/* The same for links of one attach type. */
int link_load_nothing_for(uint32_t attach_type);

/* When the program runs; but for the first, the instruction must be a function's first one. */
enum link_moment {
	LINK_AT_HIT,
	LINK_AT_RETURN,  /* when the function returns */
	LINK_IN_SESSION, /* at both: see returns.bpf.h; not by link_single() */
};

/* Instructions of a file: arrays of @n. */
struct link_places {
	/* in the file, in bytes; the same may occur several times, then each gives a hit */
	const uint64_t *offsets;
	/*
	 * in the file: counters of 2 bytes that the kernel increments while the link exists, in
	 * each process that it is for; 0: none. NULL: none has one
	 */
	const uint64_t *semaphores;
	const uint64_t *cookies; /* the program's value for each */
	uint32_t n;
	enum link_moment moment;
};

/*
 * link_multi - one link for instructions of a file
 *
 * @path  of the file; "/proc/self/fd/N" pins the one that was checked
 * @pid   only hits of this process; 0: of all
 * Returns a file descriptor that detaches when closed, or a negative errno.
 * Cost: about 3 microseconds per instruction and process that maps the file.
 */
int link_multi(int prog_fd, const char *path, const struct link_places *places, int pid);

/*
 * link_single - one instruction by a perf event
 *
 * @place      the first of its places is taken
 * @ret_event  the perf event: to be closed after the link
 * Returns the link's file descriptor or a negative errno: -ERANGE if the semaphore is beyond 4 GiB.
 */
int link_single(int prog_fd, const char *path, const struct link_places *place, int pid,
		int *ret_event);

/*
 * link_kernel - one instruction of the kernel by a kprobe, which is a perf event
 *
 * @type   of such events: cairn_kernel_kprobe_type()
 * @place  its one address, in @place->offsets
 * Returns the link's file descriptor, which holds the event, too, or a negative errno.
 * Cost: the kernel waits for all processors, here and when it is closed.
 */
int link_kernel(int prog_fd, int type, const struct link_places *place);

/* A pointer, as bpf(2) takes it. */
static inline uint64_t link_pointer(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* What the kernel tells of a link: @size bytes at most. Returns how many it filled, 0: none. */
size_t link_info(int link_fd, void *ret, size_t size);

/*
 * Hits of such a link that its program never saw, and returns that the kernel did not follow;
 * false: the kernel does not tell (Linux 6.7).
 */
bool link_kernel_missed(int link_fd, uint64_t *ret);

#endif
