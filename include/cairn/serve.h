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

CAIRN_END_DECLS
#endif
