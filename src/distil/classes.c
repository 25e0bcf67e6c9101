/* SPDX-License-Identifier: BSD-2-Clause */
#include "distil/classes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "dwarf/constants.h"

/* ---- hash to number ---- */

static inline size_t slot_index(const struct hash_table *t, uint64_t a)
{
	return (size_t)a & (t->cap - 1);
}

uint32_t hash_table_find(const struct hash_table *t, struct h128 hash)
{
	if (!t->cap)
		return UINT32_MAX;
	for (size_t i = slot_index(t, hash.a); t->slot[i].i; i = (i + 1) & (t->cap - 1))
		if (t->slot[i].a == hash.a && t->slot[i].b == (uint32_t)hash.b)
			return t->slot[i].i - 1;
	return UINT32_MAX;
}

static void put(struct hash_table *t, struct hash_slot s)
{
	size_t i = slot_index(t, s.a);
	while (t->slot[i].i)
		i = (i + 1) & (t->cap - 1);
	t->slot[i] = s;
}

int hash_table_add(struct hash_table *t, struct h128 hash, uint32_t n)
{
	if (2 * t->n >= t->cap) {
		struct hash_table grown = {.n = t->n, .cap = t->cap ? t->cap * 2 : 1024};
		grown.slot = calloc(grown.cap, sizeof(*grown.slot));
		if (!grown.slot)
			return -ENOMEM;
		for (size_t i = 0; i < t->cap; i++)
			if (t->slot[i].i)
				put(&grown, t->slot[i]);
		free(t->slot);
		*t = grown;
	}
	put(t, (struct hash_slot){.a = hash.a, .b = (uint32_t)hash.b, .i = n + 1});
	t->n++;
	return 0;
}

/* ---- */

int classes_init(struct classes *c)
{
	*c = (struct classes){0};
	arena_init(&c->arena);
	c->names = calloc(1, sizeof(*c->names));
	return c->names ? 0 : -ENOMEM;
}

void classes_fini(struct classes *c)
{
	VEC_FREE(&c->v);
	VEC_FREE(&c->groups);
	VEC_FREE(&c->roots);
	VEC_FREE(&c->funcs);
	VEC_FREE(&c->vars);
	VEC_FREE(&c->bodies);
	VEC_FREE(&c->tags);
	VEC_FREE(&c->spans);
	VEC_FREE(&c->stack);
	VEC_FREE(&c->build);
	VEC_FREE(&c->defs);
	free(c->by_hash.slot);
	free(c->groups_by_hash.slot);
	free(c->names);
	arena_fini(&c->arena);
}

void classes_trim(struct classes *c)
{
	VEC_FREE(&c->roots);
	VEC_FREE(&c->bodies);
	VEC_FREE(&c->spans);
	free(c->by_hash.slot);
	free(c->groups_by_hash.slot);
	free(c->names);
	c->by_hash = c->groups_by_hash = (struct hash_table){0};
	c->names = NULL;
}

/* ---- hashes ---- */

enum { HASH_VOID = 0x100, HASH_LOOP, HASH_GROUP };

/* An edge that is not made yet has no bits; one that is being made has this. Neither is a hash. */
static const struct h128 edge_open = {0, 1};

static bool edge_is_new(const struct unit_types *u, uint32_t i)
{
	return !(u->edges.p[i].a | u->edges.p[i].b);
}

static void set_edge(struct unit_types *u, const struct type_die *t, struct h128 edge)
{
	edge.a += !edge.a;
	u->edges.p[t - u->types.p] = edge;
}

static inline struct h128 edge_of(const struct unit_types *u, local_off off)
{
	uint32_t i = unit_type_index(u, off);
	if (i == NO_TYPE)
		return h128_start(HASH_VOID);
	/* A type without a name that contains itself: only damaged input has that. */
	return u->edges.p[i].a ? u->edges.p[i] : h128_start(HASH_LOOP);
}

static bool has_typed_elems(const struct type_die *t)
{
	return t->kind == TYPE_STRUCT || t->kind == TYPE_UNION || t->kind == TYPE_PROTO;
}

/* Of one member, in one step: the edge is as good as random, so that adding to it loses nothing. */
static inline struct h128 mix_elem(struct h128 s, struct h128 edge, const struct elem *e, uint64_t name)
{
	uint64_t place = e->bit_off | (uint64_t)e->bit_size << 32;
	return h128_mix(s, edge.a + place * 0x9fb21c651e98df25, edge.b ^ name);
}

static struct h128 hash_elems(struct classes *c, const struct unit_types *u, struct h128 s, uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++) {
		const struct elem *e = &u->elems.p[i];
		uint64_t name = name_hash(c->names, e->name);
		if (e->what != ELEM_PLAIN)
			s = h128_mix(s, name, e->what);
		else
			s = mix_elem(s, edge_of(u, e->type), e, name);
	}
	return s;
}

static struct h128 hash_values(struct classes *c, const struct unit_types *u, struct h128 s, const struct type_die *t)
{
	if (t->kind == TYPE_ARRAY && u->flat_arrays) {
		uint64_t n = 1;
		for (uint32_t i = t->elem; i < t->elem + t->n_elems; i++)
			n *= u->elems.p[i].value;
		return h128_mix(s, n, TYPE_ARRAY);
	}
	for (uint32_t i = t->elem; i < t->elem + t->n_elems; i++) {
		const struct elem *e = &u->elems.p[i];
		s = h128_mix(s, e->value ^ (uint64_t)e->is_negative << 32, name_hash(c->names, e->name) + e->what);
	}
	return s;
}

/* How many things follow is told first: "int f(void)" and "void f(int)" have the same in them. */
static struct h128 hash_start(uint64_t name, uint8_t kind, local_off ref, uint32_t n_elems, bool variadic)
{
	uint64_t facts = n_elems | (uint64_t)kind << 32 | (uint64_t)(ref != 0) << 40 | (uint64_t)variadic << 41;
	return h128_mix((struct h128){0x2d358dccaa6c78a5, 0x8bb84b93962eacc9}, name, facts);
}

/* Kinds that say a name at most, and what they refer to: half of all types. */
static inline bool is_plain_reference(const struct type_die *t)
{
	enum { PLAIN = 1 << TYPE_PTR | 1 << TYPE_TYPEDEF | 1 << TYPE_CONST | 1 << TYPE_VOLATILE | 1 << TYPE_RESTRICT };
	return PLAIN >> t->kind & 1 && !t->n_elems;
}

static inline struct h128 hash_reference(struct classes *c, const struct type_die *t, struct h128 edge)
{
	edge.a += t->kind * 0xd6e8feb86659fd93;
	return h128_mix(edge, name_hash(c->names, t->name), t->kind);
}

/* All that the DIE says. What it refers to has its edge. */
static struct h128 hash_of(struct classes *c, const struct unit_types *u, const struct type_die *t)
{
	if (t->kind == TYPE_ALIAS)
		return edge_of(u, t->ref);
	if (t->kind == TYPE_VOID)
		return h128_start(HASH_VOID);
	if (is_plain_reference(t))
		return hash_reference(c, t, edge_of(u, t->ref));
	uint32_t n_elems = t->kind == TYPE_ARRAY && u->flat_arrays ? 1 : t->n_elems;
	struct h128 s = hash_start(name_hash(c->names, t->name), t->kind, t->ref, n_elems, t->variadic);
	s = h128_mix(s, t->size, t->encoding);
	if (t->ref) {
		struct h128 edge = edge_of(u, t->ref);
		s = h128_mix(s, edge.a, edge.b);
	}
	if (!t->n_elems)
		return s;
	return has_typed_elems(t) ? hash_elems(c, u, s, t->elem, t->n_elems) : hash_values(c, u, s, t);
}

/* A type that must be hashed before @t can be; NO_TYPE when there is none. Its elements before *@elem are done. */
static uint32_t first_missing(const struct unit_types *u, const struct type_die *t, uint32_t *elem)
{
	uint32_t to = unit_type_index(u, t->ref);
	if (to != NO_TYPE && edge_is_new(u, to))
		return to;
	for (; has_typed_elems(t) && *elem < t->n_elems; ++*elem) {
		const struct elem *e = &u->elems.p[t->elem + *elem];
		to = e->what != ELEM_PLAIN ? NO_TYPE : unit_type_index(u, e->type);
		if (to != NO_TYPE && edge_is_new(u, to))
			return to;
	}
	return NO_TYPE;
}

/* The edge of a type and of all that it needs. The stack is ours: how deep types nest is the input's choice. */
static int hash_edge(struct classes *c, struct unit_types *u, uint32_t type)
{
	struct unhashed now = {.type = type};
	c->stack.n = 0;
	for (;;) {
		struct type_die *t = &u->types.p[now.type];
		u->edges.p[now.type] = edge_open;
		uint32_t need = first_missing(u, t, &now.elem);
		if (need != NO_TYPE) {
			if (!VEC_ADD(&c->stack, now))
				return -ENOMEM;
			now = (struct unhashed){.type = need};
			continue;
		}
		set_edge(u, t, hash_of(c, u, t));
		if (!c->stack.n)
			return 0;
		now = c->stack.p[--c->stack.n];
	}
}

static uint8_t group_kind(const struct type_die *t)
{
	return t->kind;
}

static struct h128 group_hash(struct classes *c, const struct type_die *t)
{
	struct h128 h = h128_mix(h128_start(HASH_GROUP), name_hash(c->names, t->name), group_kind(t));
	h.a += !h.a;
	return h;
}

/* The short way to an edge, for a reference to what has one. False: it takes the long way. */
static inline bool hash_short(struct classes *c, struct unit_types *u, uint32_t i)
{
	const struct type_die *t = &u->types.p[i];
	uint32_t to = unit_type_index(u, t->ref);
	if (!is_plain_reference(t) || (to != NO_TYPE && !u->edges.p[to].a))
		return false;
	set_edge(u, t, hash_reference(c, t, to == NO_TYPE ? h128_start(HASH_VOID) : u->edges.p[to]));
	return true;
}

static int hash_all(struct classes *c, struct unit_types *u)
{
	for (uint32_t i = 0; i < u->types.n; i++)
		if (edge_is_new(u, i) && !hash_short(c, u, i)) {
			int rc = hash_edge(c, u, i);
			if (rc < 0)
				return rc;
		}
	for (size_t i = 0; i < u->types.n; i++)
		if (u->types.p[i].stop && !u->types.p[i].declaration)
			u->types.p[i].own = hash_of(c, u, &u->types.p[i]);
	return 0;
}

/* ---- groups ---- */

static int group_of(struct classes *c, const struct unit_types *u, const struct type_die *t, uint32_t *ret)
{
	/* A conflicting definition's edge is not that of its group. */
	struct h128 hash = t->conflicts ? group_hash(c, t) : u->edges.p[t - u->types.p];
	*ret = hash_table_find(&c->groups_by_hash, hash);
	if (*ret != UINT32_MAX)
		return 0;
	*ret = (uint32_t)c->groups.n;
	struct name_group g = {.hash = hash, .name = t->name, .kind = group_kind(t)};
	if (!VEC_ADD(&c->groups, g))
		return -ENOMEM;
	return hash_table_add(&c->groups_by_hash, hash, *ret);
}

/* The slot of an edge among those of the unit's definitions: the first definition + 1, or 0. */
static uint32_t *slot_of_edge(struct classes *c, const struct unit_types *u, uint64_t edge)
{
	size_t mask = c->defs.n - 1, i = (size_t)edge & mask;
	while (c->defs.p[i] && u->edges.p[c->defs.p[i] - 1].a != edge)
		i = (i + 1) & mask;
	return &c->defs.p[i];
}

/* Empty slots for all definitions of the unit: a power of two, at least half of it free. */
static int clear_defs(struct classes *c, size_t n)
{
	size_t need = 64;
	while (need < 2 * n)
		need *= 2;
	if (need > c->defs.cap) {
		uint32_t *grown = realloc(c->defs.p, need * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		c->defs.p = grown;
		c->defs.cap = need;
	}
	c->defs.n = need;
	memset(c->defs.p, 0, need * sizeof(*c->defs.p));
	return 0;
}

static bool is_definition(const struct type_die *t)
{
	return t->stop && !t->declaration;
}

/* Mark the definitions of names that the unit defines differently. Returns their number, or -ENOMEM. */
static int64_t find_conflicts(struct classes *c, struct unit_types *u)
{
	int64_t found = 0;
	if (clear_defs(c, u->types.n) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < u->types.n; i++) {
		struct type_die *t = &u->types.p[i];
		if (!is_definition(t))
			continue;
		uint32_t *slot = slot_of_edge(c, u, u->edges.p[i].a);
		if (!*slot) {
			*slot = i + 1;
		} else if (!h128_equal(u->types.p[*slot - 1].own, t->own)) {
			u->types.p[*slot - 1].conflicts = t->conflicts = true;
			found++;
		}
	}
	return found;
}

/* A name with a conflict has all of its definitions marked. */
static void spread_conflicts(struct classes *c, struct unit_types *u)
{
	for (uint32_t i = 0; i < u->types.n; i++)
		if (is_definition(&u->types.p[i]))
			u->types.p[i].conflicts = u->types.p[*slot_of_edge(c, u, u->edges.p[i].a) - 1].conflicts;
}

/*
 * Hash again, with what the conflicting definitions say in the edges to them. One more round tells those apart
 * that differ only in which of others they refer to.
 */
static int hash_conflicts(struct classes *c, struct unit_types *u)
{
	enum { ROUNDS = 3 };
	spread_conflicts(c, u);
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < u->types.n; i++) {
			struct type_die *t = &u->types.p[i];
			if (!t->stop)
				u->edges.p[i] = (struct h128){0};
			else if (t->conflicts)
				set_edge(u, t, h128_mix(group_hash(c, t), t->own.a, t->own.b));
		}
		int rc = hash_all(c, u);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* A name of no length is none. */
static inline void drop_empty_name(struct classes *c, struct type_die *t)
{
	if (!t->name || name_hash(c->names, t->name))
		return;
	t->name = NULL;
	t->stop = false;
	if (t->kind == TYPE_TYPEDEF)
		t->kind = TYPE_ALIAS;
}

static int hash_unit(struct classes *c, struct unit_types *u)
{
	for (size_t i = 0; i < u->types.n; i++) {
		struct type_die *t = &u->types.p[i];
		drop_empty_name(c, t);
		if (t->stop)
			set_edge(u, t, group_hash(c, t));
	}
	int rc = hash_all(c, u);
	if (rc < 0)
		return rc;
	int64_t conflicts = find_conflicts(c, u);
	if (conflicts <= 0)
		return (int)conflicts;
	return hash_conflicts(c, u);
}

/* ---- classes ---- */

enum { FROM_FUNC = 1u << 31 };

/* The class of a hash, made when it is new and then to be built from @from. */
static int intern(struct classes *c, struct h128 hash, uint32_t from, uint64_t first, uint32_t *ret)
{
	*ret = hash_table_find(&c->by_hash, hash);
	if (*ret != UINT32_MAX)
		return 0;
	*ret = (uint32_t)c->v.n;
	if (*ret >= EDGE_GROUP - 1)
		return -ERANGE;
	if (!VEC_ADD(&c->v, ((struct type_class){.hash = hash, .first = first})) ||
	    !VEC_ADD(&c->build, ((struct to_build){.class_ = *ret, .type = from})))
		return -ENOMEM;
	return hash_table_add(&c->by_hash, hash, *ret);
}

static int class_of(struct classes *c, const struct unit_types *u, uint32_t index, struct type_die *t, uint32_t *ret)
{
	if (t->class_) {
		*ret = t->class_ - 1;
		return 0;
	}
	uint32_t i = (uint32_t)(t - u->types.p);
	int rc = intern(c, t->stop ? t->own : u->edges.p[i], i, (uint64_t)index << 32 | i, ret);
	t->class_ = *ret + 1;
	return rc;
}

/* Longest chain of DW_TAG_atomic_type and such. */
enum { ALIAS_MAX = 64 };

static int edge_to(struct classes *c, const struct unit_types *u, uint32_t index, local_off off, edge_t *ret)
{
	struct type_die *t = unit_type_at(u, off);
	for (int i = 0; t && t->kind == TYPE_ALIAS && i < ALIAS_MAX; i++)
		t = unit_type_at(u, t->ref);
	*ret = 0;
	if (!t || t->kind == TYPE_VOID || t->kind == TYPE_ALIAS)
		return 0;
	uint32_t n;
	if (t->stop && (!t->conflicts || t->declaration)) {
		int rc = group_of(c, u, t, &n);
		*ret = n | EDGE_GROUP;
		return rc;
	}
	int rc = class_of(c, u, index, t, &n);
	*ret = n + 1;
	return rc;
}

static int build_elems(struct classes *c, const struct unit_types *u, uint32_t index, uint32_t from, uint32_t n,
		       bool typed, uint32_t class_)
{
	struct class_elem *to = arena_array(&c->arena, n, sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct elem *e = &u->elems.p[from + i];
		to[i] = (struct class_elem){.name = e->name,
					    .value = e->value,
					    .bit_size = e->bit_size,
					    .is_negative = e->is_negative,
					    .what = e->what};
		int rc = typed && e->what == ELEM_PLAIN ? edge_to(c, u, index, e->type, &to[i].edge) : 0;
		if (rc < 0)
			return rc;
	}
	c->v.p[class_].elems = to;
	c->v.p[class_].n_elems = n;
	return 0;
}

static int build_proto(struct classes *c, const struct unit_types *u, uint32_t index, const struct func_die *f,
		       uint32_t class_)
{
	edge_t edge;
	int rc = edge_to(c, u, index, f->ref, &edge);
	struct type_class *k = &c->v.p[class_];
	k->kind = TYPE_PROTO;
	k->edge = edge;
	k->variadic = f->variadic;
	return rc < 0 ? rc : build_elems(c, u, index, f->elem, f->n_elems, true, class_);
}

static int build_type(struct classes *c, const struct unit_types *u, uint32_t index, const struct type_die *t,
		      uint32_t class_)
{
	edge_t edge;
	uint32_t group;
	int rc = edge_to(c, u, index, t->ref, &edge);
	if (rc >= 0 && t->stop)
		rc = group_of(c, u, t, &group);
	if (rc < 0)
		return rc;
	struct type_class *k = &c->v.p[class_];
	k->kind = t->kind;
	k->name = t->name;
	k->size = t->size;
	k->encoding = t->encoding;
	k->variadic = t->variadic;
	k->edge = edge;
	k->group = t->stop ? group + 1 : 0;
	return build_elems(c, u, index, t->elem, t->n_elems, has_typed_elems(t), class_);
}

/* Make the records of all new classes, and of those that they need. */
static int build_new(struct classes *c, const struct unit_types *u, uint32_t index)
{
	int rc = 0;
	while (c->build.n && rc >= 0) {
		struct to_build b = c->build.p[--c->build.n];
		if (b.type & FROM_FUNC)
			rc = build_proto(c, u, index, &u->funcs.p[b.type & ~(uint32_t)FROM_FUNC], b.class_);
		else
			rc = build_type(c, u, index, &u->types.p[b.type], b.class_);
	}
	return rc;
}

static bool is_root(const struct type_die *t, uint32_t index)
{
	if (index == BASE_UNIT)
		return !t->declaration && t->kind != TYPE_ALIAS;
	/* Nobody refers to "enum { A, B };", and still its constants are wanted. */
	if (t->kind == TYPE_ENUM || t->stop)
		return !t->declaration;
	return t->kind == TYPE_TYPEDEF || t->kind == TYPE_BASE;
}

static int reserve_roots(struct classes *c, size_t n)
{
	if (c->roots.n + n <= c->roots.cap)
		return 0;
	size_t cap = c->roots.cap * 2 > c->roots.n + n ? c->roots.cap * 2 : c->roots.n + n;
	uint32_t *grown = realloc(c->roots.p, cap * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	c->roots.p = grown;
	c->roots.cap = cap;
	return 0;
}

/* The table is larger than the cache, and which slot comes next is known early. */
static inline void prefetch_class(const struct classes *c, const struct unit_types *u, size_t i)
{
	if (i < u->types.n && u->types.p[i].stop && c->by_hash.cap)
		__builtin_prefetch(&c->by_hash.slot[slot_index(&c->by_hash, u->types.p[i].own.a)]);
}

static int add_roots(struct classes *c, struct unit_types *u, uint32_t index)
{
	if (reserve_roots(c, u->types.n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < u->types.n; i++) {
		struct type_die *t = &u->types.p[i];
		uint32_t class_;
		prefetch_class(c, u, i + 8);
		if (!is_root(t, index))
			continue;
		int rc = class_of(c, u, index, t, &class_);
		if (rc < 0)
			return rc;
		c->roots.p[c->roots.n++] = class_;
		if (index == BASE_UNIT && !c->v.p[class_].base_id)
			c->v.p[class_].base_id = t->off;
	}
	return 0;
}

/* ---- functions and variables ---- */

static struct h128 proto_hash(struct classes *c, const struct unit_types *u, const struct func_die *f)
{
	/* As hash_of() of a TYPE_PROTO, so that both are one class. */
	struct h128 s = h128_mix(hash_start(0, TYPE_PROTO, f->ref, f->n_elems, f->variadic), 0, 0);
	if (f->ref) {
		struct h128 edge = edge_of(u, f->ref);
		s = h128_mix(s, edge.a, edge.b);
	}
	return hash_elems(c, u, s, f->elem, f->n_elems);
}

static int add_funcs(struct classes *c, const struct unit_types *u, uint32_t index)
{
	for (uint32_t i = 0; i < u->funcs.n; i++) {
		const struct func_die *f = &u->funcs.p[i];
		struct func to = {.die = unit_die_off(u, f->off),
				  .name = f->name,
				  .unit = index,
				  .external = f->external,
				  .declaration = f->declaration};
		if (!f->name)
			continue;
		uint64_t first = (uint64_t)index << 32 | (u->types.n + i);
		int rc = intern(c, proto_hash(c, u, f), i | FROM_FUNC, first, &to.proto);
		if (rc < 0)
			return rc;
		if (!VEC_ADD(&c->funcs, to) || !VEC_ADD(&c->roots, to.proto))
			return -ENOMEM;
	}
	return 0;
}

static int add_bodies(struct classes *c, const struct unit_types *u)
{
	for (size_t i = 0; i < u->bodies.n; i++) {
		const struct body_die *b = &u->bodies.p[i];
		struct body to = {.die = unit_die_off(u, b->off),
				  .origin = b->origin ? unit_die_off(u, b->origin) : 0,
				  .addr = b->addr};
		if (!VEC_ADD(&c->bodies, to))
			return -ENOMEM;
	}
	return 0;
}

static int add_vars(struct classes *c, const struct unit_types *u, uint32_t index)
{
	for (size_t i = 0; i < u->vars.n; i++) {
		const struct var_die *v = &u->vars.p[i];
		struct variable to = {.die = unit_die_off(u, v->off),
				      .name = v->name,
				      .addr = v->addr,
				      .unit = index,
				      .external = v->external};
		int rc = edge_to(c, u, index, v->ref, &to.type);
		if (rc < 0)
			return rc;
		if (!VEC_ADD(&c->vars, to))
			return -ENOMEM;
		/* What only a variable refers to is a root, too. */
		if (to.type && !(to.type & EDGE_GROUP) && !VEC_ADD(&c->roots, to.type - 1))
			return -ENOMEM;
	}
	return 0;
}

static int add_decl_tags(struct classes *c, const struct unit_types *u)
{
	for (uint32_t i = 0; i < u->tags.n; i++) {
		const struct tag_die *t = &u->tags.p[i];
		local_off off = t->owner & OWNER_FUNC ? u->funcs.p[t->owner & ~(uint32_t)OWNER_FUNC].off
						      : u->vars.p[t->owner & ~(uint32_t)OWNER_VAR].off;
		struct decl_tag to = {
			.die = unit_die_off(u, off), .text = t->text, .component = t->component, .order = i};
		if (!VEC_ADD(&c->tags, to))
			return -ENOMEM;
	}
	return 0;
}

static struct unit_span span_start(const struct classes *c, uint32_t index)
{
	return (struct unit_span){.unit = index,
				  .roots.from = (uint32_t)c->roots.n,
				  .funcs.from = (uint32_t)c->funcs.n,
				  .vars.from = (uint32_t)c->vars.n,
				  .bodies.from = (uint32_t)c->bodies.n};
}

static bool span_end(struct classes *c, struct unit_span *s)
{
	s->roots.to = (uint32_t)c->roots.n;
	s->funcs.to = (uint32_t)c->funcs.n;
	s->vars.to = (uint32_t)c->vars.n;
	s->bodies.to = (uint32_t)c->bodies.n;
	/* Fewer than roots are the others, or as many. */
	return c->roots.n < UINT32_MAX && c->bodies.n < UINT32_MAX && VEC_ADD(&c->spans, *s);
}

int classes_add(struct classes *c, struct unit_types *u, uint32_t index, struct cairn_err *err)
{
	struct unit_span span = span_start(c, index);
	int rc = hash_unit(c, u);
	if (rc >= 0)
		rc = add_roots(c, u, index);
	if (rc >= 0)
		rc = add_funcs(c, u, index);
	if (rc >= 0)
		rc = add_bodies(c, u);
	if (rc >= 0)
		rc = add_vars(c, u, index);
	if (rc >= 0)
		rc = add_decl_tags(c, u);
	if (rc >= 0)
		rc = build_new(c, u, index);
	if (rc >= 0 && !span_end(c, &span))
		rc = -ENOMEM;
	if (rc == -ERANGE)
		return err_set(err, rc, "%s: more than 2^31 different types", u->dw->file[0].path);
	return rc < 0 ? err_nomem(err, "the types of a program") : 0;
}
