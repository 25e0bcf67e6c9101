/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cover: BPF programs of others at functions that were inlined, unchanged
 *
 * A kprobe, fentry or uprobe program sees the calls that pass the function's first instruction.
 * Those that the compiler inlined, it does not see, and nobody says so. Cairn loads the object,
 * attaches its programs as libbpf does, and attaches each of them once more, to the inlined copies
 * and clones of its function, after code that puts the arguments where the program expects them.
 *
 *	struct cairn_cover_opts opts = {.size = sizeof(opts)};
 *	if (cairn_cover_open("tool.bpf.o", &opts, &cover, &err) < 0 ||
 *	    cairn_cover_attach(cover, &err) < 0)
 *		return fail(err.msg);
 *	...				// its maps fill
 *	cairn_cover_close(cover);
 *
 * Programs that cannot be covered are refused, or with best_effort told: return probes, programs
 * that may sleep, fentry that reads structs before Linux 6.2, tail calls, registers that are no
 * argument, arguments that are unavailable at a site.
 */
#ifndef CAIRN_COVER_H
#define CAIRN_COVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/trace.h>

CAIRN_BEGIN_DECLS

struct cairn_cover;

struct cairn_cover_opts {
	size_t size;      /* sizeof(struct cairn_cover_opts); a longer, unknown tail must be zero */
	bool best_effort; /* attach what can be attached */
	/* "PROGRAM=FUNC", "PROGRAM=PATH:FUNC": of programs whose SEC() does not say it */
	const char *const *targets;
	size_t n_targets;
	/* As of struct cairn_trace_opts (trace.h). */
	const char *const *debug_dirs;
	size_t n_debug_dirs;
	unsigned int threads;
	int (*find_sidecar)(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			    struct cairn_err *err);
	void *find_sidecar_ctx;
	int (*find_kernel)(void *ctx, const char *module, struct cairn_trace_kernel *ret,
			   struct cairn_err *err);
	void *find_kernel_ctx;
	cairn_show_name show_name;
};

/* A program of the object; borrowed until close. */
struct cairn_covered {
	const char *name, *section;
	const char *target;  /* FUNC, or PATH:FUNC; NULL: it is of no function */
	bool is_attached;    /* by libbpf */
	uint32_t n_sites;    /* to which it is attached beyond that */
	uint32_t n_left_out; /* whose calls it does not see */
	/* Why calls are not seen; NULL: all are. Their number may be unknown: n_left_out is 0. */
	const char *why;
	/*
	 * Sites among them where hits may not be calls (enum cairn_count_caveat), and what is so at
	 * the first; 0 and NULL: there is none.
	 */
	uint32_t n_caveats;
	const char *caveat;
	/*
	 * By cairn_cover_count(): calls at these sites that the program did not see, as an
	 * argument's memory could not be read, or as the kernel did not run it.
	 */
	uint64_t n_lost, n_missed;
	bool missed_is_unknown; /* before Linux 6.7 kernel probes do not tell what they missed */
};

/*
 * cairn_cover_open - open an object file of libbpf and load it
 *
 * @path  as clang wrote it, for this machine's byte order
 * @opts  may be NULL; what it points to must be valid until close
 * Returns 0, or negative: -EINVAL (unknown options, or a target of no such program), -ENOENT,
 * -EBADMSG (no object for libbpf), -EPERM, -ENOMEM, and the errors of libbpf (err: what it said
 * last). Cost: that of the verifier. Threads: one at a time per handle, and none may use
 * libbpf_set_print() meanwhile. Signals: no. So it is for the functions below.
 */
int cairn_cover_open(const char *path, const struct cairn_cover_opts *opts,
		     struct cairn_cover **ret, struct cairn_err *err);
/* Detaches; takes NULL. */
void cairn_cover_close(struct cairn_cover *cover);

/*
 * cairn_cover_attach - attach all programs, as libbpf does and where their functions are inlined
 *
 * All or none, but with best_effort.
 * Returns 0, or negative:
 *   -ENOENT      calls would not be seen (err: of which program, and why)
 *   -EPERM, -ENOMEM, -EMFILE, and the errors of cairn_trace_attach() and of libbpf
 * Cost: for each function cairn_sites_find(), and the verifier's for each set of locations.
 */
int cairn_cover_attach(struct cairn_cover *cover, struct cairn_err *err);

/* The programs that were loaded, in the object's order. */
uint32_t cairn_cover_n_programs(const struct cairn_cover *cover);
const struct cairn_covered *cairn_cover_program(const struct cairn_cover *cover, uint32_t i);

/* Brings n_lost and n_missed up to date. */
void cairn_cover_count(struct cairn_cover *cover);

/*
 * cairn_cover_pin - pin the object's maps in a directory, which is made, so that others read them
 *
 * Returns 0, or the errors of libbpf: -EEXIST, -EPERM.
 */
int cairn_cover_pin(struct cairn_cover *cover, const char *dir, struct cairn_err *err);
/* Takes that back; the directory stays. */
void cairn_cover_unpin(struct cairn_cover *cover, const char *dir);

/*
 * Programs that a command loads and attaches itself
 *
 * It is run with a library preloaded that reports its calls of bpf(2) and perf_event_open(2), as
 * `cairn run` does: the library's path in LD_PRELOAD is the caller's to set. A program is covered
 * before the kernel attaches it; when calls would not be seen and best_effort is not set, attaching
 * fails in the command with ENOENT. Attaching succeeds where the kernel has no function of the
 * name, and the function was inlined.
 */
struct cairn_cover_command {
	size_t size; /* sizeof(struct cairn_cover_command); a longer, unknown tail must be zero */
	/*
	 * Called when a process of the command attaches a program to a function; @refused: why it
	 * may not, or NULL. May be NULL.
	 */
	void (*covered)(void *ctx, int pid, const struct cairn_covered *p, const char *refused);
	/* Called when it was detached, with the counts up to date. May be NULL. */
	void (*detached)(void *ctx, int pid, const struct cairn_covered *p);
	void *ctx;
};

/*
 * cairn_cover_run - run a command and cover its programs, until it and all its processes that have
 * attached some have ended
 *
 * @exe         file to execute, @argv  its words, NULL at the end
 * @opts        targets are not used; @command  may be NULL
 * @ret_status  of the command, as waitpid(2) gives it
 * Signals that are sent to this process reach the command; of the terminal it has its own.
 * Returns 0, or negative: -EINVAL (unknown options), -ENOMEM, and what fork(2), execve(2) and
 * socket(2) return. Cost: some microseconds for each call of the command's that is reported, and
 * for each program that of cairn_cover_attach(). Threads: one call at a time in a process: it
 * blocks signals, waits for a child and changes the environment. Signals: no.
 */
int cairn_cover_run(const char *exe, char *const argv[], const struct cairn_cover_opts *opts,
		    const struct cairn_cover_command *command, int *ret_status,
		    struct cairn_err *err);

CAIRN_END_DECLS
#endif
