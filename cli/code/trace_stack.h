/* SPDX-License-Identifier: BSD-2-Clause */
/* The stacks of `cairn trace --stack` and of the key $stack. */
#ifndef CLI_TRACE_STACK_H
#define CLI_TRACE_STACK_H

#include "trace.h"

struct stack_names;

/* Sets up session->names; an exit status. */
int trace_stack_name(struct session *session);
/* find_names of struct cairn_trace_opts; @ctx is the session. */
int trace_stack_find_sidecar(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			     struct cairn_err *err);
/* Reads N of --stack[=N] ("": all frames), and sets up session->names; an exit status. */
int trace_stack_open(const char *value, uint32_t *ret_frames, struct session *session);
void trace_stack_close(struct session *session);

/* Prints an event with its stack; as cairn_event_print(). */
int trace_stack_print(const struct session *session, const struct cairn_event *event);

/* Whether rows have a stack, or a caller, as a key. */
bool trace_stack_is_key(const struct session *session);
/* Whether key @i is $stack, which takes lines of its own in a table. */
bool trace_stack_has_lines(const struct session *session, uint32_t i);
/*
 * A key that is a stack, or a caller: "main at a.c:12"; true if it is one. In JSON a stack is an
 * object.
 */
bool trace_stack_put_key(const struct session *session, const struct cairn_aggregate_row *row,
			 uint32_t i, bool json, FILE *out);

/* The stack of the row's key $stack; NULL: the row has none. */
const struct cairn_thread_stack *trace_stack_of_row(const struct session *session,
						    const struct cairn_aggregate_row *row);
/* Its first frame is named by the row's probe, until session->names->at_site is NULL. */
void trace_stack_begin_at(const struct session *session, const struct cairn_aggregate_row *row,
			  const struct cairn_thread_stack *stack);

/* Lines of the summary. */
void trace_stack_summary(const struct cairn_trace_stats *stats);

#endif
