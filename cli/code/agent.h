/* SPDX-License-Identifier: BSD-2-Clause */
/* The libraries that `cairn code run` and `cairn run` have loaded into a program. */
#ifndef CLI_AGENT_H
#define CLI_AGENT_H

/*
 * agent_preload - let programs that are started from now on load the agent
 *
 * @exe  the first of them; the obstacle is reported on standard error
 * Changes LD_PRELOAD in the environment: the present content stays, and comes first. Returns an
 * exit status, having reported the error.
 */
int agent_preload(const char *exe);

/* The same of the library of `cairn run`; a program that would not load it is an error. */
int agent_preload_cover(const char *exe);

#endif
