/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups of members that move together
 *
 *	int a : 3, b : 7;	a run of bit-fields: one memory location, and code may load it whole
 *	struct {} mark[0];	a marker without a size, with the member that it marks
 *	int len; char *text;	members that shall stay together
 *	char data[];		a flexible array, or a struct that ends in one: pinned, last
 *
 * A gap inside a run, which an unnamed field left, ends it: the members after it begin another.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "layout/print.h"
#include "layout/reorganize.h"

enum { NO_GROUP = UINT32_MAX };

struct former {
	struct model *model;
	const struct cairn_reorganize_opts *opts;
	uint32_t *leader; /* per member: the first of its group */
	uint32_t *next;   /* the next of its group; NO_GROUP: it is the last */
	uint32_t *tail;   /* per leader */
	uint64_t *weights;
	bool pinned_last;
};

static void join(struct former *f, uint32_t a, uint32_t b)
{
	uint32_t to = f->leader[a], from = f->leader[b];

	if (to == from)
		return;
	f->next[f->tail[to]] = from;
	f->tail[to] = f->tail[from];
	for (uint32_t i = from; i != NO_GROUP; i = f->next[i])
		f->leader[i] = to;
}

/* The bytes after it belong to it: a marker, a flexible array, a struct that ends in one. */
static bool ends_open(const struct former *f, uint32_t i)
{
	const struct cairn_layout *l = f->model->l;
	uint32_t id = f->model->t->members[i].type;

	return !f->model->order.rec.members[i].size || ends_flexible(l, layout_resolve(l, id)) ||
	       embeds_flexible(l, id, 0);
}

static void join_neighbours(struct former *f)
{
	const struct cairn_type *t = f->model->t;

	for (uint32_t i = 0; i + 1 < t->n_members; i++) {
		const struct cairn_member *a = &t->members[i], *b = &t->members[i + 1];
		bool run = a->bit_size && b->bit_size && a->bit_off + a->bit_size == b->bit_off;

		/* A field that the rules sent to the next unit still belongs to the run. */
		if (a->bit_size && b->bit_size && !run) {
			struct cairn_place_record rec = f->model->order.rec;
			uint64_t end;

			rec.members += i + 1;
			rec.n_members = 1;
			run = !layout_place_from(f->model->order.abi, &rec,
						 a->bit_off + a->bit_size, &end) &&
			      rec.members->bit_off == b->bit_off;
		}
		if (run || ends_open(f, i))
			join(f, i, i + 1);
	}
}

static uint32_t find(const struct cairn_type *t, const char *name, size_t n)
{
	for (uint32_t i = 0; i < t->n_members; i++)
		if (t->members[i].name && strlen(t->members[i].name) == n &&
		    !memcmp(t->members[i].name, name, n))
			return i;
	return NO_GROUP;
}

/* "a,b,c" */
static int join_listed(struct former *f, const char *list, struct cairn_err *err)
{
	uint32_t last = NO_GROUP;

	for (const char *name = list;; name += strcspn(name, ",") + 1) {
		size_t n = strcspn(name, ",");
		uint32_t i = find(f->model->t, name, n);

		if (i == NO_GROUP)
			return err_set(err, -EINVAL, "there is no member %.*s to be kept together",
				       (int)n, name);
		if (last != NO_GROUP)
			join(f, last, i);
		last = i;
		if (!name[n])
			return 0;
	}
}

static int weigh(struct former *f)
{
	struct model *model = f->model;
	const struct cairn_type *t = model->t;

	if (!f->opts->weight)
		return 0;
	f->weights = arena_array(&model->arena, t->n_members, sizeof(*f->weights));
	if (!f->weights)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_members; i++)
		f->weights[i] =
			t->members[i].name ? f->opts->weight(f->opts->ctx, t->members[i].name) : 0;
	return 0;
}

/* ---- from lists of members to groups ---- */

static bool same_kind(const struct order *o, const struct group *a, const struct group *b)
{
	return a->simple && b->simple && a->simple_align == b->simple_align &&
	       a->simple_size == b->simple_size &&
	       (!o->weights || o->weights[a->first] == o->weights[b->first]);
}

static uint64_t bits_of(const struct cairn_place_member *m)
{
	return m->bit_field ? m->width : 8 * m->size;
}

/* For a group of one ordinary member without special rules. */
static void simplify(const struct order *o, struct group *g)
{
	const struct cairn_place_member *m = &o->rec.members[g->first];

	if (g->n != 1 || m->bit_field || o->rec.packed || o->rec.pack || o->abi->ms)
		return;
	g->simple = true;
	g->simple_align = 8 * max_u64(m->align ? m->align : 1, m->aligned);
	g->simple_size = 8 * m->size;
}

static void describe(const struct order *o, struct group *g)
{
	const struct cairn_place_member *m = &o->rec.members[g->first];

	g->bits = m->bit_field;
	/* A run fits anywhere. */
	g->align = m->bit_field ? 1 : (uint32_t)max_u64(m->align, m->aligned);
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		g->min_bits += bits_of(&o->rec.members[i]);
		g->hot |= o->weights && o->weights[i];
	}
	simplify(o, g);
}

/* Puts the members of a group one after the other into the new arrays. */
static void lay_down(struct former *f, uint32_t leader, const struct cairn_place_member *from,
		     uint64_t *weights, uint32_t *n, struct group *g)
{
	struct model *model = f->model;

	*g = (struct group){.first = *n};
	for (uint32_t i = leader; i != NO_GROUP; i = f->next[i]) {
		model->order.rec.members[*n] = from[i];
		model->member_of[*n] = i;
		if (weights)
			weights[*n] = f->weights[i];
		(*n)++;
		g->n++;
	}
}

static void number_kinds(const struct order *o, struct group *groups)
{
	for (uint32_t i = 0; i < o->n; i++) {
		groups[i].kind = i;
		for (uint32_t k = 0; k < i; k++) {
			if (!same_kind(o, &groups[k], &groups[i]))
				continue;
			groups[i].kind = groups[k].kind;
			break;
		}
	}
}

/* Arrays for all members, zeroed. */
static int allocate(struct former *f, struct group **ret_groups, uint64_t **ret_weights)
{
	struct model *model = f->model;
	uint32_t n = model->t->n_members;

	*ret_groups = arena_array(&model->arena, n, sizeof(**ret_groups));
	*ret_weights = f->weights ? arena_array(&model->arena, n, sizeof(**ret_weights)) : NULL;
	model->member_of = arena_array(&model->arena, n, sizeof(*model->member_of));
	model->order_of = arena_array(&model->arena, n, sizeof(*model->order_of));
	return *ret_groups && (*ret_weights || !f->weights) && model->member_of && model->order_of
		       ? 0
		       : -ENOMEM;
}

static int make_groups(struct former *f)
{
	struct model *model = f->model;
	struct order *o = &model->order;
	const struct cairn_place_member *from = o->rec.members;
	uint32_t n_members = model->t->n_members, n = 0, n_groups = 0;
	struct group *groups;
	uint64_t *weights;

	o->rec.members = arena_array(&model->arena, n_members, sizeof(*o->rec.members));
	if (!o->rec.members || allocate(f, &groups, &weights) < 0)
		return -ENOMEM;
	o->weights = weights;
	uint32_t last = f->pinned_last ? f->leader[n_members - 1] : NO_GROUP;
	for (uint32_t i = 0; i < n_members; i++) {
		if (f->leader[i] != i || i == last)
			continue;
		lay_down(f, i, from, weights, &n, &groups[n_groups]);
		describe(o, &groups[n_groups++]);
	}
	o->groups = groups;
	o->n = n_groups;
	if (last != NO_GROUP) {
		lay_down(f, last, from, weights, &n, &groups[n_groups]);
		describe(o, &groups[n_groups]);
		o->last = &groups[n_groups];
	}
	if (o->n && f->opts->pin_first) {
		o->first = groups;
		o->groups++;
		o->n--;
	}
	number_kinds(o, (struct group *)o->groups);
	return 0;
}

/* A member that is kept together with a pinned one cannot come before or after it. */
static int check_pins(const struct former *f, struct cairn_err *err)
{
	uint32_t last = f->model->t->n_members - 1;

	if (f->pinned_last && f->tail[f->leader[last]] != last)
		return err_set(err, -EINVAL,
			       "the last member has to stay last: it has no size of its own");
	if (f->opts->pin_first && f->leader[0] != 0)
		return err_set(err, -EINVAL,
			       "%s must stay first, and must stay after another member",
			       f->model->t->members[0].name ? f->model->t->members[0].name
							    : "the first member");
	return 0;
}

int model_groups(struct model *model, const struct cairn_reorganize_opts *opts,
		 struct cairn_err *err)
{
	uint32_t n = model->t->n_members;
	struct former f = {
		.model = model,
		.opts = opts,
		.leader = arena_array(&model->arena, n, sizeof(uint32_t)),
		.next = arena_array(&model->arena, n, sizeof(uint32_t)),
		.tail = arena_array(&model->arena, n, sizeof(uint32_t)),
	};

	if (!f.leader || !f.next || !f.tail || weigh(&f) < 0)
		return err_nomem(err, "groups of members");
	for (uint32_t i = 0; i < n; i++) {
		f.leader[i] = f.tail[i] = i;
		f.next[i] = NO_GROUP;
	}
	f.pinned_last = ends_open(&f, n - 1);
	join_neighbours(&f);
	for (size_t i = 0; i < opts->n_together; i++) {
		int rc = join_listed(&f, opts->together[i], err);

		if (rc)
			return rc;
	}
	int rc = check_pins(&f, err);
	if (rc)
		return rc;
	return make_groups(&f) < 0 ? err_nomem(err, "groups of members") : 0;
}
