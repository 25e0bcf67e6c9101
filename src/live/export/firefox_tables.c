/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of a profile in the processed format of the Firefox Profiler
 *
 * All threads share them: strings, libraries, functions, frames, and stacks as a tree. A frame is a
 * function at a location. firefox.c writes them.
 */
#include "export/firefox.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The kernel's image and modules are in the 2 GiB from here; addresses are counted from it. */
#define KERNEL_BASE UINT64_C(0xffffffff80000000)

/* The column of addresses has 32 bits and a sign where it is a typed array. */
#define ADDRESS_MAX INT32_MAX

static int no_memory(struct cairn_err *err)
{
	return err_nomem(err, "the tables of a Firefox profile");
}

/* ---- strings ---- */

int64_t firefox_string(struct firefox *f, const char *text)
{
	uint64_t hash = map_hash_str(text), at;
	const char *own;

	for (; map_get(&f->string_ids, hash, &at); hash++)
		if (!strcmp(f->strings.p[at], text))
			return (int64_t)at;
	own = arena_strdup(&f->arena, text);
	if (!own || !VEC_ADD(&f->strings, own) ||
	    map_put(&f->string_ids, hash, f->strings.n - 1) < 0)
		return -ENOMEM;
	return (int64_t)f->strings.n - 1;
}

/* ---- tables of rows ---- */

/*
 * The number of a row of a table, which is added when it is new. Rows are numbers, so that equal
 * ones have equal bytes.
 */
static int64_t row_of(struct firefox_table *t, const void *row)
{
	uint64_t hash = map_hash_bytes(row, t->size), at;
	char *own;

	for (; map_get(&t->ids, hash, &at); hash++)
		if (!memcmp(t->rows + at * t->size, row, t->size))
			return (int64_t)at;
	if (t->n >= INT32_MAX)
		return -ERANGE;
	own = vec_push_bytes((void **)&t->rows, &t->n, &t->cap, t->size);
	if (!own || map_put(&t->ids, hash, t->n - 1) < 0)
		return -ENOMEM;
	memcpy(own, row, t->size);
	return (int64_t)t->n - 1;
}

/* ---- libraries ---- */

static bool is_file(const struct cairn_profile_mapping *m)
{
	return *m->path && m->code != CAIRN_PROFILE_JIT;
}

/* FIREFOX_NONE: code that no file has. */
static int64_t lib_of(struct firefox *f, const struct cairn_profile_location *l)
{
	const struct cairn_profile_mapping *m = cairn_profile_mapping(f->p, l->mapping);
	struct firefox_lib lib;

	if (!m || !is_file(m))
		return FIREFOX_NONE;
	lib.path = firefox_string(f, m->path);
	lib.build_id = lib.path < 0 ? lib.path : firefox_string(f, m->build_id);
	return lib.build_id < 0 ? lib.build_id : row_of(&f->libs, &lib);
}

/* From the library's beginning, or of the kernel's part of the memory; FIREFOX_NONE. */
static int64_t in_lib(const struct firefox *f, const struct cairn_profile_location *l, uint64_t at)
{
	const struct cairn_profile_mapping *m = cairn_profile_mapping(f->p, l->mapping);
	uint64_t offset;

	if (!m || !is_file(m))
		return FIREFOX_NONE;
	if (m->code == CAIRN_PROFILE_KERNEL)
		offset = at >= KERNEL_BASE ? at - KERNEL_BASE : UINT64_MAX;
	else
		offset = at - m->start + m->offset;
	return offset <= ADDRESS_MAX ? (int64_t)offset : FIREFOX_NONE;
}

static int64_t symbol_of(struct firefox *f, const struct cairn_profile_location *l, int64_t lib,
			 const char *name)
{
	struct firefox_symbol s = {.lib = lib};

	s.address = l->symbol ? in_lib(f, l, l->symbol) : FIREFOX_NONE;
	if (lib < 0 || s.address < 0)
		return FIREFOX_NULL;
	s.name = firefox_string(f, name);
	return s.name < 0 ? s.name : row_of(&f->symbols, &s);
}

/* ---- functions and frames ---- */

static int64_t source_of(struct firefox *f, const char *file)
{
	struct firefox_source s;

	if (!*file)
		return FIREFOX_NULL;
	s.file = firefox_string(f, file);
	return s.file < 0 ? s.file : row_of(&f->sources, &s);
}

static int64_t function_of(struct firefox *f, const struct cairn_profile_function *function,
			   int64_t lib)
{
	struct firefox_function row = {.resource = lib};

	row.name = firefox_string(f, function->name);
	row.source = row.name < 0 ? row.name : source_of(f, function->file);
	row.line = function->line ? (int64_t)function->line : FIREFOX_NULL;
	return row.source < 0 && row.source != FIREFOX_NULL ? row.source
							    : row_of(&f->functions, &row);
}

static int64_t category_of(const struct firefox *f, const struct cairn_profile_location *l)
{
	switch (profile_code(f->p, l)) {
	case CAIRN_PROFILE_KERNEL:
		return FIREFOX_KERNEL;
	case CAIRN_PROFILE_JIT:
		return FIREFOX_JIT;
	case CAIRN_PROFILE_USER:
		return FIREFOX_USER;
	}
	return FIREFOX_OTHER;
}

/* Adds a frame to those of the location. @depth: how often it is inlined. */
static int add_frame(struct firefox *f, const struct cairn_profile_location *l,
		     const struct firefox_frame *of, const struct cairn_profile_function *function,
		     int64_t depth, uint32_t line)
{
	struct firefox_frame frame = *of;
	int64_t number;

	frame.depth = depth;
	frame.subcategory = depth ? FIREFOX_INLINED : FIREFOX_ANY;
	frame.line = line ? (int64_t)line : FIREFOX_NULL;
	frame.function = function_of(f, function, frame.lib);
	if (frame.function < 0)
		return (int)frame.function;
	number = row_of(&f->frames, &frame);
	if (number < 0)
		return (int)number;
	return VEC_ADD(&f->location_frames, (uint32_t)number) ? 0 : -ENOMEM;
}

/* A location that no function is known of. */
static int add_unknown(struct firefox *f, const struct cairn_profile_location *l,
		       const struct firefox_frame *frame)
{
	char *name = profile_unknown_name(f->p, l);
	struct cairn_profile_function function = {.name = name, .file = ""};
	int rc = name ? add_frame(f, l, frame, &function, 0, 0) : -ENOMEM;

	free(name);
	return rc;
}

/* A frame that says why a stack was cut is no code. */
static bool is_no_code(const struct cairn_profile_location *l,
		       const struct cairn_profile_function *function)
{
	return !l->mapping && !l->address && function->name[0] == '[';
}

/* The frames of a location, the outermost first. */
static int add_frames(struct firefox *f, const struct cairn_profile_location *l)
{
	struct firefox_frame frame = {.lib = lib_of(f, l), .category = category_of(f, l)};
	const struct cairn_profile_function *function;
	int rc = 0;

	if (frame.lib == -ENOMEM || frame.lib == -ERANGE)
		return (int)frame.lib;
	frame.address = in_lib(f, l, l->address);
	frame.symbol = FIREFOX_NULL;
	if (!l->n_lines)
		return add_unknown(f, l, &frame);
	function = cairn_profile_function(f->p, l->lines[l->n_lines - 1].function);
	if (is_no_code(l, function))
		frame.category = FIREFOX_OTHER;
	frame.symbol = symbol_of(f, l, frame.lib,
				 *function->linkage_name ? function->linkage_name : function->name);
	if (frame.symbol < 0 && frame.symbol != FIREFOX_NULL)
		return (int)frame.symbol;
	for (size_t i = l->n_lines; rc == 0 && i-- > 0;) {
		function = cairn_profile_function(f->p, l->lines[i].function);
		rc = add_frame(f, l, &frame, function, (int64_t)(l->n_lines - 1 - i),
			       l->lines[i].line);
	}
	return rc;
}

/* ---- stacks ---- */

static int frames_of(struct firefox *f, uint32_t location, const struct firefox_frames **ret)
{
	struct firefox_frames *frames = &f->locations[location];
	int rc = 0;

	if (!frames->n) {
		frames->first = (uint32_t)f->location_frames.n;
		rc = add_frames(f, cairn_profile_location(f->p, location));
		frames->n = (uint32_t)f->location_frames.n - frames->first;
	}
	*ret = frames;
	return rc;
}

/* The stack of a frame that @parent calls; FIREFOX_NONE is no parent. */
static int64_t stack_of_frame(struct firefox *f, int64_t parent, int64_t frame)
{
	struct firefox_stack row = {.parent = parent, .frame = frame};

	return row_of(&f->stacks, &row);
}

/* As the folded stacks have it: the sample is not lost. */
static int64_t no_stack(struct firefox *f)
{
	static const struct cairn_profile_function none = {.name = "[no stack]", .file = ""};
	static const struct cairn_profile_location nowhere;
	struct firefox_frame frame = {.address = FIREFOX_NONE,
				      .lib = FIREFOX_NONE,
				      .category = FIREFOX_OTHER,
				      .symbol = FIREFOX_NULL};
	int rc = add_frame(f, &nowhere, &frame, &none, 0, 0);

	return rc < 0 ? rc
		      : stack_of_frame(f, FIREFOX_NONE,
				       f->location_frames.p[f->location_frames.n - 1]);
}

static int64_t stack_of(struct firefox *f, const struct cairn_profile_sample *s)
{
	int64_t stack = FIREFOX_NONE;

	for (size_t i = s->n_stack; i-- > 0;) {
		const struct firefox_frames *frames;
		int rc = frames_of(f, s->stack[i], &frames);

		if (rc < 0)
			return rc;
		for (uint32_t k = 0; k < frames->n; k++) {
			stack = stack_of_frame(f, stack, f->location_frames.p[frames->first + k]);
			if (stack < 0)
				return stack;
		}
	}
	return s->n_stack ? stack : no_stack(f);
}

/* ---- threads ---- */

static int64_t thread_of(struct firefox *f, const struct profile_owner *owner)
{
	uint64_t numbers[] = {(uint64_t)owner->pid, (uint64_t)owner->tid};
	uint64_t hash = map_hash_bytes(numbers, sizeof(numbers)), at;
	struct firefox_thread *t;

	for (; map_get(&f->thread_ids, hash, &at); hash++)
		if (f->threads.p[at].pid == owner->pid && f->threads.p[at].tid == owner->tid) {
			if (*owner->thread)
				f->threads.p[at].name = owner->thread;
			return (int64_t)at;
		}
	t = VEC_PUSH(&f->threads);
	if (!t || map_put(&f->thread_ids, hash, f->threads.n - 1) < 0)
		return -ENOMEM;
	*t = (struct firefox_thread){.pid = owner->pid, .tid = owner->tid, .name = owner->thread};
	return (int64_t)f->threads.n - 1;
}

static int add_samples(struct firefox *f)
{
	for (size_t i = 0; i < cairn_profile_n_samples(f->p); i++) {
		struct cairn_profile_sample s = cairn_profile_sample(f->p, i);
		struct profile_owner owner = profile_owner(&s);
		int64_t thread = thread_of(f, &owner), stack = stack_of(f, &s);

		if (thread < 0 || stack < 0)
			return (int)(thread < 0 ? thread : stack);
		f->samples[i] = (struct firefox_sample){(uint32_t)thread, (uint32_t)stack};
	}
	return 0;
}

/* The records of each thread stay in order, by time. */
static int share_out(struct firefox *f)
{
	struct cairn_profile_sample none = {0};
	struct profile_owner nobody = profile_owner(&none);

	for (size_t i = 0; i < f->records.n; i++) {
		struct profile_record *r = &f->records.list[i];

		if (!VEC_ADD(&f->threads.p[f->samples[r->sample].thread].records, r))
			return -ENOMEM;
	}
	/* The Firefox Profiler shows no profile without a thread. */
	return f->threads.n || thread_of(f, &nobody) >= 0 ? 0 : -ENOMEM;
}

/* The main thread of a process first. */
static int by_process(const void *a, const void *b)
{
	const struct firefox_thread *x = a, *y = b;
	bool x_is_main = x->tid == x->pid, y_is_main = y->tid == y->pid;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x_is_main != y_is_main)
		return x_is_main ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* ---- the whole ---- */

int firefox_tables_make(struct firefox *f, const struct cairn_profile *p, size_t type,
			struct cairn_err *err)
{
	size_t n = cairn_profile_n_samples(p);
	int rc;

	*f = (struct firefox){.p = p,
			      .type = type,
			      .libs.size = sizeof(struct firefox_lib),
			      .sources.size = sizeof(struct firefox_source),
			      .functions.size = sizeof(struct firefox_function),
			      .symbols.size = sizeof(struct firefox_symbol),
			      .frames.size = sizeof(struct firefox_frame),
			      .stacks.size = sizeof(struct firefox_stack)};
	f->locations = calloc((size_t)cairn_profile_n_locations(f->p) + 1, sizeof(*f->locations));
	f->samples = calloc(n + 1, sizeof(*f->samples));
	if (!f->locations || !f->samples)
		return no_memory(err);
	rc = profile_records(f->p, type, &f->records, err);
	if (rc < 0)
		return rc;
	rc = add_samples(f);
	rc = rc < 0 ? rc : share_out(f);
	if (rc == -ERANGE)
		return err_set(err, rc, "a Firefox profile may have at most 2^31 frames or stacks");
	if (rc < 0)
		return no_memory(err);
	qsort(f->threads.p, f->threads.n, sizeof(*f->threads.p), by_process);
	return 0;
}

static void table_fini(struct firefox_table *t)
{
	free(t->rows);
	map_fini(&t->ids);
}

void firefox_tables_fini(struct firefox *f)
{
	for (size_t i = 0; i < f->threads.n; i++)
		VEC_FREE(&f->threads.p[i].records);
	VEC_FREE(&f->threads);
	map_fini(&f->thread_ids);
	table_fini(&f->libs);
	table_fini(&f->sources);
	table_fini(&f->functions);
	table_fini(&f->symbols);
	table_fini(&f->frames);
	table_fini(&f->stacks);
	VEC_FREE(&f->location_frames);
	VEC_FREE(&f->strings);
	map_fini(&f->string_ids);
	free(f->locations);
	free(f->samples);
	free(f->records.list);
	arena_fini(&f->arena);
}
