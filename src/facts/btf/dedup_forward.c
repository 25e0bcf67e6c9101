/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structs whose units had different knowledge
 *
 * If a name has several definitions (many drivers have a "struct priv"), a declaration of it cannot
 * stand for one of them, and so this stays apart:
 *
 *	unit 1   struct dev { struct priv *p; }    struct priv { int a; }
 *	unit 2   struct dev { struct priv *p; }    struct priv { long b; }
 *	unit 3   struct dev { struct priv *p; }    struct priv;
 *
 * The first two are different. The third is the first, in a unit with fewer definitions: wherever
 * it has a declaration, the first has that, or a definition of that name. It is replaced by the
 * first that covers it so. The same holds for all structs on the way, or it would not hold for this
 * one: they are replaced together.
 *
 * A struct of the base also covers a struct with more definitions: modules define types that the
 * kernel only declares, and would otherwise bring half of the kernel's structs with them. Only
 * structs that point to such a definition themselves stay (dedup_defined.c), so that the definition
 * is found from the types that the module uses.
 *
 * Candidates look alike. A comparison follows both graphs, from pair to pair. It takes a pair that
 * is being compared for equal, and ends at the first difference.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "btf/dedup.h"

/*
 * A struct with more look-alikes than this is compared with the first ones only: time is bounded,
 * and some stay double.
 */
#define CANDIDATES_MAX 256

struct pair {
	uint32_t a, b; /* nodes that stand for themselves and are the first of their class */
};

struct unifier {
	struct btf_graph *g;
	uint32_t *taken_for; /* by node b: the node a that it is taken for; 0 none */
	/* all that were taken for equal; those from next on are to be compared */
	VEC(struct pair) pairs;
	size_t next;
	bool either;   /* a may know less than b too */
	bool *defined; /* btf_point_to_defined() */
	/* chains of first members that look alike, in ascending order; 0 end */
	uint32_t *next_alike;
	uint32_t *last_alike; /* by slot: the newest of a chain */
	uint32_t *slots;      /* hash table of chains: the first; 0 free */
	size_t n_slots;
};

/* The representative of the class of a node's replacement. */
static uint32_t first_of(const struct btf_graph *g, uint32_t node)
{
	return g->stands[g->members[g->classes[btf_graph_class(g, node)].first]];
}

/* The end of a node's chain of replacements. */
static uint32_t root_of(const struct btf_graph *g, uint32_t node)
{
	while (g->stands[node] != node)
		node = g->stands[node];
	return node;
}

/*
 * From now on @to, or its replacement, stands for @node. False if @node has a replacement already,
 * which @to need not cover; if @node stands for @to (two may cover each other); and for the base,
 * which does not change.
 */
static bool let_stand(struct btf_graph *g, uint32_t to, uint32_t node)
{
	to = root_of(g, to);
	if (g->stands[node] != node || to == node || node < g->btf->start_id)
		return false;
	g->stands[node] = to;
	return true;
}

static int take(struct unifier *u, uint32_t a, uint32_t b)
{
	struct pair p = {a, b};
	u->taken_for[b] = a;
	return VEC_ADD(&u->pairs, p) ? 0 : -ENOMEM;
}

/* 1: equal, or taken for it from now on; 0: not; -ENOMEM. */
static int compare(struct unifier *u, uint32_t a, uint32_t b)
{
	const struct btf_graph *g = u->g;
	a = first_of(g, a);
	b = first_of(g, b);
	if (a == b || btf_graph_declares(g, b, a) || (u->either && btf_graph_declares(g, a, b)))
		return 1;
	if (u->taken_for[b])
		return u->taken_for[b] == a;
	if (!a || !b || !btf_graph_alike(g, a, b))
		return 0;
	int rc = take(u, a, b);
	return rc < 0 ? rc : 1;
}

static int compare_all(struct unifier *u, uint32_t a, uint32_t b)
{
	const struct btf_graph *g = u->g;
	int rc = compare(u, a, b);
	while (rc == 1 && u->next < u->pairs.n) {
		struct pair p = u->pairs.p[u->next++];
		struct btf_fields fa = btf_graph_ids(g, p.a);
		struct btf_fields fb = btf_graph_ids(g, p.b);
		for (uint32_t *x, *y; rc == 1 && (x = btf_next(&fa)) && (y = btf_next(&fb));)
			rc = compare(u, *x, *y);
	}
	return rc;
}

/*
 * May @to, or its replacement, stand for @node? A type of the base may not, if @node points to a
 * definition that the base does not have.
 */
static bool may_stand(const struct unifier *u, uint32_t to, uint32_t node)
{
	return root_of(u->g, to) >= u->g->btf->start_id || !u->defined[node];
}

/*
 * Does @a cover @b? The pairs that were taken for equal then are. 1 if a type has a new
 * replacement, 0, -ENOMEM.
 */
static int try_pair(struct unifier *u, uint32_t a, uint32_t b)
{
	struct btf_graph *g = u->g;
	u->either = a < g->btf->start_id;
	u->pairs.n = u->next = 0;
	bool changed = false;
	int rc = compare_all(u, a, b);
	for (size_t i = 0; i < u->pairs.n; i++) {
		struct pair p = u->pairs.p[i];
		u->taken_for[p.b] = 0;
		if (rc != 1 || p.b < g->btf->start_id || !btf_graph_is_struct(g, p.b) ||
		    !may_stand(u, p.a, p.b))
			continue;
		const struct btf_class *c = &g->classes[g->class_of[p.b]];
		for (uint32_t k = 0; k < c->n; k++)
			changed |= let_stand(g, p.a, g->members[c->first + k]);
	}
	return rc == 1 ? changed : rc;
}

/* The chain that @node belongs to; a free slot when there is none yet. */
static size_t chain_of(const struct unifier *u, uint32_t node)
{
	size_t at = btf_graph_hash(u->g, node) >> 5 & (u->n_slots - 1);
	while (u->slots[at] && !btf_graph_alike(u->g, u->slots[at], node))
		at = (at + 1) & (u->n_slots - 1);
	return at;
}

/* @node against its look-alikes with lower ids. Returns 1 when one was found, 0, -ENOMEM. */
static int unify(struct unifier *u, uint32_t node)
{
	struct btf_graph *g = u->g;
	size_t at = chain_of(u, node);
	int rc = 0, left = CANDIDATES_MAX;
	for (uint32_t a = u->slots[at]; a && rc == 0 && left--; a = u->next_alike[a]) {
		if (g->stands[a] != a)
			continue;
		rc = node >= g->btf->start_id ? try_pair(u, a, node) : 0;
		/* Or it is the earlier one that knows less. */
		if (rc == 0 && a >= g->btf->start_id)
			rc = try_pair(u, node, a);
	}
	if (g->stands[node] != node)
		return rc;
	if (u->slots[at])
		u->next_alike[u->last_alike[at]] = node;
	else
		u->slots[at] = node;
	u->last_alike[at] = node;
	return rc;
}

/* Nothing to do where every declaration has one definition or none. */
static bool has_open_declaration(const struct btf_graph *g)
{
	for (uint32_t node = 1; node < g->n; node++)
		if (btf_graph_kind(g, node) == CAIRN_BTF_FWD && g->stands[node] == node)
			return true;
	return false;
}

static void shorten(struct btf_graph *g)
{
	for (uint32_t node = 1; node < g->n; node++)
		g->stands[node] = root_of(g, node);
}

/*
 * A type that is equal to a replaced struct gets the same replacement. It may have become equal
 * only now: then it was a declaration that the other one led to.
 * Returns their number.
 */
static int follow_equals(struct unifier *u)
{
	struct btf_graph *g = u->g;
	int n = 0;
	for (uint32_t node = 1; node < g->n; node++) {
		if (!btf_graph_is_struct(g, node) || g->stands[node] == node)
			continue;
		const struct btf_class *c = &g->classes[g->class_of[node]];
		for (uint32_t i = 0; i < c->n; i++) {
			uint32_t other = g->members[c->first + i];
			n += may_stand(u, node, other) && let_stand(g, node, other);
		}
	}
	return n;
}

static int unify_all(struct unifier *u)
{
	struct btf_graph *g = u->g;
	int n = follow_equals(u);
	for (uint32_t node = 1; node < g->n; node++) {
		if (!btf_graph_is_struct(g, node) || g->stands[node] != node ||
		    first_of(g, node) != node)
			continue;
		int rc = unify(u, node);
		if (rc < 0)
			return rc;
		n += rc;
	}
	shorten(g);
	return n;
}

int btf_unify_forwards(struct btf_graph *g)
{
	struct unifier u = {.g = g, .n_slots = 16};
	int rc = -ENOMEM;
	if (!has_open_declaration(g))
		return 0;
	while (u.n_slots < 2 * (size_t)g->n)
		u.n_slots *= 2;
	u.taken_for = calloc(g->n, sizeof(*u.taken_for));
	u.next_alike = calloc(g->n, sizeof(*u.next_alike));
	u.slots = calloc(u.n_slots, sizeof(*u.slots));
	u.last_alike = calloc(u.n_slots, sizeof(*u.last_alike));
	u.defined = btf_point_to_defined(g);
	if (u.taken_for && u.next_alike && u.slots && u.last_alike && u.defined)
		rc = unify_all(&u);
	free(u.defined);
	free(u.taken_for);
	free(u.next_alike);
	free(u.slots);
	free(u.last_alike);
	VEC_FREE(&u.pairs);
	return rc;
}
