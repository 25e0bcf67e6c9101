/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace, as a script for another tool
 *
 * A trace is opened, its probes are added, and it is written instead of attached. No privileges are
 * needed.
 *
 *	if (cairn_trace_open(&opts, &t, &err) < 0 ||
 *	    cairn_trace_add(t, "libc.so.6:tcache_get(tc_idx) if tc_idx > 3", &err) < 0 ||
 *	    cairn_trace_emit(t, cairn_emit_tool("gdb"), stdout, &err) < 0)
 *		return fail(err.msg);
 *
 * The script has a probe at each site of the trace, at the same address, and computes the
 * condition, the values, the numbers and the keys from the same registers and memory. A tool that
 * cannot do a part is refused, and the message names the part. Nothing is replaced by something
 * like it.
 *
 * The functions of the second half write the beginnings of such scripts, for programs that have
 * probes of their own.
 */
#ifndef CAIRN_TRACE_EMIT_H
#define CAIRN_TRACE_EMIT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/addr.h>
#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/text.h>
#include <cairn/trace.h>

CAIRN_BEGIN_DECLS

struct cairn_emit_tool {
	const char *name;      /* "bpftrace", "perf", "gdb", "c" */
	const char *comment;   /* before a comment that ends with the line */
	enum cairn_quote path; /* where the probed file's path stands */
};

/* The tool of this name; NULL: there is none. */
const struct cairn_emit_tool *cairn_emit_tool(const char *name);

/*
 * cairn_trace_emit - write what the trace would do
 *
 *   bpftrace  a script; sudo bpftrace --unsafe FILE
 *   perf      a shell script with "perf probe" commands: no conditions; of sums the count alone
 *   gdb       a script that needs gdb's Python
 *   c         a program of C with libbpf, for the kernel and for the user: its first lines have the
 *             commands that compile it
 *
 * Aggregates are set by cairn_trace_aggregate(), and are shown when the script ends.
 *
 * @t  with probes, not attached
 * Returns 0. Negative:
 *   -EOPNOTSUPP  the tool has no way to do a part of it (err: which part, with a caret, and what
 *                works); or the path of a file cannot be written for it
 *   -ENOENT      sites are refused and best_effort is off, or none is left, as for
 *                cairn_trace_attach(). With best_effort the script lists them
 *   -EINVAL      no probe was added
 *   -ENOMEM, or a negative errno from @out. Something may have been written then, else nothing.
 * Cost: some microseconds a site. Threads: one at a time per handle. Signals: no.
 */
int cairn_trace_emit(const struct cairn_trace *t, const struct cairn_emit_tool *tool, FILE *out,
		     struct cairn_err *err);

/*
 * cairn_emit_name - a name of letters, digits and _ for a tool
 *
 * @name    NULL: "arg" and the @number + 1
 * @buf     cut to @size - 1 letters
 */
void cairn_emit_name(const char *name, uint32_t number, char *buf, size_t size);

/*
 * The head of a probe of bpftrace at an address of a file, and the beginning of a "perf probe"
 * command up to the arguments. Each name gets @number, as cut names may be equal. The path can be
 * written for the tool (cairn_quote()).
 */
void cairn_emit_bpftrace_head(FILE *out, const char *path, struct cairn_vaddr at);
void cairn_emit_perf_head(FILE *out, const char *path, const char *name, unsigned int number,
			  struct cairn_vaddr at);

/*
 * Python for gdb: cairn_address(path, offset) is where a file's offset is mapped in the process. It
 * is right wherever the file was loaded.
 */
void cairn_emit_gdb_address(FILE *out);

CAIRN_END_DECLS
#endif
