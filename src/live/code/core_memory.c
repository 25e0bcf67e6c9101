/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that a core leaves out
 *
 * Pages of files that the process did not write to are not dumped: names that are string literals,
 * .eh_frame. They are in the file, which code_space_open_core() has taken only if its build-id is
 * that in the core. Writable sections are not taken from it: for a truncated core it is unknown
 * whether the process wrote to them.
 */
#include <elf.h>
#include <string.h>

#include "code/core.h"
#include "code/memory.h"
#include "elf/elf.h"

/* The bytes from @at on that a section has in the file. */
static size_t read_section(const struct elf_section *s, uint64_t at, void *ret, size_t n)
{
	bool is_constant = s->flags & SHF_ALLOC && !(s->flags & SHF_WRITE) && s->data;
	if (!is_constant || at < s->addr.v || at - s->addr.v >= s->size)
		return 0;
	uint64_t left = s->size - (at - s->addr.v);
	n = n < left ? n : left;
	memcpy(ret, s->data + (at - s->addr.v), n);
	return n;
}

static size_t read_file(struct code_space *space, uint64_t at, void *ret, size_t n)
{
	const struct code_image *image;
	struct cairn_vaddr vaddr;
	if (code_space_peek(space, (struct cairn_addr){at}, &image, &vaddr, NULL) < 0 || !image ||
	    !image->bin)
		return 0;
	const struct elf *elf = binary_main(image->bin);
	size_t done = 0;
	for (size_t i = 0; i < elf_n_sections(elf) && !done; i++)
		done = read_section(elf_section_at(elf, i), vaddr.v, ret, n);
	return done;
}

static size_t read_memory(void *ctx, uint64_t at, void *ret, size_t n)
{
	const struct core_memory *m = ctx;
	struct code_memory dumped = code_memory_of_core(m->core);
	size_t done = dumped.read(dumped.ctx, at, ret, n);
	return done ? done : read_file(m->space, at, ret, n);
}

struct code_memory code_memory_of_core_and_files(struct core_memory *m)
{
	return (struct code_memory){read_memory, m};
}
