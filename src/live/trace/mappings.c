/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings as they happen
 *
 * Polling /proc/PID/maps misses a command that ends soon, and a library that is loaded and closed
 * between two polls; so it cannot tell "not called" from "not there". The kernel can: a perf event
 * that counts nothing records each executable mapping (PERF_RECORD_MMAP2). An event that threads
 * and children inherit is bound to one processor, since a ring has one writer, so there is one for
 * each.
 *
 * A record, from perf_event_open(2), "PERF_RECORD_MMAP2":
 *
 *	OFFSET SIZE  MEANING
 *	0      4     type, 10
 *	4      2     misc
 *	6      2     size
 *	8      4     process
 *	12     4     thread
 *	16     24    address, length, offset in the file
 *	40     8     device: major, minor
 *	48     8     inode
 *	56     8     generation of the inode
 *	64     8     protection, flags
 *	72           path, with its NUL
 */
#include "trace/mappings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "base/vec.h"

/*
 * A program maps some tens of files as code, each in a record of 100 bytes and more. A power of
 * two.
 */
#define RING_BYTES (32 * 1024)

struct mmap2 {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, off;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char path[];
};

struct ring {
	int fd;
	struct perf_event_mmap_page *page; /* and the records after it */
};

struct mappings {
	VEC(struct ring) rings;
	size_t page_bytes;
	bool any, lost;
	/* A record in one piece: it may run over the ring's end. The kernel's size has 16 bits. */
	union {
		struct mmap2 mmap;
		struct perf_event_header header;
		unsigned char bytes[UINT16_MAX + 1];
	} record;
};

static int open_event(int pid, int processor)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	return (int)syscall(SYS_perf_event_open, &attr, pid, processor, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Returns false when @fd cannot be used, which is then closed. */
static bool add_ring(struct mappings *m, int fd)
{
	void *page =
		mmap(NULL, m->page_bytes + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED && VEC_ADD(&m->rings, ((struct ring){fd, page})))
		return true;
	if (page != MAP_FAILED)
		munmap(page, m->page_bytes + RING_BYTES);
	close(fd);
	return false;
}

struct mappings *mappings_open(int pid)
{
	struct mappings *m = calloc(1, sizeof(*m));
	long n = sysconf(_SC_NPROCESSORS_CONF);
	bool is_open = m != NULL;

	if (m)
		m->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	for (int i = 0; i < n && is_open; i++) {
		int fd = open_event(pid, i);
		/* A processor that is switched off runs nothing. */
		is_open = fd >= 0 ? add_ring(m, fd) : errno == ENODEV;
	}
	if (is_open && m->rings.n)
		return m;
	mappings_close(m);
	return NULL;
}

static void copy_out(const struct mappings *m, const struct ring *ring, uint64_t at, void *ret,
		     size_t n)
{
	const unsigned char *data = (const unsigned char *)ring->page + m->page_bytes;
	size_t from = at & (RING_BYTES - 1), first = RING_BYTES - from < n ? RING_BYTES - from : n;

	memcpy(ret, data + from, first);
	memcpy((unsigned char *)ret + first, data, n - first);
}

static bool is_mapping(const struct mappings *m)
{
	const struct perf_event_header *h = &m->record.header;

	return h->type == PERF_RECORD_MMAP2 && h->size > sizeof(struct mmap2) &&
	       m->record.mmap.inode &&
	       memchr(m->record.mmap.path, 0, h->size - sizeof(struct mmap2));
}

void mappings_take(struct mappings *m, void (*on_mapping)(void *ctx, const struct mapping *mapping),
		   void *ctx)
{
	for (size_t i = 0; i < m->rings.n; i++) {
		struct ring *ring = &m->rings.p[i];
		uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE),
			 at = ring->page->data_tail;

		while (at < head) {
			const struct mmap2 *r = &m->record.mmap;
			copy_out(m, ring, at, &m->record.header, sizeof(m->record.header));
			if (m->record.header.size < sizeof(m->record.header)) {
				m->lost = true;
				break;
			}
			copy_out(m, ring, at, m->record.bytes, m->record.header.size);
			at += m->record.header.size;
			m->lost |= m->record.header.type == PERF_RECORD_LOST;
			if (!is_mapping(m))
				continue;
			m->any = true;
			on_mapping(ctx, &(struct mapping){(int)r->pid, makedev(r->major, r->minor),
							  r->inode, r->path});
		}
		__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
	}
}

bool mappings_are_whole(const struct mappings *m)
{
	return m->any && !m->lost;
}

void mappings_close(struct mappings *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->rings.n; i++) {
		munmap(m->rings.p[i].page, m->page_bytes + RING_BYTES);
		close(m->rings.p[i].fd);
	}
	VEC_FREE(&m->rings);
	free(m);
}
