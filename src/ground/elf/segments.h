/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of a file: made at open, then looked up; the essay is in segments.c. */
#ifndef ELF_SEGMENTS_H
#define ELF_SEGMENTS_H

#include "elf/elf_impl.h"

/* Gives the sections of a relocatable file addresses. 0, -EBADMSG, -ERANGE. */
int elf_lay_out(struct elf *e, struct cairn_err *err);

/* Fills by_addr; of a relocatable file the segments too. 0, -EBADMSG, -ENOMEM. */
int elf_index_sections(struct elf *e, struct cairn_err *err);

struct segment_header {
	uint64_t vaddr, foff, file_size;
};

/* Fills by_vaddr and by_foff. 0, -EBADMSG, -ENOMEM. */
int elf_set_segments(struct elf *e, const struct segment_header *p, size_t n,
		     struct cairn_err *err);

/* The section that occupies an address; NULL when none does. O(log n). */
const struct section *elf_section_holding(const struct elf *e, struct cairn_vaddr at);

/* The byte of the file at an address, and back; false when there is none. O(log n). */
bool elf_foff(const struct elf *e, struct cairn_vaddr at, struct cairn_foff *ret);
bool elf_vaddr(const struct elf *e, struct cairn_foff off, struct cairn_vaddr *ret);

#endif
