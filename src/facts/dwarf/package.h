/* SPDX-License-Identifier: BSD-2-Clause */
/* The index of a package of .dwo files: which part of each section belongs to which unit. */
#ifndef DWARF_PACKAGE_H
#define DWARF_PACKAGE_H

#include "base/cursor.h"
#include "base/vec.h"
#include "elf/elf.h"

enum dw_part {
	DW_PART_ABBREV,
	DW_PART_LINE,
	DW_PART_LOC,
	DW_PART_STR_OFFSETS,
	DW_PART_RNGLISTS,
	DW_N_PARTS
};

/* One unit: its position, and the start, in each section, of the parts that it refers to. */
struct dw_package_unit {
	uint64_t signature; /* dwo_id, or that of a type */
	bool types;         /* in .debug_types.dwo, else in .debug_info.dwo */
	uint32_t off, size;
	uint32_t part[DW_N_PARTS];
	bool has_ranges; /* something of .debug_rnglists.dwo is its own */
};

struct dw_package {
	VEC(struct dw_package_unit) units; /* by types, off */
};

/*
 * dw_package_add - add the units of one index, .debug_cu_index or .debug_tu_index
 *
 * Returns 0; -EBADMSG, -EOPNOTSUPP (a version that is neither GNU's 2 nor 5), -ENOMEM: then free
 * @p.
 */
int dw_package_add(struct dw_package *p, struct cursor index);

/*
 * dw_package_read - both indices of a package
 *
 * @ret  to be freed; without units when @elf has no index, which a .dwo file that was renamed does
 *       not
 * Returns 0, or as dw_package_add().
 */
int dw_package_read(struct elf *elf, struct dw_package *ret, struct cairn_err *err);
void dw_package_fini(struct dw_package *p);

/* The unit whose header is at @off; NULL when the index has none there. */
const struct dw_package_unit *dw_package_at(const struct dw_package *p, bool types, uint64_t off);

#endif
