/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Units: reading all of them, in this order
 *
 *	headers of all sections          unit_header.c     one after the other
 *	abbreviation tables              abbrev_tables.c   in parallel by table
 *	root DIEs                        unit_root.c       in parallel by unit
 *	the same for .dwo files          split.c
 *
 * and the queries about them.
 */
#include <errno.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/search.h"
#include "dwarf/constants.h"
#include "dwarf/impl.h"

static int index_signatures(struct dwarf *dw, struct cairn_err *err)
{
	for (size_t i = 0; i < dw->n_units; i++) {
		const struct dw_unit *u = &dw->units[i];
		uint64_t known;
		if (!u->is_type_unit || map_get(&dw->signatures, u->signature, &known))
			continue;
		if (map_put(&dw->signatures, u->signature, i) < 0)
			return err_nomem(err, "type units");
	}
	return 0;
}

static int read_root(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct dw_unit *u = &((struct dwarf *)ctx)->units[item];
	int rc = dw_root_read_bases(u, err);
	return rc < 0 ? rc : dw_root_read_facts(u, err);
}

int dw_units_read(struct dwarf *dw, unsigned int threads, struct cairn_err *err)
{
	struct dw_unit_list units = {0};
	int rc = dw_headers_read(dw, &dw->file[0], DW_SEC_INFO, &units, err);
	if (rc >= 0)
		rc = dw_headers_read(dw, &dw->file[0], DW_SEC_TYPES, &units, err);
	if (rc >= 0)
		rc = dw_headers_read(dw, &dw->file[1], DW_SEC_INFO, &units, err);
	dw->units = units.p;
	dw->n_units = units.n;
	if (rc >= 0)
		rc = dw_tables_compile(&dw->tables, dw->units, dw->n_units, threads, err);
	if (rc >= 0)
		rc = pool_run(dw->n_units, threads, read_root, dw, err);
	if (rc >= 0)
		rc = dw_split_read(dw, threads, err);
	return rc < 0 ? rc : index_signatures(dw, err);
}

/* ---- questions ---- */

size_t dwarf_n_units(const struct dwarf *dw)
{
	return dw->n_units;
}

const struct dw_unit *dwarf_unit(const struct dwarf *dw, size_t i)
{
	return &dw->units[i];
}

const struct dw_unit *dwarf_unit_of(const struct dwarf *dw, dw_off off)
{
	size_t lo = SEARCH(0, dw->n_units, i, (dw->units[i].off | dw->units[i].tag) <= off);
	if (!lo)
		return NULL;
	const struct dw_unit *u = &dw->units[lo - 1];
	uint64_t end = (uint64_t)(u->end - u->sec->p) | u->tag;
	return off < end ? u : NULL;
}

dw_off dwarf_type_of_signature(const struct dwarf *dw, uint64_t signature)
{
	uint64_t i;
	if (!map_get(&dw->signatures, signature, &i))
		return 0;
	const struct dw_unit *u = &dw->units[i];
	uint64_t header = (uint64_t)(u->dies - u->sec->p) - u->off;
	uint64_t length = (uint64_t)(u->end - u->sec->p) - u->off;
	if (u->type_off < header || u->type_off >= length)
		return 0;
	return (u->off + u->type_off) | u->tag;
}

dw_off dw_unit_off(const struct dw_unit *u)
{
	return u->off | u->tag;
}

uint16_t dw_unit_version(const struct dw_unit *u)
{
	return u->version;
}

uint8_t dw_unit_addr_size(const struct dw_unit *u)
{
	return u->addr_size;
}

uint8_t dw_unit_offset_size(const struct dw_unit *u)
{
	return u->offset_size;
}

bool dw_unit_is_type_unit(const struct dw_unit *u)
{
	return u->is_type_unit;
}

const char *dw_unit_name(const struct dw_unit *u)
{
	return u->name;
}

const char *dw_unit_comp_dir(const struct dw_unit *u)
{
	return u->comp_dir;
}

uint16_t dw_unit_language(const struct dw_unit *u)
{
	return u->language;
}

bool dw_unit_is_c(const struct dw_unit *u)
{
	switch (u->language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C17:
	case DW_LANG_C23:
		return true;
	}
	return false;
}

bool dw_unit_is_cxx(const struct dw_unit *u)
{
	switch (u->language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_C_plus_plus_17:
	case DW_LANG_C_plus_plus_20:
	case DW_LANG_C_plus_plus_23:
		return true;
	}
	return false;
}

bool dw_unit_is_gcc(const struct dw_unit *u)
{
	return u->gcc;
}

bool dw_unit_is_lto(const struct dw_unit *u)
{
	return u->lto;
}

bool dw_unit_is_optimised(const struct dw_unit *u)
{
	return u->optimised;
}

bool dw_unit_follows_assignments(const struct dw_unit *u)
{
	return u->follows_assignments;
}

bool dw_unit_renames_webs(const struct dw_unit *u)
{
	return u->renames_webs;
}

bool dw_unit_may_throw_anywhere(const struct dw_unit *u)
{
	return u->may_throw_anywhere ||
	       (u->gcc && !u->lto && !dw_unit_is_c(u) && !dw_unit_is_cxx(u));
}

bool dw_unit_is_clang(const struct dw_unit *u)
{
	return u->clang;
}

bool dw_unit_lists_special_members(const struct dw_unit *u)
{
	return u->lists_special_members;
}

enum dw_go dw_unit_go(const struct dw_unit *u)
{
	static const char go[] = "Go cmd/compile ";
	if (u->language != DW_LANG_Go || strncmp(u->producer, go, strlen(go)) != 0)
		return DW_GO_NOT;
	return strstr(u->producer, "regabi") ? DW_GO_REGISTERS : DW_GO_STACK;
}

static bool describes_parameters(const struct dw_unit *u)
{
	for (size_t i = 0; i < u->abbrevs->n; i++)
		if (u->abbrevs->p[i]->tag == DW_TAG_formal_parameter)
			return true;
	return false;
}

/*
 * If there are several of the options -g, -g1, -g2, -ggdb3 and so on, the last one counts;
 * -gdwarf-5 is none of them. Rust's producer has no options.
 */
bool dw_unit_is_terse(const struct dw_unit *u)
{
	bool terse = false;
	if (u->language == DW_LANG_Rust)
		return !describes_parameters(u);
	for (const char *p = u->gcc ? u->producer : ""; (p = strstr(p, " -g")); p++) {
		const char *level = p + strlen(" -g");
		level += strncmp(level, "gdb", strlen("gdb")) ? 0 : strlen("gdb");
		size_t n = strcspn(level, " ");
		if (!n || (n == 1 && *level >= '0' && *level <= '3'))
			terse = n && *level == '1';
	}
	return terse;
}
