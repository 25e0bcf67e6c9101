/* SPDX-License-Identifier: BSD-2-Clause */
/* Rust: #[repr(C)] structs and unions, whose sizes and offsets the compiler compares. */
#include "bind/structs.h"

/* For numbers in the machine's order: a host of the other order would read other values. */
static void put_cfg(const struct bind_file *file)
{
	fprintf(file->out, "#[cfg(target_endian = \"%s\")]\n",
		file->opts->big_endian ? "big" : "little");
}

static void put_element(const struct bind_file *file, const struct bind_part *p)
{
	const struct bind_field *f = &p->value;

	if (p->shape)
		fputs(p->shape->name, file->out);
	else if (f->kind == BIND_TEXT || f->kind == BIND_BYTES)
		fprintf(file->out, "[u8; %llu]", (unsigned long long)f->size);
	else
		fprintf(file->out, "%c%llu",
			f->kind == BIND_FLOAT ? 'f'
			: f->is_signed        ? 'i'
					      : 'u',
			(unsigned long long)f->size * 8);
}

static void put_part(const struct bind_file *file, const struct bind_part *p)
{
	FILE *out = file->out;

	if (p->type) {
		fputs("    /// ", out);
		bind_put_comment(file, p->type);
		fputs(p->as_bytes ? ", as bytes\n" : "\n", out);
	}
	fprintf(out, "    pub %s: ", p->name);
	for (uint32_t i = 0; i < p->value.n_dims; i++)
		fputc('[', out);
	put_element(file, p);
	for (uint32_t i = p->value.n_dims; i; i--)
		fprintf(out, "; %llu]", (unsigned long long)p->value.dims[i - 1].count);
	fputs(",\n", out);
}

static void put_asserts(const struct bind_file *file, const struct bind_shape *s)
{
	FILE *out = file->out;

	put_cfg(file);
	fprintf(out, "const _: () = {\n    assert!(core::mem::size_of::<%s>() == %llu);\n", s->name,
		(unsigned long long)s->size);
	for (size_t i = 0; i < s->parts.n; i++)
		fprintf(out, "    assert!(core::mem::offset_of!(%s, %s) == %llu);\n", s->name,
			s->parts.p[i].name, (unsigned long long)s->parts.p[i].value.off);
	fputs("};\n\n", out);
}

static void put_reader(const struct bind_file *file, const struct bind_shape *s)
{
	FILE *out = file->out;

	put_cfg(file);
	fprintf(out,
		"#[allow(dead_code)]\nimpl %s {\n    /// None when there are fewer bytes than it "
		"has.\n"
		"    pub fn read(bytes: &[u8]) -> Option<Self> {\n"
		"        if bytes.len() < core::mem::size_of::<Self>() {\n            return "
		"None;\n        }\n"
		"        // SAFETY: there are that many bytes, and each of its members takes all "
		"of them as values.\n"
		"        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })\n    "
		"}\n}\n\n",
		s->name);
}

void bind_rust_struct(const struct bind_file *file, const struct bind_shape *s)
{
	FILE *out = file->out;

	if (s->why_not) {
		bind_put_why_not(file, s, "// ");
		return;
	}
	fputs("/// `", out);
	bind_put_comment(file, s->source_name);
	fputs("` as it lies in memory.\n", out);
	put_cfg(file);
	fprintf(out,
		"#[allow(dead_code, clippy::type_complexity)]\n#[repr(C%s)]\n#[derive(Clone, "
		"Copy)]\npub %s %s {\n",
		s->is_packed ? ", packed" : "", s->is_union ? "union" : "struct", s->name);
	for (size_t i = 0; i < s->parts.n; i++)
		put_part(file, &s->parts.p[i]);
	fputs("}\n\n", out);
	put_asserts(file, s);
	put_reader(file, s);
}
