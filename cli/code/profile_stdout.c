/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile_stdout.h"

#include <stdint.h>
#include <stdio_ext.h>
#include <string.h>

#include <cairn/text.h>

#include "cmd.h"
#include "trace_output.h"

int profile_stdout_begin(struct profile_stdout *s)
{
	int status = trace_output_standard(&s->output);

	s->plain = stdout;
	if (status != STATUS_YES)
		return status;
	stdout = trace_output_stream(s->output);
	/* Files are written by another thread, whose failures are said after what is printed. */
	__fsetlocking(stdout, FSETLOCKING_INTERNAL);
	return STATUS_YES;
}

static int say_dropped(uint64_t n_bytes)
{
	/* It would come after a piece of the answer. */
	fail_only_on_stderr();
	return fail(STATUS_NOT_HERE, "the reader of standard output does not read: %s dropped",
		    cairn_counted(n_bytes, "byte").text);
}

static int end(struct profile_stdout *s)
{
	uint64_t n_events;
	int e = trace_output_flush(s->output);

	stdout = s->plain;
	if (e < 0) {
		fail_only_on_stderr();
		return fail(STATUS_NOT_HERE, "cannot write the answer: %s", strerror(-e));
	}
	trace_output_probes_gone(s->output);
	if (trace_output_dropped(s->output, &n_events))
		return say_dropped(trace_output_dropped_bytes(s->output));
	return STATUS_YES;
}

int profile_stdout_end(struct profile_stdout *s, int status)
{
	int its = STATUS_YES;

	if (s->output && stdout != s->plain)
		its = end(s);
	trace_output_close(s->output);
	return status == STATUS_YES ? its : status;
}
