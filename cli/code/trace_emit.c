/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_emit.h"

#include <errno.h>

#include <cairn/trace_emit.h>

#include "cmd.h"

int trace_emit_check(const struct emit_values *v)
{
	const char *what = NULL;

	if (v->dry_run || v->json)
		what = v->json ? "--json" : "--dry-run";
	if (v->has_output)
		what = "-o; the script is written to standard output";
	if (v->has_limit)
		what = "-n and --duration; end the script with Ctrl-C";
	if (v->time)
		what = "--time";
	if (v->aggregates->every || v->aggregates->top || v->aggregates->max_keys)
		what = "--every, --top and --max-keys; the script shows one table, when it ends";
	return what ? fail(STATUS_USAGE, "--emit cannot be with %s", what) : STATUS_YES;
}

int trace_emit(const struct session *session, const char *tool)
{
	struct cairn_err err = {0};
	int r;

	trace_missing(session->trace);
	r = cairn_trace_emit(session->trace, cairn_emit_tool(tool), session->out, &err);
	if (r == 0)
		return STATUS_YES;
	return fail_err(r, &err, r == -ENOENT ? STATUS_NO : STATUS_USAGE);
}
