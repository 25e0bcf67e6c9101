/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks and counts become samples; each different frame becomes a location once. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "prof/name_impl.h"
#include "prof/probes.h"

/* In of_frame: a frame whose name depends on the process. */
#define OF_PROCESS UINT32_MAX

/* ---- what is kept ---- */

int prof_names_new(const struct prof_names_opts *opts, struct prof_names **ret,
		   struct cairn_err *err)
{
	struct prof_names *names = calloc(1, sizeof(*names));

	*ret = names;
	if (!names)
		return err_nomem(err, "the names of a profile");
	names->opts = opts;
	return 0;
}

void prof_names_end(struct prof_names *names)
{
	kernel_names_await(names);
	kernel_names_fini(&names->kernel);
	made_names_fini(&names->made);
	names->kernel = (struct kernel_names){0};
	names->made = (struct made_names){0};
}

void prof_names_free(struct prof_names *names)
{
	if (!names)
		return;
	prof_names_end(names);
	VEC_FREE(&names->notes);
	free(names->shown);
	arena_fini(&names->arena);
	free(names);
}

void prof_names_read_ahead(struct prof_names *names, const struct prof_samples *samples)
{
	for (size_t i = 0; i < samples->stacks.n; i++)
		if (samples->stacks.p[i].n_kernel) {
			kernel_names_begin(names);
			return;
		}
}

int prof_names_of_process(struct prof_names *names, const struct prof_samples *samples, int pid,
			  struct cairn_err *err)
{
	struct made_names *made = &names->made;
	int rc = made_names_collect(made, samples, names->opts);

	if (rc == 0 && pid)
		rc = made_names_find(made, pid, false, &names->arena);
	for (size_t i = 0; rc == 0 && !pid && i < made->pids.n; i++)
		rc = made_names_find(made, made->pids.p[i], false, &names->arena);
	return rc < 0 ? err_nomem(err, "the names of code made at run time") : 0;
}

int prof_names_of_new_addresses(struct prof_names *names, const struct prof_samples *samples,
				struct cairn_err *err)
{
	struct made_names *made = &names->made;
	int rc = made_names_collect(made, samples, names->opts);

	for (size_t i = 0; rc == 0 && i < made->pids.n; i++)
		rc = made_names_find(made, made->pids.p[i], true, &names->arena);
	return rc < 0 ? err_nomem(err, "the names of code made at run time") : 0;
}

struct prof_values prof_values_of(enum cairn_prof_event event, unsigned int hz)
{
	static const struct cairn_profile_type samples = {"samples", "count"};
	static const struct cairn_profile_type cpu = {"cpu", "nanoseconds"};
	static const struct cairn_profile_type faults = {"page-faults", "count"};
	static const struct cairn_profile_type off_cpu = {"off-cpu", "nanoseconds"};
	struct prof_values v = {.types = {samples, cpu}, .n_types = 2, .each = 1};

	if (event == CAIRN_PROF_PAGE_FAULTS) {
		v.types[0] = faults;
		v.n_types = 1;
	} else if (event == CAIRN_PROF_OFF_CPU) {
		v.types[1] = off_cpu;
		v.at_tracepoint = true;
	} else if (hz) {
		v.each = (1000000000 + hz / 2) / hz;
	}
	v.run.each = v.types[v.n_types - 1];
	v.run.period = v.each;
	return v;
}

const char *prof_names_note(const struct prof_names *names, size_t i)
{
	return i < names->notes.n ? names->notes.p[i] : NULL;
}

/* ---- locations ---- */

/* One that depends on the frame alone. */
static int location_of(struct naming *n, uint64_t frame, uint32_t *ret, struct cairn_err *err)
{
	uint64_t id;
	int rc;

	if (!(frame & WALK_KERNEL))
		frame &= ~WALK_ASSUMED;
	if (map_get(&n->location_ids, frame, &id)) {
		*ret = (uint32_t)id;
		return 0;
	}
	if (frame & WALK_KERNEL)
		rc = location_in_kernel(n, frame, ret, err);
	else
		rc = location_in_file(n, frame, NULL, ret, err);
	if (rc == 0 && map_put(&n->location_ids, frame, *ret) < 0)
		rc = err_nomem(err, "a location");
	return rc;
}

/* The names of a site; NULL: out of memory. */
static struct site_location *kept_at(struct naming *n, uint32_t number)
{
	while (n->at_sites.n <= number)
		if (!VEC_PUSH(&n->at_sites))
			return NULL;
	return &n->at_sites.p[number];
}

static int location_at_site(struct naming *n, uint64_t frame, uint32_t number, uint32_t *ret,
			    struct cairn_err *err)
{
	const struct cairn_trace_site *site = cairn_trace_site(n->probes, number);
	struct site_location *kept;
	struct name_site s;
	int rc;

	frame &= ~WALK_ASSUMED;
	if (!site)
		return location_of(n, frame, ret, err);
	kept = kept_at(n, number);
	if (!kept)
		return err_nomem(err, "the names of sites");
	*ret = kept->location - 1;
	if (kept->location && kept->frame == frame)
		return 0;
	s = (struct name_site){.function = cairn_trace_probe(n->probes, site->probe)->function,
			       .site = site->site,
			       .probed = site->at};
	rc = location_in_file(n, frame, &s, ret, err);
	if (rc == 0)
		*kept = (struct site_location){frame, *ret + 1};
	return rc;
}

/* The names of frame @i of the samples', which is in a file. The user's first one may be at a site. */
static int location_in_stack(struct naming *n, const struct prof_stack *s, size_t i, uint64_t frame,
			     uint32_t *ret, struct cairn_err *err)
{
	return n->probes && i == s->first + s->n_kernel
		       ? location_at_site(n, frame, s->site, ret, err)
		       : location_of(n, frame, ret, err);
}

/* One that was in no known file when it was sampled. */
static int location_of_address(struct naming *n, const struct prof_stack *s, size_t i, int pid,
			       uint32_t *ret, struct cairn_err *err)
{
	uint64_t at = walk_unfiled(n->samples->frames.p[i]);
	const struct made_place *place = made_names_place(&n->names->made, pid, at);

	return place && place->frame ? location_in_stack(n, s, i, place->frame, ret, err)
				     : location_made(n, place, at, ret, err);
}

/* The locations of a stack's frames, in of_frame. */
static int name_stack(struct naming *n, const struct prof_stack *s, struct cairn_err *err)
{
	int rc = 0;

	for (size_t i = s->first; rc == 0 && i < s->first + s->n; i++) {
		uint64_t frame = n->samples->frames.p[i];
		uint32_t location;

		if (!(frame & WALK_KERNEL) && frame & WALK_RAW) {
			n->of_frame[i] = OF_PROCESS;
			continue;
		}
		rc = location_in_stack(n, s, i, frame, &location, err);
		n->of_frame[i] = location + 1;
	}
	return rc;
}

static int name_stacks(struct naming *n, struct cairn_err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n->samples->stacks.n; i++)
		rc = name_stack(n, &n->samples->stacks.p[i], err);
	return rc;
}

/* ---- ends ---- */

static const char *const end_ids[CAIRN_PROF_N_ENDS] = {
	[CAIRN_PROF_COMPLETE] = "complete",
	[CAIRN_PROF_ASSUMED] = "assumed",
	[CAIRN_PROF_NO_USER] = "kernel-thread",
	[CAIRN_PROF_NO_PROCESS] = "no-process",
	[CAIRN_PROF_NO_MAPPING] = "no-mapping",
	[CAIRN_PROF_NOT_READY] = "not-ready",
	[CAIRN_PROF_UNDESCRIBED] = "undescribed",
	[CAIRN_PROF_UNREADABLE] = "unreadable",
	[CAIRN_PROF_LOST] = "lost",
	[CAIRN_PROF_LOOP] = "loop",
	[CAIRN_PROF_LIMIT] = "limit",
	[CAIRN_PROF_READS] = "reads",
};

const char *cairn_prof_end_id(enum cairn_prof_end end)
{
	return (unsigned int)end < CAIRN_PROF_N_ENDS ? end_ids[end] : "unknown";
}

static bool is_cut(unsigned int end)
{
	return end != CAIRN_PROF_COMPLETE && end != CAIRN_PROF_ASSUMED &&
	       end != CAIRN_PROF_NO_USER && end < CAIRN_PROF_N_ENDS;
}

/* The frame that says why a stack is not complete. */
static int cut_location(struct naming *n, unsigned int end, uint32_t *ret, struct cairn_err *err)
{
	struct cairn_profile_line line = {0};
	struct cairn_profile_location l = {.lines = &line, .n_lines = 1};
	struct cairn_profile_function f = {0};
	char name[40];
	int rc;

	if (n->cuts[end]) {
		*ret = n->cuts[end] - 1;
		return 0;
	}
	snprintf(name, sizeof(name), "[cut: %s]", end_ids[end]);
	f.name = name;
	rc = cairn_profile_add_function(n->p, &f, &line.function, err);
	if (rc == 0)
		rc = cairn_profile_add_location(n->p, &l, ret, err);
	if (rc == 0)
		n->cuts[end] = *ret + 1;
	return rc;
}

/* ---- samples ---- */

static int push(struct naming *n, uint32_t location, struct cairn_err *err)
{
	return VEC_ADD(&n->stack, location) ? 0 : err_nomem(err, "a stack");
}

static int make_stack(struct naming *n, const struct prof_stack *s, int pid, struct cairn_err *err)
{
	uint32_t location;
	size_t skip = 0;
	int rc = 0;

	n->stack.n = 0;
	if (n->at_tracepoint)
		skip = kernel_names_skip(&n->names->kernel, n->samples->frames.p + s->first,
					 s->n_kernel);
	for (size_t i = s->first + skip; rc == 0 && i < s->first + s->n; i++) {
		location = n->of_frame[i] - 1;
		if (n->of_frame[i] == OF_PROCESS)
			rc = location_of_address(n, s, i, pid, &location, err);
		if (rc == 0)
			rc = push(n, location, err);
	}
	if (rc == 0 && is_cut(s->end)) {
		rc = cut_location(n, s->end, &location, err);
		if (rc == 0)
			rc = push(n, location, err);
	}
	return rc;
}

static int add_count(struct naming *n, const struct prof_count *c, const struct prof_values *v,
		     struct cairn_err *err)
{
	const struct prof_stack *s = &n->samples->stacks.p[c->stack];
	char comm[sizeof(c->comm) + 1] = {0};
	struct cairn_profile_label labels[5] = {{.key = "pid", .number = c->pid},
						{.key = "tid", .number = c->tid},
						{.key = "thread", .text = comm}};
	const char *unavailable = probes_reason(n->probes, s->site, c->state);
	int64_t values[2] = {(int64_t)c->n};
	struct cairn_profile_sample sample = {.values = values, .labels = labels, .n_labels = 3};
	int rc = make_stack(n, s, (int)c->pid, err);

	if (rc < 0)
		return rc;
	memcpy(comm, c->comm, sizeof(c->comm));
	if (s->end != CAIRN_PROF_COMPLETE && s->end != CAIRN_PROF_NO_USER)
		labels[sample.n_labels++] = (struct cairn_profile_label){
			.key = "end", .text = cairn_prof_end_id(s->end)};
	if (unavailable)
		labels[sample.n_labels++] =
			(struct cairn_profile_label){.key = "unavailable", .text = unavailable};
	if (c->weight > INT64_MAX ||
	    __builtin_mul_overflow((int64_t)c->weight, v->each, &values[v->n_types - 1]))
		return err_set(err, -ERANGE, "a sum of a profile's values exceeds 64 bits");
	sample.stack = n->stack.p;
	sample.n_stack = n->stack.n;
	return cairn_profile_add_sample(n->p, &sample, err);
}

static int add_moment(struct naming *n, const struct prof_moment *m, const struct prof_values *v,
		      struct cairn_err *err)
{
	int64_t values[2] = {1};
	struct cairn_profile_moment moment = {
		.time_ns = (int64_t)(m->time_ns - v->started_ns), .cpu = m->cpu, .values = values};

	/* The sum of all was seen not to overflow. */
	values[v->n_types - 1] = (int64_t)m->weight * v->each;
	return cairn_profile_add_moment(n->p, &moment, err);
}

static int by_count(const void *a, const void *b)
{
	const struct prof_moment *const *x = a, *const *y = b;

	if ((*x)->count != (*y)->count)
		return (*x)->count < (*y)->count ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

/* All moments, those of one count together. NULL: out of memory. */
static const struct prof_moment **moments_by_count(const struct prof_samples *s)
{
	const struct prof_moment **order = calloc(s->moments.n + 1, sizeof(*order));

	for (size_t i = 0; order && i < s->moments.n; i++)
		order[i] = &s->moments.p[i];
	if (order)
		qsort(order, s->moments.n, sizeof(*order), by_count);
	return order;
}

static int add_counts(struct naming *n, const struct prof_values *values, struct cairn_err *err)
{
	const struct prof_samples *s = n->samples;
	const struct prof_moment **moments = moments_by_count(s);
	size_t at = 0;
	int rc = moments ? 0 : err_nomem(err, "the moments of a profile");

	for (size_t i = 0; rc == 0 && i < s->counts.n; i++) {
		rc = add_count(n, &s->counts.p[i], values, err);
		for (; rc == 0 && at < s->moments.n && moments[at]->count == i; at++)
			rc = add_moment(n, moments[at], values, err);
	}
	free(moments);
	return rc;
}

static int note_moments(struct naming *n)
{
	char text[120];

	if (!n->samples->n_without_moment)
		return 0;
	snprintf(text, sizeof(text),
		 "%" PRIu64 " samples after the first %zu are in the profile without their times",
		 n->samples->n_without_moment, PROF_MOMENTS_MAX);
	return prof_names_add_note(n->names, text);
}

static int note_gone(struct prof_names *names)
{
	char text[120];

	if (!names->made.n_gone)
		return 0;
	snprintf(text, sizeof(text),
		 "%zu process%s had ended, or could not be read, before all addresses outside of "
		 "known files had names",
		 names->made.n_gone, names->made.n_gone == 1 ? "" : "es");
	return prof_names_add_note(names, text);
}

static int make_profile(struct naming *n, const struct prof_values *values, struct cairn_err *err)
{
	int rc = cairn_profile_new(values->types, values->n_types, &n->p, err);

	n->named = calloc(n->n_files + 1, sizeof(*n->named));
	n->of_frame = calloc(n->samples->frames.n + 1, sizeof(*n->of_frame));
	if (rc == 0 && (!n->named || !n->of_frame))
		rc = err_nomem(err, "the names of a profile");
	if (rc == 0)
		rc = map_program(n, err);
	if (rc == 0)
		rc = name_stacks(n, err);
	if (rc == 0)
		rc = add_counts(n, values, err);
	if (rc == 0)
		rc = cairn_profile_set_run(n->p, &values->run, err);
	if (rc == 0 && (note_gone(n->names) < 0 || note_moments(n) < 0))
		rc = err_nomem(err, "a note");
	return rc;
}

int prof_names_profile(struct prof_names *names, const struct prof_samples *samples,
		       struct walk_file *const *files, size_t n_files,
		       const struct prof_values *values, struct cairn_profile **ret,
		       struct cairn_err *err)
{
	struct naming n = {.names = names,
			   .at_tracepoint = values->at_tracepoint,
			   .probes = values->probes,
			   .samples = samples,
			   .files = files,
			   .n_files = n_files};
	int rc = prof_names_of_process(names, samples, 0, err);

	if (rc == 0)
		rc = make_profile(&n, values, err);
	naming_files_fini(&n);
	map_fini(&n.location_ids);
	free(n.of_frame);
	VEC_FREE(&n.stack);
	VEC_FREE(&n.at_sites);
	if (rc < 0) {
		cairn_profile_close(n.p);
		n.p = NULL;
	}
	*ret = n.p;
	return rc;
}
