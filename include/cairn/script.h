/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-liners of bpftrace, as what a trace takes
 *
 *	uprobe:/usr/bin/server:parse /arg1 > 100/ { @[comm, str(arg0)] = hist(arg1); }
 *
 * becomes the probe "/usr/bin/server:parse if $arg2 > 100" with the keys "$comm, str($arg1)" and
 * the histogram "$arg2". A one-liner has probes, a filter, and one block with maps, or with one
 * printf. Anything else is refused with its name. Nothing is taken with another meaning, but
 * for one: a function's inlined copies are probed, too.
 */
#ifndef CAIRN_SCRIPT_H
#define CAIRN_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/trace.h>

CAIRN_BEGIN_DECLS

/* Borrowed until it is freed. */
struct cairn_script {
	const char *const *probes; /* for cairn_trace_add(); 1 to 16 */
	size_t n_probes;
	const struct cairn_aggregate *items; /* for cairn_trace_aggregate(): at most 8; 0: events */
	size_t n_items;
	const char *by;     /* of the aggregates; NULL */
	const char *format; /* of events, for the option format; NULL with aggregates */
};

/*
 * True if it looks like a one-liner, and not like a probe: "uprobe:", "usdt:" and so on, and a "{".
 */
bool cairn_script_is_one(const char *text);

/*
 * cairn_script_parse - what a one-liner means for a trace
 *
 * @ret  freed by cairn_script_free()
 * Returns 0; -EINVAL: a construct that is not taken (err: its name, and where with a caret);
 * -ERANGE: too long; -ENOMEM. Names of functions and parameters are checked by cairn_trace_add().
 * Cost: the text is read once. Threads: any. Signals: no.
 */
int cairn_script_parse(const char *text, struct cairn_script **ret, struct cairn_err *err);
void cairn_script_free(struct cairn_script *script); /* takes NULL */

CAIRN_END_DECLS
#endif
