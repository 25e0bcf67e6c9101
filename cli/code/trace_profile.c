/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows by $stack as a profile: -o NAME.html, NAME.folded, NAME.pb.gz
 *
 * A row is a sample with its stack; its values are the hits and the first sum. Hits of keys that
 * found no room, and of stacks that were lost, have one frame that says so.
 */
#include "trace_profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/profile.h>
#include <cairn/text.h>

#include "demangled.h"
#include "profile.h"
#include "stack.h"
#include "trace_sample.h"
#include "trace_stack.h"

enum {
	NAME_MAX_BYTES = 1024,
	/* A frame may be a stack's last one, and say why. */
	FRAMES_MAX = 1024 + 1,
	NO_SUM = -1,
	TITLE_MAX = 160,
};
#define ADDRESS_LIMIT (UINT64_C(1) << 57)
/* The kernel's half of the addresses begins here. */
#define KERNEL_HALF   (UINT64_C(1) << 63)

struct making {
	const struct session *session;
	struct cairn_profile *p;
	int sum; /* number of the aggregate; NO_SUM */
	uint32_t stack[FRAMES_MAX];
	struct cairn_err err;
};

bool trace_profile_is_name(const char *name)
{
	return profile_name_ends(name, ".html") || profile_name_ends(name, ".folded") ||
	       profile_name_ends(name, ".pb.gz");
}

static int add_function(struct making *m, const struct cairn_frame *f, uint32_t *ret)
{
	const char *name = demangled_or(f->function, f->name);
	const struct cairn_profile_function function = {
		.name = name ? name : "?", .linkage_name = f->function, .file = f->file};

	return cairn_profile_add_function(m->p, &function, ret, &m->err);
}

static bool is_of_kernel(const struct cairn_stack_frame *frame)
{
	return frame->at.v & KERNEL_HALF;
}

/* An address in it is shown as it is. */
static int add_kernel_mapping(struct making *m, const struct cairn_stack_frame *frame,
			      uint32_t *ret)
{
	const struct cairn_profile_mapping mapping = {.start = KERNEL_HALF,
						      .limit = UINT64_MAX,
						      .offset = KERNEL_HALF,
						      .path = frame->path,
						      .code = CAIRN_PROFILE_KERNEL};

	return cairn_profile_add_mapping(m->p, &mapping, ret, &m->err);
}

static int add_mapping(struct making *m, const struct cairn_stack_frame *frame, uint32_t *ret)
{
	if (is_of_kernel(frame))
		return add_kernel_mapping(m, frame, ret);
	const char *owner = frame->code && frame->code->owner ? frame->code->owner : "[anon]";
	const struct cairn_profile_mapping mapping = {
		.limit = ADDRESS_LIMIT,
		.path = frame->path ? frame->path : owner,
		.code = frame->path ? CAIRN_PROFILE_USER : CAIRN_PROFILE_JIT,
		.is_linked = frame->path,
	};

	return cairn_profile_add_mapping(m->p, &mapping, ret, &m->err);
}

static int add_frame(struct making *m, const struct cairn_stack_frame *frame, uint32_t *ret)
{
	struct cairn_profile_line lines[CAIRN_FRAMES_MAX] = {0};
	struct cairn_profile_location location = {
		.address = frame->path && !is_of_kernel(frame) ? frame->vaddr.v : frame->at.v,
		.lines = lines};
	struct stack_place place;
	int r = add_mapping(m, frame, &location.mapping);

	stack_names_find(m->session->names, frame, &place);
	for (size_t i = 0; i < place.n && r == 0; i++) {
		r = add_function(m, &place.functions[i], &lines[i].function);
		lines[i].line = place.functions[i].line;
	}
	location.n_lines = place.n;
	return r < 0 ? r : cairn_profile_add_location(m->p, &location, ret, &m->err);
}

/* A frame that is only words. */
static int add_words(struct making *m, const char *words, uint32_t *ret)
{
	const struct cairn_frame f = {.name = words};
	struct cairn_profile_line line = {0};
	struct cairn_profile_location location = {.lines = &line, .n_lines = 1};
	int r = add_function(m, &f, &line.function);

	return r < 0 ? r : cairn_profile_add_location(m->p, &location, ret, &m->err);
}

/* Its locations; returns their number, or an error. */
static int add_stack(struct making *m, const struct cairn_aggregate_row *row,
		     const struct cairn_thread_stack *stack)
{
	bool is_whole =
		stack && (stack->end == CAIRN_WALK_OUTERMOST || stack->end == CAIRN_WALK_ASSUMED);
	char words[NAME_MAX_BYTES];
	size_t n = 0;
	int r = 0;

	if (stack)
		trace_stack_begin_at(m->session, row, stack);
	for (; stack && n < stack->n_frames && n + 1 < FRAMES_MAX && r == 0; n++)
		r = add_frame(m, stack->frames[n], &m->stack[n]);
	m->session->names->at_site = NULL;
	if (r < 0 || is_whole)
		return r < 0 ? r : (int)n;
	snprintf(words, sizeof(words), stack ? "[cut: %s]" : "[others]",
		 stack ? stack_end_id(stack->end) : "");
	r = add_words(m, words, &m->stack[n]);
	return r < 0 ? r : (int)n + 1;
}

static int value_of(struct making *m, const struct cairn_aggregate_value *v, int64_t *ret)
{
	*ret = (int64_t)v->number.low;
	if (v->is_known && !v->number.is_negative && !v->number.high && *ret >= 0)
		return 0;
	m->err = (struct cairn_err){0};
	snprintf(m->err.msg, sizeof(m->err.msg),
		 "a sum that is negative, not known, or more than 63 bits has no place in a "
		 "profile");
	return -ERANGE;
}

static int add_row(struct making *m, const struct cairn_aggregate_row *row)
{
	const struct cairn_thread_stack *stack = trace_stack_of_row(m->session, row);
	int64_t values[2] = {(int64_t)row->hits};
	struct cairn_profile_sample sample = {.stack = m->stack, .values = values};
	int r = m->sum == NO_SUM ? 0 : value_of(m, &row->values[m->sum], &values[1]);

	if (r == 0)
		r = add_stack(m, row, stack);
	if (r < 0)
		return r;
	sample.n_stack = (size_t)r;
	return cairn_profile_add_sample(m->p, &sample, &m->err);
}

/* With the share of the hits that were taken. */
static void title_of(const struct session *session, char *ret, size_t size)
{
	int n = snprintf(ret, size, "cairn trace");

	if (session->sample > 1) {
		n += snprintf(ret + n, size - (size_t)n, ", ");
		trace_sample_text(session, ret + n, size - (size_t)n);
	}
}

static int note_losses(struct making *m)
{
	struct cairn_trace_stats stats = {.size = sizeof(stats)};
	char text[NAME_MAX_BYTES];

	if (cairn_trace_stats(m->session->trace, &stats, NULL, NULL) < 0 ||
	    !(stats.total.lost + stats.missed))
		return 0;
	snprintf(text, sizeof(text), "%s lost",
		 cairn_counted(stats.total.lost + stats.missed, "hit").text);
	return cairn_profile_add_comment(m->p, text, &m->err);
}

/* One hit in so many is a profile's period, if it was the same all the time. */
static int set_period(struct making *m)
{
	const struct cairn_profile_run run = {.each = {"hits", "count"},
					      .period = m->session->sample};

	if (m->session->sample <= 1 || m->session->sampled_since_ns)
		return 0;
	return cairn_profile_set_run(m->p, &run, &m->err);
}

int trace_profile_write(const struct session *session, const struct cairn_aggregates *table,
			int sum, const char *name)
{
	const char *out[] = {name};
	const struct opt_list list = {.items = out, .n = 1};
	const char *text =
		sum == NO_SUM ? NULL : cairn_trace_aggregate_text(session->trace, (uint32_t)sum);
	const struct cairn_profile_type types[] = {{"hits", "count"}, {text, "count"}};
	size_t n_types = text ? 2 : 1;
	struct making *m = calloc(1, sizeof(*m));
	char title[TITLE_MAX];
	int r = m ? 0 : -ENOMEM, status;

	if (!m)
		return fail(STATUS_NOT_HERE, "no memory");
	m->session = session;
	m->sum = sum;
	title_of(session, title, sizeof(title));
	r = cairn_profile_new(types, n_types, &m->p, &m->err);
	r = r < 0 ? r : set_period(m);
	r = r < 0 ? r : note_losses(m);
	for (size_t i = 0; i < table->n_rows && r == 0; i++)
		r = add_row(m, &table->rows[i]);
	status = r < 0 ? fail_err(r, &m->err, STATUS_USAGE)
		       : profile_write_all(m->p, n_types - 1, &list, title);
	cairn_profile_close(m->p);
	free(m);
	return status;
}
