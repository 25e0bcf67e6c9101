/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine of BTF, which BTF does not record. */
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
 * The width of pointers, 4 or 8, by other evidence: the size of a type long, which equals it on
 * Linux; else the distance between a pointer and the member after it; else 8, as BPF's and most
 * kernels' are.
 */
uint8_t btf_pointer_size(const struct cairn_btf *btf);

#endif
