/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module trace sets probes at the sites of functions, of programs or of the kernel, and reads typed
 * events from them.
 *
 * This header: the trace handle, as planning, attaching and reading share it.
 *
 *	open.c      open, add, close, and the public data
 *	plan/       probe x sites -> sites and programs (offline)
 *	place/      a probe's text -> a file, a function, sites; the instruction that is probed;
 *	            whether the running code is the analysed code
 *	expr/       a probe's text -> typed expressions -> fetch operations
 *	fetch/      fetch programs: assembled; run in plain C, for constants and tests; as text
 *	emit/       fetch programs as scripts for other tools
 *	attach/     the kernel side: programs, links, which processes, returns of calls, the guard
 *	bpf/        what runs in the kernel; abi.h and quantile.h are shared with it
 *	read/       records -> events, and their time
 *	aggregate/  hits that are summed up in the kernel
 *	stacks/     the stacks of hits, and the functions around a site
 *	show/       events as lines of text or JSON, in the user's words, as a tree
 *	weigh.h     probes for a program of another module, whose hits have a number
 *	locate.h    probes for a program of the caller, whose hits have the arguments
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <sys/stat.h>

#include <cairn/sidecar.h>
#include <cairn/trace.h>
#include <cairn/usdt.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "launch/child.h"
#include "perf/reports.h"
#include "trace/place/boundary.h"
#include "trace/fetch/fetch.h"

/* All sites of a trace: the limit of one uprobe_multi link (MAX_UPROBE_MULTI_CNT of Linux). */
#define TRACE_SITES_MAX  (1u << 20)
/* Functions, which a pattern may have thousands of. */
#define TRACE_PROBES_MAX CAIRN_FIND_MAX

struct format_use;
struct mover;
struct trace_format;
struct traced;
struct trace_stacks;
struct aggregates;
struct aggregate_part;
struct copy_ends;
struct probe_returns;
struct trace_copy;
struct trace_located;

/* A probed file; probes of the same file share it. */
struct trace_file {
	const char *path;  /* as opened */
	const char *shown; /* for people */
	struct cairn_binary *bin;
	struct cairn_sites *sites; /* NULL when no probe needed functions, or the caller has them */
	struct cairn_usdt *usdt;   /* NULL until a probe needs it */
	/* that answers for them; NULL: the debug information does */
	struct cairn_sidecar *sidecar;
	/* of earlier probes, when the debug information took over */
	struct cairn_sites *sidecar_sites;
	int fd;                /* open on the analysed file, whatever has its name now */
	struct stat stat;      /* as it was then */
	struct mover *mover;   /* made when first needed */
	struct code_walk walk; /* the function that was decoded last */
	/*
	 * Of the running kernel; then bin and sites are the caller's. NULL: programs map the file.
	 */
	const struct cairn_kernel *kernel;
	const struct cairn_sidecar *kernel_sidecar;
	struct cairn_sites *own_sites; /* then of its debug information; NULL */
	const char *module;            /* NULL: the kernel itself */
	const char *in_brackets;       /* the path of frames in it: "[kernel]", "[loop]" */
	int kprobe_type;               /* of perf events; negative: the kernel has none */
	bool was_mapped;               /* by the traced process, as far as was seen */
	bool is_awaited;               /* a library that no traced process has mapped yet */
	bool knows_returns, throws;
	struct copy_ends *ends; /* of inlined copies; NULL: only the debug information knows them */
	bool knows_ends, wants_debug_info;
};

/* A constant value of a site: the same for every hit. */
struct trace_constant {
	const uint8_t *bytes; /* NULL: fetched */
};

/* The planner's private facts about a site; parallel to the public array. */
struct trace_site {
	struct cairn_trace_site pub;
	struct cairn_trace_slot *slots;   /* pub.values */
	struct trace_constant *constants; /* parallel to them */
	uint64_t semaphore;            /* file offset of a USDT probe's counter; 0: it has none */
	uint8_t weight;                /* enum trace_weight */
	enum cairn_unavailable why;    /* there is no number */
	struct trace_located *located; /* of a trace that locates: locate.h; NULL */
	bool attached;
	bool by_multi;    /* of the kernel: it goes by one link with others (kernel_multi.h) */
	bool is_long_nop; /* its instruction is a nop of 5 bytes */
	bool moves_stack; /* as in the entry of the kernel's program */
	bool follows;     /* calls are followed to their return, which has a program, too */
	uint32_t return_program;
	const struct cairn_location *result; /* if calls are followed */
	/*
	 * If it follows an inlined copy; and why it does not, or what of the result is not known.
	 */
	const struct trace_copy *copy;
	const char *no_end;
	/*
	 * If by_exits, or a copy: file offsets of the instructions by which the call is left; of the
	 * kernel, addresses.
	 */
	uint32_t n_exits;
	const uint64_t *exits;
};

struct trace_probe {
	struct cairn_trace_probe pub;
	struct trace_file *file;
	const struct probe_text *text;
	const uint64_t *semaphores;   /* of pub.function's sites; NULL: none has one */
	struct value_layout *layouts; /* parallel to pub.values */
	uint32_t n_record;            /* bytes of its records: one of TRACE_CLASSES */
	struct trace_site *sites;
	uint64_t events;
	/* In a trace with aggregates, parallel to pub.values; their bits are per aggregate. */
	struct aggregate_part *parts;
	uint8_t is_signed;
	const char *no_returns;          /* as in expr_scope */
	bool by_exits;                   /* calls are followed by probes on return instructions */
	struct probe_returns *returns;   /* NULL: a hit is complete at once */
	const struct format_use *format; /* by field of the format; NULL without */
};

struct trace_program {
	uint32_t op, n; /* in trace.ops */
	bool has_condition;
};

/* A directory of cgroup v2, as a program can compare it. */
struct trace_cgroup {
	uint64_t id;
	/* How many directories it is below the hierarchy's root; unknown: from 0 to the deepest. */
	uint8_t level_first, level_last;
};

/* The overload guard: guard.h. */
struct trace_guard {
	int stats_fd; /* the kernel measures programs while it is open */
	bool is_open, has_trap;
	uint64_t trap_ns;
	/* At the last look. */
	uint64_t time_ns, cpu_ns, n_hits, run_ns;
};

struct trace_kernel;

struct cairn_trace {
	struct cairn_trace_opts opts;
	bool weighs;                    /* hits have a number, and no values: weigh.h */
	bool locates;                   /* hits have the arguments: locate.h */
	uint32_t n_needed;              /* the first so many are available at each site */
	struct aggregates *aggregates;  /* hits are summed up: aggregate.h; NULL: they are events */
	struct trace_stacks *stacks;    /* of hits: stacks.h; NULL: none are wanted */
	struct trace_format *format;    /* of events: format.h; NULL: their own line */
	struct cairn_trace_style style; /* of events as text */
	struct trace_times *times;      /* times.h; NULL until attached */
	uint32_t string_bytes;          /* fetched at most, with the NUL: a power of two */
	uint32_t string_shown;          /* of them, without it */
	uint32_t value_bytes;
	struct arena arena;
	struct cairn_types *words; /* of probes without debug information; NULL until needed */
	uint32_t word;             /* in it: unsigned long */
	VEC(struct trace_file *) files;
	VEC(struct trace_probe *) probes;
	VEC(struct trace_site *) sites;
	VEC(struct trace_program) programs;
	VEC(struct fetch_op) ops;
	struct map program_ids; /* hash of the operations to index + 1 of the newest such program */
	VEC(uint32_t) program_next; /* parallel to programs: the next one of the same hash + 1 */

	int pid;               /* traced; 0: several or every process */
	struct traced *traced; /* the processes that are named, or the command's; NULL: every one */
	size_t n_traced;
	struct trace_cgroup cgroup; /* of opts.cgroup */
	struct child child;         /* the command's process */
	struct reports mappings;    /* of the command */
	bool has_mappings;          /* false: /proc is used */
	bool mappings_seen;
	bool mappings_unsure; /* one may have been of a probed file */

	struct trace_kernel *kernel; /* NULL until attached */
	uint64_t attached_at_ns;
	struct trace_guard guard;
	uint32_t sample; /* one of so many hits is taken; 0 and 1: all */
	/* The guard's work, since probes were set; 0: nothing. */
	uint64_t sampled_since_ns, given_up_ns;
	uint64_t attach_ns, detach_ns, load_ns;
};

/* CLOCK_MONOTONIC (clock.c). */
uint64_t trace_now_ns(void);

/*
 * trace_add_function - add a probe on a function that the caller found, or made up for a test
 *
 * @file  with its binary open; @types is the graph of the function's types
 * Everything must outlive the trace. Result as cairn_trace_add().
 */
int trace_add_function(struct cairn_trace *t, struct trace_file *file,
		       const struct cairn_function *function, const struct cairn_types *types,
		       const char *probe, struct cairn_err *err);

/*
 * Registers a file, just analysed, with @t, which then closes it; on failure it stays the caller's.
 */
int trace_add_file(struct cairn_trace *t, const char *path, const char *shown,
		   struct cairn_binary *bin, struct cairn_sites *sites, struct trace_file **ret,
		   struct cairn_err *err);

/*
 * resolve_probe - find the file and the functions that a probe's head means
 *
 * @ret_file  set once it is known, also when looking for functions in it fails
 * @ret_spec  likewise: the head without the file
 * @ret       at least one; more than one when all are meant
 * Errors as cairn_trace_add().
 */
int resolve_probe(struct cairn_trace *t, const struct probe_text *text,
		  struct trace_file **ret_file, const char **ret_spec,
		  struct cairn_function_list *ret, struct cairn_err *err);
/*
 * resolve_file - the file that a probe names, opened once for all probes
 *
 * @name  a path, or a library; NULL: the executable of the process or command
 * Returns 0, or negative, as cairn_trace_add(). The file's sites are not opened.
 */
int resolve_file(struct cairn_trace *t, const char *name, struct trace_file **ret,
		 struct cairn_err *err);

/*
 * resolve_head - the file of a head [PATH:]SPEC, and the SPEC
 *
 * Results and errors as resolve_probe(). The file's sites are not opened: resolve_sites() does.
 */
int resolve_head(struct cairn_trace *t, const struct probe_text *text, struct trace_file **ret_file,
		 const char **ret_spec, struct cairn_err *err);
int resolve_sites(struct cairn_trace *t, struct trace_file *f, struct cairn_err *err);

/* A probe's target, if it is not a function of the file's sites. */
struct trace_target {
	const struct cairn_function *function;
	const struct cairn_types *types;
	const uint64_t *semaphores; /* as in trace_probe */
	bool is_symbol, is_import;  /* as in cairn_trace_probe */
};
struct trace_targets {
	const struct trace_target *p;
	size_t n;
	enum cairn_found found;
};

/*
 * resolve_usdt - find the file and the USDT probes that a probe's head means
 *
 * Results and errors as resolve_probe().
 */
int resolve_usdt(struct cairn_trace *t, const struct probe_text *text, struct trace_file **ret_file,
		 struct trace_targets *ret, struct cairn_err *err);

/*
 * resolve_place - find the file and the instructions that a line or an offset means
 *
 * Results and errors as resolve_probe().
 */
int resolve_place(struct cairn_trace *t, const struct probe_text *text,
		  struct trace_file **ret_file, struct trace_targets *ret, struct cairn_err *err);

/*
 * resolve_symbol - find a function by its symbol, by its demangled name, or as one that the file
 * takes from a shared library
 *
 * Returns 1; 0: the file has no such symbol; -ENOTUNIQ, -EBADMSG, -ENOMEM.
 */
int resolve_symbol(struct cairn_trace *t, const struct trace_file *f, const char *spec,
		   struct trace_targets *ret, struct cairn_err *err);

/*
 * After resolve_symbol() found nothing: the error @code, that the debug information gave,
 * completed.
 */
int no_symbol(const struct trace_file *f, const char *spec, int code, struct cairn_err *err);

/*
 * symbol_target - a function whose parameters are not known, with the registers of the calling
 * convention as parameters: $arg1 and so on
 *
 * Returns 0 or -ENOMEM.
 */
int symbol_target(struct cairn_trace *t, const struct trace_file *f,
		  const struct cairn_function *from, struct trace_target *ret,
		  struct cairn_err *err);

/* Makes t->words. Returns 0 or -ENOMEM. */
int trace_words(struct cairn_trace *t, struct cairn_err *err);

/*
 * From now on the debug information of a file answers, not its sidecar. Errors as
 * cairn_sites_open().
 */
int resolve_again(struct cairn_trace *t, struct trace_file *f, struct cairn_err *err);

/* scope.c: what the expressions of a probe may name; errors show the probe's text. */
struct expr_scope probe_scope(const struct trace_probe *p);

/*
 * plan_probe - values, sites and programs of a probe
 *
 * @p  file, text and pub.function, pub.types are set; the rest is filled
 * On failure the trace's sites and programs are as before.
 */
int plan_probe(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err);

/*
 * True if a refused site does not keep the others from being attached, as with best_effort: the
 * site is a pattern's, which asks for all functions that can be probed.
 */
static inline bool trace_may_leave_out(const struct cairn_trace *t, const struct trace_site *site)
{
	return t->opts.best_effort ||
	       t->probes.p[site->pub.probe]->pub.found == CAIRN_FOUND_PATTERN;
}

/* Smallest record size that holds @n_bytes, and its index; 0 when none does. */
uint32_t trace_record_class(uint32_t n_bytes, unsigned int *ret_index);

/*
 * An event from a record; @values has room for FETCH_VALUES_MAX. False for a record that cannot be
 * ours.
 */
struct decode_space {
	struct cairn_event event;
	struct cairn_event_call call;
	struct cairn_event_value values[FETCH_VALUES_MAX];
	uint8_t bits[FETCH_VALUES_MAX][8]; /* bit-fields, shifted to bit 0 */
	char reasons[FETCH_VALUES_MAX][40];
	struct cairn_event_target targets[TARGETS_MAX];
	uint32_t n_targets;
};
bool decode_record(const struct cairn_trace *t, const struct trace_record *rec, size_t n_bytes,
		   struct decode_space *s);

#endif
