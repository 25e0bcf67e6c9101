/* SPDX-License-Identifier: BSD-2-Clause */
/* Sections of the file: found, and their bytes unchanged. */
#ifndef ELF_SECTION_RAW_H
#define ELF_SECTION_RAW_H

#include "elf/elf_impl.h"

/* @i is that of a section and it is of @type. */
bool section_is(const struct elf *e, uint32_t i, uint32_t type);

/* First section of a type; NO_SECTION when there is none. */
uint32_t section_of_type(const struct elf *e, uint32_t type);

/* Not SHT_NOBITS, and not empty. */
bool section_has_bytes(const struct section *s);

/* Bytes of a section, NULL when it has none; -EBADMSG when they are not all in the file. */
int section_raw(const struct elf *e, size_t i, const uint8_t **ret, struct cairn_err *err);

#endif
