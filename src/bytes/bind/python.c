/* SPDX-License-Identifier: BSD-2-Clause */
/* Python: classes over memoryview, with nothing but the standard library. */
#include "bind/structs.h"

#include <string.h>

static const char head[] =
	"import ctypes\nimport enum\nimport struct\nimport typing\n\n"
	"assert struct.calcsize(\"<bhiqfd\") == 27\n\n"
	"if typing.TYPE_CHECKING:\n    _Order = typing.Literal[\"little\", \"big\"]\n"
	/* Before Python 3.11 there is only the machine's order. */
	"    _Union = ctypes.Union\nelse:\n    _Union = getattr(ctypes, \"LittleEndianUnion\", "
	"ctypes.Union)\n\n\n"
	"class Record:\n"
	"    \"\"\"Bytes with members at known offsets; the bytes are shared with whoever gave "
	"them.\"\"\"\n\n"
	"    SIZE = 0\n"
	"    OFFSETS: typing.Dict[str, typing.Tuple[int, int]] = {}\n"
	"    __slots__ = (\"bytes\",)\n\n"
	"    def __init__(self, data: typing.Any) -> None:\n"
	"        self.bytes = memoryview(data).cast(\"B\")\n"
	"        if len(self.bytes) < self.SIZE:\n"
	"            raise ValueError(f\"{len(self.bytes)} bytes, but {type(self).__name__} has "
	"{self.SIZE}\")\n\n"
	"    def _place(self, at: int, size: int, *dims: typing.Tuple[int, int, int]) -> int:\n"
	"        for index, count, stride in dims:\n"
	"            if index < 0 or (count and index >= count):\n"
	"                raise IndexError(index)\n"
	"            at += index * stride\n"
	"        if at + size > len(self.bytes):\n"
	"            raise IndexError(f\"{size} bytes at {at} of {len(self.bytes)}\")\n"
	"        return at\n\n"
	"    def _get(self, form: str, at: int) -> typing.Any:\n"
	"        return struct.unpack_from(form, self.bytes, at)[0]\n\n"
	"    def _set(self, form: str, at: int, value: typing.Union[int, float, bool]) -> None:\n"
	"        struct.pack_into(form, self.bytes, at, value)\n\n"
	"    def _get_wide(self, at: int, order: \"_Order\", signed: bool) -> int:\n"
	"        return int.from_bytes(self.bytes[at:at + 16], order, signed=signed)\n\n"
	"    def _set_wide(self, at: int, order: \"_Order\", signed: bool, value: int) -> None:\n"
	"        self.bytes[at:at + 16] = value.to_bytes(16, order, signed=signed)\n\n"
	"    def _get_bits(self, at: int, size: int, order: \"_Order\", shift: int, width: int, "
	"signed: bool) -> int:\n"
	"        value = int.from_bytes(self.bytes[at:at + size], order)\n"
	"        value = value >> (shift if order == \"little\" else size * 8 - shift - width) & "
	"(1 << width) - 1\n"
	"        return value - (1 << width) if signed and value >> width - 1 else value\n\n"
	"    def _set_bits(self, at: int, size: int, order: \"_Order\", shift: int, width: int, "
	"value: int) -> None:\n"
	"        shift = shift if order == \"little\" else size * 8 - shift - width\n"
	"        mask = (1 << width) - 1 << shift\n"
	"        around = int.from_bytes(self.bytes[at:at + size], order) & ~mask\n"
	"        self.bytes[at:at + size] = (around | int(value) << shift & mask).to_bytes(size, "
	"order)\n\n"
	"    def _get_text(self, at: int, size: int) -> str:\n"
	"        return bytes(self.bytes[at:at + size]).split(b\"\\0\")[0].decode(\"utf-8\", "
	"\"replace\")\n\n"
	"    def _set_text(self, at: int, size: int, text: str) -> None:\n"
	"        self.bytes[at:at + size] = text.encode(\"utf-8\")[:size].ljust(size, b\"\\0\")\n\n"
	"    def _set_bytes(self, at: int, size: int, value: typing.Union[bytes, bytearray, "
	"memoryview]) -> None:\n"
	"        if len(value) != size:\n"
	"            raise ValueError(f\"{len(value)} bytes instead of {size}\")\n"
	"        self.bytes[at:at + size] = value\n";

/* Words that cannot be attributes. */
static bool is_keyword(const char *name)
{
	static const char *const words[] = {
		"False",   "None",     "True",     "and",    "as",   "assert",  "async",  "await",
		"break",   "class",    "continue", "def",    "del",  "elif",    "else",   "except",
		"finally", "for",      "from",     "global", "if",   "import",  "in",     "is",
		"lambda",  "nonlocal", "not",      "or",     "pass", "raise",   "return", "try",
		"while",   "with",     "yield",    "bytes",  "SIZE", "OFFSETS",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], name))
			return true;
	return !strncmp(name, "get_", 4) || !strncmp(name, "set_", 4) || name[0] == '_';
}

static char form_of(const struct bind_field *f)
{
	static const char signs[] = "bhiq", unsigns[] = "BHIQ";
	unsigned int log = f->size == 1 ? 0 : f->size == 2 ? 1 : f->size == 4 ? 2 : 3;

	if (f->kind == BIND_BOOL)
		return '?';
	if (f->kind == BIND_FLOAT)
		return f->size == 4 ? 'f' : 'd';
	return f->is_signed ? signs[log] : unsigns[log];
}

/* As annotations have it. */
static const char *type_of(const struct bind_field *f, bool set)
{
	switch (f->kind) {
	case BIND_BOOL:
		return "bool";
	case BIND_FLOAT:
		return "float";
	case BIND_TEXT:
		return "str";
	case BIND_BYTES:
		return set ? "typing.Union[bytes, bytearray, memoryview]" : "memoryview";
	case BIND_INT:
		break;
	}
	return "int";
}

/* The arguments and the result; a plain _get() may return anything. */
static void put_def(const struct bind_file *file, const struct bind_field *f, bool set)
{
	fprintf(file->out, "\n    def %s(self", set ? f->set : f->get);
	bind_put_indices(file, f, ", ", ": int");
	if (set)
		fprintf(file->out, ", value: %s) -> None:\n", type_of(f, true));
	else
		fprintf(file->out, ") -> %s:\n", type_of(f, false));
}

/* "at = self._place(4, 2, (i0, 2, 2))" */
static void put_place(const struct bind_file *file, const struct bind_field *f)
{
	fprintf(file->out, "        at = self._place(%llu, %llu", (unsigned long long)f->off,
		(unsigned long long)f->size);
	for (uint32_t i = 0; i < f->n_dims; i++)
		fprintf(file->out, ", (i%u, %llu, %llu)", i, (unsigned long long)f->dims[i].count,
			(unsigned long long)f->dims[i].stride);
	fputs(")\n", file->out);
}

static void put_get(const struct bind_file *file, const struct bind_field *f, const char *order)
{
	FILE *out = file->out;
	char mark = f->big_endian ? '>' : '<';

	if (f->kind == BIND_TEXT && !f->size)
		fputs("self._get_text(at, len(self.bytes) - at)\n", out);
	else if (f->kind == BIND_TEXT)
		fprintf(out, "self._get_text(at, %llu)\n", (unsigned long long)f->size);
	else if (f->kind == BIND_BYTES)
		fprintf(out, "self.bytes[at:at + %llu]\n", (unsigned long long)f->size);
	else if (f->bits)
		fprintf(out, "%sself._get_bits(at, %llu, \"%s\", %u, %u, %s)%s\n",
			f->kind == BIND_BOOL ? "bool(" : "", (unsigned long long)f->size, order,
			f->shift, f->bits, f->is_signed ? "True" : "False",
			f->kind == BIND_BOOL ? ")" : "");
	else if (f->size == 16)
		fprintf(out, "self._get_wide(at, \"%s\", %s)\n", order,
			f->is_signed ? "True" : "False");
	else
		fprintf(out, "%s(self._get(\"%c%c\", at))\n", type_of(f, false), mark, form_of(f));
}

static void put_set(const struct bind_file *file, const struct bind_field *f, const char *order)
{
	FILE *out = file->out;
	char mark = f->big_endian ? '>' : '<';

	if (f->kind == BIND_TEXT && !f->size)
		fputs("self._set_text(at, len(self.bytes) - at, value)\n", out);
	else if (f->kind == BIND_TEXT)
		fprintf(out, "self._set_text(at, %llu, value)\n", (unsigned long long)f->size);
	else if (f->kind == BIND_BYTES)
		fprintf(out, "self._set_bytes(at, %llu, value)\n", (unsigned long long)f->size);
	else if (f->bits)
		fprintf(out, "self._set_bits(at, %llu, \"%s\", %u, %u, value)\n",
			(unsigned long long)f->size, order, f->shift, f->bits);
	else if (f->size == 16)
		fprintf(out, "self._set_wide(at, \"%s\", %s, value)\n", order,
			f->is_signed ? "True" : "False");
	else
		fprintf(out, "self._set(\"%c%c\", at, value)\n", mark, form_of(f));
}

static void put_field(const struct bind_file *file, const struct bind_field *f)
{
	const char *order = f->big_endian ? "big" : "little";
	FILE *out = file->out;

	/* "# type: int" alone would be an annotation. */
	fputs("\n    # Member ", out);
	bind_put_comment(file, f->path);
	fputs(": ", out);
	bind_put_comment(file, f->type);
	fputs("\n", out);
	put_def(file, f, false);
	put_place(file, f);
	fputs("        return ", out);
	put_get(file, f, order);
	put_def(file, f, true);
	put_place(file, f);
	fputs("        ", out);
	put_set(file, f, order);
	if (!f->n_dims && !is_keyword(f->name))
		fprintf(out, "\n    %s = property(%s, %s)\n", f->name, f->get, f->set);
}

static void put_check(FILE *out, const struct bind_record *r)
{
	fprintf(out,
		"\n\nfor _name, (_off, _size) in %s.OFFSETS.items():\n    assert _off + _size <= "
		"%s.SIZE or not _size",
		r->camel, r->camel);
	for (size_t i = 0; i < r->fields.n; i++)
		if (bind_is_flexible(&r->fields.p[i]))
			fprintf(out, " or _name == \"%s\"", r->fields.p[i].name);
	fputs(", _name\n", out);
}

static void put_record(const struct bind_file *file, const struct bind_record *r)
{
	FILE *out = file->out;

	fprintf(out, "\n\nclass %s(Record):\n    SIZE = %llu\n    OFFSETS = {\n", r->camel,
		(unsigned long long)r->size);
	for (size_t i = 0; i < r->fields.n; i++)
		fprintf(out, "        \"%s\": (%llu, %llu),\n", r->fields.p[i].name,
			(unsigned long long)r->fields.p[i].off,
			(unsigned long long)r->fields.p[i].size);
	fputs("    }\n    __slots__ = ()\n", out);
	for (size_t i = 0; i < r->fields.n; i++)
		put_field(file, &r->fields.p[i]);
	put_check(out, r);
}

static void put_enum(const struct bind_file *file, const struct bind_enum *e)
{
	FILE *out = file->out;

	fprintf(out, "\n\nclass %s(enum.IntEnum):\n    # enum ", e->camel);
	bind_put_comment(file, e->source_name);
	fputc('\n', out);
	for (uint32_t i = 0; i < e->n_constants; i++)
		fprintf(out, e->is_signed ? "    %s = %lld\n" : "    %s = %llu\n",
			e->constants[i].name, (long long)e->constants[i].value);
}

void bind_write_python(const struct bind_file *file)
{
	fputs("\"\"\"", file->out);
	bind_put_origin(file, CAIRN_QUOTE_PYTHON);
	fputs("\"\"\"\n", file->out);
	bind_put_left_out(file, "# ", "\n");
	fprintf(file->out, "\n%s", head);
	for (size_t i = 0; i < file->enums.n; i++)
		put_enum(file, &file->enums.p[i]);
	for (size_t i = 0; i < file->shapes.n; i++)
		bind_python_struct(file, file->shapes.p[i]);
	for (size_t i = 0; i < file->records.n; i++)
		put_record(file, &file->records.p[i]);
}
