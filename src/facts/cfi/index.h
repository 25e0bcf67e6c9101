/* SPDX-License-Identifier: BSD-2-Clause */
/* The index of FDEs as its own module sees it; the essay is in cfi.c. Within this module only. */
#ifndef CFI_INDEX_H
#define CFI_INDEX_H

#include "base/large_vec.h"
#include "cfi/cfi.h"
#include "cfi/frame_entry.h"

/* .eh_frame and .debug_frame of the binary, .debug_frame of its debug file */
enum { MAX_SECTIONS = 3 };

struct fde_item {
	uint64_t lo, hi;
	uint64_t reach; /* largest hi of this and all items before */
	uint64_t off : 62;
	uint64_t section : 2;
};

struct cfi {
	const struct cairn_binary *bin;
	struct frame_section sections[MAX_SECTIONS];
	size_t n_sections;
	uint16_t machine;
	VEC(struct fde_item) items; /* large; by lo, then section, then off */
	uint64_t damaged;
};

/* Neighbouring FDEs share a CIE: it is read when it changes. {0} to begin with. */
struct cie_cache {
	const struct frame_section *sec;
	uint64_t off;
	int rc;
	struct frame_cie cie;
};

/* The FDE of an item. Returns 0 or as cfi_row_at(), without a story. */
int index_fde(const struct cfi *cfi, const struct fde_item *item, struct cie_cache *cache,
	      const struct frame_section **ret_sec, struct frame_fde *ret);

#endif
