/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a file is a Linux kernel or a module
 *
 * A kernel image is linked into the upper half of the address space, where no process has any
 * memory. This holds on x86-64, arm64 and riscv64, for vmlinux, its debug file (whose section
 * headers keep the addresses) and one without section headers. A kernel that is a program (user
 * mode Linux) is linked into the lower half, and can be probed as one.
 *
 * A module and vmlinux.o have no addresses yet. Their sections tell: .gnu.linkonce.this_module and
 * .modinfo of each module, the tables of exported symbols. No object file of a program has one of
 * these.
 */
#include <string.h>

#include <elf.h>

#include "elf/elf.h"
#include "elf/elf_impl.h"

static bool is_upper_half(uint64_t at)
{
	return at >> 63;
}

static bool has_code_above(const struct elf *e)
{
	for (size_t i = 0; i < e->n_segments; i++)
		if (is_upper_half(e->by_vaddr[i].vaddr))
			return true;
	for (size_t i = 0; i < e->n_sections; i++)
		if (e->sections[i].file.flags & SHF_EXECINSTR &&
		    is_upper_half(e->sections[i].file.addr.v))
			return true;
	return false;
}

bool elf_is_kernel(const struct elf *e)
{
	static const char *const names[] = {".gnu.linkonce.this_module", ".modinfo", "__ksymtab",
					    "__ksymtab_gpl", "__ksymtab_strings"};
	if (!elf_is_relocatable(e))
		return has_code_above(e);
	for (size_t i = 0; i < e->n_sections; i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (!strcmp(e->sections[i].file.name, names[k]))
				return true;
	return false;
}
