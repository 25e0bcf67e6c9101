/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/reaper.h"

#include <sys/wait.h>
#include <time.h>

/* Attaching a thread takes some microseconds; who takes longer may be waiting for one that died. */
enum { PERIOD_NS = 5000000 };

static void wait_for_the_dead(const struct reaper *reaper)
{
	for (size_t i = 0; i < reaper->tids.n; i++) {
		id_t tid = (id_t)reaper->tids.p[i];
		siginfo_t info = {0};
		/* WEXITED also takes the stop of a traced thread, which is for the tracer to see: so a look first. */
		if (waitid(P_PID, tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
		    (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED))
			waitid(P_PID, tid, &info, WEXITED | WNOHANG | __WALL);
	}
}

static int reap(void *ctx, struct cairn_err *err)
{
	struct reaper *reaper = ctx;
	struct timespec until;

	pthread_mutex_lock(&reaper->lock);
	while (!reaper->is_ended) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += PERIOD_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_cond_timedwait(&reaper->ended, &reaper->lock, &until) != 0)
			wait_for_the_dead(reaper);
	}
	pthread_mutex_unlock(&reaper->lock);
	return 0;
}

void reaper_start(struct reaper *reaper, struct stall *stall)
{
	pthread_condattr_t attr;

	*reaper = (struct reaper){0};
	pthread_mutex_init(&reaper->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&reaper->ended, &attr);
	pthread_condattr_destroy(&attr);
	if (stall_lend(stall, reap, reaper))
		reaper->stall = stall;
}

bool reaper_add(struct reaper *reaper, int tid)
{
	pthread_mutex_lock(&reaper->lock);
	bool is_added = VEC_ADD(&reaper->tids, tid);
	pthread_mutex_unlock(&reaper->lock);
	return is_added;
}

void reaper_end(struct reaper *reaper)
{
	pthread_mutex_lock(&reaper->lock);
	reaper->is_ended = true;
	pthread_cond_signal(&reaper->ended);
	pthread_mutex_unlock(&reaper->lock);
	if (reaper->stall)
		stall_take_back(reaper->stall);
	pthread_cond_destroy(&reaper->ended);
	pthread_mutex_destroy(&reaper->lock);
	VEC_FREE(&reaper->tids);
}
