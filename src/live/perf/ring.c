/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int perf_open(struct perf_event_attr *attr, int pid, int processor)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, pid, processor, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int perf_n_processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n < 1 ? 1 : (int)n;
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int perf_rings_add(struct perf_rings *r, int fd, size_t bytes, struct cairn_err *err)
{
	void *page = mmap(NULL, page_bytes() + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int e = errno;

	if (page != MAP_FAILED && VEC_ADD(&r->list, ((struct perf_ring){fd, page, bytes})))
		return 0;
	if (page != MAP_FAILED)
		munmap(page, page_bytes() + bytes);
	close(fd);
	return page == MAP_FAILED ? err_set(err, -e, "a ring of a perf event: %s", strerror(e))
				  : err_nomem(err, "rings of perf events");
}

static void copy_out(const struct perf_ring *ring, uint64_t at, void *ret, size_t n)
{
	const unsigned char *data = (const unsigned char *)ring->page + page_bytes();
	size_t from = at & (ring->bytes - 1),
	       first = ring->bytes - from < n ? ring->bytes - from : n;

	memcpy(ret, data + from, first);
	memcpy((unsigned char *)ret + first, data, n - first);
}

static int take(struct perf_rings *r, const struct perf_ring *ring,
		int (*fn)(void *ctx, const struct perf_event_header *h), void *ctx)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE),
		 at = ring->page->data_tail;
	int rc = 0;

	while (rc == 0 && at < head) {
		copy_out(ring, at, &r->record.header, sizeof(r->record.header));
		size_t n = r->record.header.size;
		if (n < sizeof(r->record.header) || n > head - at) {
			rc = -EBADMSG;
			at = head;
			break;
		}
		copy_out(ring, at, r->record.words, n);
		at += n;
		rc = fn(ctx, &r->record.header);
	}
	__atomic_store_n(&ring->page->data_tail, at, __ATOMIC_RELEASE);
	return rc;
}

int perf_rings_take(struct perf_rings *r, int (*fn)(void *ctx, const struct perf_event_header *h),
		    void *ctx)
{
	int rc = 0;

	for (size_t i = 0; i < r->list.n && rc == 0; i++)
		rc = take(r, &r->list.p[i], fn, ctx);
	return rc;
}

void perf_rings_fini(struct perf_rings *r)
{
	for (size_t i = 0; i < r->list.n; i++) {
		munmap(r->list.p[i].page, page_bytes() + r->list.p[i].bytes);
		close(r->list.p[i].fd);
	}
	VEC_FREE(&r->list);
}
