/* SPDX-License-Identifier: BSD-2-Clause */
/* The file in which a debuginfod serves a sidecar; wrap.c has the essay. */
#ifndef SIDECAR_WRAP_H
#define SIDECAR_WRAP_H

#include "elf/elf.h"
#include "sidecar/sidecar_impl.h"

#define WRAP_SECTION ".debug_cairn"
/* After the sidecar's own id, in that of the wrapper: bytes. */
#define WRAP_ID_SUFFIX                                                                             \
	{                                                                                          \
		'c', 'a', 'i', 'r', 'n', SIDECAR_VERSION                                           \
	}

/* A note's header, its name, and an id of 64 bytes. */
enum { SIDECAR_NOTE_MAX = 80 };

/*
 * wrap_open (unwrap.c) - the sidecar in a wrapper
 *
 * @ret  NULL when @outer is none; else elf_unref() it before @outer
 * Returns 0; -ESTALE: the ids do not belong together; as elf_section() and elf_open_mem().
 */
int wrap_open(struct elf *outer, struct elf **ret, struct cairn_err *err);

#endif
