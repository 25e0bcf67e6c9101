/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holes and padding
 *
 * A cursor of bits follows the members. After a bit-field, the rest of its unit is a bit hole, and
 * only the bytes after the unit are a hole of bytes:
 *
 *	struct { int a : 3; char c; int d; };
 *
 *	bit   0    3          8         16                  32
 *	      a    bit hole 5  c        hole, 2 bytes       d
 *
 * The unit of a bit-field begins at a multiple of the size of its type and grows when a wider type
 * follows in it. A next member that begins inside the unit ends it there.
 *
 * A member whose offset is not known (unplaced.c) lies in some gap, and that gap is neither a hole
 * nor padding. The end of a struct may hold virtual base classes; any other such member is between
 * its neighbours in the declaration.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/opts.h"
#include "layout/view.h"

static void place_one(const struct cairn_layout *l, const struct cairn_member *m,
		      struct cairn_layout_member *ret)
{
	uint64_t unit = 8 * ret->size;

	ret->offset = m->bit_off / 8;
	if (!m->bit_size || !unit)
		return;
	uint64_t at = m->bit_off / unit * unit, pos = m->bit_off - at;
	ret->offset = at / 8;
	if (l->opts.big_endian)
		pos = unit >= pos + m->bit_size ? unit - pos - m->bit_size : 0;
	ret->bit_pos = (uint32_t)pos;
}

void layout_place_members(struct cairn_layout *l, const struct cairn_type *t,
			  struct cairn_layout_member *m)
{
	for (uint32_t i = 0; i < t->n_members; i++) {
		m[i] = (struct cairn_layout_member){
			.size = cairn_types_size(l->types, t->members[i].type)};
		place_one(l, &t->members[i], &m[i]);
	}
}

struct walk {
	uint64_t seen;      /* bits, end of the part that members cover */
	uint64_t unit_size; /* of the open unit of bit-fields, bits; 0: none is open */
	uint64_t unit_end;
	bool unplaced;      /* the next gap may hold a member */
	bool tail_unplaced; /* so may the end of the struct */
};

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* The rest of the open unit before @end. */
static uint64_t close_unit(struct walk *w, uint64_t end)
{
	end = end < w->unit_end ? end : w->unit_end;
	uint64_t left = less(end, w->seen);

	w->seen = end > w->seen ? end : w->seen;
	return left;
}

static void open_unit(struct walk *w, const struct cairn_layout_member *m, uint64_t end)
{
	uint64_t size = 8 * m->size;

	if (w->unit_size && end <= w->unit_end && size <= w->unit_size)
		return;
	w->unit_size = size;
	w->unit_end = 8 * m->offset + size;
	/* It began in the unit before. */
	if (end > w->unit_end)
		w->unit_end += size;
}

/* The gap before a member, in bytes and bits. */
static void gap_before(struct walk *w, const struct cairn_member *in,
		       const struct cairn_layout_member *m, uint64_t size, uint64_t *hole,
		       uint64_t *bits)
{
	uint64_t start = in->bit_off, unit = 8 * m->offset;

	*hole = 0;
	*bits = w->unit_size ? close_unit(w, start) : 0;
	if (!in->bit_size) {
		*hole = less(start / 8, w->seen / 8);
		/* Rust puts a member without bytes anywhere, also before the last one's end. */
		if (size || start > w->seen)
			w->seen = start + 8 * size;
		w->unit_size = 0;
		return;
	}
	if (w->seen < unit && unit <= start) {
		*hole = m->offset - w->seen / 8;
		w->seen = unit;
	}
	*bits += less(start, w->seen);
	w->seen = start + in->bit_size;
	open_unit(w, m, w->seen);
}

static void count_gap(struct cairn_layout_facts *ret, uint64_t hole, uint64_t bits)
{
	ret->n_holes += hole != 0;
	ret->sum_holes += hole;
	ret->n_bit_holes += bits != 0;
	ret->sum_bit_holes += bits;
}

static uint32_t cap(uint64_t n)
{
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* @last: the member before it; NULL: it is the first gap. */
static void take_gap(struct cairn_layout_facts *ret, struct cairn_layout_member *last,
		     uint64_t hole, uint64_t bits)
{
	count_gap(ret, hole, bits);
	if (last) {
		last->hole = hole;
		last->bit_hole = cap(bits);
	} else {
		ret->first_hole = hole;
		ret->first_bit_hole = cap(bits);
	}
}

static void find_padding(struct walk *w, const struct cairn_type *t, struct cairn_layout_facts *ret)
{
	uint64_t bits = w->unit_size ? close_unit(w, 8 * t->size) : 0;

	if (w->unplaced)
		return;
	ret->bit_padding = cap(bits);
	ret->padding = w->tail_unplaced ? 0 : less(t->size, w->seen / 8);
}

void layout_find_holes(struct cairn_layout *l, const struct cairn_type *t,
		       struct cairn_layout_member *m, struct cairn_layout_facts *ret)
{
	struct walk w = {.unit_end = 8 * t->size};
	struct cairn_layout_member *last = NULL;

	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *in = &t->members[i];
		uint64_t hole, bits;

		w.tail_unplaced |= in->is_base_class && layout_is_unplaced(l, in);
		if (in->dynamic) {
			w.unplaced |= !in->is_base_class;
			continue;
		}
		gap_before(&w, in, &m[i], layout_own_size(l, in, m[i].size), &hole, &bits);
		if (!w.unplaced)
			take_gap(ret, last, hole, bits);
		w.unplaced = false;
		last = &m[i];
	}
	find_padding(&w, t, ret);
}

/*
 * The last member of a Rust struct may have a size that only run time knows (str, [T]). Its DWARF
 * counts one element, and the struct's size ends before it.
 */
static bool is_unsized_tail(const struct cairn_type *t, const struct cairn_layout_member *m,
			    uint32_t i)
{
	return is_structure(t) && i + 1 == t->n_members && m[i].size && m[i].offset >= t->size;
}

static void sum_up(struct cairn_layout *l, const struct cairn_type *t,
		   const struct cairn_layout_member *m, struct cairn_layout_facts *ret)
{
	ret->size = t->size;
	ret->n_members = t->n_members;
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *in = &t->members[i];

		ret->n_unplaced += in->dynamic;
		if (in->dynamic)
			continue;
		ret->n_unplaced_bases += layout_is_partial(l, in);
		if (in->bit_size)
			ret->sum_bit_fields += in->bit_size;
		else if (!is_unsized_tail(t, m, i))
			ret->sum_members += layout_own_size(l, in, m[i].size);
	}
}

struct cairn_layout_member *layout_members_new(struct cairn_layout *l, const struct cairn_type *t)
{
	struct cairn_layout_member *m = calloc(t->n_members + 1, sizeof(*m));

	l->no_memory |= !m;
	return m;
}

void layout_facts_of(struct cairn_layout *l, const struct cairn_type *t,
		     struct cairn_layout_facts *ret, struct cairn_layout_member *m)
{
	*ret = (struct cairn_layout_facts){0};
	layout_place_members(l, t, m);
	sum_up(l, t, m, ret);
	if (is_structure(t))
		layout_find_holes(l, t, m, ret);
	layout_find_alignments(l, t, m, ret);
}

/* Described in order, and reported in the order of the type. */
static int sorted_facts(struct cairn_layout *l, const struct layout_sorted *s,
			struct cairn_layout_facts *ret, struct cairn_layout_member *members)
{
	struct cairn_layout_member *m = layout_members_new(l, &s->type);

	if (!m)
		return -ENOMEM;
	layout_facts_of(l, &s->type, ret, m);
	for (uint32_t i = 0; members && i < s->type.n_members; i++)
		members[s->order[i]] = m[i];
	free(m);
	return 1;
}

static int plain_facts(struct cairn_layout *l, const struct cairn_type *t,
		       struct cairn_layout_facts *ret, struct cairn_layout_member *members)
{
	struct cairn_layout_member *m = members ? members : layout_members_new(l, t);

	if (!m)
		return -ENOMEM;
	layout_facts_of(l, t, ret, m);
	if (m != members)
		free(m);
	return 1;
}

int layout_facts(struct cairn_layout *l, uint32_t id, struct cairn_layout_facts *ret,
		 struct cairn_layout_member *members)
{
	const struct cairn_type *t = layout_resolve(l, id);
	struct layout_sorted sorted;

	if (!has_layout(t))
		return 0;
	int rc = layout_sort(l, t, &sorted);
	if (rc >= 0)
		rc = rc ? sorted_facts(l, &sorted, ret, members) : plain_facts(l, t, ret, members);
	layout_sorted_free(&sorted);
	return rc;
}

int cairn_layout_facts(struct cairn_layout *l, uint32_t id, struct cairn_layout_facts *ret,
		       struct cairn_layout_member *members)
{
	layout_begin(l);
	return layout_facts(l, id, ret, members);
}

/* ---- the view ---- */

int cairn_layout_new(const struct cairn_types *types, const struct cairn_layout_opts *opts,
		     struct cairn_layout **ret, struct cairn_err *err)
{
	struct cairn_layout_opts o;
	struct cairn_layout *l;
	int rc = opts_take(&o, sizeof(o), opts, err);

	if (rc < 0)
		return rc;
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_nomem(err, "a layout");
	l->types = types;
	l->opts = o;
	if (!l->opts.cacheline)
		l->opts.cacheline = DEFAULT_CACHELINE;
	if (!l->opts.abi)
		l->opts.abi = cairn_abi_find("x86-64");
	l->n = cairn_types_n_types(types);
	l->memo = calloc(l->n, sizeof(*l->memo));
	l->own = calloc(l->n, sizeof(*l->own));
	if (!l->memo || !l->own) {
		cairn_layout_free(l);
		return err_nomem(err, "a layout");
	}
	*ret = l;
	return 0;
}

void cairn_layout_free(struct cairn_layout *l)
{
	if (!l)
		return;
	free(l->own);
	free(l->memo);
	free(l);
}
