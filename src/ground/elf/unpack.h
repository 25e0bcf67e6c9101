/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole files that are compressed: the modules of a kernel, loop.ko.zst and loop.ko.gz. */
#ifndef ELF_UNPACK_H
#define ELF_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include <cairn/err.h>

/*
 * unpack - the bytes of a compressed file
 *
 * @name  for errors
 * @ret   malloc()ed
 * Returns 0; -EBADMSG (damaged), -ERANGE (larger than any module), -EOPNOTSUPP (xz, and what is no
 * known compression), -ENOMEM.
 */
int unpack(const uint8_t *bytes, size_t size, const char *name, uint8_t **ret, size_t *ret_size,
	   struct cairn_err *err);

#endif
