/* SPDX-License-Identifier: BSD-2-Clause */
/* BTF as a type graph. */
#ifndef BTF_TYPES_H
#define BTF_TYPES_H

#include <cairn/btf.h>
#include <cairn/types.h>

/*
 * btf_types - all types of @btf and its bases; ids of the graph are those of the blob
 *
 * @btf           outlives the result, which borrows its strings
 * @pointer_size  bytes; BTF does not say it
 * Returns 0 with *@ret owned by the caller, types_free(); -ENOMEM. Damaged references are harmless: void.
 * Cost: O(records). Threads: any.
 */
int btf_types(const struct cairn_btf *btf, uint8_t pointer_size, struct cairn_types **ret, struct cairn_err *err);

#endif
