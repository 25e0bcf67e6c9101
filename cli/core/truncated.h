/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that become shorter while they are read. */
#ifndef CLI_TRUNCATED_H
#define CLI_TRUNCATED_H

#include <cairn/file.h>

/*
 * From here on a read of the missing part of an input ends the program with a message and
 * STATUS_DAMAGED, not by SIGBUS.
 */
void truncated_is_told(void);

/*
 * From here on the missing part reads as zeros instead. For a verb that looks at the files of many
 * processes, and asks of each whether it became shorter: cairn_binary_shortened().
 */
void truncated_is_survived(void);

/*
 * The status of a verb that has answered: STATUS_DAMAGED, with a message, if an input became
 * shorter by less than a page or in a part that was not read; else @status.
 */
int truncated_status(int status);

/*
 * cairn_file_write_together(), unless an input of the program became shorter: -EBADMSG, and no file
 * is written.
 */
int write_whole_answers(const struct cairn_file *files, size_t n, struct cairn_err *err);
/* Its refusal: 0, or -EBADMSG. */
int check_inputs(struct cairn_err *err);
/* The same of one file. */
int write_whole_answer(const char *path, const void *bytes, size_t size, struct cairn_err *err);

#endif
