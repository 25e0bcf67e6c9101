/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry, and the members as JSON, which tests of all languages share. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/opts.h"
#include "bind/walk.h"

static const char *const kind_names[] = {
	[BIND_INT] = "int",   [BIND_BOOL] = "bool",   [BIND_FLOAT] = "float",
	[BIND_TEXT] = "text", [BIND_BYTES] = "bytes",
};

static void put_accessors(struct bind_file *file, const struct bind_record *r,
			  const struct bind_field *f)
{
	const char *place = bind_in_struct(file, r, f);

	fprintf(file->out, ",\"get\":\"%s\",\"set\":\"%s\",\"in_struct\":", f->get, f->set);
	fprintf(file->out, place ? "\"%s\"" : "null", place);
}

static void put_field(struct bind_file *file, const struct bind_record *r,
		      const struct bind_field *f, bool first)
{
	FILE *out = file->out;

	fprintf(out, "%s{\"name\":\"%s\",\"path\":\"", first ? "" : ",", f->name);
	cairn_quote_put(f->path, CAIRN_QUOTE_JSON, out);
	fprintf(out, "\",\"kind\":\"%s\",\"offset\":%llu,\"size\":%llu", kind_names[f->kind],
		(unsigned long long)f->off, (unsigned long long)f->size);
	fprintf(out, ",\"signed\":%s,\"big_endian\":%s", f->is_signed ? "true" : "false",
		f->big_endian ? "true" : "false");
	if (f->bits)
		fprintf(out, ",\"shift\":%u,\"bits\":%u", f->shift, f->bits);
	if (f->enum_no)
		fprintf(out, ",\"enum\":\"%s\"", file->enums.p[f->enum_no - 1].name);
	if (file->opts->accessors)
		put_accessors(file, r, f);
	fputs(",\"dims\":[", out);
	for (uint32_t i = 0; i < f->n_dims; i++)
		fprintf(out, "%s{\"count\":%llu,\"stride\":%llu}", i ? "," : "",
			(unsigned long long)f->dims[i].count,
			(unsigned long long)f->dims[i].stride);
	fputs("]}", out);
}

static void put_enum(const struct bind_file *file, const struct bind_enum *e)
{
	FILE *out = file->out;

	fprintf(out, "{\"name\":\"%s\",\"class\":\"%s\",", e->name, e->camel);
	if (file->opts->accessors && file->opts->names_of == CAIRN_BIND_RUST)
		fprintf(out, "\"module\":\"%s\",", e->module);
	fprintf(out, "\"size\":%llu,\"signed\":%s,\"constants\":[", (unsigned long long)e->size,
		e->is_signed ? "true" : "false");
	for (uint32_t i = 0; i < e->n_constants; i++) {
		const struct bind_constant *c = &e->constants[i];

		fprintf(out, "%s{\"name\":\"", i ? "," : "");
		cairn_quote_put(c->source_name, CAIRN_QUOTE_JSON, out);
		fprintf(out, e->is_signed ? "\",\"value\":%lld" : "\",\"value\":%llu",
			(long long)c->value);
		fprintf(out, file->opts->accessors ? ",\"constant\":\"%s\"}" : "}", c->name);
	}
	fputs("]}\n", out);
}

static void put_struct(const struct bind_file *file, const struct bind_record *r)
{
	const struct bind_shape *s = bind_shape_of(file, r);

	if (s)
		fprintf(file->out, "\"struct\":\"%s\",", s->name);
	else
		fputs("\"struct\":null,", file->out);
}

static void put_left_out(FILE *out, const struct bind_record *r)
{
	for (size_t i = 0; i < r->left_out.n; i++) {
		fputs(i ? ",{\"path\":\"" : ",\"left_out\":[{\"path\":\"", out);
		cairn_quote_put(r->left_out.p[i].path, CAIRN_QUOTE_JSON, out);
		fprintf(out, "\",\"why\":\"%s\"}", r->left_out.p[i].why);
	}
	if (r->left_out.n)
		fputc(']', out);
}

void bind_write_json(struct bind_file *file)
{
	for (size_t i = 0; i < file->records.n; i++) {
		const struct bind_record *r = &file->records.p[i];

		fprintf(file->out, "{\"name\":\"%s\",\"class\":\"%s\",", r->name, r->camel);
		if (file->opts->accessors)
			put_struct(file, r);
		fprintf(file->out, "\"size\":%llu,\"big_endian\":%s,\"fields\":[",
			(unsigned long long)r->size, file->opts->big_endian ? "true" : "false");
		for (size_t k = 0; k < r->fields.n; k++)
			put_field(file, r, &r->fields.p[k], !k);
		fputc(']', file->out);
		put_left_out(file->out, r);
		fputs("}\n", file->out);
	}
	for (size_t i = 0; i < file->enums.n; i++)
		put_enum(file, &file->enums.p[i]);
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
	case CAIRN_BIND_GO:
		bind_write_go(file);
		break;
	case CAIRN_BIND_TYPESCRIPT:
		bind_write_typescript(file);
		break;
	case CAIRN_BIND_JSON:
		bind_write_json(file);
		break;
	}
}

/*
 * Letters, digits and underscores, with a dot between two names; keywords are left to the compiler.
 */
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

static bool is_go_package(const char *name)
{
	/* clang-format off */
	static const char *const words[] = {
		"break",  "case",	 "chan", "const",   "continue", "default", "defer",
		"else",	  "fallthrough", "for",	 "func",    "go",	"goto",	   "if",
		"import", "interface",	 "map",	 "package", "range",	"return",  "select",
		"struct", "switch",	 "type", "var",	    "_",
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], name))
			return false;
	return is_java_package(name) && !strchr(name, '.');
}

static int check_package(const char *package, enum cairn_bind_lang lang, struct cairn_err *err)
{
	if (package && lang == CAIRN_BIND_GO && !is_go_package(package))
		return err_set(err, -EINVAL, "%s is no name of a Go package", package);
	if (package && !is_java_package(package))
		return err_set(err, -EINVAL, "%s is no name of a Java package", package);
	return 0;
}

static void free_file(struct bind_file *file)
{
	for (size_t i = 0; i < file->records.n; i++) {
		VEC_FREE(&file->records.p[i].fields);
		VEC_FREE(&file->records.p[i].left_out);
	}
	VEC_FREE(&file->records);
	bind_free_shapes(file);
	VEC_FREE(&file->enums);
	map_fini(&file->enum_of);
	map_fini(&file->idents);
	map_fini(&file->tops);
	arena_fini(&file->arena);
}

int cairn_bind_write(const struct cairn_types *types, const uint32_t *ids, size_t n_ids,
		     enum cairn_bind_lang lang, const struct cairn_bind_opts *opts, FILE *out,
		     struct cairn_err *err)
{
	struct cairn_bind_opts o;
	struct bind_file file = {.types = types, .opts = &o, .out = out};
	int rc = opts_take(&o, sizeof(o), opts, err);

	if (!rc)
		rc = check_package(o.package, lang, err);
	if (rc < 0)
		return rc;
	arena_init(&file.arena);
	rc = bind_walk(&file, ids, n_ids, err);
	enum cairn_bind_lang names_of = lang == CAIRN_BIND_JSON && o.accessors ? o.names_of : lang;
	if (!rc && (bind_name_all(&file, names_of) < 0 || bind_shape_all(&file, names_of) < 0))
		rc = err_nomem(err, "names of accessors");
	if (o.n_renamed)
		*o.n_renamed = file.n_renamed;
	if (o.n_left_out)
		*o.n_left_out = file.n_left_out;
	if (!rc)
		write_all(&file, lang);
	if (file.no_memory)
		rc = err_nomem(err, "the generated text");
	free_file(&file);
	return rc;
}
