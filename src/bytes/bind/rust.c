/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rust: types over byte slices, without std
 *
 * Event<&[u8]> reads, Event<&mut [u8]> writes as well. A slice that is too short is refused when it
 * is wrapped; after that, indices are checked, and so are flexible arrays.
 */
#include "bind/structs.h"

static const char head[] =
	"#[allow(dead_code)]\nfn bind_bytes<const N: usize>(b: &[u8], at: usize) -> [u8; N] {\n"
	"    let mut a = [0u8; N];\n    a.copy_from_slice(&b[at..at + N]);\n    a\n}\n\n";

/* A field of 64 bits that does not begin a byte touches 9. */
static const char bits_le[] =
	"#[allow(dead_code)]\nfn bind_bits_le(b: &[u8], shift: usize, width: u32) -> u64 {\n"
	"    let mut a = [0u8; 16];\n    a[..b.len()].copy_from_slice(b);\n"
	"    (u128::from_le_bytes(a) >> shift) as u64 & (u64::MAX >> (64 - width))\n}\n\n"
	"#[allow(dead_code)]\nfn bind_set_bits_le(b: &mut [u8], shift: usize, width: u32, value: "
	"u64) {\n"
	"    let mut a = [0u8; 16];\n    a[..b.len()].copy_from_slice(b);\n    let mask = u64::MAX "
	">> (64 - width);\n"
	"    let around = u128::from_le_bytes(a) & !(u128::from(mask) << shift);\n"
	"    a = (around | (u128::from(value & mask) << shift)).to_le_bytes();\n    "
	"b.copy_from_slice(&a[..b.len()]);\n}\n\n";

static const char bits_be[] =
	"#[allow(dead_code)]\nfn bind_bits_be(b: &[u8], shift: usize, width: u32) -> u64 {\n"
	"    let mut a = [0u8; 16];\n    a[16 - b.len()..].copy_from_slice(b);\n"
	"    let after = 8 * b.len() - shift - width as usize;\n"
	"    (u128::from_be_bytes(a) >> after) as u64 & (u64::MAX >> (64 - width))\n}\n\n"
	"#[allow(dead_code)]\nfn bind_set_bits_be(b: &mut [u8], shift: usize, width: u32, value: "
	"u64) {\n"
	"    let mut a = [0u8; 16];\n    a[16 - b.len()..].copy_from_slice(b);\n    let mask = "
	"u64::MAX >> (64 - width);\n"
	"    let after = 8 * b.len() - shift - width as usize;\n"
	"    let around = u128::from_be_bytes(a) & !(u128::from(mask) << after);\n"
	"    a = (around | (u128::from(value & mask) << after)).to_be_bytes();\n"
	"    let first = 16 - b.len();\n    b.copy_from_slice(&a[first..]);\n}\n\n";

static const char text_helpers[] =
	"/// The bytes up to the first NUL.\n#[allow(dead_code)]\nfn bind_text(b: &[u8]) -> &[u8] "
	"{\n"
	"    b.split(|&c| c == 0).next().unwrap_or(b)\n}\n\n"
	"/// Cut at the end, else filled up with NULs.\n#[allow(dead_code)]\nfn bind_set_text(b: "
	"&mut [u8], text: &[u8]) {\n"
	"    for (i, to) in b.iter_mut().enumerate() {\n        *to = "
	"text.get(i).copied().unwrap_or(0);\n    }\n}\n\n";

static const char *order_of(const struct bind_field *f)
{
	return f->big_endian ? "be" : "le";
}

static void put_type(const struct bind_file *file, const struct bind_field *f)
{
	unsigned int bits = 8u * f->value_size;

	if (f->kind == BIND_BOOL)
		fputs("bool", file->out);
	else if (f->kind == BIND_FLOAT)
		fprintf(file->out, "f%u", bits);
	else if (f->kind == BIND_INT)
		fprintf(file->out, "%c%u", f->is_signed ? 'i' : 'u', bits);
	else
		fputs("&[u8]", file->out);
}

/* Before the index is multiplied: a product could wrap around to bytes that are there. */
static void put_flexible_check(const struct bind_file *file, const struct bind_field *f, uint32_t i)
{
	fprintf(file->out, "        assert!(i%u <= self.0.as_ref().len().saturating_sub(%llu)", i,
		(unsigned long long)f->off);
	/* A division by 1 is a warning. */
	if (f->dims[i].stride > 1)
		fprintf(file->out, " / %llu", (unsigned long long)f->dims[i].stride);
	fputs(");\n", file->out);
}

static void put_place(const struct bind_file *file, const struct bind_field *f)
{
	for (uint32_t i = 0; i < f->n_dims; i++)
		if (f->dims[i].count)
			fprintf(file->out, "        assert!(i%u < %llu);\n", i,
				(unsigned long long)f->dims[i].count);
		else
			put_flexible_check(file, f, i);
	fputs("        let at = ", file->out);
	bind_put_offset(file, f, "");
	fputs(";\n", file->out);
}

static void put_range(const struct bind_file *file, const struct bind_field *f)
{
	if (f->size)
		fprintf(file->out, "[at..at + %llu]", (unsigned long long)f->size);
	else
		fputs("[at..]", file->out);
}

/* A cast of u64 to u64, and parentheses around all of a body, are warnings. */
static void put_get_bits(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;
	unsigned int unused = 64u - f->bits, bits = 8u * f->value_size;
	bool sign = f->is_signed && unused;

	fprintf(out, "%sbind_bits_%s(&self.0.as_ref()[at..at + %llu], %u, %u)",
		!sign       ? ""
		: bits < 64 ? "(("
			    : "(",
		order_of(f), (unsigned long long)f->size, f->shift, f->bits);
	if (f->kind == BIND_BOOL)
		fputs(" != 0", out);
	else if (sign)
		fprintf(out, " << %u) as i64 >> %u%s", unused, unused, bits < 64 ? ")" : "");
	if (f->kind != BIND_BOOL && (bits < 64 || (f->is_signed && !sign)))
		fprintf(out, " as %c%u", f->is_signed ? 'i' : 'u', bits);
}

static void put_get_body(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	if (f->kind == BIND_TEXT || f->kind == BIND_BYTES) {
		fputs(f->kind == BIND_TEXT ? "bind_text(&self.0.as_ref()" : "&self.0.as_ref()",
		      out);
		put_range(file, f);
		fputs(f->kind == BIND_TEXT ? ")" : "", out);
	} else if (f->bits) {
		put_get_bits(file, f);
	} else if (f->kind == BIND_BOOL) {
		fputs("self.0.as_ref()[at] != 0", out);
	} else {
		put_type(file, f);
		fprintf(out, "::from_%s_bytes(bind_bytes(self.0.as_ref(), at))", order_of(f));
	}
}

static void put_set_body(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	if (f->kind == BIND_TEXT) {
		fputs("bind_set_text(&mut self.0.as_mut()", out);
		put_range(file, f);
		fputs(", value)", out);
	} else if (f->kind == BIND_BYTES) {
		fputs("self.0.as_mut()", out);
		put_range(file, f);
		fputs(".copy_from_slice(value)", out);
	} else if (f->bits) {
		fprintf(out,
			"bind_set_bits_%s(&mut self.0.as_mut()[at..at + %llu], %u, %u, value%s)",
			order_of(f), (unsigned long long)f->size, f->shift, f->bits,
			f->value_size == 8 && !f->is_signed && f->kind != BIND_BOOL ? ""
										    : " as u64");
	} else if (f->kind == BIND_BOOL) {
		fputs("self.0.as_mut()[at] = value as u8", out);
	} else {
		fputs("self.0.as_mut()", out);
		put_range(file, f);
		fprintf(out, ".copy_from_slice(&value.to_%s_bytes())", order_of(f));
	}
	fputc(';', out);
}

static void put_get(const struct bind_file *file, const struct bind_field *f)
{
	fputs("\n    /// `", file->out);
	bind_put_comment(file, f->path);
	fputs("`: ", file->out);
	bind_put_comment(file, f->type);
	fprintf(file->out, "\n    pub fn %s(&self", f->get);
	bind_put_indices(file, f, ", ", ": usize");
	fputs(") -> ", file->out);
	put_type(file, f);
	fputs(" {\n", file->out);
	put_place(file, f);
	fputs("        ", file->out);
	put_get_body(file, f);
	fputs("\n    }\n", file->out);
}

static void put_set(const struct bind_file *file, const struct bind_field *f)
{
	fprintf(file->out, "\n    pub fn %s(&mut self", f->set);
	bind_put_indices(file, f, ", ", ": usize");
	fputs(", value: ", file->out);
	put_type(file, f);
	fputs(") {\n", file->out);
	put_place(file, f);
	fputs("        ", file->out);
	put_set_body(file, f);
	fputs("\n    }\n", file->out);
}

/* For one struct, as opposed to the trait's T. */
static void put_inside(const struct bind_file *file, const struct bind_record *r,
		       const struct bind_field *f, uint64_t end)
{
	fprintf(file->out, "const _: () = assert!(%llu <= %s::<&[u8]>::SIZE); // ",
		(unsigned long long)end, r->camel);
	bind_put_comment(file, f->path);
	fputc('\n', file->out);
}

/* At compile time: every member is inside; and a macro that compares a struct of the user's. */
static void put_asserts(const struct bind_file *file, const struct bind_record *r)
{
	FILE *out = file->out;

	for (size_t i = 0; i < r->fields.n; i++) {
		const struct bind_field *f = &r->fields.p[i];
		uint64_t end = f->off + f->size;
		for (uint32_t k = 0; k < f->n_dims; k++)
			end += (f->dims[k].count ? f->dims[k].count - 1 : 0) * f->dims[k].stride;
		if (f->size && !bind_is_flexible(f))
			put_inside(file, r, f, end);
	}
	fprintf(out,
		"\n/// Compares size and offsets of a `#[repr(C)]` struct at compile time: the "
		"type, then its members.\n"
		"#[allow(unused_macros)]\nmacro_rules! %s_assert {\n    ($t:ty $(, $member:ident = "
		"$off:expr)*) => {\n"
		"        const _: () = assert!(core::mem::size_of::<$t>() == %llu);\n"
		"        $(const _: () = assert!(core::mem::offset_of!($t, $member) == $off);)*\n  "
		"  };\n}\n\n",
		r->name, (unsigned long long)r->size);
}

/*
 * Names and indices come from the source: a member may be called len or into_it, and be in eight
 * arrays.
 */
static const char lints[] = "#[allow(dead_code)]\n#[allow(clippy::len_without_is_empty, "
			    "clippy::should_implement_trait, "
			    "clippy::too_many_arguments, clippy::wrong_self_convention)]\n";

static void put_record(const struct bind_file *file, const struct bind_record *r)
{
	FILE *out = file->out;

	fprintf(out, "/// Accessors of `");
	bind_put_comment(file, r->source_name);
	fprintf(out, "`: `%s<&[u8]>` reads, `%s<&mut [u8]>` writes as well.\n", r->camel, r->camel);
	fprintf(out,
		"#[derive(Clone, Copy, Debug)]\npub struct %s<T>(T);\n\n%simpl<T: AsRef<[u8]>> "
		"%s<T> {\n",
		r->camel, lints, r->camel);
	fprintf(out,
		"    pub const SIZE: usize = %llu;\n\n    /// None when there are fewer than SIZE "
		"bytes.\n"
		"    pub fn new(bytes: T) -> Option<Self> {\n        if bytes.as_ref().len() < "
		"%llu {\n            None\n"
		"        } else {\n            Some(Self(bytes))\n        }\n    }\n",
		(unsigned long long)r->size, (unsigned long long)r->size);
	for (size_t i = 0; i < r->fields.n; i++)
		put_get(file, &r->fields.p[i]);
	fprintf(out, "}\n\n%simpl<T: AsRef<[u8]> + AsMut<[u8]>> %s<T> {", lints, r->camel);
	for (size_t i = 0; i < r->fields.n; i++)
		put_set(file, &r->fields.p[i]);
	fputs("}\n\n", out);
	put_asserts(file, r);
}

/* ---- enums ---- */

static void put_enum(const struct bind_file *file, const struct bind_enum *e)
{
	FILE *out = file->out;

	fputs("/// `enum ", out);
	bind_put_comment(file, e->source_name);
	fprintf(out, "`\n#[allow(dead_code)]\npub mod %s {\n", e->module);
	for (uint32_t i = 0; i < e->n_constants; i++)
		fprintf(out,
			e->is_signed ? "    pub const %s: i%u = %lld;\n"
				     : "    pub const %s: u%u = %llu;\n",
			e->constants[i].name, 8u * (unsigned int)e->size,
			(long long)e->constants[i].value);
	fputs("}\n\n", out);
}

void bind_write_rust(const struct bind_file *file)
{
	FILE *out = file->out;

	fputs("// ", out);
	bind_put_origin(file, CAIRN_QUOTE_COMMENT);
	fputs(" Needs core only, and Rust 1.77.\n", out);
	bind_put_left_out(file, "// ", "\n");
	fprintf(out, "\n%s", head);
	if (file->has_bits && file->has_little)
		fputs(bits_le, out);
	if (file->has_bits && file->has_big)
		fputs(bits_be, out);
	if (file->has_text)
		fputs(text_helpers, out);
	for (size_t i = 0; i < file->enums.n; i++)
		put_enum(file, &file->enums.p[i]);
	for (size_t i = 0; i < file->shapes.n; i++)
		bind_rust_struct(file, file->shapes.p[i]);
	for (size_t i = 0; i < file->records.n; i++)
		put_record(file, &file->records.p[i]);
}
