/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIDECAR_NAMES_MEMO_H
#define SIDECAR_NAMES_MEMO_H

#include "elf/elf.h"

enum names_of { NAMES_OF_BINARY, NAMES_OF_DEBUG_FILE };

/*
 * names_print - elf_names_print(), remembered with a cached sidecar
 *
 * @cached  the sidecar's path, whose writer is trusted
 * @which   the file, of those whose names are remembered with it
 * Cost: one system call for a file that was read before, unless it changed. Threads: any.
 */
uint32_t names_print(const struct elf *e, const char *cached, enum names_of which);

#endif
