/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Java: accessors of memory segments of java.lang.foreign, as final since Java 22
 *
 * A class file holds 65,535 constants and a method 64 KiB, so the code for a struct with thousands
 * of members is divided: accessors go into superclasses of the record's class, and layouts and
 * checks into classes of their own (java_layout.c).
 */
#include "bind/java.h"
#include "bind/structs.h"

#include <string.h>

static const char helpers[] =
	"    private static void check(boolean holds, String what) {\n"
	"        if (!holds) throw new ExceptionInInitializerError(what + \" is not where it was "
	"when this was generated\");\n"
	"    }\n\n"
	"    private static long place(long at, long index, long count, long stride) {\n"
	"        return at + Objects.checkIndex(index, count) * stride;\n    }\n\n"
	"    /* How many elements a flexible array has; the member at @at of the first has @size "
	"bytes. */\n"
	"    private static long elements(MemorySegment rec, long at, long size, long stride) {\n"
	"        return rec.byteSize() < at + size ? 0 : (rec.byteSize() - at - size) / stride + "
	"1;\n    }\n\n"
	"    /* The first byte of @n is the lowest, or the highest. */\n"
	"    private static long load(ByteOrder order, MemorySegment rec, long at, int n) {\n"
	"        long v = 0;\n        for (int i = 0; i < n; i++)\n"
	"            v = v << 8 | rec.get(BYTE, at + (order == ByteOrder.LITTLE_ENDIAN ? n - 1 - i "
	": i)) & 0xff;\n"
	"        return v;\n    }\n\n"
	"    private static void store(ByteOrder order, MemorySegment rec, long at, int n, long "
	"value) {\n"
	"        for (int i = 0; i < n; i++)\n"
	"            rec.set(BYTE, at + (order == ByteOrder.LITTLE_ENDIAN ? i : n - 1 - i), (byte) "
	"(value >> 8 * i));\n    }\n\n"
	"    /* A field of 64 bits may touch 9 bytes: the highest of them is apart. */\n"
	"    private static long bits(ByteOrder order, MemorySegment rec, long at, int size, int "
	"shift, int width, boolean signed) {\n"
	"        boolean little = order == ByteOrder.LITTLE_ENDIAN;\n"
	"        int below = little ? shift : 8 * size - shift - width;\n"
	"        long v = load(order, rec, little ? at : at + Math.max(0, size - 8), Math.min(8, "
	"size)) >>> below;\n"
	"        if (size > 8) v |= (long) rec.get(BYTE, little ? at + 8 : at) << 64 - below;\n"
	"        v <<= 64 - width;\n        return signed ? v >> 64 - width : v >>> 64 - width;\n  "
	"  }\n\n"
	"    private static void bits(ByteOrder order, MemorySegment rec, long at, int size, int "
	"shift, int width, long value) {\n"
	"        boolean little = order == ByteOrder.LITTLE_ENDIAN;\n"
	"        int below = little ? shift : 8 * size - shift - width;\n"
	"        long mask = -1L >>> 64 - width, low = little ? at : at + Math.max(0, size - 8), "
	"high = little ? at + 8 : at;\n"
	"        value &= mask;\n        long around = load(order, rec, low, Math.min(8, size)) & "
	"~(mask << below);\n"
	"        store(order, rec, low, Math.min(8, size), around | value << below);\n"
	"        if (size > 8) rec.set(BYTE, high, (byte) (rec.get(BYTE, high) & ~(mask >>> 64 - "
	"below) | value >>> 64 - below));\n"
	"    }\n\n"
	"    private static String text(MemorySegment rec, long at, long size) {\n"
	"        byte[] bytes = rec.asSlice(at, size).toArray(BYTE);\n        int n = 0;\n"
	"        while (n < bytes.length && bytes[n] != 0) n++;\n"
	"        return new String(bytes, 0, n, StandardCharsets.UTF_8);\n    }\n\n"
	"    private static void text(MemorySegment rec, long at, long size, String value) {\n"
	"        byte[] bytes = value.getBytes(StandardCharsets.UTF_8);\n"
	"        for (long i = 0; i < size; i++) rec.set(BYTE, at + i, i < bytes.length ? "
	"bytes[(int) i] : 0);\n    }\n\n"
	"    private static BigInteger wide(ByteOrder order, MemorySegment rec, long at, boolean "
	"signed) {\n"
	"        ValueLayout.OfLong word = LONG.withOrder(order);\n        boolean little = order "
	"== ByteOrder.LITTLE_ENDIAN;\n"
	"        BigInteger high = BigInteger.valueOf(rec.get(word, at + (little ? 8 : 0)));\n"
	"        BigInteger low = new BigInteger(Long.toUnsignedString(rec.get(word, at + (little "
	"? 0 : 8))));\n"
	"        BigInteger v = high.shiftLeft(64).or(low);\n"
	"        return signed || v.signum() >= 0 ? v : v.add(BigInteger.ONE.shiftLeft(128));\n    "
	"}\n\n"
	"    private static void wide(ByteOrder order, MemorySegment rec, long at, BigInteger "
	"value) {\n"
	"        ValueLayout.OfLong word = LONG.withOrder(order);\n        boolean little = order "
	"== ByteOrder.LITTLE_ENDIAN;\n"
	"        rec.set(word, at + (little ? 0 : 8), value.longValue());\n"
	"        rec.set(word, at + (little ? 8 : 0), value.shiftRight(64).longValue());\n    }\n";

/* ---- fields ---- */

/* A value of java.lang.foreign. */
static bool is_value(const struct bind_field *f)
{
	return !f->bits && f->kind != BIND_TEXT && f->kind != BIND_BYTES && f->size <= 8;
}

static void put_place(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	fprintf(out, "            long at = %llu;\n", (unsigned long long)f->off);
	for (uint32_t i = 0; i < f->n_dims; i++) {
		const struct bind_dim *d = &f->dims[i];

		if (d->count)
			fprintf(out, "            at = place(at, i%u, %llu, %llu);\n", i,
				(unsigned long long)d->count, (unsigned long long)d->stride);
		else
			fprintf(out,
				"            at = place(at, i%u, elements(rec, at, %llu, %llu), "
				"%llu);\n",
				i, (unsigned long long)f->size, (unsigned long long)d->stride,
				(unsigned long long)d->stride);
	}
}

static void put_get_body(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;
	const char *order = java_order_of(file, f->big_endian);

	put_place(file, f);
	if (f->bits)
		fprintf(out, "            return bits(%s, rec, at, %llu, %u, %u, %s)%s;\n", order,
			(unsigned long long)f->size, f->shift, f->bits,
			f->is_signed ? "true" : "false", f->kind == BIND_BOOL ? " != 0" : "");
	else if (f->kind == BIND_TEXT && !f->size)
		fputs("            return text(rec, at, rec.byteSize() - at);\n", out);
	else if (f->kind == BIND_TEXT)
		fprintf(out, "            return text(rec, at, %llu);\n",
			(unsigned long long)f->size);
	else if (f->kind == BIND_BYTES)
		fprintf(out, "            return rec.asSlice(at, %llu);\n",
			(unsigned long long)f->size);
	else if (f->size == 16)
		fprintf(out, "            return wide(%s, rec, at, %s);\n", order,
			f->is_signed ? "true" : "false");
	else
		fprintf(out, "            return rec.get(%s%s, at)%s;\n", java_value_of(f),
			java_with_order(file, f), java_widen(f));
}

static void put_set_body(const struct bind_file *file, const struct bind_field *f)
{
	const char *value = f->kind == BIND_BOOL ? "(value ? 1 : 0)" : "value",
		   *order = java_order_of(file, f->big_endian);
	bool narrows = is_value(f) && strcmp(java_carrier(f), java_seen_type(f));
	FILE *out = file->out;
	char cast[16] = "";

	if (narrows)
		snprintf(cast, sizeof(cast), "(%s) ", java_carrier(f));
	put_place(file, f);
	if (f->bits)
		fprintf(out, "            bits(%s, rec, at, %llu, %u, %u, %s);\n", order,
			(unsigned long long)f->size, f->shift, f->bits,
			f->kind == BIND_BOOL ? "value ? 1L : 0L" : "value");
	else if (f->kind == BIND_TEXT && !f->size)
		fputs("            text(rec, at, rec.byteSize() - at, value);\n", out);
	else if (f->kind == BIND_TEXT)
		fprintf(out, "            text(rec, at, %llu, value);\n",
			(unsigned long long)f->size);
	else if (f->kind == BIND_BYTES)
		fprintf(out, "            MemorySegment.copy(value, 0, rec, at, %llu);\n",
			(unsigned long long)f->size);
	else if (f->size == 16)
		fprintf(out, "            wide(%s, rec, at, value);\n", order);
	else
		fprintf(out, "            rec.set(%s%s, at, %s%s);\n", java_value_of(f),
			java_with_order(file, f), cast, value);
}

static void put_field(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	fputs("\n        /** {@code ", out);
	bind_put_comment(file, f->path);
	fputs("}: {@code ", out);
	bind_put_comment(file, f->type);
	fprintf(out, "} */\n        public static %s %s(MemorySegment rec", java_seen_type(f),
		f->get);
	bind_put_indices(file, f, ", long ", "");
	fputs(") {\n", out);
	put_get_body(file, f);
	fprintf(out, "        }\n\n        public static void %s(MemorySegment rec", f->set);
	bind_put_indices(file, f, ", long ", "");
	fprintf(out, ", %s value) {\n", java_seen_type(f));
	put_set_body(file, f);
	fputs("        }\n", out);
}

/* ---- records ---- */

/* How many members one class has the accessors of; about ten constants each. */
enum { FIELDS_PER_CLASS = 2000, CONSTANTS_PER_CLASS = 8000 };

/*
 * "final class Event extends Event_2 {", or a superclass: "static class Event_2 extends Event_1 {".
 */
static void begin_class(const struct bind_file *file, const char *name, uint64_t part,
			uint64_t n_parts)
{
	bool last = part + 1 == n_parts;
	char number[24] = "";

	if (!last)
		snprintf(number, sizeof(number), "_%llu", (unsigned long long)part + 1);
	fprintf(file->out, "\n    %s %s%s", last ? "public static final class" : "static class",
		name, number);
	if (part)
		fprintf(file->out, " extends %s_%llu", name, (unsigned long long)part);
	fprintf(file->out, " {\n        private %s%s() {}\n", name, number);
}

static uint64_t n_parts(uint64_t n, uint64_t most)
{
	return n ? (n + most - 1) / most : 1;
}

static void put_record(struct bind_file *file, const struct bind_record *r)
{
	uint64_t n = n_parts(r->fields.n, FIELDS_PER_CLASS);

	uint64_t n_checks = java_put_layout(file, r);
	for (uint64_t part = 0; part < n; part++) {
		begin_class(file, r->camel, part, n);
		if (part + 1 == n)
			java_put_layout_use(file, r, n_checks);
		for (size_t i = part * FIELDS_PER_CLASS;
		     i < r->fields.n && i < (part + 1) * FIELDS_PER_CLASS; i++)
			put_field(file, &r->fields.p[i]);
		fputs("    }\n", file->out);
	}
}

/* A constant has the type that a getter of the enum has. */
static void put_constant(const struct bind_file *file, const struct bind_enum *e,
			 const struct bind_constant *c)
{
	struct bind_field f = {.kind = BIND_INT, .size = e->size, .is_signed = e->is_signed};
	const char *type = java_seen_type(&f);

	fprintf(file->out, "        public static final %s %s = %s%lld%s;\n", type, c->name,
		!strcmp(type, "int") || !strcmp(type, "long") ? ""
		: strcmp(type, "byte")                        ? "(short) "
							      : "(byte) ",
		(long long)c->value, strcmp(type, "long") ? "" : "L");
}

static void put_enum(const struct bind_file *file, const struct bind_enum *e)
{
	uint64_t n = n_parts(e->n_constants, CONSTANTS_PER_CLASS);

	for (uint64_t part = 0; part < n; part++) {
		if (part + 1 == n) {
			fputs("\n    /** {@code enum ", file->out);
			bind_put_comment(file, e->source_name);
			fputs("} */", file->out);
		}
		begin_class(file, e->camel, part, n);
		for (uint64_t i = part * CONSTANTS_PER_CLASS;
		     i < e->n_constants && i < (part + 1) * CONSTANTS_PER_CLASS; i++)
			put_constant(file, e, &e->constants[i]);
		fputs("    }\n", file->out);
	}
}

static void put_constants(const struct bind_file *file)
{
	static const char *const names[][2] = {{"SHORT", "Short"},
					       {"INT", "Int"},
					       {"LONG", "Long"},
					       {"FLOAT", "Float"},
					       {"DOUBLE", "Double"}};

	fprintf(file->out,
		"    private static final ByteOrder ORDER = ByteOrder.%s_ENDIAN;\n"
		"    private static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;\n",
		file->opts->big_endian ? "BIG" : "LITTLE");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		fprintf(file->out,
			"    private static final ValueLayout.Of%s %s = "
			"ValueLayout.JAVA_%s_UNALIGNED.withOrder(ORDER);\n",
			names[i][1], names[i][0], names[i][0]);
}

void bind_write_java(struct bind_file *file)
{
	FILE *out = file->out;

	fputs("// ", out);
	bind_put_origin(file, CAIRN_QUOTE_COMMENT);
	fputs(" Needs Java 22.\n", out);
	bind_put_left_out(file, "// ", "\n");
	if (file->opts->package)
		fprintf(out, "package %s;\n", file->opts->package);
	fputs("\nimport java.lang.foreign.GroupLayout;\nimport java.lang.foreign.MemoryLayout;\n"
	      "import java.lang.foreign.MemoryLayout.PathElement;\nimport "
	      "java.lang.foreign.MemorySegment;\n"
	      "import java.lang.foreign.ValueLayout;\nimport java.math.BigInteger;\n"
	      "import java.nio.ByteOrder;\nimport java.nio.charset.StandardCharsets;\nimport "
	      "java.util.ArrayList;\nimport java.util.List;\nimport java.util.Objects;\n\n"
	      "public final class Records {\n    private Records() {}\n\n",
	      out);
	put_constants(file);
	fputs("\n", out);
	fputs(helpers, out);
	for (size_t i = 0; i < file->enums.n; i++)
		put_enum(file, &file->enums.p[i]);
	for (size_t i = 0; i < file->shapes.n; i++)
		bind_java_record(file, file->shapes.p[i]);
	for (size_t i = 0; i < file->records.n; i++)
		put_record(file, &file->records.p[i]);
	fputs("}\n", out);
}
