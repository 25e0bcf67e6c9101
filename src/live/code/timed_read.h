/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads of a process's memory that may never end
 *
 * For a missing page, the kernel asks the handler of page faults: for a mapping under
 * userfaultfd(2) and for a file of a FUSE file system the handler is a program, which may not
 * answer. process_vm_readv(2) then waits, and only SIGKILL ends it: no signal that a thread
 * survives. So reads run in a thread of their own, and when one read takes too long, the caller
 * stops waiting for that thread:
 *
 *	struct timed_read s = {.pid = pid};
 *	rc = timed_read_run(&s, read_all, ctx, &err);   // -ETIMEDOUT: ctx is lost
 *	// with a new ctx; the stalled ranges are in @s, and fail at once
 *	if (rc == -ETIMEDOUT && timed_read_may_retry(&s))
 *	        rc = timed_read_run(&s, read_all, again, &err);
 *
 * The abandoned thread never goes on: it uses nothing that @ctx leads to, but its read may still
 * fill a buffer. So that buffer must not be freed. This is the cost of a hostile process: memory,
 * and a limited time.
 */
#ifndef CODE_TIMED_READ_H
#define CODE_TIMED_READ_H

#include <cairn/err.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum {
	/* times that are waited for: a large read, the page in it that it was, and so twice more */
	STALL_MAX = 6,
	STALL_MS = 2000, /* a page from a disk that is busy takes a tenth of it */
};

struct watched;

struct timed_read {
	int pid;
	struct timed_read_range {
		uint64_t lo, hi;
	} ranges[STALL_MAX];
	size_t n;
	bool is_left;           /* the data of its work is lost */
	struct watched *worker; /* from timed_read_begin() to timed_read_end() */
};

/*
 * timed_read_begin - have the thread ready, for a caller that runs several pieces of work and
 * cannot wait for a thread in between
 *
 * Returns 0, also where no thread can be had; -ENOMEM. timed_read_end() in both cases, before @s is
 * copied.
 */
int timed_read_begin(struct timed_read *s, struct cairn_err *err);
void timed_read_end(struct timed_read *s);

/*
 * timed_read_run - run @work in a thread, as long as its reads end
 *
 * @s  the known stalls; new ones are added
 * Returns the result of @work; -ETIMEDOUT when a read in it took longer than STALL_MS (err: the
 * address), or when one did before. Cost: a thread, without timed_read_begin(). Signals are not
 * delivered to it. If no thread can be created, @work runs here, without a limit.
 */
int timed_read_run(struct timed_read *s, int (*work)(void *ctx, struct cairn_err *err), void *ctx,
		   struct cairn_err *err);

/*
 * timed_read_lend - while there is nothing to read, @work runs in the thread and the caller goes on
 *
 * @work   reads nothing of the process's memory, and ends when the caller requests it
 * Returns whether it runs: not without timed_read_begin(), nor where no thread can be had. Then
 * timed_read_take_back(), which waits for its end, comes before all else.
 */
bool timed_read_lend(struct timed_read *s, int (*work)(void *ctx, struct cairn_err *err),
		     void *ctx);
void timed_read_take_back(struct timed_read *s);

/* 0; -ETIMEDOUT when the data of its work is lost. */
int timed_read_check(const struct timed_read *s, struct cairn_err *err);

/* Whether another attempt is due; @s then counts for it. */
bool timed_read_may_retry(struct timed_read *s);

/*
 * "a page at 0x7f... is left out: ..."; "" when nothing stalled. @text has CAIRN_ERR_MSG_MAX bytes.
 */
void timed_read_note(const struct timed_read *s, char *text);

/*
 * timed_read_read - up to @n bytes from @at of a process's memory, in timed_read_run() with its
 * limit, else without one
 *
 * Returns how many there were from @at on, less when a page is known to stall; -1 and errno when
 * there were none.
 */
ssize_t timed_read_read(int pid, uint64_t at, void *ret, size_t n);

/* All of several, or -1: at most IOV_MAX. */
ssize_t timed_read_read_all(int pid, const struct iovec *here, const struct iovec *there, size_t n);

#endif
