/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed sections; the essay is in compress.c. */
#ifndef ELF_COMPRESS_H
#define ELF_COMPRESS_H

#include "elf/elf_impl.h"

bool section_is_compressed(const struct elf *e, size_t i);

/*
 * section_decompress - the bytes of one that is
 *
 * @ret  malloc()ed
 * Returns 0; -EBADMSG (damaged), -ERANGE (larger than the limits), -EOPNOTSUPP (unknown
 * compression), -ENOMEM.
 */
int section_decompress(const struct elf *e, size_t i, uint8_t **ret, uint64_t *ret_size,
		       struct cairn_err *err);

#endif
