/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of a trace in the formats of other programs
 *
 * An export takes events one after another, and writes each at once: what is in the file is whole
 * and can be read, however the trace ends. The values are those of cairn_event_print() in JSON.
 *
 *	struct cairn_perfetto *p;
 *	if (cairn_perfetto_new(&p, &err) < 0 || cairn_perfetto_begin(p, out) < 0)
 *		return fail(err.msg);
 *	...
 *	cairn_perfetto_event(p, event, out);	// for each event of cairn_trace_poll()
 *	...
 *	cairn_perfetto_free(p);
 *
 * docs/formats/perfetto.md says what is written. It makes no files of its own, and does not keep
 * events.
 */
#ifndef CAIRN_TRACE_EXPORT_H
#define CAIRN_TRACE_EXPORT_H

#include <stdio.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/trace.h>

CAIRN_BEGIN_DECLS

struct cairn_perfetto;

/* Returns 0 or -ENOMEM. Threads: one at a time per handle, here and below. Signals: no. */
int cairn_perfetto_new(struct cairn_perfetto **ret, struct cairn_err *err);
void cairn_perfetto_free(struct cairn_perfetto *p); /* takes NULL */

/*
 * cairn_perfetto_begin - what comes before the events: the clocks
 *
 * Returns 0, -ENOMEM, or a negative errno from @out.
 */
int cairn_perfetto_begin(struct cairn_perfetto *p, FILE *out);

/*
 * cairn_perfetto_event - one event, with its thread and process if they are new
 *
 * A call of a trace that shows calls begins a slice, and its return ends it. An event with the value
 * $duration is a slice, any other one an instant. A slice without a return ends when its thread is
 * seen outside of the call; if it never is, the file has no end of it, and Perfetto shows that.
 *
 * Returns 0, -ENOMEM, or a negative errno from @out.
 */
int cairn_perfetto_event(struct cairn_perfetto *p, const struct cairn_event *event, FILE *out);

CAIRN_END_DECLS
#endif
