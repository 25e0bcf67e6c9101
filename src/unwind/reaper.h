/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that die while others of their process are being attached
 *
 * A thread that is traced and dies stays until its tracer has waited for it. A thread that execs waits until all others
 * are gone, and holds a lock meanwhile that PTRACE_SEIZE of any thread of the process takes. So a tracer that has seized
 * some threads of a process that execs, and seizes the next, sleeps for ever, and so does the process (Linux 6.18:
 * ptrace_attach() takes cred_guard_mutex, which de_thread() is under). The way out is that another thread of the tracer
 * waits for the dead.
 * Within this module only.
 */
#ifndef UNWIND_REAPER_H
#define UNWIND_REAPER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/vec.h"
#include "code/stall.h"

struct reaper {
	struct stall *stall; /* whose thread it runs in; NULL: it does not */
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool is_ended;
	VEC(int) tids;
};

/*
 * reaper_start - begin to wait for the dead among what reaper_add() names
 *
 * @stall  lends its thread until reaper_end(). Where that has none nobody is waited for.
 */
void reaper_start(struct reaper *reaper, struct stall *stall);

/* Before @tid is seized. False: no memory. */
bool reaper_add(struct reaper *reaper, int tid);

/* Nobody is waited for from here on. */
void reaper_end(struct reaper *reaper);

#endif
