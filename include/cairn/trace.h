/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace: watch calls of functions in running programs, inlined copies included
 *
 * A probe names a function; its sites are all sites of that function (sites.h). Each site gets a
 * user probe and a small fetch program that reads the arguments from their locations at that
 * address.
 *
 *	struct cairn_trace *t;
 *	struct cairn_trace_opts opts = {.size = sizeof(opts), .pid = pid};
 *	if (cairn_trace_open(&opts, &t, &err) < 0 ||
 *	    cairn_trace_add(t, "libc.so.6:tcache_get(tc_idx) if tc_idx > 3", &err) < 0 ||
 *	    cairn_trace_attach(t, &err) < 0 || cairn_trace_start(t, &err) < 0)
 *		return fail(err.msg);
 *	while (!interrupted && !cairn_trace_target_gone(t))
 *		cairn_trace_poll(t, 100, print_one, stdout, &err);
 *	cairn_trace_detach(t);
 *	cairn_trace_poll(t, 0, print_one, stdout, &err);	// what was still in the ring
 *	cairn_trace_close(t);
 *
 * Opening, adding and planning are offline and need no privileges; attaching needs CAP_BPF and
 * CAP_PERFMON. File descriptors hold the probes: a tracer that is killed leaves nothing in the
 * system.
 */
#ifndef CAIRN_TRACE_H
#define CAIRN_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/addr.h>
#include <cairn/api.h>
#include <cairn/binary.h>
#include <cairn/decode.h>
#include <cairn/err.h>
#include <cairn/kernel.h>
#include <cairn/sidecar.h>
#include <cairn/sites.h>
#include <cairn/stack.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

struct cairn_trace;

/*
 * How to show a function that the linker knows as @linker_name and the debug information as @name,
 * say, demangled; either may be NULL. As snprintf.
 */
typedef size_t (*cairn_show_name)(const char *linker_name, const char *name, char *buf,
				  size_t size);

enum cairn_trace_backend {
	CAIRN_BACKEND_AUTO,
	CAIRN_BACKEND_UPROBE_MULTI, /* one link for all sites of a file; Linux 6.6 */
	CAIRN_BACKEND_UPROBE,       /* one perf event and link per site; Linux 5.15 */
	/*
	 * The same as UPROBE_MULTI, and one link for both the entry and the return of calls that
	 * are followed; Linux 6.13
	 */
	CAIRN_BACKEND_UPROBE_SESSION,
	/*
	 * Of kernel functions: one perf event and link per site. By CAIRN_BACKEND_AUTO their entries go by
	 * one kprobe_multi link, where the kernel has such links (Linux 5.18, CONFIG_FPROBE).
	 */
	CAIRN_BACKEND_KPROBE,
};

/* The source of answers about the running kernel, or a module of it. */
struct cairn_trace_kernel {
	const struct cairn_kernel *kernel; /* bound to @bin: cairn_kernel_bind() */
	const struct cairn_binary *bin;
	struct cairn_sites *sites;
	const struct cairn_sidecar *sidecar; /* that names frames of stacks; NULL: @bin does */
};

/* Which time of an event cairn_event_print() shows. */
enum cairn_trace_time {
	CAIRN_TIME_RELATIVE,  /* seconds since cairn_trace_attach() */
	CAIRN_TIME_MONOTONIC, /* of CLOCK_MONOTONIC */
	CAIRN_TIME_WALL,      /* date and time of day, ISO 8601 */
	CAIRN_TIME_DELTA,     /* seconds since the last event of the same thread */
};

/* Escape sequences of a terminal, or "", around parts of the text of events. */
struct cairn_trace_style {
	const char *name;  /* before the function's name */
	const char *faint; /* before the site, and what a tree says of a call */
	const char *bad;   /* before the reason why there is no value */
	const char *off;   /* after each of them */
};

struct cairn_trace_opts {
	/* sizeof(struct cairn_trace_opts) of the caller; a longer, unknown tail must be zero. */
	size_t size;
	/* The process to trace; 0: see argv. */
	int pid;
	/*
	 * A command to run, NULL-terminated, with @exe as its program file (found by the caller:
	 * the library does not read PATH). With neither pid nor argv every process that maps the
	 * probed files is traced. All three must stay valid until close.
	 */
	char *const *argv;
	const char *exe;
	/*
	 * Attach what can be attached instead of nothing. A pattern's functions are always attached
	 * so.
	 */
	bool best_effort;
	/*
	 * Trace children (fork, vfork, clone) of the traced process too. The probes then sit in
	 * every process that maps the probed files, and those that are not of the family are
	 * filtered out in the kernel.
	 */
	bool follow_children;
	/* Never move a probe to a cheaper instruction of the same basic block. */
	bool no_move;           /* for comparisons; moving is exact */
	bool assume_unmodified; /* as cairn_sites_opts */
	enum cairn_trace_backend backend;
	/* Bytes of the ring buffer, rounded up to a power of two of at least a page; 0: 8 MiB. */
	uint32_t ring_bytes;
	/*
	 * Most bytes of a string that are fetched and shown, without its NUL, at most 2047; 0: 63.
	 */
	uint32_t string_bytes;
	/*
	 * Most bytes of a struct or an array fetched, at most 2048; 0: 512. The rest is shown as
	 * cut off.
	 */
	uint32_t value_bytes;
	/* As cairn_binary_opts and cairn_sites_opts. */
	const char *const *debug_dirs;
	size_t n_debug_dirs;
	unsigned int threads;
	/*
	 * Finds the sidecar of a probed file, which is then used instead of its debug information;
	 * NULL: there are no sidecars. *@ret, which is NULL at the call, is closed with the trace;
	 * it stays NULL if there is none. An error ends adding the probe. Facts that a sidecar does
	 * not have (members of a type that BTF cannot express) come from the debug information, if
	 * there is some.
	 */
	int (*find_sidecar)(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			    struct cairn_err *err);
	void *find_sidecar_ctx;
	/*
	 * How functions around a site are shown in text; NULL: as the debug information has them.
	 */
	cairn_show_name show_name;
	/*
	 * Most frames of an event's stack, which is then taken at each hit, of calls that are
	 * followed to their end at the entry; 0: no stacks. 1024 and
	 * more: whole stacks.
	 */
	uint32_t stack_frames;
	/*
	 * Finds the sidecar of a file that a frame is in, which the frame then has; NULL: frames
	 * have none. As find_sidecar of struct cairn_stacks_opts.
	 */
	int (*find_names)(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			  struct cairn_err *err);
	void *find_names_ctx;
	/* More processes to trace, with or without @pid; together at most CAIRN_TRACE_PIDS_MAX. */
	const int *pids;
	size_t n_pids;
	/*
	 * With neither processes nor a command: only processes in this directory of cgroup v2, and
	 * below it; NULL: of all. They are chosen at each hit, so later ones count, too.
	 */
	const char *cgroup;
	/*
	 * The same by name: that of their first thread, as ps(1) shows it, at most 15 bytes. With
	 * @cgroup both must hold.
	 */
	const char *comm;
	/* A descriptor for the command's standard output and error; 0: they are the caller's. */
	int command_output;
	/*
	 * Take one of so many hits, each drawn by itself; the others are counted; 0 and 1: all. At
	 * most CAIRN_TRACE_SAMPLE_MAX.
	 */
	uint32_t sample;
	enum cairn_trace_time time;
	/*
	 * The text that cairn_event_print() prints of an event, instead of its own line: text with
	 * fields, "{$time} {$comm} {len:08x}". The man page of cairn trace has all of it. Its
	 * expressions are fetched at each site that has them; a probe without a list fetches only
	 * those. NULL: the line that the contract of cairn_event_print() shows.
	 */
	const char *format;
	/*
	 * Follow the calls of all functions to their returns, and make an event of the entry, too.
	 * Events then have a depth (struct cairn_event_call), and cairn_trace_graph_print() shows
	 * them as a tree. Not with stacks, nor with aggregates.
	 */
	bool shows_calls;
	/*
	 * For the events' own lines and trees of calls; copied. NULL: text without colours. A
	 * format has none.
	 */
	const struct cairn_trace_style *style;
	/*
	 * All probes are of the kernel, as if "kernel:" were before each. A trace has probes of the
	 * kernel or of programs, not of both.
	 */
	bool of_kernel;
	/*
	 * Finds the source for the kernel (@module NULL) or a loaded module, once for each. Its
	 * result stays the caller's, and must be valid until close. An error ends adding the probe.
	 * NULL: functions of the kernel are not traced.
	 */
	int (*find_kernel)(void *ctx, const char *module, struct cairn_trace_kernel *ret,
			   struct cairn_err *err);
	void *find_kernel_ctx;
};

/* Beyond it the 32 bits of a draw are rounded by more than a thousandth. */
#define CAIRN_TRACE_SAMPLE_MAX 4194304u

/* All of them are looked at before a file is probed. */
#define CAIRN_TRACE_PIDS_MAX 1024

/*
 * cairn_trace_open - get ready to add probes
 *
 * @opts  may be NULL: every process
 * Returns 0. -EINVAL, -ERANGE: contradicting or unknown options, or a format that is none (err
 * shows where, with a caret). -ESRCH: no such process. -EACCES: no
 * permission to look at it. -ENOMEM.
 * Cost: nothing is read yet. Threads: one at a time per handle, here and below. Signals: no.
 */
int cairn_trace_open(const struct cairn_trace_opts *opts, struct cairn_trace **ret,
		     struct cairn_err *err);

/*
 * Detaches, ends the ring buffer and frees everything; takes NULL. A command that was not started
 * is killed; one that runs goes on running and stays the caller's child to wait for.
 */
void cairn_trace_close(struct cairn_trace *t);

/*
 * cairn_trace_add - add a probe
 *
 *	[uprobe:][PATH:][FILE[:LINE]:]FUNC[(EXPR, ...)][ if COND]
 *	[PATH:]FUNC:LINE, [PATH:]FILE:LINE (lines.h), [PATH:]FUNC+OFFSET
 *	usdt:[PATH:]PROVIDER:NAME[(EXPR, ...)][ if COND]
 *	kernel:[MODULE:][FILE[:LINE]:]FUNC[(EXPR, ...)][ if COND]
 *
 * PATH starts with / or . or names an existing file or a library (NAME.so, NAME.so.N). A library is
 * searched among the files that the process maps, then in the system's library directories. Without
 * it: the executable of the process or command. A process of another root, as in a container, has
 * PATH in that root; a library that it has not loaded yet is probed when it does. FILE is the end
 * of the declaring source file's path. EXPR is an expression of C over the parameters and $pid,
 * $tid, $cpu, $uid, $gid and $cgroup: with
 * -> . [] * & and casts, sizeof, arithmetic, comparisons, && || !, integers, characters,
 * enumerators, NULL, true, false; == and != compare strings, too, $comm among them; floats are only
 * compared. :str or :hex may come after it, or it is str(p), str(p, N), wstr(p) or buf(p, n).
 * Without a list all parameters are fetched, with () none. COND is one, too, and its hits are
 * reported.
 *
 * Without debug information FUNC may be a symbol, mangled or not, or a function that the
 * file takes from a shared library and calls through a stub. Its parameters are then $arg1 to
 * $arg6, the registers that integers and pointers are passed in, of 8 bytes each. So it is where
 * the debug information does not describe parameters.
 *
 * FUNC may be a pattern or an indirect function (cairn_sites_find()): each function that it stands
 * for becomes a probe of its own.
 *
 * A line's sites, and an offset's, are of the kind CAIRN_SITE_PLACE. A line's function has the
 * variables in scope (cairn_sites_vars()) as parameters, if the probe has an EXPR or a COND; an
 * offset's has none. Without a list none is fetched. An offset is counted from a symbol, without
 * debug information.
 *
 * A kernel probe is a kprobe at each site of a function of the running kernel, or of a loaded
 * module. It sees the hits of all processes; with a process or command, those in its system calls
 * and faults, and the interrupts that come meanwhile. Sites in code that the kernel has freed are
 * left out. There is no $ret, no $duration and no stack yet (-EOPNOTSUPP).
 *
 * A USDT probe (usdt.h) needs no debug information. Its function is one that has the arguments as
 * parameters, $arg1 and so on, and its instructions as sites of the kind CAIRN_SITE_PLACE. The
 * kernel increments its semaphore while it is attached. PROVIDER and NAME may be patterns.
 *
 * Returns the number of the probe, from 0; if it became several, that of the first. Negative:
 *   -EINVAL      not a probe (err shows where with a caret), no such parameter or member, or an
 *                expression that makes no sense
 *   -ENOTUNIQ    an ambiguous name (err lists the functions)
 *   -E2BIG       more probes than a trace has
 *   -ENOENT      no such file, or the process has no executable (a kernel thread, a zombie)
 *   -ENODATA     no debug information (err: where it was searched, how to get it)
 *   -ENXIO       no such function (err suggests names), a function that has no code at all, or a
 *                file that the process does not map
 *   -ERANGE      too many values or sites; an expression that is too deep
 *   -EBADMSG, -EOPNOTSUPP, -ENOMEM as cairn_sites_find()
 * A failed add leaves the trace as it was.
 * Cost: cairn_sites_find().
 */
int cairn_trace_add(struct cairn_trace *t, const char *probe, struct cairn_err *err);

/* One thing that a probe fetches. */
struct cairn_trace_value {
	const char *text; /* the parameter's name or the expression as written */
	/*
	 * In the probe's types, for the whole expression; 0: an address (&a), a number, or bytes.
	 */
	uint32_t type;
	bool listed;      /* named in the probe, so that it must be available everywhere */
	bool is_string;   /* fetched as a NUL-terminated string that a pointer points to */
	bool is_bytes;    /* the bytes at an address: buf() */
	bool is_number;   /* computed: 8 bytes, extended by is_unsigned */
	bool is_unsigned; /* of a number */
	bool hex;
	bool at_return;   /* it needs the return: $ret, $duration */
	uint8_t bit_size; /* of a bit-field, else 0 */
	/*
	 * For a string of wide characters, the bytes of each, 2 (UTF-16) or 4 (UTF-32), as its
	 * values have them; else 0.
	 */
	uint8_t unit_bytes;
	const char *unit; /* of a number without a type: "ns"; NULL: it has none */
};

/* A probe as understood; borrowed until close. */
struct cairn_trace_probe {
	const char *text; /* as given */
	const char *path; /* the probed file */
	const struct cairn_function *function;
	enum cairn_found found; /* how FUNC led to it; for a pattern, text is the function's name */
	/*
	 * Only a symbol is known of the function, no debug information: its inlined copies cannot
	 * be known. Its parameters are the registers of the calling convention.
	 */
	bool is_symbol;
	/* And it is in another file: the site is the stub through which this file calls it. */
	bool is_import;
	/* No traced process has the file mapped yet, a library: hits come once one has. */
	bool is_awaited;
	const struct cairn_types *types;
	const char *condition; /* NULL when there is none */
	uint32_t n_values;
	const struct cairn_trace_value *values;
	/* Its sites are [first_site, first_site + n_sites) of the trace's. */
	uint32_t first_site, n_sites;
	/*
	 * The number of these sites that are ready to be attached, and that are refused (each site
	 * says why). A CAIRN_SITE_PART and a site with CAIRN_COUNT_MERGED do not count.
	 */
	uint32_t n_ready, n_refused;
	/* In a trace that shows calls: why this probe's are hits only; NULL: they are followed. */
	const char *not_followed;
	/*
	 * For the kernel: sites in code that it frees when it has run. They are not in the above.
	 */
	uint32_t n_left_out;
	bool of_kernel;
};

/* A value at a site. */
struct cairn_trace_slot {
	const char *unavailable; /* NULL when it can be fetched; else the reason. */
};

/* One user probe to be set; borrowed until close. */
struct cairn_trace_site {
	uint32_t probe;
	const struct cairn_site *site;
	/* The address of the user probe: the site's own, or that of a cheaper later instruction. */
	struct cairn_vaddr at;
	struct cairn_foff off;
	bool moved;
	bool emulated; /* the kernel emulates the instruction there, about 10 times cheaper */
	/*
	 * NULL when the site is ready. Else why it is not attached (best effort) or why nothing
	 * is: a hazard, a listed argument that is unavailable here.
	 */
	const char *refused;
	/* Shared by all sites with the same fetch program. */
	uint32_t program;
	/* As many as the probe has values. */
	const struct cairn_trace_slot *values;
	/* For the kernel, the address of @at in the kernel that runs; else 0. */
	uint64_t running;
};

uint32_t cairn_trace_n_probes(const struct cairn_trace *t);
const struct cairn_trace_probe *cairn_trace_probe(const struct cairn_trace *t, uint32_t i);
uint32_t cairn_trace_n_sites(const struct cairn_trace *t);
const struct cairn_trace_site *cairn_trace_site(const struct cairn_trace *t, uint32_t i);
uint32_t cairn_trace_n_programs(const struct cairn_trace *t);

/*
 * cairn_trace_missing - .dwo files (split DWARF) of the probed files that were not found
 *
 * Calls that only they describe have no site here, so that attaching is refused without
 * best_effort.
 *
 * @ret  as cairn_sites_missing(), for the first file that misses some; "" if none does
 * Returns their number.
 */
size_t cairn_trace_missing(const struct cairn_trace *t, const char **ret);

/*
 * cairn_trace_program_print - a fetch program, one operation per line, for people
 *
 * Returns 0, or a negative errno from @out.
 */
int cairn_trace_program_print(const struct cairn_trace *t, uint32_t program, FILE *out);

/*
 * cairn_trace_attach - set all user probes
 *
 * A command is forked here and waits before its exec. The file of each probe must be the very one
 * that the process maps, unchanged since it was analysed (so that its build-id and bytes are those
 * that were analysed). The process's memory at every site must have the file's bytes.
 *
 * Returns the number of sites attached. Negative, with nothing attached:
 *   -ENOENT      sites of a function that was named are refused (cairn_trace_site() says why) and
 *                best_effort is off, or none is left; or the process does not map the file
 *   -ENODATA     cairn_trace_missing() and best_effort is off
 *   -ESTALE      the mapped file or the process's memory differs from the analysed file
 *   -EPERM       not permitted; err has the exact command that would be
 *   -EOPNOTSUPP  the kernel cannot do it; err says which part. With best_effort a kernel
 *                without kprobes is no error: the trace goes on with the sites that are left
 *   -ESRCH       the process has ended
 *   -ENOMEM, and the errors of bpf(2), perf_event_open(2) and fork(2)
 * Cost: one system call per file, about 3 microseconds per site.
 */
int cairn_trace_attach(struct cairn_trace *t, struct cairn_err *err);

/*
 * cairn_trace_start - let the command's exec happen; nothing to do for a running process
 *
 * Returns 0, or what exec returned (-ENOENT, -EACCES, ...).
 */
int cairn_trace_start(struct cairn_trace *t, struct cairn_err *err);

/*
 * The traced process: opts.pid, or the command's once attached; 0 when it is not one: several, or
 * all.
 */
int cairn_trace_pid(const struct cairn_trace *t);

/*
 * cairn_trace_mapped - the probed files that the traced process has mapped as code
 *
 * A command loads its libraries after the probes are set; one that it never loads gives no event.
 * For a command, and for a child that is followed, the kernel reports mappings as they happen
 * (perf_event_open(2), PERF_RECORD_MMAP2), also for a process that has ended. If it does not,
 * /proc/PID/maps is read: files that are mapped and unmapped between two calls are not seen, and
 * children are not seen.
 *
 * @ret        cairn_trace_n_probes() of them: a file of this probe has been seen, now or by an
 *             earlier call
 * @ret_whole  nothing was missed: a file that was not seen was never mapped
 * Returns the number of those that are false. With *ret_whole false: -ESRCH: the process has ended;
 * -EPERM: the caller may not read it; -ENOMEM;
 * @ret has the files that were seen earlier. -EINVAL: neither processes nor a command are traced;
 * nothing is set.
 * Cost: about a microsecond, or a reading of /proc/PID/maps.
 */
int cairn_trace_mapped(struct cairn_trace *t, bool *ret, bool *ret_whole, struct cairn_err *err);

/* True once the traced process has ended. With children followed: once they all have. */
bool cairn_trace_target_gone(struct cairn_trace *t);

enum cairn_value_state {
	CAIRN_VALUE_OK,
	CAIRN_VALUE_UNAVAILABLE, /* cannot be known at this site: reason */
	CAIRN_VALUE_UNREADABLE,  /* its memory could not be read now (a wild or NULL pointer) */
};

struct cairn_event_target {
	uint64_t at;
	const uint8_t *bytes; /* the first of them; NULL when they cannot be read */
	uint32_t n_bytes;
};

struct cairn_event_value {
	const struct cairn_trace_value *what;
	enum cairn_value_state state;
	const char *reason; /* of the states other than OK */
	/*
	 * As it was in memory; for a string its bytes without the NUL; for a bit-field shifted to
	 * bit 0.
	 */
	const uint8_t *bytes;
	uint32_t n_bytes;
	bool truncated; /* the string, struct or array goes on */
	/*
	 * The memory that strings and vectors of C++, Rust and Go in it point to, as far as it was
	 * fetched.
	 */
	const struct cairn_event_target *targets;
	uint32_t n_targets;
};

enum cairn_call_moment {
	CAIRN_CALL_NONE,  /* a hit that is not followed: an inlined copy, a line, a USDT probe */
	CAIRN_CALL_ENTRY, /* values that need the return are unavailable */
	CAIRN_CALL_RETURN,
};

struct cairn_event_call {
	enum cairn_call_moment moment;
	uint32_t depth;      /* calls that the thread is in, of those that are followed */
	uint64_t entered_ns; /* of the call; CLOCK_MONOTONIC */
};

/* A hit of a site; borrowed during the callback. */
struct cairn_event {
	/* CLOCK_MONOTONIC; with $ret or $duration of the return */
	uint64_t time_ns;
	uint64_t since_ns; /* since cairn_trace_attach() */
	uint32_t pid, tid;
	char comm[16];
	const struct cairn_trace_probe *probe;
	const struct cairn_trace_site *site;
	uint32_t n_values;
	const struct cairn_event_value *values;
	cairn_show_name show_name; /* as cairn_trace_opts */
	/*
	 * The callers, the innermost frame first; NULL: no stacks are wanted. Its first frame is at
	 * the site: cairn_site_frames() has its functions. It ends with a reason, as those of
	 * cairn/stack.h; without frames there was no room for it, which is counted as lost.
	 */
	const struct cairn_thread_stack *stack;
	enum cairn_trace_time time;        /* as cairn_trace_opts */
	const struct trace_format *format; /* NULL: there is none */
	/*
	 * Nanoseconds since 1970. The offset from CLOCK_MONOTONIC is that of the moment when the
	 * probes were attached.
	 */
	uint64_t wall_ns;
	/*
	 * For CAIRN_TIME_DELTA, or if the format has it: since the last event of the thread, 0 if
	 * that is later; the first event of a thread has none.
	 */
	bool has_delta;
	uint64_t delta_ns;
	const struct cairn_trace_style *style; /* as cairn_trace_opts; never NULL */
	const struct cairn_event_call *call;   /* NULL: the trace does not show calls */
	bool at_return; /* of a call's return, or of the end of an inlined copy: $ret, $duration */
};

/*
 * cairn_trace_poll - wait for events and hand them out
 *
 * @timeout_ms  longest wait for the first one; 0: only events that are there
 * @on_event    a result other than 0 ends the call and is returned; that event counts as delivered
 * Returns the number of events handed out, 0 at the timeout, the result of @on_event, or
 *   -EINTR  a signal came; events handed out before it are not lost
 * Events of one processor come in order; those of several, nearly. Some 100 ms after it began to
 * hand out events it returns, though there may be more: they may come as fast as they are read.
 */
int cairn_trace_poll(struct cairn_trace *t, int timeout_ms,
		     int (*on_event)(void *ctx, const struct cairn_event *event), void *ctx,
		     struct cairn_err *err);

/*
 * cairn_event_print - an event on one line, with its newline
 *
 *	0.000412 1234/1234 ls  tcache_get inlined in malloc+0x5c: tc_idx=3
 *	{"time_ns":..,"since_ns":..,"pid":1234,"tid":1234,"comm":"ls","function":"tcache_get",
 *	 "kind":"inlined","site":"inlined in malloc+0x5c","address":"0x98a7d","args":{"tc_idx":3}}
 *
 * Returns 0, or a negative errno from @out.
 */
int cairn_event_print(const struct cairn_event *event, enum cairn_value_style style, FILE *out);

/*
 * The same with more after it. JSON: members of the event's object, each with a comma before it.
 * Text: lines after the event's.
 *
 * @more  writes them to @out; an error of @out is the result
 */
int cairn_event_print_with(const struct cairn_event *event, enum cairn_value_style style,
			   void (*more)(void *ctx, const struct cairn_event *event, FILE *out),
			   void *ctx, FILE *out);

/*
 * One value of it, without its name: "3", "\"text\"...", "<unavailable: optimised out>",
 * "<unreadable>".
 */
int cairn_event_value_print(const struct cairn_event *event, uint32_t i,
			    enum cairn_value_style style, FILE *out);

/*
 * Calls as a tree, as uftrace and trace-cmd print them: an entry opens a brace, and its return
 * closes it, with the duration. A call in which nothing happened is one line.
 *
 *	# DURATION     TID     FUNCTION
 *	            [  1234] | parse(line="GET /") {
 *	   0.412 us [  1234] |   hash(n=5) = 77;
 *	   3.020 us [  1234] | } /\* parse *\/
 *
 * A call that an exception or longjmp() left, or whose event was lost, is closed when the thread is
 * seen outside of it, and says so.
 */
struct cairn_trace_graph;

struct cairn_trace_graph_opts {
	size_t size;    /* sizeof(struct cairn_trace_graph_opts), set by the caller */
	bool with_time; /* a column with each event's time */
};

/* Returns 0, -EINVAL or -ENOMEM. Threads: one at a time per handle, here and below. */
int cairn_trace_graph_new(const struct cairn_trace_graph_opts *opts, struct cairn_trace_graph **ret,
			  struct cairn_err *err);
void cairn_trace_graph_free(struct cairn_trace_graph *g); /* takes NULL */

/*
 * cairn_trace_graph_print - one event of a trace with shows_calls
 *
 * An entry is kept back until the next event, which may be its return. Returns 0, -EINVAL: the
 * trace does not show calls; -ENOMEM, or a negative errno from @out.
 */
int cairn_trace_graph_print(struct cairn_trace_graph *g, const struct cairn_event *event,
			    FILE *out);
/* Prints the entry that is kept back, for who waits. */
int cairn_trace_graph_flush(struct cairn_trace_graph *g, FILE *out);
/* After the last event: calls without an end are closed, and say so. */
int cairn_trace_graph_end(struct cairn_trace_graph *g, FILE *out);

/*
 * cairn_site_frames - the functions around a site, from the probed one outwards
 *
 * For the first frame of an event's stack. At the first instruction of an inlined copy there may be
 * copies of other functions, which it calls. They are left out. If the address is not of the
 * copy, the copy's own chain of calls says what is around it.
 *
 * @frames  the functions at the frame's address, the innermost first: @n of them, with room for
 *          CAIRN_FRAMES_MAX; replaced
 * Returns their number. Strings are borrowed from @function and @site. Threads: any.
 */
size_t cairn_site_frames(const struct cairn_function *function, const struct cairn_site *site,
			 struct cairn_frame *frames, size_t n);

/*
 * "inlined in malloc+0x5c", "entry", "entry of foo.constprop.0" where the symbol is not @function's
 * own; as snprintf.
 *
 * @show_name  how malloc and foo are shown; NULL: as the debug information has them
 */
size_t cairn_site_text(const struct cairn_function *function, const struct cairn_site *site,
		       cairn_show_name show_name, char *buf, size_t size);

/*
 * Aggregates: hits summed up in the kernel, by key, instead of an event for each
 *
 *	struct cairn_aggregate sum = {CAIRN_AGGREGATE_SUM, "n"};
 *	struct cairn_aggregate_opts opts = {
 *		.size = sizeof(opts), .items = &sum, .n_items = 1, .by = "$tid, s->name"};
 *	cairn_trace_aggregate(t, &opts, &err);		// before the first cairn_trace_add()
 *	cairn_trace_add(t, "FUNC if n > 0", &err);
 *	...						// attach, start, wait, detach
 *	cairn_trace_aggregates(t, &table, &err);
 *	for (size_t i = 0; i < table->n_rows; i++)
 *		cairn_aggregate_key_print(t, &table->rows[i], 0, CAIRN_VALUE_TEXT, stdout);
 *
 * Each function has rows of its own. A key that finds no room adds to the row of the others of its
 * function. So the rows of a function and its others together have all its hits.
 */
enum cairn_aggregate_kind {
	CAIRN_AGGREGATE_COUNT,
	CAIRN_AGGREGATE_SUM,
	CAIRN_AGGREGATE_AVG,
	CAIRN_AGGREGATE_MIN,
	CAIRN_AGGREGATE_MAX,
	CAIRN_AGGREGATE_HIST,  /* by powers of two */
	CAIRN_AGGREGATE_LHIST, /* by steps */
	CAIRN_AGGREGATE_QUANTILES,
};

/*
 * The quantiles: the least number that at least this share of the numbers do not exceed. Numbers
 * from 32 on are known to within 1/32 of their size, smaller ones and the maximum exactly.
 */
enum cairn_quantile { CAIRN_P50, CAIRN_P90, CAIRN_P99, CAIRN_P99_9, CAIRN_N_QUANTILES };

struct cairn_aggregate {
	enum cairn_aggregate_kind kind;
	/*
	 * An expression over the parameters, as in a condition but without && and || and strings;
	 * of LHIST with ",FROM,TO,STEP" after it; of COUNT NULL.
	 */
	const char *text;
};

struct cairn_aggregate_opts {
	size_t size; /* sizeof(struct cairn_aggregate_opts), set by the caller */
	const struct cairn_aggregate *items;
	size_t n_items; /* 1 to 8 */
	/*
	 * "KEY, ...", up to 16: an expression, with :str or :hex after it, or $pid, $tid, $comm,
	 * $cpu, $cgroup (its number), $site, $caller or $stack. With the last two,
	 * cairn_trace_poll() takes stacks over while hits come. NULL: one row per function.
	 */
	const char *by;
	/* Most keys that have rows, of all functions together; 0: 8192. */
	uint32_t max_keys; /* a quantile takes 16 KiB of each key; with one, 0: 2048 */
	/* Each cairn_trace_aggregates() begins anew, and keys have room again. */
	bool clears;
};

/*
 * cairn_trace_aggregate - the trace's hits are summed up, and make no events
 *
 * @opts  its texts are copied
 * Returns 0. -EINVAL: probes were added already, or a text that is no such list (err shows where
 * with a caret). -ERANGE: too many aggregates, keys or steps. -EOPNOTSUPP: a key that is not there
 * yet. -ENOMEM. What is wrong with a function's parameters is an error of cairn_trace_add(): an
 * expression is available at a site, or the site is refused as for a listed value.
 */
int cairn_trace_aggregate(struct cairn_trace *t, const struct cairn_aggregate_opts *opts,
			  struct cairn_err *err);

/* An integer of -(2^127) to 2^127: its size, as two words, and its sign. */
struct cairn_number {
	bool is_negative;
	uint64_t high, low;
};

/* As snprintf, in decimal. */
size_t cairn_number_text(const struct cairn_number *n, char *buf, size_t size);

struct cairn_aggregate_bucket {
	struct cairn_number from, to; /* both are in it */
	bool is_below, is_above;      /* of LHIST: there is no from, or no to */
	uint64_t count;
};

struct cairn_aggregate_value {
	uint64_t n;          /* hits whose number was read */
	uint64_t unreadable; /* the others: memory that could not be read, or a division by 0 */
	/*
	 * Whether there is a number. AVG, MIN, MAX and QUANTILES of no hits have none; nor have SUM
	 * and AVG after 2^32 hits on one processor, as their sum may have wrapped.
	 */
	bool is_known;
	struct cairn_number number; /* MIN, MAX; of SUM and AVG the sum; of QUANTILES the largest */
	struct cairn_number quantiles[CAIRN_N_QUANTILES];
	/* HIST and LHIST: from the first one that is not empty to the last one. */
	const struct cairn_aggregate_bucket *buckets;
	uint32_t n_buckets;
};

struct cairn_aggregate_row {
	const struct cairn_trace_probe *probe;
	bool is_others; /* hits of all keys of the probe that found no room; has no key */
	uint64_t hits;
	const struct cairn_aggregate_value *values; /* as many as there are aggregates */
	const uint8_t *key;                         /* for cairn_aggregate_key_print() */
};

/*
 * Those with the largest value of the first aggregate first; for MIN the smallest, for histograms
 * the most hits. Others come last.
 */
struct cairn_aggregates {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC */
	uint64_t hits;           /* of all rows */
	size_t n_rows;
	const struct cairn_aggregate_row *rows;
};

/*
 * cairn_trace_aggregates - the rows so far, or since the last call when the trace clears
 *
 * Without clearing, while hits come, a row may have a hit that is not yet in all its values. After
 * cairn_trace_detach(), and when the trace clears, the rows are exact.
 *
 * @ret  freed by cairn_aggregates_free(), before the trace is closed
 * Returns 0; -EINVAL: the trace does not aggregate, or is not attached; -EAGAIN: a hit has been in
 * progress for a second (it waits for a page), and the rows are in the next result; -ENOMEM, or the
 * errors of bpf(2).
 * Cost: two system calls per key, four when the trace clears. Threads: as the handle.
 */
int cairn_trace_aggregates(struct cairn_trace *t, struct cairn_aggregates **ret,
			   struct cairn_err *err);
void cairn_aggregates_free(struct cairn_aggregates *a); /* takes NULL */

/* The keys of a row, in the order of opts.by. */
uint32_t cairn_trace_n_keys(const struct cairn_trace *t);
/* As it was written, without its modifiers; "$pid". */
const char *cairn_trace_key_text(const struct cairn_trace *t, uint32_t i);
/* The expression of an aggregate, without its range; NULL: of COUNT. */
const char *cairn_trace_aggregate_text(const struct cairn_trace *t, uint32_t i);

/*
 * cairn_aggregate_key_print - one key of a row that has keys, as cairn_event_value_print() does
 *
 * Returns 0, -EINVAL, or a negative errno from @out.
 */
int cairn_aggregate_key_print(const struct cairn_trace *t, const struct cairn_aggregate_row *row,
			      uint32_t i, enum cairn_value_style style, FILE *out);
/*
 * cairn_aggregate_key_stack - the stack of a key $stack; of $caller the caller's frame
 *
 * Returns NULL for another key, for the caller of an inlined copy, which
 * cairn_aggregate_key_print() has, and without memory. Without frames, there was no room for the
 * stack. Borrowed until the next call, or a call that takes over hits.
 */
const struct cairn_thread_stack *
cairn_aggregate_key_stack(struct cairn_trace *t, const struct cairn_aggregate_row *row, uint32_t i);
/* The site where a stack of the key $stack begins; NULL: it is not known. Borrowed. */
const struct cairn_site *cairn_aggregate_key_site(const struct cairn_trace *t,
						  const struct cairn_aggregate_row *row);
/* True if the key is a string that goes on. */
bool cairn_aggregate_key_is_cut(const struct cairn_trace *t, const struct cairn_aggregate_row *row,
				uint32_t i);

/*
 * cairn_trace_guard - estimate how much the trace slows its processes down, and limit that
 *
 * To be called some times a second. The slowdown is the cost of the hits over the processor time of
 * the traced process; of all processes of the machine if the trace is not of one process, since
 * others that have the file mapped run into the probes, too. A hit costs a trap, measured on a
 * child that is thrown away, and the run of the kernel's program, which the kernel measures. If the
 * slowdown is more than @max, one of so many hits is taken from then on; if that is not enough, the
 * probes are removed. Nothing is done while the hits take less than a fiftieth of one processor.
 *
 * @max  0.1: a tenth more processor time than without the trace
 * Returns 0. Negative, and nothing is done: -EOPNOTSUPP: the kernel does not measure, or the probes
 * are of the kernel, whose cost is not known; a child or a probe of its own cannot be made.
 * Cost: a few system calls; once some ten milliseconds. All programs of the kernel are measured
 * while the trace is open, which costs each run some ten nanoseconds.
 */
struct cairn_trace_load {
	double slowdown; /* since the last look; negative: it is too early to tell */
	double hits_per_s;
	bool acted, detached;
	bool of_machine; /* of all its processes, also those that are not traced */
	uint32_t sample; /* one of so many hits is taken from now on */
};
int cairn_trace_guard(struct cairn_trace *t, double max, struct cairn_trace_load *ret,
		      struct cairn_err *err);

/*
 * cairn_trace_cgroup_look - take the directory of opts.cgroup as it is now
 *
 * A service manager removes the directory of a service that has ended, and makes it again: it is
 * another cgroup then. To be called some times a second.
 *
 * Returns 1: it is another one than at the last call, and hits between its making and this call are
 * missing; 0; -ENOENT: there is none now. Cost: a few system calls for each level of the directory.
 */
int cairn_trace_cgroup_look(struct cairn_trace *t);

/*
 * cairn_trace_detach - remove all probes; events already recorded can still be polled
 *
 * Takes a trace that is not attached. Returns nothing because closing a link cannot fail.
 */
void cairn_trace_detach(struct cairn_trace *t);

/* Counts of one probe. */
struct cairn_trace_counts {
	uint64_t events;    /* handed out; of aggregates: in the rows that were last read */
	uint64_t lost;      /* the ring buffer was full, or too many hits came at a time */
	uint64_t filtered;  /* the condition did not hold */
	uint64_t undecided; /* the condition needed memory that could not be read: no event */
	/*
	 * Updates of aggregates that the kernel refused though there was room. The hit is among
	 * the others, or missing in a MIN or MAX.
	 */
	uint64_t failed;
	/*
	 * Calls without an event, of a probe with $ret or $duration. They were left by longjmp() or
	 * an exception, or are nested deeper than the kernel follows (64). For kernel functions,
	 * the kernel did not report the return;
	 */
	uint64_t unwound;
	uint64_t
		unfinished; /* had not returned when the probes were removed, or the thread ended; */
	/* had 64 calls of the same thread around them; of the kernel: too many were in progress */
	uint64_t too_deep;
	uint64_t apart;   /* or ran on another stack of a thread with calls in progress */
	uint64_t undrawn; /* hits that sampling left out; whether the condition held is not known */
	/*
	 * For a trace that shows calls, entries that found no room. Their calls are among the
	 * others, as what counts there is the return.
	 */
	uint64_t entries_lost;
};

struct cairn_trace_stats {
	size_t size; /* sizeof(struct cairn_trace_stats), set by the caller */
	uint32_t n_sites, n_attached, n_refused, n_programs, n_links;
	struct cairn_trace_counts total;
	/*
	 * Hits that never reached the program (recursion in the kernel), for all probes. Part of
	 * the loss.
	 */
	uint64_t missed;
	uint64_t load_ns, attach_ns, detach_ns;
	enum cairn_trace_backend backend;
	bool sleepable; /* memory not yet resident was read, too */
	bool children_followed;
	bool children_known; /* n_children means something */
	/* of the traced process and its followed children, those that ran before among them */
	uint64_t n_children;
	uint64_t n_running; /* of these, those that ran before: known when children_known */
	bool follows;       /* a probe has $ret or $duration */
	/*
	 * Different ones; one that was forgotten meanwhile (16384 are kept at least) counts again.
	 */
	uint64_t n_stacks;
	/*
	 * Hits whose stack found no room: the buffer was full, too many came at a time, or the
	 * event waited for longer than the stack was kept.
	 */
	uint64_t n_stacks_lost;
	uint64_t n_stacks_cut; /* events whose stack is not complete, and says why */
	uint32_t sample;       /* one of so many hits was taken; 1: all */
	/*
	 * Hits of kernel probes inside the handler of another one are lost, and not counted in
	 * missed, as the kernel does not tell (before Linux 6.7).
	 */
	bool missed_unknown;
	/* Attached sites in modules that were unloaded since: their hits are not seen any more. */
	uint32_t n_unloaded;
	/* The work of cairn_trace_guard(), in nanoseconds since the probes were set; 0: nothing. */
	uint64_t sampled_since_ns; /* until then more hits, or all, were taken */
	uint64_t given_up_ns;      /* the probes were removed */
	/*
	 * For kernel probes with $ret or $duration, returns that the kernel did not report, as it
	 * follows only so many calls of a function at a time. They are of all processes, and also
	 * of calls that did not meet the condition; those of the trace are among unwound and
	 * unfinished. Known unless missed_unknown.
	 */
	uint64_t returns_missed;
};

/*
 * cairn_trace_stats - what happened so far
 *
 * @ret     size is set by the caller
 * @counts  cairn_trace_n_probes() of them, or NULL
 * Returns 0, or a negative errno from bpf(2). Works before attaching and after detaching.
 */
int cairn_trace_stats(struct cairn_trace *t, struct cairn_trace_stats *ret,
		      struct cairn_trace_counts *counts, struct cairn_err *err);

/*
 * cairn_trace_status - how the traced command ended
 *
 * @ret  as waitpid(2) gives it
 * Returns true once the command that this trace ran has ended; false for a process not started
 * here.
 */
bool cairn_trace_status(struct cairn_trace *t, int *ret);

CAIRN_END_DECLS
#endif
