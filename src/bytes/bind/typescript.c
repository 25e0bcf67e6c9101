/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TypeScript: classes over DataView
 *
 * Integers of 64 and 128 bits are bigint, as number holds 53 bits. Members that are in no array are
 * properties.
 */
#include "bind/structs.h"

#include <string.h>

static const char helpers[] =
	"function place(i: number, count: number): number {\n  if (!Number.isInteger(i) || i < 0 "
	"|| i >= count) {\n"
	"    throw new RangeError(`index ${i} of ${count} elements`);\n  }\n  return i;\n}\n\n"
	"/** How many elements a flexible array has; the member at off of the first has size "
	"bytes. */\n"
	"function elements(view: DataView, off: number, size: number, stride: number): number {\n"
	"  return Math.max(0, Math.floor((view.byteLength - off - size) / stride) + 1);\n}\n\n"
	"function bytes(view: DataView, at: number, size: number): Uint8Array {\n"
	"  if (at + size > view.byteLength) {\n    throw new RangeError(`${size} bytes at ${at} of "
	"${view.byteLength}`);\n  }\n"
	"  return new Uint8Array(view.buffer, view.byteOffset + at, size);\n}\n\n"
	"function setBytes(view: DataView, at: number, size: number, value: Uint8Array): void {\n"
	"  if (value.length !== size) {\n    throw new RangeError(`${value.length} bytes instead "
	"of ${size}`);\n  }\n"
	"  bytes(view, at, size).set(value);\n}\n\n"
	"function array<T>(n: number, make: (i: number) => T): T[] {\n  return Array.from({ "
	"length: n }, (_, i) => make(i));\n}\n\n"
	/* tsc does not complain about an unused name that stands alone as an expression. */
	"void [place, elements, bytes, setBytes, array];\n\n";

/* Not everywhere where DataView is, the types of these two are known. */
static const char text_helpers[] =
	"declare const TextDecoder: { new (): { decode(from: Uint8Array): string } };\n"
	"declare const TextEncoder: { new (): { encode(from: string): Uint8Array } };\n\n"
	"function text(view: DataView, at: number, size: number): string {\n"
	"  const all = bytes(view, at, size);\n  const end = all.indexOf(0);\n"
	"  return new TextDecoder().decode(end < 0 ? all.slice() : all.slice(0, end));\n}\n\n"
	"/** Cut at the end, else filled up with NULs. */\n"
	"function setText(view: DataView, at: number, size: number, value: string): void {\n"
	"  const all = bytes(view, at, size);\n  all.fill(0);\n  all.set(new "
	"TextEncoder().encode(value).subarray(0, size));\n}\n\n";

static const char load_helpers[] =
	"function load(view: DataView, at: number, size: number, little: boolean): bigint {\n  let "
	"v = 0n;\n"
	"  for (let i = 0; i < size; i++) {\n"
	"    v = (v << 8n) | BigInt(view.getUint8(at + (little ? size - 1 - i : i)));\n  }\n  "
	"return v;\n}\n\n"
	"function store(view: DataView, at: number, size: number, little: boolean, value: bigint): "
	"void {\n"
	"  for (let i = 0; i < size; i++) {\n"
	"    const byte = Number((value >> BigInt(8 * i)) & 0xffn);\n"
	"    view.setUint8(at + (little ? i : size - 1 - i), byte);\n  }\n}\n\n";

static const char bits_helpers[] =
	"function bits(view: DataView, at: number, size: number, little: boolean, shift: number, "
	"width: number): bigint {\n"
	"  const below = little ? shift : 8 * size - shift - width;\n"
	"  return BigInt.asUintN(width, load(view, at, size, little) >> BigInt(below));\n}\n\n"
	"function setBits(view: DataView, at: number, size: number, little: boolean, shift: "
	"number, width: number,\n"
	"                 value: bigint): void {\n"
	"  const below = BigInt(little ? shift : 8 * size - shift - width);\n"
	"  const around = load(view, at, size, little) & ~(((1n << BigInt(width)) - 1n) << "
	"below);\n"
	"  store(view, at, size, little, around | (BigInt.asUintN(width, value) << below));\n}\n\n";

/* ---- words for a field ---- */

static bool is_bigint(const struct bind_field *f)
{
	return f->kind == BIND_INT && f->value_size > 4;
}

static const char *type_of(const struct bind_field *f)
{
	switch (f->kind) {
	case BIND_BOOL:
		return "boolean";
	case BIND_TEXT:
		return "string";
	case BIND_BYTES:
		return "Uint8Array";
	case BIND_FLOAT:
	case BIND_INT:
		break;
	}
	return is_bigint(f) ? "bigint" : "number";
}

static const char *little(const struct bind_field *f)
{
	return f->big_endian ? "false" : "true";
}

/* "Uint32", as DataView's methods end. */
static void put_view(const struct bind_file *file, const struct bind_field *f)
{
	if (f->kind == BIND_FLOAT)
		fprintf(file->out, "Float%u", 8u * f->value_size);
	else
		fprintf(file->out, "%s%s%u", f->value_size == 8 ? "Big" : "",
			f->is_signed ? "Int" : "Uint", 8u * f->value_size);
}

static void put_place(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	fprintf(out, "    const at = %llu", (unsigned long long)f->off);
	for (uint32_t i = 0; i < f->n_dims; i++) {
		const struct bind_dim *d = &f->dims[i];

		if (d->count)
			fprintf(out, " + place(i%u, %llu) * %llu", i, (unsigned long long)d->count,
				(unsigned long long)d->stride);
		else
			fprintf(out, " + place(i%u, elements(this.view, %llu, %llu, %llu)) * %llu",
				i, (unsigned long long)f->off, (unsigned long long)f->size,
				(unsigned long long)d->stride, (unsigned long long)d->stride);
	}
	fputs(";\n", out);
}

/* ---- bodies of accessors ---- */

/* "8" bytes, or all up to the end. */
static void put_size(const struct bind_file *file, const struct bind_field *f)
{
	if (f->size)
		fprintf(file->out, "%llu", (unsigned long long)f->size);
	else
		fputs("this.view.byteLength - at", file->out);
}

static void put_get_bits(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	if (f->kind == BIND_INT && !is_bigint(f))
		fputs("Number(", out);
	if (f->is_signed)
		fprintf(out, "BigInt.asIntN(%u, ", f->bits);
	fprintf(out, "bits(this.view, at, %llu, %s, %u, %u)%s", (unsigned long long)f->size,
		little(f), f->shift, f->bits, f->is_signed ? ")" : "");
	if (f->kind == BIND_INT && !is_bigint(f))
		fputs(")", out);
	if (f->kind == BIND_BOOL)
		fputs(" !== 0n", out);
}

static void put_get_body(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	fputs("    return ", out);
	if (f->kind == BIND_TEXT || f->kind == BIND_BYTES) {
		fprintf(out, "%s(this.view, at, ", f->kind == BIND_TEXT ? "text" : "bytes");
		put_size(file, f);
		fputs(")", out);
	} else if (f->bits) {
		put_get_bits(file, f);
	} else if (f->value_size == 16) {
		fprintf(out, "%sload(this.view, at, 16, %s)%s",
			f->is_signed ? "BigInt.asIntN(128, " : "", little(f),
			f->is_signed ? ")" : "");
	} else {
		fputs("this.view.get", out);
		put_view(file, f);
		fprintf(out, f->value_size > 1 ? "(at, %s)" : "(at)", little(f));
		fputs(f->kind == BIND_BOOL ? " !== 0" : "", out);
	}
	fputs(";\n", out);
}

static void put_set_body(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	if (f->kind == BIND_TEXT || f->kind == BIND_BYTES) {
		fprintf(out, "    %s(this.view, at, ",
			f->kind == BIND_TEXT ? "setText" : "setBytes");
		put_size(file, f);
		fputs(", value);\n", out);
	} else if (f->bits) {
		fprintf(out, "    setBits(this.view, at, %llu, %s, %u, %u, %s);\n",
			(unsigned long long)f->size, little(f), f->shift, f->bits,
			is_bigint(f) ? "value" : "BigInt(value)");
	} else if (f->value_size == 16) {
		fprintf(out, "    store(this.view, at, 16, %s, value);\n", little(f));
	} else {
		fputs("    this.view.set", out);
		put_view(file, f);
		fprintf(out, f->value_size > 1 ? "(at, %s, %s);\n" : "(at, %s);\n",
			f->kind == BIND_BOOL ? "value ? 1 : 0" : "value", little(f));
	}
}

static void put_indices(const struct bind_file *file, const struct bind_field *f, const char *after)
{
	for (uint32_t i = 0; i < f->n_dims; i++)
		fprintf(file->out, "%si%u: number", i ? ", " : "", i);
	fputs(f->n_dims ? after : "", file->out);
}

static void put_field(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;
	bool is_property = !f->n_dims;

	fputs("\n  /** `", out);
	bind_put_comment(file, f->path);
	fputs("`: ", out);
	bind_put_comment(file, f->type);
	fprintf(out, " */\n  %s%s(", is_property ? "get " : "", f->get);
	put_indices(file, f, "");
	fprintf(out, "): %s {\n", type_of(f));
	put_place(file, f);
	put_get_body(file, f);
	fprintf(out, "  }\n\n  %s%s(", is_property ? "set " : "", f->set);
	put_indices(file, f, ", ");
	/* A setter of a property has no type of its own. */
	fprintf(out, "value: %s)%s {\n", type_of(f), is_property ? "" : ": void");
	put_place(file, f);
	put_set_body(file, f);
	fputs("  }\n", out);
}

/* ---- the file ---- */

static void put_record(const struct bind_file *file, const struct bind_record *r)
{
	FILE *out = file->out;

	fputs("/** Reads and writes the bytes of `", out);
	bind_put_comment(file, r->source_name);
	fprintf(out,
		"`. */\nexport class %s {\n  static readonly SIZE = %llu;\n  readonly view: "
		"DataView;\n\n",
		r->camel, (unsigned long long)r->size);
	fprintf(out,
		"  /** Refuses fewer than SIZE bytes. They are shared: setters change them. */\n"
		"  constructor(view: DataView) {\n    if (view.byteLength < %llu) {\n"
		"      throw new RangeError(`${view.byteLength} bytes, but ${\"",
		(unsigned long long)r->size);
	cairn_quote_put(r->source_name, CAIRN_QUOTE_TYPESCRIPT, out);
	fprintf(out, "\"} has %llu`);\n    }\n    this.view = view;\n  }\n",
		(unsigned long long)r->size);
	for (size_t i = 0; i < r->fields.n; i++)
		put_field(file, &r->fields.p[i]);
	fputs("}\n\n", out);
}

static void put_enum(const struct bind_file *file, const struct bind_enum *e)
{
	FILE *out = file->out;

	fputs("/** `enum ", out);
	bind_put_comment(file, e->source_name);
	fprintf(out, "` */\nexport const %s = {\n", e->camel);
	for (uint32_t i = 0; i < e->n_constants; i++)
		fprintf(out, e->is_signed ? "  %s: %lld%s,\n" : "  %s: %llu%s,\n",
			e->constants[i].name, (long long)e->constants[i].value,
			e->size > 4 ? "n" : "");
	fputs("} as const;\n\n", out);
}

void bind_write_typescript(const struct bind_file *file)
{
	FILE *out = file->out;

	fputs("// ", out);
	bind_put_origin(file, CAIRN_QUOTE_COMMENT);
	fputs(" Needs ES2020.\n", out);
	bind_put_left_out(file, "// ", "\n");
	fputc('\n', out);
	if (file->records.n)
		fputs(helpers, out);
	if (file->has_text)
		fputs(text_helpers, out);
	if (file->has_bits || file->has_wide)
		fputs(load_helpers, out);
	if (file->has_bits)
		fputs(bits_helpers, out);
	for (size_t i = 0; i < file->enums.n; i++)
		put_enum(file, &file->enums.p[i]);
	for (size_t i = 0; i < file->shapes.n; i++)
		bind_typescript_struct(file, file->shapes.p[i]);
	for (size_t i = 0; i < file->records.n; i++)
		put_record(file, &file->records.p[i]);
}
