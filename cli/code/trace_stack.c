/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks under events, as `cairn stack` prints them
 *
 * Frames are named when they are printed. The first frame of a file that has no sidecar has to wait
 * until one is made, and events wait in the ring.
 */
#include "trace_stack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "cmd.h"
#include "demangled.h"
#include "say.h"
#include "stack.h"

enum {
	FRAMES_MAX = 1024,
	CALLER_MAX = 1024,
};

int trace_stack_name(struct session *session)
{
	if (session->names)
		return STATUS_YES;
	session->names = calloc(1, sizeof(*session->names));
	if (!session->names || !stack_names_init(session->names))
		return fail(STATUS_NOT_HERE, "no memory");
	session->names->wish = session->wish;
	session->names->wish.lines = true;
	session->names->wish.many = false;
	return STATUS_YES;
}

int trace_stack_find_sidecar(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			     struct cairn_err *err)
{
	const struct session *session = ctx;

	return session->names ? stack_names_find_sidecar(session->names, bin, ret, err) : 0;
}

int trace_stack_open(const char *value, uint32_t *ret_frames, struct session *session)
{
	char *end = NULL;
	unsigned long n = *value ? strtoul(value, &end, 10) : FRAMES_MAX;

	if (*value && (*value < '0' || *value > '9' || *end || !n))
		return fail(STATUS_USAGE, "--stack=%s: the number of frames is 1 or more", value);
	*ret_frames = n < FRAMES_MAX ? (uint32_t)n : FRAMES_MAX;
	return trace_stack_name(session);
}

void trace_stack_close(struct session *session)
{
	if (!session->names)
		return;
	stack_names_fini(session->names);
	free(session->names);
	session->names = NULL;
}

/* The first frame is at a site; NULL: it is not known. */
static void begin_at(struct stack_names *names, const struct cairn_thread_stack *stack,
		     const struct cairn_function *function, const struct cairn_site *site)
{
	names->at_site = site && stack->n_frames ? stack->frames[0] : NULL;
	names->function = function;
	names->site = site;
}

static void put_stack(void *ctx, const struct cairn_event *event, FILE *out)
{
	const struct session *session = ctx;
	/* In an object that has members. */
	struct json j = {.out = out, .depth = 1, .has_items = 1 << 1};

	begin_at(session->names, event->stack, event->probe->function, event->site->site);
	if (!session->json) {
		stack_frames_text(out, event->stack, session->names);
	} else {
		json_open(&j, "stack", '{');
		stack_frames_json(&j, event->stack, session->names);
		json_close(&j);
	}
	session->names->at_site = NULL;
}

int trace_stack_print(const struct session *session, const struct cairn_event *event)
{
	return cairn_event_print_with(event, session->json ? CAIRN_VALUE_JSON : CAIRN_VALUE_TEXT,
				      put_stack, (void *)(uintptr_t)session, session->out);
}

/* ---- keys ---- */

bool trace_stack_has_lines(const struct session *session, uint32_t i)
{
	return !strcmp(cairn_trace_key_text(session->trace, i), "$stack");
}

bool trace_stack_is_key(const struct session *session)
{
	for (uint32_t i = 0; i < cairn_trace_n_keys(session->trace); i++)
		if (trace_stack_has_lines(session, i) ||
		    !strcmp(cairn_trace_key_text(session->trace, i), "$caller"))
			return true;
	return false;
}

/* The function that has the code of inlined calls. */
static void put_container(const struct stack_place *place, char *buf, size_t size)
{
	const struct cairn_frame *outer = &place->functions[place->n - 1];
	const char *name = demangled_or(outer->function, outer->name);

	if (place->n > 1 && name)
		snprintf(buf, size, ", inlined in %s", name);
}

/* "main at a.c:12", "copy at a.c:9, inlined in main", "main+0x12", or why there is no caller. */
static void caller_text(const struct session *session, const struct cairn_thread_stack *stack,
			char *buf, size_t size)
{
	const struct cairn_stack_frame *frame = stack->n_frames ? stack->frames[0] : NULL;
	struct stack_place place;

	if (!frame) {
		snprintf(buf, size, "(%s)", stack->why);
		return;
	}
	stack_names_find(session->names, frame, &place);
	const struct cairn_frame *f = place.n ? &place.functions[0] : NULL;
	const char *name = f ? demangled_or(f->function, f->name) : NULL;
	if (name && f->file && f->line) {
		int n = snprintf(buf, size, "%s at %s:%" PRIu32, name, f->file, f->line);
		if (n > 0 && (size_t)n < size)
			put_container(&place, buf + n, size - (size_t)n);
	} else if (name && place.has_start)
		snprintf(buf, size, "%s+0x%" PRIx64, name, place.off);
	else
		snprintf(buf, size, "0x%" PRIx64, frame->pc.v);
}

static void put_text(const char *text, bool json, FILE *out)
{
	fputs(json ? "\"" : "", out);
	cairn_quote_put(text, json ? CAIRN_QUOTE_JSON : CAIRN_QUOTE_TEXT, out);
	fputs(json ? "\"" : "", out);
}

static void put_whole(const struct session *session, const struct cairn_thread_stack *stack,
		      bool json, FILE *out)
{
	/* In an object that has members: the braces of an inner one are written here. */
	struct json j = {.out = out, .depth = 1};

	if (!json) {
		stack_frames_text(out, stack, session->names);
		return;
	}
	fputc('{', out);
	stack_frames_json(&j, stack, session->names);
	fputc('}', out);
}

void trace_stack_begin_at(const struct session *session, const struct cairn_aggregate_row *row,
			  const struct cairn_thread_stack *stack)
{
	begin_at(session->names, stack, row->probe->function,
		 cairn_aggregate_key_site(session->trace, row));
}

const struct cairn_thread_stack *trace_stack_of_row(const struct session *session,
						    const struct cairn_aggregate_row *row)
{
	for (uint32_t i = 0; i < cairn_trace_n_keys(session->trace); i++)
		if (trace_stack_has_lines(session, i))
			return cairn_aggregate_key_stack(session->trace, row, i);
	return NULL;
}

bool trace_stack_put_key(const struct session *session, const struct cairn_aggregate_row *row,
			 uint32_t i, bool json, FILE *out)
{
	const struct cairn_thread_stack *stack = cairn_aggregate_key_stack(session->trace, row, i);
	char text[CALLER_MAX];

	if (!stack)
		return false;
	if (trace_stack_has_lines(session, i)) {
		trace_stack_begin_at(session, row, stack);
		put_whole(session, stack, json, out);
		session->names->at_site = NULL;
		return true;
	}
	caller_text(session, stack, text, sizeof(text));
	put_text(text, json, out);
	return true;
}

void trace_stack_summary(const struct cairn_trace_stats *stats)
{
	if (stats->n_stacks_lost)
		say(stderr,
		    "%s %s no stack: the buffer was full (--ring KIB), or too many came at a "
		    "time\n",
		    cairn_counted(stats->n_stacks_lost, "hit").text,
		    stats->n_stacks_lost == 1 ? "has" : "have");
	if (stats->n_stacks_cut)
		say(stderr, "%s %s a stack that is not complete, and says why\n",
		    cairn_counted(stats->n_stacks_cut, "hit").text,
		    stats->n_stacks_cut == 1 ? "has" : "have");
}
