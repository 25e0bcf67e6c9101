/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file that events are written to
 *
 * Bytes go out in pieces, but what stays in the file is whole events: if one cannot be written, as
 * on a full disk, the file ends after the last one that is complete. With a limit a new file begins
 * when one has so many bytes; FILE.1 is the last one before it, FILE.2 the one before that.
 */
#ifndef CLI_TRACE_OUTPUT_H
#define CLI_TRACE_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct trace_output;

/*
 * Opens FILE, and says so if that cannot be; an exit status.
 *
 * @rotate  SIZE[,COUNT]: "64M", "1G,8"; NULL: there is one file, of any size
 */
int trace_output_open(const char *path, const char *rotate, struct trace_output **ret);

/* The same for standard output, which stays open. */
int trace_output_standard(struct trace_output **ret);

/* The stream that the next event is printed to; only until the event ends. */
FILE *trace_output_stream(struct trace_output *o);

/*
 * After each event, and after other text: here the stream may be written, and another file may
 * begin. Returns 0 or a negative errno.
 */
int trace_output_ends(struct trace_output *o, bool is_event);

/* After this time (clock_now_ns(); 0: none) and after Ctrl-C no reader is waited for. */
void trace_output_until(struct trace_output *o, uint64_t until_ns);

/*
 * The probes are gone: a reader of a pipe has a second for each piece of what is left, and five in
 * all.
 */
void trace_output_probes_gone(struct trace_output *o);

/* After the last flush: whether a reader has not taken all. The caller says it: @ret_events. */
bool trace_output_dropped(struct trace_output *o, uint64_t *ret_events);
uint64_t trace_output_dropped_bytes(const struct trace_output *o);

/* Writes what is there. Returns 0 or a negative errno; after that nothing is written any more. */
int trace_output_flush(struct trace_output *o);

/* True if something could not be written; of NULL false. */
bool trace_output_has_failed(const struct trace_output *o);

/*
 * Takes NULL. Returns 0, or the errno of what could not be written, unless it was returned;
 * -ETIMEDOUT: a reader has not taken all.
 */
int trace_output_close(struct trace_output *o);

#endif
