/* SPDX-License-Identifier: BSD-2-Clause */
/* The handle of cairn/stack.h. Within this module only. */
#ifndef UNWIND_STACKS_H
#define UNWIND_STACKS_H

#include "base/arena.h"
#include "code/core.h"
#include "code/timed_read.h"
#include "unwind/snapshot.h"
#include "unwind/walk.h"

/* The kept data of a thread's walk. */
struct thread_walk {
	struct cairn_thread_stack stack;
	const struct frame_regs *regs; /* one for each frame; NULL: they are not kept */
	const uint64_t *words;
	struct vectors vectors; /* of the innermost frame */
	/*
	 * frames found in the copies; the frames after them were found by reading a process that
	 * runs again
	 */
	size_t n_then;
};

struct cairn_stacks {
	int pid; /* 0: a core file */
	size_t max_frames;
	unsigned int jobs;
	bool has_vectors;  /* of a process they are read */
	bool no_registers; /* of frames are kept */
	struct core *core; /* NULL: a process */
	struct core_search search;
	struct code_sidecars sidecars;
	struct core_memory core_memory;
	struct code_space *space;
	bool has_new_maps; /* they were read just now, and not used yet */
	int mapped_by;     /* the thread by which */
	uint64_t n_pages;  /* that were mapped just before */
	struct code_runtime *runtime;
	struct timed_read stall;
	char note[CAIRN_ERR_MSG_MAX];
	/* the first n_used of them; the rest keeps its memory for the next time */
	VEC(struct thread_walk *) threads;
	size_t n_used;
	struct walk walk;         /* at hand */
	struct arena kept;        /* frames, registers and ends of the threads */
	struct snapshot snapshot; /* of a process, until the next one */
	struct interpreter_frame_states states;
	struct cairn_stacks_moment moment;
};

/* Returns 0, -EINVAL, -ENOMEM; cairn_stacks_close(). */
int stacks_new(const struct cairn_stacks_opts *opts, struct cairn_stacks **ret,
	       struct cairn_err *err);

/*
 * stacks_take_note - notes the missing parts of the code made at run time, if nothing else was
 * missing
 */
void stacks_take_note(struct cairn_stacks *stacks);

/* Removes all threads, and ends data borrowed from them. */
void stacks_clear(struct cairn_stacks *stacks);

/* Adds a thread whose walk is to be run; NULL when out of memory. */
struct thread_walk *stacks_add(struct cairn_stacks *stacks, int tid, const char *comm);

/* Keeps the results of the current walk, as @t's. Returns 0, -ENOMEM. */
int stacks_keep(struct cairn_stacks *stacks, struct thread_walk *t, struct cairn_err *err);

#endif
