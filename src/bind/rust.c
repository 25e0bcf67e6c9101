/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rust: types over byte slices, without std
 *
 * Event<&[u8]> reads, Event<&mut [u8]> writes as well. A slice that is too short is refused when it is wrapped; after that,
 * indices are checked, and so are flexible arrays.
 */
#include "bind/walk.h"

static const char head[] =
	"#[allow(dead_code)]\nfn bind_bytes<const N: usize>(b: &[u8], at: usize) -> [u8; N] {\n"
	"    let mut a = [0u8; N];\n    a.copy_from_slice(&b[at..at + N]);\n    a\n}\n\n";

static const char bits_le[] =
	"#[allow(dead_code)]\nfn bind_bits_le(b: &[u8], at: usize, shift: usize, width: usize) -> u64 {\n"
	"    (0..width).fold(0, |v, i| v | ((b[at + (shift + i) / 8] >> ((shift + i) % 8) & 1) as u64) << i)\n}\n\n"
	"#[allow(dead_code)]\nfn bind_set_bits_le(b: &mut [u8], at: usize, shift: usize, width: usize, v: u64) {\n"
	"    for i in 0..width {\n        let (byte, bit) = (at + (shift + i) / 8, 1u8 << ((shift + i) % 8));\n"
	"        b[byte] = if v >> i & 1 != 0 { b[byte] | bit } else { b[byte] & !bit };\n    }\n}\n\n";

static const char bits_be[] =
	"#[allow(dead_code)]\nfn bind_bits_be(b: &[u8], at: usize, shift: usize, width: usize) -> u64 {\n"
	"    (0..width).fold(0, |v, i| v << 1 | (b[at + (shift + i) / 8] >> (7 - (shift + i) % 8) & 1) as u64)\n}\n\n"
	"#[allow(dead_code)]\nfn bind_set_bits_be(b: &mut [u8], at: usize, shift: usize, width: usize, v: u64) {\n"
	"    for i in 0..width {\n        let (byte, bit) = (at + (shift + i) / 8, 0x80u8 >> ((shift + i) % 8));\n"
	"        b[byte] = if v >> (width - 1 - i) & 1 != 0 { b[byte] | bit } else { b[byte] & !bit };\n    }\n}\n\n";

static const char text_helpers[] =
	"/// The bytes up to the first NUL.\n#[allow(dead_code)]\nfn bind_text(b: &[u8]) -> &[u8] {\n"
	"    &b[..b.iter().position(|&c| c == 0).unwrap_or(b.len())]\n}\n\n"
	"/// Cut at the end, else filled up with NULs.\n#[allow(dead_code)]\nfn bind_set_text(b: &mut [u8], text: &[u8]) {\n"
	"    for (i, to) in b.iter_mut().enumerate() {\n        *to = text.get(i).copied().unwrap_or(0);\n    }\n}\n\n";

static const char *order_of(const struct bind_field *f)
{
	return f->big_endian ? "be" : "le";
}

static void put_type(const struct bind_file *file, const struct bind_field *f)
{
	unsigned int bits = !f->bits ? (unsigned int)f->size * 8 : f->bits <= 8 ? 8 : f->bits <= 16 ? 16 : f->bits <= 32 ? 32 : 64;

	if (f->kind == BIND_BOOL)
		fputs("bool", file->out);
	else if (f->kind == BIND_FLOAT)
		fprintf(file->out, "f%u", bits);
	else if (f->kind == BIND_INT)
		fprintf(file->out, "%c%u", f->is_signed ? 'i' : 'u', bits);
	else
		fputs("&[u8]", file->out);
}

static void put_place(const struct bind_file *file, const struct bind_field *f)
{
	for (uint32_t i = 0; i < f->n_dims; i++)
		if (f->dims[i].count)
			fprintf(file->out, "        assert!(i%u < %llu);\n", i, (unsigned long long)f->dims[i].count);
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

static void put_get_body(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	if (f->kind == BIND_TEXT || f->kind == BIND_BYTES) {
		fputs(f->kind == BIND_TEXT ? "bind_text(&self.0.as_ref()" : "&self.0.as_ref()", out);
		put_range(file, f);
		fputs(f->kind == BIND_TEXT ? ")" : "", out);
	} else if (f->bits && f->kind == BIND_BOOL) {
		fprintf(out, "bind_bits_%s(self.0.as_ref(), at, %u, %u) != 0", order_of(f), f->shift, f->bits);
	} else if (f->bits) {
		fprintf(out, "(((bind_bits_%s(self.0.as_ref(), at, %u, %u) << %u) as %c64) >> %u) as ", order_of(f), f->shift,
			f->bits, 64 - f->bits, f->is_signed ? 'i' : 'u', 64 - f->bits);
		put_type(file, f);
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
		fprintf(out, "bind_set_bits_%s(self.0.as_mut(), at, %u, %u, value as u64)", order_of(f), f->shift, f->bits);
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
	fprintf(file->out, "\n    pub fn get_%s(&self", f->name);
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
	fprintf(file->out, "\n    pub fn set_%s(&mut self", f->name);
	bind_put_indices(file, f, ", ", ": usize");
	fputs(", value: ", file->out);
	put_type(file, f);
	fputs(") {\n", file->out);
	put_place(file, f);
	fputs("        ", file->out);
	put_set_body(file, f);
	fputs("\n    }\n", file->out);
}

static void put_inside(const struct bind_file *file, const struct bind_record *r, const struct bind_field *f, uint64_t end)
{
	fprintf(file->out, "const _: () = assert!(%llu <= %s::<&[u8]>::SIZE); // ", (unsigned long long)end, r->camel);
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
		if (f->size && !(f->n_dims && !f->dims[f->n_dims - 1].count))
			put_inside(file, r, f, end);
	}
	fprintf(out,
		"\n/// Compares size and offsets of a `#[repr(C)]` struct at compile time: the type, then its members.\n"
		"#[allow(unused_macros)]\nmacro_rules! %s_assert {\n    ($t:ty $(, $member:ident = $off:expr)*) => {\n"
		"        const _: () = assert!(core::mem::size_of::<$t>() == %llu);\n"
		"        $(const _: () = assert!(core::mem::offset_of!($t, $member) == $off);)*\n    };\n}\n\n",
		r->name, (unsigned long long)r->size);
}

static void put_record(const struct bind_file *file, const struct bind_record *r)
{
	FILE *out = file->out;

	fprintf(out, "#[derive(Clone, Copy)]\npub struct %s<T>(T);\n\n#[allow(dead_code)]\nimpl<T: AsRef<[u8]>> %s<T> {\n",
		r->camel, r->camel);
	fprintf(out,
		"    pub const SIZE: usize = %llu;\n\n    /// None when there are fewer than SIZE bytes.\n"
		"    pub fn new(bytes: T) -> Option<Self> {\n        if bytes.as_ref().len() < %llu {\n            None\n"
		"        } else {\n            Some(Self(bytes))\n        }\n    }\n",
		(unsigned long long)r->size, (unsigned long long)r->size);
	for (size_t i = 0; i < r->fields.n; i++)
		put_get(file, &r->fields.p[i]);
	fprintf(out, "}\n\n#[allow(dead_code)]\nimpl<T: AsRef<[u8]> + AsMut<[u8]>> %s<T> {", r->camel);
	for (size_t i = 0; i < r->fields.n; i++)
		put_set(file, &r->fields.p[i]);
	fputs("}\n\n", out);
	put_asserts(file, r);
}

void bind_write_rust(const struct bind_file *file)
{
	FILE *out = file->out;

	fputs("// ", out);
	bind_put_origin(file, CAIRN_QUOTE_COMMENT);
	fprintf(out, " Needs core only.\n\n%s", head);
	if (file->has_bits && file->has_little)
		fputs(bits_le, out);
	if (file->has_bits && file->has_big)
		fputs(bits_be, out);
	if (file->has_text)
		fputs(text_helpers, out);
	for (size_t i = 0; i < file->records.n; i++)
		put_record(file, &file->records.p[i]);
}
