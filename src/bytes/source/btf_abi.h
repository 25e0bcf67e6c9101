/* SPDX-License-Identifier: BSD-2-Clause */
/* What BTF does not say: the machine it is of. */
#ifndef SOURCE_BTF_ABI_H
#define SOURCE_BTF_ABI_H

#include <cairn/btf.h>
#include <cairn/layout.h>

/*
 * The ABI of the ELF file at @path, by its header; NULL: no ELF file, or of a machine that is not
 * known here.
 */
const struct cairn_abi *abi_of_elf_file(const char *path);

/*
 * How wide pointers are, 4 or 8, by what else is there: the size of a type long, which equals it on
 * Linux; else the distance between a pointer and the member behind it; else 8, as BPF's and most
 * kernels' are.
 */
uint8_t btf_pointer_size(const struct cairn_btf *btf);

#endif
