/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C: a header of static inline functions
 *
 * A number is put together byte by byte; compilers turn that into one load or store. The bytes that
 * a bit-field touches are one number, and mask and shift take the field from it.
 */
#include "bind/walk.h"

#include <cairn/text.h>

static const char head[] =
	"#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n"
	"/* BPF programs have no assert(): define it before this. */\n"
	"#ifndef BIND_ASSERT\n#include <assert.h>\n#define BIND_ASSERT(x) assert(x)\n#endif\n\n"
	"#ifndef BIND_STATIC_ASSERT\n#ifdef __cplusplus\n#define BIND_STATIC_ASSERT "
	"static_assert\n#else\n"
	"#define BIND_STATIC_ASSERT _Static_assert\n#endif\n#endif\n\n";

/* %1$s: le or be. Guarded, as several headers may be included. */
static const char helpers_le[] =
	"static inline uint64_t bind_load_le(const uint8_t *p, unsigned int n)\n{\n"
	"\tuint64_t v = 0;\n\tfor (unsigned int i = 0; i < n; i++)\n\t\tv |= (uint64_t)p[i] << 8 * "
	"i;\n\treturn v;\n}\n\n"
	"static inline void bind_store_le(uint8_t *p, unsigned int n, uint64_t v)\n{\n"
	"\tfor (unsigned int i = 0; i < n; i++)\n\t\tp[i] = (uint8_t)(v >> 8 * i);\n}\n\n";

static const char helpers_be[] =
	"static inline uint64_t bind_load_be(const uint8_t *p, unsigned int n)\n{\n"
	"\tuint64_t v = 0;\n\tfor (unsigned int i = 0; i < n; i++)\n\t\tv = v << 8 | "
	"p[i];\n\treturn v;\n}\n\n"
	"static inline void bind_store_be(uint8_t *p, unsigned int n, uint64_t v)\n{\n"
	"\tfor (unsigned int i = 0; i < n; i++)\n\t\tp[i] = (uint8_t)(v >> 8 * (n - 1 - "
	"i));\n}\n\n";

/*
 * @width bits from bit @shift on, counted from the least significant one of the first byte, or from
 * the most significant.
 */
static const char bits_le[] =
	"static inline uint64_t bind_bits_le(const uint8_t *p, unsigned int n, unsigned int shift, "
	"unsigned int width)\n{\n"
	"\tuint64_t v = bind_load_le(p, n < 8 ? n : 8) >> shift;\n\tif (n > 8)\n"
	"\t\tv |= (uint64_t)p[8] << (64 - shift);\n\treturn v & UINT64_MAX >> (64 - width);\n}\n\n"
	"static inline void bind_set_bits_le(uint8_t *p, unsigned int n, unsigned int shift, "
	"unsigned int width, uint64_t v)\n{\n"
	"\tuint64_t mask = UINT64_MAX >> (64 - width), all = bind_load_le(p, n < 8 ? n : 8);\n\tv "
	"&= mask;\n"
	"\tbind_store_le(p, n < 8 ? n : 8, (all & ~(mask << shift)) | v << shift);\n\tif (n > 8)\n"
	"\t\tp[8] = (uint8_t)((p[8] & ~(mask >> (64 - shift))) | v >> (64 - shift));\n}\n\n";

static const char bits_be[] =
	"static inline uint64_t bind_bits_be(const uint8_t *p, unsigned int n, unsigned int shift, "
	"unsigned int width)\n{\n"
	"\tunsigned int after = 8 * n - shift - width;\n"
	"\tuint64_t v = n > 8 ? bind_load_be(p, 8) << (8 - after) | p[8] >> after : "
	"bind_load_be(p, n) >> after;\n"
	"\treturn v & UINT64_MAX >> (64 - width);\n}\n\n"
	"static inline void bind_set_bits_be(uint8_t *p, unsigned int n, unsigned int shift, "
	"unsigned int width, uint64_t v)\n{\n"
	"\tunsigned int after = 8 * n - shift - width;\n\tuint64_t mask = UINT64_MAX >> (64 - "
	"width);\n\tv &= mask;\n"
	"\tif (n <= 8) {\n\t\tbind_store_be(p, n, (bind_load_be(p, n) & ~(mask << after)) | v << "
	"after);\n\t\treturn;\n\t}\n"
	"\tbind_store_be(p, 8, (bind_load_be(p, 8) & ~(mask >> (8 - after))) | v >> (8 - after));\n"
	"\tp[8] = (uint8_t)((p[8] & ~(mask << after)) | v << after);\n}\n\n";

static const char text_helpers[] =
	"/* The text up to its NUL, cut at @size, always with a NUL; the length that it has. */\n"
	"static inline size_t bind_get_text(const uint8_t *p, size_t n, char *buf, size_t "
	"size)\n{\n"
	"\tsize_t len = 0;\n\twhile (len < n && p[len])\n\t\tlen++;\n\tif (size) {\n"
	"\t\tsize_t take = len < size ? len : size - 1;\n\t\tmemcpy(buf, p, take);\n\t\tbuf[take] "
	"= 0;\n\t}\n\treturn len;\n}\n\n"
	"/* Cut at the array's end, else filled up with NULs. */\n"
	"static inline void bind_set_text(uint8_t *p, size_t n, const char *text)\n{\n"
	"\tfor (size_t i = 0; i < n; i++) {\n\t\tp[i] = (uint8_t)*text;\n\t\tif "
	"(*text)\n\t\t\ttext++;\n\t}\n}\n\n";

static void put_helper(const struct bind_file *file, const char *guard, const char *order,
		       const char *text)
{
	fprintf(file->out, "#ifndef BIND_%s%s\n#define BIND_%s%s\n%s#endif\n\n", guard, order,
		guard, order, text);
}

static void put_helpers(const struct bind_file *file)
{
	if (file->has_little)
		put_helper(file, "NUMBERS", "_LE", helpers_le);
	if (file->has_big)
		put_helper(file, "NUMBERS", "_BE", helpers_be);
	if (file->has_bits && file->has_little)
		put_helper(file, "BITS", "_LE", bits_le);
	if (file->has_bits && file->has_big)
		put_helper(file, "BITS", "_BE", bits_be);
	if (file->has_text)
		put_helper(file, "TEXT", "", text_helpers);
}

/* ---- parts of functions ---- */

static void put_type(const struct bind_file *file, const struct bind_field *f)
{
	unsigned int bits = 8u * f->value_size;

	if (f->kind == BIND_BOOL)
		fputs("bool", file->out);
	else if (f->kind == BIND_FLOAT)
		fputs(f->size == 4 ? "float" : "double", file->out);
	else if (bits == 128)
		fprintf(file->out, "%s__int128", f->is_signed ? "" : "unsigned ");
	else
		fprintf(file->out, "%sint%u_t", f->is_signed ? "" : "u", bits);
}

/* "(const void *rec, size_t n_rec, size_t i0": up to the accessor's own parameters. */
static void put_arguments(const struct bind_file *file, const struct bind_field *f, bool set)
{
	fprintf(file->out, "(%svoid *rec", set ? "" : "const ");
	if (bind_is_flexible(f))
		fputs(", size_t n_rec", file->out);
	bind_put_indices(file, f, ", size_t ", "");
}

/* The bytes of the field, after its indices were looked at: "p". */
static void put_place(const struct bind_file *file, const struct bind_field *f, bool set)
{
	FILE *out = file->out;

	for (uint32_t i = 0; i < f->n_dims; i++)
		if (f->dims[i].count)
			fprintf(out, "\tBIND_ASSERT(i%u < %llu);\n", i,
				(unsigned long long)f->dims[i].count);
		else
			/*
			 * Before it is multiplied: a product could wrap around to bytes that are
			 * there.
			 */
			fprintf(out,
				"\tBIND_ASSERT(n_rec >= %llu && i%u <= (n_rec - %llu) / %llu);\n",
				(unsigned long long)(f->off + f->size), i,
				(unsigned long long)(f->off + f->size),
				(unsigned long long)f->dims[i].stride);
	fprintf(out, "\t%suint8_t *p = (%suint8_t *)rec + ", set ? "" : "const ",
		set ? "" : "const ");
	bind_put_offset(file, f, "");
	fputs(";\n", out);
	if (!bind_is_flexible(f))
		return;
	fputs("\tBIND_ASSERT(", out);
	if (f->size)
		fprintf(out,
			"n_rec >= %llu && (size_t)(p - (const uint8_t *)rec) <= n_rec - %llu);\n",
			(unsigned long long)f->size, (unsigned long long)f->size);
	else
		fputs("(size_t)(p - (const uint8_t *)rec) <= n_rec);\n", out);
}

static void put_function(const struct bind_file *file, const struct bind_record *r,
			 const struct bind_field *f, bool set)
{
	fputs("static inline ", file->out);
	if (set)
		fputs("void", file->out);
	else if (f->kind == BIND_TEXT)
		fputs("size_t", file->out);
	else if (f->kind == BIND_BYTES)
		fputs("const uint8_t *", file->out);
	else
		put_type(file, f);
	fprintf(file->out, "%s%s_%s", !set && f->kind == BIND_BYTES ? "" : " ", r->name,
		set ? f->set : f->get);
	put_arguments(file, f, set);
}

/* ---- kinds ---- */

static void put_text(const struct bind_file *file, const struct bind_record *r,
		     const struct bind_field *f)
{
	char n[48];

	snprintf(n, sizeof(n), f->size ? "%llu" : "n_rec - (size_t)(p - (const uint8_t *)rec)",
		 (unsigned long long)f->size);
	put_function(file, r, f, false);
	fputs(", char *buf, size_t size)\n{\n", file->out);
	put_place(file, f, false);
	fprintf(file->out, "\treturn bind_get_text(p, %s, buf, size);\n}\n\n", n);
	put_function(file, r, f, true);
	fputs(", const char *text)\n{\n", file->out);
	put_place(file, f, true);
	fprintf(file->out, "\tbind_set_text(p, %s, text);\n}\n\n", n);
}

static void put_bytes(const struct bind_file *file, const struct bind_record *r,
		      const struct bind_field *f)
{
	fprintf(file->out, "/* %s */\n", cairn_counted(f->size, "byte").text);
	put_function(file, r, f, false);
	fputs(")\n{\n", file->out);
	put_place(file, f, false);
	fputs("\treturn p;\n}\n\n", file->out);
	put_function(file, r, f, true);
	fputs(", const void *bytes)\n{\n", file->out);
	put_place(file, f, true);
	fprintf(file->out, "\tmemcpy(p, bytes, %llu);\n}\n\n", (unsigned long long)f->size);
}

static void put_bits(const struct bind_file *file, const struct bind_record *r,
		     const struct bind_field *f)
{
	const char *order = f->big_endian ? "be" : "le";
	unsigned int size = (unsigned int)f->size;

	put_function(file, r, f, false);
	fputs(")\n{\n", file->out);
	put_place(file, f, false);
	fputs("\treturn (", file->out);
	put_type(file, f);
	if (f->is_signed)
		/* The sign is moved to the top and back. */
		fprintf(file->out, ")((int64_t)(bind_bits_%s(p, %u, %u, %u) << %u) >> %u);\n}\n\n",
			order, size, f->shift, f->bits, 64 - f->bits, 64 - f->bits);
	else
		fprintf(file->out, ")bind_bits_%s(p, %u, %u, %u);\n}\n\n", order, size, f->shift,
			f->bits);
	put_function(file, r, f, true);
	fputs(", ", file->out);
	put_type(file, f);
	fputs(" value)\n{\n", file->out);
	put_place(file, f, true);
	fprintf(file->out, "\tbind_set_bits_%s(p, %u, %u, %u, (uint64_t)value);\n}\n\n", order,
		size, f->shift, f->bits);
}

static void put_float(const struct bind_file *file, const struct bind_record *r,
		      const struct bind_field *f)
{
	const char *order = f->big_endian ? "be" : "le";
	unsigned int bytes = (unsigned int)f->size;

	put_function(file, r, f, false);
	fputs(")\n{\n", file->out);
	put_place(file, f, false);
	fprintf(file->out, "\tuint%u_t bits = (uint%u_t)bind_load_%s(p, %u);\n\t", bytes * 8,
		bytes * 8, order, bytes);
	put_type(file, f);
	fputs(" value;\n\tmemcpy(&value, &bits, sizeof(value));\n\treturn value;\n}\n\n",
	      file->out);
	put_function(file, r, f, true);
	fputs(", ", file->out);
	put_type(file, f);
	fputs(" value)\n{\n", file->out);
	put_place(file, f, true);
	fprintf(file->out,
		"\tuint%u_t bits;\n\tmemcpy(&bits, &value, sizeof(bits));\n\tbind_store_%s(p, %u, "
		"bits);\n}\n\n",
		bytes * 8, order, bytes);
}

static void put_int(const struct bind_file *file, const struct bind_record *r,
		    const struct bind_field *f)
{
	const char *order = f->big_endian ? "be" : "le";
	bool wide = f->size == 16;
	unsigned int low = f->big_endian ? 8 : 0;

	put_function(file, r, f, false);
	fputs(")\n{\n", file->out);
	put_place(file, f, false);
	fputs("\treturn (", file->out);
	put_type(file, f);
	if (wide)
		fprintf(file->out,
			")((unsigned __int128)bind_load_%s(p + %u, 8) << 64 | bind_load_%s(p + %u, "
			"8));\n}\n\n",
			order, 8 - low, order, low);
	else
		fprintf(file->out, ")bind_load_%s(p, %llu);\n}\n\n", order,
			(unsigned long long)f->size);
	put_function(file, r, f, true);
	fputs(", ", file->out);
	put_type(file, f);
	fputs(" value)\n{\n", file->out);
	put_place(file, f, true);
	if (wide)
		fprintf(file->out,
			"\tbind_store_%s(p + %u, 8, (uint64_t)((unsigned __int128)value >> 64));\n"
			"\tbind_store_%s(p + %u, 8, (uint64_t)value);\n}\n\n",
			order, 8 - low, order, low);
	else
		fprintf(file->out, "\tbind_store_%s(p, %llu, (uint64_t)value);\n}\n\n", order,
			(unsigned long long)f->size);
}

static void put_field(const struct bind_file *file, const struct bind_record *r,
		      const struct bind_field *f)
{
	fputs("/* ", file->out);
	bind_put_comment(file, f->path);
	fputs(": ", file->out);
	bind_put_comment(file, f->type);
	fputs(" */\n", file->out);
	if (f->kind == BIND_TEXT)
		put_text(file, r, f);
	else if (f->kind == BIND_BYTES)
		put_bytes(file, r, f);
	else if (f->bits)
		put_bits(file, r, f);
	else if (f->kind == BIND_FLOAT)
		put_float(file, r, f);
	else
		put_int(file, r, f);
}

/* ---- assertions ---- */

static void put_asserts(const struct bind_file *file, const struct bind_record *r)
{
	FILE *out = file->out;

	fprintf(out, "enum { %s_SIZE = %llu };\n\n", r->upper, (unsigned long long)r->size);
	fprintf(out, "/* Define %s_TYPE as a struct of yours, \"struct ", r->upper);
	bind_put_comment(file, r->source_name);
	fprintf(out, "\", and the compiler compares. */\n#ifdef %s_TYPE\n", r->upper);
	fprintf(out, "BIND_STATIC_ASSERT(sizeof(%s_TYPE) == %s_SIZE, \"size of %s\");\n", r->upper,
		r->upper, r->name);
	for (size_t i = 0; i < r->fields.n; i++) {
		const struct bind_field *f = &r->fields.p[i];
		/* offsetof() takes no bit-field, and no element of an array that has none. */
		if (!f->bits && !bind_is_flexible(f) && f->path_is_c)
			fprintf(out,
				"BIND_STATIC_ASSERT(offsetof(%s_TYPE, %s) == %llu, \"offset of "
				"%s\");\n",
				r->upper, f->path, (unsigned long long)f->off, f->path);
	}
	fputs("#endif\n\n", out);
}

/* ---- enums ---- */

/* C wants an int for a constant of an enum; a macro takes its place where one is none. */
static bool are_ints(const struct bind_enum *e)
{
	for (uint32_t i = 0; i < e->n_constants; i++)
		if (e->constants[i].value != (int32_t)e->constants[i].value)
			return false;
	return true;
}

static void put_macro(const struct bind_file *file, const struct bind_enum *e,
		      const struct bind_constant *c)
{
	if (!e->is_signed)
		fprintf(file->out, "#define %s UINT%llu_C(%llu)\n", c->name,
			(unsigned long long)e->size * 8, (unsigned long long)c->value);
	else if (c->value == INT64_MIN)
		fprintf(file->out, "#define %s INT64_MIN\n", c->name);
	else
		fprintf(file->out, "#define %s (%sINT64_C(%lld))\n", c->name,
			c->value < 0 ? "-" : "", (long long)(c->value < 0 ? -c->value : c->value));
}

static void put_enum(const struct bind_file *file, const struct bind_enum *e)
{
	bool ints = are_ints(e);

	/* Two headers that are included may have it. */
	fprintf(file->out, "#ifndef BIND_ENUM_%s\n#define BIND_ENUM_%s\n/* enum ", e->name,
		e->name);
	bind_put_comment(file, e->source_name);
	fprintf(file->out, " */\n%s", ints ? "enum {\n" : "");
	for (uint32_t i = 0; i < e->n_constants; i++)
		if (!ints)
			put_macro(file, e, &e->constants[i]);
		else if (e->constants[i].value == INT32_MIN)
			fprintf(file->out, "\t%s = -2147483647 - 1,\n", e->constants[i].name);
		else
			fprintf(file->out, "\t%s = %lld,\n", e->constants[i].name,
				(long long)e->constants[i].value);
	fputs(ints ? "};\n#endif\n\n" : "#endif\n\n", file->out);
}

void bind_write_c(const struct bind_file *file)
{
	const char *guard = file->records.n ? file->records.p[0].upper
			    : file->enums.n ? file->enums.p[0].name
					    : "NOTHING";
	FILE *out = file->out;

	fputs("/* ", out);
	bind_put_origin(file, CAIRN_QUOTE_COMMENT);
	fputs(" */\n", out);
	bind_put_left_out(file, "/* ", " */\n");
	fprintf(out, "#ifndef BIND_%s_H\n#define BIND_%s_H\n\n%s", guard, guard, head);
	fputs("BIND_STATIC_ASSERT(sizeof(float) == 4 && sizeof(double) == 8, \"IEEE floats\");\n\n",
	      out);
	put_helpers(file);
	for (size_t i = 0; i < file->enums.n; i++)
		put_enum(file, &file->enums.p[i]);
	for (size_t i = 0; i < file->records.n; i++) {
		const struct bind_record *r = &file->records.p[i];
		put_asserts(file, r);
		for (size_t k = 0; k < r->fields.n; k++)
			put_field(file, r, &r->fields.p[k]);
	}
	fputs("#endif\n", out);
}
