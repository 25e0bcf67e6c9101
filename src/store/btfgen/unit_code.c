/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/unit_impl.h"

static bool has_code(struct unit_types *u, uint64_t *ret)
{
	struct cairn_vaddr at;
	*ret = 0;
	if (dw_seen_addr(&u->walker, LOW_PC, &at)) {
		*ret = at.v;
		return at.v || u->walker.unit->file->relocatable;
	}
	return dw_seen(&u->walker, RANGES);
}

int unit_see_func(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	local_off self = unit_local_of(u, dw_walker_off(w)), origin = self;
	uint64_t addr;
	bool has_body = has_code(u, &addr);
	if (dw_seen(w, ABSTRACT_ORIGIN))
		origin = unit_ref(u, ABSTRACT_ORIGIN);
	if (w->rc < 0)
		return w->rc;
	if (has_body &&
	    !VEC_ADD(&u->bodies, ((struct body_die){.off = self, .origin = origin, .addr = addr})))
		return -ENOMEM;
	if (origin != self)
		return unit_open_scope(u, SCOPE_ONLY, NULL);
	struct func_die f = {
		.off = self, .name = unit_own_name(u), .external = dw_seen_flag(w, EXTERNAL)};
	f.ref = unit_ref(u, TYPE);
	f.declaration = dw_seen_flag(w, DECLARATION);
	if (dw_seen(w, SPECIFICATION)) {
		/* Declared in its class; few of the many DIEs of functions have this. */
		struct dw_die die = dw_walker_die(w);
		char buf[1024];
		int n = dw_qualified_name(u->dw, &die, buf, sizeof(buf));
		f.name = n > 0 ? unit_qualify(u, "", buf) : NULL;
		f.name = f.name ? f.name + 2 : dw_str_deep(&die, DW_AT_name);
		f.external = true;
		if (!f.ref)
			f.ref = unit_local_of(u, dw_ref_deep(&die, DW_AT_type));
	} else {
		f.name = unit_full_name(u, f.name);
	}
	if (!VEC_ADD(&u->funcs, f))
		return -ENOMEM;
	uint32_t number = (uint32_t)(u->funcs.n - 1) | OWNER_FUNC;
	int rc = unit_see_annotations_of(u, number, -1);
	return rc < 0 ? rc : unit_open_scope(u, number, f.name);
}

/* The operation is followed by the index of an address; before DWARF 5 there was only GNU's. */
static bool is_indexed(uint8_t op)
{
	return op == DW_OP_addrx || op == DW_OP_GNU_addr_index;
}

int unit_see_variable(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	struct dw_value v;
	if (!u->want_vars || !dw_seen(w, LOCATION))
		return 0;
	struct dw_attr_slot attr = w->places[LOCATION];
	if (attr.how != DW_HOW_FORM && attr.how != DW_HOW_FAR)
		return 0;
	/* Most are local, on the stack or in a list. */
	if (attr.form == DW_FORM_sec_offset || attr.form == DW_FORM_loclistx)
		return 0;
	if (attr.form == DW_FORM_exprloc && attr.how == DW_HOW_FORM) {
		const uint8_t *expr = dw_seen_at(w, attr);
		if (expr[0] && expr[0] < 0x80 && expr[1] != DW_OP_addr && !is_indexed(expr[1]))
			return 0;
	}
	int rc = dw_seen_value(w, LOCATION, &v);
	if (rc <= 0 || (v.cls != DW_CLASS_EXPRLOC && v.cls != DW_CLASS_BLOCK) || !v.block.n)
		return rc < 0 ? rc : 0;
	struct var_die var = {.off = unit_local_of(u, dw_walker_off(w)),
			      .external = dw_seen_flag(w, EXTERNAL)};
	struct cursor_src src = {
		.file = u->dw->file[0].path, .section = "a variable's location", .base = v.block.p};
	struct cursor c = cursor_of(&src, v.block.p + 1, v.block.n - 1, false, NULL);
	uint8_t op = v.block.p[0];
	if (op == DW_OP_addr)
		var.addr = cur_uint(&c, w->unit->addr_size);
	else if (!is_indexed(op) || dw_unit_addrx(w->unit, cur_uleb(&c), &var.addr, NULL) != 1)
		return 0;
	if (c.failed || cur_more(&c)) {
		u->losses[CAIRN_LOSS_VARIABLE]++;
		return 0;
	}
	struct dw_die die = dw_walker_die(w);
	var.name = dw_seen(w, SPECIFICATION) || dw_seen(w, ABSTRACT_ORIGIN)
			   ? dw_str_deep(&die, DW_AT_name)
			   : unit_full_name(u, unit_own_name(u));
	var.ref = dw_seen(w, TYPE) ? unit_ref(u, TYPE)
				   : unit_local_of(u, dw_ref_deep(&die, DW_AT_type));
	if (dw_seen(w, SPECIFICATION))
		var.external = true;
	if (!var.name || w->rc < 0)
		return w->rc;
	if (!VEC_ADD(&u->vars, var))
		return -ENOMEM;
	uint32_t number = (uint32_t)(u->vars.n - 1) | OWNER_VAR;
	rc = unit_see_annotations_of(u, number, -1);
	return rc < 0 ? rc : unit_open_part(u, number, -1);
}
