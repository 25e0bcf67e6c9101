/* SPDX-License-Identifier: BSD-2-Clause */
/* .cairn.dwarf: functions, copies and calls. */
#include "sidecar/reduced_write.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "sites/call_site_value.h"

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
		int rc = reduced_ranges_of(w->x, &w->die, err);
		if (rc >= 0)
			rc = site_entry_of(&w->die, &entry);
		if (rc < 0)
			return rc;
		code = w->x->ranges.n > 1 ? OUT_CODE_RANGES : OUT_CODE_RANGE;
		if (entry.v != w->x->ranges.p[0].lo.v)
			code = code == OUT_CODE_RANGES ? OUT_CODE_RANGES_ENTRY
						       : OUT_CODE_RANGE_ENTRY;
		base = reduced_read_location(w, &w->die, DW_AT_frame_base);
	}
	put_uleb(b, OUT_FUNCTION + (w->instance_entry != DW_FUNC_NONE ? OUT_FUNCTION_ORIGIN : 0) +
			    (name ? OUT_FUNCTION_NAME : 0) +
			    OUT_FUNCTION_KINDS * (code + OUT_CODE_KINDS * base.kind));
	put_names(w, name);
	if (code != OUT_CODE_NONE)
		put_ranges(w, w->x->ranges.n > 1);
	if (code == OUT_CODE_RANGE_ENTRY || code == OUT_CODE_RANGES_ENTRY)
		out_u64(b, entry.v);
	reduced_put_location(w, &base);
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

void reduced_leave_copies(struct reducer *x)
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
	reduced_leave_copies(x);
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
		rc = reduced_ranges_of(w->x, &w->die, err);
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

int reduced_put_entry(struct writing *w, struct cairn_err *err)
{
	struct reducing *r = w->r;
	bool is_kept = r->is_kept[w->entry];
	int rc = dw_func_die(r->env.dw, entry_at(r, w->entry), &w->die, err);
	if (rc >= 0)
		rc = reduced_instance_of(r, w->x, w->entry, &w->die, &w->instance, err);
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
		rc = is_kept ? reduced_put_formals(w, err) : reduced_put_abstract_formals(w, err);
	if (rc >= 0 && is_kept && !is_copy(r, w->entry))
		rc = call_sites_visit(&w->die, put_call, w, err);
	return rc;
}
