/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of a trace in the formats of other programs
 *
 * An export takes events one after another. Perfetto's are written at once: what is in the file is
 * whole and can be read, however the trace ends. Values are those of cairn_event_print() in JSON.
 *
 *	struct cairn_perfetto *p;
 *	if (cairn_perfetto_new(&p, &err) < 0 || cairn_perfetto_begin(p, out) < 0)
 *		return fail(err.msg);
 *	...
 *	cairn_perfetto_event(p, event, out);	// for each event of cairn_trace_poll()
 *	...
 *	cairn_perfetto_free(p);
 *
 * docs/formats/perfetto.md says what is written.
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
 * A call of a trace that shows calls begins a slice, and its return ends it. An event with the
 * value $duration is a slice, any other one an instant. A slice without a return ends when its
 * thread is seen outside of the call; if it never is, the file has no end of it, and Perfetto shows
 * that. A call whose entry was lost is a slice in another track of the thread.
 *
 * Returns 0, -ENOMEM, or a negative errno from @out.
 */
int cairn_perfetto_event(struct cairn_perfetto *p, const struct cairn_event *event, FILE *out);

/*
 * cairn_perfetto_end - what comes after the events: what the file does not have
 *
 * If hits were sampled, lost, or the probes removed by the overload guard, an instant in a track of
 * its own says so. The file is complete without it.
 *
 * Returns 0, -ENOMEM, or a negative errno from @out.
 */
int cairn_perfetto_end(struct cairn_perfetto *p, const struct cairn_trace_stats *stats, FILE *out);

/*
 * Events as a trace in CTF 1.8, which babeltrace2 and Trace Compass read: docs/formats/ctf.md
 *
 * The times of such a trace must not go back. So events are kept in memory, and sorted and written
 * when the trace ends: a directory, completely or not at all.
 */
struct cairn_event_ctf;

/* Returns 0 or -ENOMEM. */
int cairn_event_ctf_new(struct cairn_event_ctf **ret, struct cairn_err *err);
void cairn_event_ctf_free(struct cairn_event_ctf *c); /* takes NULL */

/*
 * cairn_event_ctf_event - keep an event
 *
 * Its probe must be valid until the trace is written. Returns 0; -EFBIG: beyond 1 GiB, and the
 * event is the last one; -ENOMEM.
 */
int cairn_event_ctf_event(struct cairn_event_ctf *c, const struct cairn_event *event);

/*
 * cairn_event_ctf_write - write the directory
 *
 * @stats  of the trace: how many hits are missing in it, and why
 *
 * Returns 0, -ENOMEM, or as cairn_file_write_directory(). Cost: sorting; twice the memory of the
 * events.
 */
int cairn_event_ctf_write(struct cairn_event_ctf *c, const char *path,
			  const struct cairn_trace_stats *stats, struct cairn_err *err);

CAIRN_END_DECLS
#endif
