/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which types are equal
 *
 * Types refer to one another in circles, so that the rule "equal if all their references are equal"
 * is no algorithm. It is reversed: all nodes that look alike (kind, name, sizes, names and offsets
 * of members, everything but ids) are assumed equal, and separated if they refer to nodes that are
 * not:
 *
 *	1 struct a { struct b *p; }    2 PTR to 3    3 struct b { int x; }
 *	4 struct a { struct b *p; }    5 PTR to 6    6 struct b { long x; }
 *
 *	alike        {1 4} {2 5} {3} {6}
 *	2 and 5 refer to different classes     {1 4} {2} {5} {3} {6}
 *	so do 1 and 4                          {1} {4} {2} {5} {3} {6}
 *
 * When no class can be split any more, the members of each are equal: they look alike and refer to
 * the same classes at the same positions. It is the coarsest such partition, whatever the order of
 * the splits, so the result does not depend on it. This is Hopcroft's minimisation of automata: the
 * largest piece of a class keeps its number, and only the users of a node that changed its class
 * are checked again. So a node changes its class at most log2(n) times, and a chain of a million
 * pointers that differs from another at its end takes no million rounds over all of them.
 *
 * Forward declarations. A FWD stands for the first definition of its name, as long as all
 * definitions of that name are in one class. This is assumed first. If it fails, those FWDs stand
 * for themselves, and their users are checked again. An enum without values is a forward
 * declaration too.
 *
 * VAR, DATASEC and LOCSEC are objects, not types, and the meaning of a record of an unknown kind is
 * not known: each has a class of its own.
 *
 * Cost: O(edges * log(nodes)) at worst; in practice a few visits per edge. Memory: about 16 words
 * per node while it runs, and 1 per edge of nodes that have a look-alike.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "btf/dedup.h"

/* Members of a class that refer to the same. */
struct piece {
	uint32_t leader; /* one of them; when they are cut apart, their class */
	uint32_t n;      /* of them, those among the touched */
	uint32_t first;  /* position of the next one to be put there */
};

struct refinery {
	struct btf_graph *g;
	/*
	 * users[users_at[v]] to users[users_at[v + 1] - 1]: nodes with a look-alike that refer to
	 * v.
	 */
	uint32_t *users, *users_at;
	/*
	 * Touched: a user of a node that changed its class since the user's own class was last
	 * checked. They come first among the members of their class; the others still refer to the
	 * same, all of them.
	 */
	uint32_t *n_touched; /* by class */
	uint32_t *position;  /* of each node in members */
	VEC(uint32_t) queue; /* classes with touched members, in the order in which they got them */
	size_t queue_at;
	/* Scratch for one class, each with room for all nodes. */
	uint32_t *piece_of; /* of each touched member */
	uint32_t *scratch;
	uint32_t *slots; /* hash table of pieces; + 1, 0 free */
	struct piece *pieces;
};

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15;
	return h ^ h >> 29;
}

/* ---- looking alike ---- */

/* Is word @i after the first three an id? Elements repeat. */
static bool is_id(const struct btf_shape *s, uint32_t i)
{
	if (i < s->n_fixed)
		return s->fixed_ids >> i & 1;
	return s->elem_ids >> (i - s->n_fixed) % s->n_elem & 1;
}

static uint32_t n_words(const struct btf_graph *g, uint32_t node)
{
	uint32_t info = btf_graph_record(g, node)[BTF_RECORD_INFO];
	return (uint32_t)btf_n_words(btf_graph_shape(g, node), BTF_KIND_OF(info),
				     BTF_VLEN_OF(info));
}

bool btf_graph_alike(const struct btf_graph *g, uint32_t a, uint32_t b)
{
	const struct btf_shape *s = btf_graph_shape(g, a);
	const uint32_t *x = btf_graph_record(g, a), *y = btf_graph_record(g, b);
	if (x[BTF_RECORD_INFO] != y[BTF_RECORD_INFO] || x[BTF_RECORD_NAME] != y[BTF_RECORD_NAME] ||
	    (!s->ref_is_id && x[BTF_RECORD_REF] != y[BTF_RECORD_REF]))
		return false;
	uint32_t n = n_words(g, a);
	x += BTF_RECORD_WORDS;
	y += BTF_RECORD_WORDS;
	for (uint32_t i = 0; i < n; i++)
		if (x[i] != y[i] && !is_id(s, i))
			return false;
	return true;
}

uint64_t btf_graph_hash(const struct btf_graph *g, uint32_t node)
{
	const struct btf_shape *s = btf_graph_shape(g, node);
	const uint32_t *x = btf_graph_record(g, node);
	uint64_t h = mix(x[BTF_RECORD_NAME], x[BTF_RECORD_INFO]);
	if (!s->ref_is_id)
		h = mix(h, x[BTF_RECORD_REF]);
	x += BTF_RECORD_WORDS;
	for (uint32_t i = 0; i < s->n_fixed; i++)
		h = s->fixed_ids >> i & 1 ? h : mix(h, x[i]);
	const uint32_t *end = x + n_words(g, node);
	for (x += s->n_fixed; x < end; x += s->n_elem)
		for (uint32_t i = 0; i < s->n_elem; i++)
			h = s->elem_ids >> i & 1 ? h : mix(h, x[i]);
	return h;
}

static bool is_thing(uint32_t kind)
{
	return kind == CAIRN_BTF_VAR || kind == CAIRN_BTF_DATASEC || kind >= CAIRN_BTF_LOCSEC;
}

/* Give every node the class of those alike; classes[].n counts. */
static int classify_alike(struct btf_graph *g)
{
	size_t n_slots = 16;
	while (n_slots < 2 * (size_t)g->n)
		n_slots *= 2;
	/* node; 0 free, and void is not put in */
	uint32_t *slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	g->n_classes = 1; /* of void */
	g->class_of[0] = 0;
	g->classes[0].n = 1;
	for (uint32_t node = 1; node < g->n; node++) {
		bool thing = is_thing(btf_graph_kind(g, node));
		size_t at = btf_graph_hash(g, node) >> 7 & (n_slots - 1);
		while (!thing && slots[at] && !btf_graph_alike(g, slots[at], node))
			at = (at + 1) & (n_slots - 1);
		if (!thing && slots[at]) {
			g->class_of[node] = g->class_of[slots[at]];
		} else {
			slots[at] = thing ? slots[at] : node;
			g->class_of[node] = g->n_classes++;
			g->classes[g->class_of[node]].n = 0;
		}
		g->classes[g->class_of[node]].n++;
	}
	free(slots);
	return 0;
}

static void collect_members(struct btf_graph *g)
{
	uint32_t first = 0;
	for (uint32_t c = 0; c < g->n_classes; c++) {
		g->classes[c].first = first;
		first += g->classes[c].n;
		g->classes[c].n = 0;
	}
	for (uint32_t node = 0; node < g->n; node++) {
		struct btf_class *c = &g->classes[g->class_of[node]];
		g->members[c->first + c->n++] = node;
	}
}

/* ---- the users of each node ---- */

static bool has_lookalike(const struct btf_graph *g, uint32_t node)
{
	return g->classes[g->class_of[node]].n > 1;
}

/*
 * Calls @fn for each edge that matters: from a node that may have to be separated, and from a FWD
 * to its definition.
 */
static void for_each_edge(struct refinery *r,
			  void (*fn)(struct refinery *r, uint32_t from, uint32_t to))
{
	struct btf_graph *g = r->g;
	for (uint32_t node = 1; node < g->n; node++) {
		if (g->stands[node] != node)
			fn(r, node, g->stands[node]);
		if (!has_lookalike(g, node))
			continue;
		struct btf_fields f = btf_graph_ids(g, node);
		for (uint32_t *id; (id = btf_next(&f));)
			fn(r, node, *id);
	}
}

static void count_user(struct refinery *r, uint32_t from, uint32_t to)
{
	r->users_at[to + 2]++;
}

static void add_user(struct refinery *r, uint32_t from, uint32_t to)
{
	r->users[r->users_at[to + 1]++] = from;
}

static int find_users(struct refinery *r)
{
	size_t n = r->g->n;
	r->users_at = calloc(n + 2, sizeof(*r->users_at));
	if (!r->users_at)
		return -ENOMEM;
	for_each_edge(r, count_user);
	for (size_t i = 2; i < n + 2; i++)
		r->users_at[i] += r->users_at[i - 1];
	r->users = malloc(((size_t)r->users_at[n + 1] + 1) * sizeof(*r->users));
	if (!r->users)
		return -ENOMEM;
	/*
	 * Each start is one further than its final value: filling moves it to its end, where the
	 * next one starts.
	 */
	for_each_edge(r, add_user);
	return 0;
}

/* ---- splitting ---- */

static void put(struct refinery *r, uint32_t at, uint32_t node)
{
	r->g->members[at] = node;
	r->position[node] = at;
}

static int touch(struct refinery *r, uint32_t node)
{
	struct btf_graph *g = r->g;
	uint32_t class = g->class_of[node], at = r->position[node];
	uint32_t end = g->classes[class].first + r->n_touched[class];
	if (at < end || g->classes[class].n < 2)
		return 0;
	put(r, at, g->members[end]);
	put(r, end, node);
	if (r->n_touched[class]++)
		return 0;
	return VEC_ADD(&r->queue, class) ? 0 : -ENOMEM;
}

/* @node has changed its class: its users are touched, also through a declaration of it. */
static int touch_users(struct refinery *r, uint32_t node)
{
	struct btf_graph *g = r->g;
	int rc = 0;
	for (uint32_t i = r->users_at[node]; rc == 0 && i < r->users_at[node + 1]; i++) {
		uint32_t user = r->users[i];
		rc = touch(r, user);
		/* A replacement stands for itself: there is only one level. */
		if (rc == 0 && g->stands[user] == node && user != node)
			for (uint32_t j = r->users_at[user]; rc == 0 && j < r->users_at[user + 1];
			     j++)
				rc = touch(r, r->users[j]);
	}
	return rc;
}

static uint64_t signature(const struct btf_graph *g, uint32_t node)
{
	uint64_t h = 0;
	struct btf_fields f = btf_graph_ids(g, node);
	for (uint32_t *id; (id = btf_next(&f));)
		h = mix(h, btf_graph_class(g, *id));
	return h;
}

/* Both are alike, so that their ids are at the same sites. */
static bool refer_to_the_same(const struct btf_graph *g, uint32_t a, uint32_t b)
{
	struct btf_fields fa = btf_graph_ids(g, a), fb = btf_graph_ids(g, b);
	for (uint32_t *x, *y; (x = btf_next(&fa)) && (y = btf_next(&fb));)
		if (btf_graph_class(g, *x) != btf_graph_class(g, *y))
			return false;
	return true;
}

/* The slot of the piece that @node belongs to, or a free one. */
static uint32_t *slot_of(const struct refinery *r, uint32_t node, uint32_t n_slots)
{
	uint32_t at = signature(r->g, node) >> 9 & (n_slots - 1);
	while (r->slots[at] && !refer_to_the_same(r->g, r->pieces[r->slots[at] - 1].leader, node))
		at = (at + 1) & (n_slots - 1);
	return &r->slots[at];
}

/*
 * Sort the touched members into pieces by their references. Piece 0 has the untouched members, if
 * there are any.
 * Returns the number of pieces.
 */
static uint32_t make_pieces(struct refinery *r, uint32_t first, uint32_t n_touched, uint32_t n)
{
	const struct btf_graph *g = r->g;
	uint32_t n_pieces = 1, n_slots = 4;
	while (n_slots < 2 * (uint64_t)n_touched + 2 && n_slots < 1u << 31)
		n_slots *= 2;
	r->pieces[0] =
		(struct piece){.leader = g->members[first + (n_touched < n ? n_touched : 0)]};
	for (uint32_t i = 0; i < n_touched; i++) {
		uint32_t node = g->members[first + i], piece = 0;
		/* Most classes stay whole: as long as there is one piece, it needs no table. */
		if (n_pieces > 1 || !refer_to_the_same(g, r->pieces[0].leader, node)) {
			if (n_pieces == 1) {
				memset(r->slots, 0, n_slots * sizeof(*r->slots));
				*slot_of(r, r->pieces[0].leader, n_slots) = 1;
			}
			uint32_t *slot = slot_of(r, node, n_slots);
			if (!*slot) {
				r->pieces[n_pieces++] = (struct piece){.leader = node};
				*slot = n_pieces;
			}
			piece = *slot - 1;
		}
		r->pieces[piece].n++;
		r->piece_of[i] = piece;
	}
	return n_pieces;
}

/*
 * Turn the pieces into classes. The largest keeps the number, so that few nodes change theirs. The
 * touched members of piece 0 are put last, beside the untouched.
 */
static int cut(struct refinery *r, uint32_t class, uint32_t n_touched, uint32_t n_pieces)
{
	struct btf_graph *g = r->g;
	struct btf_class whole = g->classes[class];
	uint32_t keeps = 0, at = whole.first, first_new = g->n_classes;
	uint32_t n_first = r->pieces[0].n + whole.n - n_touched;
	for (uint32_t p = 1, most = n_first; p < n_pieces; p++)
		if (r->pieces[p].n > most)
			most = r->pieces[keeps = p].n;
	for (uint32_t i = 1; i <= n_pieces; i++) {
		uint32_t p = i % n_pieces;
		uint32_t c = p == keeps ? class : g->n_classes++;
		r->pieces[p].leader = c;
		r->pieces[p].first = at;
		g->classes[c] = (struct btf_class){.first = at, .n = p ? r->pieces[p].n : n_first};
		r->n_touched[c] = 0;
		at += r->pieces[p].n;
	}
	memcpy(r->scratch, g->members + whole.first, n_touched * sizeof(*r->scratch));
	for (uint32_t i = 0; i < n_touched; i++)
		put(r, r->pieces[r->piece_of[i]].first++, r->scratch[i]);
	for (uint32_t c = first_new; c < g->n_classes; c++)
		for (uint32_t i = 0; i < g->classes[c].n; i++)
			g->class_of[g->members[g->classes[c].first + i]] = c;
	/* Copied again: touching moves members. */
	uint32_t n_changed = 0;
	for (uint32_t c = first_new; c < g->n_classes; c++) {
		memcpy(r->scratch + n_changed, g->members + g->classes[c].first,
		       g->classes[c].n * sizeof(*r->scratch));
		n_changed += g->classes[c].n;
	}
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && i < n_changed; i++)
		rc = touch_users(r, r->scratch[i]);
	return rc;
}

static int refine(struct refinery *r)
{
	int rc = 0;
	while (rc == 0 && r->queue_at < r->queue.n) {
		uint32_t class = r->queue.p[r->queue_at++], n_touched = r->n_touched[class];
		const struct btf_class *c = &r->g->classes[class];
		uint32_t n_pieces = make_pieces(r, c->first, n_touched, c->n);
		r->n_touched[class] = 0;
		if (n_pieces > 1)
			rc = cut(r, class, n_touched, n_pieces);
		/*
		 * Finished work is dropped from time to time, so that the queue does not grow
		 * without end.
		 */
		if (r->queue_at > 4096 && 2 * r->queue_at > r->queue.n) {
			r->queue.n -= r->queue_at;
			memmove(r->queue.p, r->queue.p + r->queue_at,
				r->queue.n * sizeof(*r->queue.p));
			r->queue_at = 0;
		}
	}
	return rc;
}

/* ---- forward declarations ---- */

/* 0: declares nothing; otherwise a key of kind and name that its definitions have too. */
static uint64_t declared(const struct btf_graph *g, uint32_t node, bool *is_definition)
{
	const uint32_t *p = btf_graph_record(g, node);
	uint32_t info = p[BTF_RECORD_INFO], kind = BTF_KIND_OF(info), vlen = BTF_VLEN_OF(info);
	if (!node || !p[BTF_RECORD_NAME])
		return 0;
	*is_definition = kind != CAIRN_BTF_FWD;
	if (kind == CAIRN_BTF_FWD)
		kind = BTF_KFLAG_OF(info) ? CAIRN_BTF_UNION : CAIRN_BTF_STRUCT;
	else if (kind == CAIRN_BTF_ENUM || kind == CAIRN_BTF_ENUM64)
		*is_definition = vlen != 0, kind = CAIRN_BTF_ENUM;
	else if (kind != CAIRN_BTF_STRUCT && kind != CAIRN_BTF_UNION)
		return 0;
	return (uint64_t)kind << 32 | p[BTF_RECORD_NAME];
}

/*
 * The first definition of each name that is declared: key to node, 0 without one. Base before own,
 * as ids go.
 */
static int find_definitions(const struct btf_graph *g, struct map *definitions)
{
	uint64_t first;
	bool is_definition;
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t node = 1; node < g->n; node++) {
			uint64_t key = declared(g, node, &is_definition);
			if (!key || is_definition != (pass == 1) ||
			    (pass == 1 && (!map_get(definitions, key, &first) || first)))
				continue;
			int rc = map_put(definitions, key, pass ? node : 0);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* A definition in a blob on top does not change a base's declaration. */
static void stand_for_definitions(struct btf_graph *g, const struct map *definitions)
{
	uint64_t first;
	bool is_definition;
	for (uint32_t node = 1; node < g->n; node++) {
		uint64_t key = declared(g, node, &is_definition);
		if (!key || is_definition || g->stands[node] != node ||
		    !map_get(definitions, key, &first) || !first)
			continue;
		if (node >= g->btf->start_id || first < g->btf->start_id)
			g->stands[node] = g->stands[first];
	}
}

/*
 * Names with definitions in different classes lose their meaning: set to 0. Returns how many did,
 * or -ENOMEM.
 */
static int find_ambiguous(const struct btf_graph *g, struct map *definitions)
{
	uint64_t first;
	bool is_definition;
	int n = 0;
	for (uint32_t node = 1; node < g->n; node++) {
		uint64_t key = declared(g, node, &is_definition);
		if (!key || !is_definition || !map_get(definitions, key, &first) || !first ||
		    btf_graph_class(g, (uint32_t)first) == btf_graph_class(g, node))
			continue;
		int rc = map_put(definitions, key, 0);
		if (rc < 0)
			return rc;
		n++;
	}
	return n;
}

/* Declarations of ambiguous names stand for themselves from now on. */
static int release_ambiguous(struct refinery *r, const struct map *definitions)
{
	struct btf_graph *g = r->g;
	uint64_t first;
	bool is_definition;
	int rc = 0;
	for (uint32_t node = 1; rc == 0 && node < g->n; node++) {
		uint64_t key = g->stands[node] == node ? 0 : declared(g, node, &is_definition);
		if (!key || is_definition || !map_get(definitions, key, &first) || first)
			continue;
		g->stands[node] = node;
		rc = touch_users(r, node);
	}
	return rc;
}

/* ---- all of it ---- */

static int refinery_init(struct refinery *r, struct btf_graph *g)
{
	size_t room = 16, n = g->n;
	while (room < 2 * n + 2)
		room *= 2;
	*r = (struct refinery){.g = g};
	r->n_touched = calloc(n + 1, sizeof(*r->n_touched));
	r->position = malloc(n * sizeof(*r->position));
	r->piece_of = malloc(n * sizeof(*r->piece_of));
	r->scratch = malloc(n * sizeof(*r->scratch));
	r->slots = malloc(room * sizeof(*r->slots));
	r->pieces = malloc(n * sizeof(*r->pieces));
	if (!r->n_touched || !r->position || !r->piece_of || !r->scratch || !r->slots || !r->pieces)
		return -ENOMEM;
	for (uint32_t at = 0; at < g->n; at++)
		r->position[g->members[at]] = at;
	return find_users(r);
}

static void refinery_fini(struct refinery *r)
{
	free(r->users);
	free(r->users_at);
	free(r->n_touched);
	free(r->position);
	free(r->piece_of);
	free(r->scratch);
	free(r->slots);
	free(r->pieces);
	VEC_FREE(&r->queue);
}

static int partition(struct btf_graph *g, struct refinery *r, struct map *definitions)
{
	int rc = find_definitions(g, definitions);
	if (rc < 0)
		return rc;
	stand_for_definitions(g, definitions);
	rc = refinery_init(r, g);
	for (uint32_t node = 1; rc == 0 && node < g->n; node++)
		rc = touch(r, node);
	while (rc == 0) {
		rc = refine(r);
		if (rc < 0)
			return rc;
		rc = find_ambiguous(g, definitions);
		if (rc <= 0)
			return rc;
		rc = release_ambiguous(r, definitions);
	}
	return rc;
}

int btf_partition(struct btf_graph *g)
{
	struct refinery r = {.g = g};
	struct map definitions;
	map_init(&definitions);
	int rc = classify_alike(g);
	if (rc == 0) {
		collect_members(g);
		rc = partition(g, &r, &definitions);
		collect_members(g); /* in ascending order again */
	}
	refinery_fini(&r);
	map_fini(&definitions);
	return rc;
}
