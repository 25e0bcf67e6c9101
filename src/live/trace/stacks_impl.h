/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files that keep stacks share
 *
 *	stacks.c       stacks by their hashes, and records that wait
 *	stacks_made.c  names of code made at run time
 *	stacks_show.c  frames as cairn/stack.h has them
 */
#ifndef TRACE_STACKS_IMPL_H
#define TRACE_STACKS_IMPL_H

#include "trace/stacks.h"

/* NULL: a stack that was not sent. */
const struct stack_kept *stacks_find(const struct trace_stacks *s, uint64_t id, uint64_t other);
struct walk_taken stacks_taken(const struct trace_stacks *s, const struct stack_kept *k);

/* Name a frame of a process, if it is in code made at run time. 0 or -ENOMEM. */
int stacks_name_made(struct trace_stacks *s, int pid, uint64_t frame);
/* What is known of it; NULL: nothing. */
const struct stack_made *stacks_made(const struct trace_stacks *s, int pid, uint64_t frame);

#endif
