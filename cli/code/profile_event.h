/* SPDX-License-Identifier: BSD-2-Clause */
/* The meaning of `cairn profile --event`. */
#ifndef CLI_PROFILE_EVENT_H
#define CLI_PROFILE_EVENT_H

#include <cairn/prof.h>

/*
 * profile_event_of - the event of a text; NULL: time on a processor
 *
 * One of the words, "[tracepoint:]CATEGORY:NAME", or else a probe. It is a probe if the part
 * before the colon names a file that is there.
 * @ret_text  what struct cairn_prof_opts.event_text takes of it; NULL for a word
 */
enum cairn_prof_event profile_event_of(const char *text, const char **ret_text);

/* Whether it is sampled so many times a second. */
bool profile_event_has_rate(enum cairn_prof_event event);

/* The sites of a probe that are left out, and those where hits may not be calls; on stderr. */
void profile_event_sites(const struct cairn_prof *prof);

#endif
