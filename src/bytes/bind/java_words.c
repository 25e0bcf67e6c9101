/* SPDX-License-Identifier: BSD-2-Clause */
/* Java: the words for a field, its order, its layout and its types. */
#include "bind/java.h"

/* Constants of the generated class, which are in the order of the machine. */
const char *java_order_of(const struct bind_file *file, bool big_endian)
{
	return big_endian == file->opts->big_endian ? "ORDER"
	       : big_endian                         ? "ByteOrder.BIG_ENDIAN"
						    : "ByteOrder.LITTLE_ENDIAN";
}

const char *java_with_order(const struct bind_file *file, const struct bind_field *f)
{
	if (f->big_endian == file->opts->big_endian || f->size < 2)
		return "";
	return f->big_endian ? ".withOrder(ByteOrder.BIG_ENDIAN)"
			     : ".withOrder(ByteOrder.LITTLE_ENDIAN)";
}

const char *java_value_of(const struct bind_field *f)
{
	if (f->kind == BIND_FLOAT)
		return f->size == 4 ? "FLOAT" : "DOUBLE";
	return f->size == 1 ? "BYTE" : f->size == 2 ? "SHORT" : f->size == 4 ? "INT" : "LONG";
}

/*
 * The type in memory, and the type that callers see: unsigned numbers in the next wider type, if
 * there is one.
 */
const char *java_carrier(const struct bind_field *f)
{
	if (f->kind == BIND_FLOAT)
		return f->size == 4 ? "float" : "double";
	return f->size == 1 ? "byte" : f->size == 2 ? "short" : f->size == 4 ? "int" : "long";
}

const char *java_seen_type(const struct bind_field *f)
{
	switch (f->kind) {
	case BIND_BOOL:
		return "boolean";
	case BIND_TEXT:
		return "String";
	case BIND_BYTES:
		return "MemorySegment";
	case BIND_FLOAT:
		return java_carrier(f);
	case BIND_INT:
		break;
	}
	if (f->bits)
		return "long";
	if (f->size == 16)
		return "BigInteger";
	return f->is_signed ? java_carrier(f) : f->size <= 2 ? "int" : "long";
}

const char *java_widen(const struct bind_field *f)
{
	if (f->kind == BIND_BOOL)
		return " != 0";
	if (f->kind != BIND_INT || f->is_signed)
		return "";
	return f->size == 1   ? " & 0xff"
	       : f->size == 2 ? " & 0xffff"
	       : f->size == 4 ? " & 0xffffffffL"
			      : "";
}
