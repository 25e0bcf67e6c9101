/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files that keep stacks
 *
 *	stacks.c       stacks as they come, and records that wait
 *	kept.c         stacks by their hashes, and forgetting them
 *	made.c         names of code made at run time
 *	show.c         frames as cairn/stack.h has them; site_frames.c: those around a site
 *	kernel_frames.c  those in the kernel
 */
#ifndef TRACE_STACKS_IMPL_H
#define TRACE_STACKS_IMPL_H

#include "trace/stacks/stacks.h"

/* NULL: a stack that was not sent. */
const struct stack_kept *stacks_find(const struct trace_stacks *s, uint64_t id, uint64_t other);
/* Its frames of a program. */
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

/*
 * Frames of the kernel: frame @i of the stack, at its site if it is the first. Before a stack is
 * shown: names of modules that were loaded meanwhile.
 */
void stacks_show_kernel(struct cairn_trace *t, const struct stack_kept *k, size_t i,
			struct cairn_stack_frame *f);
void stacks_refresh_kernel(struct trace_stacks *s);
/*
 * Ends a stack with its frames of the kernel if they do not lead to where the kernel was entered:
 * it has no unwind rows for some code of its own, and does not say so.
 */
void stacks_check_kernel(struct cairn_trace *t, struct stack_kept *k);
/* The site of the first frame; NULL: it is not known. */
const struct trace_site *stacks_site_of_frame(const struct cairn_trace *t, uint64_t frame);
/* Whether the kernel itself gives no more frames. */
bool stacks_kernel_is_cut(const struct stack_kept *k);
/* Why a stack ends in the kernel; NULL: it does not, or for a reason that others have, too. */
const char *stacks_kernel_end(const struct stack_kept *k, uint8_t end);

/* Name a frame of a process, if it is in code made at run time. 0 or -ENOMEM. */
int stacks_name_made(struct trace_stacks *s, int pid, uint64_t frame);
/* The knowledge of it; NULL: nothing. */
const struct stack_made *stacks_made(const struct trace_stacks *s, int pid, uint64_t frame);

#endif
