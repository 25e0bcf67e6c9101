/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serves codectl(2) to a program, as long as no kernel has it
 *
 * A command is run below a seccomp filter that sends one system call number here. Its arguments are
 * read and checked as a kernel would, and the process's registrations are kept in this process's
 * memory, where readers find them (cairn/code.h). A fork copies it, an exec ends it; when this
 * supervisor ends, the call returns ENOSYS as on a kernel without it.
 */
#ifndef CAIRN_SERVE_H
#define CAIRN_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/err.h>

CAIRN_BEGIN_DECLS

/* A call that was answered. */
struct cairn_served_call {
	int pid;
	uint32_t option; /* in the numbering that is served */
	uint64_t info;   /* address in the process */
	uint64_t info_size;
	uint32_t flags;
	int result;      /* 0 or the negative errno that the process gets */
	const char *why; /* an error on this side, not in the call; "" */
};

struct cairn_serve_opts {
	size_t size; /* sizeof(struct cairn_serve_opts); a longer, unknown tail must be zero */
	long nr;     /* number of the system call; one that the kernel does not have */
	/* options as the RFC was posted, 0 registers ELF; otherwise as agreed in review */
	bool rfc_numbers;
	/* Called for each call, after its answer; may be NULL. */
	void (*answered)(void *ctx, const struct cairn_served_call *call);
	/*
	 * Called once, when the command runs with no_new_privs: setuid programs below it gain
	 * nothing. May be NULL.
	 */
	void (*restricted)(void *ctx);
	void *ctx;
};

/*
 * cairn_serve_run - run a command and serve it and all processes that it starts, until the last of
 * them has ended
 *
 * @exe         file to execute, @argv  its words, NULL at the end
 * @ret_status  of the command, as waitpid(2) gives it
 * Returns 0. Negative:
 *   -EINVAL  @opts has something set that is not known, or its number is that of a system call that
 *            exists
 *   -ENOSYS  the kernel has no seccomp notification
 *   -EBUSY   the calling process is itself supervised
 *   -EINTR   SIGTERM, SIGHUP or SIGQUIT came: the processes go on, and their calls return ENOSYS
 *            from now on
 *   -ENOMEM, and what fork(2), execve(2), open(2) and mmap(2) return
 * Cost: a few system calls for each that is served, none for others. Threads: one call at a time in
 * a process: it blocks signals and waits for children. Signals: no.
 */
int cairn_serve_run(const char *exe, char *const argv[], const struct cairn_serve_opts *opts,
		    int *ret_status, struct cairn_err *err);

/*
 * Whether the loader will put a preloaded library into a program
 *
 * It ignores LD_PRELOAD without a word for programs that gain privileges, a static program has no
 * loader, and for those of another machine the library is the wrong one. Whoever relies on a
 * preloaded library wants to know before.
 *
 *	enum cairn_preload_obstacle why;
 *	if (cairn_preload_look("/bin/busybox", &why, &err) == 0 && why == CAIRN_PRELOAD_STATIC)
 *		...
 */

enum cairn_preload_obstacle {
	CAIRN_PRELOAD_NONE,
	/* no program interpreter; a loader that is run as a program has none either */
	CAIRN_PRELOAD_STATIC,
	/* set-user-ID, set-group-ID or file capabilities that the caller does not have */
	CAIRN_PRELOAD_PRIVILEGED,
	CAIRN_PRELOAD_FOREIGN, /* of another machine or word size than this program */
};

/*
 * cairn_preload_look - the obstacle to preloading a library into the program in a file
 *
 * @exe  path of a program; for any other file, such as a script, the result is CAIRN_PRELOAD_NONE
 * Returns 0; -EBADMSG (an ELF file that is damaged), and the errors of open(2) and read(2).
 * Cost: some system calls. Threads: any. Signals: no.
 */
int cairn_preload_look(const char *exe, enum cairn_preload_obstacle *ret, struct cairn_err *err);

/* The same for the first bytes of a file: only its headers are read. */
int cairn_preload_look_at(const void *bytes, size_t n, enum cairn_preload_obstacle *ret,
			  struct cairn_err *err);

CAIRN_END_DECLS
#endif
