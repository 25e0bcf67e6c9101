/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of a profile by name, by their share. */
#include "export/profile_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The name in samples that do not say a thread. */
static const char no_name[] = "";

struct threads {
	VEC(struct cairn_profile_thread) list;
	struct map by_name;
	struct map seen; /* threads that were counted, by name and number */
};

/* The index of a name, new or not; negative when out of memory. Names of a profile are one each. */
static int64_t at_name(struct threads *t, const char *name)
{
	uint64_t key = (uintptr_t)name, at;
	struct cairn_profile_thread *thread;

	if (map_get(&t->by_name, key, &at))
		return (int64_t)at;
	thread = VEC_PUSH(&t->list);
	if (!thread || map_put(&t->by_name, key, t->list.n - 1) < 0)
		return -ENOMEM;
	thread->name = name;
	return (int64_t)t->list.n - 1;
}

/* A thread that was renamed is one of either name. */
static int count_thread(struct threads *t, size_t at, int64_t tid)
{
	uint64_t key = (uint64_t)at << 32 | (uint32_t)tid, ignored;

	if (map_get(&t->seen, key, &ignored))
		return 0;
	t->list.p[at].n_threads++;
	return map_put(&t->seen, key, 0);
}

static int add(struct threads *t, const struct cairn_profile_sample *s, size_t type,
	       struct cairn_err *err)
{
	struct profile_owner owner = profile_owner(s);
	int64_t at = at_name(t, *owner.thread ? owner.thread : no_name);

	if (at < 0 || (owner.tid && count_thread(t, (size_t)at, owner.tid) < 0))
		return err_nomem(err, "the threads of a profile");
	return profile_add_value(&t->list.p[at].self, s->values[type], err);
}

static int by_share(const void *a, const void *b)
{
	const struct cairn_profile_thread *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	return strcmp(x->name, y->name);
}

int cairn_profile_threads(const struct cairn_profile *p, size_t type,
			  struct cairn_profile_thread **ret, size_t *ret_n, struct cairn_err *err)
{
	struct threads t = {0};
	int rc = profile_check_type(p, type, err);

	*ret = NULL;
	*ret_n = 0;
	for (size_t i = 0; rc == 0 && i < cairn_profile_n_samples(p); i++) {
		struct cairn_profile_sample s = cairn_profile_sample(p, i);
		rc = add(&t, &s, type, err);
	}
	map_fini(&t.by_name);
	map_fini(&t.seen);
	if (rc < 0) {
		VEC_FREE(&t.list);
		return rc;
	}
	if (t.list.n)
		qsort(t.list.p, t.list.n, sizeof(*t.list.p), by_share);
	*ret = t.list.p;
	*ret_n = t.list.n;
	return 0;
}
