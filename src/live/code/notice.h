/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry of a process whose codectl(2) a supervisor serves
 *
 * It lies in the supervisor's memory, as another process's own registry lies in its. A notice leads
 * there: a short text with the process's number as its name.
 *
 *	supervisor 4711 1234567              number, and start time in clock ticks since boot
 *	process 4712 1234570                 likewise
 *	program 1f0123456789abcd ef01234567  AT_RANDOM of the program that registered: after an exec
 *	                                     it is another one
 *	registry 7f0123450000 1000           struct codectl_registry in the supervisor, and its
 *	                                     mapping's size
 *
 * When the supervisor has ended, however that was, its memory is gone, and the notice leads
 * nowhere.
 *
 * Notices are in /run/cairn/codectl for root, /run/user/UID/cairn/codectl for a user who has that,
 * else /tmp/cairn-UID/codectl. A notice is accepted only if no one but root and the user may write
 * there; so it is as good as the process's own statement.
 */
#ifndef CODE_NOTICE_H
#define CODE_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

#include <cairn/err.h>

#include "code/target.h"

struct notice {
	int supervisor;
	uint64_t supervisor_start;
	struct target_id process;
	uint64_t registry, size; /* in the supervisor's memory */
};

/*
 * Writes a notice, whole or not at all; it replaces an earlier one of this number. 0; -EPERM, the
 * errors of open(2).
 */
int notice_leave(const struct notice *notice, struct cairn_err *err);

/* Removes the notice of a process. */
void notice_take_back(int pid);

/*
 * notice_find - the notice for a process, if it is true
 *
 * @ret_is_stale  there is one, and its supervisor has ended, or the process runs another program
 *	           since
 * Returns 0; -ENOENT (none, or a stale one), -EPERM (another user may have written it), -EBADMSG
 * (it is damaged).
 */
int notice_find(int pid, struct notice *ret, bool *ret_is_stale, struct cairn_err *err);

#endif
