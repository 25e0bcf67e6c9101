/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/opts.h"

int stacks_new(const struct cairn_stacks_opts *opts, struct cairn_stacks **ret, struct cairn_err *err)
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
	stacks->search = (struct core_search){.sysroot = o.sysroot, .debug_dirs = o.debug_dirs,
					      .n_debug_dirs = o.n_debug_dirs, .threads = o.threads};
	stacks->packs = (struct code_packs){.find = o.find_pack, .ctx = o.find_pack_ctx};
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
	t->walk.frames.n = 0;
	t->n_then = SIZE_MAX;
	t->stack = (struct cairn_thread_stack){.tid = tid};
	snprintf(t->stack.comm, sizeof(t->stack.comm), "%s", comm);
	return t;
}

void cairn_stacks_close(struct cairn_stacks *stacks)
{
	/* What a read that never ended may still fill is not freed. */
	if (!stacks || stacks->stall.is_left)
		return;
	for (size_t i = 0; i < stacks->threads.n; i++) {
		VEC_FREE(&stacks->threads.p[i]->walk.frames);
		free(stacks->threads.p[i]);
	}
	VEC_FREE(&stacks->threads);
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
	struct thread_walk *t = stacks->threads.p[i];
	t->stack.n_frames = t->walk.frames.n;
	t->stack.frames = t->walk.frames.p;
	t->stack.end = t->walk.end;
	t->stack.why = t->walk.why;
	return &t->stack;
}

const char *cairn_stacks_note(const struct cairn_stacks *stacks)
{
	return stacks->note[0] ? stacks->note : NULL;
}

void cairn_stacks_moment(const struct cairn_stacks *stacks, struct cairn_stacks_moment *ret)
{
	*ret = stacks->moment;
}
