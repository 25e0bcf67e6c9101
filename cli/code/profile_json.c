/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile as lines of JSON: a stack each, then a summary. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"

/* The function of a frame, and the line in it. The out-of-line one has the address, too. */
static void put_line(struct json *j, const struct cairn_profile *p,
		     const struct cairn_profile_line *line, bool is_inlined)
{
	const struct cairn_profile_function *f = cairn_profile_function(p, line->function);

	json_text(j, "function", f->name);
	if (*f->linkage_name && strcmp(f->linkage_name, f->name) != 0)
		json_text(j, "linkage", f->linkage_name);
	if (*f->file)
		json_text(j, "file", f->file);
	if (line->line)
		json_uint(j, "line", line->line);
	if (is_inlined)
		json_bool(j, "inlined", true);
}

static void put_address(struct json *j, const struct cairn_profile *p,
			const struct cairn_profile_location *l)
{
	const struct cairn_profile_mapping *m = cairn_profile_mapping(p, l->mapping);

	if (m && m->code != CAIRN_PROFILE_USER)
		json_text(j, "code", profile_code_id(m->code));
	if (!m && !l->address)
		return;
	json_hex(j, "address", l->address);
	if (!m)
		return;
	json_text(j, "module", m->path);
	json_hex(j, "offset", l->address - m->start + m->offset);
}

static void put_location(struct json *j, const struct cairn_profile *p,
			 const struct cairn_profile_location *l)
{
	for (size_t i = 0; i < l->n_lines; i++) {
		bool is_inlined = i + 1 < l->n_lines;

		json_open(j, NULL, '{');
		put_line(j, p, &l->lines[i], is_inlined);
		if (!is_inlined)
			put_address(j, p, l);
		json_close(j);
	}
	if (l->n_lines)
		return;
	json_open(j, NULL, '{');
	json_null(j, "function");
	put_address(j, p, l);
	json_close(j);
}

/* A key that a sample has several times is numbered: "key", "key#2". */
static void put_label(struct json *j, const struct cairn_profile_sample *s, size_t i)
{
	const struct cairn_profile_label *l = &s->labels[i];
	size_t n = 1;
	char *key = NULL;

	for (size_t k = 0; k < i; k++)
		n += !strcmp(s->labels[k].key, l->key);
	if (n > 1 && asprintf(&key, "%s#%zu", l->key, n) < 0)
		key = NULL;
	if (*l->text)
		json_text(j, key ? key : l->key, l->text);
	else
		json_int(j, key ? key : l->key, l->number);
	free(key);
}

static void put_sample(struct json *j, const struct cairn_profile *p,
		       const struct cairn_profile_sample *s)
{
	json_open(j, NULL, '{');
	json_open(j, "stack", '[');
	for (size_t i = 0; i < s->n_stack; i++)
		put_location(j, p, cairn_profile_location(p, s->stack[i]));
	json_close(j);
	json_open(j, "values", '{');
	for (size_t i = 0; i < cairn_profile_n_types(p); i++)
		json_int(j, cairn_profile_type(p, i)->type, s->values[i]);
	json_close(j);
	json_open(j, "labels", '{');
	for (size_t i = 0; i < s->n_labels; i++)
		put_label(j, s, i);
	json_close(j);
	json_close(j);
}

static void put_summary(struct json *j, const struct cairn_profile *p)
{
	struct cairn_profile_run run = cairn_profile_run(p);

	json_open(j, NULL, '{');
	json_summary(j);
	json_uint(j, "stacks", cairn_profile_n_samples(p));
	json_open(j, "units", '{');
	for (size_t i = 0; i < cairn_profile_n_types(p); i++)
		json_text(j, cairn_profile_type(p, i)->type, cairn_profile_type(p, i)->unit);
	json_close(j);
	json_open(j, "comments", '[');
	for (size_t i = 0; i < cairn_profile_n_comments(p); i++)
		json_text(j, NULL, cairn_profile_comment(p, i));
	json_close(j);
	json_int(j, "time_ns", run.time_ns);
	json_int(j, "duration_ns", run.duration_ns);
	json_int(j, "period", run.period);
	json_text(j, "period_unit", *run.each.unit ? run.each.unit : NULL);
	json_close(j);
}

int profile_make_json(const struct cairn_profile *p, size_t type, const char *title,
		      struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	struct json j = {.out = open_memstream((char **)&ret->bytes, &ret->size)};
	bool failed = !j.out;

	for (size_t i = 0; !failed && i < cairn_profile_n_samples(p); i++) {
		struct cairn_profile_sample s = cairn_profile_sample(p, i);

		put_sample(&j, p, &s);
		failed = ferror(j.out);
	}
	if (j.out) {
		put_summary(&j, p);
		failed |= ferror(j.out) != 0;
		failed |= fclose(j.out) != 0;
	}
	if (!failed)
		return 0;
	err->code = -ENOMEM;
	snprintf(err->msg, sizeof(err->msg), "out of memory for the JSON of a profile");
	return -ENOMEM;
}
