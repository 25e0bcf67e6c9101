/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiling: where programs spend their time, with whole stacks
 *
 * The kernel interrupts the sampled processes at a rate. A BPF program walks the stack there, by
 * the unwind tables of the mapped files, so that no frame pointers are needed. Each different stack
 * is handed over once, each sample as 64 bytes. The names are found at the end.
 *
 *	struct cairn_prof *prof;
 *	struct cairn_profile *profile;
 *	struct cairn_prof_opts opts = {.size = sizeof(opts), .pids = &pid, .n_pids = 1};
 *	if (cairn_prof_open(&opts, &prof, &err) < 0 || cairn_prof_start(prof, &err) < 0)
 *		return fail(err.msg);
 *	while (!interrupted && !cairn_prof_targets_gone(prof))
 *		cairn_prof_poll(prof, 100, &err);
 *	cairn_prof_stop(prof, &err);
 *	cairn_prof_profile(prof, &profile, &err);	// cairn/profile.h
 *	cairn_prof_close(prof);
 *
 * It needs CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE. File descriptors hold all that is in the
 * kernel: a profiler that is killed leaves nothing there.
 */
#ifndef CAIRN_PROF_H
#define CAIRN_PROF_H

#include <cairn/profile.h>
#include <cairn/sidecar.h>

CAIRN_BEGIN_DECLS

struct cairn_prof;

enum cairn_prof_event {
	/* time on a processor: hardware cycles where the machine counts them, else cpu-clock */
	CAIRN_PROF_CPU,
	CAIRN_PROF_CPU_CLOCK,
	CAIRN_PROF_CYCLES,
	CAIRN_PROF_PAGE_FAULTS,
	CAIRN_PROF_OFF_CPU,    /* time that threads were blocked, in nanoseconds */
	CAIRN_PROF_TRACEPOINT, /* events of the kernel: opts.event_text */
	CAIRN_PROF_PROBE,      /* calls of functions, inlined ones, too: opts.event_text */
};

struct cairn_prof_opts {
	/* sizeof(struct cairn_prof_opts) of the caller; a longer, unknown tail must be zero. */
	size_t size;
	/* Processes to sample, with all that they start. */
	const int *pids;
	size_t n_pids;
	/*
	 * A command to run, NULL-terminated, with @exe as its program file, and all that it starts.
	 * It begins with cairn_prof_start(). Both must stay valid until close.
	 */
	char *const *argv;
	const char *exe;
	bool all;           /* every process; neither pids nor argv are then given */
	const char *cgroup; /* with all: only those in this directory of cgroup v2; NULL */
	enum cairn_prof_event event;
	/* Samples per second and processor; 0: 99. For cpu, cpu-clock and cycles. */
	unsigned int hz;
	bool no_kernel;    /* leave out what the kernel does for them */
	size_t ring_bytes; /* for samples; 0: 4 MiB; a power of two of at least a page */
	/*
	 * Finds the sidecar of a file for its names, when all is over. One call at a time. As in
	 * struct cairn_stacks_opts.
	 */
	int (*find_sidecar)(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			    struct cairn_err *err);
	void *find_sidecar_ctx;
	/*
	 * The same for a file that has none: it may take the time to make or download one. NULL: it
	 * is made in memory.
	 */
	int (*make_sidecar)(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			    struct cairn_err *err);
	void *make_sidecar_ctx;
	/*
	 * How to show a function that the linker knows as @linker_name and the debug information as
	 * @name, say, demangled; either may be NULL. As snprintf. NULL: as the source names it.
	 */
	size_t (*show_name)(const char *linker_name, const char *name, char *buf, size_t size);
	/*
	 * Keep when and on which processor each sample was taken, for cairn_profile_moment(): 24
	 * bytes a sample, and 32 in the profile. The first 2^23 samples of a window have it; a note
	 * says when others have not. Without it memory does not grow with the number of samples.
	 */
	bool moments;
	/*
	 * CAIRN_PROF_TRACEPOINT: "CATEGORY:NAME", such as "sched:sched_switch". CAIRN_PROF_PROBE: a
	 * probe as cairn_trace_add() takes it. Every site of the function is probed, and each hit
	 * is a sample. The list has one number that the hit weighs, an expression as in
	 * the condition, and after it perhaps a unit, :bytes or :ns: "malloc_wrapper(n *
	 * size:bytes) if n". Without it hits are counted. Must stay valid until close.
	 */
	const char *event_text;
	/*
	 * Among events that are counted, every so many of a processor are a sample, which weighs as
	 * much; 0: 1. Not with a number in event_text.
	 */
	unsigned long period;
	/*
	 * A probe: finds the sidecar of its file, as struct cairn_trace_opts. One that answers
	 * about addresses alone will not do. NULL: the debug information answers.
	 */
	int (*find_sites)(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			  struct cairn_err *err);
	void *find_sites_ctx;
	/* A probe: leave out sites that cannot be probed as requested. Else it is an error. */
	bool best_effort;
};

/* Why a stack ends where it does. */
enum cairn_prof_end {
	CAIRN_PROF_COMPLETE,    /* the last frame has no caller */
	CAIRN_PROF_ASSUMED,     /* as that, but a frame on the way was assumed */
	CAIRN_PROF_NO_USER,     /* complete: a thread of the kernel has no other part */
	CAIRN_PROF_NO_PROCESS,  /* the process's mappings were not known, or had no room */
	CAIRN_PROF_NO_MAPPING,  /* its address is in no mapping that is known */
	CAIRN_PROF_NOT_READY,   /* the file's unwind table was not made yet */
	CAIRN_PROF_UNDESCRIBED, /* no row describes it, and the frame pointer leads to no call */
	CAIRN_PROF_UNREADABLE,  /* the stack's page is not in memory, or no stack is there */
	CAIRN_PROF_LOST,        /* a register that is needed was not saved */
	CAIRN_PROF_LOOP,        /* the stack leads back to itself */
	CAIRN_PROF_LIMIT,       /* more than 1,024 frames */
	CAIRN_PROF_READS,       /* more memory was to be read than a sample may */
	CAIRN_PROF_N_ENDS,
};

/* Counts of a run; all counters only grow. */
struct cairn_prof_counts {
	uint64_t n_samples;                 /* that were taken over */
	uint64_t n_lost;                    /* that found no room: not in the profile */
	uint64_t n_ends[CAIRN_PROF_N_ENDS]; /* the samples by their end */
	uint64_t n_stacks, n_frames;        /* different stacks, and their frames */
	uint64_t n_files, n_rows;           /* files with an unwind table, and its rows */
	uint64_t kernel_bytes;              /* of maps, for rows, mappings and samples */
	uint64_t walk_ns;                   /* time in the kernel, for all samples */
	uint64_t own_cpu_ns;                /* processor time of this process since open */
	uint64_t first_sample_ns;           /* from open to the first sample; 0: there was none */
	uint64_t n_lost_mappings;           /* reports of mappings that found no room */
	uint64_t n_left_out;                /* processes for all of whose code there was no room */
	/* Hits of a probe that are no samples: the condition did not hold, or was not decided. */
	uint64_t n_filtered, n_undecided;
	uint64_t n_without_value; /* hits that are samples, and have no number */
	/* Samples that were walked when their task had read pages of its stack, or could not. */
	uint64_t n_late;
};

/*
 * cairn_prof_open - load the program, take the mappings that are there, and make the tables
 *
 * @ret  cairn_prof_close()
 * Returns 0, or negative:
 *   -EPERM       a permission is missing (err: the command that has it)
 *   -EOPNOTSUPP  the kernel cannot do it, or counts no cycles (err: what is missing)
 *   -ESRCH       no such process
 *   -ENOENT      no such cgroup
 *   -EINVAL      contradicting options
 *   and those of cairn_trace_add() and cairn_trace_attach(), for a probe
 *   -ENOMEM, and the errors of bpf(2) and perf_event_open(2)
 * Cost: some 100 ms. Threads: one at a time per handle; the call starts threads that make tables.
 */
int cairn_prof_open(const struct cairn_prof_opts *opts, struct cairn_prof **ret,
		    struct cairn_err *err);

/*
 * cairn_prof_prepare - make the unwind tables of what is sampled, before sampling begins
 *
 * Stacks that end in a file without a table are cut. A table of a large library takes some 100 ms,
 * and seconds on a busy machine. Call it between open and start, as often as it is worth the time.
 * The tables of a command are those of the files that its loader will map.
 * @timeout_ms  waits at most so long for the next table
 * Returns the number of tables that are still to be made; -EINTR; -ENOMEM.
 */
int cairn_prof_prepare(struct cairn_prof *prof, int timeout_ms, struct cairn_err *err);

/*
 * Begin to sample, and run the command. Waits at most 100 ms for the tables of processes that run.
 * Returns 0; the errors of execve(2) and ioctl(2). A probe: those of cairn_trace_attach(). A
 * tracepoint: -ENOENT: there is none (err: where they are listed); -EPERM, -EACCES: a permission or
 * a mount is missing (err: the command that helps).
 */
int cairn_prof_start(struct cairn_prof *prof, struct cairn_err *err);

/*
 * cairn_prof_poll - take over what the kernel has
 *
 * New mappings, processes and files are followed here: call it at least ten times a second. It
 * returns after some 100 ms of reading though more samples are there.
 * @timeout_ms  waits at most so long
 * Returns the number of samples taken over; -EINTR; -ENOMEM.
 */
int cairn_prof_poll(struct cairn_prof *prof, int timeout_ms, struct cairn_err *err);

/* Whether all of opts.pids, or the command, have ended. With opts.all never. */
bool cairn_prof_targets_gone(const struct cairn_prof *prof);
/* The wait status of the command, when it has ended by itself; else -1. */
int cairn_prof_status(const struct cairn_prof *prof);

/*
 * cairn_prof_end_command - ask a command that still runs to end, as perf record does
 *
 * The first call sends SIGTERM. Names of code that it made are found while it lives: call it after
 * cairn_prof_profile(). Returns true when it has ended, or there is none. Never waits.
 */
bool cairn_prof_end_command(struct cairn_prof *prof);

/* Take no more samples, and take over those that are there. Returns 0 or -ENOMEM. */
int cairn_prof_stop(struct cairn_prof *prof, struct cairn_err *err);

void cairn_prof_counts(const struct cairn_prof *prof, struct cairn_prof_counts *ret);

/* "cpu-clock", "cycles", ...: what is really counted. Static. */
const char *cairn_prof_event_text(const struct cairn_prof *prof);
/* Static words for each end. */
const char *cairn_prof_end_text(enum cairn_prof_end end);
/* One word for each: "complete", "assumed", "unreadable". Static. */
const char *cairn_prof_end_id(enum cairn_prof_end end);

/*
 * cairn_prof_profile - what was sampled, with names
 *
 * Each sample has the labels "pid", "tid" and "thread". One with a stack that is not complete, or
 * has an assumed frame, has "end", too, with cairn_prof_end_id(). If it is not complete, its
 * outermost frame is "[cut: ID]", so that graphs keep such stacks apart. With opts.moments it has
 * moments; that of time blocked is when the thread began to wait. The values are
 * {"samples", "count"} and {"cpu", "nanoseconds"}, or {"page-faults", "count"}, or {"off-cpu",
 * "nanoseconds"}. For a tracepoint, its name and "count". For a probe, {"hits", "count"}, and for
 * the number in its list the expression and its unit. A hit without that number, which has 0 there,
 * has the label "unavailable" with the reason's word. Its innermost frame is the probed function,
 * also where other functions are inlined into its first instruction.
 * @ret  cairn_profile_close(); it borrows nothing of @prof
 * Returns 0; -ENOMEM; -ERANGE as cairn_profile_add_sample().
 * Cost: the names of each different frame, once. Sidecars that are missing are made.
 */
int cairn_prof_profile(struct cairn_prof *prof, struct cairn_profile **ret, struct cairn_err *err);

/*
 * cairn_prof_window - what was sampled since the start or the last window, and begin another one
 *
 * For a run without an end: what was sampled before is forgotten, so that memory is that of two
 * windows. Not with CAIRN_PROF_OFF_CPU (-EOPNOTSUPP): a thread may be blocked for many windows.
 * The counters go on, but n_stacks and n_frames, which are those of the window that begins.
 * Otherwise as cairn_prof_profile(), which then has the last window. Samples that come while it
 * works wait in the kernel's buffer: call it after a cairn_prof_poll(), and as often as needed.
 */
int cairn_prof_window(struct cairn_prof *prof, struct cairn_profile **ret, struct cairn_err *err);

/*
 * Notes about what could not be done as a whole, and why: names of the kernel that are hidden, a
 * file that could not be read. NULL ends the list. Complete after cairn_prof_profile(), and those
 * of the last cairn_prof_window() until the next; borrowed.
 */
const char *cairn_prof_note(const struct cairn_prof *prof, size_t i);

/*
 * The probes of CAIRN_PROF_PROBE with their sites, as planned and, after cairn_prof_start(), as
 * attached (cairn/trace.h). NULL: another event. Borrowed; it is only to be looked at.
 */
struct cairn_trace;
const struct cairn_trace *cairn_prof_probes(const struct cairn_prof *prof);

/*
 * Why hits have no number, as text; *@ret_word: as a word of docs/reasons.md; *@ret_n: how many
 * hits. NULL ends the list. Static.
 */
const char *cairn_prof_without_value(const struct cairn_prof *prof, size_t i, const char **ret_word,
				     uint64_t *ret_n);

/* Takes NULL. Ends nothing: a command that still runs goes on. */
void cairn_prof_close(struct cairn_prof *prof);

CAIRN_END_DECLS
#endif
