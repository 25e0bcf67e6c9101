/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The best order of groups
 *
 * Problem: groups are placed one after the other; each takes its bytes and, before them, the bytes
 * that its alignment skips. Which order ends first?
 *
 *	char c; long l; int i; void *x;      c.......llllllllii ii....xxxxxxxx   32
 *	char c; int i; long l; void *x;      c...iiiillllllllxxxxxxxx            24
 *
 * Plain orders. In falling order of alignments there is no hole when every size is a multiple of
 * its alignment. This holds for all types of C except those that an attribute aligned. Then only
 * the padding at the end remains, which any order has that reaches the bound
 *
 *	round_up(sum of all members' bits, struct alignment)
 *
 * After a pinned member, or with bit-fields, a greedy order is better: among the groups that fit
 * without a hole it takes the most aligned, otherwise the one with the smallest hole. The best of
 * these and the original order is taken. If it reaches the bound there is nothing more to find
 * (except for cache lines and the number of moves).
 *
 * Exact search. Let f(g, p) be the end of group g when it begins after bit p.
 *
 *     Lemma. f(g, .) is monotone: p <= q implies f(g, p) <= f(g, q).
 *     An ordinary member ends at round_up(p, align) + size, and both steps are monotone. A
 *     bit-field of width w in a type of S bits, aligned to A, begins at p, or at round_up(p, A) if
 *     p mod A + w > S. For p <= q in the same block of A bits: if p goes to the next block, so does
 *     q, as q mod A >= p mod A. In different blocks, p goes at most to the start of q's.
 *     Microsoft's units are ordinary members. A group is a composition of such steps.
 *
 *	Theorem. For a set of groups let e(set) be the earliest end of any order of it. Then
 *	e(set) = min over g in set of f(g, e(set \ g)).
 *	For an order that ends with g, the others end at e(set \ g) or later; by the lemma g then
 *	ends at f(g, e(set \ g)) or later, and that is reached.
 *
 * So for the size alone one number per set is enough: 2^n sets instead of n! orders, and the
 * smallest size is proven. The other goals need more than one state per set: (end, cost). A state
 * is dropped when another of the same set ends no later and costs no more. With weights a later end
 * may save a line, so only states with the same end and the same last line are compared. Both rules
 * keep all states that can become the best. Bounds: a state is dropped if its end and the remaining
 * bits exceed the best size known.
 *
 * Groups that are placed alike and are used equally often are interchangeable. Only orders that
 * keep them in their original order are searched: swapping two of them changes no end, and only
 * moves more members. So 30 pointers, 10 ints and 5 chars have 31 * 11 * 6 sets, not 2^45, and
 * structs with far more than 12 groups are proven, too.
 *
 * Rejected: branch and bound over orders (12! without a good bound on holes); sorting by size alone
 * (wrong for arrays).
 */
#include "layout/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"

/* ---- placing and costs ---- */

uint64_t order_place(const struct order *o, const struct group *g, uint64_t pos)
{
	struct cairn_place_record rec = o->rec;
	uint64_t end = pos;

	rec.members += g->first;
	rec.n_members = g->n;
	if (g->simple) {
		rec.members->bit_off = round_up(pos, g->simple_align);
		return rec.members->bit_off + g->simple_size;
	}
	/* Runs of bit-fields stay apart: "char :0". */
	if (g->bits && !o->merge)
		pos = round_up(pos, 8);
	/*
	 * Beyond the largest size there is no best order; order_cost() then says so by a size that
	 * is not taken.
	 */
	if (layout_place_from(o->abi, &rec, pos, &end) < 0)
		return 8 * CAIRN_LAYOUT_SIZE_MAX;
	return end;
}

/*
 * The cost of placing one more group; @last_line is that of the last hot member before it, -1:
 * none.
 */
static void add_lines(const struct order *o, const struct group *g, int64_t *last_line,
		      struct cost *c)
{
	if (!o->weights || !g->hot)
		return;
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct cairn_place_member *m = &o->rec.members[i];
		uint64_t bits = m->bit_field ? m->width : 8 * m->size;
		int64_t from = (int64_t)(m->bit_off / 8 / o->cacheline);
		int64_t to = (int64_t)((m->bit_off + (bits ? bits - 1 : 0)) / 8 / o->cacheline);

		if (!o->weights[i])
			continue;
		c->far += o->weights[i] * (uint64_t)from;
		if (to <= *last_line)
			continue;
		c->lines += (uint64_t)(to - (from > *last_line ? from - 1 : *last_line));
		*last_line = to;
	}
}

static uint64_t size_of_end(const struct order *o, uint64_t end)
{
	return round_up((end + 7) / 8, o->align);
}

struct cost order_cost(const struct order *o, const uint32_t *perm)
{
	struct cost c = {0};
	uint64_t pos = 0;
	int64_t line = -1;

	if (o->first) {
		pos = order_place(o, o->first, pos);
		add_lines(o, o->first, &line, &c);
	}
	for (uint32_t i = 0; i < o->n; i++) {
		pos = order_place(o, &o->groups[perm[i]], pos);
		add_lines(o, &o->groups[perm[i]], &line, &c);
		for (uint32_t k = 0; k < i; k++)
			c.turned += perm[k] > perm[i];
	}
	if (o->last) {
		pos = order_place(o, o->last, pos);
		add_lines(o, o->last, &line, &c);
	}
	c.size = size_of_end(o, pos);
	return c;
}

bool order_better(const struct order *o, const struct cost *a, const struct cost *b)
{
	if (o->lines_first && a->lines != b->lines)
		return a->lines < b->lines;
	if (a->size != b->size)
		return a->size < b->size;
	if (a->lines != b->lines)
		return a->lines < b->lines;
	if (a->far != b->far)
		return a->far < b->far;
	return a->turned < b->turned;
}

uint64_t order_bound(const struct order *o)
{
	uint64_t bits = (o->first ? o->first->min_bits : 0) + (o->last ? o->last->min_bits : 0);

	for (uint32_t i = 0; i < o->n; i++)
		bits += o->groups[i].min_bits;
	return size_of_end(o, bits);
}

/* ---- plain orders ---- */

static void sort_falling(const struct order *o, uint32_t *perm, bool hot_first)
{
	for (uint32_t i = 0; i < o->n; i++)
		perm[i] = i;
	/* Stable, and structs are small. */
	for (uint32_t i = 1; i < o->n; i++) {
		uint32_t it = perm[i], k = i;

		for (; k; k--) {
			const struct group *a = &o->groups[perm[k - 1]], *b = &o->groups[it];

			if (hot_first && a->hot != b->hot ? a->hot : a->align >= b->align)
				break;
			perm[k] = perm[k - 1];
		}
		perm[k] = it;
	}
}

/* Among the remaining groups: no hole and the most aligned, else the smallest hole. */
static uint32_t best_fit(const struct order *o, const bool *used, uint64_t pos)
{
	uint64_t best_hole = UINT64_MAX;
	uint32_t best = 0;

	for (uint32_t i = 0; i < o->n; i++) {
		const struct group *g = &o->groups[i];

		if (used[i])
			continue;
		uint64_t hole = order_place(o, g, pos) - pos - g->min_bits;
		if (hole > best_hole || (hole == best_hole && g->align <= o->groups[best].align))
			continue;
		best_hole = hole;
		best = i;
	}
	return best;
}

static void fill_holes(const struct order *o, uint32_t *perm, bool *used)
{
	uint64_t pos = o->first ? order_place(o, o->first, 0) : 0;

	memset(used, 0, o->n);
	for (uint32_t i = 0; i < o->n; i++) {
		perm[i] = best_fit(o, used, pos);
		used[perm[i]] = true;
		pos = order_place(o, &o->groups[perm[i]], pos);
	}
}

/* Nothing that is larger than the struct is now, whatever else it gains. */
static void take_if_better(const struct order *o, const uint32_t *perm, uint64_t original,
			   struct cost *best, uint32_t *best_perm)
{
	struct cost c = order_cost(o, perm);

	if (c.size > original || !order_better(o, &c, best))
		return;
	*best = c;
	memcpy(best_perm, perm, o->n * sizeof(*perm));
}

/* Beyond this number of groups filling holes, which is quadratic, is left out. */
enum { FILL_MAX = 2000 };

int order_greedy(const struct order *o, struct cost *ret, uint32_t *best_perm)
{
	uint32_t *perm = malloc((o->n + 1) * sizeof(*perm));
	bool *used = malloc(o->n + 1);

	if (!perm || !used) {
		free(perm);
		free(used);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < o->n; i++)
		best_perm[i] = i;
	*ret = order_cost(o, best_perm);
	uint64_t original = ret->size;
	for (int hot_first = 0; hot_first <= (o->weights != NULL); hot_first++) {
		sort_falling(o, perm, hot_first);
		take_if_better(o, perm, original, ret, best_perm);
	}
	if (o->n <= FILL_MAX) {
		fill_holes(o, perm, used);
		take_if_better(o, perm, original, ret, best_perm);
	}
	free(perm);
	free(used);
	return 0;
}

/* ---- exact search ---- */

/* Sets are bits of a word. */
enum { GROUPS_MAX = 64 };

/*
 * 72 bytes each. With 12 groups and no weights there are some 10,000. If the smallest size is known
 * already, and only the order most like the old one is searched, fewer will do.
 */
static const size_t STATES_MAX = (size_t)1 << 20, STATES_FOR_LOOKS = (size_t)1 << 14;

#define NONE UINT32_MAX

/* A set of groups, placed. */
struct state {
	struct cost cost; /* size is not known yet */
	uint64_t end;     /* bits */
	int64_t line;
	uint32_t next; /* of the same set */
	uint32_t from; /* the state without the last group */
	uint32_t group;
};

struct set {
	uint64_t mask, left; /* left: least bits of the groups that are not in it */
	uint32_t states;
};

struct search {
	const struct order *o;
	VEC(struct state) states;
	VEC(struct set) now, then; /* sets of i groups, of i + 1 */
	struct map index;          /* of then, by the mask */
	uint64_t limit;            /* bytes: nothing larger is looked for */
	size_t states_max;
	bool too_many, no_memory;
};

/* Costs as far as they are known: the size is the same or decided by the end. */
static bool costs_no_more(const struct cost *a, const struct cost *b)
{
	if (a->lines != b->lines)
		return a->lines < b->lines;
	if (a->far != b->far)
		return a->far < b->far;
	return a->turned <= b->turned;
}

static bool dominates(const struct order *o, const struct state *a, const struct state *b)
{
	if (o->weights ? a->end != b->end || a->line != b->line : a->end > b->end)
		return false;
	return (o->size_only && !o->weights) || costs_no_more(&a->cost, &b->cost);
}

static void insert(struct search *s, struct set *set, const struct state *new)
{
	for (uint32_t i = set->states; i != NONE; i = s->states.p[i].next)
		if (dominates(s->o, &s->states.p[i], new))
			return;
	for (uint32_t *link = &set->states; *link != NONE;) {
		if (dominates(s->o, new, &s->states.p[*link]))
			*link = s->states.p[*link].next;
		else
			link = &s->states.p[*link].next;
	}
	if (s->states.n >= s->states_max) {
		s->too_many = true;
		return;
	}
	uint32_t at = (uint32_t)s->states.n;
	if (!VEC_ADD(&s->states, *new)) {
		s->no_memory = true;
		return;
	}
	s->states.p[at].next = set->states;
	set->states = at;
}

static struct set *set_of(struct search *s, uint64_t mask, uint64_t left)
{
	uint64_t at;

	if (map_get(&s->index, mask, &at))
		return &s->then.p[at];
	if (map_put(&s->index, mask, s->then.n) < 0 ||
	    !VEC_ADD(&s->then, ((struct set){.mask = mask, .left = left, .states = NONE}))) {
		s->no_memory = true;
		return NULL;
	}
	return &s->then.p[s->then.n - 1];
}

static bool is_next_of_kind(const struct order *o, uint64_t mask, uint32_t g)
{
	for (uint32_t i = 0; i < g; i++)
		if (!(mask >> i & 1) && o->groups[i].kind == o->groups[g].kind)
			return false;
	return true;
}

static void extend(struct search *s, const struct set *set, uint32_t g)
{
	const struct order *o = s->o;
	uint64_t left = set->left - o->groups[g].min_bits, mask = set->mask | UINT64_C(1) << g;
	uint64_t behind = set->mask >> g >> 1;
	struct set *to = NULL;

	for (uint32_t i = set->states; i != NONE && !s->no_memory; i = s->states.p[i].next) {
		struct state new = s->states.p[i];

		new.end = order_place(o, &o->groups[g], new.end);
		if (size_of_end(o, new.end + left + (o->last ? o->last->min_bits : 0)) > s->limit)
			continue;
		add_lines(o, &o->groups[g], &new.line, &new.cost);
		new.cost.turned += (uint64_t)__builtin_popcountll(behind);
		new.from = i;
		new.group = g;
		to = to ? to : set_of(s, mask, left);
		if (to)
			insert(s, to, &new);
	}
}

static int run(struct search *s)
{
	for (uint32_t step = 0; step < s->o->n; step++) {
		for (size_t i = 0; i < s->now.n; i++) {
			for (uint32_t g = 0; g < s->o->n; g++)
				if (!(s->now.p[i].mask >> g & 1) &&
				    is_next_of_kind(s->o, s->now.p[i].mask, g))
					extend(s, &s->now.p[i], g);
			if (s->no_memory)
				return -ENOMEM;
			if (s->too_many)
				return 0;
		}
		VEC_FREE(&s->now);
		s->now.p = s->then.p;
		s->now.n = s->then.n;
		s->now.cap = s->then.cap;
		s->then.p = NULL;
		s->then.n = s->then.cap = 0;
		map_fini(&s->index);
		map_init(&s->index);
	}
	return 1;
}

static void read_back(const struct search *s, uint32_t at, uint32_t *perm)
{
	for (uint32_t i = s->o->n; i-- > 0; at = s->states.p[at].from)
		perm[i] = s->states.p[at].group;
}

static void choose(const struct search *s, struct cost *best, uint32_t *perm)
{
	const struct order *o = s->o;
	uint32_t found = NONE;

	for (uint32_t i = s->now.n ? s->now.p[0].states : NONE; i != NONE;
	     i = s->states.p[i].next) {
		struct state full = s->states.p[i];

		if (o->last) {
			full.end = order_place(o, o->last, full.end);
			add_lines(o, o->last, &full.line, &full.cost);
		}
		full.cost.size = size_of_end(o, full.end);
		if (full.cost.size > s->limit || !order_better(o, &full.cost, best))
			continue;
		*best = full.cost;
		found = i;
	}
	if (found != NONE)
		read_back(s, found, perm);
}

int order_exact(const struct order *o, struct cost *best, uint32_t *perm)
{
	bool size_known = !o->weights && best->size == order_bound(o);
	struct search s = {.o = o,
			   .limit = best->size,
			   .states_max = size_known ? STATES_FOR_LOOKS : STATES_MAX};
	struct state start = {.line = -1, .next = NONE, .from = NONE};
	struct set none = {.states = 0};
	int rc = 0;

	if (o->n > GROUPS_MAX)
		return 0;
	if (o->lines_first) {
		/* The original order is the upper bound. */
		uint32_t original[GROUPS_MAX];

		for (uint32_t i = 0; i < o->n; i++)
			original[i] = i;
		s.limit = order_cost(o, original).size;
	}
	for (uint32_t i = 0; i < o->n; i++)
		none.left += o->groups[i].min_bits;
	if (o->first) {
		start.end = order_place(o, o->first, 0);
		add_lines(o, o->first, &start.line, &start.cost);
	}
	map_init(&s.index);
	rc = VEC_ADD(&s.states, start) && VEC_ADD(&s.now, none) ? run(&s) : -ENOMEM;
	if (rc == 1)
		choose(&s, best, perm);
	map_fini(&s.index);
	VEC_FREE(&s.states);
	VEC_FREE(&s.now);
	VEC_FREE(&s.then);
	return rc;
}
