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

/* The stream that the next event is printed to; only until the event ends. */
FILE *trace_output_stream(struct trace_output *o);

/*
 * After each event: here the stream may be written, and another file may begin. Returns 0 or a
 * negative errno.
 */
int trace_output_event_ends(struct trace_output *o);

/* Writes what is there. Returns 0 or a negative errno; after that nothing is written any more. */
int trace_output_flush(struct trace_output *o);

/* True if something could not be written; of NULL false. */
bool trace_output_has_failed(const struct trace_output *o);

/* Takes NULL. Returns 0, or the errno of what could not be written, unless it was returned. */
int trace_output_close(struct trace_output *o);

#endif
