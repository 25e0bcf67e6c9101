/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the verbs of profiles. */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

#include <cairn/profile.h>

#include "cmd.h"
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

/* Whether a name ends with the format's part of it. */
bool profile_name_ends(const char *name, const char *end);

/* ---- shares ---- */

void profile_order_by_total(struct cairn_profile_shares *shares);
/* A table of the first @n on stdout, and how many there are more. */
void profile_show_shares(const struct cairn_profile_shares *shares, const char *unit, size_t n);
/* All, an object each. */
void profile_json_shares(const struct cairn_profile_shares *shares);

/* ---- threads ---- */

struct profile_threads {
	struct cairn_profile_thread *list;
	size_t n;
	int64_t sum; /* of all samples */
};
/* A table of the first @n on stdout, and an empty line; nothing where all have one name. */
void profile_show_threads(const struct profile_threads *threads, const char *unit, size_t n);
/* All, as the array "threads". */
void profile_json_threads(struct json *j, const struct profile_threads *threads);

/* ---- files ---- */

/* STATUS_USAGE, after a message, if a name does not say a format. */
int profile_check_names(const struct opt_list *out);

/*
 * Whether one of the formats shows when samples were taken. profile_check_names() took the names.
 */
bool profile_needs_moments(const struct opt_list *out);

/*
 * profile_write_all - write a profile to each file, in the format that its name says
 *
 * If one cannot be written, the others are all the same. Returns the first one's exit status that
 * is not STATUS_YES.
 */
int profile_write_all(const struct cairn_profile *p, size_t type, const struct opt_list *out,
		      const char *title);

/*
 * "cpu.20261127T014500.000Z.pb.gz" of "cpu.pb.gz", which profile_check_names() took; to be freed.
 * NULL: no memory.
 */
char *profile_window_name(const char *name, int64_t time_ns);

/* Removes what profile_write_all() wrote, if it is there. */
void profile_remove(const char *name);

/* An object per stack, then a summary (docs/json.md). Returns 0 or -ENOMEM. */
int profile_make_json(const struct cairn_profile *p, size_t type, const char *title,
		      struct cairn_profile_bytes *ret, struct cairn_err *err);

const char *profile_code_id(enum cairn_profile_code code);

#endif
