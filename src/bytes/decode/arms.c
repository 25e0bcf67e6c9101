/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unions of which one arm is shown
 *
 * Each choice with a condition becomes: if the deciding member has that value, show the arm, and go
 * on after the union. If no condition holds, the union's bytes remain. So exactly one thing is
 * shown, and commas need no thought.
 */
#include "decode/compile.h"

#include <errno.h>

#include "base/err.h"

static const struct cairn_member *arm_of(const struct cairn_type *u, const char *name,
					 uint32_t *ret_i)
{
	for (uint32_t i = 0; i < u->n_members; i++) {
		if (!u->members[i].name || strcmp(u->members[i].name, name))
			continue;
		*ret_i = i;
		return &u->members[i];
	}
	return NULL;
}

static bool applies(const struct cairn_value_arm *arm, const struct cairn_type *u, const char *name)
{
	uint32_t i;

	return !strcmp(arm->of, name ? name : "") && arm_of(u, arm->arm, &i);
}

bool has_choice(const struct compiler *c, const struct cairn_type *u, const char *name)
{
	for (size_t i = 0; i < c->n_arms; i++)
		if (applies(&c->arms[i], u, name))
			return true;
	return false;
}

/* A number as C writes it, or the name of one of @t's enumerators. */
static bool parse_value(const struct cairn_type *t, const char *text, uint64_t *ret)
{
	char *end;

	for (uint32_t i = 0; i < t->n_enumerators; i++) {
		if (t->enumerators[i].name && !strcmp(t->enumerators[i].name, text)) {
			*ret = (uint64_t)t->enumerators[i].value;
			return true;
		}
	}
	*ret = text[0] == '-' ? (uint64_t)strtoll(text, &end, 0) : strtoull(text, &end, 0);
	return text[0] && !*end;
}

static int find_case(struct compiler *c, uint32_t around, struct view v,
		     const struct cairn_value_arm *arm, struct case_of *ret)
{
	struct cairn_member m;

	if (!cairn_types_member(c->types, around, arm->when, &m) || m.dynamic)
		return err_set(c->err, -EINVAL,
			       "no member %s beside the union decides over its arm %s", arm->when,
			       arm->arm);
	const struct cairn_type *t = type_of(c, m.type);
	uint64_t width = m.bit_size ? m.bit_size : t->size * 8;
	if ((t->kind != CAIRN_T_INT && t->kind != CAIRN_T_ENUM) || !width || width > 64)
		return err_set(c->err, -EINVAL,
			       "%s is no integer or enum, and cannot decide over the arm %s",
			       arm->when, arm->arm);
	if (!parse_value(t, arm->value, &ret->bits))
		return err_set(c->err, -EINVAL, "%s is no value of %s", arm->value, arm->when);
	/* Out of sight: an offset at which nothing is read. */
	bool outside = is_outside(v, m.bit_off / 8, (m.bit_off % 8 + width + 7) / 8);
	ret->off = outside ? UINT64_MAX / 2 : v.off + m.bit_off / 8;
	ret->shift = m.bit_off % 8;
	ret->width = (uint8_t)width;
	ret->big_endian =
		is_big_endian(c, t, (struct view){.swapped = type_of(c, around)->byte_swapped});
	if (width < 64)
		ret->bits &= (UINT64_C(1) << width) - 1;
	return 0;
}

/* The index of the OP_IF. */
static uint32_t emit_if(struct compiler *c, uint32_t around, struct view v,
			const struct cairn_value_arm *arm)
{
	struct case_of choice;

	if (!c->rc)
		c->rc = find_case(c, around, v, arm, &choice);
	if (!c->rc && !VEC_ADD(&c->cases, choice))
		c->rc = err_nomem(c->err, "a plan for decoding");
	return emit(c, (struct op){.code = OP_IF, .aux = (uint32_t)c->cases.n - 1});
}

static void compile_arm(struct compiler *c, const struct cairn_type *u, const char *name,
			struct view v, unsigned int depth, bool first)
{
	uint32_t i = 0;
	const struct cairn_member *m = arm_of(u, name, &i);

	add_separator(c, &first);
	add_key(c, m, i);
	compile_member(c, u, i, v, depth + 1);
}

static void compile_unknown(struct compiler *c, const struct cairn_member *m,
			    const struct cairn_type *u, struct view v, bool first)
{
	add_separator(c, &first);
	add_text(c, c->look.json ? "\"<" : "<");
	add_name(c, m->name ? m->name : "union");
	add_text(c, c->look.json ? ">\":" : "> = ");
	if (is_outside(v, 0, u->size))
		add_note(c, "cut off");
	else
		emit(c, (struct op){.code = OP_DUMP, .off = v.off, .size = u->size});
}

void compile_arms(struct compiler *c, uint32_t around, struct view around_view,
		  const struct cairn_member *m, const struct cairn_type *u, struct view v,
		  unsigned int depth, bool *first)
{
	VEC(uint32_t) jumps = {0};
	bool decided = false;

	for (size_t i = 0; i < c->n_arms && !decided && !c->rc; i++) {
		const struct cairn_value_arm *arm = &c->arms[i];

		if (!applies(arm, u, m->name))
			continue;
		c->arm_used[i] = true;
		decided = !arm->when;
		uint32_t test = decided ? 0 : emit_if(c, around, around_view, arm);
		compile_arm(c, u, arm->arm, v, depth, *first);
		if (decided)
			break;
		uint32_t jump = emit(c, (struct op){.code = OP_JUMP});
		if (!VEC_ADD(&jumps, jump))
			c->rc = err_nomem(c->err, "a plan for decoding");
		if (!c->rc)
			c->ops.p[test].next = (uint32_t)c->ops.n;
	}
	if (!decided)
		compile_unknown(c, m, u, v, *first);
	uint32_t end = label(c);
	for (size_t i = 0; i < jumps.n && !c->rc; i++)
		c->ops.p[jumps.p[i]].next = end;
	VEC_FREE(&jumps);
	*first = false;
}

int check_arms(const struct compiler *c, struct cairn_err *err)
{
	for (size_t i = 0; i < c->n_arms; i++) {
		bool named = c->arms[i].of[0];
		/*
		 * An arm with a condition after an arm that is always shown is never used, but it
		 * is an arm of the union, too.
		 */
		bool shadowed = false;
		for (size_t k = 0; k < i; k++)
			shadowed |= c->arm_used[k] && !c->arms[k].when &&
				    !strcmp(c->arms[k].of, c->arms[i].of);
		if (!c->arm_used[i] && !shadowed)
			return err_set(err, -EINVAL, "the type has no union%s%s with an arm %s",
				       named ? " " : "", c->arms[i].of, c->arms[i].arm);
	}
	return 0;
}
