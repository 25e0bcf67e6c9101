/* SPDX-License-Identifier: BSD-2-Clause */
/* Ctrl-C for verbs that run until they are told to end: they still report and detach. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

/*
 * From now on SIGINT, SIGTERM and SIGHUP end a wait with EINTR, and are noted. A second one of the
 * same kind ends the program at once.
 */
void interrupt_catch(void);

/* True once one has come. */
bool interrupt_seen(void);

#endif
