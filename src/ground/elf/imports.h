/* SPDX-License-Identifier: BSD-2-Clause */
/* The code through which a file calls functions of shared libraries: its procedure linkage table. */
#ifndef ELF_IMPORTS_H
#define ELF_IMPORTS_H

#include "elf/elf.h"

/*
 * elf_visit_stubs - every stub of a function that is taken from a shared library
 *
 * A function that is called in another way, through its slot of the GOT (-fno-plt), has no stub.
 *
 * @visit  gets the name and the stub's first instruction; a result other than 0 ends the walk and
 *         is returned. Names are in the file's mapping.
 * Returns 0, also without such tables; -EBADMSG: one is damaged; -ENOMEM.
 */
int elf_visit_stubs(const struct elf *e,
		    int (*visit)(void *ctx, const char *name, struct cairn_vaddr at), void *ctx,
		    struct cairn_err *err);

#endif
