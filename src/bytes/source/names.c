/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static uint64_t key_of(const char *name)
{
	for (const char *scope = name; (scope = strstr(scope, "::"));)
		name = scope += 2;
	return map_hash_str(name);
}

/* From the last place to the first, so that each list begins with the first. */
static int fill(struct names *names, size_t n, names_at *at, const void *ctx)
{
	for (size_t place = n; place > 0; place--) {
		const char *name = at(ctx, place);
		uint64_t key = name ? key_of(name) : 0, first = 0;

		if (!name)
			continue;
		if (map_get(&names->first, key, &first))
			names->next[place] = (uint32_t)first;
		if (map_put(&names->first, key, place))
			return -1;
	}
	return 0;
}

static int make(struct names *names, size_t n, names_at *at, const void *ctx, struct cairn_err *err)
{
	names->next = calloc(n + 1, sizeof(*names->next));
	if (names->next && !fill(names, n, at, ctx))
		return 0;
	names_fini(names);
	return err_nomem(err, "the names of types");
}

int names_find(struct names *names, const char *name, size_t n, names_at *at, const void *ctx,
	       struct names_walk *ret, struct cairn_err *err)
{
	uint64_t first = 0;

	*ret = (struct names_walk){.end = n};
	if (!name || (!names->next && !names->n_asked++))
		return 0;
	if (!names->next) {
		int rc = make(names, n, at, ctx, err);

		if (rc < 0)
			return rc;
	}
	map_get(&names->first, key_of(name), &first);
	ret->names = names;
	ret->ahead = first;
	return 0;
}

void names_fini(struct names *names)
{
	free(names->next);
	map_fini(&names->first);
	*names = (struct names){0};
}
