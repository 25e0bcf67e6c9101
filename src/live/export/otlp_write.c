/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile as the request that OTLP's collectors take
 *
 * A profile of OTLP has one type of values, so that there is one for each type of ours; all share
 * the tables. docs/formats/otlp.md says where each thing goes.
 */
#include "export/otlp.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/gzip.h"
#include "export/otlp_tables.h"

typedef CairnOtlp__ValueType pb_value_type;
typedef CairnOtlp__Sample pb_sample;
typedef CairnOtlp__Profile pb_profile;
typedef CairnOtlp__ScopeProfiles pb_scope;
typedef CairnOtlp__Resource pb_resource;

/* The semantic conventions that name the attributes. */
#define SCHEMA "https://opentelemetry.io/schemas/1.44.0"

/* The parts that all profiles of a sample share. */
struct shared_sample {
	int32_t stack;
	int32_t *attributes;
	size_t n_attributes;
	size_t moments, n_moments; /* parts of the writer's */
};

struct writer {
	const struct cairn_profile *p;
	struct otlp_tables tables;
	struct shared_sample *samples;
	uint32_t *moments;    /* of all samples, by sample */
	struct map seen_keys; /* by string: the last sample that has it, and how often */
};

/* ---- attributes ---- */

/* Prometheus' names, as OpenTelemetry has them. */
static const struct name {
	const char *label, *attribute;
} resource_names[] = {{"service_name", "service.name"}, {"node", "host.name"}},
  sample_names[] = {{"pid", "process.pid"}, {"tid", "thread.id"}, {"thread", "thread.name"}};

static const char *find_name(const struct name *names, size_t n, const char *label)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i].label, label))
			return names[i].attribute;
	return label;
}

const char *otlp_resource_key(const char *label)
{
	return find_name(resource_names, sizeof(resource_names) / sizeof(resource_names[0]), label);
}

static const char *sample_key(const char *label)
{
	return find_name(sample_names, sizeof(sample_names) / sizeof(sample_names[0]), label);
}

/* A key that a sample has several times is numbered, as in JSON: "key", "key#2". */
static const char *numbered_key(struct writer *w, size_t sample, const char *key)
{
	uint64_t id = (uint64_t)otlp_string(&w->tables, key), seen = 0;
	char *numbered;

	if (!map_get(&w->seen_keys, id, &seen) || seen >> 32 != sample)
		seen = (uint64_t)sample << 32;
	w->tables.failed |= map_put(&w->seen_keys, id, ++seen) < 0;
	if ((uint32_t)seen == 1)
		return key;
	numbered = arena_printf(&w->tables.arena, "%s#%" PRIu32, key, (uint32_t)seen);
	w->tables.failed |= !numbered;
	return numbered ? numbered : key;
}

/* Tools write the numbers of processes and threads as text, too. */
static bool is_number(const char *key, const char *text, int64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)*text) ||
	    (strcmp(key, "process.pid") != 0 && strcmp(key, "thread.id") != 0))
		return false;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return !*end && !errno;
}

static int32_t sample_attribute(struct writer *w, size_t sample,
				const struct cairn_profile_label *l)
{
	const char *key = numbered_key(w, sample, sample_key(l->key));
	int64_t number = l->number;
	pb_any_value value = *l->text && !is_number(key, l->text, &number)
				     ? otlp_text_value(&w->tables, l->text)
				     : otlp_number_value(number);

	return otlp_attribute(&w->tables, key, &value, *l->text ? "" : l->unit);
}

/* ---- what all profiles share ---- */

static struct shared_sample shared_of(struct writer *w, size_t sample)
{
	struct cairn_profile_sample s = cairn_profile_sample(w->p, sample);
	struct shared_sample shared = {.stack = otlp_stack(&w->tables, s.stack, s.n_stack)};

	shared.attributes = otlp_take(&w->tables, s.n_labels, sizeof(*shared.attributes));
	for (size_t i = 0; !w->tables.failed && i < s.n_labels; i++)
		shared.attributes[shared.n_attributes++] =
			sample_attribute(w, sample, &s.labels[i]);
	return shared;
}

/* Moments are in the order of time, or in any other: a sample's are put side by side. */
static void sort_moments(struct writer *w)
{
	size_t n = cairn_profile_n_moments(w->p), at = 0;

	w->moments = otlp_take(&w->tables, n, sizeof(*w->moments));
	if (w->tables.failed)
		return;
	for (size_t i = 0; i < n; i++)
		w->samples[cairn_profile_moment(w->p, i).sample].n_moments++;
	for (size_t i = 0; i < w->p->samples.n; i++) {
		w->samples[i].moments = at;
		at += w->samples[i].n_moments;
		w->samples[i].n_moments = 0;
	}
	for (size_t i = 0; i < n; i++) {
		struct shared_sample *s = &w->samples[cairn_profile_moment(w->p, i).sample];

		w->moments[s->moments + s->n_moments++] = (uint32_t)i;
	}
}

static void share_samples(struct writer *w)
{
	size_t n = cairn_profile_n_samples(w->p);

	w->samples = otlp_take(&w->tables, n, sizeof(*w->samples));
	for (size_t i = 0; !w->tables.failed && i < n; i++)
		w->samples[i] = shared_of(w, i);
	if (!w->tables.failed)
		sort_moments(w);
}

/* ---- samples ---- */

static void begin_sample(const struct shared_sample *shared, pb_sample *out)
{
	cairn_otlp__sample__init(out);
	out->stack_index = shared->stack;
	out->attribute_indices = shared->attributes;
	out->n_attribute_indices = shared->n_attributes;
}

/* False: it has no time that can be written. */
static bool time_of(const struct writer *w, const struct cairn_profile_moment *m, uint64_t *ret)
{
	int64_t at;

	if (w->p->run.time_ns <= 0 || __builtin_add_overflow(w->p->run.time_ns, m->time_ns, &at) ||
	    at < 0)
		return false;
	*ret = (uint64_t)at;
	return true;
}

/*
 * Values with their times. @rest is what is left of the sample's value. It may wrap: what is taken
 * away from it in the end is right again.
 */
static void put_moments(struct writer *w, const struct shared_sample *shared, size_t type,
			uint64_t *rest, pb_sample *out)
{
	out->values = otlp_take(&w->tables, shared->n_moments, sizeof(*out->values));
	out->timestamps_unix_nano =
		otlp_take(&w->tables, shared->n_moments, sizeof(*out->timestamps_unix_nano));
	for (size_t i = 0; !w->tables.failed && i < shared->n_moments; i++) {
		struct cairn_profile_moment m =
			cairn_profile_moment(w->p, w->moments[shared->moments + i]);

		if (!time_of(w, &m, &out->timestamps_unix_nano[out->n_values]))
			continue;
		*rest -= (uint64_t)m.values[type];
		out->values[out->n_values++] = m.values[type];
	}
	out->n_timestamps_unix_nano = out->n_values;
}

static void put_rest(struct writer *w, uint64_t rest, pb_sample *out)
{
	out->values = otlp_take(&w->tables, 1, sizeof(*out->values));
	if (!out->values)
		return;
	out->values[0] = (int64_t)rest;
	out->n_values = 1;
}

/* A sample with times, and one for what has none; *@n counts them. */
static void put_sample(struct writer *w, size_t i, size_t type, pb_sample **list, size_t *n)
{
	struct cairn_profile_sample s = cairn_profile_sample(w->p, i);
	const struct shared_sample *shared = &w->samples[i];
	uint64_t rest = (uint64_t)s.values[type];
	pb_sample *out = list[*n];

	begin_sample(shared, out);
	if (shared->n_moments)
		put_moments(w, shared, type, &rest, out);
	*n += out->n_values > 0;
	if (out->n_values && !rest)
		return;
	out = list[(*n)++];
	begin_sample(shared, out);
	put_rest(w, rest, out);
}

static size_t samples_max(const struct writer *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->p->samples.n; i++)
		n += w->samples[i].n_moments ? 2 : 1;
	return n;
}

/* ---- profiles ---- */

static pb_value_type *value_type(struct writer *w, const struct cairn_profile_type *type)
{
	const char *name = profile_series_name(&w->tables.arena, type->type);
	const char *unit = profile_series_name(&w->tables.arena, type->unit);
	pb_value_type *out = otlp_take(&w->tables, 1, sizeof(*out));

	w->tables.failed |= !name || !unit;
	if (w->tables.failed)
		return NULL;
	cairn_otlp__value_type__init(out);
	out->type_strindex = otlp_string(&w->tables, name);
	out->unit_strindex = otlp_string(&w->tables, unit);
	return out;
}

/* The id of the batch, and for each further profile one that follows from it. */
static void put_id(struct writer *w, const uint8_t id[16], size_t i, pb_profile *out)
{
	uint8_t *own = otlp_take(&w->tables, 16, 1);

	if (!own)
		return;
	memcpy(own, id, 16);
	own[15] ^= (uint8_t)i;
	out->profile_id.data = own;
	out->profile_id.len = 16;
}

static void put_run(struct writer *w, pb_profile *out)
{
	const struct cairn_profile_run *run = &w->p->run;

	out->time_unix_nano = run->time_ns > 0 ? (uint64_t)run->time_ns : 0;
	out->duration_nano = run->duration_ns > 0 ? (uint64_t)run->duration_ns : 0;
	out->period = run->period;
	if (*run->each.type)
		out->period_type = value_type(w, &run->each);
}

static void put_profile(struct writer *w, const uint8_t id[16], size_t i, size_t type,
			pb_profile *out)
{
	cairn_otlp__profile__init(out);
	out->sample_type = value_type(w, &w->p->types[type]);
	out->samples = otlp_messages(&w->tables, samples_max(w), sizeof(**out->samples));
	for (size_t k = 0; !w->tables.failed && k < w->p->samples.n; k++)
		put_sample(w, k, type, out->samples, &out->n_samples);
	put_run(w, out);
	put_id(w, id, i, out);
}

/* The last type comes first, as viewers show the first profile, and pprof's the last type. */
static void put_profiles(struct writer *w, const uint8_t id[16], pb_scope *out)
{
	size_t n = w->p->n_types;

	out->profiles = otlp_messages(&w->tables, n, sizeof(**out->profiles));
	for (size_t i = 0; !w->tables.failed && i < n; i++)
		put_profile(w, id, i, i ? i - 1 : n - 1, out->profiles[i]);
	out->n_profiles = w->tables.failed ? 0 : n;
}

/* ---- the resource ---- */

static void add_resource(struct writer *w, pb_resource *out, const char *key, pb_any_value value)
{
	pb_any_value *own = otlp_take(&w->tables, 1, sizeof(*own));
	pb_key_value *pair;

	if (!own)
		return;
	*own = value;
	pair = out->attributes[out->n_attributes++];
	cairn_otlp__key_value__init(pair);
	pair->key = (char *)otlp_text(&w->tables, key);
	pair->value = own;
}

/* The process that all samples are of; 0: there are several, or it is not known. */
static int64_t only_pid(const struct cairn_profile *p)
{
	int64_t only = 0;

	for (size_t i = 0; i < p->samples.n; i++) {
		struct cairn_profile_sample s = cairn_profile_sample(p, i);
		int64_t pid = profile_owner(&s).pid;

		if (pid <= 0 || (only && pid != only))
			return 0;
		only = pid;
	}
	return only;
}

static void put_resource(struct writer *w, const struct cairn_profile_push *push, pb_resource *out)
{
	int64_t pid = only_pid(w->p);

	out->attributes = otlp_messages(&w->tables, push->n_labels + 1, sizeof(**out->attributes));
	for (size_t i = 0; !w->tables.failed && i < push->n_labels; i++) {
		const char *key = otlp_resource_key(push->labels[i].key);

		add_resource(w, out, key, otlp_text_value(&w->tables, push->labels[i].text));
		if (!strcmp(key, "process.pid"))
			pid = 0;
	}
	if (pid && !w->tables.failed)
		add_resource(w, out, "process.pid", otlp_number_value(pid));
}

/* ---- the request ---- */

static int too_large(struct cairn_err *err)
{
	return err_set(err, -EFBIG,
		       "the profile takes more than the 64 MiB that a request of OTLP may have");
}

static int pack(const CairnOtlp__ExportProfilesServiceRequest *request,
		struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	size_t size = cairn_otlp__export_profiles_service_request__get_packed_size(request);
	uint8_t *bytes, *packed;
	int rc;

	if (size > OTLP_REQUEST_MAX)
		return too_large(err);
	bytes = malloc(size);
	if (!bytes)
		return err_nomem(err, "the request's bytes");
	cairn_otlp__export_profiles_service_request__pack(request, bytes);
	rc = gzip_deflate(bytes, size, &packed, &ret->size, err);
	free(bytes);
	if (rc == 0)
		ret->bytes = packed;
	return rc;
}

static int write_all(struct writer *w, const struct cairn_profile_push *push, const uint8_t id[16],
		     struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	CairnOtlp__ExportProfilesServiceRequest request =
		CAIRN_OTLP__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
	CairnOtlp__ResourceProfiles of_resource = CAIRN_OTLP__RESOURCE_PROFILES__INIT,
				    *resources = &of_resource;
	CairnOtlp__InstrumentationScope cairn = CAIRN_OTLP__INSTRUMENTATION_SCOPE__INIT;
	pb_scope scope = CAIRN_OTLP__SCOPE_PROFILES__INIT, *scopes = &scope;
	pb_dictionary dictionary = CAIRN_OTLP__PROFILES_DICTIONARY__INIT;
	pb_resource resource = CAIRN_OTLP__RESOURCE__INIT;

	share_samples(w);
	put_profiles(w, id, &scope);
	put_resource(w, push, &resource);
	otlp_put_dictionary(w->p, &w->tables, &dictionary);
	cairn.name = (char *)"cairn";
	cairn.version = (char *)(push->version ? push->version : "");
	scope.scope = &cairn;
	scope.schema_url = of_resource.schema_url = (char *)SCHEMA;
	of_resource.resource = &resource;
	of_resource.scope_profiles = &scopes;
	of_resource.n_scope_profiles = 1;
	request.resource_profiles = &resources;
	request.n_resource_profiles = 1;
	request.dictionary = &dictionary;
	return w->tables.failed ? err_nomem(err, "the request's messages")
				: pack(&request, ret, err);
}

/* A UUID as text: 32 digits, and "-" anywhere between. */
static bool read_id(const char *text, uint8_t id[16])
{
	size_t n = 0;

	for (; *text; text++) {
		const char *digits = "0123456789abcdef";
		const char *at = strchr(digits, tolower((unsigned char)*text));

		if (*text == '-')
			continue;
		if (!at || n == 32)
			return false;
		id[n / 2] = (uint8_t)(id[n / 2] << 4 | (at - digits));
		n++;
	}
	return n == 32;
}

/* Each thing takes two bytes at least. Before gigabytes of messages are made. */
static bool is_too_large(const struct cairn_profile *p)
{
	size_t max = OTLP_REQUEST_MAX / 2;

	return p->samples.n > max || p->locations.n > max || p->functions.n > max ||
	       p->mappings.n > max || p->moments.n > OTLP_REQUEST_MAX / 9;
}

int profile_otlp(const struct cairn_profile *p, const struct cairn_profile_push *push,
		 struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	struct writer w = {.p = p};
	uint8_t id[16] = {0};
	int rc;

	if (!push->id || !read_id(push->id, id))
		return err_set(err, -EINVAL, "the id of a request is not a UUID");
	if (is_too_large(p))
		return too_large(err);
	otlp_tables_init(&w.tables);
	rc = write_all(&w, push, id, ret, err);
	otlp_tables_fini(&w.tables);
	map_fini(&w.seen_keys);
	return rc;
}
