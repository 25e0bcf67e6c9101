/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Servers that asked to be left alone for a while, by the header Retry-After
 *
 * The spool's file "pauses" has a line "SECONDS URL" for each, the time since 1970 at which it may
 * be tried again.
 */
#ifndef CLI_PUSH_PAUSE_H
#define CLI_PUSH_PAUSE_H

#include "push_spool.h"

/* Seconds that the server at @url is still to be left alone for; 0: it is not. */
int64_t pause_left(const struct spool *s, const char *url);

/*
 * pause_set - leave the server alone for @seconds, a day at most
 *
 * Needs the lock of the spool. Returns 0, or the error of writing: then it is tried too early.
 */
int pause_set(struct spool *s, const char *url, int64_t seconds, struct cairn_err *err);

#endif
