/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent: the library that `cairn code run` has loaded into a program. */
#ifndef CLI_AGENT_H
#define CLI_AGENT_H

/*
 * agent_preload - let programs that are started from now on load the agent
 *
 * @exe  the first of them; what keeps it from doing so is said on standard error
 * Changes LD_PRELOAD in the environment: what is there stays, and comes first. Returns an exit
 * status, having said what is wrong.
 */
int agent_preload(const char *exe);

#endif
