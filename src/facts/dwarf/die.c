/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DIEs: walking the tree, reading attributes
 *
 * The tree is written in preorder: a DIE with children is followed by them and a null entry.
 * Nothing here recurses; a subtree is stepped over by counting nulls, or in one jump where
 * DW_AT_sibling allows it.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/forms.h"
#include "dwarf/impl.h"
#include "dwarf/near.h"

int dw_die_at(const struct dwarf *dw, dw_off off, struct dw_die *ret, struct cairn_err *err)
{
	const struct dw_unit *u = dwarf_unit_of(dw, off);
	uint64_t at = dw_off_in_section(off);
	if (!u || u->sec->p + at < u->dies)
		return err_set(err, -EBADMSG, "%s: %s0x%" PRIx64 " is not the offset of a DIE",
			       dw->file[0].path,
			       off & DW_OFF_ALT     ? "alternate .debug_info+"
			       : off & DW_OFF_TYPES ? ".debug_types+"
						    : ".debug_info+",
			       at);
	return dw_die_parse(u, u->sec->p + at, ret, err);
}

int dw_die_near(const struct dw_unit *u, dw_off off, struct dw_die *ret, struct cairn_err *err)
{
	uint64_t at = dw_off_in_section(off);
	if ((at | u->tag) != off || at < (uint64_t)(u->dies - u->sec->p) ||
	    at >= (uint64_t)(u->end - u->sec->p))
		return dw_die_at(u->dw, off, ret, err);
	return dw_die_parse(u, u->sec->p + at, ret, err);
}

void dw_die_prefetch(const struct dw_unit *u, dw_off off)
{
	uint64_t at = dw_off_in_section(off);
	if ((at | u->tag) == off && at < (uint64_t)(u->end - u->sec->p))
		__builtin_prefetch(u->sec->p + at);
}

/* ---- attributes ---- */

/* As dw_spec_next(), with the usual case of two small numbers first. */
static inline bool next_spec(const uint8_t **p, struct dw_spec *ret)
{
	const uint8_t *at = *p;
	if (at[0] >= 0x80 || at[1] >= DW_FORM_implicit_const)
		return dw_spec_next(p, ret);
	*ret = (struct dw_spec){.at = at[0], .form = at[1]};
	*p = at + 2;
	return at[1] != 0;
}

/*
 * The byte after a value at @p of the forms that most values have; NULL for another, or when it is
 * not all there.
 */
static inline const uint8_t *after_usual(const struct dw_unit *u, const uint8_t *p, uint16_t form)
{
	size_t n;
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return p;
	case DW_FORM_data1:
	case DW_FORM_flag:
		n = 1;
		break;
	case DW_FORM_data2:
		n = 2;
		break;
	case DW_FORM_data4:
	case DW_FORM_ref4:
		n = 4;
		break;
	case DW_FORM_data8:
		n = 8;
		break;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
		n = u->offset_size;
		break;
	case DW_FORM_addr:
		n = u->addr_size;
		break;
	case DW_FORM_exprloc:
		if (p == u->end || *p >= 0x80)
			return NULL;
		n = 1 + (size_t)*p;
		break;
	case DW_FORM_string:
		for (n = 0; n < (size_t)(u->end - p) && p[n];)
			n++;
		n++;
		break;
	default:
		return NULL;
	}
	return n <= (size_t)(u->end - p) ? p + n : NULL;
}

int dw_attr_by_pair(const struct dw_die *die, uint16_t at, struct dw_value *ret,
		    struct cairn_err *err)
{
	const uint8_t *specs = die->abbrev->specs, *p = die->attrs;
	struct dw_spec spec;
	if (!(die->abbrev->has & dw_attr_bit(at)))
		return 0;
	while (next_spec(&specs, &spec)) {
		if (spec.at == at) {
			struct cursor c = dw_unit_cursor(die->unit, p, err);
			return dw_form_read(die->unit, &c, &spec, ret);
		}
		const uint8_t *after = after_usual(die->unit, p, spec.form);
		if (!after) {
			struct cursor c = dw_unit_cursor(die->unit, p, err);
			dw_form_skip(die->unit, &c, spec.form);
			if (c.failed)
				return dw_failure(&c);
			after = c.pos;
		}
		p = after;
	}
	return 0;
}

static inline int attr(const struct dw_die *die, uint16_t at, struct dw_value *ret,
		       struct cairn_err *err)
{
	enum dw_slot slot = dw_slot_of(at);
	return slot == DW_SLOT_NONE ? dw_attr_by_pair(die, at, ret, err)
				    : dw_attr_at(die, slot, at, ret, err);
}

int dw_attr(const struct dw_die *die, uint16_t at, struct dw_value *ret, struct cairn_err *err)
{
	return attr(die, at, ret, err);
}

static bool has_attr(const struct dw_die *die, uint16_t at)
{
	const uint8_t *specs = die->abbrev->specs;
	enum dw_slot slot = dw_slot_of(at);
	struct dw_spec spec;
	if (slot != DW_SLOT_NONE || !(die->abbrev->has & dw_attr_bit(at)))
		return die->abbrev->near[slot].form;
	while (next_spec(&specs, &spec))
		if (spec.at == at)
			return true;
	return false;
}

static int follow(const struct dw_die *die, const struct dw_value *v, struct dw_die *ret,
		  struct cairn_err *err)
{
	const struct dwarf *dw = die->unit->dw;
	dw_off off = 0;
	if (v->cls == DW_CLASS_REF)
		off = v->ref;
	else if (v->cls == DW_CLASS_SIGNATURE)
		off = dwarf_type_of_signature(dw, v->u);
	int rc = off ? dw_die_near(die->unit, off, ret, err) : 0;
	if (rc)
		return rc;
	return err_set(err, -EBADMSG,
		       "%s: the DIE at 0x%" PRIx64 " refers to none (form 0x%x, 0x%" PRIx64 ")",
		       die->unit->file->path, die->off, v->form, v->u);
}

int dw_die_origin(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err)
{
	static const uint16_t links[] = {DW_AT_abstract_origin, DW_AT_specification,
					 DW_AT_signature};
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (!has_attr(die, links[i]))
			continue;
		struct dw_value v;
		int rc = dw_attr(die, links[i], &v, err);
		return rc > 0 ? follow(die, &v, ret, err) : rc;
	}
	return 0;
}

int dw_attr_deep(const struct dw_die *die, uint16_t at, struct dw_value *ret,
		 struct dw_die *ret_die, struct cairn_err *err)
{
	struct dw_die at_die = *die;
	for (int link = 0; link <= DW_ORIGIN_MAX; link++) {
		int rc = dw_attr(&at_die, at, ret, err);
		if (rc > 0 && ret_die)
			*ret_die = at_die;
		if (rc)
			return rc;
		struct dw_die origin;
		rc = dw_die_origin(&at_die, &origin, err);
		if (rc <= 0)
			return rc;
		at_die = origin;
	}
	return err_set(err, -EBADMSG,
		       "%s: the DIE at 0x%" PRIx64
		       " has more than %d origins in a row: they form a ring",
		       die->unit->file->path, die->off, DW_ORIGIN_MAX);
}

const char *dw_str(const struct dw_die *die, uint16_t at)
{
	struct dw_value v;
	return dw_attr(die, at, &v, NULL) > 0 && v.cls == DW_CLASS_STRING ? v.str : NULL;
}

const char *dw_str_deep(const struct dw_die *die, uint16_t at)
{
	struct dw_value v;
	return dw_attr_deep(die, at, &v, NULL, NULL) > 0 && v.cls == DW_CLASS_STRING ? v.str : NULL;
}

uint64_t dw_udata(const struct dw_die *die, uint16_t at, uint64_t otherwise)
{
	struct dw_value v;
	if (attr(die, at, &v, NULL) <= 0)
		return otherwise;
	if (v.cls == DW_CLASS_SDATA)
		return v.s >= 0 ? (uint64_t)v.s : otherwise;
	return v.cls == DW_CLASS_UDATA ? v.u : otherwise;
}

bool dw_flag(const struct dw_die *die, uint16_t at)
{
	struct dw_value v;
	if (dw_attr(die, at, &v, NULL) <= 0)
		return false;
	return (v.cls == DW_CLASS_FLAG || v.cls == DW_CLASS_UDATA || v.cls == DW_CLASS_SDATA) &&
	       v.u;
}

static dw_off ref_of(const struct dw_die *die, const struct dw_value *v)
{
	if (v->cls == DW_CLASS_SIGNATURE)
		return dwarf_type_of_signature(die->unit->dw, v->u);
	return v->cls == DW_CLASS_REF ? v->ref : 0;
}

dw_off dw_ref(const struct dw_die *die, uint16_t at)
{
	struct dw_value v;
	return attr(die, at, &v, NULL) > 0 ? ref_of(die, &v) : 0;
}

dw_off dw_ref_deep(const struct dw_die *die, uint16_t at)
{
	struct dw_value v;
	return dw_attr_deep(die, at, &v, NULL, NULL) > 0 ? ref_of(die, &v) : 0;
}

uint64_t dw_type_bytes(const struct dw_die *die)
{
	/* Longer chains of typedefs are damaged. */
	enum { CHAIN_MAX = 64 };
	dw_off off = dw_ref_deep(die, DW_AT_type);
	struct dw_die type = *die;
	for (int i = 0; i < CHAIN_MAX && off && dw_die_near(type.unit, off, &type, NULL) == 1;
	     i++) {
		switch (type.tag) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			off = dw_ref(&type, DW_AT_type);
			break;
		case DW_TAG_pointer_type:
		case DW_TAG_reference_type:
		case DW_TAG_rvalue_reference_type:
			return dw_unit_addr_size(type.unit);
		default:
			return dw_udata(&type, DW_AT_byte_size, 0);
		}
	}
	return 0;
}

/* ---- the tree ---- */

/* Called after either of the two failed. */
static int lost(const struct cairn_err *err)
{
	return err && err->code == -EOPNOTSUPP ? -EOPNOTSUPP : -EBADMSG;
}

/* The byte after the attributes, where the first child or the next sibling is. */
static inline const uint8_t *after(const struct dw_die *die, struct cairn_err *err)
{
	const uint8_t *p = dw_skip_attrs(die->abbrev, die->attrs, die->unit->end);
	if (p)
		return p;
	struct cursor c = dw_unit_cursor(die->unit, die->attrs, err);
	dw_abbrev_skip(die->unit, die->abbrev, &c);
	return c.failed ? NULL : c.pos;
}

static int die_or_end(const struct dw_unit *u, const uint8_t *p, struct dw_die *ret,
		      struct cairn_err *err)
{
	/* Some old compilers leave out the nulls at the end of a unit. */
	if (p == u->end)
		return 0;
	const struct dw_abbrev *a = dw_usual_abbrev(u, p);
	if (!a)
		return *p ? dw_die_parse(u, p, ret, err) : 0;
	dw_die_init(ret, u, a, p, p + 1);
	return 1;
}

int dw_die_child(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err)
{
	if (!die->has_children)
		return 0;
	const uint8_t *p = after(die, err);
	return p ? die_or_end(die->unit, p, ret, err) : lost(err);
}

/*
 * Sets the next DIE by a DW_AT_sibling at offset @off of the section. Only forward, or a walk along
 * siblings might never end.
 */
static inline bool jump_to(const struct dw_unit *u, uint64_t off, const uint8_t *skip_attrs,
			   const uint8_t **ret)
{
	if (off <= (uint64_t)(skip_attrs - u->sec->p) || off > (uint64_t)(u->end - u->sec->p))
		return false;
	*ret = u->sec->p + off;
	return true;
}

bool dw_die_jump(const struct dw_die *die, const uint8_t *skip_attrs, const uint8_t **ret)
{
	const struct dw_unit *u = die->unit;
	struct dw_value v;
	/* It is in the first run, which was stepped over already. */
	if (die->abbrev->sibling != DW_NO_FAST)
		return jump_to(u, u->off + dw_load_u32(die->attrs + die->abbrev->sibling),
			       skip_attrs, ret);
	if (dw_attr(die, DW_AT_sibling, &v, NULL) <= 0 || v.cls != DW_CLASS_REF)
		return false;
	return jump_to(u, dw_off_in_section(v.ref), skip_attrs, ret);
}

/*
 * The address after the DIE at @p, and after its children if the DIE says where that is; otherwise
 * they are @open. NULL if the DIE is unusual: dw_die_parse() has to read it then.
 */
static inline __attribute__((always_inline)) const uint8_t *step_usual(const struct dw_unit *u,
								       const uint8_t *p, bool *open)
{
	const struct dw_abbrev *a = dw_usual_abbrev(u, p);
	const uint8_t *attrs = p + 1;
	*open = false;
	p = a ? dw_skip_attrs(a, attrs, u->end) : NULL;
	if (!p || !a->has_children)
		return p;
	if (a->sibling != DW_NO_FAST) {
		*open = !jump_to(u, u->off + dw_load_u32(attrs + a->sibling), p, &p);
		return p;
	}
	*open = true;
	return a->near[DW_SLOT_SIBLING].form ? NULL : p;
}

/* Steps over the children that start at @p. Returns the byte after their null, or NULL. */
static const uint8_t *skip_children(const struct dw_unit *u, const uint8_t *p,
				    struct cairn_err *err)
{
	for (uint64_t depth = 1; depth && p < u->end;) {
		struct dw_die die;
		bool open;
		if (!*p) {
			p++;
			depth--;
			continue;
		}
		const uint8_t *next = step_usual(u, p, &open);
		if (next) {
			p = next;
			depth += open;
			continue;
		}
		int rc = dw_die_parse(u, p, &die, err);
		if (rc < 0)
			return NULL;
		if (!rc) {
			struct cursor c = dw_unit_cursor(u, p, err);
			cur_uleb(&c); /* a null may be written long */
			p = c.pos;
			depth--;
			continue;
		}
		p = after(&die, err);
		if (!p)
			return NULL;
		if (die.has_children && !dw_die_jump(&die, p, &p))
			depth++;
	}
	return p;
}

/* The byte after a DIE and its children. */
static const uint8_t *skip_all(const struct dw_die *die, struct cairn_err *err)
{
	const uint8_t *p = after(die, err);
	if (p && die->has_children && !dw_die_jump(die, p, &p))
		p = skip_children(die->unit, p, err);
	return p;
}

int dw_die_sibling(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err)
{
	const uint8_t *p = skip_all(die, err);
	return p ? die_or_end(die->unit, p, ret, err) : lost(err);
}

/*
 * The first parameter among the DIE at @p and its siblings. GCC writes for each DIE with children
 * where the next one is, unless it is the last (dwarf2out.c, add_sibling_attributes; dwz keeps to
 * that). So the children of the last one need not be stepped over. A program that rewrites units
 * and drops the attribute (LLVM's linker of DWARF) drops all of them.
 */
static int param_from(const struct dw_unit *u, const uint8_t *p, struct dw_die *ret,
		      struct cairn_err *err)
{
	while (p && p < u->end && *p) {
		const struct dw_abbrev *a = dw_usual_abbrev(u, p);
		bool open, is_usual = a && a->tag != DW_TAG_formal_parameter &&
				      a->tag != DW_TAG_unspecified_parameters;
		const uint8_t *next = is_usual ? step_usual(u, p, &open) : NULL;
		if (next && open && u->gcc && u->abbrevs->has_siblings &&
		    !a->near[DW_SLOT_SIBLING].form)
			return 0;
		if (next) {
			p = open ? skip_children(u, next, err) : next;
			continue;
		}
		int rc = die_or_end(u, p, ret, err);
		if (rc <= 0 || ret->tag == DW_TAG_formal_parameter ||
		    ret->tag == DW_TAG_unspecified_parameters)
			return rc;
		p = skip_all(ret, err);
	}
	return p ? 0 : lost(err);
}

int dw_param_child(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err)
{
	return die->has_children ? param_from(die->unit, after(die, err), ret, err) : 0;
}

int dw_param_sibling(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err)
{
	return param_from(die->unit, skip_all(die, err), ret, err);
}

/* ---- the locals of a function ---- */

static bool is_variable(uint16_t tag)
{
	return tag == DW_TAG_variable || tag == DW_TAG_formal_parameter;
}

static bool is_scope(uint16_t tag)
{
	return tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine;
}

void dw_locals_enter(struct dw_locals *w, const struct dw_die *die)
{
	w->unit = die->unit;
	w->at = die->has_children ? after(die, NULL) : NULL;
}

/* True if it has a location or a value. */
static bool is_told(const struct dw_abbrev *a)
{
	return a->near[DW_SLOT_LOCATION].form || a->near[DW_SLOT_CONST_VALUE].form;
}

enum dw_local dw_locals_next(struct dw_locals *w, dw_off to, struct dw_die *ret)
{
	const struct dw_unit *u = w->unit;
	const uint8_t *end = u->sec->p + dw_off_in_section(to), *next;
	for (const uint8_t *p = w->at; p && p < end && p < u->end; p = w->at) {
		const struct dw_abbrev *a = dw_usual_abbrev(u, p);
		bool open;
		if (!*p) {
			w->at = p + 1;
			return DW_LOCAL_END;
		}
		next = a ? step_usual(u, p, &open) : NULL;
		if (next && (!is_scope(a->tag) || (a->has_children && !open && next <= end))) {
			w->at = open ? skip_children(u, next, NULL) : next;
			if (!is_variable(a->tag) || !is_told(a))
				continue;
			dw_die_init(ret, u, a, p, p + 1);
			return DW_LOCAL_VARIABLE;
		}
		int rc = die_or_end(u, p, ret, NULL);
		if (rc < 0) {
			w->at = NULL;
			break;
		}
		if (!rc) {
			/* A null entry of more bytes than one. */
			while (*p & 0x80)
				p++;
			w->at = p + 1;
			return DW_LOCAL_END;
		}
		w->at = after(ret, NULL);
		if (w->at && is_scope(ret->tag) && ret->has_children) {
			if (!dw_die_jump(ret, w->at, &next) || next > end)
				return DW_LOCAL_SCOPE;
			w->at = next;
		} else if (ret->has_children) {
			w->at = skip_all(ret, NULL);
		}
		if (is_variable(ret->tag) && is_told(ret->abbrev))
			return DW_LOCAL_VARIABLE;
	}
	return DW_LOCAL_NONE;
}
