/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/reaper.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/scope.h"

/* Attaching a thread takes some microseconds; a longer wait may be for a thread that died. */
enum { PERIOD_NS = 5000000 };

static void read_comm(int tasks, int tid, char ret[COMM_BYTES])
{
	char name[32];
	snprintf(name, sizeof(name), "%d/comm", tid);
	SCOPE_CLOSE int fd = openat(tasks, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret, COMM_BYTES - 1);
	ret[n > 0 ? n : 0] = 0;
	ret[strcspn(ret, "\n")] = 0;
}

/* Under the lock, which is not held while it is read. False: all are taken. */
static bool read_next(struct reaper *reaper)
{
	size_t i = reaper->n_taken;
	char comm[COMM_BYTES];
	if (i == reaper->threads.n)
		return false;
	reaper->n_taken++;
	int tid = reaper->threads.p[i].tid;
	pthread_mutex_unlock(&reaper->lock);
	read_comm(reaper->tasks, tid, comm);
	pthread_mutex_lock(&reaper->lock);
	memcpy(reaper->threads.p[i].comm, comm, sizeof(comm));
	return true;
}

static void wait_for_the_dead(const struct reaper *reaper)
{
	for (size_t i = 0; i < reaper->threads.n; i++) {
		id_t tid = (id_t)reaper->threads.p[i].tid;
		siginfo_t info = {0};
		/*
		 * WEXITED also takes the stop of a traced thread, which is for the tracer to see:
		 * so a look first.
		 */
		if (waitid(P_PID, tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
		    (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED ||
		     info.si_code == CLD_DUMPED))
			waitid(P_PID, tid, &info, WEXITED | WNOHANG | __WALL);
	}
}

static int reap(void *ctx, struct cairn_err *err)
{
	struct reaper *reaper = ctx;
	struct timespec until;

	pthread_mutex_lock(&reaper->lock);
	while (!reaper->is_ended) {
		if (read_next(reaper))
			continue;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += PERIOD_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_cond_timedwait(&reaper->changed, &reaper->lock, &until) != 0)
			wait_for_the_dead(reaper);
	}
	pthread_mutex_unlock(&reaper->lock);
	return 0;
}

void reaper_start(struct reaper *reaper, struct timed_read *stall, int tasks)
{
	pthread_condattr_t attr;

	*reaper = (struct reaper){.tasks = tasks};
	pthread_mutex_init(&reaper->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&reaper->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (timed_read_lend(stall, reap, reaper))
		reaper->stall = stall;
}

bool reaper_add(struct reaper *reaper, int tid)
{
	pthread_mutex_lock(&reaper->lock);
	bool is_added = VEC_ADD(&reaper->threads, ((struct known_thread){.tid = tid}));
	pthread_cond_signal(&reaper->changed);
	pthread_mutex_unlock(&reaper->lock);
	return is_added;
}

void reaper_read_names(struct reaper *reaper)
{
	pthread_mutex_lock(&reaper->lock);
	while (read_next(reaper))
		continue;
	pthread_mutex_unlock(&reaper->lock);
}

void reaper_end(struct reaper *reaper)
{
	pthread_mutex_lock(&reaper->lock);
	reaper->is_ended = true;
	pthread_cond_signal(&reaper->changed);
	pthread_mutex_unlock(&reaper->lock);
}

void reaper_join(struct reaper *reaper)
{
	if (reaper->stall)
		timed_read_take_back(reaper->stall);
	reaper->stall = NULL;
}

void reaper_fini(struct reaper *reaper)
{
	pthread_cond_destroy(&reaper->changed);
	pthread_mutex_destroy(&reaper->lock);
	VEC_FREE(&reaper->threads);
}
