/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Python: ctypes, and formats of the module struct (format.c)
 *
 *	class Event(ctypes.Structure):
 *	    _pack_ = 1
 *	    _fields_ = [("pid", c_uint32), ("comm", c_char * 16), ("flag", c_uint8, 3)]
 *
 *	EVENT = struct.Struct("<IQ16s")
 *
 * A name may be bound to anything (pid_t = c_int32, N = 16), so every "NAME = ..." at the beginning
 * of a line is kept as an expression, and becomes a type or a number when it is used as one.
 *
 * ctypes lays out as C does, except for bit-fields before Python 3.14. A bit-field that does not
 * fit into the rest of the last unit opens a new one, and one of a larger type may widen the open
 * unit. Its own algorithm, which Debian 12's 3.11 has, is below; if C's result differs, that is
 * reported.
 */
#include <errno.h>
#include <string.h>

#include "consumer/impl.h"
#include "layout/place.h"

static const struct scalar_name scalars[] = {
	{"c_bool", CAIRN_C_BOOL, CAIRN_T_INT, CAIRN_ENC_BOOL},
	{"c_char", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR},
	{"c_byte", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR},
	{"c_ubyte", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED_CHAR},
	{"c_int8", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR},
	{"c_uint8", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED_CHAR},
	{"c_short", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"c_ushort", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"c_int16", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"c_uint16", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"c_int", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"c_uint", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"c_int32", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"c_uint32", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"c_long", CAIRN_C_LONG, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"c_ulong", CAIRN_C_LONG, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"c_longlong", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"c_ulonglong", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"c_int64", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"c_uint64", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"c_size_t", CAIRN_C_PTR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"c_ssize_t", CAIRN_C_PTR, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"c_float", CAIRN_C_FLOAT, CAIRN_T_FLOAT, 0},
	{"c_double", CAIRN_C_DOUBLE, CAIRN_T_FLOAT, 0},
	{"c_longdouble", CAIRN_C_LDOUBLE, CAIRN_T_FLOAT, 0},
	{"c_void_p", CAIRN_C_PTR, CAIRN_T_PTR, 0},
	{"c_char_p", CAIRN_C_PTR, CAIRN_T_PTR, 0},
	{"c_wchar_p", CAIRN_C_PTR, CAIRN_T_PTR, 0},
	{"py_object", CAIRN_C_PTR, CAIRN_T_PTR, 0},
	{0},
};

/* Names in _anonymous_: each is looked for among the fields. */
enum { ANONYMOUS_MAX = 64 };

static size_t column_of(const struct token *t)
{
	return (size_t)(t->p - t->line_start);
}

/* ---- types ---- */

/* a.b.c: the last name; a __ctype_be__ after it is a byte order. */
static int parse_dotted(struct reader *r, struct token *ret, bool *ret_big, bool *ret_little)
{
	int rc = need_name(r, ret);

	while (!rc && at_punct(r, '.')) {
		struct token part;

		rc = read_token(r);
		rc = rc ? rc : need_name(r, &part);
		if (rc)
			break;
		*ret_big |= token_is(&part, "__ctype_be__");
		*ret_little |= token_is(&part, "__ctype_le__");
		if (!token_is(&part, "__ctype_be__") && !token_is(&part, "__ctype_le__"))
			*ret = part;
	}
	return rc;
}

/* POINTER(T), CFUNCTYPE(...), or a name. */
static int parse_primary(struct reader *r, struct form_type **ret)
{
	struct token name = r->tok;
	bool big = false, little = false;
	int rc = parse_dotted(r, &name, &big, &little);

	if (rc)
		return rc;
	if (at_punct(r, '(') && !r->begins_line) {
		bool pointer = token_is(&name, "POINTER") || token_is(&name, "CFUNCTYPE") ||
			       token_is(&name, "PYFUNCTYPE");

		rc = skip_group(r);
		*ret = rc ? NULL : new_form(r, pointer ? FORM_POINTER : FORM_UNKNOWN, &name);
		return rc ? rc : *ret ? 0 : -ENOMEM;
	}
	*ret = new_form(r, FORM_NAME, &name);
	if (!*ret)
		return -ENOMEM;
	(*ret)->is_swapped = r->abi->big_endian ? little : big;
	return 0;
}

/* One factor of a length: 16, N, (A + B) */
static int skip_factor(struct reader *r)
{
	int rc = at_punct(r, '(') ? skip_group(r) : read_token(r);

	while (!rc && at_punct(r, '.')) {
		rc = read_token(r);
		rc = rc ? rc : read_token(r);
	}
	return rc;
}

/* c_char * 16 * 2 is two of sixteen. */
static int parse_type(struct reader *r, struct form_type **ret)
{
	int rc = enter_nesting(r);

	if (rc)
		return rc;
	if (at_punct(r, '(')) {
		rc = read_token(r);
		rc = rc ? rc : parse_type(r, ret);
		rc = rc ? rc : need_punct(r, ')');
	} else {
		rc = at_name(r) ? parse_primary(r, ret) : complain(r, "expected a type");
	}
	unsigned int dimensions = 0;
	while (!rc && at_punct(r, '*')) {
		struct token at = r->tok;

		/* Each is looked at by a call of its own later. */
		if (++dimensions > 16)
			rc = complain(r, "an array of more than 16 dimensions");
		rc = rc ? rc : read_token(r);
		if (rc)
			break;
		struct spot count = spot_of(&r->tok);
		rc = skip_factor(r);
		*ret = rc ? NULL : array_of(r, *ret, count, &at);
		rc = rc ? rc : *ret ? 0 : -ENOMEM;
		/* The length alone: the rest is not multiplied with it. */
		if (!rc)
			(*ret)->one_factor = true;
	}
	leave_nesting(r);
	return rc;
}

/* ---- _fields_ ---- */

/* ("name", type, bits) */
static int parse_field(struct reader *r, struct declared *d)
{
	int close = at_punct(r, '(') ? ')' : ']';
	int rc = at_punct(r, '(') || at_punct(r, '[')
			 ? read_token(r)
			 : complain(r, "expected a field: (name, type)");
	struct form_type *type = NULL;
	struct token name = r->tok;
	const char *p;
	size_t n;

	if (rc)
		return rc;
	if (name.kind != TOKEN_STRING)
		return complain(r, "expected the name of a field as a string");
	string_body(&r->tok, &p, &n);
	name.p = p;
	name.n = n;
	name.kind = TOKEN_NAME;
	struct declared_member *m = add_member(r, d, &name);
	if (!m)
		return -ENOMEM;
	size_t at = d->members.n - 1;
	rc = read_token(r);
	rc = rc ? rc : need_punct(r, ',');
	rc = rc ? rc : parse_type(r, &type);
	if (rc)
		return rc;
	d->members.p[at].type = type;
	for (; d->swapped && type; type = type->of)
		type->is_swapped = true;
	if (at_punct(r, ',')) {
		rc = read_token(r);
		if (!rc && !at_punct(r, close))
			d->members.p[at].bits = spot_of(&r->tok);
		rc = rc ? rc : skip_to_close(r);
	}
	return rc ? rc : need_punct(r, close);
}

static int parse_fields(struct reader *r, struct declared *d)
{
	int rc = at_punct(r, '[') || at_punct(r, '(') ? read_token(r) : 1;

	/* Made by code: its form is not known. */
	if (rc > 0) {
		d->why_not = "its _fields_ are computed";
		return 0;
	}
	while (!rc && !at_punct(r, ']') && !at_punct(r, ')')) {
		rc = parse_field(r, d);
		if (!rc && !at_punct(r, ']') && !at_punct(r, ')'))
			rc = need_punct(r, ',');
	}
	rc = rc ? rc : read_token(r);
	if (!rc && (at_punct(r, '+') || (at_name(r) && !r->begins_line)))
		d->why_not = "its _fields_ are computed";
	return rc;
}

/* _anonymous_ = ("u",); the fields of that name, which may come later. */
static int parse_anonymous(struct reader *r, struct declared *d)
{
	int rc = at_punct(r, '(') || at_punct(r, '[') ? read_token(r) : 0;

	for (; !rc && r->tok.kind == TOKEN_STRING; rc = rc                       ? rc
							: take_punct(r, ',') < 0 ? -EBADMSG
										 : 0) {
		struct declared_value v = {0};
		const char *p;
		size_t n;

		string_body(&r->tok, &p, &n);
		v.name = arena_strndup(r->arena, p, n);
		if (!v.name || (d->values.n < ANONYMOUS_MAX && !VEC_ADD(&d->values, v)))
			return err_nomem(r->err, "fields");
		rc = read_token(r);
	}
	if (!rc && (at_punct(r, ')') || at_punct(r, ']')))
		rc = read_token(r);
	return rc;
}

/* Parses after "_pack_ =" and similar words. */
static int parse_attribute(struct reader *r, struct declared *d, const struct token *name)
{
	if (token_is(name, "_fields_"))
		return parse_fields(r, d);
	if (token_is(name, "_anonymous_"))
		return parse_anonymous(r, d);
	if (token_is(name, "_pack_"))
		d->pack = spot_of(&r->tok);
	if (token_is(name, "_align_"))
		d->aligned = spot_of(&r->tok);
	if (token_is(name, "_layout_") && r->tok.kind == TOKEN_STRING)
		d->ms = r->tok.n == 4 && !memcmp(r->tok.p + 1, "ms", 2);
	return 0;
}

/* ---- statements ---- */

static const struct base {
	const char *name;
	enum declared_kind kind;
	char endian; /* B, L; 0: the machine's */
} bases[] = {
	{"Structure", DECLARED_STRUCT, 0},
	{"BigEndianStructure", DECLARED_STRUCT, 'B'},
	{"LittleEndianStructure", DECLARED_STRUCT, 'L'},
	{"Union", DECLARED_UNION, 0},
	{"BigEndianUnion", DECLARED_UNION, 'B'},
	{"LittleEndianUnion", DECLARED_UNION, 'L'},
};

/* (ctypes.Structure); NULL: none of ctypes'. */
static int parse_bases(struct reader *r, const struct base **ret)
{
	int rc = at_punct(r, '(') ? read_token(r) : 0;

	*ret = NULL;
	while (!rc && !at_punct(r, ')') && !at_punct(r, ':') && !at_end(r)) {
		for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++)
			if (at_word(r, bases[i].name))
				*ret = &bases[i];
		rc = at_punct(r, '(') || at_punct(r, '[') ? skip_group(r) : read_token(r);
	}
	if (!rc && at_punct(r, ')'))
		rc = read_token(r);
	return rc ? rc : need_punct(r, ':');
}

static int parse_statement(struct reader *r, struct declared *in);

/* At the word class; the body is the lines with more indentation. */
static int parse_class(struct reader *r)
{
	struct token name, word = r->tok;
	struct declared *d = NULL;
	const struct base *base;
	int rc = read_token(r);

	rc = rc ? rc : need_name(r, &name);
	rc = rc ? rc : parse_bases(r, &base);
	rc = rc ? rc : enter_nesting(r);
	if (rc)
		return rc;
	if (base) {
		d = declare(r, base->kind, &name);
		rc = d ? 0 : -ENOMEM;
	}
	if (d && base->endian)
		d->swapped = (base->endian == 'B') != r->abi->big_endian;
	while (!rc && !at_end(r) && !(r->begins_line && column_of(&r->tok) <= column_of(&word)))
		rc = parse_statement(r, d);
	leave_nesting(r);
	return rc;
}

/* struct.Struct("..."): parses after the name, if it is one. */
static int parse_format_call(struct reader *r, const struct token *name)
{
	struct token part;
	bool big = false, little = false;
	int rc = parse_dotted(r, &part, &big, &little);

	if (rc || !token_is(&part, "Struct") || !at_punct(r, '('))
		return rc;
	rc = read_token(r);
	if (rc || r->tok.kind != TOKEN_STRING)
		return rc;
	struct declared *d = declare(r, DECLARED_STRUCT, name);
	if (!d)
		return -ENOMEM;
	d->at = r->tok;
	string_body(&r->tok, &d->format, &d->format_n);
	return read_token(r);
}

static bool is_format_name(const struct token *name)
{
	for (size_t i = 0; i + 3 <= name->n; i++)
		if (!strncasecmp(name->p + i, "fmt", 3) ||
		    (i + 6 <= name->n && !strncasecmp(name->p + i, "format", 6)))
			return true;
	return false;
}

/* NAME = expression: a struct format, or kept for when it is used. */
static int parse_assignment(struct reader *r, const struct token *name)
{
	struct spot value = spot_of(&r->tok);
	struct declared *d;

	if (r->tok.kind == TOKEN_STRING && is_format_name(name)) {
		d = declare(r, DECLARED_STRUCT, name);
		if (!d)
			return -ENOMEM;
		d->at = r->tok;
		string_body(&r->tok, &d->format, &d->format_n);
		return read_token(r);
	}
	if (at_word(r, "struct") || at_word(r, "Struct"))
		return parse_format_call(r, name);
	/* A value that cannot be a type is a number or nothing. */
	d = declare(r, at_name(r) || at_punct(r, '(') ? DECLARED_ALIAS : DECLARED_CONST, name);
	if (!d)
		return -ENOMEM;
	d->value = value;
	return 0;
}

/* NAME = ..., NAME._fields_ = ..., class NAME; anything else is gone over one token at a time. */
static int parse_statement(struct reader *r, struct declared *in)
{
	struct token name = r->tok, attribute;
	struct declared *d = in;
	int rc;

	if (at_word(r, "class") && r->begins_line)
		return parse_class(r);
	if (!at_name(r) || !r->begins_line)
		return at_punct(r, '(') || at_punct(r, '[') || at_punct(r, '{') ? skip_group(r)
										: read_token(r);
	rc = read_token(r);
	attribute = name;
	if (!rc && at_punct(r, '.')) {
		d = find_declared(r, name.p, name.n);
		rc = read_token(r);
		if (!rc && at_name(r)) {
			attribute = r->tok;
			rc = read_token(r);
		}
	}
	if (rc || !at_punct(r, '='))
		return rc;
	rc = read_token(r);
	if (rc || at_punct(r, '='))
		return rc;
	if (attribute.p[0] == '_' && attribute.n > 2 && attribute.p[attribute.n - 1] == '_')
		return d && (d->kind == DECLARED_STRUCT || d->kind == DECLARED_UNION)
			       ? parse_attribute(r, d, &attribute)
			       : 0;
	return attribute.p == name.p ? parse_assignment(r, &name) : 0;
}

static void mark_anonymous(struct declared *d)
{
	for (size_t i = 0; i < d->members.n; i++)
		for (size_t k = 0; k < d->values.n; k++)
			if (d->members.p[i].name &&
			    !strcmp(d->members.p[i].name, d->values.p[k].name))
				d->members.p[i].anonymous = true;
}

static int parse(struct reader *r)
{
	int rc = 0;

	while (!rc && !at_end(r))
		rc = parse_statement(r, NULL);
	for (size_t i = 0; i < r->decls.n && !rc; i++)
		mark_anonymous(r->decls.p[i]);
	return rc;
}

/* ---- placing ---- */

/* ctypes before 3.14: the unit that is open, in bits. */
struct unit {
	uint64_t size, used;
};

/*
 * A field counts from the position where a value of its own type would end together with the unit.
 * If the field is smaller than the unit, this position is after its reserved bits, and ctypes reads
 * other bits than it wrote. This is reported.
 */
static void place_bits(struct unit *u, struct cairn_place_member *m, uint64_t *next,
		       uint32_t *align)
{
	uint32_t wanted = *align;
	uint64_t bits = 8 * m->size;

	/* Only a field that opens a unit raises the alignment of the struct. */
	*align = 1;
	if (u->size && bits <= u->size && u->used + m->width <= u->size) {
		/* goes on in the unit */
	} else if (u->size && bits >= u->size && u->used + m->width <= bits) {
		*next += m->size - u->size / 8;
		u->size = bits;
	} else {
		*next = round_up(*next, *align = wanted) + m->size;
		*u = (struct unit){.size = bits};
	}
	m->bit_off = 8 * (*next - m->size) + u->used;
	u->used += m->width;
}

static int place_old(struct reader *r, struct declared *d, struct cairn_place_record *rec)
{
	uint64_t next = 0, end = 0;
	struct unit u = {0};

	rec->align = rec->aligned ? rec->aligned : 1;
	for (size_t i = 0; i < rec->n_members; i++) {
		struct cairn_place_member *m = &rec->members[i];
		uint32_t align = rec->pack && rec->pack < m->align ? rec->pack : m->align;

		if (rec->is_union) {
			next = 0;
			u = (struct unit){0};
		}
		if (m->bit_field) {
			place_bits(&u, m, &next, &align);
		} else {
			u = (struct unit){0};
			next = round_up(next, align);
			m->bit_off = 8 * next;
			next += m->size;
		}
		end = max_u64(end, next);
		rec->align = align > rec->align ? align : rec->align;
		if (end > CAIRN_LAYOUT_SIZE_MAX)
			return complain_at(r, &d->at, -EBADMSG, "larger than 2^40 bytes");
	}
	rec->size = round_up(end, rec->align);
	return 0;
}

/* The layout of C, and so of 3.14: reported when it differs. */
static int compare_with_c(struct reader *r, struct declared *d,
			  const struct cairn_place_record *rec)
{
	struct cairn_place_member *copy = arena_array(r->arena, rec->n_members + 1, sizeof(*copy));
	struct cairn_place_record c = *rec;
	struct cairn_err why = {0}, *outer = r->err;
	bool differs;

	if (!copy)
		return err_nomem(r->err, "members");
	memcpy(copy, rec->members, rec->n_members * sizeof(*copy));
	c.members = copy;
	if (cairn_layout_place(r->abi, &c, NULL) < 0)
		return 0;
	differs = c.size != rec->size;
	for (size_t i = 0; i < rec->n_members; i++)
		differs |= copy[i].bit_off != rec->members[i].bit_off;
	if (!differs)
		return 0;
	r->err = &why;
	complain_at(r, &d->at, -EBADMSG,
		    "Python 3.14 and later lay %s out with other offsets for its bit-fields",
		    d->name);
	r->err = outer;
	return note_problem(r, d, why.msg, true);
}

static int place(struct reader *r, struct declared *d, struct cairn_place_record *rec)
{
	bool bit_fields = false;
	int rc;

	for (size_t i = 0; i < rec->n_members; i++)
		bit_fields |= rec->members[i].bit_field;
	if (bit_fields && d->swapped)
		return complain_at(r, &d->at, -EBADMSG,
				   "bit-fields in another byte order are not known here");
	if (!bit_fields || rec->ms_struct)
		return place_as_c(r, d, rec);
	rc = place_old(r, d, rec);
	return rc ? rc : compare_with_c(r, d, rec);
}

const struct language python_language = {
	.id = CAIRN_LANG_PYTHON,
	.name = "Python",
	.suffix = ".py",
	.parse = parse,
	.place = place,
	.scalars = scalars,
	.parse_type = parse_type,
	.line_comment = '#',
};
