/* SPDX-License-Identifier: BSD-2-Clause */
/* The dictionary of an OTLP request: what the stacks of all its profiles refer to. */
#include <string.h>

#include "export/otlp_tables.h"

typedef CairnOtlp__Mapping pb_mapping;
typedef CairnOtlp__Location pb_location;
typedef CairnOtlp__Line pb_line;
typedef CairnOtlp__Function pb_function;
typedef CairnOtlp__Link pb_link;

struct dictionary {
	const struct cairn_profile *p;
	struct otlp_tables *t;
};

static bool is_hex(const char *text)
{
	return text[strspn(text, "0123456789abcdefABCDEF")] == 0;
}

/* Which of a mapping's locations say what. */
struct known {
	bool functions, inlined, lines, files;
};

static void note_known(const struct dictionary *d, struct known *known)
{
	for (size_t i = 0; i < d->p->locations.n; i++) {
		const struct cairn_profile_location *l = &d->p->locations.p[i];
		struct known *k = &known[l->mapping];

		for (size_t at = 0; at < l->n_lines; at++) {
			k->functions = true;
			k->inlined |= at > 0;
			k->lines |= l->lines[at].line != 0;
			k->files |= *cairn_profile_function(d->p, l->lines[at].function)->file != 0;
		}
	}
}

/* Go's own ids have slashes; one that is neither is of no known kind. */
static void put_build_id(struct dictionary *d, const char *id, pb_mapping *out)
{
	const char *key = is_hex(id)        ? "process.executable.build_id.gnu"
			  : strchr(id, '/') ? "process.executable.build_id.go"
					    : NULL;
	pb_any_value value;

	if (!*id || !key)
		return;
	value = otlp_text_value(d->t, id);
	out->attribute_indices[out->n_attribute_indices++] = otlp_attribute(d->t, key, &value, "");
}

static void put_known(struct dictionary *d, const struct known *known, pb_mapping *out)
{
	const struct {
		bool is_known;
		const char *key;
	} all[] = {{known->functions, "pprof.mapping.has_functions"},
		   {known->files, "pprof.mapping.has_filenames"},
		   {known->lines, "pprof.mapping.has_line_numbers"},
		   {known->inlined, "pprof.mapping.has_inline_frames"}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].is_known)
			out->attribute_indices[out->n_attribute_indices++] =
				otlp_true(d->t, all[i].key);
}

/* A build-id, and what is known. */
enum { MAPPING_ATTRIBUTES = 5 };

static void put_mapping(struct dictionary *d, const struct cairn_profile_mapping *m,
			const struct known *known, pb_mapping *out)
{
	out->attribute_indices =
		otlp_take(d->t, MAPPING_ATTRIBUTES, sizeof(*out->attribute_indices));
	if (!out->attribute_indices)
		return;
	out->memory_start = m->start;
	out->memory_limit = m->limit;
	out->file_offset = m->offset;
	out->filename_strindex = otlp_string(d->t, profile_mapping_path(m));
	put_build_id(d, m->build_id, out);
	put_known(d, known, out);
}

static void put_mappings(struct dictionary *d, pb_dictionary *out)
{
	size_t n = d->p->mappings.n + 1;
	struct known *known = otlp_take(d->t, n, sizeof(*known));

	out->mapping_table = otlp_messages(d->t, n, sizeof(**out->mapping_table));
	if (d->t->failed)
		return;
	note_known(d, known);
	for (size_t i = 0; i < n; i++) {
		cairn_otlp__mapping__init(out->mapping_table[i]);
		if (i)
			put_mapping(d, &d->p->mappings.p[i - 1], &known[i], out->mapping_table[i]);
	}
	out->n_mapping_table = n;
}

static bool has_name(const struct cairn_profile_function *f)
{
	return *f->name || *f->linkage_name || *f->file;
}

static void put_lines(struct dictionary *d, const struct cairn_profile_location *l,
		      pb_location *out)
{
	out->lines = otlp_messages(d->t, l->n_lines, sizeof(**out->lines));
	for (size_t i = 0; !d->t->failed && i < l->n_lines; i++) {
		const struct cairn_profile_function *f =
			cairn_profile_function(d->p, l->lines[i].function);
		pb_line *line = out->lines[i];

		cairn_otlp__line__init(line);
		/* A function of which nothing is known is none. */
		line->function_index = has_name(f) ? (int32_t)l->lines[i].function : 0;
		line->line = l->lines[i].line;
	}
	out->n_lines = d->t->failed ? 0 : l->n_lines;
}

/* "native" only if the code is known to be: other tools' profiles have files of other kinds. */
static const char *frame_type(const struct dictionary *d, const struct cairn_profile_location *l)
{
	const struct cairn_profile_mapping *m = cairn_profile_mapping(d->p, l->mapping);
	enum cairn_profile_code code = profile_code(d->p, l);

	if (code != CAIRN_PROFILE_USER)
		return code == CAIRN_PROFILE_KERNEL ? "kernel" : "jit";
	return m && m->is_linked ? "native" : NULL;
}

static void put_frame_type(struct dictionary *d, const char *type, pb_location *out)
{
	pb_any_value value = otlp_text_value(d->t, type);

	out->attribute_indices = otlp_take(d->t, 1, sizeof(*out->attribute_indices));
	if (!out->attribute_indices)
		return;
	out->attribute_indices[0] = otlp_attribute(d->t, "profile.frame.type", &value, "");
	out->n_attribute_indices = 1;
}

static void put_location(struct dictionary *d, const struct cairn_profile_location *l,
			 pb_location *out)
{
	const char *type = frame_type(d, l);

	out->mapping_index = (int32_t)l->mapping;
	out->address = l->address;
	put_lines(d, l, out);
	if (type)
		put_frame_type(d, type, out);
}

static void put_locations(struct dictionary *d, pb_dictionary *out)
{
	size_t n = d->p->locations.n + 1;

	out->location_table = otlp_messages(d->t, n, sizeof(**out->location_table));
	for (size_t i = 0; !d->t->failed && i < n; i++) {
		cairn_otlp__location__init(out->location_table[i]);
		if (i)
			put_location(d, &d->p->locations.p[i - 1], out->location_table[i]);
	}
	out->n_location_table = d->t->failed ? 0 : n;
}

static void put_functions(struct dictionary *d, pb_dictionary *out)
{
	size_t n = d->p->functions.n + 1;

	out->function_table = otlp_messages(d->t, n, sizeof(**out->function_table));
	for (size_t i = 0; !d->t->failed && i < n; i++) {
		pb_function *f = out->function_table[i];
		const struct cairn_profile_function *from = i ? &d->p->functions.p[i - 1] : NULL;

		cairn_otlp__function__init(f);
		if (!from)
			continue;
		f->name_strindex = otlp_string(d->t, from->name);
		f->system_name_strindex = otlp_string(d->t, from->linkage_name);
		f->filename_strindex = otlp_string(d->t, from->file);
		f->start_line = from->line;
	}
	out->n_function_table = d->t->failed ? 0 : n;
}

/* There are no links. The first has ids of full length, for readers that demand them. */
static void put_links(struct dictionary *d, pb_dictionary *out)
{
	static uint8_t none[16];

	out->link_table = otlp_messages(d->t, 1, sizeof(**out->link_table));
	if (d->t->failed)
		return;
	cairn_otlp__link__init(out->link_table[0]);
	out->link_table[0]->trace_id = (ProtobufCBinaryData){.len = 16, .data = none};
	out->link_table[0]->span_id = (ProtobufCBinaryData){.len = 8, .data = none};
	out->n_link_table = 1;
}

/* Last, as all else puts things into the tables. */
static void put_tables(struct dictionary *d, pb_dictionary *out)
{
	const struct otlp_tables *t = d->t;

	out->string_table = (char **)t->strings.p;
	out->n_string_table = t->strings.n;
	out->attribute_table = t->attributes.p;
	out->n_attribute_table = t->attributes.n;
	out->stack_table = t->stacks.p;
	out->n_stack_table = t->stacks.n;
}

void otlp_put_dictionary(const struct cairn_profile *p, struct otlp_tables *t, pb_dictionary *out)
{
	struct dictionary d = {p, t};

	put_mappings(&d, out);
	put_locations(&d, out);
	put_functions(&d, out);
	put_links(&d, out);
	put_tables(&d, out);
}
