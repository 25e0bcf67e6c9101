/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which variable of a process the name of a shared library's variable stands for, and where the
 * thread-local ones of a file are
 */
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

/* How the address of a thread-local variable is found in a process, from the thread pointer. */
enum elf_thread_way {
	ELF_THREAD_UNKNOWN, /* the file does not show it */
	ELF_THREAD_FIXED,   /* thread pointer + add */
	ELF_THREAD_OFFSET,  /* thread pointer + the number in the slot + add */
	ELF_THREAD_MODULE,  /* the block of the module whose number is in the slot, + add */
};

struct elf_thread_place {
	enum elf_thread_way way;
	struct cairn_vaddr slot;
	int64_t add;
};

/*
 * elf_thread_place_of - of the variable at an offset of the file's block of thread-local variables
 *
 * The blocks of modules are found by glibc's table (docs/limits.md): a file for another C library
 * has no MODULE.
 *
 * Returns 0; -EBADMSG: a table is damaged. Cost: as elf_binding_of().
 */
int elf_thread_place_of(const struct elf *e, uint64_t offset, struct elf_thread_place *ret,
			struct cairn_err *err);

#endif
