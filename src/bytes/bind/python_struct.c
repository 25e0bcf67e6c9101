/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Python: Structure and Union of ctypes, packed, with all padding written; sizes and offsets are
 * compared on import.
 */
#include "bind/structs.h"

static void put_element(const struct bind_file *file, const struct bind_part *p)
{
	const struct bind_field *f = &p->value;

	if (p->shape)
		fputs(p->shape->name, file->out);
	else if (f->kind == BIND_TEXT || f->kind == BIND_BYTES)
		fprintf(file->out, "ctypes.c_%s * %llu", f->kind == BIND_TEXT ? "char" : "ubyte",
			(unsigned long long)f->size);
	else if (f->kind == BIND_FLOAT)
		fputs(f->size == 4 ? "ctypes.c_float" : "ctypes.c_double", file->out);
	else
		fprintf(file->out, "ctypes.c_%sint%llu", f->is_signed ? "" : "u",
			(unsigned long long)f->size * 8);
}

/* Only values are annotated: arrays have types of their own. */
static void put_annotation(const struct bind_file *file, const struct bind_part *p)
{
	const struct bind_field *f = &p->value;

	if (p->shape && !f->n_dims)
		fprintf(file->out, "    %s: %s\n", p->name, p->shape->name);
	else if (p->shape || f->n_dims || f->kind == BIND_BYTES)
		fprintf(file->out, "    %s: typing.Any\n", p->name);
	else
		fprintf(file->out, "    %s: %s\n", p->name,
			f->kind == BIND_TEXT    ? "bytes"
			: f->kind == BIND_FLOAT ? "float"
						: "int");
}

/* "(ctypes.c_int32 * 3) * 2": the innermost dimension is the last. */
static void put_part(const struct bind_file *file, const struct bind_part *p)
{
	const struct bind_field *f = &p->value;
	FILE *out = file->out;

	fprintf(out, "        (\"%s\", ", p->name);
	for (uint32_t i = 0; i < f->n_dims; i++)
		fputc('(', out);
	put_element(file, p);
	for (uint32_t i = f->n_dims; i; i--)
		fprintf(out, ") * %llu", (unsigned long long)f->dims[i - 1].count);
	fputs("),\n", out);
}

static void put_check(const struct bind_file *file, const struct bind_shape *s)
{
	FILE *out = file->out;

	fprintf(out, "\n\nassert ctypes.sizeof(%s) == %llu\nfor _name, _off in [\n", s->name,
		(unsigned long long)s->size);
	for (size_t i = 0; i < s->parts.n; i++)
		fprintf(out, "    (\"%s\", %llu),\n", s->parts.p[i].name,
			(unsigned long long)s->parts.p[i].value.off);
	fprintf(out, "]:\n    assert getattr(%s, _name).offset == _off, _name\n", s->name);
}

void bind_python_struct(const struct bind_file *file, const struct bind_shape *s)
{
	FILE *out = file->out;

	if (s->why_not) {
		fputs("\n\n", out);
		bind_put_why_not(file, s, "# ");
		return;
	}
	fprintf(out, "\n\nclass %s(%s):\n    # ", s->name,
		s->is_union              ? "_Union"
		: file->opts->big_endian ? "ctypes.BigEndianStructure"
					 : "ctypes.LittleEndianStructure");
	bind_put_comment(file, s->source_name);
	fputs(", as it lies in memory\n", out);
	for (size_t i = 0; i < s->parts.n; i++)
		put_annotation(file, &s->parts.p[i]);
	/* Python 3.14 requires the layout of packed structs to be named. */
	fputs("    _layout_ = \"ms\"\n    _pack_ = 1\n    _fields_ = [\n", out);
	for (size_t i = 0; i < s->parts.n; i++)
		put_part(file, &s->parts.p[i]);
	fputs("    ]\n", out);
	put_check(file, s);
}
