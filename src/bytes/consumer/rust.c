/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rust
 *
 *	#[repr(C, packed(2))] struct Event { pid: u32, comm: [u8; 16], pos: Inner }
 *
 * repr(C) is C's layout; packed(N) is #pragma pack(N), align(N) raises. Without repr(C) the
 * compiler orders members as it likes, and the struct is a problem. An enum has a size only with
 * repr(u8) or similar, or repr(C): an int.
 */
#include <errno.h>
#include <string.h>

#include "consumer/impl.h"

static const struct scalar_name scalars[] = {
	{"u8", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED_CHAR},
	{"i8", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR},
	{"u16", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"i16", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"u32", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"i32", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"u64", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"i64", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"u128", CAIRN_C_INT128, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"i128", CAIRN_C_INT128, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"usize", CAIRN_C_PTR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"isize", CAIRN_C_PTR, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"f32", CAIRN_C_FLOAT, CAIRN_T_FLOAT, 0},
	{"f64", CAIRN_C_DOUBLE, CAIRN_T_FLOAT, 0},
	{"bool", CAIRN_C_BOOL, CAIRN_T_INT, CAIRN_ENC_BOOL},
	{"char", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_UTF},
	/* std::ffi, libc, aya's cty */
	{"c_char", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR},
	{"c_schar", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR},
	{"c_uchar", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED_CHAR},
	{"c_short", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"c_ushort", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"c_int", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"c_uint", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"c_long", CAIRN_C_LONG, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"c_ulong", CAIRN_C_LONG, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"c_longlong", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"c_ulonglong", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"c_float", CAIRN_C_FLOAT, CAIRN_T_FLOAT, 0},
	{"c_double", CAIRN_C_DOUBLE, CAIRN_T_FLOAT, 0},
	{"size_t", CAIRN_C_PTR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"ssize_t", CAIRN_C_PTR, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{0},
};

/* The #[repr] attributes read so far, for the next item. */
struct repr {
	bool c, transparent, packed;
	struct spot pack, aligned;
	struct token in; /* u32; n is 0 without it */
};

/* ---- types ---- */

static int parse_type(struct reader *r, struct form_type **ret);

/* Skips from after "<", which was read, to after ">". */
static int skip_arguments(struct reader *r)
{
	size_t depth = 1;
	int rc = 0;

	while (!rc && depth) {
		bool arrow = at_punct(r, '-');

		if (at_end(r))
			return complain(r, "expected '>', and here the text ends");
		if (at_punct(r, '(') || at_punct(r, '[') || at_punct(r, '{')) {
			rc = skip_group(r);
			continue;
		}
		depth += at_punct(r, '<');
		depth -= at_punct(r, '>');
		rc = read_token(r);
		if (!rc && arrow && at_punct(r, '>'))
			rc = read_token(r);
	}
	return rc;
}

/* clang-format off */
static const struct wrapper {
	const char *name;
	enum form form; /* NAME: the form that it wraps */
} wrappers[] = {
	{"MaybeUninit", FORM_NAME}, {"ManuallyDrop", FORM_NAME}, {"Cell", FORM_NAME},
	{"UnsafeCell", FORM_NAME},  {"Wrapping", FORM_NAME},	 {"NonNull", FORM_POINTER},
	{"Box", FORM_POINTER},	    {"AtomicPtr", FORM_POINTER}, {"PhantomData", FORM_EMPTY},
};
/* clang-format on */

/* AtomicU32 is a u32. */
/* clang-format off */
static const char *const atomics[][2] = {
	{"AtomicU8", "u8"},	  {"AtomicI8", "i8"},	  {"AtomicU16", "u16"},
	{"AtomicI16", "i16"},	  {"AtomicU32", "u32"},	  {"AtomicI32", "i32"},
	{"AtomicU64", "u64"},	  {"AtomicI64", "i64"},	  {"AtomicUsize", "usize"},
	{"AtomicIsize", "isize"}, {"AtomicBool", "bool"},
};
/* clang-format on */

/* The scalar; NULL: it is none of them. */
static const char *atomic_of(const struct token *name)
{
	for (size_t i = 0; i < sizeof(atomics) / sizeof(atomics[0]); i++)
		if (token_is(name, atomics[i][0]))
			return atomics[i][1];
	return NULL;
}

/* NAME<T>, at the T. An Option of a type that is never null has the same size. */
static int parse_wrapped(struct reader *r, const struct token *name, struct form_type **ret)
{
	struct form_type *inner = NULL;
	bool option = token_is(name, "Option");
	int rc = at_punct(r, '\'') ? 0 : parse_type(r, &inner);

	rc = rc ? rc : skip_arguments(r);
	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
		if (token_is(name, wrappers[i].name)) {
			*ret = wrappers[i].form == FORM_NAME ? inner
							     : new_form(r, wrappers[i].form, name);
			if (!*ret && inner)
				return -ENOMEM;
		}
	if (option && inner && inner->form == FORM_POINTER)
		*ret = inner;
	if (!*ret)
		*ret = new_form(r, FORM_UNKNOWN, name);
	return *ret ? 0 : -ENOMEM;
}

static int parse_path(struct reader *r, struct form_type **ret)
{
	struct token name = r->tok;
	int rc = read_token(r);

	while (!rc && at_punct(r, ':')) {
		rc = read_token(r);
		rc = rc ? rc : need_punct(r, ':');
		if (!rc && at_name(r)) {
			name = r->tok;
			rc = read_token(r);
		}
	}
	if (!rc && at_punct(r, '<')) {
		rc = read_token(r);
		return rc ? rc : parse_wrapped(r, &name, ret);
	}
	*ret = rc ? NULL : new_form(r, FORM_NAME, &name);
	if (*ret) {
		(*ret)->scalar = atomic_of(&name);
		(*ret)->is_atomic = (*ret)->scalar;
	}
	return rc ? rc : *ret ? 0 : -ENOMEM;
}

/* *const T, &'a mut T; a slice or str after it makes it two words. */
static int parse_pointer(struct reader *r, struct form_type **ret)
{
	struct form_type *to = NULL;
	struct token at = r->tok;
	int rc = read_token(r);

	if (!rc && at_punct(r, '\'')) {
		rc = read_token(r);
		rc = rc ? rc : read_token(r);
	}
	while (!rc && (at_word(r, "const") || at_word(r, "mut")))
		rc = read_token(r);
	bool fat = at_word(r, "str") || at_word(r, "dyn");
	rc = rc ? rc : parse_type(r, &to);
	if (rc)
		return rc;
	fat |= to->form == FORM_WORDS;
	*ret = new_form(r, fat ? FORM_WORDS : FORM_POINTER, &at);
	if (*ret)
		(*ret)->known = 2;
	return *ret ? 0 : -ENOMEM;
}

/* [T; N]; [T] is a slice */
static int parse_array(struct reader *r, struct form_type **ret)
{
	struct form_type *of = NULL;
	struct token at = r->tok;
	int rc = read_token(r);

	rc = rc ? rc : parse_type(r, &of);
	if (!rc && at_punct(r, ']')) {
		*ret = new_form(r, FORM_WORDS, &at);
		rc = *ret ? read_token(r) : -ENOMEM;
		return rc;
	}
	rc = rc ? rc : need_punct(r, ';');
	if (rc)
		return rc;
	*ret = array_of(r, of, spot_of(&r->tok), &at);
	rc = *ret ? skip_to_close(r) : -ENOMEM;
	return rc ? rc : need_punct(r, ']');
}

/* unsafe extern "C" fn(i32) -> T */
static int parse_function(struct reader *r, struct form_type **ret)
{
	struct token at = r->tok;
	int rc = 0;

	while (!rc && !at_punct(r, '(') && !at_end(r))
		rc = read_token(r);
	rc = rc ? rc : skip_group(r);
	if (!rc && at_punct(r, '-')) {
		rc = read_token(r);
		rc = rc ? rc : need_punct(r, '>');
		rc = rc ? rc : parse_type(r, ret);
	}
	if (rc)
		return rc;
	*ret = new_form(r, FORM_POINTER, &at);
	return *ret ? 0 : -ENOMEM;
}

static int parse_any_type(struct reader *r, struct form_type **ret)
{
	struct token at = r->tok;

	if (at_punct(r, '*') || at_punct(r, '&'))
		return parse_pointer(r, ret);
	if (at_punct(r, '['))
		return parse_array(r, ret);
	if (at_word(r, "fn") || at_word(r, "unsafe") || at_word(r, "extern"))
		return parse_function(r, ret);
	if (at_punct(r, ':')) {
		int rc = read_token(r);

		rc = rc ? rc : need_punct(r, ':');
		return rc ? rc : at_name(r) ? parse_path(r, ret) : complain(r, "expected a type");
	}
	if (at_word(r, "dyn") || at_word(r, "impl") || at_punct(r, '(') || at_punct(r, '!')) {
		int rc = at_punct(r, '(') ? skip_group(r) : read_token(r);

		*ret = rc ? NULL : new_form(r, FORM_UNKNOWN, &at);
		return rc ? rc : *ret ? 0 : -ENOMEM;
	}
	return at_name(r) ? parse_path(r, ret) : complain(r, "expected a type");
}

static int parse_type(struct reader *r, struct form_type **ret)
{
	int rc = enter_nesting(r);

	if (rc)
		return rc;
	rc = parse_any_type(r, ret);
	leave_nesting(r);
	return rc;
}

/* ---- attributes ---- */

static int parse_repr_word(struct reader *r, struct repr *to)
{
	struct token word;
	struct spot in = {0};
	int rc = need_name(r, &word);

	if (!rc && at_punct(r, '(')) {
		rc = read_token(r);
		in = spot_of(&r->tok);
		rc = rc ? rc : skip_to_close(r);
		rc = rc ? rc : read_token(r);
	}
	if (rc)
		return rc;
	if (token_is(&word, "C")) {
		to->c = true;
	} else if (token_is(&word, "transparent")) {
		to->transparent = true;
	} else if (token_is(&word, "align")) {
		to->aligned = in;
	} else if (token_is(&word, "packed")) {
		to->packed = !in.p;
		to->pack = in;
	} else {
		to->in = word;
	}
	return 0;
}

/* #[repr(C, packed)]; other attributes are skipped. */
static int parse_attribute(struct reader *r, struct repr *to)
{
	int rc = read_token(r);

	rc = rc < 0 ? rc : take_punct(r, '!');
	if (rc < 0 || !at_punct(r, '['))
		return rc < 0 ? rc : 0;
	rc = read_token(r);
	if (!rc && at_word(r, "repr")) {
		rc = read_token(r);
		rc = rc ? rc : need_punct(r, '(');
		while (!rc && !at_punct(r, ')')) {
			rc = parse_repr_word(r, to);
			if (!rc && !at_punct(r, ')'))
				rc = need_punct(r, ',');
		}
		rc = rc ? rc : read_token(r);
	}
	rc = rc ? rc : skip_to_close(r);
	return rc ? rc : need_punct(r, ']');
}

/* pub, pub(crate) */
static int skip_visibility(struct reader *r)
{
	int rc = take_word(r, "pub");

	if (rc > 0 && at_punct(r, '('))
		rc = skip_group(r);
	return rc < 0 ? rc : 0;
}

/* ---- items ---- */

static int parse_field(struct reader *r, struct declared *d, bool tuple)
{
	struct repr ignored = {0};
	struct token name = {.kind = TOKEN_NAME,
			     .p = r->tok.p,
			     .line_start = r->tok.line_start,
			     .file = r->tok.file};
	int rc = 0;

	while (!rc && at_punct(r, '#'))
		rc = parse_attribute(r, &ignored);
	rc = rc ? rc : skip_visibility(r);
	if (!rc && !tuple) {
		rc = need_name(r, &name);
		rc = rc ? rc : need_punct(r, ':');
	}
	if (rc)
		return rc;
	struct declared_member *m = add_member(r, d, &name);
	/* Members of tuples are called by their number. */
	if (m && tuple)
		m->name = arena_printf(r->arena, "%zu", d->members.n - 1);
	if (!m || !m->name)
		return -ENOMEM;
	m->at.line = name.line ? name.line : r->tok.line;
	size_t i = d->members.n - 1;
	struct form_type *type = NULL;
	rc = parse_type(r, &type);
	d->members.p[i].type = type;
	return rc;
}

static int parse_fields(struct reader *r, struct declared *d)
{
	bool tuple = at_punct(r, '(');
	int close = tuple ? ')' : '}', rc = read_token(r);

	while (!rc && !at_punct(r, close)) {
		rc = parse_field(r, d, tuple);
		if (!rc && !at_punct(r, close))
			rc = need_punct(r, ',');
	}
	return rc ? rc : read_token(r);
}

/* <T, const N: usize> and the text between a name and the body. */
static int parse_generics(struct reader *r, struct declared *d)
{
	int rc = 0;

	if (at_punct(r, '<')) {
		rc = read_token(r);
		if (!rc && !at_punct(r, '\''))
			d->why_not = "a generic type has no layout of its own";
		rc = rc ? rc : skip_arguments(r);
	}
	while (!rc && !at_punct(r, '{') && !at_punct(r, '(') && !at_punct(r, ';') &&
	       !at_punct(r, '=') && !at_end(r))
		rc = read_token(r);
	return rc;
}

static int parse_record(struct reader *r, bool is_union, const struct repr *repr)
{
	struct declared *d;
	int rc = declare_next(r, is_union ? DECLARED_UNION : DECLARED_STRUCT, &d);

	if (rc)
		return rc;
	d->packed = repr->packed;
	d->pack = repr->pack;
	d->aligned = repr->aligned;
	if (!repr->c && !repr->transparent)
		d->why_not = "without #[repr(C)] Rust does not define the members' offsets";
	rc = parse_generics(r, d);
	if (!rc && (at_punct(r, '{') || at_punct(r, '(')))
		rc = parse_fields(r, d);
	return rc;
}

static int parse_variant(struct reader *r, struct declared *d)
{
	struct repr ignored = {0};
	struct declared_value v = {0};
	struct token name;
	int rc = 0;

	while (!rc && at_punct(r, '#'))
		rc = parse_attribute(r, &ignored);
	rc = rc ? rc : need_name(r, &name);
	if (!rc && (at_punct(r, '(') || at_punct(r, '{'))) {
		d->why_not = "an enum whose variants have fields";
		rc = skip_group(r);
	}
	if (!rc && at_punct(r, '=')) {
		rc = read_token(r);
		v.value = spot_of(&r->tok);
		while (!rc && !at_punct(r, ',') && !at_punct(r, '}') && !at_end(r))
			rc = at_punct(r, '(') ? skip_group(r) : read_token(r);
	}
	if (rc)
		return rc;
	v.name = copy_token(r, &name);
	return v.name && VEC_ADD(&d->values, v) ? 0 : err_nomem(r->err, "enumerators");
}

static int parse_enum(struct reader *r, const struct repr *repr)
{
	struct declared *d;
	int rc = declare_next(r, DECLARED_ENUM, &d);

	if (rc)
		return rc;
	if (repr->in.n)
		d->type = new_form(r, FORM_NAME, &repr->in);
	if (repr->in.n && !d->type)
		return -ENOMEM;
	if (!repr->in.n && !repr->c)
		d->why_not =
			"without #[repr(u32)] or similar Rust does not define the size of an enum";
	rc = parse_generics(r, d);
	rc = rc ? rc : need_punct(r, '{');
	while (!rc && !at_punct(r, '}')) {
		rc = parse_variant(r, d);
		if (!rc && !at_punct(r, '}'))
			rc = need_punct(r, ',');
	}
	return rc ? rc : read_token(r);
}

/* type NAME = T; */
static int parse_alias(struct reader *r)
{
	struct declared *d;
	int rc = declare_next(r, DECLARED_ALIAS, &d);

	if (rc)
		return rc;
	rc = parse_generics(r, d);
	if (rc || !at_punct(r, '=')) {
		/* An associated type. */
		d->why_not = "no type";
		return rc;
	}
	rc = read_token(r);
	return rc ? rc : parse_type(r, &d->type);
}

/* const NAME: T = N; */
static int parse_const(struct reader *r)
{
	struct form_type *type = NULL;
	struct token name;
	int rc = read_token(r);

	/* const fn, const _, *const T */
	if (rc || !at_name(r) || at_word(r, "fn") || at_word(r, "unsafe") || at_word(r, "extern"))
		return rc;
	rc = need_name(r, &name);
	if (rc || !at_punct(r, ':'))
		return rc;
	rc = read_token(r);
	rc = rc ? rc : parse_type(r, &type);
	if (rc || !at_punct(r, '='))
		return rc;
	struct declared *d = declare(r, DECLARED_CONST, &name);
	rc = d ? read_token(r) : -ENOMEM;
	if (!rc)
		d->value = spot_of(&r->tok);
	return rc;
}

/* At a word that may begin an item; 1: it did not. */
static int parse_item(struct reader *r, const struct repr *repr)
{
	bool is_union = at_word(r, "union"), is_enum = at_word(r, "enum"),
	     is_alias = at_word(r, "type");

	if (at_word(r, "const"))
		return parse_const(r);
	if (!is_union && !is_enum && !is_alias && !at_word(r, "struct"))
		return 1;
	int rc = read_token(r);
	/* "union" is an ordinary identifier unless a name follows. */
	if (rc || !at_name(r))
		return rc;
	if (is_enum)
		return parse_enum(r, repr);
	return is_alias ? parse_alias(r) : parse_record(r, is_union, repr);
}

static int parse(struct reader *r)
{
	struct repr repr = {0};
	int rc = 0;

	while (!rc && !at_end(r)) {
		if (at_punct(r, '#')) {
			rc = parse_attribute(r, &repr);
		} else if (at_word(r, "pub")) {
			rc = skip_visibility(r);
		} else {
			rc = at_name(r) ? parse_item(r, &repr) : 1;
			repr = (struct repr){0};
			rc = rc > 0 ? read_token(r) : rc;
		}
	}
	return rc;
}

const struct language rust_language = {
	.id = CAIRN_LANG_RUST,
	.name = "Rust",
	.suffix = ".rs",
	.parse = parse,
	.place = place_as_c,
	.scalars = scalars,
	.line_comment = '/',
	.nested_comments = true,
};
