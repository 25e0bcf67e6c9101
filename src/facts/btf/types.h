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
 * Returns 0 with *@ret owned by the caller, types_free(); -ENOMEM. Damaged references are harmless:
 * void.
 * Cost: O(records). Threads: any.
 */
int btf_types(const struct cairn_btf *btf, uint8_t pointer_size, struct cairn_types **ret,
	      struct cairn_err *err);

/* The same, read only as far as a caller needs it. One thread at a time. */
struct btf_types;

/*
 * btf_types_new - reserve the ids of @btf in @types, which is new; nodes say nothing until they are
 * read
 *
 * @btf, @types  outlive the reader
 * Returns 0 with *@ret owned by the caller, btf_types_free(); -ENOMEM. Cost: O(records) of address
 * space, not of memory.
 */
int btf_types_new(const struct cairn_btf *btf, uint8_t pointer_size, struct cairn_types *types,
		  struct btf_types **ret, struct cairn_err *err);
void btf_types_free(struct btf_types *reader);

/*
 * btf_types_read - read a type with all types that lie inside it; the types that it points to have
 * their names, and are unread if they have members
 *
 * Returns 0, also for an id that does not exist; -ENOMEM. Cost: O(the types that were not read
 * before).
 */
int btf_types_read(struct btf_types *reader, uint32_t id, struct cairn_err *err);
int btf_types_read_all(struct btf_types *reader, struct cairn_err *err);

#endif
