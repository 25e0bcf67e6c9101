/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The writer of .cairn.dwarf: which functions, copies and calls it has, and what it writes about
 * each
 *
 *	1. Each unit, in parallel: functions that have code, their copies, the abstract instances of
 *	   both, and the registers whose value at the entry is needed.
 *	2. The types of parameters, one by one, as the graph of types has one writer.
 *	3. Each unit, in parallel: its DIEs and lists.
 *	4. All units in sequence, with the DIEs that they refer to.
 */
#include "sidecar/reduced.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/pool.h"
#include "dwarf/constants.h"
#include "dwarf/loclists.h"
#include "dwarf/params.h"
#include "loc/loc.h"
#include "sidecar/reduced_out.h"
#include "sites/scopes_at.h"
#include "sites/arg_type.h"
#include "sites/call_site_value.h"
#include "sites/provider.h"

enum {
	/* call rel32 */
	CALL_BYTES = 5,
	CALL_OPCODE = 0xe8,
	ADDRESS_BYTES = 8,
	/* Open entries: deeper inlining than this is not queried (sites/scopes_at.c). */
	DEPTH_MAX = 1024,
};

/* A worker's own. */
struct reducer {
	struct arena arena;
	struct abstracts abstracts;
	struct dw_range_list ranges;
	/* Facts that the copies of one function share; copies_of is the function. */
	uint32_t copies_of;
	bool has_copies;
	struct arena copies;
	struct site_worker worker;
	struct map asked;   /* origins of copies that were looked at */
	struct map removed; /* copy and parameter, if it was removed */
};

struct entry_asks {
	uint64_t at;
	uint32_t asked;
};

struct unit_asks {
	VEC(struct entry_asks) v;
};

struct reducing {
	struct site_table *p;
	struct site_env env;
	size_t n_units;
	uint32_t *first; /* of each unit, its first entry; one more */
	uint32_t *unit_of, *die_at, *formals_at, *types_at, *asked; /* of each entry */
	uint8_t *is_kept;                                           /* has code */
	/* as abstract instance; written by several workers, all of which write 1 */
	uint8_t *is_needed;
	VEC(uint32_t) types; /* numbers */
	struct unit_asks *unit_asks;
	struct map asked_at; /* address of a function, to the registers its callers must describe */
	struct out_unit *units;
	struct reducer *reducers;
};

static const struct dw_func *entry_at(const struct reducing *r, uint32_t i)
{
	return &r->env.index->p[i];
}

static bool is_copy(const struct reducing *r, uint32_t i)
{
	return entry_at(r, i)->flags & DW_FUNC_INLINED;
}

/* The instance whose parameters an entry has: site_build_now() chooses the same one. */
static int instance_of(const struct reducing *r, struct reducer *x, uint32_t i,
		       const struct dw_die *die, const struct abstract **ret, struct cairn_err *err)
{
	const struct dw_func *f = entry_at(r, i);
	return abstract_of(&x->abstracts, r->env.dw, die->unit,
			   is_copy(r, i) && f->origin ? f->origin : f->die, ret, err);
}

static int ranges_of(struct reducer *x, const struct dw_die *die, struct cairn_err *err)
{
	x->ranges.n = 0;
	int rc = dw_ranges_append(die, &x->ranges, err);
	return rc == -ENOMEM ? err_nomem(err, "ranges of code") : rc;
}

/* ---- 1. the needed parts ---- */

static int note_asks(void *arg, const struct dw_loc_entry *e)
{
	out_expr_asks(e->expr, e->expr_len, arg);
	return 0;
}

static int note_call_asks(void *arg, const struct dw_die *site)
{
	struct dw_die param;
	int rc = dw_die_child(site, &param, NULL);
	for (; rc == 1; rc = dw_die_sibling(&param, &param, NULL)) {
		struct call_param p;
		call_param_of(&param, &p);
		if (p.is_told)
			out_expr_asks(p.value.p, p.value.n, arg);
	}
	return 0;
}

/* Notes the registers that entry @i needs from the callers of the function around it. */
static int note_entry(struct reducing *r, uint32_t i, const struct dw_die *die,
		      struct cairn_err *err)
{
	uint32_t asked = 0, function = i;
	struct dw_die child;
	int rc = dw_param_child(die, &child, err);
	for (; rc == 1; rc = dw_param_next(&child, &child, err))
		dw_locations(&child, DW_AT_location, note_asks, &asked, NULL);
	if (rc >= 0 && !is_copy(r, i))
		rc = call_sites_visit(die, note_call_asks, &asked, err);
	while (is_copy(r, function))
		function = entry_at(r, function)->parent;
	r->asked[function] |= asked;
	return rc;
}

/* A copy in a function without code is none, whatever it describes. */
static bool may_have_code(const struct reducing *r, uint32_t i)
{
	const struct dw_func *f = entry_at(r, i);
	if (!is_copy(r, i))
		return f->flags & DW_FUNC_HAS_CODE;
	return f->parent != DW_FUNC_NONE && r->is_kept[f->parent];
}

static int look_at(struct reducing *r, struct reducer *x, uint32_t i, struct cairn_err *err)
{
	const struct abstract *instance;
	struct dw_die die;
	if (!may_have_code(r, i))
		return 0;
	int rc = dw_func_die(r->env.dw, entry_at(r, i), &die, err);
	if (rc >= 0)
		rc = ranges_of(x, &die, err);
	if (rc <= 0)
		return rc;
	r->is_kept[i] = 1;
	if (dw_unit_addr_size(die.unit) != ADDRESS_BYTES)
		return err_set(err, -EOPNOTSUPP, "%s: addresses of %u bytes",
			       cairn_binary_debug_path(r->env.bin), dw_unit_addr_size(die.unit));
	rc = instance_of(r, x, i, &die, &instance, err);
	if (rc < 0)
		return rc;
	if (instance->die.off != die.off) {
		uint32_t of = dw_func_index_find_near(r->env.index, i, instance->die.off);
		if (of == DW_FUNC_NONE)
			return err_set(err, -EBADMSG, "%s: an abstract origin that is no function",
				       cairn_binary_debug_path(r->env.bin));
		__atomic_store_n(&r->is_needed[of], 1, __ATOMIC_RELAXED);
	}
	return note_entry(r, i, &die, err);
}

static int list_asks(struct reducing *r, size_t unit, struct cairn_err *err)
{
	for (uint32_t i = r->first[unit]; i < r->first[unit + 1]; i++) {
		struct entry_asks asks = {.asked = r->asked[i]};
		struct cairn_vaddr at;
		struct dw_die die;
		if (!asks.asked || is_copy(r, i))
			continue;
		int rc = dw_func_die(r->env.dw, entry_at(r, i), &die, err);
		if (rc >= 0)
			rc = site_entry_of(&die, &at);
		if (rc < 0)
			return rc;
		asks.at = at.v;
		if (rc && !VEC_ADD(&r->unit_asks[unit].v, asks))
			return err_nomem(err, "functions");
	}
	return 0;
}

static int look_at_unit(void *ctx, size_t unit, unsigned int worker, struct cairn_err *err)
{
	struct reducing *r = ctx;
	int rc = 0;
	for (uint32_t i = r->first[unit]; rc >= 0 && i < r->first[unit + 1]; i++)
		rc = look_at(r, &r->reducers[worker], i, err);
	return rc < 0 ? rc : list_asks(r, unit, err);
}

/* Unites the needs of all functions at one address. */
static int gather_asks(struct reducing *r)
{
	for (size_t u = 0; u < r->n_units; u++)
		for (size_t i = 0; i < r->unit_asks[u].v.n; i++) {
			const struct entry_asks *a = &r->unit_asks[u].v.p[i];
			uint64_t asked = 0;
			map_get(&r->asked_at, a->at, &asked);
			if (map_put(&r->asked_at, a->at, asked | a->asked) < 0)
				return -ENOMEM;
		}
	return 0;
}

/* ---- 2. types ---- */

/* Whether an entry is its own abstract instance. */
static int is_own(const struct reducing *r, struct reducer *x, uint32_t i, const struct dw_die *die,
		  const struct abstract **ret, struct cairn_err *err)
{
	int rc = instance_of(r, x, i, die, ret, err);
	return rc < 0 ? rc : (*ret)->die.off == die->off;
}

static int number_types(struct reducing *r, const struct formals *f, struct cairn_err *err)
{
	for (uint32_t i = 0; i < f->n; i++) {
		struct dw_die die;
		uint32_t id, number;
		int rc = dw_die_at(r->env.dw, f->die[i], &die, err);
		if (rc >= 0)
			rc = dwarf_type_of(r->p->types.reader, &die, &id, err);
		if (rc < 0)
			return rc;
		rc = type_table_add(&r->p->types, id, &number);
		if (rc >= 0 && !VEC_ADD(&r->types, number))
			rc = -ENOMEM;
		if (rc < 0)
			return rc == -ENOMEM ? err_nomem(err, "types")
					     : err_set(err, rc, "more types than 32 bits number");
	}
	return 0;
}

static int number_all_types(struct reducing *r, struct cairn_err *err)
{
	for (uint32_t i = 0; i < r->env.index->n; i++) {
		const struct abstract *instance;
		struct dw_die die;
		if (!r->is_kept[i] && !r->is_needed[i])
			continue;
		int rc = dw_func_die(r->env.dw, entry_at(r, i), &die, err);
		if (rc >= 0)
			rc = is_own(r, r->reducers, i, &die, &instance, err);
		r->types_at[i] = (uint32_t)r->types.n;
		if (rc > 0)
			rc = number_types(r, &instance->formals, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- 3. DIEs ---- */

/* One entry of the index at hand. */
struct writing {
	struct reducing *r;
	struct reducer *x;
	struct out_unit *u;
	uint32_t entry;
	struct dw_die die;
	const struct abstract *instance;
	uint32_t instance_entry; /* DW_FUNC_NONE: it is its own */
};

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

struct location {
	unsigned int kind;      /* OUT_AT_* */
	struct expression expr; /* OUT_AT_EXPR, OUT_AT_BYTES */
	int64_t number;
	uint32_t list;
};

/* A pop from the empty stack: a damaged expression stays damaged. */
static const uint8_t damaged[] = {DW_OP_drop};

static struct location damaged_location(void)
{
	return (struct location){.kind = OUT_AT_EXPR, .expr = {damaged, sizeof(damaged)}};
}

/* The value of an attribute: an expression, or a list, which is written. */
static struct location read_location(struct writing *w, const struct dw_die *die, uint16_t at)
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
	return read_location(w, formal, DW_AT_location);
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

static void put_location(struct writing *w, const struct location *l)
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
	return out_stand_in(dw_type_bytes(formal), loc_is_by_reference(r->env.dw, formal),
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
	put_location(w, &at);
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
	put_location(w, &at);
}

/* The formals of functions with code, in the order in which they are described. */
static int put_formals(struct writing *w, struct cairn_err *err)
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
static int put_abstract_formals(struct writing *w, struct cairn_err *err)
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

/* ---- calls ---- */

/*
 * The registers needed from the caller to which a call returns; 0 when the call is not a direct
 * one.
 */
static uint32_t asked_by_callee(const struct reducing *r, struct cairn_vaddr ret_pc)
{
	const uint8_t *code;
	size_t n;
	uint64_t asked = 0;
	int32_t distance;
	if (ret_pc.v < CALL_BYTES ||
	    !elf_code_at(r->env.code, (struct cairn_vaddr){ret_pc.v - CALL_BYTES}, &code, &n) ||
	    n < CALL_BYTES || code[0] != CALL_OPCODE)
		return 0;
	memcpy(&distance, code + 1, sizeof(distance));
	map_get(&r->asked_at, ret_pc.v + (uint64_t)(int64_t)distance, &asked);
	return (uint32_t)asked;
}

static void put_passed(struct writing *w, const struct call_param *p, uint32_t asked)
{
	struct bytes *b = &w->u->info;
	bool is_reg = p->reg < 16 && asked & 1u << p->reg,
	     is_removed = p->removed && asked & ASKED_REMOVED;
	if (!p->is_told || (!is_reg && !is_removed))
		return;
	put_u8(b, (uint8_t)(OUT_PASSED + (is_reg ? OUT_PASSED_REG : 0) +
			    (is_removed ? OUT_PASSED_REMOVED : 0)));
	if (is_reg) {
		put_u8(b, 1);
		put_u8(b, (uint8_t)(DW_OP_reg0 + p->reg));
	}
	if (is_removed)
		out_reference(w->u, FIX_REMOVED, p->removed);
	out_expr(w->u, b, false, w->die.unit, p->value.p, p->value.n);
}

/*
 * A needed call is written even if it describes nothing: among several at one address the first
 * counts.
 */
static int put_call(void *arg, const struct dw_die *site)
{
	struct writing *w = arg;
	struct cairn_vaddr ret_pc;
	struct dw_die param;
	uint32_t asked = call_site_return(site, &ret_pc) ? asked_by_callee(w->r, ret_pc) : 0;
	if (!asked)
		return 0;
	put_u8(&w->u->info, OUT_CALL);
	out_u64(&w->u->info, ret_pc.v);
	int rc = dw_die_child(site, &param, NULL);
	for (; rc == 1; rc = dw_die_sibling(&param, &param, NULL)) {
		struct call_param p;
		call_param_of(&param, &p);
		put_passed(w, &p, asked);
	}
	put_u8(&w->u->info, 0);
	return 0;
}

/* ---- functions and copies ---- */

/* The ranges at hand: one, or where their list is. */
static void put_ranges(struct writing *w, bool is_list)
{
	const struct dw_range_list *ranges = &w->x->ranges;
	struct bytes *b = &w->u->ranges;
	if (!is_list) {
		out_u64(&w->u->info, ranges->p[0].lo.v);
		put_uleb(&w->u->info, ranges->p[0].hi.v - ranges->p[0].lo.v);
		return;
	}
	out_reference(w->u, FIX_RANGES, b->v.n);
	for (size_t i = 0; i < ranges->n; i++) {
		bool is_above = ranges->p[i].lo.v >= w->u->low;
		put_u8(b, is_above ? DW_RLE_offset_pair : DW_RLE_start_length);
		if (is_above)
			put_uleb(b, ranges->p[i].lo.v - w->u->low);
		else
			out_u64(b, ranges->p[i].lo.v);
		put_uleb(b, ranges->p[i].hi.v - (is_above ? w->u->low : ranges->p[i].lo.v));
	}
	put_u8(b, DW_RLE_end_of_list);
}

/* The name that an entry has for itself; NULL: that of its origin. */
static const char *own_name(const struct writing *w)
{
	const char *name = dw_str_deep(&w->die, DW_AT_name);
	const char *inherited = w->instance_entry == DW_FUNC_NONE
					? NULL
					: dw_str_deep(&w->instance->die, DW_AT_name);
	return name && inherited && !strcmp(name, inherited) ? NULL : name;
}

static void put_names(struct writing *w, const char *name)
{
	if (w->instance_entry != DW_FUNC_NONE)
		out_reference(w->u, FIX_FUNCTION, (uint64_t)w->instance_entry << 32);
	if (name)
		out_reference(w->u, FIX_STRING, (uintptr_t)name);
}

static int put_function(struct writing *w, struct cairn_err *err)
{
	const char *name = own_name(w);
	struct bytes *b = &w->u->info;
	struct cairn_vaddr entry = {0};
	unsigned int code = OUT_CODE_NONE;
	struct location base = {0};
	if (w->r->is_kept[w->entry]) {
		int rc = ranges_of(w->x, &w->die, err);
		if (rc >= 0)
			rc = site_entry_of(&w->die, &entry);
		if (rc < 0)
			return rc;
		code = w->x->ranges.n > 1 ? OUT_CODE_RANGES : OUT_CODE_RANGE;
		if (entry.v != w->x->ranges.p[0].lo.v)
			code = code == OUT_CODE_RANGES ? OUT_CODE_RANGES_ENTRY
						       : OUT_CODE_RANGE_ENTRY;
		base = read_location(w, &w->die, DW_AT_frame_base);
	}
	put_uleb(b, OUT_FUNCTION + (w->instance_entry != DW_FUNC_NONE ? OUT_FUNCTION_ORIGIN : 0) +
			    (name ? OUT_FUNCTION_NAME : 0) +
			    OUT_FUNCTION_KINDS * (code + OUT_CODE_KINDS * base.kind));
	put_names(w, name);
	if (code != OUT_CODE_NONE)
		put_ranges(w, w->x->ranges.n > 1);
	if (code == OUT_CODE_RANGE_ENTRY || code == OUT_CODE_RANGES_ENTRY)
		out_u64(b, entry.v);
	put_location(w, &base);
	return 0;
}

static uint64_t removed_key(uint32_t copy, uint32_t number)
{
	return (uint64_t)copy << 32 | number;
}

static int note_removed(void *arg, uint32_t copy, uint32_t number)
{
	struct reducer *x = arg;
	return map_put(&x->removed, removed_key(copy, number), 1);
}

static void leave_copies(struct reducer *x)
{
	if (!x->has_copies)
		return;
	site_worker_fini(&x->worker);
	arena_fini(&x->copies);
	map_fini(&x->asked);
	map_fini(&x->removed);
	x->has_copies = false;
}

static void enter_copies(struct reducer *x, uint32_t function)
{
	if (x->has_copies && x->copies_of == function)
		return;
	leave_copies(x);
	arena_init(&x->copies);
	site_worker_init(&x->worker, &x->copies);
	x->copies_of = function;
	x->has_copies = true;
}

/* The copies of one function in another are looked at together, when the first is written. */
static int compare_copies(struct writing *w, struct cairn_err *err)
{
	uint64_t known, origin = entry_at(w->r, w->entry)->origin;
	uint32_t function = w->entry;
	while (is_copy(w->r, function))
		function = entry_at(w->r, function)->parent;
	enter_copies(w->x, function);
	if (map_get(&w->x->asked, origin, &known))
		return 0;
	int rc = active_removed(&w->r->env, &w->x->worker, function, w->entry, note_removed, w->x,
				err);
	/* If there are very many copies, each one is evaluated alone. */
	bool is_alone = map_get(&w->x->removed, removed_key(w->entry, ACTIVE_ALL), &known);
	if (rc >= 0 && !is_alone)
		rc = map_put(&w->x->asked, origin, 1);
	return rc == -ENOMEM ? err_nomem(err, "copies") : rc;
}

/* A bit for each parameter that may be described by another copy's; *@ret_any: there are some. */
static int find_removed(struct writing *w, struct bytes *ret, bool *ret_any, struct cairn_err *err)
{
	uint32_t n = w->instance->formals.n;
	uint64_t known;
	*ret_any = false;
	if (!n || !dw_unit_is_gcc(w->die.unit))
		return 0;
	int rc = compare_copies(w, err);
	for (uint32_t i = 0; rc >= 0 && i < n; i++) {
		bool is_removed =
			map_get(&w->x->removed, removed_key(w->entry, ACTIVE_ALL), &known) ||
			map_get(&w->x->removed, removed_key(w->entry, i), &known);
		if (!(i % 8))
			put_u8(ret, 0);
		if (is_removed && !ret->failed)
			ret->v.p[i / 8] |= (uint8_t)(1u << i % 8);
		*ret_any |= is_removed;
	}
	return rc >= 0 && ret->failed ? err_nomem(err, "copies") : rc;
}

static int put_copy(struct writing *w, struct cairn_err *err)
{
	const char *name = own_name(w);
	struct bytes removed = {0}, *b = &w->u->info;
	bool is_any, is_list;
	int rc = find_removed(w, &removed, &is_any, err);
	if (rc >= 0)
		rc = ranges_of(w->x, &w->die, err);
	is_list = w->x->ranges.n > 1;
	if (rc >= 0) {
		put_u8(b, (uint8_t)(OUT_COPY +
				    (w->instance_entry != DW_FUNC_NONE ? OUT_COPY_ORIGIN : 0) +
				    (name ? OUT_COPY_NAME : 0) + (is_list ? OUT_COPY_RANGES : 0) +
				    (is_any ? OUT_COPY_REMOVED : 0)));
		put_names(w, name);
		put_ranges(w, is_list);
	}
	if (rc >= 0 && is_any) {
		put_uleb(b, removed.v.n);
		put_bytes(b, removed.v.p, removed.v.n);
	}
	VEC_FREE(&removed.v);
	return rc;
}

static int put_entry(struct writing *w, struct cairn_err *err)
{
	struct reducing *r = w->r;
	bool is_kept = r->is_kept[w->entry];
	int rc = dw_func_die(r->env.dw, entry_at(r, w->entry), &w->die, err);
	if (rc >= 0)
		rc = instance_of(r, w->x, w->entry, &w->die, &w->instance, err);
	if (rc < 0)
		return rc;
	w->instance_entry =
		w->instance->die.off == w->die.off
			? DW_FUNC_NONE
			: dw_func_index_find_near(r->env.index, w->entry, w->instance->die.off);
	r->die_at[w->entry] = (uint32_t)w->u->info.v.n;
	r->formals_at[w->entry] = (uint32_t)w->u->formals.n;
	for (uint32_t i = 0; w->instance_entry == DW_FUNC_NONE && i < w->instance->formals.n; i++)
		if (!VEC_ADD(&w->u->formals, r->die_at[w->entry]))
			return err_nomem(err, "parameters");
	rc = is_copy(r, w->entry) && is_kept ? put_copy(w, err) : put_function(w, err);
	if (rc >= 0)
		rc = is_kept ? put_formals(w, err) : put_abstract_formals(w, err);
	if (rc >= 0 && is_kept && !is_copy(r, w->entry))
		rc = call_sites_visit(&w->die, put_call, w, err);
	return rc;
}

/* ---- units ---- */

static int lowest_address(struct reducing *r, struct reducer *x, size_t unit, uint64_t *ret,
			  struct cairn_err *err)
{
	*ret = UINT64_MAX;
	for (uint32_t i = r->first[unit]; i < r->first[unit + 1]; i++) {
		struct dw_die die;
		if (!r->is_kept[i] || is_copy(r, i))
			continue;
		int rc = dw_func_die(r->env.dw, entry_at(r, i), &die, err);
		if (rc >= 0)
			rc = ranges_of(x, &die, err);
		if (rc < 0)
			return rc;
		for (size_t k = 0; k < x->ranges.n; k++)
			*ret = x->ranges.p[k].lo.v < *ret ? x->ranges.p[k].lo.v : *ret;
	}
	*ret = *ret == UINT64_MAX ? 0 : *ret;
	return 0;
}

static const char *producer_of(const struct dw_unit *unit)
{
	struct dw_die root;
	const char *producer =
		dw_unit_root(unit, &root, NULL) == 1 ? dw_str(&root, DW_AT_producer) : NULL;
	return producer ? producer : "";
}

/* Entries as deep as they were, in the nearest one around them that is written. */
static int write_entries(struct reducing *r, struct reducer *x, size_t unit, struct out_unit *u,
			 struct cairn_err *err)
{
	uint32_t open[DEPTH_MAX];
	unsigned int depth = 0;
	for (uint32_t i = r->first[unit]; i < r->first[unit + 1]; i++) {
		uint32_t parent = entry_at(r, i)->parent;
		if (!r->is_kept[i] && !r->is_needed[i])
			continue;
		while (parent != DW_FUNC_NONE && !r->is_kept[parent] && !r->is_needed[parent])
			parent = entry_at(r, parent)->parent;
		for (; depth && open[depth - 1] != parent; depth--)
			put_u8(&u->info, 0);
		struct writing w = {.r = r, .x = x, .u = u, .entry = i};
		int rc = depth == DEPTH_MAX
				 ? err_set(err, -EBADMSG, "%s: functions nested more than %d deep",
					   cairn_binary_debug_path(r->env.bin), DEPTH_MAX)
				 : put_entry(&w, err);
		if (rc < 0)
			return rc;
		if (u->info.v.n > UINT32_MAX / 2)
			return err_set(err, -ERANGE, "a unit of more than 2 GiB");
		open[depth++] = i;
	}
	for (; depth; depth--)
		put_u8(&u->info, 0);
	return 0;
}

static bool is_empty(const struct reducing *r, size_t unit)
{
	for (uint32_t i = r->first[unit]; i < r->first[unit + 1]; i++)
		if (r->is_kept[i] || r->is_needed[i])
			return false;
	return true;
}

static int write_unit(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct reducing *r = ctx;
	struct reducer *x = &r->reducers[worker];
	struct out_unit *u = &r->units[item];
	const struct dw_unit *unit = dwarf_unit(r->env.dw, item);
	uint64_t low;
	if (is_empty(r, item))
		return 0;
	int rc = lowest_address(r, x, item, &low, err);
	if (rc < 0)
		return rc;
	out_unit_begin(u, producer_of(unit), dw_unit_language(unit), low);
	rc = write_entries(r, x, item, u, err);
	if (rc < 0)
		return rc;
	out_unit_end(u);
	return u->info.failed || u->locations.failed || u->ranges.failed
		       ? err_nomem(err, "the descriptions of parameters")
		       : 0;
}

/* ---- all ---- */

static int start(struct reducing *r, unsigned int threads)
{
	size_t n = r->env.index->n + 1;
	unsigned int width = pool_width(threads);
	r->n_units = dwarf_n_units(r->env.dw);
	r->first = calloc(r->n_units + 2, sizeof(*r->first));
	r->unit_of = calloc(n, sizeof(*r->unit_of));
	r->die_at = calloc(n, sizeof(*r->die_at));
	r->formals_at = calloc(n, sizeof(*r->formals_at));
	r->types_at = calloc(n, sizeof(*r->types_at));
	r->asked = calloc(n, sizeof(*r->asked));
	r->is_kept = calloc(n, 1);
	r->is_needed = calloc(n, 1);
	r->unit_asks = calloc(r->n_units + 1, sizeof(*r->unit_asks));
	r->units = calloc(r->n_units + 1, sizeof(*r->units));
	r->reducers = calloc(width, sizeof(*r->reducers));
	if (!r->first || !r->unit_of || !r->die_at || !r->formals_at || !r->types_at || !r->asked ||
	    !r->is_kept || !r->is_needed || !r->unit_asks || !r->units || !r->reducers)
		return -ENOMEM;
	for (unsigned int i = 0; i < width; i++) {
		arena_init(&r->reducers[i].arena);
		abstracts_init(&r->reducers[i].abstracts, &r->reducers[i].arena);
	}
	for (uint32_t i = 0; i + 1 < n; i++) {
		r->unit_of[i] = entry_at(r, i)->unit;
		r->first[r->unit_of[i] + 1] = i + 1;
	}
	/* A unit without entries begins where the one before it ends. */
	for (size_t u = 1; u <= r->n_units; u++)
		r->first[u] = r->first[u] > r->first[u - 1] ? r->first[u] : r->first[u - 1];
	return 0;
}

static void end(struct reducing *r, unsigned int threads)
{
	for (size_t i = 0; r->unit_asks && i < r->n_units; i++)
		VEC_FREE(&r->unit_asks[i].v);
	for (size_t i = 0; r->units && i < r->n_units; i++)
		out_unit_fini(&r->units[i]);
	for (unsigned int i = 0; r->reducers && i < pool_width(threads); i++) {
		if (r->reducers[i].abstracts.arena)
			abstracts_fini(&r->reducers[i].abstracts);
		arena_fini(&r->reducers[i].arena);
		VEC_FREE(&r->reducers[i].ranges);
		leave_copies(&r->reducers[i]);
	}
	free(r->first);
	free(r->unit_of);
	free(r->die_at);
	free(r->formals_at);
	free(r->types_at);
	free(r->asked);
	free(r->is_kept);
	free(r->is_needed);
	free(r->unit_asks);
	free(r->units);
	free(r->reducers);
	VEC_FREE(&r->types);
	map_fini(&r->asked_at);
}

static int reduce(struct reducing *r, unsigned int threads, struct bytes *ret,
		  struct cairn_err *err)
{
	int rc = start(r, threads) < 0 ? err_nomem(err, "functions") : 0;
	if (rc >= 0)
		rc = pool_run(r->n_units, threads, look_at_unit, r, err);
	if (rc >= 0)
		rc = gather_asks(r) < 0 ? err_nomem(err, "functions") : 0;
	if (rc >= 0)
		rc = number_all_types(r, err);
	if (rc >= 0)
		rc = pool_run(r->n_units, threads, write_unit, r, err);
	struct out_sites sites = {r->units, r->n_units, r->unit_of, r->die_at, r->formals_at};
	return rc < 0 ? rc : out_write(r->units, &sites, ret, err);
}

int reduced_make(struct site_table *p, unsigned int threads, struct bytes *ret, uint64_t *ret_n,
		 struct cairn_err *err)
{
	struct reducing r = {.p = p};
	int rc = sites_all_functions(p->sites, &r.env, err);
	if (rc >= 0)
		rc = reduce(&r, threads, ret, err);
	*ret_n = 0;
	for (size_t i = 0; rc >= 0 && i < r.env.index->n; i++)
		*ret_n += r.is_kept[i];
	end(&r, threads);
	return rc < 0 ? rc : 0;
}
