/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile in pprof's format. */
#include "export/profile_impl.h"

#include <errno.h>

#include "export/gzip.h"
#include "profile.pb-c.h"

typedef CairnPprof__Profile pb_profile;
typedef CairnPprof__Sample pb_sample;
typedef CairnPprof__Label pb_label;
typedef CairnPprof__Mapping pb_mapping;
typedef CairnPprof__Location pb_location;
typedef CairnPprof__Line pb_line;
typedef CairnPprof__Function pb_function;
typedef CairnPprof__ValueType pb_value_type;

struct writer {
	const struct cairn_profile *p;
	struct arena arena; /* all messages */
	VEC(const char *) strings;
	struct map string_ids; /* by address: the profile has each string once */
	bool is_series;        /* the names of types are parts of a series' name */
	bool failed;           /* out of memory */
};

static void *take(struct writer *w, size_t n, size_t size)
{
	void *p = arena_array(&w->arena, n ? n : 1, size);

	if (!p)
		w->failed = true;
	return p;
}

/* Protocol buffers have UTF-8 only, and readers refuse a file with anything else. */
static const char *as_utf8(struct writer *w, const char *text)
{
	const char *utf8 = profile_utf8(&w->arena, text);

	w->failed |= !utf8;
	return utf8 ? utf8 : "";
}

/* Index in the table of strings. */
static int64_t string(struct writer *w, const char *text)
{
	uint64_t at;

	if (!text || !*text)
		return 0;
	if (map_get(&w->string_ids, (uintptr_t)text, &at))
		return (int64_t)at;
	at = w->strings.n;
	if (!VEC_ADD(&w->strings, as_utf8(w, text)) ||
	    map_put(&w->string_ids, (uintptr_t)text, at) < 0)
		w->failed = true;
	return (int64_t)at;
}

/* An array of @n messages of @size bytes, as protobuf-c has them: pointers. */
static void *messages(struct writer *w, size_t n, size_t size)
{
	void **list = take(w, n, sizeof(*list));
	char *all = take(w, n, size);

	for (size_t i = 0; list && all && i < n; i++)
		list[i] = all + i * size;
	return w->failed ? NULL : list;
}

/* Servers query by "name:type:unit", where a name has letters, digits and "_" only. */
static int64_t type_name(struct writer *w, const char *text)
{
	const char *name = w->is_series ? profile_series_name(&w->arena, text) : text;

	w->failed |= !name;
	return name ? string(w, name) : 0;
}

static pb_value_type value_type(struct writer *w, const struct cairn_profile_type *t)
{
	pb_value_type v = CAIRN_PPROF__VALUE_TYPE__INIT;

	v.type = type_name(w, t->type);
	v.unit = type_name(w, t->unit);
	return v;
}

static void put_types(struct writer *w, pb_profile *out)
{
	out->sample_type = messages(w, w->p->n_types, sizeof(**out->sample_type));
	if (!out->sample_type)
		return;
	out->n_sample_type = w->p->n_types;
	for (size_t i = 0; i < w->p->n_types; i++)
		*out->sample_type[i] = value_type(w, &w->p->types[i]);
}

static pb_label label_of(struct writer *w, const struct cairn_profile_label *l)
{
	pb_label v = CAIRN_PPROF__LABEL__INIT;

	v.key = string(w, l->key);
	v.str = string(w, l->text);
	v.num = v.str ? 0 : l->number;
	v.num_unit = v.str ? 0 : string(w, l->unit);
	return v;
}

static pb_sample sample_of(struct writer *w, const struct cairn_profile_sample *s)
{
	pb_sample v = CAIRN_PPROF__SAMPLE__INIT;

	v.location_id = take(w, s->n_stack, sizeof(*v.location_id));
	v.label = messages(w, s->n_labels, sizeof(**v.label));
	if (w->failed)
		return v;
	v.n_location_id = s->n_stack;
	for (size_t i = 0; i < s->n_stack; i++)
		v.location_id[i] = (uint64_t)s->stack[i] + 1;
	v.n_value = w->p->n_types;
	v.value = (int64_t *)s->values;
	v.n_label = s->n_labels;
	for (size_t i = 0; i < s->n_labels; i++)
		*v.label[i] = label_of(w, &s->labels[i]);
	return v;
}

static void put_samples(struct writer *w, pb_profile *out)
{
	size_t n = cairn_profile_n_samples(w->p);

	out->sample = messages(w, n, sizeof(**out->sample));
	for (size_t i = 0; !w->failed && i < n; i++) {
		struct cairn_profile_sample s = cairn_profile_sample(w->p, i);

		*out->sample[i] = sample_of(w, &s);
	}
	out->n_sample = w->failed ? 0 : n;
}

static void put_mappings(struct writer *w, pb_profile *out)
{
	size_t n = w->p->mappings.n;

	out->mapping = messages(w, n, sizeof(**out->mapping));
	for (size_t i = 0; !w->failed && i < n; i++) {
		const struct cairn_profile_mapping *m = &w->p->mappings.p[i];
		pb_mapping v = CAIRN_PPROF__MAPPING__INIT;

		v.id = i + 1;
		v.memory_start = m->start;
		v.memory_limit = m->limit;
		v.file_offset = m->offset;
		v.filename = string(w, profile_mapping_path(m));
		v.build_id = string(w, m->build_id);
		*out->mapping[i] = v;
	}
	out->n_mapping = w->failed ? 0 : n;
}

/* pprof looks for symbols itself where a mapping does not say that they are known. */
static void note_known(const struct writer *w, pb_profile *out)
{
	for (size_t i = 0; i < w->p->locations.n; i++) {
		const struct cairn_profile_location *l = &w->p->locations.p[i];
		pb_mapping *m = l->mapping ? out->mapping[l->mapping - 1] : NULL;

		for (size_t k = 0; m && k < l->n_lines; k++) {
			m->has_functions = true;
			m->has_inline_frames |= k > 0;
			m->has_line_numbers |= l->lines[k].line != 0;
			m->has_filenames |=
				*cairn_profile_function(w->p, l->lines[k].function)->file != 0;
		}
	}
}

static pb_location location_of(struct writer *w, const struct cairn_profile_location *l)
{
	pb_location v = CAIRN_PPROF__LOCATION__INIT;

	v.mapping_id = l->mapping;
	v.address = l->address;
	v.line = messages(w, l->n_lines, sizeof(**v.line));
	for (size_t i = 0; !w->failed && i < l->n_lines; i++) {
		pb_line line = CAIRN_PPROF__LINE__INIT;

		line.function_id = l->lines[i].function;
		line.line = l->lines[i].line;
		*v.line[i] = line;
	}
	v.n_line = w->failed ? 0 : l->n_lines;
	return v;
}

static void put_locations(struct writer *w, pb_profile *out)
{
	size_t n = w->p->locations.n;

	out->location = messages(w, n, sizeof(**out->location));
	for (size_t i = 0; !w->failed && i < n; i++) {
		*out->location[i] = location_of(w, &w->p->locations.p[i]);
		out->location[i]->id = i + 1;
	}
	out->n_location = w->failed ? 0 : n;
}

static void put_functions(struct writer *w, pb_profile *out)
{
	size_t n = w->p->functions.n;

	out->function = messages(w, n, sizeof(**out->function));
	for (size_t i = 0; !w->failed && i < n; i++) {
		const struct cairn_profile_function *f = &w->p->functions.p[i];
		pb_function v = CAIRN_PPROF__FUNCTION__INIT;

		v.id = i + 1;
		v.name = string(w, f->name);
		v.system_name = string(w, *f->linkage_name ? f->linkage_name : f->name);
		v.filename = string(w, f->file);
		v.start_line = f->line;
		*out->function[i] = v;
	}
	out->n_function = w->failed ? 0 : n;
}

static void put_comments(struct writer *w, pb_profile *out)
{
	size_t n = cairn_profile_n_comments(w->p);

	out->comment = take(w, n, sizeof(*out->comment));
	for (size_t i = 0; !w->failed && i < n; i++)
		out->comment[i] = string(w, cairn_profile_comment(w->p, i));
	out->n_comment = w->failed ? 0 : n;
}

static int pack(const pb_profile *out, struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	size_t size = cairn_pprof__profile__get_packed_size(out);
	uint8_t *bytes = malloc(size ? size : 1), *packed;
	int rc;

	if (!bytes)
		return err_nomem(err, "the profile's bytes");
	cairn_pprof__profile__pack(out, bytes);
	rc = gzip_deflate(bytes, size, &packed, &ret->size, err);
	free(bytes);
	if (rc == 0)
		ret->bytes = packed;
	return rc;
}

static int write_pprof(const struct cairn_profile *p, bool is_series,
		       struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	struct writer w = {.p = p, .is_series = is_series};
	pb_profile out = CAIRN_PPROF__PROFILE__INIT;
	pb_value_type each;
	int rc;

	*ret = (struct cairn_profile_bytes){0};
	/* String 0 is "". */
	if (!VEC_ADD(&w.strings, ""))
		return err_nomem(err, "the profile's strings");
	put_types(&w, &out);
	put_samples(&w, &out);
	put_mappings(&w, &out);
	if (!w.failed)
		note_known(&w, &out);
	put_locations(&w, &out);
	put_functions(&w, &out);
	put_comments(&w, &out);
	each = value_type(&w, &p->run.each);
	out.period_type = *p->run.each.type ? &each : NULL;
	out.period = p->run.period;
	out.time_nanos = p->run.time_ns;
	out.duration_nanos = p->run.duration_ns;
	out.string_table = (char **)w.strings.p;
	out.n_string_table = w.strings.n;
	rc = w.failed ? err_nomem(err, "the profile's messages") : pack(&out, ret, err);
	VEC_FREE(&w.strings);
	map_fini(&w.string_ids);
	arena_fini(&w.arena);
	return rc;
}

int cairn_profile_pprof(const struct cairn_profile *p, struct cairn_profile_bytes *ret,
			struct cairn_err *err)
{
	return write_pprof(p, false, ret, err);
}

int profile_pprof_series(const struct cairn_profile *p, struct cairn_profile_bytes *ret,
			 struct cairn_err *err)
{
	return write_pprof(p, true, ret, err);
}
