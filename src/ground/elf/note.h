/* SPDX-License-Identifier: BSD-2-Clause */
/* The note with the build-id. */
#ifndef ELF_NOTE_H
#define ELF_NOTE_H

#include "elf/elf_impl.h"

/* Finds it and sets build_id and build_id_len; 0 also when there is none. -EBADMSG. */
int elf_find_build_id(struct elf *e, struct cairn_err *err);

#endif
