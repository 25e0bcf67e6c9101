/* SPDX-License-Identifier: BSD-2-Clause */
/* TypeScript: an interface of values, and a function that reads it. */
#include "bind/structs.h"

static bool is_bigint(const struct bind_field *f)
{
	return f->kind == BIND_INT && f->value_size > 4;
}

static void put_type(const struct bind_file *file, const struct bind_part *p)
{
	static const char *const names[] = {[BIND_BOOL] = "boolean",
					    [BIND_TEXT] = "string",
					    [BIND_BYTES] = "Uint8Array",
					    [BIND_FLOAT] = "number",
					    [BIND_INT] = "number"};

	fputs(p->shape               ? p->shape->name
	      : is_bigint(&p->value) ? "bigint"
				     : names[p->value.kind],
	      file->out);
	for (uint32_t i = 0; i < p->value.n_dims; i++)
		fputs("[]", file->out);
}

/* "at + 4 + i0 * 12 + i1 * 2" */
static void put_at(const struct bind_file *file, const struct bind_part *p)
{
	fprintf(file->out, "at + %llu", (unsigned long long)p->value.off);
	for (uint32_t i = 0; i < p->value.n_dims; i++) {
		uint64_t stride = p->value.size;

		for (uint32_t k = i + 1; k < p->value.n_dims; k++)
			stride *= p->value.dims[k].count;
		fprintf(file->out, " + i%u * %llu", i, (unsigned long long)stride);
	}
}

static void put_bits(const struct bind_file *file, const struct bind_part *p, const char *little)
{
	const struct bind_field *f = &p->value;
	FILE *out = file->out;
	bool is_number = f->kind == BIND_INT && !is_bigint(f);

	fprintf(out, "%s%s", is_number ? "Number(" : "", "");
	if (f->is_signed)
		fprintf(out, "BigInt.asIntN(%u, ", f->bits);
	fputs("bits(view, ", out);
	put_at(file, p);
	fprintf(out, ", %llu, %s, %u, %u)%s%s%s", (unsigned long long)f->size, little, f->shift,
		f->bits, f->is_signed ? ")" : "", is_number ? ")" : "",
		f->kind == BIND_BOOL ? " !== 0n" : "");
}

static void put_number(const struct bind_file *file, const struct bind_part *p, const char *little)
{
	const struct bind_field *f = &p->value;
	FILE *out = file->out;

	if (f->kind == BIND_FLOAT)
		fprintf(out, "view.getFloat%u(", 8u * f->value_size);
	else
		fprintf(out, "view.get%s%s%u(", f->value_size == 8 ? "Big" : "",
			f->is_signed ? "Int" : "Uint", 8u * f->value_size);
	put_at(file, p);
	fprintf(out, f->value_size > 1 ? ", %s)" : ")", little);
	fputs(f->kind == BIND_BOOL ? " !== 0" : "", out);
}

static void put_value(const struct bind_file *file, const struct bind_part *p)
{
	const struct bind_field *f = &p->value;
	const char *little = f->big_endian ? "false" : "true";
	FILE *out = file->out;

	if (p->shape) {
		fprintf(out, "read%s(view, ", p->shape->name);
		put_at(file, p);
		fputc(')', out);
	} else if (f->kind == BIND_TEXT || f->kind == BIND_BYTES) {
		fprintf(out, "%s(view, ", f->kind == BIND_TEXT ? "text" : "bytes");
		put_at(file, p);
		fprintf(out, f->kind == BIND_TEXT ? ", %llu)" : ", %llu).slice()",
			(unsigned long long)f->size);
	} else if (f->bits) {
		put_bits(file, p, little);
	} else if (f->size == 16) {
		fputs(f->is_signed ? "BigInt.asIntN(128, load(view, " : "load(view, ", out);
		put_at(file, p);
		fprintf(out, ", 16, %s)%s", little, f->is_signed ? ")" : "");
	} else {
		put_number(file, p, little);
	}
}

static void put_reader(const struct bind_file *file, const struct bind_part *p)
{
	FILE *out = file->out;

	fprintf(out, "    %s: ", p->name);
	for (uint32_t i = 0; i < p->value.n_dims; i++)
		fprintf(out, "array(%llu, (i%u) => ", (unsigned long long)p->value.dims[i].count,
			i);
	put_value(file, p);
	for (uint32_t i = 0; i < p->value.n_dims; i++)
		fputc(')', out);
	fputs(",\n", out);
}

void bind_typescript_struct(const struct bind_file *file, const struct bind_shape *s)
{
	FILE *out = file->out;

	fputs("/** The values of `", out);
	bind_put_comment(file, s->source_name);
	fprintf(out, "`. */\nexport interface %s {\n", s->name);
	for (size_t i = 0; i < s->parts.n; i++) {
		fprintf(out, "  %s: ", s->parts.p[i].name);
		put_type(file, &s->parts.p[i]);
		fputs(";\n", out);
	}
	fprintf(out,
		"}\n\nexport function read%s(view: DataView, at = 0): %s {\n  void [view, at];\n  "
		"return {\n",
		s->name, s->name);
	for (size_t i = 0; i < s->parts.n; i++)
		put_reader(file, &s->parts.p[i]);
	fputs("  };\n}\n\n", out);
}
