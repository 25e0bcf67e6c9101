/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/show/format.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/utf8.h"

/* ---- the text ---- */

struct reader {
	struct arena *arena;
	struct cairn_err *err;
	struct trace_format *format;
	const char *text;
	uint32_t at;
	uint32_t n_literal;
};

static int wrong(const struct reader *r, uint32_t at, const char *what)
{
	return probe_error(r->err, -EINVAL, r->text, at, "%s", what);
}

static const struct {
	const char *name;
	enum format_known known;
} known_names[] = {
	{"$time", FORMAT_TIME}, {"$delta", FORMAT_DELTA}, {"$pid", FORMAT_PID},
	{"$tid", FORMAT_TID},   {"$comm", FORMAT_COMM},   {"$func", FORMAT_FUNCTION},
	{"$site", FORMAT_SITE},
};

/* Names with a $ that expressions have. */
static bool is_fetched_name(const char *name)
{
	static const char *const names[] = {"$cpu", "$uid", "$gid", "$cgroup", "$ret", "$duration"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return !strncmp(name, "$arg", strlen("$arg"));
}

static int find_known(const struct reader *r, const struct probe_value_text *v,
		      enum format_known *ret)
{
	const char *name = v->expr->kind == EXPR_NAME ? v->expr->name : "";

	*ret = FORMAT_VALUE;
	for (size_t i = 0; i < sizeof(known_names) / sizeof(known_names[0]); i++)
		if (!strcmp(known_names[i].name, name))
			*ret = known_names[i].known;
	if (*ret && (v->as_string || v->hex))
		return wrong(r, v->expr->at, "it takes no :str and no :hex");
	if (*ret || name[0] != '$' || is_fetched_name(name))
		return 0;
	return probe_error(r->err, -EINVAL, r->text, v->expr->at,
			   "there is no %s; a format has $time, $delta, $pid, $tid, $comm, $func, "
			   "$site, $cpu, $uid, $gid, $cgroup, $ret and $duration",
			   name);
}

/* ---- specs ---- */

static bool is_align(char c)
{
	return c == '<' || c == '>' || c == '^' || c == '-';
}

/*
 * "[[fill]align]"; a fill is one character, and may be one of those for aligning. True if there is
 * a fill.
 */
static bool read_align(struct reader *r, struct format_spec *spec)
{
	const char *s = r->text + r->at;
	uint32_t c;
	size_t n = *s ? utf8_length((const uint8_t *)s, strlen(s), &c) : 0;

	spec->fill[0] = ' ';
	if (n && s[0] != '}' && is_align(s[n])) {
		memcpy(spec->fill, s, n);
		spec->fill[n] = 0;
	} else if (is_align(s[0])) {
		n = 0;
	} else {
		return false;
	}
	spec->align = s[n] == '-' ? '<' : s[n];
	r->at += (uint32_t)n + 1;
	return n != 0;
}

static bool take(struct reader *r, char c)
{
	bool is_there = r->text[r->at] == c;

	r->at += is_there;
	return is_there;
}

/* Digits; none is 0. */
static int read_size(struct reader *r, uint16_t *ret)
{
	enum { SIZE_MAX_SHOWN = 1000 };
	uint32_t from = r->at, n = 0;

	for (; isdigit((unsigned char)r->text[r->at]) && n <= SIZE_MAX_SHOWN; r->at++)
		n = n * 10 + (uint32_t)(r->text[r->at] - '0');
	*ret = (uint16_t)n;
	return n <= SIZE_MAX_SHOWN ? 0 : wrong(r, from, "a width is at most 1000");
}

static const char letters[] = "duxXobcsfeg";

static int read_type(struct reader *r, struct format_spec *spec)
{
	char c = r->text[r->at];

	if (c == '}')
		return 0;
	if (!c)
		return wrong(r, r->at, "a } is missing here");
	if (!strchr(letters, c) || r->text[r->at + 1] != '}')
		return wrong(r, r->at,
			     "not a format: it is [[FILL]<>^][+][#][0][WIDTH][.PRECISION] and one "
			     "of d u x X o b c s f e g");
	spec->type = c;
	r->at++;
	return 0;
}

static int read_spec(struct reader *r, struct format_spec *spec)
{
	bool has_fill;
	int e;

	spec->at = r->at;
	has_fill = read_align(r, spec);
	spec->has_plus = take(r, '+');
	spec->is_alternate = take(r, '#');
	spec->has_zero = take(r, '0');
	/* As in Python: after an alignment it is the fill. */
	if (spec->has_zero && spec->align && !has_fill)
		spec->fill[0] = '0';
	e = read_size(r, &spec->width);
	if (e == 0 && take(r, '.')) {
		spec->has_precision = true;
		if (!isdigit((unsigned char)r->text[r->at]))
			return wrong(r, r->at, "a precision is missing here");
		e = read_size(r, &spec->precision);
	}
	return e < 0 ? e : read_type(r, spec);
}

/* ":str" or ":hex"; false: something else comes. */
static bool read_modifier(struct reader *r, struct probe_value_text *v)
{
	const char *s = r->text + r->at;
	bool is_string = !strncmp(s, "str", 3), is_hex = !strncmp(s, "hex", 3);

	if ((!is_string && !is_hex) || (s[3] != ':' && s[3] != '}'))
		return false;
	v->as_string |= is_string;
	v->hex |= is_hex;
	r->at += 3;
	return true;
}

/*
 * The expression at r->at, and its modifiers: reading goes on at the spec, which is empty if there
 * is none.
 */
static int read_expression(struct reader *r, struct probe_value_text *v)
{
	bool goes_on;
	int e = probe_parse_field(r->arena, r->text, &r->at, v, r->err);

	if (e < 0)
		return e;
	do {
		if (r->text[r->at] != ':' && r->text[r->at] != '}')
			return wrong(r, r->at,
				     "a } is missing here, or a : with a format after it");
		goes_on = take(r, ':') && read_modifier(r, v);
	} while (goes_on && r->text[r->at] == ':');
	return 0;
}

static int read_field(struct reader *r)
{
	struct trace_format *f = r->format;
	struct format_field *field = &f->fields[f->n_fields];
	struct probe_value_text v = {0};
	int e;

	if (f->n_fields == FORMAT_FIELDS_MAX)
		return probe_error(r->err, -ERANGE, r->text, r->at, "more than %d fields",
				   FORMAT_FIELDS_MAX);
	field->at = ++r->at;
	e = read_expression(r, &v);
	e = e < 0 ? e : find_known(r, &v, &field->known);
	e = e < 0 ? e : read_spec(r, &field->spec);
	if (e < 0)
		return e;
	r->at++;
	f->n_fields++;
	f->needs_delta |= field->known == FORMAT_DELTA;
	return 0;
}

static const char escapes[] = "nt\\", escaped[] = "\n\t\\";

/* A character of the text, which a backslash or a second brace may stand before. */
static int read_literal(struct reader *r)
{
	const char *s = r->text + r->at;
	char c = *s;

	if (c == '}' && s[1] != '}')
		return wrong(r, r->at, "no { was opened; a } alone is written }}");
	if (c == '\\') {
		const char *known = s[1] ? strchr(escapes, s[1]) : NULL;
		if (!known)
			return wrong(r, r->at, "only \\n, \\t and \\\\ are known");
		c = escaped[known - escapes];
	}
	r->at += 1 + (*s == '\\' || c == '{' || c == '}');
	r->format->literal[r->n_literal++] = c;
	return 0;
}

/* Up to the next field, or the end. */
static int read_literals(struct reader *r, uint32_t *ret_from, uint32_t *ret_n)
{
	int e = 0;

	*ret_from = r->n_literal;
	while (e == 0 && r->text[r->at] && (r->text[r->at] != '{' || r->text[r->at + 1] == '{'))
		e = read_literal(r);
	*ret_n = r->n_literal - *ret_from;
	return e;
}

/* printf's fields would be printed as they are. */
static int check_printf(const struct reader *r)
{
	for (const char *s = strchr(r->text, '%'); s; s = strchr(s + 1, '%'))
		if (!r->format->n_fields &&
		    isalpha((unsigned char)s[1 + strspn(s + 1, "0123456789.-")]))
			return wrong(
				r, (uint32_t)(s - r->text),
				"a format has no fields of printf; write {EXPR}, or {EXPR:x} and "
				"the like");
	return 0;
}

int format_parse(struct arena *arena, const char *text, struct trace_format **ret,
		 struct cairn_err *err)
{
	struct trace_format *f = arena_alloc(arena, sizeof(*f));
	struct reader r = {.arena = arena, .err = err, .format = f, .text = text};
	int e = 0;

	if (strlen(text) > PROBE_TEXT_MAX)
		return err_set(err, -ERANGE, "a format of %zu characters; the limit is %d",
			       strlen(text), PROBE_TEXT_MAX);
	if (f) {
		f->text = r.text = arena_strdup(arena, text);
		f->literal = arena_alloc(arena, strlen(text) + 1);
	}
	if (!f || !f->text || !f->literal)
		return err_nomem(err, "a format");
	while (e == 0 && r.text[r.at]) {
		struct format_field *next = &f->fields[f->n_fields % FORMAT_FIELDS_MAX];
		uint32_t from, n;
		e = read_literals(&r, &from, &n);
		f->end_from = from;
		f->n_end = n;
		if (e < 0 || !r.text[r.at])
			break;
		e = read_field(&r);
		next->from = from;
		next->n_text = n;
		f->n_end = 0;
	}
	e = e < 0 ? e : check_printf(&r);
	if (e == 0)
		*ret = f;
	return e;
}

void format_free(struct trace_format *f)
{
	if (!f || !f->scratch)
		return;
	fclose(f->scratch);
	free(f->scratch_bytes);
}

/* ---- a probe's values ---- */

static bool is_same(const struct probe_value_text *a, const struct probe_value_text *b)
{
	return !strcmp(a->text, b->text) && a->as_string == b->as_string && a->hex == b->hex;
}

/* The number of the value, which is added if the probe does not have it. */
static int add_value(struct probe_text *text, const struct probe_value_text *v,
		     const struct trace_format *f, uint8_t *ret, struct cairn_err *err)
{
	uint32_t i = 0;

	while (i < text->n_values && !is_same(&text->values[i], v))
		i++;
	if (i == FETCH_VALUES_MAX)
		return probe_error(err, -ERANGE, f->text, v->expr->at,
				   "the probe and its format have more than %d values",
				   FETCH_VALUES_MAX);
	if (i == text->n_values)
		text->values[text->n_values++] = *v;
	*ret = (uint8_t)i;
	return 0;
}

static int add_field(struct cairn_trace *t, struct probe_text *text, uint32_t i,
		     struct cairn_err *err)
{
	const struct format_field *field = &t->format->fields[i];
	struct reader r = {
		.arena = &t->arena, .err = err, .text = t->format->text, .at = field->at};
	struct probe_value_text v = {0};
	int e = field->known ? 0 : read_expression(&r, &v);

	if (e < 0 || field->known)
		return e;
	v.is_of_format = true;
	return add_value(text, &v, t->format, &text->format_values[i], err);
}

int format_add_values(struct cairn_trace *t, struct probe_text *text, struct cairn_err *err)
{
	int e = 0;

	if (!text->values)
		text->values = arena_array(&t->arena, FETCH_VALUES_MAX, sizeof(*text->values));
	text->format_values = arena_alloc(&t->arena, t->format->n_fields + 1u);
	if (!text->values || !text->format_values)
		return err_nomem(err, "a format");
	text->has_list = true;
	for (uint32_t i = 0; i < t->format->n_fields && e == 0; i++)
		e = add_field(t, text, i, err);
	return e;
}

/* ---- fields and their values ---- */

static enum format_class class_of_type(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *type = cairn_types_get(types, cairn_types_resolve(types, id));

	if (type_is_char_array(types, id))
		return FORMAT_TEXT;
	switch (type->kind) {
	case CAIRN_T_INT:
		if (type->size > 8)
			return FORMAT_OTHER;
		return type->encoding <= CAIRN_ENC_SIGNED ? FORMAT_INT : FORMAT_NAMED;
	case CAIRN_T_ENUM:
		return type->size && type->size <= 8 ? FORMAT_NAMED : FORMAT_OTHER;
	case CAIRN_T_PTR:
		return FORMAT_POINTER;
	case CAIRN_T_FLOAT:
		return type->size == 4 || type->size == 8 ? FORMAT_FLOAT : FORMAT_OTHER;
	default:
		return FORMAT_OTHER;
	}
}

static enum format_class class_of(const struct trace_probe *p, const struct cairn_trace_value *v)
{
	if (v->is_string || v->is_bytes)
		return FORMAT_TEXT;
	if (v->is_number)
		return v->hex ? FORMAT_POINTER : FORMAT_INT;
	if (v->unit)
		return FORMAT_NAMED;
	return v->type ? class_of_type(p->pub.types, v->type) : FORMAT_POINTER;
}

static enum format_class class_of_known(enum format_known known)
{
	if (known == FORMAT_PID || known == FORMAT_TID)
		return FORMAT_INT;
	return known == FORMAT_TIME || known == FORMAT_DELTA ? FORMAT_NAMED : FORMAT_TEXT;
}

/* Why a type of a spec does not suit a value, with what does; NULL: it does. */
static const char *why_no_type(char type, enum format_class class)
{
	bool is_integer = class == FORMAT_INT || class == FORMAT_NAMED || class == FORMAT_POINTER;

	if (type == 's' && class == FORMAT_POINTER)
		return "it is a pointer: :str shows the string there, :x the address";
	if (type == 's' && class == FORMAT_FLOAT)
		return "it is a float: f, e or g";
	if (!type || type == 's')
		return NULL;
	if (strchr("feg", type) && class != FORMAT_FLOAT)
		return is_integer ? "it is an integer: d, u, x, X, o, b or c"
				  : "it is no float: write no letter, or s";
	if (strchr("feg", type) || is_integer)
		return NULL;
	return class == FORMAT_FLOAT ? "it is a float: f, e or g"
				     : "it is no integer: write no letter, or s";
}

static const char *why_no_spec(const struct format_spec *spec, enum format_class class)
{
	const char *why = why_no_type(spec->type, class);
	bool is_text = spec->type == 's' || class == FORMAT_TEXT || class == FORMAT_OTHER;

	if (why)
		return why;
	if (spec->has_precision && !is_text && class != FORMAT_FLOAT)
		return "a precision is for floats and text";
	if (!spec->type && class != FORMAT_INT && !is_text &&
	    (spec->has_plus || spec->is_alternate || spec->has_zero))
		return "+, # and 0 need a letter, as x or d, or f of a float";
	if (is_text && (spec->has_plus || spec->is_alternate || spec->has_zero))
		return "+, # and 0 are for numbers; a fill needs an alignment: 0>8";
	return NULL;
}

static int plan_field(const struct cairn_trace *t, const struct trace_probe *p, uint32_t i,
		      struct format_use *use, struct cairn_err *err)
{
	const struct format_field *field = &t->format->fields[i];
	const struct cairn_trace_value *v;
	const char *why;

	use->class = (uint8_t)class_of_known(field->known);
	if (!field->known) {
		use->value = p->text->format_values[i];
		v = &p->pub.values[use->value];
		use->class = (uint8_t)class_of(p, v);
		use->is_signed = v->is_number ? !v->is_unsigned
					      : v->type && type_is_signed(p->pub.types, v->type);
	}
	why = why_no_spec(&field->spec, use->class);
	return why ? probe_error(err, -EINVAL, t->format->text, field->spec.at, "%s", why) : 0;
}

int format_plan(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	uint32_t n = t->format->n_fields;
	struct format_use *uses = arena_array(&t->arena, n + 1u, sizeof(*uses));
	int e = uses ? 0 : err_nomem(err, "a format");

	for (uint32_t i = 0; i < n && e == 0; i++)
		e = plan_field(t, p, i, &uses[i], err);
	p->format = uses;
	return e;
}
