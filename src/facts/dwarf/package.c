/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packages (.dwp): the .dwo files of a program, with their sections joined one after the other
 *
 * A .dwo file counts from the start of its own sections, so an index gives the offset of its part
 * of each:
 *
 *	OFFSET  SIZE     .debug_cu_index, .debug_tu_index
 *	0       4 / 2    version: 2 (GNU) as u32, 5 as u16 and two bytes of padding
 *	4       4        L, columns: sections
 *	8       4        U, units
 *	12      4        M, slots of a hash table
 *	16      8 * M    signatures: dwo_id or that of the type; 0 in an empty slot
 *	        4 * M    row of each, counted from 1; 0 in an empty slot
 *	        4 * L    which section each column is for
 *	        4 * U*L  offsets, a row for each unit
 *	        4 * U*L  sizes
 *
 *	columns    1 info, 2 types (2), 3 abbrev, 4 line, 5 loc (2) or loclists (5), 6 str_offsets,
 *	           7 macinfo (2) or macro (5), 8 macro (2) or rnglists (5)
 *
 * The hash table is for a lookup of one signature. Here all units are read, and each is found again
 * by the offset of its header.
 */
#include "dwarf/package.h"

#include <errno.h>
#include <inttypes.h>

#include <cairn/text.h>

#include "base/cursor.h"
#include "base/err.h"
#include "base/search.h"

enum { COLUMNS_MAX = 16, COLUMN_INFO = 1, COLUMN_TYPES = 2 };

struct index {
	uint16_t version;
	uint32_t n_columns, n_units, n_slots;
	uint32_t columns[COLUMNS_MAX];
};

static int read_header(struct cursor *c, struct index *ret)
{
	uint64_t at = cur_off(c);
	uint32_t version = cur_u32(c);
	ret->n_columns = cur_u32(c);
	ret->n_units = cur_u32(c);
	ret->n_slots = cur_u32(c);
	ret->version = (uint16_t)version; /* in version 5 the rest is padding */
	if (c->failed)
		return -EBADMSG;
	if (version != 2 && ret->version != 5)
		return err_set(c->err, -EOPNOTSUPP,
			       "%s: %s+0x%" PRIx64 ": version %u, expected 2 or 5", c->src->file,
			       c->src->section, at, version);
	uint64_t cells = 2ull * ret->n_units * ret->n_columns;
	/* A unit has cells, so that the bytes that are there bound their number. */
	if (ret->n_columns > COLUMNS_MAX || (ret->n_units && !ret->n_columns) ||
	    12ull * ret->n_slots + 4ull * ret->n_columns + 4 * cells > cur_left(c))
		return err_set(
			c->err, -EBADMSG, "%s: %s: %s, %s, %s: more than there is in 0x%zx bytes",
			c->src->file, c->src->section, cairn_counted(ret->n_columns, "column").text,
			cairn_counted(ret->n_units, "unit").text,
			cairn_counted(ret->n_slots, "slot").text, cur_left(c));
	return 0;
}

static void read_signatures(struct cursor *c, const struct index *x, struct dw_package_unit *units)
{
	struct cursor rows = *c;
	cur_skip(&rows, 8ull * x->n_slots);
	for (uint32_t i = 0; i < x->n_slots && !rows.failed; i++) {
		uint64_t signature = cur_u64(c);
		uint32_t row = cur_u32(&rows);
		if (row && row <= x->n_units)
			units[row - 1].signature = signature;
	}
	*c = rows;
}

static enum dw_part part_of(const struct index *x, uint32_t column)
{
	switch (x->columns[column]) {
	case 3:
		return DW_PART_ABBREV;
	case 4:
		return DW_PART_LINE;
	case 5:
		return DW_PART_LOC;
	case 6:
		return DW_PART_STR_OFFSETS;
	case 8:
		return x->version == 5 ? DW_PART_RNGLISTS : DW_N_PARTS;
	}
	return DW_N_PARTS;
}

static void read_row(struct cursor *offsets, struct cursor *sizes, const struct index *x,
		     struct dw_package_unit *ret)
{
	for (uint32_t i = 0; i < x->n_columns; i++) {
		uint32_t off = cur_u32(offsets), size = cur_u32(sizes);
		enum dw_part part = part_of(x, i);
		bool types = x->version == 2 && x->columns[i] == COLUMN_TYPES;
		if (part < DW_N_PARTS)
			ret->part[part] = off;
		if (part == DW_PART_RNGLISTS)
			ret->has_ranges = size;
		if ((x->columns[i] == COLUMN_INFO || types) && size) {
			ret->types = types;
			ret->off = off;
			ret->size = size;
		}
	}
}

static int by_place(const void *a, const void *b)
{
	const struct dw_package_unit *x = a, *y = b;
	if (x->types != y->types)
		return x->types ? 1 : -1;
	return x->off < y->off ? -1 : x->off > y->off;
}

int dw_package_add(struct dw_package *p, struct cursor c)
{
	struct index x;
	int rc = read_header(&c, &x);
	if (rc < 0)
		return rc;
	size_t from = p->units.n;
	for (uint32_t i = 0; i < x.n_units; i++)
		if (!VEC_PUSH(&p->units))
			return err_nomem(c.err, "the index of a package");
	struct dw_package_unit *units = p->units.p + from;
	read_signatures(&c, &x, units);
	for (uint32_t i = 0; i < x.n_columns; i++)
		x.columns[i] = cur_u32(&c);
	struct cursor sizes = c;
	cur_skip(&sizes, 4ull * x.n_units * x.n_columns);
	for (uint32_t i = 0; i < x.n_units; i++)
		read_row(&c, &sizes, &x, &units[i]);
	if (c.failed || sizes.failed)
		return -EBADMSG;
	if (p->units.n)
		qsort(p->units.p, p->units.n, sizeof(*p->units.p), by_place);
	return 0;
}

static int add_section(struct dw_package *p, struct elf *elf, const char *name,
		       struct cairn_err *err)
{
	const struct elf_section *s;
	int rc = elf_section(elf, name, &s, err);
	if (rc < 0 || !s || !s->data)
		return rc;
	return dw_package_add(p, cursor_of(&s->src, s->data, s->size, false, err));
}

int dw_package_read(struct elf *elf, struct dw_package *ret, struct cairn_err *err)
{
	const struct elf_section *info;
	int rc = elf_section(elf, ".debug_info.dwo", &info, err);
	*ret = (struct dw_package){0};
	/* The index has 32 bits for an offset. Some linkers let them wrap around. */
	if (rc >= 0 && info && info->size > UINT32_MAX)
		return err_set(
			err, -EOPNOTSUPP,
			"%s: .debug_info.dwo of more than 4 GiB, which its index cannot address",
			elf_path(elf));
	if (rc >= 0)
		rc = add_section(ret, elf, ".debug_cu_index", err);
	if (rc >= 0)
		rc = add_section(ret, elf, ".debug_tu_index", err);
	if (rc < 0)
		dw_package_fini(ret);
	return rc;
}

void dw_package_fini(struct dw_package *p)
{
	VEC_FREE(&p->units);
}

static bool is_before(const struct dw_package_unit *u, bool types, uint64_t off)
{
	return u->types < types || (u->types == types && u->off <= off);
}

const struct dw_package_unit *dw_package_at(const struct dw_package *p, bool types, uint64_t off)
{
	size_t lo = SEARCH(0, p->units.n, i, is_before(&p->units.p[i], types, off));
	const struct dw_package_unit *u = lo ? &p->units.p[lo - 1] : NULL;
	/* A package may keep type units next to their compile unit, under one row. */
	return u && u->types == types && off - u->off < u->size ? u : NULL;
}
