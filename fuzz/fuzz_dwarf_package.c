/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of a package of .dwo files: every unit in it is found again, and nothing outside of
 * one.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "dwarf/package.h"
#include "package_index.h"

static void find_all(const struct dw_package *p)
{
	for (size_t i = 0; i < p->units.n; i++) {
		const struct dw_package_unit *u = &p->units.p[i];
		const struct dw_package_unit *found = dw_package_at(p, u->types, u->off);
		bool later = i + 1 < p->units.n && u[1].types == u->types && u[1].off == u->off;
		if (u->size && !found && !later)
			abort();
		if (found && (found->types != u->types || found->off != u->off))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cursor_src src = {.file = "input", .section = ".debug_cu_index", .base = bytes};
	struct cairn_err err = {0};
	struct dw_package p = {0};
	int rc = dw_package_add(&p, cursor_of(&src, bytes, size, false, &err));
	if (rc < 0 && (!err.msg[0] || err.code != rc))
		abort();
	if (rc == 0)
		find_all(&p);
	dw_package_fini(&p);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const struct package_index *const seeds[] = {&package_v2, &package_v5,
							    &package_types};
	uint8_t bytes[PACKAGE_INDEX_BYTES];
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		put(bytes, package_index_write(seeds[i], bytes));
}
