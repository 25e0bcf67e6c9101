/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names as a language writes them
 *
 *	source       C             Rust          Java, TypeScript  Go           Python
 *	peer_port    get_peer_port peer_port     getPeerPort       PeerPort     get_peer_port
 *	             set_peer_port set_peer_port setPeerPort       SetPeerPort  set_peer_port
 *	RED          color_RED     color::RED    Color.RED         Color_RED    Color.RED
 *
 * A word of the language gets an underscore, and of two names that come out equal the later one
 * gets a number.
 */
#include "bind/walk.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- letters ---- */

char *bind_identifier(struct arena *arena, const char *name)
{
	char *id = arena_printf(arena, "%s%s", isdigit((unsigned char)name[0]) ? "_" : "", name);

	for (char *c = id; c && *c; c++)
		if (!isalnum((unsigned char)*c) || (unsigned char)*c >= 0x80)
			*c = '_';
	return id;
}

/* "PeerPort"; @first stands before a digit that would come first. */
static char *pascal_case(struct arena *arena, const char *name, char first)
{
	/* Room for the first letter and a later underscore. */
	char *pascal = arena_alloc(arena, strlen(name) + 3), *to = pascal;
	bool up = true;

	for (; pascal && *name; name++) {
		if (*name != '_')
			*to++ = up ? (char)toupper((unsigned char)*name) : *name;
		up = *name == '_';
	}
	if (pascal)
		*to = 0;
	if (pascal && (!pascal[0] || isdigit((unsigned char)pascal[0])))
		memmove(pascal + 1, pascal, strlen(pascal) + 1), pascal[0] = first;
	return pascal;
}

/* "peerPort"; of "MTU": "mtu", and of "HTTPPort": "httpPort". */
static char *lower_camel_case(struct arena *arena, const char *name)
{
	char *camel = pascal_case(arena, name, 'X');

	for (char *c = camel; c && isupper((unsigned char)*c); c++)
		if (c == camel || !islower((unsigned char)c[1]))
			*c = (char)tolower((unsigned char)*c);
		else
			break;
	return camel;
}

static bool begins_word(const char *name, const char *c)
{
	return c > name && isupper((unsigned char)*c) && !isupper((unsigned char)c[-1]) &&
	       c[-1] != '_';
}

/* "max_len" of "MaxLen", and no two underscores between words. */
static char *snake_case(struct arena *arena, const char *name)
{
	char *snake = arena_alloc(arena, 2 * strlen(name) + 2), *to = snake;

	for (const char *c = name; snake && *c; c++) {
		bool inside = c > name && c[strspn(c, "_")];

		if (begins_word(name, c))
			*to++ = '_';
		if (*c != '_' || !inside || to == snake || to[-1] != '_' ||
		    strspn(snake, "_") == (size_t)(to - snake))
			*to++ = (char)tolower((unsigned char)*c);
	}
	if (snake)
		*to = 0;
	/* A lone underscore is a pattern, and not a name. */
	if (snake && !snake[strspn(snake, "_")])
		*to++ = 'x', *to = 0;
	return snake;
}

static char *upper_snake_case(struct arena *arena, const char *name)
{
	bool has_lower = false;

	for (const char *c = name; *c; c++)
		has_lower |= islower((unsigned char)*c) != 0;
	char *upper = has_lower ? snake_case(arena, name) : arena_printf(arena, "%s", name);
	for (char *c = upper; c && *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return upper && !upper[strspn(upper, "_")] ? arena_printf(arena, "%sX", upper) : upper;
}

/* ---- words that are taken ---- */

static bool is_one_of(const char *name, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(*words, name))
			return true;
	return false;
}

/*
 * Names that the modules of a language use themselves, or words of the language: "String", "Self",
 * "Record".
 */
static const char *const top_words[] = {
	/* Rust */
	"Self",
	"Option",
	"Some",
	"None",
	"AsRef",
	"AsMut",
	"Result",
	"Ok",
	"Err",
	"Clone",
	"Copy",
	"Sized",
	/* Python */
	"Record",
	"True",
	"False",
	"ValueError",
	"IndexError",
	"OverflowError",
	/* Java */
	"Records",
	"String",
	"Object",
	"Objects",
	"Math",
	"Integer",
	"Long",
	"Byte",
	"Short",
	"Float",
	"Double",
	"Boolean",
	"Character",
	"System",
	"BigInteger",
	"ByteOrder",
	"GroupLayout",
	"MemoryLayout",
	"PathElement",
	"MemorySegment",
	"ValueLayout",
	"VarHandle",
	"StandardCharsets",
	"ExceptionInInitializerError",
	"IllegalArgumentException",
	"IndexOutOfBoundsException",
	"Override",
	/* TypeScript */
	"Array",
	"ArrayBuffer",
	"BigInt",
	"DataView",
	"Number",
	"Partial",
	"RangeError",
	"Readonly",
	"Symbol",
	"TextDecoder",
	"TextEncoder",
	"Uint8Array",
	NULL,
};

static const char *const rust_words[] = {
	"abstract",
	"as",
	"async",
	"await",
	"become",
	"box",
	"break",
	"const",
	"continue",
	"crate",
	"do",
	"dyn",
	"else",
	"enum",
	"extern",
	"false",
	"final",
	"fn",
	"for",
	"gen",
	"if",
	"impl",
	"in",
	"let",
	"loop",
	"macro",
	"match",
	"mod",
	"move",
	"mut",
	"override",
	"priv",
	"pub",
	"ref",
	"return",
	"self",
	"static",
	"struct",
	"super",
	"trait",
	"true",
	"try",
	"type",
	"typeof",
	"union",
	"unsafe",
	"unsized",
	"use",
	"virtual",
	"where",
	"while",
	"yield",
	/* Names that a type has besides its members, and the crate that it uses. */
	"new",
	"core",
	"std",
	NULL,
};

static const char *const python_words[] = {
	"False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
	"class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
	"from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
	"or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield",    NULL,
};

/* Names that an IntEnum has besides its members. */
/* clang-format off */
static const char *const int_enum_words[] = {
	"mro",	      "name",	   "value",	  "as_integer_ratio", "bit_length",
	"bit_count",  "conjugate", "denominator", "from_bytes",	      "imag",
	"is_integer", "numerator", "real",	  "to_bytes",	      NULL,
};
/* clang-format on */

static const char *const java_words[] = {
	"_",
	"abstract",
	"assert",
	"boolean",
	"break",
	"byte",
	"case",
	"catch",
	"char",
	"class",
	"const",
	"continue",
	"default",
	"do",
	"double",
	"else",
	"enum",
	"extends",
	"false",
	"final",
	"finally",
	"float",
	"for",
	"goto",
	"if",
	"implements",
	"import",
	"instanceof",
	"int",
	"interface",
	"long",
	"native",
	"new",
	"null",
	"package",
	"private",
	"protected",
	"public",
	"return",
	"short",
	"static",
	"strictfp",
	"super",
	"switch",
	"synchronized",
	"this",
	"throw",
	"throws",
	"transient",
	"true",
	"try",
	"void",
	"volatile",
	"while",
	/*
	 * Methods without parameters of every object, which a component of a record cannot have the
	 * name of.
	 */
	"clone",
	"finalize",
	"getClass",
	"hashCode",
	"notify",
	"notifyAll",
	"toString",
	"wait",
	NULL,
};

/* go vet checks the signatures of methods with these names. */
/* clang-format off */
static const char *const go_words[] = {
	"Format",    "GobDecode",     "GobEncode",    "MarshalJSON", "MarshalXML",
	"Peek",	     "ReadByte",      "ReadFrom",     "ReadRune",    "Scan",
	"Seek",	     "UnmarshalJSON", "UnmarshalXML", "UnreadByte",  "UnreadRune",
	"WriteByte", "WriteTo",	      "Error",	      "String",	     NULL,
};
/* clang-format on */

static const char *const typescript_words[] = {"constructor", "view", "__proto__", NULL};

static const char *const *words_of(enum cairn_bind_lang lang)
{
	static const char *const none[] = {NULL};

	switch (lang) {
	case CAIRN_BIND_RUST:
		return rust_words;
	case CAIRN_BIND_JAVA:
		return java_words;
	case CAIRN_BIND_PYTHON:
		return python_words;
	case CAIRN_BIND_GO:
		return go_words;
	case CAIRN_BIND_TYPESCRIPT:
		return typescript_words;
	case CAIRN_BIND_C:
	case CAIRN_BIND_JSON:
		break;
	}
	return none;
}

static const char *no_word(struct bind_file *file, enum cairn_bind_lang lang, const char *name)
{
	return name && is_one_of(name, words_of(lang)) ? arena_printf(&file->arena, "%s_", name)
						       : name;
}

char *bind_camel_case(struct arena *arena, const char *name)
{
	char *camel = pascal_case(arena, name, 'T');

	/* No other name ends in an underscore. */
	if (camel && is_one_of(camel, top_words))
		strcat(camel, "_");
	return camel;
}

/* ---- one name for one thing ---- */

static bool is_used(const struct map *names, const char *name)
{
	uint64_t number;

	return map_get(names, map_hash_str(name), &number);
}

/* The last number of a base name: the same base may come thousands of times. */
static uint64_t next_number(const struct map *names, const char *base)
{
	uint64_t number;

	return map_get(names, map_hash_str(base), &number) ? number : 2;
}

const char *bind_unique(struct arena *arena, struct map *names, const char *name)
{
	uint64_t next = next_number(names, name);
	const char *tried = name;

	while (tried && is_used(names, tried))
		tried = arena_printf(arena, "%s_%" PRIu64, name, next++);
	if (!tried || map_put(names, map_hash_str(name), next) < 0)
		return NULL;
	return tried == name || !map_put(names, map_hash_str(tried), 2) ? tried : NULL;
}

enum { DERIVED = 5 };

static int derive(struct arena *arena, const char *name, const char *ret[DERIVED])
{
	static const char *const forms[DERIVED][2] = {
		{"", ""}, {"New", ""}, {"", "Size"}, {"", "Struct"}, {"Read", "Struct"}};

	for (int i = 0; i < DERIVED; i++) {
		ret[i] = arena_printf(arena, "%s%s%s", forms[i][0], name, forms[i][1]);
		if (!ret[i])
			return -ENOMEM;
	}
	return 0;
}

static bool are_free(const struct map *names, const char *const *all, int n)
{
	for (int i = 0; i < n; i++)
		if (is_used(names, all[i]))
			return false;
	return true;
}

const char *bind_top_name(struct bind_file *file, const char *name)
{
	const char *all[DERIVED], *tried = name;
	uint64_t next = name ? next_number(&file->tops, name) : 0;

	if (!name || derive(&file->arena, name, all) < 0)
		return NULL;
	while (!are_free(&file->tops, all, DERIVED)) {
		tried = arena_printf(&file->arena, "%s%" PRIu64, name, next++);
		if (!tried || derive(&file->arena, tried, all) < 0)
			return NULL;
	}
	for (int i = 0; i < DERIVED; i++)
		if (map_put(&file->tops, map_hash_str(all[i]), 2) < 0)
			return NULL;
	return map_put(&file->tops, map_hash_str(name), next) < 0 ? NULL : tried;
}

/* ---- accessors ---- */

struct style {
	char *(*base)(struct arena *arena, const char *name);
	const char *get, *set; /* before it */
};

static char *same(struct arena *arena, const char *name)
{
	return arena_strdup(arena, name);
}

static char *pascal(struct arena *arena, const char *name)
{
	return pascal_case(arena, name, 'X');
}

/* The style of a class with properties: members in no array have one name for both. */
static struct style style_of(enum cairn_bind_lang lang, const struct bind_field *f)
{
	switch (lang) {
	case CAIRN_BIND_RUST:
		return (struct style){snake_case, "", "set_"};
	case CAIRN_BIND_JAVA:
		return (struct style){pascal, "get", "set"};
	case CAIRN_BIND_GO:
		return (struct style){pascal, "", "Set"};
	case CAIRN_BIND_TYPESCRIPT:
		return f->n_dims ? (struct style){pascal, "get", "set"}
				 : (struct style){lower_camel_case, "", ""};
	case CAIRN_BIND_C:
	case CAIRN_BIND_PYTHON:
	case CAIRN_BIND_JSON:
		break;
	}
	return (struct style){same, "get_", "set_"};
}

static int try_names(struct bind_file *file, enum cairn_bind_lang lang, const struct style *style,
		     const char *base, struct bind_field *f)
{
	/* "set__x" is no snake case. */
	const char *after_set = lang == CAIRN_BIND_RUST ? base + strspn(base, "_") : base;

	f->get = no_word(file, lang, arena_printf(&file->arena, "%s%s", style->get, base));
	f->set = no_word(file, lang, arena_printf(&file->arena, "%s%s", style->set, after_set));
	return f->get && f->set ? 0 : -ENOMEM;
}

/* Also the setter of one member and the getter of another: size_set of "size" and of "set_size". */
static int name_field(struct bind_file *file, enum cairn_bind_lang lang, struct map *names,
		      struct bind_field *f)
{
	struct style style = style_of(lang, f);
	const char *base = style.base(&file->arena, f->name);
	uint64_t next = base ? next_number(names, base) : 0;

	if (!base || try_names(file, lang, &style, base, f) < 0)
		return -ENOMEM;
	/* No two underscores between words. */
	const char *mid = base[0] && base[strlen(base) - 1] == '_' ? "" : "_";
	while (is_used(names, f->get) || is_used(names, f->set)) {
		const char *tried = arena_printf(&file->arena, "%s%s%" PRIu64, base, mid, next++);

		if (!tried || try_names(file, lang, &style, tried, f) < 0)
			return -ENOMEM;
	}
	if (map_put(names, map_hash_str(f->get), 2) < 0 ||
	    map_put(names, map_hash_str(f->set), 2) < 0)
		return -ENOMEM;
	return next > 2 ? map_put(names, map_hash_str(base), next) : 0;
}

static int name_record(struct bind_file *file, enum cairn_bind_lang lang, struct bind_record *r)
{
	struct map names = {0};
	int rc = 0;

	for (size_t i = 0; i < r->fields.n && !rc; i++)
		rc = name_field(file, lang, &names, &r->fields.p[i]);
	map_fini(&names);
	return rc;
}

/* ---- constants ---- */

/* Inside of a class, Python changes __name; and an Enum keeps _name_ for itself. */
static char *python_private(struct arena *arena, const char *name)
{
	size_t under = strspn(name, "_"), n = strlen(name);
	char *same = arena_strdup(arena, under > 1 && under < n ? name + under - 1 : name);

	if (same && same[0] == '_')
		for (size_t k = strlen(same); k > 1 && same[k - 1] == '_'; k--)
			same[k - 1] = 0;
	return same && !strcmp(same, "_") ? arena_strdup(arena, "X_") : same;
}

static const char *python_constant_name(struct bind_file *file, const char *id)
{
	const char *name = no_word(file, CAIRN_BIND_PYTHON, python_private(&file->arena, id));

	return name && is_one_of(name, int_enum_words) ? arena_printf(&file->arena, "%s_", name)
						       : name;
}

static const char *constant_name(struct bind_file *file, enum cairn_bind_lang lang,
				 const struct bind_enum *e, const char *name)
{
	const char *id = bind_identifier(&file->arena, name);

	if (!id)
		return NULL;
	switch (lang) {
	case CAIRN_BIND_C:
		return arena_printf(&file->arena, "%s_%s", e->name, id);
	case CAIRN_BIND_GO:
		return arena_printf(&file->arena, "%s_%s", e->camel, id);
	case CAIRN_BIND_RUST:
		return upper_snake_case(&file->arena, id);
	case CAIRN_BIND_PYTHON:
		return python_constant_name(file, id);
	case CAIRN_BIND_JAVA:
	case CAIRN_BIND_TYPESCRIPT:
	case CAIRN_BIND_JSON:
		break;
	}
	return no_word(file, lang, id);
}

const char *bind_part_name(struct bind_file *file, enum cairn_bind_lang lang, const char *name)
{
	struct arena *arena = &file->arena;

	switch (lang) {
	case CAIRN_BIND_RUST:
		return no_word(file, lang, snake_case(arena, name));
	case CAIRN_BIND_PYTHON:
		return no_word(file, lang, python_private(arena, name));
	case CAIRN_BIND_GO:
		return pascal(arena, name);
	case CAIRN_BIND_JAVA:
	case CAIRN_BIND_TYPESCRIPT:
		return no_word(file, lang, lower_camel_case(arena, name));
	case CAIRN_BIND_C:
	case CAIRN_BIND_JSON:
		break;
	}
	return arena_strdup(arena, name);
}

static int name_constants(struct bind_file *file, enum cairn_bind_lang lang, struct bind_enum *e)
{
	struct map names = {0};
	int rc = 0;

	for (uint32_t i = 0; i < e->n_constants && !rc; i++) {
		struct bind_constant *c = &e->constants[i];
		const char *name = constant_name(file, lang, e, c->source_name);

		c->name = name ? bind_unique(&file->arena, &names, name) : NULL;
		rc = c->name ? 0 : -ENOMEM;
	}
	map_fini(&names);
	return rc;
}

/* Modules are named in small letters, so Color and color would be one. */
static int name_module(struct bind_file *file, struct map *modules, struct bind_enum *e)
{
	const char *name = no_word(file, CAIRN_BIND_RUST, snake_case(&file->arena, e->name));

	e->module = name ? bind_unique(&file->arena, modules, name) : NULL;
	return e->module ? 0 : -ENOMEM;
}

int bind_name_all(struct bind_file *file, enum cairn_bind_lang lang)
{
	struct map modules = {0};
	int rc = 0;

	for (size_t i = 0; i < file->records.n && !rc; i++)
		rc = name_record(file, lang, &file->records.p[i]);
	for (size_t i = 0; i < file->enums.n && !rc; i++)
		rc = name_constants(file, lang, &file->enums.p[i]);
	for (size_t i = 0; i < file->enums.n && !rc; i++)
		rc = name_module(file, &modules, &file->enums.p[i]);
	map_fini(&modules);
	return rc;
}
