/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types as pahole writes them
 *
 * This differs from C: every qualifier has a blank after it, so that a pointer to const is "const
 * char *"; see cairn_types_name() for the proper text.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include <cairn/text.h>

#include "layout/print.h"

/* pointers and qualifiers around a type; parameters of parameters of ... */
enum { STEPS_MAX = 32, PARAMS_DEPTH_MAX = 4 };

struct text {
	char *p;
	size_t n;
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *format, ...)
{
	char piece[TYPE_TEXT_MAX];
	va_list args;

	if (t->n + 1 >= TYPE_TEXT_MAX)
		return;
	va_start(args, format);
	int n = vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	if (n < 0)
		return;
	ssize_t all = cairn_quote(piece, CAIRN_QUOTE_TEXT, t->p + t->n, TYPE_TEXT_MAX - t->n);
	t->n += all < TYPE_TEXT_MAX - (ssize_t)t->n ? (size_t)all : strlen(t->p + t->n);
}

const char *qualifier_text(enum cairn_type_kind kind)
{
	switch (kind) {
	case CAIRN_T_CONST:
		return "const ";
	case CAIRN_T_VOLATILE:
		return "volatile ";
	case CAIRN_T_ATOMIC:
		return "_Atomic ";
	default:
		return "";
	}
}

static bool is_qualifier(const struct cairn_type *t)
{
	return *qualifier_text(t->kind) != 0;
}

static const struct cairn_type *type_at(const struct cairn_layout *l, uint32_t id)
{
	const struct cairn_type *t = cairn_types_get(l->types, id);

	/* Stands for something that C has no word for: a tag of BTF. */
	for (int i = 0; i < STEPS_MAX && t->kind == CAIRN_T_TYPEDEF && !t->name; i++)
		t = cairn_types_get(l->types, t->ref);
	return t;
}

static void put_type(const struct cairn_layout *l, uint32_t id, struct text *out,
		     unsigned int depth);

static void put_tagged(const struct cairn_type *t, const char *word, struct text *out)
{
	if (t->bare_name && t->name)
		put(out, "%s", t->name);
	else
		put(out, "%s%s%s", word, t->name ? " " : " {...}", t->name ? t->name : "");
}

static void put_params(const struct cairn_layout *l, const struct cairn_type *t, struct text *out,
		       unsigned int depth)
{
	put(out, "(");
	for (uint32_t i = 0; i < t->n_members; i++) {
		if (i)
			put(out, ", ");
		put_type(l, t->members[i].type, out, depth + 1);
		if (t->members[i].name)
			put(out, " %s", t->members[i].name);
	}
	if (t->variadic)
		put(out, t->n_members ? ", ..." : "...");
	else if (!t->n_members)
		put(out, "void");
	put(out, ")");
}

/* "int (*)(char)" */
static void put_function_pointer(const struct cairn_layout *l, const struct cairn_type *function,
				 struct text *out, unsigned int depth)
{
	put_type(l, function->ref, out, depth + 1);
	put(out, " (*)");
	put_params(l, function, out, depth);
}

static void put_base(const struct cairn_layout *l, const struct cairn_type *t, struct text *out,
		     unsigned int depth)
{
	switch (t->kind) {
	case CAIRN_T_VOID:
		put(out, "void");
		break;
	case CAIRN_T_STRUCT:
		put_tagged(t, "struct", out);
		break;
	case CAIRN_T_CLASS:
		put_tagged(t, "class", out);
		break;
	case CAIRN_T_UNION:
		put_tagged(t, "union", out);
		break;
	case CAIRN_T_ENUM:
		put_tagged(t, "enum", out);
		break;
	case CAIRN_T_ARRAY:
		/* Without its counts: a pointer to an array looks like one to an element. */
		put_type(l, t->ref, out, depth + 1);
		break;
	case CAIRN_T_FUNC:
		put_type(l, t->ref, out, depth + 1);
		put_params(l, t, out, depth);
		break;
	default:
		put(out, "%s", t->name ? t->name : "<unnamed>");
	}
}

/* A qualifier of a pointer comes after it when another pointer leads there, else before. */
static bool stands_behind(const struct cairn_layout *l, const struct cairn_type *const *steps,
			  size_t i)
{
	return i && type_at(l, steps[i]->ref)->kind == CAIRN_T_PTR;
}

static void put_step(const struct cairn_layout *l, const struct cairn_type *const *steps, size_t i,
		     struct text *out)
{
	const struct cairn_type *t = steps[i];

	if (t->kind == CAIRN_T_PTR)
		put(out, " *");
	else if (t->kind == CAIRN_T_RESTRICT)
		put(out, " restrict ");
	else if (t->kind == CAIRN_T_REF)
		put(out, " &");
	else if (t->kind == CAIRN_T_RREF)
		put(out, " &&");
	else if (stands_behind(l, steps, i))
		put(out, " %.*s", (int)strlen(qualifier_text(t->kind)) - 1,
		    qualifier_text(t->kind));
	else
		put(out, " ");
}

/* From the outside inwards the steps are found, and written from the inside outwards. */
static void put_type(const struct cairn_layout *l, uint32_t id, struct text *out,
		     unsigned int depth)
{
	const struct cairn_type *steps[STEPS_MAX], *t = type_at(l, id);
	size_t n = 0;

	if (depth > PARAMS_DEPTH_MAX) {
		put(out, "...");
		return;
	}
	for (; n < STEPS_MAX; t = type_at(l, t->ref)) {
		if (t->kind == CAIRN_T_PTR && type_at(l, t->ref)->kind == CAIRN_T_FUNC)
			break;
		if (t->kind != CAIRN_T_PTR && t->kind != CAIRN_T_REF && t->kind != CAIRN_T_RREF &&
		    t->kind != CAIRN_T_RESTRICT && !is_qualifier(t))
			break;
		steps[n++] = t;
	}
	for (size_t i = n; i-- > 0;)
		if (is_qualifier(steps[i]) && !stands_behind(l, steps, i))
			put(out, "%s", qualifier_text(steps[i]->kind));
	if (t->kind == CAIRN_T_PTR)
		put_function_pointer(l, type_at(l, t->ref), out, depth);
	else
		put_base(l, t, out, depth);
	while (n--)
		put_step(l, steps, n, out);
}

/* The counts of all dimensions; returns the element type. */
static const struct cairn_type *put_counts(const struct cairn_layout *l, uint32_t id, bool flexible,
					   struct text *out, uint32_t *ret_id)
{
	const struct cairn_type *t = type_at(l, id);

	*ret_id = id;
	for (int i = 0; i < STEPS_MAX && t->kind == CAIRN_T_ARRAY; i++) {
		if (t->count)
			put(out, "[%" PRIu64 "]", t->count);
		else
			put(out, flexible ? "[]" : "[0]");
		*ret_id = t->ref;
		t = type_at(l, t->ref);
	}
	return t;
}

void type_text(const struct cairn_layout *l, uint32_t id, bool flexible, struct type_text *ret)
{
	struct text before = {.p = ret->before}, behind = {.p = ret->behind};
	const struct cairn_type *t = put_counts(l, id, flexible, &behind, &id);
	const struct cairn_type *function = t->kind == CAIRN_T_PTR ? type_at(l, t->ref) : NULL;

	ret->mark = "";
	ret->before[0] = 0;
	if (!behind.n)
		ret->behind[0] = 0;
	if (!function || function->kind != CAIRN_T_FUNC) {
		put_type(l, id, &before, 0);
		/* Elements that are const have no blank after them. */
		if (behind.n && before.n && before.p[before.n - 1] == ' ')
			before.p[before.n - 1] = 0;
		return;
	}
	ret->mark = "(*";
	put_type(l, function->ref, &before, 1);
	put(&behind, ")");
	put_params(l, function, &behind, 0);
}
