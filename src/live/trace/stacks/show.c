/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stack as cairn/stack.h has it
 *
 * A frame in a file is the file's number and an address in it; where the process has it comes from
 * its mappings at that time. The first frame of a hit is at its site: a probe may stand at a later
 * instruction, which has no name of its own. Frames of the kernel come first (kernel_frames.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <cairn/text.h>

#include "trace/stacks/impl.h"

/* How often a file is asked whether it is what ran. */
#define FILE_EVERY_NS UINT64_C(100000000)

static const char no_function[] = "no registry, GDB list, jitdump or perf map has a function there";

static const char code_is_gone[] = "the code was replaced before it could be named";

/* The present knowledge of a file; NULL: no memory. */
static struct stack_file_state *state_of(struct cairn_trace *t, uint32_t number)
{
	struct trace_stacks *s = t->stacks;
	struct walk_file *file = s->walker.files.list.p[number];
	struct stack_file_state *state;
	uint64_t now = trace_now_ns();
	struct cairn_err err = {0};

	while (s->files.n <= number)
		if (!VEC_PUSH(&s->files))
			return NULL;
	state = &s->files.p[number];
	if (!state->is_asked || now - state->asked_ns > FILE_EVERY_NS) {
		state->is_as_it_ran = file->bin && files_is_as_it_ran(file);
		state->is_asked = true;
		state->asked_ns = now;
	}
	if (state->is_as_it_ran && !state->is_searched && t->opts.find_names) {
		state->is_searched = true;
		t->opts.find_names(t->opts.find_names_ctx, file->bin, &file->sidecar, &err);
	}
	return state;
}

static int show_file(struct cairn_trace *t, const struct stack_kept *k,
		     const struct walk_taken *taken, size_t i, struct cairn_stack_frame *f)
{
	uint64_t frame = taken->frames[i];
	const struct walk_files *files = &t->stacks->walker.files;
	uint32_t number = (uint32_t)(frame >> WALK_FILE_SHIFT) & WALK_FILE_MASK;
	const struct walk_file *file = number < files->list.n ? files->list.p[number] : NULL;
	struct stack_file_state *state = file ? state_of(t, number) : NULL;

	if (!file)
		return 0;
	if (!state)
		return -ENOMEM;
	f->path = file->path;
	f->vaddr.v = file->base + (frame & WALK_AT_MASK);
	f->at.v = k->is_settled ? k->in->addresses.p[k->first + k->n_kernel + i]
				: watched_address_at(&t->stacks->walker.processes, taken->pid,
						     frame & ~WALK_ASSUMED, taken->time_ns);
	f->unwind = CAIRN_CODE_UNWIND_FILE;
	f->bin = state->is_as_it_ran ? file->bin : NULL;
	f->sidecar = f->bin ? file->sidecar : NULL;
	return 0;
}

static int show_made(struct cairn_trace *t, const struct walk_taken *taken, uint64_t frame,
		     struct cairn_stack_frame *f)
{
	struct trace_stacks *s = t->stacks;
	int e = stacks_name_made(s, taken->pid, frame);
	const struct stack_made *made = stacks_made(s, taken->pid, frame);

	f->at.v = walk_unfiled_address(walk_unfiled(frame));
	f->unnamed = frame & WALK_MADE ? code_is_gone : no_function;
	if (!made || !made->has_range)
		return e;
	f->code = &made->range;
	f->unwind = made->range.unwind;
	f->n_functions = made->n_functions;
	f->functions = made->functions;
	f->named_by = made->range.source;
	f->has_off = made->has_off;
	f->off = made->off;
	f->unnamed = made->n_functions ? NULL : no_function;
	return e;
}

/* A frame whose position is the instruction itself, and perhaps a signal's. */
static void note_exact(const struct stack_kept *k, size_t i, struct cairn_stack_frame *f)
{
	for (size_t e = 0; e < k->n_exact; e++) {
		if ((k->exact[e] & ~WALK_EXACT_SIGNAL) != i)
			continue;
		f->is_exact = true;
		f->is_signal = k->exact[e] & WALK_EXACT_SIGNAL;
	}
}

/* A signal's frame that is not the innermost one is where its handler returns to. */
static void step_back(struct cairn_stack_frame *f)
{
	f->is_exact = false;
	f->vaddr.v--;
	f->at.v -= f->at.v ? 1 : 0;
}

/* A hit is at its site, whatever instruction the probe is on. */
static void move_to_site(struct cairn_stack_frame *f, const struct cairn_trace_site *site)
{
	uint64_t moved = site->at.v - site->site->at.v;

	if (f->vaddr.v != site->at.v || !f->bin)
		return;
	f->vaddr = site->site->at;
	f->at.v -= f->at.v ? moved : 0;
}

/* A program's frame @i, after those of the kernel. */
static int show_frame(struct cairn_trace *t, const struct stack_kept *k,
		      const struct walk_taken *taken, size_t i, const struct cairn_trace_site *site,
		      struct cairn_stack_frame *f)
{
	uint64_t frame = taken->frames[i];
	bool is_last = i + 1 == taken->n && !(frame & WALK_RAW);
	int e;

	note_exact(k, i, f);
	f->is_exact |= t->stacks->of == STACKS_WHOLE && i == 0;
	f->is_exact |= is_last && !f->is_exact &&
		       files_begins_context(&t->stacks->walker.files, frame - 1);
	e = frame & WALK_RAW ? show_made(t, taken, frame, f) : show_file(t, k, taken, i, f);
	if (i == 0 && site && !k->n_kernel)
		move_to_site(f, site);
	if (f->is_signal && i)
		step_back(f);
	f->pc.v = f->at.v ? f->at.v + !f->is_exact : 0;
	/* The frame that is left by its frame pointer has a caller that is assumed. */
	f->is_assumed = i && taken->frames[i - 1] & WALK_ASSUMED;
	f->assumed = f->is_assumed ? "its callee keeps a frame pointer" : NULL;
	return e;
}

/* ---- the end ---- */

static const uint8_t ends[WALK_N_ENDS] = {
	[WALK_END_COMPLETE] = CAIRN_WALK_OUTERMOST,
	[WALK_END_ASSUMED] = CAIRN_WALK_ASSUMED,
	[WALK_END_NO_USER] = CAIRN_WALK_NOT_TAKEN,
	[WALK_END_NO_PROCESS] = CAIRN_WALK_NO_MAPPING,
	[WALK_END_NO_MAPPING] = CAIRN_WALK_NO_MAPPING,
	[WALK_END_NOT_READY] = CAIRN_WALK_NOT_READY,
	[WALK_END_UNDESCRIBED] = CAIRN_WALK_UNDESCRIBED,
	[WALK_END_UNREADABLE] = CAIRN_WALK_UNREADABLE,
	[WALK_END_LOST] = CAIRN_WALK_LOST,
	[WALK_END_LOOP] = CAIRN_WALK_LOOP,
	[WALK_END_LIMIT] = CAIRN_WALK_LIMIT,
	[WALK_END_READS] = CAIRN_WALK_READS,
};

static void say_end(struct trace_stacks *s, const struct stack_kept *k, uint8_t end)
{
	const struct cairn_stack_frame *last =
		s->shown_frames.n ? &s->shown_frames.p[s->shown_frames.n - 1] : NULL;

	s->shown.end = (enum cairn_walk_end)ends[end];
	s->shown.why = cairn_walk_end_text(s->shown.end);
	if (stacks_kernel_end(k, end))
		snprintf(s->why, sizeof(s->why), "%s", stacks_kernel_end(k, end));
	else if (end == WALK_END_LIMIT)
		snprintf(s->why, sizeof(s->why), "%s", cairn_counted(s->max_frames, "frame").text);
	else if (end == WALK_END_UNDESCRIBED && last && last->path)
		snprintf(s->why, sizeof(s->why), "no unwind row at 0x%" PRIx64 " in %.80s",
			 last->vaddr.v, last->path);
	else if (end == WALK_END_NO_PROCESS)
		snprintf(s->why, sizeof(s->why), "the process was not known yet");
	else
		return;
	s->shown.why = s->why;
}

/* A hit whose stack found no room, here or in the kernel. */
static void show_none(struct trace_stacks *s)
{
	s->shown.end = CAIRN_WALK_NOT_TAKEN;
	s->shown.why = cairn_walk_end_text(CAIRN_WALK_NOT_TAKEN);
}

bool stacks_is_cut(const struct trace_stacks *s, const struct cairn_thread_stack *stack)
{
	if (stack->end == CAIRN_WALK_LIMIT)
		return s->shown_is_cut || s->max_frames == WALK_MAX_FRAMES;
	return stack->n_frames && stack->end != CAIRN_WALK_OUTERMOST &&
	       stack->end != CAIRN_WALK_ASSUMED;
}

bool stacks_key_is_cut(const struct trace_stacks *s, const uint64_t id[2])
{
	const struct stack_kept *k = stacks_find(s, id[0], id[1]);

	if (k && k->end == WALK_END_LIMIT)
		return stacks_kernel_is_cut(k) || s->max_frames == WALK_MAX_FRAMES;
	return k && k->n && k->end != WALK_END_COMPLETE && k->end != WALK_END_ASSUMED;
}

/* ---- the whole ---- */

static int show_frames(struct cairn_trace *t, const struct stack_kept *k,
		       const struct walk_taken *taken, const struct cairn_trace_site *site)
{
	struct trace_stacks *s = t->stacks;
	int e = 0;

	if (!VEC_RESERVE(&s->shown_frames, k->n_kernel + taken->n) ||
	    !VEC_RESERVE(&s->shown_list, k->n_kernel + taken->n))
		return -ENOMEM;
	for (size_t i = 0; i < k->n_kernel; i++) {
		struct cairn_stack_frame *f = VEC_PUSH(&s->shown_frames);
		stacks_show_kernel(t, k, i, f);
		VEC_ADD(&s->shown_list, (const struct cairn_stack_frame *)f);
	}
	for (size_t i = 0; i < taken->n && e == 0; i++) {
		struct cairn_stack_frame *f = VEC_PUSH(&s->shown_frames);
		e = show_frame(t, k, taken, i, site, f);
		VEC_ADD(&s->shown_list, (const struct cairn_stack_frame *)f);
	}
	s->shown.frames = s->shown_list.p;
	s->shown.n_frames = s->shown_list.n;
	return e;
}

/* Frames of a hit as they are known by now; those of a key were settled before. */
static int show_stack(struct cairn_trace *t, const struct stack_kept *k,
		      const struct stack_hit *hit)
{
	struct walk_taken taken = stacks_taken(k), now = taken;
	uint64_t own[WALK_MAX_FRAMES];

	if (hit->pid) {
		taken.pid = hit->pid;
		taken.time_ns = hit->time_ns;
		taken.generation = hit->ref.generation;
		walker_resolve(&t->stacks->walker, &taken, own, &now);
	}
	const struct trace_site *site =
		hit->probe ? stacks_site(t, k->id[0], k->id[1], hit->probe) : NULL;
	int e = show_frames(t, k, &now, site ? &site->pub : hit->site);
	say_end(t->stacks, k, now.end);
	t->stacks->shown_is_cut = stacks_kernel_is_cut(k);
	return e;
}

static const struct trace_site *site_of_probe(const struct cairn_trace *t,
					      const struct trace_probe *probe, uint64_t frame)
{
	const struct trace_site *site = stacks_site_of_frame(t, frame);

	return site && t->probes.p[site->pub.probe] == probe ? site : NULL;
}

const struct trace_site *stacks_site(const struct cairn_trace *t, uint64_t id, uint64_t other,
				     const struct trace_probe *probe)
{
	const struct stack_kept *k = stacks_find(t->stacks, id, other);
	const struct walk_files *files = &t->stacks->walker.files;
	uint64_t frame = k && k->n ? k->in->frames.p[k->first] : WALK_RAW;
	uint32_t number = (uint32_t)(frame >> WALK_FILE_SHIFT) & WALK_FILE_MASK;

	if (k && k->n_kernel)
		return site_of_probe(t, probe, frame);
	if (frame & WALK_RAW || number >= files->list.n || !files->list.p[number])
		return NULL;
	for (uint32_t i = 0; i < probe->pub.n_sites; i++) {
		const struct trace_site *site = t->sites.p[probe->pub.first_site + i];
		if (site->attached &&
		    site->pub.at.v == files->list.p[number]->base + (frame & WALK_AT_MASK))
			return site;
	}
	return NULL;
}

const struct cairn_thread_stack *stacks_show(struct cairn_trace *t, const struct stack_hit *hit)
{
	struct trace_stacks *s = t->stacks;
	const struct stack_kept *k =
		hit->ref.id[0] ? stacks_find(s, hit->ref.id[0], hit->ref.id[1]) : NULL;

	stacks_refresh_kernel(s);
	s->shown = (struct cairn_thread_stack){.tid = hit->tid, .why = ""};
	s->shown_frames.n = s->shown_list.n = 0;
	if (hit->comm)
		strncpy(s->shown.comm, hit->comm, sizeof(s->shown.comm) - 1);
	if (!k) {
		s->n_forgotten += hit->pid && hit->ref.id[0];
		show_none(s);
		return &s->shown;
	}
	return show_stack(t, k, hit) < 0 ? NULL : &s->shown;
}
