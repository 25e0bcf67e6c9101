/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completing: from a type's name to its parts
 *
 * A struct is read when a caller looks inside, with the structs and elements that are part of it,
 * but without the types that pointers point to. A declaration is replaced by its definition: the
 * one in the same unit, or else the one that the index of all units has. The node is changed in
 * place, so that ids which have been handed out gain their parts.
 */
#include "base/err.h"
#include "dwarf/type_index.h"
#include "dwarf/type_locals.h"
#include "dwarf/types_inside.h"
#include "dwarf/types_read.h"
#include "dwarf/types_variants.h"

#include <errno.h>

static int make_index(struct dw_types *r, struct cairn_err *err)
{
	enum dw_type_names names = r->indexes_typedefs ? DW_ALL_NAMES : DW_DEFINITIONS;
	return r->index ? 0 : dw_type_index_new(r->dw, names, r->dw->threads, &r->index, err);
}

static uint16_t tag_of(enum cairn_type_kind kind)
{
	switch (kind) {
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
		return DW_TAG_structure_type;
	case CAIRN_T_UNION:
		return DW_TAG_union_type;
	case CAIRN_T_ENUM:
		return DW_TAG_enumeration_type;
	default:
		return 0;
	}
}

/*
 * In its own unit first, where the name can have only one meaning. 1 and *@ret; 0 none; negative.
 */
static int find_definition(struct dw_types *r, const struct cairn_type *t, const struct dw_unit *u,
			   struct dw_die *ret, struct cairn_err *err)
{
	dw_off off;
	if (!t->name || !tag_of(t->kind))
		return 0;
	int rc = dw_type_index_in_unit(u, tag_of(t->kind), t->name, &off, err);
	if (!rc)
		rc = make_index(r, err);
	else if (rc > 0)
		return dw_die_at(r->dw, off, ret, err);
	if (rc >= 0)
		rc = dw_type_index_find(r->index, tag_of(t->kind), t->name, &off, err);
	return rc > 0 ? dw_die_at(r->dw, off, ret, err) : rc;
}

/* ---- completing ---- */

static int read_inside(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
		       struct cairn_err *err)
{
	return t->kind == CAIRN_T_ENUM ? dw_types_enumerators(r, die, t, err)
				       : dw_types_members(r, die, t, err);
}

/*
 * Put the definition, if there is one, in the place of a declaration; the name that a user has seen
 * stays. 1 and *@die is the definition; 0 and nothing has changed; negative.
 */
static int adopt_definition(struct dw_types *r, struct dw_die *die, struct cairn_type *t,
			    struct cairn_err *err)
{
	struct cairn_type def = {0};
	struct dw_die found;
	int rc = find_definition(r, t, die->unit, &found, err);
	if (rc > 0)
		rc = dw_types_read_named(r, &found, &def, err);
	/* The names differ: two with one hash. */
	if (rc < 0 || !def.name || strcmp(def.name, t->name) != 0)
		return rc < 0 ? rc : 0;
	def.name = t->name;
	def.bare_name = t->bare_name;
	*t = def;
	*die = found;
	return 1;
}

/* SEARCH: the definition that its unit or another one has may replace a declaration. */
enum search { SEARCH, AS_IT_IS };

static int load(struct dw_types *r, uint32_t id, enum search search, struct cairn_err *err)
{
	struct cairn_type t = *cairn_types_get(r->graph, id);
	struct dw_die die;
	uint64_t off;
	if (!map_get(&r->unread, id, &off))
		return 0;
	int rc = dw_die_at(r->dw, off, &die, err);
	if (rc > 0 && t.declaration && search == SEARCH)
		rc = adopt_definition(r, &die, &t, err);
	if (rc > 0 && die.off != off && map_put(&r->unread, id, die.off) < 0)
		return err_nomem(err, "types");
	/* It stays unread, so that the next query reports it, too. */
	if (rc == -ENOTUNIQ)
		return rc;
	/* An enum that is only declared may still record its sign. */
	if (rc > 0 || (!rc && t.kind == CAIRN_T_ENUM))
		rc = read_inside(r, &die, &t, err);
	t.unread = false;
	if (rc < 0) {
		/* Half of the members would look like all of them. */
		t.declaration = true;
		t.n_members = t.n_enumerators = 0;
	}
	types_set(r->graph, id, &t);
	int drained = dw_types_drain(r, rc < 0 ? NULL : err);
	if (rc < 0 || drained < 0)
		return rc < 0 ? rc : drained;
	/* Sizes of its members are known now. */
	rc = dw_types_add_discriminant(r, &die, id, err);
	return rc < 0 ? rc : dw_types_drain(r, err);
}

/*
 * GCC's scalar_storage_order reverses numbers and enums that are direct members of a struct, and
 * its DWARF records it for numbers only (docs/findings/gcc-storage-order.md). One number that is
 * reversed shows it for the enums. Pointers and vectors keep their order.
 */
static void note_storage_order(struct dw_types *r, uint32_t id)
{
	struct cairn_type *t = types_node(r->graph, id);
	for (uint32_t i = 0; t && i < t->n_members && !t->byte_swapped; i++) {
		const struct cairn_type *m =
			cairn_types_get(r->graph, types_substance(r->graph, t->members[i].type));
		t->byte_swapped =
			m->byte_swapped && (m->kind == CAIRN_T_INT || m->kind == CAIRN_T_FLOAT);
	}
}

static int open_type(struct dw_types *r, uint32_t id, enum search search, struct cairn_err *err)
{
	int rc = cairn_types_get(r->graph, id)->unread ? load(r, id, search, err) : 0;
	note_storage_order(r, id);
	return rc;
}

int dwarf_type_open(struct dw_types *r, uint32_t id, struct cairn_err *err)
{
	return open_type(r, id, SEARCH, err);
}

int dwarf_type_open_undefined(struct dw_types *r, uint32_t id, struct cairn_err *err)
{
	return open_type(r, id, AS_IT_IS, err);
}

int dwarf_type_defined_elsewhere(struct dw_types *r, uint32_t id, dw_off *ret,
				 struct cairn_err *err)
{
	const struct cairn_type *t = cairn_types_get(r->graph, id);
	if (!t->name || !tag_of(t->kind))
		return 0;
	int rc = make_index(r, err);
	return rc < 0 ? rc : dw_type_index_find(r->index, tag_of(t->kind), t->name, ret, err);
}

dw_off dwarf_type_die(const struct dw_types *r, uint32_t id)
{
	uint64_t off;
	return map_get(&r->unread, id, &off) ? off : 0;
}

int dwarf_type_complete(struct dw_types *r, uint32_t id, struct cairn_err *err)
{
	/* Most types are numbers and pointers, or were completed before. */
	if (!cairn_types_get(r->graph, types_substance(r->graph, id))->unread)
		return 0;
	VEC(uint32_t) stack = {0};
	int first = VEC_ADD(&stack, id) ? 0 : err_nomem(err, "types");
	for (bool outermost = true; stack.n; outermost = false) {
		uint32_t inside = types_substance(r->graph, stack.p[--stack.n]);
		const struct cairn_type *t = cairn_types_get(r->graph, inside);
		if (!t->unread)
			continue;
		int rc = load(r, inside, SEARCH, first ? NULL : err);
		/* A part that has no single definition is shown as incomplete. */
		if (rc == -ENOTUNIQ && !outermost)
			rc = 0;
		first = first ? first : rc;
		note_storage_order(r, inside);
		bool fits = true;
		for (uint32_t i = 0; i < t->n_members && fits; i++)
			fits = VEC_ADD(&stack, t->members[i].type);
		if (!fits && !first)
			first = err_nomem(err, "types");
	}
	VEC_FREE(&stack);
	return first;
}

int dwarf_type_definition(struct dw_types *r, enum cairn_type_kind kind, const char *name,
			  uint32_t *ret, struct cairn_err *err)
{
	dw_off off;
	uint32_t id = 0;
	int rc = tag_of(kind) ? make_index(r, err) : 0;
	if (rc < 0 || !tag_of(kind))
		return rc;
	rc = dw_type_index_find(r->index, tag_of(kind), name, &off, err);
	if (rc <= 0)
		return rc;
	rc = dwarf_type(r, off, &id, err);
	if (rc >= 0)
		rc = dwarf_type_complete(r, id, err);
	if (rc < 0)
		return rc;
	const char *found = cairn_types_get(r->graph, id)->name;
	if (!found || strcmp(found, name) != 0)
		return 0;
	*ret = id;
	return 1;
}

typedef int visit_type(void *ctx, dw_off off, struct cairn_err *err);

static int visit_all(const struct dw_type_index *index, enum dw_type_names names, visit_type *visit,
		     void *ctx, struct cairn_err *err)
{
	size_t n;
	int rc = 0;
	dw_off *offs = dw_type_index_offsets(index, names, &n);
	if (!offs)
		return err_nomem(err, "definitions of types");
	for (size_t i = 0; i < n && rc >= 0; i++)
		rc = visit(ctx, offs[i], err);
	free(offs);
	return rc < 0 ? rc : 0;
}

int dwarf_type_definitions(struct dw_types *r, visit_type *visit, void *ctx, struct cairn_err *err)
{
	int rc = make_index(r, err);
	return rc < 0 ? rc : visit_all(r->index, DW_DEFINITIONS, visit, ctx, err);
}

void dwarf_types_index_typedefs(struct dw_types *r)
{
	r->indexes_typedefs = !r->index;
}

int dwarf_type_typedefs(struct dw_types *r, visit_type *visit, void *ctx, struct cairn_err *err)
{
	struct dw_type_index *own = NULL;
	int rc = r->indexes_typedefs
			 ? make_index(r, err)
			 : dw_type_index_new(r->dw, DW_TYPEDEFS, r->dw->threads, &own, err);
	if (rc >= 0)
		rc = visit_all(own ? own : r->index, DW_TYPEDEFS, visit, ctx, err);
	dw_type_index_free(own);
	return rc;
}

int dwarf_type_locals(struct dw_types *r, const bool *in_units, dwarf_local_visitor *visit,
		      void *ctx, struct cairn_err *err)
{
	struct dw_type_locals list;
	int rc = dw_type_locals_list(r->dw, r->dw->threads, in_units, &list, err);
	for (size_t i = 0; rc >= 0 && i < list.v.n; i++)
		rc = visit(ctx, list.v.p[i].off, list.v.p[i].name, err);
	dw_type_locals_fini(&list);
	return rc < 0 ? rc : 0;
}
