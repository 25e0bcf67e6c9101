/* SPDX-License-Identifier: BSD-2-Clause */
/* Which process it is, and whether it still runs the same program. */
#ifndef CODE_TARGET_H
#define CODE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Process ids are used again; a process id with its start time is unique. An exec keeps both, and
 * replaces the memory. The random bytes that the kernel gives to each program (AT_RANDOM in
 * getauxval(3)) identify the memory; fork copies them.
 */
struct target_id {
	int pid;
	uint64_t start; /* clock ticks since boot */
	uint64_t program[2];
};

/* The process of a thread, and its parent; 0 when it has ended. */
int target_process_of(int tid);
int target_parent_of(int pid);

/* From proc_pid_stat(5). */
struct target_stat {
	char state; /* 'Z': it has ended, and was not waited for */
	int parent;
	uint64_t ticks;     /* of processor time, of the process and in the kernel */
	uint64_t n_threads; /* with a main thread that has ended, while others run */
	uint64_t start;     /* as struct target_id */
};

/* False: there is no such process. */
bool target_stat(int pid, struct target_stat *ret);

/* The letter of proc_pid_stat(5); X also when there is no such thread. */
char target_thread_state(int pid, int tid);
/* Whether a thread has ended: the main one of a process whose others go on, all of a killed one. */
bool target_thread_has_ended(int pid, int tid);

/*
 * target_living_thread - a thread of @pid by which its memory and mappings can be read
 *
 * Usually this is @pid itself. If its main thread has ended while others go on, it is one of those.
 * 0: all have ended.
 */
int target_living_thread(int pid);

/*
 * target_identify - the present identity of @pid
 *
 * Returns false when it has ended, is about to, or may not be read.
 */
bool target_identify(int pid, struct target_id *ret);

/*
 * The time when a process was forked, in CLOCK_MONOTONIC, the clock of registrations. The kernel
 * reports it in clock ticks of 10 ms: a registration within the same tick counts as before.
 */
uint64_t target_forked_ns(const struct target_id *id);

/* Exactly @n bytes of its memory at @at. */
bool target_read(int pid, uint64_t at, void *buf, size_t n);

/*
 * target_read_proc - as much of /proc/@pid/@name as @buf holds, and a NUL
 *
 * @size  of @buf, at least 1
 * Returns the number of bytes before the NUL; 0: there is no such file, or it cannot be read.
 */
size_t target_read_proc(int pid, const char *name, void *buf, size_t size);

#endif
