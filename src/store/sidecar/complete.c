/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The members of a sidecar's types
 *
 * A type's id in the graph is the number of the record that it was read from, so nothing is looked
 * up here: members and enumerators are in that record. As with
 * dwarf_type_complete(), the types inside a value are read to any depth, and the targets of its
 * pointers are not.
 */
#include <errno.h>

#include "base/err.h"
#include "sidecar/sites_types.h"

/*
 * @n items, each of which takes at least @least bytes of the record. NULL: the record is too short,
 * or no memory.
 */
static void *items(struct sidecar_types *t, struct cursor *c, uint64_t n, size_t least, size_t size,
		   int *rc)
{
	if (c->failed || n > cur_left(c) / least) {
		cur_fail(c, "the number of members that the record gives");
		return NULL;
	}
	void *p = arena_array(types_arena(t->graph), n, size);
	if (!p)
		*rc = -ENOMEM;
	return p;
}

static struct cairn_member read_member(struct sidecar_types *t, struct cursor *c, uint64_t before,
				       int *rc)
{
	uint8_t flags = cur_u8(c);
	struct cairn_member m = {.dynamic = flags & MEMBER_DYNAMIC,
				 .is_base_class = flags & MEMBER_BASE,
				 .is_discriminant = flags & MEMBER_DISCRIMINANT};
	if (flags & MEMBER_NAME) {
		m.name = sidecar_string(t->sidecar, (uint32_t)cur_uleb(c));
		m.name = m.name ? m.name : "";
	}
	m.type = sidecar_types_want(t, cur_uleb(c), rc);
	uint64_t off = (uint64_t)cur_folded(c);
	m.bit_off = before + (flags & MEMBER_OFF_IN_BITS ? off : off * 8);
	if (flags & MEMBER_BITS)
		m.bit_size = (uint32_t)cur_uleb(c);
	if (flags & MEMBER_ALIGN)
		m.align = (uint32_t)cur_uleb(c);
	return m;
}

static struct cairn_variant read_variant(struct sidecar_types *t, struct cursor *c, int *rc)
{
	enum { RANGE_MIN = 2 };
	uint64_t n = cur_uleb(c);
	struct cairn_variant_range *r = items(t, c, n, RANGE_MIN, sizeof(*r), rc);
	for (uint64_t i = 0; r && i < n; i++) {
		r[i].lo = (uint64_t)cur_folded(c);
		r[i].hi = r[i].lo + (uint64_t)cur_folded(c);
	}
	return (struct cairn_variant){r, r ? (uint32_t)n : 0};
}

static int read_variants(struct sidecar_types *t, struct cursor *c, struct cairn_type *type)
{
	int rc = 0;
	struct cairn_variants *v = arena_array(types_arena(t->graph), 1, sizeof(*v));
	struct cairn_variant *of = arena_array(types_arena(t->graph), type->n_members, sizeof(*of));
	if (!v || !of)
		return -ENOMEM;
	*v = (struct cairn_variants){.of = of};
	v->type = sidecar_types_want(t, cur_uleb(c), &rc);
	v->bit_size = (uint32_t)cur_uleb(c);
	v->bit_off = cur_folded(c);
	for (uint32_t i = 0; i < type->n_members; i++)
		of[i] = read_variant(t, c, &rc);
	type->variants = v;
	return rc;
}

static int read_members(struct sidecar_types *t, struct cursor *c, bool has_variants,
			struct cairn_type *type)
{
	enum { MEMBER_MIN = 3 };
	uint64_t n = cur_uleb(c), before = 0;
	int rc = 0;
	struct cairn_member *m = items(t, c, n, MEMBER_MIN, sizeof(*m), &rc);
	for (uint64_t i = 0; m && i < n; i++) {
		m[i] = read_member(t, c, before, &rc);
		before = m[i].bit_off;
	}
	type->members = m;
	type->n_members = m ? (uint32_t)n : 0;
	return rc >= 0 && has_variants ? read_variants(t, c, type) : rc;
}

static int read_enumerators(struct sidecar_types *t, struct cursor *c, struct cairn_type *type)
{
	enum { ENUMERATOR_MIN = 2 };
	uint64_t n = cur_uleb(c), expected = 0;
	int rc = 0;
	struct cairn_enumerator *e = items(t, c, n, ENUMERATOR_MIN, sizeof(*e), &rc);
	for (uint64_t i = 0; e && i < n; i++) {
		const char *name = sidecar_string(t->sidecar, (uint32_t)cur_uleb(c));
		e[i].name = name ? name : "";
		e[i].value = (int64_t)(expected + (uint64_t)cur_folded(c));
		expected = (uint64_t)e[i].value + 1;
	}
	type->enumerators = e;
	type->n_enumerators = e ? (uint32_t)n : 0;
	return rc;
}

/* Reads the members or enumerators of a type that was not read yet. */
static int read_inside(struct sidecar_types *t, uint32_t id, struct cairn_err *err)
{
	struct cursor c = record_at(&t->sidecar->types, id, err);
	struct cairn_type type;
	int rc = sidecar_types_outside(t, &c, &type);
	bool has_variants = type.variants;
	type.variants = NULL;
	if (rc > 0 && type.kind == CAIRN_T_ENUM)
		rc = read_enumerators(t, &c, &type);
	else if (rc > 0)
		rc = read_members(t, &c, has_variants, &type);
	if (rc >= 0)
		rc = sidecar_types_drain(t);
	if (rc < 0)
		return err_nomem(err, "types");
	/* A type with half of its members would look complete. */
	if (c.failed) {
		t->n_lost++;
		return -EBADMSG;
	}
	types_set(t->graph, id, &type);
	return 0;
}

int sidecar_types_complete(struct sidecar_types *t, uint32_t id, struct cairn_err *err)
{
	t->inside.n = 0;
	int rc = VEC_ADD(&t->inside, id) ? 0 : err_nomem(err, "types");
	while (rc >= 0 && t->inside.n) {
		uint32_t inside = types_substance(t->graph, t->inside.p[--t->inside.n]);
		const struct cairn_type *type = cairn_types_get(t->graph, inside);
		if (!type->unread)
			continue;
		rc = read_inside(t, inside, err);
		for (uint32_t i = 0; rc >= 0 && i < type->n_members; i++)
			rc = VEC_ADD(&t->inside, type->members[i].type) ? 0
									: err_nomem(err, "types");
	}
	return rc;
}
