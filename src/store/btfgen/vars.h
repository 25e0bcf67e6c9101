/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables with an address: VAR, and DATASEC for each section that has some. */
#ifndef BTFGEN_VARS_H
#define BTFGEN_VARS_H

#include "btfgen/emit.h"

/* Which of the variables. */
enum vars_which {
	VARS_PERCPU, /* those of a kernel's per-processor section */
	VARS_OTHERS,
	VARS_EVERY,
};

/*
 * vars_emit - their records, sections in the order of addresses
 *
 * @b    main's builder, or one of a blob that is split from it
 * @ret_n  number of VARs
 * Two names of one address, or variables that overlap, are damage to a loader: the first stays, the
 * others are counted in @losses.
 * Returns 0, -ERANGE, -ENOMEM.
 */
int vars_emit(const struct cairn_binary *bin, const struct emit *e, enum vars_which which,
	      struct cairn_btf_builder *b, uint64_t *losses, uint32_t *ret_n,
	      struct cairn_err *err);

#endif
