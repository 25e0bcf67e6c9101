/* SPDX-License-Identifier: BSD-2-Clause */
/* Making the words of a LOC_PARAM; cairn_btf_loc_param() is the other direction. */
#ifndef BTF_LOCATION_H
#define BTF_LOCATION_H

#include <errno.h>

#include <cairn/btf.h>

/* v1's flags, in the upper half of the first word; its register number for the frame base. */
enum { BTF_V1_DEREF = 1, BTF_V1_CONTINUE = 2, BTF_V1_FRAME_BASE = 33 };

/* The dialect has no words for this location. */
#define BTF_LOC_INEXPRESSIBLE (-EOPNOTSUPP)

struct btf_loc_words {
	bool kflag;
	uint32_t vlen, size; /* info's vlen and the third word */
	uint32_t words[4], n_words;
};

/* 0, or BTF_LOC_INEXPRESSIBLE. */
int btf_loc_encode(enum cairn_btf_dialect dialect, const struct cairn_btf_loc_param *p,
		   struct btf_loc_words *ret);

#endif
