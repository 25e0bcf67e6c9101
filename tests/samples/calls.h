/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where functions of a compiled sample are, and where their calls return to; a claim fails where
 * they are not.
 */
#ifndef SAMPLES_CALLS_H
#define SAMPLES_CALLS_H

#include <cairn/binary.h>

/* The address of the symbol @name. */
struct cairn_vaddr address_of(const struct cairn_binary *bin, const char *name);

/* Where the first direct call of @callee in the function at @caller returns to. */
struct cairn_vaddr return_address_of(const struct cairn_binary *bin, struct cairn_vaddr caller,
				     struct cairn_vaddr callee);

#endif
