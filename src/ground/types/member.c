/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finding a member by name
 *
 *	struct A { int x, y; };
 *	struct B : A { int x; union { int u; float f; }; };
 *
 * "x" of B is B's own, "y" is A's, "u" is B's although it is in a struct of its own. So the search
 * goes by levels: the class with everything inside its anonymous members is one level, its base
 * classes are the next. Two lists hold the remaining work; the nearer one is emptied first:
 *
 *	near: anonymous members of the class being looked at      far: base classes, in order
 *
 * Only damaged input has a struct that contains itself; the number of structs looked at is limited.
 */
#include <cairn/types.h>

#include "base/vec.h"

/* The largest class hierarchies known have some hundred classes; a ring of structs must end. */
enum { MAX_LOOKED_AT = 1 << 14 };

struct place {
	uint32_t id;
	uint64_t bit_off;
	bool dynamic;
};

struct search {
	VEC(struct place) near, far;
	size_t next_far;
};

static bool has_members(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION;
}

static bool next_place(struct search *s, struct place *ret)
{
	if (s->near.n) {
		*ret = s->near.p[--s->near.n];
		return true;
	}
	if (s->next_far == s->far.n)
		return false;
	*ret = s->far.p[s->next_far++];
	return true;
}

/* Look at the members of one struct; true when @name is among them. */
static bool look_at(struct search *s, const struct cairn_type *t, struct place at, const char *name,
		    struct cairn_member *ret)
{
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *m = &t->members[i];
		struct place in = {m->type, at.bit_off + m->bit_off, at.dynamic || m->dynamic};
		if (m->is_base_class) {
			if (s->far.n < MAX_LOOKED_AT)
				(void)VEC_ADD(&s->far, in);
		} else if (!m->name) {
			if (s->near.n < MAX_LOOKED_AT)
				(void)VEC_ADD(&s->near, in);
		} else if (!strcmp(m->name, name)) {
			*ret = *m;
			ret->bit_off = in.bit_off;
			ret->dynamic = in.dynamic;
			return true;
		}
	}
	return false;
}

bool cairn_types_member(const struct cairn_types *types, uint32_t id, const char *name,
			struct cairn_member *ret)
{
	struct search s = {0};
	struct place at = {.id = id};
	bool found = false;
	size_t looked_at = 0;
	do {
		const struct cairn_type *t =
			cairn_types_get(types, cairn_types_resolve(types, at.id));
		if (has_members(t))
			found = look_at(&s, t, at, name, ret);
	} while (!found && ++looked_at < MAX_LOOKED_AT && next_place(&s, &at));
	VEC_FREE(&s.near);
	VEC_FREE(&s.far);
	return found;
}
