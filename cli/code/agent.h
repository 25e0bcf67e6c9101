/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent: the library that `cairn code run` has loaded into a program. */
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

#endif
