/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of expressions
 *
 * A path (names, members, dereferences) has a type of the graph and is fetched or loaded from its
 * location. Everything else is arithmetic with C's rules: types smaller than int become int, the
 * operands of an operator are converted to the larger of their types, and unsigned wins among
 * equals. So "n == -1" with an unsigned n means the same as in C. A comparison of a char pointer or
 * array with a string literal compares the strings. This is not C, but it is what the user means.
 */
#include "trace/expr.h"

#include <errno.h>
#include <string.h>

#include "base/near.h"

struct check {
	const struct cairn_types *types;
	struct cairn_sites *sites;
	const struct cairn_function *function;
	const char *text;
	const char *part_of;
	const char *no_returns;
	struct cairn_err *err;
};

#define WRONG(c, e, ...) probe_error((c)->err, -EINVAL, (c)->text, (e)->at, __VA_ARGS__)

static const struct cairn_type *resolved(const struct cairn_types *types, uint32_t id)
{
	return cairn_types_get(types, cairn_types_resolve(types, id));
}

static bool is_pointer(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_PTR || t->kind == CAIRN_T_REF || t->kind == CAIRN_T_RREF;
}

static bool is_reference(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_REF || t->kind == CAIRN_T_RREF;
}

static bool is_record(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION;
}

/*
 * Plain char: signed char and unsigned char are integers, as int8_t and uint8_t are made of them.
 */
static bool is_char(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = resolved(types, id);

	return t->kind == CAIRN_T_INT && t->size == 1 && t->name && !strcmp(t->name, "char");
}

bool expr_may_be_string(const struct expr_scope *scope, const struct expr *e)
{
	const struct cairn_types *types = scope->types;
	const struct cairn_type *type = cairn_types_get(types, cairn_types_resolve(types, e->type));
	bool is_word = scope->is_usdt && type->kind == CAIRN_T_INT && type->size == 8;

	if (e->special == EXPR_DURATION)
		return false;
	return e->is_address || (!e->bit_size && (is_word || type->kind == CAIRN_T_PTR ||
						  type->kind == CAIRN_T_ARRAY));
}

bool type_is_char_pointer(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = resolved(types, id);

	return t->kind == CAIRN_T_PTR && is_char(types, t->ref);
}

bool type_is_char_array(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = resolved(types, id);

	return t->kind == CAIRN_T_ARRAY && is_char(types, t->ref);
}

bool type_is_signed(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = resolved(types, id);

	/* An enumeration may say it itself or through its underlying type. */
	if (t->kind == CAIRN_T_ENUM && t->ref && t->encoding == CAIRN_ENC_UNSIGNED)
		t = resolved(types, t->ref);
	return (t->kind == CAIRN_T_INT || t->kind == CAIRN_T_ENUM) &&
	       (t->encoding == CAIRN_ENC_SIGNED || t->encoding == CAIRN_ENC_SIGNED_CHAR);
}

static const char *type_text(const struct check *c, uint32_t id, char *buf, size_t size)
{
	cairn_types_name(c->types, id, buf, size);
	return buf;
}

/* Types are read as far as their names; this reads the inside of one. */
static int complete(const struct check *c, uint32_t id)
{
	return c->sites ? cairn_sites_complete_type(c->sites, id, c->err) : 0;
}

static int complete_enums(const struct check *c)
{
	/* Completing one may add types, which then are complete. */
	uint32_t n = cairn_types_n_types(c->types);

	for (uint32_t id = 0; id < n; id++) {
		const struct cairn_type *t = cairn_types_get(c->types, id);
		int r = t->kind == CAIRN_T_ENUM && t->unread ? complete(c, id) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* The enumerator @name of any enum in the graph; *@clash when two of that name differ. */
static bool find_enumerator(const struct check *c, const char *name, int64_t *ret, bool *clash)
{
	bool found = false;

	*clash = false;
	for (uint32_t id = 0; id < cairn_types_n_types(c->types); id++) {
		const struct cairn_type *t = cairn_types_get(c->types, id);
		for (uint32_t i = 0; t->kind == CAIRN_T_ENUM && i < t->n_enumerators; i++) {
			const struct cairn_enumerator *e = &t->enumerators[i];
			if (!e->name || strcmp(e->name, name))
				continue;
			*clash |= found && e->value != *ret;
			*ret = e->value;
			found = true;
		}
	}
	return found;
}

static bool word_constant(const char *name, int64_t *ret)
{
	*ret = !strcmp(name, "true");
	return *ret || !strcmp(name, "false") || !strcmp(name, "NULL") || !strcmp(name, "nullptr");
}

static void list_params(const struct check *c, char *buf, size_t size)
{
	size_t n = 0;

	for (uint32_t i = 0; i < c->function->n_params && n < size; i++) {
		const char *name = c->function->params[i].name;
		int more = snprintf(buf + n, size - n, "%s%s", i ? ", " : "",
				    name ? name : "(unnamed)");
		n += more > 0 ? (size_t)more : 0;
	}
	if (!c->function->n_params)
		snprintf(buf, size, "none");
}

static bool is_of_return(const char *name)
{
	return !strcmp(name, "$ret") || !strcmp(name, "$duration");
}

/* What is known only when the function returns. */
static int check_of_return(const struct check *c, struct expr *e)
{
	const struct cairn_function *f = c->function;
	bool is_result = !strcmp(e->name, "$ret");

	if (c->no_returns)
		return WRONG(c, e, "%s is not known: %s", e->name, c->no_returns);
	e->is_path = true;
	e->special = is_result ? EXPR_RETURN : EXPR_DURATION;
	e->is_address = !is_result;
	e->type = is_result ? f->return_type : 0;
	if (is_result && f->params_unknown)
		return WRONG(c, e, "the type of the result of %s is not known", f->name);
	if (is_result && (!e->type || resolved(c->types, e->type)->kind == CAIRN_T_VOID))
		return WRONG(c, e, "%s returns nothing: it is void", f->name);
	return 0;
}

static int check_name(const struct check *c, struct expr *e)
{
	char params[300];
	int64_t value;
	bool clash;

	for (uint32_t i = 0; i < c->function->n_params; i++) {
		const char *name = c->function->params[i].name;
		if (!name || strcmp(name, e->name))
			continue;
		e->is_path = true;
		e->param = i;
		e->type = c->function->params[i].type;
		return 0;
	}
	if (word_constant(e->name, &value)) {
		e->kind = EXPR_INT;
		e->value = (uint64_t)value;
		return 0;
	}
	if (is_of_return(e->name))
		return check_of_return(c, e);
	if (!strncmp(e->name, "$arg", strlen("$arg"))) {
		list_params(c, params, sizeof(params));
		return WRONG(c, e, "%s has no %s; it has: %s", c->function->name, e->name, params);
	}
	if (e->name[0] == '$')
		return WRONG(c, e, "%s can only be a key of --by, alone", e->name);
	int r = complete_enums(c);
	if (r < 0)
		return r;
	if (!find_enumerator(c, e->name, &value, &clash)) {
		if (c->function->params_unknown)
			return WRONG(c, e, "the parameters of %s are not known: %s",
				     c->function->name,
				     c->function->decl_file
					     ? "it is assembler code, or compiled with -g1"
					     : "only the symbol table knows it");
		list_params(c, params, sizeof(params));
		return WRONG(c, e, "%s has no parameter %s; it has: %s", c->function->name, e->name,
			     params);
	}
	if (clash)
		return WRONG(c, e, "two enums have an enumerator %s with different values",
			     e->name);
	e->kind = EXPR_INT;
	e->value = (uint64_t)value;
	e->is_long = value < INT32_MIN || value > INT32_MAX;
	return 0;
}

static int check_path(const struct check *c, struct expr *e);

/* The type that a pointer or reference points to. */
static int pointee(const struct check *c, const struct expr *e, const struct expr *a, uint32_t *ret)
{
	char name[120];
	const struct cairn_type *t = resolved(c->types, a->type);

	if (a->is_address || (!is_pointer(t) && t->kind != CAIRN_T_ARRAY))
		return WRONG(c, e, "%s is not a pointer",
			     a->special      ? a->name
			     : a->is_address ? "an address"
					     : type_text(c, a->type, name, sizeof(name)));
	*ret = t->ref;
	return 0;
}

/* Members shown when one is not there: near ones, or else the first. */
#define MEMBERS_SHOWN 6

static int no_member(const struct check *c, const struct expr *e, const struct cairn_type *t,
		     const char *type)
{
	struct near_names near = {.max = MEMBERS_SHOWN};
	char list[240] = "";
	size_t n = 0;

	for (uint32_t i = 0; i < t->n_members; i++)
		if (t->members[i].name)
			near_offer(&near, t->members[i].name,
				   near_rank(e->name, t->members[i].name));
	bool any_near = near.n > 0;
	for (uint32_t i = 0; !any_near && i < t->n_members && near.n < MEMBERS_SHOWN; i++)
		if (t->members[i].name)
			near.names[near.n++] = t->members[i].name;
	for (size_t i = 0; i < near.n && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
				      near.names[i]);
	if (!near.n)
		return WRONG(c, e, "%s has no member %s", type, e->name);
	return WRONG(c, e, "%s has no member %s; %s: %s%s", type, e->name,
		     any_near ? "perhaps you mean" : "it has", list,
		     !any_near && t->n_members > MEMBERS_SHOWN ? ", ..." : "");
}

static int check_member(const struct check *c, struct expr *e)
{
	char name[120];
	uint32_t in;
	struct cairn_member m;
	int r = check_path(c, e->a);

	if (r < 0)
		return r;
	in = e->a->type;
	if (e->kind == EXPR_ARROW || (!e->a->is_address && is_reference(resolved(c->types, in)))) {
		r = pointee(c, e, e->a, &in);
		if (r < 0)
			return r;
		/* "a.x" of a reference is "a->x". */
		e->kind = EXPR_ARROW;
	}
	r = complete(c, in);
	if (r < 0)
		return r;
	const struct cairn_type *t = resolved(c->types, in);
	type_text(c, in, name, sizeof(name));
	if (!is_record(t))
		return WRONG(c, e, is_pointer(t) ? "%s is a pointer: use ->" : "%s has no members",
			     name);
	if (t->declaration)
		return WRONG(c, e, "%s is only declared in the debug information", name);
	if (!cairn_types_member(c->types, in, e->name, &m))
		return no_member(c, e, t, name);
	if (m.dynamic)
		return WRONG(c, e, "%s of %s: offset not known", e->name, name);
	if (t->byte_swapped && resolved(c->types, m.type)->kind == CAIRN_T_ENUM)
		return WRONG(c, e,
			     "enums of %s are stored in the other byte order; only the struct as a "
			     "whole can be shown",
			     name);
	e->type = m.type;
	e->bit_off = m.bit_off;
	e->bit_size = m.bit_size;
	return 0;
}

static int check_index(const struct check *c, struct expr *e)
{
	char name[120];
	bool negative = e->b->kind == EXPR_MINUS;
	struct expr *constant = negative ? e->b->a : e->b;
	uint32_t element = 0;
	int r = check_path(c, e->a);

	if (r == 0 && constant->kind == EXPR_NAME)
		r = check_name(c, constant);
	if (r == 0 && constant->kind != EXPR_INT)
		r = WRONG(c, constant, "an index must be a constant");
	if (r == 0)
		r = pointee(c, e, e->a, &element);
	if (r < 0)
		return r;
	r = complete(c, element);
	if (r < 0)
		return r;
	int64_t index = negative ? -(int64_t)constant->value : (int64_t)constant->value;
	uint64_t size = cairn_types_size(c->types, element);
	const struct cairn_type *t = resolved(c->types, e->a->type);
	if (!size)
		return WRONG(c, e, "the size of %s is not known",
			     type_text(c, element, name, sizeof(name)));
	if (t->kind == CAIRN_T_ARRAY &&
	    (index < 0 || (t->has_count && t->count && (uint64_t)index >= t->count)))
		return WRONG(c, constant, "the array has %s",
			     cairn_counted(t->count, "element").text);
	if (__builtin_mul_overflow(index, (int64_t)size, &e->byte_off) || e->byte_off > INT32_MAX ||
	    e->byte_off < INT32_MIN)
		return WRONG(c, constant, "this index is too large");
	e->type = element;
	return 0;
}

static int check_path(const struct check *c, struct expr *e)
{
	int r;

	e->is_path = true;
	switch (e->kind) {
	case EXPR_NAME:
		r = check_name(c, e);
		if (r == 0 && e->kind != EXPR_NAME)
			return WRONG(c, e, "%s is a constant", e->name);
		return r;
	case EXPR_MEMBER:
	case EXPR_ARROW:
		return check_member(c, e);
	case EXPR_INDEX:
		return check_index(c, e);
	case EXPR_DEREF:
		r = check_path(c, e->a);
		return r < 0 ? r : pointee(c, e, e->a, &e->type);
	case EXPR_ADDRESS:
		r = check_path(c, e->a);
		if (r == 0 && (e->a->is_address || e->a->bit_size))
			return WRONG(c, e, "this has no address");
		e->is_address = true;
		return r;
	default:
		return WRONG(c, e, "only parameters with -> . [] * and & can be fetched");
	}
}

static struct check check_in(const struct expr_scope *scope, struct cairn_err *err)
{
	return (struct check){.types = scope->types,
			      .sites = scope->sites,
			      .function = scope->function,
			      .text = scope->text,
			      .part_of = scope->part_of ? scope->part_of : "a condition",
			      .no_returns = scope->no_returns,
			      .err = err};
}

int expr_type_path(const struct expr_scope *scope, struct expr *e, struct cairn_err *err)
{
	struct check c = check_in(scope, err);
	int r = check_path(&c, e);

	return r < 0 || e->is_address ? r : complete(&c, e->type);
}

/* The arithmetic type of a path: an integer, an enumeration, a bool, a pointer, a bit-field. */
static int path_arithmetic(const struct check *c, struct expr *e)
{
	char name[120];
	const struct cairn_type *t;

	if (e->is_address) {
		e->is_long = e->is_unsigned = true;
		return 0;
	}
	t = resolved(c->types, e->type);
	if (is_reference(t))
		return WRONG(c, e, "a reference; write * before it to compare its target");
	if (is_pointer(t) || t->kind == CAIRN_T_ARRAY || t->kind == CAIRN_T_UNSPECIFIED) {
		e->is_long = e->is_unsigned = true;
		return 0;
	}
	if ((t->kind != CAIRN_T_INT && t->kind != CAIRN_T_ENUM) || !t->size || t->size > 8)
		return WRONG(c, e, "%s cannot be part of %s",
			     type_text(c, e->type, name, sizeof(name)), c->part_of);
	if (t->byte_swapped)
		return WRONG(c, e, "%s is stored in the other byte order, and cannot be part of %s",
			     type_text(c, e->type, name, sizeof(name)), c->part_of);
	bool is_signed = type_is_signed(c->types, e->type);
	uint64_t bits = e->bit_size ? e->bit_size : t->size * 8;
	e->is_long = bits > 32;
	/* Types smaller than int fit int. */
	e->is_unsigned = !is_signed && bits >= 32;
	return 0;
}

static int check_condition(const struct check *c, struct expr *e);

static bool is_comparison(enum fetch_code op)
{
	return op >= FETCH_EQ && op <= FETCH_GE;
}

/* @text is the char pointer or array, @literal the string. */
static int check_string(const struct check *c, struct expr *e, struct expr *text,
			struct expr *literal)
{
	if (e->op != FETCH_EQ && e->op != FETCH_NE)
		return WRONG(c, e, "strings can only be compared with == and !=");
	if (literal->n_bytes + 1 >= FETCH_STREQ_BYTES)
		return WRONG(c, literal, "strings in conditions have at most %d characters",
			     FETCH_STREQ_BYTES - 2);
	int r = check_path(c, text);
	if (r < 0)
		return r;
	if (text->is_address || (!type_is_char_pointer(c->types, text->type) &&
				 !type_is_char_array(c->types, text->type)))
		return WRONG(c, text, "this is not a string");
	if (literal == e->a) {
		e->a = text;
		e->b = literal;
	}
	e->is_string = true;
	return 0;
}

static int check_binary(const struct check *c, struct expr *e)
{
	if (e->b->kind == EXPR_STRING)
		return check_string(c, e, e->a, e->b);
	if (e->a->kind == EXPR_STRING)
		return check_string(c, e, e->b, e->a);
	int r = check_condition(c, e->a);
	if (r == 0)
		r = check_condition(c, e->b);
	if (r < 0 || is_comparison(e->op))
		return r;
	if (e->op == FETCH_SHL || e->op == FETCH_SHR) {
		e->is_long = e->a->is_long;
		e->is_unsigned = e->a->is_unsigned;
		return 0;
	}
	e->is_long = e->a->is_long || e->b->is_long;
	e->is_unsigned = (e->a->is_unsigned && e->a->is_long == e->is_long) ||
			 (e->b->is_unsigned && e->b->is_long == e->is_long);
	return 0;
}

static int check_unary(const struct check *c, struct expr *e)
{
	int r = check_condition(c, e->a);

	if (e->kind == EXPR_NOT)
		return r;
	e->is_long = e->a->is_long;
	e->is_unsigned = e->a->is_unsigned;
	return r;
}

static int check_condition(const struct check *c, struct expr *e)
{
	int r;

	switch (e->kind) {
	case EXPR_INT:
		return 0;
	case EXPR_STRING:
		return WRONG(c, e, "a string can only be compared with == and !=");
	case EXPR_NAME:
		r = check_name(c, e);
		if (r < 0 || e->kind == EXPR_INT)
			return r;
		return path_arithmetic(c, e);
	case EXPR_MEMBER:
	case EXPR_ARROW:
	case EXPR_INDEX:
	case EXPR_DEREF:
	case EXPR_ADDRESS:
		r = check_path(c, e);
		return r < 0 ? r : path_arithmetic(c, e);
	case EXPR_MINUS:
	case EXPR_INVERT:
	case EXPR_NOT:
		return check_unary(c, e);
	case EXPR_BINARY:
		return check_binary(c, e);
	case EXPR_AND:
	case EXPR_OR:
		r = check_condition(c, e->a);
		return r < 0 ? r : check_condition(c, e->b);
	}
	return 0;
}

int expr_type_condition(const struct expr_scope *scope, struct expr *e, struct cairn_err *err)
{
	struct check c = check_in(scope, err);

	return check_condition(&c, e);
}

const struct expr *expr_with_jumps(const struct expr *e)
{
	const struct expr *found = NULL;

	if (!e || e->is_path)
		return NULL;
	if (e->kind == EXPR_AND || e->kind == EXPR_OR || e->is_string)
		return e;
	found = expr_with_jumps(e->a);
	return found ? found : expr_with_jumps(e->b);
}
