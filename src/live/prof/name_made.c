/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames in code that was made at run time: what its process describes, while it lives
 *
 * Addresses are collected as counts come, so that a process without such code costs nothing. They
 * are named when the engine says so: before the process is gone, or at the end.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cairn/code.h>

#include "code/target.h"
#include "prof/name_impl.h"

/* While the process runs: a JIT may say later what its code is, and a main thread takes time to end. */
enum { TRIES = 4 };

static uint64_t hash_of(int pid, uint64_t at)
{
	uint64_t pair[2] = {(uint64_t)pid, at};

	return map_hash_bytes(pair, sizeof(pair));
}

/* The index of a place, or -1 and the key for it in *@ret_key. */
static int64_t find(const struct made_names *made, int pid, uint64_t at, uint64_t *ret_key)
{
	uint64_t key = hash_of(pid, at), i;

	for (; map_get(&made->place_ids, key, &i); key++)
		if (made->places.p[i].pid == pid && made->places.p[i].at == at)
			return (int64_t)i;
	*ret_key = key;
	return -1;
}

static int add(struct made_names *made, int pid, uint64_t at)
{
	struct made_place place = {.pid = pid, .at = at};
	uint64_t key = 0, last = 0;

	if (find(made, pid, at, &key) >= 0)
		return 0;
	if (!map_get(&made->last_place, (uint64_t)pid, &last) && !VEC_ADD(&made->pids, pid))
		return -ENOMEM;
	place.next = (uint32_t)last;
	if (!VEC_ADD(&made->places, place) ||
	    map_put(&made->last_place, (uint64_t)pid, made->places.n) < 0)
		return -ENOMEM;
	return map_put(&made->place_ids, key, made->places.n - 1);
}

/* A process whose mappings were not known when it was sampled: its files are known soon after. */
static void find_in_file(struct made_place *place, const struct prof_names_opts *opts)
{
	if (place->is_named || !opts->frame_of)
		return;
	if (place->at & WALK_MADE)
		return;
	place->frame = opts->frame_of(opts->frame_of_ctx, place->pid, place->at);
	place->is_named = place->frame != 0;
}

static int collect(struct made_names *made, const struct prof_samples *samples)
{
	for (; made->n_counts < samples->counts.n; made->n_counts++) {
		const struct prof_count *c = &samples->counts.p[made->n_counts];
		const struct prof_stack *s = &samples->stacks.p[c->stack];

		for (size_t i = s->n_kernel; i < s->n; i++) {
			uint64_t frame = samples->frames.p[s->first + i];

			if (!(frame & WALK_KERNEL) && frame & WALK_RAW &&
			    add(made, (int)c->pid, walk_unfiled(frame)) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

int made_names_collect(struct made_names *made, const struct prof_samples *samples,
		       const struct prof_names_opts *opts)
{
	size_t before = made->places.n;
	int rc = collect(made, samples);

	/* Those of the last call once more: what a sample shows to be unknown is read after it. */
	for (size_t i = made->n_asked; rc == 0 && i < made->places.n; i++)
		find_in_file(&made->places.p[i], opts);
	made->n_asked = before;
	return rc;
}

/* The strings end with the handle. A frame without any name says nothing. */
static int keep_frame(struct made_names *made, struct arena *arena, const struct cairn_frame *f)
{
	struct cairn_frame own = {.line = f->line};

	if (!f->function && !f->name)
		return 0;
	own.function = f->function ? arena_strdup(arena, f->function) : NULL;
	own.name = f->name ? arena_strdup(arena, f->name) : NULL;
	own.file = f->file ? arena_strdup(arena, f->file) : NULL;
	if ((f->function && !own.function) || (f->name && !own.name) || (f->file && !own.file) ||
	    !VEC_ADD(&made->frames, own))
		return -ENOMEM;
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int keep_range(struct made_place *place, struct arena *arena,
		      const struct cairn_code_range *range)
{
	if (!range)
		return 0;
	place->lo = range->lo.v;
	place->hi = range->hi.v;
	place->is_file = range->source == CAIRN_CODE_FILE || range->source == CAIRN_CODE_VDSO;
	if (!range->owner || !*range->owner)
		return 0;
	/* "FILE+0x1234" would be taken for an offset in the file. */
	place->owner = arena_printf(arena, place->is_file ? "[in %s]" : "%s",
				    place->is_file ? base_name(range->owner) : range->owner);
	return place->owner ? 0 : -ENOMEM;
}

/* Code of a JIT that is there no more has no name: what is there now is other code. */
static bool is_of_its_time(const struct made_place *place, const struct cairn_code_range *range)
{
	uint64_t epoch = place->at >> WALK_EPOCH_SHIFT & WALK_EPOCH_MASK;

	return !(place->at & WALK_MADE) ||
	       (range && (range->generation & WALK_EPOCH_MASK) == epoch);
}

/* @i is an index, as the vector of frames may move. -ETIMEDOUT: the handle is of no more use. */
static int name_place(struct made_names *made, size_t i, struct cairn_code *code,
		      struct arena *arena)
{
	struct made_place *place = &made->places.p[i];
	struct cairn_frame frames[CAIRN_FRAMES_MAX];
	struct cairn_addr at = {walk_unfiled_address(place->at)};
	const struct cairn_code_range *range = cairn_code_find(code, at, 0);
	int rc, n = is_of_its_time(place, range)
			    ? cairn_code_frames(code, at, frames, CAIRN_FRAMES_MAX, NULL, NULL)
			    : 0;

	if (n < 0)
		return n;
	rc = keep_range(place, arena, range);
	place->first = (uint32_t)made->frames.n;
	for (int k = 0; rc == 0 && k < n; k++)
		rc = keep_frame(made, arena, &frames[k]);
	if (rc < 0)
		return rc;
	place->n = (uint32_t)made->frames.n - place->first;
	place->is_named = place->n || place->is_file;
	return 0;
}

static bool is_wanted(const struct made_place *place, bool only_new)
{
	return !place->is_named && !(only_new && place->n_tried >= TRIES);
}

static bool has_wanted(const struct made_names *made, uint64_t last, bool only_new)
{
	for (; last; last = made->places.p[last - 1].next)
		if (is_wanted(&made->places.p[last - 1], only_new))
			return true;
	return false;
}

/* A process that has ended is not tried again and again. */
static void give_up(struct made_names *made, uint64_t last)
{
	for (; last; last = made->places.p[last - 1].next)
		made->places.p[last - 1].n_tried = TRIES;
}

/* All that are wanted, with a handle that may come to be of no more use. */
static int name_places(struct made_names *made, uint64_t last, bool only_new,
		       struct cairn_code *code, struct arena *arena)
{
	int rc = 0;

	for (; rc == 0 && last; last = made->places.p[last - 1].next) {
		struct made_place *place = &made->places.p[last - 1];

		if (!is_wanted(place, only_new))
			continue;
		place->n_tried += place->n_tried < TRIES;
		rc = name_place(made, last - 1, code, arena);
	}
	return rc;
}

int made_names_find(struct made_names *made, int pid, bool only_new, struct arena *arena)
{
	struct cairn_code *code;
	uint64_t last = 0;
	int rc;

	if (!map_get(&made->last_place, (uint64_t)pid, &last) || !has_wanted(made, last, only_new))
		return 0;
	/* Its main thread may have ended. */
	rc = cairn_code_open_pid(target_living_thread(pid), NULL, &code, NULL);
	if (rc < 0) {
		give_up(made, last);
		made->n_gone += rc != -ENOMEM && !only_new;
		return rc == -ENOMEM ? rc : 0;
	}
	rc = name_places(made, last, only_new, code, arena);
	cairn_code_close(code);
	return rc == -ENOMEM ? rc : 0;
}

const struct made_place *made_names_place(const struct made_names *made, int pid, uint64_t at)
{
	uint64_t key;
	int64_t i = find(made, pid, at, &key);

	return i < 0 ? NULL : &made->places.p[i];
}

void made_names_fini(struct made_names *made)
{
	VEC_FREE(&made->places);
	VEC_FREE(&made->frames);
	VEC_FREE(&made->pids);
	map_fini(&made->place_ids);
	map_fini(&made->last_place);
}

/* ---- locations ---- */

/* The range of an address, which is shown as it is: the offset is that of the range. */
static int mapping_of(struct naming *n, const struct made_place *place, uint32_t *ret,
		      struct cairn_err *err)
{
	struct cairn_profile_mapping m = {
		.limit = WALK_RAW_MASK, .path = "[anon]", .code = CAIRN_PROFILE_JIT};

	if (place && place->hi > place->lo) {
		m.start = m.offset = place->lo;
		m.limit = place->hi;
		m.path = place->owner ? place->owner : "[anon]";
		m.code = place->is_file ? CAIRN_PROFILE_USER : CAIRN_PROFILE_JIT;
	}
	return cairn_profile_add_mapping(n->p, &m, ret, err);
}

static int function_of(struct naming *n, const struct cairn_frame *f, uint32_t *ret,
		       struct cairn_err *err)
{
	struct cairn_profile_function function = {
		.name = shown_function(n->names, f->function, f->name),
		.linkage_name = f->function,
		.file = f->file};

	if (!function.name)
		return err_nomem(err, "a function's name");
	return cairn_profile_add_function(n->p, &function, ret, err);
}

int location_made(struct naming *n, const struct made_place *place, uint64_t at, uint32_t *ret,
		  struct cairn_err *err)
{
	struct cairn_profile_line lines[CAIRN_FRAMES_MAX];
	struct cairn_profile_location l = {.address = walk_unfiled_address(at), .lines = lines};
	int rc = mapping_of(n, place, &l.mapping, err);

	for (uint32_t i = 0; rc == 0 && place && i < place->n; i++) {
		const struct cairn_frame *f = &n->names->made.frames.p[place->first + i];

		rc = function_of(n, f, &lines[i].function, err);
		lines[i].line = f->line;
		l.n_lines++;
	}
	return rc < 0 ? rc : cairn_profile_add_location(n->p, &l, ret, err);
}
