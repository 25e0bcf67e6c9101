/* SPDX-License-Identifier: BSD-2-Clause */
/* Hits by $stack, as a file of `cairn profile`. */
#ifndef CLI_TRACE_PROFILE_H
#define CLI_TRACE_PROFILE_H

#include "trace.h"

/* Whether -o NAME means a profile, when $stack is a key. */
bool trace_profile_is_name(const char *name);

/* Writes the rows; @sum: the number of an aggregate that is a sum, -1: none. An exit status. */
int trace_profile_write(const struct session *session, const struct cairn_aggregates *table,
			int sum, const char *name);

#endif
