/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending from a process of its own, for who has no time to wait for a server. */
#ifndef CLI_PUSH_SENDER_H
#define CLI_PUSH_SENDER_H

#include <sys/types.h>

#include "push.h"

struct push_sender {
	pid_t pid;  /* 0: none runs */
	int status; /* exit status of the last one that ended; STATUS_YES before */
};

/*
 * Starts `cairn profile push` with the same options, unless it runs still; it sends what is in the
 * spool. It reports its own failures, on stderr.
 */
void push_sender_start(struct push_sender *s, const struct push *p);

/* Waits for its end, and returns the exit status of the last one. */
int push_sender_wait(struct push_sender *s);

#endif
