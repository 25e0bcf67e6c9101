/* SPDX-License-Identifier: BSD-2-Clause */
/* A command whose stacks are wanted from its first instruction on. */
#ifndef WALK_COMMAND_H
#define WALK_COMMAND_H

#include "walk/files.h"

/*
 * command_know_files - open the files that a program will have mapped, before it runs
 *
 * Their unwind tables are made from now on. A file that cannot be mapped here is left out.
 * @program  absolute path; "" is none
 * Returns 0; -ENOMEM. Cost: a run of the program's loader, some milliseconds.
 */
int command_know_files(struct walk_files *f, const char *program, struct cairn_err *err);

#endif
