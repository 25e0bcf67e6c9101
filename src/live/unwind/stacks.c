/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/opts.h"

int stacks_new(const struct cairn_stacks_opts *opts, struct cairn_stacks **ret,
	       struct cairn_err *err)
{
	struct cairn_stacks_opts o = {0};
	int rc = opts_take(&o, sizeof(o), opts, err);
	if (rc < 0)
		return rc;
	struct cairn_stacks *stacks = calloc(1, sizeof(*stacks));
	if (!stacks)
		return err_nomem(err, "stacks");
	stacks->max_frames = o.max_frames;
	stacks->jobs = o.threads;
	stacks->has_vectors = o.vectors;
	stacks->no_registers = o.no_registers;
	stacks->search = (struct core_search){.program = o.program,
					      .sysroot = o.sysroot,
					      .debug_dirs = o.debug_dirs,
					      .n_debug_dirs = o.n_debug_dirs,
					      .threads = o.threads};
	stacks->sidecars =
		(struct code_sidecars){.find = o.find_sidecar, .ctx = o.find_sidecar_ctx};
	*ret = stacks;
	return 0;
}

void stacks_take_note(struct cairn_stacks *stacks)
{
	const char *note = code_runtime_note(stacks->runtime, 0);
	if (note && !stacks->note[0])
		snprintf(stacks->note, sizeof(stacks->note), "%s", note);
}

void stacks_clear(struct cairn_stacks *stacks)
{
	stacks->n_used = 0;
	arena_fini(&stacks->kept);
	walk_forget(&stacks->walk);
	snapshot_fini(&stacks->snapshot);
	stacks->moment = (struct cairn_stacks_moment){0};
}

struct thread_walk *stacks_add(struct cairn_stacks *stacks, int tid, const char *comm)
{
	if (stacks->n_used == stacks->threads.n) {
		struct thread_walk *t = calloc(1, sizeof(*t));
		if (!t || !VEC_ADD(&stacks->threads, t)) {
			free(t);
			return NULL;
		}
	}
	struct thread_walk *t = stacks->threads.p[stacks->n_used++];
	*t = (struct thread_walk){.n_then = SIZE_MAX, .stack = {.tid = tid}};
	strncpy(t->stack.comm, comm, sizeof(t->stack.comm) - 1);
	return t;
}

int stacks_keep(struct cairn_stacks *stacks, struct thread_walk *t, struct cairn_err *err)
{
	const struct walk *walk = &stacks->walk;
	size_t frames = walk->frames.n * sizeof(*walk->frames.p),
	       words = walk->words.n * sizeof(*walk->words.p);
	size_t regs = walk->regs.n * sizeof(*walk->regs.p), why = strlen(walk->why) + 1;
	char *at = arena_alloc(&stacks->kept, frames + words + regs + why);
	if (!at)
		return err_nomem(err, "the frames of a stack");
	t->stack.n_frames = walk->frames.n;
	t->stack.frames = frames ? memcpy(at, walk->frames.p, frames) : NULL;
	t->words = words ? memcpy(at + frames, walk->words.p, words) : NULL;
	t->regs = regs ? memcpy(at + frames + words, walk->regs.p, regs) : NULL;
	t->stack.why = memcpy(at + frames + words + regs, walk->why, why);
	t->stack.end = walk->end;
	return 0;
}

void cairn_stacks_close(struct cairn_stacks *stacks)
{
	/* Memory that an unfinished read may still fill is not freed. */
	if (!stacks || stacks->stall.is_left)
		return;
	for (size_t i = 0; i < stacks->threads.n; i++)
		free(stacks->threads.p[i]);
	arena_fini(&stacks->kept);
	VEC_FREE(&stacks->threads);
	walk_fini(&stacks->walk);
	snapshot_fini(&stacks->snapshot);
	code_runtime_free(stacks->runtime);
	VEC_FREE(&stacks->states.list);
	code_space_free(stacks->space);
	core_close(stacks->core);
	free(stacks);
}

size_t cairn_stacks_n_threads(const struct cairn_stacks *stacks)
{
	return stacks->n_used;
}

const struct cairn_thread_stack *cairn_stacks_thread(const struct cairn_stacks *stacks, size_t i)
{
	return &stacks->threads.p[i]->stack;
}

void cairn_stacks_regs(const struct cairn_thread_stack *thread, size_t frame,
		       struct cairn_regs *ret)
{
	const struct thread_walk *t = (const struct thread_walk *)(const void *)thread;
	uint32_t wanted = t->regs ? t->regs[frame].known : 0;
	*ret = (struct cairn_regs){.pc = thread->frames[frame]->pc, .known = wanted};
	if (!wanted)
		return;
	/* Each from the outermost frame that it changed in; in the innermost all have. */
	for (const struct frame_regs *kept = &t->regs[frame]; wanted; kept--) {
		const uint64_t *word = t->words + kept->first;
		for (uint32_t left = kept->changed; left; left &= left - 1, word++)
			if (wanted & left & -left)
				ret->r[__builtin_ctz(left)] = *word;
		wanted &= ~kept->changed;
	}
}

const char *cairn_stacks_note(const struct cairn_stacks *stacks)
{
	return stacks->note[0] ? stacks->note : NULL;
}

void cairn_stacks_moment(const struct cairn_stacks *stacks, struct cairn_stacks_moment *ret)
{
	*ret = stacks->moment;
}
