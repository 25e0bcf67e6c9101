/* SPDX-License-Identifier: BSD-2-Clause */
/* The notes of USDT probes, as they are in the file. */
#ifndef ELF_STAPSDT_H
#define ELF_STAPSDT_H

#include "elf/elf.h"

/* One note: one instruction that a probe is on. Strings are in the file's mapping. */
struct stapsdt {
	const char *provider, *name;
	const char *args; /* as the compiler wrote them: "-4@%eax 8@16(%rsp)" */
	struct cairn_vaddr at;
	struct cairn_vaddr semaphore; /* 0: it has none */
};

/*
 * elf_visit_stapsdt - every note of .note.stapsdt, in the order of the file
 *
 * @visit  a result other than 0 ends the walk and is returned
 * Returns 0, also without such a section; -EBADMSG: a note is damaged or cut off; -ERANGE: more
 * notes or longer texts than any program has; -ENOMEM.
 */
int elf_visit_stapsdt(struct elf *e, int (*visit)(void *ctx, const struct stapsdt *probe),
		      void *ctx, struct cairn_err *err);

#endif
