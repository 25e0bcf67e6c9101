/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work of another thread while threads of a process are attached: it waits for those that die,
 * and reads names
 *
 * A thread that is traced and dies stays until its tracer has waited for it. A thread that execs
 * waits until all others are gone, and holds a lock meanwhile that PTRACE_SEIZE of any thread of
 * the process takes. So a tracer that has seized some threads of a process that execs, and seizes
 * the next, sleeps for ever, and so does the process (Linux 6.18: ptrace_attach() takes
 * cred_guard_mutex, which de_thread() is under). The way out is that another thread of the tracer
 * waits for the dead.
 *
 * There are seldom any. A thread's name takes three system calls, four times as long as to attach
 * it: so the tracer and this thread share them, as long as all run.
 * Within this module only.
 */
#ifndef UNWIND_REAPER_H
#define UNWIND_REAPER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/vec.h"
#include "code/timed_read.h"

enum { COMM_BYTES = 16 };

struct reaper {
	struct timed_read *stall; /* the read whose thread it runs in; NULL: none */
	int tasks;                /* directory of the threads; borrowed */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_ended;
	VEC(struct known_thread {
		int tid;
		char comm[COMM_BYTES]; /* "" also when it could not be read */
	})
	threads;
	size_t n_taken; /* of those, the number that the reader of names has taken */
};

/*
 * reaper_start - begin to wait for the dead among the threads that reaper_add() names
 *
 * @stall  lends its thread until reaper_join(). If it has none, nothing waits for the dead.
 * @tasks  /proc/PID/task, until reaper_join()
 */
void reaper_start(struct reaper *reaper, struct timed_read *stall, int tasks);

/* Before @tid is seized. False: no memory. */
bool reaper_add(struct reaper *reaper, int tid);

/* No name is left to be read but one that the other thread has in hand. */
void reaper_read_names(struct reaper *reaper);

/* Announces the end of the wait; does not wait. */
void reaper_end(struct reaper *reaper);

/* After reaper_end(): the list of threads is the caller's now. reaper_fini() frees it. */
void reaper_join(struct reaper *reaper);
void reaper_fini(struct reaper *reaper);

#endif
