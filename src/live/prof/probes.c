/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/probes.h"

#include <errno.h>
#include <string.h>

#include "trace/weigh.h"

/* With one process the code that it has mapped is compared with the file's. */
static struct cairn_trace_opts trace_opts(const struct cairn_prof_opts *opts)
{
	return (struct cairn_trace_opts){.size = sizeof(struct cairn_trace_opts),
					 .pid = opts->n_pids == 1 ? opts->pids[0] : 0,
					 .argv = opts->argv,
					 .exe = opts->exe,
					 .best_effort = opts->best_effort,
					 .find_sidecar = opts->find_sites,
					 .find_sidecar_ctx = opts->find_sites_ctx};
}

static int check_period(const struct cairn_prof_opts *opts, const struct cairn_trace *t,
			struct cairn_err *err)
{
	const char *unit;

	if (opts->period > 1 && trace_weight(t, &unit))
		return err_set(err, -EINVAL,
			       "a period is for events that are counted: a sum of numbers needs "
			       "each hit");
	return 0;
}

int probes_open(struct prof_probes *p, const struct cairn_prof_opts *opts, struct cairn_err *err)
{
	const struct cairn_trace_opts own = trace_opts(opts);
	int rc;

	if (opts->event != CAIRN_PROF_PROBE)
		return 0;
	rc = cairn_trace_open(&own, &p->trace, err);
	if (rc < 0)
		return rc;
	trace_weigh(p->trace);
	rc = cairn_trace_add(p->trace, opts->event_text, err);
	rc = rc < 0 ? rc : check_period(opts, p->trace, err);
	return rc < 0 ? rc : trace_check(p->trace, err);
}

void probes_close(struct prof_probes *p)
{
	cairn_trace_close(p->trace);
	VEC_FREE(&p->unavailable);
}

const char *probes_reason(const struct cairn_trace *trace, uint32_t site, uint8_t state)
{
	switch (state) {
	case PROF_UNAVAILABLE:
		return trace ? cairn_unavailable_id(trace_weight_missing(trace, site)) : NULL;
	case PROF_NOT_READ:
		return "unreadable";
	case PROF_TOO_LARGE:
		return "too-large";
	}
	return NULL;
}

static const char *text_of(enum cairn_unavailable why, uint8_t state)
{
	if (state == PROF_UNAVAILABLE)
		return cairn_unavailable_text(why);
	return state == PROF_NOT_READ ? "its memory could not be read"
				      : "negative, or too large for a sum";
}

int probes_count(struct prof_probes *p, const struct prof_sample *sample)
{
	enum cairn_unavailable why;

	if (sample->state != PROF_UNAVAILABLE)
		return 0;
	why = trace_weight_missing(p->trace, sample->site);
	for (size_t i = 0; i < p->unavailable.n; i++)
		if (p->unavailable.p[i].why == why) {
			p->unavailable.p[i].n++;
			return 0;
		}
	return VEC_ADD(&p->unavailable, ((struct prof_unavailable){why, 1})) ? 0 : -ENOMEM;
}

struct prof_reason probes_without_value(const struct prof_probes *p,
					const struct prof_samples *samples, size_t i)
{
	if (i < p->unavailable.n) {
		enum cairn_unavailable why = p->unavailable.p[i].why;

		return (struct prof_reason){cairn_unavailable_id(why),
					    text_of(why, PROF_UNAVAILABLE), p->unavailable.p[i].n};
	}
	i -= p->unavailable.n;
	for (uint8_t state = PROF_NOT_READ; state < PROF_N_STATES; state++)
		if (samples->n_states[state] && !i--)
			return (struct prof_reason){probes_reason(p->trace, 0, state),
						    text_of(CAIRN_AVAILABLE, state),
						    samples->n_states[state]};
	return (struct prof_reason){0};
}

size_t probes_types(const struct prof_probes *p, struct cairn_profile_type types[2])
{
	const char *unit, *weight = trace_weight(p->trace, &unit);

	types[0] = (struct cairn_profile_type){"hits", "count"};
	if (!weight)
		return 1;
	/* Readers find values by their names. */
	if (!strcmp(weight, types[0].type))
		types[0].type = "calls";
	types[1] = (struct cairn_profile_type){weight, unit};
	return 2;
}
