/* SPDX-License-Identifier: BSD-2-Clause */
/* The probes of a profile: which sites are hit, and what hits weigh. */
#ifndef PROF_PROBES_H
#define PROF_PROBES_H

#include <cairn/prof.h>
#include <cairn/trace.h>

#include "base/vec.h"
#include "prof/samples.h"

/* Hits without a number, for one reason: its word, and its text. */
struct prof_reason {
	const char *word, *text;
	uint64_t n;
};

struct prof_unavailable {
	enum cairn_unavailable why;
	uint64_t n;
};

struct prof_probes {
	struct cairn_trace *trace;                /* NULL: another event */
	VEC(struct prof_unavailable) unavailable; /* at their sites */
};

/*
 * probes_open - find, plan and check the sites of opts.event_text
 *
 * Nothing to do for another event. Returns 0; the errors of cairn_trace_add() and
 * cairn_trace_attach(). probes_close() in both cases.
 */
int probes_open(struct prof_probes *p, const struct cairn_prof_opts *opts, struct cairn_err *err);
void probes_close(struct prof_probes *p);

/* The word for why a hit of a site has no number; NULL: it has one, or hits have none. Static. */
const char *probes_reason(const struct cairn_trace *trace, uint32_t site, uint8_t state);

/* A sample that was taken over. Returns 0 or -ENOMEM. */
int probes_count(struct prof_probes *p, const struct prof_sample *sample);

/* The hits without a number, by reason; word NULL ends the list. */
struct prof_reason probes_without_value(const struct prof_probes *p,
					const struct prof_samples *samples, size_t i);

/* The types of its profiles' values (struct prof_values): 1 or 2. */
size_t probes_types(const struct prof_probes *p, struct cairn_profile_type types[2]);

#endif
