/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry of a process whose codectl(2) a supervisor serves
 *
 * Strings are with the registry in the supervisor's memory, a JIT's tables in that of the process.
 * A child that was forked and never called since has its parent's, as that was at the fork: the
 * supervisor copies it when the child calls, and until then readers find it here.
 */
#ifndef CODE_SUPERVISED_H
#define CODE_SUPERVISED_H

#include "code/registry.h"

/*
 * supervised_find - set memory, mapping and time of the registry of @pid
 *
 * @ret  other members are left unchanged
 * Returns 1; 0 when there is none. Negative when there is a notice that is not believed: -EPERM,
 * -EBADMSG (err: why). Cost: some files below /proc for @pid and for each of its parents that runs
 * the same program.
 */
int supervised_find(int pid, struct registry *ret, struct cairn_err *err);

#endif
