/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Go: structs whose sizes and offsets the compiler compares, and which encoding/binary reads in any
 * byte order.
 */
#include "bind/structs.h"

static void put_type(const struct bind_file *file, const struct bind_part *p)
{
	const struct bind_field *f = &p->value;

	for (uint32_t i = 0; i < f->n_dims; i++)
		fprintf(file->out, "[%llu]", (unsigned long long)f->dims[i].count);
	if (p->shape)
		fputs(p->shape->name, file->out);
	else if (f->kind == BIND_TEXT || f->kind == BIND_BYTES)
		fprintf(file->out, "[%llu]byte", (unsigned long long)f->size);
	else if (f->kind == BIND_FLOAT)
		fprintf(file->out, "float%llu", (unsigned long long)f->size * 8);
	else if (f->kind == BIND_BOOL)
		fputs("bool", file->out);
	else
		fprintf(file->out, "%sint%llu", f->is_signed ? "" : "u",
			(unsigned long long)f->size * 8);
}

/* A comment before each: gofmt would align members that follow one another. */
static void put_part(const struct bind_file *file, const struct bind_part *p)
{
	FILE *out = file->out;

	fputs("\t// ", out);
	bind_put_comment(file, p->type ? p->type : "Padding, or bit-fields.");
	fprintf(out, "%s\n\t%s ", p->as_bytes ? ", as bytes" : "", p->type ? p->name : "_");
	put_type(file, p);
	fputc('\n', out);
}

static void put_check(const struct bind_file *file, const struct bind_shape *s)
{
	FILE *out = file->out;

	fprintf(out, "\n// Does not compile where the compiler lays it out in another way.\n");
	fprintf(out, "var _ = [1]struct{}{}[unsafe.Sizeof(%s{})-%llu]\n", s->name,
		(unsigned long long)s->size);
	for (size_t i = 0; i < s->parts.n; i++)
		if (s->parts.p[i].type)
			fprintf(out, "var _ = [1]struct{}{}[unsafe.Offsetof(%s{}.%s)-%llu]\n",
				s->name, s->parts.p[i].name,
				(unsigned long long)s->parts.p[i].value.off);
}

void bind_go_struct(const struct bind_file *file, const struct bind_shape *s)
{
	FILE *out = file->out;

	if (s->why_not) {
		fputc('\n', out);
		bind_put_why_not(file, s, "// ");
		return;
	}
	fprintf(out, "\n// %s is ", s->name);
	bind_put_comment(file, s->source_name);
	fprintf(out, " as it lies in memory.\ntype %s struct {\n", s->name);
	for (size_t i = 0; i < s->parts.n; i++)
		put_part(file, &s->parts.p[i]);
	fputs("}\n", out);
	put_check(file, s);
	fprintf(out,
		"\n// Read%s reads it from the beginning of @b.\nfunc Read%s(b []byte) (s %s, err "
		"error) {\n",
		s->name, s->name, s->name);
	fprintf(out,
		"\terr = binary.Read(bytes.NewReader(b), binary.%sEndian, &s)\n\treturn s, "
		"err\n}\n",
		file->opts->big_endian ? "Big" : "Little");
}
