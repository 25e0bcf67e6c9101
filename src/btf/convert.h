/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the conversion: convert.c copies records, convert_loc.c says LOC records in the other dialect. */
#ifndef BTF_CONVERT_H
#define BTF_CONVERT_H

#include "btf/btf.h"
#include "btf/build.h"

struct btf_convert {
	const struct cairn_btf *btf;
	const struct cairn_btf *base; /* of the result; or NULL */
	enum cairn_btf_dialect dialect;
	bool layout, downgrade;
	bool big_endian;
	struct cairn_btf_builder *b;
	uint32_t *map; /* new id of each id of the chain; 0: it is gone */
	struct cairn_btf_losses losses;
};

/* Where a string of the input is in the result. */
uint32_t btf_convert_name(const struct btf_convert *c, uint32_t off);

/*
 * Add the LOC records of the input in the dialect of the result, behind all others.
 * Returns 0, -ENOMEM, -ERANGE.
 */
int btf_convert_loc(struct btf_convert *c);

#endif
