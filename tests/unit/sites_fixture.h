/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of src/facts/loc over DWARF from a builder: the sites of the function "callee". */
#ifndef UNIT_SITES_FIXTURE_H
#define UNIT_SITES_FIXTURE_H

#include <cairn/sites.h>

#include "dwarf_builder.h"
#include "elf/elf.h"

struct result {
	struct cairn_binary *bin;
	struct cairn_sites *sites;
	struct cairn_function_list found;
};

static inline struct result find_callee(struct db *db)
{
	struct result r = {0};
	struct cairn_err err = {0};
	size_t size;
	uint8_t *bytes = db_finish(db, &size);
	assert_int_equal(binary_open_mem(bytes, size, "input", &r.bin, &err), 0);
	assert_int_equal(cairn_sites_open(r.bin, NULL, &r.sites, &err), 0);
	assert_int_equal(cairn_sites_find(r.sites, "callee", &r.found, &err), 1);
	return r;
}

static inline void close_result(struct db *db, struct result *r)
{
	cairn_sites_close(r->sites);
	cairn_binary_close(r->bin);
	db_free(db);
}

static inline const struct cairn_site *site(const struct result *r, uint32_t i)
{
	assert_true(i < r->found.p[0]->n_sites);
	return &r->found.p[0]->sites[i];
}

#endif
