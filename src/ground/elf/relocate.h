/* SPDX-License-Identifier: BSD-2-Clause */
/* Relocation of the sections of .o and .ko files; the essay is in relocate.c. */
#ifndef ELF_RELOCATE_H
#define ELF_RELOCATE_H

#include "elf/elf_impl.h"

bool section_needs_relocation(const struct elf *e, size_t i);

/*
 * section_relocate - fill the holes in a copy of a section's bytes
 *
 * Returns 0; -EBADMSG (damaged), -EOPNOTSUPP (a type of relocation that is not known).
 */
int section_relocate(const struct elf *e, size_t i, uint8_t *bytes, uint64_t size,
		     struct cairn_err *err);

#endif
