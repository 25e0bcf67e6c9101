/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Java: records of values, and methods that read them
 *
 * A component may be called like a method or a constant of Records, which it hides in its record:
 * those are named in full.
 */
#include "bind/java.h"
#include "bind/structs.h"

static const char *element_type(const struct bind_part *p)
{
	if (p->shape)
		return p->shape->name;
	return p->value.kind == BIND_BYTES ? "byte[]" : java_seen_type(&p->value);
}

static void put_type(const struct bind_file *file, const struct bind_part *p)
{
	fputs(element_type(p), file->out);
	for (uint32_t i = 0; i < p->value.n_dims; i++)
		fputs("[]", file->out);
}

/* The value at "at". */
static void put_value(const struct bind_file *file, const struct bind_part *p)
{
	const struct bind_field *f = &p->value;
	FILE *out = file->out;
	const char *order = java_order_of(file, f->big_endian),
		   *in = order[0] == 'O' ? "Records." : "";

	if (p->shape)
		fprintf(out, "%s.read(rec, at)", p->shape->name);
	else if (f->bits)
		fprintf(out, "Records.bits(%s%s, rec, at, %llu, %u, %u, %s)%s", in, order,
			(unsigned long long)f->size, f->shift, f->bits,
			f->is_signed ? "true" : "false", f->kind == BIND_BOOL ? " != 0" : "");
	else if (f->kind == BIND_TEXT)
		fprintf(out, "Records.text(rec, at, %llu)", (unsigned long long)f->size);
	else if (f->kind == BIND_BYTES)
		fprintf(out, "rec.asSlice(at, %llu).toArray(Records.BYTE)",
			(unsigned long long)f->size);
	else if (f->size == 16)
		fprintf(out, "Records.wide(%s%s, rec, at, %s)", in, order,
			f->is_signed ? "true" : "false");
	else
		fprintf(out, "rec.get(Records.%s%s, at)%s", java_value_of(f),
			java_with_order(file, f), java_widen(f));
}

/* "new byte[2][3][]": of an array of byte[], the length of each comes with it. */
static void put_new(const struct bind_file *file, const struct bind_part *p)
{
	bool is_bytes = !p->shape && p->value.kind == BIND_BYTES;

	fprintf(file->out, "new %s", is_bytes ? "byte" : element_type(p));
	for (uint32_t i = 0; i < p->value.n_dims; i++)
		fprintf(file->out, "[%llu]", (unsigned long long)p->value.dims[i].count);
	fputs(is_bytes ? "[]" : "", file->out);
}

/* A method for each member, as a constructor with all of them could be too large. */
static void put_reader(const struct bind_file *file, const struct bind_part *p, size_t number)
{
	FILE *out = file->out;
	uint32_t n = p->value.n_dims;

	fputs("\n        private static ", out);
	put_type(file, p);
	fprintf(out, " read%zu(MemorySegment rec, long at) {\n            at += %llu;\n", number,
		(unsigned long long)p->value.off);
	if (!n) {
		fputs("            return ", out);
		put_value(file, p);
		fputs(";\n        }\n", out);
		return;
	}
	fputs("            var all = ", out);
	put_new(file, p);
	fputs(";\n            ", out);
	for (uint32_t i = 0; i < n; i++)
		fprintf(out, "for (int i%u = 0; i%u < %llu; i%u++) ", i, i,
			(unsigned long long)p->value.dims[i].count, i);
	fputs("{\n                all", out);
	for (uint32_t i = 0; i < n; i++)
		fprintf(out, "[i%u]", i);
	fputs(" = ", out);
	put_value(file, p);
	fprintf(out,
		";\n                at += %llu;\n            }\n            return all;\n        "
		"}\n",
		(unsigned long long)p->value.size);
}

void bind_java_record(const struct bind_file *file, const struct bind_shape *s)
{
	FILE *out = file->out;

	if (s->why_not) {
		fputc('\n', out);
		bind_put_why_not(file, s, "    // ");
		return;
	}
	fputs("\n    /** The values of {@code ", out);
	bind_put_comment(file, s->source_name);
	fprintf(out, "}. */\n    public record %s(", s->name);
	for (size_t i = 0; i < s->parts.n; i++) {
		fputs(i ? ", " : "", out);
		put_type(file, &s->parts.p[i]);
		fprintf(out, " %s", s->parts.p[i].name);
	}
	fprintf(out,
		") {\n        public static %s read(MemorySegment rec) {\n            return "
		"read(rec, 0);\n        }\n\n",
		s->name);
	fprintf(out,
		"        public static %s read(MemorySegment rec, long at) {\n            return "
		"new %s(",
		s->name, s->name);
	for (size_t i = 0; i < s->parts.n; i++)
		fprintf(out, "%sread%zu(rec, at)", i ? ", " : "", i);
	fputs(");\n        }\n", out);
	for (size_t i = 0; i < s->parts.n; i++)
		put_reader(file, &s->parts.p[i], i);
	fputs("    }\n", out);
}
