/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The waiting and the reading thread
 *
 * They share one word, the state: twice the number of reads so far, and one more while there is a
 * read.
 *
 *	reader  2n -> 2n + 1, reads, 2n + 1 -> 2n + 2; when that fails, it was left, and stops for
 *	        ever
 *	waiter  sees 2n + 1 for STALL_MS: 2n + 1 -> LEFT; when that fails, the read has ended
 *	        meanwhile
 *
 * Only one of the two can succeed. A read costs two such steps more, some nanoseconds.
 *
 * A failed read of many pages does not show which page it was. So a retry reads page by page, and
 * the page that stalls then is not read any more.
 */
#include "code/timed_read.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"

enum { TICK_MS = 50, PAGE_BYTES = 4096 };

static const uint64_t LEFT = UINT64_MAX;

struct watched {
	struct timed_read known;
	uint64_t state;
	struct timed_read_range now; /* the current read */
	int (*work)(void *ctx, struct cairn_err *err);
	void *ctx;
	int rc;
	struct cairn_err err;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t todo, done;
	bool has_work, is_done, is_ended;
};

/* The state of the thread that runs @work. */
static __thread struct watched *watched;

/* ---- reading ---- */

static void begin(struct watched *w, uint64_t lo, uint64_t hi)
{
	w->now = (struct timed_read_range){lo, hi};
	__atomic_store_n(&w->state, __atomic_load_n(&w->state, __ATOMIC_RELAXED) + 1,
			 __ATOMIC_RELEASE);
}

static void end(struct watched *w)
{
	uint64_t now = __atomic_load_n(&w->state, __ATOMIC_RELAXED);
	if (now != LEFT && __atomic_compare_exchange_n(&w->state, &now, now + 1, false,
						       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return;
	for (;;)
		pause();
}

static ssize_t read_now(int pid, uint64_t at, void *ret, size_t n)
{
	struct iovec here = {ret, n}, there = {(void *)(uintptr_t)at, n};
	if (watched)
		begin(watched, at, at + n);
	ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
	int saved = errno;
	if (watched)
		end(watched);
	errno = saved;
	return got;
}

/*
 * The smallest known stall in [@lo, @hi): a page, or a read with such a page in it. NULL: none.
 */
static const struct timed_read_range *known_in(uint64_t lo, uint64_t hi)
{
	const struct timed_read_range *found = NULL;
	for (size_t i = 0; watched && i < watched->known.n; i++) {
		const struct timed_read_range *r = &watched->known.ranges[i];
		if (lo < r->hi && hi > r->lo && (!found || r->hi - r->lo < found->hi - found->lo))
			found = r;
	}
	return found;
}

static bool is_page(const struct timed_read_range *r)
{
	return r->lo / PAGE_BYTES == (r->hi - 1) / PAGE_BYTES;
}

/* Page by page up to the one that stalled. */
static ssize_t read_pages(int pid, uint64_t at, uint8_t *ret, size_t n)
{
	size_t done = 0;
	while (done < n) {
		uint64_t lo = at + done, page = lo & ~(uint64_t)(PAGE_BYTES - 1);
		size_t part = page + PAGE_BYTES - lo < n - done ? page + PAGE_BYTES - lo : n - done;
		const struct timed_read_range *known = known_in(page, page + PAGE_BYTES);
		if (known && is_page(known))
			break;
		ssize_t got = read_now(pid, lo, ret + done, part);
		done += got > 0 ? (size_t)got : 0;
		if (got < (ssize_t)part)
			break;
	}
	if (done)
		return (ssize_t)done;
	errno = EFAULT;
	return -1;
}

ssize_t timed_read_read(int pid, uint64_t at, void *ret, size_t n)
{
	uint64_t first = at & ~(uint64_t)(PAGE_BYTES - 1), last = (at + n) | (PAGE_BYTES - 1);
	return known_in(first, last) ? read_pages(pid, at, ret, n) : read_now(pid, at, ret, n);
}

ssize_t timed_read_read_all(int pid, const struct iovec *here, const struct iovec *there, size_t n)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t at = (uintptr_t)there[i].iov_base;
		lo = at < lo ? at : lo;
		hi = at + there[i].iov_len > hi ? at + there[i].iov_len : hi;
	}
	/* With one that stalls among them, each is read by itself. */
	if (!n || known_in(lo, hi))
		return -1;
	if (watched)
		begin(watched, lo, hi);
	ssize_t got = process_vm_readv(pid, here, n, there, n, 0);
	if (watched)
		end(watched);
	return got;
}

/* ---- waiting ---- */

/* One piece of work after the other, until there will be none. */
static void *serve(void *arg)
{
	struct watched *w = watched = arg;
	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (!w->has_work && !w->is_ended)
			pthread_cond_wait(&w->todo, &w->lock);
		if (!w->has_work)
			break;
		w->has_work = false;
		pthread_mutex_unlock(&w->lock);
		int rc = w->work(w->ctx, &w->err);
		pthread_mutex_lock(&w->lock);
		w->rc = rc;
		w->is_done = true;
		pthread_cond_signal(&w->done);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void sleep_tick(struct watched *w)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += TICK_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&w->done, &w->lock, &until);
}

/* False: a read does not end, and the caller stopped waiting for it. */
static bool wait_for(struct watched *w)
{
	uint64_t last = 0;
	unsigned int n_ticks = 0;
	pthread_mutex_lock(&w->lock);
	while (!w->is_done) {
		sleep_tick(w);
		uint64_t now = __atomic_load_n(&w->state, __ATOMIC_ACQUIRE);
		n_ticks = now & 1 && now == last ? n_ticks + 1 : 0;
		last = now;
		if (n_ticks * TICK_MS < STALL_MS ||
		    !__atomic_compare_exchange_n(&w->state, &now, LEFT, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
			continue;
		pthread_mutex_unlock(&w->lock);
		return false;
	}
	pthread_mutex_unlock(&w->lock);
	return true;
}

static int leave(struct timed_read *s, const struct watched *w, struct cairn_err *err)
{
	s->is_left = true;
	if (s->n < STALL_MAX)
		s->ranges[s->n++] = w->now;
	return err_set(err, -ETIMEDOUT,
		       "process %d: a page of [0x%" PRIx64 ",0x%" PRIx64
		       ") was not there for %d s: the handler of page faults there (userfaultfd(2) "
		       "or a file system) does not answer",
		       s->pid, w->now.lo, w->now.hi, STALL_MS / 1000);
}

static struct watched *new_watched(void)
{
	pthread_condattr_t attr;
	struct watched *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->done, &attr);
	pthread_cond_init(&w->todo, NULL);
	pthread_condattr_destroy(&attr);
	return w;
}

static void free_watched(struct watched *w)
{
	pthread_cond_destroy(&w->todo);
	pthread_cond_destroy(&w->done);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static bool start(struct watched *w)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool is_started = pthread_create(&w->thread, NULL, serve, w) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return is_started;
}

int timed_read_begin(struct timed_read *s, struct cairn_err *err)
{
	struct watched *w = new_watched();
	if (!w)
		return err_nomem(err, "a thread that reads a process");
	if (start(w))
		s->worker = w;
	else
		free_watched(w);
	return 0;
}

void timed_read_end(struct timed_read *s)
{
	struct watched *w = s->worker;
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->is_ended = true;
	pthread_cond_signal(&w->todo);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	free_watched(w);
	s->worker = NULL;
}

int timed_read_check(const struct timed_read *s, struct cairn_err *err)
{
	return s->is_left ? err_set(err, -ETIMEDOUT,
				    "process %d: reading its memory did not end before; it has to "
				    "be opened again",
				    s->pid)
			  : 0;
}

static void hand_over(struct timed_read *s, int (*work)(void *ctx, struct cairn_err *err),
		      void *ctx)
{
	struct watched *w = s->worker;
	pthread_mutex_lock(&w->lock);
	w->known = *s;
	w->work = work;
	w->ctx = ctx;
	w->err = (struct cairn_err){0};
	w->is_done = false;
	w->has_work = true;
	pthread_cond_signal(&w->todo);
	pthread_mutex_unlock(&w->lock);
}

static int run_there(struct timed_read *s, int (*work)(void *ctx, struct cairn_err *err), void *ctx,
		     struct cairn_err *err)
{
	struct watched *w = s->worker;
	hand_over(s, work, ctx);
	if (!wait_for(w)) {
		pthread_detach(w->thread);
		s->worker = NULL;
		return leave(s, w, err);
	}
	if (w->rc < 0 && err)
		*err = w->err;
	return w->rc;
}

int timed_read_run(struct timed_read *s, int (*work)(void *ctx, struct cairn_err *err), void *ctx,
		   struct cairn_err *err)
{
	bool is_ours = !s->worker;
	int rc = timed_read_check(s, err);
	if (rc == 0 && is_ours)
		rc = timed_read_begin(s, err);
	if (rc < 0)
		return rc;
	rc = s->worker ? run_there(s, work, ctx, err) : work(ctx, err);
	if (is_ours)
		timed_read_end(s);
	return rc;
}

bool timed_read_lend(struct timed_read *s, int (*work)(void *ctx, struct cairn_err *err), void *ctx)
{
	if (!s->worker)
		return false;
	hand_over(s, work, ctx);
	return true;
}

void timed_read_take_back(struct timed_read *s)
{
	struct watched *w = s->worker;
	pthread_mutex_lock(&w->lock);
	while (!w->is_done)
		pthread_cond_wait(&w->done, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

bool timed_read_may_retry(struct timed_read *s)
{
	bool may = s->is_left && s->n < STALL_MAX;
	s->is_left = !may;
	return may;
}

void timed_read_note(const struct timed_read *s, char *text)
{
	const struct timed_read_range *r = s->n ? &s->ranges[s->n - 1] : NULL;
	text[0] = 0;
	if (!r)
		return;
	snprintf(text, CAIRN_ERR_MSG_MAX,
		 "a page at 0x%" PRIx64
		 " is left out, with its contents: it was not there for %d s, and the handler of "
		 "page faults there (userfaultfd(2) or a file system) did not answer",
		 r->lo, STALL_MS / 1000);
}
