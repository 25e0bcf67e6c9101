/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts that a loader maps, and their bytes as the linker wrote them
 *
 * Some linkers put the ELF header and the program headers into the first executable segment.
 * strip(1) writes both anew, so they count as zeros: the rest are the bytes that one link makes.
 */
#include <elf.h>
#include <string.h>

#include "elf/elf_impl.h"

size_t elf_loads(const struct elf *e, const struct elf_load **ret)
{
	*ret = e->loads;
	return e->n_loads;
}

/*
 * Writes zeros for the part of file offsets [@lo, @hi) that is among the @n bytes at @to, which are
 * from offset
 * @foff.
 */
static void blank(uint64_t lo, uint64_t hi, uint64_t foff, uint64_t n, uint8_t *to)
{
	uint64_t from = lo > foff ? lo : foff, end = hi < foff + n ? hi : foff + n;
	if (from < end)
		memset(to + (from - foff), 0, (size_t)(end - from));
}

void elf_load_copy(const struct elf *e, const struct elf_load *l, uint64_t off, size_t n,
		   uint8_t *to)
{
	uint64_t foff = l->foff + off;
	memcpy(to, e->bytes + foff, n);
	blank(0, sizeof(Elf64_Ehdr), foff, n, to);
	blank(e->phoff, e->phoff + e->ph_size, foff, n, to);
}
