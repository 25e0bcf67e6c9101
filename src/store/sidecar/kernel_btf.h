/* SPDX-License-Identifier: BSD-2-Clause */
/* The section .cairn.kernel_btf. */
#ifndef SIDECAR_KERNEL_BTF_H
#define SIDECAR_KERNEL_BTF_H

#include <stdbool.h>

#include <cairn/err.h>

#include "elf/elf.h"
#include "sidecar/bytes.h"

#define KERNEL_BTF_SECTION ".cairn.kernel_btf"

/* Whether a sidecar of @e has that section. */
bool kernel_btf_is_there(const struct elf *e);

/* Returns 0; the errors of elf_section(). */
int kernel_btf_encode(struct elf *e, struct bytes *ret, struct cairn_err *err);

#endif
