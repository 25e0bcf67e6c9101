/* SPDX-License-Identifier: BSD-2-Clause */
/* Which variable of a process the name of a shared library's variable stands for. */
#ifndef ELF_BINDINGS_H
#define ELF_BINDINGS_H

#include "elf/elf.h"

enum elf_binding {
	ELF_BOUND_HERE,    /* the one at the symbol's address */
	ELF_BOUND_BY_SLOT, /* the one whose address the dynamic linker writes to a slot */
	ELF_BOUND_UNKNOWN, /* the dynamic linker decides, and leaves no trace in this file */
};

/*
 * elf_binding_of - of the variable at an address, as the code of the file uses it
 *
 * @name      of its symbol, which decides when several symbols are there; may be NULL
 * @ret_slot  BY_SLOT: the link-time address of the slot
 * Returns an enum elf_binding; -EBADMSG: a table is damaged. Cost: a pass over the dynamic symbols
 * and relocations.
 */
int elf_binding_of(const struct elf *e, struct cairn_vaddr at, const char *name,
		   struct cairn_vaddr *ret_slot, struct cairn_err *err);

#endif
