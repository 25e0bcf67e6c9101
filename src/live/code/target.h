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

#endif
