/* SPDX-License-Identifier: BSD-2-Clause */
/* When samples were taken, and by whom. */
#include "export/profile_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As many as there may be of anything in a profile. */
#define MOMENTS_MAX (1u << 31)

int cairn_profile_add_moment(struct cairn_profile *p, const struct cairn_profile_moment *m,
			     struct cairn_err *err)
{
	struct kept_moment kept = {(uint32_t)p->last_sample, m->cpu, m->time_ns};

	if (p->last_sample >= p->samples.n)
		return err_set(err, -EINVAL, "a moment belongs to the sample that was added last");
	if (p->moments.n >= MOMENTS_MAX)
		return err_set(err, -ERANGE, "a profile may have at most %u moments", MOMENTS_MAX);
	if (!VEC_APPEND(&p->moment_values, m->values, p->n_types) || !VEC_ADD(&p->moments, kept))
		return err_nomem(err, "a profile");
	return 0;
}

size_t cairn_profile_n_moments(const struct cairn_profile *p)
{
	return p->moments.n;
}

struct cairn_profile_moment cairn_profile_moment(const struct cairn_profile *p, size_t i)
{
	const struct kept_moment *m;

	if (i >= p->moments.n)
		return (struct cairn_profile_moment){0};
	m = &p->moments.p[i];
	return (struct cairn_profile_moment){.sample = m->sample,
					     .time_ns = m->time_ns,
					     .cpu = m->cpu,
					     .values = p->moment_values.p + i * p->n_types};
}

/* ---- records ---- */

static int by_time(const void *a, const void *b)
{
	const struct profile_record *x = a, *y = b;

	if (x->has_time != y->has_time)
		return x->has_time ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* Those of moments; their values are taken away from @rest, which has one for each sample. */
static int take_moments(const struct cairn_profile *p, size_t type, int64_t *rest,
			struct profile_records *ret, struct cairn_err *err)
{
	for (size_t i = 0; i < cairn_profile_n_moments(p); i++) {
		struct cairn_profile_moment m = cairn_profile_moment(p, i);
		int64_t value = m.values[type];

		if (__builtin_sub_overflow(rest[m.sample], value, &rest[m.sample]))
			return err_set(err, -ERANGE, "a sum of a profile's values exceeds 64 bits");
		if (value)
			ret->list[ret->n++] = (struct profile_record){(uint32_t)m.sample, m.cpu,
								      m.time_ns, value, true};
	}
	return 0;
}

int profile_records(const struct cairn_profile *p, size_t type, struct profile_records *ret,
		    struct cairn_err *err)
{
	size_t n = cairn_profile_n_samples(p), room = n + cairn_profile_n_moments(p);
	int64_t *rest = calloc(n + 1, sizeof(*rest));
	int rc;

	*ret = (struct profile_records){.list = calloc(room + 1, sizeof(*ret->list))};
	rc = rest && ret->list ? 0 : err_nomem(err, "the times of a profile");
	for (size_t i = 0; rc == 0 && i < n; i++)
		rest[i] = cairn_profile_sample(p, i).values[type];
	if (rc == 0)
		rc = take_moments(p, type, rest, ret, err);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		if (!rest[i])
			continue;
		ret->list[ret->n++] = (struct profile_record){
			.sample = (uint32_t)i, .cpu = UINT32_MAX, .value = rest[i]};
		ret->n_without_time++;
	}
	free(rest);
	if (rc == 0) {
		qsort(ret->list, ret->n, sizeof(*ret->list), by_time);
		return 0;
	}
	free(ret->list);
	*ret = (struct profile_records){0};
	return rc;
}

/* ---- labels ---- */

/* Tools write numbers as such, or as text. */
static int64_t number_of(const struct cairn_profile_label *l)
{
	return *l->text ? strtoll(l->text, NULL, 10) : l->number;
}

struct profile_owner profile_owner(const struct cairn_profile_sample *s)
{
	struct profile_owner owner = {.thread = ""};

	for (size_t i = 0; i < s->n_labels; i++) {
		const struct cairn_profile_label *l = &s->labels[i];

		if (!strcmp(l->key, "pid"))
			owner.pid = number_of(l);
		else if (!strcmp(l->key, "tid"))
			owner.tid = number_of(l);
		else if (!strcmp(l->key, "thread"))
			owner.thread = l->text;
	}
	return owner;
}
