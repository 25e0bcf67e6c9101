/* SPDX-License-Identifier: BSD-2-Clause */
/* .cairn.dwarf: the parameters of functions and copies, with their locations. */
#include "sidecar/reduced_write.h"

#include <string.h>

#include "dwarf/constants.h"
#include "dwarf/loclists.h"
#include "loc/loc.h"
#include "sites/arg_type.h"

/* In the order in which the reader wants them: they count from the lowest address of the unit. */
static void put_list_entry(struct writing *w, const struct dw_loc_entry *e)
{
	struct bytes *b = &w->u->locations;
	if (e->everywhere) {
		put_u8(b, DW_LLE_default_location);
	} else if (e->lo.v >= w->u->low) {
		put_u8(b, DW_LLE_offset_pair);
		put_uleb(b, e->lo.v - w->u->low);
		put_uleb(b, e->hi.v - w->u->low);
	} else {
		put_u8(b, DW_LLE_start_length);
		out_u64(b, e->lo.v);
		put_uleb(b, e->hi.v - e->lo.v);
	}
	out_expr(w->u, b, true, w->die.unit, e->expr, e->expr_len);
}

/* A pop from the empty stack: a damaged expression stays damaged. */
static const uint8_t damaged[] = {DW_OP_drop};

static struct location damaged_location(void)
{
	return (struct location){.kind = OUT_AT_EXPR, .expr = {damaged, sizeof(damaged)}};
}

/* The value of an attribute: an expression, or a list, which is written. */
struct location reduced_read_location(struct writing *w, const struct dw_die *die, uint16_t at)
{
	struct location ret = {.list = (uint32_t)w->u->locations.v.n};
	size_t n_refs = w->u->refs.n;
	struct dw_loc_list list;
	struct dw_loc_entry e;
	int rc = dw_loc_begin(&list, die, at, NULL);
	if (rc <= 0)
		return rc ? damaged_location() : ret;
	if (list.is_single) {
		rc = dw_loc_next(&list, &e);
		ret.kind = OUT_AT_EXPR;
		ret.expr = (struct expression){e.expr, e.expr_len};
		return rc < 0 ? damaged_location() : ret;
	}
	ret.kind = OUT_AT_LIST;
	while ((rc = dw_loc_next(&list, &e)) > 0)
		put_list_entry(w, &e);
	put_u8(&w->u->locations, DW_LLE_end_of_list);
	if (rc >= 0)
		return ret;
	w->u->locations.v.n = ret.list;
	w->u->refs.n = n_refs;
	return damaged_location();
}

static struct location read_constant(const struct dw_value *v)
{
	switch (v->cls) {
	case DW_CLASS_UDATA:
		return (struct location){.kind = OUT_AT_NUMBER, .number = (int64_t)v->u};
	case DW_CLASS_SDATA:
		return (struct location){.kind = OUT_AT_NUMBER, .number = v->s};
	case DW_CLASS_ADDRESS:
		return (struct location){.kind = OUT_AT_NUMBER, .number = (int64_t)v->addr.v};
	case DW_CLASS_BLOCK:
	case DW_CLASS_EXPRLOC:
		return (struct location){.kind = OUT_AT_BYTES, .expr = {v->block.p, v->block.n}};
	case DW_CLASS_STRING:
		return (struct location){.kind = OUT_AT_BYTES,
					 .expr = {(const uint8_t *)v->str, strlen(v->str) + 1}};
	default:
		return (struct location){.kind = OUT_AT_ODD};
	}
}

static struct location read_formal(struct writing *w, const struct dw_die *formal)
{
	struct dw_value v;
	if (dw_attr(formal, DW_AT_const_value, &v, NULL) == 1)
		return read_constant(&v);
	return reduced_read_location(w, formal, DW_AT_location);
}

static void put_number(struct bytes *b, int64_t value)
{
	bool more = true;
	while (more) {
		uint8_t byte = value & 0x7f;
		value >>= 7;
		more = value != (byte & 0x40 ? -1 : 0);
		put_u8(b, (uint8_t)(byte | (more ? 0x80 : 0)));
	}
}

void reduced_put_location(struct writing *w, const struct location *l)
{
	struct bytes *b = &w->u->info;
	switch (l->kind) {
	case OUT_AT_EXPR:
		out_expr(w->u, b, false, w->die.unit, l->expr.p, l->expr.n);
		return;
	case OUT_AT_LIST:
		out_reference(w->u, FIX_LOCATIONS, l->list);
		return;
	case OUT_AT_NUMBER:
		put_number(b, l->number);
		return;
	case OUT_AT_BYTES:
		put_uleb(b, l->expr.n);
		put_bytes(b, l->expr.p, l->expr.n);
		return;
	}
}

static uint64_t stand_in_of(const struct reducing *r, const struct dw_die *formal)
{
	return out_stand_in(dw_type_bytes(formal), loc_is_by_reference(formal),
			    arg_is_bool(formal->unit, formal->off));
}

/* The stand-in that a parameter of a copy has for itself; 0: it has that of its origin. */
static uint64_t own_stand_in(const struct reducing *r, const struct dw_die *formal, dw_off origin)
{
	struct dw_die die;
	bool is_inherited = dw_origin_of(formal) == origin && !dw_ref(formal, DW_AT_type);
	if (is_inherited || dw_die_near(formal->unit, origin, &die, NULL) != 1)
		return 0;
	uint64_t own = stand_in_of(r, formal);
	return own == stand_in_of(r, &die) ? 0 : own;
}

/*
 * One of the parameters that copies refer to. @from: where its location is read; NULL: it has none.
 */
static void put_own_formal(struct writing *w, const struct dw_die *formal, uint32_t number,
			   const struct dw_die *from)
{
	struct bytes *b = &w->u->info;
	const char *name = dw_str_deep(formal, DW_AT_name);
	uint64_t type = stand_in_of(w->r, formal);
	struct location at = from ? read_formal(w, from) : (struct location){0};
	if (number < w->instance->formals.n)
		w->u->formals.p[w->r->formals_at[w->entry] + number] = (uint32_t)b->v.n;
	put_u8(b, (uint8_t)(OUT_FORMAL + (name ? OUT_FORMAL_NAMED : OUT_FORMAL_OWN) +
			    (type ? OUT_FORMAL_TYPE : 0) + at.kind * OUT_FORMAL_KINDS));
	if (name)
		out_reference(w->u, FIX_STRING, (uintptr_t)name);
	put_uleb(b, number < w->instance->formals.n
			    ? w->r->types.p[w->r->types_at[w->entry] + number]
			    : 0);
	if (type)
		out_reference(w->u, FIX_TYPE, type);
	reduced_put_location(w, &at);
}

static void put_copied_formal(struct writing *w, const struct dw_die *formal, uint32_t number)
{
	struct bytes *b = &w->u->info;
	bool is_known = number < w->instance->formals.n;
	uint64_t type = is_known ? own_stand_in(w->r, formal, w->instance->formals.die[number])
				 : stand_in_of(w->r, formal);
	struct location at = read_formal(w, formal);
	put_u8(b, (uint8_t)(OUT_FORMAL + (is_known ? OUT_FORMAL_COPY : 0) +
			    (type ? OUT_FORMAL_TYPE : 0) + at.kind * OUT_FORMAL_KINDS));
	if (is_known)
		out_reference(w->u, FIX_FORMAL, (uint64_t)w->instance_entry << 32 | number);
	if (type)
		out_reference(w->u, FIX_TYPE, type);
	reduced_put_location(w, &at);
}

/* The formals of functions with code, in the order in which they are described. */
int reduced_put_formals(struct writing *w, struct cairn_err *err)
{
	struct dw_die child;
	uint32_t next = 0;
	bool is_go = dw_unit_go(w->die.unit);
	int rc = dw_param_child(&w->die, &child, err);
	for (; rc == 1; rc = dw_param_next(&child, &child, err)) {
		if (child.tag != DW_TAG_formal_parameter ||
		    (is_go && dw_flag(&child, DW_AT_variable_parameter)))
			continue;
		uint32_t number = site_match_formal(&w->instance->formals, &child, next);
		next = number + 1;
		if (w->instance_entry == DW_FUNC_NONE)
			put_own_formal(w, &child, number, &child);
		else
			put_copied_formal(w, &child, number);
	}
	return rc;
}

/* Those of an abstract instance. */
int reduced_put_abstract_formals(struct writing *w, struct cairn_err *err)
{
	for (uint32_t i = 0; i < w->instance->formals.n; i++) {
		struct dw_die formal;
		int rc = dw_die_at(w->r->env.dw, w->instance->formals.die[i], &formal, err);
		if (rc < 0)
			return rc;
		put_own_formal(w, &formal, i, NULL);
	}
	return 0;
}

/* The instance whose parameters an entry has: site_build_now() chooses the same one. */
int reduced_instance_of(const struct reducing *r, struct reducer *x, uint32_t i,
			const struct dw_die *die, const struct abstract **ret,
			struct cairn_err *err)
{
	const struct dw_func *f = entry_at(r, i);
	return abstract_of(&x->abstracts, r->env.dw, die->unit,
			   is_copy(r, i) && f->origin ? f->origin : f->die, ret, err);
}
