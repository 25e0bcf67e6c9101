/* SPDX-License-Identifier: BSD-2-Clause */
/* Long output on a terminal goes through a pager, as git's does. */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include <stdbool.h>
#include <stdio.h>

/*
 * pager_start - let standard output go through CAIRN_PAGER, PAGER or less
 *
 * Nothing happens if standard output is no terminal, if the variable is empty or "cat", or if the
 * pager cannot be run. less gets LESS=FRX unless LESS is set, so a screenful is printed as it is.
 * Ctrl-C ends the program when the pager has shown what there is, unless it was ignored before.
 */
void pager_start(void);

/* Close standard output, and wait until the user has left the pager. */
void pager_end(void);

/* Whether a stream goes to a terminal, through the pager or not. */
bool pager_is_terminal(FILE *out);

#endif
