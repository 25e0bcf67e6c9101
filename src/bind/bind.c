/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry, and the members as JSON, which tests of all languages share. */
#include <errno.h>

#include "base/err.h"
#include "base/opts.h"
#include "bind/walk.h"

static const char *const kind_names[] = {
	[BIND_INT] = "int", [BIND_BOOL] = "bool", [BIND_FLOAT] = "float", [BIND_TEXT] = "text", [BIND_BYTES] = "bytes",
};

static void put_field(FILE *out, const struct bind_field *f, bool first)
{
	fprintf(out, "%s{\"name\":\"%s\",\"path\":\"", first ? "" : ",", f->name);
	cairn_quote_put(f->path, CAIRN_QUOTE_JSON, out);
	fprintf(out, "\",\"kind\":\"%s\",\"offset\":%llu,\"size\":%llu", kind_names[f->kind], (unsigned long long)f->off,
		(unsigned long long)f->size);
	fprintf(out, ",\"signed\":%s,\"big_endian\":%s", f->is_signed ? "true" : "false", f->big_endian ? "true" : "false");
	if (f->bits)
		fprintf(out, ",\"shift\":%u,\"bits\":%u", f->shift, f->bits);
	fputs(",\"dims\":[", out);
	for (uint32_t i = 0; i < f->n_dims; i++)
		fprintf(out, "%s{\"count\":%llu,\"stride\":%llu}", i ? "," : "", (unsigned long long)f->dims[i].count,
			(unsigned long long)f->dims[i].stride);
	fputs("]}", out);
}

void bind_write_json(const struct bind_file *file)
{
	for (size_t i = 0; i < file->records.n; i++) {
		const struct bind_record *r = &file->records.p[i];

		fprintf(file->out, "{\"name\":\"%s\",\"class\":\"%s\",\"size\":%llu,\"big_endian\":%s,\"fields\":[", r->name,
			r->camel, (unsigned long long)r->size, file->opts->big_endian ? "true" : "false");
		for (size_t k = 0; k < r->fields.n; k++)
			put_field(file->out, &r->fields.p[k], !k);
		fputs("]}\n", file->out);
	}
}

static void write_all(struct bind_file *file, enum cairn_bind_lang lang)
{
	switch (lang) {
	case CAIRN_BIND_C:
		bind_write_c(file);
		break;
	case CAIRN_BIND_RUST:
		bind_write_rust(file);
		break;
	case CAIRN_BIND_JAVA:
		bind_write_java(file);
		break;
	case CAIRN_BIND_PYTHON:
		bind_write_python(file);
		break;
	case CAIRN_BIND_JSON:
		bind_write_json(file);
		break;
	}
}

/* Letters, digits and underscores, with a dot between two names; keywords are left to the compiler. */
static bool is_java_package(const char *name)
{
	bool begins = true;

	for (const char *c = name; *c; c++) {
		bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';

		if (!letter && (begins || !((*c >= '0' && *c <= '9') || *c == '.')))
			return false;
		begins = *c == '.';
	}
	return !begins;
}

int cairn_bind_write(const struct cairn_types *types, const uint32_t *ids, size_t n_ids, enum cairn_bind_lang lang,
		     const struct cairn_bind_opts *opts, FILE *out, struct cairn_err *err)
{
	struct cairn_bind_opts o;
	struct bind_file file = {.types = types, .opts = &o, .out = out};
	int rc = opts_take(&o, sizeof(o), opts, err);

	if (!rc && o.package && !is_java_package(o.package))
		rc = err_set(err, -EINVAL, "%s is no name of a Java package", o.package);
	if (rc < 0)
		return rc;
	arena_init(&file.arena);
	rc = bind_walk(&file, ids, n_ids, err);
	if (o.n_renamed)
		*o.n_renamed = file.n_renamed;
	if (!rc)
		write_all(&file, lang);
	for (size_t i = 0; i < file.records.n; i++)
		VEC_FREE(&file.records.p[i].fields);
	VEC_FREE(&file.records);
	arena_fini(&file.arena);
	return rc;
}
