/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that become shorter while they are read. */
#ifndef CLI_TRUNCATED_H
#define CLI_TRUNCATED_H

/*
 * From here on reading what was cut off an input ends the program with a message and
 * STATUS_DAMAGED, not by SIGBUS.
 */
void truncated_is_told(void);

/*
 * The status of a verb that has answered: STATUS_DAMAGED, with a message, where an input became
 * shorter by less than a page or in what was not read; else @status.
 */
int truncated_status(int status);

#endif
