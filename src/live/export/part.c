/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of a profile's samples, with what they refer to and no more. */
#include "export/profile_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* Ids in the whole to those in the part + 1; 0: not there yet. */
struct parting {
	const struct cairn_profile *from;
	struct cairn_profile *to;
	uint32_t *locations, *functions, *mappings;
	VEC(uint32_t) stack;
	VEC(struct cairn_profile_line) lines;
	struct cairn_err *err;
};

static int take_mapping(struct parting *p, uint32_t id, uint32_t *ret)
{
	*ret = 0;
	if (!id)
		return 0;
	int rc = p->mappings[id]
			 ? 0
			 : cairn_profile_add_mapping(p->to, cairn_profile_mapping(p->from, id),
						     &p->mappings[id], p->err);
	*ret = p->mappings[id];
	return rc;
}

static int take_function(struct parting *p, uint32_t id, uint32_t *ret)
{
	*ret = 0;
	if (!id)
		return 0;
	int rc = p->functions[id]
			 ? 0
			 : cairn_profile_add_function(p->to, cairn_profile_function(p->from, id),
						      &p->functions[id], p->err);
	*ret = p->functions[id];
	return rc;
}

static int take_lines(struct parting *p, const struct cairn_profile_location *l)
{
	int rc = 0;

	p->lines.n = 0;
	for (size_t i = 0; i < l->n_lines && rc == 0; i++) {
		struct cairn_profile_line line = l->lines[i];
		rc = take_function(p, line.function, &line.function);
		if (rc == 0 && !VEC_ADD(&p->lines, line))
			rc = err_nomem(p->err, "a part of a profile");
	}
	return rc;
}

static int take_location(struct parting *p, uint32_t id, uint32_t *ret)
{
	struct cairn_profile_location l = *cairn_profile_location(p->from, id);
	int rc = 0;

	if (!p->locations[id]) {
		rc = take_mapping(p, l.mapping, &l.mapping);
		rc = rc ? rc : take_lines(p, &l);
		l.lines = p->lines.p;
		rc = rc ? rc : cairn_profile_add_location(p->to, &l, ret, p->err);
		if (rc == 0)
			p->locations[id] = *ret + 1;
	}
	*ret = p->locations[id] - 1;
	return rc;
}

static int take_sample(struct parting *p, size_t i)
{
	struct cairn_profile_sample s = cairn_profile_sample(p->from, i);
	int rc = 0;

	p->stack.n = 0;
	for (size_t k = 0; k < s.n_stack && rc == 0; k++) {
		uint32_t id;
		rc = take_location(p, s.stack[k], &id);
		if (rc == 0 && !VEC_ADD(&p->stack, id))
			rc = err_nomem(p->err, "a part of a profile");
	}
	s.stack = p->stack.p;
	return rc ? rc : cairn_profile_add_sample(p->to, &s, p->err);
}

/* Moments belong to the sample that was added last: they are put in by sample. */
static int take_samples(struct parting *p, size_t first, size_t n, const size_t *next,
			const size_t *heads)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = take_sample(p, first + i);
		for (size_t m = heads[i]; m && rc == 0; m = next[m - 1]) {
			struct cairn_profile_moment moment = cairn_profile_moment(p->from, m - 1);
			rc = cairn_profile_add_moment(p->to, &moment, p->err);
		}
	}
	return rc;
}

/* The moments of each sample as a list: the number of the first + 1, and of the next one. */
static void list_moments(const struct cairn_profile *from, size_t first, size_t n, size_t *next,
			 size_t *heads)
{
	for (size_t m = cairn_profile_n_moments(from); m--;) {
		size_t sample = cairn_profile_moment(from, m).sample;

		if (sample < first || sample - first >= n)
			continue;
		next[m] = heads[sample - first];
		heads[sample - first] = m + 1;
	}
}

static int take_all(struct parting *p, size_t first, size_t n)
{
	size_t n_moments = cairn_profile_n_moments(p->from);
	size_t *next = calloc(n_moments + 1, sizeof(*next)), *heads = calloc(n + 1, sizeof(*heads));
	int rc;

	p->locations = calloc(p->from->locations.n + 1, sizeof(*p->locations));
	p->functions = calloc(p->from->functions.n + 2, sizeof(*p->functions));
	p->mappings = calloc(p->from->mappings.n + 2, sizeof(*p->mappings));
	if (next && heads && p->locations && p->functions && p->mappings) {
		list_moments(p->from, first, n, next, heads);
		rc = take_samples(p, first, n, next, heads);
	} else {
		rc = err_nomem(p->err, "a part of a profile");
	}
	free(next);
	free(heads);
	return rc;
}

int cairn_profile_part(const struct cairn_profile *p, size_t first, size_t n,
		       struct cairn_profile **ret, struct cairn_err *err)
{
	struct parting parting = {.from = p, .err = err};
	size_t n_all = cairn_profile_n_samples(p);
	int rc;

	*ret = NULL;
	if (first > n_all || n > n_all - first)
		return err_set(err, -EINVAL, "the profile has no samples %zu to %zu", first,
			       first + n);
	rc = cairn_profile_new(p->types, p->n_types, &parting.to, err);
	rc = rc ? rc : cairn_profile_set_run(parting.to, &p->run, err);
	rc = rc ? rc : profile_copy_comments(parting.to, p, err);
	rc = rc ? rc : take_all(&parting, first, n);
	free(parting.locations);
	free(parting.functions);
	free(parting.mappings);
	VEC_FREE(&parting.stack);
	VEC_FREE(&parting.lines);
	if (rc == 0)
		*ret = parting.to;
	else
		cairn_profile_close(parting.to);
	return rc;
}
