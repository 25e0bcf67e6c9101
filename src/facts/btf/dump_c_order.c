/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An order of declarations that C can read
 *
 * Each record has two goals: that it may be named (C_DECLARED), and that it is complete
 * (C_DEFINED). A pointer needs only the name of its target; a member needs the whole type:
 *
 *	struct a { b_t *next; };	"struct a" defined
 *	typedef struct b b_t;		  member: pointer: b_t declared
 *	struct b { struct a first; };	    b_t: struct b declared
 *						prints "struct b;"
 *					    then prints "typedef struct b b_t;"
 *					  then prints "struct a { ... };"
 *
 * A depth-first walk reaches the goals that a goal needs, then prints it. It keeps its own stack,
 * so that a chain of a million structs does not exhaust the thread's. If a goal that is open (on
 * the stack) is needed again, it closes a circle:
 *
 *  - a struct's name, while its members are printed: the first text that names it declares it for
 *    C. In a list of parameters that would be another struct of the list's own, so a declaration is
 *    printed before the list.
 *  - else there is a pointer on the circle, and C has no such type ("type fn func() fn" of Go, an
 *    array of an incomplete struct): the nearest pointer is cut, printed as void *, and the goals
 *    opened after it are left for later.
 *  - without a pointer the type contains itself: damaged.
 *
 * Cost: each goal of each record once; a cut throws away at most C_CHAIN_MAX open goals, or structs
 * that are tried again when something else needs them.
 */
#include "btf/dump_c.h"

#include <errno.h>
#include <inttypes.h>

struct need {
	uint32_t id;
	enum c_goal goal;
};

struct frame {
	struct need what;
	uint32_t next;    /* number of the part that is needed next */
	uint32_t pointer; /* 1 + the frame of the nearest pointer, this one included; 0: none */
};

struct order {
	struct dump_c *d;
	VEC(struct frame) stack;
};

/*
 * Which goal stands for both? Only structs and typedefs can be declared before they are complete.
 */
static enum c_goal goal_for(const struct dump_c *d, const struct cairn_btf_type *t,
			    enum c_goal goal)
{
	if (c_is_struct(t->kind))
		return c_in_place(d, t) ? C_DEFINED : goal;
	if (t->kind == CAIRN_BTF_TYPEDEF || c_is_qualifier(t->kind))
		return goal;
	return C_DECLARED;
}

/* The single part that a record refers to by its third word. */
static bool only_part(uint32_t i, uint32_t id, enum c_goal goal, struct need *ret)
{
	*ret = (struct need){id, goal};
	return i == 0;
}

/* Complete: the type that it stands for, then its own name. */
static bool typedef_part(const struct cairn_btf_type *t, uint32_t i, enum c_goal goal,
			 struct need *ret)
{
	*ret = i ? (struct need){t->id, C_DECLARED} : (struct need){t->ref, goal};
	return i < (goal == C_DEFINED ? 2 : 1);
}

static bool proto_part(const struct cairn_btf_type *t, uint32_t i, struct need *ret)
{
	if (i > t->vlen)
		return false;
	*ret = (struct need){i ? cairn_btf_param(t, i - 1).type : t->ref, C_DECLARED};
	return true;
}

/* The goal that must be reached before part @i of a record's goal; false: no more parts. */
static bool part(const struct dump_c *d, const struct frame *f, uint32_t i, struct need *ret)
{
	struct cairn_btf_type t = c_get(d, f->what.id);

	switch (t.kind) {
	case CAIRN_BTF_PTR:
		return !d->types[t.id].cut && only_part(i, t.ref, C_DECLARED, ret);
	case CAIRN_BTF_ARRAY:
		return only_part(i, t.words[0], C_DEFINED, ret);
	case CAIRN_BTF_CONST:
	case CAIRN_BTF_VOLATILE:
	case CAIRN_BTF_RESTRICT:
	case CAIRN_BTF_TYPE_TAG:
		return only_part(i, t.ref, f->what.goal, ret);
	case CAIRN_BTF_TYPEDEF:
		return typedef_part(&t, i, f->what.goal, ret);
	case CAIRN_BTF_STRUCT:
	case CAIRN_BTF_UNION:
		if (f->what.goal == C_DECLARED || i >= t.vlen)
			return false;
		*ret = (struct need){cairn_btf_member(&t, i).type, C_DEFINED};
		return true;
	case CAIRN_BTF_FUNC_PROTO:
		return proto_part(&t, i, ret);
	case CAIRN_BTF_FUNC:
		return only_part(i, t.ref, C_DECLARED, ret);
	case CAIRN_BTF_VAR:
		return only_part(i, t.ref, C_DEFINED, ret);
	case CAIRN_BTF_DATASEC:
		if (i >= t.vlen)
			return false;
		*ret = (struct need){cairn_btf_secinfo(&t, i).type, C_DECLARED};
		return true;
	default:
		return false;
	}
}

/* ---- types printed in place ---- */

/* Lines and levels that a type takes where it is used. */
static void in_place_cost(const struct dump_c *d, uint32_t id, uint32_t *weight, uint32_t *depth)
{
	struct cairn_btf_type t = c_get(d, c_base(d, id, false));
	bool counts = t.kind == CAIRN_BTF_FUNC_PROTO ? !d->types[t.id].hoisted : c_in_place(d, &t);

	*weight = counts && !c_is_enum(t.kind) ? d->types[t.id].weight : 1;
	*depth = counts && !c_is_enum(t.kind) ? d->types[t.id].depth : 0;
}

static uint32_t add_up(uint32_t a, uint32_t b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

/* Its parts are done: is it small enough to stay in place? */
static void weigh(struct dump_c *d, const struct frame *f, const struct cairn_btf_type *t)
{
	bool proto = t->kind == CAIRN_BTF_FUNC_PROTO;
	struct c_type *c = &d->types[t->id];
	struct need what;

	c->weight = 1;
	c->depth = 0;
	for (uint32_t i = 0; part(d, f, i, &what); i++) {
		uint32_t weight, depth;

		in_place_cost(d, what.id, &weight, &depth);
		c->weight = add_up(c->weight, weight);
		c->depth = depth > c->depth ? depth : c->depth;
	}
	c->depth++;
	if (c->depth > (proto ? C_PROTO_DEPTH_MAX : C_BODY_DEPTH_MAX) ||
	    (c->weight > C_SHARED_WEIGHT_MAX && (proto || c->user == C_MANY)))
		c->hoisted = true;
}

/* A struct that a parameter list is the first to name would be that list's own. */
static void declare_params(struct dump_c *d, const struct cairn_btf_type *t)
{
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_type base = c_get(d, c_base(d, cairn_btf_param(t, i).type, true));
		struct c_type *c = &d->types[base.id];

		if (!c_is_struct(base.kind) || c->state[C_DEFINED] == C_DONE ||
		    c->state[C_DECLARED] == C_DONE)
			continue;
		c->state[C_DECLARED] = C_DONE;
		c_print(d, base.id, C_DECLARED);
	}
}

static void finish(struct dump_c *d, const struct frame *f)
{
	struct cairn_btf_type t = c_get(d, f->what.id);
	bool is_struct = c_is_struct(t.kind) && f->what.goal == C_DEFINED;

	if (t.kind == CAIRN_BTF_FUNC_PROTO || (is_struct && c_in_place(d, &t)))
		weigh(d, f, &t);
	if (t.kind == CAIRN_BTF_FUNC_PROTO)
		declare_params(d, &t);
	if (is_struct)
		c_layout(d, &t);
	c_print(d, t.id, f->what.goal);
}

/* ---- the walk ---- */

static int open_goal(struct order *o, struct need what)
{
	struct c_type *c = &o->d->types[what.id];
	const struct frame *below = o->stack.n ? &o->stack.p[o->stack.n - 1] : NULL;
	struct frame f = {.what = what, .pointer = below ? below->pointer : 0};

	if (c_get(o->d, what.id).kind == CAIRN_BTF_PTR)
		f.pointer = (uint32_t)o->stack.n + 1;
	if (!VEC_ADD(&o->stack, f))
		return err_nomem(o->d->err, "the order of types");
	c->state[what.goal] = C_OPEN;
	c->frame[what.goal] = (uint32_t)o->stack.n - 1;
	return 0;
}

/*
 * The circle goes through a pointer: that one becomes void *, and the goals opened after it do not
 * concern it.
 */
static int cut(struct order *o, struct need what)
{
	uint32_t pointer = o->stack.p[o->stack.n - 1].pointer;

	if (!pointer || pointer - 1 < o->d->types[what.id].frame[what.goal]) {
		struct cairn_btf_type t = c_get(o->d, what.id);

		return err_set(o->d->err, -EBADMSG,
			       "%s: record %" PRIu32 " (%s '%s') contains itself", o->d->btf->name,
			       what.id, btf_kind_name(t.kind), t.name);
	}
	while (o->stack.n > pointer) {
		struct need undone = o->stack.p[--o->stack.n].what;

		o->d->types[undone.id].state[undone.goal] = C_NONE;
	}
	o->d->types[o->stack.p[pointer - 1].what.id].cut = true;
	return 0;
}

/* A definition declares too, already for its own members. */
static bool is_reached(const struct dump_c *d, const struct cairn_btf_type *t, enum c_goal goal)
{
	const struct c_type *c = &d->types[t->id];

	return c->state[goal] == C_DONE ||
	       (goal == C_DECLARED && c_is_struct(t->kind) && c->state[C_DEFINED] != C_NONE);
}

static int reach(struct order *o, struct need what)
{
	struct cairn_btf_type t = c_get(o->d, what.id);

	if (t.kind == CAIRN_BTF_VOID)
		return 0;
	what.goal = goal_for(o->d, &t, what.goal);
	if (is_reached(o->d, &t, what.goal))
		return 0;
	return o->d->types[what.id].state[what.goal] == C_OPEN ? cut(o, what) : open_goal(o, what);
}

static int walk(struct order *o)
{
	while (o->stack.n) {
		struct frame *top = &o->stack.p[o->stack.n - 1];
		struct need what;

		if (part(o->d, top, top->next, &what)) {
			top->next++;
			int r = reach(o, what);
			if (r < 0)
				return r;
			continue;
		}
		o->d->types[top->what.id].state[top->what.goal] = C_DONE;
		finish(o->d, top);
		o->stack.n--;
	}
	return 0;
}

int c_need(struct dump_c *d, uint32_t id, enum c_goal goal)
{
	struct order o = {.d = d};
	int r = reach(&o, (struct need){id, goal});

	if (r == 0)
		r = walk(&o);
	VEC_FREE(&o.stack);
	return r;
}
