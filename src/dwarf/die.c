/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DIEs: walking the tree, reading attributes
 *
 * The tree is written in preorder: a DIE with children is followed by them and a null entry. Nothing here
 * recurses; a subtree is stepped over by counting nulls, or in one jump where DW_AT_sibling allows it.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/forms.h"
#include "dwarf/impl.h"

int dw_die_at(const struct dwarf *dw, dw_off off, struct dw_die *ret, struct cairn_err *err)
{
	const struct dw_unit *u = dwarf_unit_of(dw, off);
	uint64_t at = dw_off_in_section(off);
	if (!u || u->sec->p + at < u->dies)
		return err_set(err, -EBADMSG, "%s: %s0x%" PRIx64 " is not the place of a DIE",
			       dw->file[0].path,
			       off & DW_OFF_ALT	    ? "alternate .debug_info+"
			       : off & DW_OFF_TYPES ? ".debug_types+"
						    : ".debug_info+",
			       at);
	return dw_die_parse(u, u->sec->p + at, ret, err);
}

int dw_die_near(const struct dw_unit *u, dw_off off, struct dw_die *ret, struct cairn_err *err)
{
	uint64_t at = dw_off_in_section(off);
	if ((at | u->tag) != off || at < (uint64_t)(u->dies - u->sec->p) || at >= (uint64_t)(u->end - u->sec->p))
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

/* As dw_spec_next(), with the usual case of two small numbers in front. */
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
 * The value of an attribute in the first run. Returns 1; 0 when it is not there; -EAGAIN when it is to be read by its pair, which
 * tells as well what is wrong with it.
 */
static inline int near_value(const struct dw_die *die, uint16_t at, struct dw_value *ret)
{
	const struct dw_unit *u = die->unit;
	const struct dw_abbrev *a = die->abbrev;
	const struct dw_near *n = a->nears, *end = n + a->n_near;
	while (n < end && n->at != at)
		n++;
	if (n == end)
		return a->near_is_all ? 0 : -EAGAIN;
	/* The whole run has to be there. */
	if (!n->form || a->first.fixed > u->end - die->attrs)
		return -EAGAIN;
	const uint8_t *p = die->attrs + n->off;
	struct dw_value v = {.cls = DW_CLASS_UDATA, .form = n->form};
	switch (n->form) {
	case DW_FORM_data1:
		v.u = *p;
		break;
	case DW_FORM_data2:
		v.u = dw_load_u16(p);
		break;
	case DW_FORM_data4:
		v.u = dw_load_u32(p);
		break;
	case DW_FORM_data8:
		v.u = dw_load_u64(p);
		break;
	case DW_FORM_flag_present:
		v.cls = DW_CLASS_FLAG;
		v.u = 1;
		break;
	case DW_FORM_addr:
		v.cls = DW_CLASS_ADDRESS;
		v.addr.v = dw_load_u64(p);
		break;
	case DW_FORM_sec_offset:
		v.cls = DW_CLASS_SECOFF;
		v.u = dw_load_u32(p);
		break;
	case DW_FORM_strp:
		v.cls = DW_CLASS_STRING;
		v.str = dw_section_str(u->file, DW_SEC_STR, dw_load_u32(p), NULL);
		if (!v.str)
			return -EAGAIN;
		break;
	case DW_FORM_ref4:
		v.cls = DW_CLASS_REF;
		v.ref = (u->off + dw_load_u32(p)) | u->tag;
		if (u->sec->p + u->off + dw_load_u32(p) < u->dies || u->sec->p + u->off + dw_load_u32(p) >= u->end)
			return -EAGAIN;
		break;
	}
	*ret = v;
	return 1;
}

/* Behind a value at @p of the forms that most values have; NULL for another, or when it is not all there. */
static inline const uint8_t *behind_usual(const struct dw_unit *u, const uint8_t *p, uint16_t form)
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
	default:
		return NULL;
	}
	return n <= (size_t)(u->end - p) ? p + n : NULL;
}

int dw_attr(const struct dw_die *die, uint16_t at, struct dw_value *ret, struct cairn_err *err)
{
	const uint8_t *specs = die->abbrev->specs, *p = die->attrs;
	struct dw_spec spec;
	if (!(die->abbrev->has & dw_attr_bit(at)))
		return 0;
	int near = die->abbrev->n_near ? near_value(die, at, ret) : -EAGAIN;
	if (near >= 0)
		return near;
	while (next_spec(&specs, &spec)) {
		if (spec.at == at) {
			struct cursor c = dw_unit_cursor(die->unit, p, err);
			return dw_form_read(die->unit, &c, &spec, ret);
		}
		const uint8_t *behind = behind_usual(die->unit, p, spec.form);
		if (!behind) {
			struct cursor c = dw_unit_cursor(die->unit, p, err);
			dw_form_skip(die->unit, &c, spec.form);
			if (c.failed)
				return dw_failure(&c);
			behind = c.pos;
		}
		p = behind;
	}
	return 0;
}

static bool has_attr(const struct dw_die *die, uint16_t at)
{
	const uint8_t *specs = die->abbrev->specs;
	struct dw_spec spec;
	if (!(die->abbrev->has & dw_attr_bit(at)))
		return false;
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
	if (dw_attr(die, at, &v, NULL) <= 0)
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
	return dw_attr(die, at, &v, NULL) > 0 ? ref_of(die, &v) : 0;
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
	struct dw_die type;
	for (int i = 0; i < CHAIN_MAX && off && dw_die_at(die->unit->dw, off, &type, NULL) == 1; i++) {
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

/* behind() and behind_children() failed. */
static int lost(const struct cairn_err *err)
{
	return err && err->code == -EOPNOTSUPP ? -EOPNOTSUPP : -EBADMSG;
}

/* The byte behind the attributes, where the first child or the next sibling is. */
static inline const uint8_t *behind(const struct dw_die *die, struct cairn_err *err)
{
	struct dw_step first = die->abbrev->first;
	if (first.then == DW_THEN_END && first.fixed <= die->unit->end - die->attrs)
		return die->attrs + first.fixed;
	struct cursor c = dw_unit_cursor(die->unit, die->attrs, err);
	dw_abbrev_skip(die->unit, die->abbrev, &c);
	return c.failed ? NULL : c.pos;
}

static int die_or_end(const struct dw_unit *u, const uint8_t *p, struct dw_die *ret,
		      struct cairn_err *err)
{
	/* Some old compilers leave out the nulls at the end of a unit. */
	return p == u->end ? 0 : dw_die_parse(u, p, ret, err);
}

int dw_die_child(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err)
{
	if (!die->has_children)
		return 0;
	const uint8_t *p = behind(die, err);
	return p ? die_or_end(die->unit, p, ret, err) : lost(err);
}

bool dw_die_jump(const struct dw_die *die, const uint8_t *behind_attrs, const uint8_t **ret)
{
	const struct dw_unit *u = die->unit;
	uint64_t off;
	if (die->abbrev->sibling != DW_NO_FAST) {
		/* In the first run, which behind() has stepped over. */
		off = u->off + dw_load_u32(die->attrs + die->abbrev->sibling);
	} else {
		struct dw_value v;
		if (dw_attr(die, DW_AT_sibling, &v, NULL) <= 0 || v.cls != DW_CLASS_REF)
			return false;
		off = dw_off_in_section(v.ref);
	}
	/* Only forward, or a walk along siblings might never end. */
	if (off <= (uint64_t)(behind_attrs - u->sec->p) || off > (uint64_t)(u->end - u->sec->p))
		return false;
	*ret = u->sec->p + off;
	return true;
}

/* Steps over the children that start at @p; the byte behind their null, or NULL. */
static const uint8_t *behind_children(const struct dw_unit *u, const uint8_t *p,
				      struct cairn_err *err)
{
	for (uint64_t depth = 1; depth && p < u->end;) {
		struct dw_die die;
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
		p = behind(&die, err);
		if (!p)
			return NULL;
		if (die.has_children && !dw_die_jump(&die, p, &p))
			depth++;
	}
	return p;
}

int dw_die_sibling(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err)
{
	const struct dw_unit *u = die->unit;
	const uint8_t *p = behind(die, err);
	if (p && die->has_children && !dw_die_jump(die, p, &p))
		p = behind_children(u, p, err);
	return p ? die_or_end(u, p, ret, err) : lost(err);
}
