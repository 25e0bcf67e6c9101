/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifiers
 *
 * C has two name spaces at file scope: tags (struct, union and enum share one), and typedefs,
 * enumerators, functions and variables. BTF may hold several of one name in each. The first that is
 * printed has the name, the others get a suffix: "file", "file___2". libbpf's relocations ignore a
 * suffix of three underscores, so the program still finds the kernel's type.
 *
 *	FWD struct file, STRUCT file     one name: the first declares the type that the second
 *	                                 defines
 *	STRUCT file, STRUCT file         file, file___2
 *	UNION file                       file___3: "union file" would be another kind of the same
 *	                                 tag
 *
 * Names of C++ and Rust become identifiers: "std::vector<int>" is "std__vector_int_", and a comment
 * has the original.
 */
#include "btf/dump_c.h"

#include <ctype.h>
#include <inttypes.h>

#include "base/quote.h"
#include "base/search.h"

/*
 * Longer names are cut, in comments too: thousands of members may share one long string, and the
 * text would be of the size of their product. Templates of C++ have names of some hundreds.
 */
#define NAME_MAX_CHARS 2000

/* How many names were made of one. */
struct spelling {
	struct spelling *next; /* with the same hash */
	const char *name;
	uint32_t n;
};

/* A tag with its kind of tag. */
struct tag {
	struct tag *next;
	const char *original, *printed;
	const char *keyword;
	bool defined;
};

struct name_space {
	struct map by_hash; /* to struct spelling * */
};

struct c_names {
	struct arena *arena;
	struct name_space tags, ordinary;
	struct map tag_by_hash; /* to struct tag * */
};

struct c_names *c_names_new(struct arena *arena)
{
	struct c_names *names = arena_alloc(arena, sizeof(*names));

	if (names)
		names->arena = arena;
	return names;
}

void c_names_free(struct c_names *names)
{
	if (!names)
		return;
	map_fini(&names->tags.by_hash);
	map_fini(&names->ordinary.by_hash);
	map_fini(&names->tag_by_hash);
}

/* ---- words that C takes ---- */

/* The keywords of C11 with GNU's, and the names that compilers predefine. Sorted. */
/* clang-format off */
static const char *const words[] = {
	"_Accum", "_Alignas", "_Alignof", "_Atomic", "_BitInt", "_Bool", "_Complex", "_Decimal128",
	"_Decimal32", "_Decimal64", "_Float128", "_Float16", "_Float32", "_Float32x", "_Float64",
	"_Float64x", "_Fract", "_Generic", "_Imaginary", "_Nonnull", "_Noreturn",
	"_Null_unspecified", "_Nullable", "_Sat", "_Static_assert", "_Thread_local",
	"__FUNCTION__", "__PRETTY_FUNCTION__", "__alignof", "__alignof__", "__asm", "__asm__",
	"__attribute", "__attribute__", "__auto_type", "__bf16", "__complex", "__complex__",
	"__const", "__const__", "__extension__", "__float128", "__float80", "__fp16", "__func__",
	"__ibm128", "__imag", "__imag__", "__inline", "__inline__", "__int128", "__label__",
	"__null", "__real", "__real__", "__restrict", "__restrict__", "__signed", "__signed__",
	"__thread", "__typeof", "__typeof__", "__volatile", "__volatile__", "asm", "auto", "break",
	"case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
	"float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
	"short", "signed", "sizeof", "static", "struct", "switch", "typedef", "typeof", "union",
	"unsigned", "void", "volatile", "while",
};
/* clang-format on */

/*
 * New in C23, where programs may have an own thing of that name; these three would mean the same
 * anyway.
 */
static const char *const c23_meant[] = {"bool", "false", "true"};
/* clang-format off */
static const char *const c23_words[] = {
	"alignas",	 "alignof",	 "constexpr",	  "nullptr",
	"static_assert", "thread_local", "typeof_unqual",
};
/* clang-format on */

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

#define IS_ONE_OF(name, list) is_one_of(name, list, sizeof(list) / sizeof((list)[0]))

bool c_is_c23_word(const char *name)
{
	return IS_ONE_OF(name, c23_meant);
}

static bool is_word(const char *name)
{
	size_t n = sizeof(words) / sizeof(words[0]);
	size_t at = SEARCH(0, n, i, strcmp(words[i], name) < 0);

	return (at < n && !strcmp(words[at], name)) || IS_ONE_OF(name, c23_words);
}

static bool is_identifier(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	size_t n = strnlen(name, NAME_MAX_CHARS + 1);

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_')
			return false;
	return n <= NAME_MAX_CHARS;
}

/* An identifier that is like @name; @name itself when it is one. */
static const char *identifier(struct dump_c *d, const char *name)
{
	if (!*name)
		return "__unnamed";
	if (is_identifier(name) && !is_word(name))
		return name;
	bool digit = isdigit((unsigned char)*name);
	char *made = arena_printf(&d->arena, "%s%.*s%s", digit ? "_" : "", NAME_MAX_CHARS, name,
				  is_word(name) ? "_" : "");

	if (!made) {
		d->nomem = true;
		return "";
	}
	for (char *p = made; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	return made;
}

void c_put_quoted(FILE *out, const char *text)
{
	char cut[NAME_MAX_CHARS + 1];
	size_t n = strnlen(text, sizeof(cut));

	memcpy(cut, text, n);
	cut[n < sizeof(cut) ? n : NAME_MAX_CHARS] = 0;
	cairn_quote_put(cut, CAIRN_QUOTE_COMMENT, out);
	if (n == sizeof(cut))
		fputs("...", out);
}

void c_count_renamed(struct dump_c *d, const char *printed, const char *original)
{
	size_t n = strlen(original);

	/* A suffix keeps types of one name apart; the name is still there. */
	d->n_renamed += strncmp(printed, original, n) || strncmp(printed + n, "___", 3);
}

void c_put_original(struct dump_c *d, const char *printed, const char *original)
{
	if (!*original || !strcmp(printed, original))
		return;
	c_count_renamed(d, printed, original);
	fputs(" /* ", d->out);
	c_put_quoted(d->out, original);
	fputs(" */", d->out);
}

/* ---- name spaces ---- */

static struct spelling *spelling_of(struct dump_c *d, struct name_space *space, const char *name)
{
	uint64_t hash = map_hash_str(name), first = 0;

	map_get(&space->by_hash, hash, &first);
	for (struct spelling *s = (struct spelling *)(uintptr_t)first; s; s = s->next)
		if (!strcmp(s->name, name))
			return s;
	struct spelling *s = arena_alloc(&d->arena, sizeof(*s));

	if (!s)
		return NULL;
	s->name = name;
	s->next = (struct spelling *)(uintptr_t)first;
	return map_put(&space->by_hash, hash, (uintptr_t)s) < 0 ? NULL : s;
}

/* A name in @space that nothing has yet: @name, name___2, ... */
static const char *claim(struct dump_c *d, struct name_space *space, const char *name)
{
	struct spelling *s = spelling_of(d, space, name);

	while (s && s->n++) {
		char *other = arena_printf(&d->arena, "%s___%" PRIu32, name, s->n);
		struct spelling *made = other ? spelling_of(d, space, other) : NULL;

		if (!made) {
			s = NULL;
		} else if (!made->n) {
			made->n = 1;
			return other;
		}
	}
	if (!s)
		d->nomem = true;
	return s ? name : "";
}

const char *c_ordinary(struct dump_c *d, const char *name)
{
	return claim(d, &d->names->ordinary, identifier(d, name));
}

const char *c_scoped(struct dump_c *d, struct map *scope, const char *name)
{
	const char *plain = identifier(d, name), *made = plain;
	/* Two names of one hash are taken for one: one of them gets a suffix it did not need. */
	uint64_t hash = map_hash_str(plain), n = 0, taken;

	map_get(scope, hash, &n);
	while (n++ && made) {
		made = arena_printf(&d->arena, "%s___%" PRIu64, plain, n);
		if (made && !map_get(scope, map_hash_str(made), &taken))
			break;
	}
	if (made && !map_put(scope, hash, n) &&
	    (made == plain || !map_put(scope, map_hash_str(made), 1)))
		return made;
	d->nomem = true;
	return "";
}

/* ---- tags ---- */

const char *c_keyword(const struct cairn_btf_type *t)
{
	if (c_is_enum(t->kind))
		return "enum";
	bool is_union = t->kind == CAIRN_BTF_UNION || (t->kind == CAIRN_BTF_FWD && t->kflag);

	return is_union ? "union" : "struct";
}

static struct tag *tag_of(struct dump_c *d, const char *name, const char *keyword)
{
	uint64_t hash = map_hash_str(name) ^ (unsigned char)keyword[0], first = 0;

	map_get(&d->names->tag_by_hash, hash, &first);
	for (struct tag *tag = (struct tag *)(uintptr_t)first; tag; tag = tag->next)
		if (!strcmp(tag->original, name) && tag->keyword == keyword)
			return tag;
	struct tag *tag = arena_alloc(&d->arena, sizeof(*tag));

	if (!tag)
		return NULL;
	*tag = (struct tag){
		.next = (struct tag *)(uintptr_t)first, .original = name, .keyword = keyword};
	tag->printed = claim(d, &d->names->tags, identifier(d, name));
	return map_put(&d->names->tag_by_hash, hash, (uintptr_t)tag) < 0 ? NULL : tag;
}

/* The first definition of a name completes the FWDs of that name. */
static const char *tag_name(struct dump_c *d, const struct cairn_btf_type *t)
{
	struct tag *tag = tag_of(d, t->name, c_keyword(t));

	if (!tag) {
		d->nomem = true;
		return "";
	}
	if (t->kind == CAIRN_BTF_FWD)
		return tag->printed;
	if (tag->defined)
		return claim(d, &d->names->tags, identifier(d, t->name));
	tag->defined = true;
	return tag->printed;
}

static const char *made_name(struct dump_c *d, const struct cairn_btf_type *t)
{
	bool is_tag = c_is_struct(t->kind) || c_is_enum(t->kind) || t->kind == CAIRN_BTF_FWD;
	const char *stem = t->kind == CAIRN_BTF_FUNC_PROTO ? "__proto" : "__anon";
	char *name = arena_printf(&d->arena, "%s_%" PRIu32, stem, t->id);

	if (!name) {
		d->nomem = true;
		return "";
	}
	return claim(d, is_tag ? &d->names->tags : &d->names->ordinary, name);
}

const char *c_name(struct dump_c *d, const struct cairn_btf_type *t)
{
	struct c_type *c = &d->types[t->id];

	if (c->name)
		return c->name;
	if (!*t->name)
		c->name = made_name(d, t);
	else if (c_is_struct(t->kind) || c_is_enum(t->kind) || t->kind == CAIRN_BTF_FWD)
		c->name = tag_name(d, t);
	else
		c->name = c_ordinary(d, t->name);
	return c->name;
}
