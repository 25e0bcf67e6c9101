/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of src/facts/dwarf: DWARF from a builder, opened. */
#ifndef UNIT_DWARF_OPEN_H
#define UNIT_DWARF_OPEN_H

#include "dwarf/index.h"
#include "dwarf_builder.h"

/* What a test opened; closed by shut(). */
struct opened {
	struct db *db;
	struct cairn_binary *bin;
	struct dwarf *dw;
	struct cairn_err err;
	int rc;
};

static inline struct opened open_db(struct db *db)
{
	struct opened o = {.db = db};
	size_t size;
	uint8_t *bytes = db_finish(db, &size);
	assert_int_equal(binary_open_mem(bytes, size, "input", &o.bin, &o.err), 0);
	o.rc = dwarf_open(o.bin, 1, &o.dw, &o.err);
	return o;
}

static inline void shut(struct opened *o)
{
	if (o->rc == 0)
		dwarf_close(o->dw);
	cairn_binary_close(o->bin);
	db_free(o->db);
}

static inline struct dw_die root_of(const struct opened *o, size_t unit)
{
	struct dw_die die;
	assert_int_equal(o->rc, 0);
	assert_int_equal(dw_unit_root(dwarf_unit(o->dw, unit), &die, NULL), 1);
	return die;
}

static inline struct dw_die die_at(const struct opened *o, dw_off off)
{
	struct dw_die die;
	assert_int_equal(dw_die_at(o->dw, off, &die, NULL), 1);
	return die;
}

#endif
