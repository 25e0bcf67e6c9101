/* SPDX-License-Identifier: BSD-2-Clause */
/* The meaning that was found for a probe's text. */
#include <inttypes.h>
#include <string.h>

#include <cairn/text.h>

#include "cmd.h"
#include "say.h"
#include "trace.h"
#include "trace_kernel.h"
#include "trace_which.h"

/* Once: it is the same for all of them. */
static void report_symbol(struct session *session, const struct cairn_trace_probe *probe)
{
	if (!session->told_symbols)
		say(stderr,
		    "%s: no debug information has %s, so its inlined copies cannot be known; its "
		    "arguments are $arg1 to $arg6, the registers that integers are passed in\n",
		    probe->path, probe->function->name);
	session->told_symbols = true;
}

static uint32_t n_sites_from(const struct cairn_trace *t, uint32_t first, uint32_t *ret_left_out)
{
	uint32_t n = 0;

	*ret_left_out = 0;
	for (uint32_t i = first; i < cairn_trace_n_probes(t); i++) {
		n += cairn_trace_probe(t, i)->n_sites;
		*ret_left_out += cairn_trace_probe(t, i)->n_left_out;
	}
	return n;
}

/* How the name was found, if it is not the function's, or not one function's only. */
static void report_found(const char *text, const struct cairn_trace_probe *probe, uint32_t n,
			 uint32_t n_sites)
{
	const char *file = probe->function->decl_file, *slash = file ? strrchr(file, '/') : NULL;
	int n_name = (int)strcspn(text, "(");

	if (probe->found == CAIRN_FOUND_PATTERN)
		say(stderr, "%.*s: %s, %s\n", n_name, text,
		    cairn_counted(n, strncmp(text, "usdt:", 5) ? "function" : "probe").text,
		    cairn_counted(n_sites, "site").text);
	else if (probe->found == CAIRN_FOUND_INDIRECT)
		say(stderr,
		    "%.*s is an indirect function: all its %" PRIu32
		    " implementations are probed\n",
		    n_name, text, n);
	else if (probe->found == CAIRN_FOUND_SYMBOL && file)
		say(stderr, "%.*s is %s (%s:%" PRIu32 ")\n", n_name, text, probe->function->name,
		    slash ? slash + 1 : file, probe->function->decl_line);
}

/* Its limits: calls that are not seen, and parameters that are not known. */
static void report_limits(struct session *session, const char *text,
			  const struct cairn_trace_probe *probe)
{
	int n_name = (int)strcspn(text, "(");

	if (probe->is_import)
		say(stderr,
		    "%.*s is in a shared library: only its calls by %s are seen, where they go "
		    "through %s@plt\n",
		    n_name, text, probe->path, probe->function->name);
	else if (probe->is_symbol)
		report_symbol(session, probe);
	if (probe->found != CAIRN_FOUND_PATTERN && probe->function->params_unknown &&
	    !probe->is_symbol)
		say(stderr,
		    "%.*s: its parameters are not known; its arguments are $arg1 to $arg6, the "
		    "registers that integers are passed in\n",
		    n_name, text);
}

/* Functions of a tree that have no duration. */
static void report_not_followed(const struct cairn_trace *t, uint32_t first)
{
	for (uint32_t i = first; i < cairn_trace_n_probes(t); i++) {
		const struct cairn_trace_probe *probe = cairn_trace_probe(t, i);

		if (probe->not_followed)
			say(stderr, "%s: its calls have no duration: %s\n", probe->text,
			    probe->not_followed);
	}
}

void trace_added(struct session *session, const char *text, uint32_t first)
{
	const struct cairn_trace *t = session->trace;
	const struct cairn_trace_probe *probe = cairn_trace_probe(t, first);
	uint32_t n_left_out, n_sites = n_sites_from(t, first, &n_left_out);

	trace_kernel_report(probe, n_left_out);
	report_found(text, probe, cairn_trace_n_probes(t) - first, n_sites);
	report_limits(session, text, probe);
	trace_which_awaited(session, first);
	report_not_followed(t, first);
}
