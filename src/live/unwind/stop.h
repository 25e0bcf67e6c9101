/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All threads of a process, stopped at one moment
 *
 *	stop_all	every thread is seized, then every thread stands still; registers are read
 *	... memory is copied ...
 *	stop_release	every thread goes on
 *
 * The time in between is the cost for the process. Within this module only.
 */
#ifndef UNWIND_STOP_H
#define UNWIND_STOP_H

#include <cairn/unwind.h>

#include "base/vec.h"
#include "code/timed_read.h"
#include "code/vectors.h"

struct stopped_thread {
	int tid;
	char comm[16]; /* "" when it could not be read */
	bool is_main;
	bool is_seized, is_stopped; /* at present */
	bool has_regs;              /* false: it could not be stopped */
	bool is_left_out;
	char state; /* of one that was left out, by proc_pid_stat(5): D waits in the kernel */
	struct cairn_regs regs;
	struct vectors vectors;
	uint64_t thread_pointer;            /* of x86-64: fs_base; 0: not known */
	uint64_t stopped_at_ns, stopped_ns; /* CLOCK_MONOTONIC; for how long */
};

struct stop {
	int pid;
	bool with_vectors;                  /* the caller's wish */
	VEC(struct stopped_thread) threads; /* the main thread first, then by tid */
	int max_tid;                        /* of those */
	uint64_t first_ns, last_ns; /* from the first thread's stop to the last one's release */
	bool is_consistent;
};

/*
 * stop_all - stop every thread of @pid and read its registers
 *
 * @stall  of the process; its thread is borrowed meanwhile
 * @stop   zeroed, except for the options; stop_release() also after an error
 * Errors: as cairn_stacks_open_pid().
 */
int stop_all(int pid, struct timed_read *stall, struct stop *stop, struct cairn_err *err);

/*
 * The permission needed to trace @pid, which @why, an errno, has denied; or the present tracer:
 * -EPERM, -EBUSY, -@why.
 */
int stop_refuse(int pid, int why, struct cairn_err *err);

/*
 * Let them go on. May be called twice.
 *
 * A thread that could not be stopped stays seized, and would stand still when it leaves the kernel:
 * the kernel lets it go at the end of the thread of ours that seized it. So that has to end soon.
 */
void stop_release(struct stop *stop);

/*
 * After the thread @tracer, which called stop_all() and stop_release(), was joined: wait until the
 * kernel has let all go.
 */
void stop_await_end_of(struct stop *stop, int tracer);
void stop_fini(struct stop *stop);

#endif
