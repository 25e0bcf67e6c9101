/* SPDX-License-Identifier: BSD-2-Clause */
/* An ELF file made of sections only, in memory, with checksums of all its bytes. */
#ifndef SIDECAR_ELF_OUT_H
#define SIDECAR_ELF_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct out_section {
	const char *name;
	uint32_t type;     /* SHT_* */
	const void *bytes; /* NULL with SHT_NOBITS */
	size_t size;
	uint64_t flags; /* SHF_* */
	uint64_t addr;
};

/*
 * elf_out_make - the file: header, checksums, sections each aligned to 8 bytes, section headers
 *
 * @ret  malloc()ed
 * Returns 0 or -ENOMEM.
 */
int elf_out_make(const struct out_section *sections, size_t n, uint8_t **ret, size_t *ret_size,
		 struct cairn_err *err);

#endif
