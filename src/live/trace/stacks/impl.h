/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files that keep stacks share
 *
 *	stacks.c       stacks as they come, and records that wait
 *	kept.c         stacks by their hashes, and forgetting them
 *	made.c         names of code made at run time
 *	show.c         frames as cairn/stack.h has them; site_frames.c: those around a site
 */
#ifndef TRACE_STACKS_IMPL_H
#define TRACE_STACKS_IMPL_H

#include "trace/stacks/stacks.h"

/* NULL: a stack that was not sent. */
const struct stack_kept *stacks_find(const struct trace_stacks *s, uint64_t id, uint64_t other);
struct walk_taken stacks_taken(const struct stack_kept *k);

/* @seen_fd  the map of what the kernel's program has sent. 0, or an error of mmap(2). */
int stacks_may_forget(struct cairn_trace *t, int seen_fd, struct cairn_err *err);
/* Keeps a stack, if it is not kept yet. *@ret: NULL if it is of no row. 0 or -ENOMEM. */
int stacks_keep_one(struct trace_stacks *s, const struct trace_stack *r, bool settles,
		    struct stack_kept **ret);
/* A generation ends. */
void stacks_turn(struct trace_stacks *s);
/* In the end: all of them. */
void stacks_forget(struct trace_stacks *s);

/* Name a frame of a process, if it is in code made at run time. 0 or -ENOMEM. */
int stacks_name_made(struct trace_stacks *s, int pid, uint64_t frame);
/* What is known of it; NULL: nothing. */
const struct stack_made *stacks_made(const struct trace_stacks *s, int pid, uint64_t frame);

#endif
