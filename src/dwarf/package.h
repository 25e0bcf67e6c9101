/* SPDX-License-Identifier: BSD-2-Clause */
/* The index of a package of .dwo files: which part of each section belongs to which unit. */
#ifndef DWARF_PACKAGE_H
#define DWARF_PACKAGE_H

#include "dwarf/impl.h"

enum dw_part { DW_PART_ABBREV, DW_PART_LINE, DW_PART_LOC, DW_PART_STR_OFFSETS, DW_PART_RNGLISTS, DW_N_PARTS };

/* One unit: where it is, and where what it refers to starts in each section. */
struct dw_package_unit {
	uint64_t signature; /* dwo_id, or that of a type */
	bool types;         /* in .debug_types.dwo, else in .debug_info.dwo */
	uint32_t off, size;
	uint32_t part[DW_N_PARTS];
};

struct dw_package {
	VEC(struct dw_package_unit) units; /* by types, off */
};

/*
 * dw_package_read - read .debug_cu_index and .debug_tu_index of a package
 *
 * Returns 0; also when it has none, which a .dwo file that was renamed does not. -EBADMSG, -EOPNOTSUPP (a
 * version that is neither GNU's 2 nor 5), -ENOMEM.
 */
int dw_package_read(const struct dw_file *file, struct dw_package *ret, struct cairn_err *err);
void dw_package_fini(struct dw_package *p);

/* The unit whose header is at @off; NULL when the index has none there. */
const struct dw_package_unit *dw_package_at(const struct dw_package *p, bool types, uint64_t off);

#endif
