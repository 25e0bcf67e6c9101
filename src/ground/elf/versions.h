/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols of which a shared library has several, told apart by their version: memcpy@GLIBC_2.14. */
#ifndef ELF_VERSIONS_H
#define ELF_VERSIONS_H

#include "elf/elf.h"

/*
 * elf_visit_version - the addresses of a symbol of a version that the file defines
 *
 * @version  NULL: the default one, which the linker takes for the bare name
 * @visit  a result other than 0 ends the walk and is returned
 * Returns 0, also if there is no such version; -EBADMSG: a table is damaged. Cost: a pass over the
 * dynamic symbols.
 */
int elf_visit_version(const struct elf *e, const char *name, const char *version,
		      int (*visit)(void *ctx, struct cairn_vaddr at), void *ctx,
		      struct cairn_err *err);

#endif
