/* SPDX-License-Identifier: BSD-2-Clause */
/* The vDSO: an ELF file that is in the memory of a process or core, and nowhere else. */
#ifndef CODE_VDSO_H
#define CODE_VDSO_H

#include <cairn/binary.h>

#include "code/maps.h"

/* Reads @n bytes of a target's memory at @at. Returns 0, or an errno, with the reason in @err. */
typedef int vdso_read(const void *ctx, uint64_t at, void *ret, size_t n, struct cairn_err *err);

/*
 * vdso_open - the vDSO that is mapped at @m
 *
 * @ret  NULL, with an error, when it cannot be read. It borrows *@ret_bytes, which the caller frees
 *	  after it in any case
 * Returns 0, -ENOMEM.
 */
int vdso_open(const struct code_mapping *m, vdso_read *read, const void *ctx,
	      struct cairn_binary **ret, uint8_t **ret_bytes, struct cairn_err *err);

#endif
