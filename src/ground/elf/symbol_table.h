/* SPDX-License-Identifier: BSD-2-Clause */
/* The table that symbols are read from. Only files of this module include it. */
#ifndef ELF_SYMBOL_TABLE_H
#define ELF_SYMBOL_TABLE_H

#include <elf.h>

#include "elf/elf_impl.h"

/* With its two companions. */
struct symbol_table {
	const struct elf *e;
	struct cursor_src src;
	const uint8_t *symbols, *strings, *shndx;
	uint64_t size, strings_size, n_shndx;
};

/*
 * symbol_table_find - the table of a type, whose last string ends with a NUL
 *
 * Returns 1 when the file has one with bytes, 0 when not; -EBADMSG, -EOPNOTSUPP.
 */
int symbol_table_find(const struct elf *e, uint32_t type, struct symbol_table *ret,
		      struct cairn_err *err);

/* Whether elf_symbols() keeps a symbol of this type, in this section. */
static inline bool symbol_has_address(uint8_t type, uint32_t shndx)
{
	const unsigned int without = 1u << STT_SECTION | 1u << STT_FILE | 1u << STT_TLS;

	if (without >> type & 1)
		return false;
	return shndx == SHN_XINDEX || (shndx != SHN_UNDEF && shndx < SHN_LORESERVE);
}

/* By address, then by name. @sorted has room for all. Returns 0, -ENOMEM. */
int symbols_sort(const struct elf_symbol *p, size_t n, struct elf_symbol *sorted);

#endif
