/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of expressions: parameters, $names, enumerators, variables of files
 *
 * A parameter comes first, then a constant of the language, a $name, an enumerator, and then a
 * variable of a file.
 */
#include "trace/expr/check.h"
#include "trace/expr/global.h"

#include <string.h>

#include <cairn/text.h>

#include "base/near.h"

static int complete_enums(const struct check *c)
{
	/* Completing one may add types, which then are complete. */
	uint32_t n = cairn_types_n_types(c->types);

	for (uint32_t id = 0; id < n; id++) {
		const struct cairn_type *t = cairn_types_get(c->types, id);
		int r = t->kind == CAIRN_T_ENUM && t->unread ? check_complete(c, id) : 0;
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

bool check_is_param(const struct check *c, const char *name)
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
	if (n < size && (!n || c->function->variadic))
		snprintf(buf + n, size - n, n ? ", ..." : "none");
}

bool name_is_of_return(const char *name)
{
	return !strcmp(name, "$ret") || !strcmp(name, "$duration");
}

/* Known only when the function returns. */
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
	if (is_result && (!e->type || type_resolved(c->types, e->type)->kind == CAIRN_T_VOID))
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

/* The kernel's knowledge of the thread that hits a probe. */
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
			     c->function->name, why_no_params(c->function));
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
	const struct cairn_type *this = type_resolved(c->types, f->params[0].type);
	uint32_t class = this->ref;
	if (!type_is_pointer(this) || !type_is_record(type_resolved(c->types, class)))
		return 0;
	int r = check_complete(c, class);
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

int check_name(const struct check *c, struct expr *e)
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
	if (name_is_of_return(e->name))
		return check_of_return(c, e);
	if (is_param_of_register(c, e))
		return 0;
	if (!strncmp(e->name, "$arg", strlen("$arg"))) {
		list_params(c, params, sizeof(params));
		return WRONG(c, e, "%s has no %s; it has: %s", c->function->name, e->name, params);
	}
	return e->name[0] == '$' ? check_known(c, e) : check_other_name(c, e);
}
