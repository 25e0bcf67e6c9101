/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reorganising a struct: its members as groups (groups.c), their best order (order.c), and the
 * result
 *
 * First the struct is placed in its present order. Only if the rules put every member at its real
 * offset, they can be trusted with another order. A struct of C++ with base classes, or one under
 * an unrecorded #pragma pack, is refused.
 */
#include "layout/reorganize.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "base/err.h"
#include "base/opts.h"

/* ---- the members as the rules see them ---- */

struct cairn_place_member layout_member_as_placed(struct cairn_layout *l,
						  const struct cairn_member *in,
						  const struct cairn_layout_member *m)
{
	struct cairn_place_member p = {.size = m->size,
				       .align = layout_align(l, in->type),
				       .named = true,
				       .aligned = m->aligned};

	if (in->bit_size) {
		p.bit_field = true;
		p.width = in->bit_size;
	}
	return p;
}

static int fill(struct model *model, const struct cairn_layout_facts *f,
		const struct cairn_layout_member *m, struct cairn_err *err)
{
	const struct cairn_type *t = model->t;

	model->order.rec = (struct cairn_place_record){
		.members =
			arena_array(&model->arena, t->n_members, sizeof(struct cairn_place_member)),
		.n_members = t->n_members,
		.packed = f->packed,
		.aligned = f->aligned,
	};
	if (!model->order.rec.members)
		return err_nomem(err, "members");
	for (uint32_t i = 0; i < t->n_members; i++)
		model->order.rec.members[i] =
			layout_member_as_placed(model->l, &t->members[i], &m[i]);
	return 0;
}

/*
 * The rules put them where they are. Fields without a name, which the types do not tell, begin a
 * run anew.
 */
static int check_member(struct model *model, uint32_t i, uint64_t pos, uint64_t *ret_end,
			struct cairn_err *err)
{
	struct cairn_place_record rec = model->order.rec;
	const struct cairn_member *in = &model->t->members[i];
	uint64_t unit = 8 * model->order.rec.members[i].align;

	rec.members += i;
	rec.n_members = 1;
	if (layout_place_from(model->order.abi, &rec, pos, ret_end) < 0)
		return err_set(err, -ERANGE, "larger than 2^40 bytes");
	/*
	 * A gap in a run: there is a field without a name, up to the next byte, or the next unit.
	 */
	if (in->bit_size && in->bit_off > rec.members->bit_off && in->bit_off - pos <= unit) {
		model->gaps = true;
		rec.members->bit_off = in->bit_off;
		*ret_end = in->bit_off + in->bit_size;
	}
	if (rec.members->bit_off == in->bit_off)
		return 0;
	return err_set(err, -EOPNOTSUPP,
		       "%s is at byte %" PRIu64 ", bit %" PRIu64
		       ", where the rules of %s would put it at byte %" PRIu64 ", bit %" PRIu64
		       ": the result of another order is not known",
		       in->name ? in->name : "an anonymous member", in->bit_off / 8,
		       in->bit_off % 8, model->order.abi->name, rec.members->bit_off / 8,
		       rec.members->bit_off % 8);
}

static int check(struct model *model, struct cairn_err *err)
{
	const struct cairn_type *t = model->t;
	struct cairn_place_record rec = model->order.rec;
	uint64_t pos = 0;

	model->gaps = false;
	for (uint32_t i = 0; i < t->n_members; i++) {
		int rc = check_member(model, i, pos, &pos, err);

		if (rc)
			return rc;
	}
	if (layout_place_from(model->order.abi, &rec, 0, NULL) < 0)
		return err_set(err, -ERANGE, "larger than 2^40 bytes");
	model->order.align = rec.align;
	if (round_up((pos + 7) / 8, rec.align) == t->size)
		return 0;
	return err_set(err, -EOPNOTSUPP,
		       "it has %s, where the rules of %s give it %" PRIu64
		       ": the result of another order is not known",
		       cairn_counted(t->size, "byte").text, model->order.abi->name,
		       round_up((pos + 7) / 8, rec.align));
}

/* C++ has other rules for things that C does not have. */
static int check_kind(const struct cairn_type *t, struct cairn_err *err)
{
	if (!is_structure(t) || !has_layout(t) || !t->n_members)
		return err_set(err, -EOPNOTSUPP, "it is no struct with members");
	for (uint32_t i = 0; i < t->n_members; i++)
		if (t->members[i].is_base_class || t->members[i].dynamic)
			return err_set(
				err, -EOPNOTSUPP,
				"a class with base classes is not laid out as C's structs are");
	return 0;
}

static int model_init(struct model *model, uint32_t id, const struct cairn_reorganize_opts *opts,
		      struct cairn_err *err)
{
	struct cairn_layout *l = model->l;
	struct cairn_layout_facts f;

	model->t = layout_resolve(l, id);
	int rc = check_kind(model->t, err);
	if (rc)
		return rc;
	struct cairn_layout_member *m = arena_array(&model->arena, model->t->n_members, sizeof(*m));
	rc = m ? layout_facts(l, id, &f, m) : -ENOMEM;
	if (rc < 0)
		return err_nomem(err, "members");
	model->order.abi = l->opts.abi;
	model->order.cacheline = l->opts.cacheline;
	model->order.merge = opts->merge_bit_fields && !l->opts.abi->ms;
	model->order.lines_first = opts->lines_first && opts->weight;
	model->order.size_only = opts->size_only;
	rc = fill(model, &f, m, err);
	rc = rc ? rc : check(model, err);
	if (rc == -EOPNOTSUPP) {
		/*
		 * Whether it was packed is deduced from the offsets, and a packed struct inside
		 * misleads that.
		 */
		model->order.rec.packed = !f.packed;
		rc = check(model, NULL);
	}
	return rc ? rc : model_groups(model, opts, err);
}

/* ---- the result ---- */

static void put_group(struct model *model, const struct group *g, uint64_t *pos,
		      struct cairn_reorganized *r)
{
	const struct cairn_place_member *m = model->order.rec.members;
	bool behind_bits = r->n_members && *pos && m[model->order_of[r->n_members - 1]].bit_field;

	*pos = order_place(&model->order, g, *pos);
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		model->order_of[r->n_members] = i;
		r->members[r->n_members++] = (struct cairn_reorganized_member){
			.index = model->member_of[i],
			.bit_off = m[i].bit_off,
			.separate = i == g->first && g->bits && behind_bits && !model->order.merge};
	}
}

static int put_result(struct model *model, const uint32_t *perm, struct cairn_reorganized *r,
		      struct cairn_err *err)
{
	uint64_t pos = 0;

	r->members = calloc(model->t->n_members, sizeof(*r->members));
	if (!r->members)
		return err_nomem(err, "members");
	r->n_members = 0;
	if (model->order.first)
		put_group(model, model->order.first, &pos, r);
	for (uint32_t i = 0; i < model->order.n; i++) {
		put_group(model, &model->order.groups[perm[i]], &pos, r);
		r->n_moved += perm[i] != i;
	}
	if (model->order.last)
		put_group(model, model->order.last, &pos, r);
	return 0;
}

/* Nothing was won: the order stays, fields without names included. */
static int put_original(struct model *model, struct cairn_reorganized *r, struct cairn_err *err)
{
	uint32_t n = model->t->n_members;

	r->members = calloc(n, sizeof(*r->members));
	if (!r->members)
		return err_nomem(err, "members");
	for (uint32_t i = 0; i < n; i++)
		r->members[i] = (struct cairn_reorganized_member){
			.index = i, .bit_off = model->t->members[i].bit_off};
	r->n_members = n;
	r->new_size = r->old_size;
	return 0;
}

/* Keeping members together has not moved any. */
static bool is_as_it_was(const struct model *model)
{
	for (uint32_t i = 0; i < model->t->n_members; i++)
		if (model->member_of[i] != i)
			return false;
	return true;
}

/* Nothing is better than the bound, when it is only bytes that count. */
static bool is_done(const struct order *o, const struct cost *c, uint64_t bound)
{
	return c->size == bound && !o->weights && (o->size_only || !c->turned);
}

static int search(struct model *model, struct cairn_reorganized *r, struct cairn_err *err)
{
	struct order *o = &model->order;
	uint32_t *perm = arena_array(&model->arena, o->n + 1, sizeof(*perm));
	int proven = 1, rc = 0;

	if (!perm)
		return err_nomem(err, "the order of members");
	for (uint32_t i = 0; i < o->n; i++)
		perm[i] = i;
	struct cost old = order_cost(o, perm), best = old;
	r->bound = order_bound(o);
	if (!is_done(o, &best, r->bound))
		rc = order_greedy(o, &best, perm);
	if (!rc && !is_done(o, &best, r->bound))
		proven = order_exact(o, &best, perm);
	if (rc < 0 || proven < 0)
		return err_nomem(err, "the search for an order");
	r->proven = proven || (best.size == r->bound && !o->weights);
	r->old_size = model->t->size;
	r->new_size = best.size;
	r->old_lines = (uint32_t)old.lines;
	r->new_lines = (uint32_t)best.lines;
	r->align = o->align;
	r->n_groups = o->n;
	r->packed = o->rec.packed;
	r->drops_unnamed = model->gaps && r->new_size < r->old_size;
	if (best.size >= r->old_size && best.lines == old.lines && best.far == old.far &&
	    is_as_it_was(model))
		return put_original(model, r, err);
	return put_result(model, perm, r, err);
}

int cairn_layout_reorganize(struct cairn_layout *l, uint32_t id,
			    const struct cairn_reorganize_opts *opts, struct cairn_reorganized *ret,
			    struct cairn_err *err)
{
	struct cairn_reorganize_opts o;
	struct model model = {.l = l};
	int rc = opts_take(&o, sizeof(o), opts, err);

	*ret = (struct cairn_reorganized){0};
	if (rc < 0)
		return rc;
	arena_init(&model.arena);
	layout_begin(l);
	rc = model_init(&model, id, &o, err);
	/* A result computed without memory may look like a broken rule. */
	if (l->no_memory)
		rc = err_nomem(err, "the members' alignments");
	rc = rc ? rc : search(&model, ret, err);
	arena_fini(&model.arena);
	if (rc)
		cairn_reorganized_free(ret);
	return rc;
}

void cairn_reorganized_free(struct cairn_reorganized *r)
{
	free(r->members);
	*r = (struct cairn_reorganized){0};
}
