/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The changes since the last look at a process: two sorted lists, walked together.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code.h"

/* Strings are copies: those of a handle end when it is refreshed. */
struct code_seen_range {
	struct cairn_code_range range;
	char *owner, *why;
};

static void fini(struct code_seen_range *s)
{
	free(s->owner);
	free(s->why);
}

void code_seen_fini(struct code_seen *seen)
{
	for (size_t i = 0; i < seen->n; i++)
		fini(&seen->p[i]);
	free(seen->p);
	*seen = (struct code_seen){0};
}

static bool copy(struct code_seen_range *to, const struct cairn_code_range *r)
{
	*to = (struct code_seen_range){.range = *r,
				       .owner = r->owner ? strdup(r->owner) : NULL,
				       .why = r->why ? strdup(r->why) : NULL};
	to->range.owner = to->owner;
	to->range.why = to->why;
	return (to->owner || !r->owner) && (to->why || !r->why);
}

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* The identity of a range; the other members may change. */
static int compare(const struct code_seen_range *a, const struct code_seen_range *b)
{
	const struct cairn_code_range *x = &a->range, *y = &b->range;

	if (x->lo.v != y->lo.v)
		return x->lo.v < y->lo.v ? -1 : 1;
	if (x->hi.v != y->hi.v)
		return x->hi.v < y->hi.v ? -1 : 1;
	if (x->generation != y->generation)
		return x->generation < y->generation ? -1 : 1;
	return compare_texts(x->owner, y->owner);
}

static int by_identity(const void *a, const void *b)
{
	return compare(a, b);
}

static bool is_other(const struct cairn_code_range *a, const struct cairn_code_range *b)
{
	return a->source != b->source || a->unwind != b->unwind || a->n_rows != b->n_rows ||
	       a->n_names != b->n_names || a->is_trusted != b->is_trusted ||
	       compare_texts(a->why, b->why);
}

static int take(const struct cairn_code *code,
		bool (*is_wanted)(const struct cairn_code_range *r, void *ctx), void *ctx,
		struct code_seen *ret)
{
	size_t n = cairn_code_n_ranges(code);

	*ret = (struct code_seen){.p = calloc(n ? n : 1, sizeof(*ret->p))};
	if (!ret->p)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct cairn_code_range *r = cairn_code_range(code, i);

		if (r->is_removed || !is_wanted(r, ctx))
			continue;
		if (!copy(&ret->p[ret->n++], r))
			return -ENOMEM;
	}
	qsort(ret->p, ret->n, sizeof(*ret->p), by_identity);
	return 0;
}

static void report(const struct cairn_code_range *r, enum code_event event, bool json)
{
	if (json)
		code_json(stdout, r, event);
	else
		code_text(stdout, r, event);
}

static int report_changes(const struct code_seen *before, const struct code_seen *now, bool json)
{
	size_t b = 0, n = 0;
	int told = 0;

	while (b < before->n || n < now->n) {
		int order = b == before->n ? 1
			    : n == now->n  ? -1
					   : compare(&before->p[b], &now->p[n]);

		if (order < 0) {
			report(&before->p[b++].range, CODE_REMOVED, json);
		} else if (order > 0) {
			report(&now->p[n++].range, CODE_ADDED, json);
		} else if (is_other(&before->p[b++].range, &now->p[n++].range)) {
			report(&now->p[n - 1].range, CODE_CHANGED, json);
		} else {
			continue;
		}
		told++;
	}
	return told;
}

int code_follow(struct code_seen *seen, const struct cairn_code *code, bool json,
		bool (*is_wanted)(const struct cairn_code_range *r, void *ctx), void *ctx)
{
	struct code_seen now;
	int told = take(code, is_wanted, ctx, &now);

	if (told < 0) {
		code_seen_fini(&now);
		return told;
	}
	/* The first list is where it begins. */
	if (seen->p)
		told = report_changes(seen, &now, json);
	code_seen_fini(seen);
	*seen = now;
	return told;
}
