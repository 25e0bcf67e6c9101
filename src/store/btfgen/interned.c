/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/interned.h"

#include <errno.h>

enum { HASH_VOID = 0x100, HASH_LOOP, HASH_GROUP };

/* The kind of a key; it comes first in the key. */
static const struct h128 key_of_type = {0x2d358dccaa6c78a5, 0x8bb84b93962eacc9};
static const struct h128 key_of_reference = {0x4b33a62ed433d4a3, 0x9e6c63d0676a9a99};
static const struct h128 key_of_name = {0xa0761d6478bd642f, 0xe7037ed1a0b428db};
static const struct h128 key_of_conflict = {0x589965cc75374cc3, 0x1d8e4e27c47d124f};

/* A new term, or the one that has that content. */
static int add_term(struct interned *s, struct h128 hash, uint32_t *ret)
{
	*ret = hash_table_find(&s->by_hash, hash);
	if (*ret != UINT32_MAX)
		return 0;
	if (s->v.n == UINT32_MAX)
		return -ERANGE;
	*ret = (uint32_t)s->v.n;
	if (!VEC_ADD(&s->v, ((struct term){.hash = hash})))
		return -ENOMEM;
	return hash_table_add(&s->by_hash, hash, *ret);
}

/* The same, for a key that was not found. */
static int add_key(struct interned *s, struct h128 key, struct h128 hash, uint32_t *ret)
{
	int rc = add_term(s, hash, ret);
	return rc < 0 ? rc : hash_table_add(&s->by_key, key, *ret);
}

int interned_init(struct interned *s)
{
	uint32_t n;
	*s = (struct interned){.names = calloc(1, sizeof(*s->names))};
	if (!s->names || !VEC_PUSH(&s->v) || add_term(s, h128_start(HASH_LOOP), &n) < 0 ||
	    add_term(s, h128_start(HASH_VOID), &n) < 0)
		return -ENOMEM;
	return 0;
}

void interned_fini(struct interned *s)
{
	VEC_FREE(&s->v);
	VEC_FREE(&s->stack);
	hash_table_fini(&s->by_key);
	hash_table_fini(&s->by_hash);
	free(s->names);
	s->names = NULL;
}

/* The term of the type at a local offset; TERM_NONE when it is not made yet. */
static inline uint32_t term_at(const struct unit_types *u, local_off off)
{
	uint32_t i = unit_type_index(u, off);
	return i == NO_TYPE ? TERM_VOID : u->edges.p[i];
}

/* Kinds that have at most a name and a type that they refer to: half of all types. */
static inline bool is_plain_reference(const struct type_die *t)
{
	enum {
		PLAIN = 1 << TYPE_PTR | 1 << TYPE_TYPEDEF | 1 << TYPE_CONST | 1 << TYPE_VOLATILE |
			1 << TYPE_RESTRICT
	};
	return PLAIN >> t->kind & 1 && !t->n_elems;
}

/* ---- content, word by word ---- */

static inline struct h128 hash_at(const struct interned *s, const struct unit_types *u,
				  local_off off)
{
	return s->v.p[term_at(u, off)].hash;
}

static struct h128 hash_elems(struct interned *s, const struct unit_types *u, struct h128 h,
			      const struct type_die *t)
{
	for (uint32_t i = t->elem; i < t->elem + t->n_elems; i++) {
		const struct elem *e = &u->elems.p[i];
		uint64_t name = name_hash(s->names, e->name);
		if (e->what != ELEM_PLAIN) {
			h = h128_mix(h, name, e->what);
			continue;
		}
		struct h128 to = hash_at(s, u, e->type);
		uint64_t place = e->bit_off | (uint64_t)e->bit_size << 32;
		h = h128_mix(h, to.a + place * 0x9fb21c651e98df25, to.b ^ name);
	}
	return h;
}

static struct h128 hash_values(struct interned *s, const struct unit_types *u, struct h128 h,
			       const struct type_die *t)
{
	if (t->kind == TYPE_ARRAY && u->flat_arrays) {
		uint64_t n = 1;
		for (uint32_t i = t->elem; i < t->elem + t->n_elems; i++)
			n *= u->elems.p[i].value;
		return h128_mix(h, n, TYPE_ARRAY);
	}
	for (uint32_t i = t->elem; i < t->elem + t->n_elems; i++) {
		const struct elem *e = &u->elems.p[i];
		h = h128_mix(h, e->value ^ (uint64_t)e->is_negative << 32,
			     name_hash(s->names, e->name) + e->what);
	}
	return h;
}

/*
 * The number of elements is hashed first: "int f(void)" and "void f(int)" contain the same types.
 */
static struct h128 hash_start(uint64_t name, const struct type_die *t, uint32_t n_elems)
{
	uint64_t facts = n_elems | (uint64_t)t->kind << 32 | (uint64_t)(t->ref != 0) << 40 |
			 (uint64_t)t->variadic << 41;
	return h128_mix(key_of_type, name, facts);
}

/* The hash of all that the DIE describes. The type that it refers to has its term. */
static struct h128 hash_of(struct interned *s, const struct unit_types *u, const struct type_die *t)
{
	uint32_t n_elems = t->kind == TYPE_ARRAY && u->flat_arrays ? 1 : t->n_elems;
	struct h128 h = hash_start(name_hash(s->names, t->name), t, n_elems);
	h = h128_mix(h, t->size, t->encoding | (uint64_t)t->variants << 32);
	if (t->ref) {
		struct h128 to = hash_at(s, u, t->ref);
		h = h128_mix(h, to.a, to.b);
	}
	if (!t->n_elems)
		return h;
	return has_typed_elems(t) ? hash_elems(s, u, h, t) : hash_values(s, u, h, t);
}

static struct h128 hash_of_reference(struct interned *s, const struct type_die *t, uint32_t to)
{
	struct h128 h = s->v.p[to].hash;
	h.a += t->kind * 0xd6e8feb86659fd93;
	return h128_mix(h, name_hash(s->names, t->name), t->kind);
}

/* ---- interned ---- */

/* One product takes all of an element: rare fields are spread over the address of the name. */
static inline struct h128 mix_elem(struct h128 key, const struct elem *e, uint64_t said)
{
	uint32_t rest;
	memcpy(&rest, &e->bit_size, sizeof(rest));
	return h128_mix(key, (uintptr_t)e->name + rest * 0x9fb21c651e98df25, said);
}

/* False: something that it refers to has no term yet. */
static inline bool find_key(const struct unit_types *u, const struct type_die *t, struct h128 *ret)
{
	/* A unit may have no elements at all: there is nothing to count from. */
	const struct elem *e = t->n_elems ? &u->elems.p[t->elem] : NULL,
			  *end = t->n_elems ? e + t->n_elems : NULL;
	uint32_t ref = term_at(u, t->ref);
	bool made = ref;
	struct h128 key = hash_start((uintptr_t)t->name, t, t->n_elems);
	key = h128_mix(key, t->size | (uint64_t)t->encoding << 32,
		       ref | (uint64_t)t->variants << 32);
	if (has_typed_elems(t)) {
		for (; e < end; e++) {
			uint32_t to = term_at(u, e->type);
			made &= to != TERM_NONE;
			key = mix_elem(key, e, to | (uint64_t)e->bit_off << 32);
		}
	} else {
		for (; e < end; e++)
			key = mix_elem(key, e, e->value);
	}
	*ret = key;
	return made;
}

static inline int term_of_key(struct interned *s, const struct unit_types *u, struct type_die *t,
			      struct h128 key, uint32_t *ret)
{
	/*
	 * Not in *@ret: a type that contains itself reads its own edge there while it is hashed,
	 * and has to find a loop.
	 */
	uint32_t known = hash_table_find(&s->by_key, key);
	if (known != UINT32_MAX) {
		*ret = known;
		return 0;
	}
	if (t->name && !*t->name)
		t->name = NULL;
	return add_key(s, key, hash_of(s, u, t), ret);
}

static int term_of_new_reference(struct interned *s, struct type_die *t, uint32_t to, uint32_t *ret)
{
	int rc = add_term(s, hash_of_reference(s, t, to), ret);
	if (rc >= 0 && t->kind == TYPE_PTR)
		s->v.p[to].ptr = *ret;
	else if (rc >= 0)
		s->v.p[to].const_ = *ret;
	return rc;
}

/* For types with is_plain_reference(). */
static inline int term_of_reference(struct interned *s, struct type_die *t, uint32_t to,
				    uint32_t *ret)
{
	if (!t->name && (t->kind == TYPE_PTR || t->kind == TYPE_CONST)) {
		*ret = t->kind == TYPE_PTR ? s->v.p[to].ptr : s->v.p[to].const_;
		return *ret ? 0 : term_of_new_reference(s, t, to, ret);
	}
	struct h128 key =
		h128_mix(key_of_reference, (uintptr_t)t->name, to | (uint64_t)t->kind << 32);
	*ret = hash_table_find(&s->by_key, key);
	if (*ret != UINT32_MAX)
		return 0;
	if (t->name && !*t->name) {
		t->name = NULL;
		t->kind = t->kind == TYPE_TYPEDEF ? TYPE_ALIAS : t->kind;
		return t->kind == TYPE_ALIAS ? (*ret = to, 0) : term_of_reference(s, t, to, ret);
	}
	return add_key(s, key, hash_of_reference(s, t, to), ret);
}

int interned_of_name(struct interned *s, const struct type_die *t, uint32_t *ret)
{
	struct h128 key = h128_mix(key_of_name, (uintptr_t)t->name, t->kind);
	*ret = hash_table_find(&s->by_key, key);
	if (*ret != UINT32_MAX)
		return 0;
	*ret = TERM_NONE;
	if (!*t->name)
		return 0;
	struct h128 hash = h128_mix(h128_start(HASH_GROUP), name_hash(s->names, t->name), t->kind);
	return add_key(s, key, hash, ret);
}

int interned_of_proto(struct interned *s, const struct unit_types *u, const struct func_die *f,
		      uint32_t *ret)
{
	struct type_die t = {.kind = TYPE_PROTO,
			     .ref = f->ref,
			     .elem = f->elem,
			     .n_elems = f->n_elems,
			     .variadic = f->variadic};
	struct h128 key;
	find_key(u, &t, &key);
	return term_of_key(s, u, &t, key, ret);
}

/* ---- a unit ---- */

/* The edge of a type; *@ret_made false: of something that it refers to first. */
static inline int make_edge(struct interned *s, struct unit_types *u, uint32_t i, bool *ret_made)
{
	struct type_die *t = &u->types.p[i];
	uint32_t *edge = &u->edges.p[i];
	*ret_made = true;
	if (t->kind == TYPE_VOID) {
		*edge = TERM_VOID;
		return 0;
	}
	if (is_plain_reference(t) || t->kind == TYPE_ALIAS) {
		uint32_t to = term_at(u, t->ref);
		*ret_made = to;
		if (to && t->kind != TYPE_ALIAS)
			return term_of_reference(s, t, to, edge);
		*edge = to;
		return 0;
	}
	struct h128 key;
	*ret_made = find_key(u, t, &key);
	return *ret_made ? term_of_key(s, u, t, key, edge) : 0;
}

/*
 * A type that must have its edge before @t can; NO_TYPE when there is none. Its elements before
 * *@elem are done.
 */
static uint32_t first_missing(const struct unit_types *u, const struct type_die *t, uint32_t *elem)
{
	uint32_t to = unit_type_index(u, t->ref);
	if (to != NO_TYPE && !u->edges.p[to])
		return to;
	for (; has_typed_elems(t) && *elem < t->n_elems; ++*elem) {
		const struct elem *e = &u->elems.p[t->elem + *elem];
		to = e->what != ELEM_PLAIN ? NO_TYPE : unit_type_index(u, e->type);
		if (to != NO_TYPE && !u->edges.p[to])
			return to;
	}
	return NO_TYPE;
}

/*
 * The edge of a type and of all that it needs. The stack is ours: how deep types nest is the
 * input's choice. A type without a name that contains itself finds a loop where it is still being
 * made: only damaged input has that.
 */
static int make_edge_by_stack(struct interned *s, struct unit_types *u, uint32_t type)
{
	struct unmade now = {.type = type};
	s->stack.n = 0;
	for (;;) {
		u->edges.p[now.type] = TERM_LOOP;
		uint32_t need = first_missing(u, &u->types.p[now.type], &now.elem);
		if (need != NO_TYPE) {
			if (!VEC_ADD(&s->stack, now))
				return -ENOMEM;
			now = (struct unmade){.type = need};
			continue;
		}
		bool made;
		int rc = make_edge(s, u, now.type, &made);
		if (rc < 0 || !s->stack.n)
			return rc;
		now = s->stack.p[--s->stack.n];
	}
}

/* Edges of those that have none: references first to names, which have theirs. */
static int make_edges(struct interned *s, struct unit_types *u)
{
	for (uint32_t i = 0; i < u->types.n; i++) {
		bool made;
		if (u->edges.p[i])
			continue;
		int rc = make_edge(s, u, i, &made);
		if (rc >= 0 && !made)
			rc = make_edge_by_stack(s, u, i);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int make_names(struct interned *s, struct unit_types *u)
{
	for (size_t i = 0; i < u->types.n; i++) {
		struct type_die *t = &u->types.p[i];
		if (!t->stop)
			continue;
		int rc = interned_of_name(s, t, &u->edges.p[i]);
		if (rc < 0)
			return rc;
		if (u->edges.p[i])
			continue;
		t->name = NULL;
		t->stop = false;
	}
	return 0;
}

/*
 * Terms of the contents of definitions. While one key is made, the slot of the previous one is
 * fetched from memory.
 */
static int make_owns(struct interned *s, struct unit_types *u)
{
	struct type_die *before = NULL, *end = u->types.p + u->types.n;
	struct h128 key_before = {0}, key = {0};
	for (struct type_die *t = u->types.p;; t++) {
		while (t < end && !is_definition(t))
			t++;
		if (t < end) {
			find_key(u, t, &key);
			hash_table_prefetch(&s->by_key, key);
		}
		int rc = before ? term_of_key(s, u, before, key_before, &before->own) : 0;
		if (rc < 0 || t == end)
			return rc;
		before = t;
		key_before = key;
	}
}

/*
 * Mark the definitions of names that the unit defines differently. Returns whether there are any.
 */
static bool find_conflicts(struct interned *s, struct unit_types *u)
{
	bool found = false;
	for (uint32_t i = 0; i < u->types.n; i++) {
		struct type_die *t = &u->types.p[i];
		if (!is_definition(t))
			continue;
		/*
		 * An entry that another unit left here is recognised: it is not such a definition.
		 */
		uint32_t *def = &s->v.p[u->edges.p[i]].def;
		struct type_die *first = &u->types.p[*def];
		if (*def >= i || u->edges.p[*def] != u->edges.p[i] || !is_definition(first))
			*def = i;
		else if (first->own != t->own)
			found = first->conflicts = t->conflicts = true;
	}
	return found;
}

/* A name with a conflict has all of its definitions marked. */
static void spread_conflicts(const struct interned *s, struct unit_types *u)
{
	for (uint32_t i = 0; i < u->types.n; i++)
		if (is_definition(&u->types.p[i]))
			u->types.p[i].conflicts = u->types.p[s->v.p[u->edges.p[i]].def].conflicts;
}

/* A reference to one of several definitions: its name and its content. */
static int term_of_conflict(struct interned *s, const struct type_die *t, uint32_t *ret)
{
	uint32_t name;
	int rc = interned_of_name(s, t, &name);
	if (rc < 0)
		return rc;
	struct h128 key = h128_mix(key_of_conflict, name, t->own), own = s->v.p[t->own].hash;
	*ret = hash_table_find(&s->by_key, key);
	return *ret != UINT32_MAX ? 0
				  : add_key(s, key, h128_mix(s->v.p[name].hash, own.a, own.b), ret);
}

/*
 * Interns all again, with the contents of the conflicting definitions in the edges to them. One
 * more round tells those apart that differ only in the others to which they refer.
 */
static int make_conflicts(struct interned *s, struct unit_types *u)
{
	enum { ROUNDS = 3 };
	spread_conflicts(s, u);
	int rc = 0;
	for (int round = 0; round < ROUNDS && rc >= 0; round++) {
		for (size_t i = 0; i < u->types.n && rc >= 0; i++) {
			const struct type_die *t = &u->types.p[i];
			if (!t->stop)
				u->edges.p[i] = TERM_NONE;
			else if (t->conflicts)
				rc = term_of_conflict(s, t, &u->edges.p[i]);
		}
		if (rc >= 0)
			rc = make_edges(s, u);
		if (rc >= 0)
			rc = make_owns(s, u);
	}
	return rc;
}

int interned_of_unit(struct interned *s, struct unit_types *u)
{
	if (!u->types.n)
		return 0;
	int rc = make_names(s, u);
	if (rc >= 0)
		rc = make_edges(s, u);
	if (rc >= 0)
		rc = make_owns(s, u);
	if (rc < 0 || !find_conflicts(s, u))
		return rc;
	return make_conflicts(s, u);
}
