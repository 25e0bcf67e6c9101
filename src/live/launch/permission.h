/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LAUNCH_PERMISSION_H
#define LAUNCH_PERMISSION_H

#include <stdbool.h>

#include <cairn/err.h>

/*
 * permission_error - @what was not permitted, and the command that is
 *
 * "WHAT: not permitted; this would be: sudo ..." with this process's own command line. As root:
 * what may withhold the permission. Returns -EPERM.
 */
int permission_error(struct cairn_err *err, const char *what);

/* Whether lockdown (its mode is confidentiality) keeps BPF programs from reading memory. */
bool permission_is_locked(void);
/* The error that says so. Returns -EPERM. */
int permission_locked(struct cairn_err *err);

#endif
