/* SPDX-License-Identifier: BSD-2-Clause */
/* A command that is to be sampled from its first instruction on. */
#ifndef PROF_COMMAND_H
#define PROF_COMMAND_H

#include "prof/files.h"

/*
 * command_know_files - open the files that a program will have mapped, before it runs
 *
 * Their unwind tables are made from now on. A file that cannot be mapped here is left out.
 * @program  absolute path; "" is none
 * Returns 0; -ENOMEM. Cost: a run of the program's loader, some milliseconds.
 */
int command_know_files(struct prof_files *f, const char *program, struct cairn_err *err);

#endif
