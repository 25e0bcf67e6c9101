/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The root DIE of a unit: the facts that everything below it depends on
 *
 * It is read twice, because its strings and addresses may be indices into tables whose offsets are
 * in a later attribute of the same DIE.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/forms.h"
#include "dwarf/impl.h"

int dw_die_parse(const struct dw_unit *u, const uint8_t *p, struct dw_die *ret,
		 struct cairn_err *err)
{
	const struct dw_abbrev *usual = dw_usual_abbrev(u, p);
	if (usual) {
		dw_die_init(ret, u, usual, p, p + 1);
		return 1;
	}
	struct cursor c = dw_unit_cursor(u, p, err);
	uint64_t off = cur_off(&c), code = cur_uleb(&c);
	if (c.failed)
		return -EBADMSG;
	if (!code)
		return 0;
	const struct dw_abbrev *a = dw_abbrev_find(u->abbrevs, code);
	if (!a)
		return err_set(err, -EBADMSG,
			       "%s: %s+0x%" PRIx64 ": DIE with abbreviation %" PRIu64
			       ", which the table at .debug_abbrev+0x%" PRIx64 " does not have",
			       u->file->path, u->sec->src.section, off, code, u->abbrev_off);
	dw_die_init(ret, u, a, p, c.pos);
	return 1;
}

int dw_unit_root(const struct dw_unit *u, struct dw_die *ret, struct cairn_err *err)
{
	return u->dies == u->end ? 0 : dw_die_parse(u, u->dies, ret, err);
}

/* Calls @fact for each attribute of the root that is @wanted. */
static int each_attr(struct dw_unit *u, bool (*wanted)(uint16_t at),
		     int (*fact)(struct dw_unit *u, uint16_t at, const struct dw_value *v,
				 struct cairn_err *err),
		     struct cairn_err *err)
{
	struct dw_die root;
	int rc = dw_unit_root(u, &root, err);
	const uint8_t *specs = rc > 0 ? root.abbrev->specs : NULL;
	struct cursor c = dw_unit_cursor(u, rc > 0 ? root.attrs : u->dies, err);
	struct dw_spec spec;
	while (rc > 0 && dw_spec_next(&specs, &spec)) {
		if (!wanted(spec.at)) {
			dw_form_skip(u, &c, spec.form);
			if (c.failed)
				rc = dw_failure(&c);
			continue;
		}
		struct dw_value v;
		rc = dw_form_read(u, &c, &spec, &v);
		if (rc > 0 && fact(u, spec.at, &v, err) < 0)
			rc = -EBADMSG;
	}
	return rc < 0 ? err_while(err, rc, "reading the unit at %s+0x%" PRIx64, u->sec->src.section,
				  u->off)
		      : 0;
}

static bool is_base(uint16_t at)
{
	switch (at) {
	case DW_AT_str_offsets_base:
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
	case DW_AT_rnglists_base:
	case DW_AT_GNU_ranges_base:
	case DW_AT_loclists_base:
	case DW_AT_stmt_list:
	case DW_AT_GNU_dwo_id:
		return true;
	}
	return false;
}

static int base_fact(struct dw_unit *u, uint16_t at, const struct dw_value *v,
		     struct cairn_err *err)
{
	if (v->cls != DW_CLASS_SECOFF && v->cls != DW_CLASS_UDATA)
		return err_set(err, -EBADMSG,
			       "%s: %s+0x%" PRIx64
			       ": attribute 0x%x of the unit is no offset (form 0x%x)",
			       u->file->path, u->sec->src.section, u->off, at, v->form);
	switch (at) {
	case DW_AT_str_offsets_base:
		u->has_str_offsets_base = true;
		u->str_offsets_base = v->u;
		break;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		u->has_addr_base = true;
		u->addr_base = v->u;
		break;
	case DW_AT_rnglists_base:
		u->has_rnglists_base = true;
		u->rnglists_base = v->u;
		break;
	case DW_AT_loclists_base:
		u->has_loclists_base = true;
		u->loclists_base = v->u;
		break;
	case DW_AT_stmt_list:
		u->has_stmt_list = true;
		u->stmt_list = v->u;
		break;
	case DW_AT_GNU_ranges_base:
		u->gnu_ranges_base = v->u;
		break;
	case DW_AT_GNU_dwo_id:
		u->has_dwo_id = true;
		u->dwo_id = v->u;
		break;
	}
	return 0;
}

static bool is_plain(uint16_t at)
{
	return at == DW_AT_name || at == DW_AT_comp_dir || at == DW_AT_producer ||
	       at == DW_AT_language || at == DW_AT_low_pc || at == DW_AT_dwo_name ||
	       at == DW_AT_GNU_dwo_name;
}

static int plain_fact(struct dw_unit *u, uint16_t at, const struct dw_value *v,
		      struct cairn_err *err)
{
	const char *str = v->cls == DW_CLASS_STRING ? v->str : "";
	switch (at) {
	case DW_AT_name:
		u->name = str;
		break;
	case DW_AT_comp_dir:
		u->comp_dir = str;
		break;
	case DW_AT_producer:
		dw_producer_read(u, str);
		break;
	case DW_AT_language:
		u->language =
			v->cls == DW_CLASS_UDATA || v->cls == DW_CLASS_SDATA ? (uint16_t)v->u : 0;
		break;
	case DW_AT_low_pc:
		u->low_pc = v->cls == DW_CLASS_ADDRESS ? v->addr.v : 0;
		break;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		/* A unit in a .dwo file may have its own name in the attribute. */
		u->dwo_name = u->file->is_split ? NULL : str;
		break;
	}
	return 0;
}

int dw_root_read_bases(struct dw_unit *u, struct cairn_err *err)
{
	return each_attr(u, is_base, base_fact, err);
}

int dw_root_read_facts(struct dw_unit *u, struct cairn_err *err)
{
	return each_attr(u, is_plain, plain_fact, err);
}
