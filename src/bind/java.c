/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Java: layouts and VarHandles of java.lang.foreign, as final since Java 22
 *
 * Each record has a StructLayout with everything in its place and paddings between, so that memory can be allocated with it
 * and its offsets be asked for; when the class is loaded, size and offsets are compared with the numbers that it was made
 * from. Layouts are unaligned: records come at any address, and packed structs are no exception then. Bit-fields, text and
 * 128-bit integers, for which there are no VarHandles, are read from the segment's bytes; in the layout, bit-fields
 * are padding.
 */
#include "bind/walk.h"

#include <string.h>

static const char helpers[] =
	"    private static void check(boolean holds, String what) {\n"
	"        if (!holds) throw new ExceptionInInitializerError(what + \" is not where it was when this was generated\");\n"
	"    }\n\n"
	"    private static long place(long at, long index, long count, long stride) {\n"
	"        return at + (count == 0 ? index : Objects.checkIndex(index, count)) * stride;\n    }\n\n"
	"    private static int bitAt(ByteOrder order, int i) {\n        return order == ByteOrder.LITTLE_ENDIAN ? 1 << i % 8 : 0x80 >> i % 8;\n    }\n\n"
	"    private static long bits(ByteOrder order, MemorySegment rec, long at, int shift, int width, boolean signed) {\n"
	"        long v = 0;\n        for (int i = 0; i < width; i++) {\n"
	"            long bit = (rec.get(BYTE, at + (shift + i) / 8) & bitAt(order, shift + i)) != 0 ? 1 : 0;\n"
	"            v |= bit << (order == ByteOrder.LITTLE_ENDIAN ? i : width - 1 - i);\n        }\n"
	"        return signed ? v << 64 - width >> 64 - width : v;\n    }\n\n"
	"    private static void bits(ByteOrder order, MemorySegment rec, long at, int shift, int width, long value) {\n"
	"        for (int i = 0; i < width; i++) {\n            long byteAt = at + (shift + i) / 8;\n"
	"            boolean bit = (value >> (order == ByteOrder.LITTLE_ENDIAN ? i : width - 1 - i) & 1) != 0;\n"
	"            int around = rec.get(BYTE, byteAt) & ~bitAt(order, shift + i);\n"
	"            rec.set(BYTE, byteAt, (byte) (bit ? around | bitAt(order, shift + i) : around));\n        }\n    }\n\n"
	"    private static String text(MemorySegment rec, long at, long size) {\n"
	"        byte[] bytes = rec.asSlice(at, size).toArray(BYTE);\n        int n = 0;\n"
	"        while (n < bytes.length && bytes[n] != 0) n++;\n"
	"        return new String(bytes, 0, n, StandardCharsets.UTF_8);\n    }\n\n"
	"    private static void text(MemorySegment rec, long at, long size, String value) {\n"
	"        byte[] bytes = value.getBytes(StandardCharsets.UTF_8);\n"
	"        for (long i = 0; i < size; i++) rec.set(BYTE, at + i, i < bytes.length ? bytes[(int) i] : 0);\n    }\n\n"
	"    private static BigInteger wide(ByteOrder order, MemorySegment rec, long at, boolean signed) {\n"
	"        ValueLayout.OfLong word = LONG.withOrder(order);\n        boolean little = order == ByteOrder.LITTLE_ENDIAN;\n"
	"        BigInteger high = BigInteger.valueOf(rec.get(word, at + (little ? 8 : 0)));\n"
	"        BigInteger low = new BigInteger(Long.toUnsignedString(rec.get(word, at + (little ? 0 : 8))));\n"
	"        BigInteger v = high.shiftLeft(64).or(low);\n"
	"        return signed || v.signum() >= 0 ? v : v.add(BigInteger.ONE.shiftLeft(128));\n    }\n\n"
	"    private static void wide(ByteOrder order, MemorySegment rec, long at, BigInteger value) {\n"
	"        ValueLayout.OfLong word = LONG.withOrder(order);\n        boolean little = order == ByteOrder.LITTLE_ENDIAN;\n"
	"        rec.set(word, at + (little ? 0 : 8), value.longValue());\n"
	"        rec.set(word, at + (little ? 8 : 0), value.shiftRight(64).longValue());\n    }\n";

/* ---- the layout ---- */

static const struct cairn_type *type_of(const struct bind_file *file, uint32_t id)
{
	return cairn_types_get(file->types, cairn_types_resolve(file->types, id));
}

static void indent(const struct bind_file *file, unsigned int depth)
{
	fprintf(file->out, "%*s", 4 * (int)depth, "");
}

static void put_layout(struct bind_file *file, uint32_t id, bool in_swapped, unsigned int depth);

/* Constants of the generated class, which are in the order of the machine. */
static const char *order_of(const struct bind_file *file, bool big_endian)
{
	return big_endian == file->opts->big_endian ? "ORDER" : big_endian ? "ByteOrder.BIG_ENDIAN" : "ByteOrder.LITTLE_ENDIAN";
}

static const char *with_order(const struct bind_file *file, bool big_endian)
{
	if (big_endian == file->opts->big_endian)
		return "";
	return big_endian ? ".withOrder(ByteOrder.BIG_ENDIAN)" : ".withOrder(ByteOrder.LITTLE_ENDIAN)";
}

static const char *value_layout(const struct cairn_type *t)
{
	if (t->kind == CAIRN_T_FLOAT && t->encoding != CAIRN_ENC_COMPLEX && t->encoding != CAIRN_ENC_OPAQUE)
		return t->size == 4 ? "FLOAT" : t->size == 8 ? "DOUBLE" : NULL;
	if (t->kind == CAIRN_T_FLOAT || t->encoding == CAIRN_ENC_OPAQUE)
		return NULL;
	return t->size == 1 ? "BYTE" : t->size == 2 ? "SHORT" : t->size == 4 ? "INT" : t->size == 8 ? "LONG" : NULL;
}

/* A name as the walk gave it: letters, digits and underscores. */
static void put_member_name(struct bind_file *file, const struct cairn_member *m, uint32_t i)
{
	const char *c = m->name;

	fputs(".withName(\"", file->out);
	if (!c)
		fputs(bind_anonymous(&file->arena, i), file->out);
	else if (*c >= '0' && *c <= '9')
		fputc('_', file->out);
	for (; c && *c; c++)
		fputc(strchr("0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", *c) ? *c : '_', file->out);
	fputs("\")", file->out);
}

static void put_padding(const struct bind_file *file, uint64_t bytes, unsigned int depth, bool *first)
{
	if (!bytes)
		return;
	fputs(*first ? "\n" : ",\n", file->out);
	*first = false;
	indent(file, depth);
	fprintf(file->out, "MemoryLayout.paddingLayout(%llu)", (unsigned long long)bytes);
}

static void put_group(struct bind_file *file, const struct cairn_type *t, unsigned int depth)
{
	bool first = true, is_union = t->kind == CAIRN_T_UNION;
	uint64_t pos = 0;

	fprintf(file->out, "MemoryLayout.%sLayout(", is_union ? "union" : "struct");
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *m = &t->members[i];
		uint64_t off = m->bit_off / 8;

		/* Members that overlap are of damaged input. */
		if (m->dynamic || m->bit_size || m->bit_off % 8 || (!is_union && off < pos))
			continue;
		if (!is_union)
			put_padding(file, off - pos, depth + 1, &first);
		fputs(first ? "\n" : ",\n", file->out);
		first = false;
		indent(file, depth + 1);
		put_layout(file, m->type, t->byte_swapped, depth + 1);
		put_member_name(file, m, i);
		pos = is_union ? 0 : off + cairn_types_size(file->types, m->type);
	}
	if (t->size > pos)
		put_padding(file, t->size - pos, depth + 1, &first);
	fputs(")", file->out);
}

/* An array that the walk did not go into (no bytes, or flexible) is no layout's, so that this goes no deeper than it did. */
static void put_array(struct bind_file *file, const struct cairn_type *t, bool in_swapped, unsigned int depth)
{
	uint64_t count = t->has_count ? t->count : 0;

	if (!count || !cairn_types_size(file->types, t->ref)) {
		fputs("MemoryLayout.sequenceLayout(0, BYTE)", file->out);
		return;
	}
	fprintf(file->out, "MemoryLayout.sequenceLayout(%llu, ", (unsigned long long)count);
	put_layout(file, t->ref, in_swapped, depth);
	fputs(")", file->out);
}

static void put_layout(struct bind_file *file, uint32_t id, bool in_swapped, unsigned int depth)
{
	const struct cairn_type *t = type_of(file, id);
	const char *value;

	switch (t->kind) {
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
	case CAIRN_T_UNION:
		put_group(file, t, depth);
		return;
	case CAIRN_T_ARRAY:
		put_array(file, t, in_swapped, depth);
		return;
	default:
		value = value_layout(t);
		if (value)
			fprintf(file->out, "%s%s", value, t->size > 1 ? with_order(file, bind_is_big_endian(file, t, in_swapped)) : "");
		else
			fprintf(file->out, "MemoryLayout.sequenceLayout(%llu, BYTE)", (unsigned long long)t->size);
	}
}

/* ---- fields ---- */

static bool is_flexible(const struct bind_field *f)
{
	return (f->kind == BIND_TEXT && !f->size) || (f->n_dims && !f->dims[f->n_dims - 1].count);
}

/* Whether a VarHandle of the layout reaches it. */
static bool has_handle(const struct bind_field *f)
{
	return !f->bits && !is_flexible(f) && f->kind != BIND_TEXT && f->kind != BIND_BYTES && f->size <= 8;
}

static const char *value_of(const struct bind_field *f)
{
	if (f->kind == BIND_FLOAT)
		return f->size == 4 ? "FLOAT" : "DOUBLE";
	return f->size == 1 ? "BYTE" : f->size == 2 ? "SHORT" : f->size == 4 ? "INT" : "LONG";
}

/* What is in memory, and what callers see: unsigned numbers in the next wider type, as far as there is one. */
static const char *carrier(const struct bind_field *f)
{
	if (f->kind == BIND_FLOAT)
		return f->size == 4 ? "float" : "double";
	return f->size == 1 ? "byte" : f->size == 2 ? "short" : f->size == 4 ? "int" : "long";
}

static const char *seen_type(const struct bind_field *f)
{
	switch (f->kind) {
	case BIND_BOOL:
		return "boolean";
	case BIND_TEXT:
		return "String";
	case BIND_BYTES:
		return "MemorySegment";
	case BIND_FLOAT:
		return carrier(f);
	case BIND_INT:
		break;
	}
	if (f->bits)
		return "long";
	if (f->size == 16)
		return "BigInteger";
	return f->is_signed ? carrier(f) : f->size <= 2 ? "int" : "long";
}

static const char *widen(const struct bind_field *f)
{
	if (f->kind == BIND_BOOL)
		return " != 0";
	if (f->kind != BIND_INT || f->is_signed)
		return "";
	return f->size == 1 ? " & 0xff" : f->size == 2 ? " & 0xffff" : f->size == 4 ? " & 0xffffffffL" : "";
}

static void put_path(const struct bind_file *file, const struct bind_field *f, bool open)
{
	for (uint32_t i = 0; i < f->n_steps; i++) {
		fputs(i ? ", " : "", file->out);
		if (f->steps[i].name)
			fprintf(file->out, "PathElement.groupElement(\"%s\")", f->steps[i].name);
		else
			fprintf(file->out, "PathElement.sequenceElement(%s)", open ? "" : "0");
	}
}

static void put_place(const struct bind_file *file, const struct bind_field *f)
{
	fprintf(file->out, "            long at = %llu;\n", (unsigned long long)f->off);
	for (uint32_t i = 0; i < f->n_dims; i++)
		fprintf(file->out, "            at = place(at, i%u, %llu, %llu);\n", i, (unsigned long long)f->dims[i].count,
			(unsigned long long)f->dims[i].stride);
}

static void put_get_body(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	if (has_handle(f)) {
		fprintf(out, "            return (%s) H_%s.get(rec, 0L", carrier(f), f->name);
		bind_put_indices(file, f, ", ", "");
		fprintf(out, ")%s;\n", widen(f));
		return;
	}
	put_place(file, f);
	if (f->bits)
		fprintf(out, "            return bits(%s, rec, at, %u, %u, %s)%s;\n", order_of(file, f->big_endian), f->shift, f->bits,
			f->is_signed ? "true" : "false", f->kind == BIND_BOOL ? " != 0" : "");
	else if (f->kind == BIND_TEXT && !f->size)
		fputs("            return text(rec, at, rec.byteSize() - at);\n", out);
	else if (f->kind == BIND_TEXT)
		fprintf(out, "            return text(rec, at, %llu);\n", (unsigned long long)f->size);
	else if (f->kind == BIND_BYTES)
		fprintf(out, "            return rec.asSlice(at, %llu);\n", (unsigned long long)f->size);
	else if (f->size == 16)
		fprintf(out, "            return wide(%s, rec, at, %s);\n", order_of(file, f->big_endian), f->is_signed ? "true" : "false");
	else
		fprintf(out, "            return rec.get(%s%s, at)%s;\n", value_of(f), with_order(file, f->big_endian), widen(f));
}

static void put_set_body(const struct bind_file *file, const struct bind_field *f)
{
	const char *value = f->kind == BIND_BOOL ? "(value ? 1 : 0)" : "value";
	bool narrows = strcmp(carrier(f), seen_type(f));
	FILE *out = file->out;
	char cast[16] = "";

	if (narrows)
		snprintf(cast, sizeof(cast), "(%s) ", carrier(f));

	if (has_handle(f)) {
		fprintf(out, "            H_%s.set(rec, 0L", f->name);
		bind_put_indices(file, f, ", ", "");
		fprintf(out, ", %s%s);\n", cast, value);
		return;
	}
	put_place(file, f);
	if (f->bits)
		fprintf(out, "            bits(%s, rec, at, %u, %u, %s);\n", order_of(file, f->big_endian), f->shift, f->bits,
			f->kind == BIND_BOOL ? "value ? 1L : 0L" : "value");
	else if (f->kind == BIND_TEXT && !f->size)
		fputs("            text(rec, at, rec.byteSize() - at, value);\n", out);
	else if (f->kind == BIND_TEXT)
		fprintf(out, "            text(rec, at, %llu, value);\n", (unsigned long long)f->size);
	else if (f->kind == BIND_BYTES)
		fprintf(out, "            MemorySegment.copy(value, 0, rec, at, %llu);\n", (unsigned long long)f->size);
	else if (f->size == 16)
		fprintf(out, "            wide(%s, rec, at, value);\n", order_of(file, f->big_endian));
	else
		fprintf(out, "            rec.set(%s%s, at, %s%s);\n", value_of(f), with_order(file, f->big_endian), cast, value);
}

static void put_field(const struct bind_file *file, const struct bind_field *f)
{
	FILE *out = file->out;

	fputs("\n        /** {@code ", out);
	bind_put_comment(file, f->path);
	fputs("}: {@code ", out);
	bind_put_comment(file, f->type);
	fprintf(out, "} */\n        public static %s get_%s(MemorySegment rec", seen_type(f), f->name);
	bind_put_indices(file, f, ", long ", "");
	fputs(") {\n", out);
	put_get_body(file, f);
	fprintf(out, "        }\n\n        public static void set_%s(MemorySegment rec", f->name);
	bind_put_indices(file, f, ", long ", "");
	fprintf(out, ", %s value) {\n", seen_type(f));
	put_set_body(file, f);
	fputs("        }\n", out);
}

/* ---- records ---- */

static void put_checks(const struct bind_file *file, const struct bind_record *r)
{
	FILE *out = file->out;

	fprintf(out, "\n        static {\n            check(LAYOUT.byteSize() == %llu, \"%s\");\n",
		(unsigned long long)r->size, r->camel);
	for (size_t i = 0; i < r->fields.n; i++) {
		const struct bind_field *f = &r->fields.p[i];
		if (f->bits || is_flexible(f))
			continue;
		fputs("            check(LAYOUT.byteOffset(", out);
		put_path(file, f, false);
		fprintf(out, ") == %llu, \"%s\");\n", (unsigned long long)f->off, f->name);
	}
	fputs("        }\n", out);
}

static void put_record(struct bind_file *file, const struct bind_record *r)
{
	FILE *out = file->out;

	fprintf(out,
		"\n    public static final class %s {\n        private %s() {}\n\n"
		"        public static final long SIZE = %llu;\n        public static final GroupLayout LAYOUT = ",
		r->camel, r->camel, (unsigned long long)r->size);
	put_layout(file, r->id, false, 3);
	fprintf(out, ".withName(\"%s\");\n\n", r->name);
	for (size_t i = 0; i < r->fields.n; i++) {
		if (!has_handle(&r->fields.p[i]))
			continue;
		fprintf(out, "        private static final VarHandle H_%s = LAYOUT.varHandle(", r->fields.p[i].name);
		put_path(file, &r->fields.p[i], true);
		fputs(");\n", out);
	}
	put_checks(file, r);
	for (size_t i = 0; i < r->fields.n; i++)
		put_field(file, &r->fields.p[i]);
	fputs("    }\n", out);
}

static void put_constants(const struct bind_file *file)
{
	static const char *const names[][2] = {{"SHORT", "Short"}, {"INT", "Int"},	 {"LONG", "Long"},
					       {"FLOAT", "Float"}, {"DOUBLE", "Double"}};

	fprintf(file->out,
		"    private static final ByteOrder ORDER = ByteOrder.%s_ENDIAN;\n"
		"    private static final ValueLayout.OfByte BYTE = ValueLayout.JAVA_BYTE;\n",
		file->opts->big_endian ? "BIG" : "LITTLE");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		fprintf(file->out,
			"    private static final ValueLayout.Of%s %s = ValueLayout.JAVA_%s_UNALIGNED.withOrder(ORDER);\n",
			names[i][1], names[i][0], names[i][0]);
}

void bind_write_java(struct bind_file *file)
{
	FILE *out = file->out;

	fputs("// ", out);
	bind_put_origin(file, CAIRN_QUOTE_COMMENT);
	fputs(" Needs Java 22.\n", out);
	if (file->opts->package)
		fprintf(out, "package %s;\n", file->opts->package);
	fputs("\nimport java.lang.foreign.GroupLayout;\nimport java.lang.foreign.MemoryLayout;\n"
	      "import java.lang.foreign.MemoryLayout.PathElement;\nimport java.lang.foreign.MemorySegment;\n"
	      "import java.lang.foreign.ValueLayout;\nimport java.lang.invoke.VarHandle;\nimport java.math.BigInteger;\n"
	      "import java.nio.ByteOrder;\nimport java.nio.charset.StandardCharsets;\nimport java.util.Objects;\n\n"
	      "public final class Records {\n    private Records() {}\n\n",
	      out);
	put_constants(file);
	fputs("\n", out);
	fputs(helpers, out);
	for (size_t i = 0; i < file->records.n; i++)
		put_record(file, &file->records.p[i]);
	fputs("}\n", out);
}
