/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stacks of a stopped process, as they were; the essay is in snapshot.c. Within this module
 * only.
 */
#ifndef UNWIND_SNAPSHOT_H
#define UNWIND_SNAPSHOT_H

#include "code/maps.h"
#include "unwind/stop.h"

/* The copied part of a stack: [lo, hi), its bytes at @off of the buffer. */
struct stack_copy {
	uint64_t lo, hi;
	size_t off;
};

struct snapshot {
	int pid; /* by which memory is read: target_living_thread() */
	size_t n_threads;
	/* one per thread, then the same number of own stacks; most of those are empty */
	struct stack_copy *copies;
	uint8_t *bytes;
	size_t n_bytes;
};

/*
 * snapshot_take - copy the used parts of all stacks
 *
 * @s     zero, but for pid
 * @stop  all threads stand still
 * Returns 0, -ENOMEM; snapshot_fini() in both cases. Unreadable memory is not in it.
 * Cost: one or two process_vm_readv() for hundreds of threads.
 */
int snapshot_take(struct snapshot *s, const struct code_maps *maps, const struct stop *stop,
		  struct cairn_err *err);
void snapshot_fini(struct snapshot *s);

/* All words of the copies, one copy by number; NULL after the last. */
const void *snapshot_words(const struct snapshot *s, size_t i, size_t *ret_n);

/*
 * @n bytes at @at as they were, of a thread's own stacks; of any thread's. False when they were not
 * copied.
 */
bool snapshot_read(const struct snapshot *s, size_t thread, uint64_t at, void *ret, size_t n);
bool snapshot_read_any(const struct snapshot *s, uint64_t at, void *ret, size_t n);

/* The same for the present process. */
bool snapshot_read_live(int pid, uint64_t at, void *ret, size_t n);

#endif
