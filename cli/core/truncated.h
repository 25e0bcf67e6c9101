/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that become shorter while they are read. */
#ifndef CLI_TRUNCATED_H
#define CLI_TRUNCATED_H

/*
 * From here on a read of the missing part of an input ends the program with a message and
 * STATUS_DAMAGED, not by SIGBUS.
 */
void truncated_is_told(void);

/*
 * The status of a verb that has answered: STATUS_DAMAGED, with a message, if an input became
 * shorter by less than a page or in a part that was not read; else @status.
 */
int truncated_status(int status);

#endif
