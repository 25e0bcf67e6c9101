/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seccomp filter of a program whose system call is served here: one number comes to the
 * supervisor, everything else runs as it would without the filter. Within this module only.
 */
#ifndef SERVE_FILTER_H
#define SERVE_FILTER_H

#include <stdbool.h>

#include <cairn/err.h>

/* A command below the filter. */
struct filter_child {
	int pid;
	int listener; /* where its calls arrive; -1 */
	int socket;   /* readable when it was executed, or could not be: filter_exec_error() */
	bool is_restricted;
};

/*
 * filter_start - run a command below the filter
 *
 * Without CAP_SYS_ADMIN the command and all that it starts run with no_new_privs, as seccomp(2)
 * demands (is_restricted): a setuid program among them gets no privileges.
 *
 * @nr    number of the served system call
 * @exe   file to execute, @argv its words, NULL at the end
 * @ret   filter_child_end(), also when the command has ended
 * Returns 0. Negative: -ENOSYS (the kernel has no seccomp notification), -EBUSY (another listener
 * is in the way: one supervisor at a time), -ESRCH (it was killed), the errors of fork(2) and
 * socketpair(2).
 */
int filter_start(int nr, const char *exe, char *const argv[], struct filter_child *ret,
		 struct cairn_err *err);

/* The errno of the exec, 0 when it succeeded. Once, when the socket is readable. */
int filter_exec_error(struct filter_child *child);

void filter_child_end(struct filter_child *child);

/*
 * filter_may_serve - whether no system call of this kernel has the number
 *
 * A number beyond those that every kernel has is called with arguments that nothing accepts, in a
 * process of its own.
 * Returns 0; -EINVAL (err has the reason); the errors of fork(2).
 */
int filter_may_serve(long nr, struct cairn_err *err);

#endif
