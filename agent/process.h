/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent registers the code that a process makes or loads at run time.
 *
 * This header: the one registry of this copy of the library, and its lock; process.c explains it.
 */
#ifndef AGENT_PROCESS_H
#define AGENT_PROCESS_H

#include "registry_writer.h"

/*
 * process_enter - the registry, for the calling thread alone, until process_leave()
 *
 * The first call maps it. Returns 0; -EBUSY when this thread is in already, which a signal handler
 * finds; the errors of registry_writer_open(). errno is kept. Signals: safe.
 */
int process_enter(struct registry_writer **ret);
void process_leave(void);

#endif
