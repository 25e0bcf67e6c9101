/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile becomes a batch of the spool. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "push_impl.h"

/* ---- a new batch ---- */

static bool has_label(const struct push *p, const char *key)
{
	for (size_t i = 0; i < p->wish->labels.n; i++)
		if (!strcmp(p->labels[i].key, key))
			return true;
	return false;
}

/* "process_cpu" is what both servers' pages know for it. */
static void series_name(const struct cairn_profile *profile, char *to, size_t size)
{
	size_t n = cairn_profile_n_types(profile);
	const char *type = cairn_profile_type(profile, n - 1)->type;

	snprintf(to, size, "%s%s", !strcmp(type, "cpu") ? "process_" : "",
		 *type ? type : "profile");
	for (char *at = to; *at; at++)
		if (!isascii(*at) || !isalnum((unsigned char)*at))
			*at = '_';
}

/* OTLP has other names for them, and says the values' names elsewhere. */
static size_t all_labels(struct push *p, const char *name, const char *node)
{
	size_t n = p->wish->labels.n;

	if (p->to != CAIRN_PROFILE_OTLP && !has_label(p, "__name__"))
		p->labels[n++] = (struct cairn_profile_label){.key = "__name__", .text = name};
	if (!has_label(p, "service_name") && !has_label(p, "service.name"))
		p->labels[n++] =
			(struct cairn_profile_label){.key = "service_name", .text = "cairn"};
	if (node && !has_label(p, "node") && !has_label(p, "host.name"))
		p->labels[n++] = (struct cairn_profile_label){.key = "node", .text = node};
	return n;
}

static int make_batch(struct push *p, const struct cairn_profile *profile, const char *node,
		      struct batch *ret, struct cairn_profile_bytes *bytes, struct cairn_err *err)
{
	struct cairn_profile_push push = {
		.to = p->to, .labels = p->labels, .id = ret->id, .version = CAIRN_VERSION};
	char name[128];
	int r;

	spool_new_id(ret->id);
	series_name(profile, name, sizeof(name));
	push.n_labels = all_labels(p, name, node);
	r = cairn_profile_push_request(profile, &push, bytes, err);
	ret->url = p->url;
	ret->type = p->type;
	ret->body = bytes->bytes;
	ret->size = bytes->size;
	return r;
}

/* It cannot be sent at all. */
static int count_lost(struct push *p, const struct cairn_err *err)
{
	struct cairn_err unsaid;

	p->counts.n_lost++;
	if (spool_lock(&p->spool, &unsaid) == 0) {
		spool_count_dropped(&p->spool, 0, &unsaid);
		spool_unlock(&p->spool);
	}
	return fail_err(err->code, err, STATUS_NOT_HERE);
}

static int add_batch(struct push *p, const struct batch *b)
{
	struct cairn_err err = {0};
	int r = spool_lock(&p->spool, &err), status = STATUS_YES;

	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	r = spool_add(&p->spool, b, &err);
	spool_unlock(&p->spool);
	if (r < 0) {
		fail_told(STATUS_YES, &err);
		status = push_unspooled(p, b);
	}
	return status;
}

/* A server would file it under 1970. */
static int set_time(struct cairn_profile *profile, const char *name, struct cairn_err *err)
{
	struct cairn_profile_run run = cairn_profile_run(profile);
	struct timespec now;

	if (run.time_ns > 0)
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	run.time_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	fail(STATUS_YES, "%s does not say when it was taken: it is pushed as of now", name);
	return cairn_profile_set_run(profile, &run, err);
}

static int add_profile(struct push *p, const struct cairn_profile *profile, const char *node);

/* A server gets in two requests what it does not take in one. */
static int add_halves(struct push *p, const struct cairn_profile *profile, const char *node)
{
	size_t n = cairn_profile_n_samples(profile), firsts[] = {0, n / 2, n};
	int status = STATUS_YES;

	for (int i = 0; i < 2; i++) {
		struct cairn_err err = {0};
		struct cairn_profile *part;
		int r = cairn_profile_part(profile, firsts[i], firsts[i + 1] - firsts[i], &part,
					   &err);
		int s = r < 0 ? fail_err(r, &err, STATUS_NOT_HERE) : add_profile(p, part, node);
		status = s > status ? s : status;
		if (r == 0)
			cairn_profile_close(part);
	}
	return status;
}

static int add_profile(struct push *p, const struct cairn_profile *profile, const char *node)
{
	struct cairn_profile_bytes bytes = {0};
	struct cairn_err err = {0};
	struct batch b;
	int r = make_batch(p, profile, node, &b, &bytes, &err), status;

	if (r == -EFBIG && cairn_profile_n_samples(profile) > 1)
		return add_halves(p, profile, node);
	if (r == -EFBIG)
		return count_lost(p, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	status = add_batch(p, &b);
	free(bytes.bytes);
	return status;
}

int push_add(struct push *p, struct cairn_profile *profile, const char *name, const char *node)
{
	struct cairn_err err = {0};

	if (!cairn_profile_n_samples(profile))
		return fail(STATUS_NO, "%s has no samples: there is nothing to push", name);
	if (set_time(profile, name, &err) < 0)
		return fail_err(err.code, &err, STATUS_NOT_HERE);
	return add_profile(p, profile, node);
}
