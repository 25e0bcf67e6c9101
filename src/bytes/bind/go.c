/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Go: types over byte slices
 *
 * An index beyond an array, and bytes that are not there, panic as those of a slice do. A package
 * has the helpers once: all of its types come from one run.
 */
#include "bind/structs.h"

#include <string.h>

static const char head[] =
	"\nimport (\n\t\"bytes\"\n\t\"encoding/binary\"\n\t\"fmt\"\n\t\"math\"\n\t\"unsafe\"\n)\n\n"
	"var (\n\t_ = bytes.IndexByte\n\t_ = binary.LittleEndian\n\t_ = fmt.Errorf\n\t_ = "
	"math.Float32bits\n\t_ = unsafe.Sizeof(0)\n)\n";

static const char helpers[] =
	"\nfunc place(i, count int) int {\n\tif i < 0 || i >= count {\n"
	"\t\tpanic(fmt.Sprintf(\"index %d of %d elements\", i, count))\n\t}\n\treturn i\n}\n\n"
	"// How many elements a flexible array has; the member at @off of the first has @size "
	"bytes.\n"
	"func elements(b []byte, off, size, stride int) int {\n\tif len(b) < off+size "
	"{\n\t\treturn 0\n\t}\n"
	"\treturn (len(b)-off-size)/stride + 1\n}\n\n"
	"func flag(value bool) uint64 {\n\tif value {\n\t\treturn 1\n\t}\n\treturn 0\n}\n\n"
	"func text(b []byte) string {\n\tif i := bytes.IndexByte(b, 0); i >= 0 {\n\t\tb = "
	"b[:i]\n\t}\n\treturn string(b)\n}\n\n"
	"// Cut at the end, else filled up with NULs.\n"
	"func setText(b []byte, value string) {\n\tfor i := copy(b, value); i < len(b); i++ "
	"{\n\t\tb[i] = 0\n\t}\n}\n\n"
	"func setBytes(b, value []byte) {\n\tif len(b) != len(value) {\n"
	"\t\tpanic(fmt.Sprintf(\"%d bytes instead of %d\", len(value), len(b)))\n\t}\n\tcopy(b, "
	"value)\n}\n\n"
	"func part(b []byte, at, n int) []byte {\n\treturn b[at : at+n]\n}\n";

/* A field of 64 bits that does not begin a byte touches 9: the highest one is apart. */
static const char bits_helpers[] =
	"\nfunc bitsLE(b []byte, shift, width uint) uint64 {\n\tvar a [8]byte\n\tcopy(a[:], b)\n"
	"\tv := binary.LittleEndian.Uint64(a[:]) >> shift\n\tif len(b) > 8 {\n\t\tv |= "
	"uint64(b[8]) << (64 - shift)\n\t}\n"
	"\treturn v & (math.MaxUint64 >> (64 - width))\n}\n\n"
	"func setBitsLE(b []byte, shift, width uint, value uint64) {\n\tvar a [8]byte\n\tn := "
	"copy(a[:], b)\n"
	"\tmask := uint64(math.MaxUint64) >> (64 - width)\n\tvalue &= mask\n"
	"\tbinary.LittleEndian.PutUint64(a[:], "
	"binary.LittleEndian.Uint64(a[:])&^(mask<<shift)|value<<shift)\n"
	"\tcopy(b, a[:n])\n\tif len(b) > 8 {\n\t\tb[8] = b[8]&^byte(mask>>(64-shift)) | "
	"byte(value>>(64-shift))\n\t}\n}\n\n"
	"func lowBE(b []byte) (a [8]byte, low []byte) {\n\tif low = b; len(b) > 8 {\n\t\tlow = "
	"b[len(b)-8:]\n\t}\n"
	"\tcopy(a[8-len(low):], low)\n\treturn a, low\n}\n\n"
	"func bitsBE(b []byte, shift, width uint) uint64 {\n\ta, _ := lowBE(b)\n\tbelow := "
	"8*uint(len(b)) - shift - width\n"
	"\tv := binary.BigEndian.Uint64(a[:]) >> below\n\tif len(b) > 8 {\n\t\tv |= uint64(b[0]) "
	"<< (64 - below)\n\t}\n"
	"\treturn v & (math.MaxUint64 >> (64 - width))\n}\n\n"
	"func setBitsBE(b []byte, shift, width uint, value uint64) {\n\ta, low := lowBE(b)\n"
	"\tbelow := 8*uint(len(b)) - shift - width\n\tmask := uint64(math.MaxUint64) >> (64 - "
	"width)\n\tvalue &= mask\n"
	"\tif len(b) > 8 {\n\t\tb[0] = b[0]&^byte(mask>>(64-below)) | "
	"byte(value>>(64-below))\n\t}\n"
	"\tbinary.BigEndian.PutUint64(a[:], "
	"binary.BigEndian.Uint64(a[:])&^(mask<<below)|value<<below)\n"
	"\tcopy(low, a[8-len(low):])\n}\n\n"
	"func signed(value uint64, width uint) int64 {\n\treturn int64(value<<(64-width)) >> (64 - "
	"width)\n}\n";

/* ---- words for a field ---- */

static const char *order_of(const struct bind_field *f)
{
	return f->big_endian ? "binary.BigEndian" : "binary.LittleEndian";
}

static bool is_wide(const struct bind_field *f)
{
	return f->kind == BIND_INT && f->value_size == 16;
}

static void put_type(const struct bind_file *file, const struct bind_field *f)
{
	if (f->kind == BIND_BOOL)
		fputs("bool", file->out);
	else if (f->kind == BIND_FLOAT)
		fprintf(file->out, "float%u", 8u * f->value_size);
	else if (f->kind == BIND_INT)
		fprintf(file->out, "%sint%u", f->is_signed ? "" : "u", 8u * f->value_size);
	else
		fputs(f->kind == BIND_TEXT ? "string" : "[]byte", file->out);
}

/* "(hi int64, lo uint64)": Go has no integer of 128 bits. */
static void put_result(const struct bind_file *file, const struct bind_field *f)
{
	if (is_wide(f))
		fprintf(file->out, "(hi %sint64, lo uint64)", f->is_signed ? "" : "u");
	else
		put_type(file, f);
}

/* "part(r.b, at, 4)", after the statement that finds an element. */
static void put_slice(const struct bind_file *file, const struct bind_field *f)
{
	if (!f->size)
		fprintf(file->out, "r.b[at:]");
	else
		fprintf(file->out, "part(r.b, at, %llu)", (unsigned long long)f->size);
}

static void put_place(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	fprintf(out, "\tat := %llu", (unsigned long long)f->off);
	for (uint32_t i = 0; i < f->n_dims; i++) {
		const struct bind_dim *d = &f->dims[i];

		if (d->count)
			fprintf(out, " + place(i%u, %llu)*%llu", i, (unsigned long long)d->count,
				(unsigned long long)d->stride);
		else
			fprintf(out, " + place(i%u, elements(r.b, %llu, %llu, %llu))*%llu", i,
				(unsigned long long)f->off, (unsigned long long)f->size,
				(unsigned long long)d->stride, (unsigned long long)d->stride);
	}
	fputc('\n', out);
}

/* ---- bodies of accessors ---- */

static void put_get_number(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;
	unsigned int bits = 8u * f->value_size;
	bool cast = f->kind == BIND_INT && f->is_signed;

	if (f->kind == BIND_FLOAT)
		fprintf(out, "math.Float%ufrombits(", bits);
	else if (cast)
		fprintf(out, "int%u(", bits);
	if (bits == 8)
		fputs("r.b[at]", out);
	else
		fprintf(out, "%s.Uint%u(r.b[at:])", order_of(f), bits);
	fputs(f->kind == BIND_FLOAT || cast ? ")" : f->kind == BIND_BOOL ? " != 0" : "", out);
}

static void put_get_bits(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	if (f->kind == BIND_INT)
		fprintf(out, "%sint%u(%s", f->is_signed ? "" : "u", 8u * f->value_size,
			f->is_signed ? "signed(" : "");
	fprintf(out, "bits%s(", f->big_endian ? "BE" : "LE");
	put_slice(file, f);
	fprintf(out, ", %u, %u)", f->shift, f->bits);
	if (f->kind == BIND_BOOL)
		fputs(" != 0", out);
	else if (f->is_signed)
		fprintf(out, ", %u))", f->bits);
	else
		fputc(')', out);
}

static void put_get_wide(const struct bind_file *file, const struct bind_field *f)
{
	unsigned int hi = f->big_endian ? 0 : 8;

	fprintf(file->out, "%sint64(%s.Uint64(r.b[at+%u:])), %s.Uint64(r.b[at+%u:])",
		f->is_signed ? "" : "u", order_of(f), hi, order_of(f), 8 - hi);
}

static void put_get_body(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	fputs("\treturn ", out);
	if (f->kind == BIND_TEXT || f->kind == BIND_BYTES) {
		fputs(f->kind == BIND_TEXT ? "text(" : "", out);
		put_slice(file, f);
		fputs(f->kind == BIND_TEXT ? ")\n" : "\n", out);
		return;
	}
	if (f->bits)
		put_get_bits(file, f);
	else if (is_wide(f))
		put_get_wide(file, f);
	else
		put_get_number(file, f);
	fputc('\n', out);
}

static void put_set_number(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;
	unsigned int bits = 8u * f->value_size;
	bool cast = f->kind == BIND_INT && f->is_signed;

	if (f->kind == BIND_BOOL)
		fputs("\tr.b[at] = byte(flag(value))\n", out);
	else if (bits == 8)
		fprintf(out, "\tr.b[at] = %s\n", cast ? "byte(value)" : "value");
	else if (f->kind == BIND_FLOAT)
		fprintf(out, "\t%s.PutUint%u(r.b[at:], math.Float%ubits(value))\n", order_of(f),
			bits, bits);
	else if (cast)
		fprintf(out, "\t%s.PutUint%u(r.b[at:], uint%u(value))\n", order_of(f), bits, bits);
	else
		fprintf(out, "\t%s.PutUint%u(r.b[at:], value)\n", order_of(f), bits);
}

static void put_set_wide(const struct bind_file *file, const struct bind_field *f)
{
	unsigned int hi = f->big_endian ? 0 : 8;

	fprintf(file->out,
		"\t%s.PutUint64(r.b[at+%u:], uint64(hi))\n\t%s.PutUint64(r.b[at+%u:], lo)\n",
		order_of(f), hi, order_of(f), 8 - hi);
}

static void put_set_body(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	if (f->kind == BIND_TEXT || f->kind == BIND_BYTES) {
		fputs(f->kind == BIND_TEXT ? "\tsetText(" : "\tsetBytes(", out);
		put_slice(file, f);
		fputs(", value)\n", out);
	} else if (f->bits) {
		fprintf(out, "\tsetBits%s(", f->big_endian ? "BE" : "LE");
		put_slice(file, f);
		fprintf(out, ", %u, %u, %s(value))\n", f->shift, f->bits,
			f->kind == BIND_BOOL ? "flag" : "uint64");
	} else if (is_wide(f)) {
		put_set_wide(file, f);
	} else {
		put_set_number(file, f);
	}
}

static void put_field(const struct bind_file *file, const struct bind_record *r,
		      const struct bind_field *f)
{
	FILE *out = file->out;

	fprintf(out, "\n// %s is ", f->get);
	bind_put_comment(file, f->path);
	fputs(": ", out);
	bind_put_comment(file, f->type);
	fprintf(out, "\nfunc (r %s) %s(", r->camel, f->get);
	for (uint32_t i = 0; i < f->n_dims; i++)
		fprintf(out, "%si%u int", i ? ", " : "", i);
	fputs(") ", out);
	put_result(file, f);
	fputs(" {\n", out);
	put_place(file, f);
	put_get_body(file, f);
	fprintf(out, "}\n\nfunc (r %s) %s(", r->camel, f->set);
	bind_put_indices(file, f, "", " int, ");
	if (is_wide(f)) {
		fprintf(out, "hi %sint64, lo uint64", f->is_signed ? "" : "u");
	} else {
		fputs("value ", out);
		put_type(file, f);
	}
	fputs(") {\n", out);
	put_place(file, f);
	put_set_body(file, f);
	fputs("}\n", out);
}

/* ---- the file ---- */

static void put_record(const struct bind_file *file, const struct bind_record *r)
{
	FILE *out = file->out;

	fprintf(out, "\n// %sSize is how many bytes ", r->camel);
	bind_put_comment(file, r->source_name);
	fprintf(out, " has.\nconst %sSize = %llu\n\n", r->camel, (unsigned long long)r->size);
	fprintf(out, "// %s reads and writes the bytes of ", r->camel);
	bind_put_comment(file, r->source_name);
	fprintf(out, ".\ntype %s struct{ b []byte }\n\n", r->camel);
	fprintf(out,
		"// New%s refuses fewer than %sSize bytes. They are shared: setters change them.\n",
		r->camel, r->camel);
	fprintf(out, "func New%s(b []byte) (%s, error) {\n\tif len(b) < %sSize {\n", r->camel,
		r->camel, r->camel);
	fprintf(out, "\t\treturn %s{}, fmt.Errorf(\"%%d bytes, but %%s has %%d\", len(b), \"",
		r->camel);
	cairn_quote_put(r->source_name, CAIRN_QUOTE_GO, out);
	fprintf(out, "\", %sSize)\n\t}\n\treturn %s{b}, nil\n}\n", r->camel, r->camel);
	for (size_t i = 0; i < r->fields.n; i++)
		put_field(file, r, &r->fields.p[i]);
}

/* One statement each: in a block, gofmt would align them. */
static void put_enum(const struct bind_file *file, const struct bind_enum *e)
{
	FILE *out = file->out;

	fputs("\n// enum ", out);
	bind_put_comment(file, e->source_name);
	fputc('\n', out);
	for (uint32_t i = 0; i < e->n_constants; i++)
		fprintf(out,
			e->is_signed ? "const %s int%llu = %lld\n" : "const %s uint%llu = %llu\n",
			e->constants[i].name, (unsigned long long)e->size * 8,
			(long long)e->constants[i].value);
}

void bind_write_go(const struct bind_file *file)
{
	FILE *out = file->out;

	fputs("// Code generated by cairn bind", out);
	if (file->opts->origin) {
		fputs(" of ", out);
		cairn_quote_put(file->opts->origin, CAIRN_QUOTE_COMMENT, out);
	}
	/* The tools of Go know this line by its beginning and its end. */
	fprintf(out, ". DO NOT EDIT.\n\npackage %s\n",
		file->opts->package ? file->opts->package : "records");
	bind_put_left_out(file, "\n// ", "");
	if (file->n_left_out)
		fputc('\n', out);
	if (file->records.n)
		fprintf(out, "%s%s%s", head, helpers, file->has_bits ? bits_helpers : "");
	for (size_t i = 0; i < file->enums.n; i++)
		put_enum(file, &file->enums.p[i]);
	for (size_t i = 0; i < file->shapes.n; i++)
		bind_go_struct(file, file->shapes.p[i]);
	for (size_t i = 0; i < file->records.n; i++)
		put_record(file, &file->records.p[i]);
}
