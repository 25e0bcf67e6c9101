/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of expressions
 *
 * A path (names, members, dereferences) has a type of the graph and is fetched or loaded from its
 * location. Everything else is arithmetic with C's rules: types smaller than int become int, the
 * operands of an operator are converted to the larger of their types, and unsigned wins among
 * equals. So "n == -1" with an unsigned n means the same as in C. Numbers that are added to a
 * pointer count elements. A comparison of a char pointer or array with a string literal compares
 * the strings. This is not C, but it is what the user means.
 *
 * A number that is a pointer, as "p + 1" or "(struct rec *)p", may stand where a path may: before
 * -> and [], and after *.
 */
#include "trace/expr/expr.h"
#include "trace/expr/global.h"

#include <errno.h>
#include <string.h>

#include <cairn/text.h>

#include "base/near.h"

struct check {
	const struct expr_scope *scope;
	const struct cairn_types *types;
	struct cairn_sites *sites;
	const struct cairn_function *function;
	const char *text;
	const char *part_of;
	const char *no_returns;
	struct cairn_err *err;
};

#define WRONG(c, e, ...) probe_error((c)->err, -EINVAL, (c)->text, (e)->at, __VA_ARGS__)

static int check_condition(const struct check *c, struct expr *e);
static int check_truth(const struct check *c, struct expr *e);

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

	if (e->special == EXPR_DURATION)
		return false;
	if (!e->is_path)
		return e->is_pointer || e->is_long;
	if (e->is_address)
		return true;
	const struct cairn_type *type = cairn_types_get(types, cairn_types_resolve(types, e->type));
	bool is_word = scope->has_words && type->kind == CAIRN_T_INT && type->size == 8;
	return !e->bit_size &&
	       (is_word || type->kind == CAIRN_T_PTR || type->kind == CAIRN_T_ARRAY);
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

static bool is_param(const struct check *c, const char *name)
{
	for (uint32_t i = 0; i < c->function->n_params; i++)
		if (c->function->params[i].name && !strcmp(c->function->params[i].name, name))
			return true;
	return false;
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
	if (is_result && f->params_unknown && !e->type)
		return WRONG(c, e, "the type of the result of %s is not known", f->name);
	if (is_result && (!e->type || resolved(c->types, e->type)->kind == CAIRN_T_VOID))
		return WRONG(c, e, "%s returns nothing: it is void", f->name);
	return 0;
}

static int no_known(const struct check *c, const struct expr *e)
{
	static const char *const all[] = {"$pid", "$tid",    "$comm", "$cpu",     "$uid",
					  "$gid", "$cgroup", "$ret",  "$duration"};
	struct near_names near = {.max = 1};

	if (!strcmp(e->name, "$site") || !strcmp(e->name, "$caller"))
		return WRONG(c, e, "%s is a key of --by, alone", e->name);
	if (!strcmp(e->name, "$stack"))
		return WRONG(c, e,
			     "$stack is a key of --by, alone; --stack shows it under each event");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		near_offer(&near, all[i], near_rank(e->name, all[i]));
	if (near.n)
		return WRONG(c, e, "there is no %s; perhaps you mean %s", e->name, near.names[0]);
	return WRONG(
		c, e,
		"there is no %s here; there are $pid, $tid, $comm, $cpu, $uid, $gid, $cgroup%s",
		e->name, c->no_returns ? "" : ", $ret and $duration");
}

/* What the kernel knows of the thread that hits a probe. */
static int check_known(const struct check *c, struct expr *e)
{
	static const char *const names[FETCH_N_KNOWN] = {
		[FETCH_PID] = "$pid", [FETCH_TID] = "$tid", [FETCH_CPU] = "$cpu",
		[FETCH_UID] = "$uid", [FETCH_GID] = "$gid", [FETCH_CGROUP] = "$cgroup",
	};

	for (unsigned int i = 0; i < FETCH_N_KNOWN; i++) {
		if (!names[i] || strcmp(names[i], e->name))
			continue;
		e->kind = EXPR_KNOWN;
		e->value = i;
		e->is_unsigned = true;
		e->is_long = i == FETCH_CGROUP;
		return 0;
	}
	if (!strcmp(e->name, "$comm"))
		return WRONG(c, e, "$comm is a string: compare it with == and !=");
	return no_known(c, e);
}

/* By its name, or by its number: $arg1 is the first one. */
static bool is_param_name(const struct check *c, uint32_t i, const char *name)
{
	const char *own = c->function->params[i].name;
	char number[16];

	snprintf(number, sizeof(number), "$arg%u", i + 1);
	return (own && !strcmp(own, name)) || !strcmp(number, name);
}

static bool find_param(const struct check *c, struct expr *e)
{
	for (uint32_t i = 0; i < c->function->n_params && !e->scopes; i++) {
		if (!is_param_name(c, i, e->name))
			continue;
		e->is_path = true;
		e->param = i;
		e->type = c->function->params[i].type;
		return true;
	}
	return false;
}

/* A name with scopes, or without parameters to list. */
static int no_variable(const struct check *c, const struct expr *e)
{
	uint64_t size;

	if (e->scopes && c->sites)
		return WRONG(c, e, "there is no variable %s::%s", e->scopes, e->name);
	if (global_has_symbol(c->scope, e->name, &size))
		return WRONG(c, e,
			     "%s is a symbol of %s, whose type only the debug information would "
			     "have",
			     e->name, cairn_counted(size, "byte").text);
	return WRONG(c, e,
		     "variables of files can be named where the function has debug information");
}

static int unknown_name(const struct check *c, const struct expr *e)
{
	char params[300];
	uint64_t size;

	if (e->scopes || global_has_symbol(c->scope, e->name, &size))
		return no_variable(c, e);
	if (c->function->params_unknown)
		return WRONG(c, e,
			     "the parameters of %s are not known: %s; $arg1 to $arg6 are the "
			     "registers that integers and pointers are passed in",
			     c->function->name,
			     c->function->decl_file ? "it is assembler code, or compiled with -g1"
						    : "only the symbol table knows it");
	list_params(c, params, sizeof(params));
	return WRONG(c, e, "%s has no parameter %s; it has: %s", c->function->name, e->name,
		     params);
}

/* In a function of a class its members hide the variables of files. */
static int refuse_member(const struct check *c, const struct expr *e)
{
	const struct cairn_function *f = c->function;
	struct cairn_member m;

	if (e->scopes || !f->n_params || !f->params[0].name || strcmp(f->params[0].name, "this"))
		return 0;
	const struct cairn_type *this = resolved(c->types, f->params[0].type);
	uint32_t class = this->ref;
	if (!is_pointer(this) || !is_record(resolved(c->types, class)))
		return 0;
	int r = complete(c, class);
	if (r < 0 || !cairn_types_member(c->types, class, e->name, &m))
		return r;
	return WRONG(c, e, "%s is a member: write this->%s", e->name, e->name);
}

static int check_global(const struct check *c, struct expr *e)
{
	const struct site_global *global = NULL;
	int r = refuse_member(c, e);

	if (r == 0)
		r = global_find(c->scope, e, &global, c->err);

	if (r <= 0)
		return r < 0 ? r : unknown_name(c, e);
	e->is_path = true;
	e->global = global;
	e->type = global->type;
	return 0;
}

/* An enumerator of the types that parameters lead to, or a variable of a file. */
static int check_other_name(const struct check *c, struct expr *e)
{
	int64_t value;
	bool clash;
	int r = e->scopes ? 0 : complete_enums(c);

	if (r < 0)
		return r;
	if (e->scopes || !find_enumerator(c, e->name, &value, &clash))
		return check_global(c, e);
	if (clash)
		return WRONG(c, e, "two enums have an enumerator %s with different values",
			     e->name);
	e->kind = EXPR_INT;
	e->value = (uint64_t)value;
	e->is_long = value < INT32_MIN || value > INT32_MAX;
	return 0;
}

/* Integers and pointers are passed in registers, in this order. */
static bool is_in_register(const struct check *c, uint32_t param)
{
	uint32_t id = cairn_types_resolve(c->types, c->function->params[param].type);
	const struct cairn_type *type = cairn_types_get(c->types, id);

	return (type->kind == CAIRN_T_INT || type->kind == CAIRN_T_ENUM ||
		type->kind == CAIRN_T_PTR || type->kind == CAIRN_T_REF) &&
	       type->size <= 8;
}

/* $arg2 is the second parameter, if that is the one in the second register. */
static bool is_param_of_register(const struct check *c, struct expr *e)
{
	enum { REGISTERS = 6 };
	uint32_t n = 0;

	if (!strncmp(e->name, "$arg", strlen("$arg")) && strlen(e->name) == strlen("$arg1"))
		n = (uint32_t)(e->name[4] - '0');
	if (!n || n > REGISTERS || n > c->function->n_params)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!is_in_register(c, i))
			return false;
	e->is_path = true;
	e->param = n - 1;
	e->type = c->function->params[n - 1].type;
	return true;
}

static int check_name(const struct check *c, struct expr *e)
{
	char params[300];
	int64_t value;

	if (find_param(c, e))
		return 0;
	if (!e->scopes && word_constant(e->name, &value)) {
		e->kind = EXPR_INT;
		e->value = (uint64_t)value;
		return 0;
	}
	if (is_of_return(e->name))
		return check_of_return(c, e);
	if (is_param_of_register(c, e))
		return 0;
	if (!strncmp(e->name, "$arg", strlen("$arg"))) {
		list_params(c, params, sizeof(params));
		return WRONG(c, e, "%s has no %s; it has: %s", c->function->name, e->name, params);
	}
	return e->name[0] == '$' ? check_known(c, e) : check_other_name(c, e);
}

static int check_path(const struct check *c, struct expr *e);

/* The type that a pointer or reference points to. */
static int pointee(const struct check *c, const struct expr *e, const struct expr *a, uint32_t *ret)
{
	char name[120];

	if (a->is_address && a->a) {
		*ret = a->a->type;
		return 0;
	}
	if (!a->is_path) {
		*ret = a->pointee;
		return a->pointee ? 0
				  : WRONG(c, e, "this is not a pointer to a type that is known");
	}
	const struct cairn_type *t = resolved(c->types, a->type);
	if (!is_pointer(t) && t->kind != CAIRN_T_ARRAY)
		return WRONG(c, e, "%s is not a pointer",
			     a->special ? a->name : type_text(c, a->type, name, sizeof(name)));
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
	if (e->kind == EXPR_MEMBER && (!e->a->is_path || e->a->is_address))
		return WRONG(c, e, "this has no members");
	if (e->kind == EXPR_ARROW || is_reference(resolved(c->types, in))) {
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

/* The value of an index that is the same at every hit. */
static bool constant_index(const struct expr *b, int64_t *ret)
{
	bool negative = b->kind == EXPR_MINUS;
	const struct expr *constant = negative ? b->a : b;

	if (constant->kind != EXPR_INT)
		return false;
	*ret = negative ? -(int64_t)constant->value : (int64_t)constant->value;
	return true;
}

static int check_constant_index(const struct check *c, struct expr *e, int64_t index)
{
	if (e->n_elements && (index < 0 || (uint64_t)index >= e->n_elements))
		return WRONG(c, e->b->kind == EXPR_MINUS ? e->b->a : e->b, "the array has %s",
			     cairn_counted(e->n_elements, "element").text);
	if (__builtin_mul_overflow(index, (int64_t)e->stride, &e->byte_off) ||
	    e->byte_off > INT32_MAX || e->byte_off < INT32_MIN)
		return WRONG(c, e->b->kind == EXPR_MINUS ? e->b->a : e->b,
			     "this index is too large");
	return 0;
}

static int check_index(const struct check *c, struct expr *e)
{
	char name[120];
	uint32_t element = 0;
	int64_t index;
	int r = check_path(c, e->a);

	if (r == 0)
		r = check_condition(c, e->b);
	if (r == 0)
		r = pointee(c, e, e->a, &element);
	if (r == 0)
		r = complete(c, element);
	if (r < 0)
		return r;
	if (e->b->is_pointer || e->b->is_float)
		return WRONG(c, e->b, "an index must be an integer");
	e->type = element;
	e->stride = cairn_types_size(c->types, element);
	if (!e->stride)
		return WRONG(c, e, "the size of %s is not known",
			     type_text(c, element, name, sizeof(name)));
	const struct cairn_type *t =
		e->a->is_path && !e->a->is_address ? resolved(c->types, e->a->type) : NULL;
	e->n_elements = t && t->kind == CAIRN_T_ARRAY && t->has_count ? t->count : 0;
	e->is_variable = !constant_index(e->b, &index);
	return e->is_variable ? 0 : check_constant_index(c, e, index);
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
		if (r == 0 && (!e->a->is_path || e->a->is_address || e->a->bit_size))
			return WRONG(c, e, "this has no address");
		e->is_address = true;
		return r;
	default:
		e->is_path = false;
		return check_condition(c, e);
	}
}

static struct check check_in(const struct expr_scope *scope, struct cairn_err *err)
{
	return (struct check){.scope = scope,
			      .types = scope->types,
			      .sites = scope->sites,
			      .function = scope->function,
			      .text = scope->text,
			      .part_of = scope->part_of ? scope->part_of : "a condition",
			      .no_returns = scope->no_returns,
			      .err = err};
}

static bool is_path_kind(enum expr_kind kind)
{
	return kind == EXPR_NAME || kind == EXPR_MEMBER || kind == EXPR_ARROW ||
	       kind == EXPR_INDEX || kind == EXPR_DEREF || kind == EXPR_ADDRESS;
}

int expr_type_path(const struct expr_scope *scope, struct expr *e, struct cairn_err *err)
{
	struct check c = check_in(scope, err);
	int r = check_path(&c, e);

	return r < 0 || !e->is_path || e->is_address ? r : complete(&c, e->type);
}

int expr_type_key(const struct expr_scope *scope, struct expr *e, struct cairn_err *err)
{
	const struct check c = check_in(scope, err);
	/* A name may be an enumerator, $pid and the like. */
	int r = e->kind == EXPR_NAME ? check_name(&c, e) : 0;

	if (r < 0)
		return r;
	return is_path_kind(e->kind) ? expr_type_path(scope, e, err)
				     : expr_type_condition(scope, e, err);
}

int expr_type_value(const struct expr_scope *scope, struct expr *e, struct cairn_err *err)
{
	bool is_known = e->kind == EXPR_NAME && e->name[0] == '$' && !is_of_return(e->name) &&
			strncmp(e->name, "$arg", strlen("$arg")) != 0;

	return is_path_kind(e->kind) && !is_known ? expr_type_path(scope, e, err)
						  : expr_type_condition(scope, e, err);
}

static void be_pointer(struct expr *e, uint32_t pointee)
{
	e->is_long = e->is_unsigned = e->is_pointer = true;
	e->pointee = pointee;
}

/*
 * The arithmetic type of a path: an integer, an enumeration, a bool, a pointer, a bit-field; or a
 * float, which can be compared.
 */
static int path_arithmetic(const struct check *c, struct expr *e)
{
	char name[120];
	const struct cairn_type *t;

	if (e->is_address) {
		e->is_long = e->is_unsigned = true;
		if (e->a)
			be_pointer(e, e->a->type);
		return 0;
	}
	t = resolved(c->types, e->type);
	if (is_reference(t))
		return WRONG(c, e, "a reference; write * before it to compare its target");
	if (is_pointer(t) || t->kind == CAIRN_T_ARRAY || t->kind == CAIRN_T_UNSPECIFIED) {
		be_pointer(e, t->ref);
		return 0;
	}
	e->is_float = t->kind == CAIRN_T_FLOAT && (t->size == 4 || t->size == 8);
	if (e->is_float && !t->byte_swapped)
		return 0;
	if ((t->kind != CAIRN_T_INT && t->kind != CAIRN_T_ENUM) || !t->size || t->size > 8)
		return WRONG(c, e, "%s cannot be part of %s",
			     type_text(c, e->type, name, sizeof(name)), c->part_of);
	if (t->byte_swapped)
		return WRONG(c, e, "%s is stored in the other byte order, and cannot be part of %s",
			     type_text(c, e->type, name, sizeof(name)), c->part_of);
	/* Only the inside of an enumeration says whether it has a sign. */
	int r = t->kind == CAIRN_T_ENUM ? complete(c, e->type) : 0;
	if (r < 0)
		return r;
	t = resolved(c->types, e->type);
	bool is_signed = type_is_signed(c->types, e->type);
	uint64_t bits = e->bit_size ? e->bit_size : t->size * 8;
	e->is_long = bits > 32;
	/* Types smaller than int fit int. */
	e->is_unsigned = !is_signed && bits >= 32;
	return 0;
}

static bool is_comparison(enum fetch_code op)
{
	return op >= FETCH_EQ && op <= FETCH_GE;
}

/* Something that may be the address of a string. */
static int check_address(const struct check *c, struct expr *e)
{
	int r = check_condition(c, e);

	if (r < 0 || e->is_pointer || (!e->is_float && e->is_long))
		return r;
	return WRONG(c, e, "str() needs a pointer, an array or a number of 8 bytes");
}

/* The string at an address: str(), wstr(). */
static int check_text_at(const struct check *c, struct expr *e, struct expr *both)
{
	int r = e->b ? WRONG(c, e->b, "%sstr() has no limit where it is compared",
			     e->is_wide ? "w" : "")
		     : check_address(c, e->a);

	both->unit = r == 0 && e->is_wide ? expr_wide_unit(c->scope, e->a, true) : 0;
	return r;
}

/*
 * A string in memory: of char, counted, of wide characters, the address in str() or wstr(), or
 * $comm.
 */
static int check_text(const struct check *c, struct expr **text, struct expr *both)
{
	struct expr *e = *text;

	if (e->kind == EXPR_NAME && !strcmp(e->name, "$comm")) {
		e->kind = EXPR_KNOWN;
		return 0;
	}
	if (e->kind == EXPR_STR) {
		*text = e->a;
		return check_text_at(c, e, both);
	}
	int r = check_path(c, e);
	if (r == 0)
		r = expr_may_be_text(c->scope, e, c->err);
	if (r < 0)
		return r;
	both->text = r ? TEXT_COUNTED : TEXT_TO_NUL;
	both->unit = e->is_path && e->is_address ? 0 : expr_wide_unit(c->scope, e, false);
	bool is_text = e->is_path ? !e->is_address && (type_is_char_pointer(c->types, e->type) ||
						       type_is_char_array(c->types, e->type))
				  : e->is_text;
	return is_text || both->text == TEXT_COUNTED || both->unit
		       ? 0
		       : WRONG(c, e, "this is not a string; str(p) is the one at an address");
}

static int check_wide_literal(const struct check *c, const struct expr *literal, uint8_t unit)
{
	uint32_t units[EXPR_WIDE_MAX];
	int n = expr_wide_text(literal, unit, units, EXPR_WIDE_MAX);

	if (n == -1)
		return WRONG(c, literal, "a string of wide characters is written in UTF-8");
	if (n < 0)
		return WRONG(c, literal,
			     "wide strings in conditions have at most %d characters; p[0] == 'x' "
			     "compares one of them",
			     EXPR_WIDE_MAX);
	return 0;
}

/* Whether a literal can be compared with such a string. */
static int check_literal(const struct check *c, const struct expr *e, const struct expr *literal)
{
	uint32_t most = e->text == TEXT_COUNTED ? EXPR_TEXT_MAX : FETCH_STREQ_BYTES - 2;

	if (e->text == TEXT_WIDE)
		return check_wide_literal(c, literal, e->unit);
	if (literal->is_wide)
		return WRONG(c, literal, "the other side has no wide characters: write \"...\"");
	if (literal->n_bytes > most)
		return WRONG(c, literal, "strings in conditions have at most %u characters%s", most,
			     e->text == TEXT_COUNTED ? " beside text that is counted" : "");
	return 0;
}

/* @text is the string in memory, @literal the one that is written. */
static int check_string(const struct check *c, struct expr *e, struct expr *text,
			struct expr *literal)
{
	if (e->op != FETCH_EQ && e->op != FETCH_NE)
		return WRONG(c, e, "strings can only be compared with == and !=");
	int r = check_text(c, &text, e);
	if (r < 0)
		return r;
	if (e->unit)
		e->text = TEXT_WIDE;
	r = check_literal(c, e, literal);
	if (r < 0)
		return r;
	if (literal == e->a || e->a != text) {
		e->a = text;
		e->b = literal;
	}
	e->is_string = true;
	return 0;
}

/* ---- floats: no instruction of the kernel's machine has them; bits can be compared ---- */

static int float_in_arithmetic(const struct check *c, const struct expr *e)
{
	return WRONG(c, e,
		     "floats can be shown, be keys, and be compared with numbers; the kernel's "
		     "programs cannot calculate with them");
}

static uint64_t bits_of(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

/* A number beside a float becomes one, by C's rules: an integer beside a float is rounded to it. */
static int float_literal(const struct check *c, const struct expr *beside, struct expr *e)
{
	bool negative = e->kind == EXPR_MINUS;
	struct expr *number = negative ? e->a : e;
	double v;

	if (number->kind == EXPR_FLOAT)
		memcpy(&v, &number->value, sizeof(v));
	else if (number->kind == EXPR_INT && number->is_unsigned)
		v = (double)number->value;
	else if (number->kind == EXPR_INT)
		v = (double)(int64_t)number->value;
	else
		return WRONG(c, e,
			     "a float is compared with a number, or with a float of the same "
			     "size");
	if (number->kind == EXPR_INT && cairn_types_size(c->types, beside->type) == sizeof(float))
		v = number->is_unsigned ? (float)number->value : (float)(int64_t)number->value;
	e->kind = EXPR_FLOAT;
	e->is_float = true;
	e->value = bits_of(negative ? -v : v);
	return 0;
}

/* What it means with the operands exchanged. */
static enum fetch_code exchanged(enum fetch_code op)
{
	switch (op) {
	case FETCH_LT:
		return FETCH_GT;
	case FETCH_LE:
		return FETCH_GE;
	case FETCH_GT:
		return FETCH_LT;
	case FETCH_GE:
		return FETCH_LE;
	default:
		return op;
	}
}

static int check_floats(const struct check *c, struct expr *e)
{
	if (!is_comparison(e->op))
		return float_in_arithmetic(c, e->a->is_float ? e->a : e->b);
	if (!e->a->is_path || !e->a->is_float) {
		struct expr *a = e->a;
		e->a = e->b;
		e->b = a;
		e->op = exchanged(e->op);
	}
	if (!e->a->is_path)
		return float_in_arithmetic(c, e->a);
	if (!e->b->is_path || !e->b->is_float)
		return float_literal(c, e->a, e->b);
	if (cairn_types_size(c->types, e->a->type) != cairn_types_size(c->types, e->b->type))
		return WRONG(c, e->b,
			     "a float is compared with a number, or with a float of the "
			     "same size");
	return 0;
}

/* ---- pointers ---- */

/* The size by which an addition to a pointer counts; 0: not known. */
static uint64_t stride_of(const struct check *c, const struct expr *pointer)
{
	const struct cairn_type *t = resolved(c->types, pointer->pointee);

	if (!pointer->pointee || t->kind == CAIRN_T_VOID || t->kind == CAIRN_T_FUNC)
		return 1;
	return cairn_types_size(c->types, pointer->pointee);
}

/* p + n, n + p, p - n, p - q; everything else takes a pointer for an unsigned long. */
static int check_pointers(const struct check *c, struct expr *e)
{
	const struct expr *pointer = e->a->is_pointer ? e->a : e->b;
	char name[120];
	bool both = e->a->is_pointer && e->b->is_pointer;

	if (e->op == FETCH_SUB && !e->a->is_pointer)
		return WRONG(c, e, "a pointer cannot be subtracted from a number");
	if (both && e->op == FETCH_ADD)
		return WRONG(c, e, "two pointers cannot be added");
	int r = complete(c, pointer->pointee);
	if (r < 0)
		return r;
	e->stride = stride_of(c, pointer);
	if (!e->stride)
		return WRONG(c, e, "the size of %s is not known",
			     type_text(c, pointer->pointee, name, sizeof(name)));
	e->is_long = true;
	e->is_unsigned = !both;
	e->is_pointer = !both;
	e->pointee = both ? 0 : pointer->pointee;
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
	if (r < 0)
		return r;
	if (e->a->is_float || e->b->is_float)
		return check_floats(c, e);
	if (is_comparison(e->op))
		return 0;
	if (e->op == FETCH_SHL || e->op == FETCH_SHR) {
		e->is_long = e->a->is_long;
		e->is_unsigned = e->a->is_unsigned;
		return 0;
	}
	if ((e->a->is_pointer || e->b->is_pointer) && (e->op == FETCH_ADD || e->op == FETCH_SUB))
		return check_pointers(c, e);
	e->is_long = e->a->is_long || e->b->is_long;
	e->is_unsigned = (e->a->is_unsigned && e->a->is_long == e->is_long) ||
			 (e->b->is_unsigned && e->b->is_long == e->is_long);
	return 0;
}

static int check_unary(const struct check *c, struct expr *e)
{
	int r = check_condition(c, e->a);

	if (r < 0)
		return r;
	e->is_float = e->kind == EXPR_MINUS && e->a->kind == EXPR_FLOAT;
	if (e->a->is_float && !e->is_float)
		return float_in_arithmetic(c, e->a);
	if (e->kind == EXPR_NOT)
		return 0;
	e->is_long = e->a->is_long;
	e->is_unsigned = e->a->is_unsigned;
	return r;
}

/* ---- casts and sizeof ---- */

static const char *without_tag(const char *words)
{
	static const char *const tags[] = {"struct ", "union ", "enum ", "class "};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (!strncmp(words, tags[i], strlen(tags[i])))
			return words + strlen(tags[i]);
	return words;
}

/* "long unsigned int" and "unsigned long" are one type of C. */
static bool is_same_base(const char *words, const char *name)
{
	struct base_type one, other;

	return base_type_of(words, &one) && base_type_of(name, &other) &&
	       one.bytes == other.bytes && one.is_unsigned == other.is_unsigned &&
	       one.is_bool == other.is_bool;
}

/* How well a type of the graph is the one that is meant; 0: not at all. */
static int closeness(const struct cairn_type *t, const char *words)
{
	const char *name = without_tag(words);
	bool has_name = t->kind == CAIRN_T_TYPEDEF || t->kind == CAIRN_T_ENUM ||
			t->kind == CAIRN_T_INT || is_record(t);

	if (!has_name || !t->name || (name != words && t->kind == CAIRN_T_TYPEDEF))
		return 0;
	if (strcmp(t->name, name) != 0)
		return t->kind == CAIRN_T_INT && is_same_base(name, t->name);
	return t->declaration ? 2 : 3;
}

/* A type of the graph by its name, one with members before one that is only declared; 0: none. */
static uint32_t find_type(const struct check *c, const char *words)
{
	uint32_t n = cairn_types_n_types(c->types), found = 0;
	int best = 0;

	for (uint32_t id = 1; id < n && best < 3; id++) {
		int close = closeness(cairn_types_get(c->types, id), words);
		if (close <= best)
			continue;
		best = close;
		found = id;
	}
	return found;
}

static int unknown_type(const struct check *c, const struct expr *e)
{
	return WRONG(c, e,
		     "%s is not a type of C, nor one that the types of %s's parameters are made "
		     "of",
		     e->type_name->words, c->function->name);
}

/* The bytes of a type without pointers, and its type in the graph, if it is there. */
static int base_of(const struct check *c, const struct expr *e, struct base_type *base,
		   uint32_t *ret)
{
	char name[120];

	*ret = 0;
	if (base_type_of(e->type_name->words, base))
		return 0;
	if (!strcmp(e->type_name->words, "float") || !strcmp(e->type_name->words, "double"))
		return float_in_arithmetic(c, e);
	*ret = find_type(c, e->type_name->words);
	if (!*ret)
		return unknown_type(c, e);
	int r = complete(c, *ret);
	if (r < 0)
		return r;
	const struct cairn_type *t = resolved(c->types, *ret);
	if ((t->kind != CAIRN_T_INT && t->kind != CAIRN_T_ENUM && !is_pointer(t)) || !t->size ||
	    t->size > 8 || t->byte_swapped)
		return WRONG(c, e, "nothing can be cast to %s",
			     type_text(c, *ret, name, sizeof(name)));
	*base = (struct base_type){.bytes = (uint8_t)t->size,
				   .is_unsigned = is_pointer(t) || !type_is_signed(c->types, *ret),
				   .is_bool = t->encoding == CAIRN_ENC_BOOL};
	return 0;
}

/* (T *)e: what T is matters only to what is done with it. */
static int cast_to_pointer(const struct check *c, struct expr *e)
{
	const char *words = e->type_name->words;
	struct base_type base;

	e->cast_bytes = 8;
	be_pointer(e, 0);
	if (e->type_name->n_pointers > 1)
		return 0;
	e->is_text = !strcmp(words, "char");
	e->pointee = find_type(c, words);
	e->unit = type_wide_unit_of_words(c->types, words, e->pointee);
	if (!e->pointee && strcmp(words, "void") != 0 && !base_type_of(words, &base))
		return unknown_type(c, e);
	return 0;
}

static int check_cast(const struct check *c, struct expr *e)
{
	struct base_type base = {0};
	int r = check_condition(c, e->a);

	if (r < 0)
		return r;
	if (e->a->is_float)
		return float_in_arithmetic(c, e->a);
	if (e->type_name->n_pointers)
		return cast_to_pointer(c, e);
	r = base_of(c, e, &base, &e->type);
	if (r < 0)
		return r;
	e->cast_bytes = base.bytes;
	e->is_bool = base.is_bool;
	e->is_cast_unsigned = base.is_unsigned;
	e->is_long = base.bytes == 8;
	e->is_unsigned = base.is_unsigned && base.bytes >= 4;
	const struct cairn_type *t = resolved(c->types, e->type);
	if (e->type && is_pointer(t))
		be_pointer(e, t->ref);
	return 0;
}

static int size_of_type(const struct check *c, const struct expr *e, uint64_t *ret)
{
	struct base_type base;

	*ret = 8;
	if (e->type_name->n_pointers)
		return 0;
	if (base_type_of(e->type_name->words, &base)) {
		*ret = base.bytes;
		return 0;
	}
	uint32_t id = find_type(c, e->type_name->words);
	if (!id)
		return unknown_type(c, e);
	int r = complete(c, id);
	*ret = cairn_types_size(c->types, id);
	if (r == 0 && !*ret)
		return WRONG(c, e, "the size of %s is not known", e->type_name->words);
	return r;
}

static int size_of_value(const struct check *c, const struct expr *e, uint64_t *ret)
{
	struct expr *a = e->a;
	int r = check_path(c, a);

	if (r < 0)
		return r;
	if (a->bit_size)
		return WRONG(c, a, "a bit-field has no size in bytes");
	if (a->kind == EXPR_CAST)
		*ret = a->cast_bytes;
	else if (!a->is_path || a->is_address)
		*ret = a->is_long || a->is_address ? 8 : 4;
	else if ((r = complete(c, a->type)) == 0 && !(*ret = cairn_types_size(c->types, a->type)))
		return WRONG(c, a, "the size of this is not known");
	return r;
}

/* "sizeof(name)" is of a parameter, or else of a type. */
static int check_sizeof(const struct check *c, struct expr *e)
{
	struct expr_type_name type = {0};
	uint64_t size = 0;

	if (e->a && e->a->kind == EXPR_NAME && !is_param(c, e->a->name) &&
	    find_type(c, e->a->name)) {
		type.words = e->a->name;
		e->type_name = &type;
	}
	int r = e->type_name ? size_of_type(c, e, &size) : size_of_value(c, e, &size);
	e->kind = EXPR_INT;
	e->is_path = false;
	e->value = size;
	e->is_long = e->is_unsigned = true;
	e->type_name = NULL;
	return r;
}

/* a ? b : c, whose type is that of b + c, or of the pointer that one of both is. */
static int check_choice(const struct check *c, struct expr *e)
{
	int r = check_truth(c, e->a);

	if (r == 0)
		r = check_condition(c, e->b);
	if (r == 0)
		r = check_condition(c, e->c);
	if (r < 0)
		return r;
	if (e->b->is_float || e->c->is_float)
		return float_in_arithmetic(c, e->b->is_float ? e->b : e->c);
	const struct expr *pointer = e->b->is_pointer ? e->b : e->c;
	e->is_pointer = pointer->is_pointer;
	e->pointee = pointer->pointee;
	e->is_text = pointer->is_text;
	e->unit = pointer->unit;
	e->is_long = e->b->is_long || e->c->is_long;
	e->is_unsigned = (e->b->is_unsigned && e->b->is_long == e->is_long) ||
			 (e->c->is_unsigned && e->c->is_long == e->is_long);
	return 0;
}

static int check_condition(const struct check *c, struct expr *e)
{
	int r;

	switch (e->kind) {
	case EXPR_CHOICE:
		return check_choice(c, e);
	case EXPR_INT:
	case EXPR_KNOWN:
		return 0;
	case EXPR_FLOAT:
		e->is_float = true;
		return 0;
	case EXPR_CAST:
		return check_cast(c, e);
	case EXPR_SIZEOF:
		return check_sizeof(c, e);
	case EXPR_STR:
	case EXPR_BUF:
		return WRONG(c, e, "%s%s() is a value of its own%s", e->is_wide ? "w" : "",
			     e->kind == EXPR_STR ? "str" : "buf",
			     e->kind == EXPR_STR ? ", or compared with == and !=" : "");
	case EXPR_STRING:
		return WRONG(c, e, "a string can only be compared with == and !=");
	case EXPR_NAME:
		r = check_name(c, e);
		if (r < 0 || e->kind != EXPR_NAME)
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
		r = check_truth(c, e->a);
		return r < 0 ? r : check_truth(c, e->b);
	}
	return 0;
}

/* Where only "is it 0" counts, a float would be compared with 0.0 by C. */
static int check_truth(const struct check *c, struct expr *e)
{
	int r = check_condition(c, e);

	return r == 0 && e->is_float ? WRONG(c, e, "a float; compare it: write x != 0") : r;
}

int expr_type_condition(const struct expr_scope *scope, struct expr *e, struct cairn_err *err)
{
	struct check c = check_in(scope, err);
	int r = check_condition(&c, e);

	if (r == 0 && e->is_float)
		return float_in_arithmetic(&c, e);
	return r;
}
