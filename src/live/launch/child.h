/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Running a command so that it is observed from its first instruction
 *
 * The child is forked first, because observers want its pid. It waits until child_go(). When the
 * observer dies before that, the child leaves without having run anything.
 */
#ifndef LAUNCH_CHILD_H
#define LAUNCH_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include <cairn/err.h>

/* The status with which shells report that a command could not be run. */
#define EXIT_NOT_RUN 127

struct child {
	pid_t pid; /* 0: there is none, or nothing of it remains */
	/* Set before child_start(): what its standard output and error are; -1: those of the caller */
	int output;
	int go_pipe;    /* one byte lets it exec, closing it lets it leave; -1 without */
	int error_pipe; /* from here comes the errno of a failed exec; -1 without */
	int status;     /* of wait(2), once it has ended */
	bool ended;
};

void child_init(struct child *c);

/* Fork a child that waits. Returns 0; the errors of pipe(2) and fork(2). */
int child_start(struct child *c, const char *exe, char *const *argv, struct cairn_err *err);

/*
 * child_go - let it exec; nothing happens when no child waits
 *
 * @exe  and @argv of child_start() are still valid
 * Returns 0; -ESRCH: it has ended before; the errors of execve(2).
 */
int child_go(struct child *c, const char *exe, struct cairn_err *err);

/* True once it has ended; it is waited for here, and never waited on. */
bool child_reap(struct child *c);

/*
 * child_become - in a child: wait for a byte, and execute
 *
 * @go  its end without a byte ends this process
 * Signals are not masked after it. Returns the errno of execve(2).
 */
int child_become(int go, const char *exe, char *const *argv);

/* Ends a child that still waits, and nothing of it remains. One that runs goes on. */
void child_end(struct child *c);

#endif
