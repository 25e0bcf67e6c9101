/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry of this process, written
 *
 * One thread at a time (codectl.c has the lock); readers are other processes, and the writer does
 * not wait for them. The data beside the registry, for finding a slot and a range, is separate
 * memory, and can be made again from the entries.
 */
#ifndef AGENT_REGISTRY_WRITER_H
#define AGENT_REGISTRY_WRITER_H

#include "arguments.h"
#include "ranges.h"

enum { REGISTRY_CLASSES = 10 }; /* blocks for strings, of 32 << class bytes: up to 16 KB */

struct registry_slot {
	uint32_t block;        /* of strings: unit << 4 | class; 0: none */
	uint32_t next_removed; /* in the order of removal */
};

struct registry_writer {
	struct codectl_registry *head;
	struct codectl_entry *entries;
	struct registry_slot *slots;
	uint32_t capacity;
	uint32_t first_removed, last_removed, n_removed;
	uint64_t last_epoch;         /* that was used */
	uint8_t *strings;            /* in the registry's mapping */
	uint32_t n_units, max_units; /* of 32 bytes; unit 0 is not used */
	/* blocks of each class; the first word of one is the next */
	uint32_t unused[REGISTRY_CLASSES];
	struct ranges ranges;
	void *ranges_memory;
};

/*
 * registry_writer_open - map a registry
 *
 * @ret  filled in; the registry is not one yet for readers: registry_writer_show() makes it so
 * Returns 0; -ENOMEM, and the errors of memfd_create(), ftruncate() and mmap(). If a limit of the
 * process forbids the full size, a smaller one is taken.
 */
int registry_writer_open(struct registry_writer *ret);
void registry_writer_show(struct registry_writer *w);
void registry_writer_close(struct registry_writer *w); /* of one that was not shown */

/*
 * registry_writer_add - a registration becomes valid
 *
 * Returns 0; -EEXIST (overlaps a valid one), -ENOSPC (no place, or no room for its strings),
 * -ENAMETOOLONG. Cost: O(log registrations), a reading of the clock, no system call. No allocation.
 */
int registry_writer_add(struct registry_writer *w, const struct codectl_request *request);

/*
 * The registration of exactly [@lo, @hi) ends. 0; -ENOENT. Afterwards the memory that it named may
 * change.
 */
int registry_writer_remove(struct registry_writer *w, uint64_t lo, uint64_t hi);

/*
 * registry_writer_renew - a JIT's region passes into a new generation, without a moment between
 *
 * @prepare  called when nothing can fail any more and nothing has happened yet: it makes the chains
 *	      of @jit ready
 * Returns 0; -ENOENT, -ENOSPC, -ENAMETOOLONG, and @prepare was not called.
 */
int registry_writer_renew(struct registry_writer *w, const struct code_jit_info *jit,
			  void (*prepare)(void *ctx), void *ctx);

/*
 * registry_writer_find - the lowest valid registration that overlaps [@lo, @hi)
 * registry_writer_before - the valid registration that begins last of those at or below @at
 *
 * NULL when there is none. Valid until the next change. O(log registrations).
 */
const struct codectl_entry *registry_writer_find(const struct registry_writer *w, uint64_t lo,
						 uint64_t hi);
const struct codectl_entry *registry_writer_before(const struct registry_writer *w, uint64_t at);

/*
 * After a fork() in which another thread was in the middle of something: all but the entries is
 * made again.
 */
void registry_writer_repair(struct registry_writer *w);

#endif
