/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of a profile by their share. */
#include "export/profile_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct shares {
	const struct cairn_profile *p;
	struct arena arena;
	VEC(struct cairn_profile_share) list;
	struct map by_name;
	uint32_t *of_function; /* 1 + index into list, by id; 0: not asked for yet */
	uint32_t *of_location; /* the same for locations without a function */
	/* The sample in which a function was counted last, plus one: recursion counts once. */
	VEC(size_t) counted;
};

/* The index of a name in a file, new or not; negative when out of memory. */
static int64_t share_of(struct shares *s, const char *function, const char *file,
			enum cairn_profile_code code)
{
	uint64_t hash = map_hash_str(function) * 31 + map_hash_str(file) + code, at;
	struct cairn_profile_share *share;

	for (; map_get(&s->by_name, hash, &at); hash++) {
		share = &s->list.p[at];
		if (!strcmp(share->function, function) && !strcmp(share->file, file) &&
		    share->code == code)
			return (int64_t)at;
	}
	share = VEC_PUSH(&s->list);
	if (!share || !VEC_PUSH(&s->counted))
		return -ENOMEM;
	share->function = arena_strdup(&s->arena, function);
	share->file = arena_strdup(&s->arena, file);
	share->code = code;
	if (!share->function || !share->file || map_put(&s->by_name, hash, s->list.n - 1) < 0)
		return -ENOMEM;
	return (int64_t)s->list.n - 1;
}

static int64_t share_of_function(struct shares *s, uint32_t id, enum cairn_profile_code code)
{
	const struct cairn_profile_function *f = cairn_profile_function(s->p, id);
	int64_t at;

	if (s->of_function[id - 1] && s->list.p[s->of_function[id - 1] - 1].code == code)
		return s->of_function[id - 1] - 1;
	at = share_of(s, f->name, f->file, code);
	if (at >= 0)
		s->of_function[id - 1] = (uint32_t)at + 1;
	return at;
}

static int64_t share_of_unknown(struct shares *s, uint32_t id)
{
	const struct cairn_profile_location *l = cairn_profile_location(s->p, id);
	int64_t at;
	char *name;

	if (s->of_location[id])
		return s->of_location[id] - 1;
	name = profile_unknown_name(s->p, l);
	at = name ? share_of(s, name, "", profile_code(s->p, l)) : -ENOMEM;
	free(name);
	if (at >= 0)
		s->of_location[id] = (uint32_t)at + 1;
	return at;
}

struct hit {
	struct shares *shares;
	size_t sample;
	int64_t value;
	struct cairn_err *err;
};

static int count(void *ctx, const struct profile_frame *f)
{
	const struct hit *hit = ctx;
	struct shares *s = hit->shares;
	int64_t at = f->function ? share_of_function(s, f->function, f->code)
				 : share_of_unknown(s, f->location);
	struct cairn_profile_share *share;
	int rc = 0;

	if (at < 0)
		return err_nomem(hit->err, "the functions of a profile");
	share = &s->list.p[at];
	if (s->counted.p[at] != hit->sample + 1)
		rc = profile_add_value(&share->total, hit->value, hit->err);
	s->counted.p[at] = hit->sample + 1;
	if (rc == 0 && f->is_innermost)
		rc = profile_add_value(&share->self, hit->value, hit->err);
	if (rc == 0 && f->is_innermost && f->is_inlined)
		rc = profile_add_value(&share->inlined, hit->value, hit->err);
	return rc;
}

static int count_all(struct shares *s, size_t type, int64_t *sum, struct cairn_err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < cairn_profile_n_samples(s->p); i++) {
		struct cairn_profile_sample sample = cairn_profile_sample(s->p, i);
		struct hit hit = {s, i, sample.values[type], err};

		rc = profile_add_value(sum, hit.value, err);
		if (rc == 0)
			rc = profile_walk(s->p, &sample, count, &hit);
	}
	return rc;
}

static int by_share(const void *a, const void *b)
{
	const struct cairn_profile_share *x = a, *y = b;
	int names;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	names = strcmp(x->function, y->function);
	if (names == 0)
		names = strcmp(x->file, y->file);
	return names ? names : (int)x->code - (int)y->code;
}

int cairn_profile_shares(const struct cairn_profile *p, size_t type,
			 struct cairn_profile_shares *ret, struct cairn_err *err)
{
	struct shares s = {.p = p};
	struct arena *owned;
	int rc = profile_check_type(p, type, err);

	*ret = (struct cairn_profile_shares){0};
	if (rc < 0)
		return rc;
	s.of_function = calloc(p->functions.n + 1, sizeof(*s.of_function));
	s.of_location = calloc(p->locations.n + 1, sizeof(*s.of_location));
	owned = calloc(1, sizeof(*owned));
	if (!s.of_function || !s.of_location || !owned)
		rc = err_nomem(err, "the functions of a profile");
	else
		rc = count_all(&s, type, &ret->sum, err);
	free(s.of_function);
	free(s.of_location);
	map_fini(&s.by_name);
	VEC_FREE(&s.counted);
	if (rc < 0) {
		free(owned);
		VEC_FREE(&s.list);
		arena_fini(&s.arena);
		*ret = (struct cairn_profile_shares){0};
		return rc;
	}
	if (s.list.n)
		qsort(s.list.p, s.list.n, sizeof(*s.list.p), by_share);
	*owned = s.arena;
	*ret = (struct cairn_profile_shares){s.list.p, s.list.n, ret->sum, owned};
	return 0;
}

void cairn_profile_shares_free(struct cairn_profile_shares *shares)
{
	free(shares->list);
	if (shares->owned)
		arena_fini(shares->owned);
	free(shares->owned);
	*shares = (struct cairn_profile_shares){0};
}
