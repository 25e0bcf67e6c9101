/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A perf event that counts nothing has the records, each in the ring of the processor on which it
 * happened: an event that threads and children inherit is bound to one processor, since a ring has
 * one writer. A process that moves from one to another has records in two: so they carry the time,
 * and are sorted by it.
 *
 * Records, from perf_event_open(2); each ends with the 16 bytes of sample_id_all, here the time
 * and the processor:
 *
 *	PERF_RECORD_MMAP2  pid, tid, addr, len, pgoff, maj, min, ino, ino_generation, prot, flags,
 *	                   filename
 *	PERF_RECORD_COMM   pid, tid, comm; misc says that an exec set it
 *	PERF_RECORD_FORK   pid, ppid, tid, ptid, time; also of threads
 *	PERF_RECORD_EXIT   the same
 *	PERF_RECORD_LOST   id, number
 */
#include "perf/reports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <time.h>

enum { SAMPLE_ID_BYTES = 16 };

struct mmap2 {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, off;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char path[];
};

struct task_record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, n;
};

static int open_one(struct reports *r, const struct reports_opts *opts, int processor,
		    struct cairn_err *err)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = !opts->mappings_only,
		.comm_exec = !opts->mappings_only,
		.task = !opts->mappings_only,
		.inherit = opts->pid >= 0,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.wakeup_watermark = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = perf_open(&attr, opts->pid, processor);

	if (fd == -ENODEV)
		return 0;
	if (fd < 0)
		return err_set(err, fd, "perf_event_open(2), for the mappings of processes: %s",
			       strerror(-fd));
	return perf_rings_add(&r->rings, fd, opts->ring_bytes, err);
}

int reports_open(struct reports *r, const struct reports_opts *opts, struct cairn_err *err)
{
	int rc = 0;

	memset(&r->batch, 0, sizeof(r->batch));
	memset(&r->rings.list, 0, sizeof(r->rings.list));
	arena_init(&r->paths);
	r->n_lost = 0;
	for (int i = 0; i < perf_n_processors() && rc == 0; i++)
		rc = open_one(r, opts, i, err);
	return rc;
}

void reports_close(struct reports *r)
{
	perf_rings_fini(&r->rings);
	VEC_FREE(&r->batch);
	arena_fini(&r->paths);
}

static uint64_t time_of(const struct perf_event_header *h)
{
	uint64_t time;

	memcpy(&time, (const char *)h + h->size - SAMPLE_ID_BYTES, sizeof(time));
	return time;
}

static int add(struct reports *r, struct report report)
{
	return VEC_ADD(&r->batch, report) ? 0 : -ENOMEM;
}

/* As /proc/PID/maps has it: memory of no file has no path. */
static const char *path_of(const struct mmap2 *m)
{
	return strcmp(m->path, "//anon") == 0 ? "" : m->path;
}

static int add_mapping(struct reports *r, const struct perf_event_header *h)
{
	const struct mmap2 *m = (const struct mmap2 *)h;
	size_t room = h->size - SAMPLE_ID_BYTES;

	if (room <= sizeof(*m) || !memchr(m->path, 0, room - sizeof(*m)) || !m->len)
		return 0;
	char *path = arena_strdup(&r->paths, path_of(m));
	if (!path)
		return -ENOMEM;
	return add(r, (struct report){
			      .kind = REPORT_MAPPED,
			      .time_ns = time_of(h),
			      .pid = (int)m->pid,
			      .mapping = {.lo = m->addr,
					  .hi = m->addr + m->len,
					  .off = m->off,
					  .dev = makedev(m->major, m->minor),
					  .ino = m->inode,
					  .is_executable = true,
					  .is_readable = m->prot & PROT_READ,
					  .is_writable = m->prot & PROT_WRITE,
					  .is_shared = m->flags & MAP_SHARED,
					  .path = path},
		      });
}

static int add_task(struct reports *r, const struct perf_event_header *h, enum report_kind kind)
{
	const struct task_record *t = (const struct task_record *)h;

	/* A report of a process, and not of one of its threads. */
	if (h->size < sizeof(*t) + SAMPLE_ID_BYTES ||
	    (kind == REPORT_FORKED && t->pid == t->ppid) ||
	    (kind == REPORT_EXITED && t->pid != t->tid))
		return 0;
	return add(r, (struct report){.kind = kind,
				      .time_ns = time_of(h),
				      .pid = (int)t->pid,
				      .parent = (int)t->ppid});
}

static int add_comm(struct reports *r, const struct perf_event_header *h)
{
	const struct comm_record *c = (const struct comm_record *)h;

	if (!(h->misc & PERF_RECORD_MISC_COMM_EXEC) || h->size < sizeof(*c) + SAMPLE_ID_BYTES)
		return 0;
	return add(r, (struct report){
			      .kind = REPORT_EXECED, .time_ns = time_of(h), .pid = (int)c->pid});
}

static int on_record(void *ctx, const struct perf_event_header *h)
{
	struct reports *r = ctx;

	if (h->size < sizeof(*h) + SAMPLE_ID_BYTES)
		return 0;
	switch (h->type) {
	case PERF_RECORD_MMAP2:
		return add_mapping(r, h);
	case PERF_RECORD_FORK:
		return add_task(r, h, REPORT_FORKED);
	case PERF_RECORD_EXIT:
		return add_task(r, h, REPORT_EXITED);
	case PERF_RECORD_COMM:
		return add_comm(r, h);
	case PERF_RECORD_LOST:
		r->n_lost += ((const struct lost_record *)h)->n;
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct report *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

int reports_take(struct reports *r, struct cairn_err *err)
{
	r->batch.n = 0;
	arena_fini(&r->paths);
	arena_init(&r->paths);
	int rc = perf_rings_take(&r->rings, on_record, r);
	if (rc == -EBADMSG)
		r->n_lost++;
	if (rc == -ENOMEM)
		return err_nomem(err, "reports of processes");
	/* Stable where a time is the same: the records of one processor are in their order. */
	if (r->batch.n > 1)
		qsort(r->batch.p, r->batch.n, sizeof(*r->batch.p), by_time);
	return 0;
}
