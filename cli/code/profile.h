/* SPDX-License-Identifier: BSD-2-Clause */
/* What the verbs of profiles share. */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

#include <cairn/profile.h>

#include "json.h"

/*
 * profile_open_shares - a profile and the shares of its functions, of one type of value
 *
 * @value  the type's name; NULL: the last one, which in profiles of all tools is the time
 * Returns STATUS_YES, and both are to be freed; or another exit status, after a message.
 */
int profile_open_shares(const char *path, const char *value, struct cairn_profile **ret,
			size_t *ret_type, struct cairn_profile_shares *shares);

/* Room for a value as people read it: "1.23 s", "45.6 MiB", "1,234". */
#define PROFILE_VALUE_MAX 64
void profile_value_text(const char *unit, int64_t value, char to[PROFILE_VALUE_MAX]);

/* 100 * part / whole; 0 of nothing. */
double profile_percent(int64_t part, int64_t whole);

/* A percentage with two decimals. */
void profile_json_percent(struct json *j, const char *key, double percent);

/* The end of a name says the format of a file. */
bool profile_name_ends(const char *name, const char *end);

const char *profile_code_id(enum cairn_profile_code code);

#endif
