/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of any source as BTF: built (cairn/layout/builder.h), from declarations, from DWARF
 *
 *	cairn_btf_builder_new(NULL, &btf, &err);
 *	cairn_btf_add_types(btf, types, &event, 1, NULL, &err);
 *	cairn_btf_finish(btf, &bytes, &size, &err);	// then write or cairn_btf_dump() it
 */
#ifndef CAIRN_BTF_OF_TYPES_H
#define CAIRN_BTF_OF_TYPES_H

#include <cairn/api.h>
#include <cairn/btf.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

/*
 * cairn_btf_add_types - add types, with all types that they refer to
 *
 * A type without a BTF kind becomes one of its size: references are pointers, vectors arrays,
 * _Atomic is dropped, complex numbers of more than 16 bytes are structs without members. Base
 * classes are members of their class's name. Structs that are only declared, or were not read, are
 * forward declarations.
 *
 * @b        a builder; records are added after the existing ones
 * @ret_ids  NULL, or @n ids in the BTF
 * Returns 0. -EINVAL: an offset of a bit-field or a number of members beyond the range of BTF.
 * -ENOMEM, -ERANGE.
 * Cost: O(types reached). Records that were added before a failure stay. Threads: one at a time per
 * builder.
 */
int cairn_btf_add_types(struct cairn_btf_builder *b, const struct cairn_types *types,
			const uint32_t *ids, size_t n, uint32_t *ret_ids, struct cairn_err *err);

CAIRN_END_DECLS
#endif
